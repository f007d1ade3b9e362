"""The probability that an outcome leaks more than epsilon: of letters on a line or in the plane, and of two.

With `r_j(y) = f(y | x_j) / max_i f(y | x_i)` an outcome leaks more than epsilon under some prior of a set iff
the least mean of r(y) is below e^-epsilon. Log-ratios of two letters are monotone along a line, so that both
ends of a cell bound every r_j on it, from below and from above: a cell is left out, or counted, or halved.

Of two letters it is the supremum over the set. Letters at -1 and 1 are released with noise. With p the
probability of a letter and `E = e^-eps`, an outcome on the letter's side leaks more than epsilon iff `p < E`
and the log-ratio of the densities there is above `t = log((1 - p) / (E - p))`. Let `near` and `far` be the
probabilities of that given this letter and the other one, and g the density of the log-ratio at t given this
letter; given the other it is `e^-t g`. Then

    T(p)  = p near + (1 - p) far
    T'(p) = near - far - E (1 - E) / ((1 - p) (E - p)) g

and the failure probability is `F(p) = T(p) + T(1 - p)`. In p the factor of g rises, and near and far fall; g
has one maximum. That bounds T' on an interval, and the supremum is found from above by branch and bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import special

from pmlopt.core.arrays import FloatArray
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.grid_noise import GRID_STEP_BITS
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.letters import PlacedLetters


class NoiseLaw(Protocol):
    """The law of noise, as far as tails of a leakage depend on it."""

    @property
    def scale(self) -> float:
        """Return the scale of the noise, in the unit of the letters."""

    @property
    def log_ratio_range(self) -> tuple[float, float]:
        """Return the slope of the log ratio of two letters at -1 and 1, and its largest size."""

    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute the log density of each outcome given each letter."""

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise."""

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability of more noise."""

    def compute_cell_masses(
        self, low: FloatArray, high: FloatArray, line: FloatArray
    ) -> FloatArray:
        """Compute the probability of each cell given each letter."""

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return the edges of cells of outcomes, outside of which hardly any noise is."""


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
        sums, whole = prior.weights, sum(prior.weights)
        if priors is not None:
            sums, whole = priors.min_mean_scaled(np.array([[1, 0], [0, 1]], dtype=object))
        one, other = (Fraction(int(value), int(whole)) for value in sums)
        first = _round_toward(one, -math.inf), _round_toward(1 - other, math.inf)
        second = _round_toward(other, -math.inf), _round_toward(1 - one, math.inf)
        # exact fractions: the two minima sum to 1 iff the set has a single prior
        return cls(first, second, (one, other) if one + other == 1 else None)

    @property
    def min_mass(self) -> float:
        """Return the minimum letter probability."""
        return min(self.first[0], self.second[0])


def _round_toward(value: Fraction, end: float) -> float:
    """Round to a float that is not on the other side of a number than an infinite end."""
    near = float(value)
    right = near >= value if end > 0 else near <= value
    return near if right else math.nextafter(near, end)


@dataclass(frozen=True)
class LetterTails:
    """What the tail term of a letter is made of, in arrays; 0 where no outcome can leak more than epsilon.

    Attributes:
        start: the outcome from which on more is leaked; inf for none.
        near: the probability of these outcomes given the letter.
        far: the probability given the other letter.
        density: g, of the log-ratio at the start.
        factor: of g in the slope.
    """

    start: FloatArray
    near: FloatArray
    far: FloatArray
    density: FloatArray
    factor: FloatArray

    def weigh(self, mass: FloatArray) -> FloatArray:
        """Compute the tail term for a probability of the letter."""
        return self.far + mass * (self.near - self.far)


@dataclass(frozen=True)
class PairFailure:
    """The failure probability P(l(Y) > eps) of noise on letters at -1 and 1, as a function of the prior.

    Args:
        noise: of a positive scale.
        epsilon: in nats, above 0.

    Source: [grosse2025empirical, eq. (17)]; the slope by hand.
    """

    noise: NoiseLaw
    epsilon: float

    @cached_property
    def exp_neg_epsilon(self) -> Fraction:
        """Return e^-eps to sixty digits, as many of 1 - e^-eps; e^-1000 is below every float."""
        digits = 60 + max(0, math.ceil(-math.log10(self.epsilon)))
        return Fraction(Context(prec=digits).exp(Decimal(-min(self.epsilon, 1000.0))))

    @cached_property
    def parts(self) -> tuple[float, float, float, float]:
        """Return e^-eps, and 1 - e^-eps, each as an unevaluated sum of two floats."""
        kept, lost = self.exp_neg_epsilon, 1 - self.exp_neg_epsilon
        high, low = float(kept), float(lost)
        return high, float(kept - Fraction(high)), low, float(lost - Fraction(low))

    @cached_property
    def max_mass(self) -> float:
        """Return the probability, rounded up, above which a letter's outcomes cannot leak more.

        There t is the largest log-ratio that an outcome has, and F may jump.
        """
        largest = self.noise.log_ratio_range[1]
        # expm1: for large scales both exponents are near 0, where 1 - e^x cancels
        share = math.expm1(self.epsilon - largest) / math.expm1(-largest)
        return self.parts[0] * share * (1 + 1e-14)

    @property
    def rtol(self) -> float:
        """Return the relative rounding of a tail, by which every bound is raised.

        40 deviations out, where a Gaussian tail is the smallest float, the last digit of its argument moves
        it by 40^2 units in the last place, and more for noise that is small next to the letters. Of noise
        as small as 1e-3 tails are 0 and 1.
        """
        return 2e-13 + 1e-14 / self.noise.scale if self.noise.scale > 1e-3 else 0.0

    def subtract_mass(self, mass: FloatArray, other: FloatArray) -> FloatArray:
        """Compute `e^-eps - p` accurately, from p or 1 - p."""
        kept, kept_rest, lost, lost_rest = self.parts
        # the large parts first: close floats subtract exactly, and the small part is not lost
        return np.where(mass <= 0.5, (kept - mass) + kept_rest, (other - lost) - lost_rest)

    def compute_tails(
        self, mass: FloatArray, other: FloatArray, rest: FloatArray | None = None
    ) -> LetterTails:
        """Compute the tails of letters of probabilities p, from p, 1 - p and e^-eps - p."""
        left = self.subtract_mass(mass, other) if rest is None else rest
        possible = (left > 0) & (mass <= self.max_mass)
        stretch, largest = self.noise.log_ratio_range
        with np.errstate(all="ignore"):
            # t = -log(1 - share): log1p keeps the digits of a small share
            share = self.parts[2] / other
            threshold = np.where(share < 0.5, -np.log1p(-share), np.log(other) - np.log(left))
            start = np.where(possible, stretch * np.minimum(threshold, largest), np.inf)
            factor = np.where(possible, self.parts[0] * share / left, 0.0)
            density = stretch * self.noise.compute_density(start - 1)
            tails = self.noise.compute_tail(start - 1), self.noise.compute_tail(start + 1)
        return LetterTails(start, *tails, density, factor)

    def bound_on_cells(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute F in the middle of cells of p, and upper bounds on F over the cells.

        It is at most what the ends of tails and weights allow, and what the slope does.
        """
        middle = left + (right - left) / 2
        values, ends = np.zeros(len(left)), np.zeros(len(left))
        slopes = np.zeros((2, len(left)))
        for turn in (1, -1):
            # the second letter has 1 - p, so its cells run from right to left
            pairs = [(p, 1 - p)[::turn] for p in (left, middle, right)[::turn]]
            low, at, high = (self.compute_tails(*pair) for pair in pairs)
            values += at.weigh(pairs[1][0])
            # past the largest mass the tail is 0, so within a cell no larger weight can come with it
            ends += low.weigh(np.minimum(pairs[2][0], self.max_mass))
            slopes += self._bound_slopes(low, high)[::turn]
        half = np.maximum(right - middle, middle - left)
        # a cell on which a tail ends, or a slope that is no float, gives no bound by the slope
        return values, np.fmin(ends, values + half * np.maximum(slopes.max(axis=0), 0.0))

    def _bound_slopes(self, low: LetterTails, high: LetterTails) -> FloatArray:
        """Bound T' and -T' on cells from above; NaN where the tail is 0 at the right end only."""
        peak = np.maximum(low.density, high.density)
        within = (low.start <= 1) & (high.start >= 1)
        top = self.noise.log_ratio_range[0] * self.noise.compute_density(np.zeros(1))
        with np.errstate(all="ignore"):
            found = (
                low.near - high.far - low.factor * np.minimum(low.density, high.density),
                low.far - high.near + high.factor * np.where(within, top, peak),
            )
        ended = np.isfinite(low.start) & ~np.isfinite(high.start)
        return np.where(ended, np.nan, found)

    def find_supremum(self, masses: LetterMasses, enough: float | None = None) -> float:
        """Find an upper bound on F over priors with bounded letter probabilities, at most 1e-11 above.

        For one prior it is F. The search stops as soon as it is clear whether F is above `enough`.
        """
        if masses.alone is not None:
            mass = np.array([float(p) for p in masses.alone])
            rest = np.array([float(self.exp_neg_epsilon - p) for p in masses.alone])
            found = self.compute_tails(mass, mass[::-1], rest).weigh(mass).sum()
            return min(1.0, float(found) * (1 + self.rtol))
        low, high = min(masses.first, masses.second)
        edges = np.append(np.linspace(low, high, 65), [self.max_mass, 1 - self.max_mass])
        edges = np.unique(np.clip(edges, low, high))
        left, right = edges[:-1], edges[1:]
        bounds, best, closed = np.ones(len(left)), 0.0, 0.0
        # halvings of a cell: more than a float has digits
        for _ in range(64):
            values, above = self.bound_on_cells(left, right)
            # the bound over a cell holds for its halves too, so it never needs to grow
            bounds = np.minimum(bounds, above * (1 + self.rtol))
            # values are lower bounds on the supremum: they decide which cells are closed
            best = max(best, float(values.max()))
            wide = bounds > best + min(1e-11, max(1e-6 * best, 1e-20))
            closed = max(closed, best, float(bounds[~wide].max(initial=0.0)))
            most = max(closed, float(bounds[wide].max(initial=0.0)))
            clear = enough is not None and (best > enough or most <= enough)
            if clear or not 0 < wide.sum() < 500_000:
                break
            middle = (left + (right - left) / 2)[wide]
            left, right = np.append(left[wide], middle), np.append(middle, right[wide])
            bounds = np.tile(bounds[wide], 2)
        return min(1.0, most)


