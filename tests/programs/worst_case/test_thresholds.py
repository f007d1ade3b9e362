"""The parts of a search for the highest threshold: levels, ranks, utilities and the declared problem."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, Mechanism, Prior
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.worst_case.certificate import ThresholdCertificate, is_within_level
from pmlopt.programs.worst_case.methods import _build_certificate
from pmlopt.programs.worst_case.program import best_guaranteed_utility, best_worst_case


def test_likelihood_ratios_of_two_are_within_log_two_and_not_within_less() -> None:
    """As a float it is below the logarithm."""
    given: Any = SimpleNamespace(
        prior=Prior([0.5, 0.5]), mechanism=Mechanism(np.eye(2)), privacy=PML(9.0)
    )
    assert is_within_level(given, math.log(2))
    assert not is_within_level(given, math.log(2) - 1e-14)


@pytest.mark.parametrize("utilities", [None, np.array([-3.0, -1.0, 4.0])])
def test_a_certificate_has_the_utilities_of_its_ranks(utilities: FloatArray | None) -> None:
    program: Any = SimpleNamespace(utilities=utilities, epsilon=0.5, order=np.ones((2, 3)))
    kept: Any = SimpleNamespace(mechanism=Mechanism(np.full((2, 3), 1 / 3)))
    found: ThresholdCertificate = _build_certificate(program, 2, 3, kept, None)
    assert (found.value, found.bound) == ((2.0, 3.0) if utilities is None else (-1.0, 4.0))
    assert (found.threshold, found.max_possible_rank) == (2, 3)


def test_losses_have_ranks_from_one_and_no_loss_is_no_negative_zero() -> None:
    program = best_guaranteed_utility([0.5, 0.5], ExpectedLoss([[0.0, 2.0], [1.0, 0.0]]), 0.5)
    assert program.order.tolist() == [[3.0, 1.0], [2.0, 3.0]]
    assert program.utilities is not None
    assert program.utilities.tolist() == [2.0, 1.0, 0.0]
    assert not np.signbit(program.utilities).any()


def test_the_declared_problem_emits_nothing_below_the_threshold_that_it_keeps() -> None:
    program = best_worst_case([0.5, 0.5], [[1, 2, 3], [3, 1, 2]], 2.0)
    ranks = program.constraints
    for kept, matrix, allowed in (
        ([1, 0, 0], [[0, 0.5, 0.5], [0.5, 0, 0.5]], True),
        ([1, 0, 0], [[0.5, 0.5, 0], [0.5, 0, 0.5]], False),
        ([1, 1, 0], [[0, 0.5, 0.5], [1, 0, 0]], False),
        ([1, 1, 0], [[0, 0, 1], [1, 0, 0]], True),
    ):
        program.variables["mechanism"].value = np.array(matrix, dtype=float)
        program.variables["kept"].value = np.array(kept, dtype=float)
        assert bool(ranks["ranks"].value()) is allowed
        assert ranks["none_above"].value()
        assert ranks["falling"].value()
        assert float(program.problem.objective.value) == 1 + sum(kept)
    program.variables["kept"].value = np.ones(3)
    assert not ranks["none_above"].value()
