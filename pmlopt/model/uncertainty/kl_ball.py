"""The set of all priors within a Kullback-Leibler divergence of a center."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.centered_ball import scale_to_unit
from pmlopt.model.uncertainty.divergence_ball import (
    DECIMAL_ERROR,
    DECIMALS,
    DivergenceBall,
    find_boundary,
    to_decimal,
)
from pmlopt.model.uncertainty.prior_set import MinMeanExpression

MAX_LOG_RATE = 300.0
"""The largest logarithm of a rate: past it all but the least entries have no mass that floats hold. Next to
letters of 1e-300, two entries that differ by 1e-15 take a rate of e^41."""


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
        """Return text that describes the priors of the set, to follow "for every prior"."""
        return f"within a divergence of {self.radius:g} nats from the centre"

    @property
    def contains_all_priors(self) -> bool:
        """Return whether the ball provably contains every prior."""
        # the law that is certain of the rarest letter is furthest, at -log of its mass
        rarest = min(self.exact_center)
        with localcontext(DECIMALS):
            return to_decimal(rarest).ln() >= DECIMAL_ERROR * 100 - self._bound_radius()[0]

    def _bound_radius(self) -> tuple[Decimal, Decimal]:
        """Return bounds on the radius, in the decimals of the current context: here the radius itself."""
        return Decimal(self.radius), Decimal(self.radius)

    def compute_divergences(self, laws: FloatArray) -> FloatArray:
        """Compute the (M,) KL divergences of (N, M) laws from the center."""
        p = self.center.pmf[:, None]
        return np.asarray((p * _divergence_terms(laws / p)).sum(axis=0))

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the ball, by decimals of 60 digits
        that are rounded against it.
        """
        if tuple(law) == self.exact_center:
            return True
        with localcontext(DECIMALS):
            terms = [
                to_decimal(q) * to_decimal(q / p).ln()
                for q, p in zip(law, self.exact_center, strict=True)
                if q
            ]
            return sum(terms, Decimal(0)) + DECIMAL_ERROR * len(law) <= self._bound_radius()[0]

    def _find_rates(self, matrix: FloatArray) -> FloatArray:
        """Find (M,) the rates 1 / lam at which the divergence is the radius, for entries in [0, 1] with a
        least one of 0; infinite where all mass goes to the least entries.
        """

        def evaluate_at(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
            rates = np.exp(logs)
            laws = self._tilt(matrix, rates)
            means = (laws * matrix).sum(axis=0)
            # the derivative of the divergence by the rate is the rate times the variance
            slopes = rates**2 * (laws * (matrix - means) ** 2).sum(axis=0)
            return self.compute_divergences(laws), slopes

        bounds = np.full((2, matrix.shape[1]), [[-MAX_LOG_RATE], [MAX_LOG_RATE]])
        logs = find_boundary(evaluate_at, self.radius, *bounds)
        return np.where(logs >= MAX_LOG_RATE - 1, np.inf, np.exp(logs))

    def _tilt(self, matrix: FloatArray, rates: FloatArray) -> FloatArray:
        """Compute the (N, M) exponentially tilted laws proportional to `p e^(-rate v)`."""
        with np.errstate(under="ignore", invalid="ignore"):
            # an infinite rate leaves the mass on the least entries
            powers = np.where(matrix > 0, np.exp(-rates * matrix), 1.0)
        laws = self.center.pmf[:, None] * powers
        return np.asarray(laws / laws.sum(axis=0))

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find (N, M) for each column of an (N, M) matrix the prior of the ball with the least mean."""
        unit = scale_to_unit(matrix)
        return self._tilt(unit, self._find_rates(unit))

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (1, M) tilting rates 1 / lam that maximise `bound_mean`."""
        lowest = matrix.min(axis=0)
        spread = np.ptp(matrix, axis=0)
        rates = self._find_rates(scale_to_unit(matrix)) / np.where(spread > 0, spread, 1.0)
        bounded = np.isfinite(rates) & (spread > 0) & np.isfinite(lowest)
        return np.where(bounded, rates, 0.0)[None, :]

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute the dual bound `-lam log sum p e^(-v / lam) - lam radius` in decimals, rounded down.

        Any lam > 0 gives a bound, by the duality of Gibbs; at other rates it is the least entry.
        """
        (rate,) = multipliers
        lowest = min(column)
        if not rate > 0:
            return lowest
        with localcontext(DECIMALS):
            inverse = 1 / Decimal(rate)
            total = sum(
                (
                    to_decimal(p) * (-Decimal(rate) * to_decimal(value - lowest)).exp()
                    for p, value in zip(self.exact_center, column, strict=True)
                ),
                Decimal(0),
            )
            radius = self._bound_radius()[1]
            found = -inverse * (total.ln() + radius)
            error = DECIMAL_ERROR * len(column) * (1 + inverse) * (1 + radius)
            return lowest + max(Fraction(found - error), Fraction(0))

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Build cvxpy constraints that each measure is its mass times a prior of the ball."""
        center = self.center.pmf[:, None] @ masses
        return [
            cp.sum(measures, axis=0, keepdims=True) == masses,
            cp.sum(cp.rel_entr(measures, center), axis=0) <= self.radius * masses[0],
        ]

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Build the cvxpy expression of the least mean by exponential cones."""
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
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        lowest = matrix.min(axis=0)
        above = matrix - matrix.min(axis=0)
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
    """Compute `t log t - t + 1` accurately near one."""
    off = ratios - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(ratios > 0, ratios * np.log(ratios), 0.0) - off
    near = np.abs(off) < 0.01
    if not near.any():
        return far
    off = np.where(near, off, 0.0)  # the square of others may overflow
    series = np.zeros_like(off)
    for k in reversed(range(8)):  # by Horner's rule, where powers would take most of the time
        series = 1 / ((k + 1) * (k + 2)) - off * series
    return np.where(near, off**2 * series, far)
