"""The constraints added to a linear design as rows on its matrix: scales, gradients and multipliers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.programs.linear.certificate import compute_row_sizes
from pmlopt.solvers.structured.block_program import BlockLP, SideConstraints, find_attainable

if TYPE_CHECKING:
    from pmlopt.solvers.structured.iterates import Iterate


def compute_row_scales(rows: sparse.csr_array, offset: FloatArray) -> FloatArray:
    """Compute (R,) powers of two near the sizes of rows: nothing is rounded, and tolerances are absolute."""
    largest = np.asarray(abs(rows).max(axis=1).toarray()).ravel()
    high, low = (
        np.asarray(part.toarray()).ravel() for part in (rows.max(axis=1), rows.min(axis=1))
    )
    # solvers lose their digits beyond coefficients of 1e10
    sizes = np.maximum(compute_row_sizes(largest, offset, (low >= 0) | (high <= 0)), largest / 1e10)
    return np.asarray(2.0 ** np.floor(np.log2(sizes)))


def has_expression(constraint: cp.Constraint) -> bool:
    """Return whether a constraint is `expr == 0` or `expr <= 0`, and no cone."""
    return isinstance(constraint, cp.constraints.Equality | cp.constraints.Inequality)


def compute_gradients(constraint: cp.Constraint) -> dict[cp.Variable, sparse.csc_array] | None:
    """Compute a constraint's gradients by variable, (variable's entries, rows); None where cvxpy has none."""
    try:
        gradients = constraint.expr.grad
    except (NotImplementedError, ValueError):
        return None
    if any(gradient is None for gradient in gradients.values()):
        return None
    return {
        variable: sparse.csc_array(np.atleast_2d(gradient) if np.ndim(gradient) == 0 else gradient)
        for variable, gradient in gradients.items()
    }


@light_dataclass(frozen=True, eq=False)
class AddedConstraintRows:
    """Added constraints as rows: entries that must be zero, and side constraints.

    Attributes:
        constraints: in the order of the rows.
        coefficients: (B, N M) of `expr` in each row `expr <= 0` or `expr == 0`, on the mechanism row by row.
        offset: (B,) what `expr` is at zero.
        equal: (B,) where it is an equality.
        zero: (B,) the rows that keep a single entry at zero, if entries can be.
        shape: (N, M).
    """

    constraints: tuple[cp.Constraint, ...]
    coefficients: sparse.csr_array
    offset: FloatArray
    equal: BoolArray
    zero: BoolArray
    shape: tuple[int, int]

    @property
    def row_scales(self) -> FloatArray:
        """Return (B,) numbers near the size of each row."""
        return compute_row_scales(self.coefficients, self.offset)

    def add_to(self, task: BlockLP) -> BlockLP:
        """Return the block program with these rows added."""
        rest, allowed = ~self.zero, task.allowed
        if self.zero.any():
            named = np.asarray((self.coefficients[self.zero] != 0).sum(axis=0)).reshape(self.shape)
            allowed = find_attainable(task.block, named == 0)
        if not rest.any():
            return replace(task, allowed=allowed)
        units = self.row_scales[rest]
        rows = sparse.csr_array(self.coefficients[rest] * (-1 / units)[:, None])
        border = SideConstraints(rows, self.offset[rest] / units, self.equal[rest], self.shape)
        return replace(task, allowed=allowed, border=border)

    def compute_multipliers(self, task: BlockLP, point: Iterate) -> FloatArray:
        """Compute (B,) the multipliers of the constraints, in units of the gains."""
        found = np.zeros(len(self.offset))
        found[~self.zero] = task.split_coupling_rows(point.rows)[2] / self.row_scales[~self.zero]
        prices = np.maximum(-task.reduced_costs(point.rows, point.means), 0.0).ravel()
        # multipliers of a column that can only be zero are undetermined: ten times the largest cost
        if task.allowed is not None:
            prices += np.tile(10.0 * ~task.allowed.any(axis=0), self.shape[0])
        one = self.coefficients[self.zero]
        found[self.zero] = (one != 0) @ prices / one.sum(axis=1)
        return task.scale * found

    def price_out(
        self, gains: FloatArray, prior: Prior, multipliers: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the gains less the priced rows, and the constant that goes with them."""
        slopes = (self.coefficients.T @ multipliers).reshape(self.shape)
        return gains - slopes / prior.pmf[:, None], -float(multipliers @ self.offset)

    def save_dual_values(self, multipliers: FloatArray) -> None:
        """Give the constraints their multipliers, as a solver of cvxpy would."""
        first = 0
        for constraint in self.constraints:
            last = first + constraint.expr.size
            value = multipliers[first:last].reshape(constraint.expr.shape, order="F")
            constraint.dual_variables[0].save_value(value)
            first = last
