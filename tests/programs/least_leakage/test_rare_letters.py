"""Least leakages beside letters that no float shows beside 1."""

from __future__ import annotations

import pytest

from pmlopt import ExpectedGain, least_leakage, solve


@pytest.mark.parametrize("rare", [1e-17, 1e-30, 1e-300])
def test_what_a_constant_reaches_leaks_nothing(rare: float) -> None:
    program = least_leakage([1.0, rare], ExpectedGain([[1.0, 0.0], [0.0, 1.0]]), expected=1.0)
    result = solve(program)
    assert result.value == 0.0
    assert result.certificate.verify()


def test_a_constant_that_is_best_for_all_letters_leaks_nothing() -> None:
    gains = [[-1.0, -2.0], [-3.0, -3.0]]  # for the second letter both outputs are
    assert solve(least_leakage([1.0, 1e-48], ExpectedGain(gains), expected=-1.0)).value == 0.0
