"""The methods: a search over the likelihood ratio for envelopes, one linear program for a failure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism
from pmlopt.programs.envelope.build_certificate import (
    RatioPrograms,
    build_binary_attack,
    build_post_processing,
    build_quantile_attack,
    certify_envelope,
    certify_failure,
    compute_attack_ratio,
    expand_outputs,
    prove_level,
    repair_attack,
    set_closed_multipliers,
    top_up_mass,
)
from pmlopt.programs.envelope.certificate import PostProcessingCertificate
from pmlopt.programs.envelope.masses import compute_reached_mass
from pmlopt.programs.envelope.program import (
    EnvelopeProgram,
    PostProcessingProgram,
    ProcessedFailureProgram,
)
from pmlopt.programs.program import (
    Method,
    MethodRegistry,
    MethodResult,
    reject_warm_start,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.solvers.solver_result import TIME_LIMIT, Deadline, MethodOptions
from pmlopt.solvers.two_sided_search import MARK_RTOL, ParameterSolution, TwoSidedSearch


class _RatioFeasibility:
    """The feasibility problem whether outcomes of mass delta can reach a likelihood ratio, for bisection."""

    blur = 0.0

    def __init__(self, program: EnvelopeProgram, accuracy: float) -> None:
        self.program = program
        self.accuracy = accuracy
        self.max_level = program.simple_bound
        # V jumps where the outcome of a letter closes
        self.marks = program.max_ratios
        self.programs = RatioPrograms(program, program.delta)

    def solve_at(self, number: float, deadline: Deadline) -> ParameterSolution[FloatArray | None]:
        """Solve the linear program at a likelihood ratio; the infeasibility is relative to delta."""
        program = self.program
        # rounding cannot explain a ratio above a letter's largest by more than a share of 1e-12
        past_marks = self.marks * (1 + 1e-12)
        closed = past_marks < number
        mass, slope, point, found = self.programs.solve_at(number, closed, deadline)
        # those of closed letters hold from just above their largest ratio on, where that is near
        # the search solves just above a largest ratio: closer ones count as that ratio
        ratios = np.where(closed, np.maximum(past_marks, number * (1 - 4 * MARK_RTOL)), number)
        gains = program.columns - ratios[:, None] * program.law
        # what rounding may take off a difference, which is small where t is just above the largest ratio
        # rounding of `t q[y] - P[x,y]` is a few units in the last place of t q[y]
        gains[closed] += 8 * float(np.finfo(float).eps) * number * program.law
        multipliers = set_closed_multipliers(program.law, gains, found, closed)
        return ParameterSolution(
            1 - mass / program.delta, slope / program.delta, point, multipliers
        )

    def lower_bound_of(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Compute the likelihood ratio that a feasible (K, N) post-processing attains."""
        together = self.program.add_copies(point)
        attacks = [top_up_mass(single, together) for single in self.program.single_prior_programs]
        reached = [
            compute_attack_ratio(*pair)
            for pair in zip(self.program.single_prior_programs, attacks, strict=True)
        ]
        best = int(np.argmax(reached))
        return reached[best], attacks[best]

    def upper_bound_of(self, proof: FloatArray | None) -> float:
        """Compute the best known upper bound on the likelihood ratio, also by the given multipliers."""
        if proof is not None:
            self.max_level = prove_level(self.program, proof, self.max_level, self.accuracy)
        return math.exp(self.max_level)

    def extrapolate(
        self, now: FloatArray | None, then: FloatArray | None, step: float
    ) -> FloatArray | None:
        """Extrapolate multipliers along the line through two iterates, clipped at zero."""
        if now is None or then is None:
            return None
        # any multipliers of at least 0 prove a bound: extrapolated ones are cut off
        ahead = now + step * (now - then)
        ahead[: self.program.prior.size] = np.maximum(0.0, ahead[: self.program.prior.size])
        return ahead


AttackAndProof = tuple[FloatArray, FloatArray | None, int, str, bool]
"""What a method found: (M, N) of each output, what goes to the outcome of each letter; the multipliers; how
many linear programs there were; how it ended, in words; and whether separately."""


def search_worst_ratio(program: EnvelopeProgram, options: MethodOptions) -> AttackAndProof:
    """Search the largest likelihood ratio of outcomes of mass delta, by lower and upper bounds.

    Over a set of priors the attacks come from the priors that look worst, each searched only.
    """
    search, count, ending = _search_ratio(program, options)
    assert search.witness is not None
    message = f"{ending} after {count} linear programs"
    return (
        expand_outputs(program, search.witness),
        search.proofs[0],
        count,
        message,
        ending != TIME_LIMIT,
    )


