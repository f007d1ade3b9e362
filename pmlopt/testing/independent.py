"""What the fuzzer holds claims against: levels in fractions and linear programs from the definitions.

Nothing here comes from the package but the data: no sparse form, no repair, no certificate.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
from scipy.optimize import linprog

from pmlopt.core.arrays import FloatArray
from pmlopt.data.prior import Prior

Weights = list[Fraction]
Pair = tuple[list[Fraction], list[Fraction], Fraction]
"""The numerator and the denominator of a ratio bound, and its epsilon."""

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""The least tolerances that HiGHS takes."""


def weights_of(prior: Prior) -> Weights:
    """The probabilities as fractions: counts over their sum, or floats over theirs."""
    parts = [Fraction(w) for w in (prior.counts or map(float, prior.probabilities))]
    total = sum(parts)
    return [part / total for part in parts]


def exact_ratio(laws: list[Weights], matrix: FloatArray) -> Fraction:
    """`max P[x,y] / sum_x Q[x] P[x,y]` over letters, outputs that occur and the given priors Q."""
    largest = Fraction(0)
    for column in zip(*matrix.tolist(), strict=True):
        entries = [Fraction(v) for v in column]
        if not any(entries):
            continue
        means = [sum((q * v for q, v in zip(law, entries, strict=True)), Fraction(0)) for law in laws]
        largest = max(largest, max(entries) / min(means))
    return largest


def ratio_of_entries(matrix: FloatArray) -> Fraction | None:
    """`max P[x,y] / P[x',y]`; None where it is infinite."""
    largest = Fraction(0)
    for column in zip(*matrix.tolist(), strict=True):
        entries = [Fraction(v) for v in column]
        if not any(entries):
            continue
        if min(entries) == 0:
            return None
        largest = max(largest, max(entries) / min(entries))
    return largest


def meets_pairs(pairs: list[Pair], matrix: FloatArray) -> bool:
    """Whether `<above, v> <= e^epsilon <below, v>` for each pair and column, in fractions."""
    for column in zip(*matrix.tolist(), strict=True):
        entries = [Fraction(v) for v in column]
        for above, below, epsilon in pairs:
            up = sum((a * v for a, v in zip(above, entries, strict=True)), Fraction(0))
            down = sum((b * v for b, v in zip(below, entries, strict=True)), Fraction(0))
            if up > down and (down == 0 or not at_most_exp(up / down, epsilon)):
                return False
    return True


def log_excess(pairs: list[Pair], matrix: FloatArray) -> float:
    """By how much, in nats, the worst pair exceeds its epsilon, in floats; negative where all hold."""
    worst = -math.inf
    for above, below, epsilon in pairs:
        up, down = np.array(above, dtype=float) @ matrix, np.array(below, dtype=float) @ matrix
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(up > 0, np.log(up) - np.log(down), -np.inf)
        worst = max(worst, float(ratios.max()) - float(epsilon))
    return worst


def at_most_exp(ratio: Fraction, epsilon: float | Fraction) -> bool:
    """Whether a ratio is at most e^epsilon: below Taylor's series so far, which is below e^epsilon.

    True is a proof; the series is summed until what is left is below 1e-40 of it.
    """
    x, k = Fraction(epsilon), 0
    total = term = Fraction(1)
    while term > total * Fraction(1, 10**40):
        k += 1
        term = term * x / k
        total += term
    return ratio <= total


def rows_sum_to_one(matrix: FloatArray) -> bool:
    """Whether the entries are non-negative fractions and each row sums to exactly one."""
    return bool((matrix >= 0).all()) and all(sum(map(Fraction, row)) == 1 for row in matrix.tolist())


def information(p: FloatArray, matrix: FloatArray) -> float:
    """`sum p[x] P[x,y] log(P[x,y] / q[y])`, the mutual information in nats."""
    law = p @ matrix
    ratio = np.divide(matrix, law, out=np.ones_like(matrix), where=(matrix > 0) & (law > 0))
    return float((p[:, None] * matrix * np.log(ratio)).sum())


def entropy(law: FloatArray) -> float:
    """`-sum p log p` in nats."""
    positive = law[law > 0]
    return float(-(positive * np.log(positive)).sum())


def about_one_record(joint: FloatArray, channel: FloatArray, record: int) -> float:
    """I(X_i; Y) in nats, summed over all datasets.

    Args:
        joint: (k_1, ..., k_n) the law of the dataset.
        channel: (k_1, ..., k_n, M) q(y|x).
        record: i.
    """
    told = np.moveaxis(joint[..., None] * channel, record, 0).reshape(
        joint.shape[record], -1, channel.shape[-1]
    )
    letters_and_outputs = told.sum(axis=1)
    p = letters_and_outputs.sum(axis=1)
    rows = np.divide(
        letters_and_outputs, p[:, None], out=np.zeros_like(letters_and_outputs), where=p[:, None] > 0
    )
    return information(p, rows)


