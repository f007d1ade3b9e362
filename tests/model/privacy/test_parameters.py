"""Constraints in problems of one's own: with a law that is made, and with a level that is a parameter."""

import cvxpy as cp
import numpy as np
import pytest

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


def coupled(priors: list[list[float]]) -> tuple[float, list[cp.Variable]]:
    """The best sum of two gains where both mechanisms must have outputs of the same law."""
    matrices = [cp.Variable((4, 4), nonneg=True) for _ in priors]
    rules = [cp.sum(P, axis=1) == 1 for P in matrices]
    rules += [r for p, P in zip(priors, matrices, strict=True) for r in PML(0.5).constraints(p, P)]
    rules.append(np.array(priors[0]) @ matrices[0] == np.array(priors[1]) @ matrices[1])
    gains = [
        cp.sum(cp.multiply(np.array(p)[:, None] * GAINS, P)) for p, P in zip(priors, matrices, strict=True)
    ]
    problem = cp.Problem(cp.Maximize(cp.sum(cp.hstack(gains))), rules)
    problem.solve(solver="CLARABEL")
    return float(problem.value), matrices


def test_two_mechanisms_with_one_law_of_the_output() -> None:
    other = [0.1, 0.2, 0.3, 0.4]
    alone = [solve(design(p, PML(0.5), ExpectedGain(GAINS))).value for p in (PRIOR, other)]
    same, _ = coupled([PRIOR, PRIOR])
    assert same == pytest.approx(2 * alone[0], abs=1e-6)  # the same prior: the coupling costs nothing
    value, matrices = coupled([PRIOR, other])
    assert value <= sum(alone) + 1e-7
    assert np.allclose(np.array(PRIOR) @ matrices[0].value, np.array(other) @ matrices[1].value, atol=1e-7)


def test_what_cannot_be_meant_is_refused() -> None:
    mechanism = cp.Variable((4, 4), nonneg=True)
    with pytest.raises(PrivacyError, match="a row for each of 3 letters"):
        PML(0.5).constraints(Prior.uniform(3), mechanism)
    with pytest.raises(PrivacyError, match="affine"):
        PML(0.5).constraints(PRIOR, cp.square(mechanism))
    with pytest.raises(PrivacyError, match="parametric_constraints"):
        PML(cp.Parameter(nonneg=True))
    with pytest.raises(PrivacyError, match="scalar cvxpy Parameter"):
        parametric_constraints(PRIOR, mechanism, 0.5)
    with pytest.raises(PrivacyError, match="'pml' or 'ldp'"):
        parametric_constraints(PRIOR, mechanism, cp.Parameter(), "dp")  # type: ignore[arg-type]
    problem = by_hand(parametric_constraints(PRIOR, mechanism, level := cp.Parameter()), mechanism)
    level.value = -1.0
    with pytest.raises(PrivacyError, match=r"value -1\.0"):
        problem.solve(solver="HIGHS")
