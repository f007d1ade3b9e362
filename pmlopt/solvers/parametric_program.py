"""Parametric linear programs in HiGHS, and master problems that grow by columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import highspy
import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.solvers import highs
from pmlopt.solvers.orthonormal_rows import solve_with_orthonormal_rows
from pmlopt.solvers.solver_result import NO_DEADLINE, TIME_LIMIT, Deadline, MethodOptions

_METHOD_OPTIONS: Mapping[str, Mapping[str, str | int]] = {
    "primal": {"solver": "simplex", "simplex_strategy": 4, "presolve": "choose"},
    "interior": {"solver": "ipx", "run_crossover": "on", "presolve": "choose"},
    "dual": {"solver": "simplex", "simplex_strategy": 1, "presolve": "off"},
    "loose": {"solver": "simplex", "simplex_strategy": 1, "presolve": "choose"},
}

FEASIBILITY_TOLERANCES = {"loose": 1e-8}
"""Of feasibility; else 1e-10. Next to letters of 1e-6 rounding only may be more, and HiGHS then ends with
"Unknown". No proof rests on it."""


@dataclass(frozen=True, eq=False)
class ParametricEntries:
    """Matrix entries that are affine in a parameter t: `constants + t rates`.

    Attributes:
        rows, columns: where they are.
        constants: their part that stays.
        rates: how fast they move.
    """

    rows: IntArray
    columns: IntArray
    constants: FloatArray
    rates: FloatArray


NO_PARAMETRIC_ENTRIES = ParametricEntries(*(np.zeros(0, dtype=int),) * 2, *(np.zeros(0),) * 2)
"""No entries that move: where nearly all do, the program is handed over anew."""


@dataclass(frozen=True, eq=False)
class ParametricSolution:
    """The solution of a parametric linear program at one value.

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


class ParametricModel:
    """A parametric linear program in HiGHS, warm-started from solve to solve.

    Where a large program's parameter is far from the last, it is solved by the interior point method, with
    crossover.

    Args:
        model: a minimisation, with the entries that move at any value.
        part: those entries; left out, there are none, and `replace_model` takes other programs.

    Attributes:
        iterations: of the simplex, so far.
    """

    def __init__(
        self, model: highs.LinearModel, part: ParametricEntries = NO_PARAMETRIC_ENTRIES
    ) -> None:
        self.iterations = 0
        self.solver = highs.load_model(
            model, highs.build_options(MethodOptions(NO_DEADLINE, 1e-10))
        )
        rows, columns = model.shape
        # HiGHS' primal simplex has cycled for millions of iterations on 200 variables, where hundreds
        # suffice; programs of more than 2,000 rows and columns get ten for each of these
        self.solver.setOptionValue("simplex_iteration_limit", max(20_000, 10 * (rows + columns)))
        # far more than the interior point needs where it converges
        self.solver.setOptionValue("ipm_iteration_limit", 1_000)
        self._part = part
        self._last = math.nan
        # up to 1,600 variables the simplex from the last basis is faster at every step
        self._simplex = columns <= 1_600
        self._fixed = np.zeros(columns, dtype=bool)

    def fix_at_zero(self, columns: IntArray, zero: BoolArray) -> None:
        """Fix some nonnegative columns at zero, and free the others."""
        moved = columns[self._fixed[columns] != zero]
        self._fixed[columns] = zero
        for column in moved.tolist():
            self.solver.changeColBounds(
                column, 0.0, 0.0 if self._fixed[column] else highspy.kHighsInf
            )

    def replace_model(self, model: highs.LinearModel) -> None:
        """Replace the model by one of equal size, keeping the basis."""
        # the size is unchanged, so that the old basis is a start for the new program
        basis = self.solver.getBasis()
        model.pass_to(self.solver)
        if basis.valid:
            self.solver.setBasis(basis)

    def solve_at(self, value: float, deadline: Deadline) -> ParametricSolution:
        """Solve at a value of the parameter.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum; the message is `TIME_LIMIT` where the time is
                over.
        """
        solver = self.solver
        part = self._part
        coefficients = part.constants + value * part.rates
        for row, column, coefficient in zip(
            part.rows.tolist(), part.columns.tolist(), coefficients.tolist(), strict=True
        ):
            solver.changeCoeff(row, column, coefficient)
        # after a relative step of at most 1e-3 the simplex from the last basis is faster at any size
        near = abs(value / self._last - 1) <= 1e-3
        self._last = value
        self._run_highs(near or self._simplex, deadline)
        solution = solver.getSolution()
        duals = np.array(solution.row_dual)
        values = np.array(solution.col_value)
        # the envelope theorem: the derivative of the optimum is -y' (dA/dt) x
        slope = -float((part.rates * duals[part.rows] * values[part.columns]).sum())
        return ParametricSolution(solver.getInfo().objective_function_value, slope, values, duals)

    def _run_highs(self, simplex: bool, deadline: Deadline) -> None:
        """Run the simplex from the last basis; on failure, restart with all methods."""
        solver = self.solver
        for again, name in enumerate(["primal" if simplex else "interior", *_METHOD_OPTIONS]):
            if again:
                # cold: a bad basis may be what failed
                solver.clearSolver()
            for option, value in _METHOD_OPTIONS[name].items():
                solver.setOptionValue(option, value)
            for kind in ("primal", "dual"):
                solver.setOptionValue(
                    f"{kind}_feasibility_tolerance", FEASIBILITY_TOLERANCES.get(name, 1e-10)
                )
            left = deadline.remaining()
            if left is not None:
                if left <= 0:
                    raise ArithmeticError(TIME_LIMIT)
                # HiGHS adds up the time of all runs of one solver
                solver.setOptionValue("time_limit", solver.getRunTime() + left)
            solver.run()
            self.iterations += max(solver.getInfo().simplex_iteration_count, 0)
            status = solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return
            if status == highspy.HighsModelStatus.kTimeLimit:
                raise ArithmeticError(TIME_LIMIT)
        raise ArithmeticError(f"HiGHS: {solver.modelStatusToString(status)}")


