"""The search for an envelope: hard instances, options and limits."""

from __future__ import annotations

import math
from typing import Any

import cvxpy as cp
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
    most_mass,
    random_mechanism,
    solved,
)

from pmlopt import envelope, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.measures import envelope_bounds
from pmlopt.programs import Status
from pmlopt.programs.envelope.multipliers import RatioPrograms
from pmlopt.solvers.outcome import FOREVER


@pytest.mark.parametrize("bad", [0, 1, 0.0, 1.0, -0.1, 1.1, math.nan, math.inf, "half", None])
def test_deltas_that_are_no_probability_inside_are_refused(bad: Any) -> None:
    with pytest.raises(PrivacyError):
        envelope(QUARTERS, HALVES, bad)


@pytest.mark.parametrize("limit", [1e-9, 1e-3, 1e-2])
def test_a_search_that_is_stopped_is_honest(limit: float) -> None:
    rng = np.random.default_rng(1210)
    p, matrix = rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, 0.5), 8)
    best, found = solved(p, matrix, 0.3), solved(p, matrix, 0.3, time_limit=limit)
    assert_sound(p, matrix, found)
    assert found.value <= best.bound + 1e-12
    assert found.bound >= best.value - 1e-12
    if limit < 1e-8:
        assert found.status is Status.STOPPED
        assert found.iterations == 0
        assert found.certificate.multipliers is None


def test_it_starts_from_no_post_processing_at_all() -> None:
    # both letters have a rare outcome that tells all, and a likely one that tells little: kept apart
    matrix = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 0.2, 0.3, 0.5]])
    assert envelope_bounds([0.5, 0.5], matrix, 0.2) == pytest.approx((math.log(2), math.log(2)), abs=1e-15)
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


@pytest.mark.parametrize("seed", [1, 8, 22])
def test_the_linear_program_is_the_one_that_is_declared(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    program = envelope(p, matrix, 0.5)
    direct = RatioPrograms(program, 0.5)
    for ratio in (1.0, 1.1, math.exp(program.simple_bound)):
        mass, _, point, multipliers = direct.solve(ratio, np.zeros(len(p), dtype=bool), FOREVER)
        assert mass == pytest.approx(most_mass(p, matrix, ratio), abs=1e-8)
        program.ratio.value = ratio
        assert mass == pytest.approx(-program.problem.solve(solver=cp.HIGHS), abs=1e-7)
        assert point.shape == program.attack.shape
        proved = float(program.exact.mass(math.log(ratio), multipliers.tolist()))
        assert mass - 1e-10 <= proved <= mass + 1e-8


# ---------------------------------------------------------------- the default tolerance


@pytest.mark.parametrize("seed", [145, 196, 206, *range(12)])
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
@settings(max_examples=20, deadline=None)
def test_an_envelope_that_ends_where_a_letter_closes_is_proved(rows: FloatArray, weight: float) -> None:
    # just above the ratio at which a letter closes, the mass that is left falls from delta itself
    p, matrix = np.array([weight, 1 - weight]), rows / rows.sum(axis=1, keepdims=True)
    found = solved(p, matrix, weight)
    assert_sound(p, matrix, found)
    assert found.status is Status.OPTIMAL
