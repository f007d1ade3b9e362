"""What is told of a secret, against sums over the joint law in fractions and the requirement."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pmlopt import PML, Mechanism, Secret, leakage_level, pointwise_leakage
from pmlopt.errors import MechanismError
from pmlopt.measures import secret_witness


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_definition_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, (3, 4)) + np.eye(3, 4, dtype=int) + (np.arange(4) == 3)
    matrix = rng.integers(0, 6, (4, 5)) / 64
    matrix[:, 0] += 1 - matrix.sum(axis=1)
    secret, total = Secret.from_counts(counts), int(counts.sum())
    expected = {}
    for y, column in enumerate(matrix.T):
        v = [Fraction(entry) for entry in column.tolist()]
        mean = sum(
            (Fraction(int(n), total) * e for n, e in zip(counts.sum(axis=0), v, strict=True)), Fraction(0)
        )
        for s, row in enumerate(counts.tolist()):
            given = sum((Fraction(n, sum(row)) * e for n, e in zip(row, v, strict=True)), Fraction(0))
            expected[s, y] = -math.inf if given == 0 else math.log(given / mean)
    of_outcomes = [max(expected[s, y] for s in range(3)) for y in range(5)]
    assert pointwise_leakage(secret, matrix) == pytest.approx(of_outcomes, rel=1e-12, abs=1e-14)
    (s, y), most = max(expected.items(), key=lambda item: item[1])
    witness = secret_witness(secret, matrix)
    assert (witness.value, witness.outcome, witness.law) == (s, y, 0)
    assert witness.level == leakage_level(secret, matrix) == pytest.approx(most, rel=1e-12)
    assert PML(1.0, about=secret).level(secret.prior, matrix) == witness.level


def test_the_worse_of_two_laws_is_named() -> None:
    even, told = [[0.25, 0.25], [0.25, 0.25]], [[0.5, 0.0], [0.0, 0.5]]
    witness = secret_witness(Secret(np.array([even, told])), np.eye(2))
    assert (witness.law, witness.level) == (1, math.log(2))
    assert leakage_level(Secret(even), np.eye(2)) == 0.0


def test_other_letters_are_refused() -> None:
    secret = Secret([[0.25, 0.25], [0.25, 0.25]], labels=["a", "b"])
    with pytest.raises(MechanismError, match="3 inputs"):
        leakage_level(secret, np.eye(3))
    with pytest.raises(MechanismError, match="another order"):
        leakage_level(secret, Mechanism(np.eye(2), ["b", "a"]))
