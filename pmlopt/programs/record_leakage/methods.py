"""The methods for the leakage per record: branch and bound, with proofs, and alternating optimisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pmlopt.core.arrays import FloatArray, whole
from pmlopt.data.sampling.categorical import generator
from pmlopt.errors import PrivacyError, ProgramError
from pmlopt.programs.certificate import WarmStart, restart_of
from pmlopt.programs.program import Found, Method, Question, uncertified
from pmlopt.programs.record_leakage.adversary import Adversary
from pmlopt.programs.record_leakage.alternating import Alternating
from pmlopt.programs.record_leakage.certificate import RecordCertificate
from pmlopt.programs.record_leakage.exact_leakage import ExactLeakage, restart_name
from pmlopt.programs.record_leakage.program import RecordLeakage
from pmlopt.solvers.outcome import Options

RecordStart = Mapping[int, FloatArray]
"""Laws (A, T) of (X_i, T) to start from, by record."""


@dataclass(frozen=True)
class BranchAndBound:
    """Best-first branch and bound on chords, with a proof of the bound.

    For binary records over simplices of posteriors, where there are not many more outputs than classes, else
    over those of the laws of classes, or of two outputs, given each letter. First the largest capacity of one
    class of datasets for each letter is tried, which is the leakage where little entropy is asked for.

    Attributes:
        nodes: how many cells are bounded at most for each kind of records; where left out, 200,000, or fewer
            where their corners would take more than 160 MB.
        seed: of the starts of the local method; the same seed gives the same result, unless time runs out.
    """

    nodes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.nodes is not None:
            whole(self.nodes, "the number of nodes", PrivacyError)
        generator(self.seed)

    def __call__(
        self, program: RecordLeakage, options: Options, start: RecordStart
    ) -> Found[RecordCertificate]:
        """Search every kind of records."""
        return ExactLeakage(program.channel, program.entropy, options, self.nodes, self.seed).found(start)


def _start(program: RecordLeakage, warm_start: WarmStart) -> RecordStart:
    """The laws by record that an earlier solve left, those that fit."""
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
        counts, found = channel.log_counts(record), restart.arrays.get(restart_name(record))
        adversary = Adversary(channel.rows, counts, program.entropy, channel.query.log_size)
        law = None if found is None else adversary.starting(found)
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
