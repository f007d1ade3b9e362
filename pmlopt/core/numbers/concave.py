"""Maximization of smooth concave functions over the probability simplex, with bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, bound_sum_rounding

Local: TypeAlias = tuple[float, FloatArray, FloatArray]
"""Of a law the value of the function, its (N,) gradient, and minus its (N, N) second derivatives."""


def maximize_over_laws(
    local: Callable[[FloatArray], Local], letters: int, tolerance: float, iterations: int = 200
) -> tuple[FloatArray, float, float]:
    """Maximise a concave function over the simplex; return maximiser, value and upper bound.

    A primal-dual interior point. The bound `f(p) + max_x g[x] - <p, g>` holds at every law p, whatever the
    steps: where they stall, both ends are true and further apart.

    Args:
        local: the function at a law with positive masses.
        letters: N.
        tolerance: how near the value at a law and the bound that it proves must be.
        iterations: at most so many.

    Returns:
        The (N,) law at which both are so near, or else the one with the least bound; the largest value met,
        and the least bound.

    Examples:
        >>> weights = np.array([0.7, 0.3])  # sum w log p is largest at p = w
        >>> found = maximize_over_laws(
        ...     lambda p: (float(weights @ np.log(p)), weights / p, np.diag(weights / p**2)), 2, 1e-12)
        >>> found[0].round(6).tolist(), round(found[1], 9) == round(found[2], 9) == -0.610864302
        ([0.7, 0.3], True)
    """
    # The share of the way to the nearest boundary that a step may go.
    to_boundary = 0.99
    law = best = np.full(letters, 1 / letters)
    lower = -math.inf
    upper = math.inf
    slack = None
    value, gradient, curved = local(law)
    for _ in range(iterations):
        # concavity: f(q) <= f(p) + <g, q - p>, and the largest
        # <g, q> over laws q is the largest entry of g
        bound = value + float(gradient.max()) - float(law @ gradient)
        lower = max(lower, value)
        near = bound - value <= tolerance
        if near or bound < upper:
            best = law
        upper = min(upper, bound)
        if near:
            break
        # dual feasible with a margin: a slack of 0 at the best
        # letter would put the start on the boundary
        if slack is None:
            slack = gradient.max() - gradient + max(float(np.ptp(gradient)), upper - lower, 1e-300)
        # The share of the complementarity that a step aims at.
        aim = 0.1 * float(law @ slack) / letters
        system = curved + np.diag(slack / law)
        try:
            # one factorisation for two right sides: the step without the constraint, and its correction
            both = np.linalg.solve(
                system, np.stack([gradient + aim / law, np.ones(letters)], axis=1)
            )
        except np.linalg.LinAlgError:
            break
        # a singular system: the bounds found so far hold, and no step from it would be meaningful
        if not (np.isfinite(both).all() and both[:, 1].sum() > 0):
            break
        # the multiplier of `sum(p) = 1` is chosen so that the step sums to 0
        step = both[:, 0] - both[:, 1] * (both[:, 0].sum() / both[:, 1].sum())
        dual = aim / law - slack - slack / law * step
        length = min(1.0, to_boundary * steps_to_boundary(law, step))
        barrier = value + aim * float(np.log(law).sum())
        # near the optimum the barrier rises by less than its rounding: such steps must count as rises
        barrier -= bound_sum_rounding(letters, 1.0) * (abs(value) + abs(barrier))
        # Of a step that does not raise the barrier function: more would not move a float.
        for _ in range(40):
            moved = law + length * step
            # the step sums to 0 except for rounding, which would accumulate over the iterations
            moved = moved / moved.sum()
            found = local(moved)
            if found[0] + aim * float(np.log(moved).sum()) >= barrier:
                break
            length /= 2
        else:
            break
        slack = slack + min(1.0, to_boundary * steps_to_boundary(slack, dual)) * dual
        law = moved
        value, gradient, curved = found
    return best, lower, max(lower, upper)


def steps_to_boundary(point: FloatArray, step: FloatArray) -> float:
    """Compute the step length to the boundary of the positive orthant."""
    # only coordinates that fall can reach 0
    down = step < 0
    return float((point[down] / -step[down]).min()) if down.any() else math.inf


def make_power_sum(
    weights: FloatArray, powers: FloatArray, order: float
) -> Callable[[FloatArray], Local]:
    """Return the concave function `sum_k weights[k] (sum_x p[x] powers[x,k])^(1/order)` of a law p.

    Args:
        weights: (K,) non-negative.
        powers: (N, K) non-negative, without a column of zeros.
        order: above 1.
    """

    def evaluate_with_gradient(law: FloatArray) -> Local:
        # powers that underflow leave a mean of 0, by which the slopes divide
        means = np.maximum(law @ powers, 1e-300)
        terms = weights * means ** (1 / order)
        # chain rule with c means^(1/order): the gradient is powers @ slopes
        slopes = terms / means / order
        # order > 1 makes this non-negative, so minus the Hessian is a sum of squares
        curves = slopes / means * (1 - 1 / order)
        return float(terms.sum()), powers @ slopes, (powers * curves) @ powers.T

    return evaluate_with_gradient
