"""Requirements in column blocks that are no bands, and dense linear programs with what goes beside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from oracles.designs import linear_program

from pmlopt import PML, ApproximatePML, Box, ConvexHull, GuessLeakage, L1Ball, MaximalLeakage, Prior
from pmlopt.model.privacy import Requirement
from pmlopt.solvers.structured.block_program import BlockLP

BoolArray = NDArray[np.bool_]

WIDE = (
    "maximal leakage",
    "wide ball",
    "bounds on both sides",
    "hull",
    "approximate",
    "few guesses",
    "unseen letter",
    "known letter",
)
"""The kinds, by name."""


def wide(kind: str, prior: Prior, rng: np.random.Generator, epsilon: float) -> Requirement:
    """A requirement of a kind for a prior of at least three letters."""
    p, n = prior.pmf, prior.size
    law = np.asarray(rng.dirichlet(np.ones(n)))
    if kind == "maximal leakage":
        return MaximalLeakage(epsilon)
    if kind == "approximate":
        return ApproximatePML(epsilon, float(10 ** rng.uniform(-3, -0.5)))
    if kind == "few guesses":
        guesses = int(rng.integers(1, n))
        right = float(np.sort(p)[::-1][:guesses].sum())
        return GuessLeakage(guesses, float(rng.uniform(0.1, 0.9)) * -float(np.log(right)))
    if kind == "wide ball":
        return PML(
            epsilon, L1Ball(prior, float(2 * p.min() + rng.uniform(0.01, 0.5) * (1 - 2 * p.min())))
        )
    if kind == "unseen letter":
        law[int(rng.integers(n))] = 0.0
        return PML(epsilon, L1Ball(law / law.sum(), float(rng.uniform(0.05, 0.5))))
    if kind in ("bounds on both sides", "known letter"):
        lower, upper = (
            law * rng.uniform(0.2, 0.9, n),
            np.minimum(law * rng.uniform(1.1, 3.0, n) + 0.01, 0.9),
        )
        if kind == "known letter":
            lower[0] = upper[0] = law[0]
        return PML(epsilon, Box(lower, upper))
    return PML(epsilon, ConvexHull(np.array([p, law, rng.dirichlet(np.ones(n))])))


def least_cost_within(task: BlockLP) -> float:
    """min <costs, P> of a task whose block is the mean of a column, from the definitions: a dense LP in P."""
    n, m = task.costs.shape
    block, eye = task.block, np.eye(n * m)
    assert block.weights is not None
    assert block.mean is not None
    law = np.kron(block.weights, np.eye(m))  # (M, N M) the means of the columns
    rows, limits = [block.mean[0, 0] * eye - np.tile(law, (n, 1))], [np.zeros(n * m)]
    sums = np.kron(np.eye(n), np.ones((1, m)))
    equal, right = [], []
    if task.allows_short_rows:
        rows.append(sums)
        limits.append(np.ones(n))
    else:
        equal.append(sums)
        right.append(np.ones(n))
    if task.border is not None:
        flat, least = task.border.rows.toarray(), task.border.least
        rows.append(-flat[~task.border.equal])
        limits.append(-least[~task.border.equal])
        equal.append(flat[task.border.equal])
        right.append(least[task.border.equal])
    most = np.ones((n, m)) if task.allowed is None else task.allowed * 1.0
    answer = linear_program(
        task.costs.ravel(),
        A_ub=np.vstack(rows),
        b_ub=np.concatenate(limits),
        A_eq=np.vstack(equal) if equal else None,
        b_eq=np.concatenate(right) if right else None,
        bounds=np.stack([np.zeros(n * m), most.ravel()], axis=1),
    )
    return float(answer.fun)


def random_mask(rng: np.random.Generator, n: int, m: int) -> BoolArray:
    """(N, M) about a third of the entries, none of the first output."""
    mask = rng.random((n, m)) < 0.7
    mask[:, 0] = True
    return mask
