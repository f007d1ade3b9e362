"""The leakage to adversaries of independent records: product priors, one by one, against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import records as oracle

from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    independent_leakage,
)

QUERIES: list[Query] = [
    Weight(3),
    Quadratic(4),
    ModularSum(3, 3, [2, 3, 2]),
    Explicit([[0, 1, 2], [1, 2, 0]]),
    Explicit(np.indices((2, 2, 2))[1:].sum(axis=0) % 2),  # an idle record has the counts of the others
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
        listed = Query.answers(query, record)  # over all datasets
        assert np.array_equal(listed, np.unique(query.answers(record), axis=0))


def test_a_mechanism_by_dataset() -> None:
    random = np.random.default_rng(3)
    query, rows = ModularSum(3, 2), random.dirichlet([0.5, 0.5], size=8)
    lower, upper = independent_leakage(query, rows)
    pairs = [(x, x | bit) for bit in (1, 2, 4) for x in range(8) if not x & bit]
    assert lower - 1e-9 <= max(oracle.capacity(rows[list(pair)]) for pair in pairs) <= upper + 1e-9
