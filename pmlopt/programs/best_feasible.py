"""The answer of a solve that proved no optimum: the best feasible mechanism, with the best bound."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from pmlopt.errors import MechanismError, SolverError
from pmlopt.programs.certificate import C_co, Status
from pmlopt.programs.program import (
    FalseCertificateError,
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    Program,
    describe_failure,
    has_foreign_parts,
)
from pmlopt.programs.result import Result, make_result
from pmlopt.solvers.solver_result import Deadline

FIRST_FEASIBLE = "first-feasible"
"""What a result names as its solver where a formula gave the mechanism, since no solver had a better one."""


@dataclass
class MethodAttempts(Generic[C_co]):
    """A log of the methods that one solve tried without a proof of optimality, with how each ended.

    Attributes:
        accounts: a line for each.
        results: those that have a mechanism.
        feasible: those of them that keep every required limit, and do not contradict themselves.
        mistakes: how many ended with an error that no method should raise, or with a false certificate.
    """

    accounts: list[str] = field(default_factory=list)
    results: list[Result[C_co]] = field(default_factory=list)
    feasible: list[Result[C_co]] = field(default_factory=list)
    mistakes: int = 0

    def add_result(self, result: Result[C_co], found: MethodResult[C_co], shortcoming: str) -> None:
        """Record the certified result of a method, and why it does not count as optimal."""
        certificate = found.certificate
        self.results.append(result)
        if certificate.violation == 0 and not certificate.is_beyond_bound:
            self.feasible.append(result)
        self.accounts.append(f"{result.method}: {found.message}, {shortcoming}")

    def add_failure(
        self, method: Method[Any, Any, Any], cause: BaseException, is_given: bool
    ) -> None:
        """Record the exception with which a method failed, and whether it was given as an object."""
        # a solver that was stopped may leave numbers that are no mechanism, not even roughly
        expected = isinstance(cause, MethodError) or (
            isinstance(cause, MechanismError) and method.is_own and not is_given
        )
        self.mistakes += not expected or isinstance(cause, FalseCertificateError)
        self.accounts.append(describe_failure(method, cause))

    def list_stopped(self) -> list[Result[C_co]]:
        """List the feasible results of methods that a limit stopped."""
        return [one for one in self.feasible if one.status is Status.LIMIT_REACHED]

    @property
    def has_only_programming_errors(self) -> bool:
        """Return whether every attempted method failed with a programming error."""
        return 0 < self.mistakes == len(self.accounts)


def select_best_result(
    question: MethodRegistry[Any, Any, Any],
    program: Program[C_co],
    attempts: MethodAttempts[C_co],
    deadline: Deadline,
    begin: float,
) -> Result[C_co]:
    """Select the best feasible result and the best bound among methods that did not prove optimality.

    Where a method ended without a limit, and the time is not over, the result has the status of that method.
    Where every method was stopped, a mechanism by formula may be better, or the only one there is.

    Raises:
        InfeasibleError: the constraints that were added to the program allow no mechanism.
        SolverError: no feasible mechanism is known, every method ended with a mistake before the time was
            over, or the certificate of every mechanism contradicts itself.
    """
    contradictory = [one for one in attempts.results if one.certificate.is_beyond_bound]
    if contradictory and len(contradictory) == len(attempts.results):
        tried = "; ".join(attempts.accounts)
        raise SolverError(
            f"no solver reached the tolerance: {tried}. "
            "Check your own requirement, utility or set of priors with pmlopt.testing",
            contradictory[0],
        )
    ended = [one for one in attempts.results if one.status is Status.UNPROVED]
    known = [*ended, *attempts.list_stopped()]
    if ended and not deadline.expired:
        return _build_finished_result(program, known)
    if deadline.expired or not attempts.has_only_programming_errors:
        stopped = _build_stopped_result(question, program, attempts, begin)
        if stopped is not None:
            return stopped
    if ended:
        return _build_finished_result(program, known)
    if attempts.results:
        return min(attempts.feasible or attempts.results, key=_get_proved_gap)
    raise SolverError(f"no solver could solve it: {'; '.join(attempts.accounts)}")


def _build_finished_result(program: Program[Any], known: Sequence[Result[C_co]]) -> Result[C_co]:
    """Combine the best mechanism with the best bound where a method ran to its end."""
    best = _take_best_bound(program, _select_best_finished(program, known), known)
    return replace(best, status=Status.UNPROVED)


def _select_best_finished(program: Program[Any], known: Sequence[Result[C_co]]) -> Result[C_co]:
    """Select the best result of some, the first of which ran to their end."""
    sign = 1 if program.maximised else -1
    # values without a proof that differ by less are equal, and the smaller gap decides
    ahead = max(sign * result.value for result in known) - 1e-6
    return min((r for r in known if sign * r.value >= ahead), key=_get_proved_gap)


def _take_best_bound(
    program: Program[Any], best: Result[C_co], known: Sequence[Result[C_co]]
) -> Result[C_co]:
    """Return a result with the tightest bound of some: it holds for the program, not for a mechanism."""
    sign = 1 if program.maximised else -1
    tightest = min(known, key=lambda result: sign * result.bound)
    return replace(best, certificate=best.certificate.with_bound_from(tightest.certificate))


def _build_stopped_result(
    question: MethodRegistry[Any, Any, Any],
    program: Program[C_co],
    attempts: MethodAttempts[C_co],
    begin: float,
) -> Result[C_co] | None:
    """Combine the best mechanism of interrupted or failed methods with their best bound; None without one.

    One by formula is looked at where there is no other, or where a solver that was stopped may have less.
    """
    if question.find_first_result is None or (attempts.feasible and not question.compares_first):
        return None
    known = list(attempts.feasible)
    try:
        found = question.find_first_result(program)
        if has_foreign_parts(program) and (failures := found.certificate.failures):
            raise MethodError(f"its certificate fails: {'; '.join(map(str, failures))}")
    except (MethodError, MechanismError) as error:
        attempts.accounts.append(f"{FIRST_FEASIBLE}: {error}")
    else:
        formula: Method[Any, Any, C_co] = Method(
            FIRST_FEASIBLE, "no solver ended with a better one", lambda *_: found
        )
        seconds = time.perf_counter() - begin
        known.append(make_result(found, formula, Status.LIMIT_REACHED, attempts.accounts, seconds))
    if not known:
        return None
    sign = 1 if program.maximised else -1
    best = max(known, key=lambda result: sign * result.value)
    return _take_best_bound(program, best, known)


def _get_proved_gap(result: Result[Any]) -> float:
    """Return the optimality gap that a result's certificate proves."""
    return float(result.certificate.proved_gap)
