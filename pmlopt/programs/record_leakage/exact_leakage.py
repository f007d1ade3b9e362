"""The exact method for the leakage per record: branch and bound for every kind of record."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, check_integer
from pmlopt.data.sampling.categorical import make_generator
from pmlopt.errors import PrivacyError
from pmlopt.model.queries import RecordChannel
from pmlopt.programs.certificate import ClosedForm
from pmlopt.programs.program import MethodResult
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.branch_and_bound import CellSearch, bound_by_record_entropy
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.closed_bounds import (
    bound_near_uniform,
    compute_entropy_slack,
    compute_one_class_capacity,
    find_parity_leakage,
)
from pmlopt.programs.record_leakage.local_ascent import draw_starts, maximize_locally
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.programs.record_leakage.proof import RecordKindProof
from pmlopt.solvers.solver_result import Deadline, MethodOptions

RecordStart = Mapping[int, FloatArray]
"""Laws (A, T) of (X_i, T) to start from, by record."""


@dataclass(frozen=True)
class BranchAndBound:
    """Best-first branch and bound on chord relaxations, with a proof of the bound.

    For binary records over simplices of posteriors, where there are not many more outputs than classes, else
    over those of the laws of classes, or of two outputs, given each letter. First the largest capacity of one
    class of datasets for each letter is tried, which is the leakage where little entropy is requested.

    Attributes:
        nodes: how many cells are bounded at most for each kind of records; where left out, 200,000, or fewer
            where their corners would take more than 160 MB.
        seed: of the starts of the local method; the same seed gives the same result, unless time runs out.
    """

    nodes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.nodes is not None:
            check_integer(self.nodes, "the number of nodes", PrivacyError)
        make_generator(self.seed)

    def __call__(
        self, program: RecordLeakage, options: MethodOptions, start: RecordStart
    ) -> MethodResult[RecordCertificate]:
        """Run branch and bound for every kind of record, from the warm start's laws."""
        return self.search_kinds(program.channel, program.entropy, options, start)

    def search_kinds(
        self,
        channel: RecordChannel,
        entropy: float,
        options: MethodOptions,
        start: RecordStart,
        sufficient_bound: float = 0,
    ) -> MethodResult[RecordCertificate]:
        """Search every kind of record; the best leakage so far serves as incumbent for all.

        Args:
            channel: the query and the mechanism.
            entropy: b, checked.
            options: the gap that is good enough, and the deadline.
            start: laws by record.
            sufficient_bound: a leakage in nats below which a bound need not fall.
        """
        # half of the gap for the bound, half for the value
        deadline = options.deadline
        tolerance = options.tolerance / 2
        about = entropy, tolerance, start, deadline
        kinds = {
            record: self._start_kind(channel, record, *about) for record in channel.query.kinds
        }
        reasons: list[str] = []
        for nodes in (1, self.nodes):  # a first bound for every kind before more for any
            # a kind whose bound is below the best value of any kind cannot be the maximum
            target = max(
                sufficient_bound - tolerance, *(kind.search.value for kind in kinds.values())
            )
            reasons = [
                kind.prove_bound(target, tolerance, nodes, deadline) for kind in kinds.values()
            ]
        late = deadline.expired
        certifying = time.perf_counter()
        best = max(kinds, key=lambda record: kinds[record].search.value)
        value = kinds[best].search.value
        proofs = tuple(kind.best_proof for kind in kinds.values())
        certificate = RecordCertificate(
            mechanism=channel.mechanism,
            value=value,
            bound=max(value, *(proof.bound for proof in proofs)),
            channel=channel,
            entropy=entropy,
            record=best,
            joint=kinds[best].search.best,
            proofs=proofs,
        )
        known = find_parity_leakage(channel, entropy)
        return MethodResult(
            certificate=certificate,
            finished=not late,
            message="; ".join(dict.fromkeys(reasons)),
            iterations=sum(kind.search.nodes for kind in kinds.values()),
            warm_started=bool(start),
            solve_seconds=sum(kind.search.solve_seconds for kind in kinds.values()),
            certify_seconds=time.perf_counter() - certifying,
            closed_form=None
            if known is None
            else ClosedForm("parity_leakage", known, value - known),
            arrays={get_array_name(record): kind.search.best for record, kind in kinds.items()},
        )

    def _start_kind(
        self,
        channel: RecordChannel,
        record: int,
        entropy: float,
        tolerance: float,
        start: RecordStart,
        deadline: Deadline,
    ) -> _RecordKind:
        """Bound one kind of record in closed form where possible, and find a good law by multistart."""
        adversary = BoundedAdversary.from_channel(channel, record, entropy)
        kind = _RecordKind(record, CellSearch(adversary))
        search = kind.search
        if adversary.cannot_leak:
            kind.known_proof = RecordKindProof(record, 0.0)
            kind.reason = "nothing can leak"
        elif adversary.only_uniform:
            room = compute_entropy_slack(channel.query.alphabets, entropy)
            # outward: a decimal rounded to the nearest float could be below the proved bound
            bound = round_decimal_up(bound_near_uniform(adversary.rows, adversary.log_counts, room))
            kind.known_proof = RecordKindProof(record, bound)
            kind.reason = "the entropy leaves next to nothing but the uniform dataset"
        if kind.known_proof is not None:
            return kind
        # half a second past the deadline the closed form is no longer tried
        each = None if deadline.expired_for(0.5) else compute_one_class_capacity(adversary)
        if each is not None:
            kind.known_proof = RecordKindProof(record, each.upper_bound, laws=each.laws)
            kind.reason = "the largest capacity of one class of datasets for each letter"
            # its law may lack entropy: mixed until feasible, it is still a good start
            search.offer_law(adversary.make_allowed(each.joint))
            # the bound without entropy constraint is reached: nothing is left to search
            if each.upper_bound <= search.value + tolerance:
                return kind
        seeds = [adversary.make_allowed(start[record])] if record in start else []
        count = int(np.clip(100_000 // adversary.log_counts.size, 2, 16))
        joints = np.stack([*draw_starts(adversary, count, self.seed), *seeds, search.best])
        # many starts run shortly, the best three to the end
        rough, values = maximize_locally(adversary, joints, 30, 1e-9, deadline)
        search.improve_by_ascent(rough[np.argsort(-values)[:3]], 2_000, deadline)
        return kind


@dataclass
class _RecordKind:
    """The search state for one kind of record: branch-and-bound cells, or a closed-form proof."""

    record: int
    search: CellSearch
    known_proof: RecordKindProof | None = None
    reason: str = ""

    def prove_bound(
        self, target: float, tolerance: float, nodes: int | None, deadline: Deadline
    ) -> str:
        """Prove an upper bound on the leakage, by branch and bound where needed; return how."""
        search = self.search
        adversary = self.search.adversary
        if adversary.cannot_leak or adversary.only_uniform:
            return self.reason
        enough = max(search.value, target) + tolerance
        if search.relaxation.free_count and not search.nodes and not self._is_known_below(enough):
            # H(X_i) needs no search: tried before the first cell is bounded
            itself = bound_by_record_entropy(adversary, self.record, enough, deadline)
            if not self._is_known_below(itself.bound):
                self.known_proof = itself
                self.reason = "an answer reveals at most the record"
        if self._is_known_below(enough):
            return self.reason
        return search.run(target, tolerance, nodes, deadline)

    def _is_known_below(self, number: float) -> bool:
        """Return whether a bound without branching is at most a number."""
        return self.known_proof is not None and self.known_proof.bound <= number

    @property
    def best_proof(self) -> RecordKindProof:
        """Return the better of the branch-and-bound proof and the closed-form proof."""
        known = self.known_proof if self._is_known_below(self.search.upper_bound) else None
        return known or self.search.build_proof(self.record)


def get_array_name(record: int) -> str:
    """Return the key of a record's joint law in the warm-start arrays."""
    return f"joint{record}"


def round_decimal_up(number: Decimal) -> float:
    """Round a decimal up to a float."""
    near = float(number)
    # conversion rounds to nearest, up or down: one float further at most
    return near if Decimal(near) >= number else float(np.nextafter(near, math.inf))
