"""Cutting planes for Problems 2 and 3 of [wu2026entropy]: a convex program, and an oracle that adds priors.

The program finds the best mechanism against the priors so far; its multipliers bound every mechanism from
below. The oracle looks for a prior that leaks more, first by a local method, then by a certified audit, which
bounds this mechanism from above. The search ends when both bounds meet.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.backends import through_cvxpy
from pmlopt.backends.outcome import Options
from pmlopt.measures.record_information import uniform_alone
from pmlopt.programs.record_leakage.branch_and_bound import ACCURACY, SOLVER
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.local_ascent import climb, starts
from pmlopt.programs.tradeoff.certifying import audited, within_leakage
from pmlopt.programs.tradeoff.program import TradeoffProgram, convex_combination
from pmlopt.programs.tradeoff.proof import Cut, Tradeoff, TradeoffProof, sharpened_tradeoff, tradeoff_bound
from pmlopt.programs.tradeoff.relaxation import tradeoff_program
from pmlopt.result import Restart

MAX_ROUNDS = 200
"""Programs that are solved at most."""

AUDIT_SHARE = 0.15
"""The part of the time that is kept for an audit, so that the method ends with a mechanism."""

MAX_CUTS_PER_ROUND = 4
"""Priors that are added in one round at most, for each kind of records."""

LARGEST_DISCREPANCY = 1e-2
"""A program whose value is above the bound of its own multipliers by more has not been solved."""

NEGLIGIBLE_WEIGHT = 1e-3
"""Priors with less than this share of the largest weight are left out of a second program."""

LEAST_DISTANCE = 1e-3
"""How far two priors are apart that are both added, in total variation."""

NEGLIGIBLE_MULTIPLIER = 1e-12
"""Multipliers of less than this share of the largest are a solver's noise: they prove nothing."""

NEGLIGIBLE_MASS = 1e-9
"""Classes of less mass under every prior, and of losses less than this share of the largest, are left out of
the programs: Clarabel stalls on them (300 records, sum modulo 3). Proofs hold them."""

MET = "mechanism and bound meet"


@dataclass(frozen=True, eq=False)
class WorstCasePrior:
    """A prior within the entropy bound, by the law of (X_i, class).

    Attributes:
        record: i.
        joint: (A, K).
    """

    record: int
    joint: FloatArray


@dataclass(frozen=True, eq=False)
class AuditedMechanism:
    """A mechanism within the limit, with its value and the audit of its leakage."""

    matrix: FloatArray
    value: float
    audit: RecordCertificate


