"""Logarithms of ratios of integers: never below the exact ones, and next to them."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np

from pmlopt.core.numbers.logarithms import log_ratio_up


def test_a_logarithm_is_rounded_up_by_at_most_a_float() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        below = int(rng.integers(1, 2**62)) << int(rng.integers(0, 900))
        above = below + (below >> int(rng.integers(0, 120))) + int(rng.integers(0, 2**40))
        if above == below:
            continue
        found = log_ratio_up(above, below)
        with localcontext(Context(prec=600)):
            exact = (Decimal(above) / Decimal(below)).ln()
            assert Decimal(found) >= exact
            assert Decimal(math.nextafter(math.nextafter(found, 0.0), 0.0)) < exact
    assert log_ratio_up(1, 2) == 0.0
