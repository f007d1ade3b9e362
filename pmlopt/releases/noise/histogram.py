"""Laplace noise on a histogram: the leakage of one record with a minimum class probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import (
    FloatArray,
    check_in_interval,
    check_integer,
    check_positive,
    check_real,
)
from pmlopt.data.sampling.categorical import Seed
from pmlopt.errors import PrivacyError
from pmlopt.releases.noise.additive import check_scale
from pmlopt.releases.noise.laplace import Laplace, laplace_level
from pmlopt.releases.noise.letters import read_numbers


@dataclass(frozen=True)
class LaplaceHistogram:
    """The mechanism of k counts with Laplace noise of scale b; n and the classes are public.

    Records are independent, and each is in every class with probability `min_mass` or more. The level is
    what all k noisy counts together leak about any one record.

    The classes have to be public: a release has a row for each, so classes taken from the records reveal
    which of them occur. Name them beforehand, with those that no one is in.

    Args:
        scale: b; 0 for no noise.
        min_mass: alpha, at most one over the number of classes; 0 where nothing is known, as in
            differential privacy.
        sensitivity: by how much the counts change, all together, when one record does: 2 for a histogram, for
            the record leaves one class and enters another; 1 for the count of one class only; 2 c where each
            record counts c times. alpha is then the least probability of a record's contribution.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [saeidian2025histogram, Section III]; other sensitivities by the same proof.

    Examples:
        >>> noise = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1)
        >>> round(noise.level, 12), round(noise.scale / (2 / 0.5), 3)  # less noise than DP takes
        (0.5, 0.87)
        >>> LaplaceHistogram.calibrate(epsilon=2.4, min_mass=0.1).release([120, 80])  # no noise is needed
        array([120.,  80.])
        >>> one_count = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1, sensitivity=1)
        >>> round(noise.scale / one_count.scale, 12)
        2.0
    """

    scale: float
    min_mass: float = 0.0
    sensitivity: float = 2.0

    def __post_init__(self) -> None:
        share = check_in_interval(self.min_mass, "[0, 1]", "the minimum mass", PrivacyError)
        change = check_positive(self.sensitivity, "the sensitivity", PrivacyError)
        vars(self).update(scale=check_scale(self.scale), min_mass=share, sensitivity=change)

    @classmethod
    def calibrate(
        cls, *, epsilon: float, min_mass: float = 0.0, sensitivity: float = 2.0
    ) -> LaplaceHistogram:
        """Compute the least noise scale that achieves a PML level of one record.

        Args:
            epsilon: in nats, above 0; from -log(min_mass) on the scale is 0: no noise is needed.
            min_mass: alpha; where the classes' probabilities are estimated by p, `min p - radius / 2` with
                the radius of a confidence ball.
            sensitivity: by how much the counts change when one record does; 1 for one count only.

        Raises:
            PrivacyError: an argument is outside its range.

        Source: [saeidian2025histogram, eq. (5)], solved for b.
        """
        share = check_in_interval(min_mass, "[0, 1]", "the minimum mass", PrivacyError)
        change = check_positive(sensitivity, "the sensitivity", PrivacyError)
        scale = Laplace.search_scale(lambda b: cls(b, share, change).level, change, epsilon)
        return cls(scale, share, change)

    @property
    def level(self) -> float:
        """Return the PML level of one record in nats, `s/b - log(1 - alpha + alpha e^{s/b})`, s the
        sensitivity.

        Attained where a class has probability alpha.

        Source: [saeidian2025histogram, Theorem 4, eq. (3)].
        """
        return laplace_level(2 * (self.scale / self.sensitivity), self.min_mass)

    @property
    def loose_level(self) -> float:
        """Return a looser bound on the level, `s (1 - alpha) / b + s^2 alpha^2 / (2 b^2)`; inf past the
        floats.

        Source: [saeidian2025histogram, eq. (4)].
        """
        return self._loose_bound(self.sensitivity)

    @property
    def dp_level(self) -> float:
        """Return the level s/b of differential privacy, by the sensitivity."""
        return self.sensitivity / self.scale if self.scale else math.inf

    def composed_level(self, classes: int, *, released: int | None = None) -> float:
        """Bound the level by composing the counts as separate counting queries.

        `m ((1 - alpha)/b + alpha^2 / (2 b^2))` for m released counts, each of which one record changes by 1.
        It is a bound on what they leak together, and looser than `level`: a counting query leaks at most
        `L(1/b)` with `L(r) = r - log(1 - alpha + alpha e^r)`, and all counts leak L(2/b), or one only
        L(1/b); L is concave with L(0) = 0, so `L(2/b) <= 2 L(1/b)`.

        Args:
            classes: k.
            released: m, all k counts where it is left out, as `release` does; k - 1 as published, where the
                last count is not released, since it follows from n and the others.

        Raises:
            PrivacyError: a number is not whole, more counts are released than there are classes, or the
                sensitivity is not that of a histogram.

        Source: [saeidian2025histogram, Section IV].
        """
        k = check_integer(classes, "the number of classes", PrivacyError)
        m = k if released is None else check_real(released, "the number released", PrivacyError)
        if m not in range(k + 1):
            raise PrivacyError(
                f"{released!r} counts are released of {k} classes: give a whole number up to {k}"
            )
        if self.sensitivity != 2:
            raise PrivacyError(
                f"the sensitivity is {self.sensitivity:g}: composition is about a histogram's, which is 2"
            )
        return m * self._loose_bound(1.0) if m else 0.0

    def _loose_bound(self, change: float) -> float:
        """Compute the bound (4) for a given change of the counts by one record."""
        if not self.scale:
            return math.inf
        ratio = change / self.scale
        share = self.min_mass * ratio
        return (1 - self.min_mass) * ratio + share * share / 2

    def release(
        self,
        counts: ArrayLike,
        seed: Seed = None,
        *,
        clip: bool = True,
        round_to_whole: bool = True,
    ) -> FloatArray:
        """Release noisy counts, with clipping and rounding as post-processing.

        The noise y has the probability `(1 - q) / (1 + q) q^(|y| / g)`, `q = e^(-g / b)`, on the multiples of
        a fine step g, drawn exactly. Counts are on the grid, so that ratios of probabilities at its outcomes
        are those of the densities, and the level is `level`: the digits of floating point reveal nothing.

        Args:
            counts: (k,) or (..., k) whole numbers, of at least 0.
            seed: for a result that can be repeated; None draws from the operating system, as a release must.
            clip: negative counts to 0.
            round_to_whole: to the nearest whole numbers.

        Raises:
            PrivacyError: the counts are not whole numbers of at least 0, there are more classes than
                `min_mass` allows, or several counts with the sensitivity of one.
        """
        table = read_numbers(counts, "the counts")
        if (table < 0).any() or (table != np.rint(table)).any():
            raise PrivacyError("the counts must be whole numbers of at least 0")
        self._check_classes(table.shape)
        noisy = Laplace(self.scale).add_noise(table, seed)
        noisy = np.rint(noisy) if round_to_whole else noisy
        return np.asarray(np.maximum(noisy, 0.0) if clip else noisy) + 0.0

    def _check_classes(self, shape: Sequence[int]) -> None:
        """Raise an error where the number of classes conflicts with minimum probability or sensitivity."""
        classes = shape[-1] if shape else 1
        if classes * self.min_mass > 1 + 1e-12:
            raise PrivacyError(
                f"{classes} classes cannot each have probability {self.min_mass:g}: at most {1 / classes:g}"
            )
        if classes > 1 and self.sensitivity < 2:
            raise PrivacyError(
                f"the sensitivity is {self.sensitivity:g}, and one record changes {classes} counts by 2 "
                "in all: release one count, or give the sensitivity 2"
            )
