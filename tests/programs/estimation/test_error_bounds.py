"""Bounds on the error of designs: cones at their columns, moments by derivatives, proofs in exact numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import PML, L1Ball, MetricPrivacy, Prior
from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.model.utility.estimation_error import Criterion
from pmlopt.programs.estimation.bounds import (
    ErrorBoundProof,
    EstimationObjective,
    MomentProblem,
    _solve_semidefinite,
    solve_relaxation,
)
from pmlopt.programs.estimation.columns import EstimationCone, build_column_cones
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions

P = np.array([0.2, 0.35, 0.45])
BOX = BoxFamily(0.4, 1.7)
EQUAL = np.full(4, 0.25)
WORKLOAD = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -0.5], [0.3, 0.2, 1.0]])
DISTANCES = np.array([[0.0, 1.0, 0.7], [1.0, 0.0, 0.5], [0.7, 0.5, 0.0]])
CRITERIA: tuple[Criterion, ...] = ("A", "D")


def extreme_columns(p: FloatArray, box: BoxFamily) -> FloatArray:
    """(N, K) every column of mean one that is at an end of the box but at one letter."""
    found = []
    for letter in range(len(p)):
        for ends in itertools.product((box.low, box.high), repeat=len(p) - 1):
            column = np.insert(np.array(ends), letter, 0.0)
            column[letter] = (1 - p @ column) / p[letter]
            if box.low - 1e-12 <= column[letter] <= box.high + 1e-12:
                found.append(column)
    return np.array(found).T


def cone_of(p: FloatArray, family: BoxFamily | StaircaseFamily) -> EstimationCone:
    cones = build_column_cones(p, (family,))
    assert cones is not None
    return cones[0]


def staircase() -> StaircaseFamily:
    families = PML(0.9, over=L1Ball(P, 0.1)).extreme_columns(Prior(P))
    assert isinstance(families, tuple)
    return next(one for one in families if isinstance(one, StaircaseFamily))


def error_of(
    information: FloatArray, workload: FloatArray, p: FloatArray, kind: Criterion
) -> float:
    """`tr(W J^-1 W') - |W p|^2` or `-log det J`."""
    if kind == "D":
        return -float(np.log(np.linalg.det(information)))
    spent = np.trace(workload @ np.linalg.inv(information) @ workload.T)
    return float(spent - ((workload @ p) ** 2).sum())


def test_the_rows_of_a_box_are_the_distances_to_its_ends() -> None:
    cone = cone_of(P, BOX)
    for column in extreme_columns(P, BOX).T:
        assert cone.rows[:3] @ column == pytest.approx(column - BOX.low, abs=1e-11)
        assert cone.rows[3:] @ column == pytest.approx(BOX.high - column, abs=1e-11)
        assert column @ column <= cone.size
    high, low = (Fraction(float(row @ np.ones(3))) for row in (cone.rows[3], cone.rows[0]))
    assert high > Fraction(BOX.high) - 1
    assert low > 1 - Fraction(BOX.low)


def test_the_form_of_equal_masses_is_nearly_zero_at_extreme_columns() -> None:
    cone = cone_of(EQUAL, BOX)
    [form] = cone.forms
    columns = extreme_columns(EQUAL, BOX)
    found = np.einsum("xk,xy,yk->k", columns, form, columns)
    assert (found >= 0).all()
    assert (found <= 1e-8).all()
    inner = np.array([1.0, 1.0, 1.1, 0.9])
    between = ((inner - BOX.low) * (BOX.high - inner)).sum()
    spent = (columns[:, 0] - BOX.low) @ (BOX.high - columns[:, 0])
    assert inner @ form @ inner == pytest.approx(between - spent, abs=1e-8)


def test_the_rows_of_a_staircase_are_zero_where_its_columns_are_at_an_end() -> None:
    family = staircase()
    cone = cone_of(P, family)
    for inside in itertools.product([False, True], repeat=3):
        high = np.array(inside)
        mass = float(P @ high)
        if not 0 < mass < family.max_mass - 1e-9:
            continue
        low, step, _ = family.compute_values(np.array([mass]), np.zeros(1))
        column = low[0] + step[0] * high
        assert column @ P == pytest.approx(1.0)
        v = np.append(column, low[0])
        assert cone.mean @ v == pytest.approx(1.0)
        assert v @ v <= cone.size
        ends = np.concatenate([cone.rows[:3] @ v, cone.rows[3:6] @ v])
        assert ends == pytest.approx(np.concatenate([step * high, step * ~high]), abs=1e-11)
        assert float(cone.rows[3:6][high] @ v @ np.ones(high.sum())) > 0  # rounded outwards
        assert cone.rows[6] @ v == pytest.approx(low[0])


def test_the_rows_of_ratios_are_zero_at_the_largest_ratio() -> None:
    cones = build_column_cones(
        P, MetricPrivacy(0.7, DISTANCES).require_extreme_columns(Prior(P), "cones")
    )
    assert cones is not None
    cone = cones[0]
    assert not cone.has_two_ends
    column = np.array([math.exp(0.7), 1.0, math.exp(0.35)])
    assert 0 < float((cone.rows @ column).min()) < 1e-11
    assert float((cone.rows @ np.add(column, [1e-3, 0.0, 0.0])).min()) < -1e-5
    assert float((cone.rows @ np.subtract(column, [0.0, 1e-3, 0.0])).min()) < -1e-5
    assert column @ column / (P @ column) ** 2 <= cone.size


@pytest.mark.parametrize("family", [BOX, staircase()])
def test_forms_are_products_of_rows_and_their_sum_has_the_weights(
    family: BoxFamily | StaircaseFamily,
) -> None:
    cone = cone_of(P, family)
    random = np.random.default_rng(5)
    v, weights = random.normal(size=len(cone.mean)), random.random(cone.form_count)
    values = cone.rows @ v
    products = [values[i] * values[j] for i, j in itertools.combinations(range(len(values)), 2)]
    forms = cone.list_forms()
    assert [float(v @ form @ v) for form in forms] == pytest.approx(products)
    assert (forms == forms.transpose(0, 2, 1)).all()
    total = np.tensordot(weights, forms, 1)
    assert cone.combine_forms(weights) == pytest.approx(total)
    sizes = np.abs(cone.rows) @ np.abs(v)
    pairs = itertools.combinations(range(len(sizes)), 2)
    most = sum(weight * sizes[i] * sizes[j] for weight, (i, j) in zip(weights, pairs, strict=True))
    found = np.abs(v) @ cone.combine_forms(weights, absolute=True) @ np.abs(v)
    assert found == pytest.approx(most)


@pytest.mark.parametrize("kind", CRITERIA)
@pytest.mark.parametrize("family", [BOX, staircase()])
def test_the_slopes_of_a_bound_are_its_derivatives(
    family: BoxFamily | StaircaseFamily, kind: Criterion
) -> None:
    problem = MomentProblem(cone_of(P, family), EstimationObjective(P, WORKLOAD, kind))
    weights = np.array([0.5, 0.9, 1.3])
    found = problem.solve_at(weights)
    assert found is not None
    for letter in range(3):
        ends = []
        for step in (1e-5, -1e-5):
            moved = problem.solve_at(weights + step * np.eye(3)[letter])
            assert moved is not None
            ends.append(moved.value)
        assert found.slopes[letter] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


@pytest.mark.parametrize("kind", CRITERIA)
def test_the_best_moments_have_the_least_error_less_the_forms(kind: Criterion) -> None:
    cone = cone_of(P, BOX)
    problem = MomentProblem(cone, EstimationObjective(P, WORKLOAD, kind))
    weights = np.array([0.5, 0.9, 1.3])
    found = problem.solve_at(weights)
    assert found is not None
    forms = np.einsum("x,xi,xj->ij", weights, cone.rows[:3], cone.rows[3:])
    assert found.form == pytest.approx(-forms, abs=1e-12)

    def value_of(information: FloatArray) -> float:
        return error_of(information, WORKLOAD, P, kind) - float((forms * information).sum())

    assert found.information @ P == pytest.approx(np.ones(3))
    assert value_of(found.information) == pytest.approx(found.value)
    random = np.random.default_rng(2)
    for _ in range(10):
        across = random.normal(size=(3, 3))
        across -= np.outer(np.ones(3), P @ across)
        other = np.ones((3, 3)) + across @ across.T
        for share in (1e-3, 0.3, 1.0):
            mixed = (1 - share) * found.information + share * other
            assert value_of(mixed) >= found.value - 1e-12


@pytest.mark.parametrize("kind", CRITERIA)
@pytest.mark.parametrize("family", [BOX, staircase()])
def test_the_proof_of_the_best_moments_proves_their_bound(
    family: BoxFamily | StaircaseFamily, kind: Criterion
) -> None:
    cone, objective = cone_of(P, family), EstimationObjective(P, WORKLOAD, kind)
    problem = MomentProblem(cone, objective)
    best, proof = problem.maximize_bound(), problem.build_proof(objective)
    assert best is not None
    assert proof is not None
    value = best[1].value
    proved = objective.bound_from_cones((cone,), proof)
    assert value - 1e-6 * (1 + abs(value)) <= proved <= value
    moments = best[1].slopes * best[0]  # of the logarithms of the weights: none is left
    assert np.abs(moments).max() <= 1e-3 * (1 + abs(value))


@pytest.mark.parametrize("kind", CRITERIA)
def test_the_bound_of_equal_masses_is_the_error_of_the_symmetric_design(kind: Criterion) -> None:
    columns, cone = extreme_columns(EQUAL, BOX), cone_of(EQUAL, BOX)
    information = columns @ columns.T / columns.shape[1]
    error = error_of(information, np.eye(4), EQUAL, kind)
    objective = EstimationObjective(EQUAL, np.eye(4), kind)
    options = MethodOptions(NO_DEADLINE, 1e-9)
    proof = solve_relaxation(objective, (cone,), information, options)
    assert proof is not None
    proved = objective.bound_from_cones((cone,), proof)
    assert error - 1e-5 <= proved <= error + 1e-9
    # by hand: the equivalence theorem gives Z and rho at the design
    z = objective.compute_sensitivities(information)
    spent = float(((z.T @ columns) ** 2).sum(axis=0).max())
    at_best = ErrorBoundProof(z, np.full(4, spent))
    assert objective.bound_from_columns(columns, at_best) == pytest.approx(error, abs=1e-10)


def test_a_symmetric_matrix_of_a_relaxation_proves_the_determinant_of_the_symmetric_design() -> (
    None
):
    columns, cone = extreme_columns(EQUAL, BOX), cone_of(EQUAL, BOX)
    information = columns @ columns.T / columns.shape[1]
    error = error_of(information, np.eye(4), EQUAL, "D")
    square, options = cp.Variable((4, 4), symmetric=True), MethodOptions(NO_DEADLINE, 1e-9)
    proof = _solve_semidefinite(
        EQUAL, (cone,), np.linalg.cholesky(information), square, cp.log_det(square), 1.0, options
    )
    assert proof is not None
    proved = EstimationObjective(EQUAL, np.eye(4), "D").bound_from_cones((cone,), proof)
    assert error - 1e-5 <= proved <= error + 1e-9


@pytest.mark.parametrize("kind", CRITERIA)
def test_any_numbers_bound_the_error_and_more_from_columns_than_from_cones(kind: Criterion) -> None:
    columns, cone = extreme_columns(P, BOX), cone_of(P, BOX)
    objective = EstimationObjective(P, WORKLOAD, kind)
    random = np.random.default_rng(11)
    for _ in range(20):
        z, rho = random.normal(size=(3, 3)), random.normal(size=3)
        proof = ErrorBoundProof(z, rho, (random.normal(size=cone.form_count),))
        listed = objective.bound_from_columns(columns, proof)
        largest = max(float(((z.T @ c) ** 2).sum() - (P * rho) @ c) for c in columns.T)
        if kind == "D":
            gained = 2 * math.log(abs(np.linalg.det(z))) + 3
        else:
            gained = 2 * np.trace(WORKLOAD @ z) - ((WORKLOAD @ P) ** 2).sum()
        assert listed == pytest.approx(gained - P @ rho - largest, abs=1e-9)
        assert objective.bound_from_cones((cone,), proof) <= listed
        form = (np.outer(P * rho, P) + np.outer(P, P * rho)) / 2 - z @ z.T
        form -= cone.combine_forms(np.maximum(proof.products[0], 0.0))
        missing = max(0.0, -float(np.linalg.eigvalsh(form)[0])) * cone.size
        assert objective.bound_from_cones((cone,), proof) == pytest.approx(
            gained - P @ rho - missing, abs=1e-9
        )
        double = objective.bound_from_columns(columns, proof.scaled_by(2.0))
        if kind == "D":
            continue
        twice = EstimationObjective(P, 2 * WORKLOAD, kind)
        assert twice.bound_from_columns(columns, proof.scaled_by(2.0)) == pytest.approx(4 * listed)
        assert double != pytest.approx(4 * listed)


@pytest.mark.parametrize(
    "sizes", [(1.0, 1e-3, 1e-3), (1e-3, 1.0, 1e-3), (1e-3, 1e-3, 1.0), (1, 1, 1)]
)
def test_a_bound_is_below_its_value_in_exact_numbers(sizes: tuple[float, float, float]) -> None:
    columns = extreme_columns(P, BOX)
    random = np.random.default_rng(1)
    for _ in range(10):
        z = sizes[0] * random.normal(size=(3, 3))
        rho, workload = sizes[1] * random.normal(size=3), sizes[2] * random.normal(size=(3, 3))
        objective = EstimationObjective(P, workload, "A")
        found = objective.bound_from_columns(columns, ErrorBoundProof(z, rho))
        exact = exact_bound(z, rho, workload, columns)
        assert Fraction(found) < exact
        assert exact - Fraction(found) <= Fraction(1, 10**10)


def exact_bound(
    z: FloatArray, rho: FloatArray, workload: FloatArray, columns: FloatArray
) -> Fraction:
    """`2 tr(W Z) - |W p|^2 - <p, rho> - max (|Z' lam|^2 - <p rho, lam>)` in exact numbers."""
    zs, ws, cs = (
        [[Fraction(float(number)) for number in row] for row in table.tolist()]
        for table in (z, workload, columns)
    )
    p, pi = ([Fraction(float(number)) for number in row] for row in (P, P * rho))
    n = range(3)
    gained = 2 * sum((ws[i][x] * zs[x][i] for i in n for x in n), Fraction(0))
    clear = sum((sum((ws[i][x] * p[x] for x in n), Fraction(0)) ** 2 for i in n), Fraction(0))
    values = []
    for k in range(len(cs[0])):
        turned = [sum((zs[x][i] * cs[x][k] for x in n), Fraction(0)) for i in n]
        cost = sum((pi[x] * cs[x][k] for x in n), Fraction(0))
        values.append(sum((one**2 for one in turned), Fraction(0)) - cost)
    return gained - clear - sum(pi, Fraction(0)) - max(values)
