"""Whether counts of outputs can come from a mechanism, whatever the frequencies of its inputs are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pmlopt.core.arrays import FloatArray, IntArray
from pmlopt.measures.estimable import RANK_TOLERANCE

FEWEST_EXPECTED = 5.0
"""The least expected count of every output at which the law of large samples is used."""

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

    Source: [susko2013likelihood] (the degrees); [agrawal2020finite, Theorem 1.2] (the bound).

    Examples:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> found = goodness_of_fit(response, np.array([900, 100]), np.array([1.0, 0.0]))
        >>> found.degrees, found.p_value < 1e-6
        (1, True)
    """
    from scipy.special import chdtrc

    law, people = frequencies @ matrix, int(counts.sum())
    seen = counts > 0
    with np.errstate(divide="ignore"):
        ratio = np.log(counts[seen] / people) - np.log(law[seen])
    statistic = max(0.0, 2 * float(counts[seen] @ ratio))
    occurs = matrix.max(axis=0) > 0
    outputs = int(occurs.sum())
    face = matrix[frequencies > ABSENT]
    degrees = outputs - int(np.linalg.matrix_rank(face, tol=RANK_TOLERANCE * np.linalg.norm(face, 2)))
    if degrees <= 0:
        return GoodnessOfFit(statistic, 0, 1.0)
    if (people * law[occurs]).min() >= FEWEST_EXPECTED:
        return GoodnessOfFit(statistic, degrees, float(chdtrc(degrees, statistic)))
    half, rest = statistic / 2, outputs - 1
    bound = math.exp(rest - half + rest * math.log(half / rest)) if half > rest else 1.0
    return GoodnessOfFit(statistic, degrees, min(1.0, bound))
