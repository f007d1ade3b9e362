"""How well a given mechanism lets the data be guessed: within some guesses, and in how many."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.core.arrays import FloatArray, real, whole
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import PriorLike
from pmlopt.errors import PrivacyError


def guessing_probability(prior: PriorLike, mechanism: MechanismLike, guesses: int = 1) -> float:
    """The probability to be right within k guesses after the outcome, as of decoding to lists of k letters.

    `sum_y` of the k largest `p[x] P[x,y]`. `GuessLeakage` bounds the same for each outcome.

    Args:
        prior: N letters.
        mechanism: (N, M); a constant one for what is guessed before anything is released.
        guesses: k, at least 1.

    Raises:
        PrivacyError: k is no whole number of at least 1.

    Source: [alvim2012measuring], the posterior vulnerability for k tries.

    Examples:
        >>> prior = [0.4, 0.3, 0.2, 0.1]
        >>> [round(guessing_probability(prior, [[1, 0], [1, 0], [0, 1], [0, 1]], k), 12) for k in (1, 2, 3)]
        [0.6, 1.0, 1.0]
    """
    count = whole(guesses, "the number of guesses", PrivacyError)
    return math.fsum(_ordered(prior, mechanism)[:count].ravel())


def guesswork(prior: PriorLike, mechanism: MechanismLike, order: float = 1.0) -> float:
    """The mean number of guesses, one letter after the other, until the data is found after the outcome.

    `sum_y sum_i i^order (the i-th largest p[x] P[x,y])`: the likeliest letter is guessed first.

    Args:
        prior: N letters.
        mechanism: (N, M); a constant one for the guesses before anything is released.
        order: of the moment of the number of guesses, above 0.

    Raises:
        PrivacyError: the order is not above 0, or not finite.

    Source: [massey1994guessing]; [arikan1996inequality] for moments and with an outcome.

    Examples:
        >>> prior = [0.4, 0.3, 0.2, 0.1]
        >>> nothing, half = [[1]] * 4, [[1, 0], [1, 0], [0, 1], [0, 1]]
        >>> round(guesswork(prior, nothing), 12), round(guesswork(prior, half), 12)
        (2.0, 1.4)
    """
    power = real(order, "the order of the moment", PrivacyError)
    if not 0 < power < math.inf:
        raise PrivacyError(f"the order of the moment is {power:g}: give a number above 0")
    ordered = _ordered(prior, mechanism)
    return math.fsum((np.arange(1, len(ordered) + 1)[:, None] ** power * ordered).ravel())


def _ordered(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """(N, M) the joint probabilities of each outcome, the largest first."""
    p, m = paired(prior, mechanism)
    return np.asarray(np.sort(p.pmf[:, None] * m.matrix, axis=0)[::-1])
