"""Certificates: recomputed from the matrix, refusing what is false, and enough to check again."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    MaximalLeakage,
    Mechanism,
    Prior,
    design,
    solve,
)
from pmlopt.errors import SolverError
from pmlopt.model.privacy import Requirement
from pmlopt.programs import Status
from pmlopt.programs.linear.build_certificate import build_lagrangian
from pmlopt.programs.linear.build_certificate import certify_linear as certify
from pmlopt.programs.linear.certificate import LinearCertificate, compute_utility_bound
from pmlopt.programs.linear.program import LinearDesign

GAINS = np.array([[5.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.7, 2.0]])

MARGIN = 2.0**-39
"""The constraints on a variable may be stricter than the claim by 2^-40 of numbers of at most 2."""

REQUIREMENTS = [PML(0.4), LDP(0.4), LIP(0.3, 0.4), MaximalLeakage(0.4)]

each = pytest.mark.parametrize("privacy", REQUIREMENTS)


def certified(privacy: Requirement, loss: bool = False) -> LinearCertificate:
    prior = Prior.from_counts({"a": 2, "b": 3, "c": 5})
    best = oracles.optimum(prior.pmf, privacy, -GAINS if loss else GAINS)
    program = design(prior, privacy, (ExpectedLoss if loss else ExpectedGain)(GAINS))
    offsets = GAINS.min(axis=1)  # the program's gains are without them
    return certify(program, best.matrix, best.multipliers + (offsets if loss else -offsets))


@each
@pytest.mark.parametrize("loss", [False, True])
def test_every_number_is_that_of_the_matrix(privacy: Requirement, loss: bool) -> None:
    certificate = certified(privacy, loss)
    prior, matrix = certificate.prior, certificate.mechanism.matrix
    value = float((prior.pmf[:, None] * GAINS * matrix).sum())
    best = oracles.optimum(prior.pmf, privacy, -GAINS if loss else GAINS).value
    assert certificate.value == pytest.approx(value, abs=1e-14)
    assert certificate.bound == pytest.approx(-best if loss else best, abs=1e-8)
    assert (certificate.bound <= value) if loss else (certificate.bound >= value)
    assert certificate.gap == pytest.approx(abs(certificate.bound - certificate.value), abs=1e-14)
    assert certificate.levels == pytest.approx(
        privacy.levels(prior, certificate.mechanism), abs=1e-14
    )
    assert certificate.level == max(certificate.levels.values())
    assert all(certificate.levels[name] <= limit for name, limit in privacy.limits.items())
    assert max(certificate.residuals.values()) <= MARGIN
    assert certificate.mechanism.inputs == ("a", "b", "c")


@each
def test_the_exact_check_is_true_of_what_is_certified_and_of_nothing_else(
    privacy: Requirement,
) -> None:
    certificate = certified(privacy)
    assert certificate.verify()
    assert oracles.meets(certificate.prior, privacy, certificate.mechanism.matrix)
    stronger = oracles.requirement_at(privacy.name, privacy.limits, 1 - 1e-6)
    assert not dataclasses.replace(certificate, privacy=stronger).verify()
    lighter = certificate.mechanism.matrix.copy()
    row, column = np.argwhere(lighter > 0.1)[0]
    lighter[row, column] -= 2.0**-50
    for matrix in (np.eye(3), lighter):
        assert not dataclasses.replace(certificate, mechanism=Mechanism(matrix)).verify()


def test_multipliers_that_are_no_numbers_are_not_used() -> None:
    best = math.exp(0.4) / 2
    for multipliers in (None, np.array([np.nan, 0.0]), np.array([np.inf, 0.0])):
        gain = certify(
            design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2))), np.eye(2), multipliers
        )
        loss = certify(
            design([0.5, 0.5], PML(0.4), ExpectedLoss(1 - np.eye(2))), np.eye(2), multipliers
        )
        assert best <= gain.bound < math.inf
        assert 1 - best >= loss.bound > -math.inf
        assert gain.verify()


@settings(max_examples=10, deadline=None)
@given(case=oracles.cases())
def test_any_mechanism_and_multipliers_give_a_true_certificate(case: oracles.Case) -> None:
    privacy = PML(0.2)
    program = design(case.prior, privacy, ExpectedGain(case.gains))
    certificate = certify(program, case.matrix, case.rng.normal(size=case.prior.size))
    best = oracles.optimum(case.prior.pmf, privacy, case.gains).value
    assert certificate.verify()
    assert certificate.value <= best + 1e-9
    assert certificate.bound >= best - 1e-9
    assert oracles.meets(case.prior, privacy, certificate.mechanism.matrix)


# ---------------------------------------------------------------- the dual bound


kinds = pytest.mark.parametrize("kind", oracles.KINDS)


@kinds
@settings(max_examples=15, deadline=None)
@given(case=oracles.cases(max_size=5), share=st.floats(0.1, 1.2))
def test_the_right_multipliers_reach_the_optimum_and_none_pass_below(
    kind: str, case: oracles.Case, share: float
) -> None:
    requirement = oracles.requirement_at(
        kind, oracles.levels_of(kind, case.prior, case.matrix), share
    )
    best = oracles.optimum(case.prior.pmf, requirement, case.gains)
    bound = compute_utility_bound(case.prior, requirement, case.gains, best.multipliers)
    assert bound == pytest.approx(best.value, abs=1e-6)
    for spread in (0.0, 1e-4, 1.0, 1e9):
        near = best.multipliers + spread * case.rng.normal(size=case.prior.size)
        assert compute_utility_bound(case.prior, requirement, case.gains, near) >= best.value - 1e-9


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_rounding_is_allowed_for_at_every_scale(scale: float) -> None:
    # at eps = 0 the best constant output is the optimum, known exactly
    gains = scale * np.array([[1.0, 0.1], [0.3, 0.7], [0.2, 0.9]])
    prior = Prior([0.1, 0.2, 0.7])
    best = float((prior.pmf @ gains).max())
    bound = compute_utility_bound(prior, PML(0.0), gains, np.zeros(3))
    assert 0 <= bound - best <= 1e-11 * scale


def test_a_gain_of_the_letter_alone_is_bounded_by_its_mean() -> None:
    prior, own = Prior([0.1, 0.2, 0.7]), np.array([3.0, -1.0, 2.0])
    bound = compute_utility_bound(prior, PML(0.7), np.repeat(own[:, None], 4, axis=1), own)
    assert bound == pytest.approx(float(prior.pmf @ own), abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rare=st.sampled_from([1e-6, 1e-9, 1e-12, 1e-15]),
    lip=st.booleans(),
)
def test_the_bound_holds_for_letters_of_any_rarity(seed: int, rare: float, lip: bool) -> None:
    rng = np.random.default_rng(seed)
    rest = rng.dirichlet(np.ones(3)) * (1 - rare)
    prior = Prior(np.concatenate([[rare], rest]))
    epsilon = float(rng.uniform(0.0, prior.max_leakage))
    gains = rng.normal(size=(4, 2))
    privacy = LIP(1.0, epsilon) if lip else PML(epsilon)
    floor = Fraction(np.exp(-1.0)) if lip else Fraction(0)
    true = max(exact_column(prior, floor, epsilon, column) for column in gains.T.tolist())
    assert Fraction(compute_utility_bound(prior, privacy, gains, np.zeros(4))) >= true * (
        1 - Fraction(1, 10**15)
    )


def exact_column(prior: Prior, floor: Fraction, epsilon: float, gains: list[float]) -> Fraction:
    """The best normalised column between `floor` and e^epsilon, filled greedily in exact arithmetic."""
    total = sum(map(Fraction, prior.probabilities.tolist()))
    weights = [Fraction(value) / total for value in prior.probabilities.tolist()]
    top = min(Fraction(np.exp(epsilon)), 1 / min(weights))
    left, worth = 1 - floor, Fraction(0)
    for gain, weight in sorted(zip(map(Fraction, gains), weights, strict=True), reverse=True):
        taken = min(left, weight * (top - floor))
        worth += gain * (taken + floor * weight)
        left -= taken
    return worth


# ---------------------------------------------------------------- constraints of one's own in the bound


FLOORED: list[Requirement] = [PML(0.4), LDP(0.6), MaximalLeakage(0.3)]

seeds = st.integers(0, 2**32 - 1)


def bound_at(
    program: LinearDesign, matrix: oracles.FloatArray, multipliers: oracles.FloatArray
) -> float:
    """The bound with the multipliers that the added constraints hold."""
    program.assign_variables(matrix)
    gains, constant = build_lagrangian(program)
    rho = multipliers - program.row_offsets  # the program's gains are without them
    return (
        program.float_constant
        + constant
        + compute_utility_bound(program.prior, program.privacy, gains, rho)
    )


def floor_rows(
    case: oracles.Case, second: oracles.FloatArray, floor: float
) -> tuple[oracles.FloatArray, ...]:
    """`E[second] >= floor` as a row for the reference."""
    return -(case.prior.pmf[:, None] * second).ravel()[None, :], np.array([-floor])


def with_floor(program: LinearDesign, second: oracles.FloatArray, floor: float) -> LinearDesign:
    weighted = program.prior.pmf[:, None] * second
    return program.with_constraints(floor=cp.sum(cp.multiply(weighted, program.mechanism)) >= floor)


def reached(program: LinearDesign, expected: float) -> LinearCertificate:
    """The certificate of a solve whose both ends are the optimum."""
    result = solve(program)
    assert result.value == pytest.approx(expected, abs=1e-6)
    assert result.bound >= expected - 1e-9
    assert result.gap <= 1e-6
    return result.certificate


@pytest.mark.parametrize("privacy", FLOORED)
@settings(max_examples=6, deadline=None)
@given(case=oracles.cases(max_size=5))
def test_a_floor_on_another_gain_is_in_the_bound(privacy: Requirement, case: oracles.Case) -> None:
    second = case.rng.normal(size=case.gains.shape)
    p = case.prior.pmf
    best, least = (oracles.optimum(p, privacy, g).value for g in (second, np.zeros_like(second)))
    floor = best - 0.1 * abs(best - least) - 1e-3
    expected = oracles.optimum(p, privacy, case.gains, *floor_rows(case, second, floor)).value
    program = with_floor(design(case.prior, privacy, ExpectedGain(case.gains)), second, floor)
    assert reached(program, expected).residuals["floor"] <= 1e-6


@settings(max_examples=15, deadline=None)
@given(case=oracles.cases(max_size=5), spread=st.sampled_from([0.0, 0.01, 1.0, 100.0]))
def test_any_multipliers_of_the_added_constraints_bound_the_optimum(
    case: oracles.Case, spread: float
) -> None:
    second, p = case.rng.normal(size=case.gains.shape), case.prior.pmf
    floor = oracles.optimum(p, PML(0.4), second).value - 0.05
    rows, right = floor_rows(case, second, floor)
    best = oracles.optimum(p, PML(0.4), case.gains, rows, right)
    program = with_floor(design(case.prior, PML(0.4), ExpectedGain(case.gains)), second, floor)
    radius = float(np.linalg.norm(best.matrix)) + 1e-9
    program = program.with_constraints(
        size=cp.norm(program.mechanism, "fro") <= radius,
        law=program.variables["output_law"] == (p @ best.matrix)[None, :],
    )
    for constraint in program.added.values():
        shape = constraint.dual_variables[0].shape
        constraint.dual_variables[0].save_value(spread * case.rng.normal(size=shape))
    rho = best.multipliers + spread * case.rng.normal(size=len(p))
    assert bound_at(program, case.matrix, rho) >= best.value - 1e-8


@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_variables_with_bounds_are_in_the_bound(seed: int) -> None:
    case = oracles.random_case(np.random.default_rng(seed), 4, 3)
    second, privacy = case.rng.normal(size=(4, 3)), PML(0.4)
    assume(oracles.optimum(case.prior.pmf, privacy, second).value > 0.13)
    rows, right = floor_rows(case, second, 0.125)
    expected = oracles.optimum(case.prior.pmf, privacy, case.gains, rows, right).value
    program = design(case.prior, privacy, ExpectedGain(case.gains))
    extra = cp.Variable(name="extra", bounds=[0, 0.25])
    gained = cp.sum(cp.multiply(case.prior.pmf[:, None] * second, program.mechanism))
    reached(program.with_constraints(below=extra <= gained, above=extra >= 0.125), expected)


def binary() -> LinearDesign:
    return design([0.5, 0.5], PML(0.4), ExpectedLoss([[0, 1], [1, 0]]))


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_variable_without_bounds_proves_nothing(shape: tuple[int, ...]) -> None:
    program = binary()
    free = cp.Variable(shape, name="free")
    program = program.with_constraints(tied=program.mechanism[0, 0] + free <= 0.6)
    program.assign_variables(np.full((2, 2), 0.5))
    free.value = np.zeros(shape)
    program.added["tied"].dual_variables[0].save_value(np.full(shape, 0.1))
    assert build_lagrangian(program)[1] == math.inf


def test_a_cone_proves_nothing_and_says_so() -> None:
    program = binary()
    program = program.with_constraints(
        cone=cp.SOC(cp.Constant(0.9), cp.reshape(program.mechanism, (4,), order="F") - 0.4)
    )
    program.assign_variables(np.full((2, 2), 0.5))
    assert build_lagrangian(program)[1] == math.inf
    assert certify(program, np.full((2, 2), 0.5), np.zeros(2)).bound == -math.inf
    result = solve(program)
    assert result.status is Status.UNPROVED
    assert result.bound == -math.inf
    assert result.certificate.verify()
    assert result.to_dict()["bound"] is None


@pytest.mark.parametrize(
    "atom", [lambda p: cp.square(cp.norm(p[:, 0], "inf")), lambda p: cp.square(cp.norm_inf(p))]
)
def test_atoms_without_a_gradient_leave_the_optimum_unproved(
    atom: Callable[[cp.Variable], cp.Expression],
) -> None:
    program = design([0.5, 0.3, 0.2], PML(0.6), ExpectedGain(np.eye(3)))
    result = solve(program.with_constraints(cap=atom(program.mechanism) <= 0.6**2))
    assert result.status is Status.UNPROVED
    assert result.gap == math.inf
    assert result.mechanism.matrix[:, 0].max() <= 0.6 + 1e-6
    assert result.certificate.verify()


@pytest.mark.parametrize("solver", ["auto", "clarabel", "scs"])
def test_a_constraint_in_small_units_is_kept_or_said_to_be_broken(solver: str) -> None:
    program = design([0.5, 0.3, 0.2], PML(0.6), ExpectedGain(np.eye(3)))
    for unit in (1e-9, 1e-13):
        capped = program.with_constraints(cap=unit * program.mechanism[0, 0] <= unit / 10)
        try:
            result = solve(capped, solver, tolerance=1e-5)
        except SolverError:
            continue
        assert result.mechanism.matrix[0, 0] <= 0.1 + 1e-5


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_digits_that_cancel_in_a_constraint_do_not_break_the_bound(offset: float) -> None:
    prior, limit = Prior([0.4, 0.3, 0.2, 0.1]), 1.2
    program = design(prior, PML(0.5), ExpectedGain(np.eye(4)))
    trace = cp.trace(program.mechanism)
    plain = solve(program.with_constraints(cap=trace <= limit))
    added = program.with_constraints(cap=trace + offset <= offset + limit)
    solve(added, tolerance=1e-2)
    certificate = certify(added, np.full((4, 4), 0.25), plain.certificate.multipliers)
    assert certificate.bound >= plain.value
