"""Gaussian noise: how likely an outcome leaks more than epsilon, and the scale for a probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray, check_positive, check_probability
from pmlopt.core.lazy_imports import special
from pmlopt.core.roots import bisect
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import RandomBits
from pmlopt.data.sampling.grid_noise import draw_gaussian_noise
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.uncertainty.sensitivity import level_within_distance
from pmlopt.releases.noise.additive import AdditiveNoise, Promise
from pmlopt.releases.noise.binary import BinaryNoise
from pmlopt.releases.noise.leakage_tails import Cells, FailureFunction, LetterMasses, LetterPair
from pmlopt.releases.noise.letters import PlacedLetters

_NORMAL_DENSITY_MAX = 1 / math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class GaussianFailure(FailureFunction):
    """The failure probability `F = P(l(Y) > eps)` for Y = X + G, G Gaussian with standard deviation sigma.

    A sum over both letters. With `a = 1/sigma - sigma t/2`, `T(p) = p N(a) + (1 - p) N(a - 2/sigma)`, N the
    normal law; its derivatives have closed forms (with `c = 1 - p`, `d = 1 - E`, n the normal density):

        T'  = N(a) - N(a - 2/sigma) - sigma/2 E d / (c (E - p)) n(a)
        T'' = -sigma/2 d / (c (E - p))^2 n(a) H,  H = d (E - p) + E (2 c - d (1 + sigma^2 t/2) / 2)

    and of sigma, `dT/dsigma = n(a) ((E - 2 p) / sigma^2 - E t/2)`. In p, t grows and H falls.

    Source: [grosse2025empirical, eq. (17)]; the derivatives by hand.
    """

    def decreases_from(self, least: float) -> float:
        """Return the sigma from which on F decreases, for all letter probabilities above a minimum.

        Of a letter of probability p, `T(p)` falls past `sqrt(2 (E - 2 p) / (E t))`, which falls in p.
        """
        down = self.exp_neg_epsilon_parts[0]
        rise = down - 2 * least
        if rise <= 0 or down == 0:
            return 0.0
        threshold = float(self.make_letters(np.array([least]), np.array([1 - least])).threshold[0])
        return math.sqrt(2 * (rise / down) / threshold)

    def noise_tails(self, threshold: Decimal) -> tuple[float, float]:
        """Compute the conditional probabilities that the noise passes a threshold, given either letter."""
        start = self.scale * (float(threshold) / 2)
        return float(special.ndtr(1 / self.scale - start)), float(
            special.ndtr(-1 / self.scale - start)
        )

    @property
    def max_leaking_mass(self) -> float:
        """Return e^-epsilon, above which a letter's outcomes cannot leak more than epsilon."""
        return self.exp_neg_epsilon_parts[0]

    def may_leak(self, at: LetterPair) -> BoolArray:
        """Return whether an outcome on the letter's side can leak more than epsilon."""
        return at.possible

    def letter_tails(self, at: LetterPair) -> tuple[FloatArray, FloatArray]:
        """Compute the conditional tail probabilities past the letters' thresholds, in floats."""
        unit, start = 1 / self.scale, self.scale * (at.threshold / 2)
        return special.ndtr(unit - start), special.ndtr(-unit - start)

    def bound_on_cells(
        self, one: Cells, two: Cells, half: FloatArray, values: FloatArray
    ) -> FloatArray:
        """Bound F on cells by parabolas from its second derivative."""
        slope = np.abs(self._slope(one[1]) - self._slope(two[1]))
        bend = self._max_second_derivative(one[0], one[2]) + self._max_second_derivative(
            two[0], two[2]
        )
        inside = slope < -bend * half  # the top of the parabola is in the cell
        rise = np.where(inside, slope**2 / (-2 * bend), slope * half + bend * half**2 / 2)
        return np.asarray(values + np.maximum(rise, 0.0))

    def _nearer_tail(self, at: LetterPair) -> tuple[FloatArray, FloatArray]:
        """Return argument and normal density of the nearer tail."""
        a = 1 / self.scale - self.scale * (at.threshold / 2)
        return a, _NORMAL_DENSITY_MAX * np.exp(-(a**2) / 2)

    def _slope(self, at: LetterPair) -> FloatArray:
        """Compute the derivative of the tail term T in p."""
        moved = (
            self.scale
            / 2
            * self.exp_neg_epsilon_parts[0]
            * (self.complement_parts[0] / at.other)
            / at.rest
            * self._nearer_tail(at)[1]
        )
        near, far = self.letter_tails(at)
        return np.where(at.possible, near - far - moved, 0.0)

    def _max_second_derivative(self, least: LetterPair, most: LetterPair) -> FloatArray:
        """Bound the second derivative of T on an interval; inf at a kink."""
        down, lost, sigma = self.exp_neg_epsilon_parts[0], self.complement_parts[0], self.scale
        (start, low), (end, high) = self._nearer_tail(least), self._nearer_tail(most)
        sign = lost * most.rest + down * (
            2 * most.other - lost * (1 + sigma**2 * (most.threshold / 2)) / 2
        )
        top = np.where((end <= 0) & (start >= 0), _NORMAL_DENSITY_MAX, np.maximum(low, high))
        near, far = (sigma / 2 * lost / (at.other * at.rest) ** 2 for at in (least, most))
        bend = -np.where(sign >= 0, near * np.minimum(low, high), far * top) * sign
        return np.where(most.possible, bend, np.where(least.possible, np.inf, 0.0))


