"""The exact method for the leakage per record: branch and bound over every kind of records."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.programs.kind import Found
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.branch_and_bound import SOLVER, Search, search_of
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_form import KnownParity, known_parity
from pmlopt.programs.record_leakage.near_uniform import entropy_room, near_uniform_bound
from pmlopt.programs.record_leakage.proof import KindProof
from pmlopt.queries import RecordChannel
from pmlopt.result import ClosedForm

MAX_RELAXATIONS = 20_000
"""Relaxations that a search solves at most, for each kind of records."""

SPLIT_DIMENSIONS = 12
"""Past so many dimensions, over all letters, a proof by splitting is out of reach and not tried."""


@dataclass(frozen=True)
class ExactLeakage:
    """One call of the exact method.

    Attributes:
        channel: the query and the mechanism.
        entropy: b, checked.
        options: the gap that is good enough, and seconds.
        nodes: relaxations at most, for each kind of records.
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
        certificate = self._certificate(searches)
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
            arrays={restart_name(record): search.best for record, search in searches.items()},
        )

    def _certificate(self, searches: Mapping[int, Search]) -> RecordCertificate:
        best = max(searches, key=lambda record: searches[record].value)
        value = searches[best].value
        proofs = tuple(self._proof(record, search) for record, search in searches.items())
        return RecordCertificate(
            mechanism=self.channel.mechanism,
            value=value,
            bound=max(value, *(proof.bound for proof in proofs)),
            channel=self.channel,
            entropy=self.entropy,
            record=best,
            joint=searches[best].best,
            proofs=proofs,
        )

    def _proof(self, record: int, search: Search) -> KindProof:
        """The proof of the search, or the bound near the uniform dataset where that is all there is."""
        adversary = search.adversary
        if adversary.silent or not adversary.tight:
            return search.proof(record)
        room = entropy_room(self.channel.query.alphabets, self.entropy)
        bound = near_uniform_bound(adversary.rows, adversary.log_counts, room)
        return KindProof(record, adversary.log_counts, (), _float_above(bound))

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
            return "the entropy leaves next to nothing but the uniform dataset"
        size = adversary.dimensions
        search.run(target, self.options.tolerance / 2, nodes if size <= SPLIT_DIMENSIONS else 1, deadline)
        if size > SPLIT_DIMENSIONS:
            return f"{size} dimensions are too many to split: the first relaxation by {SOLVER.capitalize()}"
        return f"chords on cells of output laws, each bounded by {SOLVER.capitalize()}"


def restart_name(record: int) -> str:
    """What the law of (X_i, T) of a record is called among the arrays of a restart."""
    return f"joint{record}"


def _float_above(number: Decimal) -> float:
    """The least float found that is not below a number."""
    near = float(number)
    return near if Decimal(near) >= number else float(np.nextafter(near, math.inf))
