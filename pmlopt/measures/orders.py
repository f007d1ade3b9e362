"""Leakage of finite order, computed without cancellation near order 1."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.numbers.concave import Local, maximize_over_laws
from pmlopt.data.mechanism import MechanismLike, as_mechanism
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import entropy_surplus, log_entry_ratios


def order_surplus(d: FloatArray, alpha: float) -> FloatArray:
    """Compute `((1 + d)^alpha - 1 - alpha d) / (alpha - 1) >= 0` for d >= -1 and alpha above 0.

    Of mean-zero d its mean is `(E (1 + d)^alpha - 1) / (alpha - 1)`, and no terms cancel. At alpha = 1 it is
    the limit, `entropy_surplus`.

    Examples:
        >>> order_surplus(np.array([0.5, 1e-9]), 2.0).tolist() == [0.25, 1e-9**2]
        True
    """
    d = np.asarray(d, dtype=float)
    if alpha == 1:
        return entropy_surplus(d)
    inside = np.where(d > -1, d, 0.0)
    logs = np.where(d > -1, np.log1p(inside), -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(d > -1, (1 + d) * np.expm1((alpha - 1) * logs) / (alpha - 1), 0.0) - d
    # Below so much of `max(1, alpha) |d|` a power series is summed in place of terms that cancel.
    small = np.abs(d) * max(1.0, alpha) < 0.1
    near = d[small]
    if not near.size:
        return np.asarray(values)
    # Of the power series: the rest is below the last digit of a float.
    coefficients = [alpha / 2]
    for k in range(2, 18 + 1):
        coefficients.append(coefficients[-1] * (alpha - k) / (k + 1))
    found = np.full_like(near, coefficients.pop())
    for coefficient in reversed(coefficients):
        found *= near
        found += coefficient
    values[small] = found * near**2
    return np.asarray(values)


def order_levels(law: FloatArray, columns: FloatArray, alpha: float) -> FloatArray:
    """Compute (M,) `log(sum_x w[x] (v[x] / <w, v>)^alpha) / (alpha - 1)` of columns v, not zero, under a law
    w.

    That is the divergence of order alpha of the posterior from the law, in nats; for alpha from 1 on.

    Args:
        law: (N,) that sums to one up to rounding.
        columns: (N, M) non-negative.
        alpha: at least 1 and finite.

    Examples:
        >>> even, response = np.array([0.5, 0.5]), np.array([[0.75], [0.25]])
        >>> np.exp(order_levels(even, response, 2.0)).round(12).tolist()
        [1.25]
    """
    top = columns.max(axis=0)
    shares = columns / top
    # differences from the likeliest letter: those of rare ones keep their digits, and so does its own
    rest = (columns - columns[law.argmax()]) / top
    moved = law @ rest
    means = law @ shares
    short = (top - columns) / top
    with np.errstate(over="ignore", divide="ignore"):
        surpluses = law @ order_surplus(np.maximum((rest - moved) / means, -1.0), alpha)
        near = surpluses if alpha == 1 else np.log1p((alpha - 1) * surpluses) / (alpha - 1)
        if alpha == 1:
            return np.asarray(near)
        peaks = np.where(means > 0.5, -np.log1p(-(law @ short)), -np.log(means))
        powers = np.exp(alpha * np.where(short < 0.5, np.log1p(-short), np.log(shares)))
        far = (alpha * peaks + np.log(law @ powers)) / (alpha - 1)
    return np.asarray(np.where((alpha - 1) * surpluses < 1, near, far))


def sibson_level(law: FloatArray, columns: FloatArray, alpha: float) -> float:
    """Compute Sibson's information of order alpha > 1 of a mechanism without columns of zeros, in nats.

    Examples:
        >>> round(float(np.exp(sibson_level(np.full(2, 0.5), np.array([[0.75, 0.25], [0.25, 0.75]]), 2))), 12)
        1.25
    """
    beta = (alpha - 1) / alpha
    means = law @ columns
    with np.errstate(over="ignore"):
        over = np.expm1(beta * order_levels(law, columns, alpha)) / beta
    return float(np.log1p(beta * (means / means.sum() @ over)) / beta)


def maximal_alpha_leakage(
    mechanism: MechanismLike, alpha: float, tolerance: float = 1e-12, iterations: int = 200
) -> tuple[float, float]:
    """Compute bounds on maximal alpha-leakage, the largest Sibson information of order alpha over all priors.

    With `u[y] = sum_x p[x] P[x,y]^alpha` it is `alpha / (alpha - 1) log max_p sum_y u[y]^(1/alpha)`, in nats:
    near the channel capacity for orders near 1, and the maximal leakage at infinity. The sum is concave in
    p, and every prior has a law of the output that proves a bound; see `find_renyi_centre`.

    Args:
        mechanism: (N, M).
        alpha: above 1 and finite.
        tolerance: how near both must be, in nats.
        iterations: at most so many; both bounds hold whenever it stops.

    Raises:
        PrivacyError: alpha is not above 1, or not finite.

    Source: [liao2019tunable, Theorem 2]; the capacity of an order is that of [arimoto1977information].

    Examples:
        >>> lower, upper = maximal_alpha_leakage([[0.75, 0.25], [0.25, 0.75]], 2)  # 2 log(2 sqrt(0.3125))
        >>> round(math.exp(lower), 9), round(math.exp(upper), 9)
        (1.25, 1.25)
    """
    if not 1 < alpha < math.inf:
        raise PrivacyError(
            f"alpha is {alpha}: give a number above 1, or take the capacity or maximal leakage"
        )
    return find_renyi_centre(as_mechanism(mechanism).matrix, alpha, tolerance, iterations)[1:]


def find_renyi_centre(
    matrix: FloatArray, alpha: float, tolerance: float = 1e-14, iterations: int = 200
) -> tuple[FloatArray, float, float]:
    """Find the output law that minimises the largest Renyi divergence of the rows.

    `min_t max_x D_alpha(P[x] || t)` is the maximal alpha-leakage: the best t is proportional to
    `(sum_x p[x] P[x,y]^alpha)^(1/alpha)` at the best prior p. Any t proves an upper bound.

    Args:
        matrix: (N, M) rows that sum to one.
        alpha: above 1.
        tolerance: in nats.
        iterations: at most so many.

    Returns:
        (M,) t, zero for outputs that never occur; what a prior reaches, and what t proves, in nats.

    Source: [csiszar1995generalized] for the equality.

    Examples:
        >>> centre, lower, upper = find_renyi_centre(np.array([[1.0, 0.0], [0.5, 0.5]]), 2)
        >>> centre.round(6).tolist()  # 1 / t = 1 / (4 t) + 1 / (4 (1 - t))
        [0.75, 0.25]
        >>> round(math.exp(upper), 9)
        1.333333333
    """
    occurs = matrix.max(axis=0) > 0
    rows = matrix[:, occurs]
    beta = (alpha - 1) / alpha
    law, value, _ = maximize_over_laws(
        _make_rescaled_norms(rows, alpha), len(matrix), tolerance, iterations
    )
    means = law @ rows
    centre = np.zeros(matrix.shape[1])
    centre[occurs] = means * np.exp(beta * order_levels(law, rows, alpha))
    centre = centre / centre.sum()
    lower = max(0.0, math.log1p(beta * value) / beta)
    used = centre > 0
    divergences = order_levels(centre[used], (matrix[:, used] / centre[used]).T, alpha)
    return centre, lower, max(lower, float(divergences.max()))


def _make_rescaled_norms(rows: FloatArray, alpha: float) -> Callable[[FloatArray], Local]:
    """Return the concave function whose maximum over laws is Sibson's capacity, rescaled.

    Near alpha = 1 that is the mutual information. Gradients are up to one constant for all letters.
    """
    beta = (alpha - 1) / alpha

    def evaluate_with_gradient(law: FloatArray) -> Local:
        means = law @ rows
        levels = order_levels(law, rows, alpha)
        lengths = means * np.exp(beta * levels)
        ratios = log_entry_ratios(rows, np.broadcast_to(means, rows.shape)) - beta * levels
        value = float(means @ np.expm1(beta * levels)) / beta
        slopes = (rows * np.expm1((alpha - 1) * ratios)).sum(axis=1) / (alpha - 1)
        powers = np.exp(alpha * ratios)
        return value, slopes, (powers * lengths / alpha) @ powers.T

    return evaluate_with_gradient
