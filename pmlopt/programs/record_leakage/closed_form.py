"""The closed form of a noisy parity, found in a query and its mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt import closed_forms
from pmlopt.arrays import FloatArray
from pmlopt.mechanism import Mechanism
from pmlopt.queries import ModularSum, Query, RecordChannel


@dataclass(frozen=True, eq=False)
class KnownParity:
    """What is known by formula: the leakage in nats, and the worst law (2, T) of (X_i, T) by classes."""

    value: float
    joint: FloatArray


def is_parity(query: Query) -> bool:
    """Whether a query is the parity of binary records."""
    return isinstance(query, ModularSum) and query.modulus == 2 and set(query.alphabets) == {2}


def parity_error(query: Query, mechanism: Mechanism) -> float | None:
    """The error probability of a parity of binary records through a symmetric channel; else None."""
    if not is_parity(query):
        return None
    matrix = mechanism.matrix
    if matrix.shape != (2, 2) or (np.abs(matrix - matrix[::-1, ::-1]) > 1e-15).any():
        return None
    return float(matrix[0, 1])


def known_parity(channel: RecordChannel, entropy: float) -> KnownParity | None:
    """The closed form, where there is one and the two parities have rows of their own."""
    error = parity_error(channel.query, channel.mechanism)
    if error is None or len(channel.rows) != 2:
        return None
    records = channel.query.records
    return KnownParity(
        closed_forms.parity_leakage(records, error, entropy),
        closed_forms.parity_prior(records, entropy)[:, np.argsort(channel.classes)],
    )
