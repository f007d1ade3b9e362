"""Added constraints that are affine in the mechanism, as plain numbers: what a file holds of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, float_array
from pmlopt.errors import ProgramError
from pmlopt.files import entry


@dataclass(frozen=True, eq=False)
class AffineConstraint:
    """Rows `sum_xy C[r,x,y] P[x,y] + offset[r] <= 0`, or `== 0`, with their multipliers.

    Attributes:
        name: under which it was added.
        equal: whether the rows are equations.
        coefficients: (R, N, M) C.
        offset: (R,).
        multipliers: (R,) at least 0 for inequalities, of which smaller ones count as 0.
    """

    name: str
    equal: bool
    coefficients: FloatArray
    offset: FloatArray
    multipliers: FloatArray

    @property
    def unit(self) -> float:
        """The largest coefficient where it is below one, else one: what a violation is measured in."""
        return float(min(1.0, np.abs(self.coefficients).max(initial=0.0))) or 1.0

    def violation(self, matrix: FloatArray) -> float:
        """By how much a mechanism breaks the rows, at most; 0 where it does not."""
        values = (self.coefficients * matrix).sum(axis=(1, 2)) + self.offset
        return float((np.abs(values) if self.equal else np.maximum(values, 0.0)).max(initial=0.0))

    @property
    def prices(self) -> FloatArray:
        """(R,) the multipliers that count."""
        return self.multipliers if self.equal else np.maximum(self.multipliers, 0.0)

    @property
    def record(self) -> dict[str, Any]:
        """As plain data."""
        rows = [
            {
                "coefficients": row.tolist(),
                "offset": float(offset),
                "multiplier": float(multiplier),
            }
            for row, offset, multiplier in zip(self.coefficients, self.offset, self.multipliers, strict=True)
        ]
        return {"name": self.name, "equal": self.equal, "rows": rows}

    @classmethod
    def from_record(cls, record: Mapping[str, Any], shape: tuple[int, int]) -> AffineConstraint:
        """The constraint of a record, on an (N, M) mechanism."""
        rows = entry(record, "rows", "an added constraint")
        matrices = [entry(row, "coefficients", "an added constraint") for row in rows]
        coefficients = float_array(matrices, 3, "the coefficients", ProgramError)
        if coefficients.shape[1:] != shape:
            raise ProgramError(f"an added constraint has coefficients in the shape {coefficients.shape[1:]}")
        offset, multipliers = (
            float_array(
                [entry(row, key, "an added constraint") for row in rows], 1, f"the {key}", ProgramError
            )
            for key in ("offset", "multiplier")
        )
        return cls(record["name"], record["equal"] is True, coefficients, offset, multipliers)


def priced(
    constraints: Sequence[AffineConstraint], gains: FloatArray, p: FloatArray
) -> tuple[FloatArray, float]:
    """Gains and a constant whose sum is at least the expected gain wherever the constraints hold."""
    constant, priced_gains = 0.0, gains
    for one in constraints:
        priced_gains = priced_gains - np.tensordot(one.prices, one.coefficients, axes=1) / p[:, None]
        constant -= float(one.prices @ one.offset)
    return priced_gains, constant
