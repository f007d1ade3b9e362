"""Cutting planes for Problems 2 and 3 of [wu2026entropy]: a convex program, and an oracle that adds priors.

The program finds the best mechanism against the priors so far; its multipliers bound every mechanism from
below. The oracle looks for a prior that leaks more, first by a local method, then by a certified audit, which
bounds this mechanism from above. The search ends when both bounds meet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.queries.record_leakage_measures import uniform_alone
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.local_ascent import climb, starts
from pmlopt.programs.tradeoff.best_response import Response, best_response
from pmlopt.programs.tradeoff.certifying import audited, likely_within
from pmlopt.programs.tradeoff.grouped_rows import (
    Family,
    GroupedRows,
    WorstCasePrior,
    apart,
    families,
    heaviest,
    searched_rows,
    split,
    within_distortion,
)
from pmlopt.programs.tradeoff.program import TradeoffProgram, convex_combination
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.solvers.outcome import Clock, Options

MAX_AUDIT_RELAXATIONS = 200_000
"""Cells that all audits of a search bound at most."""


AUDIT_SHARE, LONG_AUDIT_SHARE = 0.3, 0.7
"""The part of a phase's time that is kept for an audit, so that it ends with a mechanism: as a rule, and
where audits take long."""

FIRST_AUDIT_SHARE, MEMBER_AUDIT_SHARE = 0.3, 0.6
"""Of the time left: for the audit that says how far to go on a path, and for that of a member of it, which
ends early where it proves enough (Problem 3)."""


CLIMB_ITERATIONS, CLIMBED_AT_ONCE = 300, 50
"""Of the local method, at most, and between looks at the clock."""


MET = "mechanism and bound meet"
COARSE_MET = "no mechanism with equal rows for many classes is better"
OUT_OF_TIME = "the time or the rounds gave out"


@dataclass(frozen=True, eq=False)
class AuditedMechanism:
    """A mechanism within the limit, with its value and the audit of its leakage."""

    matrix: FloatArray
    value: float
    audit: RecordCertificate


@dataclass
class SearchState:
    """The state of a search: priors so far, the best mechanism, the best bound.

    Attributes:
        program: what is solved.
        tolerance: the gap that is good enough, in units of the value.
        seed: of the oracle's starts.
        clock: what is left of the time.
        priors: every one within the entropy bound.
        lower, proof: the best bound and its multipliers.
        best: the best mechanism so far.
        nodes: relaxations that are left for all audits together.
        rounds: programs solved.
        audits: certified oracles called.
        compile_seconds, solve_seconds: what the programs took.
    """

    program: TradeoffProgram
    tolerance: float
    seed: int
    clock: Clock
    priors: list[WorstCasePrior] = field(default_factory=list)
    lower: float = 0.0
    proof: TradeoffProof = field(default_factory=lambda: TradeoffProof((), 0.0))
    best: AuditedMechanism | None = None
    nodes: int = MAX_AUDIT_RELAXATIONS
    rounds: int = 0
    audits: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def met(self) -> bool:
        """Return whether the gap between the best mechanism and the best bound is good enough."""
        return self.best is not None and self.best.value - self.lower <= self.tolerance

    def learn(self, proof: TradeoffProof) -> None:
        """Keep a proof that bounds more."""
        bound = self.program.bound(proof)
        if bound > self.lower or not self.proof.cuts:
            self.lower, self.proof = max(bound, self.lower), proof

    def audit(
        self,
        matrix: FloatArray,
        nodes: int = MAX_AUDIT_RELAXATIONS,
        until: Clock | None = None,
        lower: float = -math.inf,
    ) -> RecordCertificate:
        """Certify the leakage, no finer than is needed, and keep the mechanism where it is the best.

        Args:
            matrix: (K, M) the mechanism.
            nodes: relaxations at most.
            until: what is left of the time, if less than for the search.
            lower: a value that no mechanism like this one is below, where that is known.
        """
        program, self.audits = self.program, self.audits + 1
        leakage = program.sense == "leakage"
        audit = audited(
            program, matrix, self.tolerance / 4, seed=self.seed, clock=until or self.clock,
            enough=max(self.lower, lower) + 0.9 * self.tolerance if leakage else program.limit,
            nodes=max(1, min(nodes, self.nodes)),
        )  # fmt: skip
        self.nodes -= sum(len(proof.cells or ()) for proof in audit.proofs)
        value = audit.bound if leakage else program.tradeoff.distortion(matrix)
        within = leakage or audit.bound <= program.limit
        if within and (self.best is None or value < self.best.value):
            self.best = AuditedMechanism(matrix, value, audit)
        return audit

    def follow(self, path: Family, audit: RecordCertificate, room: float, until: Clock, nodes: int) -> None:
        """Follow a path until the audit proves the leakage to be within the limit (Problem 3).

        An audit of no more effort finds a bound above the leakage by about the same factor, so that the
        member that is tried aims below the limit by that factor.

        Args:
            path: mechanisms, of falling leakage.
            audit: of one of them.
            room: how far below the limit to aim.
            until: what is left of the time.
            nodes: relaxations of an audit, at most.
        """
        program = self.program
        # at most six members of a path are audited
        for _ in range(6):
            if audit.value <= 0 or until.late:
                return
            matrix = likely_within(program, path, audit, program.limit - room)
            if self.best is not None and program.tradeoff.distortion(matrix) >= self.best.value:
                return
            audit = self.audit(matrix, nodes, until.part(MEMBER_AUDIT_SHARE))
            if audit.bound <= program.limit:
                return


@dataclass
class CuttingPlanePhase:
    """The search among the mechanisms with some rows.

    Attributes:
        search: what is known, and what is learnt here.
        rows: which rows may differ.
        until: what is left of the time.
        certain: whether mechanisms are audited; else the phase ends where the local method finds no prior.
        reserve: seconds that are kept for an audit.
        last: the mechanism of the last program.
        aim: its value, as the solver says.
        leaked: what is known of its leakage: the most under a prior that was found.
        price: of the leakage in the last program, in distortion (Problem 3).
        solved_for: how many priors the last program had.
        proof: the multipliers of the last program.
        audited: whether a mechanism of this phase was audited.
        rounds: programs solved.
    """

    search: SearchState
    rows: GroupedRows
    until: Clock
    certain: bool
    reserve: float
    last: FloatArray | None = None
    aim: float = 0.0
    price: float = 0.0
    leaked: float = 0.0
    solved_for: int = 0
    proof: TradeoffProof | None = None
    audited: bool = False
    rounds: int = 0

    @property
    def program(self) -> TradeoffProgram:
        """Return the program that is solved."""
        return self.search.program

    @property
    def late(self) -> bool:
        """Return whether the time is over, but for an audit where no mechanism was audited yet."""
        return self.until.late_by(0.0 if self.audited else -self.reserve)

    @property
    def met(self) -> str | None:
        """Return why nothing better is to be found among these rows; None where something may be."""
        best = self.search.best
        if self.search.met:
            return MET
        if best is None or self.last is None or self.rows.all:
            return None
        return COARSE_MET if best.value - self.aim <= self.search.tolerance else None

    def run(self, first: FloatArray | None) -> str:
        """Run program and oracle in turn until the bounds meet, and return how it ended.

        Args:
            first: (K, M) a mechanism against which the first priors are found, where there are none.
        """
        program, search = self.program, self.search
        if not search.priors:
            half = convex_combination(program.cheapest, program.constant, 0.5)
            first = program.repaired(half) if first is None else first
            self._add_priors(self.rows.repeated(first[self.rows.first]), -math.inf)
        ending = None
        while ending is None:
            ending = self._round()
        late = self.until.late and search.best is not None
        if self.certain and not (late or self.audited or self.met) and self.last is not None:
            last, best = self.last, search.best
            if program.sense == "leakage" and best is not None and best.audit.value < self.leaked:
                last = best.matrix  # it is known to leak less
            self._audit(last, math.inf)
        return ending

    def _round(self) -> str | None:
        """Solve, and add priors: from the local method where it finds any, else from an audit."""
        room = self.room
        found = self._solve()
        if found is None:
            return "the solver could not solve a program"
        self.last = self.rows.repeated(self.program.repaired(found.matrix)[self.rows.first])
        self.aim, self.leaked = found.aim, found.leaked
        if self.met:
            return self.met
        # at most 100 programs in each phase
        if self.rounds >= 100:
            return OUT_OF_TIME
        if self._add_priors(self.last, found.leaked + self._significant) or self.late:
            return OUT_OF_TIME if self.late else None
        if not self.certain:
            return "no prior was found that leaks more"
        news = self._audit(self.last, found.leaked)
        if self.met:
            return self.met
        if not news and self.room >= room / 2:
            return "no prior was found that leaks more, and the audit left a gap: allow it more time"
        return None

    def _solve(self) -> Response | None:
        """Solve for the best mechanism against the priors so far; None where that failed."""
        search = self.search
        self.rounds += 1
        search.rounds += 1
        found = self._solved()
        if found is None:  # the solver lost its way among the priors: the ones that count, and what is new
            search.priors = heaviest(search.proof) + search.priors[self.solved_for :]
            found = self._solved() if search.priors else None
        self.solved_for = len(search.priors)
        return found

    def _solved(self) -> Response | None:
        """Solve the program, and return None where its own multipliers do not confirm its value."""
        program, search = self.program, self.search
        found = self._response(search.priors)
        # a program that is further above the bound of its own multipliers has not been solved
        if found is None or found.aim - max(found.own, program.floor) > max(1e-2, 10 * search.tolerance):
            return None
        search.learn(found.proof)
        self.proof, self.price = found.proof, sum(cut.weight for cut in found.proof.cuts)
        few = heaviest(found.proof)
        gap = found.aim - search.lower
        if self.rows.all and gap > search.tolerance / 2 and 0 < len(few) < len(search.priors):
            again = self._response(few)  # among many priors that are nearly alike multipliers blur
            if again is not None:
                search.learn(again.proof)
        return found

    def _response(self, priors: Sequence[WorstCasePrior]) -> Response | None:
        """Solve for the best mechanism against some priors; the solver stops with the phase."""
        search, program = self.search, self.program
        limit = program.limit - (0.0 if program.sense == "leakage" else self.room)
        # the first program of a search always runs, as it proves a bound
        least = 0.5 if search.rounds <= 1 else 1e-2
        # far below the gaps that are required
        found = best_response(self.rows, priors, limit, Options(self.until.at_least(least), 1e-10))
        if found is not None:
            search.compile_seconds += found.compile_seconds
            search.solve_seconds += found.solve_seconds
        return found

    def _add_priors(self, matrix: FloatArray, floor: float) -> bool:
        """Add priors that leak more than a floor, by the local method; return whether there were any."""
        known = self.search.priors
        before = len(known)
        for record in self.program.orbits.query.kinds:
            adversary = self.rows.adversary(matrix, record)
            if adversary.tight:
                if not any(prior.record == record for prior in known):
                    uniform = self.program.adversary(self.program.constant, record).uniform
                    known.append(WorstCasePrior(record, uniform))
                continue
            warm = [self.rows.merged(prior.joint) for prior in known if prior.record == record]
            count = int(np.clip(50_000 // adversary.log_counts.size, 2, 12))
            first = np.stack([*starts(adversary, count, self.search.seed + self.rounds), *warm[-count:]])
            joints, values = self._climbed(adversary, first)
            self.leaked = max(self.leaked, float(values.max()))
            for joint in apart(joints, values, floor):
                if adversary.leaked(adversary.allowed(joint)) > floor:
                    known.append(WorstCasePrior(record, self.rows.spread(joint, record)))
        return len(known) > before

    def _climbed(self, adversary: Adversary, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Run the local method from some laws, while there is time."""
        # the local method goes on while an iteration gains 1e-4 of the tolerance
        least = 1e-4 * self.search.tolerance
        joints, values = climb(adversary, first, CLIMBED_AT_ONCE, least)
        for _ in range(CLIMB_ITERATIONS // CLIMBED_AT_ONCE - 1):
            before = values
            if self.late:
                break
            joints, values = climb(adversary, joints, CLIMBED_AT_ONCE, least)
            if float((values - before).max()) <= least:
                break
        return joints, values

    def _audit(self, matrix: FloatArray, claimed: float) -> bool:
        """Prove the leakage of a mechanism, keep it if it is the best, and add its worst prior.

        Returns whether that prior leaks more than is claimed: in Problem 3 by an amount of account, for
        there a next audit may cost as much as all before.
        """
        program, search = self.program, self.search
        leakage = program.sense == "leakage"
        self.audited = True
        until = self.until if leakage else self.until.part(FIRST_AUDIT_SHARE)
        audit = search.audit(matrix, until=until, lower=-math.inf if self.rows.all else self.aim)
        if audit.value > claimed and not uniform_alone(program.entropy, program.orbits.query.log_size):
            law = split(audit, program.log_counts[audit.record])
            allowed = program.adversary(program.constant, audit.record).allowed(law)
            search.priors.append(WorstCasePrior(audit.record, allowed))
        if not leakage and audit.bound > program.limit:

            def mixed(share: float) -> FloatArray:
                return convex_combination(matrix, program.constant, share)

            search.follow(mixed, audit, self.room, self.until, MAX_AUDIT_RELAXATIONS)
        return audit.value > claimed + (0.0 if leakage else self._significant)

    @property
    def _significant(self) -> float:
        """Return how much more than claimed a prior must leak to be worth adding."""
        return self.search.tolerance / 4 if self.program.sense == "leakage" else self.room / 2

    @property
    def room(self) -> float:
        """Return how far below the limit on the leakage the programs aim, so that audits need not be finer.

        As much as costs a fraction of the tolerance in distortion, at the price of the last program.
        """
        return min(self.program.limit / 4, self.search.tolerance / 4 / max(self.price, 1e-3))


def search(state: SearchState, first: FloatArray | None) -> str:
    """Search with few rows, then with all, and return how it ended.

    Mechanisms by formula are audited first, so that there is something in hand whatever happens. Where there
    are many more classes than values, the best with a row for each value is audited before others are sought:
    the local method alone may go round for hours among priors that are nearly alike. Otherwise it is where
    these begin, and audited where the gap stays open.
    """
    plans = searched_rows(state.program)
    _audit_families(state, plans[0])
    ending, coarse = OUT_OF_TIME, None
    # many more classes than values: more than two for each
    first_certain = plans[-1].count > 2 * plans[0].count
    for rows in plans:
        if state.clock.late and state.best is not None and rows is not plans[0]:
            break
        last = rows is plans[-1]
        # audits of more rows than values hardly ever end in time: they get the last quarter
        until = state.clock if last else state.clock.part(0.75)
        long = state.program.sense == "distortion" or (first_certain and not last)
        certain = last or first_certain
        kept = (LONG_AUDIT_SHARE if long else AUDIT_SHARE) * (until.left() or 0.0)
        phase = CuttingPlanePhase(state, rows, until, certain, kept if certain else 0.0)
        ending = phase.run(first)
        if state.met:
            return MET
        if not last:  # among many priors that are nearly alike multipliers blur
            coarse = phase.last
            state.priors = state.priors if phase.proof is None else heaviest(phase.proof)
    if not (first_certain or state.clock.late) and coarse is not None:
        state.audit(coarse)
        ending = MET if state.met else ending
    if state.best is None:
        state.audit(state.program.constant)
    return ending


def _audit_families(state: SearchState, rows: GroupedRows) -> None:
    """Audit the symmetric channel and the exponential mechanism, each by single relaxations."""
    program = state.program
    if program.sense == "distortion":
        state.audit(program.constant, 1)
    for family in families(rows):
        if state.best is not None and state.clock.late:
            return
        if program.sense == "leakage":
            state.audit(within_distortion(rows, family), 1)
        else:
            state.follow(family, state.audit(family(0.5), 1), 0.0, state.clock, 1)
