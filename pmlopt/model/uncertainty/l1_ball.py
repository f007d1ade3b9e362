"""The set of all priors within an l1 distance of a center, whose members may have zeros."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    FloatArray,
    check_in_interval,
    check_probability,
)
from pmlopt.core.records.fields import ContextReference, Range
from pmlopt.data.prior import Prior, PriorLike, conditional_value_at_risk
from pmlopt.data.symmetry.prior import LetterCells, SymmetricPrior
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.choquet_set import ChoquetSet, LowerProbability
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.model.uncertainty.prior_set import MEMBERSHIP_ATOL, PriorSet, check_possible


class L1Ball(ChoquetSet):
    """The priors Q with `sum_x |Q[x] - p[x]| <= radius`, exact for every radius.

    The adversary takes a mass of radius / 2 from the largest entries of v and gives it to the smallest:
    `w(v) = <p, v> - radius/2 (CVaR(v) - min v)`, CVaR being the mean of v over its largest mass of that size.
    Below 2 min p that is `<p, v> - radius/2 (max v - min v)` [grosse2025empirical, Proposition 2]; from there
    on letters are emptied, and at 2 the ball holds all priors.

    Args:
        center: the prior p, such as an empirical distribution; letters of probability 0 are allowed where the
            radius is positive. The prior of a design is another one then.
        radius: in [0, 2].
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample (see `confidence_ball`).

    Raises:
        PrivacyError: the radius is negative, NaN or above 2, delta is outside (0, 1), or a letter has
            probability 0 in the whole ball.
        PriorError: the centre is no distribution.

    Source: [grosse2025empirical, eq. (5) and Proposition 2]; CVaR: Rockafellar and Uryasev, J. Risk 2 (2000).

    Examples:
        >>> L1Ball([0.5, 0.5], 0.2).min_mean(np.array([[1.0], [0.0]])).round(12)
        array([0.4])
        >>> L1Ball([0.5, 0.3, 0.2], 1.0).minimizer(np.array([0.0, 1.0, 2.0])).round(12)
        array([1., 0., 0.])
        >>> L1Ball([0.5, 0.5, 0.0], 0.2).minimizer(np.array([2.0, 1.0, 0.0])).round(12)  # an unseen letter
        array([0.4, 0.5, 0.1])
    """

    kind: ClassVar[str] = "l1-ball"
    center: Annotated[Prior | Center, ContextReference("prior")]
    radius: Annotated[float, Range(0, 2)]

    def __init__(
        self, center: PriorLike | Center, radius: float, delta: float | None = None
    ) -> None:
        self.center = Center.of(center)
        structured = isinstance(self.center, SymmetricPrior)
        self.labels = None if structured else self.center.labels
        furthest = "; no two distributions are further apart than 2"
        self.radius = check_in_interval(radius, "[0, 2]", "the radius", PrivacyError, furthest)
        self.delta = None if delta is None else check_probability(delta)
        if not structured:  # whose letters all have a mass
            check_possible(self.center.probabilities + self.radius)

    def on_cells(self, cells: LetterCells) -> L1Ball:
        """Return the l1 ball around the cells' masses."""
        center = self.center
        if isinstance(center, SymmetricPrior):
            if not isinstance(cells.whole, SymmetricPrior) or center != cells.whole:
                raise PrivacyError(
                    f"the centre is {center!r}, and the prior of the design {cells.whole!r}"
                )
            return L1Ball(cells.prior, self.radius, self.delta)
        weights = self.values_by_orbit(cells, center.weights, "the masses of the centre are")
        masses = [count * weight for count, weight in zip(cells.counts, weights, strict=True)]
        return L1Ball(
            Center.of_counts(tuple(masses), DefaultLabels(cells.size)), self.radius, self.delta
        )

    def simplify(self) -> PriorSet | FloatArray:
        """Return the center for radius 0, else the ball."""
        return self.center.pmf if self.radius == 0 else self

    @property
    def half_radius(self) -> float:
        """Return radius / 2, the mass that can move between letters."""
        return self.radius / 2

    @property
    def can_empty_letter(self) -> bool:
        """Return whether some prior of the ball gives a letter probability 0."""
        return self.half_radius >= float(self.center.pmf.min())

    def column_families(self, p: FloatArray, exp_neg_epsilon: float) -> tuple[Family, ...] | None:
        """Return the parametric families of extreme columns, of a ball around the prior itself; for radii
        below 2 min p the complete ones.

        From there on there are those of `PlateauKinds` too.
        """
        if not np.array_equal(p, self.center.pmf):
            return None
        # the constraint e^-eps max v <= <p, v> - r (max v - min v) with mean one, solved for max v
        high = 1 / (exp_neg_epsilon + self.half_radius)
        found: list[Family] = [BoxFamily(0.0, high)] if high > 1 else []
        # the same constraint with a positive minimum m: max v <= high + high r m
        found.append(StaircaseFamily(high, high * self.half_radius))
        if self.can_empty_letter:
            found.append(StaircaseFamily(0.0, 1 / exp_neg_epsilon))
        return tuple(found)

    @property
    def description(self) -> str:
        """Return text that describes the priors of the set, to follow "for every prior"."""
        return f"within l1 distance {self.radius:g} of the centre"

    @cached_property
    def float_probability(self) -> LowerProbability:
        """Return the lower probability in floats, with a total near one."""
        return LowerProbability(self.center.pmf, self.half_radius, None, 1.0)

    @cached_property
    def integer_probability(self) -> LowerProbability:
        # a float is a dyadic rational: with its denominator as the unit all masses are whole
        # numbers
        """Return the lower probability times a positive number, in integers without rounding."""
        half = Fraction(self.radius) / 2
        weights = np.array(self.center.weights, dtype=object)
        total = int(weights.sum())
        return LowerProbability(
            weights * half.denominator, total * half.numerator, None, total * half.denominator
        )

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding (`MEMBERSHIP_ATOL`)."""
        return bool(np.abs(p - self.center.pmf).sum() <= self.radius + MEMBERSHIP_ATOL)

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the ball, without rounding."""
        total = sum(self.center.weights)
        shares = (Fraction(weight, total) for weight in self.center.weights)
        distance = sum(abs(q - p) for q, p in zip(law, shares, strict=True))
        return distance <= Fraction(self.radius)

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        """Compute the largest gain `<p g, v>` over allowed columns v and columns g."""
        if self.can_empty_letter or exp_neg_epsilon >= 1 or not np.array_equal(p, self.center.pmf):
            return super().support_function(p, gains, exp_neg_epsilon)
        # extreme columns: 0 and a peak, or two values, high on the k letters of largest gain
        high = exp_neg_epsilon + self.half_radius
        order = np.argsort(-gains, axis=0, kind="stable")
        mass = np.cumsum(p[order], axis=0)
        sums = np.cumsum(p[order] * np.take_along_axis(gains, order, axis=0), axis=0)
        # past `high` the low value would be negative: such prefixes are left out below
        mass = np.minimum(mass, high)
        low = (high - mass) / (high - exp_neg_epsilon * mass)
        # the value of each prefix at once; those of mass `high` or more have no positive low
        # value
        columns = low * sums[-1] + (1 - exp_neg_epsilon * low) / high * sums
        best = float(np.where(mass < high, columns, -np.inf).max())
        return max(
            best,
            float((p @ gains).max()),
            float(conditional_value_at_risk(p, gains, min(high, 1.0)).max()),
        )

    def __repr__(self) -> str:
        """Return size and radius as text."""
        return f"L1Ball(<prior on {self.size} letters>, {self.radius:g})"
