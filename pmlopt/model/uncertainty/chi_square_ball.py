"""The set of all priors within a Pearson chi-square distance of a center."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.centered_ball import PROOF_BITS
from pmlopt.model.uncertainty.divergence_ball import DivergenceBall
from pmlopt.model.uncertainty.prior_set import MinMeanExpression


class ChiSquareBall(DivergenceBall):
    """The priors Q with `sum_x (Q[x] - p[x])^2 / p[x] <= radius`.

    While no letter is emptied the least mean of a column v is `<p, v> - sqrt(radius Var v)`, with the
    variance under p. In general it is that of min(v, c) at the best c: the adversary gives
    `Q ~ p max(c - v, 0)`. From a radius of 1 / min p - 1 on the ball has all priors.

    Args:
        center: the prior p, such as an empirical distribution.
        radius: at least 0.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample; else None.

    Raises:
        PrivacyError: the radius is negative, NaN or infinite, or delta is outside (0, 1).
        PriorError: the centre is no prior.

    Examples:
        >>> ball = ChiSquareBall([0.5, 0.5], 0.04)
        >>> ball.min_mean(np.array([[1.0], [0.0]])).round(12)
        array([0.4])
        >>> ball.minimizer(np.array([1.0, 0.0])).round(12)
        array([0.4, 0.6])
    """

    kind: ClassVar[str] = "chi-square-ball"

    @property
    def description(self) -> str:
        """Return text that describes the priors of the set, to follow "for every prior"."""
        return f"within chi-square distance {self.radius:g} of the centre"

    @property
    def contains_all_priors(self) -> bool:
        """Return whether the ball provably contains every prior."""
        # the law that is certain of the rarest letter is furthest
        return Fraction(self.radius) >= 1 / min(self.exact_center) - 1

    @property
    def can_empty_letter(self) -> bool:
        """Return whether some prior of the ball gives a letter probability 0, up to rounding."""
        rarest = float(self.center.pmf.min())
        return self.radius * (1 - rarest) >= rarest * (1 - 1e-9)

    def compute_divergences(self, laws: FloatArray) -> FloatArray:
        """Compute the (M,) chi-square distances of (N, M) laws from the center."""
        p = self.center.pmf[:, None]
        return np.asarray(((laws - p) ** 2 / p).sum(axis=0))

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether a law of N rationals is in the ball, in exact arithmetic."""
        distance = sum((q - p) ** 2 / p for q, p in zip(law, self.exact_center, strict=True))
        return distance <= Fraction(self.radius)

    def _find_cuts(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Find for each column the clipping value c of the least mean, from sums of positive terms only.

        As c rises from the least entry, `A = sum_x p[x] (c - v[x])^+` grows at the rate of the mass below c,
        and the variance V of min(v, c) at 2 A times the mass from c on. The law `p (c - v)^+ / A` is at the
        distance V / A^2 from the centre, which falls to the radius at the best c.

        Returns:
            (M,) the last entry below c, (M,) how far c is above it, and (M,) A, which is 0 where all mass
            goes to the least entries. The radius must be positive.
        """
        order = np.argsort(matrix, axis=0, kind="stable")
        values = np.take_along_axis(matrix, order, axis=0)
        p = self.center.pmf[order]
        root = math.sqrt(self.radius)
        steps = np.diff(values, axis=0)
        below = np.cumsum(p, axis=0)
        # summed from the other end: one less the mass below loses the rare letters
        from_here = np.cumsum(p[::-1], axis=0)[::-1]
        above = from_here[1:]
        none = np.zeros((1, matrix.shape[1]))
        # at each entry: A times the root of the radius, whose square may underflow without it, and V
        sums = np.vstack([none, np.cumsum(below[:-1] * steps, axis=0)])
        grown = above * steps * (sums[:-1] + sums[1:])
        variances = np.vstack([none, np.cumsum(grown, axis=0)])
        scaled = root * sums
        inside = (variances[1:] <= scaled[1:] ** 2) & (steps > 0)
        ended = np.ones(none.shape, dtype=bool)
        last = np.vstack([inside, ended]).argmax(axis=0)
        at = partial(_take_rows, last[None, :])
        mass = at(below)
        rest = at(np.vstack([above, none]))
        start = at(scaled)
        # V rises by rest / mass times what A^2 rises by: the radius times A^2 reaches it here, or by rounding
        # only beyond the next entry
        missing = np.maximum(at(variances) - start**2, 0.0)
        next_end = at(np.vstack([scaled[1:], none + np.inf]))
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = missing / (1 - rest / (mass * self.radius))
        missing = np.where(missing > 0, needed, 0.0)
        missing = np.minimum(missing, next_end**2 - start**2)
        end = np.sqrt(start**2 + missing)
        step = missing / np.where(end > 0, end + start, 1.0) / (mass * root)
        return at(values), step, end / root

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find for each column of (N, M) the prior of the ball with the least mean."""
        p = self.center.pmf[:, None]
        if self.radius == 0:
            return np.repeat(p, matrix.shape[1], axis=1)
        edge, step, total = self._find_cuts(matrix)
        constant = matrix.max(axis=0) == matrix.min(axis=0)
        # where nothing is above the least entries, all of which keep their shares
        heights = np.where(total > 0, np.maximum(edge - matrix + step, 0.0), matrix <= edge)
        laws = np.where(constant, p, p * heights)
        return np.asarray(laws / laws.sum(axis=0))

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (2, M) clipping values c that maximise `bound_mean`: an entry, and how far c is above it.

        Next to rare letters c is closer to the entry than floats near it are to each other.
        """
        if self.radius == 0:
            return np.vstack([matrix.max(axis=0), np.zeros(matrix.shape[1])])
        edge, step, _ = self._find_cuts(matrix)
        return np.vstack([edge, step])

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute `<p, u> - sqrt(radius Var u)` for `u = min(v, c)`, rounded down: u is at most v, and no
        prior of the ball has a smaller mean of it, by the inequality of Cauchy and Schwarz.
        """
        edge, step = multipliers
        # the entry itself, of which the first number is the nearest float
        entry = max((value for value in column if float(value) <= edge), default=Fraction(edge))
        cut = entry + Fraction(step)
        cells = [min(value, cut) for value in column]
        mean = sum(p * u for p, u in zip(self.exact_center, cells, strict=True))
        square = sum(p * u * u for p, u in zip(self.exact_center, cells, strict=True))
        return Fraction(mean - _round_root_up(Fraction(self.radius) * (square - mean * mean)))

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Build cvxpy constraints that each measure is its mass times a prior of the ball."""
        p = self.center.pmf[:, None]
        scaled = cp.multiply(1 / np.sqrt(p), measures - p @ masses)
        return [
            measures >= 0,
            cp.sum(measures, axis=0, keepdims=True) == masses,
            cp.norm(scaled, 2, axis=0) <= math.sqrt(self.radius) * masses[0],
        ]

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Build the cvxpy expression `<p, u> - sqrt(radius) s` of the least mean, a second-order cone.

        Where no letter can be emptied u is the column itself.
        """
        p = self.center.pmf[:, None]
        row = largest.shape
        spread = cp.Variable(row, nonneg=True, name="spread")
        variables = {"spread": spread}
        constraints: dict[str, cp.Constraint] = {}
        held: cp.Expression = mechanism
        if self.can_empty_letter:
            held = variables["below_cut"] = cp.Variable(
                mechanism.shape, nonneg=True, name="below_cut"
            )
            constraints["below_cut"] = held <= mechanism
        mean = p.T @ held
        scaled = cp.multiply(np.sqrt(p), held - np.ones(p.shape) @ mean)
        constraints["spread"] = cp.norm(scaled, 2, axis=0) <= spread[0]
        return MinMeanExpression(mean - math.sqrt(self.radius) * spread, constraints, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        p = self.center.pmf[:, None]
        found = {}
        held = matrix
        if self.can_empty_letter:
            tops = matrix.max(axis=0)
            tops = np.where(tops > 0, tops, 1.0)
            cuts = self.find_multipliers(matrix / tops).sum(axis=0)
            held = found["below_cut"] = np.minimum(matrix, tops * cuts)
        variance = (p * (held - p.T @ held) ** 2).sum(axis=0)
        found["spread"] = np.sqrt(np.maximum(variance, 0.0))[None, :]
        return found


def _take_rows(rows: NDArray[np.intp], array: FloatArray) -> FloatArray:
    """Take from each column of (N, M) the entry in its one of (1, M) rows."""
    return np.asarray(np.take_along_axis(array, rows, axis=0)[0])


def _round_root_up(number: Fraction) -> Fraction:
    """Compute a rational upper bound on the square root of a rational."""
    if number <= 0:
        return Fraction(0)
    above = number.numerator
    below = number.denominator
    # so many digits that those before the first one that is not 0 do not count
    bits = PROOF_BITS + max(0, below.bit_length() - above.bit_length()) // 2 + 1
    return Fraction(math.isqrt((above << 2 * bits) // below) + 1, 1 << bits)
