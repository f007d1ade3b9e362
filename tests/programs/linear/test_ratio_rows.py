"""Programs with a row for each ratio bound: which pairs matter, the simplex, and the time that they take."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import linprog

from pmlopt import ExpectedGain, MetricPrivacy, Prior, design
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.programs.linear import ratio_rows
from pmlopt.programs.linear.pair_interior_point import MAX_DETOUR_FRACTION, find_essential_pairs
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import (
    Deadline,
    MethodOptions,
    make_options,
)


def pairs_of(lengths: FloatArray) -> RatioBounds:
    n = len(lengths)
    above, below = np.array(list(itertools.permutations(range(n), 2))).T
    return RatioBounds(n, np.zeros((0, n)), np.zeros(0), above, below, lengths[above, below])


def test_a_pair_is_left_out_where_two_others_bound_it_nearly_as_well() -> None:
    """Up to the share of a detour: the bound of the third side of a triangle is the sum."""
    share = MAX_DETOUR_FRACTION
    for excess, essential in ((share / 2, False), (share * 2, True), (-0.3, False)):
        lengths = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
        lengths[0, 2] = 2.0 / (1 + excess)
        ratios = pairs_of(lengths)
        found = dict(zip(zip(ratios.above.tolist(), ratios.below.tolist(), strict=True),
                         find_essential_pairs(ratios, 3).tolist(), strict=True))  # fmt: skip
        assert found[0, 2] is essential
        assert all(kept for pair, kept in found.items() if pair != (0, 2))


def test_what_a_program_with_bounds_on_pairs_took_is_no_more_than_has_passed() -> None:
    gains = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])
    program = design(Prior.uniform(3), MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    ratios = program.list_ratios()
    assert ratios is not None
    begin = time.perf_counter()
    outcome = ratio_rows.solve_by_simplex(program, ratios, make_options(None, 1e-9))
    passed = time.perf_counter() - begin
    assert outcome.state == "point"
    assert outcome.compile_seconds >= 0
    assert outcome.compile_seconds + outcome.solve_seconds <= passed


def test_a_product_that_one_bound_alone_has_stands_for_its_letters() -> None:
    """`(v_0 + v_1) / 2 <= 1.2 v_2` and its reverse, whose product of two letters no others have."""
    gains = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])
    program = design(np.array([0.5, 0.3, 0.2]), MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    row, factor = np.array([0.5, 0.5, 0.0]), 1.2
    for above, below, coefficients in (
        (3, 2, row - [0, 0, factor]),
        (2, 3, [0, 0, 1] - factor * row),
    ):
        ratios = RatioBounds(
            3, row[None], np.ones(1), np.array([above]), np.array([below]), np.log([factor])
        )
        outcome = ratio_rows.solve_by_simplex(program, ratios, make_options(None, 1e-9))
        assert outcome.point is not None
        expected = linprog(
            -(program.prior.pmf[:, None] * gains).ravel(),
            A_ub=np.kron(coefficients, np.eye(3)), b_ub=np.zeros(3),
            A_eq=np.kron(np.eye(3), np.ones((1, 3))), b_eq=np.ones(3),
        )  # fmt: skip
        found = outcome.point.matrix
        assert (program.prior.pmf[:, None] * gains * found).sum() == pytest.approx(-expected.fun)
        assert (np.asarray(coefficients) @ found <= 1e-9).all()


def test_a_program_of_many_more_rows_than_entries_is_solved_by_its_dual() -> None:
    """Each bound is also implied by ten weaker ones of the same mean, so that rows are six times entries."""
    size, rng = 4, np.random.default_rng(3)
    gains, law = rng.random((size, size)), rng.dirichlet(np.ones(size))
    program = design(law, MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    above = np.tile(np.arange(size), 10)
    exponents = 0.4 + np.repeat(np.linspace(0.0, 0.5, 10), size)
    below = np.full(len(above), size)
    ratios = RatioBounds(size, law[None], np.ones(1), above, below, exponents)
    outcome = ratio_rows.solve_by_simplex(program, ratios, make_options(None, 1e-9))
    bounds = np.eye(size)[above] - np.exp(exponents)[:, None] * law
    expected = linprog(
        -(law[:, None] * gains).ravel(),
        A_ub=np.kron(bounds, np.eye(size)), b_ub=np.zeros(len(bounds) * size),
        A_eq=np.kron(np.eye(size), np.ones((1, size))), b_eq=np.ones(size),
    )  # fmt: skip
    point = outcome.point
    assert outcome.finished
    assert point is not None
    assert (law[:, None] * gains * point.matrix).sum() == pytest.approx(-expected.fun, abs=1e-9)
    assert point.matrix.sum(axis=1) == pytest.approx(np.ones(size), abs=1e-9)
    assert (bounds @ point.matrix <= 1e-9).all()
    # the multipliers prove that there is no more
    assert point.multipliers is not None
    shift = law @ (gains - program.centered_gains)[:, 0]
    assert law @ point.multipliers + shift == pytest.approx(-expected.fun, abs=1e-9)


BOUNDS, SETUP = 5000, ratio_rows._estimate_setup_seconds(5000)


@pytest.mark.parametrize(
    ("name", "needed"), [("highs", 4e-6 * BOUNDS), ("clarabel", 4e-6 * BOUNDS + SETUP)]
)
def test_a_solver_begins_where_there_is_time_to_compile_and_to_set_up(
    name: str, needed: float
) -> None:
    ratios = SimpleNamespace(exponents=np.zeros(1000))
    program: Any = SimpleNamespace(bounds_on_pairs=ratios, table=np.zeros((10, 5)))
    for share, begins in ((1.01, True), (0.99, False)):
        options = MethodOptions(Deadline(10 + share * needed, lambda: 10.0), 1e-9)
        if begins:
            ratio_rows.reserve_pair_seconds(program, name, options)
            continue
        with pytest.raises(MethodError, match="compiling takes longer"):
            ratio_rows.reserve_pair_seconds(program, name, options)
