"""Chains whose rows sum to one but for rounding, or within the tolerance: they are divided."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pmlopt import PML, Chain, Stream


def test_rows_are_divided_by_their_sums_and_laws_stay_as_they_are() -> None:
    off = np.array([[0.9, 0.1], [0.3, 0.7]]) * (1 + np.array([[9e-10], [-9e-10]]))
    chain = Chain(np.array([0.4, 0.6]) * (1 - 8e-10), off)
    for law in (chain.initial, *chain.kernels[0]):
        assert abs(sum(map(Fraction, law.tolist()), Fraction(-1))) <= Fraction(1, 2**52)
    again = Chain(chain.initial, chain.kernels)
    assert np.array_equal(again.kernels, chain.kernels)
    assert np.array_equal(again.initial, chain.initial)


def test_the_level_of_a_stream_is_that_of_the_divided_chain() -> None:
    first = [0.5 * (1 + 9e-10), 0.5 * (1 + 9e-10)]
    rows = [[0.9 * (1 - 9e-10), 0.1 * (1 - 9e-10)], [0.1 * (1 + 9e-10), 0.9 * (1 + 9e-10)]]
    stream = Stream(Chain(first, rows), PML(1.0), "hamming")
    start = [Fraction(v) / sum(map(Fraction, first)) for v in first]
    moves = [[Fraction(v) / sum(map(Fraction, row)) for v in row] for row in rows]
    emitted = []
    for _ in range(2):
        mechanism = stream.mechanism
        emitted.append([Fraction(v) for v in mechanism.matrix[:, 0].tolist()])
        stream.record(mechanism.outputs[0])
    one, two = emitted
    joint = [[start[x] * one[x] * moves[x][z] * two[z] for z in range(2)] for x in range(2)]
    total = sum(map(sum, joint))
    second = [sum(start[x] * moves[x][z] for x in range(2)) for z in range(2)]
    lifts = [sum(joint[x]) / total / start[x] for x in range(2)]
    lifts += [(joint[0][z] + joint[1][z]) / total / second[z] for z in range(2)]
    assert stream.level == pytest.approx(math.log(max(lifts)), abs=1e-14)
