"""Uniform numbers below a bound, by enumeration of the bits, and seeds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pmlopt.data.sampling.categorical import RandomBits, SystemBits, Words, random_bits
from pmlopt.errors import MechanismError


class Scripted(RandomBits):
    """Words that are given beforehand, one after another."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def words(self, size: int) -> Words:
        taken, self.left = self.left[:size], self.left[size:]
        if len(taken) < size:
            raise LookupError("no words are left")
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 11, 16])
def test_each_number_below_a_bound_has_as_many_words(bound: int) -> None:
    digits = max(1, (bound - 1).bit_length())

    def one(word: int) -> int:
        return Scripted(word).below(bound)

    def many(word: int) -> int:
        return int(Scripted(word).all_below(np.array([bound], dtype=np.uint64))[0])

    for draw in (one, many):
        found: Counter[int] = Counter()
        rejected = 0
        for first in range(2**digits):
            try:
                found[draw(first << (64 - digits))] += 1
            except LookupError:
                rejected += 1
        assert set(found) == set(range(bound))
        assert len(set(found.values())) == 1
        assert rejected <= 2**digits / 2


@pytest.mark.parametrize("bound", [2**53 - 1, 2**62 + 1, 2**63, 2**64 + 3, 10**40])
def test_large_bounds_are_held_and_reached(bound: int) -> None:
    drawn = [SystemBits().below(bound) for _ in range(200)]
    assert max(drawn) < bound
    assert max(drawn) > bound // 2  # fails with probability 2^-200
    if bound <= 2**63:
        many = SystemBits().all_below(np.full(200, bound, dtype=np.uint64)).tolist()
        assert max(many) < bound
        assert max(many) > bound // 2


def test_seeds() -> None:
    first = random_bits(3).words(5)
    assert np.array_equal(first, random_bits(np.random.default_rng(3)).words(5))
    assert not np.array_equal(first, random_bits(4).words(5))
    assert not np.array_equal(random_bits().words(5), random_bits().words(5))
    bits = random_bits(1)
    assert random_bits(bits) is bits
    for bad in (-1, "a", 1.5):
        with pytest.raises(MechanismError, match="cannot be used"):
            random_bits(bad)
