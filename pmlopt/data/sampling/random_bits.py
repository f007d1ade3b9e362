"""Random bits, from the operating system or a seed, and coins that are decided exactly."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import BoolArray, FloatArray
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


_MARGIN = 2.0**-30
"""Share of e^-x; exponents are given within 2^-36 (or that share of them), and exp errs by some 2^-52."""

_LAST_BIT = 2.0**-52
"""Twice the width of the interval that the first 53 bits leave to u."""


def exponential_coins(exponents: FloatArray, exact: Callable[[int], Fraction], bits: RandomBits) -> BoolArray:
    """(n,) whether each coin is heads, with probability e^-x for the exact exponent x >= 0.

    Args:
        exponents: (n,) the exponents within 2^-36, or within that share of them.
        exact: the exact exponent of the coin at a place.
        bits: random bits.

    Examples:
        >>> from pmlopt.data.sampling.random_bits import SystemBits
        >>> exponential_coins(np.zeros(3), lambda place: Fraction(0), SystemBits())
        array([ True,  True,  True])
    """
    words = bits.words(len(exponents))
    uniform = (words >> np.uint64(11)) * 2.0**-53
    heads = np.exp(-exponents)
    slack = _MARGIN * (1 + exponents) * heads + _LAST_BIT
    decided = np.asarray(uniform < heads)
    for place in np.flatnonzero(np.abs(uniform - heads) <= slack).tolist():
        decided[place] = is_below(int(words[place]), exact(place), bits)
    return decided


def is_below(word: int, exponent: Fraction, bits: RandomBits) -> bool:
    """Whether a uniform number, of which the first 64 bits are given, is below e^-exponent.

    Examples:
        >>> from pmlopt.data.sampling.random_bits import SystemBits
        >>> is_below(2**63, Fraction(1), SystemBits()), is_below(2**62, Fraction(1), SystemBits())
        (False, True)
    """
    digits = 64
    while True:
        low, high = _bounds(exponent, digits)
        if (word + 1) <= low * 2**digits:
            return True
        if word >= high * 2**digits:
            return False
        word, digits = word << 64 | int(bits.words(1)[0]), digits + 64


def _bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rational bounds on e^-exponent, closer to it than 2^-digits of it; 1 for 0."""
    if exponent == 0:
        return Fraction(1), Fraction(1)
    context = Context(prec=digits // 3 + 20 + len(str(exponent.numerator // exponent.denominator)))
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    near = Fraction(context.exp(context.minus(quotient)))
    # the quotient is within a unit in its last place, and exp is rounded correctly
    error = near * (exponent + 2) * Fraction(10) ** (2 - context.prec)
    return near - error, near + error
