"""Newton's step of a design in column blocks, beside the whole system solved in extended precision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from oracles.bands import KINDS, bounded
from oracles.blocks import WIDE, wide
from oracles.designs import FloatArray, random_prior

from pmlopt import ExpectedGain, Prior, design
from pmlopt.solvers.structured.block_program import Border, Task
from pmlopt.solvers.structured.interior_point import _iterate
from pmlopt.solvers.structured.newton import Newton, NewtonByOutputs, newton_at
from pmlopt.solvers.structured.points import Family, Point, centre

Long = NDArray[np.longdouble]

ALL_KINDS = (*KINDS, *WIDE[:6], "border", "short")
"""Those whose unknowns are all there."""


def task_at(kind: str, rng: np.random.Generator, n: int, m: int) -> Task:
    prior = Prior(random_prior(rng, n))
    epsilon = float(rng.uniform(0.1, 3))
    basis = kind if kind in KINDS else "pml"
    privacy = wide(kind, prior, rng, epsilon) if kind in WIDE else bounded(basis, prior, rng).at(epsilon)
    task = design(prior, privacy, ExpectedGain(rng.normal(size=(n, m)))).task()
    assert task is not None
    if kind in ("border", "short"):
        border = Border.of(rng.normal(size=(3, n, m)), rng.normal(size=3), np.array([True, False, False]))
        task = replace(task, border=border, short=kind == "short")
    return task


def point_in(task: Task, rng: np.random.Generator, digits: float) -> Point:
    """Any point strictly inside, its distances and multipliers spread over so many orders of magnitude.

    Its rows need not sum to one, nor its multipliers meet their equations.
    """
    n, m = task.costs.shape
    block = task.block

    def spread(*shape: int) -> FloatArray:
        return np.asarray(10.0 ** rng.uniform(-digits, 0, shape))

    scalars = spread(len(block.inside), m) / m
    low = block.lower @ scalars
    slacks = {"above": spread(n, m)}
    if block.capped:
        width = (block.upper - block.lower) @ scalars
        share = spread(n, m) / 2
        share = np.where(rng.random((n, m)) < 0.5, share, 1 - share)
        slacks = {"above": width * share, "below": width * (1 - share)}
    matrix = slacks["above"] + low
    if block.hinge is not None:
        over = block.hinge.sign * (matrix - block.hinge.threshold(scalars))
        slacks["excess"] = np.maximum(over, 0.0) + spread(n, m) / m
        slacks["cut"] = slacks["excess"] - over
    if block.floored:
        slacks["low"] = low
    if block.loose:
        slacks["spare"] = spread(len(task.mean), m)
    if task.loose.any():
        slacks["coupled"] = spread(int(task.loose.sum()))
    duals = {name: spread(*part.shape) for name, part in slacks.items()}
    means, rows = rng.normal(size=(len(task.mean), m)), rng.normal(size=task.places[2])
    if block.loose:
        means = duals["spare"]
    if task.loose.any():
        rows[task.loose] = task.signs[task.loose] * duals["coupled"]
    return Point(slacks, duals, low, scalars, means, rows)


@dataclass(frozen=True, eq=False)
class Conditions:
    """The optimality conditions as one function of one vector.

    The Lagrangian is `<C, P> - y'(A(P, r, u) - b - s) - sum z (weights'P - costs'r - mean'u - t)` less each
    multiplier times its slack, with the slacks of the entries written out in P, r and u.
    """

    task: Task
    at: Point

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The unknowns, in the order in which they are stacked."""
        found: dict[str, tuple[int, ...]] = {"P": self.task.costs.shape, "u": self.at.scalars.shape}
        found |= {"y": self.at.rows.shape, "z": self.at.means.shape}
        if self.task.block.hinge is not None:
            found["r"] = self.task.costs.shape
        found |= {f"dual {name}": part.shape for name, part in self.at.duals.items()}
        return found | {
            name: self.at.slacks[name].shape for name in ("spare", "coupled") if name in self.at.slacks
        }

    def parts(self, vector: Long) -> dict[str, Long]:
        found, first = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            found[name] = vector[first : first + size].reshape(shape)
            first += size
        assert first == len(vector)
        return found

    def slacks(self, part: dict[str, Long]) -> dict[str, Long]:
        """What is positive, from the unknowns."""
        block, matrix, u = self.task.block, part["P"], part["u"]
        found = {"above": matrix - block.lower @ u}
        if block.capped:
            found["below"] = block.upper @ u - matrix
        if block.hinge is not None:
            found["excess"] = part["r"]
            found["cut"] = part["r"] - block.hinge.sign * (matrix - block.hinge.threshold(u))
        if block.floored:
            found["low"] = block.lower @ u
        return found | {name: part[name] for name in ("spare", "coupled") if name in part}

    def equations(self, part: dict[str, Long]) -> tuple[Long, Long]:
        """What is left of the coupling rows and of the rows of the columns."""
        task, block, matrix = self.task, self.task.block, part["P"]
        rows = [matrix.sum(axis=1)]
        if block.hinge is not None and block.hinge.budget is not None:
            rows.append(-part["r"].sum(axis=1))
        if task.border is not None:
            rows.append(task.border.rows @ matrix.ravel())
        if block.total is not None:
            rows.append(-part["u"][:1].sum(axis=1))
        left = np.concatenate(rows) - task.bounds
        if "coupled" in part:
            left[task.loose] -= task.signs[task.loose] * part["coupled"]
        means = np.zeros_like(part["z"])
        if block.weights is not None and block.mean is not None:
            means = block.weights @ matrix - block.mean @ part["u"]
            if block.hinge is not None and block.hinge.costs is not None:
                means = means - block.hinge.costs @ part["r"]
            if block.loose:
                means = means - part["spare"]
        return np.asarray(left, dtype=np.longdouble), np.asarray(means, dtype=np.longdouble)

    def left(  # noqa: C901
        self, vector: Long
    ) -> Long:
        """What is left of the equations, and the slopes of the Lagrangian in what is no multiplier."""
        task, block, part = self.task, self.task.block, self.parts(vector)
        dual = {name: part[f"dual {name}"] for name in self.at.duals}
        sums, rest = part["y"][: len(task.costs)], list(part["y"][len(task.costs) :])
        budgets = [rest.pop(0) for _ in sums] if task.budget is not None else []
        in_p = task.costs - sums[:, None] - dual["above"]
        in_u = np.outer(block.lower, dual["above"].sum(axis=0))
        if block.capped:
            in_p = in_p + dual["below"]
            in_u = in_u - np.outer(block.upper, dual["below"].sum(axis=0))
        if block.floored:
            in_u = in_u - np.outer(block.lower, dual["low"])
        if block.weights is not None and block.mean is not None:
            in_p = in_p - block.weights.T @ part["z"]
            in_u = in_u + block.mean.T @ part["z"]
        slopes = []
        if block.hinge is not None:
            in_p = in_p + block.hinge.sign * dual["cut"]
            in_u = in_u - block.hinge.sign * block.hinge.pull(dual["cut"])
            in_r = -dual["excess"] - dual["cut"]
            if block.hinge.costs is not None:
                in_r = in_r + block.hinge.costs.T @ part["z"]
            slopes.append(in_r + np.array(budgets)[:, None] if budgets else in_r)
        if task.border is not None:
            for matrix in task.border.rows.toarray().reshape(-1, *task.costs.shape):
                in_p = in_p - rest.pop(0) * matrix
        if block.total is not None:
            in_u[0] += rest.pop(0)
        if "spare" in part:
            slopes.append(part["z"] - dual["spare"])
        if "coupled" in part:
            slopes.append(task.signs[task.loose] * part["y"][task.loose] - dual["coupled"])
        return np.concatenate([np.ravel(item) for item in (in_p, in_u, *slopes, *self.equations(part))])

    def products(self, vector: Long) -> Long:
        """The complementary products."""
        part = self.parts(vector)
        return np.concatenate(
            [np.ravel(part[f"dual {name}"] * slack) for name, slack in self.slacks(part).items()]
        )

    def stacked(self, at: Point) -> Long:
        """A point, or a step, as one vector."""
        slacks, duals = dict(at.slacks), at.duals
        values = [slacks["above"] + at.low, at.scalars, at.rows, at.means]
        values += [slacks["excess"]] if "excess" in slacks else []
        values += [*duals.values()] + [slacks[name] for name in ("spare", "coupled") if name in slacks]
        return np.concatenate([part.ravel() for part in values]).astype(np.longdouble)

    def step(self, at: Point, wanted: Family) -> Long:
        """The solution of the whole system at a point; differences of quadratic functions are derivatives."""
        here = self.stacked(at)
        columns = []
        for place, size in enumerate(np.where(here == 0, 1, np.abs(here))):
            move = np.zeros_like(here)
            move[place] = size
            rates = [(f(here + move) - f(here - move)) / (2 * size) for f in (self.left, self.products)]
            columns.append(np.concatenate(rates))
        change = [np.ravel(wanted[name]) for name in self.slacks(self.parts(here))]
        right = np.concatenate([-self.left(here), *change])
        return solved(np.array(columns).T, right.astype(np.longdouble))


