"""The support function of PML about a secret over a set of joint laws, by the dual linear program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.uncertainty.joint_laws import JointLaws
from pmlopt.uncertainty.prior_set import PriorSet

NO_MASS = 1e-13
"""Multipliers of at most this are none."""


def largest_gain(over: JointLaws, keep: float, p: FloatArray, gains: FloatArray) -> float:
    """An upper bound on `<p g, v>` over the columns with `<p, v> = 1` within the bound, and over g; sharp.

    For weights w_s >= 0 and any joint laws Q_s of the set,
    `max_x [g(x) + sum_s w_s (Q_s(x) - keep Q_s(x | s)) / p(x)]`: columns within have
    `keep Q_s(. | s) v <= Q_s v`. The dual program finds weights and laws, and the nearest laws that are in
    the set for certain take their place.

    Args:
        over: the joint laws.
        keep: e^-epsilon.
        p: (N,) the prior of the design.
        gains: (N, M) the columns g.
    """
    best = -np.inf
    for column, (weights, outcomes, given) in zip(gains.T, _dual(over, keep, p, gains), strict=True):
        priced = weights @ (outcomes - keep * given) / p
        sizes = np.abs(column) + weights @ (outcomes + keep * given) / p
        rounding = rounding_of(over.law.size * len(p), 1.0) * sizes
        best = max(best, float((column + priced + rounding).max()))
    return best


def _dual(
    over: JointLaws, keep: float, p: FloatArray, gains: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Weights (S,), laws of X (S, N) and laws of X given s (S, N), of one column of gains after the other."""
    from pmlopt.backends import highs

    program = _Program(over, keep, p)
    n = len(p)
    scale = float(np.abs(gains).max()) or 1.0
    solver = highs.loaded(program.model(), highs.RESTARTED)
    for column in gains.T / scale:
        for x in range(n):
            solver.changeRowBounds(x, float(column[x]), np.inf)
        solver.run()
        z = np.array(solver.getSolution().col_value)
        if len(z) != program.count or not np.isfinite(z).all():
            z = np.zeros(program.count)
        weights, outcomes, given = program.laws(z)
        yield scale * weights, outcomes, given


class _Program:
    """`min t` over weights and joint laws, whose products are measures in the cones over their sets.

    Variables: t; the weights w_s; for each s the law of S times w_s; for each s the law of X given s that is
    worst for other values, times its mass in all of them; for each s the one that is worst for s.
    """

    def __init__(self, over: JointLaws, keep: float, p: FloatArray) -> None:
        from scipy import sparse

        self.over, n, s = over, len(p), over.law.size
        law, given = over.law.polytope, [one.polytope for one in over.conditionals]
        sizes = [1, s, *[law.parts.shape[1]] * s, *[one.parts.shape[1] for one in given] * 2]
        ends = np.cumsum(sizes)
        self.count = int(ends[-1])
        self.places = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]

        def row(count: int) -> FloatArray:
            return np.zeros((count, self.count))

        masses = np.zeros((s, s, self.count))  # of each value t in the law of S for s, times its weight
        for k in range(s):
            masses[k][:, self.places[2 + k]] = law.parts
        goal = row(n)
        goal[:, 0] = 1.0
        blocks: list[Any] = [goal]
        lower, upper = [np.zeros(n)], [np.full(n, np.inf)]

        def cone(place: int, polytope: Any, mass: FloatArray) -> None:
            held = row(len(polytope.rows))
            held[:, self.places[place]] = polytope.rows
            held -= np.outer(polytope.right, mass)
            blocks.append(held)
            lower.append(np.where(polytope.equal, 0.0, -np.inf))
            upper.append(np.zeros(len(held)))

        for k in range(s):
            weight = row(1)[0]
            weight[1 + k] = 1.0
            cone(2 + k, law, weight)
            others = masses[:, k].sum(axis=0) - masses[k, k]
            own = keep * weight - masses[k, k]
            cone(2 + s + k, given[k], others)
            cone(2 + 2 * s + k, given[k], own)
            blocks.append(own[None])
            lower.append(np.zeros(1))
            upper.append(np.full(1, np.inf))
            goal[:, self.places[2 + s + k]] -= given[k].parts / p[:, None]
            goal[:, self.places[2 + 2 * s + k]] += given[k].parts / p[:, None]
        self.system = sparse.csc_array(np.vstack(blocks))
        self.bounds = np.concatenate(lower), np.concatenate(upper)

    def model(self) -> Any:
        """The program as HiGHS has it."""
        from pmlopt.backends import highs

        costs, least = np.zeros(self.count), np.zeros(self.count)
        costs[0], least[0] = 1.0, -np.inf
        entries = (self.system.indptr, self.system.indices, self.system.data)
        return highs.columnwise(costs, (least, np.inf), self.bounds, entries)

    def laws(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (S,), and for each s the law of X and that given s, (S, N) each: members of the sets."""
        s = self.over.law.size
        law, given = self.over.law, self.over.conditionals
        weights = np.maximum(z[self.places[1]], 0.0)
        weights[weights <= NO_MASS] = 0.0
        low, high = (
            np.array([_member(one, z[self.places[first + k]]) for k, one in enumerate(given)])
            for first in (2 + s, 2 + 2 * s)
        )
        outcomes = np.zeros_like(high)
        for k in np.flatnonzero(weights):
            rows = low.copy()
            rows[k] = high[k]
            outcomes[k] = _member(law, z[self.places[2 + k]]) @ rows
        return weights, outcomes, high


def _member(laws: PriorSet, z: FloatArray) -> FloatArray:
    """A law of the set near the one that a point of the cone over it is a multiple of."""
    measure = laws.polytope.parts @ z
    total = float(measure.sum())
    if total <= NO_MASS:
        return laws.worst_prior(np.arange(laws.size, dtype=float))
    return np.asarray(laws.nearby(measure / total), dtype=float)
