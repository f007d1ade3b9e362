"""Confidence intervals for combinations of frequencies, from counts of outputs; a test of fit.

An estimate of `w f` is a mean over people of `v(Y)`, where the weights v of the outputs have `P v = w`: its
error depends on the variance and the range of v(Y), not on the number of outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import sparse, special
from pmlopt.core.numbers.arrays import FloatArray, IntArray, check_in_interval, copy_float_array
from pmlopt.errors import InputError, PriorError
from pmlopt.measures.estimable import RANK_RTOL
from pmlopt.model.uncertainty.confidence import confidence_box

Intervals = Literal["score", "bernstein", "exact", "wald"]
"""The kinds of confidence intervals."""


def compute_unbiased_weights(
    matrix: FloatArray, combinations: FloatArray, law: FloatArray
) -> FloatArray:
    """Compute the (K, M) minimum-variance unbiased estimator weights V with `V P' = W`.

    `V = W J^-1 P diag(1/q)` with `J = P diag(1/q) P'`; where J is singular and W in its range, by the
    pseudo-inverse. `V c / n` is an unbiased estimate of W f from counts c of n people, whatever f is.

    Args:
        matrix: (N, M) a mechanism.
        combinations: (K, N) W, in the range of the mechanism.
        law: (M,) positive where outputs can occur.

    Source: [pukelsheim2006optimal, Section 1.22] (the Gauss-Markov theorem).

    Examples:
        >>> P = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> compute_unbiased_weights(P, np.eye(2), np.array([0.5, 0.5])).round(9).tolist()
        [[1.5, -0.5], [-0.5, 1.5]]
    """
    occurs = matrix.max(axis=0) > 0
    roots = np.sqrt(law[occurs])
    scaled = matrix[:, occurs] / roots
    weights = np.zeros((len(combinations), matrix.shape[1]))
    weights[:, occurs] = combinations @ np.linalg.pinv(scaled, rcond=RANK_RTOL).T / roots
    return weights


def compute_moments(
    weights: FloatArray, law: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute mean, variance and third central moment of K output weights.

    Args:
        weights: (K, M).
        law: (M,) of the output.
    """
    means = weights @ law
    # centred before the powers: differences of raw moments would cancel
    centred = weights - means[:, None]
    variances = centred**2 @ law
    thirds = centred**3 @ law
    return (
        means,
        variances,
        np.divide(thirds, variances, out=np.zeros_like(thirds), where=variances > 0),
    )


def normal_quantile(confidence: float, count: int = 1) -> float:
    """Compute the normal quantile for K simultaneous intervals (Bonferroni)."""
    return -float(special.ndtri((1 - confidence) / (2 * count)))


def compute_wald_ends(
    values: FloatArray, variances: FloatArray, people: float, quantile: float
) -> FloatArray:
    """Compute the (K, 2) Wald intervals `value -+ z sqrt(variance / n)`.

    Examples:
        >>> compute_wald_ends(np.array([0.5]), np.array([1.0]), 100, 1.96).round(3).tolist()
        [[0.304, 0.696]]
    """
    width = quantile * np.sqrt(variances / people)
    return np.column_stack([values - width, values + width])


def compute_score_ends(
    values: FloatArray, variances: FloatArray, skews: FloatArray, people: float, quantile: float
) -> FloatArray:
    """Compute the (K, 2) score intervals `n (value - t)^2 <= z^2 s(t)`.

    With the law tilted towards t, as little as it takes, `s(t) = s + g (t - value) - (t - value)^2`, g being
    the third central moment over the variance. For a share of people that is `t (1 - t)`: Wilson's intervals.

    Args:
        values: (K,) the estimates, means of one weight for each person.
        variances: (K,) of one weight.
        skews: (K,) g, its third central moments over the variances.
        people: n.
        quantile: z.

    Source: [wilson1927probable], for shares.

    Examples:
        >>> compute_score_ends(np.array([0.1]), np.array([0.09]), np.array([0.8]), 50, 1.96).round(4).tolist()
        [[0.0435, 0.2136]]
    """
    # both ends are roots of one quadratic; its discriminant is a sum of squares, never negative
    square = quantile**2
    root = np.sqrt((square * skews) ** 2 + 4 * (people + square) * square * variances)
    return np.column_stack([
        values + (square * skews + side * root) / (2 * (people + square)) for side in (-1, 1)
    ])  # fmt: skip


