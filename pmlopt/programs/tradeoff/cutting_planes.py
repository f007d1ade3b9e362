"""Cutting planes for Problems 2 and 3: priors found by an oracle, a convex program for the mechanism."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import through_cvxpy
from pmlopt.backends.outcome import Options
from pmlopt.errors import SolverError
from pmlopt.measures.record_information import uniform_alone
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.branch_and_bound import ACCURACY, SOLVER
from pmlopt.programs.record_leakage.local_ascent import climb, starts
from pmlopt.programs.record_leakage.program import NODES, ExactLeakage
from pmlopt.programs.tradeoff.certificate import Cut, TradeoffProof, sharpened_tradeoff, tradeoff_bound
from pmlopt.programs.tradeoff.problem import Task
from pmlopt.programs.tradeoff.relaxation import TradeoffProgram, tradeoff_program
from pmlopt.queries import record_channel
from pmlopt.result import RecordResult

_ROUNDS = 200
_MEET = "mechanism and bound meet"
_ASTRAY = 1e-2
"""A program whose value is above its own bound by more has not been solved."""
_WEIGHTY = 1e-3
"""Priors with less than this share of the largest weight are left out of a second program."""
_CUTS = 4
"""Priors that are added in one round at most, for each kind of records."""
_APART = 1e-3
"""How far two priors are apart that are both added, in total variation."""


@dataclass(frozen=True, eq=False)
class Prior:
    """A prior within the entropy bound, by the law of (X_i, class)."""

    record: int
    joint: FloatArray


@dataclass(frozen=True, eq=False)
class Candidate:
    """A mechanism within the limit, with its audit."""

    matrix: FloatArray
    value: float
    audit: RecordResult


@dataclass(frozen=True, eq=False)
class Found:
    """A mechanism with its audit, and what is known of all others.

    Attributes:
        task: what it answers; its classes are the mechanism's inputs.
        matrix: (K, M).
        audit: the proof of its leakage.
        bound: what no mechanism betters.
        proof: the multipliers of the bound; None where nothing is proved.
        solver, reason: how it was found.
        rounds: programs solved.
    """

    task: Task
    matrix: FloatArray
    audit: RecordResult
    bound: float
    proof: TradeoffProof | None
    solver: str
    reason: str
    rounds: int
    compile_seconds: float
    solve_seconds: float


@dataclass
class Exchange:
    """The search: priors so far, the best mechanism, the best bound.

    Attributes:
        priors: every one within the entropy bound.
        lower, proof: the best bound and its multipliers.
        best: the best mechanism so far.
        last: the mechanism of the last program.
        known: how many priors it was solved for.
        rounds: programs solved.
        audits: certified oracles called.
    """

    task: Task
    options: Options
    seed: int
    deadline: float
    priors: list[Prior] = field(default_factory=list)
    lower: float = 0.0
    proof: TradeoffProof = field(default_factory=lambda: TradeoffProof((), 0.0))
    best: Candidate | None = None
    last: FloatArray | None = None
    known: int = 0
    rounds: int = 0
    audits: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def gap(self) -> float:
        """Between the best mechanism and the best bound."""
        return math.inf if self.best is None else max(0.0, self.best.value - self.lower)

    def run(self) -> str:
        """Alternate until both meet; how it ended, in words."""
        self.priors = [Prior(known.record, self._allowed(known)) for known in self.priors]
        self._search(self.task.repaired(Task.mixed(self.task.cheapest, self.task.constant, 0.5)), -math.inf)
        ending = None
        while ending is None:
            ending = self._round()
        if self.best is None and self.last is not None:
            self._audit(self.last, math.inf)
        if self.best is None and self.task.sense == "distortion":  # a constant is always within the limit
            self._audit(self.task.constant, math.inf)
        return ending

    def _round(self) -> str | None:
        """Solve, and add priors: from the local method where it finds any, else from an audit."""
        room = self.room
        found = self._solve()
        if found is None:
            return "the solver could not solve a program"
        self.last, claimed = found
        if self.gap <= self.options.tolerance:
            return _MEET
        if self.rounds >= _ROUNDS or time.perf_counter() >= self.deadline:
            return "the time or the rounds gave out"
        if self._search(self.last, claimed + self._met):
            return None
        before = len(self.priors)
        self._audit(self.last, claimed)
        if self.gap <= self.options.tolerance:
            return _MEET
        if len(self.priors) == before and self.room >= room / 2:
            return "no prior leaks more, but the proof of it left a gap"
        return None

    def found(self, ending: str) -> Found:
        """The best mechanism and bound; a SolverError where there is no mechanism."""
        if self.best is None:
            raise SolverError(f"no mechanism within the limit was found: {ending}. Allow more time")
        reason = (
            f"{len(self.priors)} priors, {self.audits} certified audits, {self.rounds} programs: {ending}"
        )
        return Found(
            self.task,
            self.best.matrix,
            self.best.audit,
            self.lower,
            self.proof,
            "cutting-planes",
            reason,
            self.rounds,
            self.compile_seconds,
            self.solve_seconds,
        )

    def _solve(self) -> tuple[FloatArray, float] | None:
        """The best mechanism against the priors so far, and what it is claimed to leak at most."""
        self.rounds += 1
        found = self._solved()
        if found is None:  # the solver lost its way among the priors: the ones that count, and what is new
            self.priors = heaviest(self.proof) + self.priors[self.known :]
            found = self._solved()
        self.known = len(self.priors)
        if found is None:
            return None
        return self.task.repaired(found[0]), found[1]

    def _solved(self) -> tuple[FloatArray, float] | None:
        """The program's mechanism and its claim; None where its own multipliers do not bear it out."""
        program = self._program(self.priors)
        if program is None:
            return None
        matrix = np.asarray(program.variables["mechanism"].value)
        proof = self._proof(program, self.priors)
        leakage = self.task.sense == "leakage"
        claimed = float(program.variables["leakage"].value) if leakage else program.limit
        aim = claimed if leakage else self.task.tradeoff.distortion(matrix)
        own = tradeoff_bound(self.task.tradeoff, self.task.sense, program.limit, proof)
        if aim - max(own, self.task.floor) > max(_ASTRAY, 10 * self.options.tolerance):
            return None
        self._learn(proof)
        if aim - self.lower > self.options.tolerance / 2:
            self._learn_from(heaviest(proof))
        return matrix, claimed

    def _program(self, priors: Sequence[Prior]) -> TradeoffProgram | None:
        """The program for some priors, solved; None where the solver could not."""
        task = self.task
        limit = task.limit if task.sense == "leakage" else task.limit - self.room
        program = tradeoff_program(task.tradeoff, [prior.joint for prior in priors], task.sense, limit)
        outcome = through_cvxpy.run(program.problem, SOLVER, ACCURACY, {})
        self.compile_seconds += outcome.compile_seconds
        self.solve_seconds += outcome.solve_seconds
        return program if outcome.state == "point" else None

    def _learn(self, proof: TradeoffProof) -> None:
        """Keep a proof that bounds more."""
        bound = self.task.bound(proof)
        if bound > self.lower or not self.proof.cuts:
            self.lower, self.proof = max(bound, self.lower), proof

    def _learn_from(self, priors: Sequence[Prior]) -> None:
        """Solve again for the priors that count: among many that are nearly alike multipliers blur."""
        program = self._program(priors) if 0 < len(priors) < len(self.priors) else None
        if program is not None:
            self._learn(self._proof(program, priors))

    def _proof(self, program: TradeoffProgram, priors: Sequence[Prior]) -> TradeoffProof:
        """The multipliers of a solved program for some priors."""
        weights = np.maximum(np.atleast_1d(program.constraints["priors"].dual_value), 0.0)
        matrix = np.maximum(np.asarray(program.variables["mechanism"].value), 1e-15)
        matrix /= matrix.sum(axis=1, keepdims=True)
        cuts = []
        for prior, weight in zip(priors, weights.tolist(), strict=True):
            if weight <= 1e-12 * float(weights.max()):
                continue
            laws = np.maximum(prior.joint @ matrix, 1e-300)
            cuts.append(Cut(prior.record, prior.joint, laws / laws.sum(axis=0), weight))
        spent = program.constraints.get("distortion")
        price = 0.0 if spent is None else max(0.0, float(spent.dual_value))
        proof = TradeoffProof(tuple(cuts), price)
        return sharpened_tradeoff(self.task.tradeoff, self.task.sense, self.task.limit, proof)

    def _search(self, matrix: FloatArray, floor: float) -> bool:
        """Add priors that leak more than a floor, by the local method; whether there were any."""
        found = False
        for record in self.task.orbits.query.kinds:
            adversary = self._adversary(matrix, record)
            if adversary.tight:
                known = any(prior.record == record for prior in self.priors)
                if not known:
                    self.priors.append(Prior(record, adversary.uniform))
                    found = True
                continue
            warm = [prior.joint for prior in self.priors if prior.record == record]
            count = int(np.clip(50_000 // adversary.log_counts.size, 2, 12))
            first = np.stack([*starts(adversary, count, self.seed + self.rounds), *warm[-count:]])
            joints, values = climb(adversary, first, 300, 1e-11)
            chosen = _apart(joints, values, floor)
            for joint in chosen:
                allowed = adversary.allowed(joint)
                if adversary.leaked(allowed) > floor:
                    self.priors.append(Prior(record, allowed))
                    found = True
        return found

    def _audit(self, matrix: FloatArray, claimed: float) -> None:
        """Prove the leakage of a mechanism, keep it if it is the best, and add its worst prior."""
        leakage = self.task.sense == "leakage"
        audit = self._proved(
            matrix, self.lower + 0.9 * self.options.tolerance if leakage else self.task.limit
        )
        tight = uniform_alone(self.task.entropy, self.task.orbits.query.log_size)
        if audit.value > claimed and not tight:  # there the only prior is known
            self.priors.append(Prior(audit.record, self._by_class(audit)))
        if leakage:
            self._keep(Candidate(matrix, audit.bound, audit))
            return
        if audit.bound > self.task.limit:
            share = min(1.0, 1 - (self.task.limit - self.room) / audit.bound)
            matrix = self.task.mixed(matrix, self.task.constant, share)
            audit = self._proved(matrix, self.task.limit)
        if audit.bound <= self.task.limit:
            self._keep(Candidate(matrix, self.task.tradeoff.distortion(matrix), audit))

    def _keep(self, candidate: Candidate) -> None:
        if self.best is None or candidate.value < self.best.value:
            self.best = candidate

    def _proved(self, matrix: FloatArray, enough: float) -> RecordResult:
        """The certified leakage, no finer than is needed to prove that it is at most `enough`."""
        self.audits += 1
        return audited(self.task, matrix, self.options.tolerance / 4, enough, self.seed, self.deadline)

    @property
    def _met(self) -> float:
        """How much more than claimed a prior may leak before it is worth adding."""
        return self.options.tolerance / 4 if self.task.sense == "leakage" else self.room / 2

    @property
    def room(self) -> float:
        """How far below the limit on the leakage the programs aim, so that audits need not be finer.

        As much as costs a fraction of the tolerance in distortion, at the price of the last program.
        """
        price = sum(cut.weight for cut in self.proof.cuts)
        return min(self.task.limit / 4, self.options.tolerance / 4 / max(price, 1e-3))

    def _by_class(self, audit: RecordResult) -> FloatArray:
        """The worst prior of an audit by the classes of the task: the audit merges classes of equal rows."""
        channel = audit.certificate.channel
        counts = self._counts[audit.record]
        merged = channel.log_counts(audit.record)
        known = channel.classes >= 0
        shares = np.zeros(counts.shape)
        with np.errstate(invalid="ignore"):
            inside = np.exp(counts[:, known] - merged[:, channel.classes[known]])
        shares[:, known] = np.where(np.isfinite(counts[:, known]), inside, 0.0)
        return np.asarray(shares * audit.joint[:, np.maximum(channel.classes, 0)])

    def _allowed(self, known: Prior) -> FloatArray:
        """A prior that was found for another entropy, pushed within this one."""
        return self._adversary(self.task.constant, known.record).allowed(known.joint)

    def _adversary(self, matrix: FloatArray, record: int) -> Adversary:
        log_size = self.task.orbits.query.log_size
        return Adversary(matrix, self._counts[record], self.task.entropy, log_size)

    @cached_property
    def _counts(self) -> dict[int, FloatArray]:
        """The counts of each kind of records, which are those of every round."""
        query = self.task.orbits.query
        return {record: query.log_counts(record) for record in query.kinds}


def heaviest(proof: TradeoffProof) -> list[Prior]:
    """The priors of a proof that have a weight worth speaking of."""
    least = _WEIGHTY * max((cut.weight for cut in proof.cuts), default=0.0)
    return [Prior(cut.record, cut.joint) for cut in proof.cuts if cut.weight > least]


def audited(
    task: Task, matrix: FloatArray, tolerance: float, enough: float, seed: int, deadline: float
) -> RecordResult:
    """The certified leakage of a mechanism, no finer than is needed to prove that it is at most `enough`."""
    left = None if math.isinf(deadline) else max(1.0, deadline - time.perf_counter())
    channel = record_channel(task.orbits.query, task.mechanism(matrix))
    return ExactLeakage(channel, task.entropy, Options(left, tolerance), NODES, seed, enough).result(None)


def _apart(joints: FloatArray, values: FloatArray, floor: float) -> Sequence[FloatArray]:
    """A few laws above a floor, the largest first, that differ from each other."""
    chosen: list[FloatArray] = []
    for place in np.argsort(-values):
        if values[place] <= floor or len(chosen) == _CUTS:
            break
        near = any(np.abs(joints[place] - other).sum() / 2 < _APART for other in chosen)
        if not near:
            chosen.append(joints[place])
    return chosen
