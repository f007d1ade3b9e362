"""Means and frequencies of numbers that were released with noise, from the known law of the noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import FloatArray, Label, copy_float_array
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.releases.estimation.frequencies import Estimate, estimate
from pmlopt.releases.estimation.intervals import check_confidence, normal_quantile
from pmlopt.releases.noise.additive import AdditiveNoise
from pmlopt.releases.noise.kinds import Geometric


@dataclass(frozen=True)
class MeanEstimate:
    """The mean of numbers that were released with noise.

    Attributes:
        mean: of the numbers.
        interval: which has the mean with about the confidence that was given.
        deviation: the standard deviation of the numbers, that of the noise subtracted; 0 where it is above.
    """

    mean: float
    interval: tuple[float, float]
    deviation: float


def estimate_noisy_mean(
    noise: AdditiveNoise, released: ArrayLike, confidence: float = 0.95
) -> MeanEstimate:
    """Estimate the mean of numbers from their releases: noise has the mean 0, and a known variance.

    The mean of the releases is unbiased. The interval is that of the normal law with their variance, which
    has the noise in it; it holds about, for many people.

    Args:
        noise: with which the numbers were released.
        released: (n,) at least two.
        confidence: in (0, 1).

    Raises:
        PrivacyError: there are fewer than two releases, or one is no finite number.

    Examples:
        >>> from pmlopt.noise import Laplace
        >>> noise = Laplace(10.0)
        >>> found = estimate_noisy_mean(noise, noise.sample([20, 40] * 5000, seed=1))
        >>> found.interval[0] < 30 < found.interval[1], found.deviation > 5
        (True, True)
    """
    values = copy_float_array(released, 1, "the released values", PrivacyError)
    if len(values) < 2:
        raise PrivacyError("a mean with an interval takes two released values or more")
    level = check_confidence(confidence)
    mean = math.fsum(values) / len(values)
    variance = math.fsum((values - mean) ** 2) / (len(values) - 1)
    half = normal_quantile((1 + level) / 2) * math.sqrt(variance / len(values))
    rest = max(0.0, variance - noise.variance)
    return MeanEstimate(mean, (mean - half, mean + half), math.sqrt(rest))


def estimate_noisy_frequencies(
    noise: AdditiveNoise, letters: Iterable[Label], released: Iterable[Any], **options: Any
) -> Estimate:
    """Estimate how frequent numbers are from their releases, by the law of the noise.

    Outcomes are counted in intervals, four between two letters, of which the noise gives the probabilities
    for each letter: a mechanism with a matrix, whose outputs `estimate` takes. Whole noise takes its
    own outcomes.

    Args:
        noise: with which the numbers were released.
        letters: the numbers that there can be.
        released: (n,).
        options: of `estimate`, such as `confidence` and `intervals`.

    Raises:
        PrivacyError: letters are no numbers, or there is no noise.

    Examples:
        >>> from pmlopt.noise import Laplace
        >>> noise = Laplace(10.0)
        >>> released = noise.sample([20] * 3000 + [40] * 7000, seed=1)
        >>> found = estimate_noisy_frequencies(noise, [20, 40], released)
        >>> found.frequencies.round(1).tolist()
        [0.3, 0.7]
    """
    names = list(letters)
    prior = Prior.uniform(len(names), names)
    values = copy_float_array(released, 1, "the released values", PrivacyError)
    if isinstance(noise, Geometric):
        mechanism = noise.to_mechanism(prior)
        first = mechanism.outputs[0]
        last = mechanism.outputs[-1]
        counts = count_in_intervals(np.clip(values, first, last), np.array(mechanism.outputs[:-1]))  # type: ignore[call-overload]
    else:
        edges = make_interval_edges(noise.place_letters(prior).points[:, 0])
        mechanism = noise.bin_outcomes(prior, edges)
        counts = count_in_intervals(values, edges)
    return estimate(mechanism, counts, **options)


def make_interval_edges(line: FloatArray) -> FloatArray:
    """Return the letters on a line, and three points between each two of them."""
    places = np.sort(line)
    parts = np.interp(np.arange(4 * len(places) - 3) / 4, np.arange(len(places)), places)
    return np.unique(parts)


def count_in_intervals(values: FloatArray, edges: FloatArray) -> list[int]:
    """Count values in the K + 1 intervals between K edges; each has its upper edge."""
    places = np.searchsorted(edges, values, side="left")
    return [int(count) for count in np.bincount(places, minlength=len(edges) + 1)]
