"""The search for a least leakage by the best value within each level."""

from __future__ import annotations

import numpy as np
import pytest

from pmlopt import ExpectedLoss, least_leakage, solve


def test_it_finds_the_level_of_the_linear_programs() -> None:
    loss = ExpectedLoss(np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))))
    program = least_leakage([0.5, 0.3, 0.2], loss, expected=0.2)
    inverted, searched = solve(program, "inversion"), solve(program, "level-search")
    assert inverted.value == pytest.approx(searched.value, abs=1e-6)
    assert inverted.bound == pytest.approx(searched.bound, abs=1e-6)
    assert inverted.certificate.verify()
