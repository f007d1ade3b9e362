"""What balls of priors around a centre share: how they are made, and least means from multipliers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_nonnegative, check_probability
from pmlopt.core.records.fields import ContextReference, Range
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import LetterCells, SymmetricPrior
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.prior_set import PriorSet, has_rare_values

PROOF_BITS = 200
"""Binary digits after the point of the least means that proofs rest on, which are rounded down."""


class CenteredBall(PriorSet):
    """The base of balls of a radius around a centre whose letters are listed.

    A subclass gives the priors of least mean in floats, and a lower bound on the least mean from any
    multipliers in rationals: exact checks rest on that.

    Args:
        center: p.
        radius: at least 0.
        delta: the probability that the true distribution is outside, where the radius comes from a
            sample; else None.
    """

    center: Annotated[Prior | Center, ContextReference("prior")]
    radius: Annotated[float, Range(0)]

    def __init__(
        self, center: PriorLike | Center, radius: float, delta: float | None = None
    ) -> None:
        self.center = self._read_center(center)
        if isinstance(self.center, SymmetricPrior):
            raise PrivacyError(
                f"the centre is {self.center!r}, and a {type(self).__name__} is around a prior whose "
                "letters are listed: take an L1Ball on a symmetric prior"
            )
        self.labels = self.center.labels
        self.radius = check_nonnegative(radius, "the radius", PrivacyError)
        self.delta = None if delta is None else check_probability(delta)

    @staticmethod
    def _read_center(center: PriorLike | Center) -> Prior | Center:
        """Return the centre, of which letters may have the probability 0."""
        return Center.of(center)

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return self.center.size

    @cached_property
    def exact_center(self) -> tuple[Fraction, ...]:
        """Return the center's probabilities as rationals that sum to one."""
        total = sum(self.center.weights)
        return tuple(Fraction(weight, total) for weight in self.center.weights)

    @abstractmethod
    def find_minimizers(self, matrix: FloatArray) -> FloatArray:
        """Find for each column of (N, M) the prior of the ball with the least mean."""

    @abstractmethod
    def find_multipliers(self, matrix: FloatArray) -> FloatArray:
        """Find the (T, M) multipliers that maximise `bound_mean`."""

    @abstractmethod
    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[float]) -> Fraction:
        """Compute a rational lower bound on a column's mean over the ball, from any multipliers.

        Args:
            column: N rationals in [0, 1].
            multipliers: T finite numbers.
        """

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the ball that minimises the mean of a column."""
        return self.find_minimizers(column[:, None])[:, 0]

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column over the ball."""
        # taken from the least entry on: nothing cancels, and constant columns keep their value
        lowest = matrix.min(axis=0)
        above = matrix - lowest
        return np.asarray(lowest + (self.find_minimizers(above) * above).sum(axis=0))

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means and the unit 1, or exact lower bounds in units of 2^-200.

        In integers the mean of a constant column is exact.

        Args:
            matrix: (N, M) floats, or an object array of Python integers.
        """
        if matrix.dtype != object:
            return self.min_mean(matrix), 1.0
        columns = matrix.T.tolist()
        heights = [_scale_integers(column) for column in columns]
        # of all columns together: a search takes as long for one
        multipliers = self.find_multipliers(np.array(heights, dtype=float).T).T.tolist()
        least = [
            self._bound_integers(*one) for one in zip(columns, heights, multipliers, strict=True)
        ]
        return np.array(least, dtype=object), 1 << PROOF_BITS

    def _bound_integers(
        self, column: list[int], heights: list[Fraction], multipliers: list[float]
    ) -> int:
        """Compute a lower bound on the least mean of integers, in units of 2^-200."""
        lowest = min(column)
        mean = max(self.bound_mean(heights, multipliers), Fraction(0))
        return math.floor((lowest + (max(column) - lowest) * mean) * (1 << PROOF_BITS))

    @cached_property
    def has_rare_letters(self) -> bool:
        """Return whether sums of floats lose letters of the centre."""
        return has_rare_values(self.center.pmf)

    def _masses_on_cells(self, cells: LetterCells) -> tuple[int, ...]:
        """Return whole numbers in proportion to the masses of the centre on cells of letters."""
        weights = self.values_by_orbit(cells, self.center.weights, "the masses of the centre are")
        return tuple(count * weight for count, weight in zip(cells.counts, weights, strict=True))

    def __repr__(self) -> str:
        """Return size and radius as text."""
        return f"{type(self).__name__}(<prior on {self.size} letters>, {self.radius:g})"


def scale_to_unit(matrix: FloatArray) -> FloatArray:
    """Subtract the least entry of each column, and divide by the largest remainder."""
    above = matrix - matrix.min(axis=0)
    spread = above.max(axis=0)
    return np.asarray(above / np.where(spread > 0, spread, 1.0))


def _scale_integers(column: list[int]) -> list[Fraction]:
    """Scale integers to rationals from 0 to 1; to zeros where all are the same."""
    lowest = min(column)
    spread = max(column) - lowest or 1
    return [Fraction(value - lowest, spread) for value in column]
