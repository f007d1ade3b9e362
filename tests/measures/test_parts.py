"""The two parts of pointwise leakage: WCU, Lemmas 2 and 3."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from strategies import MODEST, exact, exact_columns, exact_law, log_of, pairs

from pmlopt import Mechanism, Prior
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.measures import leakage_parts, pointwise_leakage


@given(pairs())
@MODEST
def test_lemma_2_the_parts_add_up(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    excluded, rest = leakage_parts(prior, matrix)
    whole = pointwise_leakage(prior, matrix)
    occurs = whole > -math.inf
    assert excluded[occurs] + rest[occurs] == pytest.approx(whole[occurs], rel=1e-12, abs=1e-14)
    assert (excluded[~occurs] == -math.inf).all()
    assert (rest[~occurs] == 0).all()


@given(pairs())
@MODEST
def test_the_parts_are_those_of_exact_arithmetic(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    law = exact_law(prior)
    excluded, rest = leakage_parts(prior, matrix)
    occurs = matrix.max(axis=0) > 0
    for column, first, second in zip(exact_columns(matrix), excluded[occurs], rest[occurs], strict=True):
        mass = sum((p for p, value in zip(law, column, strict=True) if value > 0), Fraction(0))
        mean = sum((p * value for p, value in zip(law, column, strict=True)), Fraction(0))
        assert first == pytest.approx(log_of(1 / mass), rel=1e-9, abs=1e-14)
        assert second == pytest.approx(log_of(max(column) * mass / mean), rel=1e-9, abs=1e-14)


@given(pairs())
@MODEST
def test_lemma_3_the_second_part_is_zero_where_the_letters_left_look_alike(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    prior, matrix = pair
    _, rest = leakage_parts(prior, matrix)
    for column, second in zip(matrix.T, rest, strict=True):
        values = exact(column[column > 0])
        assert (second == 0) == (len(set(values)) <= 1)


def test_an_excluded_letter_of_one_in_a_billion_is_seen() -> None:
    excluded, _ = leakage_parts([1e-9, 1 - 1e-9], [[1.0, 0.0], [0.5, 0.5]])
    assert excluded.tolist() == pytest.approx([0.0, 1e-9], rel=1e-9)


def test_labels_and_sizes_must_agree() -> None:
    with pytest.raises(MechanismError, match="2 letters and the mechanism 3"):
        leakage_parts([0.5, 0.5], np.eye(3))
    with pytest.raises(MechanismError, match="differ"):
        leakage_parts(Prior([0.5, 0.5], ["a", "b"]), Mechanism(np.eye(2), ["c", "d"]))
