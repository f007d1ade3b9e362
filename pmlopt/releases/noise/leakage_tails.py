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

and the failure probability is `F(p) = T(p) + T(1 - p)`. The derivative of `log g` at t is `1/2 - k t`, with
k = 0 for Laplace noise and sigma^2 / 4 for Gaussian noise, so that T''(p) has the sign of

    E (1 - E) k t - (1 - E) (E - p) - E ((1 - E) / 2 + (E - p) + (1 - p)),

which rises in p: T is concave up to some p, and convex from there on. Tangents and chords bound it on an
interval, and the supremum of F is found from above by branch and bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.maxima import bound_maximum
from pmlopt.core.quadrature import integrate_on_panels
from pmlopt.core.roots import bisect
from pmlopt.data.prior import Prior
from pmlopt.data.sampling.grid_noise import GRID_STEP_BITS
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.laws import NoiseLaw
from pmlopt.releases.noise.letters import PlacedLetters


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
    def log_ratio_range(self) -> tuple[float, float]:
        """Return how far an outcome is from 0 per nat of its log-ratio up to the largest, and that."""
        # the letters are 2 apart
        largest = float(self.noise.bound_log_ratios(np.array(2.0)))
        return self.noise.scale**self.noise.power / 2, largest

    @cached_property
    def max_mass(self) -> float:
        """Return the probability, rounded up, above which a letter's outcomes cannot leak more.

        There t is the largest log-ratio that an outcome has, and F may jump.
        """
        largest = self.log_ratio_range[1]
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

    @cached_property
    def convex_from(self) -> float:
        """Return the probability of a letter from which on its tail term is convex; below it is concave."""
        kept, _, lost, _ = self.parts
        bend = 0.0 if self.noise.power == 1 else self.log_ratio_range[0] / 2

        def is_convex(mass: float) -> bool:
            left = kept - mass
            # at the end of the terms, where the threshold is infinite
            if left <= 0:
                return True
            threshold = math.log1p(lost / left)
            concave = lost * left + kept * (lost / 2 + left + 1 - mass)
            return kept * lost * bend * threshold >= concave

        return 0.0 if is_convex(0.0) else bisect(is_convex, 0.0, kept, 0.0)

    def compute_tails(
        self, mass: FloatArray, other: FloatArray, rest: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Compute T and T' of letters of probabilities p, from p, 1 - p and e^-eps - p.

        They are 0 where no outcome can leak more than epsilon.
        """
        left = self.subtract_mass(mass, other) if rest is None else rest
        possible = (left > 0) & (mass <= self.max_mass)
        stretch, largest = self.log_ratio_range
        with np.errstate(all="ignore"):
            # t = -log(1 - share): log1p keeps the digits of a small share
            share = self.parts[2] / other
            threshold = np.where(share < 0.5, -np.log1p(-share), np.log(other) - np.log(left))
            start = np.where(possible, stretch * np.minimum(threshold, largest), np.inf)
            density = stretch * self.noise.compute_density(start - 1)
            near, far = self.noise.compute_tail(start - 1), self.noise.compute_tail(start + 1)
            lost = np.where(possible, density * self.parts[0] * share / left, 0.0)
        return far + mass * (near - far), near - far - lost

    def bound_on_cells(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute F in the middle of cells of p, and upper bounds on F over the cells."""
        cells = np.array([left, left + (right - left) / 2, right])
        values, ends = np.zeros(len(left)), np.zeros((2, len(left)))
        for turn in (1, -1):
            # the second letter has 1 - p
            mass, other = (cells, 1 - cells)[::turn]
            terms, slopes = self.compute_tails(mass, other)
            values += terms[1]
            # chords are above a convex function, and tangents above a concave one
            tangents = terms[1] + slopes[1] * (mass[::2] - mass[1])
            ends += np.where(mass[1] >= self.convex_from, terms[::2], tangents)
        return values, ends.max(axis=0) * (1 + self.rtol)

    def find_supremum(self, masses: LetterMasses, enough: float | None = None) -> float:
        """Find an upper bound on F over priors with bounded letter probabilities, at most 1e-11 above.

        For one prior it is F. The search stops as soon as it is clear whether F is above `enough`.
        """
        if masses.alone is not None:
            mass = np.array([float(p) for p in masses.alone])
            rest = np.array([float(self.exp_neg_epsilon - p) for p in masses.alone])
            found = self.compute_tails(mass, mass[::-1], rest)[0].sum()
            return min(1.0, float(found) * (1 + self.rtol))
        low, high = min(masses.first, masses.second)
        # F jumps where a tail ends
        kinks = np.array([self.max_mass, self.convex_from])
        edges = np.concatenate([np.linspace(low, high, 65), kinks, 1 - kinks])
        edges = np.unique(np.clip(edges, low, high))
        slack = lambda best: min(1e-11, max(1e-6 * best, 1e-20))  # noqa: E731
        return min(1.0, bound_maximum(self.bound_on_cells, edges, slack, 0.0, enough))


def bound_leaking_mass(
    noise: NoiseLaw,
    letters: PlacedLetters,
    places: FloatArray,
    exp_neg_epsilon: float,
    enough: float | None = None,
) -> float:
    """Bound the largest probability of the outcomes that leak more than epsilon from above.

    On a line it is too large by at most 1e-13. In the plane it is integrated over lines, and the error of the
    integral is added, though it is nearer.

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

    def bound_across(across: FloatArray, weights: FloatArray) -> FloatArray:
        offsets = noise.compute_log_likelihoods(across, first)
        densities = noise.compute_density(across - first[:, None])
        return bound_on_lines(noise, letters, line, offsets, densities * weights, exp_neg_epsilon)

    def is_enough(masses: FloatArray, error: float) -> bool:
        return enough is not None and abs(letters.max_mean(masses) - enough) > error

    # around each letter, for noise that is small next to distances has narrow peaks, which no halving finds
    away = noise.scale * np.append(0.0, 2.0 ** np.arange(10))
    around = (first[:, None] + np.append(-away, away)).ravel()
    ends = noise.make_edges(first)[[0, -1]]
    edges = np.unique(np.clip(np.append(around, ends), *ends))
    masses, error = integrate_on_panels(bound_across, edges, 1e-11, is_enough)
    return min(1.0, letters.max_mean(masses) + error)


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
        least, most = _bound_ratios(np.array(logs))
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


def _bound_ratios(ends: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bound (N, C) ratios `r_j` on C cells from below and above, by log-likelihoods (2, N, C) at the ends."""
    cells = np.arange(ends.shape[2])
    least = (ends - ends.max(axis=1, keepdims=True)).min(axis=0)
    # r_j is at most the ratio to any one letter: to the likeliest at an end
    most = [(ends - ends[:, top, cells][:, None]).max(axis=0) for top in ends.argmax(axis=1)]
    return np.exp(least), np.exp(np.minimum(np.minimum(*most), 0.0))


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


def choose_coarseness(scale: float, points: FloatArray) -> float:
    """Return the relative step of the grid of noise on letters at points.

    An outcome of more than 53 bits is rounded to a float, which is a coarser grid there: next to 1 its step
    is 2^-53, and as much as 2^-47 of the scale 39 deviations out.
    """
    return max(2.0**-GRID_STEP_BITS, 2.0**-50 * (float(np.abs(points).max()) / scale))
