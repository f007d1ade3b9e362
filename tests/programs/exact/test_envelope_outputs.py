"""The output that takes what envelopes leave, and rows on a coarse grid, by their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pmlopt import Prior
from pmlopt.programs.exact import envelope_repair
from pmlopt.programs.exact.envelope_repair import lower_envelope, repair_by_envelope

PRIOR = Prior([0.5, 0.3, 0.2])
EXPONENTS = np.array([[0.0, 0.6, 1.1], [0.4, 0.0, 0.5], [0.9, 0.7, 0.0]])


@pytest.mark.parametrize("seed", range(6))
def test_the_output_that_takes_the_rest_is_the_one_of_the_largest_gain(seed: int) -> None:
    """Each output by hand: with the least constant that puts it within the bounds on pairs."""
    random = np.random.default_rng(seed)
    matrix, gains = random.dirichlet(np.ones(3), 3), random.random((3, 3))
    envelope = lower_envelope(EXPONENTS, matrix)
    sums, factors = envelope.sum(axis=1), np.exp(-EXPONENTS)
    tried = []
    for y in range(3):
        column = envelope[:, y] + sums.max() - sums
        constant = max(
            [0.0]
            + [
                (factors[z, x] * column[z] - column[x]) / (1 - factors[z, x])
                for z in range(3)
                for x in range(3)
                if z != x
            ]
        )
        mended = envelope.copy()
        mended[:, y] = column + constant
        total = sums.max() + constant
        gain = float(PRIOR.pmf @ (gains * mended).sum(axis=1)) / total
        tried.append((gain, constant / total, mended / total))
    _, theta, expected = max(tried, key=lambda one: one[0])
    found = repair_by_envelope(PRIOR, EXPONENTS, matrix, gains)
    assert found is not None
    assert found.matrix == pytest.approx(expected, abs=1e-12)
    assert found.theta == pytest.approx(theta, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_on_a_coarse_grid_pairs_are_within_their_bounds_and_rows_whole(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """With a share for the one output that is no larger than a few units of the grid."""
    grid, matrix = 1024, np.random.default_rng(seed).dirichlet(np.ones(4), 3)
    fine = repair_by_envelope(PRIOR, EXPONENTS, matrix)
    monkeypatch.setattr(envelope_repair, "GRID_DENOMINATOR", grid)
    found = repair_by_envelope(PRIOR, EXPONENTS, matrix)
    assert fine is not None
    assert found is not None
    whole = found.matrix * grid
    assert (whole == np.round(whole)).all()
    assert (whole.sum(axis=1) == grid).all()
    assert whole.min() >= 0
    for z in range(3):
        for x in range(3):
            least = math.exp(-EXPONENTS[z, x]) * (1 + 2.0**-46)
            assert z == x or (whole[x] >= least * whole[z]).all()
    assert 15.99 / grid <= found.theta - fine.theta <= 64 / grid


def test_the_share_of_the_one_output_grows_by_what_it_lacked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Units of a grid of 1,024: 8 of two outputs, and then what was missing, six below zero and one."""
    monkeypatch.setattr(envelope_repair, "GRID_DENOMINATOR", 1024)
    wholes, missing = [np.array([[1030.0, 0.0], [1000.0, 24.0]])], [3.0]
    monkeypatch.setattr(
        envelope_repair,
        "_raise_to_feasible_integers",
        lambda factors, whole: wholes.pop() if wholes else whole,
    )
    monkeypatch.setattr(
        envelope_repair,
        "_compute_missing_integer",
        lambda factors, last: missing.pop() if missing else 0.0,
    )
    found = envelope_repair._round_to_grid(np.ones((2, 2)), np.full((2, 2), 0.5), 1)
    assert found is not None
    assert found.theta == pytest.approx((8 + 2 * (3 + 6 + 1)) / 1024)
