"""Declared programs: their parts, their sparse form, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import cvxpy as cp
import numpy as np
import pytest
from oracles import designs as oracles
from oracles.bands import KINDS, bounded

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    MaximalLeakage,
    MetricPrivacy,
    Prior,
    design,
    solve,
)
from pmlopt.errors import InfeasibleError, ProgramError, SolverUnavailableError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.utility import hamming
from pmlopt.programs import Status
from pmlopt.programs.certificate import WarmStart
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.formulation import Formulation, KnownOptimum
from pmlopt.programs.linear.methods import METHODS
from pmlopt.programs.linear.program import MAX_SIMPLEX_ENTRIES, LinearDesign
from pmlopt.programs.program import CvxpyModel, Method

PARTS: list[tuple[Requirement, set[str], set[str]]] = [
    (PML(0.5), set(), {"pml"}),
    (LDP(0.5), {"column_minimum"}, {"ldp_floor", "ldp_ceiling"}),
    (LIP(0.5, 0.4), set(), {"lip_lower", "lip_upper"}),
    (MaximalLeakage(0.5), {"column_maximum"}, {"column_maximum", "maximal_leakage"}),
]


def small() -> LinearDesign:
    return design([0.5, 0.5], PML(0.4), ExpectedLoss(hamming))


@pytest.mark.parametrize(("privacy", "variables", "constraints"), PARTS)
def test_parts_have_names(privacy: Requirement, variables: set[str], constraints: set[str]) -> None:
    program = design([0.2, 0.8], privacy, ExpectedGain(np.ones((2, 3))))
    assert set(program.variables) == {"mechanism", "output_law"} | variables
    assert set(program.constraints) == {"rows", "output_law"} | constraints
    assert program.mechanism is program.variables["mechanism"]
    assert program.mechanism.shape == (2, 3)
    assert program.variables["output_law"].shape == (1, 3)
    assert {v.name() for v in program.problem.variables()} == set(program.variables)
    assert {c.label for c in program.problem.constraints} == set(program.constraints)
    for name in [*program.variables, *program.constraints]:
        assert name in str(program)
    assert program.problem.is_lp()


def test_outputs_follow_the_prior_the_matrix_or_the_argument() -> None:
    prior = Prior([0.5, 0.5], labels=["a", "b"])
    gain = ExpectedGain(lambda x, y: 1.0)
    assert design(prior, PML(0.4), gain).outputs == ("a", "b")
    assert design(prior, PML(0.4), ExpectedGain(np.eye(2))).outputs == ("a", "b")
    assert design(prior, PML(0.4), ExpectedGain(np.ones((2, 3)))).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=3).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=cast("int", np.int64(3))).outputs == (0, 1, 2)
    assert design(prior, PML(0.4), gain, outputs=iter(["x", "y"])).outputs == ("x", "y")
    assert design(prior, PML(0.4), gain, outputs=["only"]).mechanism.shape == (2, 1)


ADDED: list[tuple[str, Callable[[cp.Variable], Any], str]] = [
    *(
        (name, lambda matrix: matrix[0, 0] <= 0.5, name)
        for name in ("rows", "pml", "output_law", "mine")
    ),
    *(
        ("odd", lambda _, thing=thing: thing, "cvxpy constraint")
        for thing in (True, 3.0, "P <= 1", None)
    ),
    ("odd", lambda matrix: cp.norm(matrix, "fro") >= 1, "DCP"),
    ("odd", lambda matrix: cp.square(matrix[0, 0]) == 0.25, "DCP"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Variable(name="whole", integer=True), "whole"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Variable(name="whole", boolean=True), "whole"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.Parameter(name="cap"), "'odd'"),
    ("odd", lambda matrix: cp.FiniteSet(matrix[0, 0], [0.1, 0.2]), "'odd'"),
    ("odd", lambda matrix: matrix[0, 0] <= cp.real(cp.Variable(complex=True)), "'odd'"),
]


@pytest.mark.parametrize(("name", "constraint", "message"), ADDED)
def test_constraints_that_cannot_be_taken_are_refused(
    name: str, constraint: Callable[[cp.Variable], Any], message: str
) -> None:
    program = small()
    program = program.with_constraints(mine=program.mechanism[0, 0] <= 0.6)
    with pytest.raises(ProgramError, match=message):
        program.with_constraints(**{name: constraint(program.mechanism)})


# ---------------------------------------------------------------- declared when somebody looks


kinds = pytest.mark.parametrize("kind", KINDS)


BEST = 2
"""The output that the first letter is worth most at."""


def some(kind: str = "pml", n: int = 4) -> LinearDesign:
    rng = np.random.default_rng([90, KINDS.index(kind)])
    prior = Prior(oracles.random_prior(rng, n))
    return design(prior, bounded(kind, prior, rng).at(0.7), ExpectedGain(rng.random((n, 3))))


def watched(program: LinearDesign) -> tuple[LinearDesign, list[int]]:
    """The same program, and a list that grows when it is declared."""
    made: list[int] = []

    def declare() -> CvxpyModel:
        made.append(1)
        return program.build_model()

    return replace(program, build_model=declare), made


@kinds
def test_designing_and_solving_declare_nothing(kind: str) -> None:
    program, made = watched(some(kind))
    for solver in ("auto", "highs", "block-ipm"):
        assert solve(program, solver).status is Status.OPTIMAL
    assert made == []


@kinds
def test_the_declared_problem_is_the_one_that_is_solved(kind: str) -> None:
    program = some(kind)
    result = solve(program)
    assert result.value == pytest.approx(solve(program, "clarabel").value, abs=1e-7)
    program.problem.solve(solver=cp.CLARABEL)
    assert program.problem.value == pytest.approx(result.value, abs=1e-6)
    program.assign_variables(result.mechanism)
    assert all(np.max(c.violation()) < 1e-9 for c in program.constraints.values())
    assert program.problem.objective.value == pytest.approx(result.value, abs=1e-12)


@pytest.mark.parametrize("before", ["nothing", "look", "assign", "solve", "solve by cvxpy"])
def test_constraints_can_be_added_at_any_time(before: str) -> None:
    program = some()
    if before == "look":
        program.problem  # noqa: B018
    elif before == "assign":
        program.assign_variables(np.full((4, 3), 1 / 3))
    elif before == "solve":
        solve(program)
    elif before == "solve by cvxpy":
        solve(program, "clarabel")
    assert some().table[0].argmax() == BEST
    capped = program.with_constraints(cap=program.mechanism[0, BEST] <= 0.1)
    free, fixed = solve(program), solve(capped)
    assert fixed.status is Status.OPTIMAL
    assert fixed.mechanism.matrix[0, BEST] <= 0.1 + 1e-6
    assert fixed.value < free.value - 1e-3
    assert free.mechanism.matrix[0, BEST] > 0.2
    assert program.added == {}
    assert set(capped.added) == {"cap"}
    extra = np.zeros((1, 12))
    extra[0, BEST] = 1.0
    expected = oracles.optimum(
        program.prior.pmf, program.privacy, program.table, extra, np.array([0.1])
    )
    assert fixed.value == pytest.approx(expected.value, abs=1e-6)
    assert solve(program).value == free.value  # the program itself is as it was


# ---------------------------------------------------------------- linear constraints of one's own


N = 9
PRIOR = Prior(np.random.default_rng(7).dirichlet(np.ones(N)) * 0.9 + 0.1 / N)
TABLE = np.random.default_rng(8).random((N, N + 1))


def base(kind: str) -> LinearDesign:
    privacy = {
        "pml": PML(1.0),
        "ldp": LDP(1.0),
        "ball": PML(1.0, L1Ball(PRIOR, 0.3)),
        "loss": PML(1.0),
    }[kind]
    return design(PRIOR, privacy, (ExpectedLoss if kind == "loss" else ExpectedGain)(TABLE))


CONSTRAINTS: dict[str, Callable[[cp.Variable, cp.Variable], list[cp.Constraint]]] = {
    "an entry at most": lambda matrix, law: [matrix[0, 0] <= 0.05],
    "the law at least": lambda matrix, law: [law[0, 1:6] >= 0.05],
    "equal columns of two letters": lambda matrix, law: [matrix[1, :4] == matrix[2, :4]],
    "an expectation": lambda matrix, law: [cp.sum(cp.multiply(TABLE[::-1], matrix)) >= 0.5 * N],
    "entries at zero": lambda matrix, law: [
        matrix[:5, 3] == 0,
        -matrix[6, 0] >= 0,
        2 * matrix[7, 1] <= 0,
    ],
    "most of a column at zero": lambda matrix, law: [matrix[:8, 2] == 0],
    "all of it": lambda matrix, law: [
        matrix[0, 1] == 0,
        law[0, 2] == 0.1,
        cp.trace(matrix[:, :N]) <= 2,
    ],
}


def added(kind: str, name: str) -> LinearDesign:
    program = base(kind)
    rows = CONSTRAINTS[name](program.mechanism, program.variables["output_law"])
    return program.with_constraints(**{f"own_{place}": row for place, row in enumerate(rows)})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("pml", name) for name in CONSTRAINTS),
        # where the lower end of a column is not zero, a column with a zero has nothing else
        *(
            (kind, name)
            for kind in ("ldp", "ball")
            for name in ("an entry at most", "an expectation")
        ),
        ("loss", "all of it"),
    ],
)
def test_few_linear_constraints_are_rows_beside(kind: str, name: str) -> None:
    program = added(kind, name)
    found, other = solve(program, "block-ipm"), solve(program, "clarabel")
    assert found.solver == "block-ipm"
    assert found.gap <= 1e-7 * program.scale
    assert found.value == pytest.approx(other.value, abs=2e-7 * program.scale)
    assert found.certificate.verify()
    assert max(found.certificate.residuals.values()) < 1e-7


def refused(program: LinearDesign) -> bool:
    with pytest.raises(SolverUnavailableError, match="linear constraints"):
        solve(program, "block-ipm")
    return True


def test_what_is_not_linear_or_too_many_is_left_to_generic_solvers() -> None:
    program = base("pml")
    matrix, free = program.mechanism, cp.Variable(bounds=[0, 1], name="free")
    assert refused(program.with_constraints(peak=cp.max(matrix) <= 0.9))
    assert refused(program.with_constraints(other=matrix[0, 0] <= free, least=free <= 0.5))
    assert refused(program.with_constraints(many=matrix <= 0.9))
    assert program.with_constraints(few=matrix[0] <= 0.9).added_rows is None  # N + 1 of them
    assert program.with_constraints(few=matrix[0, :N] <= 0.9).added_rows is not None


def test_constraints_that_no_mechanism_meets_are_found_by_another_solver() -> None:
    n = 31
    program = design(Prior.uniform(n), PML(0.5), ExpectedGain(np.eye(n)))
    with pytest.raises(InfeasibleError, match="apart"):
        solve(program.with_constraints(apart=cp.trace(program.mechanism) >= 30))


# ---------------------------------------------------------------- the decision list


Row = Method[LinearDesign, Formulation, LinearCertificate]


def linear(n: int) -> LinearDesign:
    return design(Prior.uniform(n), PML(0.5), ExpectedGain(np.eye(n)))


def curved(n: int) -> LinearDesign:
    program = linear(n)
    return program.with_constraints(size=cp.norm(program.mechanism, "fro") <= n)


def names(program: LinearDesign, start: str | None = None, solver: str = "auto") -> list[str]:
    return [route.name for route in routes(program, solver, begin(program, start))]


def begin(program: LinearDesign, start: str | None) -> Formulation:
    matrix = np.full(program.mechanism.shape, 1 / program.mechanism.shape[1])
    names = {"closed form": "uniform", "constant": "constant"}
    known = KnownOptimum(names[start], matrix, 0.0) if start in names else None
    return Formulation(program, known, None if start is None else matrix)


def routes(program: LinearDesign, solver: str, start: Formulation) -> list[Row]:
    return list(METHODS.select_methods(program, solver, start))


def joint(n: int) -> LinearDesign:
    """A linear program without blocks: a bound of one's own that is not affine."""
    program = linear(n)
    return program.with_constraints(peak=cp.max(program.mechanism) <= 1)