def leaking_mass(p: FloatArray, matrix: FloatArray, ratio: float) -> float:
    """The largest probability that a post-processing leaks log(ratio) or more: one bad outcome a letter.

    The unknowns are the masses u[x,y] of output y that go to the outcome that leaks through x: each outcome
    has `sum_y (ratio - P[x,y] / q[y]) u[x,y] <= 0`, and an output has no more than its q[y].
    """
    law = p @ matrix
    occurring = law > 0
    law, ratios = law[occurring], matrix[:, occurring] / law[occurring]
    n, m = ratios.shape
    leaks = np.zeros((n, n * m))
    for x in range(n):
        leaks[x, x * m : (x + 1) * m] = 1 - ratios[x] / ratio
    shares = np.tile(np.eye(m), n)
    answer = linprog(
        -np.ones(n * m),
        A_ub=np.vstack([leaks, shares]),
        b_ub=np.concatenate([np.zeros(n), law]),
        method="highs-ds",
        options=TIGHT,
    )
    if answer.status != 0:
        raise ArithmeticError(answer.message)
    return -float(answer.fun)


def largest_gain(laws: list[FloatArray], epsilon: float, gains: FloatArray) -> float:
    """The largest expected gain within epsilon-PML for every given prior, from the definition.

    `P[x,y] <= e^epsilon sum_z Q[z] P[z,y]` for each letter, output and prior, written with the sum inside.
    A bound that every column meets, for the letter is so rare or the level so high, is left out.
    """
    n, m = gains.shape
    rows = []
    for law in laws:
        total = sum(map(Fraction, law.tolist()))
        for x in np.flatnonzero(epsilon + np.log(law) < 0).tolist():
            # in fractions, since next to a letter of 1e-160 all others may cancel
            exact = [-Fraction(math.exp(epsilon)) * Fraction(p) / total for p in law.tolist()]
            exact[x] += 1
            row = np.array(exact, dtype=float)
            rows.append(np.kron(row / np.abs(row).max(), np.eye(m)))
    return _optimum(laws[0], gains, np.vstack(rows) if rows else np.zeros((0, n * m)))


def largest_gain_ldp(p: FloatArray, epsilon: float, gains: FloatArray) -> float:
    """The same within epsilon-LDP: `P[x,y] <= e^epsilon P[x',y]` for each pair of letters."""
    n, m = gains.shape
    rows = []
    for x, other in permutations(range(n), 2):
        for y in range(m):
            row = np.zeros((n, m))
            row[x, y], row[other, y] = 1, -math.exp(epsilon)
            rows.append(row.ravel())
    return _optimum(p, gains, np.array(rows).reshape(-1, n * m))


def largest_gain_ratios(p: FloatArray, pairs: list[Pair], gains: FloatArray) -> float:
    """The same within ratio bounds: `<above, v> <= e^epsilon <below, v>` for each pair and column v.

    A bound that every column meets, for its largest numerator is that small, is left out.
    """
    n, m = gains.shape
    rows = []
    for above, below, epsilon in pairs:
        factor = Fraction(math.exp(min(float(epsilon), 100.0)))
        # in fractions, since next to a letter of 1e-160 all others may cancel
        row = np.array([float(a - factor * b) for a, b in zip(above, below, strict=True)])
        if (row > 0).any():
            rows.append(np.kron(row / np.abs(row).max(), np.eye(m)))
    return _optimum(p, gains, np.vstack(rows) if rows else np.zeros((0, n * m)))


def _optimum(p: FloatArray, gains: FloatArray, rows: FloatArray) -> float:
    n, m = gains.shape
    sums = np.kron(np.eye(n), np.ones(m))
    weighted = p[:, None] * gains
    unit = float(np.abs(weighted).max()) or 1.0  # the solver's tolerances are for objectives of size one
    for presolve in (True, False):  # presolve may find rounding of equations infeasible
        answer = linprog(
            -(weighted / unit).ravel(),
            A_ub=rows if len(rows) else None,
            b_ub=np.zeros(len(rows)) if len(rows) else None,
            A_eq=sums,
            b_eq=np.ones(n),
            method="highs-ds",
            options={**TIGHT, "presolve": presolve},
        )
        if answer.status == 0:
            return -float(answer.fun) * unit
    raise ArithmeticError(answer.message)
