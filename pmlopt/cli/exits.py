"""Exit codes, and how interrupts and errors of files, streams and options become them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NoReturn

import click

from pmlopt.cli.terminal import print_error, print_line
from pmlopt.core.failures import describe_os_error, hide_passwords, is_out_of_memory

CLAIM_FAILS, BAD_INPUT, NOT_SOLVED, BUG, INTERRUPTED, CLOSED = 1, 2, 3, 70, 130, 141
VERDICT_CODES: Mapping[bool | None, int] = {True: 0, False: CLAIM_FAILS, None: NOT_SOLVED}
"""The exit code of a verdict: not all of it was checked is no yes."""


@contextmanager
def handle_stream_errors() -> Iterator[None]:
    """Convert interrupts and OS errors of files and streams to exit codes."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:  # as it is where the output was closed from the start
                sys.stdout.flush()
    except KeyboardInterrupt:
        exit_with_error("interrupted", INTERRUPTED, KeyboardInterrupt)
    except BrokenPipeError:  # the reader of the output has closed it
        _discard_output()
        _print_released()
        sys.exit(CLOSED)
    except OSError as error:
        if is_out_of_memory(error):
            raise
        _discard_output()
        _print_released()
        place = error.filename or "the output cannot be written, or the current folder is gone"
        exit_with_error(f"{place}: {describe_os_error(error)}", BAD_INPUT, type(error))


def _discard_output() -> None:
    """Discard unflushed output, to avoid a second error at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):  # a stream that is no file of the system's
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_SPENT = "pmlopt.spent"


def note_released(text: str) -> None:
    """Note what was released, to report it if later output fails."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[_SPENT] = text


def _print_released() -> None:
    """Print what was released before the output failed."""
    context = click.get_current_context(silent=True)
    if context is not None and _SPENT in context.meta:
        print_line(f"pmlopt: the output was not delivered, but {context.meta[_SPENT]}", err=True)


def exit_with_error(
    error: Exception | str, code: int, kind: type[BaseException] | None = None
) -> NoReturn:
    """Print an error message to standard error, under `--json` as JSON, and exit with a code."""
    print_error(hide_passwords(str(error)), (kind or type(error)).__name__, code, prints_json())
    sys.exit(code)


JSON_ERRORS = "pmlopt.json_errors"


def prints_json() -> bool:
    """Return whether the command was given `--json`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON_ERRORS, False))


@contextmanager
def print_usage_errors_as_json(as_json: bool) -> Iterator[None]:
    """Print errors of options and arguments, as JSON where `--json` is among these, without passwords."""
    try:
        yield
    except click.ClickException as error:
        error.message = hide_passwords(error.message)  # type: ignore[misc]  # ours to change
        if not as_json:
            raise
        print_error(error.format_message(), type(error).__name__, error.exit_code, as_json)
        sys.exit(error.exit_code)
