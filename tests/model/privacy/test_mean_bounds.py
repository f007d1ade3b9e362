"""Bounds between means: the fast routines are held to lists of pairs, to linear rows and to corners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import linear_program, support
from oracles.prior_sets import KINDS, random_set, robust_rows

from pmlopt import LDP, LIP, PML, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.model.privacy.mean_bounds import MeanBounds
from pmlopt.programs.exact.arithmetic import integers, power_below, snap

SEEDS = st.integers(0, 2**32 - 1)


def drawn(rng: np.random.Generator) -> tuple[Prior, FloatArray, FloatArray, list[MeanBounds]]:
    """A prior, gains, a mechanism, and the requirements that are lists of pairs."""
    n, first, second = int(rng.integers(2, 6)), *rng.uniform(0, 2, 2)
    prior = Prior(rng.dirichlet(np.full(n, 2.0)))
    mixed = rng.uniform(0, 1) * rng.dirichlet(np.ones(3), n)
    matrix = snap(mixed + (1 - mixed.sum(axis=1, keepdims=True)) * rng.dirichlet(np.ones(3)))
    return prior, rng.normal(size=(n, 3)), matrix, [PML(first), LDP(first), LIP(first, second)]


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_support_and_check_are_those_of_the_pairs(seed: int) -> None:
    prior, gains, matrix, requirements = drawn(np.random.default_rng(seed))
    weights = np.array(prior.weights, dtype=object)
    for requirement in requirements:
        ratios, exactly = requirement.ratios(prior.pmf), requirement.ratios(weights)
        assert ratios is not None
        assert exactly is not None
        found = requirement.relaxation(prior, gains)
        assert found == pytest.approx(ratios.support(prior.pmf, gains), abs=1e-9)
        assert found == pytest.approx(support(prior.pmf, requirement, gains), abs=1e-7)
        own = requirement.excess(weights, integers(matrix), power_below)
        pairs = exactly.excess(integers(matrix), power_below)
        assert (np.asarray(own) > 0).tolist() == (np.asarray(pairs) > 0).tolist()
        rows = ratios.log_ratios(matrix).max(axis=1)
        assert requirement.holds(prior, matrix) == bool((rows <= ratios.exponents).all())


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, deadline=None)
@given(seed=SEEDS)
def test_the_support_over_a_set_is_that_of_its_corners_and_of_its_linear_rows(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_set(kind, rng, int(rng.integers(2, 5)))
    epsilon = float(rng.choice([0.02, *rng.uniform(0.05, 3, 5)]))
    prior, gains = Prior(case.p), rng.normal(size=(case.priors.size, 3))
    requirement, p = PML(epsilon, over=case.priors), prior.pmf
    rows = requirement.rows(prior)
    system = np.hstack([rows.on_column.toarray(), rows.on_numbers.toarray()])
    more = np.zeros(system.shape[1] - len(p))
    bounds = [(0.0, None)] * len(p) + [(low if math.isfinite(low) else None, None) for low in rows.least]
    corners = robust_rows(case.defined.corners(), 1, epsilon)

    def largest(rows: FloatArray, gain: FloatArray, ends: Any) -> float:
        """The largest `<p g, v>` of a column of mean one, numbers of its own after it."""
        wide = rows.shape[1] - len(p)
        cost, mean = np.append(-p * gain, more[:wide]), np.append(p, more[:wide])[None, :]
        limits = {"A_ub": rows, "b_ub": np.zeros(len(rows)), "A_eq": mean, "b_eq": [1.0]}
        return -float(linear_program(cost, **limits, bounds=ends).fun)

    relaxed = requirement.relaxation(prior, gains)
    assert relaxed == pytest.approx(max(largest(system, gain, bounds) for gain in gains.T), abs=1e-7)
    by_corners = max(largest(corners, gain, (0, None)) for gain in gains.T)
    assert relaxed == pytest.approx(by_corners, abs=2e-8)
    assert relaxed >= by_corners - 1e-9
