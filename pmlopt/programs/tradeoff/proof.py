"""The loss data of a trade-off, and the dual multipliers that bound every mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Annotated, Any, Literal

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, bound_sum_rounding
from pmlopt.core.records.fields import Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import ProgramError
from pmlopt.model.queries import Query
from pmlopt.programs.exact.decimals import (
    DECIMAL_DIGITS,
    DecimalRows,
    dot_decimals,
    has_entropy,
    normalize_decimal_rows,
    sum_decimals,
    to_decimal_rows,
)
from pmlopt.programs.record_leakage.certificate import RecordCertificate

Sense = Literal["leakage", "distortion"]
"""What is minimised: "leakage" in Problem 2 of [wu2026entropy], "distortion" in Problem 3."""

LOSS_RTOL = 1e-12
"""Losses, and a limit and an end of its range, are equal where they differ by this share: rounding."""


@dataclass(frozen=True, eq=False)
class TradeoffLosses:
    """The losses of an expected distortion, and the support allowed to mechanisms.

    Attributes:
        losses: (K, M) what releasing y costs when the dataset is in a class: the expected distortion of a
            mechanism q is `sum_{k,y} masses[k] q[k,y] d(f_k, y)`, and this is `masses[k] d(f_k, y)`.
        allowed: (K, M) which entries of the mechanism may be positive.
    """

    losses: Annotated[FloatArray, Shape("N", "M")]
    allowed: Annotated[BoolArray, Shape("N", "M")]

    def compute_distortion(self, matrix: FloatArray) -> float:
        """Compute the expected distortion of a mechanism."""
        return float((self.losses * matrix).sum())

    @property
    def min_distortion(self) -> float:
        """Return the least expected distortion of any mechanism."""
        return math.fsum(self.losses.min(axis=1).tolist())


def make_tradeoff_losses(losses: FloatArray, sense: Sense, limit: float) -> TradeoffLosses:
    """Build the losses with the support of mechanisms that may be optimal.

    That is everything, unless Problem 2 requires the least distortion of all: then the rows are on their
    cheapest outputs only.

    Examples:
        >>> make_tradeoff_losses(1 - np.eye(2), "leakage", 0.0).allowed.tolist()
        [[True, False], [False, True]]
    """
    free = TradeoffLosses(losses, np.ones(losses.shape, dtype=bool))
    if sense == "distortion" or limit > free.min_distortion * (1 + LOSS_RTOL):
        return free
    return TradeoffLosses(losses, losses <= losses.min(axis=1, keepdims=True) * (1 + LOSS_RTOL))


@dataclass(frozen=True, eq=False)
class PriorCut:
    """A cut: a prior and posterior that bound the leakage of every mechanism from below.

    For any law psi of the letter given the output, I(X_i; Y) is at least
    `sum_{a,k,y} J(a,k) q(y|k) log(psi(a|y) / pi_a)`, which is linear in q.

    Attributes:
        record: i.
        joint: (A, K) J, the law of (X_i, class).
        posterior: (A, M) psi, a law of the letter for each output.
        weight: of the prior in the bound, at least 0.
    """

    record: int
    joint: Annotated[FloatArray, Shape("A", "N")]
    posterior: Annotated[FloatArray, Shape("A", "M")]
    weight: float


@dataclass(frozen=True, eq=False)
class TradeoffProof:
    """The Lagrange multipliers of a lower bound; any nonnegative ones prove one.

    Attributes:
        cuts: priors with their weights.
        price: of the distortion, at least 0 (Problem 2 only).
    """

    cuts: tuple[PriorCut, ...]
    price: float

    @property
    def is_nonnegative(self) -> bool:
        """Return whether all multipliers are finite and nonnegative."""
        return all(
            math.isfinite(x) and x >= 0 for x in (self.price, *(cut.weight for cut in self.cuts))
        )


def compute_tradeoff_bound(
    tradeoff: TradeoffLosses,
    sense: Sense,
    limit: float,
    proof: TradeoffProof,
    factor: float = 1.0,
    known: tuple[FloatArray, FloatArray] | None = None,
) -> float:
    """Compute the Lagrangian lower bound from priors and nonnegative multipliers.

    With `g[k,y] = sum_j w_j sum_a J_j(a,k) log(psi_j(a|y) / pi_a)`: in Problem 2
    `sum_k min_y (g[k,y] + nu masses[k] d(f_k, y)) - nu D`, the weights summing to one; in Problem 3
    `sum_k min_y (masses[k] d(f_k, y) + g[k,y]) - L sum_j w_j`. What rounding may have added is taken off.

    Args:
        tradeoff: losses and support.
        sense: "leakage" for Problem 2, "distortion" for Problem 3.
        limit: D, or L in nats.
        proof: any priors and posteriors, weights and a price of at least 0.
        factor: by which the price (Problem 2) or the weights (Problem 3) are taken larger.
        known: the `sum_cuts` the cuts, where they were computed before.

    Raises:
        ProgramError: a multiplier is negative or no finite number.

    Examples:
        >>> tradeoff = TradeoffLosses((1 - np.eye(2)) / 2, np.ones((2, 2), dtype=bool))
        >>> posterior = np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> cut = PriorCut(0, np.eye(2) / 2, posterior, 1.0)
        >>> round(
        ...     compute_tradeoff_bound(tradeoff, "leakage", 0.1, TradeoffProof((cut,), np.log(9).item())), 6
        ... )
        0.368064
    """
    if not proof.is_nonnegative:
        raise ProgramError(
            "a multiplier of the proof is negative or not finite: give numbers of at least 0"
        )
    total = sum(cut.weight for cut in proof.cuts)
    leakage = sense == "leakage"
    # without weights the multipliers cannot be scaled to sum to one
    if leakage and total <= 0:
        return 0.0  # a leakage is never less
    gains, sizes = known or sum_cuts(proof.cuts, tradeoff.losses.shape)
    of_gains, of_losses, offset = _compute_factors(
        leakage, limit, total, factor * proof.price, factor
    )
    values = np.where(tradeoff.allowed, of_gains * gains + of_losses * tradeoff.losses, math.inf)
    # the largest sum of terms over one entry of each row: what rounding is relative to
    size = float((of_gains * sizes + of_losses * tradeoff.losses).max(axis=1).sum()) + abs(offset)
    return max(
        0.0, float(values.min(axis=1).sum() - offset) - bound_sum_rounding(values.size, size)
    )


def _compute_factors(
    leakage: bool, limit: Any, weights: Any, price: Any, factor: Any
) -> tuple[Any, Any, Any]:
    """Compute the Lagrangian's factors of leakage and loss, and the limit's term."""
    if leakage:
        return 1 / weights, price / weights, price / weights * limit
    return factor, 1, factor * weights * limit


def optimize_proof_scale(
    tradeoff: TradeoffLosses, sense: Sense, limit: float, proof: TradeoffProof
) -> TradeoffProof:
    """Optimize the scale of a proof's weights to maximise the bound."""
    gains = sum_cuts(proof.cuts, tradeoff.losses.shape)

    def compute_loss(place: float) -> float:
        return -compute_tradeoff_bound(tradeoff, sense, limit, proof, math.exp(place), gains)

    # a sum of minima of affine functions: concave in the factor, so that one search suffices
    found = optimize.minimize_scalar(
        compute_loss, bounds=(-0.2, 0.2), method="bounded", options={"xatol": 1e-12}
    )
    # the search may end at a worse point: the given proof stays valid
    if compute_loss(float(found.x)) >= compute_loss(0.0):
        return proof
    factor = math.exp(float(found.x))
    if sense == "leakage":
        return replace(proof, price=proof.price * factor)
    return replace(
        proof, cuts=tuple(replace(cut, weight=cut.weight * factor) for cut in proof.cuts)
    )


