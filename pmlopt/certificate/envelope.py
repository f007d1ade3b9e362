"""What proves an envelope: an attack from below, multipliers from above."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq

from pmlopt.checks import FloatArray, rounding_of

if TYPE_CHECKING:
    from pmlopt.builders.envelope import EnvelopeProgram


def bad_mass(program: EnvelopeProgram, ratio: float, multipliers: FloatArray) -> float:
    """A mass that no post-processing can give to outcomes that leak log t or more.

    For any lam >= 0: `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, the dual of `EnvelopeProgram`.
    What rounding may have taken off is added.

    Args:
        program: of the mechanism.
        ratio: t.
        multipliers: (N,) lam.

    Examples:
        >>> from pmlopt.builders import envelope_program
        >>> program = envelope_program([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        >>> round(bad_mass(program, 1.6, np.array([10.0, 10.0])), 9)  # no outcome leaks log 1.6
        0.0
    """
    lam, law, matrix = np.maximum(multipliers, 0.0)[:, None], program.law, program.merged
    worth = law + lam * (matrix - ratio * law)
    largest = worth.max(axis=0)
    # what rounding may have taken off each term, and off their sum
    digits = 2 * (len(multipliers) + 4) * float(np.finfo(float).eps)
    error = digits * (law + (lam * (matrix + ratio * law)).max(axis=0))
    terms = np.maximum(0.0, largest + error)
    return float(terms.sum()) + rounding_of(len(terms), float(terms.sum()))


def largest_ratio(program: EnvelopeProgram, delta: float, multipliers: FloatArray, most: float) -> float:
    """A ratio t that no post-processing reaches with mass delta, as small as the multipliers prove.

    `bad_mass` does not rise with t, so a root search finds where it falls below delta.

    Args:
        program: of the mechanism.
        delta: the mass.
        multipliers: (N,) lam.
        most: a ratio that is proved already; it is returned where the multipliers prove nothing better.
    """

    def surplus(ratio: float) -> float:
        return bad_mass(program, ratio, multipliers) - delta

    if surplus(most) >= 0 or most <= 1:
        return most
    if surplus(1.0) < 0:
        return 1.0
    root = float(brentq(surplus, 1.0, most, rtol=1e-15, xtol=1e-15))
    step = math.ulp(root)
    while surplus(root) >= 0:  # by rounding, and where the mass falls at once
        root, step = root + step, 2 * step
    return min(root, most)
