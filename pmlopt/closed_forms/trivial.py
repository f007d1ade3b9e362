"""Optimal mechanisms at the two ends of every trade-off: no leakage allowed, and nothing bounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import float_array
from pmlopt.errors import UtilityError
from pmlopt.mechanism import Mechanism
from pmlopt.prior import PriorLike, as_prior


def constant(prior: PriorLike, gains: ArrayLike) -> Mechanism:
    """The constant mechanism that always releases the output of largest expected gain.

    It leaks nothing, and is optimal at epsilon = 0.

    Args:
        prior: N letters.
        gains: (N, M) gain of releasing y when the secret is x. The first of equals is taken.

    Examples:
        >>> constant([0.6, 0.4], [[1.0, 0.0], [0.0, 1.0]]).matrix
        array([[1., 0.],
               [1., 0.]])
    """
    p = as_prior(prior)
    table = _gains(gains, p.size)
    matrix = np.zeros(table.shape)
    matrix[:, int(np.argmax(p.probabilities @ table))] = 1.0
    return Mechanism(matrix, p.labels)


def deterministic(prior: PriorLike, gains: ArrayLike) -> Mechanism:
    """The deterministic mechanism that releases each letter's output of largest gain.

    Optimal where every mechanism satisfies the requirement; under PML that is from epsilon = -log(min p) on
    [grosse2025empirical, Section II-A].

    Examples:
        >>> deterministic([0.6, 0.4], [[1.0, 0.0], [0.0, 1.0]]).matrix
        array([[1., 0.],
               [0., 1.]])
    """
    p = as_prior(prior)
    table = _gains(gains, p.size)
    matrix = np.zeros(table.shape)
    matrix[np.arange(p.size), np.argmax(table, axis=1)] = 1.0
    return Mechanism(matrix, p.labels)


def _gains(gains: ArrayLike, size: int) -> np.ndarray:
    table = float_array(gains, 2, "the gains", UtilityError)
    if len(table) != size:
        raise UtilityError(f"the gains have {len(table)} rows for {size} letters")
    return table
