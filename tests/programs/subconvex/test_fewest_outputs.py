"""Ties between optimal mechanisms: few outputs, at the same value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from oracles import columns as column_oracles
from oracles.columns import UTILITIES, Case, random_case
from oracles.designs import FloatArray
from scipy.optimize import nnls

from pmlopt import PML, MutualInformation, Prior, design, solve
from pmlopt.programs.subconvex.column_generation import fewest_outputs

INFORMATION = MutualInformation()


@pytest.mark.parametrize(
    ("n", "ratio", "outputs"), [(4, 2, 2), (6, 2, 2), (6, 3, 3), (4, 4, 4), (8, 4, 4), (9, 3, 3), (10, 5, 5)]
)
@pytest.mark.parametrize("solver", ["auto", "column-generation"])
def test_even_letters_are_told_apart_in_blocks(n: int, ratio: int, outputs: int, solver: str) -> None:
    result = solve(design(Prior.uniform(n), PML(math.log(ratio)), INFORMATION), solver)
    assert result.mechanism.matrix.shape == (n, outputs)
    assert result.value == pytest.approx(math.log(ratio), abs=1e-9)
    assert result.certificate.verify()


@pytest.mark.parametrize("solver", ["auto", "column-generation", "highs-ipm", "clarabel"])
@pytest.mark.parametrize("name", ["mutual information", "total variation", "guessing"])
@pytest.mark.parametrize("seed", [2, 11, 20, 29])
def test_there_are_never_more_outputs_than_letters(solver: str, name: str, seed: int) -> None:
    case = random_case(86, seed)
    result = solve(design(case.prior, PML(case.epsilon), UTILITIES[name][0]), solver, tolerance=1e-5)
    assert result.mechanism.matrix.shape[1] <= case.prior.size
    assert (result.mechanism.matrix.max(axis=0) > 0).all()


def fewest(face: FloatArray) -> int:
    """The least number of columns that can meet the rows, by trying them all."""
    n = len(face)
    for size in range(1, n + 1):
        for chosen in itertools.combinations(range(face.shape[1]), size):
            if nnls(face[:, chosen], np.ones(n))[1] < 1e-9:
                return size
    raise AssertionError("the rows cannot be met")


def optimal_columns(case: Case, best: column_oracles.Optimum, worth: column_oracles.Worth) -> FloatArray:
    reduced = (case.p * best.multipliers) @ best.lifts - worth(case.p, best.lifts)
    return best.lifts[:, reduced <= 1e-9]


@pytest.mark.parametrize("weights", [[1, 1, 1, 1], [2, 1, 1, 1], [2, 2, 1, 1], [3, 2, 2, 1], [3, 1, 1, 1, 1]])
@pytest.mark.parametrize("name", ["mutual information", "total variation"])
@pytest.mark.parametrize("level", [0.3, 1.0])
def test_few_letters_get_the_fewest_outputs(weights: list[int], name: str, level: float) -> None:
    case, (utility, worth) = Case(Prior.from_counts(weights), level), UTILITIES[name]
    face = optimal_columns(case, column_oracles.optimum(case.p, PML(level), worth), worth)
    least = fewest(face)
    for solver in ("auto", "column-generation"):
        result = solve(design(case.prior, PML(level), utility), solver, tolerance=1e-10)
        assert result.mechanism.matrix.shape[1] == least


def pairs_of(n: int) -> FloatArray:
    """All columns of mean one on half of n even letters."""
    sets = [chosen for chosen in itertools.product([0.0, 2.0], repeat=n) if sum(chosen) == n]
    return np.array(sets).T


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_interior_of_a_face_becomes_a_corner(n: int) -> None:
    lifts = pairs_of(n)
    k = lifts.shape[1]
    found, weights = fewest_outputs(lifts, np.full(k, 0.7), np.full(n, 0.7 / n), np.full(k, 1 / k))
    assert found.shape == (n, 2)
    assert weights == pytest.approx([0.5, 0.5], abs=1e-12)
    assert found @ weights == pytest.approx(np.ones(n), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_an_optimum_without_ties_stays_as_it_is(seed: int) -> None:
    case = random_case(87, seed)
    best = column_oracles.optimum(case.p, PML(0.5), column_oracles.information)
    worths = column_oracles.information(case.p, best.lifts)
    found, weights = fewest_outputs(best.lifts, worths, best.multipliers * case.p, best.weights)
    assert found.shape[1] <= case.prior.size
    assert (weights > 0).all()
    assert found @ weights == pytest.approx(np.ones(case.prior.size), abs=1e-11)
    value = float(column_oracles.information(case.p, found) @ weights)
    assert value == pytest.approx(best.value, abs=1e-9)


def test_columns_that_are_not_optimal_are_not_used() -> None:
    # the constant alone would be one output, and is worth less than the two halves
    lifts = np.array([[1.0, 2.0, 0.0], [1.0, 0.0, 2.0]])
    found, _ = fewest_outputs(lifts, np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.5]), np.array([0, 0.5, 0.5]))
    assert np.array_equal(found, lifts[:, 1:])
    found, weights = fewest_outputs(lifts, np.ones(3), np.array([0.5, 0.5]), np.array([0, 0.5, 0.5]))
    assert np.array_equal(found, lifts[:, :1])
    assert weights == pytest.approx([1.0], abs=1e-15)


def test_no_weights_at_all_are_an_error() -> None:
    with pytest.raises(ArithmeticError, match="no column has a weight"):
        fewest_outputs(np.ones((2, 1)), np.ones(1), np.full(2, 0.5), np.zeros(1))
