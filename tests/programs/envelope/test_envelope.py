"""The envelope: against the paper, its closed form, an LP of its own, and post-processings of every kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.envelopes import (
    HALVES,
    QUARTERS,
    assert_closed,
    assert_sound,
    bisected,
    channels,
    curve_of,
    most_mass,
    quantile,
    random_mechanism,
    response,
    solved,
    two_deltas,
)

from pmlopt import Mechanism, Prior, envelope, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.measures import binary_envelope, envelope_bounds, leakage_level
from pmlopt.model.closed_forms import (
    high_privacy,
    k_singular,
    randomized_response,
    randomized_response_condition,
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_upper_bound,
    uniform,
)
from pmlopt.programs import Status

# ---------------------------------------------------------------- the paper


@pytest.mark.parametrize(
    ("delta", "level"),
    [
        (1e-9, math.log(4)),
        (0.0999, math.log(4)),
        (0.1, math.log(4)),
        (0.2, 0.893818),
        (0.5, 0.412845),
        (0.9, 0.210721),
    ],
)
def test_example_1(delta: float, level: float) -> None:
    p, matrix = np.array(QUARTERS), np.array(HALVES)
    found = solved(p, matrix, delta)
    assert_closed(p, matrix, found)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(level, abs=1e-6)
    if delta > 0.1:
        assert found.value == pytest.approx(bisected(p, matrix, delta), abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_theorem_4_extremal_mechanisms_have_a_constant_envelope(seed: int) -> None:
    rng = np.random.default_rng([1202, seed])
    p = rng.dirichlet(np.full(int(rng.integers(2, 9)), 3.0)) + 0.01
    p = p / p.sum()
    epsilon = float(rng.uniform(0.05, 1.0)) * -math.log1p(-float(p.min()))
    for found in curve_of(p, high_privacy(p, epsilon), [1e-9, 0.1, 0.5, 0.9, 1 - 1e-9]):
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(epsilon, abs=1e-12)
        assert found.bound == pytest.approx(epsilon, abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_corollary_1_equal_leakages_have_a_constant_envelope(n: int) -> None:
    mechanisms = [k_singular(n, k) for k in range(1, n)] + [uniform(n, 0.7 * math.log(n))]
    for mechanism in [*mechanisms, randomized_response(n, 1.3)]:
        level = leakage_level(np.full(n, 1 / n), mechanism)
        for found in curve_of(Prior.uniform(n), mechanism, [1e-9, 0.2, 0.8, 1 - 1e-9]):
            assert found.value == pytest.approx(level, abs=1e-12)
            assert found.bound == pytest.approx(level, abs=1e-12)


# ---------------------------------------------------------------- randomized response


@pytest.mark.parametrize("part", range(2))
def test_randomized_response_is_its_closed_form(part: int) -> None:
    for number in range(10):
        p, epsilon, delta = response(10 * part + number)
        k = len(p)
        matrix = randomized_response(k, epsilon).matrix
        level = randomized_response_envelope(p, epsilon, delta)
        found = solved(p, matrix, delta)
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


# ---------------------------------------------------------------- random mechanisms


@pytest.mark.parametrize("part", range(4))
def test_random_mechanisms(part: int) -> None:
    for seed in range(6 * part, 6 * part + 4):
        p, matrix = random_mechanism(seed)
        rng = np.random.default_rng([1205, seed])
        deltas = two_deltas(seed)
        curve = curve_of(p, matrix, deltas)
        for found in curve:
            assert_closed(p, matrix, found)
            # from both sides, by the LP of this file
            if found.value > 1e-6:
                assert (
                    most_mass(p, matrix, math.exp(found.value - 1e-6))
                    >= found.certificate.delta - 1e-9
                )
            assert (
                most_mass(p, matrix, math.exp(found.bound + 1e-6)) < found.certificate.delta + 1e-9
            )
        assert curve[0].bound >= curve[1].value - 1e-9
        assert curve[0].value >= curve[1].value - 1e-8
        assert curve[0].bound >= curve[1].bound - 1e-8
        for channel in channels(rng, curve[0], 5):
            after = matrix @ channel
            for found in curve:
                assert quantile(p, after, found.certificate.delta, 0.0) <= found.bound + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_no_post_processing_is_worse_after_another(seed: int) -> None:
    """The envelope itself does not rise under post-processing, and merging similar outputs leaves it."""
    rng = np.random.default_rng([1207, seed])
    p, matrix = random_mechanism(100 + seed)
    before = solved(p, matrix, 0.3)
    after = solved(p, matrix @ rng.dirichlet(np.full(4, 0.3), matrix.shape[1]), 0.3)
    assert after.value <= before.bound + 1e-9
    split = np.hstack([0.3 * matrix, 0.7 * matrix, np.zeros((len(p), 1))])
    assert solved(p, split, 0.3).value == pytest.approx(before.value, abs=1e-7)


# ---------------------------------------------------------------- edges


ENDS = pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.5, 1 - 1e-9, math.nextafter(1.0, 0.0)])


@ENDS
@pytest.mark.parametrize(
    ("p", "matrix"),
    [
        ([1.0], [[0.3, 0.7]]),
        ([0.2, 0.8], [[1.0], [1.0]]),
        ([0.2, 0.8], [[0.3, 0.0, 0.7], [0.3, 0.0, 0.7]]),
        ([1e-6, 1 - 1e-6], [[0.5, 0.5], [0.5, 0.5]]),
    ],
)
def test_what_tells_nothing_leaks_nothing(
    p: list[float], matrix: list[list[float]], delta: float
) -> None:
    found = solved(p, matrix, delta)
    assert_sound(np.array(p), np.array(matrix), found)
    assert found.status is Status.OPTIMAL
    assert 0 <= found.value <= found.bound <= 1e-14


def test_labels_reach_the_attack() -> None:
    prior = Prior([0.2, 0.3, 0.5], labels=["a", "b", "c"])
    mechanism = Mechanism(randomized_response(3, 1.0).matrix, list("abc"), ["z", "y", "x"])
    found = solved(prior, mechanism, 0.6)
    assert set(found.certificate.attack.outputs) <= {"a", "b", "c", ()}
    assert len(set(found.certificate.attack.outputs)) == len(found.certificate.attack.outputs)
    with pytest.raises(MechanismError):
        solved(prior, Mechanism(np.eye(3), list("cba")), 0.6)
    with pytest.raises(MechanismError):
        solved([0.5, 0.5], np.eye(3), 0.6)


# ---------------------------------------------------------------- the search for it


def test_it_starts_from_no_post_processing_at_all() -> None:
    # both letters have a rare outcome that tells all, and a likely one that tells little: kept apart
    matrix = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 0.2, 0.3, 0.5]])
    assert envelope_bounds([0.5, 0.5], matrix, 0.2) == pytest.approx(
        (math.log(2), math.log(2)), abs=1e-15
    )
    found = solved([0.5, 0.5], matrix, 0.2, time_limit=1e-9)
    assert found.value == pytest.approx(math.log(2), abs=1e-12)
    assert found.status is Status.OPTIMAL


def test_a_mechanism_is_no_start_and_an_earlier_result_is_left_out() -> None:
    program = envelope(QUARTERS, HALVES, 0.5)
    best = solve(program)
    again = solve(program, warm_start=best)
    assert not again.warm_started
    assert (again.value, again.bound) == (best.value, best.bound)
    with pytest.raises(ProgramError, match="leave out the mechanism"):
        solve(program, warm_start=best.certificate.attack)


# ---------------------------------------------------------------- hard instances

CYCLING = (
    [0.36, 0.04, 0.02, 0.23, 0.33, 0.02],
    [
        [0.01, 0.01, 0.45, 0, 0.53, 0, 0],
        [0, 0.22, 0.08, 0, 0.01, 0.11, 0.58],
        [0.46, 0, 0.37, 0, 0.09, 0, 0.08],
        [0.9, 0.06, 0, 0.01, 0, 0.03, 0],
        [0, 0, 0, 0.15, 0.7, 0.15, 0],
        [0.43, 0.22, 0.19, 0.15, 0, 0.01, 0],
    ],
)
"""A mechanism on which HiGHS' primal simplex, without limits, did not end."""


