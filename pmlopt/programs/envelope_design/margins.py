"""Margins: how far below e^epsilon the likelihood ratios of most outputs stay, so that rare ones need not.

With `t = e^epsilon`, no post-processing of a mechanism P with the output law q leaks more than epsilon
but with probability delta iff there are margins `s[x] >= 0` and masses `b[y] >= 0` with

    P[x,y] <= t q[y] - s[x] (q[y] - b[y])   for all x, y,   and   sum_y b[y] <= delta.

Margins above `(t - 1) / (1 - delta)` allow no mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.arrays import FloatArray, common_integers, rounding_of
from pmlopt.exact.rationals import power_below
from pmlopt.prior import Prior
from pmlopt.privacy.requirement import LARGEST_EXPONENT
from pmlopt.programs.envelope.rational_mechanism import RationalMechanism

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

        Args:
            lower: (..., N) l.
            upper: (..., N) u.
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
    """Upper bound on the expected gain of all mechanisms with `P <= c q + a b` and `sum b <= delta`.

    For any rho in R^N and theta in R^M, with `v[x,y] = max(0, g[x,y] - rho[x] - theta[y])`:

        <p, rho> + delta max_y sum_x p[x] a[x] v[x,y] + max_y (theta[y] + sum_x p[x] c[x] v[x,y]).

    Indeed `g <= rho + theta + v`, and `sum_x p[x] P[x,y] theta[y] = q[y] theta[y]`. Where a cap is
    negative, each b[y] is at least `r = max_x -c[x] / a[x]` times q[y]: what is left has the caps
    `c + r a`, and `delta - r` for delta; a box for which that is negative has no mechanism. What rounding
    may have taken off is added.

    Args:
        span: of the prior and delta.
        gains: (N, M) g.
        caps: (..., N) c, one line for each box.
        slopes: (..., N) a.
        rows: (..., N) rho.
        thresholds: (..., M) theta.

    Returns:
        (...) one bound for each box; -inf where there is no mechanism.
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


def leaking_mass(prior: Prior, matrix: FloatArray, epsilon: float, margins: FloatArray) -> Fraction | None:
    """The least `sum_y b[y]` at given margins, as a rational: what no post-processing exceeds.

    For every t above e^epsilon the multipliers `1 / s` of the worst post-processing's linear program
    prove that outcomes that leak log t or more have less mass than this, or none; a letter with the
    margin 0 takes part in none. e^epsilon is replaced by a rational below it, floats are dyadic
    rationals, rows are taken over their sums.

    Args:
        prior: N letters.
        matrix: (N, M) the mechanism.
        epsilon: in nats.
        margins: (N,) s.

    Returns:
        The mass; None where a letter with the margin 0 has a likelihood ratio above e^epsilon, or a margin is
        negative or not finite.

    Source: [saeidian2026envelopes, Theorem 2], by the dual of `envelope`'s linear program.

    Examples:
        >>> flip = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> leaking_mass(Prior.uniform(2), flip, 0.5, np.zeros(2))  # level log 1.5
        Fraction(0, 1)
        >>> leaking_mass(Prior.uniform(2), flip, 0.4, np.zeros(2)) is None
        True
        >>> round(float(leaking_mass(Prior.uniform(2), flip, 0.4, np.array([0.5, 0.5]))), 6)
        1.016351
    """
    if not (np.isfinite(margins).all() and (margins >= 0).all()):
        return None
    exact = RationalMechanism.of(prior, matrix)
    ratio = power_below(min(epsilon, LARGEST_EXPONENT))
    conditional = exact.columns * (exact.total // exact.sums)[:, None]  # over total, as the law is
    # by how much a ratio is above t, over total * ratio.denominator
    above = conditional * ratio.denominator - exact.law * ratio.numerator
    open_ = margins > 0
    if (above[~open_] > 0).any():
        return None
    if not open_.any():
        return Fraction(0)
    units, denominator = common_integers(margins[open_].tolist())
    # q + above / s over one denominator for all letters
    common = math.lcm(*units)
    weights = np.array([common // unit for unit in units], dtype=object) * denominator
    worth = exact.law * (common * ratio.denominator) + (above[open_] * weights[:, None]).max(axis=0)
    total = int(np.maximum(worth, 0).sum())
    return Fraction(total, exact.total * ratio.denominator * common)
