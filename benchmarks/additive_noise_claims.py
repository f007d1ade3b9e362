"""Claims of `pmlopt.noise` on random laws, for `additive_noise.py`: each returns what was found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from common import FloatArray
from oracles import additive as oracle
from scipy.stats import chi2

from pmlopt import ConvexHull, Prior
from pmlopt.releases.noise import Gaussian, Geometric, Laplace, QueryNoise, derive_differences


def draw_case(rng: np.random.Generator, kind: str) -> tuple[Prior, Any, type[Laplace], FloatArray]:
    """A law on 1 to 12 numbers, whole numbers or vectors, a set around it, and the points of its letters."""
    dimensions, size = int(rng.integers(1, 3)), int(rng.integers(1, 13))
    whole = bool(rng.integers(2)) and dimensions == 1
    labels = oracle.draw_letters(rng, dimensions, size, whole)
    prior = Prior(rng.dirichlet(np.ones(size)) * 0.98 + 0.02 / size, labels)
    points = np.array(labels, dtype=float).reshape(size, -1)
    return prior, oracle.draw_set(rng, kind, prior), Geometric if whole else Laplace, points


def check_levels(count: int, first: int) -> str:
    """The level and the largest leakage over letters and a grid of outcomes, the set by its own program."""
    least, most = math.inf, -math.inf
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        prior, over, noise, points = draw_case(rng, oracle.KINDS[seed % len(oracle.KINDS)])
        scale = float(np.ptp(points, axis=0).max() or 1.0) * 10.0 ** rng.uniform(-1, 1.5)
        steps = 40 if points.shape[1] == 1 else 7
        found = oracle.level_by_outcomes(points, scale, over, prior.pmf, steps)
        apart = noise(scale).level(prior, over) - found
        least, most = min(least, apart), max(most, apart)
    return f"{count} laws: above by {least:.1e} to {most:.1e} nats"


def check_calibration(count: int, first: int) -> str:
    """The level at the calibrated scale in sixty digits: one prior, hulls, all priors."""
    least, most = math.inf, -math.inf
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        kind = ("one", "hull", "all")[seed % 3]
        prior, over, noise, points = draw_case(rng, kind)
        if prior.size == 1:
            continue
        epsilon = float(rng.uniform(0.01, 0.99)) * min(noise(0.0).level(prior, over), 5.0)
        laws = over.points if isinstance(over, ConvexHull) else np.eye(prior.size)
        laws = prior.probabilities[None] if over is None else laws
        scale = noise.calibrate(prior, epsilon, over).scale
        short = float(Decimal(epsilon) - oracle.level_in_digits(points, scale, laws))
        least, most = min(least, short), max(most, short)
    return f"{count} laws: below epsilon by {least:.1e} to {most:.1e} nats"


def check_failures(count: int, first: int) -> str:
    """The failure probability of Gaussian noise by quadrature, on at most 300 laws."""
    worst = 0.0
    for seed in range(first, first + min(count, 300)):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 13))
        prior = Prior(
            rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, rng.normal(size=size).tolist()
        )
        sigma, part = 10.0 ** rng.uniform(-0.7, 1), float(rng.uniform(0.05, 0.95))
        epsilon, points = part * prior.max_leakage, np.array(prior.labels, dtype=float)
        exact = oracle.gaussian_failure(points, prior.pmf, sigma, epsilon)
        worst = max(worst, abs(Gaussian(sigma).failure_probability(prior, epsilon) - exact))
    return f"{min(count, 300)} laws: off by at most {worst:.1e}"


def check_failures_over_sets(count: int, first: int) -> str:
    """The failure probability over sets and that of 2,000 priors of each set, in six sets of each kind."""
    least, sets = math.inf, 0
    for seed, kind in itertools.product(range(max(1, min(count // 150, 6))), oracle.KINDS[1:]):
        rng = np.random.default_rng(first + seed)
        size = int(rng.integers(2, 6))
        prior = Prior(
            rng.dirichlet(np.ones(size)) * 0.8 + 0.2 / size, rng.normal(size=size).tolist()
        )
        over: Any = oracle.draw_set(rng, kind, prior)
        sigma, epsilon = (
            10.0 ** rng.uniform(-0.3, 0.7),
            float(rng.uniform(0.2, 0.8)) * prior.max_leakage,
        )
        found = Gaussian(sigma).failure_probability(prior, epsilon, over)
        ends = np.array([over.minimizer(rng.normal(size=size)) for _ in range(40)])
        for _ in range(2000):
            law = rng.dirichlet(np.full(len(ends), 0.05)) @ ends
            least = min(least, found - density_failure(prior, law, sigma, epsilon))
        sets += 1
    return f"2,000 priors in each of {sets} sets: above by {least:.1e} at least"


def density_failure(prior: Prior, law: FloatArray, sigma: float, epsilon: float) -> float:
    """A lower sum of the failure probability under one law: cells on whose both ends more is leaked.

    What leaks more need not be an interval, but a cell between two outcomes that do mostly does: the sum is
    taken off by the mass of the cells at which it turns.
    """
    points = np.array(prior.labels, dtype=float)
    grid = np.linspace(points.min() - 9 * sigma, points.max() + 9 * sigma, 1500)
    logs = -((grid - points[:, None]) ** 2) / (2 * sigma**2)
    likelihoods = np.exp(logs - logs.max(axis=0))
    above = law @ likelihoods < math.exp(-epsilon)
    from scipy.special import ndtr

    mass = law @ np.diff(ndtr((grid - points[:, None]) / sigma), axis=1)
    return float(mass[above[:-1] & above[1:]].sum())


def check_failures_in_the_plane(count: int, first: int) -> str:
    """The failure probability of Gaussian noise on vectors by sections of convex sets, on few laws."""
    worst, laws = 0.0, max(1, count // 50)
    for seed in range(first, first + laws):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(3, 6))
        points = rng.normal(size=(size, 2))
        prior = Prior(rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size, list(map(tuple, points)))
        sigma, part = 10.0 ** rng.uniform(-0.3, 0.5), float(rng.uniform(0.2, 0.8))
        epsilon = part * prior.max_leakage
        # quadrature across one axis may miss a thin set, which lowers it: the other axis has it
        both = (points, points[:, ::-1].copy())
        exact = max(oracle.plane_failure(one, prior.pmf, sigma, epsilon) for one in both)
        worst = max(worst, abs(Gaussian(sigma).failure_probability(prior, epsilon) - exact))
    return f"{laws} laws: off by at most {worst:.1e}"


def check_records(count: int, first: int) -> str:
    """One record of up to four, the others of any joint law: by enumeration, and where it is attained."""
    most, apart = -math.inf, 0.0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        size, others = int(rng.integers(2, 4)), int(rng.integers(0, 4))
        contributions = (
            np.eye(size) if seed % 2 else np.round(rng.normal(size=(size, 1 + seed // 2 % 2)), 2)
        )
        prior, scale = (
            Prior(rng.dirichlet(np.ones(size)) * 0.95 + 0.05 / size),
            10.0 ** rng.uniform(-0.5, 1),
        )
        level = QueryNoise([derive_differences(contributions)], [scale]).level(prior)
        every = list(itertools.product(range(size), repeat=others))
        answers = np.array([contributions[list(one)].sum(axis=0) for one in every])
        answers = answers.reshape(len(every), -1)
        joint = rng.dirichlet(np.full(len(every), 0.3))
        for y in [
            *rng.normal(scale=3 * scale + 3, size=(20, contributions.shape[1])),
            *answers[:3],
        ]:
            leaked = oracle.record_leakage(contributions, prior.pmf, (answers, joint), scale, y)
            most = max(most, leaked - level)
        known = answers[:1], np.ones(1)
        attained = max(
            oracle.record_leakage(contributions, prior.pmf, known, scale, own + answers[0])
            for own in contributions
        )
        apart = max(apart, abs(attained - level))
    return f"{count} queries: above the level by {most:.1e} at most; attained within {apart:.1e}"


def check_draws(count: int, first: int) -> str:
    """Chi-square of 10^6 draws, or 1,000 for each law that is checked if that is less, for five laws."""
    draws, lowest = min(10**6, 1000 * count), 1.0
    noises = [(Geometric(0.7), 1.0), (Geometric(4.0), 1.0), (Laplace(1.3), 0.25), (Gaussian(1.0), 0.25),
              (Gaussian(6.0), 1.0)]  # fmt: skip
    for seed, (noise, width) in enumerate(noises, first):
        values = noise.sample([0] * draws, seed)
        edges: FloatArray = (np.arange(-40, 41) + 0.5) * np.float64(width)
        if isinstance(noise, Geometric):
            q = math.exp(-1 / noise.scale)
            inner = np.array([(1 - q) / (1 + q) * q ** abs(k) for k in range(-39, 41)])
            tail = q**40 / (1 + q)
            law = np.array([tail, *inner, q**41 / (1 + q)])
        else:
            above = noise.compute_tail(edges)
            law = np.array(
                [noise.compute_tail(-edges[:1])[0], *(above[:-1] - above[1:]), above[-1]]
            )
        counts = np.bincount(np.searchsorted(edges, values), minlength=len(law))
        rare = law * draws < 5
        observed = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(law[~rare], law[rare].sum()) * draws
        kept = expected > 0
        distance = float(((observed - expected)[kept] ** 2 / expected[kept]).sum())
        lowest = min(lowest, float(chi2.sf(distance, int(kept.sum()) - 1)))
    return f"{draws:,} draws of each of five laws: p-values of {lowest:.3f} or more"


CLAIMS: Mapping[str, Callable[[int, int], str]] = {
    "levels by outcomes and by each set's own program": check_levels,
    "calibrated levels in sixty digits": check_calibration,
    "Gaussian failure probabilities by quadrature": check_failures,
    "Gaussian failure probabilities over sets": check_failures_over_sets,
    "Gaussian failure probabilities of vectors by sections": check_failures_in_the_plane,
    "records by enumeration": check_records,
    "draws by chi-square": check_draws,
}
