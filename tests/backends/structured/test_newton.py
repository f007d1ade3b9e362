"""Newton's step of a banded design, beside the whole system solved in extended precision."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from oracles.bands import KINDS, bounded
from oracles.designs import FloatArray, random_prior

from pmlopt import ExpectedGain, Prior, design
from pmlopt.backends.structured.band_program import Task
from pmlopt.backends.structured.interior_point import _iterate
from pmlopt.backends.structured.newton import Newton, Point
from pmlopt.programs.linear.structured import centre, task_of

Long = NDArray[np.longdouble]


def task_at(kind: str, rng: np.random.Generator, n: int, m: int) -> Task:
    prior = Prior(random_prior(rng, n))
    privacy = bounded(kind, prior, rng).at(float(rng.uniform(0.1, 3)))
    task = task_of(design(prior, privacy, ExpectedGain(rng.normal(size=(n, m)))))
    assert task is not None
    return task


def point_in(task: Task, rng: np.random.Generator, digits: float) -> Point:
    """Any point strictly inside, its distances and multipliers spread over so many orders of magnitude.

    Its rows need not sum to one, nor its multipliers meet their equations.
    """
    n, m = task.costs.shape
    band = task.band

    def spread(*shape: int) -> FloatArray:
        return np.asarray(10.0 ** rng.uniform(-digits, 0, shape))

    scalars = spread(len(band.lower), m) / m
    low, width = band.lower @ scalars, (band.upper - band.lower) @ scalars
    share = spread(n, m) / 2
    share = np.where(rng.random((n, m)) < 0.5, share, 1 - share)
    return Point(
        above=width * share,
        below=width * (1 - share),
        scalars=scalars,
        low=low,
        a=spread(n, m),
        b=spread(n, m),
        f=spread(m) if band.floored else np.zeros(m),
        y=rng.normal(0, 1, (n,)),
        z=rng.normal(0, 1, (m,)) * (band.weights is not None),
    )


@dataclass(frozen=True, eq=False)
class Conditions:
    """The optimality conditions as one function of one vector.

    The Lagrangian is `<C, P> - y'(P 1 - 1) - z'(weights' P - mean' u) - <a, P - low> - <b, high - P> - f low`
    with `low = lower' u` and `high = upper' u`.
    """

    task: Task

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The unknowns, in the order in which they are stacked."""
        n, m = self.task.costs.shape
        k, floors, means = (
            len(self.task.band.lower),
            self.task.band.floored,
            self.task.band.weights is not None,
        )
        entries: dict[str, tuple[int, ...]] = {"p": (n, m), "below": (n, m), "u": (k, m), "a": (n, m)}
        entries |= {"b": (n, m), "f": (m * floors,), "y": (n,), "z": (m * means,)}
        return entries

    def parts(self, vector: Long) -> dict[str, Long]:
        found, first = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            found[name] = vector[first : first + size].reshape(shape)
            first += size
        assert first == len(vector)
        return found

    def linear(self, vector: Long) -> Long:
        """What is left of the equations."""
        band, part = self.task.band, self.parts(vector)
        slope = self.task.costs - part["y"][:, None] - part["a"] + part["b"]
        in_u = np.outer(band.lower, part["a"].sum(axis=0)) - np.outer(band.upper, part["b"].sum(axis=0))
        if band.floored:
            in_u = in_u - np.outer(band.lower, part["f"])
        found = [part["p"].sum(axis=1) - 1]
        if band.weights is not None and band.mean is not None:
            slope = slope - np.outer(band.weights, part["z"])
            in_u = in_u + np.outer(band.mean, part["z"])
            found.append(band.weights @ part["p"] - band.mean @ part["u"])
        found += [slope, in_u, band.upper @ part["u"] - part["p"] - part["below"]]
        return np.concatenate([np.ravel(item) for item in found])

    def products(self, vector: Long) -> Long:
        """The complementary products."""
        part = self.parts(vector)
        low = self.task.band.lower @ part["u"]
        found = [part["a"] * (part["p"] - low), part["b"] * part["below"]]
        if self.task.band.floored:
            found.append(part["f"] * low)
        return np.concatenate([np.ravel(item) for item in found])

    def stacked(self, at: Point) -> Long:
        """A point, or a step, as one vector."""
        floors, means = self.task.band.floored, self.task.band.weights is not None
        values = [at.above + at.low, at.below, at.scalars, at.a, at.b, at.f[: len(at.f) * floors], at.y]
        values.append(at.z[: len(at.z) * means])
        return np.concatenate([part.ravel() for part in values]).astype(np.longdouble)

    def step(self, at: Point, wanted: tuple[FloatArray, ...]) -> Long:
        """The solution of the whole system at a point; differences of quadratic functions are derivatives."""
        here = self.stacked(at)
        columns = []
        for place, size in enumerate(np.where(here == 0, 1, np.abs(here))):
            move = np.zeros_like(here)
            move[place] = size
            rates = [(f(here + move) - f(here - move)) / (2 * size) for f in (self.linear, self.products)]
            columns.append(np.concatenate(rates))
        change = wanted if self.task.band.floored else wanted[:2]
        right = np.concatenate([-self.linear(here), *(np.ravel(part) for part in change)])
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


