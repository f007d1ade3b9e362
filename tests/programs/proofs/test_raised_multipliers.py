"""Rows that make good what multipliers lack, at the cost of the bound and of the columns before."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from pmlopt.programs.proofs.duals import _find_fixed_point, _find_supports


def make_row(right: int, terms: dict[int, int]) -> SimpleNamespace:
    return SimpleNamespace(
        right=Fraction(right), terms={at: Fraction(v) for at, v in terms.items()}
    )


def test_a_row_supports_its_last_columns_at_what_the_bound_and_those_before_pay() -> None:
    """Four of the last column take a quarter of the row, of right side -2 and coefficient -3 before."""
    rows = [make_row(-2, {0: -3, 2: 4}), make_row(5, {0: 1, 1: 2}), make_row(0, {2: -1, 1: 7})]
    program: Any = SimpleNamespace(columns=range(3), rows=rows)
    assert _find_supports(program) == [
        [(Fraction(5), 1)],
        [(Fraction(5, 2), 1)],
        [(Fraction(5, 4), 0)],
    ]


def test_a_fixed_point_is_the_sum_of_what_exceeds_zero_there() -> None:
    pairs = [
        (Fraction(1, 2), Fraction(1)),
        (Fraction(1, 4), Fraction(-9)),
        (Fraction(1, 4), Fraction(2)),
    ]
    factor = Fraction(9, 8)
    total = _find_fixed_point(pairs, factor)
    assert total == sum(max(Fraction(0), cost + factor * share * total) for share, cost in pairs)
    assert total > 0