@pytest.mark.parametrize(("delta", "level"), [(0.5, 1.3712963), (0.7, 1.0887866), (0.9, 0.9364934)])
def test_a_program_on_which_the_simplex_cycled(delta: float, level: float) -> None:
    p, matrix = np.array(CYCLING[0]), np.array(CYCLING[1])
    found = solved(p, matrix, delta)
    assert_closed(p, matrix, found)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(level, abs=6e-8)
    assert found.value == pytest.approx(bisected(p, matrix, delta), abs=1e-7)


def sparse_channel(seed: int) -> tuple[FloatArray, FloatArray]:
    """A skewed prior on 20 letters, each with a few likely outputs of 10."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(20, 0.3)) + 1e-4
    return p / p.sum(), rng.dirichlet(np.full(10, 0.1), 20)


def test_a_slope_that_is_noise_does_not_take_the_search_out_of_its_bounds() -> None:
    p, matrix = sparse_channel(637)
    found = solved(p, matrix, 0.99)
    assert_closed(p, matrix, found)
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(1.6324719, abs=1e-7)
    # from both sides, by the oracle
    assert most_mass(p, matrix, math.exp(found.value - 1e-6)) >= 0.99 - 1e-9
    assert most_mass(p, matrix, math.exp(found.bound + 1e-6)) < 0.99 + 1e-9


# ---------------------------------------------------------------- the default tolerance


@pytest.mark.parametrize("seed", [145, 196, 206, *range(3)])
def test_a_delta_far_below_the_tolerance_of_the_solver_is_proved_to_nine_digits(seed: int) -> None:
    # letters down to 1e-30 and entries down to 1e-16; of the first three the bound was up to 0.8 nats above
    rng = np.random.default_rng(seed)
    n, m, most = int(rng.integers(2, 6)), int(rng.integers(2, 7)), rng.uniform(14, 30)
    weights = 10.0 ** -rng.uniform(0, most, n)
    matrix = rng.dirichlet(np.ones(m), n) * 10.0 ** -rng.uniform(0, 16, (n, m))
    for exponent in (rng.uniform(10, 13), rng.uniform(1, 10)):
        p, rows = weights / weights.sum(), matrix / matrix.sum(axis=1, keepdims=True)
        found = solved(p, rows, float(10.0**-exponent))
        assert found.status is Status.OPTIMAL
        assert found.gap <= 1e-9
        assert found.certificate.verify()


@given(rows=arrays(float, (2, 3), elements=st.floats(0.01, 1)), weight=st.sampled_from([0.5, 0.25]))
@settings(max_examples=12, deadline=None)
def test_an_envelope_that_ends_where_a_letter_closes_is_proved(
    rows: FloatArray, weight: float
) -> None:
    # just above the ratio at which a letter closes, the mass that is left falls from delta itself
    p, matrix = np.array([weight, 1 - weight]), rows / rows.sum(axis=1, keepdims=True)
    found = solved(p, matrix, weight)
    assert_sound(p, matrix, found)
    assert found.status is Status.OPTIMAL
