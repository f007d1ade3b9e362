"""The least leakage for a distortion, and the least distortion for a leakage."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, nonnegative, real
from pmlopt.backends.outcome import Options, options_of
from pmlopt.errors import PrivacyError, UtilityError
from pmlopt.programs.record_leakage.program import checked_entropy, record_leakage
from pmlopt.programs.tradeoff.certificate import DistortionCertificate, TradeoffProof, only_constants
from pmlopt.programs.tradeoff.cutting_planes import Exchange, Found, Prior, heaviest
from pmlopt.programs.tradeoff.penalty import penalised
from pmlopt.programs.tradeoff.problem import SAME, Task, check_feasible, task_of
from pmlopt.programs.tradeoff.relaxation import Sense
from pmlopt.queries import Query
from pmlopt.queries.query import check_query
from pmlopt.result import DistortionResult, Status, Timings

EXACT, PENALTY = "exact", "penalty"
Method = Literal["exact", "penalty"]


def leakage_distortion(
    query: Query,
    distortion: float,
    entropy: float,
    method: Method = "exact",
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    seed: int = 0,
) -> DistortionResult:
    """`epsilon(D, b)`: the least leakage per record of a mechanism whose expected distortion is at most D.

    `min_q max_i max_{H(X) >= b} I(X_i; Y)` subject to `E_{p_0} d(f(X), Y) <= D`. Exact: the problem is convex
    in the mechanism. A program finds the best mechanism against the priors so far, an oracle
    (`record_leakage`) adds the priors that leak more; the program's multipliers bound every mechanism from
    below, and the oracle's certificate bounds this one from above. The mechanism depends on the dataset
    through the classes of `queries.orbits` alone, which loses nothing.

    Args:
        query: f.
        distortion: D, at least the least that is possible.
        entropy: b in nats, from 0 to log |X|.
        method: "exact", or "penalty" for ENT's Algorithms 6 to 8.
        loss: (T, M) d(f, y), a row for each value of the query; |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset, (k_1, ..., k_n); uniform if left out.
        tolerance: the gap in nats that is good enough.
        time_limit: seconds.
        seed: of the oracle's starts.

    Raises:
        InfeasibleError: no mechanism has so small a distortion.
        PrivacyError, UtilityError, QueryError, PriorError: an argument cannot be meant.

    Source: ENT, Problem 2 (Definition 2.2); the exact method is pmlopt's.

    Examples:
        >>> from pmlopt import queries
        >>> found = leakage_distortion(queries.ModularSum(3, 2), 0.2, 1.5)
        >>> round(found.value, 5), found.mechanism.matrix.round(4).tolist()
        (0.17332, [[0.8, 0.2], [0.2, 0.8]])
    """
    limit = nonnegative_distortion(distortion)
    return _solve(
        query, loss, law, entropy, "leakage", limit, method, options_of(time_limit, tolerance), seed
    )


def distortion_leakage(
    query: Query,
    leakage: float,
    entropy: float,
    method: Method = "exact",
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    seed: int = 0,
) -> DistortionResult:
    """`D(L, b)`: the least expected distortion of a mechanism that leaks at most L of any record.

    As `leakage_distortion`, with both sides exchanged.

    Args:
        query: f.
        leakage: L in nats, at least 0.
        entropy: b in nats, from 0 to log |X|.
        method: "exact", or "penalty" for ENT's Algorithms 9 to 11.
        loss: (T, M) d(f, y), a row for each value of the query; |y - f| over the query's values if left out.
        law: the true law p_0 of the dataset, (k_1, ..., k_n); uniform if left out.
        tolerance: the gap in units of the distortion that is good enough.
        time_limit: seconds.
        seed: of the oracle's starts.

    Raises:
        PrivacyError, UtilityError, QueryError, PriorError: an argument cannot be meant.

    Source: ENT, Problem 3 (Definition 2.3); the exact method is pmlopt's.

    Examples:
        >>> import math
        >>> from pmlopt import queries
        >>> capacity = math.log(2) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8)
        >>> round(distortion_leakage(queries.ModularSum(2, 2), capacity, 0.0).value, 5)
        0.2
    """
    limit = nonnegative(leakage, "the leakage L", PrivacyError)
    return _solve(
        query, loss, law, entropy, "distortion", limit, method, options_of(time_limit, tolerance), seed
    )


def leakage_distortion_curve(
    query: Query,
    points: Iterable[tuple[float, float]],
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    seed: int = 0,
) -> list[DistortionResult]:
    """`leakage_distortion` at many (D, b), each from the priors of the ones before.

    Args:
        query: as for `leakage_distortion`.
        points: (D, b) in any order.
        loss: as for `leakage_distortion`.
        law: as for `leakage_distortion`.
        tolerance: the gap in nats that is good enough.
        time_limit: seconds for each point.
        seed: of the oracle's starts.

    Returns:
        In the order of the points.

    Examples:
        >>> from pmlopt import queries
        >>> curve = leakage_distortion_curve(queries.ModularSum(3, 2), [(0.2, 1.5), (0.3, 1.5)])
        >>> [round(point.value, 4) for point in curve]
        [0.1733, 0.0743]
    """
    wanted = [(nonnegative_distortion(limit), entropy) for limit, entropy in _pairs(points)]
    return _curve(query, loss, law, "leakage", wanted, options_of(time_limit, tolerance), seed)


def distortion_leakage_curve(
    query: Query,
    points: Iterable[tuple[float, float]],
    *,
    loss: ArrayLike | None = None,
    law: ArrayLike | None = None,
    tolerance: float = 1e-6,
    time_limit: float | None = None,
    seed: int = 0,
) -> list[DistortionResult]:
    """`distortion_leakage` at many (L, b), each from the priors of the ones before.

    Args:
        query: as for `distortion_leakage`.
        points: (L, b) in any order.
        loss: as for `distortion_leakage`.
        law: as for `distortion_leakage`.
        tolerance: the gap in units of the distortion that is good enough.
        time_limit: seconds for each point.
        seed: of the oracle's starts.

    Returns:
        In the order of the points.
    """
    wanted = [
        (nonnegative(limit, "the leakage L", PrivacyError), entropy) for limit, entropy in _pairs(points)
    ]
    return _curve(query, loss, law, "distortion", wanted, options_of(time_limit, tolerance), seed)


def _pairs(points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points of a curve, or a complaint where they are no pairs."""
    try:
        return [(limit, entropy) for limit, entropy in points]
    except (TypeError, ValueError):
        raise PrivacyError(f"the points are {points!r:.60}: give pairs such as [(0.2, 1.5)]") from None