def compute_bernstein_width(
    variance: FloatArray | float, span: FloatArray | float, people: float, risk: float
) -> FloatArray:
    """Compute the half-width of Bernstein intervals, valid for every sample size.

    `sqrt(2 V L / n) + 7 R L / (3 (n - 1))` with `L = log(4 / risk)`, V the sample variance (of n - 1 degrees)
    and R the span of the numbers. Infinite for one person.

    Source: [maurer2009empirical, Theorem 4], on both sides.

    Examples:
        >>> compute_bernstein_width(1.0, 2.0, 1000, 0.05).round(4).tolist()
        0.1141
    """
    # the sample variance has n - 1 degrees: of one person there is none
    if people < 2:
        return np.full(np.shape(variance), np.inf)
    log = math.log(4 / risk)
    return np.asarray(
        np.sqrt(2 * np.asarray(variance) * log / people)
        + 7 * np.asarray(span) * log / (3 * (people - 1))
    )


def compute_exact_intervals(
    matrix: FloatArray,
    counts: IntArray,
    combinations: FloatArray,
    weights: FloatArray,
    confidence: float,
) -> FloatArray:
    """Compute the (K, 2) exact ranges of w f over frequencies consistent with the counts.

    The law of the output is in a box [l, u] of Clopper-Pearson intervals with the confidence requested, for
    any number of people. An end is the linear program `max w f` over `f >= 0`, `sum f = 1`, `l <= f P <= u`,
    as proved by its multipliers v: for every v in R^M

        w f <= max_x (w - P v)[x] + sum_y (u[y] max(v[y], 0) - l[y] max(-v[y], 0)),

    so that what a solver does cannot make an interval too short. Where no frequencies agree with the box,
    the (K, M) weights of the unbiased estimate serve as v. They hold together, however many there are.

    Source: [clopper1934confidence]; [boyd2004convex, Section 5.2] (the bound by duality).
    """
    from pmlopt.solvers import highs

    occurs = matrix.max(axis=0) > 0
    columns = matrix[:, occurs]
    n = len(matrix)
    # Clopper-Pearson, with the risk shared by all outputs: the box covers the law at once
    box = confidence_box([int(count) for count in counts[occurs]], 1 - confidence)
    system = sparse.csc_array(np.vstack([columns.T, np.ones(n)]))
    solver = highs.load_model(
        highs.build_columnwise_model(
            np.zeros(n),
            (0.0, 1.0),
            (np.append(box.lower, 1.0), np.append(box.upper, 1.0)),
            (system.indptr, system.indices, system.data),
        ),
        highs.RESTART_OPTIONS,
    )

    def prove_upper_end(combination: FloatArray, estimate: FloatArray) -> float:
        """Compute a proved upper end of one combination."""
        solver.changeColsCost(n, np.arange(n, dtype=np.int32), -combination)
        solver.run()
        # any finite multipliers give a valid bound (weak duality), however the solver ended
        duals = np.array(solver.getSolution().row_dual)
        candidates = [estimate, np.zeros(len(estimate))]  # the latter: no frequencies give more
        if len(duals) == len(estimate) + 1 and np.isfinite(duals).all():
            candidates.append(-duals[:-1])
        return min(
            float(
                (combination - columns @ v).max()
                + box.upper @ np.maximum(v, 0)
                - box.lower @ np.maximum(-v, 0)
            )
            for v in candidates
        )

    units = np.abs(combinations).max(axis=1, keepdims=True)  # the solver's tolerance is absolute
    units = np.where(units > 0, units, 1.0)
    ends = np.array([
        (-prove_upper_end(-row, -weight), prove_upper_end(row, weight))
        for row, weight in zip(combinations / units, weights[:, occurs] / units, strict=True)
    ])  # fmt: skip
    return np.asarray(units * ends)


MIN_EXPECTED_COUNT = 5.0
"""The least expected count of every output at which the law of large samples is used."""


@dataclass(frozen=True)
class GoodnessOfFit:
    """The likelihood-ratio test of counts against every law `f P` of the outputs.

    Attributes:
        statistic: `G = 2 n KL(shares || f P)` at the most likely frequencies f.
        degrees: of freedom, those of the frequencies that are not zero.
        p_value: of chi-square where at least five people are expected at every output; elsewhere a bound
            that holds for any number of people.
    """

    statistic: float
    degrees: int
    p_value: float


