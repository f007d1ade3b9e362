"""The problem library: its schema, and every instance against its oracle with every capable solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise, product
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from library.problem_files import LIBRARY
from oracles import columns as column_oracles
from oracles import divergence_balls, ratio_bounds, records
from oracles.constraints import inequalities
from oracles.designs import FloatArray, linear_program, optimum
from oracles.envelopes import most_mass
from oracles.estimation import least_error
from oracles.least_leakage import bisected
from oracles.robust_designs import robust_optimum

from pmlopt import (
    PML,
    ChiSquareBall,
    EntropySet,
    ExpectedGain,
    Intersection,
    KLBall,
    L1Ball,
    LikelihoodRegion,
    Mechanism,
    MinimumMass,
    Polytope,
    Prior,
    WassersteinBall,
    design,
    leakage_level,
    solve,
)
from pmlopt.errors import FileFormatError, InstanceError
from pmlopt.library import RELATIONS, Instance, find, library
from pmlopt.library.instances import build_closed_form
from pmlopt.model.privacy import Requirement, RequirementConjunction
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.estimation.program import EstimationDesign
from pmlopt.programs.least_leakage.epsilon_program import LeastEpsilon
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import Program
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.programs.result import Result
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.worst_case.program import BestWorstCase
from pmlopt.releases import next_release

BY_SLACK = (LinearDesign, ColumnDesign, SymmetricDesign, LeastLeakage, LeastEpsilon, BestWorstCase)
WORTHS: dict[str, column_oracles.Worth] = {
    "mutual-information": column_oracles.information,
    "total-variation": lambda p, lifts: p @ abs(lifts - 1) / 2,
    "chi-square": lambda p, lifts: p @ (lifts - 1) ** 2,
    "hellinger": lambda p, lifts: p @ (np.sqrt(lifts) - 1) ** 2,
}
SOLVERS = (("highs", 1e-9), ("highs-ipm", 1e-6), ("clarabel", 1e-6))
by_instance = pytest.mark.parametrize("instance", LIBRARY, ids=lambda instance: instance.id)


@cache
def solved(name: str) -> tuple[Program[Any], Result[Any]]:
    """An instance's program, and its result with the solver that is chosen for it."""
    program = find(name).program()
    return program, solve(program, warm_start=False, tolerance=tolerance_of(program))


def tolerance_of(program: Program[Any]) -> float:
    return 1e-6 if isinstance(program, TradeoffProgram) else 1e-9


def test_every_source_is_in_the_bibliography() -> None:
    references = (library() / "references.bib").read_text()
    for instance in LIBRARY:
        assert f"{{{instance.cite}," in references


@by_instance
def test_every_solver_agrees_with_what_is_expected(instance: Instance) -> None:
    (program, result), expected = solved(instance.id), instance.expected
    assert expected is not None
    found = [(result, tolerance_of(program))]
    if isinstance(program, LinearDesign | SymmetricDesign) or getattr(program, "complete", False):
        found += [
            (solve(program, solver, warm_start=False, tolerance=tolerance), tolerance)
            for solver, tolerance in SOLVERS
            if solver != "highs" or not isinstance(program, SymmetricDesign)
            if solver == "clarabel" or not is_over_a_curved_set(program)
        ]
    for result, tolerance in found:
        assert result.certificate.verify()
        if isinstance(program, BY_SLACK):
            slack = tolerance * max(1.0, spread(program))
            assert RELATIONS[expected.relation](result.value, expected.value, slack)
        else:
            assert expected.agrees_with(result.value)
            assert result.status.value == "optimal"
            assert result.gap <= tolerance * max(1.0, program.scale)


def is_over_a_curved_set(program: Program[Any]) -> bool:
    """Whether the program is over a set of priors that is no polytope, and so none for linear solvers."""
    over = getattr(getattr(program, "privacy", None), "over", None)
    return over is not None and over.polytope() is None


