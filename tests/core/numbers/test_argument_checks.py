"""Checks of arguments that many functions share: what they refuse, and that each error names the value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from pmlopt import LDP, PMC, MaximalLeakage
from pmlopt.core.numbers.argument_checks import (
    check_all_nonnegative,
    check_choice,
    check_one_for_each,
    check_same_letters,
)
from pmlopt.core.numbers.arrays import check_in_interval
from pmlopt.core.numbers.distances import check_distances
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.privacy import GuessLeakage, Requirement


def test_a_name_that_is_not_known_is_refused_with_those_that_are() -> None:
    check_choice("ml", ("ml", "linear"), "the method", PriorError)
    with pytest.raises(PriorError, match="the method 'x' is not known: use ml, linear, or a table"):
        check_choice("x", ("ml", "linear"), "the method", PriorError, ", or a table")


@pytest.mark.parametrize("count", [2, 4])
def test_more_or_fewer_things_than_owners_are_refused(count: int) -> None:
    check_one_for_each("there are", 3, "weights", 3, "people", PriorError)
    with pytest.raises(PriorError, match=f"there are {count} weights for 3 people: give one"):
        check_one_for_each("there are", count, "weights", 3, "people", PriorError)


def test_arguments_on_other_numbers_of_letters_are_refused() -> None:
    check_same_letters(3, "the gains are", 3, "the prior", PriorError)
    with pytest.raises(PriorError, match="the gains are on 2 letters, and the prior on 3"):
        check_same_letters(2, "the gains are", 3, "the prior", PriorError)


def test_the_least_entry_below_zero_is_named() -> None:
    check_all_nonnegative([[0.0, 2.0]], "the gains", PriorError)
    with pytest.raises(PriorError, match=r"the gains have the negative entry -2: give"):
        check_all_nonnegative([[-1.0, -2.0]], "the gains", PriorError)


def test_an_interval_may_have_no_upper_end() -> None:
    assert check_in_interval(1e300, "[0, inf)", "the scale", PrivacyError) == 1e300
    for value in (-1e-300, math.inf):
        with pytest.raises(PrivacyError, match="the scale"):
            check_in_interval(value, "[0, inf)", "the scale", PrivacyError)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([[0, -1], [-1, 0]], "of the letters at 0 and 1 is -1"),
        ([[0, 1], [2, 0]], "back"),
        ([[1, 2], [2, 0]], "the distance 1 from itself"),
    ],
)
def test_what_is_no_distance_is_refused(entries: list[list[float]], words: str) -> None:
    assert check_distances(np.array([[0.0, np.inf], [np.inf, 0.0]]), PrivacyError)[0, 1] == np.inf
    with pytest.raises(PrivacyError, match=words):
        check_distances(np.array(entries, dtype=float), PrivacyError)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LDP(-1.0), "epsilon must be at least 0"),
        (lambda: PMC(701), "epsilon 701.0 is past 700 nats"),
        (lambda: MaximalLeakage("1"), "epsilon must be a number"),  # type: ignore[arg-type]
        (lambda: GuessLeakage(1.5, 1.0), "guesses must be a whole number"),  # type: ignore[arg-type]
    ],
)
def test_fields_of_requirements_are_within_the_declared_range(
    make: Callable[[], Requirement], words: str
) -> None:
    with pytest.raises(PrivacyError, match=words):
        make()
    assert LDP(700).epsilon == 700.0
    assert type(MaximalLeakage(1).epsilon) is float
