"""Sets of priors with bounds on each letter's probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.argument_checks import check_same_letters
from pmlopt.core.numbers.arrays import (
    SUM_ATOL,
    FloatArray,
    Label,
    Labels,
    check_integer,
    check_labels_of_size,
    check_probability,
    check_real,
    common_integer_ratio,
    copy_float_array,
)
from pmlopt.core.records.fields import COUNT, ContextReference, Range, Shape
from pmlopt.data.labelled import Numbers, read_vector
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.choquet_set import ChoquetSet, LowerProbability
from pmlopt.model.uncertainty.prior_set import MEMBERSHIP_ATOL, HalfSpaces, check_possible

_OUTWARD_ROUNDING_RTOL = 4 * float(np.finfo(float).eps)
"""The share by which bounds on cells are wider than those on letters, more than their products can err."""


class Box(ChoquetSet):
    """The priors Q with `lower[x] <= Q[x] <= upper[x]` for every letter x, such as confidence intervals.

    The adversary starts from the lower bounds and spends the rest on the smallest entries of v first.

    Args:
        lower: (N,) in [0, 1], with a sum of at most one.
        upper: (N,) in (0, 1], at least `lower`, with a sum of at least one.
        delta: the probability that the true distribution is outside, where the bounds come from a
            sample (see `confidence_box`).
        labels: N labels of the letters; left out, they are known by position only.

    Raises:
        PrivacyError: a bound is outside [0, 1], the bounds cross, no distribution is within them, delta
            is outside (0, 1), or the labels do not fit.

    Examples:
        >>> box = Box([0.1, 0.2, 0.3], [0.5, 0.5, 0.6])
        >>> box.min_mean(np.array([[0.0], [1.0], [2.0]])).round(12)
        array([0.8])
        >>> box.minimizer(np.array([0.0, 1.0, 2.0])).round(12)
        array([0.5, 0.2, 0.3])
    """

    kind: ClassVar[str] = "box"
    lower: Annotated[FloatArray, Shape("letters")]
    upper: Annotated[FloatArray, Shape("letters")]
    labels: Annotated[Labels, ContextReference("labels"), Shape("letters")] | None = None

    def __init__(
        self,
        lower: Numbers,
        upper: Numbers,
        delta: float | None = None,
        labels: Iterable[Label] | None = None,
    ) -> None:
        low = read_vector(lower, "the lower bounds", PrivacyError)
        high = read_vector(upper, "the upper bounds", PrivacyError)
        if (low.axes[0] is None) != (high.axes[0] is None):
            raise PrivacyError("only one side of the bounds names its letters: name them on both")
        if low.axes[0] is not None:
            if labels is not None:
                raise PrivacyError("the bounds carry their labels already: leave out `labels`")
            labels = low.axes[0]
            high = high.reorder_axis(0, low.axes[0], PrivacyError)
        self.lower = copy_float_array(low.values, 1, "the lower bounds", PrivacyError)
        self.upper = copy_float_array(high.values, 1, "the upper bounds", PrivacyError)
        self.delta = None if delta is None else check_probability(delta)
        _check_bounds(self.lower, self.upper)
        if labels is not None:
            self.labels = check_labels_of_size(
                labels, len(self.lower), "the labels of the bounds", PrivacyError
            )

    def on_cells(self, cells: LetterCells) -> Box:
        """Return the box of priors on the cells, with bounds rounded outward."""
        # the mass of a cell is the sum over its letters, which have equal bounds
        counts = np.array(cells.counts, dtype=float)
        sides = ((self.lower, "the lower bounds are"), (self.upper, "the upper bounds are"))
        ends = [
            counts * self.values_by_orbit(cells, bounds.tolist(), what) for bounds, what in sides
        ]
        # outwards: a larger set of priors only strengthens the guarantee
        return Box(
            ends[0] * (1 - _OUTWARD_ROUNDING_RTOL),
            np.minimum(ends[1] * (1 + _OUTWARD_ROUNDING_RTOL), 1.0),
            self.delta,
        )

    @property
    def description(self) -> str:
        """Return text that describes the priors of the set, to follow "for every prior"."""
        return f"within bounds on each of the {self.size} probabilities"

    @cached_property
    def _has_upper_bounds(self) -> bool:
        """Return whether some upper bound is not implied by the other bounds, up to their rounding."""
        lower = [Fraction(low) for low in self.lower.tolist()]
        needed = sum(lower)
        # what it leaves for the others, against what they need: both may be tiny next to one
        rounded_up = 1 + Fraction(1, 10**9)
        pairs = zip(self.upper.tolist(), lower, strict=True)
        return any(1 - Fraction(high) > (needed - low) * rounded_up for high, low in pairs)

    @cached_property
    def float_probability(self) -> LowerProbability:
        """Return the lower probability in floats."""
        upper = self.upper if self._has_upper_bounds else None
        total = max(1.0, float(self.lower.sum()))  # above one by rounding only
        return LowerProbability(
            self.lower, 0.0, upper, total if upper is None else min(total, float(upper.sum()))
        )

    @cached_property
    def integer_probability(self) -> LowerProbability:
        """Return the lower probability times a positive number, in integers."""
        # one denominator for both sides: the set is compared in whole numbers
        bounds, denominator = common_integer_ratio([*self.lower, *self.upper])
        lower, upper = np.array(bounds, dtype=object).reshape(2, -1)
        # lower bounds within the tolerance may sum to more than 1: the set must not be empty
        total = max(denominator, int(lower.sum()))
        if not self._has_upper_bounds:
            return LowerProbability(lower, 0, None, total)
        return LowerProbability(lower, 0, upper, min(total, int(upper.sum())))

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding."""
        return bool(
            ((self.lower - MEMBERSHIP_ATOL <= p) & (p <= self.upper + MEMBERSHIP_ATOL)).all()
        )

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the set, without rounding."""
        bounds = zip(self.lower.tolist(), self.upper.tolist(), law, strict=True)
        return all(Fraction(low) <= mass <= Fraction(high) for low, high, mass in bounds)

    def half_spaces(self) -> HalfSpaces:
        """Return the bounds as rows, without those that hold for all priors."""
        eye = np.eye(self.size)
        low = self.lower > 0
        high = self.upper < 1
        rows = np.vstack([-eye[low], eye[high]])
        return HalfSpaces(rows, np.concatenate([-self.lower[low], self.upper[high]]))

    def __repr__(self) -> str:
        return f"Box(<bounds on {self.size} letters>)"


class MinimumMass(Box):
    """The priors with at least a given mass on every letter; `w(v) = mass sum(v) + (1 - N mass) min v`.

    Args:
        size: N, the number of letters.
        mass: in [0, 1/N]; 0 is `AllPriors`, and 1/N leaves only the uniform prior.

    Raises:
        PrivacyError: the size is not a whole number, or the mass is negative or above 1/N.

    Source: [saeidian2025histogram, Section III-A], the laws of a record with at least alpha in each bin.

    Examples:
        >>> MinimumMass(4, 0.1).min_mean(np.array([[0.0], [1.0], [1.0], [1.0]])).round(12)
        array([0.3])
    """

    kind: ClassVar[str] = "minimum-mass"
    mass: float

    def __init__(self, size: Annotated[int, Range(1), COUNT], mass: float) -> None:
        letters = check_integer(size, "the size of the alphabet", PrivacyError)
        self.mass = check_real(mass, "the minimum mass", PrivacyError)
        if self.mass < 0 or self.mass * letters > 1 + SUM_ATOL:
            raise PrivacyError(
                f"the minimum mass is {self.mass:g}: give one in [0, 1/N] = [0, {1 / letters:g}]; with more, "
                f"the set of priors on {letters} letters is empty"
            )
        self._letters = letters

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return self._letters

    @cached_property
    def lower(self) -> FloatArray:  # type: ignore[override]
        """Return the (N,) lower bounds."""
        return np.full(self.size, self.mass)

    @cached_property
    def upper(self) -> FloatArray:  # type: ignore[override]
        """Return the (N,) upper bounds, all one."""
        return np.ones(self.size)

    def on_cells(self, cells: LetterCells) -> Box:
        """Return the box of the cells' minimum masses, rounded down."""
        check_same_letters(self.size, f"{self!r} is", cells.letter_count, "the prior", PrivacyError)
        if self.mass == 0:
            # a bound of 0 needs no rounding, and the set of all priors has a closed form
            return AllPriors(cells.size)
        least = np.array([self.mass * count for count in cells.counts])
        # rounded down: a larger set of priors only strengthens the guarantee
        return Box(least * (1 - _OUTWARD_ROUNDING_RTOL), np.ones(cells.size))

    @property
    def description(self) -> str:
        return f"with at least {self.mass:g} on every letter"

    def __repr__(self) -> str:
        return f"MinimumMass({self.size}, {self.mass:g})"


