"""Claims: the gap is what lies between value and bound."""

from __future__ import annotations

import dataclasses

import pytest

from pmlopt import PML, ExpectedGain, ExpectedLoss, design, solve
from pmlopt.model.utility import LinearUtility, hamming
from pmlopt.programs.claims import gap_claim


@pytest.mark.parametrize("utility", [ExpectedGain([[1.0, 0.0], [0.0, 1.0]]), ExpectedLoss(hamming)])
def test_a_value_beyond_its_bound_by_more_than_rounding_is_found(utility: LinearUtility) -> None:
    certificate = solve(design([0.5, 0.5], PML(0.3), utility)).certificate
    sign = 1.0 if utility.maximised else -1.0
    for beyond, rounding, holds in (
        (0.0, 0.0, True), (-1.0, 0.0, True), (2.0**-40, 0.0, False), (2.0**-40, 2.0**-40, True),
        (2.0**-39, 2.0**-40, False),
    ):  # fmt: skip
        moved = dataclasses.replace(certificate, value=0.5 + sign * beyond, bound=0.5)
        assert gap_claim(moved, rounding, utility.maximised).holds == holds
