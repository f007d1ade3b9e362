"""Designs by orbit: the full program's optimum, certified in whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    Box,
    CirclePrior,
    ConvexHull,
    CoordinateLoss,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    L1Ball,
    MaximalLeakage,
    Mechanism,
    MetricPrivacy,
    MinimumMass,
    Prior,
    RatioBound,
    design,
    solve,
    solvers_for,
)
from pmlopt.data.symmetry import ProductPrior, SymmetricPrior, reflection, rotation
from pmlopt.errors import MechanismError, PrivacyError, ProgramError, SolverUnavailableError, UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import (
    CoordinateGain,
    DisplacementGain,
    DisplacementLoss,
    LinearUtility,
    SumOfParts,
)
from pmlopt.programs.linear.certifying import certify_symmetric
from pmlopt.programs.linear.columns import Listed, ReducedColumns
from pmlopt.programs.linear.program import SymmetricDesign

HAMMING = CoordinateLoss([[0, 1], [1, 0]])
EQUAL = 1e-9


def table_of(program: SymmetricDesign) -> Any:
    """(N, M) the gains, losses with a minus, on the letters and outputs of the mechanism's matrix."""
    mechanism = solve(program).mechanism
    table = program.utility.table(mechanism.inputs, mechanism.outputs)
    return table if program.maximised else -table


def check(
    prior: SymmetricPrior, privacy: Requirement, utility: LinearUtility, whole: Requirement | None = None
) -> None:
    """The optimum is that of the plain program, the matrix is worth it, and meets the requirement."""
    program = design(prior, privacy, utility)
    result = solve(program)
    plain, own = prior.listed(), privacy if whole is None else whole
    gains, sign = table_of(program), 1 if utility.maximised else -1
    full = solve(design(plain, own, ExpectedGain(gains)))
    assert abs(sign * result.value - full.value) <= EQUAL
    assert result.gap <= EQUAL
    assert sign * result.bound >= full.value - 1e-12
    assert abs(sign * result.value - plain.pmf @ (gains * result.mechanism.matrix).sum(axis=1)) < 1e-12
    listed = Mechanism(result.mechanism.matrix, plain.labels, result.mechanism.outputs)
    levels = own.for_prior(plain).levels(plain, listed)
    for name, level in levels.items():
        assert level == pytest.approx(result.certificate.levels[name], abs=1e-12)
        assert level <= own.limits[name] + 1e-12
    assert result.certificate.verify()