class AllPriors(MinimumMass):
    """The set of all priors on N letters, with the least mean `w(v) = min v`: PML over it is LDP.

    Args:
        size: N, the number of letters.

    Raises:
        PrivacyError: the size is not a whole number of at least 1.

    Source: [grosse2025empirical, Remark 3].

    Examples:
        >>> AllPriors(2).min_mean(np.array([[0.25], [0.75]]))
        array([0.25])
    """

    kind: ClassVar[str] = "all-priors"

    def __init__(self, size: Annotated[int, Range(1), COUNT]) -> None:
        super().__init__(size, 0.0)

    @property
    def description(self) -> str:
        return f"on the {self.size} letters"

    def __repr__(self) -> str:
        return f"AllPriors({self.size})"


def _check_bounds(lower: FloatArray, upper: FloatArray) -> None:
    """Validate lower and upper bounds on probabilities, and return them as arrays."""
    if len(lower) != len(upper):
        raise PrivacyError(
            f"there are {len(lower)} lower and {len(upper)} upper bounds: give one of each"
        )
    for bounds, side in ((lower, "lower"), (upper, "upper")):
        outside = np.flatnonzero((bounds < 0) | (bounds > 1))
        if len(outside):
            raise PrivacyError(
                f"the {side} bound at position {outside[0]} is {bounds[outside[0]]:g}: give a probability"
            )
    # looked at before the sums: crossed bounds may have sums that look feasible
    crossed = np.flatnonzero(lower > upper)
    if len(crossed):
        x = crossed[0]
        raise PrivacyError(f"the bounds cross at position {x}: {lower[x]:g} is above {upper[x]:g}")
    for side, total, empty, than in (
        ("lower", lower.sum(), lower.sum() > 1 + SUM_ATOL, "more"),
        ("upper", upper.sum(), upper.sum() < 1 - SUM_ATOL, "less"),
    ):
        if empty:
            raise PrivacyError(
                f"the {side} bounds sum to {total:.12g}: with {than} than 1, the set of priors is empty"
            )
    check_possible(np.where(lower > 0, upper, np.minimum(upper, 1 - lower.sum())))
