"""The programs of a least leakage at one level each: linear ones, in units that keep the digits of rare
letters, and the best that a level allows, by the interior point method of designs.
"""

from __future__ import annotations

import math
from itertools import chain, repeat

import numpy as np

from pmlopt.core.lazy_imports import sparse
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import PML
from pmlopt.model.uncertainty.prior_set import PriorPolytope
from pmlopt.model.uncertainty.vertices import build_member_hull
from pmlopt.model.utility import ExpectedGain
from pmlopt.programs.exact.rounding import approximate_repair
from pmlopt.programs.least_leakage.certificate import LevelMultipliers
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear import block_interior_point
from pmlopt.programs.linear.output_generation import price_outputs
from pmlopt.programs.linear.program import LinearDesign, linear_design
from pmlopt.solvers import highs
from pmlopt.solvers.parametric_program import ParametricEntries, ParametricModel
from pmlopt.solvers.solver_result import Deadline, MethodOptions, limit_threads
from pmlopt.solvers.structured.block_program import BlockLP, build_mean_block, find_attainable
from pmlopt.solvers.structured.interior_point import GapGoal, follow_central_path
from pmlopt.solvers.structured.iterates import build_start
from pmlopt.solvers.two_sided_search import ParameterSolution


class LevelProgram:
    """The linear program at a fixed level on allowed pairs: least row shortfall, or largest gain.

    With `s = e^-epsilon` the entries of P on allowed pairs, the largest entry v of each output and what each
    row is short of one, all non-negative, are the variables, under

        sum_y P[x,y] + short[x] = 1,    P[x,y] <= v[y],    s v[y] <= sum_x p[x] P[x,y].

    Without a floor on the expectation it minimises the mean of `short`: 0 where there is such a mechanism.
    With one it maximises the expected gain, and `short` costs more than any output.

    A floor of c on the expected gain (of gains at most 0) leaves no room for entries above
    `c / (p[x] g[x,y])`, which may be 1e-8 where the floor is about a rare letter. Each entry is in units of
    this, and each row in units of what it can hold, since a solver's tolerances are absolute. On orbits of
    pairs sums count the pairs of each, and entries are lifts.

    Over a set `{T z: z >= 0, A z <= b}` of priors (some rows are equations) the least mean of a column v is
    by duality the largest `<b, d>` with `A' d <= T' v`, d <= 0 (or free). With d for each output, the last
    rows are `A' d[y] <= T' P[:,y]` and `s v[y] <= <b, d[y]>`. The multipliers z of the first of these are for
    each output those of a prior of the set, times a number: with those of the rows' sums they prove the bound
    of `bound_exp_neg_level`.
    """

    MASS_RTOL = 1e-12
    """The share of e^-level by which rounding may have taken an output's largest probability below it."""

    def __init__(self, program: LeastLeakage, rows: PriorPolytope | None = None) -> None:
        """Build the program.

        Args:
            program: what is required.
            rows: the priors by linear rows; None where it is the given one only.
        """
        # The least coefficient of an entry in a row: HiGHS takes those below 1e-12 for zeros.
        least_coefficient = 4e-12
        self.program = program
        self._masses = program.max_output_probabilities
        self._set = rows
        self._letter, self._output, self._in_row, p = program.columns.list_pairs(program.allowed)
        n = len(program.columns.masses)
        m = len(self._masses)
        k = len(self._letter)
        # the numbers of rows, outputs and entries, and of d and its rows for each output
        self._size = n, m, k, *((0, 0) if self._set is None else self._set.rows.shape)
        # no entry can cost more than the floor allows in all: that is its natural unit
        self._loss, self._most = self._compute_losses(p)
        # pairs that cost nothing have no limit of their own: 1 / 0 is clipped to 1
        with np.errstate(divide="ignore"):
            unit = np.clip(self._most / self._loss, least_coefficient, 1.0)
        part = least_coefficient * np.bincount(self._output, p * unit, m)[self._output] / p
        self._unit = np.minimum(1.0, np.maximum(unit, part))
        self._peaks = k + np.arange(m)
        peak = np.zeros(m)
        np.maximum.at(peak, self._output, self._unit)
        # outputs without allowed pairs: any unit will do
        peak = np.where(peak > 0, peak, 1.0)
        mass = np.ones(m) if self._set is not None else np.bincount(self._output, p * self._unit, m)
        mass = np.where(mass > 0, mass, 1.0)
        levels = n + k + m * self._size[4] + np.arange(m)
        moving = ParametricEntries(levels, self._peaks, np.zeros(m), peak / mass)
        self.model = ParametricModel(
            self._build_model(levels, peak, p * self._unit / mass[self._output]), moving
        )

    def _compute_losses(self, p: FloatArray) -> tuple[FloatArray, float]:
        """Compute the (K,) loss of each pair and the loss budget of the utility floor."""
        floor = self.program.floor
        if floor is None:
            return np.zeros(len(p)), 1.0
        return p * np.abs(floor.normalized_gains[self.program.allowed]), -floor.solver_target

    def _build_model(
        self, levels: IntArray, peak: FloatArray, level_coefficients: FloatArray
    ) -> highs.LinearModel:
        """Build the HiGHS model in matrix entries, column maxima, set duals and shortfalls.

        Rows: sums, largest entries, set, levels.
        """
        n, m, k, count, _ = self._size
        short = 1 / n if self.program.floor is None else 2 * max(1.0, self._loss.max() / self._most)
        entry = np.arange(k)
        shorts = k + m + m * count + np.arange(n)
        total = int(levels[-1]) + 1
        parts = [  # rows, columns and coefficients
            (self._letter, entry, self._in_row * self._unit),
            (n + entry, entry, np.ones(k)),
            (n + entry, k + self._output, -peak[self._output] / self._unit),
            (levels, self._peaks, np.ones(m)),
            (np.arange(n), shorts, np.ones(n)),
            *(
                [(levels[self._output], entry, -level_coefficients)]
                if self._set is None
                else self._build_worst_prior_rows(levels)
            ),
        ]
        rows, columns, values = (np.concatenate(several) for several in zip(*parts, strict=True))
        system = sparse.csc_array((values, (rows, columns)), shape=(total, k + m + m * count + n))
        ends = np.where(np.arange(total) < n, 1.0, 0.0)
        free = np.zeros(0, dtype=bool) if self._set is None else np.tile(self._set.equal, m)
        below = np.zeros(system.shape[1])
        above = np.full(system.shape[1], np.inf)
        below[k + m : shorts[0]] = -np.inf
        above[k + m : shorts[0]] = np.where(free, np.inf, 0.0)
        losses = self._loss * self._unit / self._most
        return highs.build_columnwise_model(
            np.concatenate([losses, np.zeros(m + m * count), np.full(n, short)]),
            (below, above),
            (np.where(np.arange(total) < n, ends, -np.inf), ends),
            (system.indptr, system.indices, system.data),
        )

    def _build_worst_prior_rows(
        self, levels: IntArray
    ) -> list[tuple[IntArray, IntArray, FloatArray]]:
        """Build the dual rows and columns that represent the worst prior of a polytope."""
        assert self._set is not None
        n, m, k, _, size = self._size
        each, part = np.nonzero(self._set.parts[self._letter] != 0)
        column = self._output[each] * size + part, each, -self._set.parts[self._letter[each], part]
        dual = sparse.coo_array(sparse.kron(sparse.eye_array(m), self._set.rows.T))
        right = sparse.coo_array(sparse.kron(sparse.eye_array(m), -self._set.right[None, :]))
        return [
            (n + k + column[0], column[1], column[2]),
            (n + k + dual.coords[0], k + m + dual.coords[1], dual.data),
            (levels[right.coords[0]], k + m + right.coords[1], right.data),
        ]

    @property
    def iterations(self) -> int:
        """Return the total number of simplex iterations."""
        return self.model.iterations

    def solve_at(
        self, exp_neg_level: float, deadline: Deadline
    ) -> ParameterSolution[LevelMultipliers]:
        """Solve the program at e^-epsilon."""
        program = self.program
        n, m, k, _, size = self._size
        # an output whose letters have less probability (under a prior of the set) leaks more: it cannot occur
        closed = self._masses < exp_neg_level * (1 - self.MASS_RTOL)
        self.model.fix_at_zero(self._peaks, closed)
        point = self.model.solve_at(exp_neg_level, deadline)
        rows = point.duals[:n] / program.columns.masses
        gaining = program.floor is not None
        laws = None
        if self._set is not None:
            parts = np.maximum(-point.duals[n + k : n + k + m * size], 0.0)
            laws = self._set.parts @ parts.reshape(m, -1).T
            laws[:, closed] = 0.0  # their multipliers mean nothing
        return ParameterSolution(
            point=program.expand_entries(point.values[:k] * self._unit),
            multipliers=LevelMultipliers(self._most * rows, 1.0)
            if gaining
            else LevelMultipliers(rows, laws=laws),
            infeasibility=point.optimum - 1 if gaining else point.optimum,
            slope=point.slope,
        )


