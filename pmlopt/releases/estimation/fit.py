"""Whether counts of outputs can come from a mechanism, whatever the frequencies of its inputs are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import FloatArray, IntArray, float_array
from pmlopt.errors import InputError, PriorError
from pmlopt.measures.estimable import RANK_TOLERANCE

FEWEST_EXPECTED = 5.0
"""The least expected count of every output at which the law of large samples is used."""

LARGEST_COUNT = 2**53
"""The largest number of people: up to here floats hold every whole number."""

ABSENT = 1e-9
"""Frequencies up to this are taken for zero."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """The likelihood-ratio test of counts against every law `f P` of the outputs.

    Attributes:
        statistic: `G = 2 n KL(shares || f P)` at the most likely frequencies f.
        degrees: of freedom, those of the frequencies that are not zero.
        p_value: of chi-square where at least five people are expected at every output; elsewhere a bound
            that holds for any number of people.
    """

    statistic: float
    degrees: int
    p_value: float


def goodness_of_fit(matrix: FloatArray, counts: IntArray, frequencies: FloatArray) -> GoodnessOfFit:
    """Test whether counts can come from a mechanism.

    The degrees of freedom are those of the face of the simplex on which the most likely frequencies are: the
    number of outputs less the rank of the letters that are not absent. Where few people are expected at an
    output, `exp(-g) (e g / (M - 1))^(M - 1)` with `g = G / 2 > M - 1` bounds the p-value: the statistic at
    the true frequencies is no smaller.

    Args:
        matrix: (N, M).
        counts: (M,) of n people.
        frequencies: (N,) the most likely ones.

    Before it is held against chi-square the statistic is divided by what its mean is larger, of many outputs.

    Source: [susko2013likelihood] (the degrees); [agrawal2020finite, Theorem 1.2] (the bound);
    [williams1976improved] (the divisor).

    Examples:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> found = goodness_of_fit(response, np.array([900, 100]), np.array([1.0, 0.0]))
        >>> found.degrees, found.p_value < 1e-6
        (1, True)
    """
    law, people = frequencies @ matrix, int(counts.sum())
    seen = counts > 0
    with np.errstate(divide="ignore"):
        ratio = np.log(counts[seen] / people) - np.log(law[seen])
    statistic = max(0.0, 2 * float(counts[seen] @ ratio))
    occurs = matrix.max(axis=0) > 0
    outputs = int(occurs.sum())
    face = matrix[frequencies > ABSENT]
    degrees = outputs - int(np.linalg.matrix_rank(face, tol=RANK_TOLERANCE * np.linalg.norm(face, 2)))
    if math.isinf(statistic):
        return GoodnessOfFit(statistic, max(degrees, 0), 0.0)
    if degrees <= 0:
        return GoodnessOfFit(statistic, 0, 1.0)
    if (people * law[occurs]).min() >= FEWEST_EXPECTED:
        larger = 1 + float((1 / law[occurs]).sum() - 1) / (6 * people * degrees)
        return GoodnessOfFit(statistic, degrees, _chi_square(degrees, statistic / larger))
    half, rest = statistic / 2, outputs - 1
    bound = math.exp(rest - half + rest * math.log(half / rest)) if half > rest else 1.0
    return GoodnessOfFit(statistic, degrees, min(1.0, bound))


def independence(counts: ArrayLike) -> GoodnessOfFit:
    """Test whether two columns are independent, from the counts of pairs of their released values.

    `G = 2 sum c log(c n / (r c'))` with the sums r and c' of rows and columns. Where each column is released
    by itself (or left clear), independent columns have independent outputs: a low p-value speaks against
    independence of the columns themselves. The outputs show less of a dependence than the columns have.

    Args:
        counts: (M1, M2), one axis for the outputs of each column.

    Raises:
        PriorError: a count is negative or not a whole number, or there are no people.
        InputError: fewer than five people are expected at a pair of outputs that occur: merge outputs.

    Examples:
        >>> found = independence([[30, 20], [20, 30]])
        >>> found.degrees, round(found.p_value, 3)
        (1, 0.046)
    """
    table = whole_counts(counts, 2).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    if expected.min() < FEWEST_EXPECTED:
        raise InputError(f"at a pair of outputs {expected.min():.2g} people are expected: too few for a test")
    seen = table > 0
    statistic = max(0.0, 2 * float(table[seen] @ np.log(table[seen] / expected[seen])))
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not degrees:
        return GoodnessOfFit(statistic, 0, 1.0)
    rows, columns = (float((table.sum() / table.sum(axis=axis)).sum()) - 1 for axis in (1, 0))
    larger = 1 + rows * columns / (6 * float(table.sum()) * degrees)
    return GoodnessOfFit(statistic, degrees, _chi_square(degrees, statistic / larger))


def whole_counts(numbers: ArrayLike, ndim: int) -> IntArray:
    """Counts of outputs as integers: whole numbers of at least 0, of one person or more."""
    array = float_array(numbers, ndim, "the counts", PriorError)
    wrong = array[(array < 0) | (array != np.rint(array))]
    if wrong.size:
        raise PriorError(f"the counts have the entry {wrong[0]:g}: give whole numbers of at least 0")
    total = float(array.sum())
    if total == 0:
        raise PriorError("the counts are all 0: from no people nothing can be estimated")
    if total > LARGEST_COUNT:
        raise PriorError(f"the counts sum to {total:g}: give at most {LARGEST_COUNT} people")
    return array.astype(np.int64)


def _chi_square(degrees: int, statistic: float) -> float:
    """The probability that chi-square exceeds the statistic."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, statistic))
