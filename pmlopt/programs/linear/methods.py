"""The methods for linear designs, and the decision list that says which is tried first, and why."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp
import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs, through_cvxpy
from pmlopt.backends.outcome import Options, Outcome, Point
from pmlopt.backends.structured import simplex
from pmlopt.errors import InfeasibleError, MechanismError, SolverUnavailableError
from pmlopt.mechanism import as_mechanism, paired
from pmlopt.privacy.ratio_blocks import LEAST_ROOM
from pmlopt.programs.kind import Found, Kind, Method, MethodError, certified
from pmlopt.programs.linear import by_classes, letter_pairs, structured
from pmlopt.programs.linear.certificate import RESIDUAL, LinearCertificate
from pmlopt.programs.linear.certifying import certify_linear
from pmlopt.programs.linear.closed_form import KnownOptimum, better_form, known_optimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.linear.structured import task_of
from pmlopt.result import ClosedForm, Restart, WarmStart, mechanism_of, restart_of
from pmlopt.utility.linear import expectation

CLOSED_FORM = "closed-form"


@dataclass(frozen=True, eq=False)
class Start:
    """What a solver may start from.

    Attributes:
        matrix: (N, M) a mechanism, or None.
        restart: how the solve of a neighbour ended, if that is what was given.
        known: the closed form that is optimal here, if there is one.
    """

    matrix: FloatArray | None = None
    restart: Restart | None = None
    known: KnownOptimum | None = None

    @property
    def from_formula(self) -> bool:
        """Whether the matrix is that of the closed form."""
        return self.known is not None and self.matrix is self.known.matrix

    @property
    def useful(self) -> FloatArray | None:
        """The matrix, where the simplex gains by starting from it; a constant is too degenerate a vertex."""
        return None if self.from_formula and self.known and not self.known.is_start else self.matrix


@dataclass(frozen=True)
class LinearMethod(Method[LinearDesign, Start, LinearCertificate]):
    """One solver for linear designs: its name, the reason for it, and its extra settings."""

    name: str
    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def run(self, program: LinearDesign, options: Options, start: Start) -> Found[LinearCertificate]:
        """Solve, repair, certify; a point that breaks a person's own constraint is none."""
        outcome = self._solved(program, options, start)
        if outcome.state == "infeasible" and program.added:
            raise InfeasibleError(
                f"no mechanism satisfies the constraints ({self.name}: {outcome.message}); a design "
                f"alone is always feasible, so look at what was added: {', '.join(program.added)}"
            )
        if outcome.found is None:
            raise MethodError(outcome.message)
        clock = time.perf_counter()
        try:
            point = outcome.found
            certificate = certify_linear(program, point.matrix, point.multipliers, point.witness)
            gain = expectation(program.prior, program.centred, certificate.mechanism.matrix)
            form = better_form(program, certificate.gap, gain)
            if form is not None:
                certificate = certify_linear(program, form, outcome.found.multipliers)
        except MechanismError as cause:
            raise MethodError(str(cause)) from cause
        broken = [name for name in program.added if certificate.residuals[name] > RESIDUAL]
        if broken:
            raise MethodError(
                f"the repaired mechanism violates your constraint {broken[0]!r} by "
                f"{certificate.residuals[broken[0]]:.3g}"
            )
        return Found(
            certificate=certificate,
            finished=outcome.finished,
            message=outcome.message,
            iterations=outcome.iterations,
            warm_started=outcome.warm_started,
            compile_seconds=outcome.compile_seconds,
            solve_seconds=outcome.solve_seconds,
            certify_seconds=time.perf_counter() - clock,
            closed_form=_beside(start.known, certificate),
            arrays={"matrix": certificate.mechanism.matrix, **outcome.restart},
        )

    def _solved(self, program: LinearDesign, options: Options, start: Start) -> Outcome:
        if self.name == CLOSED_FORM:
            assert start.known is not None
            point = Point(start.known.matrix, start.known.multipliers)
            return Outcome("point", True, start.known.name, 0, True, 0.0, 0.0, point)
        if self.name == by_classes.NAME:
            assert program.classes is not None
            return by_classes.run(program, program.classes, options)
        if self.name == letter_pairs.NAME:
            pairs = letter_pairs.pairs_of(program)
            assert pairs is not None
            return letter_pairs.run(program, pairs, options)
        if self.name in (structured.NAME, "highs") and (task := task_of(program)) is not None:
            near = start.restart
            arrays = near.arrays if near is not None and near.solver == self.name else None
            if self.name == structured.NAME:
                return structured.run(program, task, options, arrays)
            if _banded(program):
                return simplex.run(task, options, start.useful, arrays)
        if self.name in highs.METHODS:
            warm = start.useful
            if warm is not None:
                program.assign(warm)
            outcome = highs.run(program.problem, self.name, options, warm is not None)
        else:
            outcome = through_cvxpy.run(program.problem, self.name.upper(), options, dict(self.settings))
        return replace(outcome, found=_point(program)) if outcome.state == "point" else outcome


