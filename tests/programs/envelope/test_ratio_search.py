"""The envelope: against the paper, its closed form, an LP of its own, and post-processings of every kind."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from pmlopt import Mechanism, Prior, Status, envelope, envelope_bounds, envelope_curve
from pmlopt.arrays import FloatArray
from pmlopt.closed_forms import (
    high_privacy,
    k_singular,
    randomized_response,
    randomized_response_condition,
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_upper_bound,
    uniform,
)
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.measures import binary_envelope, leakage_level
from pmlopt.programs.envelope.certificate import bad_mass, largest_ratio
from pmlopt.programs.envelope.program import EnvelopeProgram, envelope_program
from pmlopt.programs.envelope.ratio_search import Envelope

QUARTERS = [0.25] * 4

HALVES = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
"""ENV, eq. (7)."""

GAP = 1e-7


# ---------------------------------------------------------------- an oracle of its own


def most_mass(p: FloatArray, matrix: FloatArray, t: float) -> float:
    """V(t): the largest mass of outcomes that leak log t or more, by a dense LP in that mass.

    u[x,y] is the mass of y that goes to the outcome of x; each column is over its law, each row over t.
    """
    occurring = matrix[:, matrix.max(axis=0) > 0]
    n, m = occurring.shape
    law = p @ occurring
    leaks, whole = np.zeros((n, n, m)), np.zeros((m, n, m))
    for x in range(n):
        leaks[x, x] = 1 - occurring[x] / law / t
    for y in range(m):
        whole[y, :, y] = 1.0
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    rows = np.vstack([leaks.reshape(n, n * m), whole.reshape(m, n * m)])
    right = np.concatenate([np.zeros(n), law])
    for options in (tight, {**tight, "presolve": False}):
        answer = linprog(-np.ones(n * m), A_ub=rows, b_ub=right, method="highs", options=options)
        if answer.status == 0:
            return -float(answer.fun)
    raise AssertionError(answer.message)


def bisected(p: FloatArray, matrix: FloatArray, delta: float) -> float:
    """The largest log t with V(t) >= delta, by plain bisection."""
    low, high = 0.0, -math.log(p.min())
    while high - low > 2e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if most_mass(p, matrix, math.exp(middle)) >= delta else (low, middle)
    return low


def quantile(p: FloatArray, matrix: FloatArray, delta: float, short: float = 1e-12) -> float:
    """The largest t such that outcomes with t or more have mass delta, up to rounding."""
    law = p @ matrix
    found = sorted(
        ((math.log(matrix[:, z].max() / law[z]), law[z]) for z in np.flatnonzero(law > 0)), reverse=True
    )
    mass = 0.0
    for level, share in found:
        mass += share
        if mass >= delta * (1 - short):
            return max(0.0, level)
    return 0.0


def assert_sound(p: FloatArray, matrix: FloatArray, found: Envelope) -> None:
    """All that an envelope claims of itself."""
    attack = found.attack.matrix
    assert found.value <= found.bound
    assert found.gap == found.bound - found.value
    assert attack.shape[0] == matrix.shape[1]
    assert attack.shape[1] <= len(p) + 1
    assert attack.min() >= 0
    assert np.abs(attack.sum(axis=1) - 1).max() <= 1e-12
    assert quantile(p, matrix @ attack, found.delta) == pytest.approx(found.value, abs=1e-7)
    low, high = envelope_bounds(p, matrix, found.delta)
    assert low <= found.value + 1e-9
    assert found.bound <= high + 1e-9


def assert_closed(p: FloatArray, matrix: FloatArray, found: Envelope) -> None:
    assert_sound(p, matrix, found)
    assert found.gap <= GAP
    if found.gap <= 1e-9:
        assert found.status is Status.OPTIMAL


def concentrated(rng: np.random.Generator, k: int) -> FloatArray:
    """A Dirichlet prior of any spread."""
    p = rng.dirichlet(np.full(k, float(rng.choice([0.1, 0.3, 1.0, 10.0])))) + 1e-5
    return np.asarray(p / p.sum())


def random_mechanism(seed: int) -> tuple[FloatArray, FloatArray]:
    """Zeros, repeated and proportional columns, outputs that never occur, priors down to 1e-6, by turns."""
    rng = np.random.default_rng([1201, seed])
    n, m = (int(size) for size in rng.integers(1 if seed % 20 == 0 else 2, 9, 2))
    p = rng.dirichlet(np.full(n, (0.3, 1.0, 10.0)[seed % 3])) + 1e-6
    matrix = rng.dirichlet(np.full(m, (0.3, 1.0, 10.0)[seed // 3 % 3]), n)
    if seed % 2:
        kept = rng.random((n, m)) < 0.6
        kept[np.arange(n), rng.integers(0, m, n)] = True
        matrix = (matrix + 1e-3) * kept
    if seed % 5 == 1:
        matrix[:, rng.integers(0, m)] = 2.5 * matrix[:, rng.integers(0, m)]
        matrix[:, 0] += 1e-3
    if seed % 7 == 2 and m > 1:
        matrix[:, 1:] += 1e-3
        matrix[:, 0] = 0.0
    return p / p.sum(), matrix / matrix.sum(axis=1, keepdims=True)


def channels(rng: np.random.Generator, found: Envelope, count: int) -> list[FloatArray]:
    """Post-processings: merges, any channel, and the attack disturbed, which is near the best."""
    attack = found.attack.matrix
    m, k = attack.shape
    made: list[FloatArray] = []
    for number in range(count):
        if number % 3 == 0:
            made.append(np.eye(m)[rng.integers(0, m, m)])
        elif number % 3 == 1:
            made.append(rng.dirichlet(np.full(m, 0.3), m))
        else:
            share = 10.0 ** -float(rng.uniform(1, 8))
            made.append((1 - share) * attack + share * rng.dirichlet(np.full(k, 0.5), m))
    return made


# ---------------------------------------------------------------- the paper


@pytest.mark.parametrize(
    ("delta", "level"),
    [
        (1e-9, math.log(4)),
        (0.01, math.log(4)),
        (0.0999, math.log(4)),
        (0.1, math.log(4)),
        (0.2, 0.893818),
        (0.5, 0.412845),
        (0.9, 0.210721),
    ],
)
def test_example_1(delta: float, level: float) -> None:
    p, matrix = np.array(QUARTERS), np.array(HALVES)
    found = envelope(p, matrix, delta)
    assert_closed(p, matrix, found)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(level, abs=1e-6)
    if delta > 0.1:
        assert found.value == pytest.approx(bisected(p, matrix, delta), abs=1e-7)


def test_example_1_is_log_4_up_to_a_tenth_and_no_further() -> None:
    assert envelope(QUARTERS, HALVES, 0.1001).bound < math.log(4) - 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_theorem_4_extremal_mechanisms_have_a_constant_envelope(seed: int) -> None:
    rng = np.random.default_rng([1202, seed])
    p = rng.dirichlet(np.full(int(rng.integers(2, 9)), 3.0)) + 0.01
    p = p / p.sum()
    epsilon = float(rng.uniform(0.05, 1.0)) * -math.log1p(-float(p.min()))
    for found in envelope_curve(p, high_privacy(p, epsilon), [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9]):
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(epsilon, abs=1e-12)
        assert found.bound == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_corollary_1_equal_leakages_have_a_constant_envelope(n: int) -> None:
    mechanisms = [k_singular(n, k) for k in range(1, n)] + [uniform(n, 0.7 * math.log(n))]
    for mechanism in [*mechanisms, randomized_response(n, 1.3)]:
        level = leakage_level(np.full(n, 1 / n), mechanism)
        for found in envelope_curve(Prior.uniform(n), mechanism, [1e-9, 0.2, 0.8, 1 - 1e-9]):
            assert found.value == pytest.approx(level, abs=1e-12)
            assert found.bound == pytest.approx(level, abs=1e-12)


# ---------------------------------------------------------------- randomized response


def response(seed: int) -> tuple[FloatArray, float, float]:
    """A prior, the LDP level of randomized response, delta."""
    rng = np.random.default_rng([1203, seed])
    p = concentrated(rng, int(rng.integers(2, 9)))
    return p, float(rng.uniform(0.05, 4)), float(rng.uniform(0.01, 0.99))


@pytest.mark.parametrize("part", range(20))
def test_randomized_response_is_its_closed_form(part: int) -> None:
    for number in range(25):
        p, epsilon, delta = response(25 * part + number)
        k = len(p)
        matrix = randomized_response(k, epsilon).matrix
        level = randomized_response_envelope(p, epsilon, delta)
        found = envelope(p, matrix, delta)
        assert_closed(p, matrix, found)
        assert found.value == pytest.approx(level, abs=1e-7)
        assert found.bound == pytest.approx(level, abs=1e-7)
        assert found.bound >= level - 1e-13
        assert found.value <= level + 1e-13
        assert binary_envelope(p, matrix, delta) <= level + 1e-9
        assert level <= randomized_response_upper_bound(p, epsilon, delta) + 1e-12
        split = randomized_response_lower_bound(p, epsilon, delta)
        assert split <= level + 1e-12
        if randomized_response_condition(p, epsilon, delta):
            assert split == pytest.approx(level, abs=1e-12)
        if number < 3:
            assert bisected(p, matrix, delta) == pytest.approx(level, abs=1e-7)


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.999, 1 - 1e-6, 1 - 1e-9])
def test_randomized_response_at_the_ends_of_delta(delta: float) -> None:
    rng = np.random.default_rng(1204)
    for _ in range(10):
        k, epsilon = int(rng.integers(2, 9)), float(rng.uniform(0.05, 4))
        p = concentrated(rng, k)
        found = envelope(p, randomized_response(k, epsilon), delta)
        assert_closed(p, randomized_response(k, epsilon).matrix, found)
        assert found.value == pytest.approx(randomized_response_envelope(p, epsilon, delta), abs=1e-7)


# ---------------------------------------------------------------- random mechanisms


def two_deltas(seed: int) -> FloatArray:
    return np.sort(np.random.default_rng([1212, seed]).uniform(0.01, 0.99, 2))


@pytest.mark.parametrize("part", range(40))
def test_random_mechanisms(part: int) -> None:
    for seed in range(5 * part, 5 * part + 5):
        p, matrix = random_mechanism(seed)
        rng = np.random.default_rng([1205, seed])
        deltas = two_deltas(seed)
        curve = envelope_curve(p, matrix, deltas)
        for found in curve:
            assert_closed(p, matrix, found)
            # from both sides, by the LP of this file
            if found.value > 1e-6:
                assert most_mass(p, matrix, math.exp(found.value - 1e-6)) >= found.delta - 1e-9
            assert most_mass(p, matrix, math.exp(found.bound + 1e-6)) < found.delta + 1e-9
        assert curve[0].bound >= curve[1].value - 1e-9
        assert curve[0].value >= curve[1].value - 1e-8
        assert curve[0].bound >= curve[1].bound - 1e-8
        for channel in channels(rng, curve[0], 5):
            after = matrix @ channel
            for found in curve:
                assert quantile(p, after, found.delta, 0.0) <= found.bound + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_random_mechanisms_against_bisection(seed: int) -> None:
    rng = np.random.default_rng([1206, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    p = rng.dirichlet(np.ones(n)) + 0.02
    p, matrix = p / p.sum(), rng.dirichlet(np.full(m, 0.5), n)
    delta = float(rng.uniform(0.02, 0.98))
    assert envelope(p, matrix, delta).value == pytest.approx(bisected(p, matrix, delta), abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_no_post_processing_is_worse_after_another(seed: int) -> None:
    """The envelope itself does not rise under post-processing, and merging similar outputs leaves it."""
    rng = np.random.default_rng([1207, seed])
    p, matrix = random_mechanism(100 + seed)
    before = envelope(p, matrix, 0.3)
    after = envelope(p, matrix @ rng.dirichlet(np.full(4, 0.3), matrix.shape[1]), 0.3)
    assert after.value <= before.bound + 1e-9
    split = np.hstack([0.3 * matrix, 0.7 * matrix, np.zeros((len(p), 1))])
    assert envelope(p, split, 0.3).value == pytest.approx(before.value, abs=1e-7)


# ---------------------------------------------------------------- curves


@pytest.mark.parametrize("seed", [1, 3, 8, 22, 46])
def test_a_curve_is_its_points_in_the_order_that_was_asked(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    deltas = [0.5, 0.01, 0.99, 0.5, 0.25, 0.01]
    curve = envelope_curve(p, matrix, deltas)
    assert [found.delta for found in curve] == deltas
    assert curve[0].value == curve[3].value
    assert curve[1].value == curve[5].value
    for delta, found in zip(deltas, curve, strict=True):
        single = envelope(p, matrix, delta)
        assert found.value == pytest.approx(single.value, abs=1e-8)
        assert found.bound == pytest.approx(single.bound, abs=1e-8)
        assert_closed(p, matrix, found)
    levels = [found.value for found in sorted(curve, key=lambda found: found.delta)]
    assert all(after <= before + 1e-8 for before, after in itertools.pairwise(levels))


def test_a_curve_of_nothing_and_of_a_generator() -> None:
    assert envelope_curve(QUARTERS, HALVES, []) == []
    curve = envelope_curve(QUARTERS, HALVES, (delta for delta in (0.5, 0.1)))
    assert [round(found.value, 6) for found in curve] == [0.412845, round(math.log(4), 6)]


# ---------------------------------------------------------------- the proof


def program_of(seed: int) -> tuple[FloatArray, FloatArray, EnvelopeProgram]:
    rng = np.random.default_rng([1208, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    p = rng.dirichlet(np.ones(n)) + 0.01
    p, matrix = p / p.sum(), rng.dirichlet(np.full(m, 0.5), n)
    return p, matrix, envelope_program(p, matrix)


SCALES = st.sampled_from([0.0, 1e-6, 0.1, 1.0, 10.0, 1e6, 1e12])


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 999), scale=SCALES, share=st.floats(0.0, 1.2))
def test_any_multipliers_bound_the_mass(seed: int, scale: float, share: float) -> None:
    p, matrix, program = program_of(seed)
    t = math.exp(share * leakage_level(p, matrix))
    rng = np.random.default_rng(seed)
    multipliers = scale * rng.exponential(size=len(p)) * (rng.random(len(p)) < 0.7)
    true = most_mass(p, matrix, t)
    assert bad_mass(program, t, multipliers) >= true - 1e-9
    # what is negative counts for nothing
    assert bad_mass(program, t, np.where(multipliers == 0, -scale, multipliers)) >= true - 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), scale=SCALES, delta=st.floats(0.01, 0.99))
def test_no_multipliers_prove_a_ratio_that_is_reached(seed: int, scale: float, delta: float) -> None:
    p, matrix, program = program_of(seed)
    found, most = envelope(p, matrix, delta), math.exp(leakage_level(p, matrix))
    reached = math.exp(found.value)
    near = np.random.default_rng(seed).exponential(size=len(p))
    known = np.zeros(len(p)) if found.multipliers is None else found.multipliers
    for multipliers in (scale * near, known, known * near, known + 1e-6 * near):
        ratio = largest_ratio(program, delta, multipliers, most)
        assert reached * (1 - 1e-12) <= ratio <= most
    if found.multipliers is not None:
        proved = largest_ratio(program, delta, found.multipliers, most)
        assert math.log(proved) == pytest.approx(found.bound, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_program_is_the_oracles(seed: int) -> None:
    p, matrix, program = program_of(seed)
    for share in (0.0, 0.3, 0.8, 1.1):
        t = math.exp(share * leakage_level(p, matrix))
        program.ratio.value = t
        value = -float(program.problem.solve(solver="HIGHS"))
        assert value == pytest.approx(most_mass(p, matrix, t), abs=1e-6)
        assert np.asarray(program.mechanism.value).shape == (program.merged.shape[1], len(p))


# ---------------------------------------------------------------- edges


ENDS = pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.5, 1 - 1e-9, math.nextafter(1.0, 0.0)])


@ENDS
@pytest.mark.parametrize(
    ("p", "matrix"),
    [
        ([1.0], [[0.3, 0.7]]),
        ([1.0], [[1.0]]),
        ([0.2, 0.8], [[1.0], [1.0]]),
        ([0.2, 0.8], [[0.3, 0.0, 0.7], [0.3, 0.0, 0.7]]),
        ([1e-6, 1 - 1e-6], [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_what_tells_nothing_leaks_nothing(p: list[float], matrix: list[list[float]], delta: float) -> None:
    found = envelope(p, matrix, delta)
    assert_sound(np.array(p), np.array(matrix), found)
    assert found.status is Status.OPTIMAL
    assert 0 <= found.value <= found.bound <= 1e-14


@ENDS
def test_the_identity(delta: float) -> None:
    p = np.array([0.1, 0.2, 0.7])
    found = envelope(p, np.eye(3), delta)
    assert_closed(p, np.eye(3), found)
    assert found.status is Status.OPTIMAL
    if delta <= 0.1:
        assert found.value == pytest.approx(math.log(10), abs=1e-12)
    if delta > 0.9:
        # x itself is told: each letter to its own outcome, the rest of the mass where it costs least
        assert found.value == pytest.approx(randomized_response_envelope(p, 700.0, delta), abs=1e-8)


def test_a_letter_of_1e_minus_6_leaks_by_itself() -> None:
    p = np.array([1e-6, 0.5, 0.5 - 1e-6])
    for delta in (1e-7, 1e-6):
        found = envelope(p, np.eye(3), delta)
        assert_closed(p, np.eye(3), found)
        assert found.value == pytest.approx(-math.log(1e-6), abs=1e-9)
    assert envelope(p, np.eye(3), 2e-6).value == pytest.approx(-math.log(2e-6), abs=1e-6)


def test_more_outputs_than_letters_and_fewer() -> None:
    rng = np.random.default_rng(1209)
    for n, m in ((2, 40), (30, 2), (30, 1)):
        p, matrix = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(m, 0.5), n)
        assert_closed(p, matrix, envelope(p, matrix, 0.3))


def test_labels_reach_the_attack() -> None:
    prior = Prior([0.2, 0.3, 0.5], labels=["a", "b", "c"])
    mechanism = Mechanism(randomized_response(3, 1.0).matrix, list("abc"), ["z", "y", "x"])
    found = envelope(prior, mechanism, 0.6)
    assert set(found.attack.outputs) <= {"a", "b", "c", None}
    assert len(set(found.attack.outputs)) == len(found.attack.outputs)
    with pytest.raises(MechanismError):
        envelope(prior, Mechanism(np.eye(3), list("cba")), 0.6)
    with pytest.raises(MechanismError):
        envelope([0.5, 0.5], np.eye(3), 0.6)


def test_any_label_may_be_a_letter() -> None:
    prior = Prior([0.3, 0.3, 0.4], labels=["a", None, "c"])
    found = envelope(prior, randomized_response(3, 1.0), 0.7)
    expected = randomized_response_envelope([0.3, 0.3, 0.4], 1.0, 0.7)
    assert found.value == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("bad", [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, "half", None])
def test_deltas_that_are_no_probability_inside_are_refused(bad: Any) -> None:
    with pytest.raises(PrivacyError):
        envelope(QUARTERS, HALVES, bad)
    with pytest.raises(PrivacyError):
        envelope_curve(QUARTERS, HALVES, [0.5, bad])


@pytest.mark.parametrize("bad", [math.nan, math.inf, "small", None])
def test_impossible_tolerances_are_refused(bad: Any) -> None:
    with pytest.raises(InputError):
        envelope(QUARTERS, HALVES, 0.5, tolerance=bad)


@pytest.mark.parametrize("bad", [{"tolerance": 0.0}, {"tolerance": -1.0}, {"time_limit": -1.0}])
def test_options_that_solve_refuses_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InputError):
        envelope(QUARTERS, HALVES, 0.5, **bad)


@pytest.mark.parametrize("bad", [math.nan, "long"])
def test_impossible_time_limits_are_refused(bad: Any) -> None:
    with pytest.raises(InputError):
        envelope(QUARTERS, HALVES, 0.5, time_limit=bad)


@pytest.mark.parametrize("limit", [1e-9, 1e-3, 1e-2])
def test_a_search_that_is_stopped_is_honest(limit: float) -> None:
    rng = np.random.default_rng(1210)
    p, matrix = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, 0.5), 8)
    best, found = envelope(p, matrix, 0.3), envelope(p, matrix, 0.3, time_limit=limit)
    assert_sound(p, matrix, found)
    assert found.value <= best.bound + 1e-12
    assert found.bound >= best.value - 1e-12
    if limit < 1e-8:
        assert found.status is Status.STOPPED
        assert found.programs == 0
        assert found.multipliers is None


def test_it_starts_from_no_post_processing_at_all() -> None:
    # both letters have a rare outcome that tells all, and a likely one that tells little: kept apart
    matrix = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 0.2, 0.3, 0.5]])
    assert envelope_bounds([0.5, 0.5], matrix, 0.2) == pytest.approx((math.log(2), math.log(2)), abs=1e-15)
    found = envelope([0.5, 0.5], matrix, 0.2, time_limit=1e-9)
    assert found.value == pytest.approx(math.log(2), abs=1e-12)
    assert found.status is Status.OPTIMAL


def test_a_wide_tolerance_is_enough() -> None:
    rng = np.random.default_rng(1211)
    p, matrix = rng.dirichlet(np.ones(6)), rng.dirichlet(np.full(6, 0.5), 6)
    best, found = envelope(p, matrix, 0.3), envelope(p, matrix, 0.3, tolerance=0.05)
    assert found.status is Status.OPTIMAL
    assert found.gap <= 0.05
    assert found.programs <= best.programs
    assert found.value <= best.bound + 1e-12
    assert found.bound >= best.value - 1e-12


# ---------------------------------------------------------------- the default tolerance


@pytest.mark.parametrize("seed", [14, 28, 58, 85, 122, 223, 278, 292, 321, 409, 423, 455, 495])
def test_the_default_tolerance_is_reached_for_randomized_response(seed: int) -> None:
    p, epsilon, delta = response(seed)
    found = envelope(p, randomized_response(len(p), epsilon), delta)
    assert found.status is Status.OPTIMAL
    assert found.gap <= GAP


@pytest.mark.parametrize("seed", [8, 38, 47, 56, 65, 172, 184])
def test_the_default_tolerance_is_reached_for_random_mechanisms(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    for found in envelope_curve(p, matrix, two_deltas(seed)):
        assert found.status is Status.OPTIMAL
        assert found.gap <= GAP


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4, 1 - 1e-6, 1 - 1e-9])
def test_random_mechanisms_at_the_ends_of_delta(delta: float) -> None:
    for seed in range(0, 60, 4):
        p, matrix = random_mechanism(seed)
        assert_closed(p, matrix, envelope(p, matrix, delta))


def test_a_small_delta_beside_a_rare_letter() -> None:
    # HiGHS' tolerance is a ten-thousandth of this delta: the gap is as wide as it is, and said
    p, matrix = random_mechanism(45)
    found = envelope(p, matrix, 1e-6)
    assert_sound(p, matrix, found)
    assert found.gap <= 1e-5
    assert (found.status is Status.OPTIMAL) == (found.gap <= 1e-8)
