"""Closed-form leakage bounds per record: noisy parities, one class per letter, nearly uniform datasets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import product

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, IntArray
from pmlopt.data.mechanism import Mechanism
from pmlopt.model import closed_forms
from pmlopt.model.queries import ModularSum, Query, RecordChannel
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_max_capacity,
)
from pmlopt.programs.exact.decimals import (
    DECIMAL_DIGITS,
    DecimalRows,
    dot_decimals,
    log_sum_exp_decimals,
    mix_decimal_rows,
    normalize_decimal_rows,
    sum_decimals,
)
from pmlopt.programs.record_leakage.adversary import BoundedAdversary


def is_parity(query: Query) -> bool:
    """Return whether a query is a parity of binary records."""
    return isinstance(query, ModularSum) and query.modulus == 2 and set(query.alphabets) == {2}


def get_parity_error(query: Query, mechanism: Mechanism) -> float | None:
    """Return the flip probability of a parity released through a symmetric channel; None for others."""
    if not is_parity(query):
        return None
    matrix = mechanism.matrix
    if matrix.shape != (2, 2) or (np.abs(matrix - matrix[::-1, ::-1]) > 1e-15).any():
        return None
    return float(matrix[0, 1])


def find_parity_leakage(channel: RecordChannel, entropy: float) -> float | None:
    """Return the closed-form leakage of a parity, in nats; None where it does not apply."""
    error = get_parity_error(channel.query, channel.mechanism)
    if error is None or len(channel.rows) != 2:
        return None
    return closed_forms.parity_leakage(channel.query.records, error, entropy)


MAX_CLASS_CHOICES = 20_000


@dataclass(frozen=True, eq=False)
class OneClassCapacity:
    """The largest capacity of a channel from the record's letter that uses one dataset class per letter.

    It is the leakage L(0), and L(b) for every b up to the entropy of a dataset of these classes only:
    `h(pi) + sum_a pi_a log c(a, t_a)`, pi the capacity-achieving law of the letters. For I(X_i; Y) is convex
    in the laws of T given each letter together, so that extreme ones leak most, and those are classes.

    Attributes:
        joint: (A, T) the law J that attains it; where there are several, the one of the largest entropy.
        entropy: of the dataset under it.
        upper_bound: in nats; no law leaks more, whatever b is.
        laws: (R, M) that prove it; see `RecordKindProof`.
    """

    joint: FloatArray
    entropy: float
    upper_bound: float
    laws: FloatArray


def compute_one_class_capacity(adversary: BoundedAdversary) -> OneClassCapacity | None:
    """Compute the largest capacity over choices of one class per letter; None for too many choices.

    Examples:
        >>> rows = np.array([[0.9, 0.1], [0.1, 0.9]])  # parity of four records through a symmetric channel
        >>> found = compute_one_class_capacity(
        ...     BoundedAdversary(rows, np.log([[4.0, 4.0], [4.0, 4.0]]), 0.0, np.log(16))
        ... )
        >>> round(found.upper_bound, 6), round(float(np.exp(found.entropy)), 6)  # log 2 - h(0.1), of 3 log 2
        (0.368064, 8.0)
    """
    used = np.isfinite(adversary.log_counts)
    # in floats: the number of choices may exceed 64 bits
    count = float(np.prod(used.sum(axis=1, dtype=float)))
    # half a million sums take about a second
    if count > MAX_CLASS_CHOICES or count * len(used) * adversary.rows.shape[1] > 500_000:
        return None
    choices = list_class_choices(adversary.log_counts)
    found = compute_max_capacity(adversary.rows, choices)
    joints = np.zeros((len(found.best), *used.shape))
    for joint, place, prior in zip(joints, found.best, found.priors, strict=True):
        joint[np.arange(len(used)), choices[place]] = prior
    # among laws that leak as much the one of largest entropy is feasible for most b
    entropies = [compute_dataset_entropy(joint, adversary.log_counts) for joint in joints]
    best = int(np.argmax(entropies))
    return OneClassCapacity(joints[best], entropies[best], found.upper, found.laws)


def list_class_choices(log_counts: FloatArray) -> IntArray:
    """List all (K, A) choices of one non-empty class per letter.

    Examples:
        >>> list_class_choices(np.array([[0.0, 0.0], [-np.inf, 0.0]])).tolist()
        [[0, 1], [1, 1]]
    """
    return np.array(list(product(*map(np.flatnonzero, np.isfinite(log_counts)))), dtype=np.int64)


def compute_entropy_slack(alphabets: Sequence[int], entropy: float) -> Decimal:
    """Compute the slack `log |X| - b` of the entropy bound, in nats.

    Examples:
        >>> import math
        >>> 0 < compute_entropy_slack((2, 2, 2), math.log(8)) < Decimal("1e-15")
        True
    """
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        # log |X| of alphabets as a sum: the product may be too large for a float
        largest = sum_decimals(
            times * Decimal(letters).ln() for letters, times in Counter(alphabets).items()
        )
        return max(Decimal(0), largest - Decimal(entropy))


def bound_near_uniform(rows: FloatArray, log_counts: FloatArray, room: Decimal) -> Decimal:
    """Bound the leakage of a record for all priors whose entropy is within `room` nats of the maximum.

    Let P be the prior, U the uniform one, `D(P||U) = log |X| - H(P) <= room`, and
    `g(a, t) = sum_y W[t,y] log(u(y|a) / u(y))`, whose mean under U is I_U(X_i; Y). Then for every s > 0

        I_P(X_i; Y) <= D(P_{X_i Y} || U_{X_i} x U_Y)       the product of P's own marginals is nearest
                    <= room + E_P[g]                       D(P_{X_i Y} || U_{X_i Y}) <= D(P || U)
                    <= room + s log E_U[exp(g / s)] + s room

    by Donsker and Varadhan's variational formula for D(P||U). The s is `sqrt(Var_U[g] / (2 room))`, the best
    one to second order; and E_P[g] is never above the largest g.

    Returns:
        The bound in 50 digits; I_U itself where there is no room.

    Examples:
        >>> counts = np.log([[4.0, 4.0], [4.0, 4.0]])  # parity: a uniform dataset tells nothing by it
        >>> bound_near_uniform(np.array([[0.75, 0.25], [0.25, 0.75]]), counts, Decimal("1e-10"))
        Decimal('1E-10')
    """
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        exact = normalize_decimal_rows(rows)
        law = [[Decimal(count).exp() for count in part] for part in log_counts.tolist()]
        # the logarithms of counts are rounded floats: the law is normalised again
        whole = sum_decimals(sum_decimals(part) for part in law)
        law = [[count / whole for count in part] for part in law]
        pairs = [
            (mass, dot_decimals(row, ratios))
            for part, ratios in zip(law, _compute_log_ratios(law, exact), strict=True)
            for mass, row in zip(part, exact, strict=True)
            if mass
        ]
        mean = sum_decimals(mass * gain for mass, gain in pairs)
        # no slack leaves the uniform law only, whose leakage is the mean
        if not room:
            return mean
        max_gain = max(gain for _, gain in pairs)
        variance = sum_decimals(mass * (gain - mean) ** 2 for mass, gain in pairs)
        price = (variance / (2 * room)).sqrt()
        # a variance of 0: g is constant, and the largest g is all that is left
        if not price:
            return max_gain + room
        # centred at the mean: for small slacks the exponents are near 0
        logs = [mass.ln() + (gain - mean) / price for mass, gain in pairs]
        return room + min(max_gain, mean + price * (log_sum_exp_decimals(logs) + room))


def _compute_log_ratios(law: DecimalRows, rows: DecimalRows) -> DecimalRows:
    """Compute the (A, M) log-ratios log(u(y|a) / u(y)); 0 where the probability is zero."""
    given = [mix_decimal_rows([mass / sum_decimals(part) for mass in part], rows) for part in law]
    alone = mix_decimal_rows([sum_decimals(column) for column in zip(*law, strict=True)], rows)
    pairs = (zip(part, alone, strict=True) for part in given)
    return [[(one / other).ln() if one else Decimal(0) for one, other in part] for part in pairs]
