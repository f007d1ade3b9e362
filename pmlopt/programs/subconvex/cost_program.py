"""Designs with a sub-convex utility under a requirement that limits a cost of columns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Labels, bound_sum_rounding
from pmlopt.data.prior import Prior
from pmlopt.errors import ProgramError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.column_cost import ColumnCost
from pmlopt.model.uncertainty.columns import MAX_CUT_VERTICES
from pmlopt.model.utility import SubConvex
from pmlopt.model.utility.subconvex import has_known_form
from pmlopt.programs.design_program import Design
from pmlopt.programs.program import CvxpyModel, build_problem
from pmlopt.programs.subconvex.certificate import ColumnCostCertificate
from pmlopt.programs.subconvex.cost_space import CostPolytope, CostSpace
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import NO_DEADLINE, TIME_LIMIT, MethodOptions

MAX_LETTERS = int(np.log2(MAX_CUT_VERTICES))
"""Letters whose sets are all listed: 2^N columns."""

GAP_REACHED = "gap reached"
"""How a search ends that has a proof."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ColumnCostDesign(Design[ColumnCostCertificate]):
    """A design with a sub-convex utility whose requirement limits a cost c of columns.

    It is `max sum_y q[y] mu(lam_y)` subject to `sum_y q[y] lam_y = 1` and `sum_y q[y] c(lam_y) <= C`, or
    `c(lam_y) <= C` for each column: a linear program in the weights q. Where the cost is the largest of some
    linear ones the columns are finitely many, all of which are declared: under maximal leakage the
    indicators of sets of letters. Else `problem` has those that a search finds.

    Examples:
        >>> from pmlopt import MaximalLeakage, MutualInformation, design
        >>> program = design([0.5, 0.25, 0.25], MaximalLeakage(np.log(2)), MutualInformation())
        >>> program.problem.is_lp(), program.lifts.shape
        (True, (3, 7))
    """

    utility: SubConvex
    cost: ColumnCost

    @cached_property
    def space(self) -> CostSpace:
        """The columns, and what multipliers prove about them."""
        return CostSpace(self.prior, self.utility, self.cost)

    @property
    def scale(self) -> float:
        """Return the most that the choice of a mechanism can change the utility; the scale of a gap."""
        return max(self.space.full_release_utility - self.space.constant_utility, 0.0)

    @property
    def rounding_gap(self) -> float:
        """Return the gap that rounding only may leave."""
        return bound_sum_rounding(self.prior.size, 64.0)

    @cached_property
    def found_columns(self) -> FoundColumns:
        """The columns of `problem`, for which a search is run where not all are listed."""
        return search_columns(self, MethodOptions(NO_DEADLINE, self.tolerance))

    @property
    def lifts(self) -> FloatArray:
        """Return (N, K) the columns of `problem`, of mean one under the prior."""
        return self.found_columns.lifts

    @property
    def mechanism(self) -> cp.Expression:
        """Return (N, K) the columns times their weights."""
        weights = cp.reshape(self.variables["weights"], (1, self.lifts.shape[1]), order="C")
        return cp.multiply(self.lifts, np.ones((self.prior.size, 1)) @ weights)


@dataclass(frozen=True, eq=False)
class FoundColumns:
    """What a search over columns found.

    Attributes:
        lifts: (N, K) columns of mean one that a mechanism may use.
        weights: (K,) their weights in the best mechanism.
        multipliers, price, slopes: what proves the bound; see `CostSpace.compute_bound`.
        ending: how the search ended.
        rounds: how many linear programs over columns were solved, for the mechanism.
        iterations: of the simplex.
        seconds: what it took.
    """

    lifts: FloatArray
    weights: FloatArray
    multipliers: FloatArray | None
    price: float
    slopes: FloatArray | None
    ending: str
    rounds: int
    iterations: int
    seconds: float


def column_cost_design(
    prior: Prior,
    privacy: Requirement,
    utility: SubConvex,
    outputs: Labels | None,
    cost: ColumnCost,
) -> ColumnCostDesign:
    """Declare the linear program over columns with a limited cost; see `design`.

    Raises:
        ProgramError: there are too many letters, or fewer outputs than the optimum may need.
    """
    if not has_known_form(utility):
        utility.check(prior)
    if prior.size > MAX_LETTERS:
        raise ProgramError(
            f"with a sub-convex utility {privacy!r} is designed for on up to {MAX_LETTERS} letters, whose "
            f"sets are listed, and there are {prior.size}: merge letters, or take a linear utility"
        )
    needed = prior.size + (not cost.per_outcome)
    if outputs is not None and len(outputs) < needed:
        raise ProgramError(
            f"{len(outputs)} outputs are fewer than the {needed} that the optimum may need under "
            f"{privacy!r}: leave the outputs out for as few as it has"
        )
    program = ColumnCostDesign(
        build_model=lambda: _build_model(program),
        prior=prior,
        privacy=privacy,
        utility=utility,
        outputs=outputs,
        cost=cost,
    )
    return program


