"""Forms that a requirement does not have are None, and who needs one says which, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from saved_cases import REQUIREMENTS, P

from pmlopt import (
    LDP,
    LIP,
    PML,
    ChiSquareBall,
    ConvexHull,
    EstimationError,
    MaximalAlphaLeakage,
    MaximalLeakage,
    MutualInformation,
    Prior,
    RenyiPML,
    design,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.ratios import join_ratio_bounds
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.vertices import vertex_hull

PRIOR = Prior(P)


def list_classes(base: type[Any]) -> Iterator[type[Any]]:
    """Iterate over a class and all below it."""
    yield base
    below: list[type[Any]] = base.__subclasses__()
    for one in below:
        yield from list_classes(one)


@pytest.mark.parametrize("base", [Requirement, PriorSet])
def test_no_flag_announces_a_form(base: type[Any]) -> None:
    for kind in list_classes(base):
        flags = [name for name in dir(kind) if name.startswith(("has_", "can_", "supports_"))]
        announced = [name for name in flags if hasattr(kind, name.partition("_")[2])]
        assert not announced, f"{kind.__name__} has {announced}"


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_lists_under_a_prior_are_the_ratios_or_none(name: str) -> None:
    privacy = REQUIREMENTS[name]
    found, listed = privacy.ratios(PRIOR.pmf), privacy.list_ratios(PRIOR)
    assert (found is None) == (listed is None)
    assert listed is privacy.list_ratios(PRIOR)  # built once for a prior
    if found is not None and listed is not None:
        matrix = np.random.default_rng(3).dirichlet(np.ones(4), 3)
        assert np.array_equal(found.log_ratios(matrix), listed.log_ratios(matrix))
    assert privacy.list_weighted_ratios(PRIOR) in (None, listed)
    gains = np.array([[1.0, 0.0, 0.3], [0.2, 0.9, 0.1], [0.0, 0.4, 0.7]])
    if (weighted := privacy.list_weighted_ratios(PRIOR)) is not None:
        weights = privacy.dual_certificate(PRIOR, gains)["weights"]
        assert weights.shape == (len(weighted.exponents), 3)


@pytest.mark.parametrize(
    ("privacy", "listed", "weighted"),
    [
        (PML(0.3), 3, None),
        (LDP(0.3), 6, None),
        (LIP(0.3, 0.4), 6, None),
        (PML(0.3) & LDP(0.5), 9, 9),
        (PML([0.3, 0.2, 0.5]), 3, 3),
        (MaximalLeakage(0.3), None, None),
        (RenyiPML(2, 0.3), None, None),
        (PML(0.3) & RenyiPML(2, 0.3), None, None),
    ],
    ids=str,
)
def test_as_many_bounds_are_listed_as_there_are_letters_or_pairs(
    privacy: Requirement, listed: int | None, weighted: int | None
) -> None:
    counts = [
        None if found is None else len(found.exponents)
        for found in (privacy.list_ratios(PRIOR), privacy.list_weighted_ratios(PRIOR))
    ]
    assert counts == [listed, weighted]


def test_a_list_that_is_missing_leaves_no_list_of_the_others() -> None:
    some = PML(0.3).list_ratios(PRIOR)
    assert join_ratio_bounds([some, None]) is None
    joined = join_ratio_bounds([some, some])
    assert joined is not None
    assert len(joined.exponents) == 6


@pytest.mark.parametrize(
    ("utility", "purpose"),
    [(MutualInformation(), "a sub-convex utility"), (EstimationError(), "estimation")],
)
def test_who_needs_extreme_columns_names_the_requirement(utility: Any, purpose: str) -> None:
    message = (
        rf"designs (with|for) {purpose} need the extreme columns of a requirement, and "
        r"MaximalAlphaLeakage\(.*\) has none that are listed: it bounds all columns"
    )
    with pytest.raises(PrivacyError, match=message):
        design(PRIOR, MaximalAlphaLeakage(2, 0.3), utility)


def test_who_needs_a_polytope_names_the_set() -> None:

    with pytest.raises(PrivacyError, match=r"need more than .* ChiSquareBall\(.*has no polytope"):
        vertex_hull(ChiSquareBall(P, 0.1))


class OnlyALevel(MaximalLeakage):
    """A requirement that gives no form of its own."""

    to_cvxpy = Requirement.to_cvxpy


def test_a_requirement_without_any_form_says_what_to_define() -> None:
    with pytest.raises(PrivacyError, match=r"no ratio bounds: define `ratios`"):
        OnlyALevel(0.3).to_cvxpy(PRIOR, None, None)


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_averages_over_like_letters_meet_what_keeps_averages(name: str) -> None:
    """On two letters of one probability, and two outputs, all pairs that look alike get their mean."""
    privacy = REQUIREMENTS[name]
    plain = name in ("pml", "ldp", "lip")
    assert privacy.keeps_averages == plain
    if not plain:
        return
    even, rng = Prior([0.25, 0.25, 0.5]), np.random.default_rng(8)
    for _ in range(20):
        matrix = rng.dirichlet(np.ones(3), 3)
        kept = matrix.copy()
        kept[:2, :2] = matrix[:2, :2].mean()
        kept[:2, 2], kept[2, :2] = matrix[:2, 2].mean(), matrix[2, :2].mean()
        before, after = privacy.levels(even, matrix), privacy.levels(even, kept)
        assert all(after[key] <= before[key] + 1e-12 for key in before)


def test_levels_of_requirements_are_one_number_or_none() -> None:
    single = [PML(0.3), LIP(0.2, 0.2), LIP(0.2, 0.3), PML([0.1, 0.2, 0.3]), PML(0.3) & LDP(0.5)]
    assert [one.find_single_level() for one in single] == [0.3, 0.2, None, None, None]
    assert [one.find_plain_pml_level() for one in single] == [0.3, None, None, None, None]
    assert PML(0.3, over=ChiSquareBall(P, 0.1)).find_plain_pml_level() is None
    assert LIP(0.2, 0.3).with_epsilon(0.4) == LIP(0.4, 0.4)


def test_vertices_of_a_set_are_listed_where_they_define_it() -> None:
    rows = [[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]]
    found = ConvexHull(rows).list_vertices()
    assert found is not None
    assert found == pytest.approx(np.array(rows), abs=1e-15)
    assert ChiSquareBall(P, 0.1).list_vertices() is None
