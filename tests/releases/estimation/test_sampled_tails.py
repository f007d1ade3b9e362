"""Bounds on programs from samples: exact error probabilities, coverage by seeded simulation, refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom

from pmlopt import leakage_of_counts
from pmlopt.errors import InputError, MechanismError, PmloptError, PriorError, PrivacyError
from pmlopt.releases.estimation import (
    cut_outputs,
    fit_edges,
    leakage_from_samples,
    samples_needed,
)
from pmlopt.releases.estimation.outcome_limits import (
    find_sequence_ends,
    find_spending_lower,
    find_spending_upper,
    is_surely_above,
    is_surely_below,
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


@pytest.mark.parametrize("draws", [1, 2, 7, 60, 900])
@pytest.mark.parametrize("error", [0.3, 0.025, 1e-6])
def test_lower_limits_spend_errors_in_proportion(draws: int, error: float) -> None:
    """For every share and threshold the exact probability of a limit above the threshold is at most a p."""
    seen = np.arange(1, draws + 1, dtype=float)
    limits = find_spending_lower(seen, np.full(draws, float(draws)), error)
    assert (np.diff(limits) >= 0).all()
    for threshold in np.geomspace(1e-4, 0.97, 25):
        counts = seen[limits >= threshold]
        if not len(counts):
            continue
        shares = threshold * np.geomspace(1e-6, 1, 30)
        assert (binom.sf(counts[0] - 1, draws, shares) <= error * shares * (1 + 1e-7)).all()


@pytest.mark.parametrize("draws", [1, 2, 7, 60, 900])
@pytest.mark.parametrize("error", [0.3, 0.025, 1e-6])
def test_upper_limits_spend_errors_in_proportion(draws: int, error: float) -> None:
    """For every threshold p a share of at least p has a limit below p with a probability of at most a p."""
    seen = np.arange(0, draws + 1, dtype=float)
    limits = find_spending_upper(seen, float(draws), error)
    for threshold in np.geomspace(1e-4, 0.97, 25):
        counts = seen[limits < threshold]
        if len(counts):
            shares = np.linspace(threshold, 1, 30)
            assert (binom.cdf(counts[-1], draws, shares) <= error * threshold * (1 + 1e-7)).all()


def test_limits_are_tight_up_to_a_count() -> None:
    """A smaller threshold is needed for one count fewer, whose tail is above the error."""
    draws, error = 400, 0.025
    seen = np.arange(2, draws, dtype=float)
    lower = find_spending_lower(seen, np.full(len(seen), float(draws)), error)
    wider = lower * 1.001
    inside = wider <= (seen - 1) / (draws - 1)
    assert (binom.sf(seen - 1, draws, wider) > error * wider)[inside].all()
    upper = find_spending_upper(seen, float(draws), error) * 0.999
    assert (binom.cdf(seen, draws, upper) > error * upper).all()


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
            lambda k, n: is_surely_above(k, n, threshold, error), share, 600
        )
        assert above <= error * share
    for share in (threshold, threshold + 0.1 * (1 - threshold)):
        below = crossing_probability(
            lambda k, n: is_surely_below(k, n, threshold, error), share, 600
        )
        assert below <= error
    # no empty rule: a part of the error that is allowed is used
    used = crossing_probability(
        lambda k, n: is_surely_below(k, n, threshold, error), threshold, 600
    )
    assert used > 0.001


def test_the_confidence_sequence_holds_at_all_times() -> None:
    ends = {n: [find_sequence_ends(k, n, 0.2) for k in range(n + 1)] for n in range(1, 26)}
    for share in (0.02, 0.3, 0.8):

        def is_outside(k: np.ndarray, n: float, share: float = share) -> np.ndarray:
            return np.array([not low <= share <= high for low, high in ends[int(n)]])

        assert 0.0005 < crossing_probability(is_outside, share, 25) <= 0.2


def tail_of(law: np.ndarray, epsilon: float) -> float:
    return float(law[-np.log(law) > epsilon].sum())


@pytest.mark.parametrize("samples", [40, 600])
@pytest.mark.parametrize("name", LAWS)
def test_bounds_of_programs_are_wrong_as_seldom_as_they_say(name: str, samples: int) -> None:
    rng, law = np.random.default_rng(5), LAWS[name]
    epsilon = -math.log(LIMIT)
    wrong = np.zeros(5, dtype=int)
    for counts in rng.multinomial(samples, law, RUNS):
        found = leakage_from_samples(counts=counts)
        lower, upper = found.bound_tail(epsilon)
        tail = tail_of(law, epsilon)
        quantile = found.bound_quantile(0.3)
        wrong += [
            lower > tail, upper < tail * (1 - 1e-12), found.min_level > -math.log(law.min()),
            tail_of(law, quantile) > 0.3 * (1 + 1e-12), lower > upper,
        ]  # fmt: skip
    assert wrong[4] == 0
    assert (wrong <= MAX_WRONG).all()


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
        found = leakage_from_samples(counts=drawn.reshape(matrix.shape), prior=PRIOR)
        too_high += found.min_level > leakages.max() + 1e-12
        for place, epsilon in enumerate(levels):
            lower, upper = found.bound_tail(epsilon)
            tail = float(q[leakages > epsilon].sum())
            wrong[place] += [lower > tail, upper < tail * (1 - 1e-12)]
    assert (wrong <= MAX_WRONG).all()
    assert too_high <= MAX_WRONG


def test_bounds_get_near_to_the_truth() -> None:
    law = LAWS["rare"]
    found = leakage_from_samples(counts=np.random.default_rng(7).multinomial(10**6, law))
    lower, upper = found.bound_tail(-math.log(LIMIT))
    assert lower <= tail_of(law, -math.log(LIMIT)) <= upper < 1.05 * lower
    assert found.bound_quantile(0.0105) == pytest.approx(-math.log(0.04), rel=0.02)
    drawn = [[75_000, 25_000], [25_000, 75_000]]
    pairs = leakage_from_samples(counts=drawn, prior=[0.5, 0.5])
    assert pairs.min_level <= math.log(1.5) <= pairs.bound_quantile(0.001)
    assert pairs.bound_quantile(0.001) - pairs.min_level < 0.02


def test_nothing_is_said_of_what_was_not_seen() -> None:
    """A million equal outputs: something else may still have one in 300,000, and leak any amount."""
    found = leakage_from_samples(counts={"same": 10**6})
    lower, upper = found.bound_tail(20.0)
    assert lower == 0
    assert upper == pytest.approx(-math.log(0.025) / 10**6, rel=1e-5)
    assert found.bound_quantile(1e-7) == math.inf
    assert found.min_level == 0
    assert leakage_from_samples(["a"]).bound_tail(0.5) == (0.0, 1.0)
    pairs = leakage_from_samples(counts=[[1, 0], [0, 0]], prior=[0.5, 0.5])
    assert pairs.bound_quantile(0.01) == pytest.approx(math.log(2))
    assert pairs.bound_tail(math.log(2)) == (0.0, 0.0)


def test_distinct_outcomes_bound_the_level() -> None:
    assert leakage_from_samples([str(k) for k in range(8)]).min_level >= math.log(8) - 1e-12


@pytest.mark.parametrize("samples", [
    ["a", "b", "a"], ("a", "b", "a"), np.array(["a", "b", "a"]), pd.Series(["a", "b", "a"]),
    pl.Series(["a", "b", "a"]), pd.DataFrame({"trace": ["a", "b", "a"]}),
])  # fmt: skip
def test_forms_of_samples(samples: Any) -> None:
    found = leakage_from_samples(samples)
    assert (found.outcomes, found.counts.tolist()) == (("a", "b"), [2, 1])
    other = leakage_from_samples(counts={"a": 2, "b": 1, "never": 0})
    assert (other.outcomes, other.upper.tolist()) == (found.outcomes, found.upper.tolist())


@pytest.mark.parametrize("samples", [
    [("x", 1), ("z", 2), ("x", 1)], pd.DataFrame({"secret": ["x", "z", "x"], "output": [1, 2, 1]}),
    np.array([["x", 1], ["z", 2], ["x", 1]], dtype=object), [["x", 1], ["z", 2], ["x", 1]],
])  # fmt: skip
def test_forms_of_pairs(samples: Any) -> None:
    prior = {"z": 0.25, "x": 0.75}
    found = leakage_from_samples(samples, prior=prior)
    other = leakage_from_samples(counts={"x": {1: 2}, "z": {2: 1}}, prior=prior)
    assert found.outcomes == other.outcomes == (1, 2)
    assert found.upper.tolist() == other.upper.tolist()
    # Clopper and Pearson's limits of 0 of 2 and of 1 of 1, with 0.0125 for each of the two outcomes
    assert found.upper.tolist() == pytest.approx([math.log((1 - 0.0125**0.5) * 4), math.log(4)])


def test_outcomes_that_python_takes_for_equal_are_counted_apart() -> None:
    assert leakage_from_samples([1, True, 1.0]).counts.tolist() == [2, 1]


def test_cells_of_numbers() -> None:
    values = np.random.default_rng(8).exponential(size=4_000)
    fitted = leakage_from_samples(values, edges=4)
    assert fitted.samples == 2_000
    assert len(fitted.outcomes) == 4
    edges = fit_edges(values[:2_000], 4)
    fixed = leakage_from_samples(values[2_000:], edges=edges)
    assert fixed.counts.tolist() == fitted.counts.tolist()
    assert cut_outputs([1, 2], [2]) == ["[-inf, 2.0)", "[2.0, inf)"]
    assert fit_edges([5, 5, 5, 5], 3) == (5.0,)
    pairs = leakage_from_samples([("x", 0.5), ("z", 7.5)], prior={"x": 0.5, "z": 0.5}, edges=[1.0])
    assert len(pairs.outcomes) == 2


@pytest.mark.parametrize("law", [[1, 1], [6, 3, 1], {"a": "9999/10000", "b": "1/10000"}])
def test_samples_that_are_needed_are_enough(law: Any) -> None:
    rng = np.random.default_rng(9)
    shares = np.array([float(one.probability) for one in leakage_of_counts(law).classes])
    epsilon, delta = 2.0, 0.13
    needed = samples_needed(epsilon, delta, law, power=0.9)
    confirmed = sum(
        leakage_from_samples(counts=counts).bound_tail(epsilon)[1] <= delta
        for counts in rng.multinomial(needed, shares, RUNS)
    )
    assert confirmed >= binom.isf(1 - 1e-6, RUNS, 0.9)
    few = sum(
        leakage_from_samples(counts=counts).bound_tail(epsilon)[1] <= delta
        for counts in rng.multinomial(max(1, needed // 3), shares, RUNS)
    )
    assert few < 0.9 * RUNS


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ({}, InputError, "give samples"),
    ({"samples": [1], "counts": {1: 1}}, InputError, "give samples"),
    ({"samples": []}, MechanismError, "no samples"), ({"counts": {}}, PmloptError, "no samples"),
    ({"counts": {"a": 0}}, PriorError, "all 0"), ({"counts": {"a": -1}}, PriorError, "whole numbers"),
    ({"counts": {"a": 0.5}}, PriorError, "whole numbers"),
    ({"samples": ["a", None]}, MechanismError, "missing"),
    ({"samples": ["a"], "confidence": 1.0}, InputError, "confidence"),
    ({"samples": [{"a"}]}, MechanismError, "cannot be counted"),
    ({"samples": ["a"], "edges": [1.0]}, InputError, "numbers"),
    ({"samples": [1.0], "edges": 3}, MechanismError, "half"),
    ({"samples": [1.0, 2.0], "edges": [2.0, 1.0]}, InputError, "ascend"),
    ({"counts": {1: 1}, "edges": [1.0]}, InputError, "give samples"),
    ({"samples": ["a"], "prior": [0.5, 0.5]}, MechanismError, "pairs"),
    ({"samples": [("w", 1)], "prior": {"x": 0.5, "z": 0.5}}, MechanismError, "'w' is none of"),
    ({"samples": [("x", 1, 2)], "prior": {"x": 0.5, "z": 0.5}}, MechanismError, "pairs"),
])  # fmt: skip
def test_samples_that_cannot_be_meant(
    arguments: dict[str, Any], error: type[PmloptError], words: str
) -> None:
    with pytest.raises(error, match=words):
        leakage_from_samples(**arguments)


def test_plans_that_cannot_be_meant() -> None:
    with pytest.raises(PrivacyError, match="nothing is to be confirmed"):
        samples_needed(1.0, 0.05, [9, 1])
    with pytest.raises(PrivacyError, match="more than"):
        samples_needed(math.log(2), 0.05, [1, 1])
    with pytest.raises(InputError, match="power"):
        samples_needed(1.0, 0.05, [1, 1], power=1.0)
    with pytest.raises(PrivacyError, match="epsilon"):
        leakage_from_samples(["a"]).bound_tail(-1.0)
