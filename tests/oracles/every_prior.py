"""Designs under Sibson's information for every prior, by cuts at the worst priors of mechanisms in hand."""

from __future__ import annotations

import math
import warnings

import cvxpy as cp
import numpy as np

from pmlopt.core.arrays import FloatArray


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


def largest_gain_for_every_prior(
    p: FloatArray, gains: FloatArray, alpha: float, epsilon: float, rounds: int = 6
) -> tuple[float, float]:
    """What a mechanism within the bound gains, and what none betters: the bound at some priors alone.

    The matrix that is best for the cuts in hand, mixed with its law until its worst prior is within the
    bound, gives the first number.
    """
    matrix = cp.Variable(gains.shape, nonneg=True)
    rules = [cp.sum(matrix, axis=1) == 1]
    goal = cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains, matrix)))
    priors, low, high = [np.full(len(p), 1 / len(p))], -math.inf, math.inf
    for _ in range(rounds):
        roots = priors[-1] ** (1 / alpha)
        norms = [cp.pnorm(cp.multiply(roots, column), alpha, approx=False) for column in matrix.T]
        rules.append(sum(norms) <= math.exp((alpha - 1) * epsilon / alpha))
        high = min(high, _solved(cp.Problem(goal, rules)))
        sharp = np.maximum(matrix.value, 0.0)
        sharp = sharp / sharp.sum(axis=1, keepdims=True)
        worst, level = worst_prior(sharp, alpha)
        share = 0.0
        while level > epsilon and share < 1:
            share = min(1.0, share + 1.01 * (math.expm1(level - epsilon) + 1e-9))
            mixed = (1 - share) * sharp + share * (p @ sharp)
            level = worst_prior(mixed, alpha)[1] if share < 1 else 0.0
        mixed = (1 - share) * sharp + share * (p @ sharp)
        low = max(low, float((p[:, None] * gains * mixed).sum()))
        priors.append(worst)
        if high - low <= 1e-7 * float(np.abs(gains).max()):
            break
    return low, high


def _solved(problem: cp.Problem) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where Clarabel stops a digit early
        return float(problem.solve(solver="CLARABEL"))
