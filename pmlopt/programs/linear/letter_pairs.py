"""Designs under many bounds on pairs of letters, such as metric privacy: a structured interior point.

Each column has its own Newton system of N letters, and the columns meet in the N sums of rows alone, so that
a step costs M inverses of size N, however many pairs there are.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.closed_forms import constant
from pmlopt.model.privacy.ratios import Ratios
from pmlopt.model.privacy.requirement import Witness, below
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.solvers import highs
from pmlopt.solvers.outcome import Clock, Options, Outcome, Point

NAME = "letter-pairs"

STEPS = 100
"""Steps of the interior point: it takes 20 to 40."""

SHORTEST = 1e-8
"""A step of a smaller share leads nowhere."""

TO_THE_BOUNDARY = 0.995
"""Share of the way to the boundary that a step goes at most."""

PROBES, STEP_OVER_INVERSES = 4, 4.0
"""Inverses that are tried, and what a step takes over all of its inverses: three times as much, measured."""

SECONDS_A_BOUND = 4e-6
"""What compiling and loading take for each bound on a pair in a column, at least: 13 seconds for 150."""

REFINED = 2
"""Times that the step in the multipliers of rows is corrected."""

CLOSED = 1e-11
"""Complementarity and dual residuals, as a share of the largest gain, that are left at the end."""

SPENT = 100.0
"""How many times as much as ever before may be left: residuals rise a little on the way."""


def in_no_time(program: LinearDesign, clock: Clock) -> Point | None:
    """A constant, where the time would be over before a solver had a program of many bounds on pairs."""
    if not clock.limited or (ratios := program.bounds_on_pairs) is None:
        return None
    weights = np.zeros((len(ratios.exponents), program.table.shape[1]))  # as if nothing were private
    if not clock.late_by(-SECONDS_A_BOUND * weights.size):
        return None
    best = constant(program.prior, program.centred).matrix
    return Point(best, program.centred.max(axis=1), witness={"weights": weights})


def witness_of(program: LinearDesign, ratios: Ratios) -> Witness | None:
    """The weights of the pairs from the multipliers that a solver left in the constraints of the program."""
    duals = program.constraints["pairs"].dual_value
    if duals is None or not np.isfinite(duals).all():
        return None
    return {"weights": np.maximum(duals, 0.0) * np.exp(-ratios.exponents)[:, None]}


def by_simplex(program: LinearDesign, ratios: Ratios, options: Options) -> Outcome:
    """A small program under ratio bounds in HiGHS, without cvxpy: the same sparse rows, by index arithmetic.

    Its variables are the matrix and the products of its columns with the rows that the bounds share.
    """
    from scipy import sparse

    begin = time.perf_counter()
    n, m = program.table.shape
    gains = program.prior.pmf[:, None] * program.centred
    scale = float(np.abs(gains).max()) or 1.0
    products = ratios.products(np.eye(n))
    shared, count = len(products), len(ratios.exponents)
    sums = np.hstack([np.repeat(np.eye(n), m, axis=1), np.zeros((n, shared * m))])
    told = sparse.kron(np.hstack([products, -np.eye(shared)]), np.eye(m))
    rows = [sparse.csr_array(sums), told, sparse.kron(ratios.system(below), np.eye(m))]
    matrix = sparse.csc_array(sparse.vstack(rows))
    fixed = np.concatenate([np.ones(n), np.zeros(shared * m)])
    model = highs.columnwise(
        np.concatenate([-gains.ravel() / scale, np.zeros(shared * m)]),
        (0.0, np.inf),
        (np.concatenate([fixed, np.full(count * m, -np.inf)]), np.concatenate([fixed, np.zeros(count * m)])),
        (matrix.indptr, matrix.indices, matrix.data),
    )
    solver = highs.loaded(model, {**highs.METHODS["highs"], **highs.limits(options), "presolve": "off"})
    ready = time.perf_counter()
    outcome = highs.outcome_of(solver, False, ready - begin, ready)
    if outcome.state != "point":
        return outcome
    solution = solver.getSolution()
    duals = np.array(solution.row_dual)
    weights = np.maximum(-duals[n + shared * m :].reshape(count, m), 0.0) * np.exp(-ratios.exponents)[:, None]
    found = np.array(solution.col_value[: n * m]).reshape(n, m)
    multipliers = -scale * duals[:n] / program.prior.pmf
    return replace(outcome, found=Point(found, multipliers, witness={"weights": scale * weights}))


def run(program: LinearDesign, ratios: Ratios, options: Options) -> Outcome:
    """Mehrotra's predictor and corrector on `max <c, P>`, `P[x'] - e^-eps P[x] >= 0`, rows that sum to one.

    Slacks are recomputed from the matrix, so that what is in hand when the time is over is within the bounds.
    """
    begin = time.perf_counter()
    n = program.prior.size
    gains = program.prior.pmf[:, None] * program.centred
    scale = float(np.abs(gains).max()) or 1.0
    pairs = _Pairs(ratios, (gains / scale).T, options.clock)
    best = now = pairs.start()
    steps, seconds = 0, pairs.seconds() if options.clock.limited else 0.0
    while steps < STEPS and not options.clock.late_by(-seconds):  # a step is not begun that cannot be ended
        # rounding has the last word: what is left grows again where digits are spent
        if now.left <= CLOSED * n or now.left > SPENT * best.left:
            break
        before = options.clock.read()
        try:
            after = pairs.after(now)
        except np.linalg.LinAlgError:
            break
        if after is None:
            break
        now, steps, seconds = after, steps + 1, options.clock.read() - before
        best = now if now.left < best.left else best
    finished = not options.clock.late_by(-seconds)
    weights = (best.dual * pairs.keep)[:, ratios.above, ratios.below].T * scale
    found = np.maximum(best.v.T, 0.0)
    point = Point(found, scale * best.rho / program.prior.pmf, witness={"weights": weights})
    words = f"{'ended' if finished else 'stopped by the time limit'} after {steps} steps"
    return Outcome("point", finished, words, steps, False, 0.0, time.perf_counter() - begin, point)


@dataclass(frozen=True, eq=False)
class _State:
    """A point of the interior.

    Attributes:
        v: (M, N) the columns.
        s: (M, N, N) the slacks of pairs; on the diagonal the entries themselves.
        dual: (M, N, N) their multipliers.
        rho: (N,) the multipliers of the rows.
        residual: (M, N) of the dual equations.
        gap: the mean of the products of slacks and multipliers.
        left: what is left to do, all in all.
    """

    v: FloatArray
    s: FloatArray
    dual: FloatArray
    rho: FloatArray
    residual: FloatArray
    gap: float
    left: float


class _Pairs:
    """The bounds as dense arrays, [x, x'] for the letters of a pair, and the steps of the interior point."""

    def __init__(self, ratios: Ratios, gains: FloatArray, clock: Clock) -> None:
        self.clock = clock
        self.gains, (self.m, self.n) = gains, gains.shape
        self.keep = np.zeros((self.n, self.n))
        self.keep[ratios.above, ratios.below] = [below(math.exp(-e)) for e in ratios.exponents.tolist()]
        self.used = (self.keep > 0) | np.eye(self.n, dtype=bool)
        self.count = self.m * int(self.used.sum())

    def start(self) -> _State:
        """All columns even."""
        v = np.full((self.m, self.n), 1 / self.m)
        s = self._slack(v)
        return self._state(v, s, 0.1 / np.maximum(s * self.m * self.n, 1e-3), np.zeros(self.n))

    def seconds(self) -> float:
        """What a step takes, roughly: some times as much as its inverses, of which a few are tried."""
        begin = self.clock.read()
        np.linalg.inv(self.keep + self.n * np.eye(self.n)[None].repeat(PROBES, axis=0))
        return float(STEP_OVER_INVERSES * self.m / PROBES * (self.clock.read() - begin))

    def after(self, now: _State) -> _State | None:
        """The state after one step; None where a step leads nowhere, or its time is over on the way."""
        weights = np.where(self.used, now.dual / now.s, 0.0)
        hessians = -(self.keep * weights)
        hessians = hessians + hessians.transpose(0, 2, 1)
        letters = np.arange(self.n)
        hessians[:, letters, letters] += weights.sum(axis=1) + np.einsum("xz,yxz->yx", self.keep**2, weights)
        unit = np.sqrt(hessians[:, letters, letters])  # entries differ by orders of magnitude
        units = unit[:, :, None] * unit[:, None, :]
        systems = hessians, np.linalg.inv(hessians / units) / units
        if self.clock.late:
            return None
        _, ds, dd, _ = self._direction(now, weights, systems, np.zeros_like(now.s))
        if self.clock.late:
            return None
        ahead = (now.s + _length(now.s, ds) * ds) * (now.dual + _length(now.dual, dd) * dd)
        target = (float(ahead[:, self.used].sum()) / self.count / now.gap) ** 3 * now.gap
        dv, ds, dd, shift = self._direction(now, weights, systems, target - ds * dd)
        primal, other = _length(now.s, ds), _length(now.dual, dd)
        v = now.v + primal * dv
        s = self._slack(v)
        if max(primal, other) < SHORTEST or s.min() <= 0:
            return None
        return self._state(v, s, now.dual + other * dd, now.rho + other * shift)

    def _direction(
        self, now: _State, weights: FloatArray, systems: tuple[FloatArray, FloatArray], target: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The changes of columns, slacks and both multipliers towards products of `target`."""
        total = systems[1].sum(axis=0)
        wanted = np.where(self.used, target / now.s - now.dual, 0.0)
        right, shift = self._back(wanted) - now.residual, np.zeros(self.n)
        for _ in range(REFINED):  # each takes up what rounding left in the sums of rows
            dv = _solved(*systems, right - shift)
            shift = shift + np.linalg.solve(total, now.v.sum(axis=0) + dv.sum(axis=0) - 1)
        dv = _solved(*systems, right - shift)
        ds = np.where(self.used, dv[:, None, :] - self.keep * dv[:, :, None], 0.0)
        return dv, ds, np.where(self.used, wanted - weights * ds, 0.0), shift

    def _state(self, v: FloatArray, s: FloatArray, dual: FloatArray, rho: FloatArray) -> _State:
        dual = np.where(self.used, dual, 0.0)
        residual = rho - self.gains - self._back(dual)
        gap = float((dual * s)[:, self.used].sum()) / self.count
        off = self.m * np.abs(residual).max() + np.abs(v.sum(axis=0) - 1).max()
        return _State(v, s, dual, rho, residual, gap, gap * self.count + self.n * float(off))

    def _slack(self, v: FloatArray) -> FloatArray:
        return np.where(self.used, v[:, None, :] - self.keep * v[:, :, None], 1.0)

    def _back(self, w: FloatArray) -> FloatArray:
        return np.asarray(w.sum(axis=1) - np.einsum("xz,yxz->yx", self.keep, w))


def _solved(hessians: FloatArray, inverses: FloatArray, right: FloatArray) -> FloatArray:
    """(M, N) the solutions of the systems, each improved twice by what it leaves."""
    found = np.zeros_like(right)
    for _ in range(1 + REFINED):
        left = right - np.einsum("yab,yb->ya", hessians, found)
        found = found + np.einsum("yab,yb->ya", inverses, left)
    return found


def _length(values: FloatArray, change: FloatArray) -> float:
    """How far a step may go, at most 1, so that positive values stay positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(change < 0, -values / change, np.inf)
    return min(1.0, TO_THE_BOUNDARY * float(ratios.min()))
