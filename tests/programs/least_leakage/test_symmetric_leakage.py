"""Least leakage by orbits: the level of the listed program, proved from both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import (
    PML,
    CirclePrior,
    CoordinateLoss,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    design,
    least_leakage,
    solve,
    solvers_for,
)
from pmlopt.data.symmetry import reflection
from pmlopt.errors import ProgramError
from pmlopt.model.utility import DisplacementLoss
from pmlopt.programs.least_leakage.certificate import Multipliers, least_level_of
from pmlopt.programs.least_leakage.program import SymmetricLeastLeakage

HAMMING = CoordinateLoss([[0, 1], [1, 0]])


@given(st.floats(0.05, 0.95), st.integers(0, 2**32 - 1))
@settings(max_examples=6, deadline=None)
def test_the_level_is_that_of_the_listed_program(share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = IIDPrior(rng.dirichlet([3, 3]), 3)
    most = solve(design(prior, PML(0.0), HAMMING)).value
    found = solve(least_leakage(prior, HAMMING, expected=share * most))
    listed = prior.listed()
    table = HAMMING.table(listed.labels, listed.labels)
    wanted = solve(least_leakage(listed, ExpectedLoss(table), expected=share * most))
    assert found.value == pytest.approx(wanted.value, abs=3e-7)
    assert found.bound <= wanted.value + 1e-9
    assert wanted.bound <= found.value + 1e-9
    assert found.certificate.verify()
    loss = listed.pmf @ (table * found.mechanism.matrix).sum(axis=1)
    assert loss <= share * most * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize(("records", "loss"), [(8, 1.9226514289), (16, 4.2435478878)])
def test_the_loss_that_one_nat_buys_takes_one_nat(records: int, loss: float) -> None:
    result = solve(least_leakage(IIDPrior([0.7, 0.3], records), HAMMING, expected=loss))
    assert result.value == pytest.approx(1.0, abs=2e-7)
    assert result.gap <= 1e-7
    assert result.level <= result.value
    assert result.certificate.verify()


def test_on_a_circle_the_level_is_by_hand() -> None:
    """The mean of the N e^-eps least losses is 1.5 for six of 24 letters: log 4."""
    along = [min(d, 24 - d) for d in range(24)]
    result = solve(least_leakage(CirclePrior(24), DisplacementLoss(along), expected=1.5))
    assert result.value == pytest.approx(math.log(4), abs=2e-7)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_any_multipliers_prove_a_level_that_holds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    epsilon = float(rng.uniform(0.2, 1.5))
    prior = IIDPrior([0.6, 0.4], 3)
    best = solve(design(prior, PML(epsilon), HAMMING))
    program = least_leakage(prior, HAMMING, expected=best.value * (1 + 1e-9))
    assert isinstance(program, SymmetricLeastLeakage)
    rho = rng.normal(size=4) * 10.0 ** rng.integers(-3, 2)
    if best.certificate.multipliers is not None and seed % 2:
        rho = best.certificate.multipliers + 1e-3 * rho
    weight = program.floor.unit if seed % 3 else 0.0  # of gains in units of their own
    proved = least_level_of(program.columns, program.allowed, program.floor, Multipliers(-rho, weight))
    assert proved <= epsilon + 1e-9


def test_a_floor_that_a_constant_reaches_takes_nothing() -> None:
    mirrored = InvariantPrior([0.1, 0.2, 0.4, 0.2, 0.1], [reflection(5)])
    result = solve(least_leakage(mirrored, ExpectedLoss(lambda x, y: abs(x - y)), expected=0.8))
    assert result.value <= 1e-7
    assert result.bound == 0.0


def test_what_cannot_be_reached_or_asked_is_refused() -> None:
    prior = IIDPrior([0.7, 0.3], 4)
    with pytest.raises(ProgramError, match="the smallest is 0"):
        least_leakage(prior, HAMMING, expected=-0.1)
    with pytest.raises(ProgramError, match="`expected` alone"):
        least_leakage(prior, HAMMING, expected=1.0, worst=2.0)
    program = least_leakage(prior, HAMMING, expected=1.0)
    assert [choice.name for choice in solvers_for(program)] == ["level-search"]


def test_the_declared_problem_is_zero_where_the_level_can_be_reached() -> None:
    program = least_leakage(IIDPrior([0.7, 0.3], 4), HAMMING, expected=0.8275588823)
    for level, missing in ((1.0, 0.0), (0.9, 1e-2)):
        program.share.value = math.exp(-level)
        found = float(program.problem.solve(solver="HIGHS"))
        assert found == pytest.approx(0.0, abs=1e-8) if not missing else found > missing