def bound_leaking_mass(
    noise: NoiseLaw,
    letters: PlacedLetters,
    places: FloatArray,
    exp_neg_epsilon: float,
    enough: float | None = None,
) -> float:
    """Bound the largest probability of the outcomes that leak more than epsilon from above.

    On a line it is too large by at most 1e-13. In the plane it is integrated over lines, by Gauss and
    Lobatto on panels that are halved; what both halves of a panel differ from it by is added to the
    probability, though they are nearer to it.

    Args:
        noise: of a positive scale.
        letters: with their priors.
        places: (N, 1) or (N, 2) where they are.
        exp_neg_epsilon: e^-epsilon.
        enough: the search ends where it is clear on which side of this number the probability is.
    """
    first, line = places[:, 0], places[:, -1]
    if places.shape[1] == 1:
        here, weights = np.zeros((len(line), 1)), np.ones((len(line), 1))
        masses = bound_on_lines(noise, letters, line, here, weights, exp_neg_epsilon, enough)
        return letters.max_mean(masses[:, 0])
    # Lobatto's nodes have the ends of a panel: a jump next to one, which inner nodes miss, is seen
    basis = np.polynomial.legendre.Legendre.basis(9)
    nodes = np.concatenate(
        [[-1.0], special.roots_jacobi(8, 1, 1)[0], [1.0]]
    )  # the slope's zeros between
    shares = 2 / (90 * basis(nodes) ** 2)

    def integrate_panels(left: FloatArray, right: FloatArray) -> FloatArray:
        half = (right - left) / 2
        across = ((left + half)[:, None] + half[:, None] * nodes).ravel()
        offsets = noise.compute_log_likelihoods(across, first)
        weights = noise.compute_density(across - first[:, None]) * np.outer(half, shares).ravel()
        found = bound_on_lines(noise, letters, line, offsets, weights, exp_neg_epsilon)
        return np.asarray(found.reshape(len(first), len(left), -1).sum(axis=2))

    # around each letter, for noise that is small next to distances has narrow peaks, which no halving finds
    away = noise.scale * np.append(0.0, 2.0 ** np.arange(10))
    around = (first[:, None] + np.append(-away, away)).ravel()
    ends = noise.make_edges(first)[[0, -1]]
    edges = np.unique(np.clip(np.append(around, ends), *ends))
    left, right = edges[:-1], edges[1:]
    panels = integrate_panels(left, right)
    settled, error = np.zeros(len(first)), 0.0
    for _ in range(45):
        middle = left + (right - left) / 2
        both = np.append(left, middle), np.append(middle, right)
        halves = integrate_panels(*both).reshape(len(first), 2, -1)
        apart = np.abs(halves.sum(axis=1) - panels).max(axis=0)
        found = letters.max_mean(settled + halves.sum(axis=(1, 2)))
        spread = error + float(apart.sum())
        if spread < 1e-11 or (enough is not None and abs(found - enough) > spread):
            break
        wide = apart > 1e-14
        settled += halves[:, :, ~wide].sum(axis=(1, 2))
        error += float(apart[~wide].sum())
        left, right = (one.reshape(2, -1)[:, wide].ravel() for one in both)
        panels = halves[:, :, wide].reshape(len(first), -1)
    return min(1.0, found + spread)


