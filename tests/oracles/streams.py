"""Streams by enumeration: random chains, all outputs that can be, and what they tell by the law of paths."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np

from pmlopt import Chain, Stream

KINDS = ("plain", "zeros", "absorbing", "moves", "rare", "by step")


def random_chain(rng: np.random.Generator, n: int, steps: int, kind: str) -> Chain:
    """A chain with what is hard: moves that cannot be, states that nobody leaves, moves without choice."""
    first, kernels = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n), size=(1, n))
    if kind == "zeros":
        first[0], kernels[0, 0, -1] = 0.0, 0.0
    if kind == "absorbing":
        kernels[0, 0] = np.eye(n)[0]
    if kind == "moves":
        kernels[0] = np.eye(n)[rng.integers(0, n, n)]
    if kind == "rare":
        first[0], kernels[0, -1, 0] = 1e-9, 1e-9
    if kind == "by step":
        kernels = rng.dirichlet(np.ones(n), size=(steps - 1, n))
    return Chain(first / first.sum(), kernels / kernels.sum(axis=2, keepdims=True))


def enumerated(chain: Chain, emitted: list[np.ndarray], about: Any, ahead: int = 0) -> float:
    """The level of what is asked about after these outputs, from the law of all paths, some states ahead."""
    emitted = [*emitted, *[np.ones(chain.size)] * ahead]
    steps, n = len(emitted), chain.size
    prior, posterior = {}, {}
    for path in product(range(n), repeat=steps):
        chance = chain.initial[path[0]]
        for time, (x, z) in enumerate(pairwise(path), 1):
            chance *= chain.kernel(time)[x, z]
        prior[path] = chance
        posterior[path] = chance * math.prod(
            emits[x] for emits, x in zip(emitted, path, strict=True)
        )
    total = math.fsum(posterior.values())
    width = steps if about == "path" else min(steps, about if isinstance(about, int) else 1)
    value = about if isinstance(about, dict) else {x: x for x in range(n)}
    lifts = []
    for start in range(steps - width + 1):
        before: dict[Any, float] = {}
        after: dict[Any, float] = {}
        for path, chance in prior.items():
            seen = tuple(value[x] for x in path[start : start + width])
            before[seen] = before.get(seen, 0.0) + chance
            after[seen] = after.get(seen, 0.0) + posterior[path]
        lifts += [after[seen] / total / mass for seen, mass in before.items() if mass > 0]
    return math.log(max(lifts))


def followed(stream: Stream, steps: int) -> Iterator[tuple[Stream, list[np.ndarray]]]:
    """The stream after each sequence of so many outputs that can be, with what states emit each of them."""
    waiting: list[tuple[Stream, list[np.ndarray]]] = [(stream, [])]
    while waiting:
        now, emitted = waiting.pop()
        if len(emitted) == steps:
            yield now, emitted
            continue
        mechanism, possible = now.mechanism, [now.chain.labels.index(x) for x in now.law.labels]
        for column, output in enumerate(mechanism.outputs):
            emits = np.zeros(now.chain.size)
            emits[possible] = mechanism.matrix[:, column]
            if emits.any():
                after = now.copy()
                after.record(output)
                waiting.append((after, [*emitted, emits]))
