"""The exact method for the leakage per record: branch and bound over every kind of records."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.queries import RecordChannel
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.program import Found
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.branch_and_bound import CellSearch
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_bounds import (
    KnownParity,
    entropy_room,
    known_parity,
    near_uniform_bound,
    one_class_each,
)
from pmlopt.programs.record_leakage.local_ascent import climb, starts
from pmlopt.programs.record_leakage.proof import KindProof
from pmlopt.solvers.outcome import Clock, Options

CLOSED_FORM_SECONDS = 0.5
"""Past the end of the time by so much, the leakage of one class for each letter is not tried any more."""


@dataclass(frozen=True)
class ExactLeakage:
    """One call of the exact method.

    Attributes:
        channel: the query and the mechanism.
        entropy: b, checked.
        options: the gap that is good enough, and seconds.
        nodes: relaxations at most, for each kind of records; what the search has itself for None.
        seed: of the starts.
        enough: a leakage in nats below which a bound need not fall.
    """

    channel: RecordChannel
    entropy: float
    options: Options
    nodes: int | None
    seed: int
    enough: float = 0.0

    def found(self, warm: Mapping[int, FloatArray]) -> Found[RecordCertificate]:
        """Search every kind of records, the best of all as the value to beat; from laws by record."""
        clock = self.options.clock
        known = known_parity(self.channel, self.entropy)
        searches = {record: self._search(record, known, warm, clock) for record in self.channel.query.kinds}
        reasons: list[str] = []
        for nodes in (1, self.nodes):  # a first bound for every kind before more for any
            best = max(search.value for search in searches.values())
            beat = max(best, self.enough - self.options.tolerance / 2)
            reasons = [self._prove(search, beat, nodes, clock) for search in searches.values()]
        late, certifying = clock.late, time.perf_counter()
        certificate = self._certificate(searches)
        reason = "; ".join(dict.fromkeys(reasons))
        return Found(
            certificate=certificate,
            finished=not late,
            message=reason,
            detail=reason,
            iterations=sum(search.nodes for search in searches.values()),
            warm_started=bool(warm),
            solve_seconds=sum(search.solve_seconds for search in searches.values()),
            certify_seconds=time.perf_counter() - certifying,
            closed_form=None
            if known is None
            else ClosedForm("parity_leakage", known.value, certificate.value - known.value),
            arrays={restart_name(record): search.best for record, search in searches.items()},
        )

    def _certificate(self, searches: Mapping[int, CellSearch]) -> RecordCertificate:
        best = max(searches, key=lambda record: searches[record].value)
        proofs = tuple(self._proof(record, search) for record, search in searches.items())
        return RecordCertificate(
            mechanism=self.channel.mechanism,
            value=searches[best].value,
            bound=max(searches[best].value, *(proof.bound for proof in proofs)),
            channel=self.channel,
            entropy=self.entropy,
            record=best,
            joint=searches[best].best,
            proofs=proofs,
        )

    def _proof(self, record: int, search: CellSearch) -> KindProof:
        """The proof of the search, or of what is known without one where that says more."""
        adversary, known = search.adversary, search.known
        if adversary.silent:
            return KindProof(record, 0.0)
        if adversary.tight:
            room = entropy_room(self.channel.query.alphabets, self.entropy)
            bound = near_uniform_bound(adversary.rows, adversary.log_counts, room)
            return KindProof(record, float_above(bound))
        if known is not None and known.upper <= search.bound:
            return KindProof(record, known.upper, laws=known.laws)
        return search.proof(record)

    def _search(
        self,
        record: int,
        parity: KnownParity | None,
        warm: Mapping[int, FloatArray],
        clock: Clock,
    ) -> CellSearch:
        """The search with the best of many starts; of one, where that is an optimum."""
        adversary = Adversary(
            self.channel.rows, self.channel.log_counts(record), self.entropy, self.channel.query.log_size
        )
        search = CellSearch(adversary)
        if adversary.silent or adversary.tight:
            return search
        late = clock.late_by(CLOSED_FORM_SECONDS)
        search.known = None if late else one_class_each(adversary)
        if search.known is not None:
            search.offer(adversary.allowed(search.known.joint))
            if search.known.upper <= search.value + self.options.tolerance / 2:
                return search
        seeds = [] if parity is None else [parity.joint]
        if record in warm:
            seeds.append(warm[record])
        count = int(np.clip(100_000 // adversary.log_counts.size, 2, 16))
        joints = np.stack([*starts(adversary, count, self.seed), *map(adversary.allowed, seeds), search.best])
        rough, values = climb(adversary, joints, 30, 1e-9, clock)
        search.improve(rough[np.argsort(-values)[:3]], 2_000, clock)
        return search

    def _prove(self, search: CellSearch, target: float, nodes: int | None, clock: Clock) -> str:
        """Bound one kind of records; what was done, in words."""
        if search.adversary.silent:
            return "nothing can leak"
        if search.adversary.tight:
            return "the entropy leaves next to nothing but the uniform dataset"
        tolerance = self.options.tolerance / 2
        if search.known is not None and search.known.upper <= max(search.value, target) + tolerance:
            return "the largest capacity of one class of datasets for each letter"
        return search.run(target, tolerance, nodes, clock)


def restart_name(record: int) -> str:
    """What the law of (X_i, T) of a record is called among the arrays of a restart."""
    return f"joint{record}"


def float_above(number: Decimal) -> float:
    """The least float found that is not below a number."""
    near = float(number)
    return near if Decimal(near) >= number else float(np.nextafter(near, math.inf))
