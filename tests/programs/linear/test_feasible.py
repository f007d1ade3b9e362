"""A solve that runs out of time ends with a mechanism, whatever solver it was at."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt import (
    LDP,
    LIP,
    PML,
    CirclePrior,
    CoordinateLoss,
    ExpectedLoss,
    IIDPrior,
    MaximalLeakage,
    MetricPrivacy,
    RenyiPML,
    design,
    solve,
)
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import DisplacementLoss
from pmlopt.programs import Status
from pmlopt.programs.exact.envelope_repair import pair_exponents
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.linear.pair_interior_point import build_exponential_matrix

SIDE = 12
PLACES = np.array([(i, j) for i in range(SIDE) for j in range(SIDE)], dtype=float)
METRIC = np.abs(PLACES[:, None] - PLACES[None]).sum(axis=-1)


def test_an_exponential_mechanism_has_the_largest_scale_that_is_proved() -> None:
    program = design(np.full(4, 0.25), LDP(1.0), ExpectedLoss(1 - np.eye(4)))
    exponents = pair_exponents(program.prior, program.privacy)
    assert exponents is not None
    found = build_exponential_matrix(program.centered_gains, exponents)
    # differences of two rows spread over 2: exp(-loss / 2), whose level is 1 / 2 by its equal sums of rows
    own = np.exp(-(1 - np.eye(4)) / 2)
    assert found == pytest.approx(own / own.sum(axis=1)[:, None], abs=1e-14)


@pytest.mark.parametrize("bound", [1.0, np.inf])
def test_gains_of_a_letter_alone_change_no_exponential_mechanism(bound: float) -> None:
    """Even gains whose exponentials are no floats."""
    gains = np.array([[0.0, 1.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 3.0]])
    exponents = np.full((3, 3), bound)
    found = build_exponential_matrix(gains, exponents)
    moved = build_exponential_matrix(gains + np.array([[-2.0], [0.0], [1e4]]), exponents)
    assert moved == pytest.approx(found)
    if bound == np.inf:  # all mass is on the best outputs
        assert found.tolist() == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("seconds", [1e-3, 0.5])
def test_a_metric_on_many_points_ends_with_a_mechanism_that_is_better_than_none(
    seconds: float,
) -> None:
    prior = np.random.default_rng(0).dirichlet(np.full(SIDE**2, 5.0))
    program = design(prior, MetricPrivacy(1.0, METRIC), ExpectedLoss(METRIC))
    result = solve(program, time_limit=seconds)
    constant = float((prior @ METRIC).min())
    assert result.status is Status.LIMIT_REACHED
    assert result.value < constant - 1
    assert result.level <= 1.0
    assert result.certificate.verify()


REQUIREMENTS: tuple[Requirement, ...] = (
    PML(0.5), LDP(0.5), LIP(0.5, 0.3), MaximalLeakage(0.4), RenyiPML(2.0, 0.3),
    PML([0.5, 0.4, 0.3, 0.2, 0.6]),
)  # fmt: skip


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_requirement_has_a_first_mechanism(requirement: Requirement) -> None:
    rng = np.random.default_rng(3)
    program = design(rng.dirichlet(np.full(5, 3.0)), requirement, ExpectedLoss(rng.random((5, 5))))
    found, best = find_first_mechanism(program).certificate, solve(program)
    assert found.verify()
    assert found.bound <= best.value <= found.value
    assert found.value <= float((program.prior.pmf @ program.table).min()) + 1e-12


@pytest.mark.parametrize("seconds", [1e-3, 0.05])
def test_designs_by_orbits_keep_their_limit(seconds: float) -> None:
    small = design(CirclePrior(7), LDP(1.0), DisplacementLoss([0, 1, 2, 3, 3, 2, 1]))
    large = design(IIDPrior([0.5, 0.3, 0.2], 9), PML(1.0), CoordinateLoss(1 - np.eye(3)))
    for program in (small, large):
        result = solve(program, time_limit=seconds)
        assert result.certificate.verify()
        if program is large:
            assert result.status is Status.LIMIT_REACHED
            assert result.timings.compile == 0.0
            assert result.value == pytest.approx(9 * 0.5)  # always the likeliest letter
