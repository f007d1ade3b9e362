"""Classes of letters and outputs that look alike, by splitting classes until none splits."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt import Prior
from pmlopt.programs.linear import color_refinement
from pmlopt.programs.linear.color_refinement import refine_colors


def classes_of(p: FloatArray, table: FloatArray) -> set[tuple[int, int, float]]:
    """The classes of pairs of the coarsest equitable partition, by signatures that are compared whole."""
    n, m = table.shape
    letter, output = [float(one) for one in p], [0.0] * m

    def number(keys: list[tuple[object, ...]]) -> list[float]:
        known = {key: float(place) for place, key in enumerate(dict.fromkeys(keys))}
        return [known[key] for key in keys]

    for _ in range(n + m):
        letter = number([
            (letter[x], *sorted((output[y], table[x, y]) for y in range(m))) for x in range(n)
        ])  # fmt: skip
        output = number([
            (output[y], *sorted((letter[x], table[x, y]) for x in range(n))) for y in range(m)
        ])  # fmt: skip
    return {
        (int(letter[x]), int(output[y]), float(table[x, y]))
        for x, y in itertools.product(range(n), range(m))
    }


TABLES = [
    np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]),
    np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 2, 0], [0, 0, 0, 2]]),
    np.array([[0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]]),
    np.zeros((4, 4), dtype=int),
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "p", [(0.25, 0.25, 0.25, 0.25), (0.3, 0.3, 0.2, 0.2), (0.4, 0.4, 0.1, 0.1)]
)
def test_pairs_fall_into_the_coarsest_classes_that_look_alike(
    table: FloatArray, p: tuple[float, ...]
) -> None:
    values = table.astype(float)
    expected = classes_of(np.array(p), values)
    found = refine_colors(Prior(list(p)), values, len(expected))
    assert found is not None
    assert found.orbits.count == len(expected)
    assert refine_colors(Prior(list(p)), values, len(expected) - 1) is None


@pytest.mark.parametrize(
    ("p", "table", "limit", "looks"),
    [
        ([0.4, 0.3, 0.2, 0.1], [[0.0, 1.0]] * 4, 3, 0),
        ([0.5, 0.5], [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]], 2, 2),
    ],
    ids=["four letters", "three kinds of outputs"],
)
def test_no_more_is_looked_at_once_classes_of_letters_and_outputs_are_too_many(
    monkeypatch: pytest.MonkeyPatch, p: list[float], table: Any, limit: int, looks: int
) -> None:
    """Each of both has a pair."""
    looked: list[int] = []
    look = color_refinement._hash_rows

    def count(values: Any, colours: Any, kinds: int) -> Any:
        looked.append(kinds)
        return look(values, colours, kinds)

    monkeypatch.setattr(color_refinement, "_hash_rows", count)
    assert refine_colors(Prior(p), np.array(table), limit) is None
    assert len(looked) == looks