def goodness_of_fit(
    matrix: FloatArray, counts: IntArray | FloatArray, frequencies: FloatArray
) -> GoodnessOfFit:
    """Test the fit of output counts to a mechanism by likelihood ratio.

    The degrees of freedom are those of the face of the simplex on which the most likely frequencies are: the
    number of outputs less the rank of the letters that are not absent. Where few people are expected at an
    output, `exp(-g) (e g / (M - 1))^(M - 1)` with `g = G / 2 > M - 1` bounds the p-value: the statistic at
    the true frequencies is no smaller.

    Args:
        matrix: (N, M).
        counts: (M,) of n people.
        frequencies: (N,) the most likely ones.

    Before it is compared with chi-square the statistic is divided by what its mean is larger, of many
    outputs.

    Source: [susko2013likelihood] (the degrees); [agrawal2020finite, Theorem 1.2] (the bound);
    [williams1976improved] (the divisor).

    Examples:
        >>> response = np.array([[0.75, 0.25], [0.25, 0.75]])
        >>> found = goodness_of_fit(response, np.array([900, 100]), np.array([1.0, 0.0]))
        >>> found.degrees, found.p_value < 1e-6
        (1, True)
    """
    law = frequencies @ matrix
    people = float(counts.sum())
    seen = counts > 0
    with np.errstate(divide="ignore"):
        ratio = np.log(counts[seen] / people) - np.log(law[seen])
    statistic = max(0.0, 2 * float(counts[seen] @ ratio))
    occurs = matrix.max(axis=0) > 0
    outputs = int(occurs.sum())
    # Frequencies up to this are taken for zero.
    sizes = np.linalg.svd(matrix[frequencies > 1e-9], compute_uv=False)
    degrees = outputs - int((sizes > RANK_RTOL * sizes[0]).sum())
    # an output occurred that no frequencies emit
    if math.isinf(statistic):
        return GoodnessOfFit(statistic, max(degrees, 0), 0.0)
    if degrees <= 0:
        return GoodnessOfFit(statistic, 0, 1.0)
    if (people * law[occurs]).min() >= MIN_EXPECTED_COUNT:
        larger = 1 + float((1 / law[occurs]).sum() - 1) / (6 * people * degrees)
        return GoodnessOfFit(statistic, degrees, _chi_square_tail(degrees, statistic / larger))
    # valid for any n: the exponential bound on n KL(empirical law || law)
    half = statistic / 2
    rest = outputs - 1
    bound = math.exp(rest - half + rest * math.log(half / rest)) if half > rest else 1.0
    return GoodnessOfFit(statistic, degrees, min(1.0, bound))


def independence(counts: ArrayLike) -> GoodnessOfFit:
    """Test the independence of two columns from counts of released pairs.

    `G = 2 sum c log(c n / (r c'))` with the sums r and c' of rows and columns. Where each column is released
    separately (or left clear), independent columns have independent outputs: a low p-value speaks against
    independence of the columns themselves. The outputs show less of a dependence than the columns have.

    Args:
        counts: (M1, M2), one axis for the outputs of each column.

    Raises:
        PriorError: a count is negative or not a whole number, or there are no people.
        InputError: fewer than five people are expected at a pair of outputs that occur: merge outputs.

    Examples:
        >>> found = independence([[30, 20], [20, 30]])
        >>> found.degrees, round(found.p_value, 3)
        (1, 0.046)
    """
    table = check_counts(counts, 2).astype(float)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    # chi-square is a limit law, and misleads where few people are expected
    if expected.min() < MIN_EXPECTED_COUNT:
        raise InputError(
            f"at a pair of outputs {expected.min():.2g} people are expected: too few for a test"
        )
    seen = table > 0
    statistic = max(0.0, 2 * float(table[seen] @ np.log(table[seen] / expected[seen])))
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not degrees:
        return GoodnessOfFit(statistic, 0, 1.0)
    rows = float((table.sum() / table.sum(axis=1)).sum()) - 1
    columns = float((table.sum() / table.sum(axis=0)).sum()) - 1
    larger = 1 + rows * columns / (6 * float(table.sum()) * degrees)
    return GoodnessOfFit(statistic, degrees, _chi_square_tail(degrees, statistic / larger))


def check_counts(numbers: ArrayLike, ndim: int) -> IntArray:
    """Validate output counts as nonnegative integers with a positive sum."""
    # The largest number of people: up to here floats hold every whole number.
    largest_count = 2**53
    array = copy_float_array(numbers, ndim, "the counts", PriorError)
    wrong = array[(array < 0) | (array != np.rint(array))]
    if wrong.size:
        raise PriorError(
            f"the counts have the entry {wrong[0]:g}: give whole numbers of at least 0"
        )
    total = float(array.sum())
    if total == 0:
        raise PriorError("the counts are all 0: from no people nothing can be estimated")
    if total > largest_count:
        raise PriorError(f"the counts sum to {total:g}: give at most {largest_count} people")
    return array.astype(np.int64)


def _chi_square_tail(degrees: int, statistic: float) -> float:
    """Compute the upper tail probability of the chi-square distribution."""
    return float(special.chdtrc(degrees, statistic))


def check_confidence(value: float) -> float:
    """Validate a confidence in (0, 1)."""
    return check_in_interval(value, "(0, 1)", "the confidence", InputError, ", such as 0.95")