def spread(program: Program[Any]) -> float:
    """What the tolerance of an optimum is a share of."""
    if isinstance(program, LinearDesign):
        return float(np.ptp(program.table))
    return program.scale if isinstance(program, SymmetricDesign) else 0.0


@pytest.mark.parametrize(
    "instance", [one for one in LIBRARY if one.names_closed_form], ids=lambda instance: instance.id
)
def test_every_closed_form_is_feasible_and_has_the_value(instance: Instance) -> None:
    program, expected, value = instance.program(), instance.expected, instance.closed_value()
    assert expected is not None
    assert expected.closed_form is not None
    assert value == pytest.approx(
        expected.value, rel=1e-9 if instance.arguments.get("query") else 1e-12
    )
    if isinstance(program, LinearDesign | ColumnDesign):
        form = build_closed_form(program, expected.closed_form)
        levels = program.privacy.levels(program.prior, form)
        assert all(levels[name] <= limit + 1e-12 for name, limit in program.privacy.limits.items())
        assert value == program.utility.value(program.prior, form)
    elif isinstance(program, LeastLeakage):
        assert value == leakage_level(
            instance.prior, build_closed_form(program, expected.closed_form)
        )


# ---------------------------------------------------------------- programs of another hand


def linear(program: LinearDesign, value: float) -> None:
    p, gains = program.prior.pmf, program.signed_table
    kept = [
        inequalities(one, p, program.prior.labels, program.outputs)
        for one in program.stated_constraints.values()
    ]
    if kept:
        rows, right = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        best = optimum(p, program.privacy, gains, rows, right).value
    else:
        best = best_gain(p, program.privacy, gains)
    gain = value if program.utility.maximised else -value
    assert gain == pytest.approx(best, abs=1e-7 * max(1.0, float(np.ptp(program.table))))


def of_two_letters(privacy: Requirement) -> Requirement:
    """The same with an l1 ball: `(Q - p)^2 / (p_1 p_2)` of the first letter is the chi-square distance."""
    if not (isinstance(privacy, PML) and isinstance(privacy.over, ChiSquareBall)):
        return privacy
    first, second = privacy.over.center.pmf
    radius = 2 * np.sqrt(privacy.over.radius * first * second)
    return PML(privacy.epsilon, over=L1Ball(privacy.over.center, radius))


DEFINITIONS: Mapping[type, Callable[[Any, cp.Variable], list[cp.Constraint]]] = {
    KLBall: lambda one, q: [cp.sum(cp.rel_entr(q, one.center.pmf)) <= one.radius],
    LikelihoodRegion: lambda one, q: [cp.sum(cp.rel_entr(one.center.pmf, q)) <= one.radius],
    EntropySet: lambda one, q: [cp.sum(cp.entr(q)) >= one.entropy],
    Polytope: lambda one, q: [one.rows @ q <= one.right],
    MinimumMass: lambda one, q: [q >= one.mass],
    WassersteinBall: lambda one, q: divergence_balls.constrain_transport(
        q, one.center.pmf, one.metric, one.radius
    ),
    Intersection: lambda one, q: [rule for part in one.sets for rule in constrain_prior(part, q)],
}


def constrain_prior(over: Any, q: cp.Variable) -> list[cp.Constraint]:
    """A prior of a set by its definition."""
    return DEFINITIONS[type(over)](over, q)


def best_gain(p: FloatArray, privacy: Requirement, gains: FloatArray) -> float:
    privacy = of_two_letters(privacy)
    # least masses have a program of their own below
    if isinstance(privacy, PML) and type(privacy.over) in DEFINITIONS.keys() - {MinimumMass}:
        definition = divergence_balls.SetKind(
            make=lambda *_: privacy.over,
            constrain=lambda q, *_: constrain_prior(privacy.over, q),
            radii=(),
            all_from=lambda _: math.inf,
        )
        low, high = divergence_balls.best_gain(definition, p, 0.0, gains, privacy.epsilon)
        assert high - low <= 1e-8
        return low
    if isinstance(privacy, PML) and privacy.over is not None:
        return robust_optimum(p, privacy.over, privacy.epsilon, gains)
    if isinstance(privacy, RatioRequirement | RequirementConjunction):
        return ratio_bounds.best_gain(p, ratio_bounds.pairs_of(privacy, Prior(p)), gains)
    return optimum(p, privacy, gains).value