def bound_on_lines(
    noise: NoiseLaw,
    letters: PlacedLetters,
    line: FloatArray,
    offsets: FloatArray,
    weights: FloatArray,
    exp_neg_epsilon: float,
    enough: float | None = None,
) -> FloatArray:
    """Bound (N, K) probabilities, given each letter, of what leaks more on each of K lines, from above.

    Cells that are still undecided after 44 halvings are counted.

    Args:
        noise: of a positive scale.
        letters: with their priors.
        line: (N,) places of the letters along each line.
        offsets: (N, K) logarithms of the likelihoods across, up to a number for each line.
        weights: (N, K) by which probabilities on each line are multiplied.
        exp_neg_epsilon: e^-epsilon.
        enough: for a single line, as in `bound_leaking_mass`.
    """
    # a mean that is the limit but for rounding counts as below it
    limit = exp_neg_epsilon * (1 + 1e-13)
    edges, lines = noise.make_edges(line), offsets.shape[1]
    left, right = np.tile(edges[:-1], lines), np.tile(edges[1:], lines)
    at = np.repeat(np.arange(lines), len(edges) - 1)
    low = np.zeros((lines, len(line)))
    for _ in range(45):
        logs = [noise.compute_log_likelihoods(y, line) + offsets[:, at] for y in (left, right)]
        least, most = _bound_ratios(*logs)
        opened = letters.min_mean(least) < limit
        inside = opened & (letters.min_mean(most) < limit)
        masses = (noise.compute_cell_masses(left, right, line) * weights[:, at]).T
        np.add.at(low, at[inside], masses[inside])
        wide = opened & ~inside
        left, right, at, high = left[wide], right[wide], at[wide], low.copy()
        np.add.at(high, at, masses[wide])
        clear = enough is not None and (
            letters.max_mean(low[0]) > enough or letters.max_mean(high[0]) <= enough
        )
        if clear or (high - low).max() < 1e-15 or len(left) > 200_000:
            break
        middle = left + (right - left) / 2
        left, right, at = np.append(left, middle), np.append(middle, right), np.tile(at, 2)
    return high.T


