"""Laplace noise on a histogram: what one record leaks when no class is rarer than known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, float_array, real, whole
from pmlopt.errors import PrivacyError
from pmlopt.mechanism import generator
from pmlopt.noise.binary import check_scale
from pmlopt.noise.laplace import laplace_level, laplace_scale


@dataclass(frozen=True)
class LaplaceHistogram:
    """The counts of k classes, each with Laplace noise of scale b; n and k are public.

    Records are independent, and each is in every class with probability `min_mass` or more. The level is
    what the histogram leaks about any one record.

    Args:
        scale: b; 0 for no noise.
        min_mass: alpha, at most one over the number of classes; 0 where nothing is known, as in
            differential privacy.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: HIST, Section III.

    Examples:
        >>> noise = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1)
        >>> round(noise.level, 12), round(noise.scale / (2 / 0.5), 3)  # less noise than DP takes
        (0.5, 0.87)
        >>> LaplaceHistogram.calibrate(epsilon=2.4, min_mass=0.1).release([120, 80])  # no noise is needed
        array([120.,  80.])
    """

    scale: float
    min_mass: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale(self.scale))
        object.__setattr__(self, "min_mass", _mass(self.min_mass))

    @classmethod
    def calibrate(cls, *, epsilon: float, min_mass: float = 0.0) -> LaplaceHistogram:
        """The least noise whose level is at most epsilon.

        Args:
            epsilon: in nats, above 0; from -log(min_mass) on the scale is 0: no noise is needed.
            min_mass: alpha; where the classes' probabilities are estimated by p, `min p - radius / 2` with
                the radius of a confidence ball.

        Raises:
            PrivacyError: an argument is outside its range.

        Source: HIST, eq. (5), solved for b.
        """
        return cls(laplace_scale(epsilon, _mass(min_mass)), min_mass)

    @property
    def level(self) -> float:
        """`2/b - log(1 - alpha + alpha e^{2/b})`, in nats; attained where a class has probability alpha.

        Source: HIST, Theorem 4, eq. (3).
        """
        return laplace_level(self.scale, self.min_mass)

    @property
    def loose_level(self) -> float:
        """`2 (1 - alpha) / b + 2 alpha^2 / b^2`, at least `level`; inf past the floats.

        Source: HIST, eq. (4).
        """
        if not self.scale:
            return math.inf
        share = self.min_mass / self.scale
        return 2 * (1 - self.min_mass) / self.scale + 2 * share * share

    @property
    def dp_level(self) -> float:
        """2/b: differential privacy for histograms, by their sensitivity."""
        return 2 / self.scale if self.scale else math.inf

    def composed_level(self, classes: int) -> float:
        """`(k - 1) ((1 - alpha)/b + alpha^2 / (2 b^2))`: of k - 1 counting queries, one by one.

        Args:
            classes: k.

        Source: HIST, Section IV.
        """
        queries = whole(classes, "the number of classes", PrivacyError) - 1
        if not queries or not self.scale:
            return math.inf if queries else 0.0
        share = self.min_mass / self.scale
        return queries * ((1 - self.min_mass) / self.scale + share * share / 2)

    def release(
        self,
        counts: ArrayLike,
        seed: int | np.random.Generator | None = None,
        *,
        clip: bool = True,
        round_to_whole: bool = True,
    ) -> FloatArray:
        """The counts with noise; clipping and rounding come after it, and leak nothing more.

        Args:
            counts: (k,) or (..., k) whole numbers, of at least 0.
            seed: for a result that can be repeated; None draws from the system's entropy, as a release must.
            clip: negative counts to 0.
            round_to_whole: to the nearest whole numbers.

        Raises:
            PrivacyError: the counts are not whole numbers of at least 0, or with more classes than
                `min_mass` allows.
        """
        try:
            table = np.asarray(counts)
        except ValueError as cause:
            raise PrivacyError(f"the counts must be numbers in a regular array: {cause}") from None
        flat = float_array(table.ravel(), 1, "the counts", PrivacyError)
        if (flat < 0).any() or (flat != np.rint(flat)).any():
            raise PrivacyError("the counts must be whole numbers of at least 0")
        self._check_classes(table.shape)
        noisy = flat.reshape(table.shape)
        if self.scale:
            noisy = noisy + generator(seed).laplace(scale=self.scale, size=table.shape)
        noisy = np.rint(noisy) if round_to_whole else noisy
        return np.asarray(np.maximum(noisy, 0.0) if clip else noisy) + 0.0

    def _check_classes(self, shape: Sequence[int]) -> None:
        classes = shape[-1] if shape else 1
        if classes * self.min_mass > 1 + 1e-12:
            raise PrivacyError(
                f"{classes} classes cannot each have probability {self.min_mass:g}: at most {1 / classes:g}"
            )


def _mass(min_mass: float) -> float:
    share = real(min_mass, "the minimum mass", PrivacyError)
    if not 0 <= share <= 1:
        raise PrivacyError(f"the minimum mass is {share:g}: give a probability")
    return share
