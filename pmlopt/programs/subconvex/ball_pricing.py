"""Pricing of columns over l1 balls around the prior, with a bound for plateau columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.maxima import bound_maximum
from pmlopt.model.uncertainty.columns import BoxFamily, Family, StaircaseFamily
from pmlopt.programs.subconvex.columns import ColumnBatch, ColumnPricer, PricingResult
from pmlopt.programs.subconvex.split_pricing import SplitPricer
from pmlopt.programs.subconvex.tangents import TangentPricer
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

CONDITION_RTOL = 1e-12
"""What the theorem's conditions must have to spare, for the rounding of e^-epsilon."""


def bound_ball_information(exp_neg_epsilon: float, half: float) -> float:
    """Bound the information of any PML column over an l1 ball of radius 2 half; inf where unproved.

    It is proved for `half <= e^-eps` and `3 half + 2 e^-eps <= 2`; see Theorem 16 of the page of results.

    Examples:
        >>> round(np.exp(-bound_ball_information(0.4, 0.1)).item(), 12)
        0.5
        >>> bound_ball_information(0.5, 0.49)
        inf
    """
    if half > exp_neg_epsilon or 3 * half + 2 * exp_neg_epsilon > 2 - CONDITION_RTOL:
        return math.inf
    # under both conditions Theorem 16 applies: the information is at most -log(keep + half)
    return -math.log(exp_neg_epsilon + half)


def bound_family_information(families: Sequence[Family]) -> float:
    """Bound the information of non-plateau columns of ball families; infinite for other families."""
    for family in families:
        if isinstance(family, StaircaseFamily) and family.slope < family.base < math.inf:
            box = BoxFamily(0.0, family.base)
            if box in families:
                return bound_ball_information(
                    (1 - family.slope) / family.base, family.slope / family.base
                )
    return math.inf


