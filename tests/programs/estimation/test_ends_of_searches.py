"""How searches of estimation end: gaps, steps that gain, and what is left out, at numbers that are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from pmlopt import PML, EstimationError, design
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.columns import BoxFamily
from pmlopt.programs.estimation import bounds, column_generation, interior_point, methods
from pmlopt.programs.estimation.bounds import EstimationObjective, MomentProblem
from pmlopt.programs.estimation.column_generation import generate_columns
from pmlopt.programs.estimation.columns import (
    ColumnSearch,
    _build_box_cone,
    _build_equal_mass_form,
)
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions

ALLOWED = 0.1
OPTIONS = MethodOptions(NO_DEADLINE, ALLOWED)


class Search:
    """A design whose matrices have their error in each entry, and what the search for it called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, errors: list[float], **given: Any) -> None:
        bound, clean, reduced = (given.get(name) for name in ("bound", "clean", "reduced"))
        left, self.calls = iter(errors), list[str]()
        columns = SimpleNamespace(
            is_complete=given.get("listed", True), inner=np.ones((2, 3)), cones=()
        )
        objective = SimpleNamespace(
            trivial_bound=bound,
            compute_bound=lambda *_: bound,
            compute_sensitivities=lambda _: None,
        )
        self.program: Any = SimpleNamespace(
            columns=columns, prior=SimpleNamespace(pmf=np.full(2, 0.5)), objective=objective,
            scale=1.0, max_outputs=None if reduced is None else 2,
            compute_allowed_gap=lambda tolerance: tolerance,
            compute_error=lambda matrix: float(matrix[0, 0]),
        )  # fmt: skip

        def replace(name: str, make: Any) -> None:
            def call(*arguments: Any) -> Any:
                self.calls.append(name)
                return make(*arguments)

            monkeypatch.setattr(column_generation, name, call)

        weights = SimpleNamespace(weights=np.ones(3), iterations=1, multipliers=np.zeros(2))
        replace("_weigh_columns", lambda *_: weights)
        replace("_find_new_columns", lambda *_: np.ones((2, 0)) if listed(columns) else np.eye(2))
        replace("_prove_by_moments", lambda _: given.get("proof"))
        replace("solve_relaxation", lambda *_: None)
        replace("_is_mechanism", lambda _: True)
        replace("_reduce_outputs", lambda *_: np.full((2, 2), reduced))

        def build(inner: FloatArray, weights: FloatArray, noise: float = 0.0) -> FloatArray:
            return np.full(
                (2, 3), (errors[-1] if clean is None else clean) if noise else next(left)
            )

        monkeypatch.setattr(column_generation, "_build_matrix", build)
        monkeypatch.setattr(
            column_generation, "_choose_starting_columns", lambda *_: np.ones((2, 3))
        )

    def run(self) -> Any:
        return generate_columns(self.program, OPTIONS)


def listed(columns: Any) -> bool:
    return bool(columns.is_complete)


@pytest.mark.parametrize(("bound", "priced"), [(0.96, 0), (0.94, 1)])
def test_columns_are_not_priced_at_half_of_the_gap_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch, bound: float, priced: int
) -> None:
    search = Search(monkeypatch, [1.0], bound=bound)
    assert search.run().finished
    assert search.calls.count("_find_new_columns") == priced


def test_without_a_list_a_search_ends_where_the_error_hardly_falls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fall = column_generation.STALLED_DECREASE
    search = Search(monkeypatch, [1.0, 1 - 3 * fall, 1 - 3.5 * fall], listed=False, bound=0.0)
    assert search.run().finished
    assert search.calls.count("_weigh_columns") == 3


@pytest.mark.parametrize(("bound", "relaxed"), [(0.91, False), (0.89, True)])
def test_a_semidefinite_program_is_solved_where_moments_leave_more_than_is_allowed(
    monkeypatch: pytest.MonkeyPatch, bound: float, relaxed: bool
) -> None:
    search = Search(monkeypatch, [1.0, 1.0], listed=False, bound=bound, proof=object())
    search.run()
    assert ("solve_relaxation" in search.calls) is relaxed


@pytest.mark.parametrize(("clean", "taken"), [(1.009, True), (1.011, False)])
def test_rare_outputs_are_left_out_for_a_tenth_of_the_gap(
    monkeypatch: pytest.MonkeyPatch, clean: float, taken: bool
) -> None:
    found = Search(monkeypatch, [1.0], bound=1.0, clean=clean).run().matrix
    assert found[0, 0] == (clean if taken else 1.0)


def test_what_fewer_outputs_cost_is_what_the_error_grows_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Search(monkeypatch, [1.0], bound=1.0, reduced=1.25).run()
    assert found.matrix[0, 0] == 1.25
    assert "the bound on the outputs costs 0.25 of 1" in found.message


# ---------------------------------------------------------------- moments, columns and steps


