"""Estimates of what was released in clear, beside the conventions of scipy, which statsmodels shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pmlopt import estimate
from pmlopt.releases.estimation import independence


@pytest.mark.parametrize("count", [0, 1, 3, 10, 19, 20])
def test_intervals_of_a_share_are_those_of_a_binomial_test(count: int) -> None:
    found, known = estimate(np.eye(2), [count, 20 - count]), stats.binomtest(count, 20)
    score = found.confidence_interval(0.9)[0]
    assert score == pytest.approx(known.proportion_ci(0.9, "wilson"), abs=1e-9)
    both = found.confidence_interval(0.9, kind="exact")[0]  # each at 0.95, so that both hold at 0.9 or more
    assert both[0] <= known.proportion_ci(0.9, "exact").low + 1e-9
    assert both[1] >= known.proportion_ci(0.9, "exact").high - 1e-9


def test_the_fit_and_independence_are_likelihood_ratio_tests() -> None:
    matrix, counts = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), np.array([50, 30, 20])
    found = estimate(matrix, counts)
    known = stats.power_divergence(counts, 100 * found.frequencies @ matrix, ddof=1, lambda_="log-likelihood")
    assert found.fit.statistic == pytest.approx(known.statistic, rel=1e-6)
    assert found.fit.p_value == pytest.approx(known.pvalue, rel=0.05)  # Williams's correction
    pairs = [[300, 200], [200, 300]]
    apart = stats.chi2_contingency(pairs, lambda_="log-likelihood", correction=False)
    assert independence(pairs).statistic == pytest.approx(apart[0])
    assert independence(pairs).p_value == pytest.approx(apart[1], rel=0.05)