@st.composite
def small_designs(draw: st.DrawFn) -> tuple[SymmetricPrior, LinearUtility]:
    """Random symmetric priors of up to 16 letters with utilities that are invariant."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    kind = draw(st.sampled_from(["types", "circle", "invariant", "product"]))
    several: type[LinearUtility] = draw(st.sampled_from([CoordinateGain, CoordinateLoss]))
    if kind == "types":
        letters, records = draw(st.sampled_from([(2, 2), (2, 3), (2, 4), (3, 2)]))
        outputs = draw(st.sampled_from([letters, 2]))
        law = Prior(oracles.random_prior(rng, letters))
        return IIDPrior(law, records), several(rng.normal(size=(letters, outputs)))
    if kind == "circle":
        size, reflections = draw(st.integers(1, 12)), draw(st.booleans())
        values = rng.normal(size=size)
        values = values + values[-np.arange(size)] if reflections else values
        return CirclePrior(size, reflections), draw(st.sampled_from([DisplacementGain, DisplacementLoss]))(
            values
        )
    if kind == "product":
        parts = IIDPrior(oracles.random_prior(rng, 2), 2), CirclePrior(3, reflections=False)
        return ProductPrior(*parts), SumOfParts(
            CoordinateGain(rng.normal(size=(2, 2))), DisplacementGain(rng.normal(size=3))
        )
    size = draw(st.integers(2, 8))
    moves = draw(
        st.sampled_from([[reflection(size)], [rotation(size, 2)], [rotation(size), reflection(size)], []])
    )
    space = InvariantPrior(Prior.uniform(size), moves).pairs()
    weights = rng.integers(1, 9, size=len(space.orbits.letters))[space.letter]
    table = rng.normal(size=space.orbits.count)[space.table]
    return InvariantPrior(Prior.from_counts(weights.tolist()), moves), ExpectedGain(table)


@given(
    small_designs(),
    st.sampled_from([PML(0.3), PML(1.0), LDP(0.8), LIP(0.4, 0.7), PML(0.0), PML(0.7) & LDP(1.0)]),
)
@settings(max_examples=12, deadline=None)
def test_the_optimum_is_that_of_the_full_program(
    case: tuple[SymmetricPrior, LinearUtility], privacy: Requirement
) -> None:
    prior, utility = case
    check(prior, privacy, utility)


@pytest.mark.parametrize("privacy", [PML(1.0), LDP(1.0), LIP(0.7, 1.0)])
def test_the_optimum_is_that_of_the_dense_program_and_the_matrix_meets_the_definition(
    privacy: Requirement,
) -> None:
    prior = IIDPrior(Prior.from_counts([7, 3]), 3)
    program = design(prior, privacy, HAMMING)
    result, plain = solve(program), prior.listed()
    wanted = oracles.optimum(plain.pmf, privacy, table_of(program))
    assert -result.value == pytest.approx(wanted.value, abs=EQUAL)
    exact = np.array(
        [[result.certificate.mechanism.probability(x, y) for y in plain.labels] for x in plain.labels]
    )
    assert (exact.sum(axis=1) == 1).all()
    weights = np.array(plain.weights, dtype=object)
    assert (privacy.excess(weights, exact, oracles.power_under) <= 0).all()


@pytest.mark.parametrize(
    ("records", "value"),
    [(4, 0.8275588823), (6, 1.3480376111), (8, 1.9226514289), (16, 4.2435478878), (24, 6.6235006826)],
)
def test_bits_under_hamming_loss(records: int, value: float) -> None:
    """Bernoulli(0.3)^n at one nat, from a program of another hand."""
    result = solve(design(IIDPrior([0.7, 0.3], records), PML(1.0), HAMMING))
    assert result.value == pytest.approx(value, abs=1e-9)
    assert result.gap <= 1e-8
    assert result.certificate.verify()
    assert result.level <= 1.0


@given(st.integers(0, 2**32 - 1), st.sampled_from([PML(0.3), LDP(0.8), LIP(0.4, 0.7), PML(0.7) & LDP(1.0)]))
@settings(max_examples=20, deadline=None)
def test_a_plain_design_is_that_of_the_trivial_group(seed: int, privacy: Requirement) -> None:
    """Every number of listed letters is that of orbits of one pair each."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    prior = Prior(oracles.random_prior(rng, n))
    space = InvariantPrior(prior, []).pairs()
    listed, orbits = Listed(prior, privacy), ReducedColumns.of(space, privacy)
    gains, matrix, rho = rng.normal(size=(n, n)), rng.dirichlet(np.ones(n), n), rng.normal(size=n)
    values, lifts = np.empty(n * n), np.empty(n * n)
    values[space.table], lifts[space.table] = gains, matrix
    for found, wanted in (
        (orbits.raw_bound(values, rho), listed.raw_bound(gains, rho)),
        (orbits.expectation(values, lifts), float(prior.pmf @ (gains * matrix).sum(axis=1))),
        (orbits.sums(lifts), matrix.sum(axis=1)),
        (orbits.means(lifts), prior.pmf @ matrix),
        (orbits.least(values), listed.least(gains)),
        (orbits.centred(values, False)[space.table], listed.centred(gains, False)),
    ):
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)


MIRRORED = InvariantPrior([0.1, 0.2, 0.4, 0.2, 0.1], [reflection(5)])
DISTANCE = ExpectedLoss(lambda x, y: abs(x - y))


@pytest.mark.parametrize(
    "privacy",
    [
        PML([1.2, 0.9, 0.8, 0.9, 1.2]),
        MetricPrivacy(0.9, lambda x, y: abs(x - y)),
        RatioBound(np.eye(5)[[0, 4, 2]], np.vstack([np.eye(5)[[1, 3]], np.full(5, 0.2)]), 0.6),
        PML(1.2, over=AllPriors(5)),
        PML(1.2, over=MinimumMass(5, 0.05)),
        PML(1.2, over=Box([0.05, 0.1, 0.3, 0.1, 0.05], [0.2, 0.3, 0.6, 0.3, 0.2])),
        PML(1.2, over=L1Ball([0.1, 0.2, 0.4, 0.2, 0.1], 0.1)),
        PML(1.2, over=L1Ball(Prior.from_counts([1, 2, 4, 2, 1]), 0.5)),
        PML([1.2, 0.9, 0.8, 0.9, 1.2]) & LDP(1.5),
    ],
    ids=repr,
)  # fmt: skip
def test_other_requirements_have_the_optimum_of_the_full_program(privacy: Requirement) -> None:
    check(MIRRORED, privacy, DISTANCE)


@pytest.mark.parametrize("radius", [0.0, 0.02, 0.3])
def test_balls_around_the_prior_need_no_list_of_it(radius: float) -> None:
    prior = IIDPrior([0.7, 0.3], 3)
    check(prior, PML(1.0, over=L1Ball(prior, radius)), HAMMING, PML(1.0, over=L1Ball(prior.listed(), radius)))


@pytest.mark.parametrize("mass", [0.0, 0.01])
def test_least_masses_need_no_list_of_the_letters(mass: float) -> None:
    check(IIDPrior([0.7, 0.3], 3), PML(1.0, over=MinimumMass(8, mass)), HAMMING)
    large = design(IIDPrior([0.7, 0.3], 40), PML(1.0, over=MinimumMass(2**40, 0.0)), HAMMING)
    assert large.space.orbits.count == 12_341


