"""Weights of columns, which columns come in, and the roundings of bounds, by their definitions."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray, linear_program

from pmlopt import LDP, EstimationError, Prior, design
from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.programs.estimation import bounds, columns
from pmlopt.programs.estimation import program as program_module
from pmlopt.programs.estimation.bounds import ErrorBoundProof, EstimationObjective
from pmlopt.programs.estimation.column_generation import (
    _add_until_interior,
    _find_interior_weights,
    _find_new_columns,
)
from pmlopt.programs.estimation.columns import BoxColumnSearch, TwoValueSearch
from pmlopt.programs.estimation.fewer_outputs import scale_to_rows, thin_columns
from pmlopt.programs.estimation.interior_point import _CentralPath
from pmlopt.programs.estimation.methods import certify_estimation, find_known_error
from pmlopt.programs.estimation.program import EstimationDesign

P = np.array([0.1, 0.2, 0.3, 0.4])
RANDOM = np.random.default_rng(0)
WORKLOAD = RANDOM.normal(size=(3, 4))
Z = RANDOM.normal(size=(4, 3))
RHO = RANDOM.normal(size=4)
LIFTS = RANDOM.dirichlet(np.ones(4), 6).T / P[:, None]


# ---------------------------------------------------------------- roundings of bounds


def rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to the number and the size of what is added up, and large enough to be seen."""
    monkeypatch.setattr(bounds, "bound_sum_rounding", lambda terms, size: 0.1 * terms + 0.01 * size)


@pytest.mark.parametrize("criterion", ["A", "D"])
def test_a_bound_from_columns_is_less_by_the_rounding_of_the_sizes_of_its_terms(
    monkeypatch: pytest.MonkeyPatch, criterion: Any
) -> None:
    rounding(monkeypatch)
    z = Z if criterion == "A" else np.eye(4) + 0.1 * RANDOM.normal(size=(4, 4))
    objective = EstimationObjective(P, WORKLOAD, criterion)
    pi = P * RHO
    worst = max(sum((z.T @ lift) ** 2) - pi @ lift for lift in LIFTS.T)
    sizes = max(
        2 * sum(abs(z.T @ lift) * (abs(z.T) @ lift)) for lift in LIFTS.T
    ) + abs(pi).sum() * LIFTS.max()  # fmt: skip
    if criterion == "A":
        gained = 2 * np.trace(WORKLOAD @ z) - ((WORKLOAD @ P) ** 2).sum()
        sizes += 2 * abs(WORKLOAD.T * z).sum() + ((WORKLOAD @ P) ** 2).sum()
    else:
        volume = math.log(abs(np.linalg.det(z)))
        gained = 2 * volume + 4
        sizes += 2 * abs(volume) + 4
    found = objective.bound_from_columns(LIFTS, ErrorBoundProof(z, RHO))
    expected = gained - pi.sum() - worst - 0.1 * (z.size + 4) - 0.01 * sizes
    assert found == pytest.approx(expected)


def test_a_bound_from_cones_has_the_least_eigenvalue_less_its_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rounding(monkeypatch)
    mean, form = np.append(P, 0.0), RANDOM.normal(size=(5, 5))
    form = form + form.T

    def combine_forms(weights: FloatArray, absolute: bool = False) -> FloatArray:
        return np.asarray(float(weights[0]) * (np.abs(form) if absolute else form))

    cone: Any = SimpleNamespace(mean=mean, size=7.0, combine_forms=combine_forms)
    pi = np.append(P * RHO, 0.0)
    square = np.zeros((5, 5))
    square[:4, :4] = Z @ Z.T
    slack = (np.outer(pi, mean) + np.outer(mean, pi)) / 2 - square - 0.3 * form
    sizes = np.abs(np.outer(pi, mean)).sum() + 0.3 * abs(form).sum() + (abs(Z) @ abs(Z).T).sum()
    least = np.linalg.eigvalsh(slack)[0] - 0.1 * 4 - 0.01 * sizes
    clear = ((WORKLOAD @ P) ** 2).sum()
    spent = pi.sum() + 7.0 * max(0.0, -least)
    more = 0.1 * Z.size + 0.01 * (abs(pi).sum() + 2 * abs(WORKLOAD.T * Z).sum() + clear)
    proof = ErrorBoundProof(Z, RHO, (np.array([0.3]),))
    found = EstimationObjective(P, WORKLOAD, "A").bound_from_cones((cone,), proof)
    assert found == pytest.approx(2 * np.trace(WORKLOAD @ Z) - clear - spent - more)


def test_the_gap_of_rounding_is_eight_times_what_the_margin_moves_columns_and_their_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program_module, "bound_sum_rounding", lambda terms, size: 1e-5)
    for exact, inner, share in (
        (np.array([[0.2, 1.8]]), np.array([[0.2, 1.8 + 4e-7]]), 5e-7),  # of .8 from the constant
        (np.array([[0.2, 1.8]]), np.array([[0.1, 1.8]]), 1e-6),
    ):
        program: Any = SimpleNamespace(
            columns=SimpleNamespace(exact=exact, inner=inner), scale=3.0, prior=Prior(P)
        )
        getter: Any = EstimationDesign.rounding_gap.fget  # type: ignore[attr-defined]
        assert getter(program) == pytest.approx(3.0 * (8 * share + 1e-5))


