"""Parts of certificates of linear designs: constraints as rows, their prices, and when a search ends."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import (
    LDP,
    PML,
    ApproximatePML,
    CoordinateLoss,
    ExpectedGain,
    ExpectedLoss,
    IIDPrior,
    MetricPrivacy,
    Prior,
    RenyiPML,
    design,
)
from pmlopt.model.privacy import Requirement
from pmlopt.programs.linear import block_interior_point, build_certificate
from pmlopt.programs.linear.block_interior_point import solve_block_lp
from pmlopt.programs.linear.build_certificate import (
    _repair_for_program,
    _variable_sizes,
    build_lagrangian,
    certify_linear,
    certify_symmetric,
)
from pmlopt.programs.linear.certificate import AffineConstraint, LinearCertificate
from pmlopt.programs.linear.columns import DenseColumns
from pmlopt.programs.linear.formulation import find_known_optimum
from pmlopt.programs.linear.program import LinearDesign, SymmetricDesign
from pmlopt.solvers.solver_result import make_options
from pmlopt.solvers.structured.interior_point import follow_used_columns

P = np.array([0.5, 0.3, 0.2])
GAINS = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])
MATRIX = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])


def program_of(privacy: Requirement | None = None) -> LinearDesign:
    program = design(P, PML(1.0) if privacy is None else privacy, ExpectedGain(GAINS))
    assert isinstance(program, LinearDesign)
    return program


def with_floor(floor: float) -> LinearDesign:
    """A program in which the first output has to be as likely as a floor."""
    program = program_of()
    first: Any = P @ program.mechanism[:, 0]
    return program.with_constraints(often=first >= floor)


@pytest.mark.parametrize("floor", [None, 0.55])
def test_the_interior_point_ends_where_the_gap_is_half_of_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, floor: float | None
) -> None:
    """With the price of what is required next to the gain."""
    endings: list[Any] = []
    follow = follow_used_columns

    def keep(*arguments: Any) -> Any:
        endings.append(follow(*arguments))
        return endings[-1]

    monkeypatch.setattr(block_interior_point, "follow_used_columns", keep)
    program = program_of() if floor is None else with_floor(floor)
    task = program.build_block_lp()
    assert task is not None
    solve_block_lp(program, task, make_options(None, 1e-6))
    assert endings[0].gap <= 0.5e-6 * program.scale / task.scale


def rows_of(equal: bool = False) -> AffineConstraint:
    coefficients = np.array([GAINS - 0.5, -GAINS])
    return AffineConstraint(
        "rows", equal, coefficients, np.array([-0.3, 0.4]), np.array([2.0, 3.0])
    )


@pytest.mark.parametrize("equal", [False, True])
def test_a_row_is_broken_by_what_its_terms_add_up_to(equal: bool) -> None:
    first = float(((GAINS - 0.5) * MATRIX).sum()) - 0.3
    second = 0.4 - float((GAINS * MATRIX).sum())
    assert first > 0 > second
    expected = [first, -second if equal else 0.0]
    one = rows_of(equal)
    assert one.row_violations(MATRIX) == pytest.approx(expected)
    sizes = [(np.abs(GAINS - 0.5) * MATRIX).sum() + 0.3, (GAINS * MATRIX).sum() + 0.4]
    assert one.term_sums(MATRIX) == pytest.approx(sizes)


def certificate_of(program: LinearDesign) -> LinearCertificate:
    return certify_linear(program, MATRIX, (MATRIX * program.centered_gains).sum(axis=1))


def test_a_value_may_pass_its_bound_by_what_broken_rows_may_gain() -> None:
    known = certificate_of(program_of())
    one = rows_of()
    added = replace(known, added=(one,), residuals={"rows": 1e-7})
    units = one.violation_units(known.mechanism.matrix)
    allowed = float(1e-7 * units @ one.multipliers)
    assert allowed > 1e-8
    assert added.bound_rounding == pytest.approx(known.bound_rounding + allowed, rel=1e-12)


def test_a_row_that_is_kept_is_kept_up_to_rounding() -> None:
    known = certificate_of(program_of())
    matrix = known.mechanism.matrix
    for more, holds in ((0.0, True), (1e-16, True), (1e-9, False)):
        offset = np.array([more - math.fsum((GAINS * matrix).ravel())])
        one = AffineConstraint("one", False, GAINS[None], offset, np.ones(1))
        assert replace(known, added=(one,))._check_added(one).holds is holds


def test_a_bound_without_its_allowance_for_rounding_is_not_proved() -> None:
    """What multipliers prove is a sum of floats: a claim has to be above it by half of the allowance."""
    known = certificate_of(program_of())
    assert known.multipliers is not None
    columns = known.columns
    centred = columns.center_table(known.table, True)
    constant = columns.exact_letter_mean(columns.min_by_letter(known.table))
    proved = columns.unrounded_bound(centred, known.multipliers) + float(constant)
    rounding = columns.bound_rounding(centred, known.multipliers)
    for share, holds in ((1.0, True), (0.25, False), (0.0, False)):
        claims = replace(known, bound=proved + share * rounding, witness={}).checks()
        found = next(claim.holds for claim in claims if claim.name == "bound")
        assert found is holds


@pytest.mark.parametrize(
    "privacy", [RenyiPML(2.0, 0.3), MetricPrivacy(0.5, "absolute"), ApproximatePML(0.3, 0.1)]
)
def test_a_dual_certificate_proves_what_the_support_function_is(privacy: Requirement) -> None:
    columns = DenseColumns(Prior(P), privacy)
    rho = np.array([0.9, 0.4, 0.7])
    witness = columns.dual_certificate(GAINS, rho)
    assert witness
    expected = columns.unrounded_bound(GAINS, rho)
    assert columns.dual_bound(GAINS, rho, witness) == pytest.approx(expected, abs=1e-9)


def test_a_search_for_multipliers_ends_at_a_bound_that_closes_the_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By 1e-10 of the range above the gain, less the constant of the added constraints."""
    aims: list[float] = []

    def select(program: Any, gains: Any, lifts: FloatArray, given: Any, target: float) -> Any:
        aims.append(target)
        return given, math.inf

    monkeypatch.setattr(build_certificate, "_select_best_multipliers", select)
    monkeypatch.setattr(build_certificate, "CLOSED_FORM_GAP", 0.01)
    program = with_floor(0.4)
    program.assign_variables(MATRIX)
    program.added["often"].dual_variables[0].save_value(np.array(0.8))
    found = certify_linear(program, MATRIX, np.zeros(3))
    with program.temporarily_assigned(found.mechanism.matrix):
        constant = build_lagrangian(program)[1]
    assert abs(constant) == pytest.approx(0.8 * 0.4)
    gain = float((P[:, None] * program.centered_gains * found.mechanism.matrix).sum())
    assert aims == pytest.approx([gain + 0.01 * program.scale - constant])


