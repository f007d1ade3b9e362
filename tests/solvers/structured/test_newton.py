"""Newton's steps of a design in column blocks: where they lead, in both orders and both precisions."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.bands import KINDS, bounded
from oracles.blocks import WIDE, wide
from oracles.designs import random_prior

from pmlopt import ExpectedGain, Prior, design
from pmlopt.solvers.structured import interior_point
from pmlopt.solvers.structured import newton as newton_module
from pmlopt.solvers.structured.block_program import BlockLP, SideConstraints
from pmlopt.solvers.structured.factors import (
    factor_cholesky,
    factor_of_squares,
    solve_factored,
    substitute_forward,
)
from pmlopt.solvers.structured.interior_point import GapGoal, _step_once, follow_central_path
from pmlopt.solvers.structured.iterates import (
    Iterate,
    build_start,
    to_double_point,
    to_single_point,
)
from pmlopt.solvers.structured.newton import NewtonSystem, NewtonSystemByOutputs

ALL_KINDS = (*KINDS, *WIDE)
FEW_KINDS = ("pml", "ball", "box", *WIDE)


def task_at(kind: str, rng: np.random.Generator, n: int, m: int) -> BlockLP:
    prior = Prior(random_prior(rng, n))
    epsilon = float(rng.uniform(0.1, 3))
    privacy = (
        wide(kind, prior, rng, epsilon) if kind in WIDE else bounded(kind, prior, rng).at(epsilon)
    )
    task = design(prior, privacy, ExpectedGain(rng.normal(size=(n, m)))).build_block_lp()
    assert task is not None
    return task


@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize("order", [NewtonSystem, NewtonSystemByOutputs])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_thirty_steps_stay_strictly_inside_and_close_the_gap(
    kind: str, order: type[NewtonSystem], is_centred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To a billionth: steps that were not those of the whole system would take more, or end before."""
    if is_centred:  # as in large systems
        monkeypatch.setattr(interior_point, "MIN_CENTRED_ORDER", 0)
    small = (2, 1) if kind in KINDS else (3, 2)
    for shape in ((6, 4), small):
        task = task_at(kind, np.random.default_rng(9), *shape)
        point = build_start(task)
        first, steps = point.duality_gap, 0
        while point.duality_gap > 1e-9 * first:
            point, _ = _step_once(order(task, point))
            assert all((part > 0).all() for part in (*point.slacks.values(), *point.duals.values()))
            steps += 1
            assert steps < 30
        matrix, _ = point.masked_parts(task.allowed, task.hinge_mask)
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-8)


def test_a_point_that_is_not_a_number_is_refused() -> None:
    task = task_at("pml", np.random.default_rng(10), 3, 3)
    at = build_start(task)
    with pytest.raises(ArithmeticError, match="positive definite"):
        NewtonSystem(task, replace(at, duals={**at.duals, "above": np.full((3, 3), np.nan)}))


# ---------------------------------------------------------------- single precision


