"""A linear design as numbers: costs, a block for each column, and rows that couple the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.solvers.structured.block import Block, Border


@dataclass(frozen=True, eq=False)
class Task:
    """Minimise `scale <costs, P>` over mechanisms P with each column in a block.

    Attributes:
        prior: N letters.
        costs: (N, M), the largest of size one: solvers stop at absolute tolerances.
        scale: their unit.
        block: with k scalars for each output.
        allowed: (N, M) False for entries that must be zero, or None. The lower ends must be zero then; see
            `attainable`.
        short: whether rows may add up to less than one.
        border: linear constraints on the matrix, or None.
    """

    prior: Prior
    costs: FloatArray
    scale: float
    block: Block
    allowed: BoolArray | None = None
    short: bool = False
    border: Border | None = None

    def __post_init__(self) -> None:
        if self.allowed is not None and self.block.lower.any():
            raise ValueError("entries can be kept at zero only where the lower ends are zero")

    @cached_property
    def hinged(self) -> BoolArray | None:
        """(N, M) the entries that have an r, or None where all have."""
        hinge = self.block.hinge
        if hinge is None or hinge.costs is None or (hinge.costs.sum(axis=0) > 0).all():
            return self.allowed
        some = np.repeat((hinge.costs.sum(axis=0) > 0)[:, None], self.costs.shape[1], axis=1)
        return some if self.allowed is None else some & self.allowed

    @cached_property
    def unpaired(self) -> int:
        """The number of entries of slacks that stand for none."""
        ends = 2 if self.block.capped else 1
        hinged = 0 if self.block.hinge is None or self.hinged is None else 2 * int((~self.hinged).sum())
        return hinged + (0 if self.allowed is None else ends * int((~self.allowed).sum()))

    @cached_property
    def weights(self) -> FloatArray:
        """(K, N) the weights of the rows of a column."""
        weights = self.block.weights
        return np.zeros((0, self.prior.size), self.costs.dtype) if weights is None else weights

    @cached_property
    def mean(self) -> FloatArray:
        """(K, k) what the scalars have in the rows of a column."""
        mean = self.block.mean
        return np.zeros((0, len(self.block.inside)), self.costs.dtype) if mean is None else mean

    @cached_property
    def hinge_costs(self) -> FloatArray:
        """(K, N) what r has in the rows of a column."""
        hinge = self.block.hinge
        return np.zeros_like(self.weights) if hinge is None or hinge.costs is None else hinge.costs

    @property
    def budget(self) -> float | None:
        """The most that the r of a letter may add up to, if there is such a bound."""
        return None if self.block.hinge is None else self.block.hinge.budget

    def multipliers(self, rows: FloatArray) -> FloatArray:
        """(N,) those of the certificate, from those of the coupling rows in this program.

        Of letters of 1e-299 they can be infinite, which no certificate takes.
        """
        with np.errstate(over="ignore"):
            return np.asarray(-self.scale * rows[: self.prior.size] / self.prior.pmf)

    def reduced(self, rows: FloatArray, means: FloatArray) -> FloatArray:
        """(N, M) the costs less what the rows are worth, at these multipliers."""
        out = self.costs - rows[: self.prior.size, None] - self.weights.T @ means
        return out if self.border is None else out - self.border.priced(self.split(rows)[2])

    def column_rows(self, v: FloatArray, r: FloatArray | None, u: FloatArray) -> FloatArray:
        """(K, M) `weights'v - costs'r - mean'u`, of each column."""
        out = self.weights @ v - self.mean @ u
        return out if r is None else np.asarray(out - self.hinge_costs @ r)

    # The coupling rows: the sums of the rows, the budgets (at least less the budget), the border, the total
    # (at least less the total).

    @cached_property
    def places(self) -> tuple[int, int, int]:
        """Where the border begins and ends among the coupling rows, and how many rows there are."""
        first = self.prior.size * (1 if self.budget is None else 2)
        last = first + (0 if self.border is None else len(self.border))
        return first, last, last + (self.block.total is not None)

    @cached_property
    def bounds(self) -> FloatArray:
        """(C,) the right sides of the coupling rows."""
        bounds = np.ones(self.places[2], self.costs.dtype)
        if self.budget is not None:
            bounds[self.prior.size : self.places[0]] = -self.budget
        if self.border is not None:
            bounds[self.places[0] : self.places[1]] = self.border.least
        if self.block.total is not None:
            bounds[-1] = -self.block.total
        return bounds

    @cached_property
    def signs(self) -> FloatArray:
        """(C,) 1 where a coupling row is at least its right side, -1 where it is at most, 0 where equal."""
        signs = np.ones(self.places[2], self.costs.dtype)
        signs[: self.prior.size] = -1.0 if self.short else 0.0
        if self.border is not None:
            signs[self.places[0] : self.places[1]] = ~self.border.equal
        return signs

    @cached_property
    def loose(self) -> BoolArray:
        """(C,) the coupling rows that are inequalities."""
        return np.asarray(self.signs != 0)

    def coupled(self, v: FloatArray, r: FloatArray | None, u: FloatArray) -> FloatArray:
        """(C,) the left sides of the coupling rows."""
        sums = v.sum(axis=1)
        if self.places[2] == len(sums):
            return np.asarray(sums)
        budgets = [] if self.budget is None or r is None else -r.sum(axis=1)
        total = [] if self.block.total is None else [-u[0].sum()]
        border = v[0, :0] if self.border is None else self.border.at(v)
        return np.concatenate([sums, budgets, border, total], dtype=v.dtype)

    def split(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Numbers for the coupling rows apart: sums of the rows, budgets, the border, the total."""
        n, (first, last, count) = self.prior.size, self.places
        return rows[:n], rows[n:first], rows[first:last], float(rows[-1]) if count > last else 0.0


def attainable(block: Block, allowed: BoolArray) -> BoolArray:
    """(N, M) the allowed entries, but for those of outputs whose columns can only be zero.

    Under PML those are the outputs y that letters of a mass of less than e^-epsilon may have.
    """
    if block.weights is None or block.mean is None or block.hinge is not None:
        return allowed
    most = np.maximum(block.weights, 0.0) @ allowed * block.upper[0]
    return np.asarray(allowed & (most > block.mean[:, :1]).all(axis=0))


def have(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether there are arrays of these shapes under these names."""
    return all(name in arrays and arrays[name].shape == shape for name, shape in shapes.items())