def subconvex(program: ColumnDesign, value: float) -> None:
    p, worth = program.prior.pmf, WORTHS[program.utility.name]
    if isinstance(program.privacy, RatioRequirement | RequirementConjunction):
        pairs = ratio_bounds.pairs_of(program.privacy, program.prior)
        columns = ratio_bounds.extreme_columns(p, pairs)
        assert value == pytest.approx(
            column_oracles.best_weights(p, columns, worth(p, columns)).value, abs=1e-7
        )
    elif len(p) <= 12 or (len(p) == 16 and program.utility.name == "mutual-information"):
        assert value == pytest.approx(
            column_oracles.optimum(p, of_two_letters(program.privacy), worth).value, abs=1e-7
        )


def symmetric(program: SymmetricDesign, value: float) -> None:
    if (
        program.prior.size > 64
    ):  # test_symmetric_design has many bits beside a program of another hand
        return
    prior = program.prior.listed()
    table = program.utility.evaluate_table(prior.labels, prior.labels)
    if (
        prior.size > 16
    ):  # as many rows as pairs of letters: the listed program, which the dense one holds
        wanted = solve(design(prior, program.privacy, ExpectedGain(-table))).value
    else:
        wanted = optimum(prior.pmf, program.privacy, -table).value
    assert -value == pytest.approx(wanted, abs=1e-9)


def estimation(program: EstimationDesign, value: float) -> None:
    if program.criterion == "A":
        columns = column_oracles.extreme_columns(program.prior.pmf, program.privacy)
        assert value == pytest.approx(
            least_error(program.prior.pmf, columns, program.workload), rel=1e-5
        )


def level(program: LeastLeakage, value: float) -> None:
    floor = program.floor
    gains, least = (None, 0.0) if floor is None else (floor.normalized_gains, floor.min_gain)
    assert value == pytest.approx(
        bisected(program.prior.pmf, program.allowed, gains, least), abs=1e-8
    )


def least_epsilon(program: LeastEpsilon, value: float) -> None:
    gains = program.best_table
    assert gains is not None
    reach = program.reach if program.utility.maximised else -program.reach
    below, above = (
        best_gain(program.prior.pmf, program.at(value + step).privacy, gains)
        for step in (-1e-6, 1e-6)
    )
    assert below < reach < above


def worst_case(program: BestWorstCase, value: float) -> None:
    levels = [
        bisected(program.prior.pmf, program.order >= rank)
        for rank in range(1, program.highest_rank + 1)
    ]
    kept = max(rank for rank, level in enumerate(levels, 1) if level <= program.epsilon + 1e-9)
    assert value == (kept if program.utilities is None else program.utilities[kept - 1])


def envelope(program: EnvelopeProgram, value: float) -> None:
    p, matrix = program.prior.pmf, program.given_mechanism.matrix
    assert most_mass(p, matrix, math.exp(value) * (1 - 1e-9)) >= program.delta - 1e-7
    assert most_mass(p, matrix, math.exp(value) * (1 + 1e-6)) < program.delta


def record(program: RecordLeakage, value: float) -> None:
    channel, query = program.channel, program.channel.query
    if query.records <= 4:
        every = records.datasets(query.alphabets, channel.rows[channel.class_table().ravel()])
        best = records.largest(every, 0, program.entropy)
        assert records.entropy(best) >= program.entropy - 1e-12
        assert records.information(every, 0, best) == pytest.approx(value, abs=1e-6)