SMALL, LARGE = 30, 31  # the square roots of 900 and the next


@pytest.mark.parametrize(
    ("make", "n", "start", "first"),
    [
        *((make, n, None, "highs") for make in (linear, joint) for n in (2, SMALL)),
        (linear, 2, "given", "highs"),
        (linear, LARGE, "given", "block-ipm"),  # where something is faster cold
        (joint, LARGE, "given", "clarabel"),
        *((curved, n, start, "clarabel") for n in (2, LARGE) for start in (None, "given")),
        *(
            (make, n, start, "closed-form")
            for make in (linear, curved)
            for n in (2, LARGE, 201)
            for start in ("closed form", "constant")
        ),
    ],
)
def test_what_is_tried_first(
    make: Callable[[int], LinearDesign], n: int, start: str | None, first: str
) -> None:
    assert SMALL**2 == MAX_SIMPLEX_ENTRIES
    tried = names(make(n), start)
    assert tried[0] == first
    assert make is not curved or not {"highs", "highs-ipm", "block-ipm"} & set(tried)


@pytest.mark.parametrize("size", [2, 200, 201])
def test_a_closed_form_that_is_proved_optimal_ends_the_search(size: int) -> None:
    result = solve(design(Prior.uniform(size), PML(0.0), ExpectedGain(np.eye(size))))
    assert (result.solver, result.status) == ("closed-form", "optimal")
    assert result.closed_form is not None
    assert result.closed_form.name == "constant"
    assert result.certificate.verify()


