"""The leakage per record of a noisy parity, for every bound on the adversary's knowledge."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.checks import FloatArray, real, whole
from pmlopt.errors import MechanismError, PrivacyError, QueryError


def parity_leakage(records: int, error: float, entropy: float) -> float:
    """L(b) of the parity of n binary records, released with error probability p, in nats.

    With h the binary entropy: `log 2 - h(p)`, the capacity, for `b <= (n - 1) log 2`; above that
    `log 2 - h(e * p)` with `e * p = e (1 - p) + p (1 - e)` and e in [0, 1/2] the root of
    `h(e) = b - (n - 1) log 2`. For n = 1 the capacity for every b.

    `H(T | X_i) >= b - (n - 1) log 2` for the parity T, and by Mrs Gerber's lemma `H(Y | X_i) >= h(e * p)`;
    the prior of `parity_prior` attains it.

    Args:
        records: n.
        error: p, in [0, 1].
        entropy: b, in [0, n log 2] nats.

    Raises:
        QueryError, MechanismError, PrivacyError: n, p or b is not such a number.

    Source: ENT, Section 7.2 (eq. (44), b = 0); the rest is pmlopt's.

    Examples:
        >>> round(parity_leakage(4, math.exp(-0.5) / 2, 2.0), 7), round(parity_leakage(4, 0.3032653, 2.5), 6)
        (0.0795415, 0.038701)
        >>> parity_leakage(4, 0.1, 4 * math.log(2))
        0.0
    """
    n, flip, least = _checked(records, error, entropy)
    # log 2 - h(x) by the distance d of x from 1/2: no digits cancel
    return _short_of_a_bit((1 - 2 * _noise(n, least)) * (1 - 2 * flip))


def parity_prior(records: int, entropy: float) -> FloatArray:
    """(2, 2) the law of (X_i, parity) of the worst prior: the parity is x_i, but with probability e.

    Args:
        records: n.
        entropy: b, in [0, n log 2] nats.

    Examples:
        >>> parity_prior(4, 2.0).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """
    n, _, least = _checked(records, 0.0, entropy)
    noise = _noise(n, least)
    return np.array([[1 - noise, noise], [noise, 1 - noise]]) / 2


def _checked(records: int, error: float, entropy: float) -> tuple[int, float, float]:
    n = whole(records, "the number of records", QueryError)
    flip = real(error, "the error probability", MechanismError)
    if not 0 <= flip <= 1:
        raise MechanismError(f"the error probability is {flip:g}: give one in [0, 1]")
    least, most = real(entropy, "the entropy b", PrivacyError), n * math.log(2)
    if not 0 <= least <= most * (1 + 1e-12):
        raise PrivacyError(f"the entropy b is {least!r}: give one in [0, n log 2] = [0, {most!r}] nats")
    return n, flip, least


def _noise(records: int, entropy: float) -> float:
    """The e in [0, 1/2], or 0 for one record, whose binary entropy is `b - (n - 1) log 2`."""
    wanted = entropy - (records - 1) * math.log(2)
    if wanted <= 0 or records == 1:
        return 0.0
    missing = math.log(2) - wanted
    low, high = 0.0, 1.0  # of 1 - 2 e
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if _short_of_a_bit(middle) >= missing else (middle, high)
    return (1 - high) / 2 if missing > 0 else 0.5


def _short_of_a_bit(bias: float) -> float:
    """`log 2 - h((1 - bias) / 2)` = ((1 + d) log(1 + d) + (1 - d) log(1 - d)) / 2."""
    d = min(1.0, abs(bias))
    if d == 1:
        return math.log(2)
    return ((1 + d) * math.log1p(d) + (1 - d) * math.log1p(-d)) / 2
