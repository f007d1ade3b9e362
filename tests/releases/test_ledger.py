"""The ledger, against all sequences of outcomes, and what it refuses."""

from __future__ import annotations

import itertools
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.releases import sequences
from strategies import mechanisms, priors

from pmlopt import PML, ExpectedLoss, Ledger, Mechanism, Prior, design, leakage_level, solve
from pmlopt.arrays import FloatArray
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.instances import find
from pmlopt.releases import chained_level

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@st.composite
def releases(draw: st.DrawFn) -> tuple[FloatArray, list[FloatArray]]:
    prior = draw(priors(2, 4))
    return prior, [draw(mechanisms(len(prior), 3)) for _ in range(3)]


@settings(max_examples=40, deadline=None)
@given(releases())
def test_levels_are_those_of_all_sequences(case: tuple[FloatArray, list[FloatArray]]) -> None:
    prior, matrices = case
    expected = list(sequences(prior, matrices))
    ledger = Ledger(prior, people=len(expected))
    for time, matrix in enumerate(matrices):
        after = ledger.level_after(matrix)
        ledger.record(matrix, np.array([outcome[time] for outcome, _ in expected]), again=True)
        # every outcome that may come is there
        assert ledger.level == pytest.approx(after, abs=1e-12)
    for person, (_, lifts) in enumerate(expected):
        assert ledger.levels[person] == pytest.approx(math.log(max(lifts)), abs=1e-12)
        positive = np.array(lifts) > 0
        density = ledger.density(person)
        assert density[positive] == pytest.approx(np.log(np.array(lifts)[positive]), abs=1e-12)
        assert (density[~positive] == -np.inf).all()
    assert ledger.level <= chained_level(prior, matrices) + 1e-12


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
            occurring = np.flatnonzero(result.mechanism.support)  # any outcome, not only the likely ones
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
    rows = [near, near, far, far, far, near, near, far, [0.807751, 0.192249, 0], [0, 0.799407, 0.200593]]
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
    for _ in range(1200):
        ledger.record(RESPONSE, [0], again=True)
    assert ledger.level == pytest.approx(math.log(2), abs=1e-12)
    assert ledger.level_after(RESPONSE) == pytest.approx(math.log(2), abs=1e-12)
    for _ in range(1201):
        ledger.record(RESPONSE, [1], again=True)
    assert ledger.level == pytest.approx(math.log(1.5), abs=1e-9)


