"""A linear design as numbers: costs, and a band for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.backends.structured.band import Band
from pmlopt.prior import Prior


@dataclass(frozen=True, eq=False)
class Task:
    """Minimise `scale <costs, P>` over mechanisms P with each column in a band.

    Attributes:
        prior: N letters.
        costs: (N, M), the largest of size one: solvers stop at absolute tolerances.
        scale: their unit.
        band: with k scalars for each output.
    """

    prior: Prior
    costs: FloatArray
    scale: float
    band: Band

    @property
    def pairs(self) -> int:
        """The number of inequalities: two for each entry, and one for a lower end that is free."""
        outputs = self.costs.shape[1]
        return 2 * self.costs.size + (outputs if self.band.floored else 0)

    def multipliers(self, rows: FloatArray) -> FloatArray:
        """(N,) those of the certificate, from those of the rows in this program."""
        return np.asarray(-self.scale * rows / self.prior.pmf)


def have(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether there are arrays of these shapes under these names."""
    return all(name in arrays and arrays[name].shape == shape for name, shape in shapes.items())
