"""Logarithms of ratios of integers, rounded so that no level is stated too low."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal

_CEILING = Context(prec=60, rounding=ROUND_CEILING)


def log_ratio_up(numerator: int, denominator: int) -> float:
    """Compute log(numerator / denominator) to the next float above; 0 for a ratio below one.

    Args:
        numerator: at least 0.
        denominator: an integer; the logarithm is infinite where it is not positive and the numerator is.

    Examples:
        >>> round(log_ratio_up(3, 2), 9), log_ratio_up(2**80 + 1, 2**80) == 2.0**-80, log_ratio_up(1, 0)
        (0.405465108, True, inf)
    """
    excess = numerator - denominator
    if excess <= 0:
        return 0.0
    if denominator <= 0:
        return math.inf
    if excess * 10**20 < denominator:
        # log(1 + x) is below x by less than a float next to x resolves
        found = _CEILING.divide(Decimal(excess), Decimal(denominator))
    else:
        ratio = _CEILING.divide(Decimal(numerator), Decimal(denominator))
        found = _CEILING.next_plus(_CEILING.ln(ratio))  # `ln` rounds to nearest
    nearest = float(found)
    return nearest if Decimal(nearest) >= found else math.nextafter(nearest, math.inf)
