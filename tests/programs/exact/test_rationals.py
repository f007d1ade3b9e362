"""Exact arithmetic: the grid, integers without rounding, powers from below, and the exact check."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles

from pmlopt import LDP, LIP, PML, MaximalLeakage, Prior
from pmlopt.errors import MechanismError
from pmlopt.programs.exact.decimals import (
    dot_decimals,
    has_entropy,
    mix_decimal_rows,
    normalize_log_law,
    sum_decimals,
)
from pmlopt.programs.exact.rounding import (
    drop_noise,
    has_exact_rows,
    is_met_exactly,
    round_exp_down,
    round_rows_to_grid,
    scale_to_integers,
)

UNIT = Fraction(1, 2**53)

seeds = st.integers(0, 2**32 - 1)


def rough_rows(seed: int, width: int, tiny: bool) -> oracles.FloatArray:
    """Rows with zeros, and entries down to 1e-30 where `tiny`, that sum to one up to rounding."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(width, 0.5), 3) * (rng.random((3, width)) < 0.7)
    rows[:, 0] += 1e-3
    if tiny:
        rows = rows * 10.0 ** -rng.integers(0, 30, rows.shape)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def assert_snapped(rows: oracles.FloatArray) -> None:
    snapped = round_rows_to_grid(rows)
    assert oracles.is_stochastic(snapped)
    assert has_exact_rows(snapped)
    assert not snapped[rows == 0].any()
    for before, after in zip(rows.tolist(), snapped.tolist(), strict=True):
        off = abs(sum(map(Fraction, before), Fraction(0)) - 1)
        moved = max(abs(Fraction(a) - Fraction(b)) for a, b in zip(before, after, strict=True))
        assert moved < 2 * UNIT + off


@settings(max_examples=40, deadline=None)
@given(seed=seeds, width=st.integers(1, 40), tiny=st.booleans())
@example(seed=586, width=11, tiny=True)
def test_snapped_rows_sum_to_exactly_one(seed: int, width: int, tiny: bool) -> None:
    assert_snapped(rough_rows(seed, width, tiny))


@pytest.mark.parametrize("width", [1, 3, 10, 49, 2000])
def test_even_rows_sum_to_exactly_one(width: int) -> None:
    rows = np.full((2, width), 1 / width)
    assert_snapped(rows)
    assert (
        np.diff(round_rows_to_grid(rows)) <= 0
    ).all()  # of equal remainders the first are rounded up


matrices = st.lists(
    st.one_of(
        st.just(0.0),
        st.floats(min_value=5e-324, max_value=1.0),
        st.floats(min_value=1e-12, max_value=1.0),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=20, deadline=None)
@given(entries=matrices)
def test_integers_have_exactly_the_ratios_of_the_floats(entries: list[float]) -> None:
    matrix = np.array([entries])
    whole = scale_to_integers(matrix)
    scales = set()
    for value, integer in zip(entries, whole[0], strict=True):
        assert isinstance(integer, int)
        assert (integer == 0) is (value == 0)
        if value:
            scales.add(Fraction(integer) / Fraction(value))
    assert len(scales) <= 1
    assert all(scale.numerator & (scale.numerator - 1) == 0 for scale in scales)


@settings(max_examples=40, deadline=None)
@given(exponent=st.floats(0.0, 700.0) | st.floats(0.0, 1e-12))
@example(exponent=0.0)
def test_powers_are_below_and_close(exponent: float) -> None:
    below = round_exp_down(exponent)
    with localcontext() as context:
        context.prec = 120
        power = Decimal(exponent).exp()
        numerator, denominator = Decimal(below.numerator), Decimal(below.denominator)
        assert numerator <= power * denominator
        assert power * denominator - numerator <= Decimal("1e-57") * power * denominator
    assert below >= 1


@pytest.mark.parametrize("kind", oracles.KINDS)
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), steps=st.integers(-3, 3))
def test_the_exact_check_agrees_with_fractions_at_the_edge(
    kind: str, case: oracles.Case, steps: int
) -> None:
    matrix = round_rows_to_grid(case.matrix)
    levels = oracles.levels_of(kind, case.prior, matrix)
    requirement = oracles.requirement_at(kind, levels, 1 + steps * 2.0**-52)
    assert is_met_exactly(case.prior, requirement, matrix) is oracles.meets(
        case.prior, requirement, matrix
    )


