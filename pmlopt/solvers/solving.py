"""Solve a program: choose, run, certify; go on to the next solver where the proof fails."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pmlopt.builders import Program
from pmlopt.certificate import Certificate, certify
from pmlopt.checks import real
from pmlopt.errors import InfeasibleError, InputError, MechanismError, SolverError
from pmlopt.mechanism import MechanismLike, as_mechanism
from pmlopt.result import ClosedForm, Result, Status, Timings
from pmlopt.solvers.dispatch import Route, routes
from pmlopt.solvers.known import KnownOptimum, gain_range, known_optimum
from pmlopt.solvers.outcome import Options, Outcome

RESIDUAL = 1e-6
"""How far a constraint of a person's own may be violated by the repaired mechanism."""


def solve(
    program: Program,
    solver: str = "auto",
    warm_start: MechanismLike | Result | Literal[False] | None = None,
    *,
    time_limit: float | None = None,
    tolerance: float = 1e-7,
) -> Result:
    """Solve a design problem and prove the answer.

    Solvers are tried in the order of the decision list (`pmlopt.solvers.dispatch.DECISIONS`) until
    the certificate closes the gap. The mechanism returned is repaired: it satisfies the privacy
    requirement in exact arithmetic. Value, level and gap are recomputed from it. Where constraints were
    added whose part in the bound is not sharp (cones, kinks such as a sum of absolute values, variables
    without bounds), a solver that finished is believed with the status UNPROVED and the gap that is left.

    Args:
        program: from `design`, with constraints of your own if wanted.
        solver: "auto", "highs", "highs-ipm", or any solver that cvxpy has installed, such as
            "clarabel" or "scs"; a named solver is the only one tried.
        warm_start: a mechanism (or a Result) to start from; HiGHS's simplex uses it. Left out, a
            closed form that is optimal is found and used; False starts cold.
        time_limit: seconds for each solver.
        tolerance: the largest certified gap to accept, as a share of the range of the gain.

    Raises:
        InfeasibleError: the constraints that were added to the program allow no mechanism.
        SolverError: no solver reached the tolerance; `.result` carries the best certified Result,
            whose mechanism satisfies the requirement.
        SolverUnavailableError: the solver's name is unknown.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, design
        >>> result = solve(design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> result.status.value, result.certificate.verify_exact(), result.closed_form.name
        ('optimal', True, 'binary')
        >>> bool(result.level <= 0.2 and result.gap < 1e-9)
        True
    """
    begin = time.perf_counter()
    options = _options(time_limit, tolerance)
    closed = known_optimum(program)
    start = _start(warm_start, closed)
    best: Result | None = None
    unproved: Result | None = None
    attempts: list[str] = []
    for route in routes(program, solver, start is not None):
        if start is not None:
            program.assign(start)
        outcome = route.run(program.problem, options, start is not None)
        if outcome.state == "infeasible" and program.added:
            raise InfeasibleError(
                f"no mechanism satisfies the constraints ({route.solver}: {outcome.message}); a design "
                f"alone is always feasible, so look at what was added: {', '.join(program.added)}"
            )
        if outcome.state != "point":
            attempts.append(f"{route.solver}: {outcome.message}")
            continue
        certified = _certified(program, route, attempts)
        if certified is None:
            continue
        result = _result(program, certified, route, outcome, attempts, closed, begin, tolerance)
        if result.status is Status.OPTIMAL:
            return result
        attempts.append(
            f"{route.solver}: {outcome.message}, certified gap {result.gap:.3g} above the tolerance "
            f"{tolerance * gain_range(program):.3g}"
        )
        if best is None or result.gap < best.gap:
            best = result
        if program.added and outcome.finished and (unproved is None or _better(result, unproved, program)):
            unproved = replace(result, status=Status.UNPROVED)
    if unproved is not None:
        return unproved
    raise SolverError(
        "no solver reached the tolerance: "
        + "; ".join(attempts)
        + ". Allow more time or a larger tolerance; .result holds the best mechanism in hand"
        if best is not None
        else "no solver could solve it: " + "; ".join(attempts),
        best,
    )


def _better(left: Result, right: Result, program: Program) -> bool:
    """Whether the left one's utility is better by more than a solver's noise, or its gap smaller."""
    ahead = (left.value - right.value) * (1 if program.utility.maximised else -1)
    return ahead > RESIDUAL or (ahead > -RESIDUAL and left.gap < right.gap)


@dataclass(frozen=True)
class _Certified:
    certificate: Certificate
    seconds: float


def _options(time_limit: float | None, tolerance: float) -> Options:
    accuracy = real(tolerance, "the tolerance", InputError)
    if accuracy <= 0:
        raise InputError(f"the tolerance must be positive, not {accuracy}")
    if time_limit is None:
        return Options(None, accuracy)
    limit = real(time_limit, "the time limit", InputError)
    if limit <= 0:
        raise InputError(f"the time limit must be a positive number of seconds, not {limit}")
    return Options(limit, accuracy)


def _start(
    warm_start: MechanismLike | Result | Literal[False] | None, closed: KnownOptimum | None
) -> MechanismLike | None:
    if warm_start is False:
        return None
    if isinstance(warm_start, Result):
        return warm_start.mechanism
    if warm_start is not None:
        return as_mechanism(warm_start)
    return closed.matrix if closed is not None and closed.is_start else None


def _certified(program: Program, route: Route, attempts: list[str]) -> _Certified | None:
    clock = time.perf_counter()
    multipliers = program.constraints["rows"].dual_value
    try:
        certificate = certify(
            program,
            np.asarray(program.mechanism.value),
            None if multipliers is None else np.asarray(multipliers) / program.prior.pmf,
        )
    except MechanismError as cause:
        attempts.append(f"{route.solver}: {cause}")
        return None
    for name in program.added:
        if certificate.residuals[name] > RESIDUAL:
            attempts.append(
                f"{route.solver}: the repaired mechanism violates your constraint {name!r} by "
                f"{certificate.residuals[name]:.3g}"
            )
            return None
    return _Certified(certificate, time.perf_counter() - clock)


def _result(
    program: Program,
    certified: _Certified,
    route: Route,
    outcome: Outcome,
    attempts: list[str],
    closed: KnownOptimum | None,
    begin: float,
    tolerance: float,
) -> Result:
    certificate = certified.certificate
    proved = certificate.gap <= tolerance * gain_range(program)
    return Result(
        status=Status.OPTIMAL if proved else Status.STOPPED,
        certificate=certificate,
        solver=route.solver,
        reason=route.reason,
        attempts=tuple(attempts),
        iterations=outcome.iterations,
        warm_started=outcome.warm_started,
        timings=Timings(
            compile=outcome.compile_seconds,
            solve=outcome.solve_seconds,
            certify=certified.seconds,
            total=time.perf_counter() - begin,
        ),
        closed_form=None
        if closed is None
        else ClosedForm(closed.name, closed.value, certificate.value - closed.value),
    )
