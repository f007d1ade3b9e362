"""The linear program of the worst post-processing at one likelihood ratio after another, in HiGHS."""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.programs.envelope.program import PostProcessings
from pmlopt.solvers.clock import Clock
from pmlopt.solvers.highs import columnwise
from pmlopt.solvers.parametric_program import MovingModel, MovingPart

ENTRY_NOISE = 1e-12
"""Scaled entries of a solver's point up to this become zero: a hundredth of HiGHS' feasibility tolerance."""

SMALLEST_ENTRY = 1e-11
"""HiGHS may drop entries below this, which then limit nothing: their columns have limits of their own."""

NOTHING = MovingPart(*(np.zeros(0, dtype=int),) * 2, *(np.zeros(0),) * 2)
"""No entries that move: nearly all do, and the program is handed over anew."""


class RatioPrograms:
    """The linear programs of `PostProcessings.problem` at one ratio after another, in HiGHS without cvxpy.

    HiGHS' tolerances are absolute. So probabilities count as shares of a mass, that of the outcomes in
    question, and no entry that matters is far from one: the entries of output y are in units of
    `mass / q[y]`, or less where they tell more than t, and what is to spare in units of t times the mass.

    Args:
        program: of the mechanism.
        mass: about what the worst outcomes have together; delta, where that is asked for.
    """

    def __init__(self, program: PostProcessings[Any], mass: float) -> None:
        (n, k), self._mass, self._program = program.columns.shape, mass, program
        self.shape = k, n
        self._moving: MovingModel | None = None

    def _scaled(self, ratio: float, closed: BoolArray) -> tuple[highspy.HighsLp, FloatArray]:
        """The program at a ratio: attack (one output after another), and over a set the ends; and the units.

        Rows: leaks, outputs, and over a set the ends and their total.
        """
        program, (k, n), law = self._program, self.shape, self._program.law
        m, single = program.merged.shape[1], program.over is None
        spare, gains = ratio * self._mass, (program.columns - ratio * program.law).T
        cost = np.repeat(law[:, None], n, axis=1)
        units = np.minimum(1.0, spare / np.maximum(np.maximum(np.abs(gains), ratio * cost), spare))
        tops = units.max(axis=1, keepdims=True) if single else np.ones((k, 1))
        # column by column: its entries in the rows of its letter and of its output
        values = np.stack([gains * units / spare, units / tops], axis=2).ravel()
        indices = np.stack(np.broadcast_arrays(np.arange(n), n + np.arange(k)[:, None]), axis=2).ravel()
        starts, most = 2 * np.arange(n * k + 1), np.where(units / tops < SMALLEST_ENTRY, 1 / units, np.inf)
        most[:, closed] = 0.0
        lower, upper = np.concatenate([np.zeros(n), np.full(k, -np.inf)]), np.full(n, np.inf)
        costs, most = (-cost * units / self._mass).ravel(), most.ravel()
        if single:
            upper = np.concatenate([upper, 1 / tops[:, 0]])
        else:
            ends = np.arange(k)
            values = np.append(values, np.column_stack([-np.ones(k), np.ones(k), law]).ravel())
            rows = np.column_stack([n + ends, n + k + ends % m, np.full(k, n + k + m)])
            indices = np.append(indices, rows.ravel())
            starts = np.append(starts, starts[-1] + 3 * np.arange(1, k + 1))
            lower = np.append(lower, np.ones(m + 1))
            upper = np.concatenate([upper, np.zeros(k), np.ones(m + 1)])
            costs, most = np.append(costs, np.zeros(k)), np.append(most, np.ones(k))
        return columnwise(costs, (0.0, most), (lower, upper), (starts, indices, values)), units

    def solve(
        self, ratio: float, closed: BoolArray, clock: Clock
    ) -> tuple[float, float, FloatArray, FloatArray]:
        """V(t) at a ratio t, the derivative of -V, the (K, N) attack and the (N,) multipliers of its letters.

        The outcomes of the letters of `closed` are fixed at nothing. Over a set there is one more multiplier,
        of the sum of the probabilities.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum.
        """
        k, n = self.shape
        model, units = self._scaled(ratio, closed)
        if self._moving is None:
            self._moving = MovingModel(model, NOTHING)
        else:
            self._moving.replace(model)
        found = self._moving.solve(ratio, clock)
        point = found.values[: n * k].reshape(k, n)
        point = np.where(point > ENTRY_NOISE, point * units, 0.0)
        lam = found.duals[:n] / ratio
        slope = float(self._program.law @ point @ lam)
        if self._program.over is not None:
            lam = np.append(lam, -self._mass * found.duals[-1])
        return -self._mass * found.optimum, slope, point, lam
