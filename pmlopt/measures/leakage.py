"""Leakage that depends on the prior: pointwise maximal leakage and information density."""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.measures.about_secrets import secret_densities
from pmlopt.measures.logarithms import log_quotient
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike
from pmlopt.secret import Secret


def pointwise_leakage(prior: PriorLike | Secret, mechanism: MechanismLike) -> FloatArray:
    """The pointwise maximal leakage of each outcome, l(y) = log(max_x P[x,y] / q[y]), in nats.

    q = p P is the law of the output. Outputs with q[y] = 0 are outside the support: they get -inf,
    so that they count in no maximum.

    Of a `Secret` S that the data tells of in place of the prior it is the leakage about S,
    l(y) = log(max_s P(y | s) / P(y)), the largest under any of its joint laws; never more than about the
    data. `secret_witness` names the value and the outcome.

    Args:
        prior: N letters; or a `Secret`, with its joint law of S and the N letters.
        mechanism: (N, M).

    Returns:
        (M,) leakages, each in [0, -log(min p)] or -inf.

    Raises:
        MechanismError: sizes or labels of prior and mechanism disagree.

    Source: Saeidian et al., Pointwise maximal leakage, Theorem 1; [grosse2025empirical, Theorem 1].

    Examples:
        >>> np.exp(pointwise_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([1.5, 1.5])
        >>> disease = Secret([[0.25, 0.25], [0.0, 0.5]])  # P(y | s) is (1/2, 1/2) and (1/4, 3/4) of these
        >>> np.exp(pointwise_leakage(disease, [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([1.33333333, 1.2       ])
    """
    if isinstance(prior, Secret):
        return np.asarray(secret_densities(prior, mechanism).max(axis=(0, 1)))
    p, m = paired(prior, mechanism)
    columns = m.matrix[:, m.support]
    peaks = columns.max(axis=0)
    leakages = np.full(len(m.outputs), -np.inf)
    leakages[m.support] = log_quotient(p.pmf @ (columns / peaks), p.pmf @ ((peaks - columns) / peaks))
    return leakages


def leakage_level(prior: PriorLike | Secret, mechanism: MechanismLike) -> float:
    """The PML level: the largest pointwise maximal leakage over the support of Y, in nats.

    The smallest epsilon for which the mechanism satisfies epsilon-PML [grosse2025empirical, Definition 2];
    for a `Secret` in place of the prior that of `PML(epsilon, about=secret)`.

    Examples:
        >>> import math
        >>> round(math.exp(leakage_level([0.4, 0.2, 0.4], np.eye(3))), 12)
        5.0
    """
    return float(pointwise_leakage(prior, mechanism).max())


def leakage_parts(prior: PriorLike, mechanism: MechanismLike) -> tuple[FloatArray, FloatArray]:
    """The pointwise leakage in two parts: that an output excludes letters, and what it tells of the others.

    `l(y) = -log p(A) + log max_x P[x,y] p(A) / q[y]` with A the letters that can emit y: the leakage of its
    support, and that under the prior on A alone. Both are at least 0.

    Returns:
        Two arrays (M,) in nats that add up to `pointwise_leakage`; -inf and 0 for outputs that never occur.

    Source: [song2026worstcase, Lemma 2].

    Examples:
        >>> excluded, rest = leakage_parts([0.6, 0.2, 0.2], [[1, 0], [0.5, 0.5], [0, 1]])
        >>> np.exp(excluded).round(12), np.exp(rest).round(12)
        (array([1.25, 2.5 ]), array([1.14285714, 1.33333333]))
    """
    p, m = paired(prior, mechanism)
    positive = m.matrix > 0
    excluded = np.full(len(m.outputs), -np.inf)
    outside = p.pmf @ ~positive[:, m.support]
    excluded[m.support] = log_quotient(p.pmf @ positive[:, m.support], outside)
    rest = np.zeros(len(m.outputs))
    columns = m.matrix[:, m.support]
    peaks = columns.max(axis=0)
    short = np.where(positive[:, m.support], (peaks - columns) / peaks, 0.0)
    rest[m.support] = log_quotient(p.pmf @ (columns / peaks), p.pmf @ short)
    return excluded, rest


def information_density(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """The information density i(x; y) = log(P[x,y] / q[y]) of letters and outcomes, (N, M), in nats.

    -inf where P[x,y] = 0, which includes every output outside the support.

    Examples:
        >>> np.exp(information_density([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([[1.5, 0.5],
               [0.5, 1.5]])
    """
    p, m = paired(prior, mechanism)
    peaks = m.matrix.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.log(m.matrix / peaks)
    return np.where(m.matrix > 0, relative + pointwise_leakage(p, m), -np.inf)


def lip_levels(prior: PriorLike, mechanism: MechanismLike) -> tuple[float, float]:
    """The levels of local information privacy: the least with -lower <= i(x; y) <= upper, in nats.

    Over the support, and with the two sides apart (asymmetric LIP). `upper` is the PML level;
    `lower` is inf where an output of the support excludes a letter.

    Examples:
        >>> import math
        >>> lower, upper = lip_levels([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> round(math.exp(lower), 12), round(math.exp(upper), 12)
        (2.0, 1.5)
    """
    p, m = paired(prior, mechanism)
    columns = m.matrix[:, m.support]
    peaks, lowest = columns.max(axis=0), columns.min(axis=0)
    lower = log_quotient(lowest / peaks, p.pmf @ ((columns - lowest) / peaks))
    return float(lower.max()), leakage_level(p, m)
