"""Added constraints with tiny or huge coefficients, which solvers drop or refuse."""

from __future__ import annotations

import pytest

from pmlopt import PML, design, solve
from pmlopt.programs.linear.program import LinearDesign


def make_program() -> LinearDesign:
    program = design([0.5, 0.3, 0.2], PML(0.5), "hamming")
    assert isinstance(program, LinearDesign)
    return program


@pytest.mark.parametrize("solver", ["auto", "scipy", "highs"])
@pytest.mark.parametrize("unit", [1e-8, 1e-12, 1e-300, 1e200])
def test_a_constraint_is_the_same_in_every_unit(solver: str, unit: float) -> None:
    program = make_program()
    entry = program.mechanism[2, 2]
    plain = solve(program.with_constraints(own=entry >= 0.3))
    found = solve(program.with_constraints(own=unit * entry >= 0.3 * unit), solver)
    assert found.status == "optimal"
    assert found.value == pytest.approx(plain.value, abs=1e-9)
    assert found.matrix[2, 2] >= 0.3 - 1e-6
    assert found.certificate.verify()


@pytest.mark.parametrize("solver", ["auto", "scipy", "highs"])
def test_a_huge_coefficient_is_no_infeasible_program(solver: str) -> None:
    """An entry of 1e-16 is enough for the constraint, so that it costs nothing."""
    program = make_program()
    entries = program.mechanism
    own = entries[2, 2] + 1e15 * entries[2, 1] >= 0.1
    found = solve(program.with_constraints(own=own), solver)
    assert found.status == "optimal"
    assert found.value == pytest.approx(solve(program).value, abs=1e-9)
