"""Leakage of a given mechanism: pointwise maximal leakage, information density, and prior-free levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pmlopt.core.numbers.arrays import FloatArray, Label, Labels, integers_over_common_denominator
from pmlopt.core.numbers.blocks import iterate_row_blocks
from pmlopt.core.numbers.concave import Local, maximize_over_laws
from pmlopt.core.numbers.logarithms import log_ratio_up
from pmlopt.data.mechanism import (
    Mechanism,
    MechanismLike,
    as_mechanism,
    check_labels_match,
    pair_with_prior,
)
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret
from pmlopt.errors import MechanismError, PrivacyError


@runtime_checkable
class MinMeanSet(Protocol):
    """The protocol of sets of priors; `pmlopt.model.uncertainty.PriorSet` implements it."""

    @property
    def has_rare_letters(self) -> bool:
        """Return whether probabilities are so small that sums of floats lose them."""

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Return the (M,) least mean of each column over the set."""

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Return the least means times a positive number, and that number; exact for integers."""

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the set that minimises the mean of a column."""

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Project a law to (N,) rationals in the set."""

    def polytope(self) -> Any:
        """Return the set as linear inequalities; None without such a form."""

    def check_letters(self, letters: Labels, owner: str) -> None:
        """Raise an error where letters differ from the set's."""


