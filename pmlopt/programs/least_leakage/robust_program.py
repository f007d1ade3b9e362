"""The linear programs of a least leakage over a set of priors, at one level each."""

from __future__ import annotations

import numpy as np

from pmlopt.backends import highs
from pmlopt.backends.clock import Clock
from pmlopt.backends.parametric_program import MovingModel, MovingPart
from pmlopt.programs.least_leakage.certificate import Multipliers
from pmlopt.programs.least_leakage.level_program import Asked
from pmlopt.programs.least_leakage.program import LeastLeakage


class RobustLevelProgram:
    """Mechanisms of a level over a set of priors that emit allowed pairs only: those that are least short.

    The set is `{T z: z >= 0, A z <= b}` (some rows are equations), and by duality its least mean of a column
    v is the largest `<b, d>` with `A' d <= T' v`, d <= 0 (or free). With `s = e^-epsilon` the variables are
    the entries of P on allowed pairs, the largest entry v[y] of each output, d for each output, and what each
    row is short of one, under

        sum_y P[x,y] + short[x] = 1,   P[x,y] <= v[y],   A' d[y] <= T' P[:,y],   s v[y] <= <b, d[y]>.

    It minimises the mean of `short`. The multipliers z of the third rows are for each output those of a prior
    of the set, times a number: with those of the first rows they prove the bound of `largest_share`.

    Args:
        program: what is asked for, with a set of priors and without a floor.
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

    def ask(self, share: float, clock: Clock) -> Asked:
        """The optimum at a share e^-epsilon.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
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
        return Asked(
            matrix=program.matrix(point.values[: self._entries]),
            proof=Multipliers(point.duals[:n] / program.prior.pmf, laws=laws),
            missing=point.optimum,
            slope=point.slope,
        )
