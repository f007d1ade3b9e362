"""Searches for the least number at which a condition holds."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST

from pmlopt.core.roots import halved, smallest_holding


@given(st.floats(1e-300, 1e300), st.integers(0, 2000))
@MODEST
def test_it_finds_the_next_float_that_holds(start: float, ulps: int) -> None:
    wanted = start + ulps * math.ulp(start)
    assert smallest_holding(lambda x: x >= wanted, start) == wanted


def test_where_nothing_holds_it_says_infinity() -> None:
    assert smallest_holding(lambda _: False, 1.0) == math.inf


@given(st.floats(1.0, 2.0), st.sampled_from([0.0, 1e-12, 1e-3]))
@MODEST
def test_halving_ends_where_it_holds(wanted: float, width: float) -> None:
    found = halved(lambda x: x >= wanted, 0.5, 3.0, width)
    assert wanted <= found <= wanted * (1 + 1.001 * width) + math.ulp(2.0)
