"""The bound on a sub-convex utility, and its certificate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import columns as column_oracles
from oracles.columns import UTILITIES, Case, random_case, small_cases
from oracles.designs import FloatArray
from strategies import MODEST

from pmlopt import (
    LDP,
    LIP,
    PML,
    L1Ball,
    MutualInformation,
    Prior,
    SubConvex,
    design,
    mutual_information,
    solve,
)
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.model.closed_forms import robust_binary
from pmlopt.model.privacy import Requirement
from pmlopt.programs import Status
from pmlopt.programs.subconvex.column_spaces import column_bound
from pmlopt.programs.subconvex.methods import certify_columns

INFORMATION = MutualInformation()


def requirement(kind: str, epsilon: float) -> Requirement:
    return {"pml": PML(epsilon), "ldp": LDP(epsilon), "lip": LIP(0.7, epsilon)}[kind]


KINDS = st.sampled_from(["pml", "ldp", "lip"])
NAMES = st.sampled_from(list(UTILITIES))
SCALES = st.sampled_from([0.0, 1e-9, 1e-3, 1.0, 1e3, 1e9])


@given(small_cases(), KINDS, NAMES, SCALES)
@MODEST
def test_any_multipliers_give_a_bound(
    drawn: tuple[Case, np.random.Generator], kind: str, name: str, scale: float
) -> None:
    (case, rng), (utility, worth) = drawn, UTILITIES[name]
    privacy = requirement(kind, case.epsilon)
    best = column_oracles.optimum(case.p, privacy, worth)
    for around in (np.zeros(case.prior.size), best.multipliers):
        rho = around + scale * rng.normal(size=case.prior.size)
        bound = column_bound(case.prior, privacy, utility, rho)
        assert bound >= best.value - 1e-9
        assert bound <= definition(case.p, best.lifts, worth, rho) + 1e-9 * (1 + scale)


def definition(p: FloatArray, lifts: FloatArray, worth: column_oracles.Worth, rho: FloatArray) -> float:
    """`<p, rho> + max (mu(lam) - <p rho, lam>)` over all extreme columns."""
    return float(p @ rho + (worth(p, lifts) - (p * rho) @ lifts).max())


@pytest.mark.parametrize("epsilon", [0.2, 0.9, 4.0])
def test_the_closed_bound_needs_no_solver(epsilon: float) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1])
    program = design(prior, PML(epsilon), INFORMATION)
    certificate = certify_columns(program, np.ones((4, 1)), None, math.inf)
    assert certificate.value == 0
    expected = float(prior.pmf @ np.minimum(epsilon, -np.log(prior.pmf)))
    assert certificate.bound == pytest.approx(expected, abs=1e-10)
    assert certificate.pricing == ("everything" if epsilon > math.log(10) else "relaxed")
    assert certificate.verify()


@pytest.mark.parametrize("name", UTILITIES)
def test_any_mechanism_is_certified(name: str) -> None:
    case, (utility, worth) = random_case(95, 4), UTILITIES[name]
    privacy, rng = PML(0.5), np.random.default_rng(96)
    program = design(case.prior, privacy, utility)
    best = column_oracles.optimum(case.p, privacy, worth).value
    certificate = certify_columns(program, rng.dirichlet(np.ones(4), case.prior.size), None, 0.0)
    assert certificate.verify()
    assert certificate.level <= 0.5
    assert certificate.value == utility.value(case.prior, certificate.mechanism)
    assert certificate.value <= best + 1e-9
    assert certificate.bound >= best - 1e-9
    assert certificate.gap == certificate.bound - certificate.value


def test_what_is_no_mechanism_is_refused() -> None:
    program = design([0.5, 0.5], PML(0.5), INFORMATION)
    for wrong in (np.zeros((2, 2)), np.full((2, 2), np.nan), np.full((2, 2), 7.0)):
        with pytest.raises(MechanismError):
            certify_columns(program, wrong, None, 0.0)


def test_a_bound_that_needs_a_list_too_long_is_refused() -> None:
    prior = Prior(np.random.default_rng(97).dirichlet(np.ones(30)))
    with pytest.raises(ProgramError, match="30 letters"):
        column_bound(prior, PML(1.0), SubConvex(column_oracles.deviation), np.zeros(30))


@pytest.mark.parametrize("rare", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("radius", [0.3, 1.0, 2.0, 4.0])
def test_two_letters_end_optimal_and_tell_no_more_than_there_is(
    rare: float, epsilon: float, radius: float
) -> None:
    """The radius is in units of the least probability; twice it lets the rare letter be impossible."""
    prior = Prior([1 - rare, rare])
    result = solve(design(prior, PML(epsilon, over=L1Ball(prior, radius * rare)), MutualInformation()))
    everything = -(1 - rare) * math.log1p(-rare) - rare * math.log(rare)
    assert result.status is Status.OPTIMAL
    assert result.value <= result.bound <= everything * (1 + 1e-12)
    formula = robust_binary(1 - rare - radius * rare / 2, min(1.0, 1 - rare + radius * rare / 2), epsilon)
    known = mutual_information(prior, formula)
    assert result.value == pytest.approx(known, rel=1e-6, abs=1e-15)


def test_without_multipliers_no_bound_is_proved() -> None:
    certificate = solve(design([0.5, 0.3, 0.2], PML(0.5), INFORMATION)).certificate
    bare = replace(certificate, multipliers=None)
    assert not bare.verify()
    assert replace(bare, bound=math.inf).verify()
