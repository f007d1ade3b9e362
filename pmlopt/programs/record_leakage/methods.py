"""The methods for the leakage per record: branch and bound, and alternating optimization."""

from __future__ import annotations

from pmlopt.errors import ProgramError
from pmlopt.programs.certificate import WarmStartLike, get_warm_start
from pmlopt.programs.program import Method, MethodRegistry, refuse_to_certify
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.exact_leakage import BranchAndBound, RecordStart, get_array_name
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.programs.registry import register_question
from pmlopt.programs.wu2026entropy.alternating import Alternating
from pmlopt.solvers.solver_result import Deadline


def _make_start(program: RecordLeakage, warm_start: WarmStartLike, _: Deadline) -> RecordStart:
    """Return the laws of a warm start that fit the program."""
    if warm_start is None or warm_start is False:
        return {}
    restart = get_warm_start(warm_start)
    if restart is None:
        raise ProgramError(
            "a leakage per record starts from priors, not from a mechanism: give the result of "
            "record_leakage at another entropy, or its restart"
        )
    channel = program.channel
    laws = {}
    for record in channel.query.kinds:
        found = restart.arrays.get(get_array_name(record))
        law = (
            None
            if found is None
            else BoundedAdversary.from_channel(channel, record, program.entropy).check_start(found)
        )
        if law is not None:
            laws[record] = law
    return laws


METHODS = MethodRegistry(
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
    _make_start,
    refuse_to_certify(
        "the leakage per record of a mechanism is proved by a search: use solve(record_leakage(...))"
    ),
)
"""Leakages per record: what a prior leaks is returned with the bound that was proved."""

register_question(METHODS)
