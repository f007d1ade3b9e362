"""How many threads linear algebra takes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, cast

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """One thread within: these matrices gain little from more, and where cores are busy, lose manyfold.

    Threads in many processes wait for one another, and their number changes the last digits.
    """
    return cast("AbstractContextManager[Any]", _pools().limit(limits=1))


@cache
def _pools() -> ThreadpoolController:
    """Every pool of this process: all are loaded with the solvers."""
    return ThreadpoolController()
