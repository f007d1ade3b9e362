"""What proves a trade-off of leakage and distortion: an audit from above, multipliers from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.mechanism import Mechanism
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.relaxation import Sense, Tradeoff
from pmlopt.queries import Orbits, Query
from pmlopt.result import Certificate, finite


@dataclass(frozen=True, eq=False)
class Cut:
    """A prior within the entropy bound, and what it says against every mechanism.

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
    """Multipliers that bound both problems from below, whatever they are.

    Attributes:
        cuts: priors with their weights.
        price: of the distortion, at least 0 (Problem 2 only).
    """

    cuts: tuple[Cut, ...]
    price: float


@dataclass(frozen=True, eq=False, kw_only=True)
class DistortionCertificate(Certificate):
    """What is claimed of a mechanism that trades leakage per record for distortion.

    In Problem 2 `value` is the proved leakage of the mechanism and `bound` what no mechanism within the
    distortion leaks less than. In Problem 3 `value` is its expected distortion and `bound` what no mechanism
    within the leakage distorts less than.

    Attributes:
        sense: what was minimised, "leakage" or "distortion".
        limit: the bound on the other.
        orbits: the classes of datasets that are the mechanism's inputs.
        tradeoff: the losses, and the entries that may be positive.
        audit: the proof of the mechanism's leakage.
        distortion: the mechanism's expected distortion, recomputed.
        violation: by how much the limit is exceeded; 0 for the exact method.
        proof: of the bound, None where nothing was proved.
    """

    sense: Sense
    limit: float
    orbits: Orbits
    tradeoff: Tradeoff
    audit: RecordCertificate
    distortion: float
    violation: float
    proof: TradeoffProof | None

    @property
    def level(self) -> float:
        """What no record leaks more than, in nats."""
        return self.audit.bound

    @property
    def entropy(self) -> float:
        """The bound b on the adversary's knowledge, in nats."""
        return self.audit.entropy

    @property
    def statement(self) -> str:
        """The claim in a few words."""
        return f"{self.audit.statement}; distortion {self.distortion:.9g}"

    def by_dataset(self) -> Mechanism:
        """q(y|x), a row for each dataset in lexicographic order.

        Raises:
            QueryError: there are more than 2^20 datasets.
        """
        table = self.orbits.query.table()
        rows = self.mechanism.matrix[table.ravel()]
        return Mechanism(rows, product(*map(range, table.shape)), self.mechanism.outputs)

    def verify(self) -> bool:
        """Whether the claims hold, computed again in decimal arithmetic of 50 digits.

        The leakage of the mechanism, that the priors of the bound have the entropy, and the bound.
        """
        from pmlopt.programs.tradeoff.verification import tradeoff_verified

        return tradeoff_verified(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return {
            "minimised": self.sense,
            "limit": self.limit,
            "entropy": self.entropy,
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "leakage_at_most": finite(self.audit.bound),
            "distortion": self.distortion,
            "violation": self.violation,
            "audit": self.audit.to_dict(),
            "bound_from": None
            if self.proof is None
            else {
                "price": self.proof.price,
                "cuts": [
                    {
                        "record": cut.record,
                        "joint": cut.joint.tolist(),
                        "posterior": cut.posterior.tolist(),
                        "weight": cut.weight,
                    }
                    for cut in self.proof.cuts
                ],
            },
        }


def tradeoff_bound(tradeoff: Tradeoff, sense: Sense, limit: float, proof: TradeoffProof) -> float:
    """What no mechanism can better against the priors of a proof, from any multipliers.

    With `g[k,y] = sum_j w_j sum_a J_j(a,k) log(psi_j(a|y) / pi_a)`: in Problem 2
    `sum_k min_y (g[k,y] + nu masses[k] d(f_k, y)) - nu D`, the weights summing to one; in Problem 3
    `sum_k min_y (masses[k] d(f_k, y) + g[k,y]) - L sum_j w_j`. What rounding may have added is taken off.

    Args:
        tradeoff: losses and support.
        sense: "leakage" for Problem 2, "distortion" for Problem 3.
        limit: D, or L in nats.
        proof: any priors, posteriors, weights and price.

    Examples:
        >>> tradeoff = Tradeoff((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
        >>> posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> cut = Cut(0, np.eye(2) / 2, posterior, 1.0)
        >>> round(tradeoff_bound(tradeoff, "leakage", 0.1, TradeoffProof((cut,), np.log(9).item())), 6)
        0.368064
    """
    total = sum(cut.weight for cut in proof.cuts)
    if sense == "leakage" and total <= 0:
        return 0.0  # a leakage is never less
    scale = 1 / total if sense == "leakage" else 1.0
    gains, doubt = (scale * part for part in gains_of(proof.cuts, tradeoff.losses.shape))
    price = scale * proof.price if sense == "leakage" else 1.0
    worth = np.where(tradeoff.allowed, gains + price * tradeoff.losses, np.inf)
    offset = price * limit if sense == "leakage" else total * limit
    size = float((doubt + price * tradeoff.losses).max(axis=1).sum()) + abs(offset)
    found = worth.min(axis=1).sum() - offset
    return max(0.0, float(found) - rounding_of(worth.size, size))


def sharpened_tradeoff(tradeoff: Tradeoff, sense: Sense, limit: float, proof: TradeoffProof) -> TradeoffProof:
    """The proof with the best scale of its weights against the distortion, for its posteriors."""
    from scipy.optimize import minimize_scalar

    def scaled(place: float) -> TradeoffProof:
        factor = math.exp(place)
        if sense == "leakage":
            return replace(proof, price=proof.price * factor)
        return replace(proof, cuts=tuple(replace(cut, weight=cut.weight * factor) for cut in proof.cuts))

    def loss(place: float) -> float:
        return -tradeoff_bound(tradeoff, sense, limit, scaled(place))

    found = minimize_scalar(loss, bounds=(-0.2, 0.2), method="bounded", options={"xatol": 1e-12})
    return scaled(float(found.x)) if loss(float(found.x)) < loss(0.0) else proof


def gains_of(cuts: Sequence[Cut], shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """(K, M) g, the weighted sum of what the cuts say, and the sizes of what rounding may touch in it."""
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
