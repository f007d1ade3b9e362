"""Sub-convex utilities: a convex, homogeneous function of each column, summed over the outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike, as_prior
from pmlopt.utility.utility import Utility

ColumnFunction = Callable[[FloatArray, FloatArray], Any]


@dataclass(frozen=True, eq=False)
class SubConvex(Utility):
    """Maximise a sub-convex utility `sum_y mu(P[:,y], p)`, mu convex and homogeneous in the column.

    `P[:,y] = q[y] lam_y` with lam_y of mean one under p (the lift of the column), so the utility is
    `sum_y q[y] mu(lam_y, p)`, and extreme columns reach its maximum.

    Args:
        function: mu(column, p), from two (N,) arrays to a number. A design probes it on random columns
            and refuses it where it is not finite, not convex or not homogeneous.

    Raises:
        UtilityError: it is not a function.

    Source: [grosse2025empirical, eq. (2)]; [grosse2024extremal, Theorem 1] (N outputs suffice).

    Examples:
        >>> spread = SubConvex(lambda column, p: p @ abs(column - p @ column))
        >>> spread.value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.5
    """

    function: ColumnFunction
    maximised: ClassVar[bool] = True
    vectorised: ClassVar[bool] = False
    """Whether `worths` takes many columns at once, without a loop."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UtilityError(f"SubConvex needs a function mu(column, p), not {self.function!r:.60}")

    @property
    def name(self) -> str:
        """The name of the utility in messages and files."""
        return getattr(self.function, "__name__", "function").replace("<lambda>", "function")

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """The utility of a given mechanism."""
        p, m = paired(prior, mechanism)
        occurring = m.matrix[:, m.support]
        law = p.pmf @ occurring
        return float(self.worths(p.pmf, occurring / law) @ law)

    def worths(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        """(K,) the values of mu on the columns of an (N, K) matrix.

        Raises:
            UtilityError: the function fails, or gives anything but a finite number.
        """
        return np.array([self._at(column, p) for column in lifts.T])

    def _at(self, column: FloatArray, p: FloatArray) -> float:
        column, p = column.copy(), p.copy()
        column.setflags(write=False)
        p.setflags(write=False)
        try:
            value = float(self.function(column, p))
        except Exception as cause:  # a person's own function may raise anything
            raise UtilityError(f"the utility {self.name} fails on {_shown(column, p)}: {cause!r}") from cause
        if not np.isfinite(value):
            raise UtilityError(f"the utility {self.name} is {value} on {_shown(column, p)}")
        return value

    def check(self, prior: PriorLike) -> None:
        """Check finiteness, convexity and homogeneity on random columns, the same at every call.

        Raises:
            UtilityError: it is not finite, not convex or not homogeneous on one; the message shows which.
        """
        p = as_prior(prior).pmf
        rng = np.random.default_rng(0)
        for _ in range(_PROBE_COUNT):
            one, other = (rng.exponential(size=len(p)) * (rng.random(len(p)) < 0.7) for _ in range(2))
            one[rng.integers(len(p))] = other[rng.integers(len(p))] = 1.0
            factor = float(rng.uniform(0.25, 4.0))
            self._check_homogeneous(p, one / (p @ one), factor)
            self._check_convex(p, one / (p @ one), other / (p @ other))

    def _check_homogeneous(self, p: FloatArray, column: FloatArray, factor: float) -> None:
        once, scaled = self.worths(p, np.stack([column, factor * column], axis=1))
        if abs(scaled - factor * once) > _PROBE_TOLERANCE * max(1.0, abs(once)):
            raise UtilityError(
                f"the utility {self.name} is not homogeneous: {once:.9g} on {_shown(column, p)}, but "
                f"{scaled:.9g} and not {factor * once:.9g} on {factor:.6g} times that column. Divide the "
                "column by its mean p @ column where you need a shape, and multiply the result by it"
            )

    def _check_convex(self, p: FloatArray, one: FloatArray, other: FloatArray) -> None:
        middle = (one + other) / 2
        left, right, between = self.worths(p, np.stack([one, other, middle], axis=1))
        if between > (left + right) / 2 + _PROBE_TOLERANCE * max(1.0, abs(left), abs(right)):
            raise UtilityError(
                f"the utility {self.name} is not convex: {between:.9g} half way between {_shown(one, p)}, "
                f"where it is {left:.9g}, and {_shown(other, p)}, where it is {right:.9g}; extreme columns "
                "reach the maximum of convex functions only"
            )


_PROBE_COUNT = 50
"""Pairs of random columns on which a function is checked."""

_PROBE_TOLERANCE = 1e-7
"""Violation of convexity or homogeneity that is put down to rounding, as a share of the value or of 1."""


def _shown(column: FloatArray, p: FloatArray) -> str:
    shown = np.array2string(np.asarray(column), precision=6, threshold=8, separator=", ")
    return f"the column {shown} (p = {np.array2string(p, precision=6, threshold=8, separator=', ')})"


@dataclass(frozen=True, eq=False, init=False)
class GuessingProbability(SubConvex):
    """Maximise the probability of guessing X from Y, `sum_y max_x p[x] P[x,y]`.

    Its optimum is that of `ExpectedGain(np.eye(N))`, which has N outputs and works for any N.

    Examples:
        >>> GuessingProbability().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.75
    """

    vectorised: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(lambda column, p: (p * column).max())

    @property
    def name(self) -> str:
        return "guessing-probability"

    def worths(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        return np.asarray((p[:, None] * lifts).max(axis=0))
