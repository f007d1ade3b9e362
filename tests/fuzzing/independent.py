"""What the fuzzer holds claims against: levels in fractions and linear programs from the definitions.

Nothing here comes from the package but the data: no sparse form, no repair, no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
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


class UndecidedError(ArithmeticError):
    """The other way of computing failed: the claim is neither held nor refused."""


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


def error_of_estimates(p: FloatArray, matrix: FloatArray, criterion: str) -> float:
    """The summed variance of efficient estimates of the frequencies for one person, or -log det J; see
    [pukelsheim2006optimal, Chapter 9]. J is the Fisher information `sum_y P[:,y] P[:,y]' / q[y]`."""
    columns = matrix[:, matrix.max(axis=0) > 0]
    information_matrix = (columns / (p @ columns)) @ columns.T
    if np.linalg.matrix_rank(information_matrix) < len(p):
        return math.inf
    if criterion == "D":
        return -float(np.linalg.slogdet(information_matrix)[1])
    return float(np.trace(np.linalg.inv(information_matrix)) - p @ p)


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


def leaking_mass(prior: Prior, matrix: FloatArray, ratio: float | Fraction) -> Fraction:
    """The largest probability that a post-processing leaks log(ratio) or more: one bad outcome a letter.

    The unknowns are the masses u[x,y] of output y that go to the outcome that leaks through x: each outcome
    has `sum_y (ratio q[y] - P[x,y]) u[x,y] / q[y] <= 0`, and an output has no more than its q[y].

    In fractions, for beside letters of 1e-299 no tolerance is small enough.
    """
    t, zero = Fraction(ratio), Fraction(0)
    given = [[Fraction(v) / sum(map(Fraction, row)) for v in row] for row in matrix.tolist()]
    columns = [column for column in zip(*given, strict=True) if any(column)]
    law = [sum((w * v for w, v in zip(weights_of(prior), column, strict=True)), zero) for column in columns]
    letters, outputs = range(len(given)), range(len(columns))
    leaks = [
        [(t - columns[y][x] / law[y]) if z == x else zero for z in letters for y in outputs] for x in letters
    ]
    shares = [[Fraction(int(y == z)) for _ in letters for z in outputs] for y in outputs]
    return largest_sum(leaks + shares, [zero] * len(given) + law)


def largest_sum(rows: list[list[Fraction]], limits: list[Fraction]) -> Fraction:
    """The largest sum of non-negative numbers u with `rows u <= limits`, where u = 0 is one: the simplex.

    Bland's rule, in integers: every tableau is over the last pivot, and divisions come out even.
    """
    size, count = len(rows), len(rows[0])
    table = np.zeros((size + 1, count + size + 1), dtype=object)
    for i, (row, limit) in enumerate(zip(rows, limits, strict=True)):
        unit = math.lcm(*(v.denominator for v in (*row, limit)))
        table[i, :count] = [int(v * unit) for v in row]
        table[i, count + i], table[i, -1] = 1, int(limit * unit)
    table[size, :count] = -1
    basis, last = list(range(count, count + size)), 1
    while (below := np.flatnonzero(table[size, :-1] < 0)).size:
        entering = int(below[0])
        places = [i for i in range(size) if table[i, entering] > 0]
        if not places:
            raise ArithmeticError("the sum has no limit")
        leaving = min(places, key=lambda i: (Fraction(table[i, -1], table[i, entering]), basis[i]))
        pivot = table[leaving, entering]
        others = np.arange(size + 1) != leaving
        table[others] = (table[others] * pivot - np.outer(table[others, entering], table[leaving])) // last
        basis[leaving], last = entering, pivot
    return Fraction(int(table[size, -1]), int(last))


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


def order_level(weights: Weights, rows: Sequence[Weights], alpha: float, *, mean: bool = False) -> Decimal:
    """The largest Renyi divergence of a posterior from a prior, or their mean, in decimals of 60 digits."""
    with localcontext() as context:
        context.prec = 60
        masses, zero = [Decimal(w.numerator) / Decimal(w.denominator) for w in weights], Decimal(0)
        order, found, lengths = Decimal(alpha), zero, zero
        for column in zip(*rows, strict=True):
            entries = [Decimal(one.numerator) / Decimal(one.denominator) for one in column]
            law = sum((w * one for w, one in zip(masses, entries, strict=True)), zero)
            if law > 0:
                terms = (w * (one / law) ** order for w, one in zip(masses, entries, strict=True))
                moment = sum(terms, zero)
                found = max(found, moment.ln() / (order - 1))
                lengths += law * (moment.ln() / order).exp()
        level = lengths.ln() * order / (order - 1) if mean else found
        return level * (1 - Decimal(10) ** -40)


def fractions_of(matrix: FloatArray) -> list[Weights]:
    """The entries of a matrix as fractions, row by row."""
    return [[Fraction(v) for v in row] for row in matrix.tolist()]


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
    raise UndecidedError(answer.message)
