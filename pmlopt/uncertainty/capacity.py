"""The worst case of a mechanism over a set of priors."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.measures import leakage_level
from pmlopt.measures.logarithms import log_quotient
from pmlopt.mechanism import MechanismLike, as_mechanism, paired
from pmlopt.prior import PriorLike
from pmlopt.uncertainty.prior_set import PriorSet


class WorstCase(float):
    """A number in nats that knows where it is attained.

    Attributes:
        prior: (N,) a prior of the set with the largest leakage; it may have zeros.
        output: the index of the output with the largest leakage under it.
    """

    prior: FloatArray
    output: int

    def __new__(cls, value: float, prior: FloatArray, output: int) -> WorstCase:
        """The value, with its witnesses."""
        number = super().__new__(cls, value)
        number.prior, number.output = prior, output
        return number


def pointwise_capacity(priors: PriorSet, mechanism: MechanismLike) -> FloatArray:
    """The largest leakage of each output over a set of priors, (M,) `log(max_x P[x,y] / w(P[:,y]))` in nats.

    -inf for outputs that never occur.

    Raises:
        PrivacyError: `priors` is no set of priors, or one on other letters.

    Examples:
        >>> from pmlopt import AllPriors
        >>> np.exp(pointwise_capacity(AllPriors(2), [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([3., 3.])
    """
    m = as_mechanism(mechanism)
    if not isinstance(priors, PriorSet):
        raise PrivacyError(f"{priors!r} is no set of priors: give one such as L1Ball(prior, 0.1)")
    priors.check_letters(m.inputs, "the mechanism")
    columns = m.matrix[:, m.support]
    scaled = columns / columns.max(axis=0)
    levels = np.full(len(m.outputs), -np.inf)
    # what the least mean is short of the maximum, from numbers that lose no digits near 0
    levels[m.support] = log_quotient(
        np.maximum(priors.least_mean(scaled), 0.0), np.maximum(-priors.least_mean(scaled - 1), 0.0)
    )
    return levels


def leakage_capacity(priors: PriorSet, mechanism: MechanismLike) -> WorstCase:
    """The leakage capacity `max_Q max_y log(max_x P[x,y] / sum_x Q[x] P[x,y])` over a set of priors, in nats.

    Exact for every set: the inner minimum is a formula, and no sampling is involved.

    Args:
        priors: such as `L1Ball`, `Box`, `MinimumMass`, `Vertices` or `AllPriors`.
        mechanism: (N, M).

    Returns:
        A float with the attributes `prior`, (N,) the worst prior, and `output`.

    Raises:
        PrivacyError: `priors` is no set of priors, or one on other letters.

    Source: [grosse2025empirical, Definition 5].

    Examples:
        >>> import math
        >>> from pmlopt import L1Ball
        >>> worst = leakage_capacity(L1Ball([0.5, 0.5], 0.2), [[0.75, 0.25], [0.25, 0.75]])
        >>> round(math.exp(worst), 12), worst.prior.round(12), worst.output
        (1.666666666667, array([0.4, 0.6]), 0)
    """
    levels = pointwise_capacity(priors, mechanism)
    output = int(levels.argmax())
    column = as_mechanism(mechanism).matrix[:, output]
    return WorstCase(float(levels[output]), priors.worst_prior(column), output)


def leakage_sensitivity(prior: PriorLike, priors: PriorSet, mechanism: MechanismLike) -> WorstCase:
    """The local leakage sensitivity: the capacity over a set less the PML level under one of its priors.

    Args:
        prior: N letters, in the set.
        priors: the set.
        mechanism: (N, M).

    Returns:
        A float of at least 0, in nats, with the attributes `prior` and `output`.

    Raises:
        PrivacyError: the prior is not in the set, or the set is on other letters.
        MechanismError: prior and mechanism are on different letters.

    Source: [grosse2025empirical, Definition 6].

    Examples:
        >>> import math
        >>> from pmlopt import L1Ball
        >>> p, matrix = [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(leakage_sensitivity(p, L1Ball(p, 0.2), matrix)), 12)
        1.111111111111
    """
    p, m = paired(prior, mechanism)
    worst = leakage_capacity(priors, m)
    if not priors.contains(p):
        raise PrivacyError(f"the prior is not in {priors!r}: the sensitivity is about one of its priors")
    return WorstCase(max(0.0, worst - leakage_level(p, m)), worst.prior, worst.output)
