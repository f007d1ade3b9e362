"""What is told of records: by independent ones, with gradients of entropies and curvature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import records as oracle
from oracles.designs import FloatArray

from pmlopt import queries, record_leakage, solve
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    independent_leakage,
)
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)

QUERIES: list[Query] = [
    Weight(3),
    Quadratic(4),
    ModularSum(3, 3, [2, 3, 2]),
    Explicit([[0, 1, 2], [1, 2, 0]]),
    Explicit(
        np.indices((2, 2, 2))[1:].sum(axis=0) % 2
    ),  # an idle record has the counts of the others
]


@pytest.mark.parametrize("query", QUERIES)
def test_no_product_prior_leaks_more_and_one_leaks_as_much(query: Query) -> None:
    random = np.random.default_rng(query.records)
    rows = random.dirichlet(np.full(3, 0.6), size=len(query.values))
    lower, upper = independent_leakage(query, rows)
    assert 0 < lower <= upper <= lower + 1e-9
    data = oracle.datasets(query.alphabets, rows[query.table().ravel()])
    best = 0.0
    for _ in range(50):
        laws = [random.dirichlet(np.full(size, 0.2)) for size in query.alphabets]
        prior = laws[0]
        for law in laws[1:]:
            prior = np.multiply.outer(prior, law)
        for record in range(query.records):
            best = max(best, oracle.information(data, record, prior.ravel() + 1e-300))
    assert best <= upper + 1e-12
    table = query.table()
    known = 0.0  # the others fixed, one by one
    for record, size in enumerate(query.alphabets):
        for values in np.moveaxis(table, record, -1).reshape(-1, size):
            known = max(known, oracle.capacity(rows[values]))
    assert lower - 1e-8 <= known <= upper + 1e-8


@pytest.mark.parametrize("query", QUERIES)
def test_the_answers_of_one_record_are_those_of_the_table(query: Query) -> None:
    for record in query.kinds:
        listed = Query.list_answers(query, record)  # over all datasets
        assert np.array_equal(listed, np.unique(query.list_answers(record), axis=0))


def test_a_mechanism_by_dataset() -> None:
    random = np.random.default_rng(3)
    query, rows = ModularSum(3, 2), random.dirichlet([0.5, 0.5], size=8)
    lower, upper = independent_leakage(query, rows)
    pairs = [(x, x | bit) for bit in (1, 2, 4) for x in range(8) if not x & bit]
    assert lower - 1e-9 <= max(oracle.capacity(rows[list(pair)]) for pair in pairs) <= upper + 1e-9


RANDOM = np.random.default_rng(9)
JOINT: FloatArray = RANDOM.dirichlet(np.ones(8)).reshape(2, 4)  # x_1, and the other two records
ONE_EACH = np.zeros((2, 4))


def slope(function: object, start: FloatArray, place: tuple[int, ...], step: float = 1e-6) -> float:
    """Central difference of a function of an array in one of its entries."""
    assert callable(function)
    up, down = start.copy(), start.copy()
    up[place] += step
    down[place] -= step
    return float((function(up) - function(down)) / (2 * step))


class TestGradientsOfTheEntropy:
    """[wu2026entropy, Theorem 9], all letters being free."""

    def test_in_the_joint_law(self) -> None:
        for place in np.ndindex(2, 4):
            found = slope(lambda joint: compute_dataset_entropy(joint, ONE_EACH), JOINT, place)
            assert found == pytest.approx(-math.log(JOINT[place]) - 1, abs=1e-8)

    def test_in_the_marginal(self) -> None:
        marginal = JOINT.sum(axis=1)
        others = JOINT / marginal[:, None]
        for letter in range(2):
            found = slope(
                lambda p: compute_dataset_entropy(p[:, None] * others, ONE_EACH),
                marginal,
                (letter,),
            )
            inner = -float(others[letter] @ np.log(others[letter]))
            assert found == pytest.approx(inner - math.log(marginal[letter]) - 1, abs=1e-8)

    def test_in_the_conditionals(self) -> None:
        marginal = JOINT.sum(axis=1)
        others = JOINT / marginal[:, None]
        for place in np.ndindex(2, 4):
            found = slope(
                lambda rows: compute_dataset_entropy(marginal[:, None] * rows, ONE_EACH),
                others,
                place,
            )
            mass = float(marginal[place[0]])
            assert found == pytest.approx(-mass * (math.log(mass * others[place]) + 1), abs=1e-8)


def leaked(share: float, first: float, second: float) -> float:
    """Of x_1 by the parity of two records through BSC(0.1): P(x_1 = 0), and P(x_2 = 0) given each letter."""
    marginal = np.array([share, 1 - share])
    others = np.array([[first, 1 - first], [second, 1 - second]])
    parity = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    rows = (others[:, :, None] * parity).sum(axis=1)
    return compute_record_information(np.diag(marginal), rows)


def test_the_saddle_of_figure_1() -> None:
    """Concave in the marginal, convex in the conditionals: where both are flat nothing leaks."""
    grid = np.linspace(0.0, 1.0, 21)
    curves = np.array([[[leaked(p, a, b) for p in grid] for a in grid[::4]] for b in grid[::4]])
    assert (np.diff(curves, 2, axis=2) <= 1e-12).all()
    for p, a, b, c, d in RANDOM.uniform(size=(50, 5)):
        middle = leaked(p, (a + c) / 2, (b + d) / 2)
        assert middle <= (leaked(p, a, b) + leaked(p, c, d)) / 2 + 1e-12
    capacity = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
    assert leaked(0.5, 0.5, 0.5) == pytest.approx(0, abs=1e-15)
    assert leaked(0.5, 1.0, 1.0) == pytest.approx(capacity, abs=1e-12)
    assert curves.max() <= capacity + 1e-12


def test_the_line_of_figure_4() -> None:
    """log 2, the most that is known of a letter of two: the parity itself leaks it up to (n - 1) log 2."""
    parity = queries.ModularSum(4, 2)
    for b in (0.0, 1.0, 3 * math.log(2) - 1e-9):
        assert solve(record_leakage(parity, np.eye(2), b)).value == pytest.approx(
            math.log(2), abs=1e-6
        )
    assert solve(record_leakage(parity, np.eye(2), 2.5)).bound < math.log(2) - 0.1


def test_the_information_is_convex_in_the_rows_of_case_1() -> None:
    """[wu2026entropy, Section 3.1], Case 1: unit vectors are best by convexity, not by concavity."""
    odd = np.array(
        [[0.1, 0.9], [0.9, 0.1]]
    )  # of parity through BSC(0.1), by first and second record

    def leaked(rows: np.ndarray) -> float:
        says = (rows * odd).sum(axis=1)
        both = np.stack([1 - says, says], -1)
        return float((both / 2 * np.log(both / both.mean(axis=0))).sum())

    one, other = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [0.0, 1.0]])
    capacity = math.log(2) + 0.1 * math.log(0.1) + 0.9 * math.log(0.9)
    assert leaked(one) == pytest.approx(capacity)
    assert leaked(other) == pytest.approx(capacity)
    assert leaked((one + other) / 2) == pytest.approx(0, abs=1e-15)
