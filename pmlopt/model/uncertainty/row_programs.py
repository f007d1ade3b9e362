"""Linear programs over the priors within some rows, solved by HiGHS and without rounding at its basis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import FloatArray

Basis = tuple[tuple[int, ...], tuple[int, ...]]
"""The rows that are tight at a vertex, and as many letters; all other letters have probability 0."""


@dataclass(frozen=True, eq=False)
class RowProgram:
    """The programs `min <Q, v>` over priors Q on N letters with `rows Q <= right`.

    Attributes:
        rows: (R, N).
        right: (R,).
    """

    rows: FloatArray
    right: FloatArray

    @cached_property
    def exact_system(self) -> tuple[list[list[Fraction]], list[Fraction]]:
        """Return the R + 1 rows and right sides as rationals; the last row is the sum of a prior."""
        exact = [[Fraction(value) for value in row] for row in self.rows.tolist()]
        ones = [Fraction(1)] * self.rows.shape[1]
        return [*exact, ones], [*(Fraction(value) for value in self.right.tolist()), Fraction(1)]

    @cached_property
    def _vertices(self) -> dict[Basis, tuple[Fraction, ...] | None]:
        """Return the vertices that were computed, by their bases."""
        return {}

    def find_bases(self, matrix: FloatArray) -> Iterator[Basis | None]:
        """Find for each column v of an (N, M) matrix a basis of a prior of least mean; None where the program
        has no solution.

        HiGHS starts each from the basis of the one before.
        """
        from pmlopt.solvers import highs

        count, n = self.rows.shape
        system = sparse.csc_array(np.vstack([self.rows, np.ones((1, n))]))
        limits = np.append(np.full(count, -np.inf), 1.0), np.append(self.right, 1.0)
        model = highs.build_sparse_model(np.zeros(n), (0.0, np.inf), limits, system)
        solver = highs.load_model(model, highs.RESTART_OPTIONS)
        letters = np.arange(n, dtype=np.int32)
        for column in matrix.T:
            solver.changeColsCost(n, letters, np.ascontiguousarray(column))
            solver.run()
            optimal = solver.getModelStatus().name == "kOptimal"
            tight, basic = highs.read_basis(solver)
            yield (tuple(tight), tuple(basic)) if optimal else None

    def find_nearest(self, law: Sequence[Fraction]) -> list[Fraction] | None:
        """Find a prior within the rows that is nearest in l1 to another one outside, without rounding; None
        where rounding hides which rows are tight.

        HiGHS finds which these are, in units of the largest excess over a row: a law that only rounding has
        outside moves by less than its tolerance. All letters but as many as are tight keep their
        probability, or have none.
        """
        from pmlopt.solvers import highs

        exact, right = self.exact_system
        gaps = [
            limit - sum((a * mass for a, mass in zip(row, law, strict=True)), Fraction(0))
            for row, limit in zip(exact, right, strict=True)
        ]
        unit = max(-gap for gap in gaps)
        rows = np.vstack([self.rows, np.ones(len(law))])
        upper = _in_units(gaps, unit)
        lower = np.append(np.full(len(self.rows), -np.inf), upper[-1])
        # what is added to each letter, then what is taken away
        most = np.append(np.full(len(law), np.inf), _in_units(law, unit))
        model = highs.build_sparse_model(
            np.ones(len(most)),
            (0.0, most),
            (lower, upper),
            sparse.csc_array(np.hstack([rows, -rows])),
        )
        solver = highs.load_model(model, highs.RESTART_OPTIONS)
        solver.run()
        tight, moved = highs.read_basis(solver)
        moved = [k % len(law) for k in moved]
        ends = solver.getBasis().col_status
        emptied = [k % len(law) for k, status in enumerate(ends) if status.name == "kUpper"]
        found = [Fraction(0) if x in emptied or x in moved else law[x] for x in range(len(law))]
        if len(tight) != len(moved):
            return None
        sides = [
            right[r]
            - sum((exact[r][x] * mass for x, mass in enumerate(found) if mass), Fraction(0))
            for r in tight
        ]
        masses = solve_rationals([[exact[r][x] for x in moved] for r in tight], sides)
        for x, mass in zip(moved, masses or (), strict=True):
            found[x] = mass
        return found if masses is not None and self.contains(found) else None

    def compute_vertex(self, basis: Basis) -> tuple[Fraction, ...] | None:
        """Compute the prior of a basis without rounding; None where it is outside of the rows."""
        if basis not in self._vertices:
            self._vertices[basis] = self._solve_vertex(basis)
        return self._vertices[basis]

    def _solve_vertex(self, basis: Basis) -> tuple[Fraction, ...] | None:
        """Solve the tight rows of a basis for its letters."""
        (tight, letters), (system, right) = basis, self.exact_system
        found = solve_rationals(
            [[system[r][x] for x in letters] for r in tight], [right[r] for r in tight]
        )
        if found is None:
            return None
        law = [Fraction(0)] * self.rows.shape[1]
        for x, mass in zip(letters, found, strict=True):
            law[x] = mass
        return tuple(law) if self.contains(law) else None

    def contains(self, law: Sequence[Fraction]) -> bool:
        """Return whether N rationals are a prior within the rows, without rounding."""
        system, right = self.exact_system
        if min(law) < 0 or sum(law) != 1:
            return False
        used = [x for x, mass in enumerate(law) if mass]
        return all(
            sum(row[x] * law[x] for x in used) <= limit
            for row, limit in zip(system, right, strict=True)
        )

    def compute_multipliers(
        self, basis: Basis, column: Sequence[Fraction]
    ) -> list[Fraction] | None:
        """Compute the R multipliers of a basis for a column, without rounding; None for a singular basis."""
        (tight, letters), (system, _) = basis, self.exact_system
        found = solve_rationals(
            [[system[r][x] for r in tight] for x in letters], [column[x] for x in letters]
        )
        if found is None:
            return None
        multipliers = [Fraction(0)] * len(system)
        for r, value in zip(tight, found, strict=True):
            multipliers[r] = -value
        return multipliers[:-1]

    def bound_mean(self, column: Sequence[Fraction], multipliers: Sequence[Fraction]) -> Fraction:
        """Compute `min_x (v + rows'y) - <right, y>`, which no prior within the rows has a mean below, for any
        multipliers y; negative ones count as 0.
        """
        system, right = self.exact_system
        used = [r for r, value in enumerate(multipliers) if value > 0]
        raised = [
            value + sum(multipliers[r] * system[r][x] for r in used)
            for x, value in enumerate(column)
        ]
        return Fraction(min(raised) - sum(multipliers[r] * right[r] for r in used))


def _in_units(values: Sequence[Fraction], unit: Fraction) -> FloatArray:
    """Return limits as multiples of a unit, those that are far above it as what HiGHS takes for infinite."""
    return np.array([float(min(value / unit, Fraction(10**20))) for value in values])


def solve_rationals(
    matrix: list[list[Fraction]], right: list[Fraction], near: Sequence[Fraction] | None = None
) -> list[Fraction] | None:
    """Solve linear equations without rounding, by elimination.

    Args:
        matrix: (K, M).
        right: (K,).
        near: (M,) where there may be several solutions: numbers that unknowns which remain free take.

    Returns:
        (M,) a solution; None where there is none, or where there are several and no numbers near one.

    Examples:
        >>> one = Fraction(1)
        >>> solve_rationals([[2 * one, one], [one, one]], [3 * one, 2 * one])
        [Fraction(1, 1), Fraction(1, 1)]
        >>> solve_rationals([[one, one]], [3 * one]), solve_rationals([[one, one]], [3 * one], [one, one])
        (None, [Fraction(2, 1), Fraction(1, 1)])
    """
    width = len(matrix[0])
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    pivots = reduce_rows(rows, width)
    free = set(range(width)) - set(pivots)
    if any(row[-1] for row in rows[len(pivots) :]) or (free and near is None):
        return None
    found = list(near or [Fraction(0)] * width)
    for k, row in zip(pivots, rows, strict=False):
        found[k] = row[-1] - sum(row[j] * found[j] for j in free)
    return found


def reduce_rows(rows: list[list[Fraction]], width: int) -> list[int]:
    """Make a list of rows reduced by elimination without rounding, and return the columns of their pivots.

    Args:
        rows: changed in place: that of each pivot has one there, all others zero.
        width: columns that may have a pivot, from the first.
    """
    pivots = list[int]()
    for k in range(width):
        done = len(pivots)
        pivot = next((r for r in range(done, len(rows)) if rows[r][k]), None)
        if pivot is None:
            continue
        rows[done], rows[pivot] = rows[pivot], rows[done]
        scale = rows[done][k]
        lead = rows[done] = [value / scale for value in rows[done]]
        for r, row in enumerate(rows):
            if r != done and (factor := row[k]):
                rows[r] = [a - factor * b if b else a for a, b in zip(row, lead, strict=True)]
        pivots.append(k)
    return pivots
