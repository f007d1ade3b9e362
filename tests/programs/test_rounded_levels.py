"""Levels that are rounded up by what rounding may have taken off."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from pmlopt.programs.certificate import RequirementCertificate


@pytest.mark.parametrize("proved", [False, True])
def test_levels_are_rounded_up_by_the_share_of_their_size_or_of_one(proved: bool) -> None:
    """A level next to zero may hide twice the share; where the claim is exact, none is above its limit."""
    measured = {"low": -0.2, "near": 0.005, "some": 0.3, "large": 5.0, "none": math.inf}
    limits = {name: 4.0 if name == "large" else math.inf for name in measured}
    proof: Any = SimpleNamespace(
        float_levels=(measured, 0.01), privacy=SimpleNamespace(limits=limits), _meets_requirement=proved
    )  # fmt: skip
    getter: Any = RequirementCertificate.levels.func  # type: ignore[attr-defined]
    expected = {"low": -0.19, "near": 0.02, "some": 0.31, "large": 5.05, "none": math.inf}
    if proved:
        expected["large"] = 4.0
    assert getter(proof) == pytest.approx(expected)