def test_a_search_for_multipliers_of_orbits_ends_at_a_bound_that_closes_the_gap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    aims: list[float] = []

    def select(program: Any, gains: Any, lifts: FloatArray, given: Any, target: float) -> Any:
        aims.append(target)
        return given, 1.0

    monkeypatch.setattr(build_certificate, "_select_best_multipliers", select)
    monkeypatch.setattr(build_certificate, "CLOSED_FORM_GAP", 0.01)
    program = design(IIDPrior([0.7, 0.3], 2), LDP(1.0), CoordinateLoss([[0, 1], [2, 0]]))
    assert isinstance(program, SymmetricDesign)
    uniform = program.columns.normalize_rows(np.ones(program.columns.orbits.count))
    found = certify_symmetric(program, uniform, None)
    entries = found.mechanism.scaled_entries
    gain = program.columns.compute_expectation(program.centered_gains, entries)
    assert aims == pytest.approx([gain + 0.01 * program.scale])


@pytest.mark.parametrize(("lost", "calls"), [(2e-9, 1), (4e-9, 2)])
def test_a_repair_that_costs_little_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch, lost: float, calls: int
) -> None:
    """Little is 3e-9 of the range."""
    noises: list[tuple[float, ...]] = []

    def repair(prior: Any, privacy: Any, matrix: Any, *noise: float, **_: Any) -> SimpleNamespace:
        noises.append(noise)
        return SimpleNamespace(matrix=matrix - lost)

    monkeypatch.setattr(build_certificate, "polish_and_repair", repair)
    columns = SimpleNamespace(compute_expectation=lambda gains, matrix: float(matrix))
    program: Any = SimpleNamespace(
        added={}, column_block=None, list_ratios=lambda: None, columns=columns, scale=1.0,
        prior=None, privacy=None, centered_gains=None,
    )  # fmt: skip
    matrix: Any = 0.5
    _repair_for_program(program, matrix)
    assert len(noises) == calls


