"""Constraint factors e^-epsilon, and the largest level that floats can represent."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray

MAX_EXPONENT = 700.0
"""The largest level in nats whose exponential is used as a float; floats overflow from 709.8 on."""


FACTOR_MARGIN_RTOL = 2.0**-40
"""Share by which constraints on a variable are stricter than the claim: 9e-13, far above the rounding of a
matrix entry (2^-53) and far below the tolerances of solvers (1e-9 to 1e-7)."""


Shares = TypeVar("Shares", float, FloatArray)


def tighten_factor(factor: Shares) -> Shares:
    """Return factors e^-eps tightened by 2^-40, as a safety margin for solvers.

    A vertex then satisfies the claim after its entries are rounded to floats, zeros and all: without the
    margin its tight entries would need a repair, which fills the zeros. The share is far
    below any solver's tolerance, and so is what it costs the utility.
    """
    stricter = factor * (1 + FACTOR_MARGIN_RTOL)
    return np.minimum(1.0, stricter) if isinstance(stricter, np.ndarray) else min(1.0, stricter)
