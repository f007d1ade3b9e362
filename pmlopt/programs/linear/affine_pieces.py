"""Convex constraints whose left side is polyhedral, written as affine ones.

Where the left side is the largest of a few affine expressions it is written as these. Any other sum of
absolute values, maxima and norms takes new variables, each at least every expression that one term is the
largest of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.lazy_imports import cp


def split_constraint(constraint: cp.Constraint) -> cp.Constraint | None:
    """Return an inequality on each affine piece of a constraint; None where it is no maximum of some.

    At a kink, such as `cp.max(P) <= c` has it where two entries are largest, the one multiplier of a solver
    proves no bound: which of the pieces it belongs to is not known.

    Args:
        constraint: such as `cp.max(P, axis=1) <= c` or `cp.abs(P[0] - P[1]) <= c`.
    """
    if not isinstance(constraint, cp.constraints.Inequality) or constraint.expr.is_affine():
        return None
    pieces = _split(constraint.expr, 1)
    if pieces is None:
        return None
    return cp.hstack([cp.vec(one, order="F") for one in pieces]) <= 0


def _split(expression: cp.Expression, sign: int) -> list[cp.Expression] | None:
    """Split `sign` times an expression into affine ones whose maximum it is; None where it is no such one.

    Of an expression of one entry, all entries of a piece are pieces.
    """
    if expression.is_affine():
        return [sign * expression]
    name, args = type(expression).__name__, expression.args
    largest, smallest = ("max", "maximum"), ("min", "minimum")
    if name.endswith("_wrap"):  # which states a sign that cvxpy does not see
        return _split(args[0], sign)
    if name == "NegExpression":
        return _split(args[0], -sign)
    if name in ("abs", "norm_inf") and sign > 0 and args[0].is_affine():
        return _take_parts([args[0], -args[0]], expression, name == "norm_inf")
    if name in (largest if sign > 0 else smallest):
        parts = [_split(one, sign) for one in args]
        known = [piece for part in parts if part is not None for piece in part]
        return None if None in parts else _take_parts(known, expression, name in ("max", "min"))
    if name == "AddExpression":
        return _split_sum(expression, sign)
    if name in ("multiply", "MulExpression") and args[0].is_constant():
        factors = np.unique(args[0].value)
        is_product = name == "MulExpression" and args[0].size > 1
        pieces = (
            None if len(factors) > 1 or is_product else _split(args[1], sign * _sign(factors[0]))
        )
        return None if pieces is None else [abs(float(factors[0])) * one for one in pieces]
    return None


def _sign(number: float) -> int:
    """Return the sign of a number, by which it keeps or turns what is largest."""
    return 1 if number >= 0 else -1


def _take_parts(
    pieces: Sequence[cp.Expression], whole: cp.Expression, reduces: bool
) -> list[cp.Expression] | None:
    """Return pieces in the shape of the whole, whose axis they lose where it is a maximum over one."""
    if whole.size == 1:
        return [cp.vec(one, order="F") for one in pieces]
    if not reduces:
        fits = all(one.size == 1 or one.shape == whole.shape for one in pieces)
        return [one + np.zeros(whole.shape) for one in pieces] if fits else None
    if any(one.ndim != 2 for one in pieces):
        return None
    by_rows = [one if whole.axis in (0, -2) else one.T for one in pieces]
    return [
        cp.reshape(one[place], whole.shape, order="F")
        for one in by_rows
        for place in range(one.shape[0])
    ]


def _split_sum(whole: cp.Expression, sign: int) -> list[cp.Expression] | None:
    """Split a sum: its largest value is that of all sums of a piece of each term."""
    found: list[cp.Expression] = [cp.Constant(0.0)]
    for term in whole.args:
        pieces = _split(term, sign)
        # more than 100,000 rows are not listed
        if pieces is None or _count(found) * _count(pieces) > 100_000 * whole.size:
            return None
        found = [
            _add(one, other) if whole.size == 1 else one + other
            for one in found
            for other in pieces
        ]
    return found


def _count(pieces: Sequence[cp.Expression]) -> int:
    """Return how many entries pieces have together."""
    return sum(one.size for one in pieces)


def _add(one: cp.Expression, other: cp.Expression) -> cp.Expression:
    """Add each entry of an expression to each of another one."""
    column = cp.reshape(one, (one.size, 1), order="F")
    return cp.vec(column + cp.reshape(other, (1, other.size), order="F"), order="F")


def lift_constraint(
    constraint: cp.Constraint, probabilities: Sequence[cp.Variable]
) -> cp.Constraint | None:
    """Return affine inequalities, with new bounded variables, of which a constraint is the projection.

    None where its left side is not polyhedral: absolute values, maxima, l1 and maximum norms of affine
    expressions, in sums and multiples that keep it convex.

    Args:
        constraint: such as `cp.norm1(P[0] - P[1]) + cp.norm1(P[1] - P[2]) <= c`.
        probabilities: the variables whose entries are in [0, 1].
    """
    if not isinstance(constraint, cp.constraints.Inequality) or constraint.expr.is_affine():
        return None
    lift = _Lift({id(one): cp.Variable(one.shape, bounds=[0, 1]) for one in probabilities})
    left = lift.bound(constraint.expr, 1)
    if left is None:
        return None
    return cp.hstack([cp.vec(one, order="F") for one in (left, *lift.rows)]) <= 0


@dataclass(frozen=True)
class _Lift:
    """Affine expressions that bound convex ones where the rows are at most 0.

    Args:
        box: by the ids of variables in [0, 1], others with these bounds.
    """

    box: Mapping[int, cp.Variable]
    rows: list[cp.Expression] = field(default_factory=list)

    def bound(self, expression: cp.Expression, sign: int) -> cp.Expression | None:
        """Return an affine expression of `sign` times another or more; None where that is not polyhedral."""
        name, args = type(expression).__name__, expression.args
        if expression.is_affine():
            return sign * expression
        if name == "abs":
            inner = args[0]
            return self.bound(inner if inner.is_nonneg() else cp.maximum(inner, -inner), sign)
        if name in ("norm1", "norm_inf"):
            reduce = cp.sum if name == "norm1" else cp.max
            sizes = cp.abs(args[0])
            whole = reduce(sizes, axis=expression.axis, keepdims=expression.keepdims)
            return self.bound(whole, sign)
        if name in (("max", "maximum") if sign > 0 else ("min", "minimum")):
            return self._bound_largest(expression, sign)
        if not expression.is_atom_affine():
            return None
        found = []
        for place, one in enumerate(args):
            turn = sign if expression.is_incr(place) else -sign
            part = self.bound(one, turn)
            if part is None:
                return None
            found.append(turn * part)
        return sign * expression.copy(found)

    def _bound_largest(self, expression: cp.Expression, sign: int) -> cp.Expression | None:
        """Return a new variable that is at least each of the entries, or arguments, that are compared."""
        parts = [self.bound(one, sign) for one in expression.args]
        known = [one for one in parts if one is not None]
        if len(known) < len(parts):
            return None
        kept = expression
        if type(expression).__name__ in ("max", "min"):
            kept = type(expression)(expression.args[0], axis=expression.axis, keepdims=True)
        bounds = (sign * kept).tree_copy(self.box).get_bounds()
        largest = cp.Variable(kept.shape, bounds=list(bounds))
        self.rows.extend(one - largest for one in known)
        return cp.reshape(largest, expression.shape, order="F")
