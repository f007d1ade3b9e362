"""The tests of fit: their rate on honest rows, their power on copied ones, against plain sums."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from pmlopt import Mechanism, estimate
from pmlopt.core.numbers.arrays import Label
from pmlopt.errors import InputError, MechanismError
from pmlopt.publishing import assess_release_fit, check, release
from pmlopt.publishing.release_fit import FALSE_ALARM_PROBABILITY
from pmlopt.releases.accounts.attributes import apply_channels

LAW = np.array([[0.3, 0.1], [0.1, 0.2], [0.05, 0.25]])
FIRST = Mechanism([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]], list("abc"), list("abc"))
SECOND = Mechanism([[0.7, 0.3], [0.3, 0.7]], ["no", "yes"], ["no", "yes"])


def rows_of(letters: np.ndarray, rng: np.random.Generator) -> dict[tuple[Label, ...], int]:
    """The counts of outcomes of rows whose letters are places (n, 2), each drawn by itself."""
    drawn = [
        (rng.random(len(letters))[:, None] > one.matrix[letters[:, k]].cumsum(axis=1)).sum(axis=1)
        for k, one in enumerate((FIRST, SECOND))
    ]
    return counted(np.stack(drawn, axis=1))


def counted(places: np.ndarray) -> dict[tuple[Label, ...], int]:
    found = np.zeros((3, 2), dtype=int)
    np.add.at(found, (places[:, 0], places[:, 1]), 1)
    return {
        (FIRST.outputs[a], SECOND.outputs[b]): int(n) for (a, b), n in np.ndenumerate(found) if n
    }


def people(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places of letters drawn from the law, and their own shares."""
    flat = rng.choice(6, n, p=LAW.ravel())
    shares = np.bincount(flat, minlength=6).reshape(3, 2) / n
    return np.stack(np.unravel_index(flat, (3, 2)), axis=1), shares


