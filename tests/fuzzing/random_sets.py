"""Random designs over sets of priors of every kind, each claim held against the definition of the set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from fuzzing.random_designs import demand
from oracles.divergence_balls import KINDS, best_gain, find_worst_prior, random_center

from pmlopt import PML, ExpectedGain, design, solve
from pmlopt.programs.result import Result

SOLVER_ATOL = 1e-6
"""What the conic programs that find worst priors may be off."""


def curved_set(rng: np.random.Generator) -> Result[Any]:
    """A design over a ball of a divergence, rows, a transport distance, an entropy, or an intersection."""
    kind = KINDS[str(rng.choice(list(KINDS)))]
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    p, radius = random_center(rng, n), float(rng.choice(kind.radii))
    gains, epsilon = rng.normal(size=(n, m)), float(rng.uniform(0.05, 2.5))
    over = kind.make(p, radius)
    result = solve(design(p, PML(epsilon, over=over), ExpectedGain(gains), m))
    demand(result.certificate.verify(), "the exact check fails")
    demand(result.level <= epsilon, f"a level of {result.level} is stated, above {epsilon}")
    matrix = result.mechanism.matrix
    value = float((p[:, None] * gains * matrix).sum())
    demand(abs(value - result.value) <= 1e-12, f"the value {result.value} is stated, it is {value}")
    for column in matrix.T[matrix.max(axis=0) > 0]:
        least, _ = find_worst_prior(kind, p, radius, column / column.max())
        reached = -math.log(max(least, 1e-300))
        demand(
            math.exp(-epsilon) <= least + SOLVER_ATOL,
            f"an outcome leaks {reached}, above {epsilon}",
        )
    low, _ = best_gain(kind, p, radius, gains, epsilon)
    demand(result.bound >= low - SOLVER_ATOL, f"{low} is reached, above the bound {result.bound}")
    return result