def _point(program: LinearDesign) -> Point:
    """The mechanism that a solver left in the variables, and the multipliers of its rows over the prior."""
    duals = program.constraints["rows"].dual_value
    multipliers = None if duals is None else np.asarray(duals) / program.prior.pmf
    pairs = letter_pairs.pairs_of(program)  # of many, what a bound costs is a linear program for each output
    witness = None if pairs is None else letter_pairs.witness_of(program, pairs)
    return Point(np.asarray(program.mechanism.value), multipliers, witness=witness)


def _beside(known: KnownOptimum | None, certificate: LinearCertificate) -> ClosedForm | None:
    return None if known is None else ClosedForm(known.name, known.value, certificate.value - known.value)


@dataclass(frozen=True)
class Facts:
    """What the decision list sees of a program.

    Attributes:
        linear: whether it is a linear program.
        banded: whether it is one whose columns are in bands, without constraints of a person's own.
        blocked: whether it is one in column blocks, of which bands are the simplest, with at most N linear
            constraints beside.
        paired: whether it is one under a list of ratio bounds that makes no blocks, and nothing else.
        entries: N M.
        letter_pairs: whether these are many bounds on pairs of letters.
        known: whether a closed form is known to be optimal.
        vertex: whether it is a vertex from which the simplex gains.
        given: whether a person gave a mechanism to start from.
        classes: whether letters and outputs fall into few classes that look alike.
    """

    linear: bool
    banded: bool
    blocked: bool
    paired: bool
    entries: int
    letter_pairs: bool
    known: bool
    vertex: bool
    given: bool
    classes: bool


@dataclass(frozen=True)
class Rule:
    """One line of the decision list."""

    applies: Callable[[Facts], bool]
    method: LinearMethod


SIMPLEX_ENTRIES = 900
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""

MOST_TRIED = 2
"""Methods that are tried on many bounds on pairs of letters: each may take all of a time limit."""

SLOW_ENTRIES = 40_000
"""From here on the simplex takes minutes, even from a vertex nearby."""

