"""Sibson's information as a requirement: its ends, the program as it is written, the check in decimals."""

from __future__ import annotations

import math

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from oracles.designs import random_prior
from strategies import pairs

from pmlopt import (
    ExpectedGain,
    MaximalLeakage,
    Prior,
    RenyiPML,
    SibsonLeakage,
    design,
    mutual_information,
    solve,
)
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import maximal_leakage
from pmlopt.programs.exact.arithmetic import holds_exactly


@given(pairs(min_size=2, tiny=False))
def test_it_grows_from_the_information_to_the_maximal_leakage(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    levels = [SibsonLeakage(alpha, 1.0).level(prior, matrix) for alpha in (1 + 1e-5, 1.5, 2, 5, 1e7)]
    assert levels == sorted(levels) or np.diff(levels).min() > -1e-9
    assert levels[0] == pytest.approx(mutual_information(prior, matrix), abs=1e-3)
    assert levels[-1] == pytest.approx(maximal_leakage(matrix), abs=1e-5)
    for alpha in (1.5, 2, 5):
        assert (
            SibsonLeakage(alpha, 1.0).level(prior, matrix)
            <= RenyiPML(alpha, 1.0).level(prior, matrix) + 1e-12
        )


@pytest.mark.parametrize("alpha", [1.2, 2, 5, 50])
@pytest.mark.parametrize("letters", [3, 6, 12])
def test_the_optimum_is_that_of_the_program_as_written(letters: int, alpha: float) -> None:
    rng = np.random.default_rng([letters, int(10 * alpha)])
    p, gains = Prior(random_prior(rng, letters)), rng.random((letters, 4))
    epsilon = float(rng.uniform(0.05, 0.8))
    found = solve(design(p, SibsonLeakage(alpha, epsilon), ExpectedGain(gains), 4))
    mechanism = cp.Variable(gains.shape, nonneg=True)
    norms = [
        cp.pnorm(cp.multiply(p.pmf ** (1 / alpha), column), alpha, approx=False) for column in mechanism.T
    ]
    goal = cp.Maximize(cp.sum(cp.multiply(p.pmf[:, None] * gains, mechanism)))
    limit = sum(norms) <= math.exp((alpha - 1) / alpha * epsilon)
    best = cp.Problem(goal, [cp.sum(mechanism, axis=1) == 1, limit]).solve(solver=cp.CLARABEL)
    assert found.value == pytest.approx(best, abs=2e-7)
    assert found.gap <= 2e-7
    assert found.certificate.verify()
    assert holds_exactly(p, SibsonLeakage(alpha, epsilon), found.matrix)


def test_orders_that_are_none_are_refused() -> None:
    for alpha in (1.0, 0.5, math.inf, math.nan):
        with pytest.raises(PrivacyError):
            SibsonLeakage(alpha, 0.1)
    response = [[0.75, 0.25], [0.25, 0.75]]
    level = SibsonLeakage(2, 1.0).level([0.5, 0.5], response)
    assert not holds_exactly(Prior([0.5, 0.5]), SibsonLeakage(2, level * (1 - 1e-12)), np.array(response))
    assert SibsonLeakage(1e7, 0.4).holds([0.5, 0.5], response) == MaximalLeakage(0.4).holds(
        [0.5, 0.5], response
    )
