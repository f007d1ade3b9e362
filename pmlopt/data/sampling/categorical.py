"""Exact categorical sampling: random bits compared with integer thresholds.

A row p of floats is a row of rationals. With the sums `c_y = 2^W (p_0 + ... + p_y) / (p_0 + ... + p_{M-1})`
and a real number u, uniform on [0, 2^W), the output is the first y with `u < c_y`, which has the probability
`(c_y - c_{y-1}) / 2^W = p_y / sum p`. The bits of u are drawn as they are needed. The first W = 53 are the
whole part j of u, and the comparisons that they decide are comparisons of integers:

    j >= ceil(c_y)  implies  u >= c_y,   and   j < floor(c_y)  implies  u < c_y.

Where the entries are multiples of 2^-53 and sum to one, as a mechanism that pmlopt designed has them, each
c_y is whole and 53 bits decide always. Elsewhere they leave the comparison with c_y open only at
`j = floor(c_y) < c_y`, and more bits are drawn. No step rounds, so the law is that of the row over its sum.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.lazy_imports import hashlib
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, common_integer_ratio
from pmlopt.errors import MechanismError

Words: TypeAlias = NDArray[np.uint64]
Seed: TypeAlias = "int | np.random.Generator | RandomBits | None"


class RandomBits(ABC):
    """The interface of sources of fair random bits, in 64-bit words."""

    @abstractmethod
    def draw_words(self, size: int) -> Words:
        """Draw (size,) words of 64 random bits."""

    def draw_below(self, bound: int) -> int:
        """Draw an integer below `bound` uniformly, by rejection.

        Examples:
            >>> 0 <= SystemBits().draw_below(10**30) < 10**30
            True
        """
        # rejection: fewest bits, so that more than half of
        # the draws are accepted; modulo would be biased
        digits = (bound - 1).bit_length()
        while True:
            drawn = 0
            for word in self.draw_words(-(-digits // 64)).tolist():
                drawn = drawn << 64 | word
            # the surplus bits of the last word are dropped
            drawn >>= -digits % 64
            if drawn < bound:
                return drawn

    def draw_all_below(self, bounds: Words) -> Words:
        """Draw an integer below each bound (at most 2^63) uniformly."""
        # the number of digits of bound - 1, exactly: frexp rounds to the next power of two at most
        digits = np.frexp((bounds - np.uint64(1)).astype(np.float64))[1].astype(np.uint64)
        shifts = np.uint64(64) - np.maximum(digits, np.uint64(1))
        drawn = self.draw_words(len(bounds)) >> shifts
        # only the rejected places are drawn again: accepted draws stay uniform and independent
        late = np.flatnonzero(drawn >= bounds)
        while late.size:
            drawn[late] = self.draw_words(late.size) >> shifts[late]
            late = late[drawn[late] >= bounds[late]]
        return drawn


class SystemBits(RandomBits):
    """The operating system's cryptographic random bits, required for releases."""

    def draw_words(self, size: int) -> Words:
        """Draw (size,) words of 64 random bits."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).copy()


class KeyedBits(RandomBits):
    """The deterministic SHAKE256 bit stream of a secret key and position [fips202].

    Without the key they cannot be distinguished from fair bits, and those of two places are independent of
    each other as far as anybody can compute.

    Args:
        key: 32 bytes, as `make_key` makes them.
        place: what distinguishes it from the other places where bits are drawn under the key.

    Examples:
        >>> key = make_key(seed=5)
        >>> again, other = KeyedBits(key, "part", 1).draw_words(2), KeyedBits(key, "part", 2).draw_words(2)
        >>> bool((KeyedBits(key, "part", 1).draw_words(2) == again).all()), bool((other == again).any())
        (True, False)
    """

    def __init__(self, key: bytes, *place: object) -> None:
        self._state = hashlib.shake_256(key + hashlib.sha256(repr(place).encode()).digest())
        self._calls = 0

    def draw_words(self, size: int) -> Words:
        """Draw (size,) words of 64 random bits."""
        # a copy: the state itself stays at the key and the place
        state = self._state.copy()
        # a count in the hash: successive calls get fresh bits, and a repetition gets the same ones
        state.update(self._calls.to_bytes(8, "little"))
        self._calls += 1
        return np.frombuffer(state.digest(8 * size), dtype=np.uint64).copy()


def make_key(seed: int | None = None) -> bytes:
    """Create a 32-byte key from the operating system, or for tests from a seed."""
    return os.urandom(32) if seed is None else hashlib.sha256(f"pmlopt {seed}".encode()).digest()


class SeededBits(RandomBits):
    """The predictable random bits of a numpy Generator."""

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def draw_words(self, size: int) -> Words:
        """Draw (size,) words of 64 random bits."""
        return self._generator.integers(0, 2**64, size=size, dtype=np.uint64)


def make_random_bits(seed: Any = None) -> RandomBits:
    """Create a source of random bits from a seed or Generator; None for the operating system's.

    Raises:
        MechanismError: the seed is none.
    """
    if isinstance(seed, RandomBits):
        return seed
    return SystemBits() if seed is None else SeededBits(make_generator(seed))


def make_generator(seed: Any = None) -> np.random.Generator:
    """Create a numpy Generator for heuristic searches, not for releases.

    For searches, not for releases.

    Raises:
        MechanismError: the seed is none.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as cause:
        raise MechanismError(f"the seed {seed!r} cannot be used: {cause}") from None


