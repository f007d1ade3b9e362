"""What a search for the best trade-off has in hand: priors, a mechanism with its audit, and a bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from pmlopt.arrays import FloatArray
from pmlopt.backends.clock import Clock
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.tradeoff.certifying import audited
from pmlopt.programs.tradeoff.priors import WorstCasePrior
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import TradeoffProof

MAX_AUDIT_RELAXATIONS = 200_000
"""Relaxations that all audits of a search solve at most: cells or boxes of their branch and bound."""


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

    @property
    def timed(self) -> bool:
        """Whether there is a limit on the time."""
        return self.clock.limited

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.clock.late

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
