"""What solvers that were stopped, or that do not see a rare letter, hand back."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt import LDP, PML, ExpectedLoss, Mechanism, Prior, design, solve
from pmlopt.errors import MechanismError, PrivacyError, SolverOptionError
from pmlopt.model.utility import hamming
from pmlopt.programs import Status

RARE = Prior([0.7 - 1e-8, 0.3, 1e-8])


@pytest.mark.parametrize(
    ("solver", "limit"), [("scs", {"max_iters": 1}), ("osqp", {"max_iter": 1})]
)
def test_a_solver_stopped_at_once_leaves_a_mechanism_and_no_claim(
    solver: str, limit: dict[str, int]
) -> None:
    program = design(Prior([0.5, 0.3, 0.2]), LDP(0.9), ExpectedLoss(hamming))
    best = solve(program)
    found = solve(program, solver, warm_start=False, solver_options=limit)
    assert found.mechanism.matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert found.mechanism.matrix.min() >= 0
    assert found.level <= 0.9
    # the value is at most as far from the optimum as is claimed
    assert abs(found.value - best.value) <= found.gap + best.gap
    assert found.status is not Status.OPTIMAL or found.gap < 1e-6


@pytest.mark.parametrize("solver", ["clarabel", "scs", "osqp", "highs"])
def test_what_an_arbitrary_row_of_a_rare_letter_costs_is_in_the_gap(solver: str) -> None:
    program = design(RARE, PML(1.0), ExpectedLoss(hamming))
    best, found = solve(program), solve(program, solver)
    assert abs(found.value - best.value) <= found.gap + best.gap
    assert found.level <= 1.0


@pytest.mark.parametrize("solver", ["clarabel", "scs", "osqp", "highs", "scipy"])
def test_a_misspelt_option_is_refused(solver: str) -> None:
    program = design(Prior([0.5, 0.3, 0.2]), LDP(0.9), ExpectedLoss(hamming))
    with pytest.raises(SolverOptionError):
        solve(
            program, solver, warm_start=False, solver_options={"primal_feasability_tolerance": 1e-9}
        )


def test_a_row_whose_last_probability_is_wrong_is_refused() -> None:
    """Such a row draws as (0.5, 0.2, 0.3) where the last probability is never read."""
    for last in (0.9, 0.2, 0.3 + 1e-6):
        with pytest.raises(MechanismError, match="sums to"):
            Mechanism([[0.5, 0.2, last], [0.2, 0.3, 0.5]])


def test_a_level_past_the_range_of_floats_is_refused() -> None:
    """Infinity by infinity is no number, and would rule the truth out."""
    program = design(Prior([0.2] * 5), LDP(700.0), ExpectedLoss(hamming))
    assert np.diag(solve(program).mechanism.matrix) == pytest.approx(1.0, abs=1e-9)
    for epsilon in (709.0, 710.0, 1000.0):
        with pytest.raises(PrivacyError, match="no float holds"):
            LDP(epsilon)
