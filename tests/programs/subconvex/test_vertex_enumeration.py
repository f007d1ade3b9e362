"""The extreme columns are those of the definition, each once; pricing from the list is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.brute_force_columns import (
    KINDS,
    assert_allowed,
    extreme,
    families_of,
    families_under,
    rounded,
)
from strategies import exact_law

from pmlopt import LDP, LIP, PML, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty.columns import Box, Family, Staircase
from pmlopt.programs.subconvex.vertex_enumeration import count_vertices, vertices

SHARE = 2.0**-40


@st.composite
def laws(draw: st.DrawFn, max_size: int = 7) -> tuple[FloatArray, np.random.Generator]:
    """Priors of any kind: random, uniform, with repeated letters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    n = draw(st.integers(1, max_size), label="letters")
    kind = draw(st.sampled_from(["random", "uniform", "repeated"]), label="prior")
    weights = {"random": rng.uniform(0.02, 1.0, n), "uniform": np.ones(n), "repeated": rng.integers(1, 4, n)}
    return weights[kind] / weights[kind].sum(), rng


def listed(p: FloatArray, families: Sequence[Family], share: float = 0.0) -> list[FloatArray]:
    found = vertices(p, families, 10**6)
    assert found is not None
    return [columns.lifts(p, share) for columns in found]


@settings(max_examples=40, deadline=None)
@given(laws(), st.sampled_from(KINDS))
def test_the_list_is_that_of_the_definition(law: tuple[FloatArray, np.random.Generator], kind: str) -> None:
    p, rng = law
    if len(p) == 1:
        return
    for family in families_of(rng, p, kind):
        [lifts] = listed(p, [family])
        assert rounded(lifts) == rounded(extreme(exact_law(p), family))
        assert_allowed(p, lifts, family)
        count = count_vertices(p, [family])
        assert count is not None
        assert count >= lifts.shape[1]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.sampled_from(["pml", "lip", "ldp", "ball"]))
def test_without_ties_the_count_is_the_length_of_the_list(seed: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    p = oracles.random_prior(rng, n)
    families = families_of(rng, p, kind)
    count = sum(lifts.shape[1] for lifts in listed(p, families))
    assert count_vertices(p, families) == count
    assert count == sum(len(extreme(exact_law(p), family)) for family in families)


@settings(max_examples=30, deadline=None)
@given(laws(), st.sampled_from(KINDS))
def test_with_a_margin_every_column_is_within_the_bounds(
    law: tuple[FloatArray, np.random.Generator], kind: str
) -> None:
    p, rng = law
    for family in families_of(rng, p, kind) if len(p) > 1 else ():
        [lifts] = listed(p, [family], SHARE)
        assert_allowed(p, lifts, family, within=1e-15)
        assert np.abs(lifts - listed(p, [family])[0]).max() <= 1e-9


@settings(max_examples=30, deadline=None)
@given(oracles.cases(max_size=5), st.floats(0.05, 1.2), st.sampled_from(["pml", "ldp", "lip"]))
def test_the_list_reaches_the_linear_program_over_the_columns(
    case: oracles.Case, share: float, kind: str
) -> None:
    requirement = oracles.bounded(kind, share * case.prior.max_leakage)
    expected = oracles.support(case.prior.pmf, requirement, case.gains)
    lifts = np.hstack(listed(case.prior.pmf, families_under(requirement, case.prior)))
    assert ((case.prior.pmf[:, None] * case.gains).T @ lifts).max() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("requirement", [PML(0.0), LDP(0.0), LIP(0.0, 0.0), LIP(0.0, 1.0), LIP(1.0, 0.0)])
def test_without_leakage_nothing_but_the_constant_is_left(requirement: Requirement) -> None:
    prior = Prior([0.5, 0.3, 0.2])
    families = families_under(requirement, prior)
    assert vertices(prior.pmf, families, 10) == []
    assert count_vertices(prior.pmf, families) == 1


def test_forty_letters_are_counted_and_one_more_is_not() -> None:
    family = Box(0.0, 1 / 0.1125)  # four letters of 1/40 fit, a fifth does not
    assert count_vertices(np.full(40, 1 / 40), [family]) == math.comb(40, 4) * 36
    assert count_vertices(np.full(40, 1 / 40), [Staircase(0.0, 2.0)]) == 2**40 - 2
    assert count_vertices(np.full(41, 1 / 41), [family]) is None


@pytest.mark.parametrize("family", [Box(0.0, 1.9), Box(0.3, 1.6), Staircase(0.0, 2.0), Staircase(1.5, 0.1)])
def test_no_list_is_longer_than_its_limit(family: Family) -> None:
    p = oracles.random_prior(np.random.default_rng(4), 7, 10.0)
    count = listed(p, [family])[0].shape[1]
    assert vertices(p, [family], count) is not None
    assert vertices(p, [family], count - 1) is None
    assert vertices(p, [family, family], 2 * count) is not None
    assert vertices(p, [family, family], 2 * count - 1) is None
    assert vertices(np.full(60, 1 / 60), [family], 1000) is None


@pytest.mark.parametrize("tiny", [1e-6, 1e-9, 1e-12])
def test_a_set_that_fits_with_a_tiny_letter_keeps_the_bounds(tiny: float) -> None:
    p = np.array([0.3, tiny, 0.2, 0.1, 0.4 - tiny])
    family = Box(0.0, 1 / (0.3 + tiny))
    [lifts] = listed(p, [family], SHARE)
    assert_allowed(p, lifts, family, within=1e-11)
