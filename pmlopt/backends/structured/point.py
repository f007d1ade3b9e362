"""Points of the interior-point method: distances from the bounds, and their multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray

Family = dict[str, FloatArray]

BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""The length of a step that ends on the boundary: whole steps end inside."""


@dataclass(frozen=True, eq=False)
class Point:
    """A point strictly inside, or a step from one.

    Attributes:
        slacks: what is positive, by name: "above" and "below" (N, M) the distances of P from its ends;
            "excess" (N, M) the r of a hinge and "cut" what it is above its threshold; "low" (M,) the lower
            end where it is a scalar of its own; "spare" (K, M) of the rows of the columns and "coupled" of
            the coupling rows where they are inequalities.
        duals: their multipliers by the same names.
        low: (M,) the lower end, or zero.
        scalars: (k, M) u.
        means: (K, M) the multipliers of the rows of the columns.
        rows: (C,) the multipliers of the coupling rows, those of the rows' sums first.
    """

    slacks: Family
    duals: Family
    low: FloatArray
    scalars: FloatArray
    means: FloatArray
    rows: FloatArray

    @property
    def mechanism(self) -> FloatArray:
        """(N, M) the matrix P at this point."""
        return self.slacks["above"] + self.low

    def parts(
        self, allowed: BoolArray | None, hinged: BoolArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """P and r, with zeros where they may not be."""
        matrix, excess = self.mechanism, self.slacks.get("excess")
        if excess is not None and hinged is not None:
            excess = excess * hinged
        return matrix if allowed is None else matrix * allowed, excess

    @property
    def products(self) -> Family:
        """Slacks times multipliers: zero at an optimum."""
        return {name: slack * self.duals[name] for name, slack in self.slacks.items()}

    @property
    def gap(self) -> float:
        """Their sum: the duality gap of a point that meets the equations."""
        return float(sum(np.vdot(self.duals[name], slack) for name, slack in self.slacks.items()))

    def gap_after(self, step: Point, primal: float, dual: float) -> float:
        """The gap so far along a step."""
        total = 0.0
        for name, slack in self.slacks.items():
            here, there, change = self.duals[name], step.duals[name], step.slacks[name]
            total += float(
                np.vdot(here, slack)
                + dual * np.vdot(there, slack)
                + primal * (np.vdot(here, change) + dual * np.vdot(there, change))
            )
        return total

    def moved(self, step: Point, primal: float, dual: float) -> Point:
        """The point so far along a step."""
        return Point(
            {name: _along(slack, step.slacks[name], primal) for name, slack in self.slacks.items()},
            {name: _along(multiplier, step.duals[name], dual) for name, multiplier in self.duals.items()},
            self.low + primal * step.low,
            self.scalars + primal * step.scalars,
            self.means + dual * step.means,
            self.rows + dual * step.rows,
        )

    def lengths(self, step: Point) -> tuple[float, float]:
        """The longest primal and dual steps inside, at most 1."""
        primal = [_ratio(step.slacks[name], slack) for name, slack in self.slacks.items()]
        dual = [_ratio(step.duals[name], multiplier) for name, multiplier in self.duals.items()]
        return min(primal), min(dual)


def _along(at: FloatArray, step: FloatArray, length: float) -> FloatArray:
    out = length * step
    out += at
    return out


def _ratio(step: FloatArray, at: FloatArray) -> float:
    least = float((step / at).min())
    return 1.0 if least > -1 else min(-1 / least, BELOW_ONE)
