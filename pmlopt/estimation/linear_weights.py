"""Weights of the outputs with which a combination of frequencies is estimated without bias."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.estimation.estimable import RANK_TOLERANCE


def unbiased_weights(matrix: FloatArray, combinations: FloatArray, law: FloatArray) -> FloatArray:
    """(K, M) weights V with `V P' = W`, of the least variance where the outputs have a given law.

    `V = W J^-1 P diag(1/q)` with `J = P diag(1/q) P'`; where J is singular and W in its range, by the
    pseudo-inverse. `V c / n` is an unbiased estimate of W f from counts c of n people, whatever f is.

    Args:
        matrix: (N, M) a mechanism.
        combinations: (K, N) W, in the range of the mechanism.
        law: (M,) positive where outputs can occur.

    Source: [pukelsheim2006optimal, Section 1.22] (the Gauss-Markov theorem).

    Examples:
        >>> P = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> unbiased_weights(P, np.eye(2), np.array([0.5, 0.5])).round(9).tolist()
        [[1.5, -0.5], [-0.5, 1.5]]
    """
    occurs = matrix.max(axis=0) > 0
    roots = np.sqrt(law[occurs])
    scaled = matrix[:, occurs] / roots
    weights = np.zeros((len(combinations), matrix.shape[1]))
    weights[:, occurs] = combinations @ np.linalg.pinv(scaled, rcond=RANK_TOLERANCE).T / roots
    return weights


def weighted_covariance(weights: FloatArray, law: FloatArray, people: int) -> FloatArray:
    """(K, K) the covariance `V (diag q - q q') V' / n` of weighted shares of n draws from a law."""
    centred = weights - (weights @ law)[:, None]
    return np.asarray((centred * law) @ centred.T / people)
