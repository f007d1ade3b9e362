"""Output generation for large designs under PML: few of many outputs are used, and those are found by prices.

The multipliers of a program with some of the outputs bound that with all of them: with the row prices rho,
a column at output y gains at most the mean of `g[:,y] - rho` over its largest mass e^-epsilon, which is a
sort. A smoothed dual program finds prices that leave few outputs to begin with. Outputs whose price is above
that of the current ones come in; where none is, the optimum is found.
"""

from __future__ import annotations

import math
import time

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.data.prior import conditional_value_at_risk
from pmlopt.errors import MechanismError
from pmlopt.model.utility.linear import build_best_constant
from pmlopt.programs.exact.rounding import approximate_repair
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers.solver_result import (
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
    limit_threads,
)
from pmlopt.solvers.structured.block_program import BlockLP
from pmlopt.solvers.structured.interior_point import GapGoal, follow_central_path
from pmlopt.solvers.structured.iterates import Iterate, build_start
from pmlopt.solvers.structured.smoothed_prices import find_row_prices


def price_outputs(
    p: FloatArray, gains: FloatArray, rho: FloatArray, exp_neg_epsilon: float
) -> FloatArray:
    """Compute (M,) the most that a column at each output gains over the row prices rho."""
    n, m = gains.shape
    prices = np.empty(m)
    size = max(1, 2**20 // n)  # a few arrays of 8 MB
    for first in range(0, m, size):
        some = slice(first, first + size)
        prices[some] = conditional_value_at_risk(p, gains[:, some] - rho[:, None], exp_neg_epsilon)
    return prices


class _OutputPool:
    """The outputs that are in the program, with the best mechanism and multipliers so far.

    Args:
        program: the design.
        task: the same as numbers.
        exp_neg_epsilon: the mass on which the largest entries of a column lie.
        deadline: of the solve.
    """

    def __init__(
        self, program: LinearDesign, task: BlockLP, exp_neg_epsilon: float, deadline: Deadline
    ) -> None:
        self.program, self.task, self.mass = program, task, exp_neg_epsilon
        self.gains, self.p = program.centered_gains, program.prior.pmf
        start = build_best_constant(program.prior.probabilities, self.gains)
        self.matrix, self.value = start, program.columns.compute_expectation(self.gains, start)
        scale = float(np.ptp(self.gains)) or 1.0
        rows = find_row_prices(self.p, self.gains / -scale, exp_neg_epsilon, deadline)
        self.rho = -scale * rows.prices
        self.bound = float(self.p @ self.rho - scale * rows.values.min())
        self.kept: BoolArray = start.any(axis=0) | rows.likely
        if self.kept.mean() > 0.4:  # prices that are hardly told apart: a second program costs more
            self.kept[:] = True

    @property
    def gap(self) -> float:
        """Return the gap between the best bound and the best value."""
        return self.bound - self.value

    def solve(self, accuracy: float, options: MethodOptions) -> tuple[FloatArray, int]:
        """Solve the program of the outputs that are kept, and update matrix, value and bound.

        Returns:
            (M,) the prices of all outputs under its multipliers, and the number of iterations.
        """
        program, small = self.program, self.task.select_columns(self.kept)
        gains = np.ascontiguousarray(self.gains[:, self.kept])

        def certify_gap(point: Iterate) -> float:
            matrix = self._repair(point)
            if matrix is None:
                return math.inf
            bound = program.columns.unrounded_bound(
                gains, small.to_certificate_multipliers(point.rows)
            )
            gain = program.columns.compute_expectation(gains, matrix)
            return abs(bound - gain) / small.scale

        goal = GapGoal(certify_gap, accuracy / small.scale, options.deadline)
        ending = follow_central_path(small, build_start(small), goal)
        matrix = self._repair(ending.point)
        rho = small.to_certificate_multipliers(ending.point.rows)
        prices = price_outputs(self.p, self.gains, rho, self.mass)
        bound = float(self.p @ rho + prices.max())
        if bound < self.bound:
            self.bound, self.rho = bound, rho
        value = -math.inf if matrix is None else program.columns.compute_expectation(gains, matrix)
        if matrix is not None and value > self.value:
            self.value, self.matrix = value, np.zeros(self.gains.shape)
            # the repair of the certificate starts from the solver's own entries
            self.matrix[:, self.kept] = ending.point.mechanism
        return prices, ending.iterations

    def _repair(self, point: Iterate) -> FloatArray | None:
        """Return the mechanism near an iterate; None far from any."""
        try:
            return approximate_repair(self.program.prior, self.program.privacy, point.mechanism)
        except MechanismError:
            return None

    def add_outputs(self, prices: FloatArray, accuracy: float) -> bool:
        """Add the outputs that are worth more, and all where these are many; return whether there are any."""
        missing = ~self.kept & (prices > float(prices[self.kept].max()) + accuracy)
        self.kept |= missing
        # where many are alike, each further program calls for others
        if missing.sum() > 0.2 * self.kept.sum():
            self.kept[:] = True
        return bool(missing.any())


def generate_outputs(
    program: LinearDesign, task: BlockLP, exp_neg_epsilon: float, options: MethodOptions
) -> SolverResult:
    """Solve a design under PML to the requested certified gap, with outputs added as they are needed.

    Args:
        program: the design, without added constraints.
        task: the same as numbers.
        exp_neg_epsilon: of the bound.
        options: what was required; when time is over, the best mechanism so far is returned.
    """
    begin = time.perf_counter()
    # half of the allowed gap: repair and rounding take a part of the rest
    allowed = program.compute_allowed_gap(options.tolerance) / 2
    with limit_threads():
        pool = _OutputPool(program, task, exp_neg_epsilon, options.deadline)
        ready = time.perf_counter()
        rounds = 0
        iterations = 0
        message = ""
        while not message:
            prices, steps = pool.solve(allowed, options)
            iterations, rounds = iterations + steps, rounds + 1
            if pool.gap <= allowed:
                message = "no output is worth more than the tolerance"
            elif options.deadline.expired:
                message = "time limit"
            elif rounds == 60:  # one or two are usual
                message = "too many rounds"
            elif not pool.add_outputs(prices, allowed / 2):
                message = "no output would improve the mechanism"
    used = f"{message} after {rounds} rounds, with {int(pool.kept.sum())} of {task.costs.shape[1]} outputs"
    point = PrimalDualPoint(pool.matrix, pool.rho)
    return SolverResult.from_point(point, used, pool.gap <= allowed, iterations, begin, ready)