class PriorCutLevelProgram:
    """The linear program at a fixed level over a non-polyhedral set of priors, by cutting planes.

    It is solved over some priors of the set, and those under which its outputs leak more than the level come
    in. Its multipliers are of priors of the set, so that they prove a bound at any time.
    """

    MAX_ROUNDS, VIOLATION_RTOL = 60, 1e-10

    def __init__(self, program: LeastLeakage) -> None:
        assert program.over is not None
        self.program = program
        self._over = program.over
        self._build(build_member_hull(program.over).laws)
        self._spent = 0

    def _build(self, laws: FloatArray) -> None:
        """Build the linear program for a finite list of priors."""
        self._laws = laws
        self._levels = LevelProgram(self.program, build_member_hull(self._over, laws).polytope())

    @property
    def iterations(self) -> int:
        """Return the simplex iterations of all programs."""
        return self._spent + self._levels.iterations

    def solve_at(
        self, exp_neg_level: float, deadline: Deadline
    ) -> ParameterSolution[LevelMultipliers]:
        """Solve the program at e^-epsilon."""
        for _ in range(self.MAX_ROUNDS):
            found = self._levels.solve_at(exp_neg_level, deadline)
            columns = found.point[:, found.point.max(axis=0) > 0]
            columns = columns / columns.max(axis=0)
            broken = self._over.min_mean(columns) < exp_neg_level * (1 - self.VIOLATION_RTOL)
            if deadline.expired or not broken.any():
                break
            worst = np.array([self._over.minimizer(column) for column in columns.T[broken]])
            self._spent += self._levels.iterations
            self._build(np.vstack([self._laws, worst]))
        return found