class MasterProblem:
    """The master problem `max <worths, q>` subject to `lifts q = 1`, `q >= 0`, which grows by columns.

    Args:
        lifts: (N, K) the first columns; among them must be some that are feasible together.
        worths: (K,).
        size: how large the value can become, roughly.
    """

    def __init__(self, lifts: FloatArray, worths: FloatArray, size: float = 1.0) -> None:
        n = len(lifts)
        self.lifts = np.empty((n, 0))
        self.worths = np.empty(0)
        self.iterations = 0
        nothing = (np.zeros(1, np.int32), np.empty(0, np.int32), np.empty(0))
        # presolve takes longer than few columns do
        presolve = "off" if lifts.size <= 10_000 else "choose"
        self._highs = highs.load_model(
            highs.build_columnwise_model(
                np.empty(0), (0.0, np.inf), (np.ones(n), np.ones(n)), nothing
            ),
            {**_MASTER_OPTIONS, "presolve": presolve},
        )
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._known: set[bytes] = set()
        self._known_count = 0
        # HiGHS takes reduced costs below 1e-10 for zero: a large objective makes them small in our units
        self._scale = 1e3 / max(size, 1e-3)
        self.add_columns(lifts, worths)

    def select_new(self, lifts: FloatArray) -> FloatArray:
        """Select the (N, K') columns that are not in the problem yet."""
        self._known.update(_make_column_keys(self.lifts[:, self._known_count :]))
        self._known_count = self.lifts.shape[1]
        fresh = {
            key: place
            for place, key in enumerate(_make_column_keys(lifts))
            if key not in self._known
        }
        return lifts[:, list(fresh.values())]

    def add_columns(self, lifts: FloatArray, worths: FloatArray) -> None:
        """Add columns with their objective values, keeping the basis."""
        # columns whose largest entry is 1: under a rare letter it can be 1e12
        peaks = lifts.max(axis=0)
        columns = (lifts / peaks).T
        used = columns != 0
        # compressed columns: each begins where the nonzeros of those before end
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
        # dividing by the peak scales the weight by it; undone when weights are read
        self.lifts = np.hstack([self.lifts, lifts])
        self.worths = np.append(self.worths, worths)

    def solve(
        self, deadline: Deadline = NO_DEADLINE, costs: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        """Solve for value, (K,) weights and (N,) row multipliers.

        However late it is, there is some time for it: it makes a mechanism of the known columns.

        Args:
            deadline: of the solve.
            costs: (K,) worths in place of those of the columns, from now on.

        Raises:
            ArithmeticError: HiGHS does not end at an optimum; the message is `TIME_LIMIT` where the time is
                over.
        """
        if costs is not None:
            peaks = self.lifts.max(axis=0)
            self.worths = costs
            self._highs.changeColsCost(
                len(costs), np.arange(len(costs), dtype=np.int32), costs / peaks * self._scale
            )
        # a program always has 0.2 s
        left = deadline.remaining(0.2)
        if left is not None:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kTimeLimit:
            raise ArithmeticError(TIME_LIMIT)
        if status != highspy.HighsModelStatus.kOptimal:  # numerical trouble: once, cold
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_strategy", 1)
            self._highs.run()
            self._highs.setOptionValue("simplex_strategy", _MASTER_OPTIONS["simplex_strategy"])
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kUnknown:
            # columns that are nearly equal leave the simplex without an end
            weights, duals = solve_with_orthonormal_rows(self.lifts, self.worths, deadline)
            return float(self.worths @ weights), weights, duals
        if status != highspy.HighsModelStatus.kOptimal:
            raise ArithmeticError(f"the master problem: {self._highs.modelStatusToString(status)}")
        self.iterations += max(self._highs.getInfoValue("simplex_iteration_count")[1], 0)
        solution = self._highs.getSolution()
        weights = np.array(solution.col_value) / self.lifts.max(axis=0)
        duals = np.array(solution.row_dual) / self._scale
        return float(self.worths @ weights), weights, duals

    def release(self) -> None:
        """Hand the HiGHS instance on to later programs, after the last solve."""
        highs.keep_solver(self._highs)


def _make_column_keys(lifts: FloatArray) -> list[bytes]:
    """Return columns rounded to twelve digits as hashable keys."""
    # entries from 1e100 on have no twelfth place
    large = 1e100
    # columns that differ by rounding are one column of the problem
    rounded = np.where(lifts < large, np.round(np.minimum(lifts, large), 12), lifts)
    return [column.tobytes() for column in rounded.T + 0.0]


_MASTER_OPTIONS: dict[str, float | str] = {
    "solver": "simplex",
    "simplex_strategy": 4,  # primal: new columns leave the last basis feasible
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
