"""The set of all priors within a Pearson chi-square distance of a center."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp
from pmlopt.model.uncertainty.divergence_ball import PROOF_BITS, DivergenceBall
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

    def _find_cuts(
        self, matrix: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Find for each column the clipping value c of the least mean, with the mass and mean below it.

        The letters are the first k in ascending order, of mass P, mean m and variance s^2 given them, and
        `(c - m)^2 ((1 + radius) P - 1) = s^2`. The k is the first at whose next entry, in the place of c,
        the left side would be at least s^2: the cut is below that entry then.

        Returns:
            (N, M) whether a letter is below the cut, (M,) their mass, (M,) their mean, and (M,) the factor,
            infinite where all mass goes to the least entries.
        """
        order = np.argsort(matrix, axis=0, kind="stable")
        values = np.take_along_axis(matrix, order, axis=0)
        p = self.center.pmf[order]
        masses = np.cumsum(p, axis=0)
        masses = masses / masses[-1]
        means = np.cumsum(p * values, axis=0) / masses
        # sums of squares from the mean of the letters so far on, by Welford's recurrence
        steps = np.diff(values, axis=0, prepend=values[:1])
        before = np.vstack([values[:1], means[:-1]])
        squares = np.cumsum(p * (values - before) * (values - means), axis=0)
        variances = np.maximum(squares, 0.0) / masses
        factors = (1 + self.radius) * masses - 1
        following = np.vstack([values[1:], np.full((1, matrix.shape[1]), np.inf)])
        with np.errstate(invalid="ignore", over="ignore"):
            ends = (factors > 0) & (
                (following - means) ** 2 * np.maximum(factors, 0.0) >= variances
            )
        ends[-1] = True
        # equal entries are below the cut together, unless they are at it
        ends[:-1] &= steps[1:] > 0
        last = ends.argmax(axis=0)[None, :]
        mass, mean, variance, factor = (
            np.take_along_axis(array, last, axis=0)[0]
            for array in (masses, means, variances, factors)
        )
        # with all letters below the cut the factor is the radius itself
        factor = np.where(last[0] == len(matrix) - 1, self.radius, factor)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(variance > 0, np.sqrt(factor / variance), np.inf)
        rates = np.where((variance == 0) & (last[0] == len(matrix) - 1), 0.0, rates)
        below = np.zeros(matrix.shape, dtype=bool)
        np.put_along_axis(below, order, np.arange(len(matrix))[:, None] <= last, axis=0)
        return below, mass, mean, rates

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find for each column of (N, M) the prior of the ball with the least mean."""
        # from the least entry on, so that entries that are nearly alike keep their digits
        matrix = matrix - matrix.min(axis=0)
        below, mass, mean, rates = self._find_cuts(matrix)
        moved = np.where(np.isfinite(rates), rates, 0.0) * (matrix - mean)
        laws = np.where(below, np.maximum(1 - moved, 0.0), 0.0) * self.center.pmf[:, None] / mass
        return np.asarray(laws / laws.sum(axis=0))

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (1, M) clipping values c that maximise `bound_mean`."""
        lowest = matrix.min(axis=0)
        _, _, mean, rates = self._find_cuts(matrix - lowest)
        with np.errstate(divide="ignore"):
            cuts = lowest + mean + np.where(np.isfinite(rates), 1 / rates, 0.0)
        return np.asarray(np.minimum(cuts, 1.0)[None, :])

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute `<p, u> - sqrt(radius Var u)` for `u = min(v, c)`, rounded down: u is at most v, and no
        prior of the ball has a smaller mean of it, by the inequality of Cauchy and Schwarz.
        """
        cut = Fraction(multipliers[0])
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
        p, row = self.center.pmf[:, None], largest.shape
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
        p, found = self.center.pmf[:, None], {}
        held = matrix
        if self.can_empty_letter:
            tops = matrix.max(axis=0)
            tops = np.where(tops > 0, tops, 1.0)
            held = found["below_cut"] = np.minimum(
                matrix, tops * self.find_multipliers(matrix / tops)
            )
        found["spread"] = np.sqrt(np.maximum((p * (held - p.T @ held) ** 2).sum(axis=0), 0.0))[
            None, :
        ]
        return found


def _round_root_up(number: Fraction) -> Fraction:
    """Compute a rational upper bound on the square root of a rational."""
    if number <= 0:
        return Fraction(0)
    above, below = number.numerator, number.denominator
    # so many digits that those before the first one that is not 0 do not count
    bits = PROOF_BITS + max(0, below.bit_length() - above.bit_length()) // 2 + 1
    return Fraction(math.isqrt((above << 2 * bits) // below) + 1, 1 << bits)
