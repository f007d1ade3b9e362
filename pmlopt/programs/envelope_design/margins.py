"""Margins of letters: what they can be, and how much any mechanism gains with margins in a box."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray, rounding_of
from pmlopt.core.records import Shape
from pmlopt.data.prior import Prior

ROUNDING = 1e-14
"""Caps, slopes and the largest margins are made larger by this share: more than rounding takes off them."""


@dataclass(frozen=True, eq=False)
class MarginRange:
    """What margins can be, for a prior, a level and a probability.

    Attributes:
        pmf: (N,) the prior.
        delta: the probability.
        ratio: t, at most 1 / min p, above which no mechanism has a likelihood ratio.
        rooms: (N,) `1/p[x] - t`, by how much a ratio may exceed t, at least 0.
        largest: (N,) the largest margins; 0 where a letter has no room, for then none is needed.
    """

    pmf: FloatArray
    delta: float
    ratio: float
    rooms: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, prior: Prior, epsilon: float, delta: float) -> MarginRange:
        """The range for a prior, epsilon in nats and delta in (0, 1)."""
        ratio = math.exp(min(epsilon, prior.max_leakage))
        rooms = 1 / prior.pmf - ratio
        rooms = np.where(rooms > 0, rooms + ROUNDING / prior.pmf, 0.0)
        most = math.expm1(min(epsilon, prior.max_leakage)) / (1 - delta) * (1 + ROUNDING)
        return cls(prior.pmf, delta, ratio, rooms, np.where(rooms > 0, most, 0.0))

    def relaxed(self, lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Caps c and slopes a: `P[x,y] <= c[x] q[y] + a[x] b[y]` for all margins in a box.

        For a ratio r = P[x,y] / q[y] below t, `b / q >= 1 - (t - r) / s` grows with s, and above t it falls:
        between both, r being at most 1/p, it is above the line from (t - l, 0) to (1/p, 1 + (1/p - t) / u).

        """
        whole = upper + self.rooms
        slopes = upper * (self.rooms + lower) / np.where(whole > 0, whole, 1.0)
        return self.ratio * (1 + ROUNDING) - lower, slopes * (1 + ROUNDING)


def gain_bound(
    span: MarginRange,
    gains: FloatArray,
    caps: FloatArray,
    slopes: FloatArray,
    rows: FloatArray,
    thresholds: FloatArray,
) -> FloatArray:
    """(...) upper bounds on the expected gain of all mechanisms with `P <= c q + a b` and `sum b <= delta`.

    For any rho in R^N and theta in R^M, with `v[x,y] = max(0, g[x,y] - rho[x] - theta[y])`:

        <p, rho> + delta max_y sum_x p[x] a[x] v[x,y] + max_y (theta[y] + sum_x p[x] c[x] v[x,y]).

    Indeed `g <= rho + theta + v`, and `sum_x p[x] P[x,y] theta[y] = q[y] theta[y]`. Where a cap is
    negative, each b[y] is at least `r = max_x -c[x] / a[x]` times q[y]: what is left has the caps
    `c + r a`, and `delta - r` for delta; where that is negative there is no mechanism, and the bound is -inf.
    What rounding may have taken off is added.

    There is one line of caps, slopes, rows rho and thresholds theta for each box.
    """
    p = span.pmf
    needed = np.where(caps < 0, -caps / np.where(slopes > 0, slopes, 1.0), 0.0)
    least = needed.max(axis=-1) * (1 - 4 * ROUNDING)
    left = span.delta - least
    caps = caps + slopes * least[..., None] * (1 + ROUNDING)
    over = np.maximum(gains - rows[..., :, None] - thresholds[..., None, :], 0.0)
    bad = ((p * slopes)[..., None] * over).sum(axis=-2).max(axis=-1)
    good = ((p * caps)[..., None] * over).sum(axis=-2)
    size = np.abs(rows).max(axis=-1) + np.abs(thresholds).max(axis=-1) + np.abs(gains).max()
    weight = 2 + (p * (np.abs(caps) + slopes)).sum(axis=-1)
    bound = (p * rows).sum(axis=-1) + np.maximum(left, 0.0) * bad + (thresholds + good).max(axis=-1)
    bound = bound + rounding_of(len(p), 1.0) * weight * size
    return np.asarray(np.where(left < -ROUNDING, -np.inf, bound))


@dataclass(frozen=True, eq=False)
class BoxProof:
    """Boxes that cover all margins, and for each what its mechanisms cannot exceed.

    The box of all margins is cut in two again and again. The nodes of the tree are listed from the root
    on, each before those below it, the lower part first.

    Attributes:
        letters: (T,) across which letter a node is cut, or -1 where it is not.
        cuts: (T,) at which margin; 0 where it is not.
        rows: (K, N) the multipliers rho of `gain_bound` for the boxes that are not cut, in order.
        thresholds: (K, M) theta.
    """

    letters: Annotated[IntArray, Shape("T")]
    cuts: Annotated[FloatArray, Shape("T")]
    rows: Annotated[FloatArray, Shape("K", "N")]
    thresholds: Annotated[FloatArray, Shape("K", "M")]

    def bound(self, margins: MarginRange, gains: FloatArray) -> float:
        """The largest of the bounds on the boxes; inf where this is no proof."""
        boxes = self._boxes(margins.largest)
        n, m = gains.shape
        numbers = np.isfinite(self.rows).all() and np.isfinite(self.thresholds).all()
        if boxes is None or not numbers:
            return math.inf
        count = len(boxes[0])
        if (self.rows.shape, self.thresholds.shape) != ((count, n), (count, m)):
            return math.inf
        caps, slopes = margins.relaxed(*boxes)
        return float(gain_bound(margins, gains, caps, slopes, self.rows, self.thresholds).max())

    def _boxes(self, largest: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The lower and the upper corners, (K, N) each, of the boxes that are not cut; None for no tree."""
        if self.letters.shape != self.cuts.shape:
            return None
        ahead, leaves = [(np.zeros(len(largest)), largest)], []
        for letter, cut in zip(self.letters.tolist(), self.cuts.tolist(), strict=True):
            if not ahead:
                return None
            lower, upper = ahead.pop()
            if letter < 0:
                leaves.append((lower, upper))
                continue
            if letter >= len(largest) or not lower[letter] < cut < upper[letter]:
                return None
            middle_up, middle_down = upper.copy(), lower.copy()
            middle_up[letter] = middle_down[letter] = cut
            ahead += [(middle_down, upper), (lower, middle_up)]
        if ahead or not leaves:
            return None
        return np.array([low for low, _ in leaves]), np.array([high for _, high in leaves])


def trivial_proof(gains: FloatArray) -> BoxProof:
    """That no mechanism gains more than the largest gain of each letter."""
    n, m = gains.shape
    return BoxProof(np.array([-1]), np.zeros(1), gains.max(axis=1).reshape(1, n), np.zeros((1, m)))
