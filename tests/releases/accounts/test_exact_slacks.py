"""Levels up to a failure are never too small: the slack at them in fractions is within delta."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from pmlopt import Prior, shuffled_level
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.measures import approximate_dp_level, approximate_pml_level
from pmlopt.programs.exact.rounding import round_rows_to_grid
from pmlopt.releases import shuffled_slack

Table = list[list[Fraction]]


def power(level: float) -> Fraction:
    return Fraction(Decimal(level).exp(Context(prec=60)))


def slack(rows: Table, laws: Table, t: Fraction) -> Fraction:
    return max(sum((max(Fraction(0), v - t * q) for v, q in zip(row, law, strict=True)), Fraction(0))
               for row in rows for law in laws)  # fmt: skip


def histogram_slack(rows: Table, law: list[Fraction], people: int, t: Fraction) -> Fraction:
    found = []
    for row in rows:
        total = Fraction(0)
        for outputs in combinations_with_replacement(range(len(law)), people):
            counts = [outputs.count(y) for y in range(len(law))]
            ways = Fraction(math.factorial(people) // math.prod(map(math.factorial, counts)))
            chance = math.prod((q**count for q, count in zip(law, counts, strict=True)), start=ways)
            mean = (
                sum((c * v / q for c, v, q in zip(counts, row, law, strict=True)), Fraction(0))
                / people
            )
            total += chance * max(Fraction(0), mean - t)
        found.append(total)
    return max(found)


def test_the_slack_at_a_level_is_within_delta_whatever_its_size() -> None:
    rng = np.random.default_rng(11)
    for number in range(60):
        letters, outputs, people = (int(v) for v in rng.integers((2, 2, 1), 4))
        matrix: FloatArray = rng.dirichlet(np.ones(outputs), letters)
        if number % 2:  # rows that hardly differ
            matrix = 1 / outputs + 10.0 ** rng.uniform(-9, -1) * (
                rng.random((letters, outputs)) - 0.5
            )
        matrix = round_rows_to_grid(matrix / matrix.sum(axis=1, keepdims=True))
        prior = Prior(rng.dirichlet(np.ones(letters)))
        delta, epsilon = 10.0 ** rng.uniform(-14, -0.3), 10.0 ** rng.uniform(-12, 0)
        rows = [[Fraction(v) for v in row] for row in matrix.tolist()]
        weights = [Fraction(w, sum(prior.weights)) for w in prior.weights]
        law = [
            sum((w * row[y] for w, row in zip(weights, rows, strict=True)), Fraction(0))
            for y in range(outputs)
        ]
        level = approximate_dp_level(matrix, delta)
        assert slack(rows, rows, power(level)) <= Fraction(delta)
        assert slack(rows, [law], power(approximate_pml_level(prior, matrix, delta))) <= Fraction(
            delta
        )
        level = shuffled_level(prior, matrix, people, delta)
        assert histogram_slack(rows, law, people, power(level)) <= Fraction(delta)
        own = histogram_slack(rows, law, people, power(epsilon))
        found = shuffled_slack(prior, matrix, people, epsilon)
        assert own <= Fraction(found)
        assert found <= float(own) * (1 + 1e-6) + 1e-13