def solved(system: Long, right: Long) -> Long:
    """Gauss with the largest pivot of the row-scaled system, in extended precision."""
    sizes = np.abs(system).max(axis=1, keepdims=True)
    work = np.hstack([system, right[:, None]]) / sizes
    n = len(right)
    for step in range(n):
        pivot = step + int(np.abs(work[step:, step]).argmax())
        work[[step, pivot]] = work[[pivot, step]]
        work[step] /= work[step, step]
        others = np.arange(n) != step
        work[others] -= work[others, step][:, None] * work[step]
    return np.asarray(work[:, -1])


def any_products(at: Point, rng: np.random.Generator) -> Family:
    return {name: rng.normal(size=part.shape) for name, part in at.slacks.items()}


def worst_error(task: Task, at: Point, wanted: Family) -> float:
    """How far a part of a step is off the solution of the whole system, in units of its largest entry.

    That of the worst part, in both orders of elimination.
    """
    conditions = Conditions(task, at)
    expected = conditions.parts(conditions.step(at, wanted))
    steps = [order(task, at).step(dict(wanted)) for order in (Newton, NewtonByOutputs)]
    return max(
        float(np.abs(conditions.parts(conditions.stacked(step))[name] - there).max() / np.abs(there).max())
        for step in steps
        for name, there in expected.items()
        if there.size
    )


