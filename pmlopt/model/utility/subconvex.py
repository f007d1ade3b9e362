"""Sub-convex utilities: sums over outputs of a convex, homogeneous function of the column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import find_tagged_classes, get_fields
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import UtilityError
from pmlopt.measures import mutual_information
from pmlopt.measures.leakage import entropy_surplus
from pmlopt.model.utility.linear import Utility

ColumnFunction = Callable[[FloatArray, FloatArray], Any]


@dataclass(frozen=True, eq=False)
class SubConvex(Utility):
    """A utility `sum_y mu(P[:,y], p)` to be maximised, mu convex and homogeneous in the column.

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
    """Whether `column_values` takes many columns at once, without a loop."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise UtilityError(
                f"SubConvex needs a function mu(column, p), not {self.function!r:.60}"
            )

    @property
    def name(self) -> str:
        """Return the utility's name."""
        own: str | None = getattr(self, "kind", None)
        return own or getattr(self.function, "__name__", "function").replace("<lambda>", "function")

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the utility of a given mechanism."""
        p, m = pair_with_prior(prior, mechanism)
        # columns of zeros have no lift, and add nothing
        occurring = m.matrix[:, m.support]
        law = p.pmf @ occurring
        return float(self.column_values(p.pmf, occurring / law) @ law)

    def column_values(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        """Compute the (K,) values of mu on (N, K) columns.

        Raises:
            UtilityError: the function fails, or gives anything but a finite number.
        """
        return np.array([self._evaluate_column(column, p) for column in lifts.T])

    def _evaluate_column(self, column: FloatArray, p: FloatArray) -> float:
        # copies that are read-only: a function that changes its arguments would change the design
        """Evaluate mu on one column; raise an error where that is not finite."""
        column = column.copy()
        p = p.copy()
        column.setflags(write=False)
        p.setflags(write=False)
        try:
            value = float(self.function(column, p))
        except Exception as cause:  # a user's function may raise anything
            raise UtilityError(
                f"the utility {self.name} fails on {_format_column(column, p)}: {cause!r}"
            ) from cause
        if not np.isfinite(value):
            raise UtilityError(f"the utility {self.name} is {value} on {_format_column(column, p)}")
        return value

    def check(self, prior: PriorLike) -> None:
        """Check finiteness, convexity and homogeneity on fixed random columns; see `has_known_form`.

        Raises:
            UtilityError: it is not finite, not convex or not homogeneous on one; the message shows which.
        """
        # Violation of convexity or homogeneity that is put down to rounding, as a share of the value or of 1.
        probe_tolerance = 1e-7
        p = as_prior(prior).pmf
        # a fixed seed: a function that is accepted once is always accepted
        rng = np.random.default_rng(0)
        probes = []
        # Pairs of random columns on which a function is checked.
        for _ in range(50):
            one, other = (
                rng.exponential(size=len(p)) * (rng.random(len(p)) < 0.7) for _ in range(2)
            )
            one[rng.integers(len(p))] = other[rng.integers(len(p))] = 1.0
            # homogeneity is tested on both sides of 1
            factor = float(rng.uniform(0.25, 4.0))
            one = one / (p @ one)
            other = other / (p @ other)
            probes.append((factor, np.stack([one, other, (one + other) / 2, factor * one], axis=1)))
        worths = self.column_values(p, np.hstack([columns for _, columns in probes])).reshape(-1, 4)
        for (factor, columns), (left, right, between, scaled) in zip(probes, worths, strict=True):
            one = columns[:, 0]
            other = columns[:, 1]
            if abs(scaled - factor * left) > probe_tolerance * max(1.0, abs(left)):
                raise UtilityError(
                    f"the utility {self.name} is not homogeneous: {left:.9g} on "
                    f"{_format_column(one, p)}, but "
                    f"{scaled:.9g} and not {factor * left:.9g} on {factor:.6g} times that column. Divide the "
                    "column by its mean p @ column where you need a shape, and multiply the result by it"
                )
            if between > (left + right) / 2 + probe_tolerance * max(1.0, abs(left), abs(right)):
                raise UtilityError(
                    f"the utility {self.name} is not convex: {between:.9g} half way between "
                    f"{_format_column(one, p)}, where it is {left:.9g}, and {_format_column(other, p)}, "
                    "where it is "
                    f"{right:.9g}; extreme columns reach the maximum of convex functions only"
                )


def _format_column(column: FloatArray, p: FloatArray) -> str:
    """Format a column and its prior for an error message."""
    shown = np.array2string(column, precision=6, threshold=8, separator=", ")
    return (
        f"the column {shown} (p = {np.array2string(p, precision=6, threshold=8, separator=', ')})"
    )


@dataclass(frozen=True, eq=False, init=False)
class GuessingProbability(SubConvex):
    """The probability of guessing X from Y, `sum_y max_x p[x] P[x,y]`, to be maximised.

    Its optimum is that of `ExpectedGain(np.eye(N))`, which has N outputs and works for any N.

    Examples:
        >>> GuessingProbability().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.75
    """

    kind: ClassVar[str] = "guessing-probability"
    vectorised: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(lambda column, p: (p * column).max())

    def column_values(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        """Compute the (K,) values of mu on (N, K) columns."""
        return np.asarray((p[:, None] * lifts).max(axis=0))


@dataclass(frozen=True, eq=False, init=False)
class FInformation(SubConvex):
    """The f-information `I_f(X; Y) = sum_xy p[x] q[y] f(P[x,y] / q[y])`, f convex with f(1) = 0, to be
    maximised.

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
        super().__init__(self._evaluate_lift)
        if not has_known_form(self):
            check_generator(self)

    @property
    def name(self) -> str:
        """Return the utility's name."""
        own: str = getattr(self, "kind", "f-information")
        return own

    def phi(self, lifts: FloatArray) -> FloatArray:
        """Evaluate the generator f elementwise."""
        return np.asarray(self.generator(lifts), dtype=float)

    def column_values(self, p: FloatArray, lifts: FloatArray) -> FloatArray:
        # homogeneous by construction: f is taken at the column over its mean, times the mean
        """Compute the (K,) values of mu on (N, K) columns."""
        mean = p @ lifts
        worths = (p @ self.phi(lifts / mean)) * mean
        if not np.isfinite(worths).all():
            raise UtilityError(
                f"the utility {self.name} is not finite on a column: check its generator"
            )
        return worths

    def _evaluate_lift(self, column: FloatArray, p: FloatArray) -> float:
        """Evaluate the f-information of one column."""
        return float(self.column_values(p, column[:, None])[0])


