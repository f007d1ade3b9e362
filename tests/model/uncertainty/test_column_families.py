"""What the columns of a requirement can be: the mean is one, the bounds hold, and margins are inside them."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.brute_force_columns import KINDS, assert_allowed, extreme, families_of, families_under
from strategies import MODEST, exact_law

from pmlopt import LDP, LIP, PML, MaximalLeakage, Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import Box, Family, Staircase

ENDS = [Box(0.0, 2.0), Box(0.4, 1.5), Staircase(0.0, 3.0), Staircase(1.5, 0.2)]


@pytest.mark.parametrize("family", ENDS, ids=str)
def test_a_set_of_just_the_capacity_leaves_nothing_above_the_low_end(family: Family) -> None:
    mass = np.array([family.capacity])
    low, step, extra = family.fill(mass, np.zeros(1))
    bottom = family.low if isinstance(family, Box) else 0.0
    if family.capacity < 1:
        assert low == pytest.approx([bottom], abs=1e-15)
    assert low + step * mass + extra == pytest.approx([1.0])


@pytest.mark.parametrize("family", ENDS, ids=str)
def test_filling_makes_the_mean_one(family: Family) -> None:
    mass = np.linspace(0.01, 0.99, 99) * family.capacity
    between = np.full(99, 0.25) if isinstance(family, Box) else np.zeros(99)
    low, step, extra = family.fill(mass, between)
    assert low + step * mass + extra * between == pytest.approx(np.ones(99), rel=1e-13)


def test_the_levels_become_bounds_on_columns() -> None:
    prior = Prior([0.5, 0.3, 0.2])
    bounds: list[tuple[Requirement, tuple[float, float]]] = [
        (PML(math.log(1.5)), (0.0, 1.5)),
        (PML(50.0), (0.0, 5.0)),
        (LIP(math.log(4), math.log(1.5)), (0.25, 1.5)),
        (LIP(math.log(4), 50.0), (0.25, 5.0)),
        (LDP(math.log(3)), (0.0, 3.0)),
    ]
    for requirement, expected in bounds:
        [family] = families_under(requirement, prior)
        assert astuple(family) == pytest.approx(expected)
        assert isinstance(family, Staircase) == isinstance(requirement, LDP)


def test_maximal_leakage_bounds_no_single_column() -> None:
    with pytest.raises(PrivacyError, match="all columns of a mechanism together"):
        MaximalLeakage(0.5).columns(Prior([0.5, 0.5]))


@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.sampled_from([0.0, 2.0**-40, 1e-3, 0.3]))
@MODEST
def test_stricter_columns_are_allowed_ones(seed: int, kind: str, share: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4)) + 0.01
    p /= p.sum()
    for family in families_of(rng, p, kind):
        stricter = family.stricter(share)
        for column in extreme(exact_law(p), stricter) if not stricter.constant else []:
            lifts = np.array([[float(v)] for v in column])
            assert_allowed(p, lifts, family)
            if isinstance(family, Box) and isinstance(stricter, Box):
                assert lifts.max() <= max(1.0, family.high * (1 - share)) * (1 + 1e-12)
                assert lifts.min() >= min(1.0, family.low * (1 + share)) * (1 - 1e-12)


def test_a_margin_never_goes_past_the_constant() -> None:
    assert Box(0.9, 1.1).stricter(0.5) == Box(1.0, 1.0)
    assert astuple(Staircase(0.0, 1.5).stricter(0.5)) == pytest.approx((0.0, 1.0))
    assert Staircase(0.5, 1.0).stricter(0.9).constant
