"""Perfect privacy in floats: equations with whole coefficients, met exactly near what a solver leaves."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.ratio_bounds import best_gain, pairs_of
from scipy.optimize import linprog

from pmlopt import PML, ExpectedGain, MutualInformation, Pufferfish, Secret, design, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.programs.exact.repair import _basis, perfected


def by_simplex(secret: Secret, gains: Any) -> Any:
    """(N, M) the best mechanism that tells nothing of the secret, up to a solver's tolerance."""
    n, m = gains.shape
    told = secret.conditionals - secret.prior.pmf
    answer = linprog(
        -(secret.prior.pmf[:, None] * gains).ravel(),
        A_eq=np.vstack([np.kron(told, np.eye(m)), np.kron(np.eye(n), np.ones(m))]),
        b_eq=np.append(np.zeros(len(told) * m), np.ones(n)),
    )
    assert answer.status == 0
    return answer.x.reshape(n, m)


@given(seed=st.integers(0, 10**6), values=st.integers(2, 3), letters=st.integers(3, 7))
@settings(max_examples=25)
def test_the_equations_hold_in_fractions_next_to_a_vertex(seed: int, values: int, letters: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 60, (values, letters))
    secret = Secret.from_counts(counts)
    near = by_simplex(secret, rng.random((letters, 3)))
    near = np.where(near > 1e-9, near, 0.0)
    exact = perfected(secret.prior, PML(0.0, about=secret), near)
    assert exact is not None
    assert np.abs(exact - near).max() < 1e-6
    rows = [[Fraction(v) for v in row] for row in exact.tolist()]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    totals = counts.sum(axis=1).tolist()
    for y in range(3):
        told = {
            sum(Fraction(int(c)) * row[y] for c, row in zip(counts[s], rows, strict=True)) / totals[s]
            for s in range(values)
        }
        assert len(told) == 1  # each value of the secret gives the outcome the same probability


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["about", "pufferfish", "beside the data"])
def test_designs_of_zero_nats_from_counts_are_optimal(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    secret = Secret.from_counts(rng.integers(1, 100, (2, 5)))
    requirement = {
        "about": PML(0.0, about=secret),
        "pufferfish": Pufferfish(0.0, secret),
        "beside the data": PML(0.0, about=secret) & PML(0.5),
    }[kind]
    gains = rng.normal(size=(5, 4))
    result = solve(design(secret.prior, requirement, ExpectedGain(gains), 4))
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    best = best_gain(secret.prior.pmf, pairs_of(requirement, secret.prior), gains)
    assert result.value == pytest.approx(best, abs=2e-7)
    told = solve(design(secret.prior, requirement, MutualInformation()))
    assert told.status.value == "optimal"
    assert told.certificate.verify()


def test_without_such_equations_or_with_large_coefficients_there_is_none() -> None:
    counted = Secret.from_counts([[1, 2, 3], [3, 1, 1]])
    still = np.full((3, 2), 0.5)
    assert perfected(counted.prior, PML(0.1, about=counted), still) is None
    assert perfected(counted.prior, PML(1.0), still) is None
    floats = Secret(np.random.default_rng(1).dirichlet(np.ones(6)).reshape(2, 3))
    assert perfected(floats.prior, PML(0.0, about=floats), still) is None


def test_units_are_used_up_to_the_largest_and_no_further() -> None:
    found = _basis([[2**33, -1]], (0, 1))
    assert found is not None
    assert (*found[:2], found[2].tolist()) == ([1], [2**33], [[1], [2**33]])
    assert _basis([[2**33 + 1, -1]], (0, 1)) is None


def level_in_fractions(secret: Secret, matrix: FloatArray) -> float:
    """The largest `P(y | s) / P(y)`, less one, of the numbers of a joint law in floats."""
    joint = [[Fraction(v) for v in row] for row in secret.joint[0].tolist()]
    columns = [[Fraction(v) for v in column] for column in matrix.T.tolist() if any(column)]
    law = [sum(column) for column in zip(*joint, strict=True)]
    above = Fraction(0)
    for column in columns:
        mean = sum(p * v for p, v in zip(law, column, strict=True)) / sum(law)
        for row in joint:
            given_s = sum(p * v for p, v in zip(row, column, strict=True)) / sum(row)
            above = max(above, given_s / mean - 1)
    return float(above)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("epsilon", [0.0, 1e-16])
def test_about_a_joint_law_in_floats_the_best_in_hand_is_returned_with_its_level(
    rank: int, epsilon: float
) -> None:
    rng = np.random.default_rng(rank)
    laws = rng.dirichlet(np.ones(4), 2) if rank == 2 else np.tile(rng.dirichlet(np.ones(4)), (2, 1))
    secret = Secret(rng.dirichlet(np.ones(3))[:, None] * (rng.dirichlet(np.ones(2), 3) @ laws))
    gains = ExpectedGain(rng.random((4, 4)))
    near, held = (solve(design(secret.prior, PML(level, about=secret), gains)) for level in (1e-9, epsilon))
    assert held.value == pytest.approx(near.value, abs=1e-7)
    assert held.status.value == ("unproved" if held.level > epsilon else "optimal")
    assert level_in_fractions(secret, held.mechanism.matrix) <= held.level <= 2e-14
    assert held.certificate.verify()


def test_a_result_that_floats_hold_back_says_what_to_do() -> None:
    rng = np.random.default_rng(2)
    secret, gains = Secret(rng.dirichlet(np.ones(10)).reshape(2, 5)), ExpectedGain(rng.normal(size=(5, 3)))
    held = solve(design(secret.prior, PML(0.0, about=secret), gains))
    assert held.status.value == "unproved"
    assert 0 < held.level < 2e-14
    assert f"{held.level:.2g} nats" in held.reason
    assert "Secret.from_counts" in held.reason
    near = solve(design(secret.prior, PML(1e-9, about=secret), gains))
    assert near.status.value == "optimal"
    assert near.value == pytest.approx(held.bound, abs=1e-7)
    assert "Secret.from_counts" not in near.reason
