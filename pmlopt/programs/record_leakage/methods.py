"""The methods for the leakage per record: branch and bound, with proofs, and alternating optimisation."""

from __future__ import annotations

from pmlopt.errors import ProgramError
from pmlopt.programs.certificate import WarmStart, restart_of
from pmlopt.programs.program import Method, Question, uncertified
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.alternating import Alternating
from pmlopt.programs.record_leakage.exact_leakage import BranchAndBound, RecordStart, restart_name
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.solvers.outcome import Clock


def _start(program: RecordLeakage, warm_start: WarmStart, _: Clock) -> RecordStart:
    """Return the laws by record that an earlier solve left, those that fit."""
    if warm_start is None or warm_start is False:
        return {}
    restart = restart_of(warm_start)
    if restart is None:
        raise ProgramError(
            "a leakage per record starts from priors, not from a mechanism: give the result of "
            "record_leakage at another entropy, or its restart"
        )
    channel, laws = program.channel, {}
    for record in channel.query.kinds:
        found = restart.arrays.get(restart_name(record))
        law = None if found is None else Adversary.of(channel, record, program.entropy).starting(found)
        if law is not None:
            laws[record] = law
    return laws


QUESTION = Question(
    RecordLeakage,
    (
        Method("branch-and-bound", "a global bound, by chords", BranchAndBound()),
        Method(
            "alternating",
            "[wu2026entropy, Algorithm 1]: a local optimum, no bound",
            Alternating(),
            automatic=False,
        ),
    ),
    _start,
    uncertified(
        "the leakage per record of a mechanism is proved by a search: use solve(record_leakage(...))"
    ),
)
"""Leakages per record: what a prior leaks is returned with the bound that was proved."""
