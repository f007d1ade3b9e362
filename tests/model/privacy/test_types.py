"""What type checkers take requirements and utilities for: `mypy` fails where an `assert_type` is wrong."""

from __future__ import annotations

from typing import assert_type, get_args

import pytest

from pmlopt import LDP, PML, RenyiPML, design
from pmlopt.errors import UtilityError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import (
    LOSSES,
    WORKLOADS,
    Utility,
    UtilityName,
    as_utility,
    list_informations,
    match,
)
from pmlopt.model.utility.linear import ABBREVIATIONS


def test_conjunctions_are_requirements() -> None:
    both = PML(0.3) & LDP(0.5)
    assert_type(both, Requirement)
    assert_type(both & RenyiPML(2, 0.1), Requirement)
    assert_type(both.limits, dict[str, float])
    assert isinstance(both, Requirement)


def test_constructors_keep_their_class() -> None:
    assert_type(PML(0.3), PML)
    assert_type(RenyiPML(2, 0.3), RenyiPML)
    assert_type(PML(0.3).with_epsilon(0.2), PML)
    assert type(PML(0.3).with_epsilon(0.2)) is PML


def test_each_name_of_a_utility_is_one_and_each_of_pmlopt_is_listed() -> None:
    names = get_args(UtilityName)
    assert len(set(names)) == len(names)
    for name in names:
        assert isinstance(as_utility(name), Utility), name
    own = {
        name for name, kind in list_informations().items() if kind.__module__.startswith("pmlopt.")
    }
    workloads = {f"estimation-error:{name}" for name in WORKLOADS}
    wanted = {*LOSSES, match.__name__, "estimation-error", *own, *workloads, *ABBREVIATIONS}
    assert wanted <= set(names)
    assert {name.lower() for name in names} == wanted


def test_a_misspelled_name_is_an_error_for_the_checker_and_for_people() -> None:
    with pytest.raises(UtilityError, match="did you mean 'hamming'"):
        design([0.5, 0.5], PML(0.2), "haming")  # type: ignore[call-overload]
    read: str = "hamming"
    assert design([0.5, 0.5], PML(0.2), as_utility(read)).utility == as_utility("hamming")
