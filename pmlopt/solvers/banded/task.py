"""A linear design as numbers: costs, and a band for each column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.builders import Design, LinearDesign
from pmlopt.checks import FloatArray
from pmlopt.prior import Prior
from pmlopt.privacy.band import Band


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


def task_of(program: Design) -> Task | None:
    """The program as numbers; None where constraints were added, or the requirement is not a band."""
    if not isinstance(program, LinearDesign) or program.band is None:
        return None
    costs = -program.prior.pmf[:, None] * program.centred
    largest = float(np.abs(costs).max())
    scale = largest if largest > 0 else 1.0
    return Task(program.prior, costs / scale, scale, program.band)


def have(arrays: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether there are arrays of these shapes under these names."""
    return all(name in arrays and arrays[name].shape == shape for name, shape in shapes.items())
