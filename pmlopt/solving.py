"""Solve a program: choose, run, certify; go on to the next solver where the proof fails."""

from __future__ import annotations

import time

from pmlopt.backends.outcome import Options, Outcome, options_of
from pmlopt.dispatch import Route, Start, routes
from pmlopt.errors import InfeasibleError, MechanismError, ProgramError, SolverError
from pmlopt.mechanism import paired
from pmlopt.program import Design, Program
from pmlopt.programs.certify import certify
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.least_leakage.solving import solve_least
from pmlopt.programs.linear.closed_form import KnownOptimum, known_columns, known_optimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.subconvex.program import ColumnDesign
from pmlopt.result import ClosedForm, DesignResult, Restart, Status, Timings, WarmStart, mechanism_of

RESIDUAL = 1e-6
"""How far a constraint of a person's own may be violated by the repaired mechanism."""


def solve(
    program: Program,
    solver: str = "auto",
    warm_start: WarmStart = None,
    *,
    time_limit: float | None = None,
    tolerance: float = 1e-7,
) -> DesignResult:
    """Solve a design problem and prove the answer.

    Solvers are tried in the order of the decision list (`pmlopt.dispatch.DECISIONS`) until
    the certificate closes the gap. The mechanism returned is repaired: it satisfies the privacy
    requirement in exact arithmetic. Value, level and gap are recomputed from it. Where constraints were
    added whose part in the bound is not sharp (cones, kinks such as a sum of absolute values, variables
    without bounds), a solver that finished is believed with the status UNPROVED and the gap that is left.
    A sub-convex utility with many extreme columns is solved by column generation, which returns the mechanism
    in hand whenever it ends: OPTIMAL, UNPROVED, or at the time limit STOPPED, with its bound and its gap.
    A least leakage is searched from both ends, and is returned in the same way; its value is a level.

    Args:
        program: from `design`, with constraints of your own if wanted, or from `worst_case_utility` or
            `least_leakage`.
        solver: "auto", "highs", "highs-ipm", "column-generation" (sub-convex utilities), or any solver that
            cvxpy has installed, such as "clarabel" or "scs"; a named solver is the only one tried.
        warm_start: a mechanism, a Result, or the `restart` of one to start from; HiGHS's simplex uses it, and
            the columns that column generation starts with. Left out, a closed form that is optimal is found
            and used; False starts cold.
        time_limit: seconds for each solver.
        tolerance: the largest certified gap to accept, as a share of the most that the choice of outputs can
            change the expected utility; of a least leakage, in nats. Added constraints may be violated by
            1e-6 of their unit.

    Raises:
        InfeasibleError: the constraints that were added to the program allow no mechanism.
        SolverError: no solver reached the tolerance; `.result` carries the best certified Result,
            whose mechanism satisfies the requirement. Not raised for the gap of a sub-convex utility.
        SolverUnavailableError: the solver's name is unknown.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, design
        >>> result = solve(design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> result.status.value, result.certificate.verify_exact(), result.closed_form.name
        ('optimal', True, 'binary')
        >>> bool(result.level <= 0.2 and result.gap < 1e-9)
        True
    """
    if not isinstance(program, Program) or not isinstance(solver, str):
        raise ProgramError(
            f"solve takes a Program from design(...) and the name of a solver, not {program!r:.60} and "
            f"{solver!r:.60}"
        )
    options = options_of(time_limit, tolerance)
    if isinstance(program, LeastLeakage):
        return solve_least(program, solver, warm_start, options)
    if not isinstance(program, Design):
        raise ProgramError(f"solve knows no way to solve a {type(program).__name__}")
    search = _Search(program, options, warm_start)
    for route in routes(program, solver, search.start):
        result = search.attempt(route)
        if result is not None and result.status is Status.OPTIMAL:
            return result
    return search.best()