def flip_exponential_coins(
    exponents: FloatArray, exact: Callable[[int], Fraction], bits: RandomBits
) -> BoolArray:
    """Draw (n,) Bernoulli variables with exact probabilities e^-x.

    Args:
        exponents: (n,) the exponents within 2^-36, or within that share of them.
        exact: the exact exponent of the coin at a place.
        bits: random bits.

    Examples:
        >>> from pmlopt.data.sampling.categorical import SystemBits
        >>> flip_exponential_coins(np.zeros(3), lambda place: Fraction(0), SystemBits())
        array([ True,  True,  True])
    """
    words = bits.draw_words(len(exponents))
    # 53 bits fit a float exactly: the product is not rounded
    uniform = (words >> np.uint64(11)) * 2.0**-53
    # a float decides almost all coins; those too near to call are compared exactly
    heads = np.exp(-exponents)
    # outside of this margin no later bit and no error of exp can change the comparison
    # Share of e^-x; exponents are given within 2^-36 (or that share of them), and exp errs by some 2^-52.
    # Twice the width of the interval that the first 53 bits leave to u.
    slack = (2.0**-30) * (1 + exponents) * heads + (2.0**-52)
    decided = uniform < heads
    for place in np.flatnonzero(np.abs(uniform - heads) <= slack).tolist():
        decided[place] = is_below(int(words[place]), exact(place), bits)
    return decided


def is_below(word: int, exponent: Fraction, bits: RandomBits) -> bool:
    """Return whether a uniform number with given first 64 bits is below e^-exponent.

    Examples:
        >>> from pmlopt.data.sampling.categorical import SystemBits
        >>> is_below(2**63, Fraction(1), SystemBits()), is_below(2**62, Fraction(1), SystemBits())
        (False, True)
    """
    # 64 more bits each round: the chance that the comparison stays open falls by 2^-64
    digits = 64
    while True:
        low, high = _bound_exponential(exponent, digits)
        # the number is in [word, word + 1) / 2^digits: decided once that interval is on one side
        if (word + 1) <= low * 2**digits:
            return True
        if word >= high * 2**digits:
            return False
        word = word << 64 | int(bits.draw_words(1)[0])
        digits = digits + 64