@pytest.mark.parametrize("start", [None, "given"])
def test_the_very_largest_are_not_left_to_the_simplex(start: str | None) -> None:
    skewed = Prior.from_counts(range(1, 202))  # of which no two letters are alike
    tried = names(design(skewed, PML(0.5), ExpectedGain(np.eye(201))), start)
    assert tried[0] == "block-ipm"
    assert "highs" not in tried


def test_many_constraints_of_ones_own_and_levels_of_zero_have_no_structure() -> None:
    program = linear(LARGE)
    assert names(program.with_constraints(cap=program.mechanism[0, 0] <= 0.5))[0] == "block-ipm"
    assert "block-ipm" not in names(program.with_constraints(caps=program.mechanism <= 0.5))
    still = design(Prior.uniform(LARGE), PML(0.0), ExpectedGain(np.eye(LARGE)))
    assert "block-ipm" not in names(still)
    with pytest.raises(SolverUnavailableError, match="above 0 nats"):
        routes(still, "block-ipm", Formulation(still))


@pytest.mark.parametrize("name", ["highs", "highs-ipm", "clarabel", "scs", "SCS", "block-ipm"])
def test_a_solver_asked_for_is_the_only_one(name: str) -> None:
    for start in (None, "closed form", "constant", "given"):
        assert names(linear(3), start, name) == [name.lower()]


