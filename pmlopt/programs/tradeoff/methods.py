"""The methods for leakage-distortion trade-offs: cutting planes, and penalties by name."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.data.mechanism import as_mechanism
from pmlopt.errors import MechanismError, ProgramError
from pmlopt.programs.certificate import WarmStart, WarmStartLike, get_mechanism, get_warm_start
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    wrap_given_certificate,
)
from pmlopt.programs.registry import register_question
from pmlopt.programs.tradeoff.build_certificate import (
    audit_leakage,
    certify_tradeoff,
    mix_within_leakage,
    solve_curve_end,
)
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.cutting_planes import TradeoffSearch, search_tradeoff
from pmlopt.programs.tradeoff.grouped_rows import (
    WorstCasePrior,
    list_binding_priors,
    read_warm_priors,
)
from pmlopt.programs.tradeoff.program import TradeoffProgram
from pmlopt.programs.tradeoff.proof import TradeoffProof
from pmlopt.programs.wu2026entropy.penalty import solve_by_penalties
from pmlopt.solvers.solver_result import Deadline, MethodOptions

CURVE_END_TIME_FRACTION = 0.3
"""The part of the time for the question whether the least distortion leaks no more than is allowed."""


@dataclass(frozen=True, eq=False)
class TradeoffStart:
    """The starting priors and mechanism of the cutting planes.

    Attributes:
        priors: within the entropy bound, from a program nearby.
        matrix: (K, M) a mechanism: without priors, the first ones are those against it.
    """

    priors: tuple[WorstCasePrior, ...] = ()
    matrix: FloatArray | None = None

    @property
    def is_warm(self) -> bool:
        """Return whether a starting prior or mechanism is given."""
        return bool(self.priors) or self.matrix is not None


@dataclass(frozen=True)
class CuttingPlaneMethod:
    """The cutting-plane method: a convex program against finitely many priors, and a certified oracle.

    Where the classes of the program are more than the values of the query, the mechanisms with a row for each
    value come first: no result is worse than the best that was proved of these.

    Attributes:
        seed: of the oracle's starts.
    """

    seed: int = 0

    def __call__(
        self, program: TradeoffProgram, options: MethodOptions, start: TradeoffStart
    ) -> MethodResult[TradeoffCertificate]:
        """Run the cutting planes until bound and audited mechanism meet."""
        end = solve_curve_end(
            program, self.seed, options.deadline.fraction(CURVE_END_TIME_FRACTION)
        )
        if end is not None:
            return end
        tolerance = options.tolerance * program.scale
        priors = list(start.priors)
        state = TradeoffSearch(program, tolerance, self.seed, options.deadline, priors)
        ending = search_tradeoff(state, start.matrix)
        finished = not state.deadline.expired
        if state.best is None:
            raise MethodError(f"no mechanism within the limit was found: {ending}. Allow more time")
        solved_at = time.perf_counter()
        certificate = certify_tradeoff(program, state.best.audit, state.lower_bound, state.proof)
        counts = (
            f"{len(state.priors)} priors, {state.audits} certified audits, {state.rounds} programs"
        )
        return MethodResult(
            certificate=certificate,
            finished=finished,
            message=ending,
            detail=f"{counts}: {ending}",
            iterations=state.rounds,
            warm_started=start.is_warm,
            compile_seconds=state.compile_seconds,
            solve_seconds=state.solve_seconds,
            certify_seconds=time.perf_counter() - solved_at,
            arrays=_pack_arrays(state.best.matrix, list_binding_priors(state.proof)),
        )


@dataclass(frozen=True)
class PenaltyMethod:
    """The penalty method with exponentiated gradients over all datasets, without a bound.

    Attributes:
        seed: of the starts.

    Source: [wu2026entropy, Algorithms 6 to 11].
    """

    seed: int = 0

    def __call__(
        self, program: TradeoffProgram, options: MethodOptions, start: TradeoffStart
    ) -> MethodResult[TradeoffCertificate]:
        """Alternate prior and mechanism updates, and audit the best mechanism."""
        end = solve_curve_end(
            program, self.seed, options.deadline.fraction(CURVE_END_TIME_FRACTION)
        )
        return end or solve_by_penalties(program, self.seed, options.deadline, start.matrix)


def _make_start(program: TradeoffProgram, warm_start: WarmStartLike, _: Deadline) -> TradeoffStart:
    """Return the priors or the mechanism of a warm start."""
    if warm_start is None or warm_start is False:
        return TradeoffStart()
    restart = get_warm_start(warm_start)
    if restart is not None:
        known = restart.arrays.get("matrix")
        # a warm start may be of another query: a matrix of another shape is dropped
        fits = known is not None and np.shape(known) == program.losses.shape
        return TradeoffStart(tuple(read_warm_priors(program, restart)), known if fits else None)
    assert not isinstance(warm_start, WarmStart)
    matrix = as_mechanism(get_mechanism(warm_start)).matrix
    if matrix.shape != program.losses.shape:
        raise ProgramError(
            f"the warm start has shape {matrix.shape}; the program needs {program.losses.shape}, a row "
            "for each class of datasets"
        )
    return TradeoffStart(matrix=matrix)


def _certify_given_matrix(
    program: TradeoffProgram, matrix: FloatArray, multipliers: FloatArray | None
) -> MethodResult[TradeoffCertificate]:
    """Mix a given matrix until it is feasible, and audit it; the bound is the trivial one."""
    if multipliers is not None:
        raise ProgramError("a trade-off has no multipliers of rows: leave out the multipliers")
    if matrix.shape != program.losses.shape or not (matrix.max(axis=1) > 0).all():
        raise MechanismError(
            f"the matrix of shape {matrix.shape} is no mechanism for {program.losses.shape}, a row for "
            "each class of datasets"
        )
    rows = program.repair_matrix(matrix)
    tolerance = program.tolerance / 4
    audit = audit_leakage(program, rows, tolerance)
    # leakage is convex and 0 at a constant: mixing makes any matrix feasible
    if program.sense == "distortion" and audit.bound > program.limit:
        rows = mix_within_leakage(program, rows, audit, max(0.0, program.limit - tolerance))
        audit = audit_leakage(program, rows, tolerance, sufficient_bound=program.limit)
    return wrap_given_certificate(
        certify_tradeoff(program, audit, program.trivial_bound, TradeoffProof((), 0.0))
    )


def _find_first_feasible(program: TradeoffProgram) -> MethodResult[TradeoffCertificate]:
    """Certify the best constant mechanism, mixed to meet a distortion limit."""
    losses = program.losses
    # the output of the least total loss, for all classes alike
    constant = np.tile(np.eye(losses.shape[1])[losses.sum(axis=0).argmin()], (len(losses), 1))
    audit = audit_leakage(
        program,
        program.repair_matrix(constant),
        program.tolerance / 4,
        deadline=Deadline.after(0.0),
    )
    certificate = certify_tradeoff(program, audit, program.trivial_bound, TradeoffProof((), 0.0))
    return MethodResult(certificate=certificate, finished=False, message="a mechanism by formula")


def _pack_arrays(matrix: FloatArray, priors: Iterable[WorstCasePrior]) -> dict[str, NDArray[Any]]:
    """Pack mechanism and active priors as warm-start arrays."""
    arrays: dict[str, NDArray[Any]] = {"matrix": matrix}
    for place, prior in enumerate(priors):
        arrays[f"record{place}"] = np.array(prior.record)
        arrays[f"joint{place}"] = prior.joint
    return arrays


METHODS = MethodRegistry(
    TradeoffProgram,
    (
        Method(
            "cutting-planes",
            "both problems are convex in the mechanism: priors are added until both bounds meet",
            CuttingPlaneMethod(),
        ),
        Method(
            "penalty",
            "[wu2026entropy, Algorithms 6 to 11], chosen by name: it proves no bound",
            PenaltyMethod(),
            automatic=False,
        ),
    ),
    _make_start,
    _certify_given_matrix,
    find_first_result=_find_first_feasible,
)
"""Trade-offs of leakage and distortion: the best mechanism found is returned with its gap."""

register_question(METHODS)