# ---------------------------------------------------------------- weights


def test_interior_weights_have_the_largest_least_one() -> None:
    lifts = np.hstack([np.ones((4, 1)), LIFTS, np.diag(1 / P)])
    weights, prices = _find_interior_weights(lifts)
    assert lifts @ weights == pytest.approx(np.ones(4))
    many = lifts.shape[1]
    best = linear_program(
        np.append(np.zeros(many), -1.0),
        A_ub=np.column_stack([-np.eye(many), np.ones(many)]), b_ub=np.zeros(many),
        A_eq=np.column_stack([lifts, np.zeros(4)]), b_eq=np.ones(4),
    )  # fmt: skip
    assert weights.min() == pytest.approx(-best.fun)
    # no column that is used has a positive price, or it would be used more
    assert (prices @ lifts).max() <= 1e-9


def test_columns_are_added_until_no_weight_must_be_zero() -> None:
    # all but the constant are larger at the first letter: their weights can only be 0
    first = np.array([[1.0, 2.0, 1.5], [1.0, 0.5, 0.5], [1.0, 0.5, 1.0]])
    every = np.hstack([first, np.diag([2.0, 3.0, 4.0]), [[0.5], [1.2], [1.3]]])
    assert _find_interior_weights(first)[0].min() == pytest.approx(1e-12)
    grown = _add_until_interior(first, every)
    assert {tuple(column) for column in first.T} < {tuple(column) for column in grown.T}
    assert _find_interior_weights(grown)[0].min() > 1e-3 / grown.shape[1]
    # of columns that are all larger at one letter none helps: what there is comes back
    stuck = _add_until_interior(first, first)
    assert sorted(map(tuple, stuck.T)) == sorted(map(tuple, first.T))


def test_columns_are_scaled_by_factors_next_to_one_until_rows_sum_to_one() -> None:
    matrix = RANDOM.dirichlet(np.ones(6), 4)
    rough = matrix * (1 + 0.05 * RANDOM.normal(size=6))
    fitted = scale_to_rows(rough)
    assert fitted is not None
    assert fitted.sum(axis=1) == pytest.approx(np.ones(4))
    factors = fitted / rough
    assert factors == pytest.approx(np.tile(factors[0], (4, 1)))
    assert np.linalg.norm(factors[0] - 1) <= np.linalg.norm(1 / rough[0] * matrix[0] - 1) + 1e-12
    assert scale_to_rows(np.array([[1.0, 0.5], [0.8, 0.0]])) is None


def test_a_quarter_of_what_is_too_much_is_left_out_at_a_time() -> None:
    """Rounded up, and those of the least weight."""
    seen: list[FloatArray] = []

    def weigh(kept: FloatArray) -> FloatArray:
        seen.append(kept[0])
        return np.asarray(kept[0])

    columns = np.arange(1.0, 16.0)[None]
    assert thin_columns(columns, weigh, 2) is not None
    assert [len(kept) for kept in seen] == [15, 11, 8, 6, 5, 4, 3, 2]
    assert seen[1].tolist() == list(range(5, 16))


def test_the_best_new_columns_come_in_by_the_derivative_of_the_error() -> None:
    listed = SimpleNamespace(exact=LIFTS, inner=LIFTS + 1.0, is_complete=True)
    program: Any = SimpleNamespace(columns=listed, prior=Prior(P))
    pi = P * RHO
    worths = np.array([sum((Z.T @ lift) ** 2) - pi @ lift for lift in LIFTS.T])
    pi = pi + P * float(np.sort(worths)[2:4].mean())  # columns of mean one cost so much more
    deadline: Any = None
    found = _find_new_columns(program, np.ones((4, 1)), Z, pi, 0.1, deadline)
    best = [int(k) for k in np.argsort(-worths) if worths[k] > np.sort(worths)[2:4].mean()]
    assert len(best) == 3
    assert found == pytest.approx(LIFTS[:, best] + 1.0)


def test_a_path_starts_where_the_largest_slack_is_that_of_the_gains() -> None:
    """No slack is below it, and each is at least a tenth of the largest: the dual residual is not above 0."""
    path = _CentralPath(LIFTS, np.ones(4), np.eye(4), np.full(6, 1 / 6))
    inverse = np.linalg.inv(LIFTS @ LIFTS.T / 6)
    gains = ((inverse @ LIFTS) ** 2).sum(axis=0)
    slack = LIFTS.T @ np.linalg.lstsq(LIFTS.T, gains, rcond=None)[0] - gains
    most = np.abs(slack).max()
    assert path.z == pytest.approx(np.maximum(slack, 0.1 * max(most, 1e-3 * gains.max())))
    # on the path itself nothing is left
    path.target, path.z = LIFTS @ path.q, 0.05 / path.q
    path.gains = LIFTS.T @ path.pi - path.z
    assert path._compute_residual(0.05) == pytest.approx(0.0, abs=1e-12)
    assert path._compute_residual(0.06) > 1e-6


