"""The functions of the package that a piece of work calls, counted: the same in every run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
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


def count_files(calls: Counter[tuple[str, str]]) -> int:
    """Count the files of the functions that were called."""
    return len({file for file, _ in calls})
