"""The methods for designs with a sub-convex utility, in the order in which they are tried."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs, through_cvxpy
from pmlopt.backends.outcome import Options, Outcome, Point
from pmlopt.errors import InputError, MechanismError, SolverUnavailableError
from pmlopt.mechanism import paired
from pmlopt.programs.kind import Found, Kind, Method, MethodError, certified
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


@dataclass(frozen=True)
class ColumnMethod(Method[ColumnDesign, ColumnStart, ColumnCertificate]):
    """Column generation, or a solver for the linear program over the columns that are declared."""

    name: str
    reason: str

    def run(self, program: ColumnDesign, options: Options, start: ColumnStart) -> Found[ColumnCertificate]:
        """Solve, and certify the mechanism that the weights make of the columns."""
        program = start.program
        outcome = self._solved(program, options, start.warm)
        if outcome.found is None:
            raise MethodError(outcome.message)
        clock = time.perf_counter()
        allowed = program.allowed_gap(options.tolerance)
        found = outcome.found
        try:
            certificate = certify_columns(program, found.matrix, found.multipliers, allowed, found.proved)
        except MechanismError as cause:
            raise MethodError(str(cause)) from cause
        formula = by_formula(program, allowed) if certificate.gap > allowed else None
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

    def _solved(self, program: ColumnDesign, options: Options, warm: bool) -> Outcome:
        if self.name == COLUMN_GENERATION:
            return generate(program, options, warm)
        if self.name in highs.METHODS:
            outcome = highs.run(program.problem, self.name, options, False)
        else:
            outcome = through_cvxpy.run(program.problem, self.name.upper(), options, {})
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


class ColumnKind(Kind[ColumnDesign, ColumnStart, ColumnCertificate]):
    """Designs with a sub-convex utility: a mechanism is returned with the gap that could be proved."""

    names = (COLUMN_GENERATION, *highs.METHODS)

    def start(self, program: ColumnDesign, warm_start: WarmStart) -> ColumnStart:
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

    def automatic(self, program: ColumnDesign, start: ColumnStart) -> Sequence[ColumnMethod]:
        """The simplex where all extreme columns are declared; column generation."""
        if not program.complete:
            reason = f"{_many(program)} extreme columns: generated as they are needed"
            return [ColumnMethod(COLUMN_GENERATION, reason)]
        return [
            ColumnMethod("highs", "all extreme columns are declared: HiGHS simplex ends at a vertex"),
            ColumnMethod(COLUMN_GENERATION, "the simplex did not end: columns as they are needed"),
        ]

    def others(self, program: ColumnDesign) -> Sequence[ColumnMethod]:
        """Any solver for linear programs, where all extreme columns are declared."""
        import cvxpy as cp

        if not program.complete:
            return []
        names = sorted({"highs-ipm", *(entry.lower() for entry in cp.installed_solvers())} - {"highs"})
        return [ColumnMethod(name, "asked for by name") for name in names]

    def named(
        self, program: ColumnDesign, name: str, start: ColumnStart
    ) -> Method[ColumnDesign, ColumnStart, ColumnCertificate]:
        """A method by its name; only column generation takes what is not declared as a whole."""
        import cvxpy as cp

        known = {COLUMN_GENERATION, *highs.METHODS, *(entry.lower() for entry in cp.installed_solvers())}
        if name not in known:
            raise SolverUnavailableError(
                f"{name!r} does not solve {program!r}: use auto or {COLUMN_GENERATION}"
            )
        if not program.complete and name != COLUMN_GENERATION:
            raise SolverUnavailableError(
                f"the program declares {len(program.worths)} of its extreme columns, and {name} cannot "
                "generate the others: use auto, or program.with_every_column() where they are few enough"
            )
        return super().named(program, name, start)

    def certify(
        self, program: ColumnDesign, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[ColumnCertificate]:
        """Repaired; the bound from the multipliers of the rows over the prior, or in closed form."""
        certificate = certify_columns(program, matrix, multipliers, 0.0)
        return certified(certificate, known_columns(program, certificate))


def _many(program: ColumnDesign) -> str:
    return "very many" if program.space.count is None else f"{program.space.count:,}"