def _curve(
    query: Query,
    loss: ArrayLike | None,
    law: ArrayLike | None,
    sense: Sense,
    points: Sequence[tuple[float, float]],
    options: Options,
    seed: int,
) -> list[DistortionResult]:
    """Every point, the larger entropies first: their priors are allowed at the smaller ones."""
    found: dict[tuple[float, float], DistortionResult] = {}
    known: list[Prior] = []
    check_query(query)
    wanted = [(limit, checked_entropy(query, entropy)) for limit, entropy in points]
    for limit, entropy in sorted(set(wanted), key=lambda point: (-point[1], point[0])):
        task = task_of(query, loss, law, entropy, sense, limit)
        result, known = _exact(task, options, seed, known)
        found[limit, entropy] = result
    return [found[point] for point in wanted]


def nonnegative_distortion(distortion: float) -> float:
    """D, checked."""
    limit = real(distortion, "the distortion D", UtilityError)
    if limit < 0:
        raise UtilityError(f"the distortion D is {limit:g}: give a number of at least 0")
    return limit


def _solve(
    query: Query,
    loss: ArrayLike | None,
    law: ArrayLike | None,
    entropy: float,
    sense: Sense,
    limit: float,
    method: str,
    options: Options,
    seed: int,
) -> DistortionResult:
    if method not in (EXACT, PENALTY):
        raise PrivacyError(f"the method is {method!r}: write {EXACT} or {PENALTY}")
    check_query(query)
    task = task_of(query, loss, law, checked_entropy(query, entropy), sense, limit)
    if method == EXACT:
        return _exact(task, options, seed, [])[0]
    begin = time.perf_counter()
    deadline = math.inf if options.time_limit is None else begin + options.time_limit
    check_feasible(task)
    found = _end(task, seed, deadline) or penalised(task, seed, deadline)
    return result_of(found, options, time.perf_counter() - begin)


