"""Designs within bounds of a finite order, as programs of norms; for many priors, by cuts at the worst."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np

from pmlopt.core.numbers.arrays import FloatArray

TIGHT = {
    f"{kind}tol_{what}": tolerance
    for kind, tolerance in (("", 1e-11), ("reduced_", 1e-8))
    for what in ("gap_abs", "gap_rel", "feas")
}
"""Tolerances of Clarabel, and those at which it ends where it makes no more progress."""

USUAL = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-8)
"""Those that Clarabel has; what it calls inaccurate is held to no less."""

View = tuple[FloatArray, FloatArray]
"""A law of S, and (S, N) the matrix of the law of X given S."""

GOLDEN, SECTIONS = (math.sqrt(5) - 1) / 2, 60
"""Of a search on an interval."""


def largest_gain_of_order(
    p: FloatArray,
    alpha: float,
    epsilon: float,
    gains: FloatArray,
    *,
    mean: bool = False,
    about: Sequence[View] | None = None,
) -> float:
    """The largest expected gain where each posterior, or their mean, is within epsilon of order alpha.

    Raises:
        cvxpy.SolverError: Clarabel finds no optimum.
    """
    mechanism = cp.Variable(gains.shape, nonneg=True)
    views = [(p, np.eye(len(p)))] if about is None else about
    rules = [
        rule
        for law, given in views
        for rule in within(law, given @ mechanism, alpha, epsilon, mean)
    ]
    return best_of(p, gains, mechanism, rules)


def within(
    p: FloatArray, matrix: Any, alpha: float, epsilon: float, mean: bool = False
) -> list[Any]:
    """The norms of the columns beside their means under p, or their sum."""
    norms = [
        cp.pnorm(cp.multiply(p ** (1 / alpha), column), alpha, approx=False) for column in matrix.T
    ]
    most, law = math.exp((alpha - 1) * epsilon / alpha), p @ matrix
    return [sum(norms) <= most] if mean else [norm <= most * law[y] for y, norm in enumerate(norms)]


def best_of(p: FloatArray, gains: FloatArray, mechanism: Any, rules: list[Any]) -> float:
    """The largest expected gain of a mechanism within rules."""
    unit = float(np.abs(gains).max()) or 1.0
    goal = cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains / unit, mechanism)))
    return unit * _solved(cp.Problem(goal, [cp.sum(mechanism, axis=1) == 1, *rules]))


def worst_prior(matrix: FloatArray, alpha: float) -> tuple[FloatArray, float]:
    """The prior with the largest Sibson information of an order, as a concave program, and its level."""
    law = cp.Variable(len(matrix), nonneg=True)
    peaks = matrix.max(axis=0)
    shapes = (matrix / np.where(peaks > 0, peaks, 1.0)) ** alpha
    total = peaks @ cp.power(law @ shapes, 1 / alpha, approx=False)
    _solved(cp.Problem(cp.Maximize(total), [cp.sum(law) == 1]))
    found = np.maximum(law.value, 0.0) / np.maximum(law.value, 0.0).sum()
    return found, sibson(found, matrix, alpha)


def sibson(p: FloatArray, matrix: FloatArray, alpha: float) -> float:
    """Sibson's information of an order in nats, as written."""
    return alpha / (alpha - 1) * math.log(((p @ matrix**alpha) ** (1 / alpha)).sum())


def worst_of_two(
    ends: FloatArray, column: FloatArray, alpha: float, most: float
) -> tuple[FloatArray, float]:
    """The prior between two under which a column misses a bound most, and by how much.

    That is the norm of the column less a multiple of its mean, which is concave in the prior.
    """

    def missed(share: float) -> float:
        prior = (1 - share) * ends[0] + share * ends[1]
        return float((prior @ column**alpha) ** (1 / alpha) - most * (prior @ column))

    low, high = 0.0, 1.0
    for _ in range(SECTIONS):
        one, two = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        low, high = (low, two) if missed(one) > missed(two) else (one, high)
    share = max((0.0, 1.0, (low + high) / 2), key=missed)
    return (1 - share) * ends[0] + share * ends[1], missed(share)


