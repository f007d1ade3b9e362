"""Designs for secrets that are numbers: both ends against closed forms and against finer bins."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from pmlopt import (
    LDP,
    PML,
    Continuous,
    DistanceLoss,
    design,
    leakage_level,
    solve,
)
from pmlopt.errors import PriorError
from pmlopt.programs import Status
from pmlopt.programs.continuous.methods import GridRefinement, certify_on_grid
from pmlopt.solvers.solver_result import Deadline


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_both_ends_converge_to_the_closed_form_on_a_circle(epsilon: Any) -> None:
    program = design(
        Continuous(scipy.stats.uniform(0, 2), period=True), PML(epsilon), DistanceLoss()
    )
    exact = 2 * math.exp(-epsilon) / 4
    for bins, boxes in ((16, 256), (32, 512)):
        found = certify_on_grid(program, program.secret.even(bins), boxes)
        assert found.bound <= exact <= found.value
        assert found.bound >= exact - 2 / boxes  # the length of a box
        assert found.value <= exact + 2 / bins / 4


@pytest.mark.parametrize("privacy", [PML(0.7), LDP(0.7)], ids=["pml", "ldp"])
@pytest.mark.parametrize("growth", [None, np.square], ids=["absolute", "squared"])
def test_no_finer_mechanism_betters_the_bound(privacy: Any, growth: Any) -> None:
    secret = Continuous(scipy.stats.beta(2, 3), support=(0, 1))
    program = design(secret, privacy, DistanceLoss(growth))
    coarse, fine = (certify_on_grid(program, secret.even(bins), 256) for bins in (8, 32))
    assert coarse.bound <= fine.value <= coarse.value + 1e-9
    assert coarse.verify()
    assert fine.verify()


def test_the_value_is_the_loss_of_the_mechanism_by_a_sample() -> None:
    # 10^5 draws: the mean of losses in [0, 1] is off by more than 5e-3 with probability below 2 e^-5
    # (Hoeffding)
    secret = Continuous(scipy.stats.beta(2, 3), support=(0, 1))
    found = certify_on_grid(design(secret, PML(1.0), DistanceLoss()), secret.even(40))
    draws = scipy.stats.beta(2, 3).rvs(100_000, random_state=np.random.default_rng(3))
    rows = found.mechanism.matrix[found.rows(draws[:, None])]
    losses = (rows * np.abs(draws[:, None] - np.array(found.mechanism.outputs))).sum(axis=1)
    assert abs(losses.mean() - found.value) < 5e-3


def test_the_level_of_the_secret_is_that_of_the_bins() -> None:
    secret = Continuous.from_samples(np.random.default_rng(1).normal(size=300), support=(-5, 5))
    result = solve(design(secret, PML(1.0), DistanceLoss()))
    assert result.status is Status.OPTIMAL
    assert result.level <= 1.0
    prior = secret.prior(result.certificate.grid)
    assert leakage_level(prior, result.mechanism) == pytest.approx(result.level, abs=1e-12)


def test_a_plane_is_bracketed() -> None:
    secret = Continuous([scipy.stats.uniform(), scipy.stats.uniform()])
    result = solve(
        design(secret, PML(1.0), DistanceLoss()), solver=GridRefinement(max_bins=64, boxes=400)
    )
    assert result.status is Status.UNPROVED
    assert 0 < result.bound < result.value
    # the best column of a point in the middle of a square is a disc of probability 1/e around it
    assert result.bound <= 2 / 3 * math.sqrt(math.exp(-1) / math.pi)


def test_a_loss_may_be_negative() -> None:
    secret = Continuous(scipy.stats.uniform())
    plain, less = (
        certify_on_grid(design(secret, PML(1.0), DistanceLoss(growth)), secret.even(16), 128)
        for growth in (None, lambda distance: distance - 1.0)
    )
    assert less.value == pytest.approx(plain.value - 1, abs=1e-6)
    assert less.bound == pytest.approx(plain.bound - 1, abs=1e-6)
    assert all(claim.holds for claim in less.checks())
    assert not replace(less, bound=0.0).verify()


def test_bins_are_not_halved_where_the_law_has_no_more_digits() -> None:
    class Even:  # 1/32 of the support has the digits that are asked for, half of that has not
        def support(self) -> tuple[float, float]:
            return 0.0, 1e5

        def cdf(self, x: Any) -> Any:
            return np.clip(np.asarray(x) / 1e5, 0.0, 1.0)

    secret = Continuous(Even(), support=(6e4, 6e4 + 2.0))
    program = design(secret, PML(1.0), DistanceLoss())
    result = solve(program, solver=GridRefinement(boxes=64), tolerance=1e-6)
    assert "is known up to" in result.reason
    assert result.certificate.verify()


def test_refinement_ends_where_finer_bins_win_nothing() -> None:
    # at 0 nats the optimum is a constant, the median, and bins next to it are halved without end
    secret = Continuous(scipy.stats.norm(), support=(-4, 4))
    program = design(secret, PML(0.0), DistanceLoss())
    result = solve(program, solver=GridRefinement(boxes=256), tolerance=1e-6)
    assert result.status is Status.UNPROVED
    assert "finer bins win nothing" in result.reason
    # E|X| of the law on its support, from its density x phi(x)
    mean = (
        2 * (scipy.stats.norm.pdf(0) - scipy.stats.norm.pdf(4)) / (1 - 2 * scipy.stats.norm.sf(4))
    )
    assert result.bound <= mean <= result.value <= mean * 1.001
    (edges,) = result.certificate.grid.edges
    assert np.diff(edges).min() > 1e-4


def test_rows_skip_bins_without_probability() -> None:
    secret = Continuous.from_samples([0.1, 0.2, 0.9], support=(0, 1))
    found = certify_on_grid(design(secret, PML(0.5), DistanceLoss()), secret.even(4), 16)
    assert found.rows([[0.15], [0.99]]).tolist() == [0, 1]
    with pytest.raises(PriorError, match=r"\[0\.4\] at position 1 is in a bin without probability"):
        found.rows([[0.15], [0.4]])


def test_a_bound_is_computed_on_as_many_boxes_as_there_is_time_for() -> None:
    secret = Continuous(scipy.stats.beta(2, 3), support=(0, 1))
    program = design(secret, LDP(0.7), DistanceLoss())
    late, never = (
        certify_on_grid(program, secret.even(8), 256, Deadline.after(seconds, lambda: 0.0))
        for seconds in (0.0, 1.0)
    )
    assert late.boxes < 256
    assert never.boxes == 256
    assert 0 < late.bound <= never.bound <= never.value
    assert late.verify()