def _bound_ratios(at_left: FloatArray, at_right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bound (N, C) ratios `r_j` on C cells from below and above, by log-likelihoods at their ends."""
    cells = np.arange(at_left.shape[1])
    least = np.minimum(at_left - at_left.max(axis=0), at_right - at_right.max(axis=0))
    most = np.zeros_like(least)
    for ends in (at_left, at_right):
        # r_j is at most the ratio to any one letter: to the likeliest at an end
        likeliest = ends.argmax(axis=0)
        against = np.maximum(
            at_left - at_left[likeliest, cells], at_right - at_right[likeliest, cells]
        )
        most = np.minimum(most, against)
    return np.exp(least), np.exp(most)


def raise_for_grid(failure: float, coarseness: float) -> float:
    """Bound F of noise on a grid of a relative step below 1/40 by F of continuous noise.

    On the grid an outcome leaks what it leaks by the density, so only the tails differ. With the step g, at
    most the scale over 2^48:

    - Laplace: `P(L > c)` is at most `2 / (1 + e^(-g/b)) <= 1 + g/b` times that of the density, for every c;
    - Gaussian: with s = sigma / g and the normaliser of at least `s sqrt(2 pi)`, the sum over the grid's tail
      is at most the integral and its first term. That is `(z + 1) / s` of the integral, z standard deviations
      out (the hazard of the normal law is at most z + 1), and no float is below the tail at z = 39; and it is
      at most `1 / (s sqrt(2 pi))` in all, for both tails 0.8 / s.
    """
    return min(1.0, failure + min(1.0, 80 * failure) * coarseness)


def choose_coarseness(scale: float, largest: float) -> float:
    """Return the relative step of the grid of noise on letters up to a size.

    An outcome of more than 53 bits is rounded to a float, which is a coarser grid there: next to 1 its step
    is 2^-53, and as much as 2^-47 of the scale 39 deviations out.
    """
    return max(2.0**-GRID_STEP_BITS, 2.0**-50 * (largest / scale))
