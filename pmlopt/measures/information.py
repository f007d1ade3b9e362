"""Averages of information."""

from __future__ import annotations

import numpy as np

from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike


def mutual_information(prior: PriorLike, mechanism: MechanismLike) -> float:
    """I(X; Y) = sum_xy p[x] P[x,y] log(P[x,y] / q[y]), in nats.

    Examples:
        >>> import math
        >>> round(math.exp(mutual_information([0.5, 0.5], np.eye(2))), 12)
        2.0
    """
    p, m = paired(prior, mechanism)
    weights = p.pmf
    occurring = m.matrix[:, m.matrix.max(axis=0) > 0]
    law = weights @ occurring
    lift = occurring / law
    # r log r - r + 1 >= 0 has the same mean as r log r, and no term that cancels another
    terms = np.where(lift > 0, lift * np.log(np.where(lift > 0, lift, 1.0)), 0.0) - lift + 1
    return float(weights @ terms @ law)
