"""The interior point by pairs of letters, as a method for linear designs such as those of metric privacy.

Worse on random points of a plane: constraints added one after another (eight times as long at 64 points), a
first-order method with restarts (7 % off after 4,000 iterations at 100), all pairs from the beginning (two to
five times the rows), and Cholesky factors in place of sums (the gap stays at 1e-5).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.model.privacy.metric_privacy import measure_detours
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.privacy.requirement import read_pair_weights
from pmlopt.programs.exact.envelope_repair import lower_envelope, pair_exponents
from pmlopt.programs.linear.peak_mixtures import (
    choose_search_seconds,
    find_peak_mixture,
    limit_search,
)
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import (
    TIME_LIMIT,
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    SolverResult,
    limit_threads,
    tighten_factor,
)
from pmlopt.solvers.structured.pair_columns import PairEnding, PairLP, PairRows, solve_pair_lp
from pmlopt.solvers.structured.pair_pricing import price_columns

MAX_DETOUR_FRACTION = 0.05
"""A pair is left out at first where a way over a third letter is longer by no more than this share."""


def solve_pairs(program: LinearDesign, ratios: RatioBounds, options: MethodOptions) -> SolverResult:
    """Solve a design under bounds on pairs of letters to the requested certified gap.

    Args:
        program: the design.
        ratios: bounds on pairs of letters, above 0 nats.
        options: what was required.
    """
    begin = time.perf_counter()
    # after the last step the mechanism is extended, repaired, proved and compared with one of columns by
    # formula: two dozen passes over all pairs on all outputs, of 6e-8 s each together, and a search
    passes = 6e-8 * ratios.size * program.table.size
    deadline = options.deadline.earlier(passes + choose_search_seconds(program))
    if deadline.expired:
        raise MethodError(f"{TIME_LIMIT}: the proof of a mechanism takes longer than there is")
    costs = -program.prior.pmf[:, None] * program.centered_gains
    scale = float(np.abs(costs).max()) or 1.0
    pairs = _find_tightest_bounds(ratios)
    exponents = pair_exponents(program.prior, program.privacy)
    assert exponents is not None
    factors, first = _read_factors(ratios, pairs)
    table = _CostTable(program, costs / scale, exponents, factors, first, options.tolerance)
    if not table.has_mutual_rows():
        raise MethodError("a letter has no bound with the letters of least loss for an output")
    # half of the allowed gap: repair and rounding take a part of the rest
    allowed = program.compute_allowed_gap(options.tolerance) / scale / 2
    ready = time.perf_counter()
    # threads that wait for one another cost more than the products of many small matrices
    with limit_threads():
        ending, priced = _generate_outputs(table, allowed, deadline)
    if not ending.iterations and deadline.expired:
        raise MethodError(f"{TIME_LIMIT}: a first step takes longer than there is")
    used = sum(len(part.weights) for part in priced)
    message = (
        f"{ending.message} after {ending.iterations} iterations, with {used} of "
        f"{len(ratios.exponents) * costs.shape[1]} bounds"
    )
    matrix, finished, iterations = ending.matrix, ending.gap <= allowed, ending.iterations
    witness = _list_weights(pairs, priced, scale)
    del ending, priced  # with the rows of a thousand letters, before the search takes memory
    if table.members.shape[1] < len(matrix):
        matrix = _extend_columns(program, exponents, matrix)
    weights = read_pair_weights(witness, (len(ratios.exponents), costs.shape[1]))
    multipliers = ratios.find_row_prices(program.prior.pmf, program.centered_gains, weights)
    return SolverResult(
        state="point",
        finished=finished,
        message=message,
        iterations=iterations,
        warm_started=False,
        compile_seconds=ready - begin,
        solve_seconds=time.perf_counter() - ready,
        point=PrimalDualPoint(matrix, multipliers, dual_certificate=witness),
    )


@dataclass(frozen=True, eq=False)
class _CostTable:
    """A design as costs of at most one, of which the programs of some outputs are selected.

    Attributes:
        program: the design.
        costs: (N, M).
        exponents: (N, N) in nats, by which the logarithm of a ratio of two rows is bounded.
        factors, first: (N, N) as in the program of columns.
        tolerance: the gap that is asked for, as a share of the range of the expected gain.
    """

    program: LinearDesign
    costs: FloatArray
    exponents: FloatArray
    factors: FloatArray
    first: BoolArray
    tolerance: float

    @cached_property
    def members(self) -> IntArray:
        """Return the (M, L) letters of each output."""
        return _choose_members(self.program, self.exponents, self.tolerance)

    def has_mutual_rows(self) -> bool:
        """Return whether each letter of each output is in a pair, which keeps entries from being negative."""
        return all(self.factors[np.ix_(own, own)].any(axis=1).all() for own in self.members)

    def select_outputs(self, kept: BoolArray) -> PairLP:
        """Build the linear program of some outputs."""
        costs = np.ascontiguousarray(self.costs[:, kept])
        return PairLP.from_table(costs, self.members[kept], self.factors, self.first)

    def build_start(self, kept: BoolArray) -> FloatArray:
        """Build columns strictly within every bound: an exponential mechanism and a uniform one, mixed."""
        gains = self.program.centered_gains[:, kept]
        near = build_exponential_matrix(gains, 0.9 * self.exponents)
        return np.asarray(near / 2 + 0.5 / near.shape[1])

    def choose_outputs(self) -> BoolArray:
        """Choose (M,) the outputs of least cost for a column with one peak or with two neighbouring ones."""
        peaks = np.exp(-self.exponents)
        apart = np.where(np.eye(len(peaks), dtype=bool), np.inf, self.exponents)
        twins = np.maximum(peaks, peaks[:, apart.argmin(axis=0)])
        kept = np.zeros(self.costs.shape[1], dtype=bool)
        for columns in (peaks, twins):
            kept[(columns.T @ self.costs).argmin(axis=1)] = True
        return kept


@dataclass(frozen=True, eq=False)
class _PairWeights:
    """Multipliers of pairs.

    Attributes:
        rows: the pairs.
        weights: (R,) of rows of size one.
        outputs: of the columns that the rows number.
    """

    rows: PairRows
    weights: FloatArray
    outputs: IntArray


def _generate_outputs(
    table: _CostTable, allowed: float, deadline: Deadline
) -> tuple[PairEnding, list[_PairWeights]]:
    """Solve with the outputs that some columns call for, and with others that the prices do not rule out.

    With a time limit all outputs are in the program, for which there is a bound at each stop.

    Returns:
        The ending, with a column for each output, and the multipliers that prove its gap.
    """
    kept = table.choose_outputs()
    covered = len(np.unique(table.members[kept])) == len(table.costs)
    # to price few others takes longer than to have all in the program
    if deadline.is_limited or not covered or kept.mean() > 0.8:
        kept[:] = True
    while True:
        ending = solve_pair_lp(
            table.select_outputs(kept), table.build_start(kept), allowed, deadline
        )
        weights = [_PairWeights(ending.proof.rows, ending.proof.weights, np.flatnonzero(kept))]
        others = ~kept
        if not others.any():
            break
        program = table.select_outputs(others)
        prices = np.minimum(ending.proof.least_costs, program.cutoffs)
        start = table.build_start(np.ones(len(kept), dtype=bool))[:, others]
        # a fifth of the gap, shared by the letters
        priced = price_columns(program, prices, start, 0.2 * allowed / len(prices), deadline)
        weights.append(_PairWeights(priced.rows, priced.weights, np.flatnonzero(others)))
        if priced.proved.all():
            break
        kept[np.flatnonzero(others)[~priced.proved]] = True
    matrix = np.zeros(table.costs.shape)
    matrix[:, kept] = ending.matrix
    return replace(ending, matrix=matrix), weights


def _find_tightest_bounds(ratios: RatioBounds) -> IntArray:
    """Return the (N, N) places of the tightest bounds on each pair of letters; -1 where there is none."""
    places = np.full((ratios.size, ratios.size), -1)
    order = np.argsort(-ratios.exponents, kind="stable")
    # of several bounds on one pair the last one, which is the tightest, stays
    places[ratios.above[order], ratios.below[order]] = order
    return places


def find_essential_pairs(ratios: RatioBounds, size: int) -> BoolArray:
    """Find (K,) the pair bounds that no two-step path through a third letter nearly implies."""
    length = np.full((size, size), np.inf)
    length[ratios.above, ratios.below] = ratios.exponents
    detours = measure_detours(length)
    return np.asarray((detours > (1 + MAX_DETOUR_FRACTION) * length)[ratios.above, ratios.below])


def _read_factors(ratios: RatioBounds, places: IntArray) -> tuple[FloatArray, BoolArray]:
    """Read the (N, N) factors of all pairs, and those with which a column begins."""
    listed = places >= 0
    factors = np.zeros(listed.shape)
    # tightened a little, so that rounding of the answer stays inside the bounds
    factors[listed] = tighten_factor(np.exp(-ratios.exponents))[places[listed]]
    paired = listed | listed.T
    lonely = np.flatnonzero(~paired.any(axis=1))
    paired[lonely, lonely - 1] = paired[lonely - 1, lonely] = True
    # bounds nothing, but keeps entries from being negative that are bounded one way or not at all
    factors[paired] = np.maximum(factors[paired], 1e-300)
    essential = find_essential_pairs(ratios, ratios.size)
    first = np.zeros(listed.shape, dtype=bool)
    first[ratios.above[essential], ratios.below[essential]] = True
    return factors, first | first.T


def _choose_members(program: LinearDesign, exponents: FloatArray, tolerance: float) -> IntArray:
    """Choose the (M, L) letters of each output: all, or in large designs those at which it loses least."""
    losses = -program.centered_gains
    letters, outputs = losses.shape
    # a factor of L by L for each output, 800 MB of them
    count = min(letters, math.isqrt(100_000_000 // outputs))
    # from here on a design of all letters takes half a minute
    if letters**2 * outputs > 10_000_000:
        count = min(count, _count_near_letters(losses, exponents, tolerance * program.scale))
    nearest = np.argpartition(losses, count - 1, axis=0)[:count]
    return np.ascontiguousarray(np.sort(nearest, axis=0).T)


def _count_near_letters(losses: FloatArray, exponents: FloatArray, allowed: float) -> int:
    """Count the letters of least loss after which a column with one peak loses at most what is allowed.

    The peak is at the letter of least loss. What the optimum loses by columns of so few letters is a tenth of
    that.
    """
    order = np.argsort(losses, axis=0)
    shares = np.exp(-exponents[:, order[0]])
    lost = np.take_along_axis(shares * losses, order, axis=0) / shares.sum(axis=0)
    rest = lost.sum(axis=0) - lost.cumsum(axis=0)
    return int((rest > allowed).sum(axis=0).max()) + 1


def _extend_columns(program: LinearDesign, exponents: FloatArray, matrix: FloatArray) -> FloatArray:
    """Extend columns of few letters to the others, and mix them with columns by formula to rows of one."""
    envelopes = lower_envelope(exponents, matrix)
    base = build_exponential_matrix(program.centered_gains, exponents)
    # the time for it was set aside, and without it the columns are of no use
    mixture = find_peak_mixture(program, exponents, limit_search(program), envelopes, base)
    return matrix if mixture is None else mixture


def _list_weights(
    places: IntArray, parts: Sequence[_PairWeights], scale: float
) -> dict[str, FloatArray]:
    """List the weights of pairs, with the places of their pairs and outputs.

    Those are 0 that are not listed.
    """
    listed = [_list_part(places, part) for part in parts]
    pairs, outputs, weights = (np.concatenate(part) for part in zip(*listed, strict=True))
    return {
        "pairs": pairs.astype(float),
        "outputs": outputs.astype(float),
        "weights": scale * weights,
    }


def _list_part(places: IntArray, part: _PairWeights) -> tuple[IntArray, IntArray, FloatArray]:
    """List the pairs, outputs and weights of some rows; those of pairs that bound nothing drop out."""
    rows, members = part.rows, part.rows.program.members
    pairs = places[members[rows.column, rows.above], members[rows.column, rows.below]]
    weights = part.weights * rows.unit * rows.factor
    kept = (weights > 0) & (pairs >= 0)
    return pairs[kept], part.outputs[rows.column[kept]], weights[kept]


def build_exponential_matrix(gains: FloatArray, exponents: FloatArray) -> FloatArray:
    """Build `P[x,y] ~ exp(s g[x,y])` with the largest scale s that meets every pair bound.

    A ratio of two rows is `exp(s (g[x,y] - g[z,y]))` over the ratio of their sums, which lies between the
    least and the largest of these: its logarithm is at most s times their spread over the outputs.

    Args:
        gains: (N, M).
        exponents: (N, N) in nats, by which the logarithm of a ratio of two rows is bounded.
    """
    scale = np.inf
    for letter, row in enumerate(gains):
        # (N,): how far the gains of two letters differ over the outputs, at most
        spread = np.ptp(gains - row, axis=1)
        # letters whose gains differ by a constant have equal rows: no bound on the scale
        bound = spread > 0
        scale = min(scale, float((exponents[letter][bound] / spread[bound]).min(initial=np.inf)))
    # at most 0, so that exp cannot overflow
    shifted = gains - gains.max(axis=1)[:, None]
    # where rows differ by a number each, all may take the outputs that gain most
    found = (shifted == 0).astype(float) if np.isinf(scale) else np.exp(scale * shifted)
    return np.asarray(found / found.sum(axis=1)[:, None])
