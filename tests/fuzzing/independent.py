"""What the fuzzer holds claims against: pairs in fractions, and linear programs from the definitions.

Nothing here comes from the package but the data: no sparse form, no repair, no certificate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from oracles.designs import exact_prior, linear_program

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.prior import Prior

Weights = list[Fraction]
Pair = tuple[Weights, Weights, Fraction]
"""The numerator and the denominator of a ratio bound, and its epsilon."""


class UndecidedError(ArithmeticError):
    """The other way of computing failed: the claim is neither held nor refused."""


def unit(x: int, size: int) -> Weights:
    """A letter as a law."""
    return [Fraction(int(x == z)) for z in range(size)]


def dot(one: Weights, other: Weights) -> Fraction:
    """The sum of products."""
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))


def share(weights: Sequence[float] | Weights) -> Weights:
    """Weights as fractions over their sum."""
    exact = list(map(Fraction, weights))
    return [weight / sum(exact) for weight in exact]


def to_means(laws: Sequence[Weights], *epsilons: float) -> list[Pair]:
    """Each letter beside its mean under each law, with an epsilon for all letters or one for each."""
    size = len(laws[0])
    each = epsilons * size if len(epsilons) == 1 else epsilons
    return [(unit(x, size), law, Fraction(each[x])) for law in laws for x in range(size)]


def meets_pairs(pairs: list[Pair], matrix: FloatArray) -> bool:
    """Whether `<above, v> <= e^epsilon <below, v>` for each pair and column, in fractions."""
    largest: dict[Fraction, Fraction] = {}
    columns = [[Fraction(v) for v in column] for column in matrix.T.tolist()]
    for above, below, epsilon in pairs:
        for column in columns:
            up, down = dot(above, column), dot(below, column)
            if up > down == 0:
                return False
            if up > down:
                largest[epsilon] = max(largest.get(epsilon, up / down), up / down)
    return all(at_most_exp(ratio, epsilon) for epsilon, ratio in largest.items())


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


def leaking_mass(prior: Prior, matrix: FloatArray, ratio: float | Fraction) -> Fraction:
    """The largest probability that a post-processing leaks log(ratio) or more: one bad outcome a letter.

    The unknowns are the masses u[x,y] of output y that go to the outcome that leaks through x: each outcome
    has `sum_y (ratio q[y] - P[x,y]) u[x,y] / q[y] <= 0`, and an output has no more than its q[y].

    In fractions, for beside letters of 1e-299 no tolerance is small enough.
    """
    t, zero = Fraction(ratio), Fraction(0)
    given = [[Fraction(v) / sum(map(Fraction, row)) for v in row] for row in matrix.tolist()]
    columns = [column for column in zip(*given, strict=True) if any(column)]
    p = exact_prior(prior)
    law = [dot(p, list(column)) for column in columns]
    letters, outputs = range(len(given)), range(len(columns))
    leaks = [
        [(t - columns[y][x] / law[y]) if z == x else zero for z in letters for y in outputs]
        for x in letters
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
        table[others] = (
            table[others] * pivot - np.outer(table[others, entering], table[leaving])
        ) // last
        basis[leaving], last = entering, pivot
    return Fraction(int(table[size, -1]), int(last))


def largest_gain(p: FloatArray, pairs: list[Pair], gains: FloatArray) -> float:
    """The largest expected gain within `<above, v> <= e^epsilon <below, v>` for each pair and column v.

    A bound that every column meets, for its largest numerator is that small, is left out.
    """
    n, m = gains.shape
    rows = [np.zeros((0, n * m))]
    for above, below, epsilon in pairs:
        factor = Fraction(math.exp(min(float(epsilon), 700.0)))
        # in fractions, since next to a letter of 1e-160 all others may cancel
        row = np.array([float(a - factor * b) for a, b in zip(above, below, strict=True)])
        if (row > 0).any():
            rows.append(np.kron(row / np.abs(row).max(), np.eye(m)))
    bounds, weighted = np.vstack(rows), p[:, None] * gains
    size = (
        float(np.abs(weighted).max()) or 1.0
    )  # the solver's tolerances are for objectives of size one
    sums = np.kron(np.eye(n), np.ones(m))
    try:
        answer = linear_program(
            -(weighted / size).ravel(),
            A_ub=bounds,
            b_ub=np.zeros(len(bounds)),
            A_eq=sums,
            b_eq=np.ones(n),
        )
    except AssertionError as cause:
        raise UndecidedError(str(cause)) from None
    return -float(answer.fun) * size


def order_level(
    weights: Weights, rows: Sequence[Weights], alpha: float, *, mean: bool = False
) -> Decimal:
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
