"""The letters of a secret as points: distances between them, and least means over a set of priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    check_integer,
    copy_float_array,
    integers_over_common_denominator,
)
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import log_quotient
from pmlopt.model.uncertainty.prior_set import PriorSet, check_prior_set
from pmlopt.releases.noise.laws import UNIT


def read_points(labels: Sequence[Label], whole: bool) -> FloatArray:
    """Return the (N, d) points that N labels are, each a number or a tuple of d numbers.

    Raises:
        PrivacyError: a label is no finite number that a float holds, or they differ in length; or one is not
            whole where they are to be.
    """
    rows = [label if isinstance(label, tuple) else (label,) for label in labels]
    if len(set(map(len, rows))) != 1 or not rows[0]:
        raise PrivacyError(
            "noise is added to numbers, or to vectors of equally many numbers: give such letters"
        )
    for label, row in zip(labels, rows, strict=True):
        if not all(map(_is_float, row)):
            raise PrivacyError(
                f"the letter {label!r} is no finite number that a float holds, and no tuple of such numbers: "
                "noise is added to numbers; give letters that are numbers"
            )
    return check_integers(np.array(rows, dtype=float), whole)


def _is_float(value: Any) -> bool:
    """Return whether a value is a number other than True and False, finite and exact as a float."""
    try:
        return not isinstance(value, bool | str) and math.isfinite(value) and float(value) == value
    except (TypeError, ValueError, OverflowError):
        return False


def check_integers(points: FloatArray, whole: bool) -> FloatArray:
    """Return points; raise a PrivacyError where a number is not whole and has to be."""
    broken = points[points != np.rint(points)]
    if whole and broken.size:
        raise PrivacyError(
            f"geometric noise is for whole numbers, and {broken[0]:g} is none: take Laplace noise"
        )
    return points


def round_to_grid(points: FloatArray, step: float) -> FloatArray:
    """Round points to multiples of a step, a power of two; large floats are multiples already."""
    near = np.abs(points) < step * 2.0**53
    return np.where(near, np.rint(np.where(near, points, 0.0) / step) * step, points)


def read_numbers(values: Any, what: str) -> FloatArray:
    """Return finite numbers in an array of any shape; raise a PrivacyError for others."""
    try:
        dimensions = np.ndim(values)
    except ValueError:  # rows of several lengths, of which there is no array
        dimensions = 1
    return copy_float_array(values, dimensions, what, PrivacyError)


def bound_distances(points: FloatArray) -> FloatArray:
    """Bound the (N, N) l1 distances of (N, d) points from above; those of whole numbers are exact."""
    with np.errstate(over="ignore"):
        found = np.array([np.abs(points - point).sum(axis=1) for point in points])
    exact = (points == np.rint(points)).all()
    return found if exact else found * (1 + (points.shape[1] + 1) * UNIT)


def derive_differences(contributions: ArrayLike | Sequence[Label]) -> FloatArray:
    """Return (N, N) how much an answer changes, in the l1 norm, when a record's letter does.

    Args:
        contributions: what a record of each letter adds to the answer: (N,) numbers for a sum, over the
            number of people for a mean; (N, k) for k linear queries, the unit matrix for a histogram.

    Examples:
        >>> derive_differences(np.eye(2)).tolist(), derive_differences([20, 60]).tolist()
        ([[0.0, 2.0], [2.0, 0.0]], [[0.0, 40.0], [40.0, 0.0]])
    """
    table = read_numbers(contributions, "the contributions")
    return bound_distances(table.reshape(len(table), -1))


def round_contributions(values: ArrayLike, people: int) -> FloatArray:
    """Round numbers to a grid on which sums over so many people are exact, whatever their order.

    Sums of floats are rounded, and two that differ in one record may then differ by more than it: noise
    is calibrated for sums that are exact.

    Examples:
        >>> round_contributions([0.5, 1 / 3], 1000).tolist()
        [0.5, 0.33333333333337123]
    """
    table = read_numbers(values, "the values")
    most = float(np.abs(table).max()) * check_integer(people, "the number of people", PrivacyError)
    return round_to_grid(table, 2.0 ** (math.frexp(most)[1] - 52)) if most else table


@dataclass(frozen=True, eq=False)
class PlacedLetters:
    """N letters at points, and their law: one prior, or every prior of a set.

    Args:
        prior: N letters.
        over: a set of priors on them, or None for the prior only.
        points: (N, d).
    """

    prior: Prior
    over: PriorSet | None
    points: FloatArray

    def __post_init__(self) -> None:
        if self.over is not None:
            check_prior_set(self.over)
        if self.over is not None:
            self.over.check_letters(self.prior.labels, "the prior")

    def bound_distances(self, step: float) -> FloatArray:
        """Bound (N, N) l1 distances from above: of the letters, and of the letters rounded to a grid."""
        rounded = round_to_grid(self.points, step)
        return np.maximum(bound_distances(self.points), bound_distances(rounded))

    def min_mean(self, columns: FloatArray) -> FloatArray:
        """Compute the (M,) least means of (N, M) columns, as good as floats are."""
        return self.prior.pmf @ columns if self.over is None else self.over.min_mean(columns)

    def max_mean(self, column: FloatArray) -> float:
        """Compute the largest mean of an (N,) column of probabilities, which rounding may have moved."""
        return max(0.0, float(1 - self.min_mean((1 - np.clip(column, 0.0, 1.0))[:, None])[0]))

    def bound_levels(self, exponents: FloatArray) -> FloatArray:
        """Bound from above (M,) numbers `-log m(e^-t)`, m the least mean, for (N, M) exponents t >= 0.

        Sums of `1 - e^-t` keep the digits of small levels. One prior takes floats, with a bound on their
        rounding; a set takes integers, so that it has no rounding of its own.
        """
        with np.errstate(under="ignore"):
            lost = -np.expm1(-exponents) * (1 + 4 * UNIT)
            kept = np.exp(-exponents) * (1 - 4 * UNIT)
        if self.over is None:
            most = self.prior.pmf @ lost
            least = self.prior.pmf @ kept
        else:
            # the smaller of two parts of one has all digits, and makes the other an integer, too
            parts, whole = integers_over_common_denominator(np.minimum(lost, kept))
            found, total = self.over.min_mean_scaled(np.where(lost < kept, whole - parts, parts))
            sums = np.array(found, dtype=object)
            every = int(total) * whole
            # quotients of integers are rounded once
            most = np.asarray((every - sums) / every, float)
            least = np.asarray(sums / every, float)
        rounding = (len(exponents) + 8) * UNIT
        # at least 1 over the least mean: most and least add up to 1 or more
        bounds = log_quotient(least * (1 - rounding), most * (1 + rounding)) * (1 + 4 * UNIT)
        # the least mean is at least the least entry
        return np.asarray(np.minimum(bounds, exponents.max(axis=0)))
