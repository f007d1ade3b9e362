"""The linear programs of a least leakage at one level each, in units that keep the digits of rare letters."""

from __future__ import annotations

import highspy
import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.programs.least_leakage.certificate import Multipliers
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.solvers import highs
from pmlopt.solvers.clock import Clock
from pmlopt.solvers.parametric_program import MovingModel, MovingPart
from pmlopt.solvers.two_sided_search import Answer

LEAST_COEFFICIENT = 4e-12
"""The least coefficient of an entry in a row: HiGHS takes those below 1e-12 for zeros."""


class LevelProgram:
    """Mechanisms of a level that emit allowed pairs only: those that are least short, or that gain most.

    With `s = e^-epsilon` the entries of P on allowed pairs, the largest entry v of each output and what each
    row is short of one, all non-negative, are the variables, under

        sum_y P[x,y] + short[x] = 1,    P[x,y] <= v[y],    s v[y] <= sum_x p[x] P[x,y].

    Without a floor on the expectation it minimises the mean of `short`: 0 where there is such a mechanism.
    With one it maximises the expected gain, and `short` costs more than any output.

    A floor of c on the expected gain (of gains at most 0) leaves no room for entries above
    `c / (p[x] g[x,y])`, which may be 1e-8 where the floor is about a rare letter. Each entry is in units of
    this, and each row in units of what it can hold, since a solver's tolerances are absolute. On orbits of
    pairs sums count the pairs of each, and entries are lifts.
    """

    def __init__(self, program: LeastLeakage) -> None:
        self.program = program
        self._masses = program.masses
        self._letter, self._output, self._in_row, p = program.columns.pairs(program.allowed)
        n, m, k = len(program.columns.masses), len(self._masses), len(self._letter)
        self._size = n, m, k
        self._loss, self._most = self._losses(p)
        with np.errstate(divide="ignore"):
            unit = np.clip(self._most / self._loss, LEAST_COEFFICIENT, 1.0)
        part = LEAST_COEFFICIENT * np.bincount(self._output, p * unit, m)[self._output] / p
        self._unit = np.minimum(1.0, np.maximum(unit, part))
        peak = np.zeros(m)
        np.maximum.at(peak, self._output, self._unit)
        mass = np.bincount(self._output, p * self._unit, m)
        mass, peak = np.where(mass > 0, mass, 1.0), np.where(peak > 0, peak, 1.0)
        self.model = MovingModel(
            self._model(peak, p * self._unit / mass[self._output]),
            MovingPart(n + k + np.arange(m), k + np.arange(m), np.zeros(m), peak / mass),
        )
        self._peaks = k + np.arange(m)

    def _losses(self, p: FloatArray) -> tuple[FloatArray, float]:
        """(K,) what each pair takes from the expected gain, and how much the floor allows in all."""
        floor = self.program.floor
        if floor is None:
            return np.zeros(len(p)), 1.0
        return p * np.abs(floor.gains[self.program.allowed]), -floor.relaxed

    def _model(self, peak: FloatArray, share: FloatArray) -> highspy.HighsLp:
        """Columns: entries, largest entries, shortfalls. Rows: sums, largest entries, the level."""
        from scipy import sparse

        n, m, k = self._size
        short = 1 / n if self.program.floor is None else 2 * max(1.0, self._loss.max() / self._most)
        entry, peaks = np.arange(k), k + self._output
        parts = [  # rows, columns and coefficients
            (self._letter, entry, self._in_row * self._unit),
            (n + entry, entry, np.ones(k)),
            (n + k + self._output, entry, -share),
            (n + entry, peaks, -peak[self._output] / self._unit),
            (n + k + np.arange(m), k + np.arange(m), np.ones(m)),
            (np.arange(n), k + m + np.arange(n), np.ones(n)),
        ]
        rows, columns, values = (np.concatenate(several) for several in zip(*parts, strict=True))
        system = sparse.csc_array((values, (rows, columns)), shape=(n + k + m, k + m + n))
        ends = np.concatenate([np.ones(n), np.zeros(k + m)])
        return highs.columnwise(
            np.concatenate([self._loss * self._unit / self._most, np.zeros(m), np.full(n, short)]),
            (0.0, np.inf),
            (np.where(np.arange(n + k + m) < n, ends, -np.inf), ends),
            (system.indptr.astype(np.int32), system.indices.astype(np.int32), system.data),
        )

    def ask(self, share: float, clock: Clock) -> Answer[Multipliers]:
        """The optimum at a share e^-epsilon."""
        program = self.program
        # an output that only letters of less mass may emit leaks more, and cannot occur
        self.model.fix(self._peaks, self._masses < share * (1 - 1e-12))
        point = self.model.solve(share, clock)
        entries = point.values[: len(self._letter)] * self._unit
        rows = point.duals[: self._size[0]] / program.columns.masses
        gaining = program.floor is not None
        return Answer(
            point=program.placed(entries),
            proof=Multipliers(self._most * rows, 1.0) if gaining else Multipliers(rows),
            missing=point.optimum - 1 if gaining else point.optimum,
            slope=point.slope,
        )