def largest_gain_for_every_prior(
    p: FloatArray, gains: FloatArray, alpha: float, epsilon: float
) -> tuple[float, float]:
    """What a mechanism within the bound on the mean for every prior gains, and what none betters."""
    most = math.exp((alpha - 1) * epsilon / alpha)

    def cut(matrix: FloatArray) -> tuple[list[Any], float]:
        worst, level = worst_prior(matrix, alpha)
        total = math.exp((alpha - 1) * level / alpha) * (1 + 1e-9)
        return [worst], (total - most) / (total - 1)

    return _by_cuts(p, gains, np.full(len(p), 1 / len(p)), cut,
                    lambda prior, matrix: within(prior, matrix, alpha, epsilon, mean=True))  # fmt: skip


def largest_gain_between(
    p: FloatArray, gains: FloatArray, alpha: float, epsilon: float, ends: FloatArray
) -> tuple[float, float]:
    """What a mechanism within the bound on each outcome gains for every prior between two, and no more."""
    most = math.exp((alpha - 1) * epsilon / alpha)

    def cut(matrix: FloatArray) -> tuple[list[Any], float]:
        priors, share = [], 0.0
        for column in matrix.T[matrix.max(axis=0) > 1e-9]:
            prior, missed = worst_of_two(ends, column, alpha, most)
            priors.append(prior)
            if missed > 0:
                share = max(share, missed / (missed + (most - 1) * float(p @ column)) + 1e-9)
        return priors, share

    return _by_cuts(
        p, gains, ends[0], cut, lambda prior, matrix: within(prior, matrix, alpha, epsilon)
    )


def _by_cuts(
    p: FloatArray,
    gains: FloatArray,
    first: FloatArray,
    cut: Callable[[FloatArray], tuple[list[FloatArray], float]],
    rules_at: Callable[[FloatArray, Any], list[Any]],
    rounds: int = 20,
) -> tuple[float, float]:
    """A design under bounds for many priors, from below and above.

    Args:
        p: the prior of the gain.
        gains: (N, M).
        first: a prior to begin with.
        cut: of a matrix the worst priors, and a share of a constant that mends it. What a bound misses is
            convex in the matrix, and nothing is missed by a constant, so that the share is a quotient.
        rules_at: of a prior and the variable.
        rounds: at most so many.
    """
    matrix = cp.Variable(gains.shape, nonneg=True)
    rules, low, high = rules_at(first, matrix), -math.inf, math.inf
    for _ in range(rounds):
        try:
            high = min(high, best_of(p, gains, matrix, rules))
            sharp = np.maximum(matrix.value, 0.0)
            sharp = sharp / sharp.sum(axis=1, keepdims=True)
            worst, share = cut(sharp)
        except cp.SolverError:
            if high == math.inf:
                raise
            break  # what the rounds before found is true
        mixed = sharp + min(1.0, max(0.0, share)) * (p @ sharp - sharp)
        low = max(low, float((p[:, None] * gains * mixed).sum()))
        if high - low <= 1e-7 * float(np.abs(gains).max()):
            break
        rules += [rule for prior in worst for rule in rules_at(prior, matrix)]
    return low, high


def _solved(problem: cp.Problem) -> float:
    for options in (TIGHT, {**TIGHT, **USUAL}, {**TIGHT, **USUAL, "max_step_fraction": 0.9}):
        problem = cp.Problem(
            problem.objective, problem.constraints
        )  # cvxpy keeps the solver, and its options
        with warnings.catch_warnings(), contextlib.suppress(cp.SolverError):
            warnings.simplefilter("ignore")  # where Clarabel stops a digit early
            best = problem.solve(solver="CLARABEL", **options)
            if problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
                return float(best)
    raise cp.SolverError(problem.status)
