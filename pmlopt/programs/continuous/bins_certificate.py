"""The certificate of a continuous secret as far as a file holds it: without the law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.grids import Grid
from pmlopt.programs.claims import gap_claim
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.result import FLOATS, RATIONAL, Certificate, Claim


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
        return RATIONAL

    @property
    def fits(self) -> bool:
        """Whether there is an output and a multiplier for each bin of the grid, and at most one row."""
        rows, outputs = self.mechanism.matrix.shape
        rising = all(len(edges) > 1 and bool((np.diff(edges) > 0).all()) for edges in self.grid.edges)
        return rising and rows <= outputs == self.grid.size == len(self.multipliers)

    def checks(self) -> tuple[Claim, ...]:
        """What is said of the bins, and what the law of the secret adds to it."""
        same = np.array_equal(self.mechanism.matrix, self.bins.mechanism.matrix)
        fits = self.fits and same
        fit = "there are rows, outputs and multipliers for each bin of the grid"
        return (
            *self.bins.checks(),
            Claim("bins", fits, FLOATS, fit if fits else "the grid has other bins than the mechanism"),
            *(self._about_law() if fits else ()),
            gap_claim(self, rounding_of(2, abs(self.value)), False),
        )

    def _about_law(self) -> tuple[Claim, ...]:
        """What rests on the law of the secret: that the losses are those of the bins, and the bound."""
        same = self.value == self.bins.value
        text = "it is the loss on the bins" if same else "it is not the loss on the bins"
        return (
            Claim("value of the secret", same, FLOATS, text, self.value, self.bins.value),
            Claim("law", None, FLOATS, "the law is not in the file: nothing says that the bins have these "
                  f"probabilities and losses, and that no mechanism loses less than {self.bound:.9g}"),
        )  # fmt: skip

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
