"""Parts of designs of a least level: vertices, mixtures with the best outputs, and declared demands."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    CoordinateLoss,
    ExpectedGain,
    IIDPrior,
    MinimumMass,
    Prior,
    least_leakage,
    worst_case_utility,
)
from pmlopt.programs.least_leakage import certificate
from pmlopt.programs.least_leakage.build_certificate import (
    build_best_allowed,
    certify_level,
    certify_symmetric_level,
    mix_in_best_outputs,
)
from pmlopt.programs.least_leakage.certificate import (
    LevelMultipliers,
    NormalizedFloor,
    bound_exp_neg_level,
    bound_level,
    find_highest_rank,
    find_usable_pairs,
)
from pmlopt.programs.least_leakage.epsilon_builder import _declare_ratios, declare_at_level
from pmlopt.programs.least_leakage.level_programs import LevelProgram
from pmlopt.programs.least_leakage.level_search import (
    LevelSearchResult,
    _make_search_result,
    polish_vertex,
)
from pmlopt.programs.least_leakage.program import LeastLeakage, SymmetricLeastLeakage
from pmlopt.solvers.solver_result import NO_DEADLINE

P = np.array([0.3, 0.2, 0.4, 0.1])
GAINS = np.array([[1.0, 0.2, 0.0], [0.1, 0.9, 0.3], [0.0, 0.4, 1.2], [0.7, 0.1, 0.2]])


def with_gains() -> LeastLeakage:
    return least_leakage(P, ExpectedGain(GAINS), expected=0.85, outputs=3)


# ---------------------------------------------------------------- vertices


def test_entries_next_to_the_largest_of_an_output_are_the_largest() -> None:
    """Each output has two of three letters in equal parts, of a uniform prior: one half, and e^-level 2/3."""
    vertex = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    near = vertex * (1 + 1e-7 * np.random.default_rng(0).normal(size=(3, 3)))
    found = polish_vertex(np.full((3, 3), 1 / 3), near, 2 / 3 + 1e-7)
    assert found is not None
    assert found == pytest.approx(vertex, abs=1e-15)
    for column in found.T:
        assert len(set(column[column > 0].tolist())) == 1


@pytest.mark.parametrize("off", [-1e-7, 1e-7])
def test_outputs_next_to_the_level_have_it_exactly(off: float) -> None:
    """With e of the first letter in the first output, `.6 e + .2 = s = .6 (1 - e) + .2`: one half."""
    near = np.array([[0.5 + off, 0.5 - off, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    laws = np.repeat(np.array([[0.6], [0.2], [0.2]]), 3, axis=1)
    for level in (0.5 - 2e-7, 0.5 + 2e-7):
        found = polish_vertex(laws, near, level)
        assert found is not None
        assert found == pytest.approx(near.round(3), abs=1e-14)


def test_a_search_counts_what_was_before_it() -> None:
    search: Any = SimpleNamespace(programs=3, witness=np.eye(2), proofs=["proof"])
    alone = _make_search_result(search, "over", 7)
    assert (alone.programs, alone.iterations) == (3, 7)
    before = LevelSearchResult(np.eye(2), LevelMultipliers(np.zeros(2)), 4, 10, "", True)
    both = _make_search_result(search, "over", 7, before)
    assert (both.programs, both.iterations) == (7, 17)


# ---------------------------------------------------------------- floors


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_best_outputs_are_mixed_in_as_far_as_the_floor_needs_and_a_hundredth_more(
    share: float,
) -> None:
    program = with_gains()
    best = build_best_allowed(program)
    constant = np.tile([0.2, 0.3, 0.5], (4, 1))
    matrix = (1 - share) * constant + share * best
    missing = 0.85 - float((P[:, None] * GAINS * matrix).sum())
    assert missing > 0
    most = float((P[:, None] * GAINS * best).sum())
    needed = missing / (most - 0.85 + missing)
    found = mix_in_best_outputs(program, matrix)
    assert found == pytest.approx(matrix + 1.01 * needed * (best - matrix), abs=1e-9)


def test_letters_without_an_output_that_occurs_take_their_best() -> None:
    best = build_best_allowed(with_gains(), np.array([True, False, False]))
    assert best.tolist() == [[1.0, 0.0, 0.0]] * 4


def test_the_rounding_of_a_floor_is_of_its_sum_and_of_its_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(certificate, "bound_sum_rounding", lambda terms, size: 0.25 * size)
    monkeypatch.setattr(NormalizedFloor, "_input_rounding", 0.5)
    floor = with_gains().floor
    assert floor is not None
    assert floor.rounding == pytest.approx(0.25 * (2 + abs(floor.min_gain)) + 0.5)
    assert floor.solver_target == pytest.approx(floor.min_gain - 0.45)


def test_the_numbers_of_a_floor_are_rounded_by_the_size_of_the_table_and_of_the_floor() -> None:
    """Both of an ulp of their terms: of each letter the largest number counts."""
    for table, value in ((GAINS - 3, -2.15), (GAINS, 0.85)):
        program = least_leakage(P, ExpectedGain(table), expected=value, outputs=3)
        floor = program.floor
        assert floor is not None
        size = float(P @ np.abs(table).max(axis=1)) + abs(value)
        found = floor._input_rounding * floor.unit
        assert found == pytest.approx(2 * np.finfo(float).eps * size)


@pytest.mark.parametrize("exact", [False, True])
def test_a_floor_less_its_rounding_is_what_multipliers_prove_a_level_from(exact: bool) -> None:
    """As a floor that is lower by as much and is not rounded."""
    near = SimpleNamespace(
        normalized_gains=GAINS - GAINS.max(axis=1, keepdims=True), min_gain=-0.25, rounding=0.125
    )
    lower = SimpleNamespace(normalized_gains=near.normalized_gains, min_gain=-0.375, rounding=0.0)
    proof = LevelMultipliers(np.array([-0.25, 0.5, 0.125, 0.0]), 0.75)
    allowed = np.ones((4, 3), dtype=bool)
    bounds = [
        bound_exp_neg_level(Prior(P), allowed, floor, proof, exact=exact)  # type: ignore[arg-type]
        for floor in (near, lower)
    ]
    assert bounds[0] == bounds[1]
    least = SimpleNamespace(normalized_gains=near.normalized_gains, min_gain=-0.125, rounding=0.0)
    higher = bound_exp_neg_level(Prior(P), allowed, least, proof, exact=exact)  # type: ignore[arg-type]
    assert higher != bounds[0]


@pytest.mark.parametrize("over", [None, AllPriors(3), MinimumMass(3, 0.2)])
def test_the_highest_rank_is_the_largest_at_which_each_letter_has_an_output(over: Any) -> None:
    """Over a set one that occurs under each of its priors."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        order = np.array([random.permutation(4) + 1 for _ in range(3)])

        def is_possible(rank: int, order: Any = order) -> bool:
            ranked = order >= rank
            if over is not None:
                ranked = find_usable_pairs(ranked, over)
            return bool(ranked.any(axis=1).all())

        expected = max(rank for rank in range(1, 5) if is_possible(rank))
        assert find_highest_rank(order, over) == expected