def build_level_program(program: LeastLeakage) -> LevelProgram | PriorCutLevelProgram:
    """Build the linear program at a level, for a prior, a polytope or a general set."""
    if program.over is None:
        return LevelProgram(program)
    rows = program.over.polytope()
    return PriorCutLevelProgram(program) if rows is None else LevelProgram(program, rows)


class BestGainPrograms:
    """The linear programs of the best expected gain at a sequence of levels."""

    def __init__(self, program: LeastLeakage) -> None:
        assert program.floor is not None
        self.program = program
        self.floor = program.floor
        self.iterations = 0
        self.utility = ExpectedGain(program.floor.normalized_gains)
        # Newton's first steps need few digits. The last is a tenth of what a level proved to 1e-9 needs, and
        # as fine as the interior point gets.
        self._tolerances = chain((1e-4, 1e-7), repeat(1e-10))
        self._likely: BoolArray | None = None

    def solve_at(
        self, exp_neg_level: float, deadline: Deadline
    ) -> ParameterSolution[LevelMultipliers]:
        """Solve for the best expected gain at level -log(exp_neg_level)."""
        prior = self.program.prior
        design = linear_design(
            prior, PML(-math.log(exp_neg_level)), self.utility, self.program.outputs
        )
        task = design.build_block_lp()
        if task is None:
            raise ArithmeticError("a level of 0 has no inside")
        options = MethodOptions(deadline, next(self._tolerances))
        outcome = block_interior_point.solve_block_lp(design, task, options, self._likely)
        self.iterations += outcome.iterations or 0
        if outcome.point is None or outcome.point.multipliers is None:
            raise ArithmeticError(outcome.message)
        try:
            matrix = approximate_repair(prior, design.privacy, outcome.point.matrix)
        except MechanismError as cause:
            raise ArithmeticError(str(cause)) from cause
        row_prices = outcome.point.multipliers + design.row_offsets
        self._likely = _find_likely_outputs(design, matrix, row_prices, exp_neg_level)
        return ParameterSolution(
            point=matrix,
            multipliers=LevelMultipliers(-row_prices, 1.0),
            infeasibility=self.floor.solver_target - design.utility.value(prior, matrix),
            slope=_compute_slope(design, matrix, row_prices, exp_neg_level),
        )


