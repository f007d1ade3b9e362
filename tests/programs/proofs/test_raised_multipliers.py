"""Rows that make good what multipliers lack, at the cost of the bound and of the columns before."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from pmlopt.programs.proofs.claims import _iterate_levels
from pmlopt.programs.proofs.duals import _find_supports, prove_bound
from pmlopt.programs.proofs.exact_program import ExactProgram
from pmlopt.programs.proofs.readme import _format_program


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


def test_multipliers_are_those_of_the_basis_to_all_digits() -> None:
    """Of `x <= (1 - d) y` and `y <= 1 + x` it is 1 / d and 1 / d - 1 that prove `x <= 1 / d - 1`."""
    small = Fraction(1, 2**20)
    program = ExactProgram(above=True)
    x, y = (program.add_column(name, Fraction(0)) for name in "xy")
    program.add_row("first", {x: Fraction(1), y: small - 1})
    program.add_row("second", {x: Fraction(-1), y: Fraction(1)}, Fraction(1))
    first, second = prove_bound(program, {x: Fraction(1)})
    assert 0 <= first - 1 / small < Fraction(1, 2**40)
    assert 0 <= second - (1 / small - 1) < Fraction(1, 2**40)
    assert program.sum_right_sides([first, second]) == second
    assert program.combine([first, second])[x] >= 1
    assert program.combine([first, second])[y] >= 0


def test_levels_next_to_a_bound_are_tried_from_the_nearest_on() -> None:
    """On its side, and up to a millionth of it, or of one."""
    for bound, sign in ((3.0, -1), (0.5, 1), (0.5, -1)):
        first, *others = _iterate_levels(bound, sign)
        assert first == bound
        assert others[-1] == pytest.approx(bound + sign * 1e-6 * max(1.0, bound), abs=1e-12)
        assert sorted(others, key=lambda level: abs(level - bound)) == others


def test_a_rational_is_as_near_to_a_power_as_the_readme_states() -> None:
    """Of e within 2 (e - 2.71) = .017; a rational of all 70 digits within next to nothing."""
    exact = Fraction(Context(prec=70).exp(Decimal(1)))
    for ratio, stated in ((Fraction(271, 100), "0.02"), (exact, "1e-60")):
        program = SimpleNamespace(
            columns=[], rows=[], kinds=(), objective={}, above=False, powers={1.0: ratio}
        )
        proved: Any = SimpleNamespace(program=program, name="feasibility")
        assert f"below it by less than {stated}." in _format_program(proved)
