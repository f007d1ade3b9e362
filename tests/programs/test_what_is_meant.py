"""What people write in place of what a design takes: it is taken, or the error says what to write."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pandas
import polars
import pytest

from pmlopt import PML, MutualInformation, Prior, design, solve, sweep
from pmlopt.errors import PriorError, ProgramError, SolverOptionError, UtilityError
from pmlopt.model.utility import as_utility

PRIOR = [0.5, 0.3, 0.2]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MI", "mutual-information"), ("mutual_information", "mutual-information"), ("Hamming", "hamming"),
        ("Mutual Information", "mutual-information"), ("MSE", "squared"), ("TV", "total-variation"),
    ],
)  # fmt: skip
def test_names_of_utilities_are_read_as_people_write_them(written: str, name: str) -> None:
    assert as_utility(written) == as_utility(name)


def test_mi_is_mutual_information() -> None:
    assert (
        solve(design(PRIOR, PML(0.4), "MI")).value
        == solve(design(PRIOR, PML(0.4), MutualInformation())).value
    )


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3), np.eye(3).tolist(), pandas.DataFrame(np.eye(3)), polars.DataFrame(np.eye(3)),
        {"a": {"b": 1.0}}, np.eye(50),
    ],
    ids=["array", "lists", "pandas", "polars", "mapping", "large"],
)  # fmt: skip
def test_a_bare_matrix_is_neither_gain_nor_loss(matrix: Any) -> None:
    with pytest.raises(
        UtilityError,
        match=r"bare matrix.*ExpectedGain\(\.\.\.\) of a matrix of gains, or ExpectedLoss",
    ) as raised:
        design(PRIOR, PML(0.4), matrix)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize("single", [True, False])
def test_a_constraint_of_cvxpy_needs_the_variable_of_the_program(single: bool) -> None:
    own = cp.Variable((3, 3))[0, 0] <= 0.5
    with pytest.raises(ProgramError, match=r"program.with_constraints\(name="):
        design(PRIOR, PML(0.4), "hamming", constraints=own if single else [own])


OBSERVED: list[tuple[Any, str, str]] = [
    (pandas.Series(["a", "b", "a"]), "from_samples", "from_counts"),
    (pandas.Series(["a", "b"], dtype="category"), "from_samples", "from_counts"),
    (pandas.Series([True, False, True]), "from_samples", "from_counts"),
    (pandas.Series(pandas.date_range("2020", periods=3)), "from_samples", "from_counts"),
    (polars.Series(["a", "b"]), "from_samples", "from_counts"),
    (["a", "b", "a"], "from_samples", "from_counts"),
    (pandas.Series(["a", "b", "a"]).value_counts(), "from_counts", "from_samples"),
    ({"a": 3, "b": 3}, "from_counts", "from_samples"),
    (polars.Series([30, 40, 50]), "from_counts", "from_samples"),
    ([0.25, 0.25], "divide them by their sum", "from_samples"),
]


@pytest.mark.parametrize(("values", "named", "other"), OBSERVED)
def test_a_prior_names_what_its_values_look_like(values: Any, named: str, other: str) -> None:
    with pytest.raises(PriorError, match=named) as raised:
        Prior(values)
    assert other not in str(raised.value)


def test_codes_that_repeat_may_be_either() -> None:
    for codes in ([1, 2, 1, 1], pandas.Series([1, 2, 1, 1]), polars.Series([1, 2, 1, 1])):
        with pytest.raises(PriorError, match=r"from_counts.*from_samples"):
            Prior(codes)


def test_options_of_a_solver_reach_the_points_of_a_sweep() -> None:
    def builder(epsilon: float) -> Any:
        return design(PRIOR, PML(epsilon), "hamming")

    table = sweep(builder, [0.3], solver="scs", solver_options={"eps_abs": 1e-9, "eps_rel": 1e-9})
    assert table.rows[0].solver == "scs"
    # an option that the solver does not know fails at each point, so they are handed on
    strange = sweep(builder, [0.3], solver="scs", solver_options={"no_such_option": 1})
    assert strange.rows[0].status == "failed"
    assert "no_such_option" in str(strange.rows[0].error)
    with pytest.raises(SolverOptionError, match="name it"):
        sweep(builder, [0.3], solver_options={"eps_abs": 1e-9})
