"""Levels of finite orders beside decimals, from orders next to 1 on."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from pmlopt import Ledger, MaximalAlphaLeakage, Prior, RenyiPML, SibsonLeakage
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import channel_capacity, maximal_alpha_leakage
from pmlopt.measures.orders import order_levels, order_surplus, sibson_level
from pmlopt.programs.compliance import prove
from pmlopt.programs.exact.rounding import is_met_exactly, round_rows_to_grid

ORDERS = (
    1 + 2.0**-52,
    1 + 1e-15,
    1 + 1e-12,
    1 + 1e-9,
    1 + 1e-6,
    1.001,
    1.1,
    1.5,
    2.0,
    7.0,
    64.0,
    1e3,
    1e6,
)


def decimal_levels(
    law: FloatArray, matrix: FloatArray, alpha: float
) -> tuple[list[Decimal], Decimal]:
    """The level of each column, and Sibson's mean over them, from the definitions in 400 digits."""
    with localcontext(Context(prec=400, Emax=10**12, Emin=-(10**12))):
        masses, order = [Decimal(w) for w in law.tolist()], Decimal(alpha)
        masses = [w / sum(masses) for w in masses]
        found, lengths, total = [], Decimal(0), Decimal(0)
        for column in matrix.T.tolist():
            pairs = [(w, Decimal(v)) for w, v in zip(masses, column, strict=True) if v]
            mean = sum((w * v for w, v in pairs), Decimal(0))
            moment = sum((w * (order * (v / mean).ln()).exp() for w, v in pairs), Decimal(0))
            found.append(moment.ln() / (order - 1))
            lengths += mean * (moment.ln() / order).exp()
            total += mean
        return found, (lengths / total).ln() * order / (order - 1)


@pytest.mark.parametrize("alpha", ORDERS)
def test_levels_have_all_digits_at_every_order(alpha: float) -> None:
    rng = np.random.default_rng(7)
    even = rng.dirichlet(np.ones(4))
    rare = np.array([1 - 3e-9, 1e-9, 1e-9, 1e-9])
    wide = rng.dirichlet(np.ones(3), 4)
    zeros = wide * (rng.random((4, 3)) < 0.7) + np.array([[1.0, 1.0, 1.0], *np.zeros((3, 3))])
    near = 0.3 + 1e-7 * rng.random((4, 3))
    for law in (even, rare):
        for matrix in (wide, zeros, near):
            levels, mean = decimal_levels(law, matrix, alpha)
            found = order_levels(law, matrix, alpha)
            for own, true in zip(found.tolist(), levels, strict=True):
                assert own == pytest.approx(float(true), rel=1e-12, abs=0)
            assert sibson_level(law, matrix, alpha) == pytest.approx(float(mean), rel=1e-12, abs=0)


def test_the_surplus_of_an_order_is_that_of_a_product_at_order_two_and_of_a_logarithm_at_one() -> (
    None
):
    d = np.array([-1.0, -0.3, 1e-12, 1e-3, 0.2, 40.0])
    assert order_surplus(d, 2.0) == pytest.approx(d**2, rel=1e-14)
    assert order_surplus(d, 1 + 2.0**-52) == pytest.approx(order_surplus(d, 1.0), rel=1e-14)


def test_next_to_order_one_levels_are_not_lost() -> None:
    prior, response = np.array([0.5, 0.5]), np.array([[0.75, 0.25], [0.25, 0.75]])
    divergence = np.log(2) + 0.75 * np.log(0.75) + 0.25 * np.log(0.25)  # 0.1308
    first = 1 + 2.0**-52
    ledger = Ledger([0.5, 0.5])
    ledger.record(response, [0])
    assert ledger.levels_of_order(first)[0] == pytest.approx(divergence, rel=1e-12)
    assert maximal_alpha_leakage(response, first) == pytest.approx(
        channel_capacity(response), abs=1e-12
    )
    for kind in (RenyiPML, SibsonLeakage, MaximalAlphaLeakage):
        assert kind(first, 0.2).level(prior, response) == pytest.approx(divergence, rel=1e-12)
        assert not kind(first, 0.13).holds(prior, response)
        with pytest.raises(PrivacyError, match="limit"):
            prove(prior, kind(first, 0.13), response)


def test_the_check_of_whole_orders_has_the_power_of_epsilon() -> None:
    alone = round_rows_to_grid(np.eye(7))
    below = float(np.nextafter(np.log(7), 0))
    for order in (2.0, 3.0, 64.0):
        for epsilon in (
            float(np.log(7)),
            below,
        ):  # both are below log 7, as floats have it, or above it
            inside = Decimal(epsilon).exp(Context(prec=60)) >= 7
            assert is_met_exactly(Prior.uniform(7), RenyiPML(order, epsilon), alone) is inside


@pytest.mark.parametrize("alpha", [1.2, 2.0, 5.0])
def test_maximal_alpha_leakages_of_two_releases_add_up_and_sibson_s_do_not(alpha: float) -> None:
    # its level is a least radius of Renyi divergences, which add over products: the product of both centres
    rng = np.random.default_rng(4)
    maximal, sibson = MaximalAlphaLeakage(alpha, 1.0), SibsonLeakage(alpha, 1.0)
    excess = []
    for _ in range(30):
        law = rng.dirichlet([0.5] * 3)
        first, second = rng.dirichlet([0.5] * 3, 3), rng.dirichlet([0.5] * 4, 3)
        both = (first[:, :, None] * second[:, None, :]).reshape(3, -1)
        apart = maximal.level(law, first) + maximal.level(law, second)
        assert maximal.level(law, both) <= apart + 1e-9
        excess.append(
            sibson.level(law, both) - sibson.level(law, first) - sibson.level(law, second)
        )
    assert max(excess) > 1e-3