def test_outcomes_next_to_impossible_are_counted() -> None:
    ledger = Ledger([0.5, 0.5])
    skewed = [[1.0, 0.0], [1 - 1e-16, 1e-200]]
    for _ in range(3):
        ledger.record([[1e-150, 1.0], [1.0, 0.0]], [0], again=True)
    matrix = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert ledger.level_after(matrix) == pytest.approx(math.log(2))
    ledger.record(matrix, [1])
    assert ledger.level == pytest.approx(math.log(2))
    assert leakage_level([0.5, 0.5], skewed) == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("mechanism", "outcomes", "people", "error", "message"),
    [
        (RESPONSE, [0], None, MechanismError, "1 outcome cannot be recorded for 2 people"),
        (RESPONSE, [0, 2], None, MechanismError, "outcome 2 is not an output"),
        (RESPONSE, np.array([0, 2]), None, MechanismError, "outcome 2 is not an output"),
        (RESPONSE, [0, [1]], None, MechanismError, "is not an output"),
        (RESPONSE, "00", None, MechanismError, "give a list of labels"),
        (RESPONSE, [0, 0], [0, 0], PrivacyError, "stands twice"),
        (RESPONSE, [0], [2], PrivacyError, "there is no person 2"),
        (RESPONSE, [0], [0.5], PrivacyError, "whole numbers"),
        (Mechanism(RESPONSE, ["a", "b"]), [0, 0], None, MechanismError, "differ"),
        (np.eye(3), [0, 0], None, MechanismError, "not the letters"),
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


def test_a_total_of_nothing_allows_what_tells_nothing() -> None:
    ledger = Ledger([0.1, 0.2, 0.7], total=0.0)
    ledger.record([[0.3, 0.7]] * 3, [1])
    assert ledger.level == 0
    with pytest.raises(PrivacyError, match="over the total of 0"):
        ledger.record([[0.3, 0.7], [0.3, 0.7], [0.31, 0.69]], [1])


def test_an_epsilon_that_is_spent_is_refused() -> None:
    ledger = Ledger([0.5, 0.5])
    with pytest.raises(PrivacyError, match="no total"):
        ledger.requirement()
    ledger.record(RESPONSE, [0])
    with pytest.raises(PrivacyError, match=r"over the total of 0\.1"):
        ledger.remaining(0.1)


@pytest.mark.parametrize(
    "prior",
    [
        Prior.uniform(2),
        Prior([0.25, 0.75], ["no", "yes"], 9),
        Prior.from_counts([3, 5]),
        Prior([0.25, 0.75], [("no", 1), ("yes", 2)]),
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
    assert back.initial.weights == prior.weights
    assert (back.initial.labels, back.initial.samples) == (prior.labels, prior.samples)
    assert [group.tolist() for group in back.groups()] == [group.tolist() for group in ledger.groups()]


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from pmlopt import Ledger

path, when = Path(sys.argv[1]), sys.argv[2]
ledger = Ledger.load(path)
ledger.record([[0.75, 0.25], [0.25, 0.75]], [1, 1, 0])
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
opened, replaced = os.fdopen, Path.replace

class Half:
    def __init__(self, stream):
        self.stream = stream
    def __enter__(self):
        return self
    def __exit__(self, *problem):
        self.stream.close()
    def write(self, content):
        self.stream.write(content[: len(content) // 2])
        self.stream.flush()
        die()

def replace(self, target):
    if when == "before it is there":
        die()
    found = replaced(self, target)
    if when == "after":
        die()
    return found

if when == "in the middle":
    os.fdopen = lambda *given: Half(opened(*given))
Path.replace = replace
ledger.save(path)
"""
"""A program that records a second release, and is killed while it writes."""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")
@pytest.mark.parametrize(
    ("when", "releases"), [("in the middle", 1), ("before it is there", 1), ("after", 2)]
)
def test_nothing_is_lost_when_killed_while_writing(tmp_path: Path, when: str, releases: int) -> None:
    path = tmp_path / "ledger.npz"
    ledger = Ledger([0.5, 0.5], people=3)
    ledger.record(RESPONSE, [0, 1, 1])
    ledger.save(path)
    before = path.read_bytes()
    ended = subprocess.run([sys.executable, "-c", KILLED, path, when], check=False).returncode
    assert ended == -signal.SIGKILL
    assert (path.read_bytes() == before) == (releases == 1)
    back = Ledger.load(path)
    assert back.releases == releases
    if releases == 1:
        assert (back.levels == ledger.levels).all()
        back.record(RESPONSE, [1, 1, 0])  # and again, as if nothing had been
        back.save(path)
    ledger.record(RESPONSE, [1, 1, 0])
    assert (Ledger.load(path).levels == ledger.levels).all()


def test_a_file_cut_short_or_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.npz"
    ledger = Ledger([0.5, 0.5], people=3)
    ledger.record(RESPONSE, [0, 1, 1])
    ledger.save(path)
    content = path.read_bytes()
    for cut in (0, 10, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:cut])
        with pytest.raises(FileFormatError, match="not a whole ledger"):
            Ledger.load(path)
    path.write_bytes(content)
    with np.load(path) as arrays:
        parts = dict(arrays)
    for name, place in itertools.product(("likelihoods", "history"), (0, -1)):
        changed = {key: value.copy() for key, value in parts.items()}
        changed[name].flat[place] += 1
        np.savez(path, **changed)
        with pytest.raises(FileFormatError, match="changed"):
            Ledger.load(path)
    about = parts["about"].tobytes().replace(b"0.5", b"0.6")
    np.savez(path, **{**parts, "about": np.frombuffer(about, np.uint8)})
    with pytest.raises(FileFormatError, match="changed"):
        Ledger.load(path)
    with pytest.raises(FileFormatError, match="ending"):
        ledger.save(tmp_path / "ledger.csv")
    with pytest.raises(FileFormatError, match="cannot be read"):
        Ledger.load(tmp_path / "none.npz")
