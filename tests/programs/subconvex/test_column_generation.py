"""Optima of sub-convex utilities: against full enumeration, closed forms, and proofs on large alphabets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles import columns as column_oracles
from oracles.columns import UTILITIES, Case, assert_optimal, assert_proved, counted_case, random_case
from oracles.designs import FloatArray

from pmlopt import LDP, LIP, PML, ExpectedGain, Prior, closed_forms, design, mutual_information, solve
from pmlopt.errors import SolverUnavailableError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import ChiSquare, GuessingProbability
from pmlopt.programs import Status
from pmlopt.programs.result import Result
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.solvers.outcome import FOREVER, Clock
from pmlopt.solvers.parametric_program import Master

INFORMATION = UTILITIES["mutual information"][0]


def generated(program: ColumnDesign, tolerance: float = 1e-10) -> Result[ColumnCertificate]:
    return solve(program, "column-generation", tolerance=tolerance)


def both_ways(program: ColumnDesign) -> list[Result[ColumnCertificate]]:
    return [solve(program), generated(program)]


def best_information(case: Case, privacy: Requirement) -> float:
    return column_oracles.optimum(case.p, privacy, column_oracles.information).value


def declare_none(monkeypatch: pytest.MonkeyPatch, listing: bool) -> None:
    """Programs start from the constant and the closed forms, and pricing is a list or a search."""
    monkeypatch.setattr("pmlopt.programs.subconvex.program.MOST_DECLARED_COLUMNS", 0)
    if not listing:
        monkeypatch.setattr("pmlopt.programs.subconvex.column_spaces.MOST_LISTED_COLUMNS", 0)


def zipf(n: int) -> FloatArray:
    weights = 1 / np.arange(1, n + 1)
    return np.asarray(weights / weights.sum())


# ---------------------------------------------------------------- against full enumeration


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("seed", range(0, 40, 5))  # each size and each kind of prior
def test_each_utility_under_pml_is_optimal(name: str, seed: int) -> None:
    case, (utility, worth) = random_case(62, seed), UTILITIES[name]
    case = case.inside() if name == "hellinger" else case
    best = column_oracles.optimum(case.p, PML(case.epsilon), worth).value
    program = design(case.prior, PML(case.epsilon), utility)
    results = both_ways(program)
    assert_optimal(program, results, best)
    assert [result.solver for result in results] == ["highs", "column-generation"]
    if utility is INFORMATION:
        assert all(result.value == mutual_information(case.prior, result.mechanism) for result in results)


@pytest.mark.parametrize("name", UTILITIES)
@pytest.mark.parametrize("privacy", [LDP(0.7), LDP(10.0), LIP(0.5, 0.8), LIP(2.0, 0.3)], ids=str)
@pytest.mark.parametrize("seed", range(3, 5))
def test_each_utility_under_ldp_and_lip_is_optimal(name: str, privacy: Requirement, seed: int) -> None:
    case, (utility, worth) = random_case(65, seed), UTILITIES[name]
    best = column_oracles.optimum(case.p, privacy, worth).value
    program = design(case.prior, privacy, utility)
    assert_optimal(program, both_ways(program), best)


# ---------------------------------------------------------------- the ways of pricing


@pytest.mark.parametrize("seed", range(4))
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
    privacy = {"pml": PML(case.epsilon), "ldp": LDP(case.epsilon), "lip": LIP(1.0, case.epsilon)}[kind]
    program = design(case.prior, privacy, utility)
    assert not program.complete
    if case.epsilon > 0:
        assert program.space.pricer().name == way
    assert_optimal(program, [generated(program)], column_oracles.optimum(case.p, privacy, worth).value)


# ---------------------------------------------------------------- closed forms


def assert_closed(program: ColumnDesign, name: str, value: float) -> None:
    for result in both_ways(program):
        assert_proved(program, result, 1e-10)
        assert result.value == pytest.approx(value, abs=1e-10)
        assert result.closed_form is not None
        assert result.closed_form.name == name
        assert result.closed_form.value == pytest.approx(value, abs=1e-12)
        assert result.closed_form.difference == result.value - result.closed_form.value


@pytest.mark.parametrize("small", [0.5, 0.4, 0.001])
@pytest.mark.parametrize("share", [0.05, 0.95])
@pytest.mark.parametrize("region", [0, 1])
def test_binary_is_the_closed_form_in_both_regions(small: float, share: float, region: int) -> None:
    ends = [0.0, -math.log(1 - small), -math.log(small)]
    if ends[region] == ends[region + 1]:
        return  # an even prior has one region
    epsilon = (1 - share) * ends[region] + share * ends[region + 1]
    prior = [small, 1 - small]
    value = mutual_information(prior, closed_forms.binary(prior, epsilon))
    assert_closed(design(prior, PML(epsilon), INFORMATION), "binary", value)


@pytest.mark.parametrize("n", [3, 9])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.8, 1.0])
def test_high_privacy_is_the_closed_form_of_the_first_region(n: int, share: float) -> None:
    prior = Prior(np.random.default_rng([71, n]).dirichlet(np.full(n, 3.0)))
    epsilon = share * -math.log1p(-float(prior.pmf.min()))
    value = mutual_information(prior, closed_forms.high_privacy(prior, epsilon))
    assert_closed(design(prior, PML(epsilon), INFORMATION), "high_privacy", value)


@pytest.mark.parametrize("n", [3, 5, 8])
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
        assert_closed(design(p, PML(past * -math.log(p.min())), INFORMATION), "deterministic", entropy)
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


# ---------------------------------------------------------------- relations


@pytest.mark.parametrize("seed", range(8))
def test_guessing_is_the_linear_gain_of_the_identity(seed: int) -> None:
    case = random_case(73, seed)
    sub_convex = solve(design(case.prior, PML(case.epsilon), GuessingProbability()))
    linear = solve(design(case.prior, PML(case.epsilon), ExpectedGain(np.eye(case.prior.size))))
    assert sub_convex.value == pytest.approx(linear.value, abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_the_optimum_grows_with_epsilon_and_stays_under_the_closed_bound(seed: int) -> None:
    prior = random_case(74, seed).prior
    levels = np.linspace(0, 1.1 * prior.max_leakage, 12)
    values = [solve(design(prior, PML(epsilon), INFORMATION)).value for epsilon in levels]
    assert all(later >= earlier - 1e-9 for earlier, later in itertools.pairwise(values))
    bounds = [float(prior.pmf @ np.minimum(epsilon, -np.log(prior.pmf))) for epsilon in levels]
    assert all(value <= bound + 1e-12 for value, bound in zip(values, bounds, strict=True))


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
    [(np.random.default_rng(77).dirichlet(np.ones(20)), 1e-6), (zipf(20), 1e-6), (zipf(50), 1e-5)],
    ids=["dirichlet-20", "zipf-20", "zipf-50"],
)
def test_many_letters_are_proved(prior: FloatArray, tolerance: float) -> None:
    program = design(prior, PML(1.0), INFORMATION)
    assert_proved(program, solve(program, tolerance=tolerance), tolerance)


@pytest.mark.parametrize("privacy", [PML(1.0), LDP(1.0)], ids=str)
def test_fifty_counted_letters_are_proved(privacy: Requirement) -> None:
    counts = np.random.default_rng(78).multinomial(2000, zipf(50)) + 1
    program = design(Prior.from_counts(counts.tolist()), privacy, INFORMATION)
    assert program.space.pricer().name == "counts"
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


@pytest.mark.parametrize("way", ["declared", "vertices", "search"])
def test_a_time_limit_returns_what_is_in_hand(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "declared":
        declare_none(monkeypatch, listing=way == "vertices")
    program = design(zipf(16), PML(0.7), INFORMATION)
    result = solve(program, time_limit=1e-6)
    assert result.status in (Status.OPTIMAL, Status.UNPROVED, Status.STOPPED)
    assert result.certificate.verify()
    assert result.level <= 0.7
    assert result.value <= result.bound
    best = best_information(Case(program.prior, 0.7), PML(0.7))
    assert result.value - 1e-9 <= best <= result.bound + 1e-9


# ---------------------------------------------------------------- warm starts


@pytest.mark.parametrize("way", ["declared", "vertices", "search"])
def test_a_mechanism_within_the_requirement_is_a_start(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way != "declared":
        declare_none(monkeypatch, listing=way == "vertices")
    case = random_case(81, 6)
    program = design(case.prior, PML(0.6), INFORMATION)
    best = best_information(case, PML(0.6))
    cold = generated(program)
    for start in (cold, cold.mechanism, np.ones((case.prior.size, 1)), np.full((case.prior.size, 2), 0.5)):
        assert_optimal(program, [solve(program, warm_start=start, tolerance=1e-10)], best)
    tighter = solve(design(case.prior, PML(0.3), INFORMATION))
    assert_optimal(program, [solve(program, warm_start=tighter)], best)


# ---------------------------------------------------------------- rare letters


@pytest.mark.parametrize("rare", [1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_rare_letters_do_not_loosen_what_counts_as_optimal(rare: float, solver: str) -> None:
    prior = [0.5, 0.5 - rare, rare]
    result = solve(design(prior, LDP(1.0), ChiSquare()), solver)
    best = column_oracles.optimum(Prior(prior).pmf, LDP(1.0), lambda p, lifts: p @ (lifts - 1) ** 2).value
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
    solved = Master.solve

    def fails_later(
        self: Master, clock: Clock = FOREVER, costs: FloatArray | None = None
    ) -> tuple[float, FloatArray, FloatArray]:
        rounds["left"] -= 1
        if rounds["left"] < 0:
            raise ArithmeticError("the master problem: trouble")
        return solved(self, clock, costs)

    monkeypatch.setattr(Master, "solve", fails_later)
    result = generated(program)
    assert rounds["left"] < 0
    assert result.status is Status.UNPROVED
    assert 0 < result.value < best < result.bound
    assert result.certificate.verify()
