"""The set of all priors under which a sample is likely enough: the region of the likelihood ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, check_integer, check_probability
from pmlopt.core.numbers.roots import bisect
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.centered_ball import scale_to_unit
from pmlopt.model.uncertainty.divergence_ball import (
    DECIMAL_ERROR,
    DECIMALS,
    DivergenceBall,
    find_boundary,
    to_decimal,
)
from pmlopt.model.uncertainty.prior_set import MinMeanExpression, check_possible


class LikelihoodRegion(DivergenceBall):
    """The priors Q with `sum_x p[x] log(p[x] / Q[x]) <= radius`, in nats, p being the shares of a sample.

    These are the priors under which m observations are at least `e^(-m radius)` times as likely as under
    their own shares. The least mean of a column v is `max mu + exp(sum_x p[x] log(v[x] - mu) - radius)`
    over mu < min v, and the prior that attains it is `Q ~ p / (v - mu)`. No radius holds all priors: each
    letter of the sample keeps a positive probability. A letter that was not observed may have any up to
    `1 - e^(-radius)`.

    Args:
        center: the shares p of the letters; some may be 0 where the radius is positive.
        radius: at least 0, in nats.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample (see `confidence_region`); else None.

    Raises:
        PrivacyError: the radius is negative, NaN or infinite, delta is outside (0, 1), or a letter has
            probability 0 in the whole region.
        PriorError: the centre is no distribution.

    Source: Owen, Empirical likelihood ratio confidence regions, Ann. Statist. 18 (1990).

    Examples:
        >>> region = LikelihoodRegion([0.5, 0.5], 0.02)
        >>> region.minimizer(np.array([1.0, 0.0])).round(6)  # 4 q (1 - q) = e^-0.04
        array([0.400992, 0.599008])
        >>> LikelihoodRegion([1.0, 0.0], 0.5).min_mean(np.array([[1.0], [0.0]])).round(6)  # e^-0.5
        array([0.606531])
    """

    kind: ClassVar[str] = "likelihood-region"

    def __init__(
        self, center: PriorLike | Center, radius: float, delta: float | None = None
    ) -> None:
        super().__init__(center, radius, delta)
        check_possible(self.center.pmf + self.radius)

    @staticmethod
    def _read_center(center: PriorLike | Center) -> Prior | Center:
        """Return the centre, in which letters that were not observed have the probability 0."""
        return Center.of(center)

    @cached_property
    def _observed_mask(self) -> BoolArray:
        """Return (N,) whether each letter has a positive share."""
        return self.center.pmf > 0

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        return f"from which the divergence of the centre is at most {self.radius:g} nats"

    @property
    def contains_all_priors(self) -> bool:
        """Return whether every prior is in the region for certain: only where there is a single one."""
        return self.size == 1

    def is_shown_by_sample(self) -> bool | None:
        """Return True where the bound of the multinomial law shows that the counts of the centre leave out
        the true law with probability delta at most; None where that does not follow.
        """
        if self.delta is None or self.center.counts is None:
            return None
        needed = multinomial_radius(sum(self.center.counts), self.size, self.delta)
        # files may hold the radius of another machine, whose logarithms differ in the last digits
        return True if self.radius >= needed * (1 - 1e-9) else None

    def compute_divergences(self, laws: FloatArray) -> FloatArray:
        """Compute (M,) the divergences of the centre from the (N, M) laws."""
        p = self.center.pmf[self._observed_mask, None]
        own = laws[self._observed_mask]
        return np.asarray(self._sum_ratios(own / p) + laws[~self._observed_mask].sum(axis=0))

    def _sum_ratios(self, ratios: FloatArray) -> FloatArray:
        """Compute (M,) the divergences from (K, M) ratios q / p of the observed letters, but for the mass of
        the others.
        """
        # log p / q = (1 - q / p) + (a term of at least 0), and the q of observed letters sum to at most one
        terms = self.center.pmf[self._observed_mask, None] * _subtract_logarithms(ratios)
        return np.asarray(terms.sum(axis=0))

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the region, by decimals of 60
        digits that are rounded against it.
        """
        if tuple(law) == self.exact_center:
            return True
        pairs = [(p, q) for p, q in zip(self.exact_center, law, strict=True) if p]
        if not all(q for _, q in pairs):
            return False
        with localcontext(DECIMALS):
            terms = [to_decimal(p) * to_decimal(p / q).ln() for p, q in pairs]
            return sum(terms, Decimal(0)) + DECIMAL_ERROR * len(law) <= Decimal(self.radius)

    def _find_distances(self, unit: FloatArray) -> FloatArray:
        """Find (M,) how far mu is below the least entry, 0, of columns in [0, 1]: there the divergence is
        the radius. It is 0 where unobserved letters of least entry take what is left.
        """

        def evaluate_at(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
            """Evaluate the divergences, and their derivatives, at logarithms of 1 / distance."""
            distances = np.exp(-logs)
            # not from the laws: the least masses of rare letters underflow, their ratios do not
            ratios = self._compute_ratios(unit, distances)
            inverse = distances / (unit + distances)
            off = self.center.pmf[:, None] * (ratios - 1)
            return self._sum_ratios(ratios[self._observed_mask]), (off * inverse).sum(axis=0)

        inner = self._find_inner_least(unit)
        with np.errstate(divide="ignore", invalid="ignore"):
            # next to mu = 0 the masses lam p / v of observed letters sum to less than one
            observed = unit[self._observed_mask]
            p = self.center.pmf[self._observed_mask, None]
            logs = (p * np.log(observed)).sum(axis=0) - self.radius
            short = (inner > 0) & (np.exp(logs) * (p / observed).sum(axis=0) <= 1)
        # at the one end no letter is moved by more than floats hold, at the other distances are normal floats
        ends = np.full((2, unit.shape[1]), [[-46.0], [700.0]])
        return np.where(short, 0.0, np.exp(-find_boundary(evaluate_at, self.radius, *ends)))

    def _find_inner_least(self, unit: FloatArray) -> FloatArray:
        """Find (M,) the least entries at the letters that were observed."""
        return np.asarray(unit[self._observed_mask].min(axis=0))

    def _compute_ratios(self, unit: FloatArray, distances: FloatArray) -> FloatArray:
        """Compute (N, M) the laws `p / (v + distance)` over their sums and over p, for columns in [0, 1]."""
        # relative to the smallest denominator: nothing overflows
        nearest = self._find_inner_least(unit) + distances
        ratios = nearest / (unit + distances)
        return ratios / (self.center.pmf @ ratios)

    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find (N, M) for each column of an (N, M) matrix the prior of the region with the least mean."""
        unit = scale_to_unit(matrix)
        distances = self._find_distances(unit)
        short = distances == 0
        ratios = self._compute_ratios(unit, np.where(short, 1.0, distances))
        laws = self.center.pmf[:, None] * ratios
        for y in np.flatnonzero(short).tolist():
            laws[:, y] = self._leave_rest(unit[:, y])
        return laws

    def _leave_rest(self, column: FloatArray) -> FloatArray:
        """Compute the (N,) law `lam p / v` on observed letters; the letter of least entry takes the rest."""
        p = self.center.pmf
        seen = self._observed_mask
        law = np.zeros(len(column))
        logs = p[seen] @ np.log(column[seen]) - self.radius
        law[seen] = np.exp(logs) * p[seen] / column[seen]
        law[int(np.argmin(np.where(seen, np.inf, column)))] = 1 - law.sum()
        return law

    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (1, M) numbers mu at which `bound_mean` is largest, for entries in [0, 1]."""
        lowest = matrix.min(axis=0)
        spread = np.ptp(matrix, axis=0)
        return np.asarray((lowest - spread * self._find_distances(scale_to_unit(matrix)))[None, :])

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute `mu + exp(sum p log(v - mu) - radius)` in decimals, rounded down.

        Any mu of at most the least entry gives a bound: `<Q, v - mu>` is at least that exponential by the
        inequality of the weighted means.
        """
        lowest = min(column)
        # past it, the least entry; rounding of the number must not cross it
        mu = min(Fraction(multipliers[0]), lowest)
        pairs = [(p, v - mu) for p, v in zip(self.exact_center, column, strict=True) if p]
        if not all(distance for _, distance in pairs):
            return lowest
        with localcontext(DECIMALS):
            radius = Decimal(self.radius)
            logs = sum(
                (to_decimal(p) * to_decimal(distance).ln() for p, distance in pairs), -radius
            )
            largest = max(distance for _, distance in pairs)
            error = DECIMAL_ERROR * len(column) * (1 + radius) * (1 + to_decimal(largest))
            return max(lowest, mu + Fraction(logs.exp() - error))

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Return constraints by which each measure is a prior of the region times its mass."""
        seen = np.flatnonzero(self._observed_mask)
        center = self.center.pmf[seen, None] @ masses
        return [
            measures >= 0,
            cp.sum(measures, axis=0, keepdims=True) == masses,
            cp.sum(cp.rel_entr(center, measures[seen]), axis=0) <= self.radius * masses[0],
        ]

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Return m with `lam e^(s[x] / lam) <= v[x] - mu`, `<p, s> >= radius lam` and `mu = m - lam`, by
        exponential cones.
        """
        seen = np.flatnonzero(self._observed_mask)
        unseen = np.flatnonzero(~self._observed_mask)
        ones = np.ones((len(seen), 1))
        scale = cp.Variable(largest.shape, nonneg=True, name="scale")
        value = cp.Variable(largest.shape, name="likely_mean")
        logs = cp.Variable((len(seen), largest.shape[1]), name="logarithms")
        above = mechanism[seen] - ones @ (value - scale)
        constraints = {
            "logarithms": cp.constraints.ExpCone(logs, ones @ scale, above),
            "scale": self.radius * scale <= self.center.pmf[None, seen] @ logs,
        }
        if len(unseen):
            constraints["unobserved"] = (
                np.ones((len(unseen), 1)) @ (value - scale) <= mechanism[unseen]
            )
        variables = {"scale": scale, "likely_mean": value, "logarithms": logs}
        return MinMeanExpression(value, constraints, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        least = self.min_mean(matrix)
        scale = np.maximum(least - self.find_multipliers(matrix)[0], 0.0)
        off = (matrix[self._observed_mask] - least) / np.where(scale > 0, scale, 1.0)
        logs = np.where(scale > 0, scale * np.log1p(np.maximum(off, -1 + 1e-16)), 0.0)
        return {"scale": scale[None, :], "likely_mean": least[None, :], "logarithms": logs}


def _subtract_logarithms(ratios: FloatArray) -> FloatArray:
    """Compute `t - 1 - log t` of ratios t, by its series next to one; infinity at t = 0."""
    off = ratios - 1
    with np.errstate(divide="ignore"):
        far = off - np.log(ratios)
    near = np.abs(off) < 0.01
    off = np.where(near, off, 0.0)  # powers of others may overflow
    series = off**2 * sum((-off) ** k / (k + 2) for k in range(9))
    return np.where(near, series, far)


def multinomial_radius(samples: int, size: int, delta: float) -> float:
    """Compute the divergence of the empirical distribution from the true one that is exceeded with
    probability at most delta.

    The radius r of at least (N - 1) / m at which `e^(-m r) (e m r / (N - 1))^(N - 1)` is delta, rounded up.

    Args:
        samples: m, independent draws.
        size: N, the number of letters.
        delta: in (0, 1).

    Returns:
        A radius in nats; 0 for one letter, which has one distribution only.

    Raises:
        PrivacyError: samples or size is not a whole number of at least 1, or delta is outside (0, 1).

    Source: [agrawal2020finite, Theorem I.2].

    Examples:
        >>> from pmlopt.model.uncertainty import multinomial_radius
        >>> radius = multinomial_radius(1000, 2, 0.01)  # e^(1 - y) y = 0.01 at y = m r
        >>> round(math.exp(1 - 1000 * radius) * 1000 * radius, 12)
        0.01
    """
    draws = check_integer(samples, "the number of samples", PrivacyError)
    degrees = check_integer(size, "the size of the alphabet", PrivacyError) - 1
    outside = check_probability(delta)
    if degrees == 0:
        return 0.0

    def is_large_enough(radius: float) -> bool:
        with localcontext(DECIMALS):
            # (N - 1) (y - 1 - log y) >= -log delta with y = m r / (N - 1)
            relative = Decimal(draws) * Decimal(radius) / degrees
            if relative < 1:
                return False
            exponent = degrees * (relative - 1 - relative.ln())
            return exponent + Decimal(outside).ln() >= DECIMAL_ERROR * degrees * (1 + relative)

    low = degrees / draws
    high = (2 * degrees - 2 * math.log(outside)) / draws
    while not is_large_enough(high):
        high *= 2
    return bisect(is_large_enough, low, high, 0.0)
