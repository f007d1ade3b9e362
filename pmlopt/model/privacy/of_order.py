"""What bounds of a finite order share: the order, and moments."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from pmlopt.core.arrays import FloatArray, nonnegative, real
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Requirement

DIGITS, LAST_DIGITS = 60, Decimal(10) ** -45
"""Decimals of the check, and what their rounding may hide of a sum of logarithms."""


@dataclass(frozen=True)
class OfOrder(Requirement):
    """What bounds of a finite order alpha above 1 share, of each outcome or of their mean.

    Attributes:
        alpha: above 1 and finite.
        epsilon: in nats.
    """

    alpha: float
    epsilon: float
    infinite: ClassVar[str]
    """The requirement of order infinity, by its name."""

    def __post_init__(self) -> None:
        alpha = real(self.alpha, "alpha", PrivacyError)
        if not 1 < alpha < math.inf:
            raise PrivacyError(
                f"alpha is {alpha:g}: give an order above 1, or {self.infinite} for order infinity"
            )
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "epsilon", nonnegative(self.epsilon, "epsilon", PrivacyError))

    @property
    def scope(self) -> str:
        return f"of order {self.alpha:g}"

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def largest_norm(self, prior: Prior) -> float:
        """`e^((alpha - 1) epsilon / alpha)`, for epsilon up to what can be told at all."""
        return math.exp(min(self.epsilon, self._most_told(prior)) * (self.alpha - 1) / self.alpha)

    def _most_told(self, prior: Prior) -> float:
        return prior.max_leakage

    def _is_free(self, weights: Any, power: Callable[[float], Any]) -> bool:
        """Whether no mechanism exceeds it: a divergence is at most the logarithm of 1 / min p."""
        free = self.epsilon > LARGEST_EXPONENT or power(self.epsilon) * weights.min() >= weights.sum()
        return bool(free)


def moment_of(masses: Sequence[Decimal], entries: Sequence[Decimal], alpha: Decimal) -> Decimal:
    """`sum_x mass[x] (v[x] / max v)^alpha` of entries that are not all zero."""
    top, pairs = max(entries), zip(masses, entries, strict=True)
    return sum((mass * (alpha * (entry / top).ln()).exp() for mass, entry in pairs if entry), Decimal(0))