def test_counts_are_exact_where_floats_are_not() -> None:
    thirds = Prior.from_counts([1, 1, 1])
    matrix = np.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25]])
    # the columns have mean 1/2 exactly, and peaks 3/4
    assert is_met_exactly(thirds, PML(math.nextafter(math.log(1.5), 1)), matrix)
    assert not is_met_exactly(thirds, PML(math.nextafter(math.log(1.5), 0)), matrix)


@pytest.mark.parametrize("row", [0, 1])
def test_a_row_of_a_larger_sum_buys_no_maximal_leakage(row: int) -> None:
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    assert is_met_exactly(Prior([0.5, 0.5]), MaximalLeakage(math.log(1.5) + 1e-12), matrix)
    matrix[row] *= 1 + 9e-10  # another row still sums to one
    assert not is_met_exactly(Prior([0.5, 0.5]), MaximalLeakage(math.log(1.5) + 1e-12), matrix)


def test_zero_bounds_hold_exactly_for_constants_only() -> None:
    constant = np.tile([0.25, 0.75], (2, 1))
    nearly = constant + np.array([[2.0**-53, -(2.0**-53)], [0.0, 0.0]])
    for requirement in (PML(0), LDP(0), LIP(0, 0), MaximalLeakage(0)):
        assert is_met_exactly(Prior([0.4, 0.6]), requirement, constant)
        assert has_exact_rows(nearly)
        assert not is_met_exactly(Prior([0.4, 0.6]), requirement, nearly)


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        ([[0.5, 0.5]], True),
        ([[0.1, 0.9]], False),  # 0.1 and 0.9 as floats sum to a little more than one
        ([[1.5, -0.5]], False),
        ([[0.5, 0.25]], False),
        ([[2.0**-60, 1.0]], False),
        ([[2.0**-54, 1 - 2.0**-53, 2.0**-54]], True),
        ([[1.0, 0.0], [0.5, 0.5 + 2.0**-53]], False),
    ],
)
def test_rows_are_exact(matrix: list[list[float]], expected: bool) -> None:
    array = np.array(matrix)
    assert has_exact_rows(array) is expected
    assert oracles.is_stochastic(array) is expected


@pytest.mark.parametrize(
    ("short", "enough"), [(0.0, True), (2.0, True), (8.0, False), (400.0, False)]
)
def test_at_the_largest_entropy_four_last_digits_are_allowed_for(
    short: float, enough: bool
) -> None:
    """Off one half by d, two letters lack 2 d^2 nats of log 2."""
    off = math.sqrt(short * float(np.spacing(math.log(2))) / 2)
    law = np.array([[0.5 + off, 0.5 - off]])
    assert has_entropy(law, np.zeros((1, 2)), math.log(2), math.log(2)) == enough


def test_below_the_largest_entropy_nothing_is_allowed_for() -> None:
    law, counts, entropy = (
        np.array([[0.75, 0.25]]),
        np.zeros((1, 2)),
        0.5623351446188083,
    )  # 2 log 2 - 3/4 log 3
    assert has_entropy(law, counts, entropy - 2e-16, math.log(2))
    assert not has_entropy(law, counts, entropy + 2e-16, math.log(2))
    assert has_entropy(np.array([[1.0, 0.0]]), counts, 0.0, math.log(2))
    for no_law in ([[0.0, 0.0]], [[1.5, -0.5]]):
        assert not has_entropy(np.array(no_law), counts, 0.0, math.log(2))


def test_sums_of_decimals_and_laws_of_logarithms() -> None:
    assert dot_decimals([Decimal(2), Decimal("0.5")], [Decimal(3), Decimal(4)]) == 8
    assert isinstance(sum_decimals([]), Decimal)
    rows = [[Decimal(1), Decimal(2)], [Decimal(3), Decimal(4)]]
    assert mix_decimal_rows([Decimal("0.25"), Decimal("0.75")], rows) == [
        Decimal("2.5"),
        Decimal("3.5"),
    ]
    law = normalize_log_law([0.0, math.log(3)])
    assert [float(one.exp()) for one in law] == pytest.approx([0.25, 0.75], abs=1e-15)


def test_what_is_no_matrix_is_not_repaired() -> None:
    with pytest.raises(MechanismError, match="not finite"):
        drop_noise(np.array([[np.nan, 1.0]]), 0.0)
    with pytest.raises(MechanismError, match="sums to 3"):
        drop_noise(np.array([[1.0, 2.0]]), 0.0)