class RobustLevelProgram:
    """Mechanisms of a level over a set of priors that emit allowed pairs only: those that are least short.

    The set is `{T z: z >= 0, A z <= b}` (some rows are equations), and by duality its least mean of a column
    v is the largest `<b, d>` with `A' d <= T' v`, d <= 0 (or free). With `s = e^-epsilon` the variables are
    the entries of P on allowed pairs, the largest entry v[y] of each output, d for each output, and what each
    row is short of one, under

        sum_y P[x,y] + short[x] = 1,   P[x,y] <= v[y],   A' d[y] <= T' P[:,y],   s v[y] <= <b, d[y]>.

    It minimises the mean of `short`. The multipliers z of the third rows are for each output those of a prior
    of the set, times a number: with those of the first rows they prove the bound of `largest_share`.
    """

    def __init__(self, program: LeastLeakage) -> None:
        from scipy import sparse

        assert program.over is not None
        self.program, self._set = program, program.over.polytope
        n, m = program.allowed.shape
        letter, output = np.nonzero(program.allowed)
        self._entries, (count, size) = len(letter), self._set.rows.shape
        k = self._entries
        self._peaks = k + np.arange(m)
        levels = n + k + m * size + np.arange(m)
        moving = MovingPart(levels, self._peaks, np.zeros(m), np.ones(m))
        entry = np.arange(k)
        by_letter = sparse.csr_array((np.ones(k), (letter, entry)), shape=(n, k))
        by_output = sparse.csr_array((np.ones(k), (entry, output)), shape=(k, m))
        # (m Z, k): the column of each output, in the coordinates of the set
        each, part = np.nonzero(self._set.parts[letter] != 0)
        column = sparse.csr_array(
            (self._set.parts[letter[each], part], (output[each] * size + part, each)), shape=(m * size, k)
        )
        outputs = sparse.eye_array(m)
        system = sparse.csc_array(
            sparse.block_array(
                [
                    [by_letter, None, None, sparse.eye_array(n)],
                    [sparse.eye_array(k), -by_output, None, None],
                    [-column, None, sparse.kron(outputs, self._set.rows.T), None],
                    [None, outputs, sparse.kron(outputs, -self._set.right[None, :]), None],
                ]
            )
        )
        total = system.shape[0]
        ends = np.where(np.arange(total) < n, 1.0, 0.0)
        free = np.tile(self._set.equal, m)
        k_and_m, rest = np.zeros(k + m), np.zeros(n)
        below = np.concatenate([k_and_m, np.full(m * count, -np.inf), rest])
        above = np.concatenate([k_and_m + np.inf, np.where(free, np.inf, 0.0), rest + np.inf])
        self.model = MovingModel(
            highs.columnwise(
                np.concatenate([np.zeros(k + m + m * count), np.full(n, 1 / n)]),
                (below, above),
                (np.where(np.arange(total) < n, ends, -np.inf), ends),
                (system.indptr.astype(np.int32), system.indices.astype(np.int32), system.data),
            ),
            moving,
        )

    def ask(self, share: float, clock: Clock) -> Answer[Multipliers]:
        """The optimum at a share e^-epsilon."""
        program = self.program
        # an output whose letters have less probability under a prior of the set leaks more, and cannot occur
        closed = program.masses < share * (1 - 1e-12)
        self.model.fix(self._peaks, closed)
        point = self.model.solve(share, clock)
        n, m = program.allowed.shape
        first = n + self._entries
        parts = np.maximum(-point.duals[first : first + m * self._set.rows.shape[1]], 0.0)
        laws = self._set.parts @ parts.reshape(m, -1).T
        laws[:, closed] = 0.0  # their multipliers mean nothing
        return Answer(
            point=program.placed(point.values[: self._entries]),
            proof=Multipliers(point.duals[:n] / program.prior.pmf, laws=laws),
            missing=point.optimum,
            slope=point.slope,
        )