def test_a_certificate_by_orbits_records_how_far_its_numbers_were_moved() -> None:
    program = least_leakage(IIDPrior([0.7, 0.3], 2), CoordinateLoss([[0, 1], [2, 0]]), expected=0.5)
    assert isinstance(program, SymmetricLeastLeakage)
    lifts = program.columns.normalize_rows(
        0.2 + np.random.default_rng(0).random(program.columns.orbits.count)
    )
    best = np.asarray(program.floor.normalized_gains == 0, dtype=float)
    lifts = 0.1 * lifts + 0.9 * program.columns.normalize_rows(best)
    found = certify_symmetric_level(program, lifts, [LevelMultipliers(np.zeros(3))])
    moved = np.abs(found.mechanism.scaled_entries - lifts).max()
    assert found.repair.shift == pytest.approx(moved, abs=1e-15)
    assert moved < 1e-6


def test_the_rows_of_a_certified_mechanism_sum_to_one() -> None:
    program = least_leakage(P, ExpectedGain(GAINS), expected=0.85, outputs=3)
    matrix = np.eye(3)[GAINS.argmax(axis=1)]
    found = certify_level(program, matrix, [LevelMultipliers(np.zeros(4))])
    assert found.residuals["rows"] < 1e-12


def test_an_exact_level_is_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "bound_exp_neg_level", lambda *_: Fraction(1, 2))
    proof = LevelMultipliers(np.zeros(2))
    found = bound_level(Prior([0.5, 0.5]), np.eye(2, dtype=bool), None, proof)
    assert math.log(2) * (1 - 1e-14) < found < math.log(2)