def least(task: BlockLP, entries: int, monkeypatch: pytest.MonkeyPatch) -> float:
    """What the method reaches where larger matrices than this are begun in single precision."""
    monkeypatch.setattr(interior_point, "MIN_SINGLE_PRECISION_ENTRIES", entries)
    ending = follow_central_path(
        task, build_start(task), GapGoal(lambda point: point.duality_gap, 1e-7)
    )
    assert ending.gap < 1e-8
    matrix, _ = ending.point.masked_parts(task.allowed, task.hinge_mask)
    assert matrix.dtype == np.float64
    return float((task.costs * matrix).sum())


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_both_beginnings_lead_to_the_same_cost(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at(kind, np.random.default_rng([8, 0]), 7, 6)
    assert least(task, 0, monkeypatch) == pytest.approx(least(task, 10_000, monkeypatch), abs=1e-7)


def test_rounding_that_takes_over_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no room for rounding the rest is done in double precision, to the same end."""
    task = task_at("pml", np.random.default_rng(5), 7, 6)
    expected = least(task, 10_000, monkeypatch)
    monkeypatch.setattr(interior_point, "SINGLE_PRECISION_RESIDUALS", (0.0, 0.0))
    assert least(task, 0, monkeypatch) == pytest.approx(expected, abs=1e-7)


def test_what_single_precision_spoils_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    task = task_at("pml", np.random.default_rng(6), 7, 6)
    expected = least(task, 10_000, monkeypatch)

    def spoiled(task: BlockLP, point: Iterate) -> Iterate:
        found = to_double_point(task, point)
        found.slacks["above"][0] *= 1e-30
        return found

    monkeypatch.setattr(interior_point, "to_double_point", spoiled)
    assert least(task, 0, monkeypatch) == pytest.approx(expected, abs=1e-7)


# ---------------------------------------------------------------- small systems


def test_rows_that_differ_by_many_digits_keep_the_small_ones() -> None:
    rows = np.array([[[1e8], [1e8]], [[0.0], [1e-8]]])  # formed, the square would lose the second
    assert factor_of_squares(rows)[1, 1, 0] == pytest.approx(1e-8, rel=1e-6)


# ---------------------------------------------------------------- one step, and one point


def at_point(newton: NewtonSystem, point: Iterate) -> NewtonSystem:
    """What is missed of the equations at a point, strictly inside or not."""
    there = copy(newton)
    there.at = point
    there._compute_residuals()
    return there


@pytest.mark.parametrize("order", [NewtonSystem, NewtonSystemByOutputs])
@pytest.mark.parametrize("kind", FEW_KINDS)
def test_a_whole_step_solves_the_equations_to_first_order(
    kind: str, order: type[NewtonSystem], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The equations are linear but for the products, and refinement could hide a mistake."""
    monkeypatch.setattr(newton_module, "REFINEMENTS", 0)
    task = task_at(kind, np.random.default_rng(9), 5, 3)
    if kind == "pml":
        task = replace(
            task,
            border=SideConstraints.from_matrices(
                np.eye(15)[[0, 7]].reshape(2, 5, 3), np.array([0.1, 0.3])
            ),
        )
    point = _step_once(order(task, build_start(task)))[0]
    newton = order(task, point)
    rng = np.random.default_rng(1)
    some = {
        name: part * rng.uniform(-1, 1, part.shape) for name, part in point.slack_products.items()
    }
    for want in (None, some):
        step = newton.compute_step(
            None if want is None else {name: part.copy() for name, part in want.items()}
        )
        whole = at_point(newton, point.move_along(step, 1.0, 1.0))
        for missed in (
            whole.rows,
            whole.means,
            whole.stationary_u,
            *([whole.stationary_r] if newton.hinge else ()),
        ):
            assert np.abs(missed).max(initial=0.0) < 1e-8
        kept = True if task.allowed is None else task.allowed
        assert np.abs(whole.stationary * kept).max() < 1e-8
        for name, slack in point.slacks.items():
            change = slack * step.duals[name] + point.duals[name] * step.slacks[name]
            there = {"excess": task.hinge_mask, "cut": task.hinge_mask}.get(name, task.allowed)
            inside = True if there is None or slack.shape != task.costs.shape else there
            wanted = -point.slack_products[name] if want is None else want[name]
            assert change * inside == pytest.approx(wanted * inside, abs=1e-9)
        lengths = point.max_step_lengths(step)
        assert point.move_along(step, *lengths).duality_gap == pytest.approx(
            point.duality_gap_after(step, *lengths), rel=1e-9
        )
        for length, moves, parts in (
            (lengths[0], step.slacks, point.slacks),
            (lengths[1], step.duals, point.duals),
        ):
            least = min(float((parts[name] + length * moves[name]).min()) for name in parts)
            longer = min(float((parts[name] + 1.01 * length * moves[name]).min()) for name in parts)
            assert least >= -1e-12
            assert length == 1.0 or longer < 1e-12


@pytest.mark.parametrize("kind", FEW_KINDS)
def test_the_centre_has_the_distances_that_its_slacks_stand_for(kind: str) -> None:
    task = task_at(kind, np.random.default_rng(9), 5, 3)
    point, block = build_start(task), task.block
    matrix, excess = point.masked_parts(task.allowed, task.hinge_mask)
    there, hinged = (
        np.ones((5, 3), bool) if mask is None else mask for mask in (task.allowed, task.hinge_mask)
    )
    ends = {
        "above": matrix - block.lower @ point.scalars,
        "below": block.upper @ point.scalars - matrix,
    }
    for name in ("above", "below")[: 1 + block.has_cap]:
        assert point.slacks[name][there] == pytest.approx(ends[name][there])
    if block.hinge is not None and excess is not None:
        over = block.hinge.sign * (matrix - block.hinge.threshold_coefficients.T @ point.scalars)
        assert point.slacks["cut"][hinged] == pytest.approx((excess - over)[hinged])
    assert all((part > 0).all() for part in (*point.slacks.values(), *point.duals.values()))
    worth = task.reduced_costs(point.rows, point.means) + (
        point.duals["below"] if block.has_cap else 0.0
    )
    size = point.duals["above"] - worth
    assert (
        size[there] > -1e-12
    ).all()  # each entry's cost is met, the more by what the hinge takes
    taken = 0.0 if block.hinge is None else block.hinge.sign * point.duals["cut"]
    assert NewtonSystem(task, point).stationary[there] == pytest.approx(
        (size - taken)[there], abs=1e-9
    )


@pytest.mark.parametrize("kind", FEW_KINDS)
def test_a_point_in_single_precision_has_slacks_that_fit_again(kind: str) -> None:
    task = task_at(kind, np.random.default_rng(9), 5, 3)
    point = build_start(task)
    found, block = to_double_point(task, to_single_point(point)), task.block
    there, hinged = (
        np.ones((5, 3), bool) if mask is None else mask for mask in (task.allowed, task.hinge_mask)
    )
    assert found.scalars == pytest.approx(point.scalars, rel=1e-5)
    assert found.low == pytest.approx(block.lower @ found.scalars, abs=1e-15)
    if block.has_cap:
        width = (block.upper - block.lower) @ found.scalars
        assert (found.slacks["above"] + found.slacks["below"])[there] == pytest.approx(
            np.broadcast_to(width, there.shape)[there], abs=1e-15
        )
    if block.hinge is not None:
        over = block.hinge.sign * (
            found.mechanism - block.hinge.threshold_coefficients.T @ found.scalars
        )
        assert (found.slacks["excess"] - found.slacks["cut"])[hinged] == pytest.approx(
            over[hinged], abs=1e-15
        )
    for name, part in point.slacks.items():
        assert found.slacks[name] == pytest.approx(part, abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_small_systems_are_those_of_numpy(size: int) -> None:
    rng = np.random.default_rng(size)
    rows, right = rng.normal(size=(5, size, 4)), rng.normal(size=(size, 4))
    squares = np.einsum("nkm,nlm->klm", rows, rows)
    factor = factor_cholesky(squares)
    for place in range(4):
        expected = np.linalg.cholesky(squares[:, :, place])
        assert factor[:, :, place] == pytest.approx(expected)
        assert np.abs(factor_of_squares(rows)[:, :, place]) == pytest.approx(np.abs(expected))
        assert np.array(substitute_forward(factor, list(right)))[:, place] == pytest.approx(
            np.linalg.solve(expected, right[:, place])
        )
        found = solve_factored(factor, right)[:, place]
        assert squares[:, :, place] @ found == pytest.approx(right[:, place])


@pytest.mark.parametrize(
    ("means", "scalars", "outputs", "rows", "added", "by_outputs"),
    [
        (1, 2, 4, 13, 0, True),
        (1, 2, 4, 12, 0, False),
        (1, 1, 3, 10, 3, True),
        (1, 1, 3, 10, 4, False),
    ],
)
def test_columns_are_eliminated_last_where_they_have_fewer_numbers_than_the_letters(
    monkeypatch: pytest.MonkeyPatch,
    means: int, scalars: int, outputs: int, rows: int, added: int, by_outputs: bool,
) -> None:  # fmt: skip
    """For each output those of its means and its scalars; added rows count as well."""
    monkeypatch.setattr(newton_module, "NewtonSystem", lambda *_: False)
    monkeypatch.setattr(newton_module, "NewtonSystemByOutputs", lambda *_: True)
    task: Any = SimpleNamespace(
        row_offsets=(rows, rows, rows + added), column_means=np.zeros((means, 1)),
        block=SimpleNamespace(interior_scalars=np.zeros(scalars)), costs=np.zeros((9, outputs)),
    )  # fmt: skip
    at: Any = None
    found: Any = newton_module.build_newton_system(task, at)
    assert found is by_outputs
