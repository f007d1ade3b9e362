"""Sub-convex utilities over non-polyhedral sets of priors: cutting planes on the worst priors."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.model.uncertainty.columns import MAX_CUT_VERTICES, ColumnCone, to_mean_one
from pmlopt.model.uncertainty.cut_polytopes import CutCube
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.program import MethodError
from pmlopt.programs.subconvex.column_generation import reduce_outputs
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import TIME_LIMIT, MethodOptions, PrimalDualPoint, SolverResult

METHOD_NAME = "prior-cuts"


def has_curved_set(program: ColumnDesign) -> bool:
    """Return whether the set of priors is not a polytope and can be handled by prior cuts."""
    cone = program.space.allowed
    return (
        isinstance(cone, ColumnCone) and cone.relaxed is not None and cone.member_cube is not None
    )


def pull_into_cone(cone: ColumnCone, lifts: FloatArray) -> FloatArray:
    """Mix (N, K) columns with the constant until they are feasible for the whole set of priors.

    Since `w(1 - s + s v) = 1 - s + s w(v)`, the largest share s of a column is a quotient.
    """
    assert cone.relaxed is not None
    short = cone.exp_neg_epsilon * lifts.max(axis=0) - cone.relaxed.min_mean(lifts)
    room = 1 - cone.exp_neg_epsilon
    shares = room / (room + np.maximum(short, 0.0))
    return np.asarray(1 + shares * (lifts - 1))


@dataclass(eq=False)
class _CutRounds:
    """The state of the cutting-plane rounds: priors, feasible columns and best bounds.

    The extreme columns that some priors allow are a relaxation, whose linear program bounds the utility.
    Mixed with the constant they are allowed by the whole set, and the linear program of these is a mechanism.
    The worst priors of the columns that both use come in.
    """

    program: ColumnDesign
    options: MethodOptions
    cone: ColumnCone
    upper: float = np.inf
    rounds: int = 0
    iterations: int = 0
    best_laws: FloatArray | None = None
    multipliers: FloatArray | None = None
    pool: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    cube: CutCube | None = None
    is_full: bool = False

    def run(self) -> tuple[str, PrimalDualPoint]:
        """Run rounds until the gap is closed or a limit is reached."""
        p = self.program.prior.pmf
        space = self.program.space
        n = self.program.prior.size
        allowed = 0.9 * self.program.compute_allowed_gap(self.options.tolerance)
        self.pool = np.ones((n, 1))
        self.cube = self.cone.member_cube
        while True:
            assert self.cube is not None
            listed = to_mean_one(p, self.cube.vertices.T)
            self.rounds += 1
            relaxed = np.hstack([np.ones((n, 1)), listed])
            bound, used, duals = self._solve_over(relaxed)
            if bound < self.upper:
                self.upper = bound
                self.multipliers = duals / p
                self.best_laws = self.cone.laws
            near = space.column_values(relaxed) - duals @ relaxed
            # columns far below the bound are of no use to a mechanism near it
            chosen = np.argsort(-near, kind="stable")[: 200 * n]
            self.pool = np.hstack([self.pool, pull_into_cone(self.cone, relaxed[:, chosen])])
            value, kept, costs = self._solve_over(self.pool)
            self._prune_pool(kept, costs)
            if self.upper - value <= allowed:
                ending = "gap reached"
                break
            if self.options.deadline.expired:
                ending = TIME_LIMIT
                break
            if self.rounds >= 60:  # the best mechanism is then returned with its gap
                ending = "no proof within the rounds"
                break
            if not self._add_laws(relaxed[:, used]):
                ending = (
                    "the extreme columns are too many to list" if self.is_full else "no prior cuts"
                )
                break
        if self.best_laws is None:
            raise MethodError(ending)
        lifts, weights = self._final_columns()
        return ending, PrimalDualPoint(lifts * weights, self.multipliers)

    def _solve_over(self, lifts: FloatArray) -> tuple[float, BoolArray, FloatArray]:
        """Solve the LP over columns; return value, used columns and multipliers."""
        worths = self.program.space.column_values(lifts)
        master = MasterProblem(lifts, worths, self.program.scale)
        value, weights, duals = master.solve(self.options.deadline)
        self.iterations += master.iterations
        return value, weights > 1e-9, duals

    def _prune_pool(self, used: BoolArray, costs: FloatArray) -> None:
        """Prune the column pool to used columns and those of small reduced cost."""
        reduced = self.program.space.column_values(self.pool) - costs @ self.pool
        reduced = np.where(used, np.inf, reduced)
        self.pool = self.pool[:, np.argsort(-reduced, kind="stable")[: 400 * len(self.pool)]]

    def _add_laws(self, columns: FloatArray) -> bool:
        """Add the worst priors of columns as cuts, as far as the limit allows; return whether any is new."""
        assert self.cube is not None
        known = len(self.cone.laws)
        laws, self.cube, self.is_full = self.cone.add_deepest_cuts(
            self.cube, columns, MAX_CUT_VERTICES
        )
        if len(laws) == known:
            return False
        self.cone = ColumnCone.from_members(
            _get_whole_set(self.cone), self.cone.exp_neg_epsilon, laws
        )
        return True

    def _final_columns(self) -> tuple[FloatArray, FloatArray]:
        """Return the columns and weights of the best mechanism, reduced to few outputs."""
        worths = self.program.space.column_values(self.pool)
        master = MasterProblem(self.pool, worths, self.program.scale)
        _, weights, duals = master.solve()
        return reduce_outputs(self.pool, worths, duals, weights)


def _get_whole_set(cone: ColumnCone) -> PriorSet:
    """Return the full set of priors that a cone approximates."""
    assert cone.relaxed is not None
    return cone.relaxed


def cut_by_worst_priors(
    program: ColumnDesign, options: MethodOptions
) -> tuple[ColumnDesign, SolverResult]:
    """Alternate the LP over some priors with the search of worst priors, until the gap is closed.

    Returns:
        The program over the priors that prove the bound, and the mechanism with its multipliers.
    """
    begin = time.perf_counter()
    cone = program.space.allowed
    assert isinstance(cone, ColumnCone)
    rounds = _CutRounds(program, options, cone)
    ending, point = rounds.run()
    cone = ColumnCone.from_members(_get_whole_set(cone), cone.exp_neg_epsilon, rounds.best_laws)
    message = f"{ending}, {rounds.rounds} rounds, {len(cone.laws)} priors"
    result = SolverResult.from_point(
        point, message, ending != TIME_LIMIT, rounds.iterations, begin, begin
    )
    return replace(
        program, space=replace(program.space, allowed=cone, laws=rounds.best_laws)
    ), result