def _build_model(program: ColumnCostDesign) -> CvxpyModel:
    """Build the cvxpy model of the weights of the columns."""
    lifts = program.lifts
    cost = program.cost
    weights = cp.Variable(lifts.shape[1], nonneg=True, name="weights")
    constraints = {"rows": lifts @ weights == 1}
    if not cost.per_outcome:
        constraints["cost"] = cost.evaluate(lifts) / cost.usable_cost @ weights <= 1
    problem = build_problem(cp.Maximize(program.space.column_values(lifts) @ weights), constraints)
    return CvxpyModel(problem, {"weights": weights}, constraints)


@dataclass(eq=False)
class _CostRounds:
    """The rounds of a search: linear costs cut so far, columns within the cost, and the best bound.

    Linear costs that are at most the cost are a relaxation, whose extreme columns are listed and whose
    linear program bounds the utility. The same columns at their costs proper, mixed with the constant where
    each column is limited, are those of mechanisms. The slopes of the cost at the columns that both linear
    programs use come in.
    """

    program: ColumnCostDesign
    options: MethodOptions
    start: FloatArray
    upper: float = np.inf
    rounds: int = 0
    iterations: int = 0
    multipliers: FloatArray | None = None
    price: float = 0.0
    slopes: FloatArray | None = None
    pool: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    def run(self) -> str:
        """Run rounds until the gap is closed, the list is too long or time is over; return how it ended."""
        program = self.program
        n = self.program.prior.size
        allowed = 0.5 * program.compute_allowed_gap(self.options.tolerance)
        self.pool = np.ones((n, 1))
        polytope = CostPolytope.from_cost(program.prior, program.cost, program.cost.max_cost)
        if len(self.start):
            polytope = polytope.cut_by(program.cost.shrink_slopes(self.start)) or polytope
        while True:
            self.rounds += 1
            lifts, costs = polytope.list_columns()
            bound, used, duals = self._solve_over(lifts, costs, program.cost.max_cost)
            if bound < self.upper:
                self.upper = bound
                self.slopes = polytope.slopes
                self.multipliers = duals[:n] / program.prior.pmf
                self.price = float(duals[-1]) / program.cost.max_cost
            worths = program.space.column_values(lifts) - duals[:n] @ lifts
            chosen = np.argsort(duals[-1] / program.cost.max_cost * costs - worths, kind="stable")
            # columns far below the bound are of no use to a mechanism near it
            self._add_to_pool(lifts[:, chosen[: 200 * n]])
            value, in_use, _ = self._solve_pool()
            if self.upper - value <= allowed:
                return GAP_REACHED
            if self.options.deadline.expired:
                return TIME_LIMIT
            if self.rounds >= 60:  # the best mechanism is then returned with its gap
                return "no proof within the rounds"
            slopes = self._find_slopes(polytope, np.hstack([lifts[:, used], self.pool[:, in_use]]))
            if not len(slopes):
                return "no linear cost cuts"
            cut = polytope.cut_by(slopes)
            if cut is None:
                return "the extreme columns are too many to list"
            polytope = cut

    def _solve_over(
        self, lifts: FloatArray, costs: FloatArray, max_cost: float
    ) -> tuple[float, IntArray, FloatArray]:
        """Solve the linear program over columns; return its value, the columns in use, and multipliers."""
        master = self._make_master(lifts, costs, max_cost)
        value, weights, duals = master.solve(self.options.deadline)
        self.iterations += master.iterations
        return value, np.flatnonzero(weights[: lifts.shape[1]] > 1e-9), duals

    def _make_master(self, lifts: FloatArray, costs: FloatArray, max_cost: float) -> MasterProblem:
        """Make the linear program of columns with a row for the cost, and a column for what is left."""
        worths = self.program.space.column_values(lifts)
        n = len(lifts)
        if self.program.cost.per_outcome:
            costs = np.zeros_like(costs)
        rows = np.vstack([lifts, costs / max_cost])
        left = np.append(np.zeros(n), 1.0)[:, None]
        return MasterProblem(np.hstack([rows, left]), np.append(worths, 0.0), self.program.scale)

    def _solve_pool(self) -> tuple[float, IntArray, FloatArray]:
        """Solve the linear program over columns within the cost, and keep those near to being used."""
        cost = self.program.cost
        n = self.program.prior.size
        costs = cost.evaluate(self.pool)
        value, used, duals = self._solve_over(self.pool, costs, cost.usable_cost)
        price = 0.0 if cost.per_outcome else float(duals[-1]) / cost.usable_cost
        reduced = self.program.space.column_values(self.pool) - duals[:n] @ self.pool
        reduced = reduced - price * costs
        reduced[used] = np.inf
        kept = np.argsort(-reduced, kind="stable")[: 400 * n]
        self.pool = self.pool[:, kept]
        return value, np.arange(len(used)), duals

    def _add_to_pool(self, lifts: FloatArray) -> None:
        """Add columns, mixed with the constant as far as a limit on each column needs."""
        if self.program.cost.per_outcome:
            lifts = self._pull_within_cost(lifts)
        # the constant column comes with every batch: each column is kept once
        known = {column.tobytes() for column in self.pool.T}
        new = [place for place, column in enumerate(lifts.T) if column.tobytes() not in known]
        self.pool = np.hstack([self.pool, lifts[:, new]])

    def _pull_within_cost(self, lifts: FloatArray) -> FloatArray:
        """Mix columns with the constant, as far as the limit on each needs.

        The constant on the letters of a column leaves its zeros as they are, where that is within the limit.
        """
        cost = self.program.cost
        constant = float(cost.evaluate(np.ones((len(lifts), 1)))[0])
        support = (lifts > 0).astype(float)
        still = support / (self.program.prior.pmf @ support)
        still[:, cost.evaluate(still) > 0.5 * (constant + cost.usable_cost)] = 1.0
        # the cost is convex: c(a + s (lam - a)) <= (1 - s) c(a) + s c(lam)
        least = cost.evaluate(still)
        own = cost.evaluate(lifts)
        room = np.maximum(cost.usable_cost - least, 0.0)
        over = np.maximum(own - least, room)
        shares = np.divide(room, over, out=np.zeros_like(over), where=over > 0)
        return np.asarray(
            np.where(own <= cost.usable_cost, lifts, still + shares * (lifts - still))
        )

    def _find_slopes(self, polytope: CostPolytope, columns: FloatArray) -> FloatArray:
        """Find the linear costs at columns that are not among those of the polytope."""
        cost = self.program.cost
        linear = np.vstack([np.diag(cost.unit_costs), polytope.slopes])
        known = (linear @ columns).max(axis=0)
        true = cost.evaluate(columns)
        short = columns[:, known < true * (1 - 1e-10)]
        if not short.shape[1]:
            return np.empty((0, len(columns)))
        slopes = cost.shrink_slopes(cost.compute_slopes(short))
        _, first = np.unique(slopes.round(9), axis=0, return_index=True)
        return slopes[np.sort(first)]

    def solve_final(self) -> tuple[FloatArray, FloatArray]:
        """Return the columns in the pool, and their weights in the best mechanism."""
        cost = self.program.cost
        master = self._make_master(self.pool, cost.evaluate(self.pool), cost.usable_cost)
        _, weights, _ = master.solve()
        return self.pool, weights[: self.pool.shape[1]]


def search_columns(
    program: ColumnCostDesign, options: MethodOptions, start: FloatArray | None = None
) -> FoundColumns:
    """Search for the best mechanism and a bound from linear costs below the cost.

    Args:
        program: the design.
        options: limits of the search.
        start: (K, N) linear costs to begin with, such as those of another level.
    """
    begin = time.perf_counter()
    rounds = _CostRounds(
        program, options, np.empty((0, program.prior.size)) if start is None else start
    )
    ending = rounds.run()
    lifts, weights = rounds.solve_final()
    return FoundColumns(
        lifts=lifts,
        weights=weights,
        multipliers=rounds.multipliers,
        price=rounds.price,
        slopes=rounds.slopes,
        ending=ending,
        rounds=rounds.rounds,
        iterations=rounds.iterations,
        seconds=time.perf_counter() - begin,
    )
