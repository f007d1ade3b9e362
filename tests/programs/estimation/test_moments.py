"""The bound from second moments, and designs of many letters that it proves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmlopt import LDP, LIP, PML, EstimationError, Prior, design, solve
from pmlopt.model.closed_forms import least_ldp_estimation_error, least_pml_estimation_error
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.programs.estimation.bounds import Objective
from pmlopt.programs.estimation.columns import column_cones
from pmlopt.programs.estimation.moments import MomentProblem


def bound_of(prior: Prior, privacy: PML | LDP | LIP, workload: np.ndarray, criterion: Criterion) -> float:
    """What the numbers that were found prove, by the bound that any numbers give."""
    cones = column_cones(prior.pmf, privacy.columns(prior))
    assert cones is not None
    objective = Objective(prior.pmf, workload, criterion)
    found = MomentProblem(cones[0], objective).proof(objective)
    assert found is not None
    return objective.relaxed_bound(cones, found)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(3, 9),
    epsilon=st.floats(0.2, 2.5),
    criterion=st.sampled_from(["A", "D"]),
)
def test_it_is_below_the_optimum_over_all_extreme_columns(
    seed: int, size: int, epsilon: float, criterion: Criterion
) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(rng.dirichlet(np.full(size, 3.0)))
    workload = np.eye(size) if criterion == "D" else rng.normal(size=(size, size))
    for privacy in (LDP(epsilon), LIP(epsilon, epsilon)):
        utility = EstimationError(None if criterion == "D" else workload, criterion)
        best = solve(design(prior, privacy, utility))
        assert bound_of(prior, privacy, workload, criterion) <= best.value + 1e-9 * abs(best.value)


@pytest.mark.parametrize("size", [7, 60])
def test_at_the_uniform_prior_it_is_that_of_sets_of_any_share(size: int) -> None:
    """Sets need not have a whole number of letters in it: near the closed forms, and met where they have."""
    prior, epsilon = Prior.uniform(size), 1.0
    even = np.log((size - 3) / 3)  # three letters of a share of 1 / (1 + e^epsilon)
    found = bound_of(prior, LDP(even), np.eye(size), "A")
    assert found == pytest.approx(least_ldp_estimation_error(size, even), rel=1e-6)
    for known, privacy in (
        (least_ldp_estimation_error(size, epsilon), LDP(epsilon)),
        (least_pml_estimation_error(size, epsilon), PML(epsilon)),
    ):
        assert (
            {7: 0.8, 60: 0.98}[size] * known
            <= bound_of(prior, privacy, np.eye(size), "A")
            <= known * (1 + 1e-9)
        )


def test_many_letters_are_designed_with_a_gap_of_a_hundredth() -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(42, 3.0)))
    found = solve(design(prior, LDP(1.0), EstimationError()))
    assert found.certificate.verify()
    assert found.bound <= found.value <= 1.015 * found.bound


def test_outputs_that_hardly_anyone_gets_are_left_out_at_no_cost() -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(8, 3.0)))
    found = solve(design(prior, PML(0.7), EstimationError()))
    law = prior.pmf @ found.mechanism.matrix
    assert law.min() >= 1e-6 * law.max()
    assert found.gap <= 1e-7 * found.value


@pytest.mark.parametrize("most", [8, 16, 36])
def test_fewer_outputs_cost_what_the_gap_says(most: int) -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(8, 3.0)))
    best = solve(design(prior, LDP(1.0), EstimationError()))
    few = solve(design(prior, LDP(1.0), EstimationError(), outputs=most))
    assert few.mechanism.shape[1] <= most
    assert few.certificate.verify()
    assert few.bound == pytest.approx(best.bound, rel=1e-6)
    if most == 36:  # N (N + 1) / 2 are always enough
        assert few.value == pytest.approx(best.value, rel=1e-8)
    else:
        assert best.value < few.value <= {8: 1.3, 16: 1.2}[most] * best.value


@pytest.mark.parametrize("rare", [1e-6, 1e-12])
@pytest.mark.parametrize("privacy", [PML(2.0), LDP(20.0), LIP(20.0, 20.0)], ids=str)
@pytest.mark.parametrize("most", [None, 6])
def test_rare_letters_keep_their_rows(privacy: PML | LDP | LIP, rare: float, most: int | None) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1 - 2 * rare, rare, rare])
    found = solve(design(prior, privacy, EstimationError(), outputs=most))
    assert found.certificate.verify()
    assert np.abs(found.mechanism.matrix.sum(axis=1) - 1).max() <= 1e-12
