"""A method in a process of its own, which is stopped where it hangs, and whose end harms nobody else."""

from __future__ import annotations

import multiprocessing
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from pmlopt.errors import InputError, PmloptError
from pmlopt.programs.certificate import C_co
from pmlopt.programs.program import Found, Method, MethodError, Program
from pmlopt.solvers.outcome import Options

WALL_LIMIT = 3600.0
"""Seconds that a method in a process of its own may take where no time limit was given."""
GRACE = 30.0
"""Seconds that it may take beyond its time limit: it ends what it is at, and proves what it found."""


def check_forks() -> None:
    """Raise an InputError where the system cannot copy a process."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise InputError(f"isolated=True copies the process by fork, which {sys.platform} does not have")


def run_apart(
    method: Method[Any, Any, C_co], program: Program[C_co], options: Options, start: Any
) -> Found[C_co]:
    """What a method finds, in a copy of this process that is killed past its limit.

    Args:
        method: to run.
        program: for it to solve.
        options: for it; the time limit is when it should end by itself.
        start: what it starts from.

    Raises:
        MethodError: it hung, its process died, or it ended with an exception, which the message names.
        PmloptError: what the method raised on purpose.
    """
    left = options.clock.left()
    limit = WALL_LIMIT if left is None else left + GRACE
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, method, program, options, start), daemon=True)
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
    found: Found[C_co] = answer
    return found


def _answer(
    sender: Connection, method: Method[Any, Any, C_co], program: Program[C_co], options: Options, start: Any
) -> None:
    """Run the method, and send what it found, or why it found nothing."""
    try:
        answer: Found[C_co] | Exception = method.run(program, options, start)
    except PmloptError as error:
        answer = error
    except BaseException as error:  # solvers written in Rust panic past Exception
        answer = MethodError("".join(traceback.format_exception_only(error)).strip())
    try:
        sender.send(answer)
    except Exception as error:  # what does not pickle
        sender.send(MethodError(f"what it found cannot be handed over ({type(error).__name__}: {error})"))
