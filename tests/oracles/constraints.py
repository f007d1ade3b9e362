"""What designs are asked to keep, as inequalities `A P <= b` written entry by entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.model.constraints import (
    CategoryRetention,
    Constraint,
    Invariant,
    OutcomeLeakage,
    Retention,
    Strata,
    Unbiased,
    Variance,
    Within,
    Zeros,
)

FloatArray = NDArray[np.float64]


def inequalities(
    one: Constraint, p: FloatArray, letters: Sequence[Any], outputs: Sequence[Any]
) -> tuple[FloatArray, FloatArray]:
    """The rows on P, row by row, and their right sides."""
    n, m = len(letters), len(outputs)
    rows, right = [], []
    for weights, side, equal in _sums(one, p, list(letters), list(outputs)):
        row = np.zeros((n, m))
        for x, y, weight in weights:
            row[x, y] = weight
        rows.extend([row.ravel(), -row.ravel()] if equal else [row.ravel()])
        right.extend([side, -side] if equal else [side])
    return np.array(rows).reshape(-1, n * m), np.array(right)


def _sums(one: Constraint, p: FloatArray, letters: list[Any], outputs: list[Any]) -> list[Any]:
    """Weights of entries, what they add up to, and whether exactly."""
    pairs = [(x, y) for x in range(len(letters)) for y in range(len(outputs))]
    if isinstance(one, Invariant):
        each = range(len(letters))
        return [([(x, y, p[x]) for x in each], p[letters.index(outputs[y])], True) for y in each]
    if isinstance(one, OutcomeLeakage):
        return [
            (
                [
                    (z, outputs.index(label), (z == x) - np.exp(nats) * p[z])
                    for z in range(len(letters))
                ],
                0.0,
                False,
            )
            for label, nats in one.most
            for x in range(len(letters))
        ]
    if isinstance(one, Zeros):
        return [([(letters.index(a), outputs.index(b), 1.0)], 0.0, True) for a, b in one.pairs]
    if isinstance(one, Strata):
        group = {label: k for k, several in enumerate(one.groups) for label in several}
        apart = [(x, y) for x, y in pairs if group[letters[x]] != group[outputs[y]]]
        return [([(x, y, 1.0)], 0.0, True) for x, y in apart]
    if isinstance(one, Retention):
        return [
            (
                [(x, outputs.index(label), -p[x]) for x, label in enumerate(letters)],
                -one.least,
                False,
            )
        ]
    if isinstance(one, CategoryRetention):
        floors = (
            one.least if isinstance(one.least, tuple) else [(label, one.least) for label in letters]
        )
        return [
            ([(letters.index(a), outputs.index(a), -1.0)], -share, False) for a, share in floors
        ]
    assert isinstance(one, Unbiased | Variance | Within)
    score = dict(one.scores or ((label, label) for label in (*letters, *outputs)))
    change = {(x, y): score[outputs[y]] - score[letters[x]] for x, y in pairs}
    if isinstance(one, Within):
        return [([(x, y, 1.0)], 0.0, True) for x, y in pairs if abs(change[x, y]) > one.most]
    power, side = (1, 0.0) if isinstance(one, Unbiased) else (2, one.most)
    return [
        ([(x, y, change[x, y] ** power) for y in range(len(outputs))], side, power == 1)
        for x in range(len(letters))
    ]