@dataclass
class CuttingPlaneSearch:
    """The state of the method: priors so far, the best mechanism, the best bound.

    Attributes:
        program: what is solved.
        tolerance: the gap that is good enough, in units of the value.
        seed: of the oracle's starts.
        deadline: of `time.perf_counter`.
        first: (K, M) a mechanism against which the first priors are found; None for one of no account.
        priors: every one within the entropy bound.
        lower, proof: the best bound and its multipliers.
        best: the best mechanism so far.
        last: the mechanism of the last program.
        solved_for: how many priors the last program had.
        reserve: seconds before the deadline that are kept for a first audit.
        rounds: programs solved.
        audits: certified oracles called.
    """

    program: TradeoffProgram
    tolerance: float
    seed: int
    deadline: float
    first: FloatArray | None = None
    priors: list[WorstCasePrior] = field(default_factory=list)
    lower: float = 0.0
    proof: TradeoffProof = field(default_factory=lambda: TradeoffProof((), 0.0))
    best: AuditedMechanism | None = None
    last: FloatArray | None = None
    solved_for: int = 0
    reserve: float = 0.0
    rounds: int = 0
    audits: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """Between the best mechanism and the best bound."""
        return math.inf if self.best is None else max(0.0, self.best.value - self.lower)

    @property
    def late(self) -> bool:
        """Whether the time is over, but for a last audit where no mechanism was audited yet."""
        return time.perf_counter() >= self.deadline - (self.reserve if self.best is None else 0.0)

    def run(self) -> str:
        """Alternate program and oracle until the bounds meet; how it ended, in words."""
        program = self.program
        if not math.isinf(self.deadline):
            self.reserve = AUDIT_SHARE * max(0.0, self.deadline - time.perf_counter())
        first = self.first
        if first is None:
            first = program.repaired(convex_combination(program.cheapest, program.constant, 0.5))
        self._search(first, -math.inf)
        ending = None
        while ending is None:
            ending = self._round()
        if self.best is None and self.last is not None:
            self._audit(self.last, math.inf)
        if self.best is None and program.sense == "distortion":  # a constant is always within the limit
            self._audit(program.constant, math.inf)
        return ending

    def consider(self, matrix: FloatArray) -> None:
        """Audit a mechanism within the limit on the distortion, and keep it where it is the best."""
        self._audit(matrix, math.inf)

    def _round(self) -> str | None:
        """Solve, and add priors: from the local method where it finds any, else from an audit."""
        room = self.room
        found = self._solve()
        if found is None:
            return "the solver could not solve a program"
        self.last, claimed = found
        if self.gap <= self.tolerance:
            return MET
        if self.rounds >= MAX_ROUNDS or self.late:
            return "the time or the rounds gave out"
        if self._search(self.last, claimed + self._significant):
            return None
        before = len(self.priors)
        self._audit(self.last, claimed)
        if self.gap <= self.tolerance:
            return MET
        if len(self.priors) == before and self.room >= room / 2:
            return "no prior was found that leaks more, and the audit left a gap: allow it more time"
        return None

    def _solve(self) -> tuple[FloatArray, float] | None:
        """The best mechanism against the priors so far, and what it is claimed to leak at most."""
        self.rounds += 1
        found = self._solved()
        if found is None:  # the solver lost its way among the priors: the ones that count, and what is new
            self.priors = heaviest(self.proof) + self.priors[self.solved_for :]
            found = self._solved()
        self.solved_for = len(self.priors)
        if found is None:
            return None
        return self.program.repaired(found[0]), found[1]

    def _solved(self) -> tuple[FloatArray, float] | None:
        """The program's mechanism and its claim; None where its own multipliers do not bear it out."""
        leakage = self.program.sense == "leakage"
        limit = self.program.limit if leakage else self.program.limit - self.room
        found = self._against(self.priors, limit)
        if found is None:
            return None
        matrix, proof, claimed = found
        aim = claimed if leakage else self.program.tradeoff.distortion(matrix)
        own = tradeoff_bound(self.program.tradeoff, self.program.sense, limit, proof)
        if aim - max(own, self.program.floor) > max(LARGEST_DISCREPANCY, 10 * self.tolerance):
            return None
        self._learn(proof)
        if aim - self.lower > self.tolerance / 2:
            self._learn_from(heaviest(proof), limit)
        return matrix, claimed

    def _against(
        self, priors: Sequence[WorstCasePrior], limit: float
    ) -> tuple[FloatArray, TradeoffProof, float] | None:
        """The best mechanism against some priors, its proof, and what it leaks; None where that failed."""
        program = self.program
        kept = self._kept(priors)
        part = Tradeoff(program.losses[kept], program.tradeoff.allowed[kept])
        joints = [prior.joint[:, kept] for prior in priors]
        relaxed = tradeoff_program(part, joints, program.sense, limit)
        outcome = through_cvxpy.run(relaxed.problem, SOLVER, self._accuracy, {})
        self.compile_seconds += outcome.compile_seconds
        self.solve_seconds += outcome.solve_seconds
        if outcome.state != "point":
            return None
        matrix = self._completed(np.asarray(relaxed.variables["mechanism"].value), kept)
        weights = np.maximum(np.atleast_1d(relaxed.constraints["priors"].dual_value), 0.0)
        spent = relaxed.constraints.get("distortion")
        price = 0.0 if spent is None else max(0.0, float(spent.dual_value))
        claimed = float(relaxed.variables["leakage"].value) if program.sense == "leakage" else limit
        return matrix, self._proof(matrix, priors, weights, price), claimed

    def _kept(self, priors: Sequence[WorstCasePrior]) -> BoolArray:
        """(K,) the classes that the program of some priors is about."""
        losses = self.program.losses
        kept = np.asarray(losses.max(axis=1) > NEGLIGIBLE_MASS * losses.max())
        for prior in priors:
            kept |= prior.joint.max(axis=0) > NEGLIGIBLE_MASS
        return kept

    def _completed(self, rows: FloatArray, kept: BoolArray) -> FloatArray:
        """(K, M) a mechanism whose other classes have the mean row of the kept ones of their value."""
        if kept.all():
            return rows
        matrix = self.program.cheapest.copy()
        matrix[kept] = rows
        values = self.program.orbits.values
        for value in np.unique(values[~kept]):
            alike = matrix[kept & (values == value)]
            if len(alike):
                matrix[~kept & (values == value)] = alike.mean(axis=0)
        return matrix

    @property
    def _accuracy(self) -> Options:
        """What the solver is asked for; it stops with the method."""
        if math.isinf(self.deadline):
            return ACCURACY
        return Options(max(self.deadline - time.perf_counter(), 1e-2), ACCURACY.tolerance)

    def _proof(
        self, matrix: FloatArray, priors: Sequence[WorstCasePrior], weights: FloatArray, price: float
    ) -> TradeoffProof:
        """The multipliers of a solved program, with the posteriors of its mechanism."""
        rows = np.maximum(matrix, 1e-15)
        rows /= rows.sum(axis=1, keepdims=True)
        least = NEGLIGIBLE_MULTIPLIER * float(weights.max())
        cuts = []
        for prior, weight in zip(priors, weights.tolist(), strict=True):
            if weight <= least:
                continue
            laws = np.maximum(prior.joint @ rows, 1e-300)
            cuts.append(Cut(prior.record, prior.joint, laws / laws.sum(axis=0), weight))
        proof = TradeoffProof(tuple(cuts), price)
        return sharpened_tradeoff(self.program.tradeoff, self.program.sense, self.program.limit, proof)

    def _learn(self, proof: TradeoffProof) -> None:
        """Keep a proof that bounds more."""
        bound = self.program.bound(proof)
        if bound > self.lower or not self.proof.cuts:
            self.lower, self.proof = max(bound, self.lower), proof

    def _learn_from(self, priors: Sequence[WorstCasePrior], limit: float) -> None:
        """Solve again for the priors that count: among many that are nearly alike multipliers blur."""
        if 0 < len(priors) < len(self.priors):
            found = self._against(priors, limit)
            if found is not None:
                self._learn(found[1])

    def _search(self, matrix: FloatArray, floor: float) -> bool:
        """Add priors that leak more than a floor, by the local method; whether there were any."""
        found = False
        for record in self.program.orbits.query.kinds:
            adversary = self.program.adversary(matrix, record)
            if adversary.tight:
                if not any(prior.record == record for prior in self.priors):
                    self.priors.append(WorstCasePrior(record, adversary.uniform))
                    found = True
                continue
            warm = [prior.joint for prior in self.priors if prior.record == record]
            count = int(np.clip(50_000 // adversary.log_counts.size, 2, 12))
            first = np.stack([*starts(adversary, count, self.seed + self.rounds), *warm[-count:]])
            joints, values = climb(adversary, first, 300, 1e-11)
            for joint in _apart(joints, values, floor):
                allowed = adversary.allowed(joint)
                if adversary.leaked(allowed) > floor:
                    self.priors.append(WorstCasePrior(record, allowed))
                    found = True
        return found

    def _audit(self, matrix: FloatArray, claimed: float) -> None:
        """Prove the leakage of a mechanism, keep it if it is the best, and add its worst prior."""
        program = self.program
        leakage = program.sense == "leakage"
        audit = self._proved(matrix, self.lower + 0.9 * self.tolerance if leakage else program.limit)
        tight = uniform_alone(program.entropy, program.orbits.query.log_size)
        if audit.value > claimed and not tight:  # there the only prior is known
            self.priors.append(WorstCasePrior(audit.record, self._by_class(audit)))
        if leakage:
            self._keep(AuditedMechanism(matrix, audit.bound, audit))
            return
        if audit.bound > program.limit:
            matrix = within_leakage(program, matrix, audit, program.limit - self.room)
            audit = self._proved(matrix, program.limit)
        if audit.bound <= program.limit:
            self._keep(AuditedMechanism(matrix, program.tradeoff.distortion(matrix), audit))

    def _keep(self, candidate: AuditedMechanism) -> None:
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate

    def _proved(self, matrix: FloatArray, enough: float) -> RecordCertificate:
        """The certified leakage, no finer than is needed to prove that it is at most `enough`."""
        self.audits += 1
        return audited(
            self.program, matrix, self.tolerance / 4, enough=enough, seed=self.seed, deadline=self.deadline
        )

    @property
    def _significant(self) -> float:
        """How much more than claimed a prior must leak to be worth adding."""
        return self.tolerance / 4 if self.program.sense == "leakage" else self.room / 2

    @property
    def room(self) -> float:
        """How far below the limit on the leakage the programs aim, so that audits need not be finer.

        As much as costs a fraction of the tolerance in distortion, at the price of the last program.
        """
        price = sum(cut.weight for cut in self.proof.cuts)
        return min(self.program.limit / 4, self.tolerance / 4 / max(price, 1e-3))

    def _by_class(self, audit: RecordCertificate) -> FloatArray:
        """The worst prior of an audit by the program's classes: the audit merges classes of equal rows."""
        return split(audit, self.program.log_counts[audit.record])


def split(audit: RecordCertificate, counts: FloatArray) -> FloatArray:
    """(A, K) the worst prior of an audit, uniform inside the classes that it merged.

    Args:
        audit: of a mechanism with a row for each of K classes.
        counts: (A, K) the logarithms of how many datasets have each letter and class.
    """
    channel = audit.channel
    merged = channel.log_counts(audit.record)
    known = channel.classes >= 0
    shares = np.zeros(counts.shape)
    with np.errstate(invalid="ignore"):
        inside = np.exp(counts[:, known] - merged[:, channel.classes[known]])
    shares[:, known] = np.where(np.isfinite(counts[:, known]), inside, 0.0)
    return np.asarray(shares * audit.joint[:, np.maximum(channel.classes, 0)])


def heaviest(proof: TradeoffProof) -> list[WorstCasePrior]:
    """The priors of a proof whose weights are not negligible."""
    least = NEGLIGIBLE_WEIGHT * max((cut.weight for cut in proof.cuts), default=0.0)
    return [WorstCasePrior(cut.record, cut.joint) for cut in proof.cuts if cut.weight > least]


def priors_of(program: TradeoffProgram, restart: Restart) -> list[WorstCasePrior]:
    """The priors that a restart carries, pushed inside the entropy bound of a program.

    Those of another shape, or that no dataset of this query can have, are left out.
    """
    found = []
    for place in range(len(restart.arrays)):
        record, joint = restart.arrays.get(f"record{place}"), restart.arrays.get(f"joint{place}")
        if record is None or joint is None or np.size(record) != 1 or int(record) not in program.log_counts:
            continue
        law, counts = np.asarray(joint, dtype=np.float64), program.log_counts[int(record)]
        if law.shape != counts.shape or not (np.isfinite(law) & (law >= 0)).all():
            continue
        if law.sum() > 0 and not law[np.isneginf(counts)].any():
            adversary = program.adversary(program.constant, int(record))
            found.append(WorstCasePrior(int(record), adversary.allowed(law)))
    return found


def _apart(joints: FloatArray, values: FloatArray, floor: float) -> Sequence[FloatArray]:
    """A few laws above a floor, the largest first, that differ from each other."""
    chosen: list[FloatArray] = []
    for place in np.argsort(-values):
        if values[place] <= floor or len(chosen) == MAX_CUTS_PER_ROUND:
            break
        near = any(np.abs(joints[place] - other).sum() / 2 < LEAST_DISTANCE for other in chosen)
        if not near:
            chosen.append(joints[place])
    return chosen
