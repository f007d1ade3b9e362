"""The methods: a search over the likelihood ratio for envelopes, one linear program for a failure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.programs.envelope.attacks import channel, folded, spread
from pmlopt.programs.envelope.certificate import ClosedFailureCertificate, EnvelopeCertificate
from pmlopt.programs.envelope.certifying import certify_envelope, certify_failure
from pmlopt.programs.envelope.program import ClosedFailureProgram, EnvelopeProgram
from pmlopt.programs.envelope.ratio_search import AskedRatio, as_arrays, from_arrays, search_ratio
from pmlopt.programs.envelope.worst_failure import worst_failure
from pmlopt.programs.question import Found, Method, Question, always_cold
from pmlopt.result import Restart, Result, WarmStart, restart_of


@dataclass(frozen=True, eq=False)
class EnvelopeStart:
    """What the search over ratios may start from.

    Attributes:
        points: (M', N) attacks of a person's own.
        asked: what is known of the linear program at some ratios, from another delta.
    """

    points: list[FloatArray] = field(default_factory=list)
    asked: list[AskedRatio] = field(default_factory=list)


def _by_ratio(program: EnvelopeProgram, options: Options, start: EnvelopeStart) -> Found[EnvelopeCertificate]:
    """Search, and certify both ends; `iterations` counts the linear programs."""
    begin = time.perf_counter()
    end = search_ratio(program, start.points, start.asked, options)
    clock = time.perf_counter()
    certificate = certify_envelope(program, channel(program, spread(program, end.point)), end.multipliers)
    return Found(
        certificate=certificate,
        finished=end.finished,
        message=end.ending,
        detail=end.ending,
        iterations=end.programs,
        warm_started=bool(start.points or start.asked),
        compile_seconds=end.compile_seconds,
        solve_seconds=clock - begin - end.compile_seconds,
        certify_seconds=time.perf_counter() - clock,
        arrays=as_arrays(program, end.asked),
    )


def _start(program: EnvelopeProgram, warm_start: WarmStart) -> EnvelopeStart:
    """What was asked for another delta, or the post-processing that was given."""
    if warm_start is None or warm_start is False:
        return EnvelopeStart()
    if isinstance(warm_start, Result | Restart):
        restart = restart_of(warm_start)
        return EnvelopeStart(asked=[] if restart is None else from_arrays(program, restart.arrays))
    return EnvelopeStart(points=[folded(program.singles[0], _fitting(program, warm_start).matrix)])


def _certify(
    program: EnvelopeProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[EnvelopeCertificate]:
    """Of an (M, K) post-processing; the bound is that of the multipliers, or of Theorem 3."""
    return Found(
        certificate=certify_envelope(program, Mechanism(matrix), multipliers),
        finished=True,
        message="a post-processing that was given",
        arrays=as_arrays(program, []),
    )


def _at_epsilon(program: ClosedFailureProgram, options: Options, _: None) -> Found[ClosedFailureCertificate]:
    """Solve it, mend its point, and certify both ends."""
    begin = time.perf_counter()
    found = worst_failure(program, options)
    clock = time.perf_counter()
    certificate = certify_failure(program, channel(program, found.shares), found.multipliers)
    return Found(
        certificate=certificate,
        finished=not found.failure,
        message=found.failure or "the linear program at epsilon",
        detail=found.failure,
        iterations=found.programs,
        compile_seconds=found.compile_seconds,
        solve_seconds=clock - begin - found.compile_seconds,
        certify_seconds=time.perf_counter() - clock,
    )


def _certify_failure(
    program: ClosedFailureProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[ClosedFailureCertificate]:
    """Of an (M, K) post-processing; the bound is that of the multipliers, or of Theorem 3."""
    return Found(
        certificate=certify_failure(program, Mechanism(matrix), multipliers),
        finished=True,
        message="a post-processing that was given",
    )


def _fitting(program: EnvelopeProgram, start: MechanismLike) -> Mechanism:
    """A post-processing of the program's outputs, or a MechanismError where it has other rows."""
    attack = as_mechanism(start)
    program.given.post_process(attack)
    return attack


ENVELOPE = Question(
    EnvelopeProgram,
    (Method("ratio-search", "linear programs at one likelihood ratio each, from both ends", _by_ratio),),
    _start,
    _certify,
)
"""Envelopes: the post-processing in hand is returned with its gap.

A warm start is the result for another delta of the same mechanism and prior, whose linear programs serve
again, or an (M, K) post-processing."""

CLOSED_FAILURE = Question(
    ClosedFailureProgram,
    (Method("one-ratio", "one linear program", _at_epsilon),),
    always_cold,
    _certify_failure,
)
"""Closed failure probabilities: one linear program, which takes no start."""
