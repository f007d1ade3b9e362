"""Problems about releases of a stream, beside Bayes' rule over all paths."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from pmlopt import solve
from pmlopt.library import Instance, load_all
from pmlopt.releases import next_release

ALL = [instance for instance in load_all() if instance.builder is next_release]


def enumerated(arguments: dict[str, Any]) -> float:
    """The least Hamming loss of the last release, by the probabilities of all paths of states and outputs."""
    chain, caps = arguments["chain"], arguments["caps"]
    n, steps = chain.size, len(arguments.get("released", ())) + 1
    paths = list(product(range(n), repeat=steps))
    prior = np.array(
        [
            chain.initial[path[0]] * np.prod([chain.kernels[0][a, b] for a, b in pairwise(path)])
            for path in paths
        ]
    )
    joint = prior.copy()
    loss = np.inf
    for step in range(steps):
        if arguments.get("about") == "path":
            events = [[path[: step + 1] == one for path in paths] for one in {p[: step + 1] for p in paths}]
        else:
            events = [[path[s] == a for path in paths] for s in range(steps) for a in range(n)]
        states = np.array([[path[step] == x for path in paths] for x in range(n)], dtype=float)
        factor = np.exp(caps[step])
        # of each event E and output y: P(E, y) <= e^cap P(E) P(y), with variables P[x, y]
        rows = [states @ (joint * event) - factor * (prior @ event) * (states @ joint) for event in events]
        bounds = np.kron(np.array(rows), np.eye(n))
        sums = np.kron(np.eye(n), np.ones(n))
        wrong = ((states @ joint)[:, None] * (1 - np.eye(n))).ravel()
        found = linprog(wrong, bounds, np.zeros(len(bounds)), sums, np.ones(n))
        loss = found.fun / joint.sum()
        if step < steps - 1:
            told = chain.labels.index(arguments["released"][step])
            joint = joint * (found.x.reshape(n, n)[:, told] @ states)
    return float(loss)


@pytest.mark.parametrize("instance", ALL, ids=lambda one: one.id)
def test_the_value_is_that_of_all_paths(instance: Instance) -> None:
    assert instance.expected is not None
    value = solve(instance.program()).value
    assert instance.expected.agrees(value)
    assert value == pytest.approx(enumerated(dict(instance.arguments)), rel=1e-7)


def test_streams_are_in_the_library() -> None:
    assert len(ALL) == 3