def test_a_constant_of_stated_constraints_allows_for_the_rounding_of_all_their_terms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their offsets, and for each letter the output at which their prices are the largest."""
    monkeypatch.setattr(build_certificate, "bound_sum_rounding", lambda terms, size: size)
    one = rows_of()
    monkeypatch.setattr(build_certificate, "list_stated_constraints", lambda program: (one,))
    prices = 2 * np.abs(one.coefficients[0]) + 3 * np.abs(one.coefficients[1])
    _, constant = build_lagrangian(program_of())
    taken = 2 * -0.3 + 3 * 0.4
    assert constant == pytest.approx(-taken + 2 * 0.3 + 3 * 0.4 + prices.max(axis=1).sum())


def test_a_size_of_a_variable_is_above_its_value_and_its_bounds() -> None:
    free, bounded = cp.Variable(2), cp.Variable(2, bounds=[-7.0, 5.0])
    for variable in (free, bounded):
        variable.value = np.array([-4.0, 3.0])
    assert _variable_sizes(free).tolist() == [5.0, 4.0]
    assert _variable_sizes(bounded).tolist() == [12.0, 12.0]


def test_a_closed_form_is_optimal_only_within_the_rounding_of_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = design(np.full(3, 1 / 3), LDP(0.5), ExpectedGain(np.eye(3)))
    assert isinstance(program, LinearDesign)
    assert find_known_optimum(program) is not None
    monkeypatch.setattr(DenseColumns, "bound_rounding", lambda *_: 2e-10 * program.scale)
    assert find_known_optimum(program) is None


def test_a_utility_is_the_constant_and_the_gain_or_less_the_gain() -> None:
    table = GAINS + np.array([[3.0], [5.0], [7.0]])
    for utility in (ExpectedGain(table), ExpectedLoss(table)):
        program = design(P, PML(1.0), utility)
        assert isinstance(program, LinearDesign)
        gain = float((P[:, None] * program.centered_gains * MATRIX).sum())
        assert program.to_utility(gain) == pytest.approx(float((P[:, None] * table * MATRIX).sum()))


def test_rows_on_a_mechanism_and_its_output_law_are_rows_on_the_mechanism() -> None:
    program = program_of()
    law: Any = program.variables["output_law"]
    program = program.with_constraints(one=law[0, 1] - 2 * program.mechanism[0, 0] + 0.25 <= 0)
    program.assign_variables(MATRIX)
    found = program.to_affine_rows(program.added["one"])
    assert found is not None
    rows, offset = found
    for matrix in np.random.default_rng(0).dirichlet(np.ones(3), (3, 3)):
        expected = P @ matrix[:, 1] - 2 * matrix[0, 0] + 0.25
        assert rows @ matrix.ravel() + offset == pytest.approx([expected])
