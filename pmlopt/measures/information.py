"""Averages of information."""

from __future__ import annotations

import numpy as np

from pmlopt.checks import FloatArray
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.prior import PriorLike


def mutual_information(prior: PriorLike, mechanism: MechanismLike) -> float:
    """I(X; Y) = sum_xy p[x] P[x,y] log(P[x,y] / q[y]), in nats.

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


def surplus(d: FloatArray) -> FloatArray:
    """(1 + d) log(1 + d) - d >= 0: its mean is that of (1 + d) log(1 + d), with no terms to cancel."""
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
