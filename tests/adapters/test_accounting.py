"""Privacy loss distributions of dp_accounting, against products of rows."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")

from dp_accounting.pld import privacy_loss_distribution as theirs_all

from pmlopt.adapters.accounting import hockey_stick_divergences, privacy_loss_distribution
from pmlopt.errors import InputError


def own_delta(matrix: np.ndarray, epsilon: float, times: int) -> float:
    """The least delta of several draws by enumeration of pairs of rows and of tuples of outcomes."""
    best = 0.0
    for one, other in product(matrix, repeat=2):
        tuples = product(range(len(one)), repeat=times)
        best = max(
            best,
            sum(
                max(
                    math.prod(one[y] for y in ys)
                    - math.exp(epsilon) * math.prod(other[y] for y in ys),
                    0.0,
                )
                for ys in tuples
            ),
        )
    return best


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("times", [1, 2, 3])
def test_it_is_never_below_the_enumeration_and_near_it(seed: int, times: int) -> None:
    matrix = np.random.default_rng(seed).dirichlet(np.full(3, 2.0), size=3)
    if seed == 4:
        matrix[0] = [0.0, 0.4, 0.6]  # an outcome that excludes a letter
    found = privacy_loss_distribution(matrix, 1e-3).self_compose(times)
    for epsilon in (0.0, 0.3, 1.0):
        true = own_delta(matrix, epsilon, times)
        stated = found.get_delta_for_epsilon(epsilon)
        # one pair dominates each draw here; several draws may be bounded by a mixture of pairs
        assert stated >= true - 1e-12
        if times == 1:
            assert stated <= true + 1e-3


def test_divergences_are_those_of_the_definition() -> None:
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    # at loss l the excess is 0.75 - 0.25 e^l until l = log 3
    losses = np.array([0.0, 0.5, math.log(3), 2.0])
    expected = np.maximum(0.75 - 0.25 * np.exp(losses), 0)
    assert np.allclose(hockey_stick_divergences(matrix, losses), expected, atol=1e-15)


def test_wrong_intervals_are_refused() -> None:
    for wrong in (0.0, -1.0, math.nan, 1e-12):
        with pytest.raises(InputError, match="interval"):
            privacy_loss_distribution([[0.75, 0.25], [0.25, 0.75]], wrong)


RESPONSE = np.full((4, 4), 0.125) + 0.5 * np.eye(4)
"""Randomized response that draws anew with probability 1/2: its largest loss is log 5."""


def delta_of_laplace(epsilon: float) -> float:
    """The least delta of one addition of Laplace noise, whose scale is the sensitivity."""
    if epsilon >= 1:
        return 0.0
    return 1 - math.exp((epsilon - 1) / 2) if epsilon >= -1 else 1 - math.exp(epsilon)


def test_it_composes_with_distributions_of_the_library_both_ways() -> None:
    ours = privacy_loss_distribution(RESPONSE)
    theirs = theirs_all.from_randomized_response(0.5, 4)
    laplace = theirs_all.from_laplace_mechanism(1.0)
    for epsilon in (0.0, 0.7, 1.6, 2.5):
        # the loss of the response is log 5 with 5/8, 0 with 2/8, -log 5 with 1/8
        losses = ((0.625, math.log(5)), (0.25, 0.0), (0.125, -math.log(5)))
        with_laplace = sum(share * delta_of_laplace(epsilon - loss) for share, loss in losses)
        for found in (ours.compose(laplace), laplace.compose(ours)):
            stated = found.get_delta_for_epsilon(epsilon)
            assert with_laplace - 1e-12 <= stated <= with_laplace + 1e-4
        twice = own_delta(RESPONSE, epsilon, 2)
        for found in (ours.compose(theirs), theirs.compose(ours), ours.self_compose(2)):
            assert twice - 1e-12 <= found.get_delta_for_epsilon(epsilon) <= twice + 2e-4


@pytest.mark.parametrize("times", [1, 2, 5, 40])
def test_without_a_delta_epsilon_is_the_sum_of_the_levels(times: int) -> None:
    ours = privacy_loss_distribution(RESPONSE).self_compose(times)
    assert ours.get_epsilon_for_delta(0.0) == pytest.approx(times * math.log(5), rel=1e-12)
    assert ours.get_epsilon_for_delta(0.0) >= times * math.log(5)
    with_laplace = ours.compose(theirs_all.from_laplace_mechanism(1.0))
    assert with_laplace.get_epsilon_for_delta(0.0) == pytest.approx(times * math.log(5) + 1)
    # what excludes an input has no epsilon without a delta
    excluding = privacy_loss_distribution([[0.5, 0.5], [0.0, 1.0]])
    assert excluding.get_epsilon_for_delta(0.0) == math.inf
    assert ours.compose(excluding).get_epsilon_for_delta(0.0) == math.inf


@pytest.mark.parametrize("interval", [1e-4, 1e-3])
def test_the_largest_bin_is_that_of_the_library(interval: float) -> None:
    theirs = theirs_all.from_randomized_response(
        0.5, 4, value_discretization_interval=interval
    )._pmf_remove
    ours = privacy_loss_distribution(RESPONSE, interval)._pmf_remove
    used = [place for place, share in ours._loss_probs.items() if share > 1e-9]
    # a loss between two bins is shared by both, where the library takes the upper one
    assert max(used) == max(theirs._loss_probs) == math.ceil(math.log(5) / interval)
    assert len(ours._loss_probs) == 5


def test_a_level_on_a_bin_takes_that_bin() -> None:
    share = 1 / (1 + math.exp(-0.5))
    found = privacy_loss_distribution([[share, 1 - share], [1 - share, share]], 0.1)
    assert max(found._pmf_remove._loss_probs) in (5, 6)
    assert found.get_epsilon_for_delta(0.0) == pytest.approx(0.5)
    constant = privacy_loss_distribution([[0.5, 0.5], [0.5, 0.5]])
    assert constant.self_compose(3).get_epsilon_for_delta(0.0) == 0.0
