"""The largest leakage of a record over priors on all datasets, one by one: a second implementation.

Nothing here counts datasets or merges them: p has an entry for each, and so has the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

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
    return np.asarray(terms - xlogy(letters, letters).sum(axis=1) - xlogy(outputs, outputs).sum(axis=1))


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


def largest(data: Datasets, record: int, least: float, starts: int = 16, seed: int = 0) -> FloatArray:
    """The best prior of many local searches: a lower bound on the problem, and tight where one succeeds."""
    random = np.random.default_rng(seed)
    size = len(data.rows)
    priors = np.stack(
        [
            *(feasible(corner_prior(data, record, random), least) for _ in range(starts // 2)),
            *(feasible(random.dirichlet(np.full(size, 0.3)), least) for _ in range(starts - starts // 2)),
        ]
    )
    priors = alternated(data, record, least, priors, 40)
    order = np.argsort(-informations(data, record, priors))
    known = [feasible(priors[order[0]], least)]
    known += [feasible(polished(data, record, least, priors[place]), least) for place in order[:2]]
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


def alternated(data: Datasets, record: int, least: float, priors: FloatArray, iterations: int) -> FloatArray:
    """Blahut-Arimoto steps: psi(a|y) from p, then the best p for it, the price of entropy by bisection."""
    members = data.members(record)
    for _ in range(iterations):
        joint = np.einsum("ax,sx,xy->say", members, np.maximum(priors, 1e-300), data.rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            posterior = joint / joint.sum(axis=1, keepdims=True)
        worth = np.log(np.where(posterior > 0, posterior, 1e-300))
        gains = np.einsum("xy,say,ax->sx", data.rows, worth, members)
        low, high = np.full(len(priors), -16.0), np.full(len(priors), 12.0)
        for _ in range(40):
            middle = (low + high) / 2
            short = surplus(best_reply(members, gains, middle), least) < 0
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        priors = best_reply(members, gains, high)
    return priors


def surplus(priors: FloatArray, least: float) -> FloatArray:
    return np.asarray(-xlogy(priors, priors).sum(axis=1) - least)


def best_reply(members: FloatArray, gains: FloatArray, log_price: FloatArray) -> FloatArray:
    """Argmax of H(X_i) + <p, G> + s H(p): the letter's law, then the dataset's given the letter."""
    price = np.exp(log_price)[:, None]
    inside = np.where(members[None] > 0, gains[:, None, :] / price[:, :, None], -np.inf)
    peaks = inside.max(axis=2)
    weights = np.exp(inside - peaks[:, :, None])
    sums = weights.sum(axis=2)
    letters = price / (1 + price) * (peaks + np.log(sums))
    law = np.exp(letters - letters.max(axis=1, keepdims=True))
    law /= law.sum(axis=1, keepdims=True)
    return np.asarray((weights * (law / sums)[:, :, None]).sum(axis=1))


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
        rates = xlogy(channel, np.where(channel > 0, channel / np.maximum(law, 1e-300), 1.0)).sum(axis=1)
        low, high = float(np.log(p @ np.exp(rates))), float(rates.max())
        if high - low < 1e-12:
            break
        p = p * np.exp(rates)
        p /= p.sum()
    return (low + high) / 2


def binary_entropy(p: float) -> float:
    return -float(xlogy(p, p) + xlogy(1 - p, 1 - p))
