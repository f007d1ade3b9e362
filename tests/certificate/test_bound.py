"""The dual bound: above every mechanism for any multipliers, and at the optimum for the right ones."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import PML, Prior
from pmlopt.certificate import utility_bound

kinds = pytest.mark.parametrize("kind", oracles.KINDS)


@kinds
@settings(max_examples=60, deadline=None)
@given(case=oracles.cases(), spread=st.sampled_from([0.0, 1e-3, 1.0, 1e3, 1e9]))
def test_any_multipliers_bound_every_mechanism(kind: str, case: oracles.Case, spread: float) -> None:
    levels = oracles.levels_of(kind, case.prior, case.matrix)
    requirement = oracles.requirement_at(kind, levels, 1 + 1e-9)
    multipliers = spread * case.rng.normal(size=case.prior.size)
    value = float((case.prior.pmf[:, None] * case.gains * case.matrix).sum())
    assert utility_bound(case.prior, requirement, case.gains, multipliers) >= value


@kinds
@settings(max_examples=30, deadline=None)
@given(case=oracles.cases(max_size=5), share=st.floats(0.1, 1.2))
def test_the_right_multipliers_reach_the_optimum(kind: str, case: oracles.Case, share: float) -> None:
    requirement = oracles.requirement_at(kind, oracles.levels_of(kind, case.prior, case.matrix), share)
    best = oracles.optimum(case.prior.pmf, requirement, case.gains)
    bound = utility_bound(case.prior, requirement, case.gains, best.multipliers)
    assert bound == pytest.approx(best.value, abs=1e-6)


@kinds
@settings(max_examples=30, deadline=None)
@given(case=oracles.cases(max_size=5), share=st.floats(0.1, 1.2))
def test_no_multipliers_pass_below_the_optimum(kind: str, case: oracles.Case, share: float) -> None:
    requirement = oracles.requirement_at(kind, oracles.levels_of(kind, case.prior, case.matrix), share)
    best = oracles.optimum(case.prior.pmf, requirement, case.gains)
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
