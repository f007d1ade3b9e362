"""The set of all priors within linear inequalities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import (
    FloatArray,
    IntArray,
    Label,
    Labels,
    check_labels_of_size,
    check_probability,
    common_integer_ratio,
    copy_float_array,
)
from pmlopt.core.records.fields import ContextReference, Shape
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.boxes import AllPriors
from pmlopt.model.uncertainty.prior_set import (
    MEMBERSHIP_ATOL,
    HalfSpaces,
    MinMeanExpression,
    PriorPolytope,
    PriorSet,
    check_possible,
)
from pmlopt.model.uncertainty.row_programs import RowProgram


class Polytope(PriorSet):
    """The priors Q with `sum_x rows[r, x] Q[x] <= right[r]` for every row r.

    A row bounds a mean: the mean income is at most 50, the letters of a group have together 0.2 or more
    (-1 on them, and -0.2 on the right), one letter is at least as likely as another. Least means are linear
    programs, proved without rounding by their multipliers.

    Args:
        rows: (R, N), finite.
        right: (R,), finite.
        labels: N labels of the letters; left out, they are known by position only.
        delta: the probability that the true distribution is outside, where the rows come from a sample;
            else None.

    Raises:
        PrivacyError: no prior is within the rows, a letter has probability 0 under all that are, a number is
            not finite, or the sizes do not fit.

    Examples:
        >>> rising = Polytope([[1, -1, 0], [0, 1, -1]], [0, 0])  # each at least as likely as the last
        >>> rising.min_mean(np.eye(3)).round(12)
        array([0.        , 0.        , 0.33333333])
        >>> rising.minimizer(np.array([0.0, 0.0, 1.0])).round(12)
        array([0.33333333, 0.33333333, 0.33333333])
    """

    kind: ClassVar[str] = "polytope"
    rows: Annotated[FloatArray, Shape("rows", "letters")]
    right: Annotated[FloatArray, Shape("rows")]
    labels: Annotated[Labels, ContextReference("labels"), Shape("letters")] | None = None

    def __init__(
        self,
        rows: ArrayLike,
        right: ArrayLike,
        labels: Iterable[Label] | None = None,
        delta: float | None = None,
    ) -> None:
        self.rows = copy_float_array(rows, 2, "the matrix of rows", PrivacyError)
        self.right = copy_float_array(right, 1, "the vector of right sides", PrivacyError)
        self.delta = None if delta is None else check_probability(delta)
        if len(self.rows) != len(self.right):
            raise PrivacyError(
                f"there are {len(self.rows)} rows and {len(self.right)} right sides: give one for each row"
            )
        if labels is not None:
            self.labels = check_labels_of_size(
                labels, self.size, "the labels of the rows", PrivacyError
            )
        self._check_priors()

    def _check_priors(self) -> None:
        """Raise a PrivacyError where no prior is within the rows, or one letter never occurs."""
        n = self.size
        laws = self._find_laws(np.zeros((n, 1)))
        if laws is None:
            raise PrivacyError(
                f"no prior is within the {len(self.rows)} rows: the set of priors is empty"
            )
        # a letter that some prior gives next to nothing may have more under another
        masses = laws[:, 0]
        for x in np.flatnonzero(masses <= MEMBERSHIP_ATOL):
            largest = self._find_laws(-np.eye(n)[:, [x]])
            masses[x] = 0.0 if largest is None else largest[x, 0]
        check_possible(np.where(masses <= MEMBERSHIP_ATOL, 0.0, masses))

    @property
    def size(self) -> int:
        """Return N, the number of letters."""
        return int(self.rows.shape[1])

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        count = len(self.rows)
        return f"within {count} linear inequalit{'y' if count == 1 else 'ies'}"

    @cached_property
    def row_program(self) -> RowProgram:
        """Return the linear programs over the set, rows divided by their largest coefficient."""
        return RowProgram(self.rows / self._row_units[:, None], self.right / self._row_units)

    @cached_property
    def _row_units(self) -> FloatArray:
        """Return (R,) powers of two near the largest coefficients of the rows: dividing by them is exact."""
        largest = np.abs(self.rows).max(axis=1, initial=0.0)
        return np.where(largest > 0, 2.0 ** np.frexp(largest)[1], 1.0)

    def _find_laws(self, matrix: FloatArray) -> FloatArray | None:
        """Find (N, M) priors of least mean for the columns of a matrix, in floats; None without a prior."""
        found = []
        for basis in self.row_program.find_bases(matrix):
            if basis is None:
                return None
            law = self.row_program.compute_vertex(basis)
            found.append(self._inner_law if law is None else law)
        return np.array(found, dtype=float).T

    def simplify(self) -> PriorSet | FloatArray:
        """Return the only prior of the set, or all priors where every row holds for all, else the set."""
        if (self.rows.max(axis=1, initial=-np.inf) <= self.right).all():
            return AllPriors(self.size)
        return self if self._single_law is None else self._single_law

    @cached_property
    def _single_law(self) -> FloatArray | None:
        """Return (N,) the only prior of the set; None where there are several."""
        # two priors of a set differ in the mean of most columns, of those with irrational ratios
        column = np.sqrt(np.arange(2.0, self.size + 2))
        ends = self._find_laws(np.stack([column, -column]).T)
        if ends is None or not np.array_equal(ends[:, 0], ends[:, 1]):
            return None
        # where it does not, each probability is looked at
        every = np.hstack([np.eye(self.size), -np.eye(self.size)])
        bases = [*self.row_program.find_bases(every)]
        laws = {None if one is None else self.row_program.compute_vertex(one) for one in bases}
        return np.array(laws.pop(), dtype=float) if len(laws) == 1 and None not in laws else None

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column of an (N, M) matrix over the set."""
        lowest = matrix.min(axis=0)
        above = matrix - lowest
        tops = above.max(axis=0)
        laws = self._find_laws(above / np.where(tops > 0, tops, 1.0))
        assert laws is not None
        return np.asarray(lowest + (laws * above).sum(axis=0))

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means in floats and one; or for integers the exact ones, over one denominator.

        Where a basis is not optimal without rounding, a bound from its multipliers takes the place.
        """
        if matrix.dtype != object:
            return self.min_mean(matrix), 1.0
        columns = [[Fraction(value) for value in column] for column in matrix.T.tolist()]
        floats = np.array([_scale_to_floats(column) for column in columns]).T
        bases = self.row_program.find_bases(floats)
        least = [
            self._bound_column(column, basis) for column, basis in zip(columns, bases, strict=True)
        ]
        unit = math.lcm(*(value.denominator for value in least))
        return np.array([int(value * unit) for value in least], dtype=object), unit

    def find_prices(self, column: Sequence[Fraction]) -> list[Fraction]:
        """Find prices of the rows, at least 0, that prove the least mean of a column by linear duality."""
        (basis,) = self.row_program.find_bases(np.array([_scale_to_floats(column)]).T)
        found = None if basis is None else self.row_program.compute_multipliers(basis, column)
        return [max(price, Fraction(0)) for price in found or [Fraction(0)] * len(self.rows)]

    def _bound_column(self, column: Sequence[Fraction], basis: Any) -> Fraction:
        """Compute the least mean of a column at a basis, or a bound on it."""
        found = None if basis is None else self.row_program.compute_multipliers(basis, column)
        return max(min(column), self.row_program.bound_mean(column, found or ()))

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the set at which the mean of the (N,) column is least; it may have
        zeros.
        """
        top = float(np.ptp(column)) or 1.0
        laws = self._find_laws(((column - column.min()) / top)[:, None])
        assert laws is not None
        return laws[:, 0]

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding (`MEMBERSHIP_ATOL`)."""
        program = self.row_program
        return bool((program.rows @ p <= program.right + MEMBERSHIP_ATOL).all())

    def contains_rationals(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals of at least 0 that sum to one are in the set, without rounding."""
        return self.row_program.contains(law)

    @cached_property
    def _inner_law(self) -> tuple[Fraction, ...]:
        """Return the average of some vertices, which is a prior of the set for certain, and within each row
        by as much as some prior is.

        Raises:
            PrivacyError: only rounding leaves a prior within the rows.
        """
        every = np.hstack([np.eye(self.size), -np.eye(self.size), self.row_program.rows.T])
        bases = [one for one in self.row_program.find_bases(every) if one is not None]
        laws = {law for one in bases if (law := self.row_program.compute_vertex(one)) is not None}
        if not laws:
            raise PrivacyError(
                f"no prior is within the rows of {self!r} without rounding: loosen a right side"
            )
        return tuple(sum(masses) / len(laws) for masses in zip(*laws, strict=True))

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Return (N,) rationals: a prior of the set, for certain, that is near a law where the law is near
        the set.

        It is the nearest in l1; where rounding hides that, a mixture with a prior from inside.
        """
        positive = np.array([Fraction(value) for value in np.maximum(law, 0.0).tolist()])
        if not (total := positive.sum()):
            return np.array(self._inner_law, dtype=object)
        near = (positive / total).tolist()
        if self.contains_rationals(near):
            return np.array(near, dtype=object)
        nearest = self.row_program.find_nearest(near)
        return np.array(self._mix_inwards(near) if nearest is None else nearest, dtype=object)

    def _mix_inwards(self, law: Sequence[Fraction]) -> list[Fraction]:
        """Mix a law with a prior of the set, as little as brings it inside of all rows."""
        inner = self._inner_law
        weight = Fraction(0)
        for row, limit in zip(*self.row_program.exact_system, strict=True):
            excess, slack = (
                sum((a * mass for a, mass in zip(row, one, strict=True)), Fraction(0)) - limit
                for one in (law, inner)
            )
            if excess > 0:
                weight = max(weight, excess / (excess - slack))
        return [mass + weight * (own - mass) for mass, own in zip(law, inner, strict=True)]

    def on_cells(self, cells: LetterCells) -> Polytope | None:
        """Return the rows on masses of cells, rounded outward; None where the group is not known.

        With each prior the set has the average over the group, which is uniform within the cells.
        """
        self.check_listed_cells(cells)
        if cells.moves is None:
            return None
        for moved in cells.moves:
            self._check_moved(moved)
        members = cells.list_members()
        rows: dict[tuple[float, ...], float] = {}
        for row, right in zip(self.rows.tolist(), self.right.tolist(), strict=True):
            means = [sum(Fraction(row[x]) for x in cell) / len(cell) for cell in members]
            floats = tuple(map(float, means))
            # outwards: a larger set of priors only strengthens the guarantee
            above = Fraction(right) + max(
                Fraction(value) - mean for value, mean in zip(floats, means, strict=True)
            )
            loosened = max(right, float(above))
            end = loosened if Fraction(loosened) >= above else math.nextafter(loosened, math.inf)
            rows[floats] = min(end, rows.get(floats, end))
        return Polytope(np.array([*rows]), [*rows.values()], delta=self.delta)

    def _check_moved(self, moved: IntArray) -> None:
        """Raise a PrivacyError where a permutation takes a prior of the set out of it."""
        known = {
            (*row, right)
            for row, right in zip(self.rows.tolist(), self.right.tolist(), strict=True)
        }
        for place, (row, right) in enumerate(
            zip(self.rows[:, moved], self.right.tolist(), strict=True)
        ):
            if (*row.tolist(), right) in known:
                continue
            # the largest mean of the row, without rounding
            whole, _ = common_integer_ratio([*row.tolist(), right])
            column = np.array([[-value] for value in whole[:-1]], dtype=object)
            (least,), parts = self.min_mean_scaled(column)
            if -least > whole[-1] * parts:
                raise PrivacyError(
                    f"{self!r} is not invariant: the group of the prior takes row {place} to one that some "
                    "of its priors are not within"
                )

    def half_spaces(self) -> HalfSpaces:
        """Return the rows and the right sides."""
        return HalfSpaces(self.rows, self.right)

    def polytope(self) -> PriorPolytope:
        """Return the set by linear rows, in floats."""
        n = self.size
        program = self.row_program
        rows = np.vstack([program.rows, np.ones((1, n))])
        equal = np.arange(len(rows)) == len(rows) - 1
        return PriorPolytope(np.eye(n), rows, np.append(program.right, 1.0), equal)

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Return `s - <right, y>` with `s <= v + rows'y` and y >= 0, by duality."""
        program = self.row_program
        floor = cp.Variable(largest.shape, name="raised_minimum")
        weights = cp.Variable((len(program.rows), largest.shape[1]), nonneg=True, name="weights")
        raised = mechanism + program.rows.T @ weights
        constraints = {"raised_minimum": np.ones((self.size, 1)) @ floor <= raised}
        variables = {"raised_minimum": floor, "weights": weights}
        return MinMeanExpression(floor - program.right[None, :] @ weights, constraints, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        program = self.row_program
        columns = [[Fraction(value) for value in column] for column in matrix.T.tolist()]
        floats = np.array([_scale_to_floats(column) for column in columns]).T
        found = [
            (None if basis is None else program.compute_multipliers(basis, column))
            or [Fraction(0)] * len(program.rows)
            for column, basis in zip(columns, program.find_bases(floats), strict=True)
        ]
        weights = np.maximum(np.array(found, dtype=float).T.reshape(-1, matrix.shape[1]), 0.0)
        floor = (matrix + program.rows.T @ weights).min(axis=0, keepdims=True)
        return {"raised_minimum": floor, "weights": weights}

    def __repr__(self) -> str:
        return f"Polytope(<{len(self.rows)} rows on {self.size} letters>)"


def _scale_to_floats(column: Sequence[Fraction]) -> list[float]:
    """Return rationals as floats from 0 to 1, from the least to the largest."""
    lowest = min(column)
    spread = max(column) - min(column)
    return [float((value - lowest) / spread) if spread else 0.0 for value in column]
