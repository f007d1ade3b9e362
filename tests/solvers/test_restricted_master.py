"""The restricted master problem, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import columns as column_oracles
from oracles.designs import FloatArray

from pmlopt.solvers.parametric_program import Master


def columns_of(rng: np.random.Generator, p: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Random columns of mean one, some entries zero, and random worths."""
    lifts = rng.exponential(size=(len(p), count)) * (rng.random((len(p), count)) < 0.7) + 1e-3
    return lifts / (p @ lifts), rng.normal(size=count)


def start(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A prior, the columns that name a letter, and their worths."""
    p = rng.dirichlet(np.full(n, 2.0))
    return p, np.diag(1 / p), rng.normal(size=n)


def assert_solved(master: Master, p: FloatArray) -> None:
    """Value, weights and duals are those of the linear program, by duality and by scipy."""
    value, weights, duals = master.solve()
    expected = column_oracles.best_weights(p, master.lifts, master.worths)
    assert value == pytest.approx(expected.value, abs=1e-9)
    assert value == float(master.worths @ weights)
    assert weights.min() >= -1e-10
    assert master.lifts @ weights == pytest.approx(np.ones(len(p)), abs=1e-9)
    assert float(duals.sum()) == pytest.approx(value, abs=1e-8)
    assert (duals @ master.lifts - master.worths).min() >= -1e-8
    assert duals / p == pytest.approx(expected.multipliers, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_the_master_is_the_linear_program(seed: int) -> None:
    rng = np.random.default_rng([82, seed])
    p, lifts, worths = start(rng, 2 + seed % 8)
    more, others = columns_of(rng, p, 5 * (seed + 1))
    assert_solved(Master(np.hstack([lifts, more]), np.concatenate([worths, others])), p)


@pytest.mark.parametrize("seed", range(10))
def test_columns_can_be_added_between_solves(seed: int) -> None:
    rng = np.random.default_rng([83, seed])
    p, lifts, worths = start(rng, 2 + seed % 8)
    master = Master(lifts, worths)
    value = master.solve()[0]
    assert value == pytest.approx(float(p @ worths), abs=1e-9)
    for _ in range(4):
        master.add(*columns_of(rng, p, 10))
        assert_solved(master, p)
        assert master.solve()[0] >= value - 1e-9
        value = master.solve()[0]
    assert master.lifts.shape == (len(p), len(p) + 40)
    assert master.worths.shape == (len(p) + 40,)
    cold = Master(master.lifts, master.worths)
    assert cold.solve()[0] == pytest.approx(value, abs=1e-9)


def test_unknown_columns_are_given_once() -> None:
    master = Master(np.eye(3), np.zeros(3))
    first = np.array([[1.0, 0.5, 1.0, 2.0], [1.0, 0.5, 1.0, 0.0], [1.0, 2.0, 1.0, 0.0]])
    fresh = master.unknown(first)
    assert np.array_equal(fresh, first[:, [0, 1, 3]])
    master.add(fresh, np.zeros(3))
    assert master.unknown(first).shape == (3, 0)
    fourth = np.array([[1.0, 0.25], [1.0 + 1e-14, 0.25], [1.0 - 1e-14, 2.5]])
    assert np.array_equal(master.unknown(fourth), fourth[:, [1]])
    master.add(np.array([[-0.0], [3.0], [0.0]]), np.zeros(1))
    assert master.unknown(np.array([[0.0], [3.0], [-0.0]])).shape == (3, 0)


def test_columns_of_letters_next_to_nothing_are_told_apart() -> None:
    one, other = np.array([[1e299], [1.0]]), np.array([[2e299], [1.0]])
    master = Master(np.ones((2, 1)), np.zeros(1))
    assert master.unknown(np.hstack([one, other, one])).shape == (2, 2)


def test_columns_that_cannot_meet_the_rows_are_an_error() -> None:
    with pytest.raises(ArithmeticError, match="master"):
        Master(np.array([[2.0], [0.5]]), np.ones(1)).solve()
