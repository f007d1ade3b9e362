"""Violations of a requirement: their signs in whole numbers, and that the worst is described."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import LDP, LIP, PML, Mechanism, Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import describe_worst_pair


def test_the_level_that_is_farthest_above_its_limit_is_named() -> None:
    none = SimpleNamespace(required_ratios=lambda p: None)
    privacy: Any = SimpleNamespace(
        for_prior=lambda prior: none,
        limits={"one": 0.1, "other": 0.8},
        levels=lambda prior, mechanism: {"one": 0.5, "other": 0.9},
    )
    text = describe_worst_pair(privacy, Prior([0.5, 0.5]), Mechanism(np.eye(2)))
    assert text == "the level one is 0.5 nats, and the limit is 0.1"


def find_violation(privacy: Requirement, weights: Any, matrix: Any, factor: Fraction) -> Any:
    """Find the violation where every power of e is the factor."""
    return privacy.violation(weights, matrix, lambda exponent: factor)


@pytest.mark.parametrize(
    ("privacy", "limit"),
    [(PML(0.1), Fraction(3, 2)), (LDP(0.1), Fraction(3)), (LIP(0.1, 9.0), Fraction(2))],
)
def test_signs_of_violations_are_decided_in_whole_numbers(
    privacy: Requirement, limit: Fraction
) -> None:
    weights, matrix = np.array([1, 1], dtype=object), np.array([[3, 1], [1, 3]], dtype=object)
    for change, sign in ((-1, True), (0, False), (1, False)):
        found = find_violation(privacy, weights, matrix, limit + Fraction(change, 10**40))
        assert all(type(number) is int for number in found)
        assert (found > 0).all() == sign
        assert (found == 0).all() == (change == 0)
