"""Designs by orbit: the full program's optimum, certified in whole numbers."""

from __future__ import annotations

from dataclasses import replace
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
    CoordinateLoss,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    InvariantPrior,
    L1Ball,
    Mechanism,
    MetricPrivacy,
    MinimumMass,
    Prior,
    RatioBound,
    design,
    solve,
    solvers_for,
)
from pmlopt.core.numbers.arrays import DefaultLabels
from pmlopt.data.symmetry import ProductPrior, SymmetricPrior, reflection, rotation
from pmlopt.errors import MechanismError, SolverUnavailableError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import (
    CoordinateGain,
    DisplacementGain,
    DisplacementLoss,
    LinearUtility,
    SumOfParts,
)
from pmlopt.programs.linear import formulation
from pmlopt.programs.linear.build_certificate import certify_linear, certify_symmetric
from pmlopt.programs.linear.color_refinement import EquitablePartition, refine_colors
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions

HAMMING = CoordinateLoss([[0, 1], [1, 0]])
EQUAL = 1e-9


def table_of(program: SymmetricDesign) -> Any:
    """(N, M) the gains, losses with a minus, on the letters and outputs of the mechanism's matrix."""
    mechanism = solve(program).mechanism
    table = program.utility.evaluate_table(mechanism.inputs, mechanism.outputs)
    return table if program.maximised else -table


def check(
    prior: SymmetricPrior,
    privacy: Requirement,
    utility: LinearUtility,
    whole: Requirement | None = None,
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
    assert (
        abs(sign * result.value - plain.pmf @ (gains * result.mechanism.matrix).sum(axis=1)) < 1e-12
    )
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
        return CirclePrior(size, reflections), draw(
            st.sampled_from([DisplacementGain, DisplacementLoss])
        )(values)
    if kind == "product":
        parts = IIDPrior(oracles.random_prior(rng, 2), 2), CirclePrior(3, reflections=False)
        return ProductPrior(*parts), SumOfParts(
            CoordinateGain(rng.normal(size=(2, 2))), DisplacementGain(rng.normal(size=3))
        )
    size = draw(st.integers(2, 8))
    moves = draw(
        st.sampled_from(
            [[reflection(size)], [rotation(size, 2)], [rotation(size), reflection(size)], []]
        )
    )
    space = InvariantPrior(Prior.uniform(size), moves).make_pairs()
    weights = rng.integers(1, 9, size=len(space.orbits.letters))[space.letter]
    table = rng.normal(size=space.orbits.count)[space.table]
    return InvariantPrior(
        Prior.from_counts(weights.tolist(), DefaultLabels(size)), moves
    ), ExpectedGain(table)


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
        [
            [result.certificate.mechanism.probability(x, y) for y in plain.labels]
            for x in plain.labels
        ]
    )
    assert (exact.sum(axis=1) == 1).all()
    weights = np.array(plain.weights, dtype=object)
    assert (privacy.violation(weights, exact, oracles.power_under) <= 0).all()


@pytest.mark.parametrize(
    ("records", "value"),
    [(4, 0.8275588823), (8, 1.9226514289), (24, 6.6235006826)],
)
def test_bits_under_hamming_loss(records: int, value: float) -> None:
    """Bernoulli(0.3)^n at one nat, from a program of another hand."""
    result = solve(design(IIDPrior([0.7, 0.3], records), PML(1.0), HAMMING))
    assert result.value == pytest.approx(value, abs=1e-9)
    assert result.gap <= 1e-8
    assert result.certificate.verify()
    assert result.level <= 1.0


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


def test_balls_least_masses_and_budgets_need_no_list_of_letters() -> None:
    prior = IIDPrior([0.7, 0.3], 3)
    for radius in (0.0, 0.02, 0.3):
        whole = PML(1.0, over=L1Ball(prior.listed(), radius))
        check(prior, PML(1.0, over=L1Ball(prior, radius)), HAMMING, whole)
    check(prior, PML(1.0, over=MinimumMass(8, 0.01)), HAMMING)
    large = design(IIDPrior([0.7, 0.3], 40), PML(1.0, over=MinimumMass(2**40, 0.0)), HAMMING)
    assert large.space.orbits.count == 12_341
    names = prior.make_pairs().letter_names
    budgets = dict(zip(names, [0.9, 1.4, 0.7, 1.1], strict=True))
    whole = PML([budgets[x.count(0), x.count(1)] for x in prior.labels])  # type: ignore[attr-defined]
    check(prior, PML([budgets[name] for name in names]), HAMMING, whole)


def test_every_solver_finds_the_optimum() -> None:
    program = design(IIDPrior([0.7, 0.3], 5), PML(1.0), HAMMING)
    assert [choice.name for choice in solvers_for(program) if choice.automatic] == [
        "highs",
        "clarabel",
    ]
    names = ["highs", "clarabel", "highs-ipm"]
    values = [solve(program, solver=name, tolerance=1e-6).value for name in names]
    assert np.ptp(values) < 1e-6
    with pytest.raises(SolverUnavailableError, match="there are: auto, highs"):
        solve(program, solver="block-ipm")


