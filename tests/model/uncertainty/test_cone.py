"""The columns that a bound over a set allows: their extreme ones, and what no column exceeds."""

from __future__ import annotations

import math
from dataclasses import astuple
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.brute_force_columns import KINDS as FAMILIES
from oracles.brute_force_columns import assert_allowed, extreme, families_of, families_under
from oracles.columns import UTILITIES
from oracles.designs import FloatArray
from oracles.prior_sets import KINDS, Case, extreme_columns, random_set
from strategies import MODEST, exact_law

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    Box,
    ConvexHull,
    L1Ball,
    MaximalLeakage,
    MinimumMass,
    Prior,
    design,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import ChoquetSet, ColumnCone, columns
from pmlopt.model.utility import TotalVariation
from pmlopt.programs.subconvex.column_spaces import build_column_space

SEEDS = st.integers(0, 2**32 - 1)
KERNELS = ["mutual information", "total variation", "chi-square", "hellinger", "own generator"]


@st.composite
def cones(draw: st.DrawFn, max_size: int = 4) -> tuple[Case, float, np.random.Generator]:
    """A set, a level and a generator for more."""
    rng = np.random.default_rng(draw(SEEDS, label="seed"))
    case = random_set(
        draw(st.sampled_from(KINDS), label="kind"), rng, int(rng.integers(2, max_size + 1))
    )
    return case, float(rng.choice([0.02, *rng.uniform(0.05, 3, 5)])), rng


def brute(case: Case, epsilon: float) -> FloatArray:
    """(N, K) the extreme columns by brute force."""
    return extreme_columns(case.p, case.defined.corners(), epsilon)


# ---------------------------------------------------------------- the extreme columns


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6, deadline=None)
@given(SEEDS, st.integers(2, 4), st.floats(0.02, 3.0))
def test_the_list_has_every_extreme_column_and_none_that_is_not_allowed(
    kind: str, seed: int, size: int, epsilon: float
) -> None:
    case = random_set(kind, np.random.default_rng(seed), size)
    lifts = ColumnCone(case.priors, math.exp(-epsilon)).extreme_columns(case.p, 10**6)
    assert lifts is not None
    assert lifts.min() >= 0
    assert case.p @ lifts == pytest.approx(np.ones(lifts.shape[1]), abs=1e-12)
    leasts = (case.defined.corners() @ lifts).min(axis=0)
    assert (math.exp(-epsilon) * lifts.max(axis=0) <= leasts + 1e-9).all()
    for column in brute(case, epsilon).T:
        assert np.abs(lifts - column[:, None]).max(axis=0).min() <= 1e-7


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 1), (4, 2), (5, 3), (3, 5)])
def test_no_list_is_longer_than_its_limit(n: int, k: int) -> None:
    p = np.full(n, 1 / n)
    points = np.random.default_rng(6).dirichlet(np.ones(n), k)
    patterns = sum(comb(n, t) * comb(k, t) * 2 ** (n - t) for t in range(min(n, k) + 1))
    bounded = Box(np.full(n, 0.5 / n), np.full(n, min(1.0, 1.2 / n)))
    additive = 2**n + n * 2 ** (n - 1)
    sets = (
        (ConvexHull(points), patterns),
        (MinimumMass(n, 0.5 / n), additive),
        (bounded, 3**n if n > 1 else additive),
    )
    for one, count in sets:
        cone = ColumnCone(one, 0.5)
        assert cone.candidate_count == count
        assert cone.extreme_columns(p, count - 1) is None
        assert cone.extreme_columns(p, count) is not None


def test_extreme_columns_on_rare_letters_are_found() -> None:
    rare = 1e-7
    priors = ConvexHull([[1 - 4 * rare, rare, 3 * rare], [1 - 4 * rare, 3 * rare, rare]])
    lifts = ColumnCone(priors, math.exp(-2 * rare)).extreme_columns(np.full(3, 1 / 3), 10**6)
    assert lifts is not None
    shapes = (lifts / lifts.max(axis=0)).T
    for shape in ([1.0, 0.5, 0.5], [1.0, 1.0, 1 / 3], [1.0, 1 / 3, 1.0], [1 - 2 * rare, 1.0, 1.0]):
        assert np.abs(shapes - shape).max(axis=1).min() <= 1e-6


def test_columns_that_differ_in_late_digits_are_kept() -> None:
    priors = ConvexHull([[1 - 1e-8, 1e-8], [1 - 5e-9, 5e-9]])
    lifts = ColumnCone(priors, math.exp(-9.8e-13)).extreme_columns(np.array([0.5, 0.5]), 100)
    assert lifts is not None
    reached = float(np.abs(lifts - 1).min(axis=0)[np.ptp(lifts, axis=0) > 0].min())
    assert 4e-13 <= reached <= 6e-13
    result = solve(design([0.5, 0.5], PML(9.8e-13, over=priors), TotalVariation()))
    best = np.array([[0.5 + 2.4e-13, 0.5 - 2.4e-13], [0.5 - 2.4e-13, 0.5 + 2.4e-13]])
    assert PML(9.8e-13, over=priors).holds([0.5, 0.5], best)
    assert result.bound >= TotalVariation().value(Prior([0.5, 0.5]), best)


@pytest.mark.parametrize("kind", KINDS)
def test_a_level_of_a_last_digit_allows_the_constant_and_hardly_more(kind: str) -> None:
    case = random_set(kind, np.random.default_rng(9), 4)
    gains = np.random.default_rng(10).normal(size=(4, 3))
    mean = float((case.p @ gains).max())
    for epsilon in (1e-16, 3e-16, 1e-14):
        assert (
            mean <= case.priors.support_function(case.p, gains, math.exp(-epsilon)) <= mean + 1e-12
        )


