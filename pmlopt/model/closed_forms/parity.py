"""Closed-form leakage and distortion of a noisy parity, for every entropy bound."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.core.numbers.arrays import (
    FloatArray,
    check_in_interval,
    check_integer,
    check_nonnegative,
    check_real,
)
from pmlopt.core.numbers.roots import bisect
from pmlopt.errors import MechanismError, PrivacyError, QueryError


def parity_leakage(records: int, error: float, entropy: float) -> float:
    """Compute the largest per-record leakage L(b) of a parity released through a symmetric channel, in nats.

    With h the binary entropy and p the error probability it is the capacity `log 2 - h(p)` for
    `b <= (n - 1) log 2`, and `log 2 - h(e * p)` above that, with `e * p = e (1 - p) + p (1 - e)` and e in
    [0, 1/2] the root of `h(e) = b - (n - 1) log 2`. For n = 1 it is the capacity for every b.

    `H(T | X_i) >= b - (n - 1) log 2` for the parity T, and by Mrs Gerber's lemma `H(Y | X_i) >= h(e * p)`;
    the prior of `parity_prior` attains it.

    Args:
        records: n.
        error: p, in [0, 1].
        entropy: b, in [0, n log 2] nats.

    Raises:
        QueryError, MechanismError, PrivacyError: n, p or b is not such a number.

    Source: [wu2026entropy, eq. (44)] for b = 0; [wyner1973theorem] (Mrs Gerber's lemma); the rest is
    pmlopt's, with its proof in docs/results.md.

    Examples:
        >>> round(parity_leakage(4, math.exp(-0.5) / 2, 2.0), 7), round(parity_leakage(4, 0.3032653, 2.5), 6)
        (0.0795415, 0.038701)
        >>> parity_leakage(4, 0.1, 4 * math.log(2))
        0.0
    """
    n, flip, least = _check_arguments(records, error, entropy)
    # log 2 - h(x) by the distance d of x from 1/2: no digits cancel
    return _compute_capacity((1 - 2 * _compute_noise(n, least)) * (1 - 2 * flip))


def parity_distortion(records: int, leakage: float, entropy: float) -> float:
    """Compute the least distortion D(L, b) of a released parity: the least error that leaks at most L nats.

    The root of `parity_leakage(n, D, b) = L` in [0, 1/2]; a symmetric channel is optimal for uniform data.

    Args:
        records: n.
        leakage: L, at least 0 nats.
        entropy: b, in [0, n log 2] nats.

    Raises:
        QueryError, PrivacyError: n, L or b is not such a number.

    Source: [wu2026entropy, Definition 2.3]; the closed form is pmlopt's, with its proof in
    docs/theory/records.md#parity-by-formula.

    Examples:
        >>> round(parity_distortion(3, parity_leakage(3, 0.2, 1.5), 1.5), 9)
        0.2
    """
    n, _, least = _check_arguments(records, 0.0, entropy)
    max_leakage = check_nonnegative(leakage, "the leakage L", PrivacyError)
    bias = 1 - 2 * _compute_noise(n, least)
    if _compute_capacity(bias) <= max_leakage:
        return 0.0
    return (1 - _solve_for_bias(max_leakage) / bias) / 2


def parity_prior(records: int, entropy: float) -> FloatArray:
    """Return the (2, 2) joint law of (X_i, parity) under a worst prior of entropy b.

    Args:
        records: n.
        entropy: b, in [0, n log 2] nats.

    Examples:
        >>> parity_prior(4, 2.0).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """
    n, _, least = _check_arguments(records, 0.0, entropy)
    noise = _compute_noise(n, least)
    return np.array([[1 - noise, noise], [noise, 1 - noise]]) / 2


def _check_arguments(records: int, error: float, entropy: float) -> tuple[int, float, float]:
    """Validate number of records, error probability and entropy."""
    n = check_integer(records, "the number of records", QueryError)
    flip = check_in_interval(error, "[0, 1]", "the error probability", MechanismError)
    min_entropy = check_real(entropy, "the entropy b", PrivacyError)
    max_entropy = n * math.log(2)
    if not 0 <= min_entropy <= max_entropy * (1 + 1e-12):
        raise PrivacyError(
            f"the entropy b is {min_entropy!r}: give one in [0, n log 2] = [0, {max_entropy!r}] nats"
        )
    return n, flip, min_entropy


def _compute_noise(records: int, entropy: float) -> float:
    """Compute the flip probability e <= 1/2 with binary entropy `b - (n - 1) log 2`; 0 for one record."""
    wanted = entropy - (records - 1) * math.log(2)
    if wanted <= 0 or records == 1:
        return 0.0
    return (1 - _solve_for_bias(math.log(2) - wanted)) / 2


def _solve_for_bias(missing: float) -> float:
    """Solve `log 2 - h((1 - d) / 2) = missing` for d in [0, 1], in nats; 0 where there is no solution."""
    if missing <= 0:
        return 0.0
    return bisect(lambda bias: _compute_capacity(bias) >= missing, 0.0, 1.0, 0.0)


def _compute_capacity(bias: float) -> float:
    """Compute the capacity `log 2 - h((1 - d) / 2)` of a symmetric channel, accurately near d = 0.

    It is `((1 + d) log(1 + d) + (1 - d) log(1 - d)) / 2`.
    """
    d = min(1.0, abs(bias))
    if d == 1:
        return math.log(2)
    return ((1 + d) * math.log1p(d) + (1 - d) * math.log1p(-d)) / 2
