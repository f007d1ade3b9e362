"""The loss of a distance: a utility for secrets that are numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike
from pmlopt.utility.utility import Utility


@dataclass(frozen=True)
class DistanceLoss(Utility):
    """Minimise `E growth(d(X, Y))` for a `Continuous` secret X, with d the Euclidean distance.

    Args:
        growth: a function of an array of distances, such as `numpy.square`, that nowhere falls (1,001 steps
            are looked at); left out, the distance itself.

    Examples:
        >>> DistanceLoss().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])  # letters 0 and 1
        0.25
        >>> DistanceLoss(np.square).of(np.array([0.0, 2.0])).tolist()
        [0.0, 4.0]
    """

    growth: Callable[[FloatArray], FloatArray] | None = None
    maximised: ClassVar[bool] = False

    def of(self, distances: FloatArray) -> FloatArray:
        """The loss at distances.

        Raises:
            UtilityError: it is not finite, or falls where the distance grows.
        """
        if self.growth is None:
            return distances
        steps = np.linspace(0.0, float(distances.max(initial=0.0)), 1001)
        losses, rising = (np.asarray(self.growth(at), dtype=float) for at in (distances, steps))
        if losses.shape != distances.shape or not (np.isfinite(losses).all() and np.isfinite(rising).all()):
            raise UtilityError(
                f"the growth {self.growth!r:.60} is not finite, or not a number for each distance"
            )
        if (np.diff(rising) < 0).any():
            raise UtilityError(
                f"the growth {self.growth!r:.60} falls where the distance grows: that is no loss"
            )
        return losses

    @property
    def least(self) -> float:
        """The loss at the distance 0, the least there is."""
        return float(self.of(np.zeros(1))[0])

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The loss of a mechanism between labels that are numbers, or tuples of them."""
        p, m = paired(prior, mechanism)
        here, there = (np.array(side, dtype=float).reshape(len(side), -1) for side in (m.inputs, m.outputs))
        apart = np.sqrt(((here[:, None, :] - there[None, :, :]) ** 2).sum(axis=2))
        return float(p.pmf @ (self.of(apart) * m.matrix).sum(axis=1))
