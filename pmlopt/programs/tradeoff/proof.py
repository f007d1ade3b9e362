"""The data of a trade-off, and the multipliers that bound every mechanism from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray, rounding_of
from pmlopt.errors import ProgramError
from pmlopt.queries import Query

Sense = Literal["leakage", "distortion"]
"""What is minimised: "leakage" in Problem 2 of [wu2026entropy], "distortion" in Problem 3."""

RELATIVE_TOLERANCE = 1e-12
"""Losses, and a limit and an end of its range, are equal where they differ by this share: rounding."""


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """Losses of the expected distortion, and the entries of a mechanism that may be positive.

    Attributes:
        losses: (K, M) what releasing y costs when the dataset is in a class: the expected distortion of a
            mechanism q is `sum_{k,y} masses[k] q[k,y] d(f_k, y)`, and this is `masses[k] d(f_k, y)`.
        allowed: (K, M) which entries of the mechanism may be positive.
    """

    losses: FloatArray
    allowed: BoolArray

    def distortion(self, matrix: FloatArray) -> float:
        """The expected distortion of a mechanism."""
        return float((self.losses * matrix).sum())

    @property
    def least(self) -> float:
        """The least expected distortion of all mechanisms."""
        return math.fsum(self.losses.min(axis=1).tolist())


def tradeoff_of(losses: FloatArray, sense: Sense, limit: float) -> Tradeoff:
    """The losses with the support of the mechanisms that may be optimal.

    That is everything, unless Problem 2 asks for the least distortion of all: then the rows are on their
    cheapest outputs alone.

    Args:
        losses: (K, M).
        sense: "leakage" for Problem 2, "distortion" for Problem 3.
        limit: D, or L in nats.

    Examples:
        >>> tradeoff_of(1 - np.eye(2), "leakage", 0.0).allowed.tolist()
        [[True, False], [False, True]]
    """
    free = Tradeoff(losses, np.ones(losses.shape, dtype=bool))
    if sense == "distortion" or limit > free.least * (1 + RELATIVE_TOLERANCE):
        return free
    return Tradeoff(losses, losses <= losses.min(axis=1, keepdims=True) * (1 + RELATIVE_TOLERANCE))


@dataclass(frozen=True, eq=False)
class Cut:
    """A prior within the entropy bound, and a lower bound on what every mechanism leaks under it.

    For any law psi of the letter given the output, I(X_i; Y) is at least
    `sum_{a,k,y} J(a,k) q(y|k) log(psi(a|y) / pi_a)`, which is linear in q.

    Attributes:
        record: i.
        joint: (A, K) J, the law of (X_i, class).
        posterior: (A, M) psi, a law of the letter for each output.
        weight: of the prior in the bound, at least 0.
    """

    record: int
    joint: FloatArray
    posterior: FloatArray
    weight: float


@dataclass(frozen=True, eq=False)
class TradeoffProof:
    """Lagrange multipliers that bound both problems from below: any that are at least 0 do.

    Attributes:
        cuts: priors with their weights.
        price: of the distortion, at least 0 (Problem 2 only).
    """

    cuts: tuple[Cut, ...]
    price: float

    @property
    def nonnegative(self) -> bool:
        """Whether all multipliers are finite numbers of at least 0."""
        return all(math.isfinite(x) and x >= 0 for x in (self.price, *(cut.weight for cut in self.cuts)))


def tradeoff_bound(tradeoff: Tradeoff, sense: Sense, limit: float, proof: TradeoffProof) -> float:
    """Lower bound on the value of all mechanisms, from priors and nonnegative multipliers.

    With `g[k,y] = sum_j w_j sum_a J_j(a,k) log(psi_j(a|y) / pi_a)`: in Problem 2
    `sum_k min_y (g[k,y] + nu masses[k] d(f_k, y)) - nu D`, the weights summing to one; in Problem 3
    `sum_k min_y (masses[k] d(f_k, y) + g[k,y]) - L sum_j w_j`. What rounding may have added is taken off.

    Args:
        tradeoff: losses and support.
        sense: "leakage" for Problem 2, "distortion" for Problem 3.
        limit: D, or L in nats.
        proof: any priors and posteriors, weights and a price of at least 0.

    Raises:
        ProgramError: a multiplier is negative or no finite number.

    Examples:
        >>> tradeoff = Tradeoff((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
        >>> posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> cut = Cut(0, np.eye(2) / 2, posterior, 1.0)
        >>> round(tradeoff_bound(tradeoff, "leakage", 0.1, TradeoffProof((cut,), np.log(9).item())), 6)
        0.368064
    """
    if not proof.nonnegative:
        raise ProgramError("a multiplier of the proof is negative or not finite: give numbers of at least 0")
    return _bound(tradeoff, sense, limit, proof, gains_of(proof.cuts, tradeoff.losses.shape), 1.0)


def _bound(
    tradeoff: Tradeoff,
    sense: Sense,
    limit: float,
    proof: TradeoffProof,
    gains_and_sizes: tuple[FloatArray, FloatArray],
    factor: float,
) -> float:
    """`tradeoff_bound` with the price (Problem 2) or the weights (Problem 3) times a factor."""
    total = sum(cut.weight for cut in proof.cuts)
    leakage = sense == "leakage"
    if leakage and total <= 0:
        return 0.0  # a leakage is never less
    scale = 1 / total if leakage else factor
    gains, doubt = (scale * part for part in gains_and_sizes)
    price = scale * proof.price * factor if leakage else 1.0
    worth = np.where(tradeoff.allowed, gains + price * tradeoff.losses, np.inf)
    offset = price * limit if leakage else total * factor * limit
    size = float((doubt + price * tradeoff.losses).max(axis=1).sum()) + abs(offset)
    found = worth.min(axis=1).sum() - offset
    return max(0.0, float(found) - rounding_of(worth.size, size))


def sharpened_tradeoff(tradeoff: Tradeoff, sense: Sense, limit: float, proof: TradeoffProof) -> TradeoffProof:
    """The proof with the scale of its weights, relative to the distortion, that bounds most."""
    from scipy.optimize import minimize_scalar

    gains = gains_of(proof.cuts, tradeoff.losses.shape)

    def loss(place: float) -> float:
        return -_bound(tradeoff, sense, limit, proof, gains, math.exp(place))

    found = minimize_scalar(loss, bounds=(-0.2, 0.2), method="bounded", options={"xatol": 1e-12})
    if loss(float(found.x)) >= loss(0.0):
        return proof
    factor = math.exp(float(found.x))
    if sense == "leakage":
        return replace(proof, price=proof.price * factor)
    return replace(proof, cuts=tuple(replace(cut, weight=cut.weight * factor) for cut in proof.cuts))


def gains_of(cuts: Sequence[Cut], shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """(K, M) the weighted sum g of the cuts, and the sizes of the terms that rounding may touch in it."""
    gains, sizes = np.zeros(shape), np.zeros(shape)
    for cut in cuts:
        letters = cut.joint.sum(axis=1)
        used = letters > 0
        logs = np.log(cut.posterior[used] / letters[used, None])
        gains += cut.weight * cut.joint[used].T @ logs
        sizes += cut.weight * cut.joint[used].T @ (1 + np.abs(logs))
    return gains, sizes


def only_constants(query: Query, entropy: float) -> bool:
    """Whether constant mechanisms alone leak nothing.

    They do where the entropy leaves room around the uniform dataset and a record has two letters or more:
    moving a little mass between two classes of one letter must not move the law of Y, nor must moving it to
    another letter, so that all rows are equal.
    """
    room = query.log_size - entropy
    return room > 1e-9 * max(1.0, query.log_size) and max(query.alphabets) > 1