def _find_likely_outputs(
    design: LinearDesign, matrix: FloatArray, row_prices: FloatArray, exp_neg_level: float
) -> BoolArray | None:
    """Find (M,) the outputs of the program of a level nearby; None where they are too many to tell.

    They are those that are worth most, at least four times as many as this program uses.
    """
    count = max(32, 4 * int((matrix.sum(axis=0) > 1e-6).sum()))
    if count > 0.4 * matrix.shape[1]:
        return None
    prices = price_outputs(design.prior.pmf, design.table, row_prices, exp_neg_level)
    likely = np.zeros(len(prices), dtype=bool)
    likely[np.argsort(-prices, kind="stable")[:count]] = True
    return likely


def _compute_slope(
    design: LinearDesign, matrix: FloatArray, row_prices: FloatArray, exp_neg_level: float
) -> float:
    """Compute the derivative of the best expected gain in e^-epsilon from dual values.

    With the multipliers w of the rows it is `<p, w>` plus the mean over outputs of the largest mean of g - w
    over a share s of the letters. The derivative of that in s is what the last letter in it has beyond the
    mean, over s.
    """
    p = design.prior.pmf
    over = design.table - row_prices[:, None]
    # the mean of the worst share s is attained by letters in falling order of g - w
    order = np.argsort(-over, axis=0, kind="stable")
    last = (np.cumsum(p[order], axis=0) < exp_neg_level).sum(axis=0)
    # the letter in which the share s ends, for each of the M outputs
    at = order[np.minimum(last, len(p) - 1), np.arange(matrix.shape[1])]
    law = p @ matrix
    means = (p[:, None] * over * matrix).sum(axis=0)  # law times the largest mean
    return float((means - law * over[at, np.arange(len(law))]).sum() / exp_neg_level)


class LargestMassPrograms:
    """The linear programs of the largest probability that allowed pairs can carry at a level."""

    def __init__(self, program: LeastLeakage) -> None:
        self.program = program
        self.iterations = 0

    def solve_at(
        self, exp_neg_level: float, deadline: Deadline
    ) -> ParameterSolution[LevelMultipliers]:
        """Solve for the largest mass `sum_xy p[x] P[x,y]` with rows of sum at most one."""
        # The gap of each largest mass, which is 1 where a level suffices.
        mass_tolerance = 1e-11
        prior = self.program.prior
        block = build_mean_block(prior.pmf, exp_neg_level)
        if block is None:
            raise ArithmeticError("a level of 0 has no inside")
        allowed = find_attainable(block, self.program.allowed)
        # costs of size one: the method stops at absolute gaps
        scale = float(prior.pmf.max())
        costs = np.repeat(-prior.pmf[:, None] / scale, allowed.shape[1], axis=1)
        task = BlockLP(prior, costs, scale, block, allowed, allows_short_rows=True)
        goal = GapGoal(lambda one: one.duality_gap, mass_tolerance / scale, deadline)
        with limit_threads():
            ending = follow_central_path(task, build_start(task), goal)
        self.iterations += ending.iterations
        point = ending.point
        matrix, _ = point.masked_parts(task.allowed, task.hinge_mask)
        # rounding may put the mass slightly above one
        missing = max(0.0, 1 - float((prior.pmf @ matrix).sum()))
        slope = scale * abs(float((point.means * point.scalars).sum()))
        return ParameterSolution(
            point=matrix,
            multipliers=LevelMultipliers(1 - task.to_certificate_multipliers(point.rows)),
            infeasibility=missing,
            slope=slope
            if missing > mass_tolerance
            else math.nan,  # where all fits, the root is unknown
        )
