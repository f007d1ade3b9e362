"""The methods for designs with a sub-convex utility, in the order in which they are tried."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs, through_cvxpy
from pmlopt.backends.outcome import Options, Outcome, Point
from pmlopt.errors import InputError
from pmlopt.mechanism import paired
from pmlopt.programs.question import Found, Method, MethodError, Question, certified
from pmlopt.programs.subconvex.certificate import ColumnCertificate
from pmlopt.programs.subconvex.certifying import certify_columns
from pmlopt.programs.subconvex.closed_form import by_formula, known_columns
from pmlopt.programs.subconvex.column_generation import generate
from pmlopt.programs.subconvex.fewest_outputs import fewest_outputs
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.result import Restart, WarmStart, mechanism_of

COLUMN_GENERATION = "column-generation"


@dataclass(frozen=True, eq=False)
class ColumnStart:
    """The program that is solved: with the columns of the mechanism that was given, if one was.

    Attributes:
        program: with those columns.
        warm: whether there was a mechanism.
    """

    program: ColumnDesign
    warm: bool


Solver = Callable[[ColumnDesign, Options, bool], Outcome]
"""What solves a program, from a mechanism or not."""


def _certified(
    solve: Solver, program: ColumnDesign, options: Options, start: ColumnStart
) -> Found[ColumnCertificate]:
    """Solve, and certify the mechanism that the weights make of the columns."""
    program = start.program
    outcome = solve(program, options, start.warm)
    if outcome.found is None:
        raise MethodError(outcome.message)
    clock = time.perf_counter()
    allowed = program.allowed_gap(options.tolerance)
    found = outcome.found
    certificate = certify_columns(
        program, found.matrix, found.multipliers, allowed, found.proved, options.clock
    )
    formula = by_formula(program, allowed, options.clock) if certificate.gap > allowed else None
    seconds = time.perf_counter() - clock
    return Found(
        certificate=formula or certificate,
        finished=outcome.finished,
        message=outcome.message,
        detail="a closed form closed the gap that the solver left" if formula else "",
        iterations=outcome.iterations,
        warm_started=outcome.warm_started,
        compile_seconds=outcome.compile_seconds,
        solve_seconds=outcome.solve_seconds,
        certify_seconds=seconds,
        closed_form=known_columns(program, formula or certificate),
        arrays={"matrix": (formula or certificate).mechanism.matrix},
    )


def _declared(name: str, program: ColumnDesign, options: Options, _: bool) -> Outcome:
    """A solver for the linear program over the columns that are declared."""
    if name in highs.METHODS:
        outcome = highs.run(program.problem, name, options, False)
    else:
        outcome = through_cvxpy.run(program.problem, name.upper(), options, {})
    return replace(outcome, found=_point(program)) if outcome.state == "point" else outcome


def _point(program: ColumnDesign) -> Point:
    """The mechanism of the weights that a solver left; of ties between columns the fewest outputs."""
    weights, duals = np.asarray(program.variables["weights"].value), program.constraints["rows"].dual_value
    if not (np.isfinite(weights).all() and np.isfinite(0.0 if duals is None else duals).all()):
        raise MethodError("ended at a point that has numbers which are none")
    if duals is None:
        return Point(program.lifts * weights, None)
    lifts, kept = fewest_outputs(program.lifts, program.worths, np.asarray(duals), weights)
    return Point(lifts * kept, np.asarray(duals) / program.prior.pmf)


def _start(program: ColumnDesign, warm_start: WarmStart) -> ColumnStart:
    """The program with the columns of the mechanism that was given."""
    if warm_start is None or warm_start is False:
        return ColumnStart(program, False)
    given = warm_start.matrix if isinstance(warm_start, Restart) else mechanism_of(warm_start)
    if given is None:
        return ColumnStart(program, False)
    try:
        return ColumnStart(program.with_mechanism(paired(program.prior, given)[1]), True)
    except InputError:
        if isinstance(warm_start, Restart):
            return ColumnStart(program, False)
        raise


def _certify(
    program: ColumnDesign, matrix: FloatArray, multipliers: FloatArray | None
) -> Found[ColumnCertificate]:
    """Repaired; the bound from the multipliers of the rows over the prior, or in closed form."""
    certificate = certify_columns(program, matrix, multipliers, 0.0)
    return certified(certificate, known_columns(program, certificate))


def _complete(program: ColumnDesign, _: ColumnStart) -> bool:
    """Whether all extreme columns are declared."""
    return program.complete


def _over_all(
    name: str, reason: str = "asked for by name", automatic: bool = False
) -> Method[ColumnDesign, ColumnStart, ColumnCertificate]:
    """A solver for linear programs, where all extreme columns are declared."""
    return Method(
        name,
        reason,
        partial(_certified, partial(_declared, name)),
        _complete,
        automatic,
        takes="programs that declare all extreme columns, and cannot generate them as `auto` does; "
        "program.with_every_column() declares them where they are few enough",
    )


QUESTION = Question(
    ColumnDesign,
    (
        _over_all("highs", "all extreme columns are declared: HiGHS simplex ends at a vertex", True),
        Method(
            COLUMN_GENERATION,
            "the simplex did not end, or extreme columns are too many: columns as they are needed",
            partial(_certified, generate),
        ),
        _over_all("highs-ipm"),
    ),
    _start,
    _certify,
    by_cvxpy=_over_all,
)
"""Designs with a sub-convex utility: the mechanism in hand is returned with its gap."""
