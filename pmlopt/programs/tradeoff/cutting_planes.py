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
from pmlopt.programs.tradeoff.best_response import BestResponse, Response
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


@dataclass(frozen=True, eq=False)
class AuditedMechanism:
    """A mechanism within the limit, with its value and the audit of its leakage."""

    matrix: FloatArray
    value: float
    audit: RecordCertificate


@dataclass
class SearchState:
    """What a search knows: priors so far, the best mechanism, the best bound.

    Attributes:
        program: what is solved.
        tolerance: the gap that is good enough, in units of the value.
        seed: of the oracle's starts.
        clock: what is left of the time.
        priors: every one within the entropy bound.
        lower, proof: the best bound and its multipliers.
        best: the best mechanism so far.
        likeliest: the one of the least leakage under the priors of its audit, whose bound may be far above.
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
    likeliest: AuditedMechanism | None = None
    nodes: int = MAX_AUDIT_RELAXATIONS
    rounds: int = 0
    audits: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """Between the best mechanism and the best bound."""
        return math.inf if self.best is None else max(0.0, self.best.value - self.lower)

    @property
    def met(self) -> bool:
        """Whether the gap is good enough."""
        return self.gap <= self.tolerance

    def consider(self, matrix: FloatArray, nodes: int = MAX_AUDIT_RELAXATIONS) -> RecordCertificate:
        """Audit a mechanism, and keep it where it is within the limits and the best."""
        program = self.program
        leakage = program.sense == "leakage"
        enough = self.lower + 0.9 * self.tolerance if leakage else program.limit
        audit = self.proved(matrix, enough, self.clock, nodes)
        if leakage or audit.bound <= program.limit:
            self.keep(matrix, audit)
        return audit

    def keep(self, matrix: FloatArray, audit: RecordCertificate) -> None:
        """Keep a mechanism within the limits where it is the best."""
        leakage = self.program.sense == "leakage"
        value = audit.bound if leakage else self.program.tradeoff.distortion(matrix)
        if self.best is None or value < self.best.value:
            self.best = AuditedMechanism(matrix, value, audit)
        if self.likeliest is None or audit.value < self.likeliest.audit.value:
            self.likeliest = AuditedMechanism(matrix, value, audit)

    def learn(self, proof: TradeoffProof) -> None:
        """Keep a proof that bounds more."""
        bound = self.program.bound(proof)
        if bound > self.lower or not self.proof.cuts:
            self.lower, self.proof = max(bound, self.lower), proof

    def proved(
        self, matrix: FloatArray, enough: float, until: Clock, nodes: int = MAX_AUDIT_RELAXATIONS
    ) -> RecordCertificate:
        """The certified leakage, no finer than is needed to prove that it is at most `enough`."""
        self.audits += 1
        audit = audited(
            self.program, matrix, self.tolerance / 4, enough=enough, seed=self.seed, clock=until,
            nodes=max(1, min(nodes, self.nodes)),
        )  # fmt: skip
        self.nodes -= sum(proof.relaxations for proof in audit.proofs)
        return audit


ACCURACY = 1e-10
"""What is asked of the solver: far below the gaps that are asked for."""
MAX_ROUNDS = 100
"""Programs that are solved at most in each phase of a search."""

AUDIT_SHARE, LONG_AUDIT_SHARE = 0.3, 0.7
"""The part of a phase's time that is kept for an audit, so that it ends with a mechanism: as a rule, and
where audits take long."""

FIRST_AUDIT_SHARE, MIXTURE_AUDIT_SHARE = 0.3, 0.6
"""Of the time left: for the audit that says how far to mix, and for that of a mixture, which ends early where
it proves enough (Problem 3)."""

MAX_MIXTURES = 6
"""Mixtures with a constant that are audited at most, until one is proved to be within the leakage."""

LARGEST_DISCREPANCY = 1e-2
"""A program whose value is above the bound of its own multipliers by more has not been solved."""

CLIMB_ITERATIONS, CLIMBED_AT_ONCE = 300, 50
"""Of the local method, at most, and between looks at the clock."""

FIRST_SECONDS = 0.5
"""Seconds, with its compilation, that the first program of a search has at least: it proves a bound."""

MET = "mechanism and bound meet"
COARSE_MET = "no mechanism with equal rows for many classes is better"
OUT_OF_TIME = "the time or the rounds gave out"


@dataclass
class CuttingPlanePhase:
    """The search among the mechanisms with some rows.

    Attributes:
        search: what is known, and what is learnt here.
        rows: which rows may differ.
        until: what is left of the time.
        certain: whether mechanisms are audited; else the phase ends where the local method finds no prior.
        audit_share: the part of the phase's time that is kept for an audit.
        first: (K, M) a mechanism against which the first priors are found; None for one of no account.
        response: what solves the programs.
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
    audit_share: float = AUDIT_SHARE
    first: FloatArray | None = None
    response: BestResponse = field(init=False)
    last: FloatArray | None = None
    aim: float = 0.0
    price: float = 0.0
    leaked: float = 0.0
    solved_for: int = 0
    proof: TradeoffProof | None = None
    audited: bool = False
    rounds: int = 0
    _reserve: float = field(init=False)

    def __post_init__(self) -> None:
        self.response = BestResponse(self.rows)
        self._reserve = self.audit_share * (self.until.left() or 0.0) if self.certain else 0.0

    @property
    def program(self) -> TradeoffProgram:
        """What is solved."""
        return self.search.program

    @property
    def late(self) -> bool:
        """Whether the time is over, but for an audit where no mechanism was audited yet."""
        return self.until.late_by(0.0 if self.audited else -self._reserve)

    @property
    def met(self) -> bool:
        """Whether nothing better is to be found among these rows."""
        best = self.search.best
        return self.search.met or (
            best is not None
            and not self.rows.all
            and self.last is not None
            and best.value - self.aim <= self.search.tolerance
        )

    def run(self) -> str:
        """Alternate program and oracle until the bounds meet; how it ended, in words."""
        program = self.program
        if not self.search.priors:
            half = convex_combination(program.cheapest, program.constant, 0.5)
            first = program.repaired(half) if self.first is None else self.first
            self._add_priors(self.rows.repeated(first[self.rows.first]), -math.inf)
        ending = None
        while ending is None:
            ending = self._round()
        self.search.compile_seconds += self.response.compile_seconds
        self.search.solve_seconds += self.response.solve_seconds
        late = self.until.late and self.search.best is not None
        if self.certain and not (late or self.audited or self.met) and self.last is not None:
            self._audit(self._likeliest(self.last), math.inf)
        return ending

    def _likeliest(self, last: FloatArray) -> FloatArray:
        """The mechanism of the last program, or in Problem 2 one that is known to leak less than it does."""
        known = self.search.likeliest
        if self.program.sense == "distortion" or known is None or known.audit.value >= self.leaked:
            return last
        return known.matrix

    def _round(self) -> str | None:
        """Solve, and add priors: from the local method where it finds any, else from an audit."""
        room = self.room
        found = self._solve()
        if found is None:
            return "the solver could not solve a program"
        self.last, self.aim = self._repaired(found.matrix), found.aim
        if self.met:
            return MET if self.search.met else COARSE_MET
        self.leaked = found.leaked
        if self.rounds >= MAX_ROUNDS:
            return OUT_OF_TIME
        if self._add_priors(self.last, found.leaked + self._significant):
            return OUT_OF_TIME if self.late else None
        if self.late:
            return OUT_OF_TIME
        if not self.certain:
            return "no prior was found that leaks more"
        news = self._audit(self.last, found.leaked)
        if self.met:
            return MET if self.search.met else COARSE_MET
        if not news and self.room >= room / 2:
            return "no prior was found that leaks more, and the audit left a gap: allow it more time"
        return None

    def _repaired(self, matrix: FloatArray) -> FloatArray:
        """The mechanism nearest to a solver's matrix, rows that are equal staying so."""
        return self.rows.repeated(self.program.repaired(matrix)[self.rows.first])

    def _solve(self) -> Response | None:
        """The best mechanism against the priors so far; None where that failed."""
        self.rounds += 1
        self.search.rounds += 1
        found = self._solved()
        if found is None:  # the solver lost its way among the priors: the ones that count, and what is new
            self.search.priors = heaviest(self.search.proof) + self.search.priors[self.solved_for :]
            found = self._solved() if self.search.priors else None
        self.solved_for = len(self.search.priors)
        return found

    def _solved(self) -> Response | None:
        """The answer of the program; None where its own multipliers do not bear it out."""
        program, search = self.program, self.search
        limit = program.limit - (0.0 if program.sense == "leakage" else self.room)
        found = self.response.against(search.priors, limit, self._accuracy)
        if found is None:
            return None
        if found.aim - max(found.own, program.floor) > max(LARGEST_DISCREPANCY, 10 * search.tolerance):
            return None
        search.learn(found.proof)
        self.proof = found.proof
        self.price = sum(cut.weight for cut in found.proof.cuts)
        if self.rows.all and found.aim - search.lower > search.tolerance / 2:
            self._learn_from(heaviest(found.proof), limit)
        return found

    def _learn_from(self, priors: Sequence[WorstCasePrior], limit: float) -> None:
        """Solve again for the priors that count: among many that are nearly alike multipliers blur."""
        if 0 < len(priors) < len(self.search.priors):
            found = self.response.against(priors, limit, self._accuracy)
            if found is not None:
                self.search.learn(found.proof)

    @property
    def _accuracy(self) -> Options:
        """What the solver is asked for; it stops with the phase."""
        least = FIRST_SECONDS if self.search.rounds <= 1 else 1e-2
        return Options(self.until.at_least(least), ACCURACY)

    def _add_priors(self, matrix: FloatArray, floor: float) -> bool:
        """Add priors that leak more than a floor, by the local method; whether there were any."""
        found = False
        known = self.search.priors
        for record in self.program.orbits.query.kinds:
            adversary = self.rows.adversary(matrix, record)
            if adversary.tight:
                if not any(prior.record == record for prior in known):
                    uniform = self.program.adversary(self.program.constant, record).uniform
                    known.append(WorstCasePrior(record, uniform))
                    found = True
                continue
            warm = [self.rows.merged(prior.joint) for prior in known if prior.record == record]
            count = int(np.clip(50_000 // adversary.log_counts.size, 2, 12))
            first = np.stack([*starts(adversary, count, self.search.seed + self.rounds), *warm[-count:]])
            joints, values = self._climbed(adversary, first)
            self.leaked = max(self.leaked, float(values.max()))
            for joint in apart(joints, values, floor):
                if adversary.leaked(adversary.allowed(joint)) > floor:
                    known.append(WorstCasePrior(record, self.rows.spread(joint, record)))
                    found = True
        return found

    def _climbed(self, adversary: Adversary, first: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The local method from some laws, while there is time."""
        joints, values = climb(adversary, first, CLIMBED_AT_ONCE, 1e-11)
        for _ in range(CLIMB_ITERATIONS // CLIMBED_AT_ONCE - 1):
            if self.late:
                break
            before = values
            joints, values = climb(adversary, joints, CLIMBED_AT_ONCE, 1e-11)
            if float((values - before).max()) <= 1e-11:
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
        lower = search.lower if self.rows.all else max(search.lower, self.aim)
        enough = lower + 0.9 * search.tolerance if leakage else program.limit
        audit = search.proved(matrix, enough, self.until if leakage else self.until.part(FIRST_AUDIT_SHARE))
        if audit.value > claimed and not uniform_alone(program.entropy, program.orbits.query.log_size):
            law = split(audit, program.log_counts[audit.record])
            allowed = program.adversary(program.constant, audit.record).allowed(law)
            search.priors.append(WorstCasePrior(audit.record, allowed))
        if leakage or audit.bound <= program.limit:
            search.keep(matrix, audit)
        else:
            self._keep_mixture(matrix, audit)
        return audit.value > claimed + (0.0 if leakage else self._significant)

    def _keep_mixture(self, matrix: FloatArray, audit: RecordCertificate) -> None:
        """Mix with a constant until the audit proves the leakage to be within the limit (Problem 3).

        An audit of no more effort finds a bound above the leakage by about the same factor, so that the
        mixture aims below the limit by that factor.
        """
        program, search, limit = self.program, self.search, self.program.limit

        def mixed(share: float) -> FloatArray:
            return convex_combination(matrix, program.constant, share)

        for _ in range(MAX_MIXTURES):
            if audit.value <= 0:
                return
            mixture = likely_within(program, mixed, audit, limit - self.room)
            if search.best is not None and program.tradeoff.distortion(mixture) >= search.best.value:
                return
            audit = search.proved(mixture, limit, self.until.part(MIXTURE_AUDIT_SHARE))
            if audit.bound <= limit:
                search.keep(mixture, audit)
                return
            if self.until.late:
                return

    @property
    def _significant(self) -> float:
        """How much more than claimed a prior must leak to be worth adding."""
        return self.search.tolerance / 4 if self.program.sense == "leakage" else self.room / 2

    @property
    def room(self) -> float:
        """How far below the limit on the leakage the programs aim, so that audits need not be finer.

        As much as costs a fraction of the tolerance in distortion, at the price of the last program.
        """
        return min(self.program.limit / 4, self.search.tolerance / 4 / max(self.price, 1e-3))


COARSE_SHARE = 0.75
"""The part of the time for mechanisms with a row for each value of the query, where there are many more
classes than values: audits of more rows hardly ever end in time."""

MANY_CLASSES = 2
"""For each value of the query."""

FAMILY_STEPS = 3
"""Members of a family that are audited to find one that leaks as much as is allowed."""


def search(state: SearchState, first: FloatArray | None) -> str:
    """Search few rows, then all; how it ended, in words.

    Mechanisms by formula are audited first, so that there is something in hand whatever happens. Where there
    are many more classes than values, the best with a row for each value is audited before others are sought:
    the local method alone may go round for hours among priors that are nearly alike. Otherwise it is where
    these begin, and audited where the gap stays open.
    """
    plans = searched_rows(state.program)
    _consider_families(state, plans[0])
    ending, coarse = OUT_OF_TIME, None
    first_certain = plans[-1].count > MANY_CLASSES * plans[0].count
    for rows in plans:
        if state.clock.late and state.best is not None and rows is not plans[0]:
            break
        last = rows is plans[-1]
        until = state.clock if last else state.clock.part(COARSE_SHARE)
        long = state.program.sense == "distortion" or (first_certain and not last)
        phase = CuttingPlanePhase(
            state,
            rows,
            until,
            last or first_certain,
            LONG_AUDIT_SHARE if long else AUDIT_SHARE,
            first,
        )
        ending = phase.run()
        if state.met:
            return MET
        if not last:  # among many priors that are nearly alike multipliers blur
            coarse = phase.last
            state.priors = state.priors if phase.proof is None else heaviest(phase.proof)
    if not (first_certain or state.clock.late) and coarse is not None:
        state.consider(coarse)
        ending = MET if state.met else ending
    if state.best is None:
        state.consider(state.program.constant)
    return ending


def _consider_families(state: SearchState, rows: GroupedRows) -> None:
    """The symmetric channel and the exponential mechanism, each by one relaxation."""
    if state.program.sense == "distortion":
        state.consider(state.program.constant, 1)
    for family in families(rows):
        if state.best is not None and state.clock.late:
            return
        if state.program.sense == "leakage":
            state.consider(within_distortion(rows, family), 1)
        else:
            _within_leakage(state, family)


def _within_leakage(state: SearchState, family: Family) -> None:
    """Look for the member of a family that leaks as much as is allowed, and audit it."""
    matrix = family(0.5)
    for _ in range(FAMILY_STEPS):
        audit = state.consider(matrix, 1)
        if audit.value <= 0 or state.clock.late:
            return
        matrix = likely_within(state.program, family, audit, state.program.limit)
    state.consider(matrix, 1)
