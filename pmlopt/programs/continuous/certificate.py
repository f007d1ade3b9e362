"""The certificate of a design for a continuous secret: a mechanism on bins, and a bound on all mechanisms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import IntArray, rounding_of
from pmlopt.continuous import Continuous
from pmlopt.errors import PriorError
from pmlopt.programs.claims import bound_claim
from pmlopt.programs.continuous.bins_certificate import BinsCertificate
from pmlopt.programs.continuous.bracket import least_loss, mean_losses
from pmlopt.result import FLOATS, Claim
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

    def _about_law(self) -> tuple[Claim, ...]:
        """The probabilities of the bins, the losses in them and the bound, computed anew from the law."""
        prior = self.secret.prior(self.grid)
        same = np.array_equal(prior.pmf, self.bins.prior.pmf)
        law = Claim("law", same, FLOATS, f"the bins have {'the' if same else 'other'} probabilities of the law")
        table, _ = mean_losses(self.secret, self.utility, self.grid)
        if table.shape != self.mechanism.matrix.shape:
            return (replace(law, holds=False, detail="the bins are other ones than those of the law"),)
        lost = float(prior.pmf @ (table * self.mechanism.matrix).sum(axis=1))
        least = least_loss(
            self.secret, self.bins.privacy, self.utility, self.grid, self.multipliers, self.boxes
        )
        enough = abs(self.value - lost) <= rounding_of(table.size, lost)
        text = f"the mechanism loses {lost:.12g}"
        return (
            law,
            Claim("value of the secret", enough, FLOATS, text, self.value, lost),
            replace(bound_claim(self.bound, max(least, 0.0), False), name="bound of the secret"),
        )
