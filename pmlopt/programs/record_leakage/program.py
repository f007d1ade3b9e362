"""The largest leakage per record: exact by branch and bound, or by the paper's alternating method."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import options_of
from pmlopt.errors import PrivacyError
from pmlopt.mechanism import MechanismLike
from pmlopt.programs.record_leakage.alternating import alternating
from pmlopt.queries import Query, record_channel
from pmlopt.result import RecordResult

EXACT, ALTERNATING = "exact", "alternating"


def record_leakage(
    query: Query,
    mechanism: MechanismLike,
    entropy: float,
    method: Literal["exact", "alternating"] = "exact",
    *,
    tolerance: float = 1e-7,
    time_limit: float | None = None,
    nodes: int = NODES,
    seed: int = 0,
    restarts: int = 16,
) -> RecordResult:
    """`L(b) = max_i max_{H(X) >= b} I(X_i; Y)`: what an adversary of bounded knowledge learns of a record.

    Exact: the problem is reduced to the law J of (X_i, T), T the class of the dataset (see
    `queries.RecordChannel`), without loss and whatever n is; branch and bound on chords of the convex part of
    I bounds it from above (see `builders.records.RecordProgram`), a local method from below. The result is
    OPTIMAL where both meet; UNPROVED where the nodes or the dimensions gave out, with the bound that is left.

    Alternating: ENT's Algorithms 1 to 5 with restarts, over all datasets one by one. It finds local optima:
    its `bound` and `gap` are infinite.

    Args:
        query: the function of the dataset that is released.
        mechanism: q(y|f(x)), a row for each value of the query, or q(y|x), a row for each dataset; see
            `queries.record_channel`.
        entropy: b in nats, from 0 to log |X|. At log |X|, up to rounding, the dataset is uniform.
        method: "exact" or "alternating".
        tolerance: the gap in nats that is good enough.
        time_limit: seconds.
        nodes: how many programs the exact method solves at most for each kind of records.
        seed: of the starts; the same seed gives the same result, unless time runs out.
        restarts: of the alternating method.

    Raises:
        PrivacyError: b is negative or above log |X|, or the method is unknown.
        MechanismError, QueryError: query and mechanism do not fit.

    Source: ENT, Problem 1 (Definition 2.1) and Algorithms 1 to 5; the exact method is pmlopt's.

    Examples:
        >>> from pmlopt import queries
        >>> parity = queries.ModularSum(4, 2)
        >>> found = record_leakage(parity, queries.laplace(parity, 1.0), 2.5)
        >>> round(found.value, 7), found.gap < 1e-7, found.certificate.verify()
        (0.0387008, True, True)
        >>> record_leakage(parity, queries.laplace(parity, 1.0), 4 * math.log(2)).value
        0.0
    """
    options = options_of(time_limit, tolerance)
    channel = record_channel(query, mechanism)
    bound = checked_entropy(query, entropy)
    if method == ALTERNATING:
        return alternating(channel, bound, options, seed, restarts)
    if method != EXACT:
        raise PrivacyError(f"the method is {method!r}: write {EXACT} or {ALTERNATING}")
    return ExactLeakage(channel, bound, options, nodes, seed).result(None)


def record_leakage_curve(
    query: Query,
    mechanism: MechanismLike,
    entropies: Iterable[float],
    *,
    tolerance: float = 1e-7,
    time_limit: float | None = None,
    nodes: int = NODES,
    seed: int = 0,
) -> list[RecordResult]:
    """`record_leakage` at many b, each from the worst priors of the larger ones.

    A prior that is allowed at b is allowed at every smaller b, so that values never rise with b.

    Args:
        query: as for `record_leakage`.
        mechanism: as for `record_leakage`.
        entropies: b in nats, in any order.
        tolerance: the gap in nats that is good enough.
        time_limit: seconds for each b.
        nodes: how many programs each b takes at most for each kind of records.
        seed: of the starts.

    Returns:
        In the order of the entropies.

    Examples:
        >>> from pmlopt import queries
        >>> parity = queries.ModularSum(4, 2)
        >>> curve = record_leakage_curve(parity, queries.laplace(parity, 1.0), [1.0, 2.0, 2.7])
        >>> [round(point.value, 6) for point in curve]
        [0.079542, 0.079542, 0.011004]
    """
    options = options_of(time_limit, tolerance)
    channel = record_channel(query, mechanism)
    wanted = [checked_entropy(query, entropy) for entropy in entropies]
    found: dict[float, RecordResult] = {}
    warm: dict[int, FloatArray] = {}
    for entropy in sorted(set(wanted), reverse=True):
        result = ExactLeakage(channel, entropy, options, nodes, seed).result(warm)
        warm[result.record] = result.joint
        found[entropy] = result
    return [found[entropy] for entropy in wanted]
