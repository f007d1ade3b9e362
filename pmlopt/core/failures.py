"""Failures of the machine, such as exhausted memory and lost workers, and what messages state of them."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pmlopt.core.lazy_imports import futures
from pmlopt.errors import FileFormatError

_NO_MEMORY = (
    "cannot allocate memory",
    "failed to map segment from shared object",
    "cannot create shared object descriptor",
    "failed to launch worker thread",
    "can't start new thread",
    "out of memory",
    "bad_alloc",
    "unable to allocate",
    "cannot apply additional memory protection",
    "not enough memory",
    "paging file is too small",
)
"""The messages of loaders, Arrow and threads when memory is short, in lower case."""

_SAID_BY = (ImportError, OSError, RuntimeError, SystemError)
"""Kinds of errors that are of memory where their text states so."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error or its cause is an out-of-memory condition."""
    return any(
        isinstance(one, MemoryError)
        or (isinstance(one, OSError) and one.errno == errno.ENOMEM)
        or (isinstance(one, _SAID_BY) and any(text in str(one).lower() for text in _NO_MEMORY))
        for one in _iterate_causes(error)
    )


def describe_os_error(cause: Exception) -> str:
    """Return the operating system's reason of an error, without the path."""
    return (cause.strerror if isinstance(cause, OSError) else None) or str(cause)


def hide_passwords(text: str) -> str:
    """Return a text in which the passwords of URLs are stars.

    Examples:
        >>> hide_passwords("postgresql://ann:secret@db/census?sslpassword=x&a=b: is no file")
        'postgresql://ann:***@db/census?sslpassword=***&a=b: is no file'
    """
    text = re.sub(r"(\w:/+[^\s/:@]*):\S*@", r"\1:***@", text)
    return re.sub(r"(password=)[^\s&]+", r"\1***", text)


@contextmanager
def report_os_errors(path: object, failure: str = "cannot be written") -> Iterator[None]:
    """Name a path and the system's reason where the operating system fails in the block.

    Raises:
        FileFormatError: in place of the OSError.
    """
    try:
        yield
    except OSError as cause:
        raise FileFormatError(f"{path}: {failure}: {describe_os_error(cause)}") from None


def is_worker_lost(error: BaseException) -> bool:
    """Return whether an executor error means a lost worker.

    Those of dask are recognized by where they come from: dask is not loaded for this.
    """
    return any(
        isinstance(one, futures.BrokenExecutor | futures.CancelledError)
        or (
            type(one).__module__.partition(".")[0] == "distributed"
            and type(one).__name__ in _OF_DASK
        )
        for one in _iterate_causes(error)
    )


_OF_DASK = (
    "KilledWorker",
    "CommClosedError",
    "FutureCancelledError",
    "NoValidWorkerError",
    "TimeoutError",
)


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its chain of causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