def bound_plateaus(
    p: FloatArray,
    exp_neg_epsilon: float,
    half: float,
    rho: FloatArray,
    others: float,
    cutoff: float,
) -> float:
    """Bound the reduced value of plateau columns in mutual information, given that of other columns.

    A plateau is `c A + (1 - c) B` with A and B the columns that are constant on one of two nested sets, of
    masses `a < half < s < 1`, and zero elsewhere. B is a column of the ball, too, and with `tall = c / a`

        mu(lam) <= (1 - c) mu(B) + c (c + log top),   top = (1 - c + tall half) / (keep + half),
        mu(B) <= log(1 - keep tall / (1 - c)) - log(keep + half):

    so that a plateau is worth little more than its B, or is tall, and then its B is worth less than other
    columns. The largest value over c is bounded cell by cell.

    Proof: with `b = (1 - c) / s` and `top = max lam`,
    `mu(lam) = c log top + (1 - c) (a/s log(top / b) + log(1 - c) - log s)`, where `log x <= x - 1` and
    `log(1 - c) <= -c`. The cost gives `1 / s <= (1 - keep tall / (1 - c)) / (keep + half)`. Here a is at most
    half, and for `half <= keep` the larger of both effects of `tall` is that on mu(B).

    Args:
        p: (N,) the prior.
        exp_neg_epsilon: e^-epsilon.
        half: half of the ball's radius, at most `e^-eps`.
        rho: (N,) the multipliers.
        others: what no column without plateau is worth beyond its cost.
        cutoff: a bound of this much need not be lowered.
    """
    total = exp_neg_epsilon + half
    light = p <= half * (1 + CONDITION_RTOL)
    # a plateau needs an inner set of mass below half: with no light letter there is none
    if total >= 1 or not light.any():
        return others
    # the inner set consists of light letters, so its mass cannot exceed theirs
    mass = min(half, float(p[light].sum()) * (1 + CONDITION_RTOL))
    max_value = -math.log(total) - float(rho.min())  # what B is worth at most
    # the least multiplier of a light letter is the least that the inner set can pay per mass
    rate = float(rho[light].min())
    # a taller plateau has a B that is worth less
    same = max(0.0, -math.expm1(min(others - max_value, 0.0))) / exp_neg_epsilon

    # each term is monotone or convex in c, so a cell is bounded by its two ends
    def bound_cells(low: FloatArray, high: FloatArray) -> FloatArray:
        # log 0 = -inf is wanted: such a tall plateau leaves no mass to its B
        with np.errstate(divide="ignore"):
            less = np.log(np.maximum(1 - exp_neg_epsilon * low / (mass * (1 - low)), 0.0))
        other = np.minimum(others, max_value + less)
        tall = np.maximum((1 - low) * same, high / mass)
        slope = np.log(np.minimum((1 - low + tall * half) / total, 1 / exp_neg_epsilon)) - rate
        alone = np.maximum(low * (low + slope), high * (high + slope))
        return np.maximum((1 - low) * other, (1 - high) * other) + alone

    # a cell of width zero is the bound at a point: no refinement can get below it
    def bound_ends(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return bound_cells(low, low), bound_cells(low, high)

    # beyond this c the logarithm in the bound of B is that of a negative number
    edges = np.linspace(0.0, mass / (mass + exp_neg_epsilon), 65)
    slack = lambda best: CONDITION_RTOL * (1 + abs(best))  # noqa: E731
    return bound_maximum(bound_ends, edges, slack, max(others, cutoff))


class BallPricer(ColumnPricer):
    """The pricing problem over an l1 ball around the prior: plateau columns and all others.

    Every extreme column is one of a box or of staircases, which have separate pricers, or a plateau:
    those are gone through kind by kind where they can be, and else looked for among nested sets, and
    bounded by `bound_plateaus` or as relaxed columns.

    Args:
        exact: prices the columns without plateau.
        split: looks for plateaus, and bounds them.
        max_information: a proved bound on the information of a column, for mutual information; else infinite.
        information: whether the utility is mutual information.
    """

    name: ClassVar[str] = "ball"

    def __init__(
        self, exact: ColumnPricer, split: SplitPricer, max_information: float, information: bool
    ) -> None:
        self.exact = exact
        self.split = split
        self.nested = split.nested
        self.max_information = max_information
        self.exp_neg_epsilon = split.nested.cone.exp_neg_epsilon
        self.half = split.nested.cone.priors.float_probability.shift
        self.p = split.kernel.p
        self.information = information
        self.plateaus = (
            TangentPricer.for_plateaus(self.p, self.exp_neg_epsilon, self.half)
            if information
            else None
        )

    def build_seeds(self, count: int) -> Sequence[ColumnBatch]:
        """Build initial columns of the column generation."""
        return self.exact.build_seeds(count // 2) or self.split.build_seeds(count)

    def price_columns(
        self, rho: FloatArray, max_columns: int, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> PricingResult[ColumnBatch]:
        """Find the columns of largest reduced value, of both kinds; see `ColumnPricer.price_columns`."""
        priced = self.exact.price_columns(rho, max_columns, cutoff, deadline)
        if self.plateaus is not None:
            # plateaus matter only where they exceed what the other columns reach already
            least = max(cutoff, priced.upper_bound)
            plateaus = self.plateaus.keep_profitable(rho, priced.upper_bound, priced.upper_bound)
            if priced.best_value > cutoff:  # plateaus are gone through once there is nothing else
                upper = max(priced.upper_bound, plateaus.price_relaxed(rho, least, 0.0).upper_bound)
                return PricingResult(priced.best_value, upper, priced.columns)
            others = plateaus.price_columns(rho, max_columns, least, deadline)
            columns = [*priced.columns, *others.columns]
            return PricingResult(
                max(priced.best_value, others.best_value),
                max(priced.upper_bound, others.upper_bound),
                columns,
            )
        best, found = self.nested.find_best(rho, max_columns, deadline)
        best = max(best, priced.best_value)
        upper = math.inf
        if best <= cutoff:
            upper = max(best, self._include_plateaus(rho, priced.upper_bound, cutoff, deadline))
        return PricingResult(best, upper, [*priced.columns, found])

    def bound_reduced_values(
        self, rho: FloatArray, cutoff: float, deadline: Deadline = NO_DEADLINE
    ) -> float:
        """Bound the reduced values of all columns, of both kinds."""
        # the closed bound on mu, and <p rho, lam> >= min rho since the mean of lam is one
        loose = self.max_information - float(rho.min())
        if loose <= cutoff:
            return loose
        others = self.exact.bound_reduced_values(rho, cutoff, deadline)
        return min(loose, self._include_plateaus(rho, others, cutoff, deadline))

    def _include_plateaus(
        self, rho: FloatArray, others: float, cutoff: float, deadline: Deadline
    ) -> float:
        """Extend a bound on the reduced values of non-plateau columns to all columns."""
        if self.plateaus is not None:
            plateaus = self.plateaus.keep_profitable(rho, others, others)
            return max(others, plateaus.bound_reduced_values(rho, max(cutoff, others), deadline))
        upper = math.inf
        if self.information and self.half <= self.exp_neg_epsilon:
            upper = bound_plateaus(self.p, self.exp_neg_epsilon, self.half, rho, others, cutoff)
        if upper > max(others, cutoff):
            upper = min(
                upper,
                max(others, self.split.bound_reduced_values(rho, max(cutoff, others), deadline)),
            )
        return upper