@settings(max_examples=25, deadline=None)
@given(cones())
def test_the_value_between_is_the_least_that_suffices(
    problem: tuple[Case, float, np.random.Generator],
) -> None:
    case, epsilon, rng = problem
    n, keep, corners = case.priors.size, math.exp(-epsilon), case.defined.corners()
    states = rng.integers(0, 3, (20, n))
    inner, outer = states == 2, states == 1
    shares = case.priors.max_partial_entry(inner, outer, keep)

    assert shares is not None

    def least(column: FloatArray) -> float:
        return float((corners @ column).min())

    for here, there, share in zip(inner.astype(float), outer.astype(float), shares, strict=True):
        if least(here) > keep - 1e-9 or not there.any():
            continue
        most = least(here + there)
        if math.isnan(share):
            assert most < keep + 1e-9
        else:
            assert most >= keep - 1e-9
            assert least(here + share * there) == pytest.approx(keep, abs=1e-8)


def test_a_set_is_vacuous_iff_its_columns_are_those_of_ldp() -> None:
    p = [0.5, 0.3, 0.2]
    vacuous: list[ChoquetSet] = [AllPriors(3), L1Ball(p, 2.0), MinimumMass(3, 0.0), L1Ball(p, 1.6)]
    assert [one.contains_all_priors for one in vacuous] == [True, True, True, True]
    others: list[ChoquetSet] = [L1Ball(p, 1.5), MinimumMass(3, 1e-6), Box([0, 0, 0], [1, 1, 0.9])]
    assert [one.contains_all_priors for one in others] == [False, False, False]
    for one in vacuous:
        assert one.min_mean(np.eye(3)).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("name", "kind"), list(zip(KERNELS, KINDS, strict=True)))
def test_what_the_search_proves_is_above_every_column(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmlopt.programs.subconvex.column_spaces.MAX_ENUMERATED_COLUMNS", 0)
    monkeypatch.setattr("pmlopt.programs.subconvex.split_pricing.MAX_REFINED_CELLS", 64)
    utility, worth = UTILITIES[name]
    rng = np.random.default_rng([KINDS.index(kind), KERNELS.index(name)])
    for n in (2, 3):
        case, epsilon = random_set(kind, rng, n), float(rng.uniform(0.1, 2))
        lifts = brute(case, epsilon)
        space = build_column_space(Prior(case.p), PML(epsilon, over=case.priors), utility)
        assert (lifts <= space.max_entries[:, None] + 1e-8).all()
        for rho in rng.normal(size=(2, n)) * 0.3:
            best = float((worth(case.p, lifts) - (case.p * rho) @ lifts).max())
            priced = space.choose_pricer().price_columns(rho, 10, math.inf)
            assert priced.best_value <= best + 1e-8
            assert priced.upper_bound >= best - 1e-8
            assert space.choose_pricer().bound_reduced_values(rho, -math.inf) >= best - 1e-8
            assert space.compute_bound(rho, -math.inf, None)[0] >= case.p @ rho + best - 1e-8


# ---------------------------------------------------------------- families of columns


@pytest.mark.parametrize(
    "family",
    [
        columns.BoxFamily(0.0, 2.0),
        columns.BoxFamily(0.4, 1.5),
        columns.StaircaseFamily(0.0, 3.0),
        columns.StaircaseFamily(1.5, 0.2),
    ],
    ids=str,
)
def test_filling_makes_the_mean_one(family: columns.Family) -> None:
    """A set of just the capacity leaves nothing above the low end."""
    mass = np.linspace(0.01, 0.99, 99) * family.max_mass
    for between in (0.25, 0.0) if isinstance(family, columns.BoxFamily) else (0.0,):
        low, step, extra = family.compute_values(mass, np.full(99, between))
        assert low + step * mass + extra * between == pytest.approx(np.ones(99), rel=1e-13)
    whole = np.array([family.max_mass])
    low, step, extra = family.compute_values(whole, np.zeros(1))
    if family.max_mass < 1:
        bottom = family.low if isinstance(family, columns.BoxFamily) else 0.0
        assert low == pytest.approx([bottom], abs=1e-15)
    assert low + step * whole + extra == pytest.approx([1.0])


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
        assert isinstance(family, columns.StaircaseFamily) == isinstance(requirement, LDP)
    assert MaximalLeakage(0.5).extreme_columns(Prior([0.5, 0.5])) is None
    with pytest.raises(PrivacyError, match="all columns of a mechanism together"):
        MaximalLeakage(0.5).require_extreme_columns(Prior([0.5, 0.5]), "designs")


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(FAMILIES),
    st.sampled_from([0.0, 2.0**-40, 1e-3, 0.3]),
)
@MODEST
def test_stricter_columns_are_allowed_ones(seed: int, kind: str, share: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4)) + 0.01
    p /= p.sum()
    for family in families_of(rng, p, kind):
        stricter = family.tightened_by(share)
        for column in extreme(exact_law(p), stricter) if not stricter.is_constant_only else []:
            lifts = np.array([[float(v)] for v in column])
            assert_allowed(p, lifts, family)
            if isinstance(family, columns.BoxFamily) and isinstance(stricter, columns.BoxFamily):
                assert lifts.max() <= max(1.0, family.high * (1 - share)) * (1 + 1e-12)
                assert lifts.min() >= min(1.0, family.low * (1 + share)) * (1 - 1e-12)


def test_a_margin_never_goes_past_the_constant() -> None:
    assert columns.BoxFamily(0.9, 1.1).tightened_by(0.5) == columns.BoxFamily(1.0, 1.0)
    assert astuple(columns.StaircaseFamily(0.0, 1.5).tightened_by(0.5)) == pytest.approx((0.0, 1.0))
    assert columns.StaircaseFamily(0.5, 1.0).tightened_by(0.9).is_constant_only
