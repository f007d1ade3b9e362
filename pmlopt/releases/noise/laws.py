"""The laws of noise on a number: densities, tails, ratios of densities, and exact draws on a grid."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_in_interval, check_nonnegative
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.data.sampling.grid_noise import (
    choose_grid_step,
    draw_gaussian_noise,
    draw_laplace_noise,
)
from pmlopt.errors import PrivacyError

UNIT = math.ulp(1.0)
"""Twice the largest relative rounding of a float."""


def check_epsilon(epsilon: float) -> float:
    """Check that a level is not negative."""
    return check_nonnegative(epsilon, "epsilon", PrivacyError)


def bound_exponentials(middle: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bound `e^(middle + s change)` on cells, |s| <= 1, from below by affine functions of s.

    They are tangents, or constants where the change is large.

    Returns:
        The logarithms of their values at both ends of the cells.
    """
    sizes = np.abs(change)
    slope = np.where(sizes < 0.5, change, 0.0)
    base = np.where(sizes < 0.5, middle, middle - sizes)
    return base + np.log1p(-slope), base + np.log1p(slope)


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """Noise with a density proportional to `exp(-(|z| / scale)^power / power)`, or whole noise of such a law.

    Args:
        scale: of the noise; 0 for none.

    Raises:
        PrivacyError: the scale is negative or no number.
    """

    scale: float

    power: ClassVar[int]
    """1 or 2."""

    is_whole: ClassVar[bool] = False
    """Whether the noise is whole, and for whole numbers only."""

    def __post_init__(self) -> None:
        size = check_in_interval(self.scale, "[0, inf)", "the scale", PrivacyError)
        vars(self).update(scale=size)

    @abstractmethod
    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""

    @property
    def grid_step(self) -> float:
        """Return the step of the grid of the noise: at most the scale over 2^48; whole numbers are on it."""
        return choose_grid_step(self.scale) if self.scale and not self.is_whole else 1.0

    @property
    def variance(self) -> float:
        """Return the variance of the noise on one number."""
        return 2 / self.power * self.scale**2

    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise, whose scale is positive."""
        total = (2.0 if self.power == 1 else math.sqrt(2 * math.pi)) * self.scale
        exponents = (np.abs(noise) / self.scale) ** self.power / self.power
        return np.exp(-exponents) / total

    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute (N, K) logarithms of the densities at outcomes, over that of the likeliest letter."""
        # past the last letter differences of distances are constant, and those of large numbers lose them
        nearby = np.clip(outcomes, line.min(), line.max())
        inside = np.abs(nearby - line[:, None])
        nearest = inside.min(axis=0)
        further = inside - nearest
        with np.errstate(over="ignore"):
            if self.power == 2:
                # a difference of squares as a product: squares of large numbers would lose it
                further *= ((inside + nearest) / 2 + np.abs(outcomes - nearby)) / self.scale
            return np.asarray(-further / self.scale)

    def bound_log_ratios(self, distances: FloatArray) -> FloatArray:
        """Bound log-ratios of the densities given two letters at distances, whatever the outcome is."""
        # far out those of a Gaussian have no bound, as without noise
        scale = self.scale if self.power == 1 else 0.0
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            found = distances / scale * (1 + UNIT)
        return np.where(distances == 0, 0.0, found)

    def bound_log_change(self, edges: FloatArray) -> float:
        """Bound the change of the logarithm of a density when a number moves to the centre of its bin.

        It is for outcomes that are drawn: of Gaussian noise up to 9 deviations off the numbers; those farther
        out have a probability below 1e-18.

        Args:
            edges: of the bins.
        """
        width = float(np.ptp(edges))
        moved = float(np.diff(edges).max()) / 2 + self.grid_step
        steepest = 1.0 if self.power == 1 else (width + moved) / self.scale + 9
        return moved * steepest / self.scale

    def compute_cell_masses(
        self, left: FloatArray, right: FloatArray, line: FloatArray
    ) -> FloatArray:
        """Compute the (N, K) probabilities of cells (left, right] of outcomes, given each letter."""
        low = left - line[:, None]
        high = right - line[:, None]
        # by the tail on the side of the cell: close to 1 a tail has no digits; whole noise has atoms, and -y
        # or more is more than the float before -y
        above = low > 0
        start = np.where(above, low, np.nextafter(-high, -np.inf))
        end = np.where(above, high, np.nextafter(-low, -np.inf))
        return np.maximum(self.compute_tail(start) - self.compute_tail(end), 0.0)

    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return the ends of the cells of outcomes in which those that leak more are looked for.

        Past the first and the last no float is the probability.
        """
        reach = self.scale * (750 if self.power == 1 else 40)
        ends = line.min() - reach, line.max() + reach
        # past the letters ratios of Laplace noise are constant
        inner = (line.min(), line.max()) if self.power == 1 else ends
        return np.unique(np.append(np.linspace(*inner, 17), ends))

    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return (N, d) places of letters in as few dimensions as the law allows."""
        # in the other coordinates letters do not differ
        return points[:, np.ptp(points, axis=0) > 0]

    def draw_noise(self, size: int, seed: Seed) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid of `grid_step`."""
        draw = draw_laplace_noise if self.power == 1 else draw_gaussian_noise
        return draw(self.scale, self.grid_step, size, make_random_bits(seed))
