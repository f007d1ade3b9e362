"""What releases leak together, by lists of all sequences of outcomes and of all histograms."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from pmlopt.core.numbers.arrays import FloatArray

Letters: TypeAlias = tuple[int, ...]


def sequences(
    prior: FloatArray, matrices: Sequence[FloatArray]
) -> Iterator[tuple[tuple[int, ...], list[float]]]:
    """Each sequence of outcomes that is possible, with the lift of each letter after it."""
    for outcome in itertools.product(*[range(matrix.shape[1]) for matrix in matrices]):
        given = [
            math.prod(float(matrix[x, y]) for matrix, y in zip(matrices, outcome, strict=True))
            for x in range(len(prior))
        ]
        mass = math.fsum(float(p) * share for p, share in zip(prior, given, strict=True))
        if mass > 0:
            yield outcome, [share / mass for share in given]


def level_of_sequences(prior: FloatArray, matrices: Sequence[FloatArray]) -> float:
    """The largest leakage of a sequence of outcomes."""
    return max(math.log(max(lifts)) for _, lifts in sequences(prior, matrices))


def level_about(
    joint: FloatArray, channel: dict[Letters, dict[Letters, float]], kept: Sequence[int]
) -> float:
    """The level of a channel from tuples of letters about some of the attributes."""
    mass: dict[tuple[int, ...], float] = defaultdict(float)
    both: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = defaultdict(float)
    law: dict[tuple[int, ...], float] = defaultdict(float)
    for letters, row in channel.items():
        share = float(joint[letters])
        about = tuple(letters[i] for i in kept)
        mass[about] += share
        for y, probability in row.items():
            law[y] += share * probability
            both[about, y] += share * probability
    return max(
        math.log(value / mass[about] / law[y]) for (about, y), value in both.items() if value > 0
    )


def histograms(people: int, outputs: int) -> Iterator[tuple[int, ...]]:
    """All histograms of so many people on so many outputs."""
    if outputs == 1:
        yield (people,)
        return
    for first in range(people + 1):
        for rest in histograms(people - first, outputs - 1):
            yield (first, *rest)


def histogram_laws(
    prior: FloatArray, matrix: FloatArray, people: int
) -> list[tuple[float, list[float]]]:
    """The probability of each histogram, and that given each letter of the first person."""
    law = [
        math.fsum(float(p) * float(v) for p, v in zip(prior, column, strict=True))
        for column in matrix.T
    ]
    found = []
    for histogram in histograms(people, len(law)):
        given = [
            math.fsum(
                float(row[y])
                * _multinomial([*histogram[:y], histogram[y] - 1, *histogram[y + 1 :]], law)
                for y in range(len(law))
                if histogram[y]
            )
            for row in matrix
        ]
        found.append((_multinomial(list(histogram), law), given))
    return found


def _multinomial(histogram: list[int], law: list[float]) -> float:
    ways = math.factorial(sum(histogram))
    for count in histogram:
        ways //= math.factorial(count)
    return ways * math.prod(q**count for q, count in zip(law, histogram, strict=True))