class _Search:
    """One call of `solve`: the routes tried so far, and what they found."""

    def __init__(
        self,
        program: Design,
        options: Options,
        warm_start: WarmStart,
    ) -> None:
        self.begin = time.perf_counter()
        self.program, self.options = program, options
        self.allowed = max(options.tolerance * program.range, program.rounding)
        self.closed = known_optimum(program) if isinstance(program, LinearDesign) else None
        self.start = _start(program, warm_start, self.closed)
        if isinstance(program, ColumnDesign) and self.start is not None:
            self.program = program.with_mechanism(self.start.matrix)
        self.attempts: list[str] = []
        self.results: list[DesignResult] = []

    def attempt(self, route: Route) -> DesignResult | None:
        """Run one solver and certify what it left; None, and a line in `attempts`, if that is nothing."""
        program = self.program
        if isinstance(program, LinearDesign) and self.start is not None:
            program.assign(self.start.matrix)
        outcome = route.run(program, self.options, self.start)
        if outcome.state == "infeasible" and program.added:
            raise InfeasibleError(
                f"no mechanism satisfies the constraints ({route.solver}: {outcome.message}); a design "
                f"alone is always feasible, so look at what was added: {', '.join(program.added)}"
            )
        if outcome.found is None:
            self.attempts.append(f"{route.solver}: {outcome.message}")
            return None
        clock = time.perf_counter()
        try:
            found = outcome.found
            certificate = certify(program, found.matrix, found.multipliers, self.allowed, found.proved)
        except MechanismError as cause:
            self.attempts.append(f"{route.solver}: {cause}")
            return None
        broken = [name for name in program.added if certificate.residuals[name] > RESIDUAL]
        if broken:
            self.attempts.append(
                f"{route.solver}: the repaired mechanism violates your constraint {broken[0]!r} by "
                f"{certificate.residuals[broken[0]]:.3g}"
            )
            return None
        result = self._result(route, outcome, certificate, time.perf_counter() - clock)
        if result.status is not Status.OPTIMAL:
            self.results.append(result)
            self.attempts.append(
                f"{route.solver}: {outcome.message}, certified gap {result.gap:.3g} above the tolerance "
                f"{self.allowed:.3g}"
            )
        return result

    def best(self) -> DesignResult:
        """The best result that was not proved optimal, if a solver finished with it; else an error."""
        unproved = [result for result in self.results if result.status is Status.UNPROVED]
        if unproved:
            sign = 1 if self.program.utility.maximised else -1
            ahead = max(sign * result.value for result in unproved) - RESIDUAL
            chosen = min((r for r in unproved if sign * r.value >= ahead), key=lambda r: r.gap)
            if isinstance(self.program, LinearDesign):
                self.program.assign(chosen.mechanism)
            return chosen
        if isinstance(self.program, ColumnDesign) and self.results:
            return min(self.results, key=lambda result: result.gap)
        tried = "; ".join(self.attempts)
        if not self.results:
            raise SolverError(f"no solver could solve it: {tried}")
        raise SolverError(
            f"no solver reached the tolerance: {tried}. Allow more time or a larger tolerance",
            min(self.results, key=lambda result: result.gap),
        )

    def _result(
        self, route: Route, outcome: Outcome, certificate: DesignCertificate, certify_seconds: float
    ) -> DesignResult:
        closed = self.closed
        if isinstance(self.program, ColumnDesign):
            closed = known_columns(self.program, certificate.bound)
        if certificate.gap <= self.allowed:
            status = Status.OPTIMAL
        else:
            loose = bool(self.program.added) or isinstance(self.program, ColumnDesign)
            status = Status.UNPROVED if loose and outcome.finished else Status.STOPPED
        return DesignResult(
            status=status,
            certificate=certificate,
            solver=route.solver,
            reason=route.reason,
            attempts=tuple(self.attempts),
            iterations=outcome.iterations,
            warm_started=outcome.warm_started,
            timings=Timings(
                compile=outcome.compile_seconds,
                solve=outcome.solve_seconds,
                certify=certify_seconds,
                total=time.perf_counter() - self.begin,
            ),
            closed_form=None
            if closed is None
            else ClosedForm(closed.name, closed.value, certificate.value - closed.value),
            restart=Restart(route.solver, {"matrix": certificate.mechanism.matrix, **outcome.restart}),
        )


def _start(program: Design, warm_start: WarmStart, closed: KnownOptimum | None) -> Start | None:
    if warm_start is False:
        return None
    if warm_start is None:
        return None if closed is None else Start(closed.matrix, known=closed)
    given = mechanism_of(warm_start)
    if isinstance(program, LinearDesign):
        program.assign(given)  # complains of the shape
    restart = warm_start.restart if isinstance(warm_start, DesignResult) else warm_start
    return Start(paired(program.prior, given)[1].matrix, restart if isinstance(restart, Restart) else None)