# Two variables that are 1e-d to 1 have ratios over 2 d digits, and eliminations square them.
@pytest.mark.parametrize(("digits", "accuracy"), [(1.0, 1e-9), (3.0, 1e-9), (5.0, 1e-6)])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_step_solves_the_whole_system(kind: str, digits: float, accuracy: float) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        task = task_at(kind, rng, int(rng.integers(3, 5)), int(rng.integers(2, 5)))
        at = point_in(task, rng, digits)
        assert worst_error(task, at, any_products(at, rng)) < accuracy


@pytest.mark.parametrize("kind", KINDS)
def test_one_letter_or_one_output_is_no_exception(kind: str) -> None:
    rng = np.random.default_rng(3)
    for n, m in [(2, 1), (4, 1)] if kind in ("pml", "lip", "other centre") else [(1, 3), (1, 1), (4, 1)]:
        task = task_at(kind, rng, n, m)
        at = point_in(task, rng, 1.0)
        assert worst_error(task, at, any_products(at, rng)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_centre_is_a_point_strictly_inside_that_meets_the_equations(kind: str) -> None:
    rng = np.random.default_rng(8)
    task = task_at(kind, rng, 5, 3)
    start = centre(task)
    assert start.mechanism == pytest.approx(np.full((5, 3), 1 / 3), abs=1e-15)
    assert min(part.min() for part in (*start.slacks.values(), *start.duals.values())) > 0
    rows, means = Conditions(task, start).equations(
        Conditions(task, start).parts(Conditions(task, start).stacked(start))
    )
    assert np.abs(rows).max() < 1e-14
    assert np.abs(means).max(initial=0.0) < 1e-14


@pytest.mark.parametrize("shape", [(6, 4), (24, 3)])
@pytest.mark.parametrize("kind", KINDS)
def test_iterations_stay_strictly_inside_and_on_the_equations(kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(9)
    task = task_at(kind, rng, *shape)
    point = centre(task)
    first = point.gap
    for _ in range(30):
        point, _ = _iterate(newton_at(task, point))
        assert all((part > 0).all() for part in (*point.slacks.values(), *point.duals.values()))
        conditions = Conditions(task, point)
        unknown = conditions.parts(conditions.stacked(point))
        assert max(np.abs(left).max(initial=0.0) for left in conditions.equations(unknown)) < 1e-10
        for name, slack in conditions.slacks(unknown).items():
            assert slack.astype(float) == pytest.approx(point.slacks[name], abs=1e-12)
        if point.gap < 1e-9 * first:
            return
    pytest.fail("thirty iterations did not close the gap to a billionth")


def test_a_point_that_is_not_a_number_is_refused() -> None:
    rng = np.random.default_rng(10)
    task = task_at("pml", rng, 3, 3)
    at = point_in(task, rng, 1.0)
    with pytest.raises(ArithmeticError, match="positive definite"):
        Newton(task, replace(at, duals={**at.duals, "above": np.full((3, 3), np.nan)}))
