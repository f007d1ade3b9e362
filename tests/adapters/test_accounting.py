"""Privacy loss distributions of dp_accounting, against products of rows."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")

from pmlopt.adapters.accounting import hockey_stick_divergences, privacy_loss_distribution
from pmlopt.errors import InputError


def own_delta(matrix: np.ndarray, epsilon: float, times: int) -> float:
    """The least delta of several draws by enumeration of pairs of rows and of tuples of outcomes."""
    best = 0.0
    for one, other in product(matrix, repeat=2):
        tuples = product(range(len(one)), repeat=times)
        best = max(
            best,
            sum(
                max(
                    math.prod(one[y] for y in ys)
                    - math.exp(epsilon) * math.prod(other[y] for y in ys),
                    0.0,
                )
                for ys in tuples
            ),
        )
    return best


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("times", [1, 2, 3])
def test_it_is_never_below_the_enumeration_and_near_it(seed: int, times: int) -> None:
    matrix = np.random.default_rng(seed).dirichlet(np.full(3, 2.0), size=3)
    if seed == 4:
        matrix[0] = [0.0, 0.4, 0.6]  # an outcome that excludes a letter
    found = privacy_loss_distribution(matrix, 1e-3).self_compose(times)
    for epsilon in (0.0, 0.3, 1.0):
        true = own_delta(matrix, epsilon, times)
        stated = found.get_delta_for_epsilon(epsilon)
        # one pair dominates each draw here; several draws may be bounded by a mixture of pairs
        assert stated >= true - 1e-12
        if times == 1:
            assert stated <= true + 1e-3


def test_divergences_are_those_of_the_definition() -> None:
    matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    # at loss l the excess is 0.75 - 0.25 e^l until l = log 3
    losses = np.array([0.0, 0.5, math.log(3), 2.0])
    expected = np.maximum(0.75 - 0.25 * np.exp(losses), 0)
    assert np.allclose(hockey_stick_divergences(matrix, losses), expected, atol=1e-15)


def test_wrong_intervals_are_refused() -> None:
    for wrong in (0.0, -1.0, math.nan, 1e-12):
        with pytest.raises(InputError, match="interval"):
            privacy_loss_distribution([[0.75, 0.25], [0.25, 0.75]], wrong)
