"""How cells are bounded, split and kept: limits, tolerances, steps and trees that are not whole."""

from __future__ import annotations

import math
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt.programs.record_leakage import cell_relaxation, proof
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.branch_and_bound import CellSearch
from pmlopt.programs.record_leakage.cell_relaxation import (
    CellBounds,
    LeakageRelaxation,
    _CellIterates,
)
from pmlopt.programs.record_leakage.proof import CellTree, _CellTreeCheck, is_tree_valid
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

ROWS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])
COUNTS = np.array([[3.0, 2.0, 1.0], [1.0, 4.0, 2.0]])


def make_adversary(entropy: float = 1.9) -> BoundedAdversary:
    return BoundedAdversary(ROWS, np.log(COUNTS), entropy, math.log(COUNTS.sum()))


def make_state(part: proof.CellPart = "laws") -> _CellIterates:
    relaxation = LeakageRelaxation(make_adversary(), part)
    return _CellIterates(relaxation, *relaxation.build_root())


# the search


@pytest.mark.parametrize(("classes", "splits"), [(9, True), (10, False)])
def test_cells_of_more_than_24_dimensions_are_not_split(classes: int, splits: bool) -> None:
    """Three simplices of nine corners have 24."""
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=classes)
    adversary = BoundedAdversary(rows, np.zeros((3, classes)), 1.0, math.log(3 * classes))
    search = CellSearch(adversary)
    assert search.relaxation.part == "classes"
    done = search.run(0.0, 1e-7, 1, NO_DEADLINE)
    many = f"{3 * (classes - 1)} dimensions are too many to split"
    assert done.startswith("chords on simplices" if splits else many)


def test_no_more_cells_are_bounded_than_is_allowed() -> None:
    for nodes in (1, 3, 5, 7):
        search = CellSearch(make_adversary())
        search.run(0.0, 1e-9, nodes, NO_DEADLINE)
        assert search.nodes == nodes


def test_a_bound_is_enough_within_the_tolerance_of_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: list[float] = []

    def bound(
        search: CellSearch, corners: FloatArray, start: FloatArray, enough: float, *_: Any
    ) -> CellBounds:
        wanted.append(enough)
        search.nodes += len(corners)
        shape = len(corners), *search.relaxation.shape
        return CellBounds(
            np.full(len(corners), 2.0 / len(wanted)),
            start,
            np.zeros(shape),
            np.ones((len(corners), *COUNTS.shape)),
            1,
        )

    monkeypatch.setattr(CellSearch, "_bound_cells", bound)
    search = CellSearch(make_adversary())
    search.run(0.9, 0.05, 9, NO_DEADLINE)
    # the two parts of the first cell have a bound of one, their four of two thirds
    assert wanted == pytest.approx([0.95, 0.95, 0.95])
    assert search.nodes == 7


def test_a_cell_whose_parts_were_left_early_keeps_its_own_bound_where_that_is_lower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = CellSearch(make_adversary())
    search.run(0.0, 1e-9, 3, NO_DEADLINE)
    chosen = sorted(search._heap)
    (first, second), upper = (-bound for bound, _ in chosen), search.upper_bound
    search._heap = []
    assert second < first
    bounds = np.array([first - 1e-3, first - 2e-3, second - 1e-3, second + 1e-3])
    real = search.relaxation.minimize_bounds

    def bound(corners: FloatArray, start: FloatArray, *_: Any) -> CellBounds:
        found = real(corners, start, 0.0, NO_DEADLINE)
        return CellBounds(bounds, found.multipliers, found.majorant, found.joint, found.steps)

    monkeypatch.setattr(LeakageRelaxation, "minimize_bounds", lambda self, *parts: bound(*parts))
    search._split_cells(chosen, 0.0, Deadline.after(-1.0))
    assert search._stuck_bound == second
    assert sorted(-one for one, _ in search._heap) == pytest.approx([first - 2e-3, first - 1e-3])
    assert search.upper_bound == pytest.approx(max(first - 1e-3, second))
    assert upper >= search.upper_bound


