"""Random columns and designs over a set of priors, compared with convex programs in a prior."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from oracles.designs import FloatArray
from oracles.divergence_balls import SetKind, best_gain, least_mean, random_center

from pmlopt import PML, ExpectedGain, design, solve


def random_column(rng: np.random.Generator, n: int) -> FloatArray:
    """Entries in [0, 1], now and then with ties, zeros, or all alike but for 1e-6."""
    column = rng.uniform(size=n)
    kind = int(rng.integers(5))
    if kind == 1:
        return np.asarray(column.round(1))
    if kind == 2:
        return (column > 0.5).astype(float)
    return 0.7 + 1e-6 * column if kind == 3 else column


def compare_columns(kind: SetKind, seed: int, count: int) -> float:
    """Hold least means, minimizers and rational bounds of random columns against convex programs.

    Returns the largest difference of the least means.
    """
    rng = np.random.default_rng(seed)
    farthest = 0.0
    for _ in range(count):
        n = int(rng.integers(2, 8))
        p, radius = random_center(rng, n), float(rng.choice(kind.radii))
        ball, column = kind.make(p, radius), random_column(rng, n)
        least = float(ball.min_mean(column[:, None])[0])
        by_definition = least_mean(kind, p, radius, column)
        assert least == pytest.approx(by_definition, abs=1e-6)
        farthest = max(farthest, abs(least - by_definition))
        worst = ball.minimizer(column)
        slack = ball.mean_atol * float(np.ptp(column))
        assert worst @ column == pytest.approx(least, abs=1e-14 + slack)
        assert ball.contains_law(worst)
        # a point beyond the worst prior is outside: its mean would be less than the least
        if least - column.min() > 1e-5:
            beyond = worst + 1e-3 * (np.eye(n)[int(column.argmin())] - worst)
            assert not ball.contains_law(beyond)
        whole = np.array([[int(value * 2**53)] for value in column.tolist()], dtype=object)
        (bound,), unit = ball.min_mean_scaled(whole)
        member = ball.project_to_rationals(worst)
        assert ball.contains_rationals(member) is not False
        mean = sum((q * v for q, v in zip(member, whole[:, 0], strict=True)), Fraction(0))
        # the bound is below every prior of the ball, without rounding, and hardly
        assert Fraction(bound, unit) <= mean
        assert float((mean - Fraction(bound, unit)) / 2**53) <= 1e-13 + slack
    return farthest


def compare_designs(kind: SetKind, seed: int, count: int) -> tuple[float, float]:
    """Hold random designs against cutting planes, and their levels against the worst priors found.

    Returns how far a value is at most from either bound of the cutting planes, and a level above epsilon.
    """
    rng = np.random.default_rng(seed)
    farthest, excess = 0.0, -math.inf
    for _ in range(count):
        n, m = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        p, radius = random_center(rng, n), float(rng.choice(kind.radii))
        gains, epsilon = rng.normal(size=(n, m)), float(rng.uniform(0.1, 2.0))
        over = kind.make(p, radius)
        result = solve(design(p, PML(epsilon, over=over), ExpectedGain(gains), m))
        low, high = best_gain(kind, p, radius, gains, epsilon)
        assert result.status.value == "optimal"
        assert result.certificate.verify()
        assert low - 1e-6 <= result.value <= high + 1e-6
        assert result.bound >= low - 1e-7
        farthest = max(farthest, result.value - low, high - result.value)
        for column in result.mechanism.matrix.T:
            if column.max() > 0:
                level = -math.log(least_mean(kind, p, radius, column / column.max()))
                assert level <= epsilon + 1e-6
                excess = max(excess, level - epsilon)
    return farthest, excess
