"""Families of columns over a set of priors that take two or three values, and bounds on their worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import BoolArray, FloatArray, rounding_of
from pmlopt.programs.subconvex.kernel import Kernel
from pmlopt.uncertainty.choquet import ChoquetSet
from pmlopt.uncertainty.cone import Cone


@dataclass(frozen=True, eq=False)
class Split:
    """Columns that are `top`, `mid` or 0 at each letter, or between at few, with rows that they keep.

    The columns lam of mean one have `0 <= sum_x row_k(lam[x]) + share_k mid - keep_k top` for each row k,
    where `row_k` is concave, piecewise linear, and `by_mid[k, o, x] mid + by_top[k, o, x] top` at value o.

    Attributes:
        values: (O,) which of (0, mid, top) occur, as 0, 1 and 2.
        by_mid: (K, O, N).
        by_top: (K, O, N).
        share: (K,).
        keep: (K,).
    """

    values: tuple[int, ...]
    by_mid: FloatArray
    by_top: FloatArray
    share: FloatArray
    keep: FloatArray


def splits(cone: Cone) -> tuple[Split, ...]:
    """The families that hold every extreme column of PML over a set of priors.

    With a lower probability `nu(A) = max(0, lower(A) - shift, 1 - upper(not A))` the least mean is the
    largest, over a threshold mid, of a sum over letters that is linear between 0, mid and top. Over an l1
    ball there is the smallest entry, too: an extreme column has it at 0, or the threshold at one end. None
    for sets of another kind, such as hulls of vertices.
    """
    priors, keep = cone.priors, cone.keep
    if not isinstance(priors, ChoquetSet) or (priors.floats.shift > 0 and priors.floats.upper is not None):
        return ()
    nu, none = priors.floats, np.zeros(priors.size)
    lower, shift = nu.lower / nu.total, float(nu.shift / nu.total)
    rest = 1 - float(lower.sum()) + shift
    stairs = _split((1, 2), [lower, none], [none, lower], rest, keep + shift)
    if shift > 0:
        emptied = _split((0, 1, 2), [none, lower, lower], [none, none, none], -shift, keep)
        return emptied, stairs, _split((1, 2), [none, none], [none, none], 1.0, keep)
    if nu.upper is None:
        return (stairs,)
    width = nu.upper / nu.total - lower
    return (_split((0, 1, 2), [-width, lower, none], [none, none, lower], rest, keep),)


def _split(
    values: tuple[int, ...], by_mid: list[FloatArray], by_top: list[FloatArray], share: float, keep: float
) -> Split:
    mid, top = (np.stack([np.atleast_2d(part) for part in parts], axis=1) for parts in (by_mid, by_top))
    rows = np.ones(len(mid))
    return Split(values, mid, top, share * rows, keep * rows)


class Relaxation:
    """Bounds on `mu(lam) - <p rho, lam>` over the columns of a split with top and mid in a cell.

    For multipliers alpha of the mean and theta >= 0 of the rows, a column is worth at most

        alpha + theta (share mid - keep top)
            + sum_x max_o (p[x] (phi(o) - (rho[x] + alpha) o) + theta row(o)),

    since phi is convex between the values o and the rows are linear there. As a function of (top, mid) this
    is a sum of maxima of convex functions: on a cell it is largest at a corner. So for any multipliers the
    largest of four numbers bounds a whole cell; the multipliers are improved by the ellipsoid method.

    Args:
        kernel: the prior and phi.
        split: the family.
        multipliers: (N,) rho.
    """

    def __init__(self, kernel: Kernel, split: Split, multipliers: FloatArray) -> None:
        self.kernel, self.split, self.rho = kernel, split, multipliers
        self.dimension = 1 + len(split.keep)

    def evaluated(self, corners: FloatArray, dual: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The bound at each corner, what each value is worth to each letter there, and the values.

        Args:
            corners: (B, C, 2) top and mid.
            dual: (B, 1 + K) alpha and theta.

        Returns:
            (B, C) bounds, (B, C, O, N) worths and (B, C, O) values.
        """
        split, p = self.split, self.kernel.p
        top, mid = corners[..., 0], corners[..., 1]
        points = np.stack([(np.zeros_like(top), mid, top)[value] for value in split.values], axis=2)
        theta = dual[:, 1:]
        by_mid, by_top = (np.tensordot(theta, part, axes=1) for part in (split.by_mid, split.by_top))
        cost = p * (self.rho + dual[:, :1])
        worths = self.kernel.phi(points)[..., None] * p - points[..., None] * cost[:, None, None, :]
        worths += top[..., None, None] * by_top[:, None]
        worths += mid[..., None, None] * by_mid[:, None]
        bounds = dual[:, :1] + mid * (theta @ split.share)[:, None] - top * (theta @ split.keep)[:, None]
        return bounds + worths.max(axis=2).sum(axis=2), worths, points

    def slopes(
        self, corners: FloatArray, worths: FloatArray, points: FloatArray, at: NDArray[np.intp]
    ) -> FloatArray:
        """(B, 1 + K) the slopes of the bound at one corner of each cell, in the multipliers."""
        split, rows = self.split, np.arange(len(at))
        top, mid = corners[rows, at, 0], corners[rows, at, 1]
        chosen = worths[rows, at].argmax(axis=1)
        taken = np.take_along_axis(points[rows, at], chosen, axis=1)
        mean = 1 - taken @ self.kernel.p
        letters = np.arange(chosen.shape[1])
        kept = (
            mid[:, None] * split.by_mid[:, chosen, letters].sum(axis=2).T
            + top[:, None] * split.by_top[:, chosen, letters].sum(axis=2).T
        )
        rates = mid[:, None] * split.share - top[:, None] * split.keep
        return np.column_stack([mean, kept + rates])

    def bounds(
        self, cells: FloatArray, dual: FloatArray, radius: FloatArray, steps: int, enough: float
    ) -> tuple[FloatArray, FloatArray]:
        """(B,) bounds on cells, and the (B, 1 + K) multipliers that prove them.

        Args:
            cells: (B, 4) the ends of top, then those of mid over top.
            dual: (B, 1 + K) where to start.
            radius: (B,) how far from there to look.
            steps: how often to improve the multipliers.
            enough: a bound of this much need not be lowered.
        """
        corners = _corners(cells)
        count, size = len(cells), self.dimension
        best, kept = np.full(count, np.inf), dual.copy()
        centre = dual.copy()
        shape = radius[:, None, None] ** 2 * np.eye(size)
        live = np.arange(count)
        for _ in range(steps):
            here = centre[live]
            valid = np.maximum(here, np.r_[-np.inf, np.zeros(size - 1)])
            values, worths, points = self.evaluated(corners[live], valid)
            at = values.argmax(axis=1)
            value = values[np.arange(len(live)), at]
            better = value < best[live]
            best[live[better]], kept[live[better]] = value[better], valid[better]
            slope = self.slopes(corners[live], worths, points, at)
            depth = value - best[live]
            outside = here[:, 1:].min(axis=1) < 0
            worst = 1 + here[:, 1:].argmin(axis=1)
            slope[outside] = 0.0
            slope[outside, worst[outside]] = -1.0
            depth = np.where(outside, -here[np.arange(len(here)), worst], depth)
            moved, going = _cut(centre[live], shape[live], slope, depth)
            centre[live], shape[live] = moved[0], moved[1]
            live = live[going & (best[live] > enough)]
            if not len(live):
                break
        terms = np.abs(kept).sum(axis=1) * (1 + cells[:, 1]) + float(np.abs(self.rho).max()) + 1.0
        return best + rounding_of(len(self.kernel.p), 1.0) * terms, kept


