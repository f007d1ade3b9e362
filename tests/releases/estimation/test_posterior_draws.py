"""Posterior means and credible intervals, beside Dirichlet laws and sums over a grid."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from pmlopt import LDP, EstimationError, Prior, design, estimate, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, MechanismError
from pmlopt.model.closed_forms import randomized_response


@pytest.mark.parametrize("people", [None, 100.0])
def test_of_data_in_clear_it_is_the_dirichlet_law(people: float | None) -> None:
    counts, prior = np.array([50, 9, 1, 0]), [0.4, 0.3, 0.2, 0.1]
    found = estimate(np.eye(4), counts, confidence=0.9).posterior(prior, people)
    weights = (2.0 if people is None else people) * np.array(prior)
    assert found.concentration == pytest.approx(weights)
    after = weights + counts
    assert np.abs(found.mean - after / after.sum()) == pytest.approx(0.0, abs=5 * found.error.max())
    marginals = beta(after, after.sum() - after)
    assert found.standard_deviations == pytest.approx(marginals.std(), rel=0.1)
    # an interval of 0.9 holds 0.9 of the law, as far as 400 draws and more can tell: 4 errors of a share
    held = np.diff(marginals.cdf(found.intervals.T), axis=0)[0]
    assert held == pytest.approx(np.full(4, 0.9), abs=4 * np.sqrt(0.9 * 0.1 / 400))


@pytest.mark.parametrize("epsilon", [0.3])
def test_of_randomized_response_it_is_a_sum_over_a_grid(epsilon: float) -> None:
    matrix, counts, weights = (
        randomized_response(3, epsilon).matrix,
        np.array([90, 40, 70]),
        np.array([1, 2, 3]),
    )
    found = estimate(matrix, counts, min_p_value=0).posterior(weights / 6, 6.0)
    middles = (np.arange(300) + 0.5) / 300
    first, second = (part.ravel() for part in np.meshgrid(middles, middles))
    grid: FloatArray = np.column_stack([first, second, 1 - first - second])[first + second < 1]
    logs = np.log(grid @ matrix) @ counts + np.log(grid) @ (weights - 1)
    law = np.exp(logs - logs.max())
    law /= law.sum()
    mean = law @ grid
    spread = np.sqrt(law @ (grid - mean) ** 2)
    assert np.abs(found.mean - mean).max() <= 5 * found.error.max() + 1e-3
    assert found.standard_deviations == pytest.approx(spread, rel=0.1)


def test_rare_letters_are_not_negative_and_a_workload_has_its_rows() -> None:
    prior = Prior([0.9, 0.05, 0.03, 0.02], ["a", "b", "c", "d"])
    mechanism = solve(design(prior, LDP(1.0), EstimationError())).mechanism
    counts = np.random.default_rng(3).multinomial(300, prior.pmf @ mechanism.matrix)
    found = estimate(mechanism, counts).posterior(prior, 20)
    assert found.letters == ("a", "b", "c", "d")
    assert found.draws.min() >= 0
    assert (found.intervals[:, 0] < found.mean).all()
    assert (found.mean < found.intervals[:, 1]).all()
    sums = estimate(mechanism, counts, workload="prefix").posterior(prior, 20)
    assert sums.letters[0] == "<= a"
    assert sums.mean[-1] == pytest.approx(1.0, abs=1e-12)
    again = estimate(mechanism, counts).posterior(prior, 20)
    assert np.array_equal(found.draws, again.draws)  # the same seed


def test_one_letter_and_bad_priors() -> None:
    one = estimate([[0.5, 0.5]], [3, 4]).posterior()
    assert one.mean.tolist() == [1.0]
    found = estimate(np.eye(2), [3, 4])
    with pytest.raises(InputError, match="above 0"):
        found.posterior(people=0)
    with pytest.raises(MechanismError, match="3 letters"):
        found.posterior([0.2, 0.3, 0.5])
    with pytest.raises(InputError, match="confidence"):
        found.posterior().credible_interval(1.0)
