"""Laplace and geometric noise: levels for letters that are numbers or vectors, and scales for levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import numpy as np

from pmlopt.core.arrays import FloatArray, check_nonnegative
from pmlopt.core.roots import bisect, step_up_until
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import PrivacyError
from pmlopt.measures import failure_probability
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.joint import MAX_PRODUCT_ENTRIES
from pmlopt.releases.noise.additive import AdditiveNoise, Letters, check_epsilon
from pmlopt.releases.noise.letters import PlacedLetters, bound_distances


class Laplace(AdditiveNoise):
    """Laplace noise of scale b: `Y = x + Z`, the density of Z proportional to `e^(-||z||_1 / b)`.

    The level is `max_i -log m(v_i)`, m the least mean over the set of priors (or the mean under one), and v_i
    the column of `e^(-||x_i - x_j|| / b)`; the outcome x_i attains it.

    Examples:
        >>> from pmlopt import Prior
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> noise = Laplace.calibrate(ages, 0.5)
        >>> round(noise.scale, 3), round(noise.level(ages), 9)
        (46.476, 0.5)
        >>> noise.sample([20, 60, 40], seed=1).round(1).tolist()
        [52.8, 69.2, 121.7]
    """

    power = 1

    @classmethod
    def calibrate(
        cls, prior: Letters | Continuous, epsilon: float, over: PriorSet | None = None
    ) -> Self:
        """Calibrate the scale to a PML level: the least that keeps it, or 0 where no noise is needed.

        The level that is returned with the scale is at most epsilon; a continuous law takes a scale that is
        larger by at most the width of its bins over epsilon.

        Args:
            prior: letters that are numbers or tuples of numbers, or a continuous law.
            epsilon: in nats, above 0.
            over: a set of priors on the same letters.

        Raises:
            PrivacyError: epsilon is not positive, or so small that no float is the scale.
        """
        noise = cls(0.0)
        if isinstance(prior, Continuous):
            widest = sum(high - low for low, high in prior.intervals) * 1.001
        else:
            prior = noise.place_letters(prior, over)
            widest = float(bound_distances(prior.points).max())
        return cls(search_scale(lambda b: cls(b).level(prior, over), widest, epsilon))

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""
        half = np.exp(-np.abs(noise) / self.scale) / 2
        return np.asarray(np.where(noise > 0, half, 1 - half))


def search_scale(level: Callable[[float], float], widest: float, epsilon: float) -> float:
    """Search the least scale whose level is at most epsilon; `widest` is the largest distance."""
    limit = check_nonnegative(epsilon, "epsilon", PrivacyError)
    if limit == 0:
        raise PrivacyError(
            "epsilon is 0, and noise of any finite scale leaks something: give a positive one"
        )
    if level(0.0) <= limit:
        return 0.0
    # The largest scale: draws are finite.
    largest_scale = 1e300
    # no outcome leaks more than the largest distance over the scale; rounding may add to it
    high = step_up_until(lambda b: level(b) <= limit, widest / limit, largest_scale)
    if high >= largest_scale:
        raise PrivacyError(
            f"epsilon is {limit:g}: it takes a scale above {largest_scale:g}: give a larger one"
        )
    return bisect(lambda b: b > 0 and level(b) <= limit, 0.0, high, 1e-14)


class Geometric(Laplace):
    """Two-sided geometric noise on whole numbers: `P(Z = z)` proportional to `e^(-|z| / b)`.

    Its level is that of Laplace noise of the same scale. Draws are whole numbers; and outcomes past the
    least and the largest letter reveal what those there do, so that it is a mechanism with a matrix, too.

    Examples:
        >>> from pmlopt import Prior
        >>> counts = Prior([0.5, 0.3, 0.2], [0, 1, 2])
        >>> noise = Geometric.calibrate(counts, 0.5)
        >>> noise.to_mechanism(counts).outputs
        (0, 1, 2)
    """

    no_matrix = "take noise.to_mechanism(prior), which has the outcomes between the letters"

    is_whole = True

    def to_mechanism(self, prior: Letters) -> Mechanism:
        """Return the mechanism on whole numbers, or vectors, outcomes past the last letters collected there.

        It leaks as much of each letter as the noise does: past the last letter all outcomes leak the same.

        Raises:
            PrivacyError: letters are no whole numbers, or too far apart for a matrix.
        """
        letters = self.place_letters(prior)
        lows, highs = letters.points.min(axis=0), letters.points.max(axis=0)
        if float(np.prod(highs - lows + 1)) * len(letters.points) > MAX_PRODUCT_ENTRIES:
            raise PrivacyError(
                f"the letters go from {lows.tolist()} to {highs.tolist()}: a matrix would have more than "
                f"{MAX_PRODUCT_ENTRIES:,} entries; take coarser letters"
            )
        axes = [np.arange(low, high + 1) for low, high in zip(lows, highs, strict=True)]
        grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        distances = np.array([np.abs(grid - point).sum(axis=1) for point in letters.points])
        # what is past an end is collected there: all from it on, 1 / (1 - e^(-1/b)) times its own part
        own_part = -math.expm1(-1 / self.scale) if self.scale > 1e-3 else 1.0
        inner = ((grid > lows) & (grid < highs)).sum(axis=1)
        matrix = np.exp(-self.bound_log_ratios(distances)) * own_part**inner
        outcomes = grid.astype(int).tolist()
        is_number = isinstance(letters.prior.labels[0], int)
        names = [one[0] if is_number else tuple(one) for one in outcomes]
        return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), letters.prior.labels, names)

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float | None = None
    ) -> float:
        """Bound the failure probability: that of the mechanism with a matrix, on the same outcomes."""
        mechanism = self.to_mechanism(letters)
        return failure_probability(letters.prior, mechanism, check_epsilon(epsilon), letters.over)

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 1 / (2 * math.sinh(min(1 / (2 * self.scale), 300)) ** 2) if self.scale else 0.0

    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number, which it is from the next whole on."""
        first = np.floor(noise) + 1
        half = np.exp(-np.abs(np.where(first > 0, first, 1 - first)) / self.scale)
        half /= 1 + math.exp(-1 / self.scale)
        return np.asarray(np.where(first > 0, half, 1 - half))
