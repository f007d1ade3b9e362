"""Bounds over a set of priors by relaxed columns: never below a listed column, as low as duality allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.prior_sets import KINDS, random_set

from pmlopt import PML, Box, MinimumMass, MutualInformation, Prior, design, solve
from pmlopt.model.uncertainty import Cone
from pmlopt.model.utility import ChiSquare, FInformation, Hellinger, TotalVariation
from pmlopt.programs.subconvex import split_pricing
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.split_pricing import Relaxation, SplitPricer, relaxed_column, splits

STEPS = np.array([-0.5, -0.2, 0.1, 0.5])

UTILITIES = (MutualInformation, ChiSquare, TotalVariation, Hellinger)


@st.composite
def cones(draw: st.DrawFn) -> tuple[Cone, Kernel, np.random.Generator]:
    """A set of priors with a level, a prior and a utility."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    case = random_set(draw(st.sampled_from(KINDS), label="kind"), rng, int(rng.integers(2, 6)))
    utility: FInformation = draw(st.sampled_from(UTILITIES), label="utility")()
    return Cone(case.priors, math.exp(-float(rng.uniform(0.05, 2.0)))), Kernel(case.p, utility.phi), rng


@settings(max_examples=8, deadline=None)
@given(cones(), st.sampled_from([0.0, 0.1, 1.0]))
def test_no_listed_column_is_worth_more_than_the_bound(
    problem: tuple[Cone, Kernel, np.random.Generator], scale: float
) -> None:
    cone, kernel, rng = problem
    rho = scale * rng.normal(size=len(kernel.p))
    listed = cone.extreme(kernel.p, 10**5)
    assert listed is not None
    best = float((kernel.worth(listed) - (kernel.p * rho) @ listed).max())
    pricer = SplitPricer(kernel, cone, splits(cone))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_pricing, "MAX_CELLS", 64)
        bound = pricer.bound(rho, -math.inf)
        relaxed = pricer.relaxed(rho, -math.inf, 0.0)
    size = 1 + abs(best) + float(np.abs(rho).max())
    assert bound >= best - 1e-9 * size
    assert relaxed.upper >= best - 1e-9 * size
    assert kernel.p @ relaxed.lifts == pytest.approx(np.ones(relaxed.lifts.shape[1]), abs=1e-7)
    for found in relaxed.guesses:  # columns, and none better than the best
        entries = found.entries
        assert (cone.keep * entries.max(axis=0) <= cone.priors.least_mean(entries) * (1 + 1e-9)).all()
        assert (kernel.worth(entries) - (kernel.p * rho) @ entries).max() <= best + 1e-9 * size


@settings(max_examples=25, deadline=None)
@given(cones())
def test_at_a_point_the_multipliers_reach_the_linear_program(
    problem: tuple[Cone, Kernel, np.random.Generator],
) -> None:
    cone, kernel, rng = problem
    rho = 0.3 * rng.normal(size=len(kernel.p))
    for split in splits(cone):
        top = float(rng.uniform(1.0, 1.5))
        ratio = float(rng.uniform(0.0, 1.0))
        found = relaxed_column(kernel, split, rho, top, top * ratio)
        cell, start = np.array([[top, top, ratio, ratio]]), np.zeros((1, 1 + len(split.keep)))
        relaxation = Relaxation(kernel, split, rho)
        [bound], _ = relaxation.bounds(cell, start, np.array([30.0]), 200, -math.inf)
        if found is None:
            continue
        column, worth = found
        value = worth - float((kernel.p * rho) @ column)
        assert bound >= value - 1e-6
        if bound < 30:  # else it would take larger multipliers
            assert bound == pytest.approx(value, abs=2e-2)


@settings(max_examples=25, deadline=None)
@given(cones())
def test_any_multipliers_bound_a_whole_cell(problem: tuple[Cone, Kernel, np.random.Generator]) -> None:
    cone, kernel, rng = problem
    for split in splits(cone):
        relaxation = Relaxation(kernel, split, rng.normal(size=len(kernel.p)))
        top, ratio = np.sort(rng.uniform(1.0, 3.0, 2)), np.sort(rng.uniform(0.0, 1.0, 2))
        dual = np.concatenate([rng.normal(size=1), rng.uniform(0.0, 3.0, len(split.keep))])[None]
        cell = np.array([[*top, *ratio]])
        [bound], kept = relaxation.bounds(cell, dual, np.array([1.0]), 1, -math.inf)
        inside = [
            (t, t * r) for t in top.mean() + np.ptp(top) * STEPS for r in ratio.mean() + np.ptp(ratio) * STEPS
        ]
        values = relaxation.evaluated(np.array([inside]), kept)[0]
        assert values.max() <= bound + 1e-9 * (1 + abs(bound))


def test_the_gap_on_more_letters_than_are_listed_is_small() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(15, 2.0))
    within = Box(p * (2 / 3), np.minimum(p * (4 / 3), 1.0))
    result = solve(design(Prior(p), PML(1.0, over=within), MutualInformation()), tolerance=0.01)
    assert result.value <= result.bound <= 1.011 * result.value
    assert result.certificate.pricing == "split"
    assert result.certificate.verify()


def test_what_the_search_leaves_is_between_it_and_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(9, 2.0)))
    program = design(prior, PML(1.0, over=MinimumMass(9, 0.04)), MutualInformation())
    exact = solve(program)
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MOST_DECLARED_COLUMNS", 10)
    monkeypatch.setattr("pmlopt.programs.subconvex.column_spaces.MOST_LISTED_COLUMNS", 10)
    found = solve(design(prior, PML(1.0, over=MinimumMass(9, 0.04)), MutualInformation()), tolerance=0.1)
    assert found.certificate.pricing == "tangents"
    assert found.value <= exact.bound + 1e-9
    assert found.bound >= exact.value - 1e-9
