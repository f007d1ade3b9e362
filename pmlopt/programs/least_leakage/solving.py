"""Solve a least-leakage program: search for the level, certify both ends."""

from __future__ import annotations

import time

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends.outcome import Options
from pmlopt.closed_forms.worst_case import uniform_on
from pmlopt.errors import ProgramError, SolverError, SolverUnavailableError
from pmlopt.measures import leakage_level
from pmlopt.mechanism import MechanismLike, paired
from pmlopt.programs.least_leakage.certificate import LevelCertificate, best_allowed, certify_level
from pmlopt.programs.least_leakage.level_search import Found, search_level
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.result import ClosedForm, DesignResult, Restart, Status, Timings, WarmStart, mechanism_of

LEVEL_SEARCH = "level-search"

_CLOSED = 1e-9
"""A closed form is optimal when its level is above the bound by no more than this."""


def solve_least(
    program: LeastLeakage,
    solver: str,
    warm_start: WarmStart,
    options: Options,
) -> DesignResult:
    """Solve by `search_level`; see `solve`.

    Raises:
        ProgramError: the warm start does not meet the demands.
        SolverUnavailableError: another solver is asked for.
        SolverError: the time ended before there was a mechanism.
    """
    begin = time.perf_counter()
    if solver.lower() not in ("auto", LEVEL_SEARCH):
        raise SolverUnavailableError(
            f"a least leakage is found by {LEVEL_SEARCH}, which runs HiGHS, not by {solver!r}: use auto"
        )
    form = _form(program)
    found = search_level(program, _start(program, warm_start, form), options, options.tolerance)
    if found.matrix is None:
        raise SolverError(f"no mechanism was found: {found.ending}. Allow more time")
    clock = time.perf_counter()
    certificate = certify_level(program, found.matrix, found.proofs)
    done = time.perf_counter()
    return DesignResult(
        status=_status(found, certificate, options.tolerance),
        certificate=certificate,
        solver=LEVEL_SEARCH,
        reason=f"linear programs at one level each, from both ends: {found.ending}",
        attempts=(),
        iterations=found.iterations,
        warm_started=warm_start is not False,
        timings=Timings(
            compile=found.compile_seconds,
            solve=found.solve_seconds,
            certify=done - clock,
            total=done - begin,
        ),
        closed_form=_closed(program, form, certificate),
        restart=Restart(LEVEL_SEARCH, {"matrix": certificate.mechanism.matrix}),
    )


def _status(found: Found, certificate: LevelCertificate, tolerance: float) -> Status:
    if certificate.gap <= tolerance:
        return Status.OPTIMAL
    return Status.UNPROVED if found.finished else Status.STOPPED


def _form(program: LeastLeakage) -> FloatArray:
    """A mechanism that meets the demands: uniform on what is allowed, mixed with the best as needed."""
    spread = uniform_on(program.allowed).matrix
    if program.short(spread) == 0 or program.floor is None:
        return spread
    everywhere = np.flatnonzero(program.allowed.all(axis=0))
    for y in everywhere:
        constant = np.zeros(spread.shape)
        constant[:, y] = 1.0
        if program.short(constant) == 0:
            return constant
    best = best_allowed(program)
    low, high = (program.floor.slack(matrix) for matrix in (spread, best))
    theta = min(1.0, -low / (high - low) * (1 + 1e-12)) if high > low else 1.0
    mixed = np.asarray((1 - theta) * spread + theta * best)
    return mixed if program.short(mixed) == 0 else best


def _start(program: LeastLeakage, warm_start: WarmStart, form: FloatArray) -> MechanismLike | None:
    if warm_start is None or warm_start is False:
        return form if warm_start is None else None
    start = mechanism_of(warm_start)
    matrix = paired(program.prior, start)[1].matrix
    if matrix.shape != program.allowed.shape:
        raise ProgramError(
            f"the warm start has shape {matrix.shape}; the program needs {program.allowed.shape}"
        )
    wrong = np.argwhere((matrix > 0) & ~program.allowed)
    if len(wrong):
        x, y = wrong[0]
        raise ProgramError(f"the warm start emits output {y} for letter {x}, which is not allowed")
    short = program.short(matrix)
    if program.floor is not None and short > 0:
        raise ProgramError(f"the warm start misses the expected utility by {short * program.floor.unit:.6g}")
    return start


def _closed(program: LeastLeakage, form: FloatArray, certificate: LevelCertificate) -> ClosedForm | None:
    """M*(h), where it is optimal."""
    if program.floor is not None:
        return None
    level = leakage_level(program.prior, form)
    if level > certificate.bound + _CLOSED:
        return None
    return ClosedForm("utility_safe", level, certificate.value - level)
