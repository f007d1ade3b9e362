"""The largest probability that an outcome leaks more than epsilon, over the priors of a binary secret.

A secret X in {-1, 1} is released with noise. With p the probability of a letter and `E = e^-eps`, an outcome
on the letter's side leaks more than epsilon iff `p < E` and the log-ratio of the densities there is above
`t = log((1 - p) / (E - p))`. The probability of that, `T(p)`, is a sum of two tails of the noise; the failure
probability is `T(p) + T(1 - p)`. Each kind of noise brings bounds on it over cells of p, and the supremum is
found from above by branch and bound.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.grid_noise import GRID_STEP_BITS
from pmlopt.model.uncertainty.prior_set import PriorSet


@dataclass(frozen=True)
class LetterMasses:
    """The bounds on each letter's probability over a set of priors, rounded outward.

    `alone` has the exact probabilities of both letters where the set has one prior.
    """

    first: tuple[float, float]
    second: tuple[float, float]
    alone: tuple[Fraction, Fraction] | None = None

    @classmethod
    def from_prior_set(cls, prior: Prior, priors: PriorSet | None) -> LetterMasses:
        """Compute the bounds of a set of priors on two letters, or of a single prior."""
        if priors is None:
            total = sum(prior.weights)
            least = [Fraction(weight, total) for weight in prior.weights]
        else:
            sums, whole = priors.min_mean_scaled(np.array([[1, 0], [0, 1]], dtype=object))
            least = [Fraction(int(value), int(whole)) for value in sums]
        # exact fractions: the two minima sum to 1 iff the set has a single prior
        one, other = least
        alone = (one, other) if one + other == 1 else None
        return cls(
            (_round_down(one), _round_up(1 - other)),
            (_round_down(other), _round_up(1 - one)),
            alone,
        )

    @property
    def min_mass(self) -> float:
        """Return the minimum letter probability."""
        return min(self.first[0], self.second[0])

    @property
    def rarer_letter(self) -> tuple[float, float]:
        """Return the bounds of the letter that can be rarer."""
        return self.first if self.first[0] <= self.second[0] else self.second


def _round_down(value: Fraction) -> float:
    """Round down to a float."""
    near = float(value)
    return math.nextafter(near, -math.inf) if Fraction(near) > value else near


def _round_up(value: Fraction) -> float:
    """Round up to a float."""
    near = float(value)
    return math.nextafter(near, math.inf) if Fraction(near) < value else near


MAX_TAIL_CELLS = 1_000_000
"""Cells past which the search ends with the bound at hand."""


@dataclass(frozen=True)
class LetterPair:
    """Probabilities p of one letter, and 1 - p of the other, in arrays.

    An outcome can leak more than epsilon of the letter iff `p < e^-eps` (`possible`), and then does iff its
    log-ratio is above `threshold`, `t = log((1 - p) / (e^-eps - p))`; `rest` is `e^-eps - p`, or 1.
    """

    possible: BoolArray
    mass: FloatArray
    other: FloatArray
    rest: FloatArray
    threshold: FloatArray


Cells = tuple[LetterPair, ...]
"""A letter at the left ends, the middles and the right ends of cells."""


@dataclass(frozen=True)
class FailureFunction(ABC):
    """The failure probability P(l(Y) > eps) of additive noise as a function of the prior."""

    TAIL_RTOL: ClassVar[float] = 2e-13
    """Relative rounding of a tail, which every bound is raised by: 40 deviations out, where a Gaussian tail
    is the smallest float, the last digit of its argument moves it by 40^2 units in the last place.
    """

    epsilon: float
    scale: float

    @cached_property
    def exp_neg_epsilon_parts(self) -> tuple[float, float]:
        """Return e^-eps as an unevaluated sum of two floats."""
        return _split_in_two_floats(_decimal_exponential(self.epsilon))

    @cached_property
    def complement_parts(self) -> tuple[float, float]:
        """Return 1 - e^-eps as an unevaluated sum of two floats."""
        return _split_in_two_floats(
            choose_precision(self.epsilon).subtract(Decimal(1), _decimal_exponential(self.epsilon))
        )

    def exp_neg_epsilon_minus(self, mass: FloatArray, other: FloatArray) -> FloatArray:
        """Compute `e^-eps - p` accurately, from p or 1 - p."""
        # the large parts first: close floats subtract exactly, and the small part is not lost
        by_mass = (self.exp_neg_epsilon_parts[0] - mass) + self.exp_neg_epsilon_parts[1]
        by_other = (other - self.complement_parts[0]) - self.complement_parts[1]
        return np.where(mass <= 0.5, by_mass, by_other)

    def make_letters(self, mass: FloatArray, other: FloatArray) -> LetterPair:
        """Build letters from probabilities p and 1 - p, both given for accuracy."""
        rest = self.exp_neg_epsilon_minus(mass, other)
        possible = rest > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            # t = -log(1 - share): log1p keeps the digits of a small share
            share = np.where(possible, self.complement_parts[0] / other, 0.0)
            rest = np.where(possible, rest, 1.0)
            threshold = np.where(share < 0.5, -np.log1p(-share), np.log(other) - np.log(rest))
        return LetterPair(possible, mass, other, rest, np.where(possible, threshold, 0.0))

    def max_failure(self, masses: LetterMasses, enough: float | None = None) -> float:
        """Compute an upper bound on the worst-case F over priors with bounded letter probabilities.

        The search stops as soon as it is clear whether the answer is above `enough`.
        """
        found = self._max_density_failure(masses, enough)
        return bound_on_grid(found, self.scale) if self.scale else found

    def _max_density_failure(self, masses: LetterMasses, enough: float | None) -> float:
        """Compute an upper bound on the worst-case F for continuous noise.

        For one prior it is F; else it is found by branch and bound over p, the probability of the letter that
        can be rarer; it is an upper bound in any case, and within the slacks unless a limit ends the search.
        """
        # every outcome that reveals something leaks more than 0: 1 is a bound, without a
        # logarithm
        if self.epsilon == 0:
            return 1.0
        # one prior: no search, and its exact fractions avoid the rounding of p
        if masses.alone is not None:
            return min(1.0, sum(self._tail_at(p) for p in masses.alone))
        # a letter of probability e^-eps or more cannot leak more than epsilon
        if not any(self._can_be_rarer(masses)):
            return 0.0
        if self.scale == 0:
            return self._without_noise(masses)
        edges = self.cell_edges(*masses.rarer_letter)
        left, right = edges[:-1], edges[1:]
        bounds, best, settled = np.ones(len(left)), 0.0, 0.0
        # Halvings of a cell: more than a float has digits.
        for _ in range(64):
            middle = left + (right - left) / 2
            values, over = self.evaluate_cells(left, middle, right)
            # the bound over a cell holds for its halves too, so it never needs to grow
            bounds = np.minimum(bounds, over * (1 + self.TAIL_RTOL))
            # values at midpoints are lower bounds on the supremum: they decide which cells are
            # closed
            best = max(best, float(values.max()))
            # How far above the supremum the reported probability may be.
            # And how far as a share of it, where that is less.
            open_ = bounds > best + min(1e-11, max(1e-6 * best, 1e-20))
            settled = max(settled, best, float(bounds[~open_].max(initial=0.0)))
            last = float(bounds[open_].max(initial=0.0))
            if not open_.any() or (
                enough is not None and (best > enough or max(settled, last) <= enough)
            ):
                break
            left, middle, right = left[open_], middle[open_], right[open_]
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            # both halves inherit the bound of the cell, in the order in which they were joined
            bounds = np.tile(bounds[open_], 2)
            if len(left) > MAX_TAIL_CELLS:
                break
        return min(1.0, max(settled, last))

    def cell_edges(self, low: float, high: float) -> FloatArray:
        """Return the (K,) initial interval edges of the branch and bound."""
        # Cells of the first cover of the interval of p.
        return np.linspace(low, high, 64 + 1)

    def _tail_at(self, p: Fraction) -> float:
        """Compute the tail term T at a given probability, rounded up."""
        context = choose_precision(self.epsilon)
        mass = context.divide(Decimal(p.numerator), Decimal(p.denominator))
        rest = context.subtract(_decimal_exponential(self.epsilon), mass)
        # p >= e^-eps: the threshold is infinite, and the logarithm below would have no value
        if rest <= 0:
            return 0.0
        if not self.scale:
            return float(mass)
        other = context.subtract(Decimal(1), mass)
        near, far = self.noise_tails(context.ln(context.divide(other, rest)))
        return (float(mass) * near + float(other) * far) * (1 + self.TAIL_RTOL)

    @abstractmethod
    def noise_tails(self, threshold: Decimal) -> tuple[float, float]:
        """Compute the conditional probabilities that the noise passes a threshold, given either letter."""

    @abstractmethod
    def letter_tails(self, at: LetterPair) -> tuple[FloatArray, FloatArray]:
        """Compute the conditional tail probabilities past the letters' thresholds, in floats."""

    @property
    @abstractmethod
    def max_leaking_mass(self) -> float:
        """Return the letter probability above which its outcomes cannot leak more than epsilon."""

    @abstractmethod
    def bound_on_cells(
        self, one: Cells, two: Cells, half: FloatArray, values: FloatArray
    ) -> FloatArray:
        """Bound F on cells from its derivatives; NaN where they give no bound.

        The letters are in the order of their own probability; `half` of the widths, `values` in the middle.
        """

    def evaluate_cells(
        self, left: FloatArray, middle: FloatArray, right: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute F at cell centres, and upper bounds on F over the cells.

        It is at most what the ends of the tails allow, which are monotone in p, and what derivatives do.
        """
        one = tuple(self.make_letters(p, 1 - p) for p in (left, middle, right))
        two = tuple(self.make_letters(1 - p, p) for p in (right, middle, left))
        # the second letter has 1 - p, so its cells run from right to left
        values = self._weighted_tails(one[1], one[1].mass) + self._weighted_tails(
            two[1], two[1].mass
        )
        # tails shrink with p and weights grow: the largest of both bound the product on the cell
        ends = self._weighted_tails(one[0], one[2].mass) + self._weighted_tails(two[0], two[2].mass)
        half = np.maximum(right - middle, middle - left)
        with np.errstate(all="ignore"):  # where a derivative is no float, the ends are the answer
            return values, np.asarray(np.fmin(ends, self.bound_on_cells(one, two, half, values)))

    def may_leak(self, at: LetterPair) -> BoolArray:
        """Return whether an outcome on the letter's side can leak more than epsilon."""
        return np.asarray(at.possible & (at.mass <= self.max_leaking_mass))

    def _weighted_tails(self, at: LetterPair, mass: FloatArray) -> FloatArray:
        """Compute the tail probabilities past thresholds, weighted with another letter mass."""
        with np.errstate(over="ignore", under="ignore"):
            near, far = self.letter_tails(at)
        # past the limit the tail is 0, so within a cell no larger weight can come with it
        weight = np.minimum(mass, self.max_leaking_mass)
        return np.where(self.may_leak(at), far + weight * (near - far), 0.0)

    def _can_be_rarer(self, masses: LetterMasses) -> tuple[bool, bool]:
        """Return for each letter whether its probability can be below e^-eps."""
        (one, one_most), (other, other_most) = masses.first, masses.second
        found = (
            self.exp_neg_epsilon_minus(np.array([one, other]), np.array([other_most, one_most])) > 0
        )
        return bool(found[0]), bool(found[1])

    def _without_noise(self, masses: LetterMasses) -> float:
        """Compute the failure probability without noise: the mass of letters below `e^-eps`."""
        first, second = self._can_be_rarer(masses)
        if first and second and float(self.exp_neg_epsilon_minus(np.array(0.5), np.array(0.5))) > 0:
            return 1.0
        down = self.exp_neg_epsilon_parts[0] * (1 + self.TAIL_RTOL)
        return max(
            min(most, down) if may else 0.0
            for may, (_, most) in ((first, masses.first), (second, masses.second))
        )


def bound_on_grid(failure: float, scale: float) -> float:
    """Bound F of grid noise by F of continuous noise.

    On the grid an outcome leaks what it leaks by the density, so only the tails differ. With the step g, at
    most the scale over 2^48:

    - Laplace: `P(L > c)` is at most `2 / (1 + e^(-g/b)) <= 1 + g/b` times that of the density, for every c;
    - Gaussian: with s = sigma / g and the normaliser of at least `s sqrt(2 pi)`, the sum over the grid's tail
      is at most the integral and its first term. That is `(z + 1) / s` of the integral, z standard deviations
      out (the hazard of the normal law is at most z + 1), and no float is below the tail at z = 39; and it is
      at most `1 / (s sqrt(2 pi))` in all, for both tails 0.8 / s.

    An outcome of more than 53 bits is rounded to a float, which is a coarser grid there: next to 1 its step
    is 2^-53, and as much as 2^-47 of the scale 39 deviations out.
    """
    return raise_for_grid(failure, max(2.0**-GRID_STEP_BITS, 2.0**-50 / scale))


def raise_for_grid(failure: float, coarseness: float) -> float:
    """Compute the `bound_on_grid` of a grid with a given relative step below 1/40."""
    return min(1.0, failure + min(1.0, 80 * failure) * coarseness)


def choose_precision(epsilon: float) -> Context:
    """Choose the decimal precision: sixty digits, plus those lost in 1 - e^-eps."""
    return Context(prec=60 + max(0, math.ceil(-math.log10(epsilon))))


def _decimal_exponential(epsilon: float) -> Decimal:
    """Compute e^-eps of a float in decimal arithmetic."""
    return choose_precision(epsilon).exp(Decimal(-epsilon))


def _split_in_two_floats(value: Decimal) -> tuple[float, float]:
    """Split a number into a float and its rounding remainder."""
    high = float(value)
    return high, float(Context(prec=1200).subtract(value, Decimal(high)))
