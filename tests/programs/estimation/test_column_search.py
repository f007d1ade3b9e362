"""The steps of the searches for columns, against trying each neighbour, and cones against the columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from oracles.designs import FloatArray, linear_program

from pmlopt import LDP, LIP, PML, ConvexHull, L1Ball, Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import BoxFamily, StaircaseFamily
from pmlopt.programs.estimation import columns as module
from pmlopt.programs.estimation.column_generation import _draw_columns
from pmlopt.programs.estimation.columns import (
    BoxColumnSearch,
    LPColumnSearch,
    TwoValueSearch,
    build_column_cones,
    build_design_columns,
    list_start_sets,
)

P = np.array([0.1, 0.15, 0.2, 0.25, 0.3])


def problem(seed: int, n: int = 5) -> tuple[FloatArray, FloatArray]:
    """A form of rank two, and multipliers."""
    random = np.random.default_rng(seed)
    sensitivities = random.normal(size=(n, 2))
    return sensitivities @ sensitivities.T, random.normal(size=n)


def worth(column: FloatArray, form: FloatArray, pi: FloatArray) -> float:
    return float(column @ form @ column - pi @ column)


def staircases(p: FloatArray, privacy: Requirement) -> list[StaircaseFamily]:
    families = privacy.extreme_columns(Prior(p))
    assert isinstance(families, tuple)
    return [one for one in families if isinstance(one, StaircaseFamily)]


@pytest.mark.parametrize("seed", range(4))
def test_a_step_moves_the_letter_that_gains_most(seed: int) -> None:
    form, pi = problem(seed)
    for family in staircases(P, PML(0.9, over=L1Ball(P, 0.1))):
        search = TwoValueSearch(P, family)
        columns = search.start_columns[:: max(1, len(search.start_columns) // 6)]
        for column, moved in zip(columns, search.improve_columns(columns, form, pi), strict=True):
            inside, values = column > column.mean(), []
            for letter in range(5):
                other = inside ^ (np.arange(5) == letter)
                allowed, low, step = search._compute_two_values(np.array([other @ P]))
                if allowed[0]:
                    values.append(worth(low[0] + step[0] * other, form, pi))
            assert P @ moved == pytest.approx(1.0)
            if values:
                assert worth(moved, form, pi) == pytest.approx(max(values))


@pytest.mark.parametrize("seed", range(4))
def test_a_step_between_bounds_is_the_best_column_or_the_best_edge(seed: int) -> None:
    form, pi = problem(seed)
    box = BoxFamily(0.5, 1.8)
    search = BoxColumnSearch(P, box)
    listed = _extreme(P, box)
    for column in listed[:: max(1, len(listed) // 6)]:
        slopes = 2 * column @ form - pi
        sloped = search._maximize_slopes(slopes[None])[0]
        assert slopes @ sloped == pytest.approx(max(slopes @ other for other in listed))
        assert P @ sloped == pytest.approx(1.0)
        edges = [other for other in listed if (np.abs(other - column) > 1e-9).sum() == 2]
        between = int(np.minimum(column - box.low, box.high - column).argmax())
        ends = [other for other in edges if abs(other[between] - column[between]) > 1e-9]
        along = search._move_along_edges(column[None], form, pi)[0]
        assert P @ along == pytest.approx(1.0)
        assert worth(along, form, pi) >= max(worth(other, form, pi) for other in ends) - 1e-9
        assert any(np.abs(along - other).max() < 1e-9 for other in (column, *ends))
        moved = search.improve_columns(column[None], form, pi)[0]
        assert worth(moved, form, pi) == pytest.approx(
            max(worth(sloped, form, pi), worth(along, form, pi))
        )


def _extreme(p: FloatArray, box: BoxFamily) -> list[FloatArray]:
    """Every column of mean one that is at an end of the box but at one letter."""
    found = []
    for letter in range(len(p)):
        for ends in itertools.product((box.low, box.high), repeat=len(p) - 1):
            column = np.insert(np.array(ends), letter, 0.0)
            column[letter] = (1 - p @ column) / p[letter]
            if box.low <= column[letter] <= box.high:
                found.append(column)
    return found


def test_a_step_of_a_cone_is_the_column_of_a_linear_program() -> None:
    hull = ConvexHull(np.array([P, P[::-1]]))
    [cone] = (
        build_column_cones(P, PML(0.7, over=hull).require_extreme_columns(Prior(P), "cones")) or ()
    )
    form, pi = problem(0)
    search = LPColumnSearch(cone, True)
    before = np.ones((2, 5))
    before[1, 0] += 1.0
    moved = search.improve_columns(before, form, pi)
    for column, found in zip(before, moved, strict=True):
        slope = np.append(2 * column @ form - pi, 0.0)
        answer = linear_program(
            -slope, A_ub=-cone.rows, b_ub=np.zeros(len(cone.rows)), A_eq=cone.mean[None], b_eq=[1.0],
            bounds=[(None, None)] * 6,
        )  # fmt: skip
        assert slope[:5] @ found == pytest.approx(-answer.fun, abs=1e-7)


LIMIT = math.exp(0.9)
KINDS: dict[str, tuple[Callable[[FloatArray], Requirement], Callable[[FloatArray, FloatArray], bool]]] = {
    # the requirement at a prior p, and whether a column of mean one keeps it, by the definition
    "pml": (lambda p: PML(0.9), lambda p, v: v.max() <= LIMIT),
    "ldp": (lambda p: LDP(0.9), lambda p, v: v.max() <= LIMIT * v.min()),
    "lip": (lambda p: LIP(0.4, 0.9), lambda p, v: math.exp(-0.4) <= v.min() and v.max() <= LIMIT),
    "ball": (
        lambda p: PML(0.9, over=L1Ball(p, 0.1)), lambda p, v: v.max() <= LIMIT * (p @ v - 0.05 * np.ptp(v))
    ),
    "hull": (
        lambda p: PML(0.9, over=ConvexHull([P, P[::-1]])),
        lambda p, v: v.max() <= LIMIT * min(P @ v, P[::-1] @ v),
    ),
}  # fmt: skip


@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_columns_are_those_of_the_cone(kind: str, uniform: bool) -> None:
    """Those that keep the requirement by its definition; at the extreme ones no form is negative."""
    p = np.full(5, 0.2) if uniform else P
    privacy, keeps = KINDS[kind][0](p), KINDS[kind][1]
    cones = build_column_cones(p, privacy.require_extreme_columns(Prior(p), "cones"))
    assert cones is not None
    random, seen = np.random.default_rng(0), set()
    for width in np.linspace(0.05, 1.5, 60):
        column = np.maximum(1 + width * random.uniform(-1, 1, 5), 0.0)
        column /= p @ column
        inside = any(_scalars_of(cone, column) for cone in cones)
        assert inside == keeps(p, column)
        seen.add(inside)
    assert seen == {True, False}
    for column in build_design_columns(Prior(p), privacy).exact[:, 1::7].T:
        found = [(cone, v) for cone in cones for v in _scalars_of(cone, column)]
        assert found
        for cone, v in found:
            assert v @ v <= cone.size * (1 + 1e-9)
            assert cone.mean @ v == pytest.approx(1.0, abs=1e-9)
        assert any(all(v @ form @ v >= -1e-9 for form in cone.forms) for cone, v in found)


def _scalars_of(cone: module.EstimationCone, column: FloatArray) -> list[FloatArray]:
    """The column with the least and the largest scalar with which it is in a cone, if there are such."""
    n = cone.letters
    if len(cone.mean) == n:
        return [column] if (cone.rows @ column).min() >= -1e-9 else []
    lean, rest = cone.rows[:, n], cone.rows[:, :n] @ column
    low = (-rest[lean > 0] / lean[lean > 0]).max()
    high = (rest[lean < 0] / -lean[lean < 0]).min()
    either = [np.append(column, scalar) for scalar in (low, high)]
    return [v for v in either if (cone.rows @ v).min() >= -1e-9]


def test_weights_combine_the_forms_one_by_one() -> None:
    [cone] = (
        build_column_cones(
            np.full(3, 1 / 3), LDP(0.8).require_extreme_columns(Prior(np.full(3, 1 / 3)), "cones")
        )
        or ()
    )
    weights = np.random.default_rng(0).normal(size=cone.form_count)
    forms = cone.list_forms()
    assert cone.combine_forms(weights) == pytest.approx(np.tensordot(weights, forms, axes=1))
    column = np.random.default_rng(1).normal(size=len(cone.mean))
    values = cone.rows @ column
    products = [values[i] * values[j] for i, j in itertools.combinations(range(len(values)), 2)]
    assert [column @ form @ column for form in forms][: len(products)] == pytest.approx(products)
    assert (
        cone.combine_forms(np.abs(weights), absolute=True)
        >= np.abs(cone.combine_forms(weights)) - 1e-12
    ).all()


@pytest.mark.parametrize("size", [4, 41])
def test_the_sets_to_start_from(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of few letters all intervals; of many the rotations of sets of a flatter spectrum than chance has."""
    monkeypatch.setattr(module, "LETTER_SWAP_COUNT", 600)
    sets = list_start_sets(size, 0.4)
    assert sets.any(axis=1).all()
    assert not sets.all(axis=1).any()
    assert len(np.unique(sets, axis=0)) == len(sets)
    if size == 4:
        for i, j in itertools.combinations(range(5), 2):
            if j - i < 4:
                interval = (np.arange(4) >= i) & (np.arange(4) < j)
                assert (sets == interval).all(axis=1).any()
                assert (sets == ~interval).all(axis=1).any()
        return
    counts = sets.sum(axis=1)
    assert sorted(set(counts.tolist())) == [1, round(0.4 * 41)]
    assert (counts == 1).sum() == 41
    spectrum = (np.abs(np.fft.rfft(sets[counts > 1], axis=1)[:, 1:]) ** 2).sum(axis=0)
    random = np.random.default_rng(1)
    chance = [random.permutation(41) < 17 for _ in range(len(sets) - 41)]
    drawn = np.array([np.roll(base, turn) for base in chance[:4] for turn in range(41)])
    by_chance = (np.abs(np.fft.rfft(drawn, axis=1)[:, 1:]) ** 2).sum(axis=0)
    assert np.ptp(spectrum) < 0.5 * np.ptp(by_chance)


def test_some_columns_are_drawn_with_the_constant_and_of_full_rank() -> None:
    random = np.random.default_rng(0)
    columns = np.hstack([np.ones((4, 1)), random.uniform(0.5, 1.5, (4, 30))])
    drawn = _draw_columns(columns, 6)
    assert drawn.shape == (4, 6)
    assert drawn[:, 0].tolist() == [1.0] * 4
    places = [
        int(np.flatnonzero((columns == column[:, None]).all(axis=0))[0]) for column in drawn.T
    ]
    assert places == sorted(set(places))  # each once, in their order
    columns[:, 2:] = columns[:, [1]]  # two directions: no more columns have a larger rank
    assert _draw_columns(columns, 6) is columns
