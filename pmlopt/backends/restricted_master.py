"""The restricted master problem: the linear program over the columns known so far, in HiGHS."""

from __future__ import annotations

import highspy
import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs
from pmlopt.backends.clock import FOREVER, TIME, Clock

SHORTEST_SOLVE = 0.2
"""Seconds that a program has at least."""


class Master:
    """`max <worths, q>` subject to `lifts q = 1`, `q >= 0`; columns are added, the last basis is the start.

    Args:
        lifts: (N, K) the first columns; among them must be some that are feasible together.
        worths: (K,).
        size: how large the value can become, roughly.
    """

    def __init__(self, lifts: FloatArray, worths: FloatArray, size: float = 1.0) -> None:
        n = len(lifts)
        self.lifts, self.worths = np.empty((n, 0)), np.empty(0)
        self.iterations = 0
        nothing = (np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0))
        self._highs = highs.loaded(
            highs.columnwise(np.empty(0), (0.0, np.inf), (np.ones(n), np.ones(n)), nothing), _OPTIONS
        )
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._known: set[bytes] = set()
        # HiGHS takes reduced costs below 1e-10 for zero: a large objective makes them small in our units
        self._scale = 1e3 / max(size, 1e-3)
        self.add(lifts, worths)

    def unknown(self, lifts: FloatArray) -> FloatArray:
        """(N, K') those of the columns that are new here, each once."""
        fresh = {key: place for place, key in enumerate(_keys(lifts)) if key not in self._known}
        return lifts[:, list(fresh.values())]

    def add(self, lifts: FloatArray, worths: FloatArray) -> None:
        """Add columns to the linear program, each with its worth; the basis stays."""
        peaks = lifts.max(axis=0)  # columns whose largest entry is 1: under a rare letter it can be 1e12
        columns = (lifts / peaks).T
        used = columns != 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))[:-1]]).astype(np.int32)
        letters = np.nonzero(used)[1].astype(np.int32)
        count = len(worths)
        self._highs.addCols(
            count,
            worths / peaks * self._scale,
            np.zeros(count),
            np.full(count, np.inf),
            len(letters),
            starts,
            letters,
            columns[used],
        )
        self._known.update(_keys(lifts))
        self.lifts = np.hstack([self.lifts, lifts])
        self.worths = np.append(self.worths, worths)

    def solve(self, clock: Clock = FOREVER) -> tuple[float, FloatArray, FloatArray]:
        """The value, the (K,) weights and the (N,) multipliers of the rows.

        However late it is, there is some time for it: it makes a mechanism of the columns in hand.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum; the message is `TIME` where the time is over.
        """
        left = clock.left(SHORTEST_SOLVE)
        if left is not None:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise ArithmeticError(TIME)
        if status != highspy.HighsModelStatus.kOptimal:  # numerical trouble: once, cold
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_strategy", 1)
            self._highs.run()
            self._highs.setOptionValue("simplex_strategy", _OPTIONS["simplex_strategy"])
        status = self._highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise ArithmeticError(f"the master problem: {self._highs.modelStatusToString(status)}")
        self.iterations += max(self._highs.getInfo().simplex_iteration_count, 0)
        solution = self._highs.getSolution()
        weights, duals = (
            np.array(solution.col_value) / self.lifts.max(axis=0),
            np.array(solution.row_dual) / self._scale,
        )
        return float(self.worths @ weights), weights, duals


def _keys(lifts: FloatArray) -> list[bytes]:
    return [column.tobytes() for column in np.round(lifts.T, 12) + 0.0]


_OPTIONS: dict[str, float | str] = {
    "solver": "simplex",
    "simplex_strategy": 4,  # primal: new columns leave the last basis feasible
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
