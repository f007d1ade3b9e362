"""Bounds between means: the fast routines are held to the lists of pairs and to linear rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.prior_sets import KINDS, random_set
from scipy.optimize import linprog

from pmlopt import LDP, LIP, PML, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.model.privacy.mean_bounds import MeanBounds
from pmlopt.model.uncertainty.prior_set import LinearRows
from pmlopt.programs.exact.arithmetic import integers, power_below, snap

SEEDS = st.integers(0, 2**32 - 1)


def drawn(rng: np.random.Generator) -> tuple[Prior, FloatArray, FloatArray, list[MeanBounds]]:
    """A prior, gains, a mechanism, and the requirements that are lists of pairs."""
    n, first, second = int(rng.integers(2, 6)), *rng.uniform(0, 2, 2)
    prior = Prior(rng.dirichlet(np.full(n, 2.0)))
    mixed = rng.uniform(0, 1) * rng.dirichlet(np.ones(3), n)
    matrix = snap(mixed + (1 - mixed.sum(axis=1, keepdims=True)) * rng.dirichlet(np.ones(3)))
    return prior, rng.normal(size=(n, 3)), matrix, [PML(first), LDP(first), LIP(first, second)]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_support_and_check_are_those_of_the_pairs(seed: int) -> None:
    prior, gains, matrix, requirements = drawn(np.random.default_rng(seed))
    weights = np.array(prior.weights, dtype=object)
    for requirement in requirements:
        ratios, exactly = requirement.ratios(prior.pmf), requirement.ratios(weights)
        assert ratios is not None
        assert exactly is not None
        assert requirement.relaxation(prior, gains) == pytest.approx(
            ratios.support(prior.pmf, gains), abs=1e-9
        )
        own = requirement.excess(weights, integers(matrix), power_below)
        pairs = exactly.excess(integers(matrix), power_below)
        assert (np.asarray(own) > 0).tolist() == (np.asarray(pairs) > 0).tolist()
        rows = ratios.log_ratios(matrix).max(axis=1)
        assert requirement.holds(prior, matrix) == bool((rows <= ratios.exponents).all())


def largest_by_rows(p: FloatArray, gains: FloatArray, rows: LinearRows) -> float:
    """The largest `<p g, v>` over columns of mean one within the rows, and over columns g."""
    system: Any = np.hstack([rows.on_column.toarray(), rows.on_numbers.toarray()])
    more = system.shape[1] - len(p)
    bounds = [(0.0, None)] * len(p) + [(low if math.isfinite(low) else None, None) for low in rows.least]
    answers = [
        linprog(
            np.append(-p * column, np.zeros(more)),
            A_ub=system,
            b_ub=np.zeros(len(system)),
            A_eq=np.append(p, np.zeros(more))[None, :],
            b_eq=[1.0],
            bounds=bounds,
            method="highs",
        )
        for column in gains.T
    ]
    assert all(answer.status == 0 for answer in answers)
    return max(-float(answer.fun) for answer in answers)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS)
def test_the_support_over_a_set_is_that_of_its_linear_rows(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    case, epsilon = random_set(kind, rng, int(rng.integers(2, 5))), float(rng.uniform(0.02, 2))
    gains, prior = rng.normal(size=(case.priors.size, 2)), Prior(case.p)
    requirement = PML(epsilon, over=case.priors)
    expected = largest_by_rows(prior.pmf, gains, requirement.rows(prior))
    assert requirement.relaxation(prior, gains) == pytest.approx(expected, abs=1e-7)