def _bound_exponential(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Compute rational bounds on e^-exponent."""
    if exponent == 0:
        return Fraction(1), Fraction(1)
    context = Context(prec=digits // 3 + 20 + len(str(exponent.numerator // exponent.denominator)))
    # the precision covers the whole part too, whose digits exp turns into relative error
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    near = Fraction(context.exp(context.minus(quotient)))
    # the quotient is within a unit in its last place, and exp is rounded correctly
    error = near * (exponent + 2) * Fraction(10) ** (2 - context.prec)
    return near - error, near + error


WORD_BITS = 53
"""Bits that are drawn at first: those of the grid of a mechanism."""


class RowSampler:
    """An exact sampler of outputs from the rows of a probability matrix.

    A guide table has for the first bits of j where the search for y begins [chen1974generating].

    Args:
        matrix: (N, M) non-negative; a row's law is the row over its sum.
        width: W, the number of bits that are drawn at a time, at most 53.

    Examples:
        >>> from pmlopt.data.sampling.categorical import SystemBits
        >>> RowSampler(np.eye(3)).draw_outputs(np.array([2, 0]), SystemBits())
        array([2, 0])
    """

    def __init__(self, matrix: FloatArray, width: int = WORD_BITS) -> None:
        self._matrix = matrix
        self._width = width
        self._ceilings, self._open = _compute_thresholds(matrix, width)
        rows, outputs = matrix.shape
        # about 16 cells for each output: most of them hold no boundary, and need no search
        fine = (16 * outputs).bit_length()
        # Cells of all guide tables together, 16 MiB.
        room = ((2**22) // rows).bit_length() - 1
        self._digits = max(0, min(fine, room, width))
        starts = np.arange(1 << self._digits, dtype=np.uint64) << np.uint64(width - self._digits)
        self._guide = np.concatenate(
            [np.searchsorted(row, starts, side="right") for row in self._ceilings]
        ).astype(np.int32)

    def draw_outputs(self, rows: IntArray, bits: RandomBits) -> IntArray:
        """Draw an output index for each of n rows."""
        # Draws at a time: their numbers stay in the cache.
        chunk = 2**16
        drawn = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            drawn[part] = self._draw_from_rows(rows[part], bits)
        return drawn

    def _draw_from_rows(self, rows: IntArray, bits: RandomBits) -> IntArray:
        """Draw outputs by comparing random words with thresholds."""
        words = bits.draw_words(len(rows)) >> np.uint64(64 - self._width)
        first = (words >> np.uint64(self._width - self._digits)).view(np.int64)
        # a flat place in the matrix is faster than a row and an output
        places = self._guide[(rows << self._digits) + first] + rows * self._matrix.shape[1]
        ceilings = self._ceilings.ravel()
        late = np.flatnonzero(words >= ceilings[places])
        while late.size:
            places[late] += 1
            late = late[words[late] >= ceilings[places[late]]]
        outputs = places - rows * self._matrix.shape[1]
        if self._open is not None:
            undecided = self._open.ravel()[places] & (words + np.uint64(1) == ceilings[places])
            for draw in np.flatnonzero(undecided).tolist():
                outputs[draw] = self._resolve_output(
                    int(rows[draw]), int(outputs[draw]), int(words[draw]), bits
                )
        return np.asarray(outputs)

    def _resolve_output(self, row: int, output: int, drawn: int, bits: RandomBits) -> int:
        """Decide an output with further random bits where the first are not enough."""
        sums = list(accumulate(common_integer_ratio(self._matrix[row])[0]))
        total = sums[-1]
        digits = self._width
        while True:
            while drawn * total >= sums[output] << digits:
                output += 1
            if (drawn + 1) * total <= sums[output] << digits:
                return output
            drawn = drawn << self._width | int(bits.draw_words(1)[0]) >> (64 - self._width)
            digits += self._width


def _compute_thresholds(matrix: FloatArray, width: int) -> tuple[Words, BoolArray | None]:
    """Compute the (N, M) cumulative thresholds rounded up, and the mask of inexact ones."""
    sums = np.empty(matrix.shape, dtype=np.uint64)
    fractional = np.empty(matrix.shape, dtype=bool)
    # rows at a time: large matrices need several arrays of their size otherwise
    block_rows = max(1, 2**22 // matrix.shape[1])
    for start in range(0, len(matrix), block_rows):
        rows = slice(start, start + block_rows)
        sums[rows], fractional[rows] = _round_up_sums(matrix[rows], width)
    return sums, fractional if fractional.any() else None


def _round_up_sums(matrix: FloatArray, width: int) -> tuple[Words, BoolArray]:
    """Compute the rounded-up cumulative sums of rows, and the mask of inexact ones."""
    scaled = matrix * 2.0**width  # a power of two: exact
    whole = np.floor(scaled)
    sums = np.cumsum(np.minimum(whole, 2.0**width).astype(np.uint64), axis=1)
    fractional = np.zeros(matrix.shape, dtype=bool)
    on_grid = (whole == scaled).all(axis=1) & (sums[:, -1] == np.uint64(1 << width))
    off_grid = np.flatnonzero(~on_grid)
    if off_grid.size:
        sums[off_grid], fractional[off_grid], decided = _round_up_in_floats(
            scaled[off_grid], whole[off_grid], width
        )
        for row in off_grid[~decided].tolist():
            below = list(accumulate(common_integer_ratio(matrix[row])[0]))
            parts = [divmod(part << width, below[-1]) for part in below]
            sums[row] = [floor + (rest > 0) for floor, rest in parts]
            fractional[row] = [rest > 0 for _, rest in parts]
    return sums, fractional


def _round_up_in_floats(
    scaled: FloatArray, whole: FloatArray, width: int
) -> tuple[Words, BoolArray, BoolArray]:
    """Compute rounded-up cumulative sums in floats, and the (N,) rows where that is exact.

    With `2^W p_y = w_y + r_y`, whole and rest, and `D = 2^W (sum p - 1)`, the sum c_y is
    `H + f - (H + f) D / (2^W + D)`, where the integer H sums the w up to y and f the r. Only f and the last
    term are rounded: where that cannot move c_y past an integer, its ceiling is decided.
    """
    unit = 2.0**width
    positive = np.cumsum(scaled > 0, axis=1)
    # rows that are far from a sum of one leave too few digits to D; any law may represent them here
    near_one = np.abs(scaled.sum(axis=1) - unit) < 1e-6 * unit
    scaled = np.where(near_one[:, None], scaled, unit / scaled.shape[1])
    whole = np.where(near_one[:, None], whole, np.floor(scaled))
    high = np.cumsum(whole.astype(np.int64), axis=1)
    rest = np.cumsum(scaled - whole, axis=1)
    surplus = (high[:, -1:] - (1 << width)) + rest[:, -1:]
    correction = (high + rest) * (surplus / (unit + surplus))
    float_part = rest - correction
    floor = np.floor(float_part)
    error = (4 * scaled.shape[1] ** 2 + 16 * (1 + np.abs(surplus))) * float(np.finfo(float).eps)
    fraction = float_part - floor
    ceilings = high + floor.astype(np.int64) + 1
    decided = (fraction > error) & (fraction < 1 - error)
    # nothing before the first positive entry, and everything from the last one on
    empty = positive == 0
    complete = positive == positive[:, -1:]
    ceilings[empty] = 0
    ceilings[complete] = 1 << width
    known = empty | complete
    return ceilings.astype(np.uint64), ~known, near_one & (decided | known).all(axis=1)
