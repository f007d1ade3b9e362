"""Which solver, and why: the decision list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cvxpy as cp

from pmlopt.builders import ColumnDesign, Design
from pmlopt.errors import SolverUnavailableError
from pmlopt.solvers import highs, through_cvxpy
from pmlopt.solvers.generation import generate
from pmlopt.solvers.outcome import Options, Outcome
from pmlopt.solvers.points import point_of


@dataclass(frozen=True)
class Route:
    """One way to solve a program: the solver's name, the reason for it, and its extra settings."""

    solver: str
    reason: str
    settings: dict[str, Any] = field(default_factory=dict)

    def run(self, program: Design, options: Options, warm: bool) -> Outcome:
        """Run the solver; `warm` says that the program holds a start, in its variables or its columns."""
        if self.solver == COLUMN_GENERATION:
            assert isinstance(program, ColumnDesign)
            return generate(program, options, warm)
        if self.solver in highs.METHODS:
            outcome = highs.run(program.problem, self.solver, options, warm)
        else:
            outcome = through_cvxpy.run(program.problem, self.solver.upper(), options, self.settings)
        return replace(outcome, found=point_of(program)) if outcome.state == "point" else outcome


COLUMN_GENERATION = "column-generation"


@dataclass(frozen=True)
class Rule:
    """One line of the decision list."""

    applies: Callable[[bool, int, bool], bool]
    route: Route


SIMPLEX_ENTRIES = 1_600
"""Matrices of up to this many entries go to the simplex first: fast enough there, and exact."""

DECISIONS: tuple[Rule, ...] = (
    Rule(
        lambda linear, entries, warm: linear and warm,
        Route("highs", "LP with a mechanism to start from: HiGHS simplex, warm"),
    ),
    Rule(
        lambda linear, entries, warm: linear and not warm and entries <= SIMPLEX_ENTRIES,
        Route("highs", "small LP: HiGHS dual simplex ends at a vertex"),
    ),
    Rule(
        lambda linear, entries, warm: linear,
        Route(
            "clarabel",
            "LP: Clarabel's interior point, without refinement, which the certificate makes up for",
            {"iterative_refinement_enable": False},
        ),
    ),
    Rule(
        lambda linear, entries, warm: not linear,
        Route("clarabel", "cones: Clarabel's interior point"),
    ),
    Rule(
        lambda linear, entries, warm: True,
        Route(
            "clarabel",
            "Clarabel's interior point, to 1e-12: where bounds are curved, multipliers must be sharp",
            {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12},
        ),
    ),
    Rule(
        lambda linear, entries, warm: linear and entries <= 40_000,
        Route("highs", "LP: HiGHS dual simplex ends at a vertex, however long it takes"),
    ),
    Rule(
        lambda linear, entries, warm: linear,
        Route("highs-ipm", "large LP: HiGHS interior point without crossover"),
    ),
    Rule(
        lambda linear, entries, warm: True,
        Route("scs", "last resort: SCS, a first-order method"),
    ),
)
"""Tried from top to bottom until one reaches a certified gap within tolerance; measured by
benchmarks/solvers.py. A rule sees: is it an LP, how many entries the matrix has, is there a start."""


def routes(program: Design, solver: str, warm: bool) -> list[Route]:
    """The routes to try, in order.

    Args:
        program: what is to be solved.
        solver: "auto" for the decision list; "highs" (simplex), "highs-ipm", or the name of any
            solver that cvxpy has installed, to use that one alone.
        warm: whether there is a mechanism to start from.

    Raises:
        SolverUnavailableError: the name is unknown, not installed, or cannot take the program.
    """
    linear = program.problem.is_lp()
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
    if name == COLUMN_GENERATION:
        raise SolverUnavailableError(
            f"{name} is for sub-convex utilities such as mutual information: use auto"
        )
    if name == "auto":
        entries = program.mechanism.size
        return [rule.route for rule in DECISIONS if rule.applies(linear, entries, warm)]
    installed = [entry.lower() for entry in cp.installed_solvers()]
    if name in highs.METHODS:
        if not linear:
            raise SolverUnavailableError(f"{name} solves linear programs, and this one is not: use clarabel")
    elif name not in installed:
        known = ", ".join(["auto", *sorted({*highs.METHODS, *installed})])
        raise SolverUnavailableError(f"the solver {solver!r} is not installed; there are: {known}")
    return [Route(name, "asked for by name")]


def _many(program: ColumnDesign) -> str:
    return "very many" if program.space.count is None else f"{program.space.count:,}"
