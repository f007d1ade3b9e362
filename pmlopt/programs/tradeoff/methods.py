"""The methods for trade-offs of leakage and distortion: cutting planes, and the paper's penalties by name."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import as_mechanism
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.certificate import Restart, WarmStart, mechanism_of, restart_of
from pmlopt.programs.program import Found, Method, MethodError, Question, certified
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.certifying import audited, certify_tradeoff, closed_end, within_leakage
from pmlopt.programs.tradeoff.cutting_planes import SearchState, search
from pmlopt.programs.tradeoff.grouped_rows import WorstCasePrior, heaviest, priors_of
from pmlopt.programs.tradeoff.penalty import penalised
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.solvers.outcome import Clock, Options

CLOSED_END_SHARE = 0.3
"""The part of the time for the question whether the least distortion leaks no more than is allowed."""


@dataclass(frozen=True, eq=False)
class TradeoffStart:
    """The start of the cutting planes.

    Attributes:
        priors: within the entropy bound, from a program nearby.
        matrix: (K, M) a mechanism: without priors, the first ones are those against it.
    """

    priors: tuple[WorstCasePrior, ...] = ()
    matrix: FloatArray | None = None

    @property
    def warm(self) -> bool:
        """Return whether there is anything to start from."""
        return bool(self.priors) or self.matrix is not None


@dataclass(frozen=True)
class CuttingPlanes:
    """Cutting planes: a convex program against the priors so far, and a certified oracle that adds priors.

    Where the classes of the program are more than the values of the query, the mechanisms with a row for each
    value come first: no result is worse than the best that was proved of these.

    Attributes:
        seed: of the oracle's starts.
    """

    seed: int = 0

    def __call__(
        self, program: TradeoffProgram, options: Options, start: TradeoffStart
    ) -> Found[TradeoffCertificate]:
        """Search until the bound and the audited mechanism meet."""
        end = closed_end(program, self.seed, options.clock.part(CLOSED_END_SHARE))
        if end is not None:
            return end
        tolerance, priors = options.tolerance * program.scale, list(start.priors)
        state = SearchState(program, tolerance, self.seed, options.clock, priors)
        ending = search(state, start.matrix)
        finished = not state.clock.late
        if state.best is None:
            raise MethodError(f"no mechanism within the limit was found: {ending}. Allow more time")
        clock = time.perf_counter()
        certificate = certify_tradeoff(program, state.best.audit, state.lower, state.proof)
        counts = f"{len(state.priors)} priors, {state.audits} certified audits, {state.rounds} programs"
        return Found(
            certificate=certificate,
            finished=finished,
            message=ending,
            detail=f"{counts}: {ending}",
            iterations=state.rounds,
            warm_started=start.warm,
            compile_seconds=state.compile_seconds,
            solve_seconds=state.solve_seconds,
            certify_seconds=time.perf_counter() - clock,
            arrays=_arrays(state.best.matrix, heaviest(state.proof)),
        )


@dataclass(frozen=True)
class Penalty:
    """Adaptive penalties and exponentiated gradients, through all datasets: no bound.

    Attributes:
        seed: of the starts.

    Source: [wu2026entropy, Algorithms 6 to 11].
    """

    seed: int = 0

    def __call__(
        self, program: TradeoffProgram, options: Options, start: TradeoffStart
    ) -> Found[TradeoffCertificate]:
        """Search priors and mechanisms in turn, and audit the best of the latter."""
        end = closed_end(program, self.seed, options.clock.part(CLOSED_END_SHARE))
        return end or penalised(program, self.seed, options.clock, start.matrix)


def _start(program: TradeoffProgram, warm_start: WarmStart, _: Clock) -> TradeoffStart:
    """Return the priors of another solve, or the mechanism that was given."""
    if warm_start is None or warm_start is False:
        return TradeoffStart()
    restart = restart_of(warm_start)
    if restart is not None:
        known = restart.arrays.get("matrix")
        fits = known is not None and np.shape(known) == program.losses.shape
        return TradeoffStart(tuple(priors_of(program, restart)), known if fits else None)
    assert not isinstance(warm_start, Restart)
    matrix = as_mechanism(mechanism_of(warm_start)).matrix
    if matrix.shape != program.losses.shape:
        raise ProgramError(
            f"the warm start has shape {matrix.shape}; the program needs {program.losses.shape}, a row "
            "for each class of datasets"
        )
    return TradeoffStart(matrix=matrix)


def _certify(
    program: TradeoffProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[TradeoffCertificate]:
    """Mix a matrix until it keeps the limit, and audit it; the bound is the one that needs no prior."""
    if multipliers is not None:
        raise ProgramError("a trade-off has no multipliers of rows: certify the matrix alone")
    if matrix.shape != program.losses.shape or not (matrix.max(axis=1) > 0).all():
        raise MechanismError(
            f"the matrix of shape {matrix.shape} is no mechanism for {program.losses.shape}, a row for "
            "each class of datasets"
        )
    rows = program.repaired(matrix)
    tolerance = program.tolerance / 4
    audit = audited(program, rows, tolerance)
    if program.sense == "distortion" and audit.bound > program.limit:
        rows = within_leakage(program, rows, audit, max(0.0, program.limit - tolerance))
        audit = audited(program, rows, tolerance, enough=program.limit)
    return certified(certify_tradeoff(program, audit, program.floor, TradeoffProof((), 0.0)))


def _find_first(program: TradeoffProgram) -> Found[TradeoffCertificate]:
    """Certify the best constant, which leaks nothing, mixed as far as a limit on the distortion needs."""
    losses = program.losses
    constant = np.tile(np.eye(losses.shape[1])[losses.sum(axis=0).argmin()], (len(losses), 1))
    audit = audited(program, program.repaired(constant), program.tolerance / 4, clock=Clock.of(0.0))
    certificate = certify_tradeoff(program, audit, program.floor, TradeoffProof((), 0.0))
    return Found(certificate=certificate, finished=False, message="a mechanism by formula")


def _arrays(matrix: FloatArray, priors: Iterable[WorstCasePrior]) -> dict[str, NDArray[Any]]:
    """Collect the mechanism and the priors that count as arrays of a warm start."""
    arrays: dict[str, NDArray[Any]] = {"matrix": matrix}
    for place, prior in enumerate(priors):
        arrays[f"record{place}"] = np.array(prior.record)
        arrays[f"joint{place}"] = prior.joint
    return arrays


QUESTION = Question(
    TradeoffProgram,
    (
        Method(
            "cutting-planes",
            "both problems are convex in the mechanism: priors are added until both bounds meet",
            CuttingPlanes(),
        ),
        Method(
            "penalty",
            "[wu2026entropy, Algorithms 6 to 11], asked for by name: it proves no bound",
            Penalty(),
            automatic=False,
        ),
    ),
    _start,
    _certify,
    first=_find_first,
)
"""Trade-offs of leakage and distortion: the mechanism in hand is returned with its gap."""
