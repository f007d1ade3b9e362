"""Leakage up to a failure: the paper's examples, brute force over events, post-processing, compositions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, epsilons, exact, exact_law, log_of, pairs

from pmlopt import Mechanism, envelope, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import (
    approximate_pml_level,
    binary_envelope,
    binary_event,
    composed_envelope_bound,
    conditional_maximal_leakage,
    counted_envelope_bound,
    envelope_bounds,
    event_leakage,
    failure_probability,
    leakage_level,
    leakage_quantile,
    maximal_leakage,
    mean_slack,
    pointwise_leakage,
    slack,
)

HALVES = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
"""ENV, eq. (7)."""

MERGE = [[1, 0], [0, 1], [1, 0], [0, 1]]
"""ENV, Example 1: h."""

QUARTERS = [0.25] * 4

THREE = [[0.9, 0, 0.1], [0, 0.9, 0.1]]
"""ENV, Example 3."""

DELTAS = st.one_of(
    st.sampled_from([1e-9, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9]), st.floats(1e-6, 1 - 1e-6)
)


def events(outputs: int) -> list[FloatArray]:
    """Every non-empty set of outputs, as 0 and 1."""
    return [
        np.array(bits, dtype=float)
        for bits in itertools.product([0, 1], repeat=outputs)
        if any(bits)
    ]


def random_pair(rng: np.random.Generator, size: int = 6) -> tuple[FloatArray, FloatArray]:
    """A prior and a mechanism of up to so many letters and outputs, some entries zero."""
    n, m = (int(number) for number in rng.integers(2, size + 1, 2))
    matrix = rng.dirichlet(np.full(m, 0.7), n) * (rng.random((n, m)) < 0.8) + 1e-12 * np.eye(n, m)
    matrix[:, 0] += 1e-3
    return rng.dirichlet(np.ones(n)) * 0.99 + 0.01 / n, matrix / matrix.sum(axis=1, keepdims=True)


def random_channel(rng: np.random.Generator, inputs: int) -> FloatArray:
    """Any post-processing: from nearly deterministic to nearly constant, and merges."""
    outputs = int(rng.integers(1, inputs + 2))
    if rng.random() < 0.5:
        return np.asarray(np.eye(outputs)[rng.integers(0, outputs, inputs)])
    return rng.dirichlet(np.full(outputs, float(rng.choice([0.1, 1.0, 10.0]))), inputs)


# ---------------------------------------------------------------- the paper


def test_example_1() -> None:
    level = math.log(10 / 9)
    assert pointwise_leakage(QUARTERS, HALVES) == pytest.approx(
        [math.log(4)] * 2 + [level] * 2, abs=1e-15
    )
    assert mean_slack(QUARTERS, HALVES, level) == pytest.approx(13 / 180, abs=1e-15)
    merged = Mechanism(HALVES).post_process(MERGE)
    assert pointwise_leakage(QUARTERS, merged) == pytest.approx([math.log(6 / 5)] * 2, abs=1e-15)
    assert mean_slack(QUARTERS, merged, level) == pytest.approx(2 / 27, abs=1e-15)
    assert mean_slack(QUARTERS, merged, level) > mean_slack(QUARTERS, HALVES, level)


def test_example_2_the_two_quantiles() -> None:
    assert leakage_quantile(QUARTERS, HALVES, 0.1) == pytest.approx(math.log(10 / 9), abs=1e-15)
    assert leakage_quantile(QUARTERS, HALVES, 0.1, upper=True) == pytest.approx(
        math.log(4), abs=1e-15
    )
    for delta, level in ((0.0999, math.log(4)), (0.1001, math.log(10 / 9))):
        for upper in (False, True):
            assert leakage_quantile(QUARTERS, HALVES, delta, upper=upper) == pytest.approx(
                level, abs=1e-15
            )
    matrix, last = [[0.75, 0.25], [0.4, 0.6]], math.nextafter(1.0, 0.0)
    least = float(pointwise_leakage([0.5, 0.5], matrix).min())
    for upper in (False, True):
        assert leakage_quantile([0.5, 0.5], matrix, last, upper=upper) == least


def test_the_slack_is_no_bound_on_the_failure_probability_nor_that_on_it() -> None:
    assert slack(QUARTERS, HALVES, math.log(10 / 9)) == pytest.approx(13 / 90, abs=1e-15)
    assert slack(QUARTERS, HALVES, math.log(3)) == pytest.approx(0.05, abs=1e-15)
    for level in (math.log(10 / 9) + 1e-12, math.log(3)):
        assert failure_probability(QUARTERS, HALVES, level) == pytest.approx(0.1, abs=1e-15)


def test_example_3_a_union_can_leak_less_than_both() -> None:
    assert event_leakage([0.5, 0.5], THREE, [1, 0, 0]) == pytest.approx(math.log(2), abs=1e-15)
    assert event_leakage([0.5, 0.5], THREE, [0, 1, 0]) == pytest.approx(math.log(2), abs=1e-15)
    assert event_leakage([0.5, 0.5], THREE, [1, 1, 0]) == 0


def test_example_4_the_leakage_of_events_is_not_monotone() -> None:
    assert event_leakage([0.5, 0.5], THREE, [0, 0, 1]) == 0
    assert event_leakage([0.5, 0.5], THREE, [1, 0, 1]) == pytest.approx(
        math.log(1 / 0.55), abs=1e-15
    )
    assert event_leakage([0.5, 0.5], THREE, [1, 0, 0]) == pytest.approx(math.log(2), abs=1e-15)


def test_lemma_3_events() -> None:
    rng = np.random.default_rng(1101)
    for _ in range(50):
        p, matrix = random_pair(rng, 5)
        sets = [event for event in events(matrix.shape[1]) if p @ matrix @ event > 0]
        for event in sets:
            level = event_leakage(p, matrix, event)
            assert 0 <= level <= -math.log(p @ matrix @ event) + 1e-12
        first, second = (sets[k] for k in rng.integers(0, len(sets), 2))
        if not (first * second).any():
            largest = max(event_leakage(p, matrix, first), event_leakage(p, matrix, second))
            assert event_leakage(p, matrix, first + second) <= largest + 1e-12
        assert event_leakage(p, matrix, np.ones(matrix.shape[1])) <= 1e-15


# ---------------------------------------------------------------- the two slacks


def slacks(pair: tuple[FloatArray, FloatArray], epsilon: float) -> tuple[float, float]:
    """psi_1 outcome by outcome and psi_2 event by event, in exact arithmetic but for e^eps."""
    p, columns = exact_law(pair[0]), [exact(column) for column in pair[1].T]
    up = Fraction(math.exp(epsilon))
    law = [sum((a * b for a, b in zip(p, column, strict=True)), Fraction(0)) for column in columns]
    first = sum(
        (
            q * max(Fraction(0), 1 - up * q / max(column))
            for q, column in zip(law, columns, strict=True)
            if max(column) > 0
        ),
        Fraction(0),
    )
    second = max(
        sum((columns[y][x] - up * law[y] for y in event), Fraction(0))
        for x in range(len(p))
        for size in range(len(law) + 1)
        for event in itertools.combinations(range(len(law)), size)
    )
    return float(first), float(second)


@given(pairs(tiny=False), epsilons(5.0))
@MODEST
def test_both_slacks_are_their_definitions(
    pair: tuple[FloatArray, FloatArray], epsilon: float
) -> None:
    first, second = slacks(pair, epsilon)
    assert mean_slack(*pair, epsilon) == pytest.approx(first, abs=1e-12)
    assert slack(*pair, epsilon) == pytest.approx(second, abs=1e-12)
    assert mean_slack(*pair, epsilon) <= failure_probability(*pair, epsilon) + 1e-15


def test_only_the_second_slack_survives_every_post_processing() -> None:
    rng, risen = np.random.default_rng(1102), 0
    for _ in range(300):
        p, matrix = random_pair(rng)
        channel = random_channel(rng, matrix.shape[1])
        after = matrix @ channel
        epsilon = float(rng.uniform(0, 1.2)) * leakage_level(p, matrix)
        assert slack(p, after, epsilon) <= slack(p, matrix, epsilon) + 1e-14
        risen += mean_slack(p, after, epsilon) > mean_slack(p, matrix, epsilon) + 1e-3
    assert risen >= 3


@given(pairs(), DELTAS)
@MODEST
def test_the_level_is_the_inverse_of_the_slack_and_that_of_the_worst_event(
    pair: tuple[FloatArray, FloatArray], delta: float
) -> None:
    level, (p, matrix) = approximate_pml_level(*pair, delta), pair
    if p.min() > 1e-4:
        law, sets = p @ matrix, events(matrix.shape[1])
        ratios = [((matrix @ one - delta) / (law @ one)).max() for one in sets if law @ one > 0]
        assert level == pytest.approx(math.log(max(1.0, *ratios)), abs=1e-12)
    assert 0 <= level <= leakage_level(*pair) + 1e-12
    assert slack(*pair, level) <= delta + 1e-12
    if level > 1e-3 and delta > 1e-6:
        lower = level - 1e-4
        assert slack(*pair, lower) > delta
        # compared as slacks: where an output has a mass of 1e-10 the level of one is known to 1e-6 only
        again = approximate_pml_level(*pair, slack(*pair, lower))
        assert slack(*pair, again) == pytest.approx(slack(*pair, lower), abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1.0, 50.0, 800.0])
def test_slacks_at_the_ends(epsilon: float) -> None:
    constant = np.tile([0.2, 0.8, 0.0], (4, 1))
    assert slack(QUARTERS, constant, epsilon) == pytest.approx(0, abs=1e-15)
    assert mean_slack(QUARTERS, constant, epsilon) == pytest.approx(0, abs=1e-15)
    expected = max(0.0, 1 - math.exp(min(epsilon, 5)) / 4)
    assert slack(QUARTERS, np.eye(4), epsilon) == pytest.approx(expected, abs=1e-15)
    assert mean_slack(QUARTERS, np.eye(4), epsilon) == pytest.approx(expected, abs=1e-15)
    assert slack([1.0], [[0.3, 0.7]], epsilon) == mean_slack([1.0], [[0.3, 0.7]], epsilon) == 0


@st.composite
def rational_cases(draw: st.DrawFn) -> tuple[list[Fraction], list[list[Fraction]], Fraction]:
    """A prior, a mechanism, and a delta that often is the mass of some outcomes, as small rationals."""
    n, m = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    weights = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    row = st.lists(st.integers(0, 4), min_size=m, max_size=m).filter(any)
    rows = [[Fraction(v, sum(r)) for v in r] for r in draw(st.lists(row, min_size=n, max_size=n))]
    p = [Fraction(w, sum(weights)) for w in weights]
    law = [sum((p[x] * rows[x][y] for x in range(n)), Fraction(0)) for y in range(m)]
    masses = [sum(law[:k], Fraction(0)) for k in range(1, m)]
    inside = [mass for mass in masses if 0 < mass < 1]
    arbitrary = st.integers(1, 96).map(lambda k: Fraction(k, 97))
    return p, rows, draw(st.one_of(arbitrary, st.sampled_from(inside)) if inside else arbitrary)


@given(rational_cases())
@settings(max_examples=60, deadline=None)
def test_quantiles_are_their_definitions(
    case: tuple[list[Fraction], list[list[Fraction]], Fraction],
) -> None:
    p, rows, delta = case
    columns = list(zip(*rows, strict=True))
    law = [sum((a * b for a, b in zip(p, column, strict=True)), Fraction(0)) for column in columns]
    outcomes = [(max(column) / q, q) for column, q in zip(columns, law, strict=True) if q > 0]
    # (9): least t with C(t) >= 1 - delta; (10): the least maximum over good sets
    below = {t: sum((q for ratio, q in outcomes if ratio <= t), Fraction(0)) for t, _ in outcomes}
    lower = min(t for t in below if below[t] >= 1 - delta)
    good = [
        max(ratio for ratio, _ in chosen)
        for size in range(1, len(outcomes) + 1)
        for chosen in itertools.combinations(outcomes, size)
        if sum((q for _, q in chosen), Fraction(0)) >= 1 - delta
    ]
    assert min(good) == lower
    above = {t: sum((q for ratio, q in outcomes if ratio >= t), Fraction(0)) for t, _ in outcomes}
    upper = max(t for t in above if above[t] >= delta)
    given_p, given_rows = [float(v) for v in p], [[float(v) for v in row] for row in rows]
    for which, expected in ((False, lower), (True, upper)):
        found = leakage_quantile(given_p, given_rows, float(delta), upper=which)
        assert found == pytest.approx(log_of(expected), abs=1e-12)


def algorithm_1(p: FloatArray, matrix: FloatArray, delta: float) -> float:
    """ENV, Algorithm 1, line by line."""
    law, largest = p @ matrix, 0.0
    for row in matrix:
        left, value = delta, 0.0
        for y in sorted(np.flatnonzero(law > 0), key=lambda y: -row[y] / law[y]):
            share = min(1.0, left / law[y])
            value += share * row[y]
            left -= share * law[y]
        largest = max(largest, value / delta)
    return math.log(largest)


@given(pairs(tiny=False), DELTAS)
@example(
    (np.array([0.5, 0.5]), np.array([[0.999999999, 0.0, 9.99999999e-10], [1.0, 0.0, 0.0]])), 1e-9
)
@MODEST
def test_the_binary_envelope_is_algorithm_1(
    pair: tuple[FloatArray, FloatArray], delta: float
) -> None:
    found = binary_envelope(*pair, delta)
    assert found == pytest.approx(algorithm_1(*pair, delta), abs=1e-9)
    event = binary_event(*pair, delta)
    assert event.min() >= 0
    assert event.max() <= 1
    assert pair[0] @ pair[1] @ event == pytest.approx(delta, rel=1e-9)
    assert event_leakage(*pair, event) == found
    assert found >= slack_bound(pair, delta) - 1e-12


def slack_bound(pair: tuple[FloatArray, FloatArray], delta: float) -> float:
    """The largest leakage of a set of outcomes with mass delta or more."""
    p, matrix = pair
    likely = [event for event in events(matrix.shape[1]) if p @ matrix @ event >= delta]
    return max((event_leakage(p, matrix, event) for event in likely), default=0.0)


# ---------------------------------------------------------------- bounds and compositions


@pytest.mark.parametrize("seed", range(4))
def test_two_steps_are_bounded_by_their_parts(seed: int) -> None:
    rng = np.random.default_rng([1104, seed])
    p, first = random_pair(rng, 4)
    n, m = first.shape
    k = int(rng.integers(1, 4))
    second = rng.dirichlet(np.full(k, 0.5), (m, n))
    literal = max(
        math.log(sum(max(second[y, x, z] for x in range(n) if first[x, y] > 0) for z in range(k)))
        for y in range(m)
        if first[:, y].max() > 0
    )
    assert conditional_maximal_leakage(first, second) == pytest.approx(literal, abs=1e-12)
    joint = np.einsum("xy,yxz->xyz", first, second).reshape(n, m * k)
    parts = [maximal_leakage(first), conditional_maximal_leakage(first, second)]
    assert maximal_leakage(joint) <= sum(parts) + 1e-12
    for delta in (0.05, float(rng.uniform(0.1, 0.95))):
        bound = composed_envelope_bound(parts, delta)
        assert bound == pytest.approx(sum(parts) - math.log(delta), abs=1e-12)
        reached = solve(envelope(p, joint, delta)).value
        assert reached <= bound + 1e-9
        assert reached <= counted_envelope_bound(m * k, delta) + 1e-9


@given(pairs(), DELTAS)
@MODEST
def test_the_bounds_are_in_order(pair: tuple[FloatArray, FloatArray], delta: float) -> None:
    low, high = envelope_bounds(*pair, delta)
    assert 0 <= low <= high <= leakage_level(*pair)
    assert high <= maximal_leakage(pair[1]) - math.log(delta) + 1e-12
    assert low >= min(binary_envelope(*pair, delta), high)
    assert low >= min(leakage_quantile(*pair, delta, upper=True), high)


def test_what_cannot_be_meant_is_refused() -> None:
    for slack_of in (slack, mean_slack):
        levels = (-1e-9, math.nan, math.inf, "one", None)
        refused(PrivacyError, slack_of, ".", *((QUARTERS, HALVES, bad) for bad in levels))
    events: list[Any] = [
        [1, 0],
        [1, 0, 0, 0],
        [],
        [[1, 0, 0]],
        [0.5, -0.1, 0],
        [1.1, 0, 0],
        [math.nan, 1, 0],
    ]
    refused(
        MechanismError,
        event_leakage,
        ".",
        *(([0.5, 0.5], THREE, one) for one in [*events, [0, 0, 0]]),
    )
    never = ([0.5, 0.5], [[0.5, 0.5, 0], [0.2, 0.8, 0]], [0, 0, 1])
    refused(MechanismError, event_leakage, "never happens", never)
    steps: list[Any] = [np.ones((2, 2)) / 2, np.ones((2, 3, 2)) / 2, np.ones((3, 2, 2)), "second"]
    first = [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    refused(ValueError, conditional_maximal_leakage, ".", *((first, second) for second in steps))
    refused(
        PrivacyError,
        counted_envelope_bound,
        ".",
        *((few, 0.5) for few in (0, -1, 2.5, math.nan, "two")),
    )
    sums: list[Any] = [[-0.1], [math.nan], [math.inf], [], "one"]
    refused(PrivacyError, composed_envelope_bound, ".", *((leakages, 0.5) for leakages in sums))
    assert counted_envelope_bound(4, 0.25) == pytest.approx(math.log(16), abs=1e-15)
    assert composed_envelope_bound([0.0], 0.5) == pytest.approx(math.log(2), abs=1e-15)
    deltas: list[Any] = [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, "half", None, True]
    for measure in (
        approximate_pml_level,
        leakage_quantile,
        binary_envelope,
        binary_event,
        envelope_bounds,
    ):
        refused(PrivacyError, measure, ".", *((QUARTERS, HALVES, bad) for bad in deltas))
    refused(PrivacyError, counted_envelope_bound, ".", *((4, bad) for bad in deltas))
    refused(PrivacyError, composed_envelope_bound, ".", *(([1.0], bad) for bad in deltas))