def test_budgets_for_orbits_are_budgets_for_their_letters() -> None:
    prior = IIDPrior([0.7, 0.3], 3)
    names = prior.pairs().letter_names
    budgets = dict(zip(names, [0.9, 1.4, 0.7, 1.1], strict=True))
    whole = PML([budgets[x.count(0), x.count(1)] for x in prior.labels])  # type: ignore[attr-defined]
    check(prior, PML([budgets[name] for name in names]), HAMMING, whole)


def test_every_solver_finds_the_optimum() -> None:
    program = design(IIDPrior([0.7, 0.3], 5), PML(1.0), HAMMING)
    names = [choice.name for choice in solvers_for(program) if choice.automatic]
    assert names == ["highs", "clarabel", "highs-ipm"]
    values = [solve(program, solver=name, tolerance=1e-6).value for name in names]
    assert np.ptp(values) < 1e-6
    with pytest.raises(SolverUnavailableError, match="there are: auto, highs"):
        solve(program, solver="structured")


def test_the_parts_of_the_program_have_the_names_of_orbits() -> None:
    program = design(IIDPrior([0.7, 0.3], 2), LDP(0.4), HAMMING)
    assert set(program.constraints) == {
        "rows",
        "output_law",
        *(f"{side} of {name}" for side in ("ldp_floor", "ldp_ceiling") for name in [(0, 2), (1, 1), (2, 0)]),
    }
    program.problem.solve()
    assert program.problem.value == pytest.approx(solve(program).value, abs=1e-6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_whatever_a_solver_says_is_repaired_and_its_bound_holds(seed: int) -> None:
    """Noisy numbers become a mechanism that meets the requirement exactly, and random multipliers a bound."""
    rng = np.random.default_rng(seed)
    program = design(IIDPrior([0.6, 0.4], 3), PML(0.7), HAMMING)
    best = solve(program)
    noise = 10.0 ** -rng.integers(3, 12)  # more is no mechanism, not even roughly
    lifts = best.certificate.mechanism.lifts + noise * rng.normal(size=20)
    rough = certify_symmetric(program, np.abs(lifts), rng.normal(size=4))
    assert rough.verify()
    assert rough.level <= 0.7
    assert rough.value >= best.bound - 1e-12
    assert rough.bound <= best.value + 1e-12
    with pytest.raises(MechanismError, match="sums to"):
        certify_symmetric(program, 3 * np.abs(lifts), None)


BITS = IIDPrior([0.5, 0.5], 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((MIRRORED, PML(0.3), ExpectedLoss(lambda x, y: abs(x - y) + 0.5 * (x == 0))), UtilityError,
         r"4 on the pair \(4, 0\), and 4\.5"),
        ((IIDPrior([0.5, 0.5], 24), PML(0.3), ExpectedLoss(lambda x, y: abs(x[0] - y[0]))), UtilityError,
         "not invariant"),
        ((CirclePrior(5), PML(0.3), DisplacementLoss([0, 1, 2, 3, 4])), UtilityError, "reflections=False"),
        ((MIRRORED, PML([0.1, 0.2, 0.3, 0.4, 0.5]), DISTANCE), PrivacyError, "generator 0 takes its bound 0"),
        ((MIRRORED, PML(0.3, over=Box([0.0, 0.0, 0.0, 0.0, 0.1], [1.0] * 5)), DISTANCE), PrivacyError,
         "not invariant"),
        ((MIRRORED, PML(0.3, over=L1Ball([0.1, 0.2, 0.3, 0.2, 0.2], 0.1)), DISTANCE), PrivacyError,
         "not invariant"),
        ((BITS, MaximalLeakage(0.5), HAMMING), PrivacyError, "symmetric priors take PML"),
        ((BITS, PML(0.5, over=ConvexHull([[0.25] * 4, [0.1, 0.4, 0.4, 0.1]])), HAMMING), PrivacyError,
         "no form by orbits"),
        ((BITS, RatioBound(np.eye(4), np.full((4, 4), 0.25), 0.5), HAMMING), PrivacyError,
         "lists its letters"),
        ((BITS, PML([0.1, 0.2]), HAMMING), PrivacyError, "3 orbits"),
        ((BITS, PML(0.5, over=MinimumMass(5, 0.1)), HAMMING), PrivacyError,
         "on 5 letters, and the prior on 4"),
        ((BITS, PML(0.5), HAMMING, 3), ProgramError, "leave them out"),
        ((IIDPrior([0.5, 0.5], 14), PML(0.5), ExpectedLoss(np.zeros((2**14, 2)))), UtilityError,
         "too many letters"),
    ],
)  # fmt: skip
def test_what_is_not_invariant_or_has_no_form_by_orbits_is_refused(
    arguments: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        design(*arguments)