def _search_ratio(
    program: EnvelopeProgram, options: MethodOptions
) -> tuple[TwoSidedSearch[FloatArray, FloatArray | None], int, str]:
    """Solve the envelope by a two-sided search over the ratio."""
    singles = program.single_prior_programs
    alone = [] if program.over is None else [_search_ratio(one, options) for one in singles]
    first = [
        attack(single)
        for attack in (build_quantile_attack, build_binary_attack)
        for single in singles
    ]
    first += [end.witness for end, *_ in alone if end.witness is not None]
    # a tenth of the tolerance costs at most one program more
    gap = options.tolerance / 10
    family = _RatioFeasibility(program, gap / 4)
    search = TwoSidedSearch(
        family, [family.lower_bound_of(point) for point in first], [None], gap, options.deadline
    )
    ending = search.run()
    return search, search.programs + sum(programs for _, programs, _ in alone), ending


def solve_worst_failure(program: ProcessedFailureProgram, options: MethodOptions) -> AttackAndProof:
    """Maximise by a linear program the probability of leaking epsilon or more, with its dual multipliers.

    Over a set of priors the shares are the worst of those found under single priors, and the multipliers are
    those of the program over the set.
    """
    if program.over is None:
        return _solve_at_level(program, options)
    alone = [_solve_at_level(single, options) for single in program.single_prior_programs]
    masses = [
        compute_reached_mass(
            single.rational_mechanism.compute_outcomes(
                build_post_processing(program, shares).matrix
            ),
            program.epsilon,
        )
        for single, (shares, *_) in zip(program.single_prior_programs, alone, strict=True)
    ]
    _, multipliers, count, message, finished = _solve_at_level(program, options)
    shares = alone[masses.index(max(masses))][0]
    return (
        shares,
        multipliers,
        count + sum(programs for _, _, programs, *_ in alone),
        message,
        finished,
    )


def _solve_at_level(program: ProcessedFailureProgram, options: MethodOptions) -> AttackAndProof:
    """Solve the linear program at the likelihood ratio e^epsilon, for a prior or a set of priors.

    Which letters are closed, so that no outcome can leak epsilon through them, is decided in rational
    arithmetic: the probability jumps there.
    """
    level = min(program.epsilon, MAX_EXPONENT)
    gains = program.rational_mechanism.compute_gains(level)
    own = gains[:, : len(program.given_mechanism.outputs)]
    occurring = np.tile(program.given_mechanism.support, len(program.rational_mechanism.laws))
    exact = np.concatenate(program.rational_mechanism.laws) / program.rational_mechanism.total
    law = np.asarray(exact[occurring], dtype=float)
    apart = gains[:, occurring]
    closed = np.asarray((apart < 0).all(axis=1))
    none = repair_attack(own, np.zeros(own.T.shape))
    message = "the linear program at epsilon"
    if level == 0 or closed.all():
        return (
            none,
            set_closed_multipliers(law, apart, np.zeros(program.multiplier_count), closed),
            0,
            message,
            True,
        )
    # maximal leakage bounds the mass that reaches a ratio: the unit of the program
    max_failure = float(program.merged.max(axis=0).sum()) * math.exp(-level)
    try:
        programs = RatioPrograms(program, min(1.0, max_failure))
        _, _, point, found = programs.solve_at(math.exp(level), closed, options.deadline)
    except ArithmeticError as cause:
        raise_if_strict(cause)
        return (
            none,
            program.pad_multipliers(np.full(len(gains), math.exp(-level))),
            1,
            str(cause),
            False,
        )
    shares = repair_attack(own, expand_outputs(program, program.add_copies(point)))
    return shares, set_closed_multipliers(law, apart, found, closed), 1, message, True


P = TypeVar("P", bound=PostProcessingProgram[Any])
C = TypeVar("C", bound=PostProcessingCertificate)
CertifyAttack = Callable[[P, Mechanism, FloatArray | None], C]


def _make_registry(
    kind: type[P],
    name: str,
    reason: str,
    find: Callable[[P, MethodOptions], AttackAndProof],
    certify: CertifyAttack[P, C],
) -> MethodRegistry[P, None, C]:
    """Build the method registry of a kind of program that is solved by one method."""

    def run_method(program: P, options: MethodOptions, _: None) -> MethodResult[C]:
        begin = time.perf_counter()
        shares, multipliers, count, message, finished = find(program, options)
        solved_at = time.perf_counter()
        return MethodResult(
            certificate=certify(program, build_post_processing(program, shares), multipliers),
            finished=finished,
            message=message,
            iterations=count,
            solve_seconds=solved_at - begin,
            certify_seconds=time.perf_counter() - solved_at,
        )

    return MethodRegistry(
        kind,
        (Method(name, reason, run_method),),
        reject_warm_start(
            "a worst post-processing starts from simple ones: leave out the mechanism"
        ),
        lambda program, matrix, lam: wrap_given_certificate(
            certify(program, Mechanism(matrix), lam)
        ),
    )


ENVELOPE_METHODS = _make_registry(
    EnvelopeProgram,
    "ratio-search",
    "linear programs at one likelihood ratio each, from both ends",
    search_worst_ratio,
    certify_envelope,
)
"""Envelopes: the best post-processing found is returned with its gap."""

FAILURE_METHODS = _make_registry(
    ProcessedFailureProgram, "one-ratio", "one linear program", solve_worst_failure, certify_failure
)
"""Closed failure probabilities."""

register_question(ENVELOPE_METHODS)
register_question(FAILURE_METHODS)
