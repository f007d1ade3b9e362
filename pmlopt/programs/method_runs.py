"""The sequential execution of solver methods, in this process or in a killable copy of it."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from pmlopt.core.programming_errors import (
    describe_error,
    is_programming_error,
    is_strict,
    raise_if_strict,
)
from pmlopt.errors import InfeasibleError, InputError, PmloptError, SolverUnavailableError
from pmlopt.programs.certificate import C_co
from pmlopt.programs.program import Method, MethodError, MethodResult, Program
from pmlopt.solvers.solver_result import MethodOptions

PROPAGATED_ERRORS = (
    KeyboardInterrupt,
    SystemExit,
    MemoryError,
    InfeasibleError,
    SolverUnavailableError,
)
"""What ends `solve` wherever it comes from; whatever else a method raises is its own failure."""

GRACE_SECONDS = 30.0
"""Seconds that it may take beyond its time limit: it ends what it is at, and proves what it found."""


MethodRun = Callable[
    [Method[Any, Any, C_co], Program[C_co], MethodOptions, Any], MethodResult[C_co]
]
"""How a method is run on a program, with its options and what it starts from."""


def run_method(
    method: Method[Any, Any, C_co], program: Program[C_co], options: MethodOptions, start: Any
) -> MethodResult[C_co]:
    """Run a method in the current process."""
    found: object = method.run(program, options, start)
    if not isinstance(found, MethodResult):
        raise MethodError(f"it returned {found!r:.60}, and not a MethodResult")
    return found


def describe_failure(method: Method[Any, Any, Any], cause: BaseException) -> str:
    """Describe in one line the error with which a method ended."""
    return f"{method.id}: {cause if isinstance(cause, MethodError) else describe_error(cause)}"


def try_methods(
    methods: Iterable[Method[Any, Any, C_co]],
    program: Program[C_co],
    options: MethodOptions,
    start: Any,
    report: Callable[[Method[Any, Any, Any], BaseException], object],
    run: MethodRun[C_co] = run_method,
) -> Iterator[tuple[Method[Any, Any, C_co], MethodResult[C_co]]]:
    """Run methods in turn, and yield each that has a result, until the time limit.

    The caller stops at the first result that is good enough. The first method is run in any case.

    Args:
        methods: in the order in which they are tried.
        program: for them to solve.
        options: for them; the deadline is of all of them together.
        start: what they start from.
        report: is called with each method that ends without a result, and the error that it ended with.
        run: how each is run; what it raises counts as the failure of the method.

    Raises:
        InfeasibleError: the constraints that a person added allow nothing.
        SolverUnavailableError: the solver cannot take the program.
        Exception: in strict mode a programming error.
    """
    for place, method in enumerate(methods):
        if place and options.deadline.expired:
            return
        try:
            found = run(method, program, options, start)
        except PROPAGATED_ERRORS:
            raise
        except BaseException as cause:  # a solver may fail in any way: the next one is tried
            raise_if_strict(cause)
            report(method, cause)
        else:
            yield method, found


def check_fork_available() -> None:
    """Raise an InputError where the operating system cannot fork."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise InputError(
            f"isolated=True copies the process by fork, which {sys.platform} does not have"
        )


def run_in_process(
    method: Method[Any, Any, C_co], program: Program[C_co], options: MethodOptions, start: Any
) -> MethodResult[C_co]:
    """Run a method in a forked process that is killed at the time limit.

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
    """Run a method in the child process, and send its result or error to the parent."""
    try:
        answer: MethodResult[C_co] | Exception = run_method(method, program, options, start)
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
