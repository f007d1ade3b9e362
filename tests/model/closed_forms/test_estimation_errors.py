"""Least errors of estimated frequencies beside their formulas in decimals, from levels of 1e-150 on."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import pytest

from pmlopt.model.closed_forms import least_ldp_estimation_error, least_pml_estimation_error

LEVELS = (1e-150, 1e-100, 1e-30, 1e-16, 1e-9, 1e-8, 1e-7, 1e-3, 0.3, math.log(2), 1.0, 5.0, 300.0)


def pml(n: int, level: float) -> Decimal:
    up = min(Decimal(level).exp(), Decimal(n))
    full = int(n / up)
    rest = n - full * up
    return Decimal(n - 1) ** 2 / (full * up**2 + rest**2 - n)


def ldp(n: int, level: float) -> Decimal:
    up = Decimal(level).exp()
    lengths = ((d * up + n - d) ** 2 / Decimal(d * (n - d)) for d in range(1, n))
    return Decimal((n - 1) ** 2) / (n * (up - 1) ** 2) * min(lengths)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [2, 3, 7, 40])
def test_least_errors_lose_no_digits(size: int, level: float) -> None:
    with localcontext(Context(prec=700)):
        true = float(pml(size, level)), float(ldp(size, level))
    assert least_pml_estimation_error(size, level) == pytest.approx(true[0], rel=1e-13)
    assert least_ldp_estimation_error(size, level) == pytest.approx(true[1], rel=1e-13)


def test_errors_above_the_largest_float_are_infinite() -> None:
    assert (
        least_pml_estimation_error(3, 1e-300) == least_ldp_estimation_error(3, 1e-300) == math.inf
    )
    assert least_ldp_estimation_error(3, 1e5) == pytest.approx(2 / 3)  # the secret itself
