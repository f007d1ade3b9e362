"""Bounds of finite orders where (alpha - 1) epsilon is next to 0: nothing is rounded in units of prices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from pmlopt import (
    ConvexHull,
    ExpectedGain,
    ExpectedLoss,
    Prior,
    RenyiPML,
    Secret,
    SibsonLeakage,
    design,
    solve,
)
from pmlopt.model.privacy.renyi_pml import RemainingRenyiPML
from pmlopt.programs import Status

PRIOR = Prior([0.5, 0.3, 0.2])
ABSOLUTE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))

FORMS: dict[str, Any] = {
    "each": RenyiPML,
    "mean": SibsonLeakage,
    "about": lambda alpha, epsilon: RenyiPML(alpha, epsilon, about=Secret(np.diag(PRIOR.pmf))),
    "over": lambda alpha, epsilon: RenyiPML(
        alpha, epsilon, over=ConvexHull([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]])
    ),
    "remaining": lambda alpha, epsilon: RemainingRenyiPML(alpha, epsilon, [1.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [1 + 2.0**-52, 1 + 1e-9, 2.0, 7.0, 1e6])
def test_no_level_allows_a_constant_alone(form: str, alpha: float) -> None:
    """The support function at epsilon 0 is the largest mean of a column, which a constant reaches."""
    requirement = FORMS[form](alpha, 0.0)
    gains = (-ABSOLUTE, 5.0 - ABSOLUTE, 1e8 * ABSOLUTE, 1e-12 * ABSOLUTE)
    for place, matrix in enumerate(gains):
        column = matrix[:, [place % 3]]
        found = requirement.support_function(PRIOR, column)
        true = float(PRIOR.pmf @ column[:, 0])
        assert true - 1e-13 * np.abs(column).max() <= found <= true + 1e-9 * np.ptp(column)


@pytest.mark.parametrize("alpha", [1 + 1e-12, 1.5, 2.0, 7.0])
def test_small_levels_allow_as_much_as_the_deviation(alpha: float) -> None:
    """For small epsilon it is the mean and `sqrt(2 epsilon / alpha)` deviations, up to epsilon."""
    gains = np.array([[0.0], [1.0], [2.5]])
    mean = float(PRIOR.pmf @ gains[:, 0])
    deviation = math.sqrt(float(PRIOR.pmf @ (gains[:, 0] - mean) ** 2))
    for epsilon in (1e-8, 1e-12, 1e-16, 1e-30):
        found = RenyiPML(alpha, epsilon).support_function(PRIOR, gains) - mean
        assert found == pytest.approx(
            math.sqrt(2 * epsilon / alpha) * deviation, rel=1e-3, abs=1e-15
        )


def test_small_levels_about_a_secret_allow_what_is_independent_of_it() -> None:
    """The best of the mechanisms that are independent of the secret, by a linear program, is allowed."""
    rng = np.random.default_rng(2)
    secret, gains = Secret(rng.dirichlet(np.full(12, 2.0)).reshape(3, 4)), rng.random((4, 4))
    found = solve(design(secret.prior, RenyiPML(2.0, 1e-6, about=secret), ExpectedGain(gains)))
    p, given = secret.prior.pmf, secret.conditionals
    rows = [np.kron(np.eye(4), np.ones(4)), *(np.kron(one - p, np.eye(4)) for one in given)]
    right = np.concatenate([np.ones(4), np.zeros(12)])
    free = optimize.linprog(-(p[:, None] * gains).ravel(), A_eq=np.vstack(rows), b_eq=right)
    assert found.status is Status.OPTIMAL
    assert found.value >= -free.fun - 1e-7


def test_any_threshold_proves_a_bound_that_is_not_beyond_the_truth() -> None:
    rng, p = np.random.default_rng(4), PRIOR.pmf
    for alpha, epsilon in ((1 + 1e-12, 1e-4), (2.0, 0.0), (7.0, 1e-16), (50.0, 0.3)):
        requirement = RenyiPML(alpha, epsilon)
        gains = rng.normal(size=(3, 4))
        least = requirement.support_function(PRIOR, gains)
        assert least >= (p @ gains).max() - 1e-15
        for thresholds in (*(10.0 ** rng.uniform(-3, 20, (20, 4)) * -1), rng.normal(size=4)):
            proved = requirement.dual_bound(PRIOR, gains, {"thresholds": thresholds})
            assert proved >= least - 1e-12


@pytest.mark.parametrize(
    ("alpha", "epsilon"), [(2.0, 0.0), (7.0, 0.0), (2.0, 1e-17), (1 + 1e-9, 0.0)]
)
def test_where_nothing_may_be_told_a_constant_is_optimal(alpha: float, epsilon: float) -> None:
    found = solve(design(PRIOR, RenyiPML(alpha, epsilon), ExpectedLoss(ABSOLUTE)))
    assert found.value == pytest.approx(0.7, abs=1e-12)
    assert 0.7 - 2e-9 <= found.bound <= 0.7 + 1e-15
    assert found.certificate.verify()


@pytest.mark.parametrize("kind", [RenyiPML, SibsonLeakage])
def test_next_to_order_one_the_design_is_that_of_the_divergence(kind: Any) -> None:
    # two letters of one half are told apart by posteriors 1/2 + d with d^2 = epsilon / 2 and a little
    epsilon = 1e-4
    found = solve(design(PRIOR, kind(1 + 1e-12, epsilon), ExpectedLoss(ABSOLUTE)))
    assert found.gap <= 1e-6
    assert found.value == pytest.approx(0.7 - math.sqrt(epsilon / 2), abs=1e-6)
    assert found.certificate.verify()


def test_prices_of_older_files_prove_what_they_did() -> None:
    secret = Secret([[0.25, 0.25], [0.0, 0.5]])
    requirement, gains = RenyiPML(2.0, 0.3, about=secret), np.array([[1.0, 0.0], [0.0, 1.0]])
    witness = requirement.dual_certificate(secret.prior, gains)
    heights = np.maximum(witness["prices"] + witness["tops"][:, None, :], 0.0)
    now, then = (
        requirement.dual_bound(secret.prior, gains, one) for one in (witness, {"prices": heights})
    )
    assert then == pytest.approx(now, abs=1e-12)
