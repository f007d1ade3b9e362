"""Constraints in problems of one's own: with a law that is made, and with a level that is a parameter."""

import cvxpy as cp
import numpy as np
import pytest
from refusals import refused

from pmlopt import LDP, LIP, PML, ExpectedGain, MaximalLeakage, MetricPrivacy, Prior, certify, design, solve
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement, parametric_constraints

PRIOR = [0.4, 0.3, 0.2, 0.1]
GAINS = np.random.default_rng(4).random((4, 4))


def by_hand(rules: list[cp.Constraint], mechanism: cp.Variable) -> cp.Problem:
    gain = cp.sum(cp.multiply(np.array(PRIOR)[:, None] * GAINS, mechanism))
    return cp.Problem(cp.Maximize(gain), [cp.sum(mechanism, axis=1) == 1, *rules])


REQUIREMENTS = (
    PML(0.5),
    LDP(0.5),
    LIP(0.3, 0.4),
    MaximalLeakage(0.4),
    MetricPrivacy(0.3, lambda x, y: abs(x - y)),
    PML(0.9) & LDP(1.1),
)


@pytest.mark.parametrize("privacy", REQUIREMENTS, ids=str)
def test_a_problem_of_ones_own_has_the_optimum_of_the_design(privacy: Requirement) -> None:
    mechanism = cp.Variable((4, 4), nonneg=True)
    problem = by_hand(privacy.constraints(PRIOR, mechanism), mechanism)
    problem.solve(solver="CLARABEL")
    result = solve(design(PRIOR, privacy, ExpectedGain(GAINS)))
    assert problem.value == pytest.approx(result.value, abs=1e-7)
    own = certify(design(PRIOR, privacy, ExpectedGain(GAINS)), mechanism.value)
    assert own.certificate.verify()
    assert own.value == pytest.approx(result.value, abs=1e-6)


@pytest.mark.parametrize(("kind", "of"), [("pml", PML), ("ldp", LDP)])
def test_one_compiled_problem_serves_many_levels(kind: str, of: type[PML] | type[LDP]) -> None:
    mechanism, level = cp.Variable((4, 4), nonneg=True), cp.Parameter(nonneg=True)
    problem = by_hand(parametric_constraints(PRIOR, mechanism, level, kind), mechanism)  # type: ignore[arg-type]
    assert problem.is_dpp()
    for value in (0.0, 0.4, 1.0, 5.0):
        level.value = value
        problem.solve(solver="HIGHS")
        wanted = solve(design(PRIOR, of(value), ExpectedGain(GAINS))).value
        assert problem.value == pytest.approx(wanted, abs=1e-7)


def test_what_cannot_be_meant_is_refused() -> None:
    mechanism = cp.Variable((4, 4), nonneg=True)
    own, parametric = PML(0.5).constraints, parametric_constraints
    refused(PrivacyError, own, "a row for each of 3 letters", (Prior.uniform(3), mechanism))
    refused(PrivacyError, own, "affine", (PRIOR, cp.square(mechanism)))
    refused(PrivacyError, PML, "parametric_constraints", (cp.Parameter(nonneg=True),))
    refused(PrivacyError, parametric, "scalar cvxpy Parameter", (PRIOR, mechanism, 0.5))
    refused(PrivacyError, parametric, "'pml' or 'ldp'", (PRIOR, mechanism, cp.Parameter(), "dp"))
    problem = by_hand(parametric_constraints(PRIOR, mechanism, level := cp.Parameter()), mechanism)
    level.value = -1.0
    with pytest.raises(PrivacyError, match=r"value -1\.0"):
        problem.solve(solver="HIGHS")
