"""Designs for estimation: closed forms, an independent program, bounds from any multipliers."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.columns import extreme_columns
from oracles.estimation import least_error

from pmlopt import (
    LDP,
    LIP,
    PML,
    ConvexHull,
    EstimationError,
    L1Ball,
    Mechanism,
    Prior,
    certify,
    design,
    estimate,
    load,
    solve,
    verify_file,
)
from pmlopt.errors import MechanismError, SolverError, UtilityError
from pmlopt.model.closed_forms import (
    least_ldp_estimation_error,
    least_pml_estimation_error,
    randomized_response,
    subset_selection,
    uniform,
)
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.programs import Status
from pmlopt.programs.estimation.bounds import ErrorBoundProof, EstimationObjective, MomentProblem
from pmlopt.programs.estimation.columns import build_column_cones
from pmlopt.programs.estimation.methods import certify_estimation

SKEWED = Prior([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])


@pytest.mark.parametrize("size", [3, 8])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
def test_the_closed_forms_are_reached_at_the_uniform_prior(size: int, epsilon: float) -> None:
    prior = Prior.uniform(size)
    for privacy, known in (
        (LDP(epsilon), least_ldp_estimation_error(size, epsilon)),
        (PML(epsilon), least_pml_estimation_error(size, epsilon)),
    ):
        result = solve(design(prior, privacy, EstimationError()))
        assert result.value == pytest.approx(known, rel=1e-8, abs=1e-9)
        assert result.bound <= result.value
        assert result.bound <= known * (1 + 1e-12)
        assert result.closed_form is not None
        assert result.closed_form.value == known
        assert result.certificate.verify()


def test_the_mechanisms_of_the_closed_forms_have_their_errors() -> None:
    error, p = EstimationError(), Prior.uniform(6)
    selected = min(error.value(p, subset_selection(6, d, 1.0)) for d in range(1, 6))
    assert selected == pytest.approx(least_ldp_estimation_error(6, 1.0), rel=1e-12)
    assert error.value(p, subset_selection(6, 1, 1.0)) == pytest.approx(
        error.value(p, randomized_response(6, 1.0))
    )
    assert error.value(p, uniform(6, math.log(6))) == pytest.approx(
        least_pml_estimation_error(6, 2.0)
    )
    assert least_pml_estimation_error(6, 9.0) == pytest.approx(5 / 6)  # the secret itself: 1 - 1/6


@pytest.mark.parametrize("workload", ["identity", "prefix", "mean", "range"])
@pytest.mark.parametrize("privacy", [LDP(1.0), PML(0.7), LIP(0.6, 0.5)])
def test_the_best_linear_estimator_is_no_better(workload: str, privacy: Requirement) -> None:
    prior = Prior([0.5, 0.3, 0.2], [1, 2, 4])
    utility = EstimationError(workload)
    result = solve(design(prior, privacy, utility))
    wanted = least_error(
        prior.pmf, extreme_columns(prior.pmf, privacy), utility.build_combinations(prior)
    )
    assert result.value == pytest.approx(wanted, rel=1e-5)
    assert result.gap <= 1e-6 * result.value


@pytest.mark.parametrize(
    ("size", "epsilon", "ours", "theirs"),
    [(8, 1.0, 23.03, 27.84), (8, 3.0, 1.287, 2.391)],
)
def test_prefix_sums_are_below_the_factorization_of_the_literature(
    size: int, epsilon: float, ours: float, theirs: float
) -> None:
    # theirs is the variance for given people, which is that for random people without their own
    prior, utility = Prior.uniform(size), EstimationError("prefix")
    result = solve(design(prior, LDP(epsilon), utility))
    wanted = utility.build_combinations(prior)
    own = float((prior.pmf * (wanted**2).sum(axis=0)).sum() - ((wanted @ prior.pmf) ** 2).sum())
    assert result.status.value == "optimal"
    assert result.value - own == pytest.approx(ours, abs=5e-3)
    assert result.value - own < theirs


@given(seed=st.integers(0, 2**32 - 1), criterion=st.sampled_from(["A", "D"]))
@settings(max_examples=15, deadline=None)
def test_no_multipliers_prove_too_much(seed: int, criterion: str) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior([0.5, 0.3, 0.2])
    utility = EstimationError(criterion=criterion)  # type: ignore[arg-type]
    program = design(prior, PML(0.5), utility)
    result = solve(program)
    z = result.certificate.sensitivities * np.exp(rng.normal(scale=0.3)) + rng.normal(
        scale=0.1, size=(3, 3)
    )
    rho = result.certificate.multipliers * np.exp(rng.normal(scale=0.3)) + rng.normal(size=3)
    bound = program.objective.bound_from_columns(
        program.columns.exact, ErrorBoundProof(z, np.asarray(rho))
    )
    assert bound <= result.bound + result.gap


def test_a_volume_is_that_of_the_semidefinite_program() -> None:
    program = design(SKEWED, LDP(1.0), EstimationError(criterion="D"))
    result, other = solve(program), solve(program, "clarabel", tolerance=1e-3)
    assert result.value == pytest.approx(other.value, abs=1e-6)
    assert result.gap <= 1e-7
    assert result.status.value == "optimal"


def test_the_value_is_the_variance_that_is_estimated() -> None:
    mechanism = solve(design(SKEWED, PML(1.0), EstimationError("prefix"))).mechanism
    counts = np.rint(1e9 * (SKEWED.pmf @ mechanism.matrix))
    found = estimate(Mechanism(mechanism.matrix), counts, workload="prefix")
    value = EstimationError("prefix").value(SKEWED, mechanism)
    assert found.people * np.trace(found.covariance) == pytest.approx(value, rel=1e-5)


def test_a_matrix_from_elsewhere_is_certified() -> None:
    program = design(SKEWED, LDP(1.0), EstimationError())
    own = certify(program, randomized_response(6, 1.0).matrix)
    best = solve(program)
    assert own.value > best.value >= own.bound
    assert own.certificate.verify()
    with pytest.raises(MechanismError, match="2 rows for 6 letters"):
        certify(program, np.eye(2))


def test_generated_columns_reach_what_all_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    program = design(SKEWED, LDP(1.0), EstimationError("prefix"))
    whole = solve(program)
    monkeypatch.setattr("pmlopt.programs.estimation.column_generation.MAX_COLUMNS_AT_ONCE", 20)
    part = solve(program)
    assert part.status.value == "optimal"
    assert part.value == pytest.approx(whole.value, rel=1e-7)


NEAR = Prior([0.3, 0.25, 0.2, 0.15, 0.1])
SEARCHED: list[tuple[Prior, Requirement, float]] = [
    (SKEWED, LDP(1.0), 1e-6),
    (SKEWED, PML(1.0), 1e-6),
    (SKEWED, LIP(0.9, 0.7), 1e-6),
    (NEAR, PML(0.6, over=L1Ball(NEAR, 0.1)), 1e-6),  # two families of columns
    (Prior([0.4, 0.3, 0.2, 0.1]), PML([0.3, 0.5, 0.7, 0.9]), 1e-2),
    (Prior([0.4, 0.3, 0.3]), PML(0.5, over=ConvexHull([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]])), 1e-2),
]
"""Priors, requirements, and how much worse than the best the columns of a search may be, over the scale."""


@pytest.mark.parametrize("criterion", ["A", "D"])
@pytest.mark.parametrize(("prior", "privacy", "worse"), SEARCHED)
def test_columns_that_are_not_listed_are_searched_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
    prior: Prior,
    privacy: Requirement,
    worse: float,
    criterion: Criterion,
) -> None:
    utility = EstimationError("prefix" if criterion == "A" else None, criterion)
    listed = solve(design(prior, privacy, utility))
    best = listed.certificate
    assert listed.status.value == "optimal"
    monkeypatch.setattr("pmlopt.programs.estimation.columns.MAX_ESTIMATION_COLUMNS", 2)
    program = design(prior, privacy, utility)
    found = solve(program)
    assert not program.columns.is_complete
    assert best.bound <= found.value <= best.value + worse * program.scale
    assert best.value - 0.2 * program.scale < found.bound <= best.value
    assert found.certificate.verify()
    unproved = certify(program, found.mechanism.matrix).gap
    assert unproved == (pytest.approx(found.value) if criterion == "A" else math.inf)
    # whatever the numbers, they prove nothing that is false
    proof, rng = found.certificate, np.random.default_rng(2)
    assert proof.multipliers is not None
    for scale in (1e-6, 1e-3, 0.1, 1.0):
        z, rho, *weights = (
            part * (1 + scale * rng.normal(size=part.shape))
            for part in (proof.sensitivities, proof.multipliers, *proof.products)
        )
        numbers = ErrorBoundProof(z, rho, tuple(weights))
        assert program.objective.bound_from_cones(program.columns.cones, numbers) <= best.value


@pytest.mark.parametrize("letter", [0, 3])
@pytest.mark.parametrize("listed", [True, False])
def test_one_frequency_is_that_of_a_response_about_it(
    monkeypatch: pytest.MonkeyPatch, letter: int, listed: bool
) -> None:
    """Randomized response about one letter leaves `p (1 - p) + e^eps / (e^eps - 1)^2`; J is singular."""
    if not listed:
        monkeypatch.setattr("pmlopt.programs.estimation.columns.MAX_ESTIMATION_COLUMNS", 2)
    p = float(NEAR.pmf[letter])
    known = p * (1 - p) + math.e / (math.e - 1) ** 2
    found = solve(design(NEAR, LDP(1.0), EstimationError(np.eye(5)[[letter]])))
    assert found.bound <= known * (1 + 1e-12)
    assert found.value == pytest.approx(known, rel=1e-4)
    assert known <= found.value * (1 + 1e-12)
    assert found.certificate.verify()


@pytest.mark.parametrize("criterion", ["A", "D"])
def test_small_levels_have_an_error_with_digits(criterion: Criterion) -> None:
    # for LDP the least error of a uniform prior grows as one over the square of the level
    fine, coarse = (
        solve(design([1 / 3] * 3, LDP(level), EstimationError(criterion=criterion)))
        for level in (1e-6, 1e-3)
    )
    assert fine.bound <= fine.value
    if criterion == "A":
        assert fine.value == pytest.approx(coarse.value * 1e6, rel=1e-3)
    else:
        assert fine.value == pytest.approx(coarse.value + 4 * math.log(1e3), abs=1e-3)


def test_a_level_whose_information_no_float_holds_is_refused() -> None:
    with pytest.raises(SolverError, match="allow a larger level"):
        solve(design([0.5, 0.3, 0.2], LDP(1e-9), EstimationError()))


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_its_formula_in_exact_arithmetic(seed: int) -> None:
    rng = np.random.default_rng([310, seed])
    columns, p = 2 * rng.random((3, 4)), rng.dirichlet(np.ones(3))
    wanted, z, rho = rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=3)
    bound = EstimationObjective(p, wanted, "A").bound_from_columns(columns, ErrorBoundProof(z, rho))
    lam, q, w, s, r = (
        np.vectorize(Fraction, otypes=[object])(x) for x in (columns, p, wanted, z, rho)
    )
    excess = max(((s.T @ lam) ** 2).sum(axis=0) - (q * r) @ lam)
    clear = ((w @ q) ** 2).sum()
    assert Fraction(bound) <= 2 * (w.T * s).sum() - clear - (q * r).sum() - excess


# ---------------------------------------------------------------- bounds from second moments


def bound_of(
    prior: Prior, privacy: PML | LDP | LIP, workload: np.ndarray, criterion: Criterion
) -> float:
    """What the numbers that were found prove, by the bound that any numbers give."""
    cones = build_column_cones(prior.pmf, privacy.require_extreme_columns(prior, "cones"))
    assert cones is not None
    objective = EstimationObjective(prior.pmf, workload, criterion)
    found = MomentProblem(cones[0], objective).build_proof(objective)
    assert found is not None
    return objective.bound_from_cones(cones, found)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(3, 9),
    epsilon=st.floats(0.2, 2.5),
    criterion=st.sampled_from(["A", "D"]),
)
def test_it_is_below_the_optimum_over_all_extreme_columns(
    seed: int, size: int, epsilon: float, criterion: Criterion
) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(rng.dirichlet(np.full(size, 3.0)))
    workload = np.eye(size) if criterion == "D" else rng.normal(size=(size, size))
    for privacy in (LDP(epsilon), LIP(epsilon, epsilon)):
        utility = EstimationError(None if criterion == "D" else workload, criterion)
        best = solve(design(prior, privacy, utility))
        assert bound_of(prior, privacy, workload, criterion) <= best.value + 1e-9 * abs(best.value)


@pytest.mark.parametrize("size", [7, 60])
def test_at_the_uniform_prior_it_is_that_of_sets_of_any_share(size: int) -> None:
    """Sets need not have a whole number of letters in it: near the closed forms, and met where they have."""
    prior, epsilon = Prior.uniform(size), 1.0
    even = np.log((size - 3) / 3)  # three letters of a share of 1 / (1 + e^epsilon)
    found = bound_of(prior, LDP(even), np.eye(size), "A")
    assert found == pytest.approx(least_ldp_estimation_error(size, even), rel=1e-6)
    for known, privacy in (
        (least_ldp_estimation_error(size, epsilon), LDP(epsilon)),
        (least_pml_estimation_error(size, epsilon), PML(epsilon)),
    ):
        assert (
            {7: 0.8, 60: 0.98}[size] * known
            <= bound_of(prior, privacy, np.eye(size), "A")
            <= known * (1 + 1e-9)
        )


def test_many_letters_are_designed_with_a_gap_of_a_hundredth() -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(42, 3.0)))
    found = solve(design(prior, LDP(1.0), EstimationError()))
    assert found.certificate.verify()
    assert found.bound <= found.value <= 1.015 * found.bound


def test_outputs_that_hardly_anyone_gets_are_left_out_at_no_cost() -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(8, 3.0)))
    found = solve(design(prior, PML(0.7), EstimationError()))
    law = prior.pmf @ found.mechanism.matrix
    assert law.min() >= 1e-6 * law.max()
    assert found.gap <= 1e-7 * found.value


@pytest.mark.parametrize("most", [8, 36])
def test_fewer_outputs_cost_what_the_gap_says(most: int) -> None:
    prior = Prior(np.random.default_rng(1).dirichlet(np.full(8, 3.0)))
    best = solve(design(prior, LDP(1.0), EstimationError()))
    few = solve(design(prior, LDP(1.0), EstimationError(), outputs=most))
    assert few.mechanism.shape[1] <= most
    assert few.certificate.verify()
    assert few.bound == pytest.approx(best.bound, rel=1e-6)
    if most == 36:  # N (N + 1) / 2 are always enough
        assert few.value == pytest.approx(best.value, rel=1e-8)
    else:
        assert best.value < few.value <= 1.3 * best.value


@pytest.mark.parametrize("rare", [1e-6, 1e-12])
@pytest.mark.parametrize(
    ("privacy", "most"),
    [(PML(2.0), None), (PML(2.0), 6), (LDP(20.0), 6), (LIP(20.0, 20.0), None)],
    ids=str,
)
def test_rare_letters_keep_their_rows(
    privacy: PML | LDP | LIP, rare: float, most: int | None
) -> None:
    prior = Prior([0.4, 0.3, 0.2, 0.1 - 2 * rare, rare, rare])
    found = solve(design(prior, privacy, EstimationError(), outputs=most))
    assert found.certificate.verify()
    assert np.abs(found.mechanism.matrix.sum(axis=1) - 1).max() <= 1e-12


def error_by_formula(p: list[float], matrix: np.ndarray, labels: list[Fraction]) -> float:
    """The least variance of an unbiased estimate of a mean, by numpy: labels are centred as fractions."""
    masses = [Fraction(mass) for mass in p]
    mean = sum(
        (mass * label for mass, label in zip(masses, labels, strict=True)), Fraction(0)
    ) / sum(masses)
    w = np.array([float(label - mean) for label in labels])
    keep = matrix.max(axis=0) > 0
    occurring = matrix[:, keep]
    information = (occurring / (np.array(p) @ occurring)) @ occurring.T
    return float(w @ np.linalg.pinv(information) @ w)


@settings(max_examples=25, deadline=None)
@given(
    shift=st.integers(-(10**18), 10**18),
    power=st.integers(-12, 12),
    privacy=st.sampled_from(
        [PML(0.7), LDP(1.0), PML(1.5, over=ConvexHull([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]]))]
    ),
)
def test_a_mean_is_designed_for_in_any_unit_and_from_any_origin(
    shift: int, power: int, privacy: Requirement
) -> None:
    p, steps = [0.5, 0.3, 0.2], (0, 1, 3)
    plain = solve(design(Prior(p, steps), privacy, EstimationError("mean")))
    unit = Fraction(10) ** power
    scaled = [float(step * unit) for step in steps]
    moved = [shift + step for step in steps]
    for labels, size in ((scaled, float(unit)), (moved, 1.0)):
        found = solve(design(Prior(p, labels), privacy, EstimationError("mean")))
        exact = error_by_formula(p, found.mechanism.matrix, [Fraction(label) for label in labels])
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(exact, rel=1e-9)
        assert found.value / size**2 == pytest.approx(plain.value, rel=1e-6)
        assert found.bound <= found.value * (1 + 1e-12)
        assert found.certificate.verify()


def test_years_and_times_have_the_error_of_the_steps_between_them() -> None:
    for labels, known in (
        (range(5), 3.97268), (range(2020, 2025), 3.97268), (range(50_000, 50_005), 3.97268),
        (range(1_700_000_000, 1_700_000_005), 3.97268),
        (range(1_700_000_000_000, 1_700_000_000_003), 1.66707),
        (range(1_556_559_573_141_592_653, 1_556_559_573_141_592_656), 1.66707),
    ):  # fmt: skip
        prior = Prior([0.2] * 5 if len(labels) == 5 else [0.5, 0.3, 0.2], labels)
        for workload in ("mean", list(labels), np.array(labels)):
            result = solve(design(prior, PML(0.7), EstimationError(workload)))
            assert result.status is Status.OPTIMAL
            assert result.value == pytest.approx(known, abs=5e-6)
            assert 0 <= result.gap <= 1e-6


def test_a_mean_of_times_is_proved_from_its_file(tmp_path: Path) -> None:
    labels = [1_700_000_000_000_000_000 + step for step in range(3)]
    result = solve(design(Prior([0.5, 0.3, 0.2], labels), PML(1.0), EstimationError("mean")))
    result.save(tmp_path / "mean.json")
    back = load(tmp_path / "mean.json")
    assert back.certificate.verify()
    assert back.value == result.value
    false = replace(back.certificate, value=back.value * (1 - 1e-6))
    assert not false.verify()


def test_a_false_value_in_a_small_unit_is_refused() -> None:
    result = solve(
        design(Prior([0.5, 0.3, 0.2], [0.0, 1e-12, 3e-12]), PML(1.0), EstimationError("mean"))
    )
    assert result.certificate.verify()
    assert not replace(result.certificate, value=0.9 * result.value).verify()


def test_labels_too_far_apart_or_too_near_are_refused() -> None:
    for labels in ([0.0, 1e200], [0.0, 1e-200], [-1.7e308, 1.7e308]):
        with pytest.raises(UtilityError, match="change its unit"):
            design(Prior([0.5, 0.5], labels), PML(0.4), EstimationError("mean"))


def test_sixteen_letters_of_which_few_are_common_are_estimated() -> None:
    """Counts of levels of education: of columns drawn at random some can only have the weight 0."""
    counts = [
        60,
        220,
        480,
        840,
        720,
        1220,
        1620,
        580,
        14600,
        10160,
        1980,
        1480,
        7340,
        2380,
        780,
        560,
    ]
    result = solve(design(Prior.from_counts(counts), PML(2.0), "estimation-error"))
    assert result.status == "optimal"
    assert result.level <= 2.0
    # the optimum is between that of less leakage and that of more
    assert (
        result.bound > solve(design(Prior.from_counts(counts), PML(3.0), "estimation-error")).value
    )


def test_a_mechanism_that_estimates_nothing_is_saved_and_read(tmp_path: Path) -> None:
    program = design(Prior([0.5, 0.3, 0.2]), PML(0.5), EstimationError())
    certificate = certify_estimation(program, np.ones((3, 1)), None, 0.0)
    assert certificate.value == math.inf
    assert certificate.verify()
    constant = replace(solve(program), certificate=certificate, closed_form=None)
    for name in ("constant.json", "constant.npz"):
        constant.save(tmp_path / name)
        assert load(tmp_path / name).value == math.inf
        assert verify_file(tmp_path / name).holds
