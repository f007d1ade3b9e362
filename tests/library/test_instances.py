"""The problem library: its schema, and every instance against its oracle with every capable solver."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import write
from library.problem_files import DESIGN, LEAST, LIBRARY, PRIVACY, WORST
from oracles import columns as column_oracles
from oracles import ratio_bounds
from oracles.constraints import inequalities
from oracles.designs import FloatArray, optimum
from oracles.envelopes import most_mass
from oracles.least_leakage import bisected
from oracles.robust_designs import robust_optimum

from pmlopt import (
    LDP,
    LIP,
    PML,
    EstimationError,
    GainLeakage,
    JointLaws,
    Mechanism,
    MetricPrivacy,
    Prior,
    Pufferfish,
    Secret,
    distortion_leakage,
    envelope_design,
    leakage_distortion,
    leakage_level,
    solve,
)
from pmlopt.data.symmetry import SymmetricPrior
from pmlopt.errors import FileFormatError, InstanceError
from pmlopt.library import RELATIONS, Instance, find, library, load
from pmlopt.library.instances import closed_form
from pmlopt.model.privacy import Conjunction, Requirement
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.programs.program import Program
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.programs.worst_case.program import BestWorstCase

ALL = LIBRARY
PROGRAMS = [
    instance
    for instance in ALL
    if "prior" in instance.arguments
    and "mechanism" not in instance.arguments
    and instance.builder is not envelope_design  # test_envelope_problems has it
    and not isinstance(instance.arguments.get("utility"), EstimationError)  # test_estimation_problems has it
    and not isinstance(instance.prior, SymmetricPrior)  # test_symmetry_problems has it
]
IDS = [instance.id for instance in PROGRAMS]
BY_SLACK = (LinearDesign, ColumnDesign, SymmetricDesign, LeastLeakage, BestWorstCase)
WORTHS: dict[str, column_oracles.Worth] = {
    "mutual-information": column_oracles.information,
    "total-variation": lambda p, lifts: p @ abs(lifts - 1) / 2,
    "chi-square": lambda p, lifts: p @ (lifts - 1) ** 2,
    "hellinger": lambda p, lifts: p @ (np.sqrt(lifts) - 1) ** 2,
}


def asked(instance: Instance) -> LinearDesign | ColumnDesign:
    """What an instance of `design` asks."""
    program = instance.program()
    assert isinstance(program, LinearDesign | ColumnDesign)
    return program


def test_every_source_is_in_the_bibliography() -> None:
    references = (library() / "references.bib").read_text()
    for instance in ALL:
        assert f"{{{instance.cite}," in references


SOLVERS = (("auto", 1e-9), ("highs", 1e-9), ("highs-ipm", 1e-6), ("clarabel", 1e-6))
TOLERANCES: dict[Any, float] = {leakage_distortion: 1e-6, distortion_leakage: 1e-6}


@pytest.mark.parametrize("instance", ALL, ids=lambda instance: instance.id)
def test_every_solver_agrees_with_what_is_expected(instance: Instance) -> None:
    program, expected = instance.program(), instance.expected
    assert expected is not None
    several = isinstance(program, LinearDesign | SymmetricDesign)
    several |= isinstance(program, ColumnDesign) and program.complete
    for solver, tolerance in SOLVERS if several else [("auto", TOLERANCES.get(instance.builder, 1e-9))]:
        if solver == "highs" and isinstance(program, SymmetricDesign):
            continue
        result = solve(program, solver, warm_start=False, tolerance=tolerance)
        assert result.certificate.verify()
        if isinstance(program, BY_SLACK):
            slack = tolerance * max(1.0, spread(program))
            assert RELATIONS[expected.relation](result.value, expected.value, slack)
        else:
            assert expected.agrees(result.value)
            assert result.status.value == "optimal"
            assert result.gap <= tolerance * max(1.0, program.scale)


def spread(program: Program[Any]) -> float:
    """What the tolerance of an optimum is a share of."""
    if isinstance(program, LinearDesign):
        return float(np.ptp(program.table))
    return program.scale if isinstance(program, SymmetricDesign) else 0.0


@pytest.mark.parametrize(
    "instance", [one for one in ALL if one.names_closed_form], ids=lambda instance: instance.id
)
def test_every_closed_form_is_feasible_and_has_the_value(instance: Instance) -> None:
    program, expected, value = instance.program(), instance.expected, instance.closed_value()
    assert expected is not None
    assert expected.closed_form is not None
    assert value == pytest.approx(expected.value, rel=1e-9 if instance.arguments.get("query") else 1e-12)
    if instance in PROGRAMS and not isinstance(program, EnvelopeProgram):
        form = closed_form(program, expected.closed_form)
        if isinstance(program, LinearDesign | ColumnDesign):
            levels = program.privacy.levels(program.prior, form)
            assert all(levels[name] <= limit + 1e-12 for name, limit in program.privacy.limits.items())
            assert value == program.utility.value(program.prior, form)
        else:
            assert value == leakage_level(instance.prior, form)


def best_gain(p: FloatArray, privacy: Requirement, gains: FloatArray) -> float:
    """The optimum by a program written from the definitions."""
    if isinstance(privacy, PML) and privacy.over is not None:
        return robust_optimum(p, privacy.over, privacy.epsilon, gains)
    if isinstance(privacy, RatioRequirement | Conjunction):
        return ratio_bounds.best_gain(p, ratio_bounds.pairs_of(privacy, Prior(p)), gains)
    return optimum(p, privacy, gains).value


@pytest.mark.parametrize("instance", PROGRAMS, ids=IDS)
def test_every_instance_agrees_with_an_independent_program(instance: Instance) -> None:
    program = instance.program()
    result = solve(program)
    p = instance.prior.pmf
    if isinstance(program, ColumnDesign):
        if isinstance(program.privacy, RatioRequirement | Conjunction):
            pairs = ratio_bounds.pairs_of(program.privacy, program.prior)
            columns = ratio_bounds.extreme_columns(p, pairs)
            found = column_oracles.best_weights(p, columns, WORTHS[program.utility.name](p, columns))
            assert result.value == pytest.approx(found.value, abs=1e-7)
        elif program.prior.size <= 16:
            found = column_oracles.optimum(p, program.privacy, WORTHS[program.utility.name])
            assert result.value == pytest.approx(found.value, abs=1e-7)
        return
    if isinstance(program, LeastLeakage):
        floor = program.floor
        gains = None if floor is None else floor.gains
        least = 0.0 if floor is None else floor.least
        assert result.value == pytest.approx(bisected(p, program.allowed, gains, least), abs=1e-8)
        return
    if isinstance(program, BestWorstCase):
        levels = [bisected(p, program.order >= rank) for rank in range(1, program.highest + 1)]
        kept = max(rank for rank, level in enumerate(levels, 1) if level <= program.epsilon + 1e-9)
        assert result.value == (kept if program.utilities is None else program.utilities[kept - 1])
        return
    if isinstance(program, EnvelopeProgram):
        mass = most_mass(p, program.given.matrix, math.exp(result.value) * (1 - 1e-9))
        assert mass >= program.delta - 1e-7
        assert most_mass(p, program.given.matrix, math.exp(result.value) * (1 + 1e-6)) < program.delta
        return
    assert isinstance(program, LinearDesign)
    rows_kept = [
        inequalities(one, p, program.prior.labels, program.outputs) for one in program.stated.values()
    ]
    if rows_kept:
        rows, right = (np.concatenate(parts) for parts in zip(*rows_kept, strict=True))
        best = optimum(p, program.privacy, program.gains, rows, right).value
    else:
        best = best_gain(p, program.privacy, program.gains)
    gain = result.value if program.utility.maximised else -result.value
    assert gain == pytest.approx(best, abs=1e-7 * max(1.0, float(np.ptp(program.table))))


def test_emp_example_1_has_the_printed_optimum() -> None:
    instance = find("emp-example-1")
    assert instance.expected is not None
    printed = instance.expected.mechanism
    assert printed is not None
    result = solve(instance.program(), warm_start=False)
    assert result.mechanism.matrix == pytest.approx(printed, abs=1e-9)
    assert leakage_level(instance.prior, printed) == pytest.approx(math.log(9 / 8), abs=1e-15)
    assert asked(instance).utility.value(instance.prior, Mechanism(printed)) == pytest.approx(
        result.value, abs=1e-12
    )


def test_a_good_file_becomes_a_program(tmp_path: Path) -> None:
    instance = load(write(tmp_path, DESIGN))
    assert asked(instance).privacy == PML(math.log(1.25))
    assert instance.prior.labels == ("a", "b")
    assert instance.expected is not None
    assert instance.expected.agrees(solve(instance.program()).value)
    assert instance.closed_value() is None


RATIOS = [
    ('{ name = "lip", lower = 0.5, upper = 1 }', LIP(0.5, 1.0)),
    ('{ name = "pml", epsilon = [0.3, { log = "5/4" }] }', PML([0.3, math.log(1.25)])),
    ('{ name = "metric", epsilon = 0.5, distance = "hamming" }', MetricPrivacy(0.5, [[0, 1], [1, 0]])),
    ('{ name = "metric", epsilon = 0.5, distance = [[0, 2], [2, 0]] }', MetricPrivacy(0.5, [[0, 2], [2, 0]])),
    ('{ name = "metric", epsilon = 0.5, edges = [["b", "a", 2]] }', MetricPrivacy(0.5, [[0, 2], [2, 0]])),
    ('{ name = "g-leakage", epsilon = 0.5, gain = [[1, 0], [0, 1]] }', GainLeakage(0.5, [[1, 0], [0, 1]])),
    ('{ name = "pml", epsilon = 0.1, about = { joint = [[0.25, 0.0], [0.25, 0.5]] } }',
     PML(0.1, about=Secret([[0.25, 0.0], [0.25, 0.5]]))),
    ('{ name = "pufferfish", epsilon = 0.1, secret = { counts = [[1, 0], [1, 2]], values = ["s", "t"] }, '
     'pairs = [["t", "s"]] }',
     Pufferfish(0.1, Secret.from_counts([[1, 0], [1, 2]]))),
    ('{ name = "all-of", parts = [{ name = "pml", epsilon = 0.3 }, { name = "ldp", epsilon = 0.4 }] }',
     PML(0.3) & LDP(0.4)),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "meant"), RATIOS)
def test_ratio_bounds_are_read_by_key(tmp_path: Path, keys: str, meant: Requirement) -> None:
    text = DESIGN.replace(PRIVACY, keys)
    program = asked(load(write(tmp_path, text)))
    exact = np.array(program.prior.weights, dtype=object)
    one, other = program.privacy.ratios(exact), meant.ratios(exact)
    assert one is not None
    assert other is not None
    assert program.privacy.limits == meant.limits
    for name in ("rows", "scales", "above", "below", "exponents"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("key", ["radius", "delta"])
def test_sets_of_joint_laws_are_read(tmp_path: Path, key: str) -> None:
    kind = {"radius": "joint-ball", "delta": "joint-confidence"}[key]
    about = (
        f'{{ name = "pml", epsilon = 0.1, about = "secret", over = {{ kind = "{kind}", {key} = 0.1 }} }}\n'
        "secret = { counts = [[10, 1], [10, 19]] }"
    )
    requirement = asked(load(write(tmp_path, DESIGN.replace(PRIVACY, about)))).privacy
    secret = Secret.from_counts([[10, 1], [10, 19]])
    meant = JointLaws.ball(secret, 0.1) if key == "radius" else JointLaws.confidence(secret, 0.1)
    assert requirement == PML(0.1, about=secret, over=meant)
    assert requirement.scope == meant.scope


def test_the_prior_is_that_of_the_secret_where_none_is_given(tmp_path: Path) -> None:
    text = DESIGN.replace('prior = { probabilities = [0.5, 0.5], labels = ["a", "b"] }\n', "")
    with pytest.raises(InstanceError, match=r"params\.prior is missing"):
        load(write(tmp_path, text))
    about = '{ name = "pml", epsilon = 0.1, about = "secret" }\n'
    about += 'secret = { counts = [[1, 0], [2, 5]], labels = ["x", "y"] }'
    program = asked(load(write(tmp_path, text.replace(PRIVACY, about))))
    assert program.prior.counts == (3, 5)
    assert program.prior.labels == ("x", "y")


@pytest.mark.parametrize(("letters", "keys"), [(3, ', over = { kind = "l1-ball", radius = 0.1 }'), (2, "")])
def test_the_robust_binary_form_is_for_two_letters_and_a_set(tmp_path: Path, letters: int, keys: str) -> None:
    text = DESIGN.replace(
        'probabilities = [0.5, 0.5], labels = ["a", "b"]', f"probabilities = {[1 / letters] * letters}"
    )
    text = text.replace('{ log = "5/4" }', f"0.5{keys}")
    text = text.replace('"hamming"', '{ kind = "information-density", of = "robust_binary" }')
    with pytest.raises(InstanceError, match=f"robust_binary is for 2 letters .* not for {letters} letters"):
        load(write(tmp_path, text))


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


@pytest.mark.parametrize("text", [WORST, LEAST], ids=["worst case", "least leakage"])
def test_a_file_about_the_least_level_becomes_a_program(tmp_path: Path, text: str) -> None:
    instance = load(write(tmp_path, text))
    program = instance.program()
    assert isinstance(program, LeastLeakage)
    result = solve(program)
    assert instance.expected is not None
    assert instance.expected.agrees(result.value)
    level = leakage_level(instance.prior, result.mechanism)
    assert level <= result.level <= level + 1e-12  # rounded up where it is claimed
    assert instance.closed_value() is None
