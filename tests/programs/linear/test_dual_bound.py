"""The dual bound: above every mechanism for any multipliers, and at the optimum for the right ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles

from pmlopt import LIP, PML, Prior
from pmlopt.programs.linear.certificate import utility_bound

kinds = pytest.mark.parametrize("kind", oracles.KINDS)


@kinds
@settings(max_examples=30, deadline=None)
@given(case=oracles.cases(), spread=st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e9]))
def test_any_multipliers_bound_every_mechanism(kind: str, case: oracles.Case, spread: float) -> None:
    levels = oracles.levels_of(kind, case.prior, case.matrix)
    requirement = oracles.requirement_at(kind, levels, 1 + 1e-9)
    multipliers = spread * case.rng.normal(size=case.prior.size)
    value = float((case.prior.pmf[:, None] * case.gains * case.matrix).sum())
    assert utility_bound(case.prior, requirement, case.gains, multipliers) >= value


@kinds
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(max_size=5), share=st.floats(0.1, 1.2))
def test_the_right_multipliers_reach_the_optimum_and_none_pass_below(
    kind: str, case: oracles.Case, share: float
) -> None:
    requirement = oracles.requirement_at(kind, oracles.levels_of(kind, case.prior, case.matrix), share)
    best = oracles.optimum(case.prior.pmf, requirement, case.gains)
    bound = utility_bound(case.prior, requirement, case.gains, best.multipliers)
    assert bound == pytest.approx(best.value, abs=1e-6)
    for spread in (0.0, 1e-4, 1e-2, 1.0):
        near = best.multipliers + spread * case.rng.normal(size=case.prior.size)
        assert utility_bound(case.prior, requirement, case.gains, near) >= best.value - 1e-9


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_rounding_is_allowed_for_at_every_scale(scale: float) -> None:
    # at eps = 0 the best constant output is the optimum, known exactly
    gains = scale * np.array([[1.0, 0.1], [0.3, 0.7], [0.2, 0.9]])
    prior = Prior([0.1, 0.2, 0.7])
    best = float((prior.pmf @ gains).max())
    bound = utility_bound(prior, PML(0.0), gains, np.zeros(3))
    assert 0 <= bound - best <= 1e-11 * scale


def test_a_gain_of_the_letter_alone_is_bounded_by_its_mean() -> None:
    prior, own = Prior([0.1, 0.2, 0.7]), np.array([3.0, -1.0, 2.0])
    bound = utility_bound(prior, PML(0.7), np.repeat(own[:, None], 4, axis=1), own)
    assert bound == pytest.approx(float(prior.pmf @ own), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), rare=st.sampled_from([1e-6, 1e-9, 1e-12, 1e-15]), lip=st.booleans())
def test_the_bound_holds_for_letters_of_any_rarity(seed: int, rare: float, lip: bool) -> None:
    rng = np.random.default_rng(seed)
    rest = rng.dirichlet(np.ones(3)) * (1 - rare)
    prior = Prior(np.concatenate([[rare], rest]))
    epsilon = float(rng.uniform(0.0, prior.max_leakage))
    gains = rng.normal(size=(4, 2))
    privacy = LIP(1.0, epsilon) if lip else PML(epsilon)
    floor = Fraction(np.exp(-1.0)) if lip else Fraction(0)
    true = max(exact_column(prior, floor, epsilon, column) for column in gains.T.tolist())
    assert Fraction(utility_bound(prior, privacy, gains, np.zeros(4))) >= true * (1 - Fraction(1, 10**15))


def exact_column(prior: Prior, floor: Fraction, epsilon: float, gains: list[float]) -> Fraction:
    """The best normalised column between `floor` and e^epsilon, filled greedily in exact arithmetic."""
    total = sum(map(Fraction, prior.probabilities.tolist()))
    weights = [Fraction(value) / total for value in prior.probabilities.tolist()]
    top = min(Fraction(np.exp(epsilon)), 1 / min(weights))
    left, worth = 1 - floor, Fraction(0)
    for gain, weight in sorted(zip(map(Fraction, gains), weights, strict=True), reverse=True):
        taken = min(left, weight * (top - floor))
        worth += gain * (taken + floor * weight)
        left -= taken
    return worth
