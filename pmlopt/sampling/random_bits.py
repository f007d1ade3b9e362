"""Random bits: from the operating system, or from a seed where a result shall be repeatable."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.errors import MechanismError

Words: TypeAlias = NDArray[np.uint64]
Seed: TypeAlias = "int | np.random.Generator | RandomBits | None"


class RandomBits(ABC):
    """A source of independent, fair bits, 64 at a time."""

    @abstractmethod
    def words(self, size: int) -> Words:
        """(size,) words of 64 bits."""

    def below(self, bound: int) -> int:
        """One whole number from 0 to `bound` - 1, each equally likely: bits are drawn until they are below.

        Examples:
            >>> 0 <= SystemBits().below(10**30) < 10**30
            True
        """
        digits = (bound - 1).bit_length()
        while True:
            drawn = 0
            for word in self.words(-(-digits // 64)).tolist():
                drawn = drawn << 64 | word
            drawn >>= -digits % 64
            if drawn < bound:
                return drawn

    def all_below(self, bounds: Words) -> Words:
        """For each bound, from 1 to 2^63, one whole number below it, each equally likely."""
        # the number of digits of bound - 1, exactly: frexp rounds to the next power of two at most
        digits = np.frexp((bounds - np.uint64(1)).astype(np.float64))[1].astype(np.uint64)
        shifts = np.uint64(64) - np.maximum(digits, np.uint64(1))
        drawn = self.words(len(bounds)) >> shifts
        late = np.flatnonzero(drawn >= bounds)
        while late.size:
            drawn[late] = self.words(late.size) >> shifts[late]
            late = late[drawn[late] >= bounds[late]]
        return drawn


class SystemBits(RandomBits):
    """The operating system's generator for cryptography, as a release must be drawn from."""

    def words(self, size: int) -> Words:
        """(size,) words of 64 bits."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).copy()


class SeededBits(RandomBits):
    """A numpy Generator: who knows its seed, or enough of its output, knows all of it."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, size: int) -> Words:
        """(size,) words of 64 bits."""
        return self._generator.integers(0, 2**64, size=size, dtype=np.uint64)


def random_bits(seed: Any = None) -> RandomBits:
    """The bits of a seed, of a numpy Generator, or, for None, of the operating system.

    Raises:
        MechanismError: the seed is none.
    """
    if isinstance(seed, RandomBits):
        return seed
    return SystemBits() if seed is None else SeededBits(generator(seed))


def generator(seed: Any = None) -> np.random.Generator:
    """A numpy Generator from a seed; None takes the system's entropy. For searches, not for releases.

    Raises:
        MechanismError: the seed is none.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as cause:
        raise MechanismError(f"the seed {seed!r} cannot be used: {cause}") from None
