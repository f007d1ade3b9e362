"""The certificate of a continuous secret as far as a file holds it: without the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.grids import Grid
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.result import Certificate


@dataclass(frozen=True, eq=False, kw_only=True)
class BinsCertificate(Certificate):
    """What is claimed of a mechanism on the bins of a continuous secret.

    Attributes:
        grid: the bins.
        multipliers: (size,) one for each bin, from which the bound follows.
        boxes: about how many boxes the bound was computed on.
        bins: the certificate of the same mechanism for the bins; its level is that of the secret.
    """

    kind: ClassVar[str] = "continuous"

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

    @property
    def fits(self) -> bool:
        """Whether there is an output and a multiplier for each bin of the grid, and at most one row."""
        rows, outputs = self.mechanism.matrix.shape
        rising = all(len(edges) > 1 and bool((np.diff(edges) > 0).all()) for edges in self.grid.edges)
        return rising and rows <= outputs == self.grid.size == len(self.multipliers)

    def verify(self) -> bool:
        """Whether the matrix meets the requirement as rationals, on bins of the stored probabilities."""
        same = np.array_equal(self.mechanism.matrix, self.bins.mechanism.matrix)
        return self.fits and same and self.value == self.bins.value and self.bins.verify()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file; the law itself is not in it, but the probabilities of the bins are."""
        return {
            "kind": self.kind,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            "edges": [edges.tolist() for edges in self.grid.edges],
            "periods": list(self.grid.periods),
            "multipliers": self.multipliers.tolist(),
            "boxes": self.boxes,
            "bins": self.bins.to_dict(),
        }
