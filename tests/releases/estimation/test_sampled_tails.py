"""Bounds on programs from samples: exact error probabilities, coverage by seeded simulation, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import beta, binom

from pmlopt import leakage_of_counts
from pmlopt.errors import InputError, MechanismError, PmloptError, PriorError, PrivacyError
from pmlopt.releases.estimation import (
    SampledLeakage,
    cut_outputs,
    leakage_from_samples,
    samples_needed,
)
from pmlopt.releases.estimation.outcome_limits import (
    find_ends,
    is_above_anytime,
    is_above_at_size,
    is_below_anytime,
    is_below_at_size,
)

RUNS = 200
RISK = 0.05
MAX_WRONG = int(binom.isf(1e-6, RUNS, RISK))
"""Of runs that may each be wrong with the stated probability: more are seen once in a million."""

PRIOR = np.array([0.5, 0.3, 0.2])
RARE = np.concatenate([[0.5, 0.3, 0.15, 0.04, 0.0098], np.full(20, 1e-5)])
LAWS = {
    "rare": RARE / RARE.sum(),
    "just below": np.concatenate([[1 - 15 * 0.0198], np.full(15, 0.0198)]),
    "just above": np.full(49, 1 / 49),
}
LIMIT = 0.02


THRESHOLDS = np.geomspace(1e-4, 0.97, 25)


@pytest.mark.parametrize("draws", [1, 2, 7, 60, 900])
@pytest.mark.parametrize("error", [0.3, 0.025, 1e-6])
def test_tests_at_a_size_spend_errors_in_proportion(draws: int, error: float) -> None:
    """For every share and threshold p the exact probability of a wrong test is at most its error."""
    seen = np.arange(0, draws + 1, dtype=float)
    for threshold in THRESHOLDS:
        above = seen[is_above_at_size(seen, draws, threshold, error)]
        if len(above):
            assert above.tolist() == list(range(int(above[0]), draws + 1))
            shares = threshold * np.geomspace(1e-6, 1, 30)
            assert (binom.sf(above[0] - 1, draws, shares) <= error * shares).all()
        below = seen[is_below_at_size(seen, draws, threshold, error)]
        if len(below):
            assert below.tolist() == list(range(len(below)))
            assert (binom.cdf(below[-1], draws, np.linspace(threshold, 1, 30)) <= error).all()


def test_tests_at_a_size_are_tight_up_to_a_count() -> None:
    """One count fewer, or one more, has a tail above the error, or does not let errors be in proportion."""
    draws, error = 400, 0.025
    seen = np.arange(0, draws + 1, dtype=float)
    for threshold in THRESHOLDS:
        first = (
            int(seen[is_above_at_size(seen, draws, threshold, error)].min(initial=draws + 1)) - 1
        )
        assert binom.sf(
            first - 1, draws, threshold
        ) > error * threshold or first - 1 < threshold * (draws - 1)
        more = len(seen[is_below_at_size(seen, draws, threshold, error)])
        assert binom.cdf(more, draws, threshold) > error


@pytest.mark.parametrize(
    ("seen", "draws"), [(0, 1), (0, 900), (3, 7), (60, 60), (899, 900), (5, 10**6)]
)
def test_ends_at_a_size_are_those_of_clopper_and_pearson(seen: int, draws: int) -> None:
    lower, upper = find_ends(is_below_at_size, seen, draws, 0.025)
    known = beta.ppf(0.025, seen, draws - seen + 1), beta.isf(0.025, seen + 1, draws - seen)
    assert lower == pytest.approx(0.0 if seen == 0 else known[0], rel=1e-6)
    assert upper == pytest.approx(1.0 if seen == draws else known[1], rel=1e-6)
    assert lower == 0 or binom.sf(seen - 1, draws, lower) <= 0.025
    assert upper == 1 or binom.cdf(seen, draws, upper) <= 0.025


def crossing_probability(
    rule: Callable[[np.ndarray, float], np.ndarray], share: float, most: int
) -> float:
    """Compute exactly the probability that a rule on (successes, draws) is ever true up to some draws."""
    law, crossed = np.array([1.0]), 0.0
    for draws in range(1, most + 1):
        law = np.append(law * (1 - share), 0.0) + np.append(0.0, law * share)
        hits = rule(np.arange(draws + 1.0), float(draws))
        crossed += float(law[hits].sum())
        law = np.where(hits, 0.0, law)
    return crossed


@pytest.mark.parametrize("threshold", [0.01, 0.1, 0.5, 0.9])
def test_tests_at_every_time_spend_their_error(threshold: float) -> None:
    error = 0.2
    for share in (threshold * 0.3, threshold * 0.9, threshold * (1 - 1e-9)):
        above = crossing_probability(
            lambda k, n: is_above_anytime(k, n, threshold, error), share, 600
        )
        assert above <= error * share
    for share in (threshold, threshold + 0.1 * (1 - threshold)):
        below = crossing_probability(
            lambda k, n: is_below_anytime(k, n, threshold, error), share, 600
        )
        assert below <= error
    # no empty rule: a part of the error that is allowed is used
    used = crossing_probability(
        lambda k, n: is_below_anytime(k, n, threshold, error), threshold, 600
    )
    assert used > 0.001


def test_the_confidence_sequence_holds_at_all_times() -> None:
    ends = {n: [find_ends(is_below_anytime, k, n, 0.2) for k in range(n + 1)] for n in range(1, 26)}
    for share in (0.02, 0.3, 0.8):

        def is_outside(k: np.ndarray, n: float, share: float = share) -> np.ndarray:
            return np.array([not low <= share <= high for low, high in ends[int(n)]])

        assert 0.0005 < crossing_probability(is_outside, share, 25) <= 0.2


def bound_counts(table: Any, prior: Any = None) -> SampledLeakage:
    """Bound a program from how often each outcome was seen, or from a table of letters and outcomes."""
    counts = np.asarray(table)
    samples = list(range(len(counts))) if prior is None else list(np.ndindex(counts.shape))
    letters = None if prior is None else dict(enumerate(prior))
    return leakage_from_samples(
        samples, times=counts.ravel(), prior=letters, deterministic=prior is None
    )


def tail_of(law: np.ndarray, epsilon: float) -> float:
    return float(law[-np.log(law) > epsilon].sum())


@pytest.mark.parametrize("samples", [40, 600])
@pytest.mark.parametrize("name", LAWS)
def test_bounds_of_programs_are_wrong_as_seldom_as_they_say(name: str, samples: int) -> None:
    rng, law = np.random.default_rng(5), LAWS[name]
    epsilon, level = -math.log(LIMIT), -math.log(law.min())
    tail = tail_of(law, epsilon)
    # the true quantile: a bound is below it where the claim just below it is confirmed
    leakages = np.sort(-np.log(law))
    quantile = next(one for one in leakages.tolist() if tail_of(law, one + 1e-12) <= 0.3)
    wrong = np.zeros(4, dtype=int)
    for counts in rng.multinomial(samples, law, RUNS):
        found = bound_counts(counts)
        wrong += [
            *are_wrong(found, epsilon, tail), found.decide_claim(level + 1e-12) == "refuted",
            found.decide_claim(quantile - 1e-9, 0.3) == "confirmed",
        ]  # fmt: skip
    assert (wrong <= MAX_WRONG).all()


def are_wrong(found: SampledLeakage, epsilon: float, tail: float) -> tuple[bool, bool]:
    """Return whether the lower bound is above the tail, and the upper one below, by the claims decided so."""
    low = found.decide_claim(epsilon, tail * (1 + 1e-12) or 1e-300) == "refuted"
    return low, tail > 0 and found.decide_claim(epsilon, tail * (1 - 1e-12)) == "confirmed"


def test_levels_and_quantiles_are_where_claims_are_decided() -> None:
    found = bound_counts(np.random.default_rng(10).multinomial(600, LAWS["rare"]))
    pairs = bound_counts([[300, 50, 3], [40, 200, 7]], [0.6, 0.4])
    for one in (found, pairs):
        level, quantile = one.min_level, one.bound_quantile(0.05)
        assert one.decide_claim(level - 1e-9) == "refuted"
        assert one.decide_claim(level + 1e-9) == "undecided"
        assert one.decide_claim(quantile, 0.05) == "confirmed"
        assert one.decide_claim(quantile - 1e-9, 0.05) != "confirmed"
        # the verdicts are those of the bounds on the tail
        for epsilon in np.linspace(0.05, 5, 23).tolist():
            lower, upper = one.bound_tail(epsilon)
            for delta in (0.003, 0.05, 0.4):
                known = (
                    "refuted" if lower > delta else "confirmed" if upper <= delta else "undecided"
                )
                assert one.decide_claim(epsilon, delta) == known


@pytest.mark.parametrize("samples", [40, 600])
@pytest.mark.parametrize("rare", [1e-5, 0.04])
def test_bounds_of_pairs_are_wrong_as_seldom_as_they_say(rare: float, samples: int) -> None:
    rng = np.random.default_rng(6)
    matrix = np.hstack([(0.2 + 0.4 * np.eye(3)) * (1 - rare), rare * np.eye(3)])
    q = PRIOR @ matrix
    leakages = np.log(matrix.max(axis=0) / q)
    # claims just below and just above the leakage of an outcome
    levels = (float(leakages[1]) - 1e-9, 0.8, float(leakages[3]) - 1e-9)
    wrong = np.zeros((len(levels), 2), dtype=int)
    too_high = 0
    for drawn in rng.multinomial(samples, (PRIOR[:, None] * matrix).ravel(), RUNS):
        found = bound_counts(drawn.reshape(matrix.shape), PRIOR)
        too_high += found.decide_claim(float(leakages.max()) + 1e-12) == "refuted"
        for place, epsilon in enumerate(levels):
            wrong[place] += are_wrong(found, epsilon, float(q[leakages > epsilon].sum()))
    assert (wrong <= MAX_WRONG).all()
    assert too_high <= MAX_WRONG


def test_bounds_get_near_to_the_truth() -> None:
    law = LAWS["rare"]
    found = bound_counts(np.random.default_rng(7).multinomial(10**6, law))
    lower, upper = found.bound_tail(-math.log(LIMIT))
    assert lower <= tail_of(law, -math.log(LIMIT)) <= upper < 1.05 * lower
    assert found.bound_quantile(0.0105) == pytest.approx(-math.log(0.04), rel=0.02)
    drawn = [[75_000, 25_000], [25_000, 75_000]]
    pairs = bound_counts(drawn, [0.5, 0.5])
    assert pairs.min_level <= math.log(1.5) <= pairs.bound_quantile(0.001)
    assert pairs.bound_quantile(0.001) - pairs.min_level < 0.02


def test_nothing_is_said_of_what_was_not_seen() -> None:
    """A million equal outputs: something else may still have one in 300,000, and leak any amount."""
    found = leakage_from_samples(["same"], times=[10**6])
    lower, upper = found.bound_tail(20.0)
    assert lower == 0
    assert upper == pytest.approx(-math.log(0.025) / 10**6, rel=1e-5)
    assert found.bound_quantile(1e-7) == math.inf
    assert found.min_level == 0
    assert leakage_from_samples(["a"]).bound_tail(0.5) == (0.0, 1.0)
    pairs = bound_counts([[1, 0], [0, 0]], [0.5, 0.5])
    assert pairs.bound_quantile(0.01) == pytest.approx(math.log(2))
    assert pairs.bound_tail(math.log(2)) == (0.0, 0.0)


def test_distinct_outcomes_bound_the_level() -> None:
    found = leakage_from_samples([str(k) for k in range(8)], deterministic=True)
    assert found.min_level >= math.log(8) - 1e-12


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.3])
def test_outputs_refute_nothing_of_a_program_that_may_draw(delta: float) -> None:
    """A program that draws from these laws whatever the secret is leaks nothing: all claims hold."""
    for law in LAWS.values():
        counts = np.random.default_rng(4).multinomial(5_000, law)
        found = leakage_from_samples(list(range(len(law))), times=counts)
        assert found.min_level == 0
        for epsilon in (0.0, 0.1, 1.0, 3.0):
            assert found.bound_tail(epsilon)[0] == 0
            assert found.decide_claim(epsilon, delta) != "refuted"
        # P(y | x) <= 1, so that what confirms a claim is the same for all programs
        known = bound_counts(counts)
        assert [found.bound_tail(one)[1] for one in (0.5, 3.0)] == [
            known.bound_tail(one)[1] for one in (0.5, 3.0)
        ]


@pytest.mark.parametrize("samples", [
    ["a", "b", "a"], ("a", "b", "a"), np.array(["a", "b", "a"]), pd.Series(["a", "b", "a"]),
    pl.Series(["a", "b", "a"]), pd.DataFrame({"trace": ["a", "b", "a"]}),
])  # fmt: skip
def test_forms_of_samples(samples: Any) -> None:
    found = leakage_from_samples(samples)
    assert (found.outcomes, found.table.tolist()) == (["a", "b"], [[2], [1]])
    other = leakage_from_samples(["a", "b", "never", "a"], times=[1, 1, 0, 1])
    assert (other.outcomes, other.table.tolist()) == (found.outcomes, found.table.tolist())


@pytest.mark.parametrize("samples", [
    [("x", 1), ("z", 2), ("x", 1)], pd.DataFrame({"secret": ["x", "z", "x"], "output": [1, 2, 1]}),
    np.array([["x", 1], ["z", 2], ["x", 1]], dtype=object), [["x", 1], ["z", 2], ["x", 1]],
])  # fmt: skip
def test_forms_of_pairs(samples: Any) -> None:
    prior = {"z": 0.25, "x": 0.75}
    found = leakage_from_samples(samples, prior=prior)
    assert (found.outcomes, found.table.tolist()) == ([1, 2], [[0, 2], [1, 0]])
    # Clopper and Pearson's limits of 0 of 2 and of 1 of 1, with 0.0125 for each of the two outcomes
    safe = math.log((1 - 0.0125**0.5) * 4)
    assert found.bound_tail(safe - 1e-6)[1] == 1.0
    assert found.bound_tail(safe + 1e-6)[1] == pytest.approx(beta.isf(0.025, 2, 2))


def test_outcomes_that_python_takes_for_equal_are_counted_apart() -> None:
    assert leakage_from_samples([1, True, 1.0]).table.tolist() == [[2], [1]]


def test_cells_of_numbers() -> None:
    values = np.random.default_rng(8).exponential(size=4_000)
    fitted = cut_outputs(values, 4)
    found = leakage_from_samples(fitted)
    assert (found.samples, len(found.outcomes)) == (2_000, 4)
    # the cells are those of the quartiles of the first half, whatever the second is
    assert (
        cut_outputs(values[2_000:], np.quantile(values[:2_000], [0.25, 0.5, 0.75]).tolist())
        == fitted
    )
    assert cut_outputs([1, 2], [2]) == ["[-inf, 2.0)", "[2.0, inf)"]
    assert cut_outputs([5, 5, 5, 5, 6], 3) == ["[5.0, inf)"] * 3
    assert cut_outputs(pd.Series([0.5, 7.5]), [1.0]) == ["[-inf, 1.0)", "[1.0, inf)"]


@pytest.mark.parametrize("law", [[1, 1], [6, 3, 1], {"a": "9999/10000", "b": "1/10000"}])
def test_samples_that_are_needed_are_enough(law: Any) -> None:
    rng = np.random.default_rng(9)
    shares = np.array([float(share) for share in leakage_of_counts(law).law.values()])
    epsilon, delta = 2.0, 0.13
    needed = samples_needed(epsilon, delta, law, power=0.9)
    confirmed = sum(
        bound_counts(counts).decide_claim(epsilon, delta) == "confirmed"
        for counts in rng.multinomial(needed, shares, RUNS)
    )
    assert confirmed >= binom.isf(1 - 1e-6, RUNS, 0.9)
    few = sum(
        bound_counts(counts).decide_claim(epsilon, delta) == "confirmed"
        for counts in rng.multinomial(max(1, needed // 3), shares, RUNS)
    )
    assert few < 0.9 * RUNS


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ({"samples": []}, MechanismError, "no samples"),
    ({"samples": ["a"], "times": [0]}, PriorError, "all 0"),
    ({"samples": ["a"], "times": [-1]}, PriorError, "whole numbers"),
    ({"samples": ["a"], "times": [0.5]}, PriorError, "whole numbers"),
    ({"samples": ["a"], "times": [1, 2]}, InputError, "1 samples, and 2 numbers"),
    ({"samples": ["a", None]}, MechanismError, "missing"),
    ({"samples": ["a"], "confidence": 1.0}, InputError, "confidence"),
    ({"samples": [{"a"}]}, MechanismError, "cannot be counted"),
    ({"samples": ["a"], "prior": [0.5, 0.5]}, MechanismError, "pairs"),
    ({"samples": [("w", 1)], "prior": {"x": 0.5, "z": 0.5}}, MechanismError, "'w' is none of"),
    ({"samples": [("x", 1, 2)], "prior": {"x": 0.5, "z": 0.5}}, MechanismError, "pairs"),
])  # fmt: skip
def test_samples_that_cannot_be_meant(
    arguments: dict[str, Any], error: type[PmloptError], words: str
) -> None:
    with pytest.raises(error, match=words):
        leakage_from_samples(**arguments)


@pytest.mark.parametrize(("values", "edges", "words"), [
    (["a"], [1.0], "numbers"), ([1.0], 3, "first half"), ([1.0, 2.0], [2.0, 1.0], "ascend"),
    ([1.0, 2.0], [1.0, 1.0], "ascend"), ([math.nan], [1.0], "missing"), ([math.inf], [1.0], "finite"),
    ([1.0, 2.0], 0, "number of cells"), ([1.0], [], "edges"),
])  # fmt: skip
def test_cells_that_cannot_be_meant(values: Any, edges: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        cut_outputs(values, edges)


def test_plans_that_cannot_be_meant() -> None:
    with pytest.raises(PrivacyError, match="nothing is to be confirmed"):
        samples_needed(1.0, 0.05, [9, 1])
    with pytest.raises(PrivacyError, match="more than"):
        samples_needed(math.log(2), 0.05, [1, 1])
    with pytest.raises(InputError, match="power"):
        samples_needed(1.0, 0.05, [1, 1], power=1.0)
    with pytest.raises(PrivacyError, match="epsilon"):
        leakage_from_samples(["a"]).bound_tail(-1.0)
