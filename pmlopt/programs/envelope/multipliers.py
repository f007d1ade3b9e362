"""The bound on an envelope that multipliers prove, and the linear programs that find them, in HiGHS."""

from __future__ import annotations

import math
from typing import Any

import highspy
import numpy as np

from pmlopt.core.arrays import BoolArray, FloatArray
from pmlopt.core.roots import halved
from pmlopt.programs.envelope.program import EnvelopeProgram, PostProcessings
from pmlopt.solvers.highs import columnwise
from pmlopt.solvers.outcome import Clock
from pmlopt.solvers.parametric_program import MovingModel

MAX_NEWTON_STEPS = 200
"""More than Newton's method needs: it ends by itself, at the latest at the last kink."""

LEVEL_DIGITS = 1e-12
"""How far above the least level that multipliers prove the one that is claimed may be, as a share of it."""


def nearest_ratio(program: EnvelopeProgram, multipliers: FloatArray, most: float) -> float:
    """Where the mass that multipliers leave falls to delta in floats, at most `most`: no proof, but near one.

    For any lam >= 0 no post-processing gives outcomes that leak log t or more a larger mass than
    `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, the dual of `PostProcessings.problem`. Over a set
    of priors, for any nu as well: `nu + sum_y max_q (max(0, max_x (q + lam[x] (P[x,y] - t q))) - nu q)`, q
    being the least or the largest probability of y over the set: the inner part is convex in q, so that
    between them it is below its chord. The mass is convex and piecewise linear in t and does not rise:
    Newton's method from 1 meets the root from below in a few steps. What is not finite proves nothing.

    Examples:
        >>> from pmlopt import envelope
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> round(nearest_ratio(program, np.array([10.0, 10.0]), 2.0), 9)  # 1 + 20 (0.75 - t / 2) = 0.5
        1.55
    """
    if not np.isfinite(multipliers).all():
        return most
    (n, m), law = program.merged.shape, program.law
    lam, total = np.maximum(multipliers[:n], 0.0)[:, None], float(multipliers[n:].sum())
    # of the letters and of nobody, copies of an output in one column
    fixed = np.vstack([law + lam * program.columns - total * law, -total * law]).reshape(-1, m)
    rates = np.vstack([lam * law, 0 * law]).reshape(-1, m)
    outputs, ratio = np.arange(m), 1.0
    for _ in range(MAX_NEWTON_STEPS):
        worth = fixed - ratio * rates
        best = worth.argmax(axis=0)
        mass, fall = total + float(worth[best, outputs].sum()), float(rates[best, outputs].sum())
        if mass <= program.delta:
            return ratio
        if fall <= 0:
            return most
        ratio, last = min(most, ratio + (mass - program.delta) / fall), ratio
        if ratio <= last:
            break
    return ratio


def proved_level(
    program: EnvelopeProgram, multipliers: FloatArray, most: float, digits: float = LEVEL_DIGITS
) -> float:
    """A level that multipliers prove in rational arithmetic, or `most`, which is proved already, in nats.

    It is above the least that they prove by a share of `digits` at most.
    """
    ratio = math.exp(most)
    near = nearest_ratio(program, multipliers, ratio)
    if near >= ratio:
        return most

    def holds(level: float) -> bool:
        return program.exact.proves(program.delta, level, multipliers)

    fails = found = math.log(near)
    step = digits * max(found, LEVEL_DIGITS)
    while found < most and not holds(found):
        fails, found, step = found, found + step, 2 * step
    return min(most, halved(holds, fails, found, digits))


def with_closed(law: FloatArray, gains: FloatArray, multipliers: FloatArray, closed: BoolArray) -> FloatArray:
    """The multipliers, those of closed letters set to the least that adds nothing to the dual at a ratio t.

    A letter is closed where `P[x,y] - t q[y]` is negative for all y: with `u[y]` what the others give for y,
    any `lam[x] >= (q[y] - u[y]) / (t q[y] - P[x,y])` for all y will do. A solver that has the letter in its
    program needs multipliers that grow without end where t comes down to the letter's largest ratio.

    Examples:
        >>> gains = np.array([[0.25, -0.25], [-0.5, -0.25]])
        >>> with_closed(np.array([0.5, 0.5]), gains, np.array([1.0, 0.0]), np.array([False, True]))
        array([1., 1.])
    """
    lam, rest = np.where(closed, 0.0, np.maximum(multipliers[: len(closed)], 0.0)), multipliers[len(closed) :]
    worth = law + lam[~closed, None] * gains[~closed]
    others = np.maximum(0.0, worth.max(axis=0, initial=0.0))
    needed = ((law - others) / -gains[closed]).max(axis=1, initial=0.0)
    lam[closed] = np.maximum(0.0, needed) * (1 + 1e-15)  # more is as good, and less by rounding is not
    return np.concatenate([lam, rest])


ENTRY_NOISE = 1e-12
"""Scaled entries of a solver's point up to this become zero: a hundredth of HiGHS' feasibility tolerance."""

SMALLEST_ENTRY = 1e-11
"""HiGHS may drop entries below this, which then limit nothing: their columns have limits of their own."""


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
            self._moving = MovingModel(model)
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
