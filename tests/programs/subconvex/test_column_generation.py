"""Optima of sub-convex utilities: against full enumeration, closed forms, and proofs on large alphabets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles import columns as column_oracles
from oracles.columns import (
    UTILITIES,
    Case,
    assert_optimal,
    assert_proved,
    counted_case,
    random_case,
)
from oracles.designs import FloatArray

from pmlopt import LDP, LIP, PML, Prior, closed_forms, design, mutual_information, solve
from pmlopt.core.numbers.arrays import DefaultLabels
from pmlopt.errors import SolverUnavailableError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import ChiSquare
from pmlopt.programs import Status
from pmlopt.programs.result import Result
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.solvers.parametric_program import MasterProblem
from pmlopt.solvers.solver_result import NO_DEADLINE, Deadline

INFORMATION = UTILITIES["mutual information"][0]


def generated(program: ColumnDesign, tolerance: float = 1e-10) -> Result[ColumnCertificate]:
    return solve(program, "column-generation", tolerance=tolerance)


def both_ways(program: ColumnDesign) -> list[Result[ColumnCertificate]]:
    return [solve(program), generated(program)]


def best_information(case: Case, privacy: Requirement) -> float:
    return column_oracles.optimum(case.p, privacy, column_oracles.information).value


def declare_none(monkeypatch: pytest.MonkeyPatch, listing: bool) -> None:
    """Programs start from the constant and the closed forms, and pricing is a list or a search."""
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MAX_DECLARED_COLUMNS", 0)
    if not listing:
        monkeypatch.setattr("pmlopt.programs.subconvex.column_spaces.MAX_ENUMERATED_COLUMNS", 0)


def zipf(n: int) -> FloatArray:
    weights = 1 / np.arange(1, n + 1)
    return np.asarray(weights / weights.sum())


# ---------------------------------------------------------------- against full enumeration


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize(
    ("privacy", "seed"),
    [
        *((PML, seed) for seed in (0, 10, 20, 30)),  # sizes and kinds of priors
        *((LDP(level), 4) for level in (0.7, 10.0)),
        *((LIP(*levels), 4) for levels in ((0.5, 0.8), (2.0, 0.3))),
    ],
)
def test_each_utility_is_optimal(name: str, privacy: Any, seed: int) -> None:
    case, (utility, worth) = random_case(62 if privacy is PML else 65, seed), UTILITIES[name]
    case = case.inside() if name == "hellinger" else case
    privacy = PML(case.epsilon) if privacy is PML else privacy
    best = column_oracles.optimum(case.p, privacy, worth).value
    program = design(case.prior, privacy, utility)
    results = both_ways(program)
    assert_optimal(program, results, best)
    assert [result.solver for result in results] == ["highs", "column-generation"]
    if utility is INFORMATION:
        assert all(
            result.value == mutual_information(case.prior, result.mechanism) for result in results
        )


# ---------------------------------------------------------------- the ways of pricing


@pytest.mark.parametrize("seed", [1, 3])
@pytest.mark.parametrize("kind", ["pml", "ldp", "lip"])
@pytest.mark.parametrize("way", ["counts", "vertices", "search"])
def test_each_way_of_pricing_ends_with_a_proof(
    way: str, kind: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_none(monkeypatch, listing=way == "vertices")
    case = counted_case(66, seed) if way == "counts" else random_case(67 + (way == "search"), seed)
    assert_route(way, case, kind, "mutual information")


def assert_route(way: str, case: Case, kind: str, name: str) -> None:
    """The program is priced in that way, and reaches what full enumeration reaches."""
    utility, worth = UTILITIES[name]
    privacy = {"pml": PML(case.epsilon), "ldp": LDP(case.epsilon), "lip": LIP(1.0, case.epsilon)}[
        kind
    ]
    program = design(case.prior, privacy, utility)
    assert not program.has_all_columns
    if case.epsilon > 0:
        assert program.space.choose_pricer().name == way
    assert_optimal(
        program, [generated(program)], column_oracles.optimum(case.p, privacy, worth).value
    )


# ---------------------------------------------------------------- closed forms


def assert_closed(program: ColumnDesign, name: str, value: float) -> None:
    for result in both_ways(program):
        assert_proved(program, result, 1e-10)
        assert result.value == pytest.approx(value, abs=1e-10)
        assert result.closed_form is not None
        assert result.closed_form.name == name
        assert result.closed_form.value == pytest.approx(value, abs=1e-12)
        assert result.closed_form.difference == result.value - result.closed_form.value


@pytest.mark.parametrize("small", [0.4, 0.001])
@pytest.mark.parametrize("share", [0.05, 0.95])
@pytest.mark.parametrize("region", [0, 1])
def test_binary_is_the_closed_form_in_both_regions(small: float, share: float, region: int) -> None:
    ends = [0.0, -math.log(1 - small), -math.log(small)]
    epsilon = (1 - share) * ends[region] + share * ends[region + 1]
    prior = [small, 1 - small]
    value = mutual_information(prior, closed_forms.binary(prior, epsilon))
    assert_closed(design(prior, PML(epsilon), INFORMATION), "binary", value)


@pytest.mark.parametrize("n", [3, 9])
@pytest.mark.parametrize("share", [0.01, 0.8, 1.0])
def test_high_privacy_is_the_closed_form_of_the_first_region(n: int, share: float) -> None:
    prior = Prior(np.random.default_rng([71, n]).dirichlet(np.full(n, 3.0)))
    epsilon = share * -math.log1p(-float(prior.pmf.min()))
    value = mutual_information(prior, closed_forms.high_privacy(prior, epsilon))
    assert_closed(design(prior, PML(epsilon), INFORMATION), "high_privacy", value)


@pytest.mark.parametrize("n", [3, 8])
@pytest.mark.parametrize("share", [0.02, 0.4, 0.97])
def test_the_circulant_is_the_closed_form_of_uniform_priors(n: int, share: float) -> None:
    epsilon = share * math.log(n)
    value = mutual_information(np.full(n, 1 / n), closed_forms.uniform(n, epsilon))
    in_first = epsilon <= -math.log1p(-1 / n)
    program = design(Prior.uniform(n), PML(epsilon), INFORMATION)
    assert_closed(program, "high_privacy" if in_first else "uniform", value)


@pytest.mark.parametrize("n", [2, 4, 7])
def test_both_ends_are_closed_forms(n: int) -> None:
    p = np.random.default_rng([72, n]).dirichlet(np.ones(n))
    entropy = float(-(p * np.log(p)).sum())
    for past in (1.0, 1.5):
        assert_closed(
            design(p, PML(past * -math.log(p.min())), INFORMATION), "deterministic", entropy
        )
    for privacy in (PML(0), LDP(0), LIP(0, 1), LIP(1, 0)):
        for result in both_ways(design(p, privacy, INFORMATION)):
            assert result.status is Status.OPTIMAL
            assert result.value == 0
            assert result.mechanism.matrix.shape == (n, 1)
            assert result.closed_form is not None
            assert result.closed_form.name == "constant"


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [2.0, 5.0])
def test_randomized_response_is_the_closed_form_of_ldp(n: int, epsilon: float) -> None:
    prior = Prior.uniform(n)
    value = mutual_information(prior, closed_forms.randomized_response(n, epsilon))
    program = design(prior, LDP(epsilon), INFORMATION)
    assert_closed(program, "randomized_response", value)


@pytest.mark.parametrize("privacy", [PML(0.0), PML(0.5), LDP(0.5), LIP(0.3, 0.4)], ids=str)
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_one_letter_has_nothing_to_tell(privacy: Requirement, solver: str) -> None:
    result = solve(design([1.0], privacy, INFORMATION), solver)
    assert result.status is Status.OPTIMAL
    assert result.value == 0
    assert result.mechanism.matrix.tolist() == [[1.0]]
    assert result.certificate.verify()


# ---------------------------------------------------------------- hard scales


@pytest.mark.parametrize(
    ("prior", "tolerance"),
    [(np.random.default_rng(77).dirichlet(np.ones(20)), 1e-6), (zipf(50), 1e-5)],
    ids=["dirichlet-20", "zipf-50"],
)
def test_many_letters_are_proved(prior: FloatArray, tolerance: float) -> None:
    program = design(prior, PML(1.0), INFORMATION)
    assert_proved(program, solve(program, tolerance=tolerance), tolerance)


def test_fifty_counted_letters_are_proved() -> None:
    counts = np.random.default_rng(78).multinomial(2000, zipf(50)) + 1
    program = design(
        Prior.from_counts(counts.tolist(), DefaultLabels(len(counts))), PML(1.0), INFORMATION
    )
    assert program.space.choose_pricer().name == "counts"
    assert_proved(program, solve(program, tolerance=1e-8), 1e-8 * max(1.0, program.scale))


# ---------------------------------------------------------------- how it is asked for


def declared() -> ColumnDesign:
    return design(random_case(79, 5).prior, PML(0.8), INFORMATION)


@pytest.mark.parametrize("solver", ["auto", "highs", "clarabel", "scs"])
def test_a_complete_program_goes_to_any_solver(solver: str) -> None:
    program = declared()
    result = solve(program, solver, tolerance=1e-4)
    assert result.solver == ("highs" if solver == "auto" else solver)
    assert_proved(program, result, 1e-4)
    assert result.value == pytest.approx(solve(program).value, abs=1e-4)


@pytest.mark.parametrize("solver", ["highs", "highs-ipm", "clarabel", "scs"])
def test_an_incomplete_program_is_for_column_generation_alone(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_none(monkeypatch, listing=True)
    with pytest.raises(SolverUnavailableError, match="generate"):
        solve(declared(), solver)
    assert solve(declared().with_every_column(), solver, tolerance=1e-4).solver == solver


# ---------------------------------------------------------------- warm starts


@pytest.mark.parametrize("way", ["declared", "vertices", "search"])
def test_a_mechanism_within_the_requirement_is_a_start(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way != "declared":
        declare_none(monkeypatch, listing=way == "vertices")
    case = random_case(81, 6)
    program = design(case.prior, PML(0.6), INFORMATION)
    best = best_information(case, PML(0.6))
    cold = generated(program)
    for start in (
        cold,
        cold.mechanism,
        np.ones((case.prior.size, 1)),
        np.full((case.prior.size, 2), 0.5),
    ):
        assert_optimal(program, [solve(program, warm_start=start, tolerance=1e-10)], best)
    tighter = solve(design(case.prior, PML(0.3), INFORMATION))
    assert_optimal(program, [solve(program, warm_start=tighter)], best)


# ---------------------------------------------------------------- rare letters


@pytest.mark.parametrize("rare", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_rare_letters_do_not_loosen_what_counts_as_optimal(rare: float, solver: str) -> None:
    prior = [0.5, 0.5 - rare, rare]
    result = solve(design(prior, LDP(1.0), ChiSquare()), solver)
    best = column_oracles.optimum(
        Prior(prior).pmf, LDP(1.0), lambda p, lifts: p @ (lifts - 1) ** 2
    ).value
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(best, abs=1e-8)
    assert result.gap <= 1e-6


@pytest.mark.parametrize("rare", [1e-9, 1e-11, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_the_column_of_a_rare_letter_is_kept(rare: float, solver: str) -> None:
    prior = Prior([0.5, 0.5 - rare, rare])
    result = solve(design(prior, PML(30.0), INFORMATION), solver)
    assert result.status is Status.OPTIMAL
    assert result.value == pytest.approx(-float(prior.pmf @ np.log(prior.pmf)), abs=1e-10)
    assert np.count_nonzero(result.mechanism.matrix) == 3


def test_a_gap_that_rounding_leaves_open_is_not_called_optimal() -> None:
    prior = [0.5, 0.5 - 1e-12, 1e-12]
    result = solve(design(prior, PML(26.0), ChiSquare()))
    assert result.status is Status.UNPROVED  # worths of 1e11 leave the bound 1e-2 above
    assert result.bound >= result.value
    released = solve(design(prior, PML(30.0), ChiSquare()))
    assert released.value == pytest.approx(2.0, abs=1e-9)  # N - 1, what the secret itself tells
    assert released.status is Status.OPTIMAL
    assert released.certificate.pricing == "everything"


def test_after_numerical_trouble_there_is_the_mechanism_of_the_round_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = design(zipf(16), PML(0.7), INFORMATION)
    best = generated(program, 1e-7).value
    rounds = {"left": 2}
    solved = MasterProblem.solve

    def fails_later(
        self: MasterProblem, clock: Deadline = NO_DEADLINE, costs: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        rounds["left"] -= 1
        if rounds["left"] < 0:
            raise ArithmeticError("the master problem: trouble")
        return solved(self, clock, costs)

    monkeypatch.setattr(MasterProblem, "solve", fails_later)
    result = generated(program)
    assert rounds["left"] < 0
    assert result.status is Status.UNPROVED
    assert 0 < result.value < best < result.bound
    assert result.certificate.verify()


# ---------------------------------------------------------------- the restricted master


def test_unknown_columns_are_given_once() -> None:
    master = MasterProblem(np.eye(3), np.zeros(3))
    first = np.array([[1.0, 0.5, 1.0, 2.0], [1.0, 0.5, 1.0, 0.0], [1.0, 2.0, 1.0, 0.0]])
    fresh = master.select_new(first)
    assert np.array_equal(fresh, first[:, [0, 1, 3]])
    master.add_columns(fresh, np.zeros(3))
    assert master.select_new(first).shape == (3, 0)
    fourth = np.array([[1.0, 0.25], [1.0 + 1e-14, 0.25], [1.0 - 1e-14, 2.5]])
    assert np.array_equal(master.select_new(fourth), fourth[:, [1]])
    master.add_columns(np.array([[-0.0], [3.0], [0.0]]), np.zeros(1))
    assert master.select_new(np.array([[0.0], [3.0], [-0.0]])).shape == (3, 0)


def test_columns_of_letters_next_to_nothing_are_told_apart() -> None:
    one, other = np.array([[1e299], [1.0]]), np.array([[2e299], [1.0]])
    master = MasterProblem(np.ones((2, 1)), np.zeros(1))
    assert master.select_new(np.hstack([one, other, one])).shape == (2, 2)


def test_columns_that_cannot_meet_the_rows_are_an_error() -> None:
    with pytest.raises(ArithmeticError, match="master"):
        MasterProblem(np.array([[2.0], [0.5]]), np.ones(1)).solve()


def test_first_columns_near_the_capacity_are_mixed_without_a_linear_program() -> None:
    """No mechanism tells more than epsilon nats, which columns of the full capacity reach."""
    prior = Prior(np.random.default_rng(3).dirichlet(np.full(101, 5.0)))
    result = solve(design(prior, PML(1.0), INFORMATION))
    assert result.iterations == 0
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify()
    assert 1 - 1e-8 < result.value <= result.bound <= 1 + 1e-12
    assert result.matrix.shape[1] <= 101
