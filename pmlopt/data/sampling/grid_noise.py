"""Exact sampling of discrete Laplace and Gaussian noise, by rejection.

Noise in floating point has holes and steps that depend on what it is added to, and its low digits can reveal
the data apart where its density does not. Whole multiples of a step have none: their laws, and the laws of
data on the same grid with noise, are what they are stated to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray
from pmlopt.data.sampling.categorical import RandomBits, flip_exponential_coins

Whole: TypeAlias = IntArray | NDArray[np.object_]

GRID_STEP_BITS = 48
"""The step is at most the scale over 2^48: tails on the grid are those of the density but for that."""

_MAX_GRID_INTEGER = 2**56
"""Numerators and denominators up to this are drawn as 64-bit integers, larger ones as Python's."""


def choose_grid_step(scale: float) -> float:
    """Return the grid step of a noise scale: a power of two up to `scale 2^-48`, at most 1.

    Whole numbers are on the grid.

    Examples:
        >>> choose_grid_step(3.0) == 2.0**-47, choose_grid_step(1e30)
        (True, 1.0)
    """
    # Of the step as a power of two: floats end at 2^-1074.
    return 2.0 ** max(-1074, min(0, math.frexp(scale)[1] - 1 - GRID_STEP_BITS))


def draw_laplace_noise(scale: float, step: float, size: int, bits: RandomBits) -> FloatArray:
    """Draw (size,) multiples y of the step with probability `(1 - q) / (1 + q) q^(|y| / step)`, `q =
    e^(-step/scale)`.

    Source: [canonne2020discrete, Algorithm 2].

    Examples:
        >>> from pmlopt.data.sampling.categorical import make_random_bits
        >>> draw_laplace_noise(2.0, 1.0, 4, make_random_bits(1)) % 1
        array([0., 0., 0., 0.])
    """
    # a float is a rational: the scale in steps is exact
    ratio = Fraction(scale) / Fraction(step)
    return _scale_integers(
        _draw_integer_laplace(ratio.numerator, ratio.denominator, size, bits), step
    )


def draw_gaussian_noise(sigma: float, step: float, size: int, bits: RandomBits) -> FloatArray:
    """Draw (size,) multiples y of the step with probability proportional to `exp(-y^2 / (2 sigma^2))`.

    Discrete Laplace noise of the next whole scale above sigma, each kept with probability
    `exp(-(|y| - sigma^2 / t)^2 / (2 sigma^2))`.

    Source: [canonne2020discrete, Algorithm 3].
    """
    # a float is a rational: the scale in steps is exact
    ratio = Fraction(sigma) / Fraction(step)
    square = ratio * ratio
    scale = math.floor(ratio) + 1
    near = float(ratio)
    shift = float(square / scale)

    def propose_values(count: int) -> Any:
        tried = _draw_integer_laplace(scale, 1, count, bits)
        sizes = np.abs(tried)
        apart = (sizes.astype(np.float64) - shift) / near
        exact = lambda place: (int(sizes[place]) - square / scale) ** 2 / (2 * square)  # noqa: E731
        return tried[flip_exponential_coins(apart * apart / 2, exact, bits)]

    return _scale_integers(_sample_by_rejection(size, propose_values), step)


def _draw_integer_laplace(top: int, bottom: int, size: int, bits: RandomBits) -> Whole:
    """Draw (size,) discrete Laplace integers of scale top / bottom."""

    def propose_values(count: int) -> Any:
        sizes = _draw_geometric(top, count, bits)
        sizes = (sizes if bottom < _MAX_GRID_INTEGER else sizes.astype(object)) // bottom
        negative = bits.draw_words(count) >> np.uint64(63) == 1
        # with both signs kept, zero would have twice its probability
        kept = ~(negative & (sizes == 0))  # zero has one sign
        return np.where(negative, -sizes, sizes)[kept]

    return _sample_by_rejection(size, propose_values)


def _draw_geometric(top: int, size: int, bits: RandomBits) -> Whole:
    """Draw (size,) integers k >= 0 with probability proportional to `e^(-k / top)`."""
    remainders: Any = _draw_remainders(top, size, bits)
    quotients: Any = _count_heads(size, bits)
    # 64-bit integers would wrap around without a warning
    if top * (int(quotients.max(initial=0)) + 1) >= 2**63:
        remainders = remainders.astype(object)
        quotients = quotients.astype(object)
    return np.asarray(remainders + top * quotients)


def _draw_remainders(top: int, size: int, bits: RandomBits) -> Whole:
    """Draw (size,) integers r from 0 to top - 1 with probability proportional to `e^(-r / top)`."""

    def propose_values(count: int) -> Any:
        if top < _MAX_GRID_INTEGER:
            tried: Any = bits.draw_all_below(np.full(count, top, dtype=np.uint64)).view(np.int64)
        else:
            tried = np.array([bits.draw_below(top) for _ in range(count)], dtype=object)
        exponents = (tried / top).astype(np.float64)
        exact = lambda place: Fraction(int(tried[place]), top)  # noqa: E731
        return tried[flip_exponential_coins(exponents, exact, bits)]

    return _sample_by_rejection(size, propose_values)


def _sample_by_rejection(size: int, tries: Callable[[int], Any]) -> Whole:
    """Draw (size,) values by rejection sampling."""
    found: list[Any] = []
    left = size
    while left:
        found.append(tries(left))
        left -= len(found[-1])
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _count_heads(size: int, bits: RandomBits) -> IntArray:
    """Draw (size,) run lengths of Bernoulli(e^-1) successes."""
    quotients = np.zeros(size, dtype=np.int64)
    tossed = np.arange(size)
    while tossed.size:
        heads: BoolArray = flip_exponential_coins(
            np.ones(tossed.size), lambda place: Fraction(1), bits
        )
        tossed = tossed[heads]
        quotients[tossed] += 1
    return quotients


def _scale_integers(whole: Whole, step: float) -> FloatArray:
    """Multiply integers by a power-of-two step, with one rounding."""
    return whole.astype(np.float64) * step
