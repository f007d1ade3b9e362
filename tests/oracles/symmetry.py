"""Groups listed one permutation at a time, and orbits by applying every one of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

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
    return {(x, y): frozenset((g[x], g[y]) for g in group) for x in range(size) for y in range(size)}


def closure(generators: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    """All permutations that are products of some."""
    found = {tuple(range(len(generators[0])))}
    fresh = set(found)
    while fresh:
        fresh = {tuple(g[x] for x in h) for g in generators for h in fresh} - found
        found |= fresh
    return found


def bits_under_hamming(chance: float, records: int, epsilon: float) -> float:
    """The least expected Hamming loss for independent bits under PML, in weights and distances.

    One variable for each weight w of the output and numbers a, b of ones of the input where the output has a
    one and a zero: the probability of all such outputs given one such input, times how many there are.
    """
    cells = [(w, a, b) for w in range(records + 1) for a in range(w + 1) for b in range(records - w + 1)]
    at = {cell: place for place, cell in enumerate(cells)}
    ways = [math.comb(w, a) * math.comb(records - w, b) for w, a, b in cells]
    ones = np.array([a + b for _, a, b in cells])
    mass = np.array(ways) * chance**ones * (1 - chance) ** (records - ones)
    loss = np.array([w - a + b for w, a, b in cells])
    rows = sparse.lil_array((records + 1, len(cells)))
    for (w, a, b), n in zip(cells, ways, strict=True):
        rows[a + b, at[w, a, b]] = n / math.comb(records, a + b)
    below = sparse.lil_array((len(cells), len(cells)))
    for place, (w, _, _) in enumerate(cells):
        own = [k for k, other in enumerate(cells) if other[0] == w]
        below[[place], own] = -mass[own]
        below[place, place] += math.exp(-epsilon)
    nothing, once = np.zeros(len(cells)), np.ones(records + 1)
    answer = linprog(mass * loss, A_ub=below.tocsr(), b_ub=nothing, A_eq=rows.tocsr(), b_eq=once)
    assert answer.status == 0
    return float(answer.fun)