def test_names_that_cannot_be_meant_are_refused() -> None:
    for name in ("nothing", ""):
        with pytest.raises(SolverUnavailableError, match="auto"):
            routes(linear(2), name, Formulation(linear(2)))
    for name, other in (
        ("highs", "linear programs"),
        ("highs-ipm", "linear programs"),
        ("block-ipm", "Use auto"),
    ):
        with pytest.raises(SolverUnavailableError, match=other):
            routes(curved(2), name, Formulation(curved(2)))


def test_a_metric_design_out_of_time_needs_no_linear_program_for_its_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One for each output would take longer than the limit; the bound is no worse than that of no privacy."""
    random = np.random.default_rng(0)
    points = random.random((20, 2))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    program = design(random.dirichlet(np.ones(20)), MetricPrivacy(5.0, apart), ExpectedLoss(apart))

    def refuse(*_: object) -> None:
        raise AssertionError("a linear program for each output")

    monkeypatch.setattr(RatioBounds, "find_weights", refuse)
    result = solve(program, "pair-ipm", time_limit=1e-9)
    assert result.status is Status.LIMIT_REACHED
    assert result.certificate.bound >= -1e-12
    assert (
        result.certificate.value < (program.prior.pmf @ program.table).min()
    )  # of the best constant
    assert result.certificate.verify()


SPOILT: dict[str, Callable[[Any], Any]] = {
    "text": lambda array: array.astype(str),
    "short": lambda array: array[:-1],
    "long": lambda array: np.append(array, array[-1]),
    "deep": lambda array: array[None],
    "no code": lambda array: np.full(array.shape, 99.0),
    "nan": lambda array: np.full(array.shape, np.nan),
}


@pytest.mark.parametrize("spoil", [*SPOILT, "missing"])
def test_a_spoilt_restart_is_no_start(spoil: str) -> None:
    program = design(
        Prior.uniform(6), PML(0.6), ExpectedGain(np.random.default_rng(4).random((6, 6)))
    )
    good = solve(program, "highs").restart
    basis = [name for name in good.arrays if name != "matrix" and spoil in SPOILT]
    changed = {name: SPOILT[spoil](good.arrays[name]) for name in basis}
    start = WarmStart("highs", {"matrix": good.arrays["matrix"], **changed})
    result = solve(program, "highs", warm_start=start)
    assert result.status == "optimal"
    assert result.value == pytest.approx(solve(program, "highs").value, abs=1e-8)


def near(kind: str, shift: float) -> LinearDesign:
    """Programs of one shape whose gains and levels differ by so much."""
    rng = np.random.default_rng([81, KINDS.index(kind)])
    prior = Prior(oracles.random_prior(rng, 8))
    privacy = bounded(kind, prior, rng).at(0.8 + shift)
    gains, change = rng.random((8, 8)), rng.normal(size=(8, 8))
    return design(prior, privacy, ExpectedGain(gains + shift * change))


@kinds
@pytest.mark.parametrize("shift", [0.01, 0.3])
def test_a_result_is_a_start_for_itself_and_for_a_neighbour(kind: str, shift: float) -> None:
    first, second = near(kind, 0.0), near(kind, shift)
    cold, fresh = (solve(program, "highs", warm_start=False) for program in (first, second))
    again, there = (
        solve(first, "highs", warm_start=cold),
        solve(second, "highs", warm_start=cold.restart),
    )
    assert (again.warm_started, there.warm_started, cold.warm_started) == (True, True, False)
    assert again.iterations == 0
    assert again.value == pytest.approx(cold.value, abs=1e-12)
    assert there.value == pytest.approx(fresh.value, abs=1e-9)
    assert there.iterations is not None
    assert fresh.iterations is not None
    assert shift > 0.1 or there.iterations < fresh.iterations / 2
