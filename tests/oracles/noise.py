"""What draws of noise and failures of noise are held against."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from oracles.designs import FloatArray
from scipy.optimize import minimize_scalar


def check_law(draws: FloatArray, law: Callable[[FloatArray], FloatArray]) -> None:
    """By the Dvoretzky-Kiefer-Wolfowitz inequality (Massart's constant) right code fails at 1e-6 of seeds."""
    at, steps = law(np.sort(draws)), np.arange(len(draws) + 1) / len(draws)
    apart = max((steps[1:] - at).max(), (at - steps[:-1]).max())
    assert apart <= math.sqrt(math.log(2 / 1e-6) / (2 * len(draws)))


def largest(
    failure: Callable[[FloatArray], FloatArray], grid: FloatArray, interval: tuple[float, float]
) -> float:
    """The largest value on a grid within an interval, with a local search in its best cells."""
    grid = np.unique(np.clip(grid, *interval))
    values = failure(grid)
    best = float(values.max())
    for at in np.argsort(values)[-3:]:
        ends = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
        found = minimize_scalar(
            lambda q: -float(failure(np.array([q]))[0]),
            bounds=ends, method="bounded", options={"xatol": 1e-14},
        )  # fmt: skip
        best = max(best, -float(found.fun))
    return best
