"""Groups listed one permutation at a time, and orbits by applying every one of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

Pair = tuple[Any, Any]


def record_orbits(inputs: int, outputs: int, records: int) -> dict[Pair, frozenset[Pair]]:
    """The orbit of each pair of tables under all n! permutations of the records."""
    letters, releases = (list(product(range(size), repeat=records)) for size in (inputs, outputs))
    orders = list(permutations(range(records)))
    return {
        (x, y): frozenset((tuple(x[i] for i in g), tuple(y[i] for i in g)) for g in orders)
        for x in letters
        for y in releases
    }


def group_orbits(generators: Sequence[Sequence[int]]) -> dict[Pair, frozenset[Pair]]:
    """The orbit of each pair of letters under the whole group that some permutations make."""
    group = closure(generators)
    size = len(generators[0])
    return {
        (x, y): frozenset((g[x], g[y]) for g in group) for x in range(size) for y in range(size)
    }


def closure(generators: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    """All permutations that are products of some."""
    found = {tuple(range(len(generators[0])))}
    fresh = set(found)
    while fresh:
        fresh = {tuple(g[x] for x in h) for g in generators for h in fresh} - found
        found |= fresh
    return found
