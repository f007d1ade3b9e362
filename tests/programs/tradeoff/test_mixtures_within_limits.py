"""Mixtures of mechanisms that meet a limit exactly: distortion is linear, and leakage is convex."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff.build_certificate import mix_within_leakage
from pmlopt.programs.tradeoff.program import combine_convexly


def test_a_mixture_uses_the_limit_on_the_distortion_up() -> None:
    program = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
    uniform = np.full(program.losses.shape, 1 / program.losses.shape[1])
    assert program.tradeoff.compute_distortion(uniform) > 0.2
    mixed = program.repair_matrix(uniform)
    assert mixed.sum(axis=1) == pytest.approx(np.ones(len(mixed)))
    spent = program.tradeoff.compute_distortion(mixed)
    assert spent == pytest.approx(0.2, abs=1e-9)
    assert spent <= 0.2
    within = combine_convexly(uniform, program.least_distortion_matrix, 0.9)
    assert program.repair_matrix(within) == pytest.approx(within)


@pytest.mark.parametrize(("aim", "kept"), [(0.1, 0.25), (0.3, 0.75), (0.4, 1.0)])
def test_a_mixture_with_a_constant_keeps_the_share_of_the_leakage_that_is_aimed_at(
    aim: float, kept: float
) -> None:
    program = distortion_leakage(ModularSum(2, 3), 0.2, 0.7)
    audit: Any = SimpleNamespace(bound=0.4)
    matrix = program.least_distortion_matrix
    found = mix_within_leakage(program, matrix, audit, aim)
    assert found == pytest.approx(kept * matrix + (1 - kept) * program.constant_matrix)