class Gaussian(AdditiveNoise):
    """Gaussian noise with standard deviation sigma, its `scale`, independent on each number of a vector.

    Far out the leakage of the last letters tends to -log of their probability: the level is that of no noise,
    and noise is calibrated to a probability with which an outcome may leak more than epsilon.

    Examples:
        >>> from pmlopt import Prior
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Gaussian.calibrate(ages, 0.5, 0.01)
        >>> round(noise.scale, 1), round(noise.failure_probability(ages, 0.5), 9)
        (0.0, 0.01)
    """

    @classmethod
    def calibrate(
        cls, prior: PriorLike, epsilon: float, delta: float, over: PriorSet | None = None
    ) -> Self:
        """Calibrate sigma: down to it the failure probability is delta at most, and just below it is not.

        Args:
            prior: letters that are numbers, or two vectors.
            epsilon: in nats, above 0.
            delta: in (0, 1): an outcome may leak more than epsilon with this probability.
            over: a set of priors on the same letters.

        Raises:
            PrivacyError: an argument is outside its range, or epsilon so small that sigma^2 is no float.
        """
        letters = cls(0.0).place_letters(prior, over)
        return cls(cls.find_sigma(letters, epsilon, delta))

    @classmethod
    def find_sigma(cls, letters: PlacedLetters, epsilon: float, delta: float) -> float:
        """Find the sigma of `calibrate` for letters at points, or 0 where no noise is needed.

        Of two letters the failure probability is delta at most from `plocal_scale` on, and down to a sigma in
        closed form (`GaussianFailure.decreases_from`) it is monotone: bisection finds the start. Below that
        it may rise again: sigmas are tried further down, each 2 % below the last (for more letters by a
        factor of 1.25), until one fails. No noise is the answer only if none does, nor 0 itself.
        """
        # The largest sigma: its square is a float.
        largest_sigma = 1e150
        level, share = check_positive(epsilon, "epsilon", PrivacyError), check_probability(delta)
        half = float(letters.bound_distances(2.0**-1074).max()) / 2 or 1.0
        # Below this sigma no float reveals the noise from none: of a Gaussian nothing is 40 sigma out.
        falls_to = 0.025

        def is_private(sigma: float) -> bool:
            return cls(sigma * half).bound_failure(letters, level, share) <= share

        high = plocal_scale(level, share)
        while high <= largest_sigma and not is_private(high):  # by rounding
            high *= 2
        if high > largest_sigma:
            raise PrivacyError(
                f"epsilon is {level:g}: no sigma up to {largest_sigma:g} is enough: give a larger one"
            )
        if len(letters.points) == 2:
            least = LetterMasses.from_prior_set(letters.prior, letters.over).min_mass
            monotone = GaussianFailure(level, high).decreases_from(least)
            low, ratio = (
                (min(high, monotone), 1.02) if monotone > falls_to else (min(high, 1.0), 2.0)
            )
        else:
            low, ratio = high / 1.25, 1.25
            falls_to *= letters.narrowest / half
        while is_private(low):
            high, low = low, low / ratio
            if high < falls_to:
                return 0.0 if is_private(0.0) else high * half
        return bisect(is_private, low, high, 1e-12) * half

    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter: -log of its least probability."""
        apart = np.where(np.eye(len(letters.points)) > 0, 0.0, np.inf)
        return letters.bound_levels(apart)

    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute (N, K) logarithms of the densities at outcomes, up to a number for each outcome."""
        away = outcomes - line[:, None]
        nearest = np.abs(away).argmin(axis=0)
        least = away[nearest, np.arange(len(outcomes))]
        # a difference of squares as a product: squares of large numbers would lose it
        with np.errstate(over="ignore"):
            apart = (line[nearest] - line[:, None]) * ((away + least) / 2)
            return np.asarray(-apart / self.scale / self.scale)

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise, whose scale is positive."""
        return np.asarray(
            _NORMAL_DENSITY_MAX / self.scale * np.exp(-((noise / self.scale) ** 2) / 2)
        )

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        return np.asarray(special.ndtr(-noise / self.scale))

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return self.scale**2

    def draw_noise(self, bits: RandomBits, size: int) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid."""
        return draw_gaussian_noise(self.scale, self.grid_step, size, bits)

    def make_failure(self, epsilon: float, scale: float) -> GaussianFailure:
        """Return P(l(Y) > epsilon) as a function of the prior, of two letters at -1 and 1.

        With `P(X = 1) = p`: on the right an outcome leaks more than epsilon iff `e^-eps > p` and
        `y > (sigma^2 / 2) log((1 - p) / (e^-eps - p))`; on the left p and 1 - p change places.
        `e^-eps` is taken to more digits than a float has: at a float just below -log p, without noise, the
        letter of probability p does leak more.

        Source: [grosse2025empirical, eq. (17)].
        """
        return GaussianFailure(epsilon, scale)

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return points up to 40 standard deviations past the last letters, where no float is the tail."""
        ends = line.min() - 40 * self.scale, line.max() + 40 * self.scale
        return np.unique(np.append(np.linspace(*ends, 129), line))


class BinaryGaussian(BinaryNoise):
    """Y = X + G, G Gaussian with standard deviation sigma = `scale`, X = -1 or 1.

    No level holds for every outcome (far out the leakage tends to -log p), so it comes with a probability.

    Args:
        prior: of X, two letters.
        scale: sigma; 0 for no noise.
        radius: probabilities are for every prior within this l1 distance.
        over: probabilities are for every prior of this set, instead of the radius.

    Source: [grosse2025empirical, Section VI-B].

    Examples:
        >>> noise = BinaryGaussian([0.5, 0.5], 1.5)
        >>> 0 < noise.failure_probability(0.5) < noise.failure_probability(0.4) < 1
        True
        >>> noise.failure_probability(0.7)  # nothing can leak more than log 2 = 0.693...
        0.0
    """

    kind = Gaussian

    @classmethod
    def calibrate(
        cls,
        prior: PriorLike,
        *,
        epsilon: float,
        delta: float,
        radius: float = 0.0,
        over: PriorSet | None = None,
    ) -> Self:
        """Calibrate sigma to a failure probability: the least from which on it is delta at most."""
        letters = cls(prior, 0.0, radius, over).letters
        return cls(prior, Gaussian.find_sigma(letters, epsilon, delta), radius, over)

    def published_promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Return the guarantee as published, over an l1 ball.

        Theorem 4 bounds how much more a mechanism leaks elsewhere in a ball than at its centre; but d1 is
        taken over the ball already, so `promise` holds without it. inf where the radius is too large.

        Raises:
            PrivacyError: the set is no l1 ball; and as for `promise`.

        Source: [grosse2025empirical, Section VI-B] (epsilon* and delta*).
        """
        sharp = self.promise(epsilon, delta)
        if not isinstance(self.over, L1Ball):
            raise PrivacyError(
                f"the published pair is about an l1 ball, and the set is {self.over!r}"
            )
        return Promise(level_within_distance(epsilon, self.over.radius), sharp.delta)


