"""Each requirement is one thing in several forms: number, constraint, exact excess, support function."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import designs as oracles

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    ApproximatePML,
    GuessLeakage,
    MaximalAlphaLeakage,
    MaximalLeakage,
    Mechanism,
    MutualInformation,
    Prior,
    RenyiPML,
    SibsonLeakage,
    design,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.arithmetic import integers, power_below

ROUNDING = 1e-13
"""Violations by rounding are below this; those of the matrices built just outside are above."""

MARGIN = 2.0**-39
"""The constraints on a variable may be stricter than the claim by 2^-40, far below any solver's tolerance."""

kinds = pytest.mark.parametrize("kind", oracles.KINDS)


def one_limit_moved(kind: str, levels: dict[str, float], factor: float) -> list[Requirement]:
    """The requirements whose limits are the levels, with one of them multiplied by the factor."""
    if kind != "lip":
        return [oracles.requirement_at(kind, levels, factor)]
    lower, upper = levels["lip_lower"], levels["lip_upper"]
    return [LIP(lower * factor, upper + 1), LIP(lower + 1, upper * factor)]


@kinds
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases())
def test_constraint_and_number_agree_just_inside_and_outside(kind: str, case: oracles.Case) -> None:
    levels = oracles.levels_of(kind, case.prior, case.matrix)
    requirement = oracles.requirement_at(kind, levels, 1.0)
    found = requirement.levels(case.prior, case.matrix)
    assert requirement.name == kind
    assert requirement.limits == levels
    assert list(found) == list(levels)
    assert list(found.values()) == pytest.approx(list(levels.values()), rel=1e-12, abs=1e-14)
    assert requirement.level(case.prior, case.matrix) == max(found.values())
    assume(min(levels.values()) > 1e-2)
    for inside in one_limit_moved(kind, levels, 1 + 1e-6):
        assert inside.holds(case.prior, case.matrix)
        assert np.all(inside.excess(case.prior.pmf, case.matrix, math.exp) <= 0)
        assert oracles.violation(case.prior, inside, case.matrix) <= ROUNDING
    for outside in one_limit_moved(kind, levels, 1 - 1e-6):
        assert not outside.holds(case.prior, case.matrix)
        assert not np.all(outside.excess(case.prior.pmf, case.matrix, math.exp) <= 0)
        assert oracles.violation(case.prior, outside, case.matrix) > ROUNDING


@pytest.mark.parametrize("kind", ["pml", "maximal-leakage"])
@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), zeros=st.integers(0, 2**32 - 1))
def test_zeros_and_unused_outputs_change_nothing(kind: str, case: oracles.Case, zeros: int) -> None:
    matrix = case.matrix * (np.random.default_rng(zeros).random(case.matrix.shape) < 0.6)
    assume(bool((matrix.sum(axis=1) > 0).all()))
    matrix = np.hstack([matrix / matrix.sum(axis=1, keepdims=True), np.zeros((len(matrix), 1))])
    used = matrix[:, matrix.max(axis=0) > 0]
    peaks = used.max(axis=0)
    level = np.log(peaks / (case.prior.pmf @ used)).max() if kind == "pml" else np.log(peaks.sum())
    assume(level > 1e-2)
    for factor in (1 + 1e-3, 1 - 1e-3):
        requirement = oracles.requirement_at(kind, {kind: float(level)}, factor)
        assert requirement.holds(case.prior, matrix) is (factor > 1)
        assert (oracles.violation(case.prior, requirement, matrix) <= len(matrix) * MARGIN) is (factor > 1)