def test_the_parts_of_the_program_have_the_names_of_orbits() -> None:
    program = design(IIDPrior([0.7, 0.3], 2), LDP(0.4), HAMMING)
    assert set(program.constraints) == {
        "rows",
        "output_law",
        *(
            f"{side} of {name}"
            for side in ("ldp_floor", "ldp_ceiling")
            for name in [(0, 2), (1, 1), (2, 0)]
        ),
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
    lifts = best.certificate.mechanism.scaled_entries + noise * rng.normal(size=20)
    rough = certify_symmetric(program, np.abs(lifts), rng.normal(size=4))
    assert rough.verify()
    assert rough.level <= 0.7
    assert rough.value >= best.bound - 1e-12
    assert rough.bound <= best.value + 1e-12
    with pytest.raises(MechanismError, match="sums to"):
        certify_symmetric(program, 3 * np.abs(lifts), None)


# ---------------------------------------------------------------- classes of letters that look alike


def bits(records: int) -> tuple[Prior, np.ndarray]:
    """Tables of bits, letter by letter, with their Hamming distances."""
    codes = np.arange(2**records)
    return IIDPrior([0.7, 0.3], records).listed(), np.bitwise_count(codes[:, None] ^ codes).astype(
        float
    )


def letters_of(classes: EquitablePartition) -> Any:
    """(N,) the class of each letter."""
    return classes.orbits.letter[classes.table[:, 0]]


def outputs_of(classes: EquitablePartition) -> Any:
    """(M,) the class of each output."""
    return classes.orbits.output[classes.table[0]]


def check_equitable(classes: EquitablePartition, prior: Prior, table: np.ndarray) -> None:
    """By their definition: each letter of a class meets each value equally often, and each output, too."""
    letters, outputs = letters_of(classes), outputs_of(classes)
    for one in np.unique(letters):
        own = np.flatnonzero(letters == one)
        assert len(set(prior.probabilities[own].tolist())) == 1
        for other in np.unique(outputs):
            rows = np.sort(table[np.ix_(own, np.flatnonzero(outputs == other))], axis=1)
            assert (rows == rows[0]).all()
            columns = np.sort(table[np.ix_(own, np.flatnonzero(outputs == other))], axis=0)
            assert (columns == columns[:, :1]).all()
    assert classes.orbits.is_consistent
    values: dict[int, set[float]] = {int(place): set() for place in np.unique(classes.table)}
    for place, value in zip(classes.table.ravel().tolist(), table.ravel().tolist(), strict=True):
        values[place].add(value)
    assert all(len(several) == 1 for several in values.values())


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_classes_are_equitable_and_no_finer_than_orbits(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    moves = [rng.permutation(size).tolist() for _ in range(int(rng.integers(0, 3)))]
    space = InvariantPrior(Prior.uniform(size), moves).make_pairs()
    counts = rng.integers(1, 4, size=len(space.orbits.letters))[space.letter].tolist()
    prior = Prior.from_counts(counts, range(len(counts)))
    table = rng.integers(0, 3, size=space.orbits.count)[space.table].astype(float)
    classes = refine_colors(prior, table, size * size)
    assert classes is not None
    check_equitable(classes, prior, table)
    assert classes.orbits.count <= space.orbits.count
    for orbit in range(space.orbits.count):
        assert len(set(classes.table[space.table == orbit].tolist())) == 1


@pytest.mark.parametrize("privacy", [PML(1.0), LIP(0.5, 1.0)])
def test_a_large_design_is_solved_in_classes_and_says_so(privacy: Requirement) -> None:
    prior, distance = bits(8)
    program = design(prior, privacy, ExpectedLoss(distance))
    assert solvers_for(program)[0].name == "color-refinement"
    found, other = solve(program), solve(program, "block-ipm", tolerance=1e-10)
    assert found.solver == "color-refinement"
    assert "classes" in found.reason
    assert found.value == pytest.approx(other.value, abs=1e-9)
    assert found.gap < 1e-9
    assert found.certificate.verify()


def test_a_letter_that_differs_in_its_last_digit_is_a_class_by_itself() -> None:
    prior, distance = bits(8)
    law = prior.probabilities.copy()
    law[3] = np.nextafter(law[3], 1)
    classes = refine_colors(Prior(law), distance, 2**16)
    assert classes is not None
    assert (letters_of(classes) == letters_of(classes)[3]).sum() == 1
    program = design(Prior(law), PML(1.0), ExpectedLoss(distance))
    assert solve(program).value == pytest.approx(
        solve(program, "block-ipm", tolerance=1e-10).value, abs=1e-9
    )
    table = distance.copy()
    table[3, 9] += 1e-9
    changed = refine_colors(prior, table, 2**16)
    assert changed is not None
    assert (letters_of(changed) == letters_of(changed)[3]).sum() == 1
    assert (outputs_of(changed) == outputs_of(changed)[9]).sum() == 1


def test_wrong_classes_cost_the_optimum_and_the_gap_says_so() -> None:
    """Those of a uniform law, for a program whose letters differ."""
    prior, distance = bits(8)
    program = design(prior, PML(1.0), ExpectedLoss(distance))
    assert isinstance(program, LinearDesign)
    wrong = refine_colors(Prior.uniform(256), distance, 2**16)
    assert wrong is not None
    outcome = formulation.solve_by_partition(
        program, replace(wrong, prior=prior), MethodOptions(NO_DEADLINE, 1e-7)
    )
    assert outcome.point is not None
    certificate = certify_linear(program, outcome.point.matrix, outcome.point.multipliers)
    assert certificate.verify()
    assert certificate.gap > program.compute_allowed_gap(program.tolerance)