def _exact(
    task: Task, options: Options, seed: int, known: Sequence[Prior]
) -> tuple[DistortionResult, list[Prior]]:
    """By cutting planes, from known priors; and the priors that matter at the end."""
    begin = time.perf_counter()
    check_feasible(task)
    deadline = math.inf if options.time_limit is None else begin + options.time_limit
    found = _end(task, seed, deadline)
    kept = list(known)
    if found is None:
        work = Exchange(task, options, seed, deadline, kept)
        found = work.found(work.run())
        kept = heaviest(work.proof)
    return result_of(found, options, time.perf_counter() - begin), kept


def _end(task: Task, seed: int, deadline: float) -> Found | None:
    """The ends of the curve: a constant that leaks nothing, and the least distortion of all."""
    if task.sense == "leakage":
        if task.limit < task.trivial * (1 - SAME):
            return None
        return _closed(task, task.constant, "a constant leaks nothing", 0.0, seed)
    if task.limit == 0 and only_constants(task.orbits.query, task.entropy):
        return _closed(task, task.constant, "only a constant leaks nothing", task.trivial, seed)
    return _cheapest(task, seed, deadline)


def _cheapest(task: Task, seed: int, deadline: float) -> Found | None:
    """The least distortion of all where its leakage is allowed; proved no further than that needs."""
    reason = "the least distortion leaks no more"
    cheap = _closed(task, task.cheapest, reason, task.least, seed, nodes=1)
    value = cheap.audit.certificate.value
    if cheap.audit.bound > task.limit >= value:
        left = None if math.isinf(deadline) else max(1e-3, deadline - time.perf_counter())
        room = max(task.limit - value, 1e-7)
        cheap = _closed(task, task.cheapest, reason, task.least, seed, tolerance=room, time_limit=left)
    return cheap if cheap.audit.bound <= task.limit else None


def _closed(task: Task, matrix: FloatArray, reason: str, bound: float, seed: int, **how: Any) -> Found:
    """A mechanism that is known to be optimal, audited in some way."""
    audit = record_leakage(task.orbits.query, task.mechanism(matrix), task.entropy, seed=seed, **how)
    return Found(task, matrix, audit, bound, TradeoffProof((), 0.0), "closed-form", reason, 0, 0.0, 0.0)


def result_of(found: Found, options: Options, seconds: float) -> DistortionResult:
    """A result from what was found; everything in it is computed from the matrix."""
    task = found.task
    distortion = task.tradeoff.distortion(found.matrix)
    reached = {"leakage": found.audit.bound, "distortion": distortion}
    value = reached[task.sense]
    other = distortion if task.sense == "leakage" else found.audit.bound
    violation = max(0.0, other - task.limit)
    bound = min(found.bound, value)
    certificate = DistortionCertificate(
        mechanism=found.audit.mechanism,
        value=value,
        bound=bound,
        gap=value - bound,
        sense=task.sense,
        limit=task.limit,
        orbits=task.orbits,
        tradeoff=task.tradeoff,
        audit=found.audit.certificate,
        distortion=distortion,
        violation=violation,
        proof=found.proof,
    )
    return DistortionResult(
        status=_status(certificate, found, options, seconds),
        certificate=certificate,
        solver=found.solver,
        reason=found.reason,
        attempts=(),
        iterations=found.rounds,
        warm_started=False,
        timings=Timings(compile=found.compile_seconds, solve=found.solve_seconds, certify=0.0, total=seconds),
        closed_form=None,
    )


def _status(certificate: DistortionCertificate, found: Found, options: Options, seconds: float) -> Status:
    slack = 1e-12 * max(1.0, certificate.limit) if certificate.sense == "leakage" else 0.0
    if certificate.violation > slack:
        return Status.VIOLATED
    if found.proof is not None and certificate.gap <= options.tolerance:
        return Status.OPTIMAL
    late = options.time_limit is not None and seconds >= options.time_limit
    return Status.STOPPED if late else Status.UNPROVED