@pytest.mark.parametrize("requirement", [LDP(30.0), LIP(30.0, 30.0)])
def test_an_excluded_letter_breaks_every_bound_from_below(requirement: Requirement) -> None:
    matrix = np.array([[0.0, 1.0], [0.5, 0.5]])
    assert not requirement.holds([0.5, 0.5], matrix)
    assert max(requirement.levels([0.5, 0.5], matrix).values()) == math.inf
    assert oracles.violation(Prior([0.5, 0.5]), requirement, matrix) > 0


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases(), epsilon=st.floats(0.0, 3.0))
def test_relaxation_of_maximal_leakage_is_the_joint_linear_program(
    case: oracles.Case, epsilon: float
) -> None:
    privacy, p = MaximalLeakage(epsilon), case.prior.pmf
    expected = oracles.joint_support(p, privacy, case.gains, with_mass=False)
    relaxed = privacy.relaxation(case.prior, case.gains)
    assert relaxed == pytest.approx(expected, abs=1e-7)
    assert relaxed >= oracles.joint_support(p, privacy, case.gains) - 1e-7


IMPOSSIBLE = [-1e-9, -1, math.nan, math.inf, -math.inf, "half", None, [1.0, -2.0]]
MADE: dict[str, Callable[[Any], Requirement]] = {
    **{kind: partial(oracles.bounded, kind) for kind in oracles.KINDS},
    "lip upper": lambda bad: LIP(1.0, bad),
    "approximate": lambda bad: ApproximatePML(bad, 0.1),
    "guesses": lambda bad: GuessLeakage(1, bad),
    **{of.name: partial(of, 2.0) for of in (RenyiPML, SibsonLeakage, MaximalAlphaLeakage)},
}
"""Each of its bound in nats."""

OTHERS: list[tuple[Callable[[Any], Requirement], list[Any]]] = [
    (lambda bad: ApproximatePML(0.5, bad), [0, 1, -0.1, 1.1, math.nan, math.inf, "half", None, [0.1], True]),
    (lambda bad: GuessLeakage(bad, 0.1), [0, 1.5, -1, math.nan, "two", None]),
    *((lambda bad, of=of: of(bad, 0.3), [1, 0.5, -2, math.inf, math.nan, "two", None])
      for of in (RenyiPML, SibsonLeakage, MaximalAlphaLeakage)),
]  # fmt: skip


@pytest.mark.parametrize("kind", MADE)
def test_impossible_bounds_are_refused(kind: str) -> None:
    for bad in IMPOSSIBLE:
        with pytest.raises(PrivacyError):
            MADE[kind](bad)


def test_impossible_orders_slacks_guesses_and_exponents_are_refused() -> None:
    for make, every in OTHERS:
        for bad in every:
            with pytest.raises(PrivacyError):
                make(bad)
    for of in (LDP, lambda e: LIP(e, 1.0), lambda e: LIP(1.0, e)):
        of(700)
        with pytest.raises(PrivacyError, match="700"):
            of(700.1)


@pytest.mark.parametrize(
    "privacy",
    [
        RenyiPML(2, 0.5), RenyiPML(2, 0.5, over=AllPriors(2)), SibsonLeakage(2, 0.5),
        MaximalAlphaLeakage(2, 0.5), GuessLeakage(1, 0.5), MaximalLeakage(0.5), ApproximatePML(0.5, 0.1),
        ApproximatePML(0.5, 0.1) & PML(0.5),
    ],
    ids=str,
)  # fmt: skip
def test_without_extreme_columns_sub_convex_utilities_are_refused(privacy: Requirement) -> None:
    with pytest.raises(PrivacyError, match="sub-convex"):
        design([0.5, 0.5], privacy, MutualInformation())


@pytest.mark.parametrize("of", [PML, lambda epsilon: ApproximatePML(epsilon, 1e-12)])
@pytest.mark.parametrize("epsilon", [math.log(10) + 1e-9, 50.0, 800.0])
def test_past_the_largest_leakage_nothing_binds(of: Callable[[float], Requirement], epsilon: float) -> None:
    prior, requirement = Prior.from_counts([1, 9]), of(epsilon)
    exactly = requirement.excess(np.array(prior.weights, dtype=object), integers(np.eye(2)), power_below)
    assert requirement.holds(prior, Mechanism(np.eye(2)))
    assert oracles.violation(prior, requirement, np.eye(2)) <= MARGIN
    assert np.all(exactly <= 0)
