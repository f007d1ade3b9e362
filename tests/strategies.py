"""What the tests share: hypothesis strategies, and exact arithmetic to compare with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from pmlopt.core.numbers.arrays import FloatArray

MODEST = settings(max_examples=20, deadline=None)

_WEIGHTS = st.one_of(st.floats(0.01, 1.0), st.integers(1, 4).map(float))
_TINY = st.sampled_from([1e-9, 1e-6, 1e-4])
_ENTRIES = st.one_of(st.just(0.0), st.floats(0.01, 1.0), st.integers(0, 4).map(float), _TINY)


def priors(
    min_size: int = 1, max_size: int = 5, tiny: bool = True
) -> st.SearchStrategy[FloatArray]:
    """Distributions of positive entries, some repeated and (if `tiny`) some as small as 1e-9."""
    entries = st.one_of(_WEIGHTS, _TINY) if tiny else _WEIGHTS
    return st.lists(entries, min_size=min_size, max_size=max_size).map(_distribution)


def mechanisms(n: int, max_outputs: int = 5) -> st.SearchStrategy[FloatArray]:
    """(n, M) row-stochastic arrays: zeros, columns of zeros and deterministic rows included."""
    return st.integers(1, max_outputs).flatmap(
        lambda m: st.lists(_rows(m), min_size=n, max_size=n).map(lambda rows: np.array(rows))
    )


@st.composite
def pairs(
    draw: st.DrawFn, min_size: int = 1, max_size: int = 5, tiny: bool = True
) -> tuple[FloatArray, FloatArray]:
    """A prior and a mechanism on the same letters."""
    prior = draw(priors(min_size, max_size, tiny))
    return prior, draw(mechanisms(len(prior)))


def epsilons(max_value: float = 8.0) -> st.SearchStrategy[float]:
    """Levels in nats, zero and tiny ones included."""
    return st.one_of(
        st.sampled_from([0.0, 1e-12, 1e-6, math.log(2), 1.0]).filter(lambda e: e <= max_value),
        st.floats(0.0, max_value, allow_subnormal=False),
    )


def _rows(m: int) -> st.SearchStrategy[FloatArray]:
    mixed = st.lists(_ENTRIES, min_size=m, max_size=m).filter(any).map(_distribution)
    return st.one_of(mixed, st.integers(0, m - 1).map(lambda y: np.eye(m)[y]))


def _distribution(weights: list[float]) -> FloatArray:
    return np.array(weights) / math.fsum(weights)


def exact(values: Iterable[float]) -> list[Fraction]:
    """The numbers as rationals."""
    return [Fraction(float(value)) for value in values]


def exact_law(prior: FloatArray) -> list[Fraction]:
    """The prior as rationals over their exact sum."""
    weights = exact(prior)
    return [weight / sum(weights) for weight in weights]


def exact_columns(matrix: FloatArray) -> list[list[Fraction]]:
    """The columns that are not all zero, as rationals."""
    return [exact(column) for column in matrix.T if column.max() > 0]


def log_of(ratio: Fraction) -> float:
    """The logarithm of a positive rational, to a few units in the last place."""
    if 0.5 < ratio < 2:
        return math.log1p(float(ratio - 1))
    return math.log(ratio.numerator) - math.log(ratio.denominator)
