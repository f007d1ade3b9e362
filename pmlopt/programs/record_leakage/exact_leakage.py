"""The exact method for the leakage per record: branch and bound over every kind of records."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.programs.kind import Found
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.branch_and_bound import SOLVER, Search, search_of
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_form import KnownParity, known_parity
from pmlopt.queries import RecordChannel
from pmlopt.result import ClosedForm

NODES = 20_000
"""Programs that a search solves at most, for each kind of records."""


DIMENSIONS = 12
"""Past so many dimensions, over all letters, a proof by splitting is out of reach and not tried."""


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

    def found(self, warm: Mapping[int, FloatArray] | None) -> Found[RecordCertificate]:
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
        reason = "; ".join(dict.fromkeys(reasons))
        return Found(
            certificate=certificate,
            finished=clock < deadline,
            message=reason,
            detail=reason,
            iterations=sum(search.nodes for search in searches.values()),
            warm_started=bool(warm),
            compile_seconds=sum(search.compile_seconds for search in searches.values()),
            solve_seconds=sum(search.solve_seconds for search in searches.values()),
            certify_seconds=time.perf_counter() - clock,
            closed_form=None
            if known is None
            else ClosedForm("parity_leakage", known.value, certificate.value - known.value),
            arrays={f"joint{record}": search.best for record, search in searches.items()},
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
