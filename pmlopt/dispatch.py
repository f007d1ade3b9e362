"""Which solver, and why: the decision list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp

from pmlopt.arrays import FloatArray
from pmlopt.backends import highs, through_cvxpy
from pmlopt.backends.outcome import Options, Outcome, Point
from pmlopt.backends.structured import simplex as direct
from pmlopt.backends.structured.band_program import Task
from pmlopt.errors import SolverUnavailableError
from pmlopt.program import Design
from pmlopt.programs.least_leakage.solving import LEVEL_SEARCH
from pmlopt.programs.linear import structured
from pmlopt.programs.linear.closed_form import KnownOptimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.linear.structured import task_of
from pmlopt.programs.points import point_of
from pmlopt.programs.subconvex.column_generation import generate
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.result import Restart


@dataclass(frozen=True, eq=False)
class Start:
    """What a solver may start from.

    Attributes:
        matrix: (N, M) a mechanism.
        restart: how the solve of a neighbour ended, if that is what was given.
        known: the closed form, where the mechanism is one that is optimal here.
    """

    matrix: FloatArray
    restart: Restart | None = None
    known: KnownOptimum | None = None

    @property
    def useful(self) -> bool:
        """Whether a solver gains by starting from it."""
        return self.known is None or self.known.is_start


@dataclass(frozen=True)
class Route:
    """One way to solve a program: the solver's name, the reason for it, and its extra settings."""

    solver: str
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, program: Design, options: Options, start: Start | None) -> Outcome:
        """Run the solver; where there is a start, the program's variables or columns hold it too."""
        if self.solver == COLUMN_GENERATION:
            assert isinstance(program, ColumnDesign)
            return generate(program, options, start is not None)
        if self.solver == CLOSED_FORM:
            assert start is not None
            assert start.known is not None
            point = Point(start.matrix, start.known.multipliers)
            return Outcome("point", True, start.known.name, 0, True, 0.0, 0.0, point)
        if self.solver in (structured.NAME, "highs") and (task := task_of(program)) is not None:
            return self._banded(program, task, options, start)
        if self.solver in highs.METHODS:
            outcome = highs.run(program.problem, self.solver, options, start is not None and start.useful)
        else:
            outcome = through_cvxpy.run(program.problem, self.solver.upper(), options, self.settings)
        return replace(outcome, found=point_of(program)) if outcome.state == "point" else outcome

    def _banded(self, program: Design, task: Task, options: Options, start: Start | None) -> Outcome:
        arrays = None
        if start is not None and start.restart is not None and start.restart.solver == self.solver:
            arrays = start.restart.arrays
        if self.solver == structured.NAME:
            assert isinstance(program, LinearDesign)
            return structured.run(program, task, options, arrays)
        matrix = None if start is None or not start.useful else start.matrix
        return direct.run(task, options, matrix, arrays)


COLUMN_GENERATION, CLOSED_FORM = "column-generation", "closed-form"


@dataclass(frozen=True)
class Facts:
    """What the decision list sees of a program.

    Attributes:
        linear: whether it is a linear program.
        banded: whether it is one whose columns are in bands, without constraints of a person's own.
        entries: N M.
        known: whether a closed form is known to be optimal.
        vertex: whether it is a vertex from which the simplex gains.
        given: whether a person gave a mechanism to start from.
    """

    linear: bool
    banded: bool
    entries: int
    known: bool
    vertex: bool
    given: bool


@dataclass(frozen=True)
class Rule:
    """One line of the decision list."""

    applies: Callable[[Facts], bool]
    route: Route


SIMPLEX_ENTRIES = 900
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""

SLOW_ENTRIES = 40_000
"""From here on the simplex takes minutes, even from a vertex nearby."""

