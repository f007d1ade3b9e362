"""Column generation: a restricted master problem, and pricing of new columns."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.programs.subconvex.columns import ColumnBatch
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.split_pricing import SplitPricer
from pmlopt.programs.subconvex.tangents import TangentPricer
from pmlopt.solvers.orthonormal_rows import solve_with_orthonormal_rows
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import (
    FACTOR_MARGIN_RTOL,
    TIME_LIMIT,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
)

MAX_CORNERS, MAX_REWEIGHTINGS = 8, 3
"""Corners of the optimal face that are looked at, at random costs, and how often costs follow the weights."""


def reduce_outputs(
    lifts: FloatArray, worths: FloatArray, duals: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Reduce an optimal solution to a mechanism with few outputs.

    Every optimal mechanism over these columns uses only those of reduced cost zero. Of the mechanisms that
    are corners of that face some are looked at, at random costs that are raised for columns of small
    weights, so that on large alphabets it is the fewest found.

    Args:
        lifts: (N, K) columns of mean one.
        worths: (K,).
        duals: (N,) optimal multipliers of `lifts q = 1`.
        weights: (K,) optimal weights.

    Raises:
        ArithmeticError: all weights are zero.
    """
    # columns of mean one can have entries of 1e6: scaled to peak 1 the matrix is conditioned
    peaks = lifts.max(axis=0)
    chosen, kept = _reduce_scaled(lifts / peaks, worths / peaks, duals, weights * peaks, peaks)
    return lifts[:, chosen], kept / peaks[chosen]


