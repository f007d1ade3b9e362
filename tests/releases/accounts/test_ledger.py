"""The ledger, against all sequences of outcomes, and what it refuses."""

from __future__ import annotations

import itertools
import json
import math
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import ledger_writers
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.finite_orders import largest_gain_of_order
from oracles.releases import sequences
from strategies import mechanisms, priors

from pmlopt import (
    PML,
    ExpectedGain,
    ExpectedLoss,
    Ledger,
    Mechanism,
    Prior,
    design,
    leakage_level,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.symmetry import IIDPrior, ProductPrior
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.library import find
from pmlopt.releases import chained_level
from pmlopt.releases.accounts.ledger_file import EPS, HistoryTable

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@st.composite
def releases(draw: st.DrawFn) -> tuple[FloatArray, list[FloatArray]]:
    prior = draw(priors(2, 4))
    return prior, [draw(mechanisms(len(prior), 3)) for _ in range(3)]


@settings(max_examples=25, deadline=None)
@given(releases())
def test_levels_are_those_of_all_sequences(case: tuple[FloatArray, list[FloatArray]]) -> None:
    prior, matrices = case
    expected = list(sequences(prior, matrices))
    ledger = Ledger(prior, people=len(expected))
    for time, matrix in enumerate(matrices):
        after = ledger.level_after(matrix)
        ledger.record(
            matrix, np.array([outcome[time] for outcome, _ in expected]), allow_duplicate=True
        )
        # every outcome that may come is there
        assert ledger.level == pytest.approx(after, abs=1e-12)
    for person, (_, lifts) in enumerate(expected):
        assert ledger.levels[person] == pytest.approx(math.log(max(lifts)), abs=1e-12)
        positive = np.array(lifts) > 0
        density = ledger.density(person)
        assert density[positive] == pytest.approx(np.log(np.array(lifts)[positive]), abs=1e-12)
        assert (density[~positive] == -np.inf).all()
    assert ledger.level <= chained_level(prior, matrices) + 1e-12
    for alpha in (1.3, 2.0, 7.0):
        moments = [prior @ np.array(lifts) ** alpha for _, lifts in expected]
        assert ledger.levels_of_order(alpha) == pytest.approx(
            np.log(moments) / (alpha - 1), abs=1e-10
        )
    assert (ledger.levels_of_order(math.inf) == ledger.levels).all()


@pytest.mark.parametrize("alpha", [1.5, 2.0, 6.0])
def test_releases_for_the_requirement_of_an_order_use_up_the_total(alpha: float) -> None:
    rng = np.random.default_rng(int(10 * alpha))
    prior = Prior(rng.dirichlet(np.ones(4)))
    first, gains = rng.dirichlet(np.full(4, 3.0), 4)[:, [0, 1]], rng.random((4, 3))
    first = first / first.sum(axis=1, keepdims=True)
    for outcome in (0, 1):
        ledger = Ledger(prior, people=3)
        ledger.record(first, [outcome] * 3)
        total, posterior = float(ledger.levels_of_order(alpha)[0]) + 0.2, ledger.prior()
        found = solve(
            design(posterior, ledger.requirement_of_order(alpha, total), ExpectedGain(gains))
        )
        lifts = np.diag(posterior.pmf / prior.pmf)
        best = largest_gain_of_order(posterior.pmf, alpha, total, gains, about=[(prior.pmf, lifts)])
        assert found.value == pytest.approx(best, abs=1e-7)
        assert found.gap <= 1e-7
        assert found.certificate.verify()
        occurring = np.flatnonzero(found.matrix.any(axis=0))
        ledger.record(found.mechanism, occurring, occurring)
        levels = ledger.levels_of_order(alpha)[occurring]
        assert levels.max() <= total
        assert levels.max() == pytest.approx(total, abs=1e-6)
        with pytest.raises(PrivacyError, match="of order"):
            ledger.requirement_of_order(alpha, total - 0.1, int(occurring[levels.argmax()]))


@pytest.mark.parametrize("seed", range(3))
def test_releases_for_the_requirement_never_exceed_the_total(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(rng.dirichlet(np.ones(4)))
    total = 0.8
    ledger = Ledger(prior, people=27, total=total)  # three outputs, three releases: every sequence
    for epsilon in (0.5, total, total):
        for group in ledger.groups():
            person = int(group[0])
            posterior = ledger.prior(person)
            needed = ledger.requirement(epsilon, person)
            # every letter counts alike, or one output would do for a frequent one
            loss = ExpectedLoss(rng.random((posterior.size, 3)) / posterior.pmf[:, None])
            result = solve(design(posterior, needed, loss))
            assert ledger.level_after(result.mechanism, group) <= epsilon
            occurring = np.flatnonzero(
                result.mechanism.support
            )  # any outcome, not only the likely ones
            outcomes = occurring[np.arange(len(group)) * len(occurring) // len(group)]
            ledger.record(result.mechanism, [result.mechanism.outputs[y] for y in outcomes], group)
    assert ledger.level <= total
    assert ledger.level == pytest.approx(total, abs=1e-6)  # all that was left is used


def two_waves(first: FloatArray, prior: Prior, adding: bool) -> float:
    """The mean loss of a second wave, over the outcomes of the first, in all within two nats."""
    law = prior.pmf @ first
    ledger = Ledger(prior, people=len(law), total=2.0)
    ledger.record(first, np.arange(len(law)))
    years = np.array(prior.labels, dtype=float)
    losses = []
    for person in range(len(law)):
        posterior = ledger.prior(person)
        table = np.abs(np.subtract.outer(np.array(posterior.labels, dtype=float), years))
        needed = PML(1.0) if adding else ledger.requirement(person=person)
        result = solve(design(posterior, needed, ExpectedLoss(table), outputs=len(years)))
        assert ledger.level_after(result.mechanism, [person]) <= 2.0 + 1e-12
        losses.append(result.value)
    return float(law @ losses)


def test_the_second_wave_on_adult() -> None:
    prior = find("adult-education-absolute").prior
    assert prior is not None
    # an optimal first wave, with three outputs, as the simplex method left it in another program
    near, far = [0.918875, 0.081125, 0], [0.200593, 0.799407, 0]
    rows = [
        near,
        near,
        far,
        far,
        far,
        near,
        near,
        far,
        [0.807751, 0.192249, 0],
        [0, 0.799407, 0.200593],
    ]
    first = np.array([*rows, *[[0, 0, 1]] * 6])
    law = prior.pmf @ first
    first = (1 - 1e-5) * first + 1e-5 * law  # the digits that are not printed
    outputs = np.array([9, 10, 13])
    loss = np.abs(np.subtract.outer(np.array(prior.labels, dtype=float), outputs))
    assert leakage_level(prior, first) <= 1
    assert (prior.pmf[:, None] * first * loss).sum() == pytest.approx(0.93762, abs=1e-4)  # optimal
    assert two_waves(first, prior, adding=False) == pytest.approx(0.546, abs=1e-3)
    assert two_waves(first, prior, adding=True) == pytest.approx(0.591, abs=1e-3)


def test_a_long_history_does_not_underflow() -> None:
    ledger = Ledger([0.5, 0.5])
    for _ in range(400):
        ledger.record(RESPONSE, [0], allow_duplicate=True)
    assert ledger.level == pytest.approx(math.log(2), abs=1e-12)
    assert ledger.level_after(RESPONSE) == pytest.approx(math.log(2), abs=1e-12)
    for _ in range(401):
        ledger.record(RESPONSE, [1], allow_duplicate=True)
    assert ledger.level == pytest.approx(math.log(1.5), abs=1e-9)


def test_rounding_of_a_long_history_is_counted_in() -> None:
    def response(exponent: int) -> FloatArray:
        return np.array([[1.0, 2.0**-exponent], [2.0**-exponent, 1.0]])

    ledger = Ledger([0.6, 0.4])
    for _ in range(660):
        ledger.record(response(90), [0], allow_duplicate=True)
    for _ in range(60):
        ledger.record(response(990), [1], allow_duplicate=True)
    assert (
        abs(ledger.density()).max() > 1e-11
    )  # exactly 0, for 660 * 90 = 60 * 990: what rounding has left
    posterior = ledger.prior()
    for gain in (np.eye(2), np.eye(2)[::-1]):
        result = solve(
            design(posterior, ledger.requirement(0.5), ExpectedGain(gain / posterior.pmf[:, None]))
        )
        assert leakage_level([0.6, 0.4], result.mechanism) <= 0.5
    release = [[0.5, 0.5], [0.9, 0.1]]
    level = leakage_level([0.6, 0.4], release)
    assert ledger.level_after(release) < level - 1e-11
    ledger._state = replace(ledger._state, total=level - 1e-11)
    assert not ledger.allows(release)


def test_a_letter_that_is_next_to_excluded_does_not_stop_a_design() -> None:
    likely = [[1 - 1e-12, 1e-12], [1e-12, 1 - 1e-12], [0.5, 0.5]]
    ledger = Ledger([0.5, 0.3, 0.2])
    for _ in range(30):
        ledger.record(likely, [0], allow_duplicate=True)
    assert ledger.density()[1] == pytest.approx(30 * math.log(1e-12) - math.log(0.5), rel=1e-9)
    posterior = ledger.prior()
    assert posterior.labels == (0, 1, 2)
    loss = ExpectedLoss((1 - np.eye(3)) / posterior.pmf[:, None].clip(1e-3))
    result = solve(design(posterior, ledger.requirement(1.4), loss))
    assert ledger.level_after(result.mechanism) <= 1.4


def test_a_release_that_is_recorded_twice_is_noticed(tmp_path: Path) -> None:
    ledger = Ledger([0.5, 0.5], people=3)
    for outcomes, people in (([0, 1, 1], None), ([0, 1, 0], None), ([0, 1], [0, 1])):
        ledger.record(RESPONSE, outcomes, people)
    ledger.save(tmp_path / "ledger.npz")
    for book in (ledger, Ledger.load(tmp_path / "ledger.npz")):
        with pytest.raises(PrivacyError, match="recorded already, as number 1"):
            book.record(RESPONSE, [0, 1, 1])
        with pytest.raises(PrivacyError, match="recorded already, as number 3"):
            book.record(RESPONSE, [1, 0], [1, 0])  # in another order
        book.record(RESPONSE, [0, 1, 1], allow_duplicate=True)
        assert book.releases == 4


def test_outcomes_next_to_impossible_are_counted() -> None:
    ledger = Ledger([0.5, 0.5])
    for _ in range(3):
        ledger.record([[1e-150, 1.0], [1.0, 0.0]], [0], allow_duplicate=True)
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert ledger.level_after(matrix) == pytest.approx(math.log(2))
    ledger.record(matrix, [1])
    assert ledger.level == pytest.approx(math.log(2))
    assert leakage_level([0.5, 0.5], [[1.0, 0.0], [1 - 1e-16, 1e-200]]) == pytest.approx(
        math.log(2)
    )


@pytest.mark.parametrize(
    ("mechanism", "outcomes", "people", "error", "message"),
    [
        (RESPONSE, [0], None, MechanismError, "1 outcome cannot be recorded for 2 people"),
        (RESPONSE, [0, 2], None, MechanismError, "the outcomes: 2 is none of"),
        (RESPONSE, np.array([0, 2]), None, MechanismError, "the outcomes: 2 is none of"),
        (RESPONSE, [0, [1]], None, MechanismError, "is none of"),
        (RESPONSE, "00", None, MechanismError, "give a list"),
        (RESPONSE, [0, 0], [0, 0], PrivacyError, "stands twice"),
        (RESPONSE, [0], [2], PrivacyError, "there is no person 2"),
        (RESPONSE, [0], [0.5], PrivacyError, "whole numbers"),
        (Mechanism(RESPONSE, ["a", "b"]), [0, 0], None, MechanismError, "none of the letters"),
        (np.eye(3), [0, 0], None, MechanismError, "without labels"),
        (Mechanism([[1.0]], ["no"]), [0, 0], None, MechanismError, "no row for the letter 'yes'"),
        ([[1, 0], [1, 0]], [0, 1], None, MechanismError, "probability zero for person 1"),
        (np.eye(2), [0, 1], None, PrivacyError, r"over the total of 0\.6"),
    ],
)
def test_what_is_refused_leaves_the_ledger_as_it_was(
    mechanism: Any, outcomes: Any, people: Any, error: type[Exception], message: str
) -> None:
    ledger = Ledger(Prior([0.5, 0.5], ["no", "yes"]), people=2, total=0.6)
    ledger.record(RESPONSE, [0, 1])
    before = ledger.levels
    with pytest.raises(error, match=message):
        ledger.record(mechanism, outcomes, people)
    assert ledger.releases == 1
    assert (ledger.levels == before).all()


def test_a_total_of_nothing_and_one_that_is_spent() -> None:
    ledger = Ledger([0.1, 0.2, 0.7], total=0.0)
    ledger.record([[0.3, 0.7]] * 3, [1])
    assert ledger.level == 0
    with pytest.raises(PrivacyError, match="over the total of 0"):
        ledger.record([[0.3, 0.7], [0.3, 0.7], [0.31, 0.69]], [1])
    ledger = Ledger([0.5, 0.5])
    with pytest.raises(PrivacyError, match="no total"):
        ledger.requirement()
    ledger.record(RESPONSE, [0])
    with pytest.raises(PrivacyError, match=r"over the total of 0\.1"):
        ledger.remaining(0.1)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")
def test_two_writers_that_are_killed_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    told = ledger_writers.run(tmp_path, 4, np.random.default_rng(0))
    assert told["acknowledged"] == 8


@pytest.mark.parametrize(
    "prior",
    [
        Prior.uniform(2),
        Prior([0.25, 0.75], ["no", "yes"], 9),
        Prior.from_counts([3, 5]),
        Prior.from_weights([3, 5], ["no", "yes"]),
        Prior.from_weights([1, 10**40]),
        Prior([0.25, 0.75], [("no", 1), ("yes", 2)]),
        IIDPrior([0.3, 0.7], 1),
        ProductPrior(IIDPrior([0.3, 0.7], 1), IIDPrior([1.0], 2)),
    ],
)
def test_a_file_gives_back_the_ledger(prior: Prior, tmp_path: Path) -> None:
    ledger = Ledger(prior, people=3, total=0.7)
    ledger.record([[0.5, 0.5], [0.25, 0.75]], [0, 1, 1])
    ledger.record([[0.5, 0.5], [0.5, 0.5]], [0, 1], [0, 2])
    ledger.save(tmp_path / "ledger.npz")
    back = Ledger.load(tmp_path / "ledger.npz")
    assert (back.levels == ledger.levels).all()
    assert (back.total, back.releases, back.people) == (0.7, 2, 3)
    assert (back.initial.pmf == prior.pmf).all()
    assert back.initial.weights == prior.weights
    assert (back.initial.labels, back.initial.samples) == (prior.labels, prior.samples)
    assert [group.tolist() for group in back.groups()] == [
        group.tolist() for group in ledger.groups()
    ]


def test_a_file_that_changed_since_it_was_read_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "ledger.npz"
    Ledger([0.5, 0.5]).save(path)
    one, other = Ledger.load(path), Ledger.load(path)
    one.record(RESPONSE, [0])
    other.record(RESPONSE, [1])
    one.save(path)
    content = path.read_bytes()
    for book in (other, Ledger([0.5, 0.5])):  # the other one never read it
        with pytest.raises(FileFormatError, match="is not what this ledger was read from"):
            book.save(path)
    assert path.read_bytes() == content
    other.save(tmp_path / "other.npz")
    one.record(RESPONSE, [1])
    one.save(path)  # what it wrote itself
    assert Ledger.load(path).releases == 2


def test_an_open_ledger_has_one_writer_and_is_written_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.npz"
    Ledger([0.5, 0.5]).save(path)
    with Ledger.open(path) as book:
        book.record(RESPONSE, [0])
        with monkeypatch.context() as patch:
            patch.setattr("pmlopt.core.files.disk.LOCK_TIMEOUT_SECONDS", 0.0)
            with (
                pytest.raises(FileFormatError, match="another process is writing it"),
                Ledger.open(path),
            ):
                pass
        assert Ledger.load(path).releases == 0
    assert Ledger.load(path).releases == 1

    def refuse(book: Ledger) -> None:
        book.record(RESPONSE, [1])
        book.record(RESPONSE, [2])

    with pytest.raises(MechanismError), Ledger.open(path) as book:
        refuse(book)
    assert Ledger.load(path).releases == 1
    assert {file.name for file in tmp_path.iterdir()} == {"ledger.npz"}


def test_a_release_is_published_with_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, draft, target = (
        tmp_path / name for name in ("ledger.npz", ".pmlopt-draft.csv", "wave.csv")
    )
    Ledger([0.5, 0.5]).save(path)

    def recorded() -> None:
        draft.write_text("0")
        with Ledger.open(path) as book:
            book.record(RESPONSE, [0])
            book.publish(draft, target)

    def cut(source: Path, name: Path) -> None:
        assert (source, name) == (draft.resolve(), target.resolve())
        sys.exit("power cut")

    with monkeypatch.context() as patch:
        patch.setattr("pmlopt.core.files.disk.publish_new", cut)
        with pytest.raises(SystemExit):
            recorded()
    assert (draft.exists(), target.exists(), Ledger.load(path).releases) == (True, False, 1)
    (tmp_path / "away").mkdir()
    draft.rename(tmp_path / "away" / "draft.csv")
    with pytest.raises(FileFormatError, match="put back the one that was moved"), Ledger.open(path):
        pass
    (tmp_path / "away" / "draft.csv").rename(draft)
    with Ledger.open(path) as book:
        assert book.finished == (str(target.resolve()),)
    assert (draft.exists(), target.read_text()) == (False, "0")
    with Ledger.open(path) as book:
        assert book.finished == ()
        for name in (target, tmp_path / "away" / "wave.csv"):
            with pytest.raises(FileFormatError, match="nothing can be published"):
                book.publish(draft, name)
        draft.touch()
        with pytest.raises(FileFormatError, match="is there already"):
            book.publish(draft, target)


NO_LEDGER: list[tuple[str, Any, str]] = [
    ("history", [0, -1, 0], "history of a person is none"),
    ("history", [0, 1, 2], "history of a person is none"),
    ("history", [[0, 1, 0]], "its history are"),
    ("history", [0.0, 1.0, 0.0], "its history are"),
    ("likelihoods", [[0.0, np.nan], [0.0, -1.0]], "largest of the likelihoods"),
    ("likelihoods", [[0.0, 0.1], [0.0, -1.0]], "largest of the likelihoods"),
    ("likelihoods", [[-1.0, -0.1], [0.0, -1.0]], "largest of the likelihoods"),
    ("likelihoods", [[0.0, -1.0]], "its rounding are"),
    ("likelihoods", [[0.0], [0.0]], "its likelihoods are"),
    ("rounding", [np.nan, 0.0], "bound on rounding"),
    ("rounding", [-1e-16, 0.0], "bound on rounding"),
    ("identities", [[0]], "its identities are"),
]
"""Arrays that no ledger writes."""


def test_a_file_cut_short_or_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, ledger = tmp_path / "ledger.npz", Ledger([0.5, 0.5], people=3)
    ledger.record(RESPONSE, [0, 1, 1])
    ledger.save(path)
    content = path.read_bytes()
    with np.load(path) as arrays:
        parts = dict(arrays)
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(FileFormatError, match="not a whole ledger"):
            Ledger.load(path)
    changes = {"about": np.frombuffer(parts["about"].tobytes().replace(b"0.5", b"0.6"), np.uint8)}
    for name, place in itertools.product(("likelihoods", "history"), (0, -1)):
        changed = parts[name].copy()
        changed.flat[place] += 1
        for change in ({name: changed}, changes):
            np.savez(path, **{**parts, **change})
            with pytest.raises(FileFormatError, match="changed"):
                Ledger.load(path)
    with pytest.raises(FileFormatError, match="ending"):
        ledger.save(tmp_path / "ledger.csv")
    with pytest.raises(FileFormatError, match="cannot be read"):
        Ledger.load(tmp_path / "none.npz")
    # and whoever means it writes the digest too
    monkeypatch.setattr(
        "pmlopt.releases.accounts.array_files.compute_digest", lambda *parts: bytes(32)
    )
    about = {**json.loads(parts["about"].tobytes()), "digest": bytes(32).hex()}
    parts["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    for name, value, message in NO_LEDGER:
        array = np.array(value, dtype=np.uint8 if name == "identities" else None)
        np.savez(path, **{**parts, name: array})
        with pytest.raises(FileFormatError, match=message):
            Ledger.load(path)


def test_what_a_release_adds_to_the_rounding_is_the_same_for_outcomes_alike() -> None:
    grown = HistoryTable.initial(2, 3).extend(
        np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([0, 1, 0]), np.arange(3)
    )
    assert np.exp(grown.likelihoods) == pytest.approx(np.array([[1, 1 / 3], [1 / 3, 1]]), abs=1e-15)
    assert 0 < grown.rounding[0] == grown.rounding[1] <= 8 * EPS
    assert grown.place.tolist() == [0, 1, 0]
