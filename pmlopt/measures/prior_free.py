"""Leakage of the channel alone, whatever the prior."""

from __future__ import annotations

import numpy as np

from pmlopt.measures.logarithms import log_quotient
from pmlopt.mechanism import MechanismLike, as_mechanism


def maximal_leakage(mechanism: MechanismLike) -> float:
    """The maximal leakage log(sum_y max_x P[x,y]) of a mechanism, in nats.

    Source: [issa2020operational, Theorem 1].

    Examples:
        >>> import math
        >>> round(math.exp(maximal_leakage(np.eye(4))), 12)
        4.0
    """
    matrix = as_mechanism(mechanism).matrix
    return float(np.log1p((matrix.max(axis=0) - matrix[0]).sum()))


def ldp_level(mechanism: MechanismLike) -> float:
    """The level of local differential privacy, max_y log(max_x P[x,y] / min_x P[x,y]), in nats.

    inf where an output of the support has probability zero for some letter.

    Examples:
        >>> import math
        >>> round(math.exp(ldp_level([[0.75, 0.25], [0.25, 0.75]])), 12), ldp_level(np.eye(2))
        (3.0, inf)
    """
    known = as_mechanism(mechanism)
    occurring = known.matrix[:, known.support]
    lowest = occurring.min(axis=0)
    return float(log_quotient(lowest, occurring.max(axis=0) - lowest).max())
