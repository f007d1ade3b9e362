"""Additive noise by brute force: outcomes one by one, sets of priors by their own programs, quadrature."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
from oracles.designs import FloatArray
from scipy.integrate import cubature
from scipy.optimize import brentq, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import norm

from pmlopt import AllPriors, Box, ConvexHull, L1Ball, Prior
from pmlopt.model.uncertainty import ChiSquareBall, KLBall, PriorSet

KINDS = ("one", "l1", "box", "hull", "all", "kl", "chi-square")
DIGITS = Context(prec=60, Emax=10**6, Emin=-(10**6))


def draw_letters(rng: np.random.Generator, dimensions: int, size: int, whole: bool) -> Any:
    """Distinct numbers or vectors, of several magnitudes."""
    spread = 10.0 ** rng.integers(-1, 3)
    while True:
        points = np.round(rng.normal(scale=spread, size=(size, dimensions)), 3)
        points = np.rint(10 * points) if whole else points
        labels: list[Any] = [tuple(row) if dimensions > 1 else row[0] for row in points.tolist()]
        if len(set(labels)) == size:
            return [int(one) for one in labels] if whole and dimensions == 1 else labels
        spread *= 2


def draw_set(rng: np.random.Generator, kind: str, prior: Prior) -> PriorSet | None:
    """A set of priors of a kind around a prior."""
    p, r = prior, float(rng.uniform(0.01, 0.3))
    laws = rng.dirichlet(np.ones(p.size), 3)
    low, high = p.pmf * (1 - r), np.minimum(1, p.pmf * (1 + 2 * r) + 0.01)
    made: dict[str, PriorSet | None] = {
        "one": None, "l1": L1Ball(p, r), "box": Box(low, high), "hull": ConvexHull(laws),
        "all": AllPriors(p.size), "kl": KLBall(p, r / 3), "chi-square": ChiSquareBall(p, r),
    }  # fmt: skip
    return made[kind]


def least_mean(priors: PriorSet | None, p: FloatArray, v: FloatArray) -> float:
    """The least mean of a column by the set's own program, without the package's."""
    order = np.argsort(v)
    if priors is None:
        return math.fsum(p * v)
    if isinstance(priors, ConvexHull):
        return float(min(math.fsum(law * v) for law in priors.laws))
    if isinstance(priors, AllPriors):
        return float(v.min())
    if isinstance(priors, L1Ball):
        left, law = priors.radius / 2, p.copy()
        for place in order[::-1][: len(v) - 1]:
            moved = min(left, law[place])
            law[place] -= moved
            law[order[0]] += moved
            left -= moved
        return math.fsum(law * v)
    if isinstance(priors, Box):
        law = np.array(priors.lower, dtype=float)
        left = 1 - math.fsum(law)
        for place in order:
            added = min(left, float(priors.upper[place]) - law[place])
            law[place] += added
            left -= added
        return math.fsum(law * v)
    return dual_mean(priors, p, v)


def dual_mean(priors: Any, p: FloatArray, v: FloatArray) -> float:
    """The largest value of the one-dimensional dual of a divergence ball."""
    if np.ptp(v) == 0:
        return float(v[0])

    def value(log_weight: float) -> float:
        if isinstance(priors, KLBall):
            weight = math.exp(log_weight)
            return float(-weight * (logsumexp(-(v - v.min()) / weight, b=p) + priors.radius))
        c = v.min() + math.exp(log_weight)
        spread = math.sqrt(math.fsum(p * np.maximum(c - v, 0) ** 2))
        return float(c - v.min() - math.sqrt(1 + priors.radius) * spread)

    grid = np.linspace(math.log(np.ptp(v)) - 12, math.log(np.ptp(v)) + 12, 60)
    at = int(np.argmax([value(x) for x in grid]))
    found = minimize_scalar(
        lambda x: -value(x), bounds=(grid[max(at - 1, 0)], grid[min(at + 1, 59)]),
        method="bounded", options={"xatol": 1e-13},
    )  # fmt: skip
    return float(v.min() + max(-found.fun, 0.0))


def level_by_outcomes(
    points: FloatArray, scale: float, priors: PriorSet | None, p: FloatArray, steps: int
) -> float:
    """The largest leakage over the letters and a grid of outcomes."""
    lows, highs = points.min(axis=0) - scale, points.max(axis=0) + scale
    axes = [np.linspace(a, b, steps) for a, b in zip(lows, highs, strict=True)]
    worst = 0.0
    for y in [*points, *(np.array(one) for one in itertools.product(*axes))]:
        away = np.abs(points - y).sum(axis=1)
        worst = max(worst, -math.log(least_mean(priors, p, np.exp((away.min() - away) / scale))))
    return worst


def level_in_digits(points: FloatArray, scale: float, laws: FloatArray) -> Decimal:
    """The level over the hull of laws in sixty digits; laws are divided by their sums."""
    with localcontext(DIGITS):
        worst = Decimal(0)
        rows = [[Decimal(x) for x in point] for point in points.tolist()]
        for one in rows:
            apart = [
                sum((abs(a - b) for a, b in zip(one, other, strict=True)), Decimal(0))
                for other in rows
            ]
            column = [(-d / Decimal(scale)).exp() for d in apart]
            for law in laws.tolist():
                weights = [Decimal(q) for q in law]
                mean = sum((q * v for q, v in zip(weights, column, strict=True)), Decimal(0))
                mean /= sum(weights, Decimal(0))
                worst = max(worst, -mean.ln())
        return worst


def gaussian_failure(points: FloatArray, p: FloatArray, sigma: float, epsilon: float) -> float:
    """The integral of the mixture where the leakage is above epsilon: roots on a grid, and quadrature."""

    def excesses(y: FloatArray) -> FloatArray:
        logs = -((y[:, None] - points) ** 2) / (2 * sigma**2)
        return np.asarray(logs.max(axis=1) - logsumexp(logs, b=p, axis=1)) - epsilon

    def excess(y: float) -> float:
        return float(excesses(np.array([y]))[0])

    low, high = points.min() - 12 * sigma, points.max() + 12 * sigma
    grid = np.linspace(low, high, 4001)
    above = excesses(grid)
    # an extremum between points of the grid may be on the other side of zero
    inner, more = above[1:-1], []
    peaks = (inner >= above[:-2]) & (inner > above[2:]) & (inner <= 0)
    dips = (inner <= above[:-2]) & (inner < above[2:]) & (inner >= 0)
    for at, sign in ((peaks, -1), (dips, 1)):
        for i in np.flatnonzero(at):
            found = minimize_scalar(
                lambda y, s=sign: s * excess(y), bounds=(grid[i], grid[i + 2]), method="bounded",
                options={"xatol": 1e-12},
            )  # fmt: skip
            more.append(float(found.x))
    grid = np.unique(np.append(grid, more))
    above = excesses(grid)
    turns = [
        brentq(excess, grid[i], grid[i + 1], xtol=1e-13)
        for i in np.flatnonzero(np.sign(above[:-1]) != np.sign(above[1:]))
    ]
    ends = np.array([low, *turns, high])
    middles = (ends[:-1] + ends[1:]) / 2
    # panels of a deviation at most, on which 20 nodes are exact to the last digits
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for start, end in ends[np.flatnonzero(excesses(middles) > 0)[:, None] + [0, 1]]:
        cuts = np.linspace(start, end, max(2, int((end - start) / sigma) + 2))
        half, middle = np.diff(cuts)[:, None] / 2, (cuts[:-1] + cuts[1:])[:, None] / 2
        densities = norm.pdf((middle + half * nodes)[..., None], points, sigma) @ p
        total += float((densities * weights * half).sum())
    return total


def plane_failure(points: FloatArray, p: FloatArray, sigma: float, epsilon: float) -> float:
    """The failure of Gaussian noise on (N, 2) points: sections of convex sets, and quadrature across.

    Letter i leaks more than epsilon where `g_i(y) = log sum_j p_j f(y | x_j) / f(y | x_i)` is below -epsilon;
    g_i is convex.
    """
    logs, slopes = np.log(p), (points[:, None] - points) / sigma**2  # x_i - x_j
    norms = (points**2).sum(axis=1) / (2 * sigma**2)
    shift = logs + norms[:, None] - norms
    ends = points.min(axis=0) - 12 * sigma, points.max(axis=0) + 12 * sigma

    def values(u: FloatArray, v: FloatArray) -> FloatArray:
        """(K, N) g_i at (u_k, v_ki)."""
        terms = shift - slopes[..., 0] * u[:, None, None] - slopes[..., 1] * v[..., None]
        return np.asarray(np.log(np.exp(terms).sum(axis=2)))

    def sections(at: FloatArray) -> FloatArray:
        """(K,) masses of the sections at (K, 1) u."""
        u = at[:, 0]
        low, high = (np.full((len(u), len(p)), end[1]) for end in ends)
        left, right = low.copy(), high.copy()
        for _ in range(60):  # ternary search
            one, two = left + (right - left) / 3, right - (right - left) / 3
            falls = values(u, one) > values(u, two)
            left, right = np.where(falls, one, left), np.where(falls, right, two)
        least = (left + right) / 2
        found = values(u, least) < -epsilon
        edges = []
        for far in (low, high):
            outer, inner = far.copy(), least.copy()
            for _ in range(50):
                middle = (outer + inner) / 2
                above = values(u, middle) >= -epsilon
                outer, inner = np.where(above, middle, outer), np.where(above, inner, middle)
            edges.append(np.where(values(u, far) < -epsilon, far, inner))
        across = norm.pdf(u[:, None], points[:, 0], sigma) * p
        totals = np.zeros(len(u))
        for k, row in enumerate(found):
            reached = -math.inf
            for a, b in sorted(zip(edges[0][k][row], edges[1][k][row], strict=True)):
                start = max(a, reached)
                if b > start:
                    mass = norm.sf(start, points[:, 1], sigma) - norm.sf(b, points[:, 1], sigma)
                    totals[k] += float(across[k] @ mass)
                    reached = b
        return totals

    cuts = np.linspace(ends[0][0], ends[1][0], 17)
    return math.fsum(
        float(cubature(sections, [a], [b], rtol=1e-12, atol=2e-12, max_subdivisions=60).estimate)
        for a, b in itertools.pairwise(cuts)
    )


def record_leakage(
    contributions: FloatArray, p: FloatArray, others: Any, scale: float, y: FloatArray
) -> float:
    """What an outcome leaks of one record; `others` are answers of the rest with their probabilities."""
    answers, weights = others
    given = np.array(
        [
            logsumexp(-np.abs(y - own - answers).sum(axis=1) / scale, b=weights)
            for own in contributions
        ]
    )
    return float(given.max() - logsumexp(given, b=p))
