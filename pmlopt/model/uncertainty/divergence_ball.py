"""Sets of priors within a divergence of a center, convex but not polyhedral."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.core.numbers.arrays import (
    BoolArray,
    DefaultLabels,
    FloatArray,
)
from pmlopt.core.numbers.roots import bisect_intervals
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.model.uncertainty.boxes import AllPriors
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.centered_ball import CenteredBall
from pmlopt.model.uncertainty.prior_set import MEMBERSHIP_ATOL, PriorSet

DECIMALS = Context(prec=60)
DECIMAL_ERROR = Decimal(10) ** -48
"""Digits of decimals in proofs, and what their rounding takes off a number of size one at most."""


class DivergenceBall(CenteredBall):
    """The base of balls `D(Q) <= radius` with a convex divergence D from a center.

    A subclass gives D in floats and its comparison with the radius in rationals, the priors of least mean,
    and a lower bound on the least mean from any multipliers, in rationals: exact checks rest on that. Its
    cvxpy forms are those of the dual for columns, and constraints on the priors themselves.

    Args:
        center: p, all probabilities of which are positive.
        radius: at least 0; a ball of radius 0 has the centre only.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample; else None.
    """

    @staticmethod
    def _read_center(center: PriorLike | Center) -> Prior | Center:
        """Return the centre, whose letters all have a positive probability."""
        return as_prior(center)  # type: ignore[arg-type]  # which refuses another type

    # ------------------------------------------------------------ what a divergence gives

    @abstractmethod
    def compute_divergences(self, laws: FloatArray) -> FloatArray:
        """Compute the (M,) divergences of (N, M) laws from the center."""

    @abstractmethod
    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether a law of N rationals is in the ball with certainty."""

    @property
    @abstractmethod
    def contains_all_priors(self) -> bool:
        """Return whether the ball provably contains every prior."""

    # ------------------------------------------------------------ what follows

    def simplify(self) -> PriorSet | FloatArray:
        """Return the center for a trivial ball, all priors for a complete one, else the ball."""
        if self.radius == 0:
            return self.center.pmf
        return AllPriors(self.size) if self.contains_all_priors else self

    def on_cells(self, cells: LetterCells) -> PriorSet:
        """Return the ball around the cells' masses, with the least means of this one.

        Of all priors with the same masses of cells the one that is like the centre within them is nearest.
        """
        masses = self._masses_on_cells(cells)
        labels = DefaultLabels(cells.size)
        center = (
            Prior.from_counts(masses, labels) if all(masses) else Center.of_counts(masses, labels)
        )
        return type(self)(center, self.radius, self.delta)

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means as for any ball; in integers those over a ball of radius 0 are exact."""
        if matrix.dtype != object or self.radius > 0:
            return super().min_mean_scaled(matrix)
        weights = np.array(self.center.weights, dtype=object)
        return weights @ matrix, int(weights.sum())

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the ball, up to an l1 distance of 1e-12."""
        if self.compute_divergences(p[:, None])[0] <= self.radius:
            return True
        weight = float(self._shares_within(p[:, None])[0])
        return (1 - weight) * float(np.abs(p - self.center.pmf).sum()) <= MEMBERSHIP_ATOL

    def _shares_within(self, laws: FloatArray) -> FloatArray:
        """Compute (M,) the largest weight of each law in a mixture with the center that is in the ball."""
        center = self.center.pmf[:, None]

        def are_inside(shares: FloatArray) -> BoolArray:
            mixed = center + shares * (laws - center)
            return self.compute_divergences(mixed) <= self.radius

        whole = self.compute_divergences(laws) <= self.radius
        return bisect_intervals(are_inside, np.where(whole, 1.0, 0.0), np.ones(laws.shape[1]))[0]

    def find_members(self, measures: FloatArray) -> FloatArray:
        """Find (N, M) priors of the ball near given normalized measures.

        The centre replaces a measure of no mass.
        """
        positive = np.maximum(measures, 0.0)
        masses = positive.sum(axis=0)
        center = self.center.pmf[:, None]
        laws = np.where(masses > 0, positive / np.where(masses > 0, masses, 1.0), center)
        # the divergence is convex: a little further inside, by 1e-12 of the distance from the centre,
        # it is below the radius by more than rounding
        shares = self._shares_within(laws) * (1 - 1e-12)
        return center + shares * (laws - center)

    @property
    def member_slack(self) -> float:
        """Return 0: `find_members` returns elements of the ball with certainty."""
        return 0.0

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Project a law to (N,) rationals that are in the ball with certainty.

        Args:
            law: (N,) finite; negative entries count as zero, and it need not sum to one.
        """
        positive = [Fraction(value) for value in np.maximum(law, 0.0).tolist()]
        total = sum(positive)
        center = self.exact_center
        if not total:
            return np.array(center, dtype=object)
        own = [value / total for value in positive]
        weight = Fraction(float(self._shares_within(np.array([[float(v)] for v in own]))[0]))
        step = Fraction(1, 1 << 52)
        while True:
            near = [q + weight * (value - q) for value, q in zip(own, center, strict=True)]
            if weight == 0 or self.contains_rationals(near):
                return np.array(near, dtype=object)
            weight = max(weight - step, Fraction(0))
            step = 4 * step


def find_boundary(
    evaluate_at: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    radius: float,
    low: FloatArray,
    high: FloatArray,
) -> FloatArray:
    """Find (M,) the logarithms of rates at which divergences that grow with them are the radius; the upper
    end where they are less there.

    Args:
        evaluate_at: (M,) divergences at logarithms of rates, and their derivatives by the logarithms.
        radius: above 0.
        low: (M,) ends at which the divergences are at most the radius.
        high: (M,) other ends.
    """
    # columns that no rate takes out of the ball, among them constants, need no search
    inside = evaluate_at(high)[0] <= radius
    low = np.where(inside, high, low)
    point = np.where(inside, high, 0.0)
    for _ in range(100):
        divergences, slopes = evaluate_at(point)
        inside = divergences <= radius
        low = np.where(inside, point, low)
        high = np.where(inside, high, point)
        if (high - low <= 1e-13).all():
            break
        # Newton's step for log D, which is nearly 2 log rate where D is small
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = np.log(radius / divergences) * divergences / slopes
        # from either side it aims a little further, so that both ends of the bracket come close
        target = point + step + np.where(inside, 2e-14, -2e-14)
        within = np.isfinite(target) & (low < target) & (target < high)
        point = np.where(within, target, (low + high) / 2)
    return low


def to_decimal(number: Fraction) -> Decimal:
    """Convert a rational to a decimal of the current context."""
    return Decimal(number.numerator) / Decimal(number.denominator)
