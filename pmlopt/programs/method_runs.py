"""The execution of a solver method in a copy of the process that can be killed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pmlopt.core.programming_errors import describe_error, is_programming_error, is_strict
from pmlopt.errors import InputError, PmloptError
from pmlopt.programs.certificate import C_co
from pmlopt.programs.program import Method, MethodError, MethodResult, Program
from pmlopt.solvers.solver_result import MethodOptions

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

GRACE_SECONDS = 30.0
"""Seconds that it may take beyond its time limit: it ends what it is at, and proves what it found."""


def check_fork_available() -> None:
    """Raise an InputError where the operating system cannot fork."""
    import multiprocessing

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
    import multiprocessing

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