DECISIONS: tuple[Rule, ...] = (
    Rule(
        lambda facts: facts.letter_pairs and not (facts.known or facts.given),
        LinearMethod(letter_pairs.NAME, "many bounds on pairs of letters: an interior point by columns"),
    ),
    Rule(
        lambda facts: facts.known and (facts.entries > SLOW_ENTRIES or facts.paired),
        LinearMethod(CLOSED_FORM, "large or of many pairs, and a closed form is optimal: nothing to solve"),
    ),
    Rule(
        lambda facts: facts.linear and facts.vertex and facts.entries <= SLOW_ENTRIES,
        LinearMethod("highs", "LP with a closed form that is optimal: HiGHS simplex, warm"),
    ),
    Rule(
        lambda facts: (
            facts.linear
            and facts.given
            and facts.entries <= (SIMPLEX_ENTRIES if facts.blocked else SLOW_ENTRIES)
        ),
        LinearMethod("highs", "LP with a mechanism to start from: HiGHS simplex, warm"),
    ),
    Rule(
        lambda facts: facts.linear and not (facts.vertex or facts.given) and facts.entries <= SIMPLEX_ENTRIES,
        LinearMethod("highs", "small LP: HiGHS dual simplex ends at a vertex"),
    ),
    Rule(
        lambda facts: facts.classes and not (facts.vertex or facts.given),
        LinearMethod(
            by_classes.NAME,
            "letters and outputs fall into few classes that look alike: LP with a variable for each class",
        ),
    ),
    Rule(
        lambda facts: facts.blocked,
        LinearMethod("structured", "few numbers couple the columns: structured interior point"),
    ),
    Rule(
        lambda facts: facts.linear,
        LinearMethod(
            "clarabel",
            "LP, without blocks or not solved by them: Clarabel's interior point, without "
            "refinement, which the certificate makes up for",
            {"iterative_refinement_enable": False},
        ),
    ),
    Rule(
        lambda facts: not facts.linear,
        LinearMethod("clarabel", "cones: Clarabel's interior point"),
    ),
    Rule(
        lambda facts: True,
        LinearMethod(
            "clarabel",
            "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
            {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12},
        ),
    ),
    Rule(
        lambda facts: facts.linear and facts.entries <= SLOW_ENTRIES,
        LinearMethod("highs", "LP: HiGHS dual simplex ends at a vertex, however long it takes"),
    ),
    Rule(
        lambda facts: facts.linear,
        LinearMethod("highs-ipm", "large LP: HiGHS interior point without crossover"),
    ),
    Rule(
        lambda facts: True,
        LinearMethod("scs", "last resort: SCS, a first-order method"),
    ),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py and benchmarks/large.py."""


class LinearKind(Kind[LinearDesign, Start, LinearCertificate]):
    """Designs with an expected gain or loss.

    The gap of a design must close, unless constraints were added whose part in the bound is not sharp.
    """

    names = (CLOSED_FORM, letter_pairs.NAME, by_classes.NAME, structured.NAME, *highs.METHODS)
    gap_is_an_answer = False

    def start(self, program: LinearDesign, warm_start: WarmStart) -> Start:
        """The matrix that was given, or the closed form that is optimal here."""
        known = known_optimum(program)
        if warm_start is False:
            return Start(known=known)
        if warm_start is None:
            return Start(None if known is None else known.matrix, known=known)
        restart = restart_of(warm_start)
        if isinstance(warm_start, Restart):
            matrix = warm_start.matrix
            if matrix is None or matrix.shape != program.table.shape:
                return Start(None if known is None else known.matrix, known=known)
            return Start(matrix, restart, known)
        given = as_mechanism(mechanism_of(warm_start))
        program.check_shape(given.matrix)
        return Start(paired(program.prior, given)[1].matrix, restart, known)

    def automatic(self, program: LinearDesign, start: Start) -> Sequence[LinearMethod]:
        """The lines of the decision list that apply."""
        facts = _facts(program, start)
        found = [rule.method for rule in DECISIONS if rule.applies(facts)]
        return found[:MOST_TRIED] if facts.letter_pairs else found

    def named(self, program: LinearDesign, name: str, start: Start) -> LinearMethod:
        """Any solver of pmlopt or of cvxpy that can take the program."""
        method = LinearMethod(name, "asked for by name")
        if name == CLOSED_FORM:
            if start.known is None:
                raise SolverUnavailableError(
                    f"no closed form is known to be optimal for {program!r}: use auto"
                )
        elif name in (by_classes.NAME, letter_pairs.NAME):
            looked = program.classes if name == by_classes.NAME else letter_pairs.pairs_of(program)
            if looked is None:
                what = (
                    "few classes of letters and outputs that look alike"
                    if name == by_classes.NAME
                    else "many bounds on pairs of letters and nothing else"
                )
                raise SolverUnavailableError(f"{name} needs {what}, and {program!r} has none: use auto")
        elif name == structured.NAME:
            if task_of(program) is None:
                raise SolverUnavailableError(
                    f"{name} solves designs with an expected gain or loss, under a bound above 0 nats and "
                    f"with at most {program.prior.size} linear constraints of your own: use auto"
                )
        elif name in highs.METHODS:
            if not _banded(program) and not program.problem.is_lp():
                raise SolverUnavailableError(
                    f"{name} solves linear programs, and this one is not: use clarabel"
                )
        elif name not in (installed := sorted(entry.lower() for entry in cp.installed_solvers())):
            raise SolverUnavailableError(
                f"{name!r} does not solve {program!r}, or is not installed; there are: auto, "
                f"{', '.join(dict.fromkeys([structured.NAME, *highs.METHODS, *installed]))}"
            )
        return method

    def others(self, program: LinearDesign) -> Sequence[LinearMethod]:
        """The solvers of cvxpy that are installed."""
        own = {*highs.METHODS, "clarabel", "scs"}
        names = sorted({entry.lower() for entry in cp.installed_solvers()} - own)
        return [LinearMethod(name, "asked for by name, through cvxpy") for name in names]

    def believes(self, program: LinearDesign, found: Found[LinearCertificate]) -> bool:
        """Where constraints were added, the bound is not sharp, or floats have no room within the bound."""
        open_gap = bool(program.added) or not program.privacy.sharp or _without_room(program)
        return open_gap and found.finished

    def certify(
        self, program: LinearDesign, matrix: FloatArray, multipliers: FloatArray | None
    ) -> Found[LinearCertificate]:
        """Repaired; with the multipliers of the rows over the prior, or a few that need no solver."""
        certificate = certify_linear(program, matrix, multipliers)
        known = known_optimum(program)
        return certified(certificate, _beside(known, certificate))


def _facts(program: LinearDesign, start: Start) -> Facts:
    banded = _banded(program)
    return Facts(
        linear=banded or program.problem.is_lp(),
        banded=banded,
        blocked=task_of(program) is not None,
        paired=program.privacy.has_ratios and program.block is None and not program.added,
        entries=program.table.size,
        letter_pairs=letter_pairs.pairs_of(program) is not None,
        known=start.from_formula,
        vertex=start.from_formula and start.useful is not None,
        given=start.matrix is not None and not start.from_formula,
        classes=program.classes is not None,
    )


def _banded(program: LinearDesign) -> bool:
    return not program.added and program.block is not None and program.block.banded


def _without_room(program: LinearDesign) -> bool:
    """Whether a constant hardly meets a ratio bound, such as one of 0 nats about a secret.

    Mechanisms then meet pairs with equality, which few floats do in exact arithmetic: what the repair must
    mix in opens a gap that no other solver closes.
    """
    ratios = program.privacy.ratios(program.prior.pmf) if program.block is None else None
    return ratios is not None and ratios.room < LEAST_ROOM
