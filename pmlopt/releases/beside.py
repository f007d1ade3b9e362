"""What a column that stays in clear adds to a release."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import SUM_TOLERANCE
from pmlopt.measures.about_secrets import on_letters_of
from pmlopt.mechanism import MechanismLike
from pmlopt.secret import Secret


def level_beside(joint: Secret | ArrayLike, mechanism: MechanismLike) -> float:
    """The level of a release of X together with a column Z that stays in clear beside it, about X, in nats.

    `max log P(y, z | x) / P(y, z) = max log p(z, x) P[x,y] / (p(x) sum_x' p(z, x') P[x',y])`. It is at least
    the level of the mechanism where Z tells nothing, and `level_in_clear` where the mechanism does.

    Args:
        joint: the joint law of (Z, X), (S, N) probabilities or counts, or a `Secret`, whose values are those
            of the column in clear; of several laws the worst counts.
        mechanism: (N, M).

    Raises:
        PriorError: the joint law is none.
        MechanismError: the mechanism is on other letters.

    Examples:
        >>> import math
        >>> counts = [[30, 10], [10, 50]]  # a column that depends on the secret, in clear
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(level_beside(counts, response)), 12)
        2.25
        >>> nothing = [[1.0], [1.0]]
        >>> round(math.exp(level_beside(counts, nothing)), 12), round(math.exp(level_in_clear(counts)), 12)
        (1.875, 1.875)
    """
    secret = _secret(joint)
    m = on_letters_of(secret, mechanism)
    columns = m.matrix[:, m.support]
    best = 0.0
    for law in secret.joint:
        marginal = law.sum(axis=0)
        for row in law:  # a value of the column in clear
            masses = row @ columns
            occurring = masses > 0
            peaks = ((row / marginal)[:, None] * columns).max(axis=0)
            best = max(best, float((peaks[occurring] / masses[occurring]).max(initial=0.0)))
    return max(0.0, float(np.log(best)))


def level_in_clear(joint: Secret | ArrayLike) -> float:
    """The level of a column Z in clear about X, in nats: `max log p(x | z) / p(x)`, without any release.

    Args:
        joint: as for `level_beside`.

    Examples:
        >>> import math
        >>> round(math.exp(level_in_clear([[30, 10], [10, 50]])), 12)  # (30/40) / (40/100)
        1.875
    """
    return max(
        float(np.log((law / np.outer(law.sum(axis=1), law.sum(axis=0))).max()))
        for law in _secret(joint).joint
    )


def _secret(joint: Secret | ArrayLike) -> Secret:
    if isinstance(joint, Secret):
        return joint
    try:
        total = float(np.sum(np.asarray(joint, dtype=float)))
    except (TypeError, ValueError):
        total = 1.0  # whatever it is, the law says what is wrong with it
    return Secret(joint) if abs(total - 1) <= SUM_TOLERANCE else Secret.from_counts(joint)
