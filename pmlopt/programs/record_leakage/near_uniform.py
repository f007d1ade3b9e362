"""What a record leaks at most when the dataset is nearly uniform: a bound that needs no cells.

Where b is log |X| up to rounding, a float leaves room for priors beside the uniform one, and what they leak
rises with the square root of that room: 1e-16 nats of entropy are worth 1e-8 nats of leakage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal, localcontext

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.exact.decimals import DIGITS, Rows, dot, log_sum, mixed, stochastic, total


def entropy_room(alphabets: Sequence[int], entropy: float) -> Decimal:
    """How far below log |X| the entropy of a dataset may fall, in nats: `log |X| - b`, and at least 0.

    Args:
        alphabets: the number of letters of each record.
        entropy: b, the float itself.

    Examples:
        >>> import math
        >>> 0 < entropy_room((2, 2, 2), math.log(8)) < Decimal("1e-15")
        True
    """
    with localcontext() as context:
        context.prec = DIGITS
        sizes = Counter(alphabets)
        largest = total(times * Decimal(letters).ln() for letters, times in sizes.items())
        return max(Decimal(0), largest - Decimal(entropy))


def near_uniform_bound(rows: FloatArray, log_counts: FloatArray, room: Decimal) -> Decimal:
    """What no prior within some room of the largest entropy leaks more of a record than, in nats.

    Let P be the prior, U the uniform one, `D(P||U) = log |X| - H(P) <= room`, and
    `g(a, t) = sum_y W[t,y] log(u(y|a) / u(y))`, whose mean under U is I_U(X_i; Y). Then for every s > 0

        I_P(X_i; Y) <= D(P_{X_i Y} || U_{X_i} x U_Y)       the product of P's own marginals is nearest
                    <= room + E_P[g]                       D(P_{X_i Y} || U_{X_i Y}) <= D(P || U)
                    <= room + s log E_U[exp(g / s)] + s room

    by Donsker and Varadhan's variational formula for D(P||U). The s is `sqrt(Var_U[g] / (2 room))`, the best
    one to second order; and E_P[g] is never above the largest g.

    Args:
        rows: (T, M) W, taken over their sums.
        log_counts: (A, T) log c; -inf for an empty cell.
        room: in nats, at least 0.

    Returns:
        The bound in 50 digits; I_U itself where there is no room.

    Examples:
        >>> counts = np.log([[4.0, 4.0], [4.0, 4.0]])  # parity: a uniform dataset tells nothing by it
        >>> near_uniform_bound(np.array([[0.75, 0.25], [0.25, 0.75]]), counts, Decimal("1e-10"))
        Decimal('1E-10')
    """
    with localcontext() as context:
        context.prec = DIGITS
        exact = stochastic(rows)
        law = [
            [Decimal(count).exp() if np.isfinite(count) else Decimal(0) for count in part]
            for part in log_counts.tolist()
        ]
        whole = total(total(part) for part in law)
        law = [[count / whole for count in part] for part in law]
        pairs = [
            (mass, dot(row, ratios))
            for part, ratios in zip(law, _log_ratios(law, exact), strict=True)
            for mass, row in zip(part, exact, strict=True)
            if mass
        ]
        mean = total(mass * gain for mass, gain in pairs)
        if not room:
            return mean
        most = max(gain for _, gain in pairs)
        variance = total(mass * (gain - mean) ** 2 for mass, gain in pairs)
        price = (variance / (2 * room)).sqrt()
        if not price:
            return most + room
        logs = [mass.ln() + (gain - mean) / price for mass, gain in pairs]
        return room + min(most, mean + price * (log_sum(logs) + room))


def _log_ratios(law: Rows, rows: Rows) -> Rows:
    """(A, M) log(u(y|a) / u(y)); 0 where the letter never leads to the output."""
    given = [mixed([mass / total(part) for mass in part], rows) for part in law]
    alone = mixed([total(column) for column in zip(*law, strict=True)], rows)
    return [
        [(one / other).ln() if one else Decimal(0) for one, other in zip(part, alone, strict=True)]
        for part in given
    ]
