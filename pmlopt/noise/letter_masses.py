"""The probabilities of the two letters of a binary secret over a set of priors, rounded outward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pmlopt.prior import Prior
from pmlopt.uncertainty.prior_set import PriorSet


@dataclass(frozen=True)
class LetterMasses:
    """The least and the largest probability of each letter: every prior of the set is within them.

    Each end is the exact one rounded outward to a float, so a rare letter keeps its digits whichever it is.

    Attributes:
        first: (least, largest) of the first letter.
        second: (least, largest) of the second.
        alone: the exact probabilities of both letters where the set has one prior, else None.
    """

    first: tuple[float, float]
    second: tuple[float, float]
    alone: tuple[Fraction, Fraction] | None = None

    @classmethod
    def over(cls, prior: Prior, priors: PriorSet | None) -> LetterMasses:
        """Those of a set of priors on two letters, or of one prior where there is no set.

        Examples:
            >>> from pmlopt.uncertainty import L1Ball
            >>> p = Prior([0.25, 0.75])
            >>> LetterMasses.over(p, L1Ball(p, 0.25)).first
            (0.125, 0.375)
        """
        if priors is None:
            total = sum(prior.weights)
            least = [Fraction(weight, total) for weight in prior.weights]
        else:
            sums, whole = priors.least_sum(np.array([[1, 0], [0, 1]], dtype=object))
            least = [Fraction(int(value), int(whole)) for value in sums]
        one, other = least
        alone = (one, other) if one + other == 1 else None
        return cls((_down(one), _up(1 - other)), (_down(other), _up(1 - one)), alone)

    @property
    def least(self) -> float:
        """The least probability of a letter."""
        return min(self.first[0], self.second[0])

    @property
    def rarer(self) -> tuple[float, float]:
        """The ends of the letter that can be rarer."""
        return self.first if self.first[0] <= self.second[0] else self.second


def _down(value: Fraction) -> float:
    """Round to the largest float that is not above."""
    near = float(value)
    return math.nextafter(near, -math.inf) if Fraction(near) > value else near


def _up(value: Fraction) -> float:
    """Round to the smallest float that is not below."""
    near = float(value)
    return math.nextafter(near, math.inf) if Fraction(near) < value else near