# ---------------------------------------------------------------- declared demands


@pytest.mark.parametrize("short", [0.3, 0.0, -0.2])
def test_a_gain_stays_short_of_its_target_by_the_shortfall(short: float) -> None:
    level = cp.Parameter(nonneg=True, value=0.5)
    matrix = np.tile([0.2, 0.3, 0.5], (4, 1))
    gain = float((P[:, None] * GAINS * matrix).sum())
    model = declare_at_level(PML(0.5), Prior(P), GAINS, gain + short, level)
    assert model is not None
    model.variables["mechanism"].value = matrix
    for lack, holds in ((max(short, 0.0) + 0.01, True), (max(short, 0.0) - 0.01, short < 0)):
        model.variables["shortfall"].value = max(lack, 0.0)
        assert (float(model.constraints["reach"].violation()) < 1e-9) is holds or lack < 0


@pytest.mark.parametrize("kind", ["gains", "ranks"])
def test_what_a_mechanism_lacks_of_the_demands_counts(kind: str) -> None:
    """By the rows that are short and, in units of the floor, by what is missing of the expectation."""
    order = np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3], [3, 1, 2]])
    program = with_gains() if kind == "gains" else worst_case_utility(P, order, 2, 3)
    constraints, variables = program.constraints, program.variables
    entries = np.full(variables["entries"].size, 0.2)
    variables["entries"].value = entries
    rows = np.bincount(np.nonzero(program.allowed)[0], entries, 4)
    variables["shortfall"].value = 1 - rows
    assert float(np.max(constraints["rows"].violation())) < 1e-12
    if program.floor is not None:
        matrix = np.where(program.allowed, 0.2, 0.0)
        short = program.floor.min_gain - float(
            (P[:, None] * program.floor.normalized_gains * matrix).sum()
        )
        for lack in (short + 1e-3, short - 1e-3):
            variables["lack"].value = max(lack, 0.0)
            expected = max(0.0, short - max(lack, 0.0))
            assert float(constraints["expected"].violation()) == pytest.approx(expected, abs=1e-9)


def test_outputs_are_closed_whose_letters_are_less_likely_than_the_level_but_for_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here by a tenth: the outputs may have letters of .3, .2 and .5 in all."""
    monkeypatch.setattr(LevelProgram, "MASS_RTOL", 0.1)
    order = np.array([[3, 1, 2], [1, 3, 2], [1, 2, 3], [1, 2, 3]])
    program = worst_case_utility(P, order, 3, 3)
    assert (P @ program.allowed).tolist() == pytest.approx([0.3, 0.2, 0.5])
    levels, closed = LevelProgram(program), []
    monkeypatch.setattr(levels.model, "fix_at_zero", lambda peaks, where: closed.append(where))
    for share, expected in (
        (0.21, [False, False, False]),
        (0.23, [False, True, False]),
        (0.34, [True, True, False]),
    ):
        levels.solve_at(share, NO_DEADLINE)
        assert closed.pop().tolist() == expected


def test_bounds_on_ratios_are_declared_at_any_level() -> None:
    """`e^-level v[a] <= v[b]` for each pair of letters; the constraints hold by the most that one misses."""
    mechanism, level = cp.Variable((3, 2)), cp.Parameter(nonneg=True, value=0.4)
    privacy: Any = LDP(0.0)
    declared = _declare_ratios(privacy, Prior(P[:3] / P[:3].sum()), mechanism, level)
    mechanism.value = np.array([[0.7, 0.3], [0.45, 0.55], [0.2, 0.8]])
    over = [
        math.exp(-0.4) * column[a] - column[b]
        for column in mechanism.value.T
        for a, b in itertools.permutations(range(3), 2)
    ]
    parts = declared.constraints["pairs"]
    found = np.asarray(parts.args[0].value - parts.args[1].value).ravel()
    assert sorted(found) == pytest.approx(sorted(over), abs=1e-9)
