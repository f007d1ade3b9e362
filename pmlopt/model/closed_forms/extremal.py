"""Extremal mechanisms for PML: optimal for every sub-convex utility where they apply.

Each column of these matrices, divided by its mean, takes the value e^eps wherever it can, one value
between, and zero elsewhere. Source of all: [grosse2024extremal, Theorems 2 to 4].
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import (
    FloatArray,
    check_integer,
    check_nonnegative,
    check_real,
    copy_float_array,
)
from pmlopt.core.numbers.blocks import freeze
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.model.utility.linear import build_best_constant, build_best_deterministic


def constant(prior: PriorLike, gains: ArrayLike) -> Mechanism:
    """Build the constant mechanism that always releases the output of largest expected gain.

    It leaks nothing, and is optimal at epsilon = 0.

    Args:
        prior: N letters.
        gains: (N, M) gain of releasing y when the secret is x. The first of equals is taken.

    Examples:
        >>> constant([0.6, 0.4], [[1.0, 0.0], [0.0, 1.0]]).matrix
        array([[1., 0.],
               [1., 0.]])
    """
    p = as_prior(prior)
    table = _check_gains(gains, p.size)
    return Mechanism(build_best_constant(p.probabilities, table), p.labels)


def deterministic(prior: PriorLike, gains: ArrayLike) -> Mechanism:
    """Build the deterministic mechanism that releases each letter's output of largest gain.

    Optimal where every mechanism satisfies the requirement; under PML that is from epsilon = -log(min p) on
    [grosse2025empirical, Section II-A].

    Examples:
        >>> deterministic([0.6, 0.4], [[1.0, 0.0], [0.0, 1.0]]).matrix
        array([[1., 0.],
               [0., 1.]])
    """
    p = as_prior(prior)
    table = _check_gains(gains, p.size)
    return Mechanism(build_best_deterministic(table), p.labels)


def _check_gains(gains: ArrayLike, size: int) -> FloatArray:
    """Validate an (N, M) table of gains."""
    table = copy_float_array(gains, 2, "the gains", UtilityError)
    if len(table) != size:
        raise UtilityError(f"the gains have {len(table)} rows for {size} letters")
    return table


def binary(prior: PriorLike, epsilon: float) -> Mechanism:
    """Build the extremal mechanism on two letters, at any epsilon.

    With p1 >= p2 and t = e^eps: `[[t p2, 1 - t p2], [1 - t p1, t p1]]` while t p1 < 1, then
    `[[t p1 + t p2 - 1, 1 - t p2], [0, t p1]] / (t p1)` while t p2 < 1, and the identity after that.

    Raises:
        PrivacyError: the prior does not have two letters, or epsilon is negative.

    Source: [grosse2024extremal, Theorem 2], both regions.

    Examples:
        >>> binary([0.6, 0.4], math.log(1.25)).matrix.round(12)
        array([[0.5 , 0.5 ],
               [0.25, 0.75]])
        >>> binary([0.6, 0.4], math.log(2)).matrix.round(12)
        array([[0.83333333, 0.16666667],
               [0.        , 1.        ]])
    """
    p = as_prior(prior)
    if p.size != 2:
        raise PrivacyError(f"the binary mechanism needs a prior on 2 letters, not {p.size}")
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    # both masses: 1 - p would have fewer digits where p is near 1
    known = float(p.pmf[0]), float(p.pmf[1])
    matrix = np.eye(2) if level >= p.max_leakage else _build_binary_rows(known, known, level)
    return Mechanism(matrix, p.labels, p.labels)


def high_privacy(prior: PriorLike, epsilon: float) -> Mechanism:
    """Build the extremal mechanism of the high-privacy region (small epsilon), for any number of letters.

    `P[i,j] = e^eps p[j]` off the diagonal and `1 - e^eps (1 - p[i])` on it, for
    eps <= -log(1 - min p).

    Raises:
        PrivacyError: epsilon is negative or past the first privacy region.

    Source: [grosse2024extremal, Theorem 3].

    Examples:
        >>> high_privacy([0.4, 0.2, 0.2, 0.2], math.log(9 / 8)).matrix.round(12)[0]
        array([0.325, 0.225, 0.225, 0.225])
    """
    p = as_prior(prior)
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    # log1p: for many letters min p is small, and 1 - min p would lose its digits
    limit = -math.log1p(-float(p.pmf.min())) if p.size > 1 else 0.0
    if level > limit and not math.isclose(level, limit, rel_tol=1e-14):
        raise PrivacyError(
            f"the high-privacy mechanism needs epsilon <= -log(1 - min p) = {limit:.12g}, not {epsilon}"
        )
    # 1 - t (1 - p) = p - (1 - p) (t - 1), which is 0 at the limit but for rounding
    diagonal = np.maximum(0.0, p.pmf - (1 - p.pmf) * math.expm1(level))
    matrix = np.tile(math.exp(level) * p.pmf, (p.size, 1))
    np.fill_diagonal(matrix, diagonal)
    return Mechanism(matrix, p.labels, p.labels)


def uniform(size: int, epsilon: float) -> Mechanism:
    """Build the extremal mechanism for a uniform prior, at any epsilon.

    A circulant over `size`: with t = e^eps (at most `size`) and s = floor(size / t), each row has s
    entries t/size, one (size - s t)/size and zeros.

    Source: [grosse2024extremal, Theorem 4], continued to every epsilon by the knapsack form of a column.

    Examples:
        >>> uniform(4, math.log(4 / 3)).matrix.round(12)[0] * 3
        array([1., 1., 1., 0.])
    """
    n = check_integer(size, "the size of the alphabet", PrivacyError)
    # from log n on the identity satisfies the requirement, and nothing is better
    level = min(check_nonnegative(epsilon, "epsilon", PrivacyError), math.log(n))
    ratio = math.exp(level)
    full = math.floor(n / ratio)
    row = np.zeros(n)
    row[:full] = ratio / n
    if full < n:
        row[full] = (n - full * ratio) / n
    # row x is the first one moved by x places: a window of two copies of it
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate([row, row]), n)
    return Mechanism(freeze(windows[n:0:-1].copy()))


def k_singular(size: int, k: int) -> Mechanism:
    """Build the k-singular circulant: k entries 1/k in each row and column, zeros elsewhere.

    Optimal for the uniform prior at epsilon = log(size / k).

    Source: [grosse2024extremal, Theorem 4]; [grosse2025empirical, Example 2].

    Examples:
        >>> k_singular(3, 2).matrix
        array([[0.5, 0.5, 0. ],
               [0. , 0.5, 0.5],
               [0.5, 0. , 0.5]])
    """
    n = check_integer(size, "the size of the alphabet", PrivacyError)
    ones = check_integer(k, "k", PrivacyError)
    if ones > n:
        raise PrivacyError(f"k must be at most the size {n}, not {k}")
    shift = (np.arange(n)[None, :] - np.arange(n)[:, None]) % n
    return Mechanism((shift < ones) / ones)


def robust_binary(lowest: float, highest: float, epsilon: float) -> Mechanism:
    """Build the optimal mechanism on two letters for every prior whose first probability is in [lowest,
    highest].

    With t = e^eps and d = 1 + t (highest - lowest): `[[t (1 - lowest), 1 - t (1 - highest)],
    [1 - t lowest, t highest]] / d` while no entry is negative, then one zero, and the identity after that:
    from -log of the least probability of a letter on, and never where that is 0.
    For an l1 ball around (p1, 1 - p1): lowest and highest are p1 - radius/2 and p1 + radius/2.

    Args:
        lowest: at least 0 and below 1.
        highest: at least `lowest`, above 0 and at most 1.
        epsilon: in nats.

    Raises:
        PrivacyError: the interval is none, or epsilon is negative.

    Source: [grosse2025empirical, Theorem 5] (in the text; its Appendix C has a wrong sign of beta), and its
    footnote 6 carried out.

    Examples:
        >>> robust_binary(0.0, 1.0, math.log(3)).matrix  # Warner's randomized response
        array([[0.75, 0.25],
               [0.25, 0.75]])
        >>> robust_binary(0.6, 0.6, math.log(2)).matrix.round(12)  # the prior is known: `binary`
        array([[0.83333333, 0.16666667],
               [0.        , 1.        ]])
    """
    low = check_real(lowest, "an end of the interval", PrivacyError)
    high = check_real(highest, "an end of the interval", PrivacyError)
    if not 0 <= low <= high <= 1 or low == 1 or high == 0:
        raise PrivacyError(
            f"[{low:g}, {high:g}] is no interval of probabilities: give 0 <= lowest <= highest <= 1"
        )
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    return Mechanism(_build_binary_rows((low, 1 - low), (high, 1 - high), min(level, 700.0)))


def robust_randomized_response(size: int, lowest: float, epsilon: float) -> Mechanism:
    """Build the randomized response of level epsilon over a set of priors symmetric in the letters.

    With t = e^eps and L the least probability that a prior of the set gives a letter, the matrix is
    `1 - t L + (t - 1) I` over its row sum `N (1 - t L) + t - 1`, and the identity from `t L >= 1` on. A
    column is `b + a I_y`, whose least mean over the set is `b + a L`, and `a + b = t (b + a L)` is the bound
    with equality. Where no permutation of the letters changes the prior of the design and the set, it has the
    least Hamming loss of all N x N mechanisms: the mean of a mechanism over all permutations of letters and
    outputs loses as much, leaks no more, and is of this form.

    Args:
        size: N, at least 1.
        lowest: L, in [0, 1/N]: `1/N - radius/2`, or 0 if that is negative, for an l1 ball around the uniform
            prior; the least mass for `MinimumMass`.
        epsilon: in nats.

    Raises:
        PrivacyError: the size is no positive integer, `lowest` is no such probability, or epsilon is
            negative.

    Examples:
        >>> robust_randomized_response(3, 0.0, math.log(3)).matrix  # over all priors: local DP
        array([[0.6, 0.2, 0.2],
               [0.2, 0.6, 0.2],
               [0.2, 0.2, 0.6]])
        >>> robust_randomized_response(4, 0.25, math.log(2)).matrix[0]  # the prior is known
        array([0.5       , 0.16666667, 0.16666667, 0.16666667])
    """
    letters = check_integer(size, "the number of letters", PrivacyError)
    low = check_real(lowest, "the least probability of a letter", PrivacyError)
    if not 0 <= low <= 1 / letters + 1e-15:
        raise PrivacyError(
            f"the least probability of a letter is {low:g}: give one in [0, 1/{letters}]"
        )
    grown = math.expm1(min(check_nonnegative(epsilon, "epsilon", PrivacyError), 700.0))
    # 1 - t L without the cancellation of t near 1
    off = max(0.0, 1 - low - low * grown)
    if off == 0:
        return Mechanism(np.eye(letters))
    return Mechanism((off + grown * np.eye(letters)) / (letters * off + grown))


def _build_binary_rows(
    low: tuple[float, float], high: tuple[float, float], level: float
) -> FloatArray:
    """Compute the rows of `robust_binary` from the interval's ends."""
    ratio = math.exp(level)
    down = math.exp(-level)
    grown = math.expm1(level)
    # off the diagonal, times d: 1 - t (1 - high) = high - (1 - high) (t - 1), which loses no digits
    first = high[0] - high[1] * grown
    second = low[1] - low[0] * grown
    if min(first, second) >= 0:
        scale = 1 + ratio * (high[0] - low[0])
        return np.array([[ratio * low[1], first], [second, ratio * high[0]]]) / scale
    if second < 0:  # P[1,0] = 0; the second column bounds P[0,1] from below
        moved = max(0.0, (down - high[1]) / high[0])
        return np.array([[1 - moved, moved], [0.0, 1.0]])
    moved = max(0.0, (down - low[0]) / low[1])
    return np.array([[1.0, 0.0], [moved, 1 - moved]])
