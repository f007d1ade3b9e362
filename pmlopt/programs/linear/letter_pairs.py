"""Designs under many bounds on pairs of letters, such as metric privacy: a structured interior point.

Each column has its own Newton system of N letters, and the columns meet in the N sums of rows alone, so that a
step costs M Cholesky factors of size N, however many pairs there are.
"""

from __future__ import annotations

import math
import time

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options, Outcome, Point
from pmlopt.privacy.ratios import Ratios
from pmlopt.privacy.requirement import Witness, below
from pmlopt.programs.linear.program import LinearDesign

NAME = "letter-pairs"

FEWEST_BOUNDS = 5_000
"""Bounds on pairs, over all columns, from which on this is faster than the simplex."""

MOST_NUMBERS = 4_000_000
"""N^2 M, the numbers in each of a dozen arrays that are held."""

STEPS = 100
"""Steps of the interior point: it takes 20 to 40."""

TO_THE_BOUNDARY = 0.995
"""Share of the way to the boundary that a step goes at most."""

REFINED = 2
"""Times that the step in the multipliers of rows is corrected."""

CLOSED = 1e-11
"""Complementarity and dual residuals, as a share of the largest gain, that are left at the end."""

SPENT = 100.0
"""How many times as much as ever before may be left: residuals rise a little on the way."""


def pairs_of(program: LinearDesign) -> Ratios | None:
    """The bounds, where all are on pairs of letters, many, and not too many; None elsewhere."""
    ratios = program.privacy.for_prior(program.prior).ratios(program.prior.pmf) if not program.added else None
    n, m = program.table.shape
    if ratios is None or len(ratios.rows) or not len(ratios.exponents):
        return None
    many = len(ratios.exponents) * m >= FEWEST_BOUNDS and n * n * m <= MOST_NUMBERS
    return ratios if many and ratios.exponents.min() > 0 else None


def witness_of(program: LinearDesign, ratios: Ratios) -> Witness | None:
    """The weights of the pairs from the multipliers that a solver left in the constraints of the program."""
    duals = program.constraints["pairs"].dual_value
    if duals is None or not np.isfinite(duals).all():
        return None
    return {"weights": np.maximum(duals, 0.0) * np.exp(-ratios.exponents)[:, None]}


def run(program: LinearDesign, ratios: Ratios, options: Options) -> Outcome:
    """Mehrotra's predictor and corrector on `max <c, P>`, `P[x'] - e^-eps P[x] >= 0`, rows that sum to one.

    The rows hold from the first step to the last, and slacks are recomputed from the matrix, so that what is
    in hand when the time is over is a mechanism within the bounds.
    """
    begin = time.perf_counter()
    deadline = options.deadline(begin)
    n, m = program.table.shape
    keep = np.zeros((n, n))  # [x, x'] e^-eps, and on the diagonal 0 for the sign of an entry
    keep[ratios.above, ratios.below] = [below(math.exp(-e)) for e in ratios.exponents.tolist()]
    used = (keep > 0) | np.eye(n, dtype=bool)
    gains = program.prior.pmf[:, None] * program.centred
    scale = float(np.abs(gains).max()) or 1.0
    c = (gains / scale).T  # (M, N)

    def slack(v: FloatArray) -> FloatArray:
        return np.where(used, v[:, None, :] - keep * v[:, :, None], 1.0)

    def back(w: FloatArray) -> FloatArray:
        return np.asarray(w.sum(axis=1) - np.einsum("xz,yxz->yx", keep, w))

    v = np.full((m, n), 1 / m)
    s = slack(v)
    dual = np.where(used, 0.1 / np.maximum(s * m * n, 1e-3), 0.0)
    rho = np.zeros(n)
    count = m * int(used.sum())
    best = (math.inf, v, dual, rho)
    for step in range(STEPS):
        residual = rho - c - back(dual)  # (M, N), zero at the end
        gap = float((dual * s)[:, used].sum()) / count
        left = gap * count + n * float(m * np.abs(residual).max() + np.abs(v.sum(axis=0) - 1).max())
        if left < best[0]:
            best = left, v, dual, rho
        # rounding has the last word: what is left grows again where digits are spent
        if left <= CLOSED * n or left > SPENT * best[0] or time.perf_counter() > deadline:
            break
        weights = np.where(used, dual / s, 0.0)
        hessians = -(keep * weights)
        hessians = hessians + hessians.transpose(0, 2, 1)
        diagonal = weights.sum(axis=1) + np.einsum("xz,yxz->yx", keep**2, weights)
        hessians[:, np.arange(n), np.arange(n)] += diagonal
        try:
            unit = np.sqrt(hessians[:, np.arange(n), np.arange(n)])  # entries differ by orders of magnitude
            inverses = np.linalg.inv(hessians / (unit[:, :, None] * unit[:, None, :]))
            inverses /= unit[:, :, None] * unit[:, None, :]
            total = inverses.sum(axis=0)

            def direction(target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
                """The step towards products of slacks and multipliers of `target`."""
                wanted = np.where(used, target / s - dual, 0.0)
                right, shift = back(wanted) - residual, np.zeros(n)
                for _ in range(REFINED):  # each takes up what rounding left in the sums of rows
                    dv = _solved(hessians, inverses, right - shift)
                    shift = shift + np.linalg.solve(total, v.sum(axis=0) + dv.sum(axis=0) - 1)
                dv = _solved(hessians, inverses, right - shift)
                ds = np.where(used, dv[:, None, :] - keep * dv[:, :, None], 0.0)
                return dv, ds, np.where(used, wanted - weights * ds, 0.0), shift

            _, ds, dd, _ = direction(np.zeros_like(s))
            primal, other = _length(s, ds), _length(dual, dd)
            ahead = float(((s + primal * ds) * (dual + other * dd))[:, used].sum()) / count
            dv, ds, dd, shift = direction((ahead / gap) ** 3 * gap - ds * dd)
        except np.linalg.LinAlgError:
            break
        primal, other = _length(s, ds), _length(dual, dd)
        if max(primal, other) < 1e-8:
            break
        v = v + primal * dv
        s = slack(v)
        if s.min() <= 0:
            v, s = v - primal * dv, slack(v - primal * dv)
            break
        dual = dual + other * dd
        rho = rho + other * shift
    left, v, dual, rho = best
    finished = time.perf_counter() <= deadline
    matrix = np.maximum(v.T, 0.0)
    weights = (dual * keep)[:, ratios.above, ratios.below].T * scale
    point = Point(matrix, scale * rho / program.prior.pmf, witness={"weights": weights})
    words = f"{'ended' if finished else 'stopped by the time limit'} after {step} steps"
    return Outcome("point", finished, words, step, False, 0.0, time.perf_counter() - begin, point)


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
