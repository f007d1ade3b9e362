"""Linear programs of which some entries vary with a parameter."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt.solvers.highs import LinearModel, build_columnwise_model, load_model
from pmlopt.solvers.parametric_program import ParametricEntries, ParametricModel
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

ENTRY = ParametricEntries(np.array([0]), np.array([0]), np.array([2.0]), np.array([0.5]))


def model_of(rows: int = 1, columns: int = 1) -> LinearModel:
    """`min <1, x>` subject to `x[0] >= 1` in each row, of which the first has an entry that varies."""
    starts = np.concatenate([[0], np.full(columns, rows)]).astype(np.int32)
    return build_columnwise_model(
        np.ones(columns), (0.0, np.inf), (np.ones(rows), np.full(rows, np.inf)),
        (starts, np.arange(rows, dtype=np.int32), np.ones(rows)),
    )  # fmt: skip


@pytest.mark.parametrize("value", [0.0, 1.0, 6.0])
def test_the_optimum_and_its_derivative_are_those_of_the_formula(value: float) -> None:
    """The least x with `(2 + value / 2) x >= 1`."""
    found = ParametricModel(model_of(), ENTRY).solve_at(value, NO_DEADLINE)
    assert found.optimum == pytest.approx(1 / (2 + value / 2))
    assert found.slope == pytest.approx(-0.5 / (2 + value / 2) ** 2)


def test_a_large_program_is_solved_by_the_simplex_next_to_the_last_value_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, simplex = ParametricModel(model_of(), ENTRY), []
    run = model._run_highs

    def record(by_simplex: bool, deadline: Deadline) -> None:
        simplex.append(by_simplex)
        run(True, deadline)

    monkeypatch.setattr(model, "_run_highs", record)
    model._simplex = False
    for value in (1.0, 1.0009, 1.0001, 1.01, 0.9):
        model.solve_at(value, NO_DEADLINE)
    assert simplex == [False, True, True, False, False]


@pytest.mark.parametrize(("rows", "columns", "most"), [(1, 1, 20_000), (2_000, 1_500, 35_000)])
def test_the_simplex_has_ten_iterations_for_each_row_and_column_of_many(
    rows: int, columns: int, most: int
) -> None:
    solver = ParametricModel(model_of(rows, columns), ENTRY).solver
    assert solver.getOptionValue("simplex_iteration_limit")[1] == most


def test_the_time_of_earlier_solves_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ParametricModel(model_of(), ENTRY)
    monkeypatch.setattr(model.solver, "getRunTime", lambda: 3.0, raising=False)
    model.solve_at(1.0, Deadline(15.0, lambda: 10.0))
    assert model.solver.getOptionValue("time_limit")[1] == 8.0


def test_limits_of_columns_and_rows_are_kept() -> None:
    ends = (-2.0, np.array([3.0, 4.0]))
    starts = np.array([0, 1, 2], dtype=np.int32)
    entries = starts, np.zeros(2, dtype=np.int32), np.array([1.0, -1.0])
    rows = np.array([-5.0]), np.array([6.0])
    model = build_columnwise_model(np.array([1.0, 2.0]), ends, rows, entries)
    assert model.shape == (1, 2)
    kept = load_model(model, {}).getLp()
    assert list(kept.col_lower_) == [-2.0, -2.0]
    assert list(kept.col_upper_) == [3.0, 4.0]
    assert (list(kept.row_lower_), list(kept.row_upper_)) == ([-5.0], [6.0])
    assert (kept.num_row_, kept.num_col_) == (1, 2)