def _corners(cells: FloatArray) -> FloatArray:
    """(B, 4, 2) the corners of cells, as top and mid."""
    ends = [(0, 2), (1, 2), (0, 3), (1, 3)]
    return np.stack([np.stack([cells[:, t], cells[:, t] * cells[:, s]], axis=1) for t, s in ends], axis=1)


def _cut(
    centre: FloatArray, shape: FloatArray, slope: FloatArray, depth: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], BoolArray]:
    """One step of the ellipsoid method with deep cuts, and whether to go on."""
    n = centre.shape[1]
    along = np.einsum("bij,bj->bi", shape, slope)
    length = np.sqrt(np.maximum(np.einsum("bi,bi->b", along, slope), 0.0))
    going = (length > 0) & (length > 1e-14)
    safe = np.where(going, length, 1.0)
    deep = np.clip(depth / safe, 0.0, 1.0)
    going &= deep < 1 - 1e-9
    along = along / safe[:, None]
    step = (1 + n * deep) / (n + 1)
    moved = centre - step[:, None] * along
    factor = n * n / (n * n - 1.0) * (1 - deep**2)
    weight = 2 * (1 + n * deep) / ((n + 1) * (1 + deep))
    outer = along[:, :, None] * along[:, None, :]
    new = factor[:, None, None] * (shape - weight[:, None, None] * outer)
    return (np.where(going[:, None], moved, centre), np.where(going[:, None, None], new, shape)), going
