"""The linear program of the worst post-processing at one likelihood ratio after another, in HiGHS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.programs.envelope.program import PostProcessings
from pmlopt.solvers.clock import Clock
from pmlopt.solvers.highs import columnwise
from pmlopt.solvers.parametric_program import MovingModel, MovingPart

ENTRY_NOISE = 1e-12
"""Scaled entries of a solver's point up to this become zero: a hundredth of HiGHS' feasibility tolerance."""

LARGEST_MOVE = 8.0
"""A program is scaled anew where the ratio is this many times the one that it was scaled for, or a share of
it: entries move with it."""


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
        self._at, self._units = math.nan, np.ones((n, k))
        self._moving: MovingModel | None = None

    def _scaled(self, ratio: float) -> MovingModel:
        """The program with the units of a ratio: attack (one output after another), and over a set the ends.

        Rows: leaks, outputs, and over a set the ends and their total.
        """
        from scipy import sparse

        program, (k, n) = self._program, self.shape
        law, m, single = program.law, program.merged.shape[1], program.over is None
        spare = ratio * self._mass
        largest = np.maximum(np.abs(program.columns - ratio * law), ratio * law)
        self._at, self._units = ratio, np.minimum(1.0, spare / np.maximum(largest, spare))
        units = self._units.T.ravel()
        letters, outputs, places = np.tile(np.arange(n), k), np.repeat(np.arange(k), n), np.arange(n * k)
        ends = n * k + np.arange(k)
        gain, cost = program.columns[letters, outputs] * units / spare, law[outputs] * units / spare
        tops = self._units.max(axis=0) if single else np.ones(k)
        parts = [(letters, places, gain - ratio * cost), (n + outputs, places, units / tops[outputs])]
        if not single:
            parts += [
                (n + np.arange(k), ends, -np.ones(k)),
                (n + k + np.arange(k) % m, ends, np.ones(k)),
                (np.full(k, n + k + m), ends, law),
            ]
        rows, columns, values = map(np.concatenate, zip(*parts, strict=True))
        equal = np.ones(0 if single else m + 1)
        sizes = (n + k + len(equal), n * k + (0 if single else k))
        matrix = sparse.csc_array((values, (rows, columns)), shape=sizes)
        lower = np.concatenate([np.zeros(n), np.full(k, -np.inf), equal])
        upper = np.concatenate([np.full(n, np.inf), 1 / tops if single else np.zeros(k), equal])
        costs, most = np.zeros(sizes[1]), np.ones(sizes[1])
        costs[: n * k], most[: n * k] = -law[outputs] * units / self._mass, 1 / units
        entries = matrix.indptr, matrix.indices, matrix.data
        model = columnwise(costs, (0.0, most), (lower, upper), entries)
        return MovingModel(model, MovingPart(letters, places, gain, -cost))

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
        if self._moving is None or not 1 / LARGEST_MOVE <= ratio / self._at <= LARGEST_MOVE:
            self._moving = self._scaled(ratio)
        self._moving.fix(np.arange(n * k), np.tile(closed, k))
        found = self._moving.solve(ratio, clock)
        point = found.values[: n * k].reshape(k, n)
        point = np.where(point > ENTRY_NOISE, point * self._units.T, 0.0)
        lam = found.duals[:n] / self._at
        if self._program.over is not None:
            lam = np.append(lam, -self._mass * found.duals[-1])
        return -self._mass * found.optimum, self._mass * found.slope, point, lam
