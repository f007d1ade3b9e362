"""Envelopes under bounds on pairs of letters: closed forms, brute force, and exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pmlopt import LDP, PML, MetricPrivacy, Prior, RatioBound
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.programs.exact.envelope_repair import lower_envelope, pair_exponents, repair_by_envelope
from pmlopt.programs.exact.rounding import (
    polish_and_repair,
    repair_matrix,
    round_exp_down,
    scale_to_integers,
)


def draw_distances(rng: np.random.Generator, size: int) -> FloatArray:
    """Return the distances of points in the plane."""
    points = 3 * rng.random((size, 2))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.asarray(np.maximum(apart, apart.T))


def are_pairs_kept(matrix: FloatArray, exponents: FloatArray) -> bool:
    """Return whether `P[z,y] <= e^d[z,x] P[x,y]` in rationals, and rows sum to exactly one."""
    rows = [[Fraction(entry) for entry in row] for row in matrix.tolist()]
    size = len(rows)
    pairs = [(z, x) for z in range(size) for x in range(size) if np.isfinite(exponents[z, x])]
    kept = (
        above <= round_exp_down(float(exponents[z, x])) * below
        for z, x in pairs
        for above, below in zip(rows[z], rows[x], strict=True)
    )
    return all(sum(row) == 1 for row in rows) and all(kept)


def test_bounds_on_a_way_over_other_letters_are_found() -> None:
    line = RatioBound([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]], [0.5, 0.25])
    found = pair_exponents(Prior.uniform(3), line)
    assert found is not None
    assert found == pytest.approx(
        np.array([[0, 0.5, 0.75], [np.inf, 0, 0.25], [np.inf, np.inf, 0]]), abs=1e-15
    )


def test_a_bound_of_zero_nats_one_way_is_an_equality() -> None:
    """Rows with equal sums of which one is nowhere larger are the same."""
    tied = RatioBound([[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [0, 0, 1]], [0.0, 0.5])
    found = pair_exponents(Prior.uniform(3), tied)
    assert found is not None
    assert found[1, 0] == 0.0
    assert found[0, 2] == found[1, 2]


def test_bounds_by_the_mean_are_none_on_pairs_of_letters() -> None:
    assert pair_exponents(Prior.uniform(3), PML(0.5)) is None
    assert pair_exponents(Prior.uniform(3), LDP(0.5) & PML(0.4)) is None


def test_the_envelope_of_the_letters_themselves_is_exponential() -> None:
    """That of a column of one letter is `e^-d` to it: what is left is one constant, by symmetry."""
    apart = 1.0 - np.eye(4)
    assert lower_envelope(apart, np.eye(4)) == pytest.approx(np.exp(-apart), abs=1e-15)
    found = repair_by_envelope(Prior.uniform(4), apart, np.eye(4))
    assert found is not None
    # rows of ones and three times 1 / e over their sum: randomized response at one nat
    response = np.exp(-apart) / (1 + 3 * np.exp(-1))
    assert found.matrix == pytest.approx(response, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_repaired_matrices_keep_every_pair_in_rationals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 9))
    exponents = pair_exponents(
        Prior.uniform(size),
        MetricPrivacy(float(rng.choice([1e-9, 0.1, 1.0, 40.0])), draw_distances(rng, size)),
    )
    assert exponents is not None
    for matrix in (
        np.eye(size),
        rng.dirichlet(np.full(size, 0.3), size),
        rng.random((size, 2 * size)),
    ):
        found = repair_by_envelope(Prior.uniform(size), exponents, matrix)
        assert found is None or are_pairs_kept(found.matrix, exponents)
    nearly = np.exp(-exponents / 2) * (1 + 1e-9 * rng.random((size, size)))
    found = repair_by_envelope(Prior.uniform(size), exponents, nearly)
    assert found is not None
    assert are_pairs_kept(found.matrix, exponents)


def test_bounds_that_hold_one_way_are_kept_one_way() -> None:
    exponents = np.array([[0, 0.5, 0.75], [np.inf, 0, 0.25], [np.inf, np.inf, 0]])
    found = repair_by_envelope(Prior.uniform(3), exponents, np.eye(3), gains=np.eye(3))
    assert found is not None
    assert are_pairs_kept(found.matrix, exponents)
    # what the first letter has, the others must have a part of
    assert found.matrix[0, 0] > found.matrix[1, 0] > found.matrix[2, 0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_the_repair_of_an_iterate_keeps_more_than_a_mixture_does(seed: int) -> None:
    prior = Prior.uniform(6)
    requirement = MetricPrivacy(1.0, draw_distances(np.random.default_rng(seed), 6))
    exponents = pair_exponents(prior, requirement)
    assert exponents is not None
    gains = -exponents
    sharper = np.exp(-1.2 * exponents)
    matrix = sharper / sharper.sum(axis=1)[:, None]
    found = polish_and_repair(prior, requirement, matrix, gains=gains)
    mixed = repair_matrix(prior, requirement, matrix)
    assert requirement.holds(prior, found.matrix)
    assert are_pairs_kept(found.matrix, exponents)
    assert (gains * found.matrix).sum() > (gains * mixed.matrix).sum() + 0.01


@pytest.mark.parametrize("seed", [1, 2])
def test_floats_prove_repaired_pairs(seed: int) -> None:
    """The repair keeps every pair within its bound by more than floats round, so that no power is needed."""
    rng = np.random.default_rng(seed)
    size = 60
    distances = draw_distances(rng, size)
    prior, privacy = Prior.uniform(size), MetricPrivacy(1.0, distances)
    exponents = pair_exponents(prior, privacy)
    assert exponents is not None
    # one peak: each letter is at its bound with another one
    found = repair_by_envelope(prior, exponents, np.eye(size) + 1e-9)
    assert found is not None
    needed: list[float] = []

    def count_power(exponent: float) -> Fraction:
        """Return a rational below e^exponent, and count it."""
        needed.append(exponent)
        return round_exp_down(exponent)

    over = privacy.for_prior(prior).violation(
        prior.integer_weights, scale_to_integers(found.matrix), count_power
    )
    assert np.all(over <= 0)
    assert not needed
