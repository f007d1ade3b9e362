"""The solving of programs: methods are tried in order, until one proves its result."""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from numpy.typing import ArrayLike

from pmlopt.core.arrays import copy_float_array
from pmlopt.core.programming_errors import (
    describe_error,
    is_programming_error,
    is_strict,
    raise_if_strict,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, check_labels_match
from pmlopt.errors import (
    InfeasibleError,
    InputError,
    MechanismError,
    PmloptError,
    ProgramError,
    SolverOptionError,
    SolverUnavailableError,
)
from pmlopt.programs.best_feasible import MethodAttempts, make_result, select_best_result
from pmlopt.programs.certificate import C_co, Status, WarmStartLike
from pmlopt.programs.continuous import methods as continuous
from pmlopt.programs.envelope import methods as envelope
from pmlopt.programs.envelope_design import methods as envelope_design
from pmlopt.programs.estimation import methods as estimation
from pmlopt.programs.former_names import replace_former_method
from pmlopt.programs.least_leakage import epsilon_search as least_epsilon
from pmlopt.programs.least_leakage import methods as least_leakage
from pmlopt.programs.linear import methods as linear
from pmlopt.programs.program import (
    Method,
    MethodError,
    MethodRegistry,
    MethodResult,
    Program,
    has_foreign_parts,
)
from pmlopt.programs.record_leakage import methods as record_leakage
from pmlopt.programs.result import Result
from pmlopt.programs.subconvex import methods as subconvex
from pmlopt.programs.tradeoff import methods as tradeoff
from pmlopt.programs.worst_case import methods as worst_case
from pmlopt.solvers.cvxpy_interface import list_installed
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions, make_options

GRACE_SECONDS = 30.0
"""Seconds that it may take beyond its time limit: it ends what it is at, and proves what it found."""


def check_fork_available() -> None:
    """Raise an InputError where the system cannot copy a process."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise InputError(
            f"isolated=True copies the process by fork, which {sys.platform} does not have"
        )


def run_in_process(
    method: Method[Any, Any, C_co], program: Program[C_co], options: MethodOptions, start: Any
) -> MethodResult[C_co]:
    """Run a method in a copy of this process that is killed past its time limit, and return its result.

    Args:
        method: to run.
        program: for it to solve.
        options: for it; the time limit is when it should end on its own.
        start: what it starts from.

    Raises:
        MethodError: it hung, its process died, or it ended with an exception, which the message names.
        PmloptError: what the method raised on purpose.
        Exception: in strict mode a programming error.
    """
    left = options.deadline.remaining()
    # a separate process may take an hour where no time limit is given
    limit = 3600.0 if left is None else left + GRACE_SECONDS
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(
        target=_send_result, args=(sender, method, program, options, start), daemon=True
    )
    child.start()
    sender.close()  # so that the end of the child is the end of the pipe
    try:
        if not receiver.poll(limit):
            raise MethodError(f"its process did not end within {limit:.3g} s and was stopped")
        answer = receiver.recv()
    except EOFError:
        child.join()
        raise MethodError(f"its process died with the exit code {child.exitcode}") from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if isinstance(answer, Exception):
        raise answer
    found: MethodResult[C_co] = answer
    return found


def _send_result(
    sender: Connection,
    method: Method[Any, Any, C_co],
    program: Program[C_co],
    options: MethodOptions,
    start: Any,
) -> None:
    """Run the method, and send its result, or why it has none."""
    try:
        answer: MethodResult[C_co] | Exception = method.run(program, options, start)
    except PmloptError as error:
        answer = error
    except BaseException as error:  # solvers written in Rust panic past Exception
        answer = MethodError(describe_error(error))
        if is_strict() and is_programming_error(error):
            error.add_note(describe_error(error))  # which is pickled, as the traceback is not
            answer = error
    try:
        sender.send(answer)
    except Exception as error:  # what does not pickle
        sender.send(
            MethodError(f"what it found cannot be handed over ({type(error).__name__}: {error})")
        )


REGISTRY: tuple[MethodRegistry[Any, Any, Any], ...] = (
    linear.METHODS,
    linear.ORBIT_METHODS,
    subconvex.METHODS,
    estimation.METHODS,
    continuous.METHODS,
    least_leakage.METHODS,
    least_leakage.ORBIT_METHODS,
    least_epsilon.METHODS,
    worst_case.METHODS,
    envelope.ENVELOPE_METHODS,
    envelope.FAILURE_METHODS,
    envelope_design.METHODS,
    record_leakage.METHODS,
    tradeoff.METHODS,
)
"""All that can be required, each with the table of its methods: the whole choice of solvers is in these."""

PROPAGATED_ERRORS = (
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    InfeasibleError,
    SolverUnavailableError,
)
"""What ends `solve` wherever it comes from: nothing else that a method raises does."""


def solvers_for(program: Program[Any]) -> list[Method[Any, Any, Any]]:
    """Return the methods that can solve a program: those that `auto` tries first, in order, with reasons.

    Args:
        program: from any builder.

    Raises:
        ProgramError: it is no program.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, design, solvers_for
        >>> program = design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
        >>> first = solvers_for(program)[0]
        >>> first.name, first.reason
        ('highs', 'LP with a closed form that is optimal: HiGHS simplex, warm')
    """
    question = _get_registry(program)
    start = question.make_start(program, None, NO_DEADLINE)
    found = question.list_automatic(program, start)
    named = {one.name for one in found}
    return [
        *found,
        *(one for one in question.list_by_name_only(program, start) if one.name not in named),
    ]


def solve(
    program: Program[C_co],
    solver: str | Method[Any, Any, C_co] | Callable[..., MethodResult[C_co]] = "auto",
    warm_start: WarmStartLike = None,
    *,
    time_limit: float | None = None,
    tolerance: float | None = None,
    gap: float | None = None,
    isolated: bool = False,
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> Result[C_co]:
    """Solve a program and prove a bound on its optimum.

    The methods for the program are tried in order (`solvers_for` lists them) until the certified gap
    is within the tolerance. What is returned is recomputed from the matrix: a designed mechanism is repaired
    until it meets its requirement in exact arithmetic, and value, level, bound and gap belong to it. The
    methods of pmlopt compute them by the code that `certificate.checks()` runs again, which `solve` does not.
    It does where a requirement, a utility, a set of priors or a constraint is of a user's own class, or the
    method was given as an object: the result is OPTIMAL only where its certificate verifies. A value beyond
    its own bound by more than rounding is never OPTIMAL.

    Where no method closes the gap, the best feasible mechanism is returned with its value, its level and the
    best bound: with the status UNPROVED where a method ended without being stopped, else LIMIT_REACHED. Where
    every method was stopped or failed, a mechanism by formula takes the place of a worse one, or of none.

    Args:
        program: from a builder such as `design`, with added constraints if wanted.
        solver: "auto", or the name of a method, which is then the only one tried (`solvers_for` lists them);
            or a method with its options, such as `Alternating(restarts=4)`.
        warm_start: a mechanism, a Result, or the `restart` of one to start from. Left out, a closed form that
            is optimal is found and used; False starts cold.
        time_limit: seconds in all. At the limit the current method ends, and the best mechanism is certified.
        tolerance: the largest certified gap to accept, as a share of `program.scale`; left out,
            `program.tolerance`. Added constraints may be violated by 1e-6 of their unit.
        gap: the same in units of the value (nats, where the value is a leakage), in place of a share.
        isolated: whether each method runs in a separate process (a fork of this one). One that hangs is
            stopped 30 seconds after the time limit, or after an hour where there is none; one whose process
            dies has failed; either way the next is tried. Variables that you declared keep their values.
        solver_options: options of the solver that `solver` names, handed to it as cvxpy does, or to HiGHS
            itself; they take precedence over pmlopt's.
        verbose: whether the solver prints its log, where it has one.

    Raises:
        InfeasibleError: the constraints that were added to the program allow no mechanism.
        SolverOptionError: the solver does not know an option, or takes none.
        SolverError: no feasible mechanism is known, every method ended with a mistake, or every value is
            beyond its own bound; `.result` then carries that Result.
        SolverUnavailableError: the solver's name is unknown, or it cannot take this program.
        InputError: a limit is not positive, the warm start does not fit, or processes cannot be forked here.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, design
        >>> result = solve(design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]])))
        >>> result.status.value, result.certificate.verify(), result.closed_form.name
        ('optimal', True, 'binary')
        >>> bool(result.level <= 0.2 and result.gap < 1e-9)
        True
    """
    begin = time.perf_counter()
    question = _get_registry(program)
    options = make_options(
        time_limit, _relative_tolerance(program, tolerance, gap), solver_options, verbose
    )
    if isolated:
        check_fork_available()
    if isinstance(warm_start, Mechanism):
        _check_labels(program, warm_start)
    start = question.make_start(program, warm_start, options.deadline)
    arguments = program, options, start
    allowed = program.compute_allowed_gap(options.tolerance)
    attempts: MethodAttempts[C_co] = MethodAttempts()
    methods = question.select_methods(program, solver, start)
    _check_accepts_options(methods, solver, options)
    for method in methods:
        if options.deadline.expired and attempts.accounts:
            break
        try:
            found = run_in_process(method, *arguments) if isolated else method.run(*arguments)
            own_end = found.finished and not found.certificate.is_beyond_bound
            status = _choose_status(found, allowed, own_end)
            # classes of other packages may be wrong: then the certificate decides, not the method
            checked = status is Status.OPTIMAL and (method is solver or has_foreign_parts(program))
            failures = found.certificate.failures if checked else ()
        except PROPAGATED_ERRORS:
            raise
        except BaseException as cause:  # a solver may fail in any way: the next one is tried
            raise_if_strict(cause)
            attempts.add_failure(method, cause, method is solver)
            continue
        # a false certificate is no result: the next method is tried
        if failures:
            attempts.add_mistake(
                f"{method.id}: its certificate fails: {'; '.join(map(str, failures))}"
            )
            continue
        seconds = time.perf_counter() - begin
        result = make_result(found, method, status, attempts.accounts, seconds)
        result = replace(result, solver_options=options.solver_options)
        if status is Status.OPTIMAL:
            return result
        attempts.add_result(result, found, _describe_shortcoming(found, allowed))
        if found.certificate.is_beyond_bound and has_foreign_parts(program):
            break  # a user's class contradicts itself: a worse mechanism would only hide it
    return select_best_result(question, program, attempts, options.deadline, begin)


def certify(
    program: Program[C_co], matrix: MechanismLike, multipliers: ArrayLike | None = None
) -> Result[C_co]:
    """Certify a matrix of any origin: repair it, recompute its levels, and bound its gap by multipliers.

    Args:
        program: what the matrix answers.
        matrix: (N, M) a mechanism, up to a solver's noise; for an `envelope` the (M, K) post-processing.
        multipliers: (N,) any rho, best the multipliers of the row sums over the prior; they prove the bound.
            Left out, a few that need no solver are tried.

    Raises:
        MechanismError: the matrix is no mechanism, not even roughly, or has other labels than the program.
        ProgramError: this kind of program has no certificate of a matrix only.

    Examples:
        >>> from pmlopt import ExpectedLoss, PML, Prior, certify, design
        >>> program = design(Prior([0.5, 0.5]), PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
        >>> own = certify(program, [[0.7, 0.3], [0.3, 0.7]])  # leaks log 1.4: mixed until it leaks 0.2
        >>> own.level <= 0.2, own.certificate.verify(), own.certificate.repair.theta > 0
        (True, True, True)
    """
    begin = time.perf_counter()
    question = _get_registry(program)
    if isinstance(matrix, Mechanism):
        _check_labels(program, matrix)
    given = matrix.matrix if isinstance(matrix, Mechanism) else matrix
    point = copy_float_array(given, 2, "the matrix", MechanismError)
    rho = (
        None
        if multipliers is None
        else copy_float_array(multipliers, 1, "the multipliers", ProgramError)
    )
    found = question.certify_matrix(program, point, rho)
    status = _choose_status(found, program.compute_allowed_gap(program.tolerance), True)
    if status is Status.OPTIMAL and has_foreign_parts(program) and found.certificate.failures:
        status = Status.UNPROVED
    seconds = time.perf_counter() - begin
    found = replace(found, certify_seconds=seconds)
    given_matrix: Method[Any, Any, C_co] = Method("given", found.message, lambda *_: found)
    return make_result(found, given_matrix, status, [], seconds)


def check_solver_name(name: object) -> str:
    """Return the current name of a method, for any registry.

    Raises:
        SolverUnavailableError: no method of any registry, and no installed solver, has the name.
    """
    own = {name for question in REGISTRY for name in question.own_names}
    current = replace_former_method(name) if isinstance(name, str) else ""
    # cvxpy, which takes long to load, is imported only for names that are not pmlopt's own
    if current.lower() in {"auto", *own} or current.lower() in list_installed():
        return current
    names = ", ".join(["auto", *sorted(own | set(list_installed()))])
    raise SolverUnavailableError(f"the solver {name!r} is not installed; there are: {names}")


def check_limits(
    time_limit: float | None,
    tolerance: float | None,
    solver: str = "auto",
    solver_options: Mapping[str, Any] | None = None,
) -> None:
    """Raise an InputError for a time limit or a tolerance that is not positive."""
    options = make_options(time_limit, 1.0 if tolerance is None else tolerance, solver_options)
    _check_accepts_options((), solver, options)


def _check_accepts_options(
    methods: Sequence[Method[Any, Any, Any]], solver: object, options: MethodOptions
) -> None:
    """Raise a SolverOptionError where options were given and no single solver can take them."""
    names = ", ".join(options.solver_options)
    if names and isinstance(solver, str) and solver.lower() == "auto":
        raise SolverOptionError(
            f"the options {names} are of one solver: name it, as in solver='clarabel'"
        )
    for method in methods if names else ():
        if not method.accepts_options:
            raise SolverOptionError(
                f"{method.name} hands no options to a solver, and {names} would have no effect: leave them "
                "out, or name a solver such as clarabel"
            )


def _get_registry(program: Program[Any]) -> MethodRegistry[Any, Any, Any]:
    """Return the registry of methods for the class of a program."""
    for question in REGISTRY:
        if type(program) is question.program:
            return question
    raise ProgramError(
        f"solve takes a Program from a builder such as design(...), not {program!r:.60}"
    )


def _check_labels(program: Program[Any], given: Mechanism) -> None:
    """Raise where a mechanism has other labels than the program, or the same in another order."""
    for side, wanted, what in zip(
        (given.inputs, given.outputs),
        program.row_and_column_labels,
        ("inputs", "outputs"),
        strict=True,
    ):
        if wanted is not None and len(side) == len(wanted):
            check_labels_match(
                side, wanted, f"the {what} of the mechanism", f"those of {program!r}"
            )


def _relative_tolerance(program: Program[Any], tolerance: float | None, gap: float | None) -> float:
    """Return the tolerance as a fraction of the scale."""
    if gap is not None:
        if tolerance is not None:
            raise ProgramError("`tolerance` and `gap` both limit the gap: give only one")
        return make_options(None, gap).tolerance / (program.scale or 1.0)
    return program.tolerance if tolerance is None else tolerance


def _choose_status(found: MethodResult[Any], allowed: float, answer: bool) -> Status:
    """Return the status of a certificate; `answer` is whether it is one though its gap is too large."""
    # a violated limit outranks any gap: value and bound are then of different problems
    if found.certificate.violation > 0:
        return Status.VIOLATED
    # next to a large offset, value and bound are floats that may be a few units apart by rounding only
    gap = found.certificate.proved_gap
    if (
        found.requirement_unchanged
        and math.isfinite(gap)
        and gap <= allowed + 4 * math.ulp(found.certificate.value)
    ):
        return Status.OPTIMAL
    return Status.UNPROVED if answer else Status.LIMIT_REACHED


def _describe_shortcoming(found: MethodResult[Any], allowed: float) -> str:
    """Describe why a result is not optimal."""
    certificate = found.certificate
    if not found.requirement_unchanged:
        return "a level above the limit"
    if certificate.is_beyond_bound:
        return f"its value is {-certificate.gap:.3g} beyond its bound, so that one of both is false"
    return f"certified gap {certificate.gap:.3g} above the tolerance {allowed:.3g}"
