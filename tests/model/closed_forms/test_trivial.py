"""The two ends of every trade-off, and the table of closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, pairs

from pmlopt import (
    LDP,
    LIP,
    PML,
    AllPriors,
    ApproximatePML,
    L1Ball,
    MaximalLeakage,
    MinimumMass,
    Prior,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.measures import ldp_level, leakage_level, maximal_leakage, mutual_information
from pmlopt.model.closed_forms import constant, deterministic
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS, build_closed_forms
from pmlopt.model.privacy import Requirement


def value(prior: FloatArray, matrix: FloatArray, gains: FloatArray) -> float:
    return math.fsum((prior[:, None] * matrix * gains).ravel())


@given(pairs(), st.data())
@MODEST
def test_constant_leaks_nothing_and_nothing_gains_more_than_deterministic(
    pair: tuple[FloatArray, FloatArray], data: st.DataObject
) -> None:
    prior, matrix = pair
    cells = st.lists(st.floats(-100, 100), min_size=matrix.size, max_size=matrix.size)
    gains = np.array(data.draw(cells)).reshape(matrix.shape)
    still, best = constant(prior, gains), deterministic(prior, gains)
    assert sorted(still.matrix.sum(axis=0).tolist())[-1] == len(prior)
    assert leakage_level(prior, still) == ldp_level(still) == maximal_leakage(still) == 0.0
    assert mutual_information(prior, still) == 0.0
    same = np.tile(matrix[:1], (len(prior), 1))  # another mechanism without leakage
    assert value(prior, same, gains) <= value(prior, still.matrix, gains) + 1e-11
    assert (np.sort(best.matrix, axis=1)[:, -1] == 1).all()
    assert value(prior, matrix, gains) <= value(prior, best.matrix, gains) + 1e-11


def test_the_first_of_equals_is_taken() -> None:
    assert constant([0.5, 0.5], np.eye(2)).matrix.tolist() == [[1.0, 0.0], [1.0, 0.0]]
    assert deterministic([0.5, 0.5], np.ones((2, 3))).matrix.tolist() == [[1.0, 0.0, 0.0]] * 2


def test_the_inputs_are_the_letters_of_the_prior_and_gains_must_fit() -> None:
    prior = Prior([0.5, 0.5], ["a", "b"])
    for form in (constant, deterministic):
        assert form(prior, np.eye(2)).inputs == ("a", "b")
        refused(UtilityError, form, "1 rows for 2 letters", (prior, [[1.0, 0.0]]))
        refused(UtilityError, form, "2 dimension", (prior, [1.0, 0.0]))
        refused(
            UtilityError, form, "nan at row 0, column 0", (prior, [[math.nan, 0.0], [0.0, 1.0]])
        )
        refused(UtilityError, form, "numbers", (prior, [["a", "b"], ["c", "d"]]))


SKEWED, EVEN, PAIR = Prior([0.5, 0.3, 0.2]), Prior.uniform(4), Prior([0.6, 0.4])


@pytest.mark.parametrize(
    ("prior", "privacy", "names"),
    [
        (PAIR, PML(0.3), ["binary", "high_privacy"]), (PAIR, PML(0.8), ["binary"]),
        (SKEWED, PML(0.2), ["high_privacy"]), (SKEWED, PML(0.5), []), (EVEN, PML(0.5), ["uniform"]),
        (EVEN, MaximalLeakage(0.5), ["uniform"]), (SKEWED, MaximalLeakage(0.5), []),
        (SKEWED, LDP(0.5), ["randomized_response"]), (SKEWED, LIP(0.5, 0.5), []),
        (SKEWED, ApproximatePML(0.5, 0.1), []),
        (SKEWED, PML(0.5, over=AllPriors(3)), ["randomized_response"]),
        (SKEWED, PML(0.5, over=MinimumMass(3, 0.1)), []),
        (EVEN, PML(0.5, over=MinimumMass(4, 0.1)), ["robust_randomized_response"]),
        (EVEN, PML(0.5, over=L1Ball(EVEN, 0.1)), ["robust_randomized_response"]),
        (EVEN, PML(0.5, over=L1Ball(Prior([0.4, 0.2, 0.2, 0.2]), 0.1)), []),
        (SKEWED, PML(0.2, over=L1Ball(SKEWED, 0.0)), ["high_privacy"]),
        (PAIR, PML(0.3, over=L1Ball(PAIR, 0.2)), ["robust_binary"]),
        (PAIR, PML(0.3, over=AllPriors(2)), ["robust_binary", "randomized_response"]),
    ],
)  # fmt: skip
def test_candidates_meet_the_requirement(
    prior: Prior, privacy: Requirement, names: list[str]
) -> None:
    found = dict(build_closed_forms(prior, privacy))
    assert list(found) == names
    for form in found.values():
        assert privacy.level(prior, form) <= max(privacy.limits.values()) + 1e-12


def test_randomized_response_has_the_ldp_level_that_the_requirement_allows() -> None:
    gains = np.zeros((3, 1))
    for privacy, epsilon in (
        (LDP(0.5), 0.5),
        (PML(0.5, over=AllPriors(3)), 0.5),
        (PML(0.5), -math.log((math.exp(-0.5) - 0.2) / 0.8)),  # [song2026worstcase, Proposition 1]
    ):
        matrix = CLOSED_FORMS["randomized_response"](SKEWED, privacy, gains).matrix
        assert math.log(matrix[0, 0] / matrix[1, 0]) == pytest.approx(epsilon, abs=1e-12)
