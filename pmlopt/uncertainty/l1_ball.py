"""All priors within an l1 distance of one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pmlopt.checks import real
from pmlopt.errors import PrivacyError
from pmlopt.prior import Prior, PriorLike, as_prior


@dataclass(frozen=True, eq=False, init=False)
class L1Ball:
    """The priors Q with `sum_x |Q[x] - p[x]| <= radius`, for radii below 2 min p.

    A set of priors enters a requirement only through the least mean of a column v over the set. Here the
    adversary moves a mass of radius / 2 from the largest entry of v to the smallest:
    `<p, v> - radius/2 (max v - min v)`.

    Args:
        center: the prior p, such as an empirical distribution.
        radius: in [0, 2 min p), so that no letter is emptied.

    Raises:
        PrivacyError: the radius is negative, NaN, or not below 2 min p.

    Source: EMP, eq. (5) and Proposition 2.

    Examples:
        >>> L1Ball([0.5, 0.5], 0.2).least_mean(np.array([[1.0], [0.0]])).round(12)
        array([0.4])
    """

    center: Prior
    radius: float

    def __init__(self, center: PriorLike, radius: float) -> None:
        known = as_prior(center)
        size = real(radius, "the radius", PrivacyError)
        least = float(known.pmf.min())
        if not 0 <= size < 2 * least:
            raise PrivacyError(
                f"the radius is {size:g}: give one of at least 0 and below twice the least probability, "
                f"{2 * least:g}; larger balls empty a letter"
            )
        object.__setattr__(self, "center", known)
        object.__setattr__(self, "radius", size)

    @property
    def half(self) -> float:
        """The mass that can move, radius / 2."""
        return self.radius / 2

    def least_mean(self, matrix: Any) -> Any:
        """(M,) the least mean of each column over the set."""
        return self.center.pmf @ matrix - self.half * (matrix.max(axis=0) - matrix.min(axis=0))

    def least_sum(self, weights: Any, matrix: Any) -> Any:
        """The same times the sum of the weights, in floats or in rationals.

        Args:
            weights: (N,) proportional to the center, floats or Python integers.
            matrix: (N, M) floats or Python integers.
        """
        half: Any = Fraction(self.radius) / 2 if np.asarray(weights).dtype == object else self.half
        return weights @ matrix - half * weights.sum() * (matrix.max(axis=0) - matrix.min(axis=0))

    def __repr__(self) -> str:
        """The size, without the whole center."""
        return f"L1Ball(<prior on {self.center.size} letters>, {self.radius:g})"
