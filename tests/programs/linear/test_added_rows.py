"""Linear constraints of a person's own in the structured interior point, beside a generic solver."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import LDP, PML, ExpectedGain, ExpectedLoss, L1Ball, Prior, design, solve
from pmlopt.errors import InfeasibleError, SolverUnavailableError
from pmlopt.programs.linear.program import LinearDesign

N = 9
PRIOR = Prior(np.random.default_rng(7).dirichlet(np.ones(N)) * 0.9 + 0.1 / N)
TABLE = np.random.default_rng(8).random((N, N + 1))


def base(kind: str) -> LinearDesign:
    privacy = {"pml": PML(1.0), "ldp": LDP(1.0), "ball": PML(1.0, L1Ball(PRIOR, 0.3)), "loss": PML(1.0)}[kind]
    return design(PRIOR, privacy, (ExpectedLoss if kind == "loss" else ExpectedGain)(TABLE))


CONSTRAINTS: dict[str, Callable[[cp.Variable, cp.Variable], list[cp.Constraint]]] = {
    "an entry at most": lambda matrix, law: [matrix[0, 0] <= 0.05],
    "the law at least": lambda matrix, law: [law[0, 1:6] >= 0.05],
    "equal columns of two letters": lambda matrix, law: [matrix[1, :4] == matrix[2, :4]],
    "an expectation": lambda matrix, law: [cp.sum(cp.multiply(TABLE[::-1], matrix)) >= 0.5 * N],
    "entries at zero": lambda matrix, law: [matrix[:5, 3] == 0, -matrix[6, 0] >= 0, 2 * matrix[7, 1] <= 0],
    "most of a column at zero": lambda matrix, law: [matrix[:8, 2] == 0],
    "all of it": lambda matrix, law: [matrix[0, 1] == 0, law[0, 2] == 0.1, cp.trace(matrix[:, :N]) <= 2],
}


def added(kind: str, name: str) -> LinearDesign:
    program = base(kind)
    rows = CONSTRAINTS[name](program.mechanism, program.variables["output_law"])
    return program.with_constraints(**{f"own_{place}": row for place, row in enumerate(rows)})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, name)
        for kind in ("pml", "loss", "ldp", "ball")
        for name in CONSTRAINTS
        # where the lower end of a column is not zero, a column with a zero has nothing else
        if kind in ("pml", "loss") or name not in ("entries at zero", "most of a column at zero", "all of it")
    ],
)
def test_few_linear_constraints_are_rows_beside(kind: str, name: str) -> None:
    program = added(kind, name)
    found, other = solve(program, "structured"), solve(program, "clarabel")
    assert found.solver == "structured"
    assert found.gap <= 1e-7 * program.scale
    assert found.value == pytest.approx(other.value, abs=2e-7 * program.scale)
    assert found.certificate.verify()
    assert max(found.certificate.residuals.values()) < 1e-7


def refused(program: LinearDesign) -> bool:
    with pytest.raises(SolverUnavailableError, match="linear constraints"):
        solve(program, "structured")
    return True


def test_what_is_not_linear_or_too_many_is_left_to_generic_solvers() -> None:
    program = base("pml")
    matrix, free = program.mechanism, cp.Variable(bounds=[0, 1], name="free")
    assert refused(program.with_constraints(peak=cp.max(matrix) <= 0.9))
    assert refused(program.with_constraints(other=matrix[0, 0] <= free, least=free <= 0.5))
    assert refused(program.with_constraints(many=matrix <= 0.9))
    assert program.with_constraints(few=matrix[0] <= 0.9).added_rows() is None  # N + 1 of them
    assert program.with_constraints(few=matrix[0, :N] <= 0.9).added_rows() is not None


def test_constraints_that_no_mechanism_meets_are_found_by_another_solver() -> None:
    n = 31
    program = design(Prior.uniform(n), PML(0.5), ExpectedGain(np.eye(n)))
    with pytest.raises(InfeasibleError, match="apart"):
        solve(program.with_constraints(apart=cp.trace(program.mechanism) >= 30))
