"""The methods for trade-offs of leakage and distortion: cutting planes, and the paper's penalties by name."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.mechanism import as_mechanism
from pmlopt.programs.kind import Found, Kind, Method, MethodError, certified
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.certifying import (
    ClosedEnd,
    audited,
    certify_tradeoff,
    closed_end,
    within_leakage,
)
from pmlopt.programs.tradeoff.cutting_planes import (
    CuttingPlaneSearch,
    WorstCasePrior,
    heaviest,
    priors_of,
)
from pmlopt.programs.tradeoff.penalty import penalised
from pmlopt.programs.tradeoff.program import TradeoffProgram, coarsened, symmetric_mechanism
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.result import Restart, WarmStart, mechanism_of, restart_of

COARSE_SHARE = 0.4
"""The part of the time limit that is kept for mechanisms with a row for each value of the query."""

MANY_CLASSES = 2
"""From so many classes for each value on that time is kept; with fewer the search itself ends better."""

FINAL_AUDIT_SHARE = 0.4
"""The part of that time which is kept for the audit of the best of them among all datasets."""


@dataclass(frozen=True, eq=False)
class TradeoffStart:
    """Where the cutting planes begin.

    Attributes:
        priors: within the entropy bound, from a program nearby.
        matrix: (K, M) a mechanism that a person gave: the first priors are those against it.
    """

    priors: tuple[WorstCasePrior, ...] = ()
    matrix: FloatArray | None = None

    @property
    def warm(self) -> bool:
        """Whether there is anything to start from."""
        return bool(self.priors) or self.matrix is not None


@dataclass(frozen=True)
class CuttingPlanes(Method[TradeoffProgram, TradeoffStart, TradeoffCertificate]):
    """Cutting planes: a convex program against the priors so far, and a certified oracle that adds priors.

    Where the classes of the program are more than the values of the query, and the gap does not close, the
    mechanisms with a row for each value are searched in what time is left, and the better mechanism is kept.

    Attributes:
        seed: of the oracle's starts.
    """

    seed: int = 0
    name: str = "cutting-planes"
    reason: str = "both problems are convex in the mechanism: priors are added until both bounds meet"

    def run(
        self, program: TradeoffProgram, options: Options, start: TradeoffStart
    ) -> Found[TradeoffCertificate]:
        """Search until the bound and the audited mechanism meet."""
        begin = time.perf_counter()
        deadline = _deadline(begin, options)
        end = closed_end(program, self.seed, deadline)
        if end is not None:
            return _at_end(end)
        values, classes = len(program.query.values), len(program.losses)
        many = classes > MANY_CLASSES * values and options.time_limit is not None
        reserve = COARSE_SHARE * (deadline - begin) if many else 0.0
        search = CuttingPlaneSearch(
            program, options.tolerance * program.scale, self.seed, deadline - reserve, start.matrix,
            list(start.priors),
        )  # fmt: skip
        ending = search.run()
        left = many or search.best is None or time.perf_counter() < deadline
        if left and values < classes and search.gap > search.tolerance:
            ending += _improved(search, deadline)
        return self._found(search, ending, start, time.perf_counter() < deadline - reserve)

    def _found(
        self, search: CuttingPlaneSearch, ending: str, start: TradeoffStart, finished: bool
    ) -> Found[TradeoffCertificate]:
        """The best mechanism with the best bound."""
        if search.best is None:
            raise MethodError(f"no mechanism within the limit was found: {ending}. Allow more time")
        clock = time.perf_counter()
        certificate = certify_tradeoff(
            search.program, search.best.matrix, search.best.audit, search.lower, search.proof
        )
        counts = f"{len(search.priors)} priors, {search.audits} certified audits, {search.rounds} programs"
        return Found(
            certificate=certificate,
            finished=finished,
            message=ending,
            detail=f"{counts}: {ending}",
            iterations=search.rounds,
            warm_started=start.warm,
            compile_seconds=search.compile_seconds,
            solve_seconds=search.solve_seconds,
            certify_seconds=time.perf_counter() - clock,
            arrays=_arrays(search.best.matrix, heaviest(search.proof)),
        )


@dataclass(frozen=True)
class Penalty(Method[TradeoffProgram, TradeoffStart, TradeoffCertificate]):
    """Adaptive penalties and exponentiated gradients, through all datasets: no bound.

    Attributes:
        seed: of the starts.

    Source: [wu2026entropy, Algorithms 6 to 11].
    """

    seed: int = 0
    name: str = "penalty"
    reason: str = "[wu2026entropy, Algorithms 6 to 11], asked for by name: it proves no bound"

    def run(
        self, program: TradeoffProgram, options: Options, start: TradeoffStart
    ) -> Found[TradeoffCertificate]:
        """Alternate priors and mechanisms, and audit the best of the latter."""
        deadline = _deadline(time.perf_counter(), options)
        end = closed_end(program, self.seed, deadline)
        if end is not None:
            return _at_end(end)
        found = penalised(program, self.seed, deadline)
        return Found(
            certificate=found.certificate,
            finished=found.finished,
            message=found.message,
            detail=found.message,
            iterations=found.rounds,
            arrays={"matrix": found.certificate.mechanism.matrix},
        )


class TradeoffKind(Kind[TradeoffProgram, TradeoffStart, TradeoffCertificate]):
    """Trade-offs of leakage and distortion: the mechanism in hand is returned with its gap."""

    names = (CuttingPlanes.name, Penalty.name)

    def start(self, program: TradeoffProgram, warm_start: WarmStart) -> TradeoffStart:
        """The priors of another solve, or the mechanism that was given."""
        if warm_start is None or warm_start is False:
            return TradeoffStart()
        restart = restart_of(warm_start)
        if restart is not None:
            return TradeoffStart(tuple(priors_of(program, restart)))
        assert not isinstance(warm_start, Restart)
        matrix = as_mechanism(mechanism_of(warm_start)).matrix
        if matrix.shape != program.losses.shape:
            raise ProgramError(
                f"the warm start has shape {matrix.shape}; the program needs {program.losses.shape}, a row "
                "for each class of datasets"
            )
        return TradeoffStart(matrix=matrix)

    def automatic(self, program: TradeoffProgram, start: TradeoffStart) -> Sequence[CuttingPlanes]:
        """Cutting planes."""
        return [CuttingPlanes()]

    def others(self, program: TradeoffProgram) -> Sequence[Penalty]:
        """The penalty method."""
        return [Penalty()]

    def certify(
        self, program: TradeoffProgram, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[TradeoffCertificate]:
        """Mixed until it keeps the limit, and audited; the bound is the one that needs no prior."""
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
        certificate = certify_tradeoff(program, rows, audit, program.floor, TradeoffProof((), 0.0))
        return certified(certificate)


def _deadline(begin: float, options: Options) -> float:
    return math.inf if options.time_limit is None else begin + options.time_limit


def _at_end(end: ClosedEnd) -> Found[TradeoffCertificate]:
    """The result where a closed form gives the optimum of a trade-off."""
    return Found(
        certificate=end.certificate,
        finished=True,
        message=end.reason,
        detail=end.reason,
        iterations=0,
        arrays={"matrix": end.certificate.mechanism.matrix},
    )


def _improved(search: CuttingPlaneSearch, deadline: float) -> str:
    """Search the mechanisms with a row for each value of the query, and keep the best; in words."""
    coarse = coarsened(search.program)
    now = time.perf_counter()
    first = symmetric_mechanism(coarse) if coarse.sense == "leakage" else None
    work = CuttingPlaneSearch(
        coarse, search.tolerance, search.seed, now + max(0.0, deadline - now) * (1 - FINAL_AUDIT_SHARE), first
    )
    if first is not None:
        work.consider(first)
    work.run()
    search.compile_seconds += work.compile_seconds
    search.solve_seconds += work.solve_seconds
    if work.best is None or (search.best is not None and search.best.value <= work.best.value):
        return ""
    before = search.best
    search.deadline = deadline
    search.consider(work.best.matrix[search.program.orbits.values])
    return "" if search.best is before else "; a row for each value of the query was better"


def _arrays(matrix: FloatArray, priors: Iterable[WorstCasePrior]) -> dict[str, NDArray[Any]]:
    """A restart: the mechanism, and the priors that count."""
    arrays: dict[str, NDArray[Any]] = {"matrix": matrix}
    for place, prior in enumerate(priors):
        arrays[f"record{place}"] = np.array(prior.record)
        arrays[f"joint{place}"] = prior.joint
    return arrays
