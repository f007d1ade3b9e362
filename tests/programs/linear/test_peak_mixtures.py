"""Mixtures of columns by formula: within every pair, no better than the optimum, and hardly worse."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.ratio_bounds import broken_pairs

from pmlopt import ExpectedLoss, MetricPrivacy, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.privacy.metric_privacy import compute_shortest_paths
from pmlopt.programs.exact.envelope_repair import pair_exponents
from pmlopt.programs.exact.rounding import is_satisfied, round_rows_to_grid
from pmlopt.programs.linear import feasible, pair_interior_point, peak_mixtures
from pmlopt.programs.linear.feasible import find_first_mechanism
from pmlopt.programs.linear.peak_mixtures import find_peak_mixture
from pmlopt.solvers.solver_result import Deadline, MethodOptions, make_options

SIZE = 20
POINTS = np.random.default_rng(7).random((SIZE, 2)) * SIZE**0.5
APART = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
APART = np.maximum(APART, APART.T)
PROGRAM = design(
    Prior(np.random.default_rng(1).dirichlet(np.full(SIZE, 4.0))),
    MetricPrivacy(1.0, APART),
    ExpectedLoss(APART),
)
EXPONENTS = pair_exponents(PROGRAM.prior, PROGRAM.privacy)


def test_a_mixture_is_within_all_pairs_and_costs_little_more_than_the_best() -> None:
    assert EXPONENTS is not None
    matrix = find_peak_mixture(PROGRAM, EXPONENTS, make_options(None, 1e-9))
    assert matrix is not None
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-9)
    log_ratios = np.log(matrix[:, matrix.max(axis=0) > 0])
    assert (log_ratios[:, None] - log_ratios - APART[:, :, None]).max() <= 1e-12
    value = float((PROGRAM.prior.pmf[:, None] * PROGRAM.table * matrix).sum())
    best = solve(PROGRAM, "highs").value
    assert best - 1e-9 <= value <= 1.01 * best


def test_columns_of_the_optimum_lead_to_the_optimum() -> None:
    assert EXPONENTS is not None
    best = solve(PROGRAM, "highs")
    options = make_options(None, 1e-9)
    matrix = find_peak_mixture(PROGRAM, EXPONENTS, options, best.mechanism.matrix)
    assert matrix is not None
    value = float((PROGRAM.prior.pmf[:, None] * PROGRAM.table * matrix).sum())
    assert value == pytest.approx(best.value, abs=1e-8)


def test_where_letters_are_near_a_mixture_starts_from_a_mechanism() -> None:
    # peaks and dents of letters that are nearly one have no mixture but a constant
    rng = np.random.default_rng(0)
    points = rng.random((40, 2)) * 40**0.5
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    prior = Prior(rng.dirichlet(np.full(40, 2.0)))
    program = design(prior, MetricPrivacy(0.3, apart), ExpectedLoss(apart))
    exponents = pair_exponents(program.prior, program.privacy)
    assert exponents is not None

    def lose(matrix: FloatArray | None) -> float:
        assert matrix is not None
        return float((prior.pmf[:, None] * apart * matrix).sum())

    options = make_options(None, 1e-9)
    constant = float((prior.pmf @ apart).min())
    alone = lose(find_peak_mixture(program, exponents, options))
    assert alone == pytest.approx(constant, rel=1e-6)
    start = np.exp(-exponents / 2)
    start /= start.sum(axis=1, keepdims=True)
    best = solve(program).value
    grown = find_peak_mixture(program, exponents, options, None, start)
    assert best - 1e-9 <= lose(grown) <= 1.01 * best
    first = find_first_mechanism(program).certificate
    assert first.verify()
    assert not broken_pairs(0.3, apart, first.mechanism.matrix)
    # three times as near the optimum as the constant
    assert best <= first.value <= best + (constant - best) / 3


def test_without_time_there_is_none_and_the_first_mechanism_is_the_mixture() -> None:
    assert EXPONENTS is not None
    stopped = make_options(None, 1e-9)
    stopped = type(stopped)(Deadline.after(1e-9), 1e-9)
    assert find_peak_mixture(PROGRAM, EXPONENTS, stopped) is None
    first = find_first_mechanism(PROGRAM).certificate
    assert first.verify()
    assert not broken_pairs(1.0, APART, first.mechanism.matrix)
    assert first.value <= 1.03 * solve(PROGRAM, "highs").value


def test_of_many_letters_the_first_mechanism_needs_no_repair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert EXPONENTS is not None
    monkeypatch.setattr(peak_mixtures, "limit_search", lambda _: make_options(None, 1e-9))
    base = pair_interior_point.build_exponential_matrix(PROGRAM.centered_gains, EXPONENTS)
    mixture = feasible._build_inner_mixture(PROGRAM, EXPONENTS, base)
    assert mixture is not None
    rounded = round_rows_to_grid(mixture)
    assert is_satisfied(PROGRAM.prior, PROGRAM.privacy, rounded)
    assert not broken_pairs(1.0, APART, rounded)
    weights = PROGRAM.prior.pmf[:, None] * APART
    best = solve(PROGRAM, "highs").value
    assert best <= (weights * rounded).sum() < (best + (weights * base).sum()) / 2


def test_columns_of_few_letters_are_extended_to_a_mechanism_while_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert EXPONENTS is not None
    few = np.where(APART < 1.5, np.exp(-APART) / 4, 0.0)
    found = pair_interior_point._extend_columns(PROGRAM, EXPONENTS, few)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-9)
    # of ratios that differ by rounding
    assert (found - np.exp(APART)[:, :, None] * found[:, None]).max() <= 1e-12
    over = MethodOptions(Deadline.after(1e-9), 1e-9)
    monkeypatch.setattr(pair_interior_point, "limit_search", lambda _: over)
    assert pair_interior_point._extend_columns(PROGRAM, EXPONENTS, few) is few


def test_on_roads_a_mixture_is_much_better_than_a_constant() -> None:
    """No mixture of peaks only has rows that sum to one there, but for the constant."""
    side = 12
    places = np.array(list(np.ndindex(side, side)))
    grid = np.abs(places[:, None] - places).sum(axis=2)
    lengths = np.triu(np.random.default_rng(1).uniform(0.5, 1.5, grid.shape), 1)
    roads = compute_shortest_paths(np.where(grid > 1, np.inf, (lengths + lengths.T) * grid))
    program = design(Prior.uniform(side**2), MetricPrivacy(1.0, roads), ExpectedLoss(roads))
    exponents = pair_exponents(program.prior, program.privacy)
    assert exponents is not None
    matrix = find_peak_mixture(program, exponents, make_options(None, 1e-9))
    assert matrix is not None
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-9)
    used = np.log(matrix[:, matrix.max(axis=0) > 0])
    assert max((one - used - roads[:, [x]]).max() for x, one in enumerate(used)) <= 1e-12
    # a hundredth above the optimum, which benchmarks/ends.py proves to be 1.546; a constant costs 4.64
    assert (roads * matrix).sum() / side**2 < 1.01 * 1.5462
    assert roads.mean(axis=0).min() > 4


def test_points_next_to_one_another_have_a_mixture() -> None:
    """Their peaks are one column in floats, so that these have no inverse."""
    line = np.array([0.0, 1e-17, 1.0, 2.0, 2.5])
    apart = np.abs(line[:, None] - line)
    program = design(Prior.uniform(5), MetricPrivacy(1.0, apart), ExpectedLoss(apart))
    exponents = pair_exponents(program.prior, program.privacy)
    assert exponents is not None
    matrix = find_peak_mixture(program, exponents, make_options(None, 1e-9))
    assert matrix is not None
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-9)
    assert (apart * matrix).sum() < apart.sum(axis=0).min()
