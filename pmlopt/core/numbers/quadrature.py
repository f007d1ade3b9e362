"""Integrals of functions of one number, several at once, with an estimate of their error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.core.lazy_imports import special
from pmlopt.core.numbers.arrays import FloatArray


def integrate_on_panels(
    weigh_values: Callable[[FloatArray, FloatArray], FloatArray],
    edges: FloatArray,
    atol: float,
    is_enough: Callable[[FloatArray, float], bool] = lambda found, error: False,
) -> tuple[FloatArray, float]:
    """Integrate N functions by Gauss and Lobatto on panels, which are halved until both halves agree.

    Args:
        weigh_values: from (K,) numbers and (K,) weights to the (N, K) values of the functions at the numbers,
            times the weights.
        edges: ascending numbers, the ends of the first panels.
        atol: the error at which no panel is halved any more.
        is_enough: from (N,) integrals and an error to whether they are good enough before that.

    Returns:
        The (N,) integrals, and the sum of what panels differ from their halves by: the halves are nearer.

    Examples:
        >>> found, error = integrate_on_panels(
        ...     lambda x, weights: weights * np.array([x**2, x > 0.3]), np.array([0.0, 1.0]), 1e-9
        ... )
        >>> found.round(6).tolist(), error < 1e-9
        ([0.333333, 0.7], True)
    """
    # Lobatto's nodes have the ends of a panel: a jump next to one, which inner nodes miss, is seen
    basis = np.polynomial.legendre.Legendre.basis(9)
    # those between are the zeros of the slope of the polynomial, which is one of Jacobi's
    nodes = np.concatenate([[-1.0], special.roots_jacobi(8, 1, 1)[0], [1.0]])
    shares = 2 / (90 * basis(nodes) ** 2)

    def integrate(left: FloatArray, right: FloatArray) -> FloatArray:
        half = (right - left) / 2
        numbers = (left + half)[:, None] + half[:, None] * nodes
        values = weigh_values(numbers.ravel(), np.outer(half, shares).ravel())
        return np.asarray(values.reshape(len(values), len(left), -1).sum(axis=2))

    left = edges[:-1]
    right = edges[1:]
    panels = integrate(left, right)
    settled = np.zeros(len(panels))
    error = 0.0
    for _ in range(45):
        middle = left + (right - left) / 2
        both = np.append(left, middle), np.append(middle, right)
        halves = integrate(*both).reshape(len(panels), 2, -1)
        apart = np.abs(halves.sum(axis=1) - panels).max(axis=0)
        found = settled + halves.sum(axis=(1, 2))
        spread = error + float(apart.sum())
        if spread < atol or is_enough(found, spread):
            break
        wide = apart > atol / 1000
        settled += halves[:, :, ~wide].sum(axis=(1, 2))
        error += float(apart[~wide].sum())
        left, right = (one.reshape(2, -1)[:, wide].ravel() for one in both)
        panels = halves[:, :, wide].reshape(len(panels), -1)
    return found, spread
