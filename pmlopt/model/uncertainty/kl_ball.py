"""The set of all priors within a Kullback-Leibler divergence of a centre."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp
from pmlopt.model.uncertainty.divergence_ball import DivergenceBall
from pmlopt.model.uncertainty.prior_set import MinMeanExpression

DIGITS, DECIMAL_ERROR = 60, Decimal(10) ** -48
"""Digits of decimals in proofs, and what their rounding takes off a number of size one at most."""

MAX_LOG_RATE = 40.0
"""The largest logarithm of a rate: past it all but the least entries have no mass that floats hold."""


class KLBall(DivergenceBall):
    """The priors Q with `sum_x Q[x] log(Q[x] / p[x]) <= radius`, in nats.

    The least mean of a column v is `max -lam log sum_x p[x] e^(-v[x] / lam) - lam radius` over lam > 0, and
    the prior that attains it is `Q ~ p e^(-v / lam)`. From a radius of -log min p on the ball has all priors.

    Args:
        center: the prior p.
        radius: at least 0, in nats.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample; else None.

    Raises:
        PrivacyError: the radius is negative, NaN or infinite, or delta is outside (0, 1).
        PriorError: the centre is no prior.

    Source: Hu and Hong, Kullback-Leibler divergence constrained distributionally robust optimization (2013).

    Examples:
        >>> ball = KLBall([0.5, 0.5], 0.02)
        >>> ball.minimizer(np.array([1.0, 0.0])).round(6)
        array([0.400335, 0.599665])
    """

    kind: ClassVar[str] = "kl-ball"

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        return f"within a divergence of {self.radius:g} nats from the centre"

    @property
    def has_all_priors(self) -> bool:
        """Return whether every prior is in the ball for certain."""
        # the law that is certain of the rarest letter is furthest, at -log of its mass
        rarest = min(self.exact_center)
        with localcontext(Context(prec=DIGITS)):
            return _to_decimal(rarest).ln() >= DECIMAL_ERROR * 100 - Decimal(self.radius)

    def compute_divergences(self, laws: FloatArray) -> FloatArray:
        """Compute (M,) the divergences of the (N, M) laws from the centre."""
        p = self.center.pmf[:, None]
        return np.asarray((p * _divergence_terms(laws / p)).sum(axis=0))

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the ball, by decimals of 60 digits
        that are rounded against it.
        """
        if tuple(law) == self.exact_center:
            return True
        with localcontext(Context(prec=DIGITS)):
            terms = [
                _to_decimal(q) * _to_decimal(q / p).ln()
                for q, p in zip(law, self.exact_center, strict=True)
                if q
            ]
            return sum(terms, Decimal(0)) + DECIMAL_ERROR * len(law) <= Decimal(self.radius)

    def _find_rates(self, matrix: FloatArray) -> FloatArray:
        """Find (M,) the rates 1 / lam at which the divergence is the radius, for entries in [0, 1] with a
        least one of 0; infinite where all mass goes to the least entries.
        """
        high = np.full(matrix.shape[1], MAX_LOG_RATE)
        # columns that no rate takes out of the ball, among them constants, need no search
        inside = self.compute_divergences(self._tilt(matrix, np.exp(high))) <= self.radius
        low = np.where(inside, high, -high)
        point = np.where(inside, high, 0.0)
        for _ in range(100):
            rates = np.exp(point)
            laws = self._tilt(matrix, rates)
            divergences = self.compute_divergences(laws)
            inside = divergences <= self.radius
            low, high = np.where(inside, point, low), np.where(inside, high, point)
            if (high - low <= 1e-13).all():
                break
            # Newton's step for log D, which is nearly 2 log rate where D is small: dD / d rate is rate Var
            means = (laws * matrix).sum(axis=0)
            slopes = rates**2 * (laws * (matrix - means) ** 2).sum(axis=0)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = np.log(self.radius / divergences) * divergences / slopes
            # from either side it aims a little further, so that both ends of the bracket come close
            target = point + step + np.where(inside, 2e-14, -2e-14)
            within = np.isfinite(target) & (low < target) & (target < high)
            point = np.where(within, target, (low + high) / 2)
        return np.where(low >= MAX_LOG_RATE - 1, np.inf, np.exp(low))

    def _tilt(self, matrix: FloatArray, rates: FloatArray) -> FloatArray:
        """Compute the (N, M) laws `p e^(-rate v)` over their sums, from columns with a least entry of 0."""
        with np.errstate(under="ignore", invalid="ignore"):
            # an infinite rate leaves the mass on the least entries
            powers = np.where(matrix > 0, np.exp(-rates * matrix), 1.0)
        laws = self.center.pmf[:, None] * powers
        return np.asarray(laws / laws.sum(axis=0))

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find (N, M) for each column of an (N, M) matrix the prior of the ball with the least mean."""
        unit = _scale_to_unit(matrix)
        return self._tilt(unit, self._find_rates(unit))

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (1, M) rates 1 / lam at which `bound_mean` is largest; 0 means the least entry."""
        lowest, spread = matrix.min(axis=0), np.ptp(matrix, axis=0)
        rates = self._find_rates(_scale_to_unit(matrix)) / np.where(spread > 0, spread, 1.0)
        bounded = np.isfinite(rates) & (spread > 0) & np.isfinite(lowest)
        return np.asarray(np.where(bounded, rates, 0.0)[None, :])

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute `-lam log sum p e^(-v / lam) - lam radius` at a rate 1 / lam in decimals, rounded down.

        Any lam > 0 gives a bound, by the duality of Gibbs; at other rates it is the least entry.
        """
        (rate,) = multipliers
        lowest = min(column)
        if not rate > 0:
            return lowest
        with localcontext(Context(prec=DIGITS)):
            inverse = 1 / Decimal(rate)
            total = sum(
                (
                    _to_decimal(p) * (-Decimal(rate) * _to_decimal(value - lowest)).exp()
                    for p, value in zip(self.exact_center, column, strict=True)
                ),
                Decimal(0),
            )
            found = -inverse * (total.ln() + Decimal(self.radius))
            error = DECIMAL_ERROR * len(column) * (1 + inverse) * (1 + Decimal(self.radius))
            return lowest + max(Fraction(found - error), Fraction(0))

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Return constraints by which each measure is a prior of the ball times its mass."""
        center = self.center.pmf[:, None] @ masses
        return [
            cp.sum(measures, axis=0, keepdims=True) == masses,
            cp.sum(cp.rel_entr(measures, center), axis=0) <= self.radius * masses[0],
        ]

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Return `s - lam radius` with `sum_x p[x] lam e^((s - v[x]) / lam) <= lam`, by exponential cones."""
        ones = np.ones((self.size, 1))
        scale = cp.Variable(largest.shape, nonneg=True, name="scale")
        value = cp.Variable(largest.shape, name="soft_minimum")
        powers = cp.Variable(mechanism.shape, nonneg=True, name="powers")
        constraints = {
            "powers": cp.constraints.ExpCone(ones @ value - mechanism, ones @ scale, powers),
            "scale": self.center.pmf[None, :] @ powers <= scale,
        }
        variables = {"scale": scale, "soft_minimum": value, "powers": powers}
        return MinMeanExpression(value - self.radius * scale, constraints, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        lowest, above = matrix.min(axis=0), matrix - matrix.min(axis=0)
        rates = self.find_multipliers(matrix)[0]
        scale = np.where(rates > 0, 1 / np.where(rates > 0, rates, 1.0), 0.0)
        # log of the mean power, from its distance to one where all are near one
        means = self.center.pmf @ np.expm1(-rates * above)
        value = -scale * np.log1p(means)
        powers = scale * np.exp(rates * (value - above))
        return {
            "scale": scale[None, :],
            "soft_minimum": (lowest + value)[None, :],
            "powers": powers,
        }


def _divergence_terms(ratios: FloatArray) -> FloatArray:
    """Compute `t log t - t + 1` of ratios t, by its series next to one."""
    off = ratios - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(ratios > 0, ratios * np.log(ratios), 0.0) - off
    near = np.abs(off) < 0.01
    if not near.any():
        return np.asarray(far)
    series = np.zeros_like(off)
    for k in reversed(range(8)):  # by Horner's rule, where powers would take most of the time
        series = 1 / ((k + 1) * (k + 2)) - off * series
    return np.asarray(np.where(near, off**2 * series, far))


def _scale_to_unit(matrix: FloatArray) -> FloatArray:
    """Subtract the least entry of each column, and divide by the largest remainder."""
    above = matrix - matrix.min(axis=0)
    spread = above.max(axis=0)
    return np.asarray(above / np.where(spread > 0, spread, 1.0))


def _to_decimal(number: Fraction) -> Decimal:
    """Convert a rational to a decimal of the current context."""
    return Decimal(number.numerator) / Decimal(number.denominator)