def test_the_law_of_outcomes_is_the_sum_over_letters() -> None:
    expected = np.zeros((3, 2))
    for (x, s), (y, z) in itertools.product(np.ndindex(3, 2), np.ndindex(3, 2)):
        expected[y, z] += LAW[x, s] * FIRST.matrix[x, y] * SECOND.matrix[s, z]
    assert apply_channels(LAW, [FIRST.matrix, SECOND.matrix]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("same", [True, False])
def test_honest_rows_are_refused_as_rarely_as_is_said(same: bool) -> None:
    # 200 releases; at 2e-3 each, more than 4 refused has probability 6e-5
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(200):
        letters, shares = people(2_000, rng)
        fit = assess_release_fit(
            [FIRST, SECOND], shares if same else LAW, rows_of(letters, rng), same_people=same
        )
        refused += not fit.holds
    assert refused <= 4


def test_copied_rows_are_found_with_the_power_that_is_said() -> None:
    # 40 releases with the share that is found with probability 0.9; fewer than 28 found has probability 1e-4
    rng = np.random.default_rng(4)
    n, found = 20_000, 0
    letters, shares = people(n, rng)
    fit = assess_release_fit([FIRST, SECOND], shares, rows_of(letters, rng), same_people=True)
    assert fit.detectable is not None
    copied = math.ceil(fit.detectable * n)
    for _ in range(40):
        honest = rows_of(letters[copied:], rng)
        raw = counted(letters[:copied])
        rows = {key: honest.get(key, 0) + raw.get(key, 0) for key in {*honest, *raw}}
        fit = assess_release_fit([FIRST, SECOND], shares, rows, same_people=True)
        assert fit.raw_p_value is not None
        found += fit.raw_p_value < FALSE_ALARM_PROBABILITY
        rng.shuffle(letters)
    assert found >= 28


def test_a_test_that_finds_no_copies_is_no_claim_that_holds(tmp_path: Path) -> None:
    """Where the outputs have the law of the letters, a file of raw rows looks as it should."""
    kept = Mechanism(np.tile([0.75, 0.25], (2, 1)), ["no", "yes"], ["no", "yes"])
    release({"ill": ["no", "no", "no", "yes"] * 500}, {"ill": kept}, tmp_path / "out", seed=1)
    found = check(tmp_path / "out")
    assert "no raw rows" not in [one.name for one in found.parts]
    assert any("rows of the data were copied" in note for note in found.notes)


def test_outputs_in_another_order_are_refused() -> None:
    rng = np.random.default_rng(5)
    letters, shares = people(5_000, rng)
    rows = rows_of(letters, rng)
    swapped: dict[tuple[Label, ...], int] = {
        (one, "no" if other == "yes" else "yes"): number for (one, other), number in rows.items()
    }
    assert assess_release_fit([FIRST, SECOND], shares, swapped, same_people=True).p_value < 1e-3


def test_which_labels_are_letters_and_what_cannot_be_tested() -> None:
    law = np.array([0.5, 0.5])
    never = Mechanism([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], ["x", "y"], ["x", "y", "z"])
    fit = assess_release_fit([never], law, {("x",): 5, ("y",): 4, ("z",): 1}, same_people=False)
    assert fit.impossible == (("z",),)
    assert not fit.holds
    texts = Mechanism(
        SECOND.matrix, [0, 1], ["0", "1"]
    )  # that read like the letters, and are these
    assert (
        assess_release_fit([texts], law, {("0",): 5, ("1",): 5}, same_people=False).raw_p_value
        is not None
    )
    other = Mechanism(SECOND.matrix, ["no", "yes"], ["blue", "red"])
    fit = assess_release_fit([other], law, {("blue",): 5, ("red",): 5}, same_people=False)
    assert fit.raw_p_value is None  # no letters, so that no row is a copy
    assert fit.holds
    with pytest.raises(InputError, match="no released row"):
        assess_release_fit([SECOND], law, {}, same_people=True)
    with pytest.raises(InputError, match="shape"):
        assess_release_fit([SECOND], LAW, {("no",): 1}, same_people=True)
    with pytest.raises(MechanismError, match="maybe"):
        assess_release_fit([SECOND], law, {("maybe",): 1}, same_people=True)


@pytest.mark.parametrize("rare", [1e-5, 1e-3, 3e-3])
def test_rare_outcomes_refuse_no_honest_rows(rare: float) -> None:
    # 500 releases; each is refused with probability 2e-3 at most, more than 7 of them with probability 7e-6
    rng = np.random.default_rng(6)
    one = Mechanism([[rare, 0.5, 0.5 - rare], [0.0, 0.5, 0.5]], ["a", "b"], ["r", "a", "b"])
    law, refused = np.array([0.5, 0.5]), 0
    for _ in range(500):
        drawn = rng.multinomial(1_000, law @ one.matrix)
        rows: dict[tuple[Label, ...], int] = {
            (label,): int(n) for label, n in zip(one.outputs, drawn, strict=True) if n
        }
        refused += not assess_release_fit([one], law, rows, same_people=False).holds
    assert refused <= 7


def test_a_function_of_the_letters_is_no_copy_of_rows() -> None:
    # given the letters nothing varies: what differs from the mean is rounding alone
    letters = [(level, sex) for level in range(3) for sex in "fm"]
    outputs = [(1, "f"), (1, "m")]
    matrix = [[float(sex == output[1]) for output in outputs] for _, sex in letters]
    law = np.array([7, 11, 13, 17, 19, 23]) / 90
    for scale in range(1, 40):
        counts = np.array([7, 11, 13, 17, 19, 23]) * scale
        observed = {outputs[0]: int(counts[::2].sum()), outputs[1]: int(counts[1::2].sum())}
        fit = assess_release_fit(
            [Mechanism(matrix, letters, outputs)], law,
            {(output,): number for output, number in observed.items()}, same_people=True,
        )  # fmt: skip
        assert fit.holds, scale


def test_honest_releases_look_doubtful_to_no_more_than_a_test_says() -> None:
    # of 200 releases each test has a p-value below .05 for 10 on average: more than 25 with probability 1e-5
    people, rng = np.array([360, 180, 30, 30]), np.random.default_rng(5)
    keep = math.e / (math.e + 3)
    matrix = np.full((4, 4), (1 - keep) / 3) + (keep - (1 - keep) / 3) * np.eye(4)
    response = Mechanism(matrix, ["a", "b", "c", "d"], ["a", "b", "c", "d"])
    by_shares, by_any_shares = [], []
    for _ in range(200):
        drawn = [rng.multinomial(number, row) for number, row in zip(people, matrix, strict=True)]
        counts = np.sum(drawn, axis=0)
        observed: dict[tuple[Label, ...], int] = {
            (label,): int(n) for label, n in zip(response.outputs, counts, strict=True)
        }
        found = assess_release_fit([response], people / people.sum(), observed, same_people=True)
        by_shares.append(found.p_value)
        likely = estimate(response, counts=counts, min_p_value=0).fit
        by_any_shares.append(likely.p_value)
    for values in (by_shares, by_any_shares):
        assert sum(value < 0.05 for value in values) <= 25
        assert min(values) >= 1e-5  # below that one of 200 is with probability 2e-3
