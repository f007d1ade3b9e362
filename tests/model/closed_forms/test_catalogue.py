"""The table of closed forms: candidates meet their requirement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt import LDP, LIP, PML, AllPriors, ApproximatePML, L1Ball, MaximalLeakage, MinimumMass, Prior
from pmlopt.model.closed_forms.catalogue import CLOSED_FORMS, forms
from pmlopt.model.privacy import Requirement

SKEWED, EVEN, PAIR = Prior([0.5, 0.3, 0.2]), Prior.uniform(4), Prior([0.6, 0.4])


@pytest.mark.parametrize(
    ("prior", "privacy", "names"),
    [
        (PAIR, PML(0.3), ["binary", "high_privacy"]),
        (PAIR, PML(0.8), ["binary"]),
        (SKEWED, PML(0.2), ["high_privacy"]),
        (SKEWED, PML(0.5), []),
        (EVEN, PML(0.5), ["uniform"]),
        (EVEN, MaximalLeakage(0.5), ["uniform"]),
        (SKEWED, MaximalLeakage(0.5), []),
        (SKEWED, LDP(0.5), ["randomized_response"]),
        (SKEWED, LIP(0.5, 0.5), []),
        (SKEWED, ApproximatePML(0.5, 0.1), []),
        (SKEWED, PML(0.5, over=AllPriors(3)), ["randomized_response"]),
        (SKEWED, PML(0.5, over=MinimumMass(3, 0.1)), []),
        (SKEWED, PML(0.2, over=L1Ball(SKEWED, 0.0)), ["high_privacy"]),
        (PAIR, PML(0.3, over=L1Ball(PAIR, 0.2)), ["robust_binary"]),
        (PAIR, PML(0.3, over=AllPriors(2)), ["robust_binary", "randomized_response"]),
    ],
)
def test_candidates_meet_the_requirement(prior: Prior, privacy: Requirement, names: list[str]) -> None:
    found = dict(forms(prior, privacy))
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