def test_an_edge_without_a_width_is_not_split() -> None:
    """A law at a corner bends along none of the edges; the first one that is not a point is taken."""
    search = CellSearch(make_adversary())
    search.__dict__["relaxation"] = LeakageRelaxation(make_adversary(), "laws")
    corners = np.tile(np.eye(3), (1, 2, 1, 1))
    corners[0, :, 1] = [1 - 1e-13, 1e-13, 0.0]
    monotone = SimpleNamespace(
        evaluate_phi=lambda points: np.zeros(points.shape[:-1]),
        compute_parts=lambda joint: np.array([[[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]]),
    )
    search.__dict__["relaxation"] = monotone
    _, ends, _ = search._choose_splits(corners, np.zeros((1, 2, 3)))
    assert ends.tolist() == [[0, 2]]


# the steps on a cell


def test_a_bound_below_the_target_ends_after_a_step() -> None:
    relaxation = LeakageRelaxation(make_adversary(), "laws")
    assert relaxation.minimize_bounds(*relaxation.build_root(), 10.0).steps == 1


def test_a_cell_that_takes_longer_has_the_bound_of_thirty_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    advance = _CellIterates.advance
    monkeypatch.setattr(_CellIterates, "advance", lambda self: advance(self) + 1.0)
    monkeypatch.setattr(cell_relaxation, "MIN_GAIN_SHARE", 0.0)
    relaxation = LeakageRelaxation(make_adversary(), "laws")
    found = relaxation.minimize_bounds(*relaxation.build_root(), -1.0)
    assert found.steps == 30
    assert 0 < found.bound[0] < 1.1


def test_the_diagonal_of_a_newton_step_is_no_less_than_that_of_the_hessian(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = make_state()
    solved: list[FloatArray] = []
    solve = np.linalg.solve

    def recorded(matrix: FloatArray, right: FloatArray) -> Any:
        solved.append(matrix)
        return solve(matrix, right)

    hessian = state.compute_derivatives()[1][0].diagonal().copy()
    hessian[: state.signed] += (state.slack / state.point[:, : state.signed])[0]
    monkeypatch.setattr(np.linalg, "solve", recorded)
    state.advance()
    free = slice(state.signed, None)
    assert (solved[0][0].diagonal()[free] > hessian[free]).all()
    assert solved[0][0].diagonal() == pytest.approx(hessian, rel=1e-9)


def test_a_step_leaves_three_tenths_of_the_price() -> None:
    state = make_state()
    move = np.zeros(state.point.shape)
    move[:, 0] = -10 * state.point[:, 0]
    found = state._search_step_lengths(move, np.array([1e9]), np.zeros(1))
    assert found == pytest.approx([0.07])


def test_a_step_lowers_the_bound_with_the_barrier_by_a_share_of_its_slope() -> None:
    """The barrier is minus the logarithms of what is positive."""
    state = make_state()
    move = np.zeros(state.point.shape)
    move[:, 0] = -0.5 * state.point[:, 0]
    barrier, flat = np.array([1e3]), np.zeros(1)
    assert state._search_step_lengths(move, flat, barrier) == [0.0]
    assert state._search_step_lengths(-move, flat, barrier) == [1.0]
    assert state._search_step_lengths(-move, np.array([-1e9]), barrier) == [0.0]
    # a step that changes nothing is taken, whatever rounding does
    assert state._search_step_lengths(0 * move, flat, flat) == [1.0]


@pytest.mark.parametrize("part", ["posteriors", "laws"])
def test_a_bound_is_raised_by_what_its_majorant_lacks_at_the_corners(
    part: proof.CellPart,
) -> None:
    """The entries of a corner sum to one, and each part of the cell lacks as much."""
    state = make_state(part)
    chosen = np.ones(1, dtype=bool)
    before = state.expand_results(chosen)[2]
    state.majorant = state.majorant - 0.01
    assert state.expand_results(chosen)[2] - before == pytest.approx([0.01 * state.of.shape[0]])


# the proof


def make_tree(parts: int, part: int) -> CellTree:
    """A cell that is split at the place `part` in a tree of so many cells."""
    places = np.zeros(parts, dtype=np.int64)
    splits = np.array([0, *[proof.UNSPLIT_CELL] * (parts - 1)])
    return CellTree(
        "posteriors", splits, places, places + 1, np.full(parts, 0.5), places + part,
        np.ones(parts), np.zeros((parts, 3, 2)), np.zeros((parts, 0)),
    )  # fmt: skip


def as_decimals(rows: FloatArray) -> list[list[Decimal]]:
    return [[Decimal(x) for x in row] for row in rows.tolist()]


def test_a_split_cell_has_both_of_its_parts() -> None:
    for parts, valid in ((3, True), (2, False)):
        tree = make_tree(parts, 1)
        assert is_tree_valid(tree, np.log(COUNTS), 1.9, 9.0, as_decimals(ROWS)) is valid


def test_a_tree_proves_its_bound_but_for_what_decimals_lose(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a price of one and no multipliers the bound is `2 log sum_a sqrt(sum_t c) - b` of one cell."""
    monkeypatch.setattr(proof, "DECIMAL_ATOL", Decimal("0.01"))
    tree = make_tree(1, 0)
    tree.simplex[0] = proof.UNSPLIT_CELL
    value = 2 * math.log(np.sqrt(COUNTS.sum(axis=1)).sum()) - 1.9
    for bound, valid in ((value + 0.011, True), (value + 0.009, False)):
        assert is_tree_valid(tree, np.log(COUNTS), 1.9, bound, as_decimals(ROWS)) is valid


@pytest.mark.parametrize(("apart", "corner"), [(0.5, 0.6), (1e-7, 1.0)])
def test_rows_that_are_nearly_alike_have_the_hull_of_all_laws(apart: float, corner: float) -> None:
    rows = np.array([[0.6, 0.4], [0.6 - apart, 0.4 + apart]])
    tree: Any = SimpleNamespace(of="laws")
    counts: Any = [[Decimal(0), Decimal(0)]] * 2
    check = _CellTreeCheck(tree, counts, Decimal(0), as_decimals(rows))
    for simplex in check.build_root():
        assert float(simplex[0].law[0]) == pytest.approx(corner)