def test_letter_weights_are_sought_from_their_best_common_scale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And numbers that prove nothing are worth less there than any that were found."""
    p = np.array([0.1, 0.2, 0.3, 0.4])
    workload = np.random.default_rng(0).normal(size=(3, 4))
    cone = _build_box_cone(p, BoxFamily(0.5, 1.6))
    search = MomentProblem(cone, EstimationObjective(p, workload, "A"))
    begun: list[tuple[Any, FloatArray]] = []

    def minimize(function: Any, start: FloatArray, **_: Any) -> SimpleNamespace:
        begun.append((function, start))
        return SimpleNamespace(x=start)

    stub = SimpleNamespace(minimize=minimize, minimize_scalar=minimize_scalar)
    monkeypatch.setattr(bounds, "optimize", stub)
    assert search.maximize_bound() is not None
    [(function, start)] = begun
    assert start - np.log(p) == pytest.approx(np.full(4, start[0] - np.log(p[0])))

    def value(by: float) -> float:
        found = search.solve_at(np.exp(start + by))
        assert found is not None
        return found.value

    best = value(0.0)
    assert best > max(value(-0.1), value(0.1))
    monkeypatch.setattr(MomentProblem, "solve_at", lambda *_: None)
    assert function(start)[0] == pytest.approx(10 * abs(best) + 1e3)


@pytest.mark.parametrize("off", [-1e-12, 0.0, 1e-12])
def test_a_capacity_of_whole_letters_leaves_none_between(off: float) -> None:
    """Up to rounding: twice is the largest entry of half of the letters."""
    p = np.full(4, 0.25)
    box = BoxFamily(0.0, 2.0 * (1 + off))
    rows = np.vstack([np.eye(4), np.eye(4)])
    assert _build_equal_mass_form(p, box, rows) == ()
    assert len(_build_equal_mass_form(p, BoxFamily(0.0, 1.9), rows)) == 1


@pytest.mark.parametrize(("rise", "steps"), [(1e-13, 1), (1e-9, 60)])
def test_a_local_search_ends_at_rises_below_rounding(rise: float, steps: int) -> None:
    moved: list[int] = []

    class Rising(ColumnSearch):
        start_columns = np.ones((2, 3))

        def improve_columns(self, columns: FloatArray, form: FloatArray, pi: FloatArray) -> Any:
            moved.append(len(columns))
            return columns * (1 + rise)

        def to_batch(self, columns: FloatArray) -> Any:
            return columns

    Rising().find_local_maxima(np.zeros((3, 1)), -np.ones(3), NO_DEADLINE)
    assert len(moved) == steps


@pytest.mark.parametrize("off", [0.0, 1e-3])
def test_weights_are_optimal_only_where_they_meet_the_rows(
    monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    """By 1e-12; here no step moves anything, and only the rows differ."""

    class Path:
        def __init__(self, columns: FloatArray, target: FloatArray, *_: Any) -> None:
            self.columns, self.target, self.pi = columns, target, np.zeros(2)
            self.q = np.linalg.solve(columns, target * (1 + off))
            self.z, self.dual_residual = np.zeros(2), np.zeros(2)

        def advance(self) -> bool:
            return True

    monkeypatch.setattr(interior_point, "_CentralPath", Path)
    columns = np.array([[1.5, 0.5], [0.5, 1.5]])
    found = interior_point.optimize_weights(
        columns, np.eye(2), "A", np.full(2, 0.5), 1e-6, NO_DEADLINE
    )
    assert found.has_converged is (off == 0)
    assert found.iterations == (1 if off == 0 else 120)


def test_a_step_counts_where_the_residual_falls_by_a_hundredth_of_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fall of half a hundredth is enough for half of a step."""
    columns = np.array([[1.5, 0.5, 1.0], [0.5, 1.5, 1.0]])
    start, moved = np.array([0.3, 0.2, 0.45]), []
    monkeypatch.setattr(interior_point, "steps_to_boundary", lambda *_: 2.0)
    for fall in (0.9, 0.9949):
        path = interior_point._CentralPath(columns, np.ones(2), np.eye(2), start)
        residuals = iter([1.0])
        monkeypatch.setattr(
            interior_point._CentralPath,
            "_compute_residual",
            lambda *_, left=residuals, fall=fall: next(left, fall),
        )
        assert path.advance()
        moved.append(path.q - start)
    assert moved[1] == pytest.approx(moved[0] / 2)
    assert np.abs(moved[0]).max() > 1e-2


@pytest.mark.parametrize("share", [1.0, 1.01])
def test_equal_weights_are_a_mechanism_where_rows_sum_to_one(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """The six columns of three equal letters that are not constant are in each other's symmetry."""
    program = design(np.full(3, 1 / 3), PML(0.5), EstimationError())
    weights = np.full(7, share / 6)
    weights[0] = 0.0
    certified: list[FloatArray] = []

    def certify(program: Any, matrix: FloatArray, *_: Any) -> Any:
        certified.append(matrix)
        raise FloatingPointError

    monkeypatch.setattr(methods, "build_closed_forms", lambda *_: [])
    monkeypatch.setattr(methods, "optimize", SimpleNamespace(nnls=lambda *_: (weights,)))
    monkeypatch.setattr(methods, "certify_estimation", certify)
    with pytest.raises(MethodError, match="no mechanism by formula"):
        methods._find_first_feasible(program)
    assert [matrix.shape for matrix in certified] == ([(3, 6)] if share == 1 else [])