def log_quotient(low: ArrayLike, difference: ArrayLike) -> FloatArray:
    """Compute log((low + difference) / low) without cancellation.

    A ratio near one is computed from the difference, which the caller sums from non-negative terms; inf
    where low is 0 and the difference is not, 0 where both are.

    Examples:
        >>> float(log_quotient(1.0, 1e-20)), float(log_quotient(0.0, 0.5))
        (1e-20, inf)
    """
    below = np.asarray(low, dtype=float)
    gap = np.asarray(difference, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # log1p keeps the digits of a ratio near 1; for a large one the quotient may overflow
        near = np.log1p(gap / below)
        far = np.log(below + gap) - np.log(below)
    return np.where(gap == 0, 0.0, np.where(gap < below, near, far))


def log_product_ratios(above: Any, below: Any, matrix: FloatArray) -> FloatArray:
    """Compute `log(<above_k, v> / <below_k, v>)` for each column v without cancellation.

    Rows whose sums are the same differ by nothing on a constant, so that the least entry of v cancels;
    and a difference of products that is no more than rounding is none.

    Args:
        above: (K, N) non-negative, dense or sparse.
        below: (K, N) the same.
        matrix: (N, M) non-negative.

    Returns:
        (K, M); -inf where the numerator is 0, inf where the only the denominator is.

    Examples:
        >>> two = log_product_ratios(np.eye(2), np.full((2, 2), 0.5), np.array([[0.75], [0.25]]))
        >>> np.exp(two).round(12).tolist()
        [[1.5], [0.5]]
    """
    least = matrix.min(axis=0)
    # <above, v> - <below, v> without the constant part of v, which rows of equal sums cancel
    rest = matrix - least
    moved = (above - below) @ rest
    rounding = (matrix.shape[0] + 2) * float(np.finfo(float).eps)
    # an inner product of N terms errs by about N units in the last place of its size
    moved[np.abs(moved) <= rounding * ((above + below) @ rest)] = 0.0
    up = above.sum(axis=1)
    down = below.sum(axis=1)
    # Sums of two rows that differ by no more, as a share of both, are the same but for rounding.
    moved += np.outer(np.where(np.abs(up - down) <= 1e-12 * (up + down), 0.0, up - down), least)
    under = below @ matrix
    with np.errstate(divide="ignore", invalid="ignore"):
        # a ratio is not negative: rounding may take the difference below -1, of which log1p is NaN
        found = np.log1p(np.maximum(moved / under, -1.0))
    found[np.ravel(up == 0)] = -np.inf  # of a row of zeros the difference is -1 but for rounding
    return np.where(under > 0, found, np.where(moved > 0, np.inf, -np.inf))


def log_entry_ratios(above: FloatArray, below: FloatArray) -> FloatArray:
    """Compute log(a / b) elementwise without cancellation.

    Returns:
        Of the same shape; -inf where a is 0, inf where only b is.

    Examples:
        >>> log_entry_ratios(np.array([0.5, 0.25, 1.0]), np.array([0.25, 0.5, 0.0])).round(6).tolist()
        [0.693147, -0.693147, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.log1p((above - below) / below)
    return np.where(above == 0, -np.inf, np.where(below > 0, found, np.inf))


def largest_log_entry_ratios(above: FloatArray, below: FloatArray) -> FloatArray:
    """Compute the (K, 1) row maxima of `log_entry_ratios`.

    Examples:
        >>> largest_log_entry_ratios(np.array([[0.5, 0.25]]), np.array([[0.25, 0.5]])).round(6).tolist()
        [[0.693147]]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        more = (above - below) / below
        # 0 / 0 is no number: an entry of 0 is never above another one
        more[(above == 0) & (below == 0)] = -1.0
        return np.asarray(np.log1p(more.max(axis=1, keepdims=True)))


def bound_level_rounding(level: float, terms: int = 1) -> float:
    """Bound the rounding error of a level in nats.

    A ratio of so many terms is off by a few units in its last place, which is as much in nats; but levels
    near 0 keep their digits, so it is never more than a share of 1e-9 of the level.

    Examples:
        >>> bound_level_rounding(0.0), 1e-16 < bound_level_rounding(np.log(4 / 3)) < 1e-14
        (0.0, True)
    """
    return min((terms + 8) * float(np.finfo(float).eps) * max(1.0, level), 1e-9 * level)


def log_sum_exp(terms: FloatArray, axis: int | None = None) -> FloatArray:
    """Compute log-sum-exp along an axis, which is kept.

    -inf terms count as nothing, and one term must be finite.

    Examples:
        >>> log_sum_exp(np.array([-1000.0, -1000.0])).round(6).tolist()
        [-999.306853]
    """
    # relative to the largest term nothing overflows, and its own exponential is 1
    peaks = terms.max(axis=axis, keepdims=True)
    return np.asarray(peaks + np.log(np.exp(terms - peaks).sum(axis=axis, keepdims=True)))


def maximal_leakage(mechanism: MechanismLike) -> float:
    """Compute the maximal leakage log(sum_y max_x P[x,y]) of a mechanism, in nats.

    Source: [issa2020operational, Theorem 1].

    Examples:
        >>> import math
        >>> round(math.exp(maximal_leakage(np.eye(4))), 12)
        4.0
    """
    matrix = as_mechanism(mechanism).matrix
    # the row sums to 1: what the maxima add to it keeps its digits near a leakage of 0
    return float(np.log1p((matrix.max(axis=0) - matrix[0]).sum()))


def ldp_level(mechanism: MechanismLike) -> float:
    """Compute the level of local differential privacy, max_y log(max_x P[x,y] / min_x P[x,y]), in nats.

    inf where an output of the support has probability zero for some letter.

    Examples:
        >>> import math
        >>> round(math.exp(ldp_level([[0.75, 0.25], [0.25, 0.75]])), 12), ldp_level(np.eye(2))
        (3.0, inf)
    """
    matrix = as_mechanism(mechanism).matrix
    # the difference, not the quotient, keeps the digits of a level near 0; an output without mass has none
    lowest = matrix.min(axis=0)
    return float(log_quotient(lowest, matrix.max(axis=0) - lowest).max())


def mutual_information(prior: PriorLike, mechanism: MechanismLike) -> float:
    """Compute the mutual information I(X; Y) = sum_xy p[x] P[x,y] log(P[x,y] / q[y]), in nats.

    Examples:
        >>> import math
        >>> round(math.exp(mutual_information([0.5, 0.5], np.eye(2))), 12)
        2.0
    """
    p, m = pair_with_prior(prior, mechanism)
    occurring = m.matrix[:, m.support]
    peaks = occurring.max(axis=0)
    # each column over its peak: products with small columns do not underflow
    shapes = occurring / peaks
    # 1 - law, summed from non-negative terms: exact where the column is almost constant
    short = p.pmf @ ((peaks - occurring) / peaks)
    law = np.where(short < 0.5, 1 - short, p.pmf @ shapes)  # of the output, over the peak
    return float(p.pmf @ entropy_surplus((shapes - law) / law) @ (law * peaks))


def channel_capacity(
    mechanism: MechanismLike, tolerance: float = 1e-12, iterations: int = 200
) -> tuple[float, float]:
    """Compute bounds on the channel capacity, the largest mutual information over all priors, in nats.

    An interior point over priors. The information is the lower bound, and the upper one is the largest
    divergence of a row from the output law.

    Args:
        mechanism: (N, M).
        tolerance: how near both must be, in nats.
        iterations: at most so many; both bounds hold whenever it stops.

    Source: [arimoto1972algorithm] for the upper bound.

    Examples:
        >>> lower, upper = channel_capacity([[0.9, 0.1], [0.1, 0.9]])  # log 2 - h(0.1)
        >>> round(lower, 9), round(upper, 9)
        (0.368064207, 0.368064207)
    """
    known = as_mechanism(mechanism)
    # columns of zeros have no mean to divide by, and carry no information
    rows = known.matrix[:, known.support]

    def evaluate_with_gradient(law: FloatArray) -> Local:
        mean = law @ rows
        # (N,) divergences of the rows from the mean row, with 0 log 0 = 0
        found = (rows * np.log(np.where(rows > 0, rows / mean, 1.0))).sum(axis=1)
        return float(law @ found), found - 1, (rows / mean) @ rows.T

    _, lower, upper = maximize_over_laws(evaluate_with_gradient, len(rows), tolerance, iterations)
    # the capacity is not negative, but rounding may put a bound of 0 below it
    return max(lower, 0.0), max(upper, 0.0)


def compute_norms(weights: FloatArray, columns: FloatArray, order: float) -> FloatArray:
    """Compute the (M,) norms `(sum_x w[x] v[x]^order)^(1/order)` of columns v >= 0."""
    # scaled by the largest entry: powers of high order neither overflow nor vanish
    top = columns.max(axis=0)
    shares = columns / np.where(top > 0, top, 1.0)
    return np.asarray(top * (weights @ shares**order) ** (1 / order))


def entropy_surplus(d: FloatArray) -> FloatArray:
    """Compute (1 + d) log(1 + d) - d without cancellation.

    No terms cancel: near 0 it is a power series.
    """
    d = np.asarray(d, dtype=float)
    # at d = -1 the limit of (1 + d) log(1 + d) is 0, where log1p is infinite
    positive = np.where(d > -1, d, 0.0)
    values = (1 + positive) * np.log1p(positive) - d
    # near 0 both terms are about d, and their difference about d^2 / 2 would cancel
    small = np.abs(d) < 1e-2
    if small.any():
        near = d[small]
        values[small] = near**2 * np.polyval(_SURPLUS[::-1], near)
    return values


_SURPLUS = (1 / 2, -1 / 6, 1 / 12, -1 / 20, 1 / 30, -1 / 42, 1 / 56)
"""The power series of (1 + d) log(1 + d) - d, over d^2."""


@dataclass(frozen=True)
class SecretWitness:
    """The value and outcome of largest leakage about a secret.

    Attributes:
        level: in nats, the PML level about the secret.
        value: of the secret.
        outcome: the output that makes it e^level times as likely as it was.
        law: the number of the joint law under which it does, 0 where there is one.
    """

    level: float
    value: Label
    outcome: Label
    law: int


def secret_densities(secret: Secret, mechanism: MechanismLike) -> FloatArray:
    """Compute the information density `log(P(y | s) / P(y))` of each value of a secret and each outcome, in
    nats.

    `P(y | s) = sum_x P(x | s) P[x,y]`: the output depends on the secret S through the data X only.

    Args:
        secret: S values, N letters, L joint laws.
        mechanism: (N, M).

    Returns:
        (L, S, M); -inf where y never occurs, or never with s.

    Raises:
        MechanismError: sizes or labels of the secret's letters and the mechanism disagree.

    Source: [saeidian2023pointwise] of the channel from S to the output.

    Examples:
        >>> disease = Secret([[0.25, 0.25], [0.0, 0.5]])
        >>> np.exp(secret_densities(disease, [[0.75, 0.25], [0.25, 0.75]])[0]).round(6).tolist()
        [[1.333333, 0.8], [0.666667, 1.2]]
    """
    m = check_mechanism_letters(secret, mechanism)
    found = np.full((*secret.joint.shape[:2], len(m.outputs)), -np.inf)
    for law, joint in enumerate(secret.joint):
        # (S, N) the law of the data given each value of the secret
        given = joint / joint.sum(axis=1, keepdims=True)
        # the same marginal in each row: ratios are of P(y | s) to P(y)
        means = np.broadcast_to(joint.sum(axis=0), given.shape)
        found[law][:, m.support] = log_product_ratios(given, means, m.matrix[:, m.support])
    return found


def secret_witness(secret: Secret, mechanism: MechanismLike) -> SecretWitness:
    """Find the value of a secret and the outcome at which a mechanism leaks most about it.

    Of places whose leakage is the same up to 1e-12 the first is named.

    Examples:
        >>> import math
        >>> disease = Secret([[0.25, 0.25], [0.0, 0.5]], values=["ill", "well"])
        >>> witness = secret_witness(disease, [[0.75, 0.25], [0.25, 0.75]])
        >>> witness.value, witness.outcome, round(math.exp(witness.level), 12)
        ('ill', 0, 1.333333333333)
    """
    m = check_mechanism_letters(secret, mechanism)
    densities = secret_densities(secret, m)
    # of outcomes that differ in the last digits the first, on every machine
    law, value, outcome = np.argwhere(densities >= densities.max() - 1e-12)[0].tolist()
    level = float(densities.max())
    return SecretWitness(level, secret.values[value], m.outputs[outcome], law)


def check_mechanism_letters(secret: Secret, mechanism: MechanismLike) -> Mechanism:
    """Return the mechanism; raise a MechanismError where its letters differ from the joint law's."""
    m = as_mechanism(mechanism)
    if len(m.inputs) != len(secret.labels):
        raise MechanismError(
            f"the joint law has {len(secret.labels)} letters and the mechanism {len(m.inputs)} inputs"
        )
    check_labels_match(
        m.inputs, secret.labels, "the mechanism's inputs", "the letters of the joint law"
    )
    return m


def pointwise_leakage(prior: PriorLike | Secret, mechanism: MechanismLike) -> FloatArray:
    """Compute the pointwise maximal leakage of each outcome, l(y) = log(max_x P[x,y] / q[y]), in nats.

    q = p P is the law of the output. Outputs with q[y] = 0 are outside the support: they get -inf,
    so that they count in no maximum.

    Of a `Secret` S correlated with the data in place of the prior it is the leakage about S,
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
    p, m = pair_with_prior(prior, mechanism)
    return _compute_leakages(p, m, None)


def _compute_leakages(p: Prior, m: Mechanism, counted: NDArray[np.bool_] | None) -> FloatArray:
    """Compute (M,) log-ratios of peak times mass to mean, for each column.

    Args:
        p: the prior.
        m: the mechanism.
        counted: (N, M) the letters, at all others of which the column is 0; None for all of them.
    """
    peaks = m.matrix.max(axis=0)
    support = peaks > 0
    means, gaps = np.zeros((2, len(peaks)))
    units = np.where(support, peaks, 1.0)
    for rows in iterate_row_blocks(m.matrix.shape):
        short = (peaks - m.matrix[rows]) / units
        means += p.pmf[rows] @ (m.matrix[rows] / units)
        gaps += p.pmf[rows] @ (short if counted is None else short * counted[rows])
    return np.where(support, log_quotient(means, gaps), -np.inf)


def leakage_level(
    prior: PriorLike | Secret, mechanism: MechanismLike, over: MinMeanSet | None = None
) -> float:
    """Compute the PML level: the largest pointwise maximal leakage over the support of Y, in nats.

    The smallest epsilon for which the mechanism satisfies epsilon-PML [grosse2025empirical, Definition 2];
    for a `Secret` in place of the prior that of `PML(epsilon, about=secret)`.

    Args:
        prior: N letters, or a secret; with `over` only its letters count.
        mechanism: (N, M).
        over: a set of priors: the largest level under any of them, that of `PML(epsilon, over=over)`.

    Raises:
        PrivacyError: `over` is no set of priors on these letters.

    Examples:
        >>> import math
        >>> round(math.exp(leakage_level([0.4, 0.2, 0.4], np.eye(3))), 12)
        5.0
        >>> from pmlopt import AllPriors
        >>> flip = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(leakage_level([0.5, 0.5], flip, over=AllPriors(2))), 12)
        3.0
    """
    if over is not None:
        if not isinstance(over, MinMeanSet) or isinstance(prior, Secret):
            raise PrivacyError(
                f"`over` is {over!r:.80}, and the prior {prior!r:.80}: give a set of priors such as "
                "L1Ball(prior, 0.1), and a prior on its letters"
            )
        p, m = pair_with_prior(prior, mechanism)
        over.check_letters(p.labels, "the prior")
        return float(measure_worst_leakage(over, m.matrix[:, m.support]).max())
    return float(pointwise_leakage(prior, mechanism).max())


def leakage_parts(prior: PriorLike, mechanism: MechanismLike) -> tuple[FloatArray, FloatArray]:
    """Split the pointwise leakage into the part of excluded letters and the rest.

    `l(y) = -log p(A) + log max_x P[x,y] p(A) / q[y]` with A the letters that can emit y: the leakage of its
    support, and that under the prior on A only. Both are at least 0.

    Returns:
        Two arrays (M,) in nats that add up to `pointwise_leakage`; -inf and 0 for outputs that never occur.

    Source: [song2026worstcase, Lemma 2].

    Examples:
        >>> excluded, rest = leakage_parts([0.6, 0.2, 0.2], [[1, 0], [0.5, 0.5], [0, 1]])
        >>> np.exp(excluded).round(12), np.exp(rest).round(12)
        (array([1.25, 2.5 ]), array([1.14285714, 1.33333333]))
    """
    p, m = pair_with_prior(prior, mechanism)
    # (N, M) which letters can emit each output
    positive = m.matrix > 0
    excluded = np.full(len(m.outputs), -np.inf)
    excluded[m.support] = log_quotient(
        p.pmf @ positive[:, m.support], p.pmf @ ~positive[:, m.support]
    )
    return excluded, np.where(m.support, _compute_leakages(p, m, positive), 0.0)


def information_density(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """Compute the (N, M) information densities i(x; y) = log(P[x,y] / q[y]), in nats.

    -inf where P[x,y] = 0, which includes every output outside the support.

    Examples:
        >>> np.exp(information_density([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([[1.5, 0.5],
               [0.5, 1.5]])
    """
    p, m = pair_with_prior(prior, mechanism)
    peaks = m.matrix.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.log(m.matrix / peaks)
    return np.where(m.matrix > 0, relative + pointwise_leakage(p, m), -np.inf)


def lip_levels(prior: PriorLike, mechanism: MechanismLike) -> tuple[float, float]:
    """Compute the least levels with -lower <= i(x; y) <= upper of local information privacy, in nats.

    Over the support, and with the two sides apart (asymmetric LIP). `upper` is the PML level;
    `lower` is inf where an output of the support excludes a letter.

    Examples:
        >>> import math
        >>> lower, upper = lip_levels([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> round(math.exp(lower), 12), round(math.exp(upper), 12)
        (2.0, 1.5)
    """
    p, m = pair_with_prior(prior, mechanism)
    return cost_level(p, m), leakage_level(p, m)


def pointwise_cost(prior: PriorLike, mechanism: MechanismLike) -> FloatArray:
    """Return the pointwise maximal cost of each outcome, log(q[y] / min_x P[x,y]), in nats.

    It is by how much at most an outcome lowers the least expected cost of an adversary, whatever the costs
    are. Outputs with q[y] = 0 get -inf, so that they count in no maximum; an outcome that excludes a letter
    gets inf.

    Args:
        prior: N letters.
        mechanism: (N, M).

    Returns:
        (M,) costs, each at least 0 or -inf.

    Raises:
        MechanismError: sizes or labels of prior and mechanism disagree.

    Source: [saeidian2024density].

    Examples:
        >>> np.exp(pointwise_cost([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])).round(12)
        array([2., 2.])
    """
    p, m = pair_with_prior(prior, mechanism)
    columns = m.matrix[:, m.support]
    # over the peak, as for the leakage: rare outputs would lose digits to underflow
    peaks = columns.max(axis=0)
    lowest = columns.min(axis=0)
    found = np.full(len(m.outputs), -np.inf)
    found[m.support] = log_quotient(lowest / peaks, p.pmf @ ((columns - lowest) / peaks))
    return found


def cost_level(prior: PriorLike, mechanism: MechanismLike) -> float:
    """Return the PMC level: the largest pointwise maximal cost over the support of Y, in nats.

    It is the smallest epsilon for which the mechanism satisfies `PMC(epsilon)`, and the lower one of
    `lip_levels`.

    Examples:
        >>> import math
        >>> round(math.exp(cost_level([0.9, 0.1], [[0.75, 0.25], [0.25, 0.75]])), 12)  # 0.7 over 0.25
        2.8
    """
    return float(pointwise_cost(prior, mechanism).max())


def measure_worst_leakage(priors: MinMeanSet, columns: FloatArray) -> FloatArray:
    """Compute the (M,) largest leakages of outputs over a set of priors, from columns that are not zero.

    They are computed without rounding where letters are rarer than sums of floats bear.
    """
    if priors.has_rare_letters:
        return bound_worst_leakage(priors, columns)
    scaled = columns / columns.max(axis=0)
    # what the least mean is short of the maximum, from numbers that lose no digits near 0
    return log_quotient(
        np.maximum(priors.min_mean(scaled), 0.0), np.maximum(-priors.min_mean(scaled - 1), 0.0)
    )


def bound_worst_leakage(priors: MinMeanSet, columns: FloatArray) -> FloatArray:
    """Compute the (M,) largest leakages of outputs over a set of priors in integers, rounded up.

    Where the least mean over the set is no rational, it is rounded down, and the leakage up.

    Args:
        priors: the set.
        columns: (N, M), none of them zero.
    """
    integers, _ = integers_over_common_denominator(columns)
    least, total = priors.min_mean_scaled(integers)
    largest = integers.max(axis=0) * total
    return np.array(
        [log_ratio_up(int(high), int(low)) for high, low in zip(largest, least, strict=True)]
    )