class MutualInformation(FInformation):
    """The mutual information I(X; Y) in nats, the f-information of f(t) = t log t, to be maximised.

    Computed with t log t - t + 1, which has the same sum and loses no digits near t = 1.

    Source: [grosse2025empirical, Section II-A2].

    Examples:
        >>> round(np.exp(MutualInformation().value([0.5, 0.5], np.eye(2))).item(), 12)
        2.0
    """

    kind: ClassVar[str] = "mutual-information"

    def __init__(self) -> None:
        super().__init__(lambda lifts: entropy_surplus(lifts - 1))

    def value(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the utility of a given mechanism."""
        return mutual_information(prior, mechanism)


class TotalVariation(FInformation):
    """The total variation `1/2 sum_xy p[x] |P[x,y] - q[y]|`, f(t) = |t - 1| / 2, to be maximised.

    Examples:
        >>> TotalVariation().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.25
    """

    kind: ClassVar[str] = "total-variation"

    def __init__(self) -> None:
        super().__init__(lambda lifts: np.abs(lifts - 1) / 2)


class ChiSquare(FInformation):
    """The chi-square information `sum_xy p[x] (P[x,y] - q[y])^2 / q[y]`, f(t) = (t - 1)^2, to be maximised.

    Examples:
        >>> ChiSquare().value([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        0.25
    """

    kind: ClassVar[str] = "chi-square"

    def __init__(self) -> None:
        super().__init__(lambda lifts: (lifts - 1) ** 2)


class Hellinger(FInformation):
    """The squared Hellinger distance to independence, f(t) = (sqrt(t) - 1)^2, to be maximised.

    `sum_xy p[x] (sqrt(P[x,y]) - sqrt(q[y]))^2`, between 0 and 2.

    Examples:
        >>> round(Hellinger().value([0.5, 0.5], np.eye(2)), 12) == round(2 - 2**0.5, 12)
        True
    """

    kind: ClassVar[str] = "hellinger"

    def __init__(self) -> None:
        super().__init__(lambda lifts: (np.sqrt(lifts) - 1) ** 2)


def has_known_form(utility: SubConvex) -> bool:
    """Return whether a utility is known to be finite, convex and homogeneous, by its formula."""
    # not of subclasses, which may change the formula
    return type(utility) in (
        MutualInformation,
        TotalVariation,
        ChiSquare,
        Hellinger,
        GuessingProbability,
    )


def check_generator(utility: FInformation) -> None:
    """Raise a UtilityError where the generator f is not finite, convex and 0 at 1, on a grid."""
    # dense near 1, where lifts of strict requirements are, and sparse above
    grid = np.concatenate([np.linspace(0.0, 2.0, 41), np.geomspace(2.1, 100.0, 40)])
    try:
        values = utility.phi(grid)
        at_one = utility.phi(np.ones(1))
    except Exception as cause:  # a user's function may raise anything
        raise UtilityError(
            f"the generator of {utility.name} fails on an array: {cause!r}"
        ) from cause
    if values.shape != grid.shape or at_one.shape != (1,):
        raise UtilityError(
            f"the generator of {utility.name} gives shape {values.shape} for shape {grid.shape}: it must "
            "work entry by entry"
        )
    if not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise UtilityError(f"the generator of {utility.name} is {values[bad]} at {grid[bad]:g}")
    if abs(at_one[0]) > 1e-12:
        raise UtilityError(
            f"the generator of {utility.name} is {at_one[0]:g} at 1, and must be 0 there"
        )
    # a function is convex on a grid iff its difference quotients never fall
    slopes = np.diff(values) / np.diff(grid)
    fall = np.flatnonzero(np.diff(slopes) < -1e-9 * max(1.0, float(np.abs(slopes).max())))
    if len(fall):
        raise UtilityError(
            f"the generator of {utility.name} is not convex near {grid[fall[0] + 1]:g}"
        )


def list_informations() -> dict[str, Callable[[], SubConvex]]:
    """List the named sub-convex utilities, including those of imported packages.

    Examples:
        >>> sorted(list_informations())[:3]
        ['chi-square', 'guessing-probability', 'hellinger']
    """
    known: dict[str, Any] = {**find_tagged_classes(SubConvex)}
    return {name: kind for name, kind in known.items() if not get_fields(kind)}