HANDS: dict[type[Program[Any]], Callable[..., None]] = {
    LinearDesign: linear, ColumnDesign: subconvex, SymmetricDesign: symmetric, EstimationDesign: estimation,
    LeastLeakage: level, LeastEpsilon: least_epsilon, BestWorstCase: worst_case, EnvelopeProgram: envelope,
    RecordLeakage: record,
}  # fmt: skip


@by_instance
def test_every_instance_agrees_with_an_independent_program(instance: Instance) -> None:
    program, result = solved(instance.id)
    if instance.builder is next_release:
        assert result.value == pytest.approx(over_paths(dict(instance.arguments)), rel=1e-7)
    elif type(program) in HANDS:
        HANDS[type(program)](program, result.value)


def over_paths(arguments: dict[str, Any]) -> float:
    """The least Hamming loss of the last release, by the probabilities of all paths of states and outputs."""
    chain, caps = arguments["chain"], arguments["caps"]
    n, steps = chain.size, len(arguments.get("released", ())) + 1
    paths = list(product(range(n), repeat=steps))
    moves = [math.prod(chain.kernels[0][a, b] for a, b in pairwise(path)) for path in paths]
    prior = np.array(
        [chain.initial[path[0]] * move for path, move in zip(paths, moves, strict=True)]
    )
    joint, loss = prior.copy(), np.inf
    for step in range(steps):
        if arguments.get("about") == "path":
            events = [
                [path[: step + 1] == one for path in paths]
                for one in {p[: step + 1] for p in paths}
            ]
        else:
            events = [[path[s] == a for path in paths] for s in range(steps) for a in range(n)]
        states = np.array([[path[step] == x for path in paths] for x in range(n)], dtype=float)
        factor = np.exp(caps[step])
        # of each event E and output y: P(E, y) <= e^cap P(E) P(y), with variables P[x, y]
        rows = [
            states @ (joint * event) - factor * (prior @ event) * (states @ joint)
            for event in events
        ]
        bounds, sums = np.kron(np.array(rows), np.eye(n)), np.kron(np.eye(n), np.ones(n))
        wrong = ((states @ joint)[:, None] * (1 - np.eye(n))).ravel()
        found = linear_program(
            wrong, A_ub=bounds, b_ub=np.zeros(len(bounds)), A_eq=sums, b_eq=np.ones(n)
        )
        loss = found.fun / joint.sum()
        if step < steps - 1:
            told = chain.labels.index(arguments["released"][step])
            joint = joint * (found.x.reshape(n, n)[:, told] @ states)
    return float(loss)


def test_emp_example_1_has_the_printed_optimum() -> None:
    instance, (program, result) = find("emp-example-1"), solved("emp-example-1")
    assert instance.expected is not None
    assert isinstance(program, LinearDesign)
    printed = instance.expected.mechanism
    assert printed is not None
    assert result.mechanism.matrix == pytest.approx(printed, abs=1e-9)
    assert leakage_level(instance.prior, printed) == pytest.approx(math.log(9 / 8), abs=1e-15)
    value = program.utility.value(instance.prior, Mechanism(printed))
    assert value == pytest.approx(result.value, abs=1e-12)


def test_finding_by_name() -> None:
    assert find("emp-example-1").id == "emp-example-1"
    assert find(library() / "closed_forms" / "emp-example-1.toml").id == "emp-example-1"
    with pytest.raises(InstanceError, match="did you mean 'emp-example-1'"):
        find("emp-exampel-1")
    with pytest.raises(InstanceError, match="`pmlopt problems` lists them"):
        find("???")
    with pytest.raises(FileFormatError, match="cannot be read"):
        find("nowhere.toml")


def test_a_name_is_no_pattern() -> None:
    for name in ("*", "u*-seven-letters", "emp-example-?"):
        with pytest.raises(InstanceError, match="no problem of that name"):
            find(name)
