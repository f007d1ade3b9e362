"""Parts of the search for an envelope: dual bounds and multipliers by their definitions, and what counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from oracles.envelopes import HALVES, QUARTERS, most_mass

from pmlopt import ConvexHull, envelope, solve
from pmlopt.programs import failure_after_processing
from pmlopt.programs.envelope.build_certificate import (
    RatioPrograms,
    find_ratio_by_newton,
    set_closed_multipliers,
)
from pmlopt.programs.envelope.methods import _RatioFeasibility
from pmlopt.solvers.solver_result import NO_DEADLINE

MATRIX = np.array(HALVES)


def test_newton_finds_where_the_dual_bound_over_a_set_is_delta() -> None:
    """`nu + sum_y max_q (max(0, max_x (q + lam[x] (P[x,y] - t q))) - nu q)`, q an end of its range."""
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.4, 0.5]])
    ends = np.array([[0.2, 0.33, 0.15], [0.4, 0.37, 0.3]])
    lam, nu, delta = np.array([2.0, 3.0]), 0.25, 0.3
    program: Any = SimpleNamespace(
        merged=matrix, columns=np.tile(matrix, 2), law=ends.ravel(), delta=delta
    )
    ratio = find_ratio_by_newton(program, np.append(lam, nu), 50.0)
    mass = nu
    for y in range(3):
        mass += max(
            max(0.0, *(q + lam[x] * (matrix[x, y] - ratio * q) for x in range(2))) - nu * q
            for q in ends[:, y]
        )
    assert 1 < ratio < 50
    assert mass == pytest.approx(delta, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_multipliers_of_a_closed_letter_are_the_least_that_change_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    law = random.dirichlet(np.ones(4))
    gains = np.vstack([random.normal(size=(1, 4)), -random.random((1, 4)) - 0.1])
    closed = np.array([False, True])
    lam = set_closed_multipliers(law, gains, np.array([0.7, 0.0]), closed)
    others = np.maximum(0.0, law + lam[0] * gains[0])
    assert lam[0] == 0.7
    assert (law + lam[1] * gains[1] <= others + 1e-15).all()
    assert (law + 0.999 * lam[1] * gains[1] > others).any()


def dual_mass(law: FloatArray, matrix: FloatArray, lam: FloatArray, ratio: float) -> float:
    gains = matrix - ratio * law
    return float(np.maximum(0.0, (law + lam[:, None] * gains).max(axis=0)).sum())


@pytest.mark.parametrize("ratio", [1.3, 2.5, 3.3, 4.0])
def test_a_program_at_a_ratio_has_its_mass_and_multipliers_that_prove_it(ratio: float) -> None:
    """At a letter's largest ratio, 4 here, its outcome counts as yet."""
    delta = 0.2
    program = envelope(QUARTERS, MATRIX, delta)
    found = _RatioFeasibility(program, 1e-9).solve_at(ratio, NO_DEADLINE)
    mass = 0.1 if ratio == 4.0 else most_mass(np.array(QUARTERS), MATRIX, ratio)
    assert found.infeasibility == pytest.approx(1 - mass / delta, abs=1e-8)
    assert found.multipliers is not None
    proved = dual_mass(program.law, program.merged, found.multipliers, ratio * (1 + 1e-9))
    assert proved == pytest.approx(mass, abs=1e-6)
    for x in np.flatnonzero(program.max_ratios < ratio):  # those of closed letters are the least
        less = found.multipliers.copy()
        less[x] *= 1 - 1e-3
        assert dual_mass(program.law, program.merged, less, ratio) > proved + 1e-6


def test_past_the_largest_ratio_of_a_letter_its_outcome_is_nothing() -> None:
    family = _RatioFeasibility(envelope(QUARTERS, MATRIX, 0.2), 1e-9)
    assert family.solve_at(4.0 * (1 + 1e-9), NO_DEADLINE).infeasibility == 1.0


def test_multipliers_go_on_along_their_line_and_none_of_a_letter_is_below_zero() -> None:
    family = _RatioFeasibility(envelope(QUARTERS, MATRIX, 0.2), 1e-9)
    now, then = np.array([3.0, 1.0, 1.0, 1.0, -1.0]), np.array([1.0, 2.0, 2.0, 1.0, 0.0])
    ahead = family.extrapolate(now, then, 2.0)
    assert ahead is not None
    assert ahead.tolist() == [7.0, 0.0, 0.0, 1.0, -3.0]


@pytest.mark.parametrize("failure", [False, True])
def test_all_linear_programs_over_a_set_are_counted(
    monkeypatch: pytest.MonkeyPatch, failure: bool
) -> None:
    """Those of single priors, too."""
    solved: list[float] = []
    run = RatioPrograms.solve_at

    def count(self: RatioPrograms, ratio: float, *rest: Any) -> Any:
        solved.append(ratio)
        return run(self, ratio, *rest)

    monkeypatch.setattr(RatioPrograms, "solve_at", count)
    random = np.random.default_rng(3)
    over = ConvexHull(random.dirichlet(np.full(4, 5.0), 2).tolist())
    matrix, prior = random.dirichlet(np.ones(5), 4), np.full(4, 0.25)
    if failure:
        counted = solve(failure_after_processing(prior, matrix, 0.2, over=over)).iterations
    else:
        counted = solve(envelope(prior, matrix, 0.3, over=over)).iterations
    assert len(solved) > 2
    assert counted == len(solved)


def test_multipliers_of_letters_are_padded_for_the_sum_of_a_set() -> None:
    matrix = np.array([[0.7, 0.3], [0.1, 0.9]])
    alone = envelope([0.5, 0.5], matrix, 0.3)
    over = envelope([0.5, 0.5], matrix, 0.3, over=ConvexHull([[0.6, 0.4], [0.4, 0.6]]))
    assert alone.pad_multipliers(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert over.pad_multipliers(np.array([1.0, 2.0])).tolist() == [1.0, 2.0, 0.0]
    assert over.pad_multipliers(np.array([1.0, 2.0, 3.0])).tolist() == [1.0, 2.0, 3.0]


def test_a_prior_without_a_letter_is_moved_towards_the_middle() -> None:
    over = ConvexHull([[1.0, 0.0], [0.4, 0.6]])
    program = envelope([0.5, 0.5], np.array([[0.7, 0.3], [0.1, 0.9]]), 0.3, over=over)
    priors = sorted(float(one.prior.pmf[1]) for one in program.single_prior_programs)
    # the middle of both ends has 0.3 of it
    assert priors == pytest.approx([0.3e-12, 0.3, 0.6], rel=1e-9)