def test_the_program_is_that_of_the_error() -> None:
    """At equal weights of its columns: `tr(W J^-1 W')` for W without what is known before, which is `W p`."""
    program = design(Prior.uniform(3), LDP(1.0), EstimationError()).with_unit(2.0)
    count = program.columns.inner.shape[1]
    weights = np.full(count, 1 / count)
    program.variables["weights"].value = weights
    lifts, workload = program.columns.inner, program.centered_workload
    error = workload @ np.linalg.inv((lifts * weights) @ lifts.T) @ workload.T
    program.variables["error"].value = error
    assert workload @ program.prior.pmf == pytest.approx(np.zeros(len(workload)), abs=1e-12)
    assert program.problem.objective.value == pytest.approx(np.trace(error))


@pytest.mark.parametrize("size", [3e-12, 2.0**40, 5e17])
def test_the_unit_is_at_most_the_largest_entry_and_more_than_half_of_it(size: float) -> None:
    numbers = size * np.array([0.0, 1.0, 3.0])
    program = design([0.2, 0.3, 0.5], LDP(1.0), EstimationError(numbers))
    largest = np.abs(program.centered_workload).max()
    unit = program.workload_unit
    assert unit <= largest < 2 * unit
    assert math.frexp(unit)[0] == 0.5


def test_a_certificate_has_small_residuals_and_the_difference_from_a_formula() -> None:
    program = design(Prior.uniform(3), LDP(1.0), EstimationError())
    matrix = (np.eye(3) * (math.e - 1) + 1) / (math.e + 2)
    certificate = certify_estimation(program, matrix, None, 0.0)
    assert certificate.residuals["rows"] < 1e-12
    form = find_known_error(program, certificate.value)
    assert form is not None
    assert form.difference == pytest.approx(certificate.value - form.value)


# ---------------------------------------------------------------- searches


def test_two_values_vary_most_at_the_best_mass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance of a column of two values, and only masses that leave room below the capacity."""
    family = StaircaseFamily(1.2, 0.5)
    search = TwoValueSearch(P, family)

    def variance(mass: float) -> float:
        low = (1 - 1.2 * mass) / (1 - mass + 0.5 * mass)
        high = 1.2 + 0.5 * low
        return mass * (high - 1) ** 2 + (1 - mass) * (low - 1) ** 2

    masses = np.linspace(0.001, 0.999, 999) / 1.2
    best = max(variance(float(mass)) for mass in masses)
    assert variance(search._find_best_mass()) >= best - 1e-4
    monkeypatch.setattr(columns, "TIE_ATOL", 0.1)
    allowed, _, _ = search._compute_two_values(np.array([0.7, 0.74, 0.76]))
    assert allowed.tolist() == [True, True, False]  # of at most .9 / 1.2


def test_the_first_sets_have_the_mass_of_a_column_between_both_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def list_sets(size: int, share: float) -> FloatArray:
        asked.append(share)
        return np.eye(size)

    monkeypatch.setattr(columns, "list_start_sets", list_sets)
    search = BoxColumnSearch(P, BoxFamily(0.3, 1.7))
    assert (search.start_columns @ P == pytest.approx(np.ones(8))) is True
    assert 0.3 + asked[0] * (1.7 - 0.3) == pytest.approx(1.0)  # of mean one


def test_nearly_full_shares_leave_one_letter_out() -> None:
    sets = columns._list_rotations(41, 0.999)
    assert set(sets.sum(axis=1).tolist()) == {1, 40}


@pytest.mark.parametrize("seed", range(3))
def test_a_step_along_an_edge_is_the_best_of_all(seed: int) -> None:
    """Mass goes between the letter between and one other, until either is at an end."""
    random = np.random.default_rng(seed)
    search = BoxColumnSearch(P, BoxFamily(0.4, 1.6))
    z, pi = random.normal(size=(4, 2)), 2 * random.normal(size=4)
    starts = search.start_columns[:8]
    form = z @ z.T
    for start, moved in zip(starts, search._move_along_edges(starts, form, pi), strict=True):
        middle = int(np.minimum(start - 0.4, 1.6 - start).argmax())
        worths = [float(start @ form @ start - pi @ start)]
        for x in range(4):
            if x == middle:
                continue
            end = start.copy()
            up = start[x] < 1.0
            most = (1.6 - start[x] if up else start[x] - 0.4) * P[x]
            step = min(most, (start[middle] - 0.4 if up else 1.6 - start[middle]) * P[middle])
            step = step if up else -step
            end[x] += step / P[x]
            end[middle] -= step / P[middle]
            worths.append(float(end @ form @ end - pi @ end))
        assert float(moved @ form @ moved - pi @ moved) == pytest.approx(max(worths))
