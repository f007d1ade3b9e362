"""The largest leakage of a record over priors on all datasets, one by one: a second implementation.

Nothing here counts datasets or merges them: p has an entry for each, and so has the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import cvxpy as cp
import numpy as np
from oracles.designs import FloatArray
from scipy.optimize import minimize
from scipy.special import xlogy


@dataclass(frozen=True, eq=False)
class Datasets:
    """A mechanism q(y|x) on all datasets.

    Attributes:
        letters: (N, n) every dataset, the last record's letter running fastest.
        rows: (N, M) q(y|x).
    """

    letters: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    rows: FloatArray

    @property
    def log_size(self) -> float:
        return math.log(len(self.rows))

    def members(self, record: int) -> FloatArray:
        """(A, N) one where a dataset has that letter there."""
        column = self.letters[:, record]
        return np.asarray(np.arange(column.max() + 1)[:, None] == column, dtype=float)


def datasets(alphabets: tuple[int, ...], rows: FloatArray) -> Datasets:
    return Datasets(np.array(list(product(*map(range, alphabets)))), np.asarray(rows, dtype=float))


def entropy(p: FloatArray) -> float:
    return -math.fsum(mass * math.log(mass) for mass in p.ravel().tolist() if mass > 0)


def information(data: Datasets, record: int, p: FloatArray) -> float:
    """I(X_i; Y) from the joint law of X_i and Y."""
    joint = data.members(record) @ (p[:, None] * data.rows)
    joint = joint / joint.sum()
    product_law = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    return math.fsum(
        mass * math.log(mass / other)
        for mass, other in zip(joint.ravel().tolist(), product_law.ravel().tolist(), strict=True)
        if mass > 0
    )


def informations(data: Datasets, record: int, priors: FloatArray) -> FloatArray:
    """(S,) I(X_i; Y) under many priors at once."""
    joint = np.einsum("ax,sx,xy->say", data.members(record), priors, data.rows)
    terms = xlogy(joint, joint).sum(axis=(1, 2))
    letters, outputs = joint.sum(axis=2), joint.sum(axis=1)
    return np.asarray(
        terms - xlogy(letters, letters).sum(axis=1) - xlogy(outputs, outputs).sum(axis=1)
    )


def feasible(p: FloatArray, least: float) -> FloatArray:
    """The prior mixed with the uniform one until its entropy is `least`, by bisection; it is concave."""
    uniform = np.full(len(p), 1 / len(p))
    if entropy(p) >= least:
        return p
    low, high = 0.0, 1.0
    for _ in range(70):
        middle = (low + high) / 2
        short = entropy((1 - middle) * p + middle * uniform) < least
        low, high = (middle, high) if short else (low, middle)
    return np.asarray((1 - high) * p + high * uniform)


def largest(
    data: Datasets, record: int, least: float, starts: int = 16, seed: int = 0
) -> FloatArray:
    """The best prior of many local searches: a lower bound on the problem, and tight where one succeeds."""
    random = np.random.default_rng(seed)
    size = len(data.rows)
    priors = [corner_prior(data, record, random) for _ in range(starts // 2)]
    priors += [random.dirichlet(np.full(size, 0.3)) for _ in range(starts - starts // 2)]
    known = [feasible(p, least) for p in priors]
    known += [feasible(polished(data, record, least, p), least) for p in known]
    return max(known, key=lambda p: information(data, record, p))


def corner_prior(data: Datasets, record: int, random: np.random.Generator) -> FloatArray:
    """Each letter on the datasets of one row, letters at random weights."""
    p = np.zeros(len(data.rows))
    members = data.members(record) > 0
    for there, mass in zip(members, random.dirichlet(np.full(len(members), 3.0)), strict=True):
        pick = data.rows[random.choice(np.flatnonzero(there))]
        alike = there & (np.abs(data.rows - pick).max(axis=1) < 1e-9)
        p[alike] = mass / alike.sum()
    return p


def polished(data: Datasets, record: int, least: float, start: FloatArray) -> FloatArray:
    """Sequential quadratic programming on p itself."""
    members, tiny = data.members(record), 1e-13
    column = data.letters[:, record]

    def slope(p: FloatArray) -> FloatArray:
        joint = members @ (p[:, None] * data.rows)
        ratio = joint / np.maximum(joint.sum(axis=1, keepdims=True) * joint.sum(axis=0), 1e-300)
        logs = np.log(np.where(joint > 0, ratio, 1.0))
        return np.asarray((data.rows * logs[column]).sum(axis=1))

    found = minimize(
        lambda p: -float(informations(data, record, np.maximum(p, 0)[None])[0]),
        np.maximum(start, tiny),
        jac=lambda p: -slope(np.maximum(p, 0)) + 1,
        method="SLSQP",
        bounds=[(tiny, 1.0)] * len(start),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": lambda p: np.ones(len(p))},
            {
                "type": "ineq",
                "fun": lambda p: -float(xlogy(p, p).sum()) - least,
                "jac": lambda p: -np.log(np.maximum(p, 1e-300)) - 1,
            },
        ],
        options={"maxiter": 100, "ftol": 1e-14},
    )
    p = np.clip(np.nan_to_num(found.x), 0.0, None)
    return np.asarray(p / p.sum()) if p.sum() > 0 else start


def grid(size: int, steps: int) -> Iterator[FloatArray]:
    """Every prior on `size` datasets whose masses are multiples of 1 / steps."""
    for bars in combinations(range(steps + size - 1), size - 1):
        ends = np.array([-1, *bars, steps + size - 1])
        yield (np.diff(ends) - 1) / steps


def capacity(channel: FloatArray) -> float:
    """The capacity in nats, by Blahut's iteration: the mean of its two bounds once they are 1e-12 apart."""
    p = np.full(len(channel), 1 / len(channel))
    low = high = 0.0
    for _ in range(20_000):
        law = p @ channel
        rates = xlogy(channel, np.where(channel > 0, channel / np.maximum(law, 1e-300), 1.0)).sum(
            axis=1
        )
        low, high = float(np.log(p @ np.exp(rates))), float(rates.max())
        if high - low < 1e-12:
            break
        p = p * np.exp(rates)
        p /= p.sum()
    return (low + high) / 2


def binary_entropy(p: float) -> float:
    return -float(xlogy(p, p) + xlogy(1 - p, 1 - p))


def marginal_program(laws: FloatArray, inner: FloatArray, least: float) -> cp.Problem:
    """The p(x_i) that leaks most for fixed p(x_-i|x_i): [wu2026entropy, eq. (13)], which Algorithm 2 solves.

    Maximise `H(Y) - sum p(x_i) H(Y|x_i)` subject to `H(X_i) + sum p(x_i) H(X_-i|x_i) >= least`, with (A, M)
    laws p(y|x_i) and (A,) inner entropies.
    """
    law = cp.Variable(len(laws), nonneg=True)
    leaked = cp.sum(cp.entr(laws.T @ law)) + xlogy(laws, laws).sum(axis=1) @ law
    return cp.Problem(
        cp.Maximize(leaked), [cp.sum(law) == 1, cp.sum(cp.entr(law)) + inner @ law >= least]
    )
