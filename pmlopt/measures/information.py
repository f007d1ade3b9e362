"""Information that an output carries about the secret, on average."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.mechanism import MechanismLike, as_mechanism, paired
from pmlopt.prior import PriorLike


def mutual_information(prior: PriorLike, mechanism: MechanismLike) -> float:
    """The mutual information I(X; Y) = sum_xy p[x] P[x,y] log(P[x,y] / q[y]), in nats.

    Examples:
        >>> import math
        >>> round(math.exp(mutual_information([0.5, 0.5], np.eye(2))), 12)
        2.0
    """
    p, m = paired(prior, mechanism)
    occurring = m.matrix[:, m.support]
    peaks = occurring.max(axis=0)
    shapes = occurring / peaks
    short = p.pmf @ ((peaks - occurring) / peaks)
    law = np.where(short < 0.5, 1 - short, p.pmf @ shapes)  # of the output, over the peak
    return float(p.pmf @ surplus((shapes - law) / law) @ (law * peaks))


def channel_capacity(
    mechanism: MechanismLike, tolerance: float = 1e-12, iterations: int = 100_000
) -> tuple[float, float]:
    """The channel capacity, the largest mutual information over all priors, from below and above, in nats.

    Blahut-Arimoto: `p <- p exp(D) / sum`, D[x] the divergence of row x from the output law. The information
    is the lower bound, the largest D the upper one.

    Args:
        mechanism: (N, M).
        tolerance: how near both must be, in nats.
        iterations: at most so many; both bounds hold whenever it stops.

    Examples:
        >>> lower, upper = channel_capacity([[0.9, 0.1], [0.1, 0.9]])  # log 2 - h(0.1)
        >>> round(lower, 9), round(upper, 9)
        (0.368064207, 0.368064207)
    """
    known = as_mechanism(mechanism)
    rows = known.matrix[:, known.support]
    law = np.full(len(rows), 1 / len(rows))
    lower, upper = 0.0, math.inf
    for _ in range(iterations):
        mean = law @ rows
        found = (rows * np.log(np.where(rows > 0, rows / mean, 1.0))).sum(axis=1)
        lower, upper = max(lower, float(law @ found)), min(upper, float(found.max()))
        if upper - lower <= tolerance:
            break
        law = law * np.exp(found - found.max())
        law = np.maximum(law / law.sum(), 1e-300)
    return lower, upper


def surplus(d: FloatArray) -> FloatArray:
    """The function (1 + d) log(1 + d) - d >= 0: of mean-zero d its mean is that of (1 + d) log(1 + d).

    No terms cancel: near 0 it is a power series.
    """
    small = np.abs(d) < 1e-2
    series = (
        d
        * d
        * np.polynomial.polynomial.polyval(
            np.where(small, d, 0.0), [1 / 2, -1 / 6, 1 / 12, -1 / 20, 1 / 30, -1 / 42, 1 / 56]
        )
    )
    positive = np.where(d > -1, d, 0.0)
    direct = np.where(d > -1, (1 + positive) * np.log1p(positive), 0.0) - d
    return np.where(small, series, direct)
