"""Options of SciPy's solvers, iterations of both kinds, and columns that count as one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.errors import SolverOptionError
from pmlopt.solvers import cvxpy_interface, highs
from pmlopt.solvers.parametric_program import _make_column_keys
from pmlopt.solvers.solver_result import make_options


def test_scipy_takes_its_options_in_one_dictionary() -> None:
    own = {"scipy_options": {"presolve": False}}
    settings = cvxpy_interface._build_settings("SCIPY", make_options(None, 1e-9, own), {})
    assert settings["scipy_options"]["presolve"] is False
    with pytest.raises(SolverOptionError, match="and not presolve"):
        cvxpy_interface._build_settings("SCIPY", make_options(None, 1e-9, {"presolve": 0}), {})


def test_columns_that_differ_by_the_sign_of_zero_or_by_rounding_are_one() -> None:
    lifts = np.array([[0.0, -0.0, -1e-14, 1.0], [1.0, 1.0, 1.0 + 1e-14, 0.0]])
    first, *others = _make_column_keys(lifts)
    assert others[:2] == [first, first]
    assert others[2] != first


@pytest.mark.parametrize(("by_simplex", "by_interior_point", "count"), [(7, 5, 12), (-1, 5, 5)])
def test_iterations_of_both_kinds_are_counted(
    by_simplex: int, by_interior_point: int, count: int
) -> None:
    """HiGHS reports -1 of a kind that did not run."""
    info = SimpleNamespace(
        simplex_iteration_count=by_simplex, ipm_iteration_count=by_interior_point
    )
    solver: Any = SimpleNamespace(
        run=lambda: None,
        getModelStatus=lambda: None,
        getInfoValue=lambda name: (None, getattr(info, name)),
        getSolution=lambda: SimpleNamespace(value_valid=False, dual_valid=False),
        modelStatusToString=lambda status: "none",
    )
    assert highs.run_loaded(solver, False, 0.0, 0.0).iterations == count
