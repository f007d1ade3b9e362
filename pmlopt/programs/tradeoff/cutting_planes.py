"""Cutting planes for the trade-off of [wu2026entropy]: a convex program, and an oracle that adds priors.

The program finds the best mechanism against the priors so far; its multipliers bound every mechanism from
below. The oracle looks for a prior that leaks more, first by a local method, then by a certified audit, which
bounds this mechanism from above. The search ends when both bounds meet.
The penalty method of the paper takes 15 to 212 times as long on three records, proves nothing, and ends at
another mechanism in each run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.queries.record_leakage_measures import allows_only_uniform
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.local_ascent import draw_starts, maximize_locally
from pmlopt.programs.tradeoff.best_response import BestResponse, solve_best_response
from pmlopt.programs.tradeoff.build_certificate import audit_leakage, find_likely_within_limit
from pmlopt.programs.tradeoff.grouped_rows import (
    GroupedRows,
    MechanismFamily,
    WorstCasePrior,
    build_families,
    find_family_member,
    list_binding_priors,
    plan_groupings,
    select_distinct,
    split_audit_prior,
)
from pmlopt.programs.tradeoff.program import TradeoffProgram, combine_convexly
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.solvers.solver_result import Deadline, MethodOptions

MAX_AUDIT_CELLS = 200_000
"""Cells that all audits of a search bound at most."""


AUDIT_TIME_FRACTION, LONG_AUDIT_TIME_FRACTION = 0.3, 0.7
"""The part of a phase's time that is kept for an audit, so that it ends with a mechanism: as a rule, and
where audits take long."""

FIRST_AUDIT_TIME_FRACTION, MEMBER_AUDIT_TIME_FRACTION = 0.3, 0.6
"""Of the time left: for the audit that states how far to go on a path, and for that of a member of it, which
ends early where it proves enough (Problem 3)."""


MAX_CLIMB_ITERATIONS, CLIMB_ITERATIONS_AT_ONCE = 300, 50
"""Of the local method, at most, and between looks at the deadline."""


GAP_CLOSED = "mechanism and bound meet"
COARSE_GAP_CLOSED = "no mechanism with equal rows for many classes is better"
LIMIT_REACHED = "the limit on time or rounds was reached"


@dataclass(frozen=True, eq=False)
class AuditedMechanism:
    """A feasible mechanism with its objective value and leakage audit."""

    matrix: FloatArray
    value: float
    audit: RecordCertificate


@dataclass
class TradeoffSearch:
    """The state of a cutting-plane search: priors, best mechanism and best bound.

    Attributes:
        program: what is solved.
        tolerance: the gap that is good enough, in units of the value.
        seed: of the oracle's starts.
        deadline: of the search.
        priors: every one within the entropy bound.
        lower_bound, proof: the best bound and its multipliers.
        best: the best mechanism so far.
        remaining_cells: the number of relaxations that remain for all audits together.
        rounds: programs solved.
        audits: certified oracles called.
        compile_seconds, solve_seconds: what the programs took.
    """

    program: TradeoffProgram
    tolerance: float
    seed: int
    deadline: Deadline
    priors: list[WorstCasePrior] = field(default_factory=list)
    lower_bound: float = 0.0
    proof: TradeoffProof = field(default_factory=lambda: TradeoffProof((), 0.0))
    best: AuditedMechanism | None = None
    remaining_cells: int = MAX_AUDIT_CELLS
    rounds: int = 0
    audits: int = 0
    compile_seconds: float = 0.0
    solve_seconds: float = 0.0

    @property
    def is_gap_closed(self) -> bool:
        """Return whether the gap between best mechanism and best bound is within the tolerance."""
        return self.best is not None and self.best.value - self.lower_bound <= self.tolerance

    def add_proof(self, proof: TradeoffProof) -> None:
        """Keep a dual proof where it improves the bound."""
        bound = self.program.compute_bound(proof)
        # every proof bounds every mechanism (weak duality), so that the best of all rounds stays
        if bound > self.lower_bound or not self.proof.cuts:
            self.lower_bound = max(bound, self.lower_bound)
            self.proof = proof

    def audit_mechanism(
        self,
        matrix: FloatArray,
        nodes: int = MAX_AUDIT_CELLS,
        until: Deadline | None = None,
        lower: float = -math.inf,
    ) -> RecordCertificate:
        """Certify a mechanism's leakage as finely as needed, and keep the mechanism where it improves.

        Args:
            matrix: (K, M) the mechanism.
            nodes: relaxations at most.
            until: the deadline of the audit, if earlier than that of the search.
            lower: a value that no mechanism like this one is below, where that is known.
        """
        program = self.program
        self.audits = self.audits + 1
        leakage = program.sense == "leakage"
        reached = max(self.lower_bound, lower) + 0.9 * self.tolerance
        audit = audit_leakage(
            program,
            matrix,
            self.tolerance / 4,
            seed=self.seed,
            deadline=until or self.deadline,
            sufficient_bound=reached if leakage else program.limit,
            nodes=max(1, min(nodes, self.remaining_cells)),
        )
        self.remaining_cells -= sum(len(proof.cells or ()) for proof in audit.proofs)
        value = audit.bound if leakage else program.tradeoff.compute_distortion(matrix)
        # in Problem 3 a mechanism is feasible only once its leakage is proved
        within = leakage or audit.bound <= program.limit
        if within and (self.best is None or value < self.best.value):
            self.best = AuditedMechanism(matrix, value, audit)
        return audit

    def follow_path(
        self,
        path: MechanismFamily,
        audit: RecordCertificate,
        room: float,
        until: Deadline,
        nodes: int,
    ) -> None:
        """Search a path of mechanisms for the first whose audited leakage is within the limit.

        An audit of no more effort finds a bound above the leakage by about the same factor, so that the
        member that is tried aims below the limit by that factor.

        Args:
            path: mechanisms, of falling leakage.
            audit: of one of them.
            room: how far below the limit to aim.
            until: the deadline of the path.
            nodes: relaxations of an audit, at most.
        """
        program = self.program
        # at most six members of a path are audited
        for _ in range(6):
            if audit.value <= 0 or until.expired:
                return
            matrix = find_likely_within_limit(program, path, audit, program.limit - room)
            if (
                self.best is not None
                and program.tradeoff.compute_distortion(matrix) >= self.best.value
            ):
                return
            audit = self.audit_mechanism(matrix, nodes, until.fraction(MEMBER_AUDIT_TIME_FRACTION))
            if audit.bound <= program.limit:
                return


@dataclass
class CuttingPlanePhase:
    """The cutting-plane search over mechanisms with equal rows inside groups.

    Attributes:
        search: what is known, and what is learnt here.
        rows: which rows may differ.
        deadline: of the search.
        certain: whether mechanisms are audited; else the phase ends where the local method finds no prior.
        reserved_seconds: seconds that are kept for an audit.
        last_matrix: the mechanism of the last program.
        objective_value: its value, as the solver states.
        max_leakage: what is known of its leakage: the most under a prior that was found.
        total_weight: of the leakage in the last program, in distortion (Problem 3).
        solved_for: how many priors the last program had.
        proof: the multipliers of the last program.
        audited: whether a mechanism of this phase was audited.
        rounds: programs solved.
    """

    search: TradeoffSearch
    rows: GroupedRows
    deadline: Deadline
    certain: bool
    reserved_seconds: float
    last_matrix: FloatArray | None = None
    objective_value: float = 0.0
    total_weight: float = 0.0
    max_leakage: float = 0.0
    solved_for: int = 0
    proof: TradeoffProof | None = None
    audited: bool = False
    rounds: int = 0

    @property
    def program(self) -> TradeoffProgram:
        """Return the trade-off program."""
        return self.search.program

    @property
    def is_out_of_time(self) -> bool:
        """Return whether time is over; the first audit may run past the limit."""
        return self.deadline.expired_for(0.0 if self.audited else -self.reserved_seconds)

    @property
    def end_reason(self) -> str | None:
        """Return why the search over these rows is finished; None where it is not."""
        best = self.search.best
        if self.search.is_gap_closed:
            return GAP_CLOSED
        if best is None or self.last_matrix is None or self.rows.is_finest:
            return None
        if best.value - self.objective_value <= self.search.tolerance:
            return COARSE_GAP_CLOSED
        return None

    def run(self, first: FloatArray | None) -> str:
        """Alternate program and oracle until the bounds meet; return how it ended.

        Args:
            first: (K, M) a mechanism against which the first priors are found, where there are none.
        """
        program = self.program
        search = self.search
        if not search.priors:
            # the first priors are those against a mechanism between both ends of the curve
            half = combine_convexly(program.least_distortion_matrix, program.constant_matrix, 0.5)
            first = program.repair_matrix(half) if first is None else first
            self._add_priors(self.rows.repeat_rows(first[self.rows.first_classes]), -math.inf)
        ending = None
        while ending is None:
            ending = self._run_round()
        late = self.deadline.expired and search.best is not None
        if (
            self.certain
            and not (late or self.audited or self.end_reason)
            and self.last_matrix is not None
        ):
            last = self.last_matrix
            best = search.best
            if (
                program.sense == "leakage"
                and best is not None
                and best.audit.value < self.max_leakage
            ):
                last = best.matrix  # it is known to leak less
            self._audit_and_learn(last, math.inf)
        return ending

    def _run_round(self) -> str | None:
        """Solve the program, and add violating priors from local search or an audit."""
        room = self.leakage_slack
        found = self._solve_with_retry()
        if found is None:
            return "the solver could not solve a program"
        self.last_matrix = self.rows.repeat_rows(
            self.program.repair_matrix(found.matrix)[self.rows.first_classes]
        )
        self.objective_value = found.objective_value
        self.max_leakage = found.leakage
        if self.end_reason:
            return self.end_reason
        # at most 100 programs in each phase
        if self.rounds >= 100:
            return LIMIT_REACHED
        if (
            self._add_priors(self.last_matrix, found.leakage + self._min_improvement)
            or self.is_out_of_time
        ):
            return LIMIT_REACHED if self.is_out_of_time else None
        # the local method proves nothing, but is enough where another phase audits
        if not self.certain:
            return "no prior was found that leaks more"
        news = self._audit_and_learn(self.last_matrix, found.leakage)
        if self.end_reason:
            return self.end_reason
        # neither a new prior nor a tighter aim: the next round would be the same
        if not news and self.leakage_slack >= room / 2:
            return (
                "no prior was found that leaks more, and the audit left a gap: allow it more time"
            )
        return None

    def _solve_with_retry(self) -> BestResponse | None:
        """Solve for the best mechanism against the current priors; None where that fails."""
        search = self.search
        self.rounds += 1
        search.rounds += 1
        found = self._solve_and_check()
        # the solver lost its way among the priors: the ones that count, and what is new
        if found is None:
            search.priors = list_binding_priors(search.proof) + search.priors[self.solved_for :]
            found = self._solve_and_check() if search.priors else None
        self.solved_for = len(search.priors)
        return found

    def _solve_and_check(self) -> BestResponse | None:
        """Solve the program; None where its dual multipliers do not confirm the value."""
        program = self.program
        search = self.search
        found = self._solve_against(search.priors)
        # a program that is further above the bound of its own multipliers has not been solved
        if found is None or found.objective_value - max(
            found.own_bound, program.trivial_bound
        ) > max(1e-2, 10 * search.tolerance):
            return None
        search.add_proof(found.proof)
        self.proof, self.total_weight = found.proof, sum(cut.weight for cut in found.proof.cuts)
        few = list_binding_priors(found.proof)
        gap = found.objective_value - search.lower_bound
        if self.rows.is_finest and gap > search.tolerance / 2 and 0 < len(few) < len(search.priors):
            # among many priors that are nearly alike multipliers blur
            again = self._solve_against(few)
            if again is not None:
                search.add_proof(again.proof)
        return found

    def _solve_against(self, priors: Sequence[WorstCasePrior]) -> BestResponse | None:
        """Solve for the best mechanism against given priors, within the time limit."""
        search = self.search
        program = self.program
        # in Problem 3 programs aim below the limit, to leave room for the audit's gap
        limit = program.limit - (0.0 if program.sense == "leakage" else self.leakage_slack)
        # the first program of a search always runs, as it proves a bound
        least = 0.5 if search.rounds <= 1 else 1e-2
        # far below the gaps that are required
        found = solve_best_response(
            self.rows, priors, limit, MethodOptions(self.deadline.at_least(least), 1e-10)
        )
        if found is not None:
            search.compile_seconds += found.compile_seconds
            search.solve_seconds += found.solve_seconds
        return found

    def _add_priors(self, matrix: FloatArray, floor: float) -> bool:
        """Add priors whose leakage exceeds a floor, by local search; return whether there were any."""
        known = self.search.priors
        before = len(known)
        for record in self.program.orbits.query.kinds:
            adversary = self.rows.build_adversary(matrix, record)
            if adversary.only_uniform:
                # the uniform law is the only prior: one for each record is all that there is
                if not any(prior.record == record for prior in known):
                    uniform = self.program.build_adversary(
                        self.program.constant_matrix, record
                    ).uniform_law
                    known.append(WorstCasePrior(record, uniform))
                continue
            # laws of earlier rounds are near the new worst ones: they complement random starts
            warm = [self.rows.merge_law(prior.joint) for prior in known if prior.record == record]
            count = int(np.clip(50_000 // adversary.log_counts.size, 2, 12))
            first = np.stack(
                [*draw_starts(adversary, count, self.search.seed + self.rounds), *warm[-count:]]
            )
            joints, values = self._climb_in_time(adversary, first)
            self.max_leakage = max(self.max_leakage, float(values.max()))
            # a law is added only if it still leaks more after it was made feasible
            for joint in select_distinct(joints, values, floor):
                if adversary.compute_leakage(adversary.make_allowed(joint)) > floor:
                    known.append(WorstCasePrior(record, self.rows.spread_law(joint, record)))
        return len(known) > before

    def _climb_in_time(
        self, adversary: BoundedAdversary, first: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Run the local search from given laws, while time remains."""
        # the local method goes on while an iteration gains 1e-4 of the tolerance
        least = 1e-4 * self.search.tolerance
        joints, values = maximize_locally(adversary, first, CLIMB_ITERATIONS_AT_ONCE, least)
        for _ in range(MAX_CLIMB_ITERATIONS // CLIMB_ITERATIONS_AT_ONCE - 1):
            before = values
            if self.is_out_of_time:
                break
            joints, values = maximize_locally(adversary, joints, CLIMB_ITERATIONS_AT_ONCE, least)
            if float((values - before).max()) <= least:
                break
        return joints, values

    def _audit_and_learn(self, matrix: FloatArray, claimed: float) -> bool:
        """Certify a mechanism's leakage, keep it if best, and add its worst prior as a cut.

        Returns whether that prior leaks more than is claimed: in Problem 3 by an amount of account, for
        there a next audit may cost as much as all before.
        """
        program = self.program
        search = self.search
        leakage = program.sense == "leakage"
        self.audited = True
        until = self.deadline if leakage else self.deadline.fraction(FIRST_AUDIT_TIME_FRACTION)
        audit = search.audit_mechanism(
            matrix, until=until, lower=-math.inf if self.rows.is_finest else self.objective_value
        )
        if audit.value > claimed and not allows_only_uniform(
            program.entropy, program.orbits.query.log_size
        ):
            # the audit merges classes of equal rows: its prior is spread back over them
            law = split_audit_prior(audit, program.log_counts[audit.record])
            allowed = program.build_adversary(program.constant_matrix, audit.record).make_allowed(
                law
            )
            search.priors.append(WorstCasePrior(audit.record, allowed))
        if not leakage and audit.bound > program.limit:

            def mix_with_constant(weight: float) -> FloatArray:
                return combine_convexly(matrix, program.constant_matrix, weight)

            search.follow_path(
                mix_with_constant, audit, self.leakage_slack, self.deadline, MAX_AUDIT_CELLS
            )
        return audit.value > claimed + (0.0 if leakage else self._min_improvement)

    @property
    def _min_improvement(self) -> float:
        """Return the least additional leakage for which a prior is worth adding."""
        return (
            self.search.tolerance / 4 if self.program.sense == "leakage" else self.leakage_slack / 2
        )

    @property
    def leakage_slack(self) -> float:
        """Return the safety margin below the leakage limit at which programs aim.

        As much as costs a fraction of the tolerance in distortion, at the price of the last program.
        """
        return min(self.program.limit / 4, self.search.tolerance / 4 / max(self.total_weight, 1e-3))


def search_tradeoff(state: TradeoffSearch, first: FloatArray | None) -> str:
    """Run the search with few groups of rows, then with all; return how it ended.

    Mechanisms by formula are audited first, so that some mechanism is always known. Where there
    are many more classes than values, the best with a row for each value is audited before others are sought:
    the local method only may go round for hours among priors that are nearly alike. Otherwise it is where
    these begin, and audited where the gap stays open.
    """
    plans = plan_groupings(state.program)
    _audit_families(state, plans[0])
    ending, coarse = LIMIT_REACHED, None
    # many more classes than values: more than two for each
    first_certain = plans[-1].group_count > 2 * plans[0].group_count
    for rows in plans:
        if state.deadline.expired and state.best is not None and rows is not plans[0]:
            break
        last = rows is plans[-1]
        # audits of more rows than values hardly ever end in time: they get the last quarter
        until = state.deadline if last else state.deadline.fraction(0.75)
        long = state.program.sense == "distortion" or (first_certain and not last)
        certain = last or first_certain
        kept = (LONG_AUDIT_TIME_FRACTION if long else AUDIT_TIME_FRACTION) * (
            until.remaining() or 0.0
        )
        phase = CuttingPlanePhase(state, rows, until, certain, kept if certain else 0.0)
        ending = phase.run(first)
        if state.is_gap_closed:
            return GAP_CLOSED
        if not last:  # among many priors that are nearly alike multipliers blur
            coarse = phase.last_matrix
            state.priors = state.priors if phase.proof is None else list_binding_priors(phase.proof)
    if not (first_certain or state.deadline.expired) and coarse is not None:
        state.audit_mechanism(coarse)
        ending = GAP_CLOSED if state.is_gap_closed else ending
    if state.best is None:
        # a constant leaks nothing: a feasible mechanism whatever came before
        state.audit_mechanism(state.program.constant_matrix)
    return ending


def _audit_families(state: TradeoffSearch, rows: GroupedRows) -> None:
    """Audit the symmetric channel and the exponential mechanism as candidates."""
    program = state.program
    if program.sense == "distortion":
        state.audit_mechanism(program.constant_matrix, 1)
    for family in build_families(rows):
        if state.best is not None and state.deadline.expired:
            return
        if program.sense == "leakage":
            state.audit_mechanism(find_family_member(rows, family), 1)
        else:
            state.follow_path(family, state.audit_mechanism(family(0.5), 1), 0.0, state.deadline, 1)
