"""Coins that fall on heads with probability e^-x, decided exactly.

A coin is heads iff a uniform number u is below e^-x. Floating-point numbers decide where the two are apart by
more than `_MARGIN` of e^-x, which is thousands of times their error; where they are not, which happens once
in 10^8 coins, u gets more bits and e^-x more decimals, as rational bounds, until they are. The answer is that
of real numbers, never one of rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.sampling.random_bits import RandomBits

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
        >>> from pmlopt.sampling.random_bits import SystemBits
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
        >>> from pmlopt.sampling.random_bits import SystemBits
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
