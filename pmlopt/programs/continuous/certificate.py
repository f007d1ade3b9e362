"""The certificate of a design for a continuous secret: a mechanism on bins, and a bound on all mechanisms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import IntArray, rounding_of
from pmlopt.continuous import Continuous
from pmlopt.errors import PriorError
from pmlopt.programs.continuous.bins_certificate import BinsCertificate
from pmlopt.programs.continuous.bracket import least_loss, mean_losses
from pmlopt.utility.distance_loss import DistanceLoss


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinuousCertificate(BinsCertificate):
    """The mechanism loses at most `value`, and no mechanism on the secret loses less than `bound`.

    Attributes:
        secret: the secret, with its law.
        utility: the loss.
    """

    secret: Continuous
    utility: DistanceLoss

    def rows(self, points: ArrayLike) -> IntArray:
        """(n,) the row of the mechanism for each of (n, axes) secrets.

        Raises:
            PriorError: a secret is outside of the support, or in a bin that has no probability under the law.
        """
        rows = np.cumsum(self.secret.masses(self.grid) > 0) - 1
        boxes = self.grid.locate(points)
        empty = self.secret.masses(self.grid)[boxes] <= 0
        if empty.any():
            first = int(np.argmax(empty))
            raise PriorError(
                f"{np.asarray(points)[first].tolist()} at position {first} is in a bin without probability: "
                "the law excludes it"
            )
        return np.asarray(rows[boxes])

    def verify(self) -> bool:
        """Whether the matrix meets the requirement as rationals, and both ends of the loss come out again.

        The probabilities of the bins, the losses in them and the bound are computed anew from the law.
        """
        prior = self.secret.prior(self.grid)
        table, _ = mean_losses(self.secret, self.utility, self.grid)
        if table.shape != self.mechanism.matrix.shape:
            return False
        lost = float(prior.pmf @ (table * self.mechanism.matrix).sum(axis=1))
        least = least_loss(
            self.secret, self.bins.privacy, self.utility, self.grid, self.multipliers, self.boxes
        )
        same = np.array_equal(self.mechanism.matrix, self.bins.mechanism.matrix)
        return (
            same
            and np.array_equal(prior.pmf, self.bins.prior.pmf)
            and self.bins.verify()
            and self.bound <= least
            and self.bound <= self.value + rounding_of(table.size, abs(self.value))
            and self.value >= lost - rounding_of(table.size, abs(lost))
            and self.gap >= self.value - self.bound - rounding_of(2, abs(self.value))
        )
