"""The functions of the package that a piece of work calls, counted: the same in every run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pmlopt

ROOT = str(Path(pmlopt.__file__).parent)


def count_calls(run: Callable[[], Any]) -> Counter[tuple[str, str]]:
    """Count the calls of each function of pmlopt, by its file and its name; comprehensions count."""
    found: Counter[tuple[str, str]] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            name = f"{code.co_qualname} {code.co_firstlineno}"
            found[str(Path(code.co_filename).relative_to(ROOT)), name] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return found


def list_steps(run: Callable[[], Any]) -> list[tuple[str, str, int]]:
    """List the functions of pmlopt as they are called and returned to: file, name and depth of each.

    What runs while a module or a class is loaded is left out.
    """
    steps: list[tuple[str, str, int]] = []
    stack: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not (code.co_filename.startswith(ROOT) and code.co_flags & CO_OPTIMIZED):
            return
        if event == "call":
            stack.append((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))
        elif event == "return":
            stack.pop()
        if stack and event in ("call", "return"):
            steps.append((*stack[-1], len(stack)))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return steps


ROOMS = ("core", "data", "measures", "solvers", "model", "programs")
"""From the bottom up."""


def count_stays(run: Callable[[], Any]) -> tuple[int, int]:
    """Count the stays in a file between two others, and those that are in a room above the last."""
    stays = [file for file, _ in groupby(file for file, _, _ in list_steps(run))]
    floors = [ROOMS.index(file.partition("/")[0]) for file in stays]
    return len(stays), sum(above > below for below, above in pairwise(floors))


def count_hops(steps: list[tuple[str, str, int]]) -> int:
    """Count the calls one within another down to HiGHS, from the outermost one on; 0 where none is."""
    return max((depth + 1 for _, name, depth in steps if name == "run_loaded"), default=0)


def count_files(calls: Counter[tuple[str, str]]) -> int:
    """Count the files of the functions that were called."""
    return len({file for file, _ in calls})
