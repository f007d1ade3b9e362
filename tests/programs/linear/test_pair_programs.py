"""Programs with bounds on many pairs of letters: which pairs matter, and one solved by Clarabel."""

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
from pmlopt.programs.linear import constraint_generation
from pmlopt.programs.linear.constraint_generation import (
    _run_clarabel,
    find_essential_pairs,
    reserve_pair_seconds,
)
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.program import MethodError
from pmlopt.solvers.solver_result import (
    NO_DEADLINE,
    Deadline,
    MethodOptions,
    PrimalDualPoint,
    make_options,
)


def pairs_of(lengths: FloatArray) -> RatioBounds:
    n = len(lengths)
    above, below = np.array(list(itertools.permutations(range(n), 2))).T
    return RatioBounds(n, np.zeros((0, n)), np.zeros(0), above, below, lengths[above, below])


def test_a_pair_is_left_out_where_two_others_bound_it_nearly_as_well() -> None:
    """Up to the share of a detour: the bound of the third side of a triangle is the sum."""
    share = constraint_generation.MAX_DETOUR_FRACTION
    for excess, essential in ((share / 2, False), (share * 2, True), (-0.3, False)):
        lengths = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
        lengths[0, 2] = 2.0 / (1 + excess)
        ratios = pairs_of(lengths)
        found = dict(zip(zip(ratios.above.tolist(), ratios.below.tolist(), strict=True),
                         find_essential_pairs(ratios, 3).tolist(), strict=True))  # fmt: skip
        assert found[0, 2] is essential
        assert all(kept for pair, kept in found.items() if pair != (0, 2))


def test_a_program_with_bounds_on_pairs_is_solved_with_its_multipliers() -> None:
    random = np.random.default_rng(0)
    gains = random.random((3, 3))
    ratios = pairs_of(np.full((3, 3), 0.8))
    size, keep = len(ratios.above), np.exp(-0.8)
    kept, chosen = np.full((size, 1), keep)[:, 0], np.ones((size, 3), dtype=bool)
    point, finished, steps = _run_clarabel(gains, ratios, kept, chosen, 1e-9, NO_DEADLINE)
    rows = []
    for k, y in itertools.product(range(size), range(3)):
        row = np.zeros((3, 3))
        row[ratios.above[k], y], row[ratios.below[k], y] = keep, -1.0
        rows.append(row.ravel())
    sums = np.kron(np.eye(3), np.ones((1, 3)))
    solved = linprog(
        -gains.ravel(), A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(3)
    )
    assert finished
    assert steps > 0
    assert (gains * point.matrix).sum() == pytest.approx(-solved.fun, abs=1e-6)
    assert point.multipliers is not None
    assert point.multipliers.sum() == pytest.approx(-solved.fun, abs=1e-6)


def test_what_a_program_with_bounds_on_pairs_took_is_no_more_than_has_passed() -> None:
    gains = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2]])
    program = design(Prior.uniform(3), MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    ratios = program.list_ratios()
    assert ratios is not None
    begin = time.perf_counter()
    outcome = constraint_generation.solve_by_simplex(program, ratios, make_options(None, 1e-9))
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
        outcome = constraint_generation.solve_by_simplex(program, ratios, make_options(None, 1e-9))
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
    outcome = constraint_generation.solve_by_simplex(program, ratios, make_options(None, 1e-9))
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


BOUNDS, SETUP = 5000, constraint_generation._estimate_setup_seconds(5000)


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
            reserve_pair_seconds(program, name, options)
            continue
        with pytest.raises(MethodError, match="compiling takes longer"):
            reserve_pair_seconds(program, name, options)


def line_of_five() -> tuple[LinearDesign, RatioBounds]:
    """Points of a line, of which those at a distance of two are nearer than by the way between."""
    gains = np.eye(5)
    program = design(Prior.uniform(5), MetricPrivacy(0.5, "absolute"), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    lengths = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    lengths[lengths == 2] = 1.99
    return program, pairs_of(lengths)


def test_bounds_that_an_answer_breaks_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two bounds of the only column that differs, between its largest entry and two others."""
    program, ratios = line_of_five()
    first = np.full((5, 5), 0.2)
    first[:, 0], first[:, 1] = [0.02, 0.05, 0.1, 0.05, 0.02], [0.38, 0.35, 0.3, 0.35, 0.38]
    first[2, 0], first[2, 1] = 0.2, 0.2
    added: list[int] = []

    def run(gains: Any, ratios: Any, keep: Any, chosen: Any, *_: Any) -> Any:
        added.append(int(chosen.sum()))
        matrix = first if len(added) == 1 else np.full((5, 5), 0.2)
        return PrimalDualPoint(matrix, None), True, 7

    monkeypatch.setattr(constraint_generation, "_run_clarabel", run)
    outcome = constraint_generation.generate_constraints(program, ratios, make_options(None, 1e-9))
    pairs = list(zip(ratios.above.tolist(), ratios.below.tolist(), ratios.exponents, strict=True))
    near = 8  # neighbours, both ways
    far = [(x, z, length) for x, z, length in pairs if abs(x - z) > 1]
    broken = sum(
        first[x, y] * np.exp(-length) > first[z, y] for x, z, length in far for y in range(5)
    )
    assert broken == 2
    assert added == [near * 5, near * 5 + broken]
    assert outcome.finished
    assert outcome.iterations == 2 * 7
    assert "after 2 rounds" in outcome.message


def test_a_first_program_needs_time_for_its_setup_and_twelve_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program, ratios = line_of_five()
    monkeypatch.setattr(constraint_generation, "_estimate_setup_seconds", lambda bounds: 1.0)
    needed = 1 + 12 * constraint_generation.STEP_SHARE
    begun: list[bool] = []

    def run(*_: Any) -> Any:
        begun.append(True)
        return PrimalDualPoint(np.full((5, 5), 0.2), None), False, 0

    monkeypatch.setattr(constraint_generation, "_run_clarabel", run)
    for more in (0.1, -0.1):
        options = MethodOptions(Deadline(10 + needed + more, lambda: 10.0), 1e-9)
        if more > 0:
            constraint_generation.generate_constraints(program, ratios, options)
            continue
        with pytest.raises(MethodError, match="a first program takes longer"):
            constraint_generation.generate_constraints(program, ratios, options)
    assert begun == [True]