def plocal_scale(epsilon: float, delta: float) -> float:
    """Compute the sigma of Gaussian noise on a binary secret in {-1, 1} for probabilistic local DP.

    `sqrt(2) (f + sqrt(f^2 + eps)) / eps` with `f = erfcinv(delta)`: the log-ratio of the densities is above
    epsilon with probability delta at most.

    Args:
        epsilon: in nats, above 0.
        delta: in (0, 1).

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [grosse2025empirical, Section VI-C.2] (Zhao et al., arXiv:1911.12060, Theorem 8, sensitivity 2).

    Examples:
        >>> round(plocal_failure(1.0, plocal_scale(1.0, 0.01)), 12)
        0.01
    """
    level, share = check_positive(epsilon, "epsilon", PrivacyError), check_probability(delta)
    f = float(special.erfcinv(share))
    root = math.sqrt(f * f + level)
    return math.sqrt(2) * (f + root) / level


def plocal_failure(epsilon: float, scale: float) -> float:
    """Compute the delta of `plocal_scale` for a sigma: `erfc((a^2 - eps) / (2 a))` with `a = sigma eps / sqrt
    2`.

    Raises:
        PrivacyError: an argument is not positive.
    """
    level, size = (
        check_positive(epsilon, "epsilon", PrivacyError),
        check_positive(scale, "the scale", PrivacyError),
    )
    # (a^2 - eps) / (2 a), where neither a^2 nor eps may overflow
    return min(1.0, math.erfc((size * level / 2 - 1 / size) / math.sqrt(2)))