def errors(task: Task, at: Point, wanted: tuple[FloatArray, ...]) -> dict[str, float]:
    """How far each part of a step is off the solution of the whole system, in units of its largest entry."""
    step = Newton(task, at).step(*(part.copy() for part in wanted))
    conditions = Conditions(task)
    found, expected = (conditions.parts(v) for v in (conditions.stacked(step), conditions.step(at, wanted)))
    return {
        name: float(np.abs(found[name] - there).max() / np.abs(there).max())
        for name, there in expected.items()
        if there.size
    }


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(n=st.integers(2, 4), m=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_a_step_solves_the_whole_system(kind: str, n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    task = task_at(kind, rng, n, m)
    at = point_in(task, rng, 1.0)
    wanted = (rng.normal(size=(n, m)), rng.normal(size=(n, m)), rng.normal(size=m))
    assert max(errors(task, at, wanted).values()) < 1e-9


# Two variables that are 1e-d to 1 have ratios over 2 d digits, and eliminations square them.
@pytest.mark.parametrize(("digits", "accuracy"), [(3.0, 1e-9), (5.0, 1e-6)])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_are_right_at_badly_scaled_points(kind: str, digits: float, accuracy: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 5)), int(rng.integers(1, 5))
        task = task_at(kind, rng, n, m)
        at = point_in(task, rng, digits)
        wanted = (rng.normal(size=(n, m)), rng.normal(size=(n, m)), rng.normal(size=m))
        assert max(errors(task, at, wanted).values()) < accuracy


@pytest.mark.parametrize("kind", KINDS)
def test_one_letter_or_one_output_is_no_exception(kind: str) -> None:
    rng = np.random.default_rng(3)
    for n, m in [(2, 1), (4, 1)] if kind in ("pml", "lip", "other centre") else [(1, 3), (1, 1), (4, 1)]:
        task = task_at(kind, rng, n, m)
        wanted = (rng.normal(size=(n, m)), rng.normal(size=(n, m)), rng.normal(size=m))
        assert max(errors(task, point_in(task, rng, 1.0), wanted).values()) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_the_centre_is_a_point_strictly_inside_that_meets_the_equations(kind: str) -> None:
    rng = np.random.default_rng(8)
    task = task_at(kind, rng, 5, 3)
    start = centre(task)
    assert start.mechanism == pytest.approx(np.full((5, 3), 1 / 3), abs=1e-15)
    assert min(start.above.min(), start.below.min(), start.a.min(), start.b.min()) > 0
    width = (task.band.upper - task.band.lower) @ start.scalars
    assert start.above + start.below == pytest.approx(np.tile(width, (5, 1)), abs=1e-15)
    if task.band.weights is not None and task.band.mean is not None:
        assert task.band.weights @ start.mechanism == pytest.approx(task.band.mean @ start.scalars, abs=1e-15)
    if task.band.floored:
        assert min(start.low.min(), start.f.min()) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_iterations_stay_strictly_inside_and_on_the_equations(kind: str) -> None:
    rng = np.random.default_rng(9)
    task = task_at(kind, rng, 6, 4)
    point = centre(task)
    first = point.gap
    for _ in range(30):
        point, _ = _iterate(task, point)
        parts = [point.above, point.below, point.a, point.b]
        if task.band.floored:
            parts += [point.low, point.f]
        assert all((part > 0).all() for part in parts)
        assert point.mechanism.sum(axis=1) == pytest.approx(1.0, abs=1e-10)
        assert point.low == pytest.approx(task.band.lower @ point.scalars, abs=1e-12)
        high = task.band.upper @ point.scalars
        assert point.mechanism + point.below == pytest.approx(np.tile(high, (6, 1)), abs=1e-12)
        if task.band.weights is not None and task.band.mean is not None:
            means = task.band.weights @ point.mechanism
            assert means == pytest.approx(task.band.mean @ point.scalars, abs=1e-10)
        if point.gap < 1e-9 * first:
            return
    pytest.fail("thirty iterations did not close the gap to a billionth")


@pytest.mark.parametrize("seed", range(3))
def test_masses_next_to_nothing_leave_the_rows_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior.uniform(10)
    privacy = bounded("mass", prior, rng, 1e-4).at(2.0)
    task = task_of(design(prior, privacy, ExpectedGain(rng.random((10, 8)))))
    assert task is not None
    point = centre(task)
    for _ in range(6):
        point, _ = _iterate(task, point)
        assert point.mechanism.sum(axis=1) == pytest.approx(1.0, abs=1e-8)


def test_a_point_that_is_not_a_number_is_refused() -> None:
    rng = np.random.default_rng(10)
    task = task_at("pml", rng, 3, 3)
    at = point_in(task, rng, 1.0)
    with pytest.raises(ArithmeticError, match="positive definite"):
        Newton(task, replace(at, a=np.full((3, 3), np.nan)))
