"""Each way of pricing families of columns, beside brute force over every set and letter between."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.brute_force_columns import Problem, assert_allowed, problems

from pmlopt.programs.subconvex.columns import Pricer
from pmlopt.programs.subconvex.count_pricing import CountPricer
from pmlopt.programs.subconvex.search_pricing import SearchPricer
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer, vertices


def of_the_list(problem: Problem) -> Pricer:
    found = vertices(problem.p, problem.families, 10**6)
    assert found is not None
    return VertexPricer(problem.p, found, problem.kernel.worth)


WAYS: Mapping[str, Callable[[Problem], Pricer]] = {
    "counts": lambda problem: CountPricer(problem.kernel, problem.families, problem.counts),
    "vertices": of_the_list,
    "search": lambda problem: SearchPricer(problem.kernel, problem.families),
}


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([-math.inf, -0.1, 0.0, 0.1, math.inf]))
def test_the_best_column_is_found_and_all_are_allowed(way: str, problem: Problem, offset: float) -> None:
    true, pricer = problem.best(), WAYS[way](problem)
    near = pytest.approx(true, abs=1e-9 * problem.size)
    priced = pricer.price(problem.rho, 6, true + offset)
    assert priced.best == near
    assert priced.upper >= true - 1e-9 * problem.size
    assert problem.largest(priced.columns) == near  # type: ignore[arg-type]
    for columns in [*priced.columns, *pricer.seeds(3)]:
        family = columns.family  # type: ignore[union-attr]
        assert_allowed(problem.p, columns.lifts(problem.p), family)
        assert_allowed(problem.p, columns.lifts(problem.p, 2.0**-40), family, within=1e-15)
    if way == "search":
        return
    assert priced.upper == near
    assert pricer.bound(problem.rho, -math.inf) == near
    for columns in priced.columns:
        assert 1 <= len(columns) <= 6
        values = [problem.value(column) for column in columns.lifts(problem.p).T.tolist()]
        assert values == pytest.approx(sorted(values, reverse=True), abs=1e-9 * problem.size)
