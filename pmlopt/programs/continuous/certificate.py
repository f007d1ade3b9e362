"""The certificate of a design for a continuous secret: a mechanism on bins, and a bound on all mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmlopt.arrays import FloatArray
from pmlopt.continuous import Continuous
from pmlopt.grids import Grid
from pmlopt.programs.continuous.bracket import least_loss
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.result import Certificate
from pmlopt.utility.distance_loss import DistanceLoss


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinuousCertificate(Certificate):
    """The mechanism loses at most `value`, and no mechanism on the secret loses less than `bound`.

    Attributes:
        secret: the secret, with its law.
        utility: the loss.
        grid: the bins. `grid.locate(points)` says in which a secret is.
        multipliers: (size,) one for each bin, from which the bound follows.
        boxes: about how many boxes the bound was computed on.
        bins: the certificate of the same mechanism for the bins; its level is that of the secret.
    """

    secret: Continuous
    utility: DistanceLoss
    grid: Grid
    multipliers: FloatArray
    boxes: int
    bins: LinearCertificate

    @property
    def level(self) -> float:
        """The level of the mechanism, in nats."""
        return self.bins.level

    @property
    def statement(self) -> str:
        """The level, and on how many bins."""
        return f"{self.bins.statement}, on {self.mechanism.matrix.shape[0]} bins"

    @property
    def arithmetic(self) -> str:
        """Integers, of the level on bins of the probabilities that are stored; the losses are floats."""
        return "rational arithmetic"

    def verify(self) -> bool:
        """Whether the matrix meets the requirement as rationals, and both ends of the loss come out again."""
        found = least_loss(
            self.secret, self.bins.privacy, self.utility, self.grid, self.multipliers, self.boxes
        )
        return self.bins.verify() and self.bound <= max(found, 0.0) and self.value >= self.bins.value

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file; the law itself is not in it, but the probabilities of the bins are."""
        return {
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "edges": [edges.tolist() for edges in self.grid.edges],
            "periods": list(self.grid.periods),
            "multipliers": self.multipliers.tolist(),
            "boxes": self.boxes,
            "bins": self.bins.to_dict(),
        }
