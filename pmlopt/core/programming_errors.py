"""Programming errors: exceptions that are mistakes in pmlopt's own code.

`solve` goes on to the next method where one fails, whatever the failure is. A mistake in pmlopt's own code
would then show only as a slower answer. In strict mode (the environment variable `PMLOPT_STRICT`, which the
tests set) such an error is raised.
"""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import TypeGuard

import numpy as np

from pmlopt.core.lazy_imports import traceback
from pmlopt.errors import PmloptError

VARIABLE = "PMLOPT_STRICT"
"""The environment variable that turns strict mode on; empty and "0" turn it off."""

PROGRAMMING_ERRORS = (
    TypeError,
    NameError,
    AttributeError,
    IndexError,
    KeyError,
    AssertionError,
    ValueError,
    ZeroDivisionError,
)


def is_strict() -> bool:
    """Return whether strict mode is on."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


def is_programming_error(error: BaseException) -> TypeGuard[Exception]:
    """Return whether an exception is a mistake in pmlopt's own code.

    It is of a type that mistakes have, and was raised in a frame of pmlopt, or in numpy, scipy or the
    standard library called from there. Errors that pmlopt raises on purpose are no mistakes, and neither
    is a singular matrix.
    """
    if not isinstance(error, PROGRAMMING_ERRORS) or isinstance(
        error, PmloptError | np.linalg.LinAlgError
    ):
        return False
    for frame in reversed(_list_frames(error)):
        if _is_own(frame):
            return True
        # Libraries that raise these errors only for arguments that do not fit: the mistake is the caller's.
        # Solvers and cvxpy are not among them: they raise the same errors where the numbers of a program
        # defeat them.
        if _get_library(frame) not in (frozenset({"numpy", "scipy"}) | sys.stdlib_module_names):
            return False
    return False


def raise_if_strict(error: BaseException) -> None:
    """Re-raise a programming error in strict mode."""
    if is_strict() and is_programming_error(error):
        raise error


def describe_error(error: BaseException) -> str:
    """Describe an exception by type, message, file and line.

    An error that pmlopt raises on purpose explains itself, and has no place.
    """
    words = "".join(traceback.format_exception_only(error)).strip()
    name = type(error).__name__
    words = f"{name}{words.partition(name)[2]}"
    places = traceback.extract_tb(error.__traceback__)
    if isinstance(error, PmloptError) or not places:
        return words
    return f"{words} ({_shorten_path(places[-1].filename)}, line {places[-1].lineno})"


def _list_frames(error: BaseException) -> list[FrameType]:
    """List the traceback frames of an exception, outermost first."""
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _get_library(frame: FrameType) -> str:
    """Return the top-level package of a frame's module."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_own(frame: FrameType) -> bool:
    """Return whether a frame runs pmlopt code, generated code included."""
    return _get_library(frame) == "pmlopt"


def _shorten_path(file: str) -> str:
    """Shorten a path by machine-specific folders."""
    from pathlib import Path

    path, package = Path(file), Path(__file__).parents[1]
    return (
        path.relative_to(package.parent).as_posix() if path.is_relative_to(package) else path.name
    )
