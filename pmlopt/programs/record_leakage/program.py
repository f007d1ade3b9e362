"""The largest leakage per record: exact by branch and bound, or by the paper's alternating method."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pmlopt.arrays import FloatArray, real
from pmlopt.backends.outcome import Options, options_of
from pmlopt.errors import PrivacyError
from pmlopt.mechanism import MechanismLike
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.alternating import alternating
from pmlopt.programs.record_leakage.branch_and_bound import SOLVER, Search, search_of
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_form import KnownParity, known_parity
from pmlopt.queries import Query, RecordChannel, record_channel
from pmlopt.result import ClosedForm, RecordResult, Status, Timings

EXACT, ALTERNATING = "exact", "alternating"
NODES = 20_000
"""Programs that a search solves at most, for each kind of records."""
DIMENSIONS = 12
"""Past so many dimensions, over all letters, a proof by splitting is out of reach and not tried."""


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
        >>> round(found.value, 7), found.gap < 1e-7, found.certificate.verify_exact()
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


def checked_entropy(query: Query, entropy: float) -> float:
    """The bound on the entropy; `log |X|` itself where it is that up to rounding."""
    least = real(entropy, "the entropy b", PrivacyError)
    if least < 0:
        raise PrivacyError(f"the entropy b is {least:g} nats: an entropy is at least 0")
    if least > query.log_size + 1e-12 * max(1.0, query.log_size):
        raise PrivacyError(
            f"the entropy b is {least!r} nats, above log |X| = {query.log_size!r} of "
            f"{query.records} record(s): no prior has it"
        )
    return min(least, query.log_size)


@dataclass
class ExactLeakage:
    """One call of the exact method.

    Attributes:
        channel: the query and the mechanism.
        entropy: b, checked.
        options: the gap that is good enough, and seconds.
        nodes: programs at most, for each kind of records.
        seed: of the starts.
        enough: a leakage in nats below which a bound need not fall.
    """

    channel: RecordChannel
    entropy: float
    options: Options
    nodes: int
    seed: int
    enough: float = 0.0

    def result(self, warm: Mapping[int, FloatArray] | None) -> RecordResult:
        """Search every kind of records, the best of all as the value to beat; from laws by record."""
        begin = time.perf_counter()
        deadline = math.inf if self.options.time_limit is None else begin + self.options.time_limit
        known = known_parity(self.channel, self.entropy)
        searches = {record: self._search(record, known, warm) for record in self.channel.query.kinds}
        best = max(searches, key=lambda record: searches[record].value)
        reasons: list[str] = []
        for nodes in (1, self.nodes):  # a first bound for every kind before more for any
            beat = max(searches[best].value, self.enough - self.options.tolerance / 2)
            reasons = [self._prove(search, beat, nodes, deadline) for search in searches.values()]
        clock = time.perf_counter()
        best = max(searches, key=lambda record: searches[record].value)
        proofs = tuple(search.proof(record) for record, search in searches.items())
        value, joint = searches[best].value, searches[best].best
        bound = max(value, *(proof.bound for proof in proofs))
        certificate = RecordCertificate(
            mechanism=self.channel.mechanism,
            value=value,
            bound=bound,
            gap=bound - value,
            channel=self.channel,
            entropy=self.entropy,
            record=best,
            joint=joint,
            proofs=proofs,
        )
        late = Status.STOPPED if clock >= deadline else Status.UNPROVED
        done = time.perf_counter()
        return RecordResult(
            status=Status.OPTIMAL if certificate.gap <= self.options.tolerance else late,
            certificate=certificate,
            solver="branch-and-bound",
            reason="; ".join(dict.fromkeys(reasons)),
            attempts=(),
            iterations=sum(search.nodes for search in searches.values()),
            warm_started=bool(warm),
            timings=Timings(
                compile=sum(search.compile_seconds for search in searches.values()),
                solve=sum(search.solve_seconds for search in searches.values()),
                certify=done - clock,
                total=done - begin,
            ),
            closed_form=None
            if known is None
            else ClosedForm("parity_leakage", known.value, certificate.value - known.value),
        )

    def _search(
        self, record: int, known: KnownParity | None, warm: Mapping[int, FloatArray] | None
    ) -> Search:
        adversary = Adversary(
            self.channel.rows, self.channel.log_counts(record), self.entropy, self.channel.query.log_size
        )
        starts = [] if known is None else [known.joint]
        if warm is not None and record in warm:
            starts.append(warm[record])
        return search_of(adversary, self.seed, starts)

    def _prove(self, search: Search, target: float, nodes: int, deadline: float) -> str:
        """Bound one kind of records; what was done, in words."""
        adversary = search.adversary
        if adversary.silent:
            return "nothing can leak"
        if adversary.tight:
            return "the entropy leaves the uniform dataset alone"
        size = adversary.dimensions
        search.run(target, self.options.tolerance / 2, nodes if size <= DIMENSIONS else 1, deadline)
        if size > DIMENSIONS:
            return f"{size} dimensions are too many to split: the first relaxation by {SOLVER.capitalize()}"
        return f"chords on cells of output laws, each bounded by {SOLVER.capitalize()}"
