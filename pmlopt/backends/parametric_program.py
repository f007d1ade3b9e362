"""A linear program with one parameter, solved by HiGHS for one value of it after another.

The matrix of the program is affine in the parameter, as in `minimise c x subject to (A + t B) x <= b`. The
program is loaded once; from one t to the next only the entries of B change in HiGHS, and the simplex starts
from the last basis where t has moved little. Every run is limited, so that each solve ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import highspy
import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, IntArray
from pmlopt.backends import highs
from pmlopt.backends.clock import FOREVER, TIME, Clock
from pmlopt.backends.outcome import Options

WARM_START_STEP = 1e-3
"""The largest relative step of the parameter after which the simplex starts from the last basis, whatever the
program's size."""

SIMPLEX_VARIABLES = 1_600
"""Variables up to which the simplex, from the last basis, is the faster method at every step."""

MAX_SIMPLEX_ITERATIONS = 20_000
"""Iterations after which a run of the simplex is taken to cycle, and another method takes over: HiGHS' primal
simplex has been seen to run on for millions on 200 variables, where some hundreds suffice. Programs of more
than 2,000 rows and columns get ten for each of these."""

MAX_INTERIOR_ITERATIONS = 1_000
"""Iterations of an interior point method, far more than it needs where it converges."""

_WAYS: Mapping[str, Mapping[str, str | int]] = {
    "primal": {"solver": "simplex", "simplex_strategy": 4, "presolve": "choose"},
    "interior": {"solver": "ipx", "run_crossover": "on", "presolve": "choose"},
    "dual": {"solver": "simplex", "simplex_strategy": 1, "presolve": "off"},
    "loose": {"solver": "simplex", "simplex_strategy": 1, "presolve": "choose"},
}

TOLERANCES = {"loose": 1e-8}
"""Of feasibility; else 1e-10. Beside letters of 1e-6 rounding alone may be more, and HiGHS then ends with
"Unknown". No proof rests on it."""


@dataclass(frozen=True, eq=False)
class MovingPart:
    """The entries of a linear program's matrix that move with a parameter t: `still + t rates`.

    Attributes:
        rows, columns: where they are.
        still: their part that stays.
        rates: how fast they move.
    """

    rows: IntArray
    columns: IntArray
    still: FloatArray
    rates: FloatArray


@dataclass(frozen=True, eq=False)
class MovingPoint:
    """A linear program solved at one value of its parameter.

    Attributes:
        optimum: of the objective.
        slope: its derivative in the parameter.
        values: of the columns.
        duals: of the rows, non-negative for a lower limit of a minimisation.
    """

    optimum: float
    slope: float
    values: FloatArray
    duals: FloatArray


class MovingModel:
    """A linear program of HiGHS whose parameter moves: each solve starts from the basis of the one before.

    Where a large program's parameter is far from the last, it is solved by the interior point method, with
    crossover.

    Args:
        model: a minimisation, with the entries that move at any value.
        part: those entries.

    Attributes:
        iterations: of the simplex, so far.
    """

    def __init__(self, model: highspy.HighsLp, part: MovingPart) -> None:
        self.iterations = 0
        self.solver = highs.loaded(model, highs.limits(Options(FOREVER, 1e-10)))
        size = model.num_row_ + model.num_col_
        self.solver.setOptionValue("simplex_iteration_limit", max(MAX_SIMPLEX_ITERATIONS, 10 * size))
        self.solver.setOptionValue("ipm_iteration_limit", MAX_INTERIOR_ITERATIONS)
        self._part, self._last = part, math.nan
        self._simplex = model.num_col_ <= SIMPLEX_VARIABLES
        self._fixed = np.zeros(model.num_col_, dtype=bool)

    def fix(self, columns: IntArray, zero: BoolArray) -> None:
        """Fix some of these non-negative columns at zero, and free the others."""
        moved = columns[self._fixed[columns] != zero]
        self._fixed[columns] = zero
        for column in moved.tolist():
            self.solver.changeColBounds(column, 0.0, 0.0 if self._fixed[column] else highspy.kHighsInf)

    def solve(self, value: float, clock: Clock) -> MovingPoint:
        """The program at a value of the parameter.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum; the message is `TIME` where the time is over.
        """
        solver, part = self.solver, self._part
        coefficients = part.still + value * part.rates
        for row, column, coefficient in zip(
            part.rows.tolist(), part.columns.tolist(), coefficients.tolist(), strict=True
        ):
            solver.changeCoeff(row, column, coefficient)
        near = abs(value / self._last - 1) <= WARM_START_STEP
        self._last = value
        self._run(near or self._simplex, clock)
        solution = solver.getSolution()
        duals, values = np.array(solution.row_dual), np.array(solution.col_value)
        slope = -float((part.rates * duals[part.rows] * values[part.columns]).sum())
        return MovingPoint(solver.getInfo().objective_function_value, slope, values, duals)

    def _run(self, simplex: bool, clock: Clock) -> None:
        """Solve, from the last basis by the simplex; where that fails, from none by every method."""
        solver = self.solver
        for again, name in enumerate(["primal" if simplex else "interior", *_WAYS]):
            if again:
                solver.clearSolver()
            for option, value in _WAYS[name].items():
                solver.setOptionValue(option, value)
            for kind in ("primal", "dual"):
                solver.setOptionValue(f"{kind}_feasibility_tolerance", TOLERANCES.get(name, 1e-10))
            left = clock.left()
            if left is not None:
                if left <= 0:
                    raise ArithmeticError(TIME)
                solver.setOptionValue("time_limit", solver.getRunTime() + left)
            solver.run()
            self.iterations += max(solver.getInfo().simplex_iteration_count, 0)
            status = solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return
            if status == highspy.HighsModelStatus.kTimeLimit:
                raise ArithmeticError(TIME)
        raise ArithmeticError(f"HiGHS: {solver.modelStatusToString(status)}")