DECISIONS: tuple[Rule, ...] = (
    Rule(
        lambda facts: facts.known and facts.entries > SLOW_ENTRIES,
        Route(CLOSED_FORM, "large, and a closed form is optimal: nothing to solve"),
    ),
    Rule(
        lambda facts: facts.linear and facts.vertex and facts.entries <= SLOW_ENTRIES,
        Route("highs", "LP with a closed form that is optimal: HiGHS simplex, warm"),
    ),
    Rule(
        lambda facts: (
            facts.linear
            and facts.given
            and facts.entries <= (SIMPLEX_ENTRIES if facts.banded else SLOW_ENTRIES)
        ),
        Route("highs", "LP with a mechanism to start from: HiGHS simplex, warm"),
    ),
    Rule(
        lambda facts: facts.linear and not (facts.vertex or facts.given) and facts.entries <= SIMPLEX_ENTRIES,
        Route("highs", "small LP: HiGHS dual simplex ends at a vertex"),
    ),
    Rule(
        lambda facts: facts.banded,
        Route("structured", "the bound is on each column by itself: structured interior point"),
    ),
    Rule(
        lambda facts: facts.linear,
        Route(
            "clarabel",
            "LP, without a band for each column or not solved by them: Clarabel's interior point, without "
            "refinement, which the certificate makes up for",
            {"iterative_refinement_enable": False},
        ),
    ),
    Rule(
        lambda facts: not facts.linear,
        Route("clarabel", "cones: Clarabel's interior point"),
    ),
    Rule(
        lambda facts: True,
        Route(
            "clarabel",
            "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
            {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12},
        ),
    ),
    Rule(
        lambda facts: facts.linear and facts.entries <= SLOW_ENTRIES,
        Route("highs", "LP: HiGHS dual simplex ends at a vertex, however long it takes"),
    ),
    Rule(
        lambda facts: facts.linear,
        Route("highs-ipm", "large LP: HiGHS interior point without crossover"),
    ),
    Rule(
        lambda facts: True,
        Route("scs", "last resort: SCS, a first-order method"),
    ),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py and benchmarks/large.py."""


def routes(program: Design, solver: str, start: Start | None) -> list[Route]:
    """The routes to try, in order.

    Args:
        program: what is to be solved.
        solver: "auto" for the decision list; "highs" (simplex), "highs-ipm", "structured", or the name of
            any solver that cvxpy has installed, to use that one alone.
        start: the mechanism to start from, if there is one.

    Raises:
        SolverUnavailableError: the name is unknown, not installed, or cannot take the program.
    """
    name = solver.lower()
    if isinstance(program, ColumnDesign) and (name == COLUMN_GENERATION or not program.complete):
        if name not in ("auto", COLUMN_GENERATION):
            raise SolverUnavailableError(
                f"the program declares {len(program.worths)} of its extreme columns, and {solver} cannot "
                "generate the others: use auto, or program.with_every_column() where they are few enough"
            )
        reason = f"{_many(program)} extreme columns: generated as they are needed"
        return [Route(COLUMN_GENERATION, reason)]
    if name == "auto" and isinstance(program, ColumnDesign):
        return [
            Route("highs", "all extreme columns are declared: HiGHS simplex ends at a vertex"),
            Route(COLUMN_GENERATION, "the simplex did not end: columns as they are needed"),
        ]
    if name == "auto":
        facts = _facts(program, start)
        return [rule.route for rule in DECISIONS if rule.applies(facts)]
    _check_name(name, program)
    return [Route(name, "asked for by name")]


def check_name(name: str) -> None:
    """Complain of a name that no solver has here.

    Raises:
        SolverUnavailableError: the message lists those that there are.
    """
    own = {structured.NAME, *highs.METHODS, COLUMN_GENERATION, LEVEL_SEARCH}
    known = ["auto", *sorted(own | {entry.lower() for entry in cp.installed_solvers()})]
    if not isinstance(name, str) or name.lower() not in known:
        raise SolverUnavailableError(f"the solver {name!r} is not installed; there are: {', '.join(known)}")


def _facts(program: Design, start: Start | None) -> Facts:
    banded = _banded(program)
    known = None if start is None else start.known
    return Facts(
        linear=banded or program.problem.is_lp(),
        banded=banded,
        entries=program.table.size if isinstance(program, LinearDesign) else program.mechanism.size,
        known=known is not None,
        vertex=known is not None and known.is_start,
        given=start is not None and known is None,
    )


def _banded(program: Design) -> bool:
    return isinstance(program, LinearDesign) and program.band is not None


def _check_name(name: str, program: Design) -> None:
    """Complain of a solver that is not there, or cannot take the program."""
    if name == COLUMN_GENERATION:
        raise SolverUnavailableError(
            f"{name} is for sub-convex utilities such as mutual information: use auto"
        )
    if name == LEVEL_SEARCH:
        raise SolverUnavailableError(f"{name} is for least leakages: use auto")
    if name == structured.NAME:
        if not _banded(program):
            raise SolverUnavailableError(
                f"{name} solves designs with an expected gain or loss, under a bound above 0 nats on each "
                "column by itself and without constraints of your own: use auto"
            )
        return
    if name in highs.METHODS:
        if not _banded(program) and not program.problem.is_lp():
            raise SolverUnavailableError(f"{name} solves linear programs, and this one is not: use clarabel")
        return
    check_name(name)


def _many(program: ColumnDesign) -> str:
    return "very many" if program.space.count is None else f"{program.space.count:,}"
