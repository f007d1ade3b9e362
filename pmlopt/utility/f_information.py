"""f-informations: the f-divergence of the joint law of X and Y from the product of their marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.measures import mutual_information
from pmlopt.measures.information import surplus
from pmlopt.mechanism import MechanismLike
from pmlopt.prior import PriorLike
from pmlopt.utility.subconvex import SubConvex


@dataclass(frozen=True, eq=False, init=False)
class FInformation(SubConvex):
    """Maximise the f-information `I_f(X; Y) = sum_xy p[x] q[y] f(P[x,y] / q[y])`, f convex with f(1) = 0.

    These utilities add up over the letters of a column, which is what column generation needs to
    prove an optimum on alphabets too large to list all extreme columns.

    Args:
        generator: f, from an array of numbers >= 0 to an array, entry by entry.

    Raises:
        UtilityError: f fails, is not finite, not convex, or not 0 at 1.

    Source: [csiszar1972informativity]; sub-convex as in [grosse2025empirical, eq. (2)].

    Examples:
        >>> FInformation(lambda lift: (lift - 1) ** 2).value([0.5, 0.5], np.eye(2))
        1.0
    """

    generator: Callable[[FloatArray], FloatArray]
    vectorised: ClassVar[bool] = True

    def __init__(self, generator: Callable[[FloatArray], Any]) -> None:
        object.__setattr__(self, "generator", generator)
        super().__init__(self._column)
        probe(self)

    @property
    def name(self) -> str:
        return "f-information"

    def phi(self, lifts: FloatArray) -> FloatArray:
        """The generator f applied entry by entry."""
        return np.asarray(self.generator(lifts), dtype=float)

    def worths(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        mean = p @ lifts
        worths = (p @ self.phi(lifts / mean)) * mean
        if not np.isfinite(worths).all():
            raise UtilityError(f"the utility {self.name} is not finite on a column: check its generator")
        return np.asarray(worths)

    def _column(self, column: FloatArray, p: FloatArray) -> float:
        return float(self.worths(p, column[:, None])[0])


class MutualInformation(FInformation):
    """Maximise the mutual information I(X; Y) in nats, the f-information of f(t) = t log t.

    Computed with t log t - t + 1, which has the same sum and loses no digits near t = 1.

    Source: [grosse2025empirical, Section II-A2].

    Examples:
        >>> round(np.exp(MutualInformation().value([0.5, 0.5], np.eye(2))).item(), 12)
        2.0
    """

    def __init__(self) -> None:
        super().__init__(lambda lifts: surplus(lifts - 1))

    @property
    def name(self) -> str:
        return "mutual-information"

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        return mutual_information(prior, mechanism)


class TotalVariation(FInformation):
    """Maximise the total variation `1/2 sum_xy p[x] |P[x,y] - q[y]|`: f(t) = |t - 1| / 2.

    Examples:
        >>> TotalVariation().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.25
    """

    def __init__(self) -> None:
        super().__init__(lambda lifts: np.abs(lifts - 1) / 2)

    @property
    def name(self) -> str:
        return "total-variation"


class ChiSquare(FInformation):
    """Maximise the chi-square information `sum_xy p[x] (P[x,y] - q[y])^2 / q[y]`: f(t) = (t - 1)^2.

    Examples:
        >>> ChiSquare().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.25
    """

    def __init__(self) -> None:
        super().__init__(lambda lifts: (lifts - 1) ** 2)

    @property
    def name(self) -> str:
        return "chi-square"


class Hellinger(FInformation):
    """Maximise the squared Hellinger distance to independence, f(t) = (sqrt(t) - 1)^2.

    `sum_xy p[x] (sqrt(P[x,y]) - sqrt(q[y]))^2`, between 0 and 2.

    Examples:
        >>> round(Hellinger().value([0.5, 0.5], np.eye(2)), 12) == round(2 - 2**0.5, 12)
        True
    """

    def __init__(self) -> None:
        super().__init__(lambda lifts: (np.sqrt(lifts) - 1) ** 2)

    @property
    def name(self) -> str:
        return "hellinger"


def probe(utility: FInformation) -> None:
    """Raise a UtilityError where the generator is not finite, convex and 0 at 1, on a grid from 0 to 100."""
    grid = np.concatenate([np.linspace(0.0, 2.0, 41), np.geomspace(2.1, 100.0, 40)])
    try:
        values, at_one = utility.phi(grid), utility.phi(np.ones(1))
    except Exception as cause:  # a person's own function may raise anything
        raise UtilityError(f"the generator of {utility.name} fails on an array: {cause!r}") from cause
    if values.shape != grid.shape or at_one.shape != (1,):
        raise UtilityError(
            f"the generator of {utility.name} gives shape {values.shape} for shape {grid.shape}: it must "
            "work entry by entry"
        )
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise UtilityError(f"the generator of {utility.name} is {values[bad]} at {grid[bad]:g}")
    if abs(at_one[0]) > 1e-12:
        raise UtilityError(f"the generator of {utility.name} is {at_one[0]:g} at 1, and must be 0 there")
    slopes = np.diff(values) / np.diff(grid)
    fall = np.flatnonzero(np.diff(slopes) < -1e-9 * max(1.0, float(np.abs(slopes).max())))
    if len(fall):
        raise UtilityError(f"the generator of {utility.name} is not convex near {grid[fall[0] + 1]:g}")