def _reduce_scaled(
    lifts: FloatArray, worths: FloatArray, duals: FloatArray, weights: FloatArray, peaks: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Reduce the outputs of an optimal solution with scaled columns; return indices and weights."""
    used = np.flatnonzero(weights > 1e-11)
    if len(used) > len(lifts):  # an interior point: take a vertex of what it uses
        used = used[np.flatnonzero(MasterProblem(lifts[:, used], worths[used]).solve()[1] > 1e-11)]
    chosen, polished = _polish_weights(lifts, used)
    # complementary slackness: an optimal mixture uses columns of reduced cost zero only
    reduced = duals @ lifts - worths
    if _max_row_error(lifts[:, chosen], polished) > 1e-12:
        chosen, polished = _resolve_rows(lifts, worths, reduced, chosen, polished)
    # columns whose reduced cost is below rounding are optimal
    face = np.flatnonzero(reduced <= 1e-12 * max(1.0, float(np.abs(worths).max())))
    # a hundred columns of the optimal face, those of the least reduced costs, are enough to choose from
    # the columns in use stay in, so that what is found is never worse than the start
    face = np.union1d(chosen, face[np.argsort(reduced[face], kind="stable")[:100]])
    # q[y] peak[y] <= 1 by its row, and the q sum to one: no fewer outputs than the least peak
    least = math.ceil(float(peaks[face].min()) * (1 - 1e-9))
    # on more than 30 letters a vertex of the master is used as it is
    if len(chosen) <= least or len(face) == len(chosen) or len(lifts) > 30:
        return chosen, polished
    fewer = _search_fewer_outputs(lifts[:, face], len(chosen) - 1)
    if fewer is None:
        return chosen, polished
    found, weights_found = _polish_weights(lifts, face[fewer])
    if len(found) < len(chosen) and _max_row_error(lifts[:, found], weights_found) <= 1e-12:
        return found, weights_found
    return chosen, polished


def _polish_weights(lifts: FloatArray, used: IntArray) -> tuple[IntArray, FloatArray]:
    """Recompute weights so that row sums are exact to rounding; return columns with positive weight."""
    if not len(used):
        raise ArithmeticError("no column has a weight")
    weights = np.asarray(
        np.linalg.lstsq(lifts[:, used], np.ones(len(lifts)), rcond=None)[0], dtype=float
    )
    # least squares ignores the signs; nnls is slower, but its weights are feasible
    if (weights < 0).any() or _max_row_error(lifts[:, used], weights) > 1e-12:
        weights = optimize.nnls(lifts[:, used], np.ones(len(lifts)))[0]
    kept = np.flatnonzero(weights > 0)
    return used[kept], weights[kept]


def _resolve_rows(
    lifts: FloatArray, worths: FloatArray, reduced: FloatArray, used: IntArray, weights: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Solve again for weights whose row sums are exact to rounding, over columns of small reduced costs.

    Args:
        lifts: (N, K) scaled columns.
        worths: (K,) of them.
        reduced: (K,) their reduced costs.
        used: the columns of an almost feasible solution.
        weights: of these.

    Returns:
        Columns and their weights; those that were given where the new ones are no better.
    """
    near = np.union1d(used, np.argsort(reduced, kind="stable")[:1_000])
    try:
        mixed, _ = solve_with_orthonormal_rows(lifts[:, near], worths[near])
        found, made = _polish_weights(lifts, near[mixed > 1e-11])
    except ArithmeticError:
        return used, weights
    better = _max_row_error(lifts[:, found], made) < _max_row_error(lifts[:, used], weights)
    return (found, made) if better else (used, weights)


def _max_row_error(lifts: FloatArray, weights: FloatArray) -> float:
    """Compute the largest deviation of the row sums from one."""
    return float(np.abs(lifts @ weights - 1).max())


def _search_fewer_outputs(lifts: FloatArray, at_most: int) -> IntArray | None:
    """Search a feasible mechanism with at most `at_most` outputs; None without one."""
    master = MasterProblem(lifts, np.zeros(lifts.shape[1]))
    rng = np.random.default_rng(0)
    best = None
    for _ in range(MAX_CORNERS):
        # a random linear cost is minimised at a vertex of the face, which has few outputs
        costs: FloatArray = np.asarray(rng.random(lifts.shape[1]))
        for _ in range(MAX_REWEIGHTINGS):
            try:
                weights = master.solve(costs=-costs)[1]
            except ArithmeticError as cause:
                raise_if_strict(cause)
                return best
            used = np.flatnonzero(weights > 1e-9)
            if len(used) <= at_most:
                best = used
                at_most = len(used) - 1
            # reweighted l1: small weights become dear, and leave the support in the next solve
            costs = costs / (weights + 1 / lifts.shape[1])
            costs /= costs.max()
    return best


STAGE_KNOT_COUNTS = (2, 6, 14, 32)
"""Knots of the multipliers over the prior in the first stages, where relaxed columns come first."""


def generate_columns(program: ColumnDesign, options: MethodOptions, warm: bool) -> SolverResult:
    """Solve by column generation, starting from the program's declared columns.

    Every round solves the master, whose value is that of a mechanism, and prices at its multipliers rho:
    `<p, rho> + max (mu(lam) - <p rho, lam>)` bounds every mechanism. It ends at the gap that is
    requested, or when nothing improves any more.

    Source: Gilmore and Gomory, A linear programming approach to the cutting-stock problem, Oper. Res. 9
    (1961).
    """
    begin = time.perf_counter()
    work = _ColumnGeneration(program, options, begin)
    compiled = time.perf_counter()
    try:
        ending = work.run()
    except (
        ArithmeticError
    ) as cause:  # the mechanism of the round before, and its bound, are still good
        ending = str(cause)
    master = work.master
    lifts = work.lifts
    weights = work.weights
    # without multipliers no face is known, so that the columns are kept as they are
    if work.duals is not None:
        lifts, weights = reduce_outputs(lifts, work.worths, work.duals, weights)
    message = f"{ending}, {work.rounds} rounds, {len(master.worths)} columns, priced by {work.pricer.name}"
    point = PrimalDualPoint(lifts * weights, work.multipliers, work.bound)
    is_finished = ending != TIME_LIMIT
    return SolverResult.from_point(
        point, message, is_finished, master.iterations, begin, compiled, warm
    )


class _ColumnGeneration:
    """The state of a column generation: the restricted master, the best bound and its multipliers."""

    RANDOM_STARTS_PER_LETTER: ClassVar[int] = 4
    """Random columns to start from, for each letter, where pricing is a search."""

    SMOOTHING_WEIGHT: ClassVar[float] = 0.7
    """Weight of the best multipliers next to the master's [wentges1997weighted]."""

    def __init__(self, program: ColumnDesign, options: MethodOptions, begin: float) -> None:
        self.program = program
        self.deadline = options.deadline
        # a tenth of the gap is left for repair and for rounding of the bound
        self.allowed = 0.9 * program.compute_allowed_gap(options.tolerance)
        self.pricer = program.space.choose_pricer()
        self.master = MasterProblem(program.lifts, program.column_values, program.scale)
        self.rounds = 0
        self._add_columns(
            self.pricer.build_seeds(self.RANDOM_STARTS_PER_LETTER * program.prior.size)
        )
        self.bound, self.multipliers = program.space.closed_bound
        # the constant column is feasible at once: a mechanism is known even if time runs out
        self.lifts = np.ones((program.prior.size, 1))
        self.weights = np.ones(1)
        self.worths = np.full(1, program.space.constant_utility)
        self.value = program.space.constant_utility
        self.duals: FloatArray | None = None
        self.relaxed: tuple[FloatArray, FloatArray] | None = None

    def run(self) -> str:
        """Alternate master and pricing until the gap is closed or a limit is reached; return how it ended."""
        if self._mix_at_once():
            return "gap reached"
        smoothing = 0.0
        if isinstance(self.pricer, TangentPricer):
            self._run_stages(self.pricer)
            smoothing = self.SMOOTHING_WEIGHT
        # smoothed multipliers can misprice: the loop ends only after a round without smoothing
        while True:
            self.rounds += 1
            self.value, self.weights, self.duals = self.master.solve(self.deadline)
            self.lifts = self.master.lifts
            self.worths = self.master.worths
            if self._is_closed():
                return "gap reached"
            if self.deadline.expired:
                return TIME_LIMIT
            # after 500 rounds the current mechanism is returned with its gap
            if self.rounds > 500:
                return "no proof within the rounds"
            if self._price_once(smoothing) or self._is_closed():
                continue
            if smoothing:
                # below 0.2 the master's multipliers are used without smoothing
                smoothing = 0.7 * smoothing if smoothing > 0.2 else 0.0
            elif not (isinstance(self.pricer, SplitPricer) and self._relax_once(self.pricer)):
                return "gap reached" if self._is_closed() else "no column improves"

    def _is_closed(self) -> bool:
        return self.bound - self.value <= self.allowed

    def _mix_at_once(self) -> bool:
        """Mix columns that are known from the start; return whether that closes the gap."""
        if isinstance(self.pricer, CountPricer):
            return self._mix_count_columns(self.pricer)
        return isinstance(self.pricer, SearchPricer) and self._mix_first_columns()

    def _mix_count_columns(self, pricer: CountPricer) -> bool:
        """Mix the columns of least loss for an integer-count prior; return whether that is proved optimal.

        What they are worth beyond their cost is next to the same for all, so that their linear program
        requires for little more than weights that meet the rows.
        """
        p = self.program.prior.pmf
        space = self.program.space
        # the seeds may close the gap, and then no mixture is needed
        if self.bound - self.master.solve(self.deadline)[0] <= self.allowed:
            return False
        try:
            known = pricer.mix_least_loss(self.RANDOM_STARTS_PER_LETTER * len(p))
            if known is None:
                return False
            columns, multipliers = known
            self._add_columns([columns])
            costs = p * multipliers
            lifts = columns.drop_duplicates(p).build_lifts(p, FACTOR_MARGIN_RTOL)
            worths = space.column_values(lifts)
            # subtracting the common costs avoids cancellation: what is left differs by the loss
            beyond = worths - costs @ lifts
            # what a mixture of all of these loses is a part of what is allowed
            tight = np.flatnonzero(beyond >= beyond.max() - 0.1 * self.allowed)
            weights = np.zeros(len(worths))
            some = self._mix_by_least_squares(lifts[:, tight])
            if some is None:
                master = MasterProblem(lifts, beyond - beyond.max(), self.program.scale)
                _, weights, _ = master.solve(self.deadline)
            else:
                weights[tight] = some
        except ArithmeticError:  # there is no mechanism among them
            return False
        self.value = float(worths @ weights)
        base = float(costs.sum())
        upper = base + pricer.bound_reduced_values(
            multipliers, self.value - base + 0.5 * self.allowed, self.deadline
        )
        if upper < self.bound:
            self.bound = upper
            self.multipliers = multipliers
        # all of them tie: a search for fewer outputs would take longer than all else
        used = weights > 0
        self.lifts = lifts[:, used]
        self.worths = worths[used]
        self.weights = weights[used]
        self.duals = costs
        return self._is_closed()

    def _mix_first_columns(self) -> bool:
        """Mix the first columns without a linear program; return whether that closes the gap.

        Those of a box near its capacity are worth what the closed bound allows, so that all weights that meet
        the rows are optimal.
        """
        p = self.program.prior.pmf
        master = self.master
        costs = p * self.multipliers
        # what a column is worth less than the bound allows at these prices
        lost = self.bound - costs.sum() - (master.worths - costs @ master.lifts)
        tight = np.flatnonzero(lost <= 0.5 * self.allowed)
        lifts = master.lifts[:, tight]
        weights = self._mix_by_least_squares(lifts)
        if weights is None:
            return False
        used = weights > 0
        self.lifts = lifts[:, used]
        self.worths = master.worths[tight][used]
        self.weights = weights[used]
        self.value = float(self.worths @ self.weights)
        return self._is_closed()

    def _mix_by_least_squares(self, lifts: FloatArray) -> FloatArray | None:
        """Find (K,) weights that meet the rows, in a fiftieth of the time of a linear program.

        Returns:
            None where there are none, or too few columns, or a linear program is as fast.
        """
        letters, count = lifts.shape
        # on up to 100 letters the simplex takes a tenth of a second, and finds the best mixture of them
        if letters <= 100 or count <= letters:
            return None
        # each of N steps updates a factor of N rows and K columns
        if self.deadline.expired_for(-3e-9 * letters**2 * count):
            return None
        peaks = lifts.max(axis=0)
        try:
            weights = optimize.nnls(lifts / peaks, np.ones(letters))[0] / peaks
        except RuntimeError:  # it came to no end within three steps a column
            return None
        return None if _max_row_error(lifts, weights) > 1e-12 else np.asarray(weights)

    def _price_once(self, smoothing: float) -> bool:
        """Price once at (smoothed) master multipliers; return whether columns were added."""
        p = self.program.prior.pmf
        assert self.duals is not None
        # the duals of the rows carry a factor p[x]; divided by it they are prices per lift
        rho = smoothing * self.multipliers + (1 - smoothing) * self.duals / p
        base = float(p @ rho)
        # half of the allowed gap is for columns that improve too little to be worth a round
        least = self.value - base + 0.5 * self.allowed
        # at most 400 columns of a family in one round
        priced = self.pricer.price_columns(rho, 400, least, self.deadline)
        # weak duality: for every rho this is a bound, so that the least of all rounds is kept
        if base + priced.upper_bound < self.bound:
            self.bound = base + priced.upper_bound
            self.multipliers = rho
        if self._is_closed() or priced.best_value <= least:
            return False
        # columns good at smoothed multipliers may be useless at the master's: those are dropped
        return self._add_columns(priced.columns, self.duals if smoothing else None)

    def _run_stages(self, pricer: TangentPricer) -> None:
        """Lower the bound by relaxed columns, with multipliers restricted to piecewise-linear functions."""
        p = self.program.prior.pmf
        scale = self.program.scale
        for knots in STAGE_KNOT_COUNTS:
            # a stage has at most 200 rounds
            self._relax_in_basis(
                pricer, _build_hat_functions(p, knots), 200, 10.0 ** -(3 + knots // 12) * scale, 0.0
            )
        # columns within 1e-4 of the range below the bound follow the relaxed ones
        near = self.bound - float(p @ self.multipliers) - 1e-4 * scale
        # at most 20,000 columns follow the relaxed ones
        self._add_columns(pricer.list_near_optimal(self.multipliers, 20_000, near, self.deadline))

    def _relax_once(self, pricer: SplitPricer) -> bool:
        """Lower the bound by one round of relaxed pricing; return whether new columns were found."""
        if self.relaxed is not None or not pricer.splits:
            return False
        every = np.eye(self.program.prior.size)
        # at most 40 rounds with relaxed columns that are found by a search
        # the relaxed columns may leave 5 % of the gap
        return self._relax_in_basis(pricer, every, 40, self.allowed, 0.05)

    def _relax_in_basis(
        self,
        pricer: SplitPricer | TangentPricer,
        basis: FloatArray,
        rounds: int,
        digits: float,
        gap_fraction: float,
    ) -> bool:
        """Lower the bound by relaxed pricing with multipliers in the span of a basis.

        Args:
            pricer: finds them.
            basis: (N, D) non-negative, with rows that sum to one: sums of rows with these weights are kept.
            rounds: at most so many.
            digits: the part of the bound that may remain.
            gap_fraction: the fraction of the gap that may remain, too.

        Returns:
            Whether columns near to them are new to the master.
        """
        # sums of rows relax the rows: fewer constraints, and a master that moves less
        p = self.program.prior.pmf
        sizes = basis.sum(axis=0)
        lifts, worths = self.relaxed or (self.master.lifts, self.master.worths)
        master = MasterProblem((basis.T @ lifts) / sizes[:, None], worths, self.program.scale)
        grown = False
        smoothing = self.SMOOTHING_WEIGHT
        here = self.multipliers
        for _ in range(rounds):
            value, _, duals = master.solve(self.deadline)
            # multipliers of the summed rows, spread over the letters by the (N, D) basis
            here = basis @ (duals / sizes) / p
            if (
                self.bound - max(value, self.value)
                <= max(digits, gap_fraction * (self.bound - self.value))
                or self.deadline.expired
            ):
                break
            rho = smoothing * self.multipliers + (1 - smoothing) * here
            base = float(p @ rho)
            # the search of relaxed columns may leave a tenth of the gap
            found = pricer.price_relaxed(
                rho, value - base, 0.1 * (self.bound - value), self.deadline
            )
            if base + found.upper_bound < self.bound:
                self.bound = base + found.upper_bound
                self.multipliers = rho
            grown |= self._add_columns(found.nearby_columns)
            gained = found.worths - (p * here) @ found.lifts
            # a round adds at most 30 relaxed columns
            best = np.argsort(-gained, kind="stable")[:30]
            best = best[gained[best] > 0]
            # where no column gains at the master's own multipliers, smoothing was what hid it
            smoothing = self.SMOOTHING_WEIGHT if len(best) else 0.0
            master.add_columns(
                (basis.T @ found.lifts[:, best]) / sizes[:, None], found.worths[best]
            )
            lifts = np.hstack([lifts, found.lifts[:, best]])
            worths = np.append(worths, found.worths[best])
        # the constant column 0 keeps the next master feasible
        kept = np.union1d(0, np.argsort((p * here) @ lifts - worths, kind="stable")[: 4 * len(p)])
        self.relaxed = lifts[:, kept], worths[kept]
        return grown

    def _add_columns(self, batches: Iterable[ColumnBatch], duals: FloatArray | None = None) -> bool:
        """Add new columns to the master; with multipliers, only those of positive reduced value.

        Returns:
            Whether there were any.
        """
        p = self.program.prior.pmf
        grown = False
        for batch in batches:
            fresh = self.master.select_new(
                batch.drop_duplicates(p).build_lifts(p, FACTOR_MARGIN_RTOL)
            )
            # the worth is that of the column with its margin, not of the extreme one near it
            worths = self.program.utility.column_values(p, fresh)
            if duals is not None:
                good = worths - duals @ fresh > 0
                fresh = fresh[:, good]
                worths = worths[good]
            if fresh.shape[1]:
                self.master.add_columns(fresh, worths)
                grown = True
        return grown


def _build_hat_functions(p: FloatArray, knots: int) -> FloatArray:
    """Build (N, D) piecewise-linear hat functions of p with the given knots."""
    at = np.unique(np.sort(p)[np.round(np.linspace(0, len(p) - 1, min(knots, len(p)))).astype(int)])
    return np.array([np.interp(p, at, one) for one in np.eye(len(at))]).T
