"""What mechanisms that add noise to a binary secret share: the secret, its prior and an l1 ball around it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, float_array, real
from pmlopt.errors import MechanismError, PriorError, PrivacyError
from pmlopt.mechanism import generator, letters_at
from pmlopt.prior import Prior, PriorLike, as_prior


@dataclass(frozen=True, eq=False)
class BinaryNoise(ABC):
    """Y = X + noise, for X = -1 on the prior's first letter and X = 1 on its second.

    Args:
        prior: two letters.
        scale: of the noise, positive; 0 stands for none.
        radius: the level is for every prior within this l1 distance; in [0, 2].

    Raises:
        PriorError: the prior has not two letters.
        PrivacyError: the scale is negative, or the radius outside [0, 2].
    """

    prior: Prior
    scale: float
    radius: float = 0.0

    def __init__(self, prior: PriorLike, scale: float, radius: float = 0.0) -> None:
        known = as_prior(prior)
        if known.size != 2:
            raise PriorError(f"the prior has {known.size} letters, and this mechanism is for two")
        object.__setattr__(self, "prior", known)
        object.__setattr__(self, "scale", check_scale(scale))
        object.__setattr__(self, "radius", _radius(radius))

    @property
    def interval(self) -> tuple[float, float]:
        """The least and the largest probability of X = 1 within the radius."""
        second = float(self.prior.pmf[1])
        return max(0.0, second - self.radius / 2), min(1.0, second + self.radius / 2)

    @property
    def least(self) -> float:
        """The least probability of a letter within the radius."""
        low, high = self.interval
        return min(low, 1 - high) if self.radius else float(self.prior.pmf.min())

    @abstractmethod
    def density(self, outcomes: ArrayLike) -> FloatArray:
        """(2, ...) the density of Y at outcomes, given X = -1 and X = 1."""

    @abstractmethod
    def log_ratio(self, outcomes: FloatArray) -> FloatArray:
        """Log f(y | 1) - log f(y | -1)."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """So much noise."""

    def leakage(self, outcomes: ArrayLike) -> FloatArray:
        """The pointwise maximal leakage of outcomes under the prior itself, in nats.

        `log max_x f(y | x) / f(y)`, computed from the ratio of the densities: far tails keep their digits.
        It is `-log(p + (1 - p) e^-r)` with p the mass of the likelier letter and `r >= 0` the log-ratio.
        """
        y = float_array(np.atleast_1d(outcomes), 1, "the outcomes", PrivacyError)
        ratio, (first, second) = self.log_ratio(y), self.prior.pmf
        same, other = np.where(ratio > 0, [[second], [first]], [[first], [second]])
        apart = np.abs(ratio)
        lost = -other * np.expm1(-apart)  # 1 - e^-leakage, which has no digits of a rare letter left
        near = -np.log1p(-np.minimum(lost, 0.5))
        far = -np.logaddexp(np.log(same), np.log(other) - apart)
        return np.asarray(np.where(lost < 0.5, near, far))

    def sample(self, values: Iterable[object], seed: int | None = None) -> FloatArray:
        """Each value, one of the prior's labels, as -1 or 1 with noise.

        Args:
            values: labels.
            seed: for a result that can be repeated; None draws from the system's entropy, as a release must.

        Raises:
            MechanismError: a value is not one of the two labels.
        """
        places = letters_at(self.prior.labels, values)
        return np.asarray(2.0 * places - 1.0 + self.draw(generator(seed), len(places)))


def _radius(radius: float) -> float:
    size = real(radius, "the radius", PrivacyError)
    if not 0 <= size <= 2:
        raise PrivacyError(f"the radius is {size:g}: give one in [0, 2]")
    return size


def check_scale(scale: float) -> float:
    """The scale of a noise, or a complaint where it is negative."""
    size = real(scale, "the scale", PrivacyError)
    if size < 0:
        raise PrivacyError(f"the scale is {size:g}: give a positive one, or 0 for no noise")
    return size


def check_noise(scale: float, what: str) -> None:
    """Complain where there is no noise and so no density."""
    if scale == 0:
        raise MechanismError(f"without noise there is no {what}")