def sum_cuts(cuts: Sequence[PriorCut], shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Compute the (K, M) weighted sum of the cuts, and the magnitude of its terms."""
    gains = np.zeros(shape)
    sizes = np.zeros(shape)
    for cut in cuts:
        joint, logs = _compute_log_ratios(cut.joint, cut.posterior, np.log)
        gains += cut.weight * joint.T @ logs
        sizes += cut.weight * joint.T @ (1 + np.abs(logs))
    return gains, sizes


def _compute_log_ratios(joint: Any, posterior: Any, log: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Compute the joint law and `log(psi(a|y) / pi_a)` on letters that occur."""
    letters = joint.sum(axis=1)
    # letters that never occur have no ratio psi / pi, and no mass in J
    used = letters > 0
    return joint[used], log(posterior[used] / letters[used, None])


def allows_only_constants(query: Query, entropy: float) -> bool:
    """Return whether zero leakage is possible only for constant mechanisms.

    They do where the entropy leaves room around the uniform dataset and a record has two letters or more:
    moving a little mass between two classes of one letter must not move the law of Y, nor must moving it to
    another letter, so that all rows are equal.
    """
    return query.log_size - entropy > 1e-9 * max(1.0, query.log_size) and max(query.alphabets) > 1


DISTORTION_RTOL = Decimal(2) ** -46
"""What rounding may do to a distortion, over its size: products and sums of a few floats."""


def is_audit_valid(query: Query, mechanism: Mechanism, audit: RecordCertificate) -> bool:
    """Return whether an audit proves the leakage of this mechanism."""
    channel = replace(audit.channel, query=query, mechanism=mechanism)
    return replace(audit, mechanism=mechanism, channel=channel).verify()


def is_limit_kept(tradeoff: TradeoffLosses, sense: Sense, limit: float, matrix: FloatArray) -> bool:
    """Return whether losses, support and mechanism are valid, and the distortion limit holds."""
    losses = tradeoff.losses
    allowed = tradeoff.allowed
    if sense not in ("leakage", "distortion") or not (math.isfinite(limit) and limit >= 0):
        return False
    fits = losses.shape == allowed.shape == matrix.shape and _are_nonnegative(losses, matrix)
    if not fits or not _is_support_valid(tradeoff, sense, limit) or matrix[~allowed].any():
        return False
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        # decimals: the check must not round in favour of the claim
        rows = to_decimal_rows(matrix)
        costs = to_decimal_rows(losses)
        if any(abs(sum_decimals(row) - 1) > DISTORTION_RTOL for row in rows):
            return False
        spent = sum_decimals(dot_decimals(row, cost) for row, cost in zip(rows, costs, strict=True))
        return sense == "distortion" or spent <= Decimal(limit) + _distortion_rounding(costs)


def is_bound_proved(
    tradeoff: TradeoffLosses,
    sense: Sense,
    limit: float,
    proof: TradeoffProof,
    query: Query,
    entropy: float,
    bound: float,
) -> bool:
    """Return whether the priors and multipliers of a proof confirm a lower bound."""
    if not (math.isfinite(bound) and proof.is_nonnegative):
        return False
    with localcontext() as context:
        context.prec = DECIMAL_DIGITS
        if not all(_is_cut_valid(cut, tradeoff, query, entropy) for cut in proof.cuts):
            return False
        losses = to_decimal_rows(tradeoff.losses)
        slack = Decimal(0) if sense == "leakage" else _distortion_rounding(losses)
        if sense == "distortion" and limit == 0 and allows_only_constants(query, entropy):
            return min(
                sum_decimals(column) for column in zip(*losses, strict=True)
            ) + slack >= Decimal(bound)
        return bound_in_decimals(tradeoff, sense, limit, proof) + slack >= Decimal(bound)


def _are_nonnegative(*arrays: FloatArray) -> bool:
    """Return whether all entries of arrays are finite and nonnegative."""
    return all(bool((np.isfinite(array) & (array >= 0)).all()) for array in arrays)


def _distortion_rounding(losses: DecimalRows) -> Decimal:
    """Bound the rounding error of an expected distortion."""
    return DISTORTION_RTOL * sum_decimals(max(cost) for cost in losses)


def _is_support_valid(tradeoff: TradeoffLosses, sense: Sense, limit: float) -> bool:
    """Return whether the restricted support excludes no feasible mechanism."""
    if tradeoff.allowed.all():
        return True
    cheapest = make_tradeoff_losses(tradeoff.losses, "leakage", 0.0).allowed
    # the limit and the least distortion are both rounded
    near = limit <= tradeoff.min_distortion * (1 + 1e-11)
    return sense == "leakage" and near and bool(np.array_equal(tradeoff.allowed, cheapest))


def _is_cut_valid(cut: PriorCut, tradeoff: TradeoffLosses, query: Query, entropy: float) -> bool:
    """Return whether a cut has a valid prior of enough entropy and valid posteriors."""
    if cut.record not in range(query.records):
        return False
    log_counts = query.log_counts(cut.record)
    letters = len(log_counts)
    outputs = tradeoff.losses.shape[1]
    if cut.joint.shape != log_counts.shape or cut.joint.shape[1] != len(tradeoff.losses):
        return False
    if cut.posterior.shape != (letters, outputs) or not _are_nonnegative(cut.joint, cut.posterior):
        return False
    # a posterior of 0 on a letter that occurs would bound by minus infinity
    if not (cut.posterior[cut.joint.sum(axis=1) > 0] > 0).all():
        return False
    return has_entropy(cut.joint, log_counts, entropy, query.log_size)


def bound_in_decimals(
    tradeoff: TradeoffLosses, sense: Sense, limit: float, proof: TradeoffProof
) -> Decimal:
    """Compute the Lagrangian bound in decimal arithmetic, at least the least distortion."""
    leakage = sense == "leakage"
    losses = np.array(to_decimal_rows(tradeoff.losses), dtype=object)
    floor = Decimal(0) if leakage else sum_decimals(losses.min(axis=1))
    weights = sum_decimals(Decimal(cut.weight) for cut in proof.cuts)
    if leakage and weights <= 0:
        return floor
    gains = np.full(losses.shape, Decimal(0))
    for cut in proof.cuts:
        flat = normalize_decimal_rows(cut.joint.reshape(1, -1))[0]
        width = cut.joint.shape[1]
        exact = np.array(flat, dtype=object).reshape(-1, width)
        # floats sum to one up to rounding: normalised exactly, psi is a law for each output
        posterior = np.array(normalize_decimal_rows(cut.posterior.T), dtype=object).T
        joint, logs = _compute_log_ratios(
            exact, posterior, np.vectorize(Decimal.ln, otypes=[object])
        )
        gains = gains + Decimal(cut.weight) * (joint.T @ logs)
    of_gains, of_losses, offset = _compute_factors(
        leakage, Decimal(limit), weights, Decimal(proof.price), Decimal(1)
    )
    values = np.where(tradeoff.allowed, of_gains * gains + of_losses * losses, math.inf)
    # a sum of exact minima less the offset: weak duality in 50 digits
    least: Decimal = sum_decimals(values.min(axis=1)) - offset
    return max(floor, least)
