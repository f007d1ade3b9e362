"""Where points are solved: in this process, or by an executor that can be handed the builder."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, ParamSpec, TypeVar

from pmlopt.errors import SweepError
from pmlopt.sweeps.worker import receive

A = ParamSpec("A")
T = TypeVar("T")


class Here(Executor):
    """An executor that runs what it is handed at once, in this process.

    Examples:
        >>> Here().submit(max, 1, 2).result()
        2
    """

    def submit(self, fn: Callable[A, T], /, *args: A.args, **kwargs: A.kwargs) -> Future[T]:
        """Run it; an exception is the caller's."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def try_executor(executor: Executor, *data: Any) -> None:
    """Hand data to a worker, which must be able to unpack them.

    Raises:
        SweepError: it cannot; the message says what to do.
    """
    try:
        executor.submit(receive, *data).result()
    except BrokenExecutor as cause:
        raise SweepError(
            f"the executor's workers do not start, or cannot import the builder ({cause}): define it in a "
            "module that they can import, not in a notebook, and let a script make its executor only under "
            "`if __name__ == '__main__':`"
        ) from cause
    except Exception as cause:
        raise SweepError(
            f"the builder or the grid cannot be handed to the executor's workers ({type(cause).__name__}: "
            f"{cause}): define the builder at the top level of a module, give it data by functools.partial, "
            "and make what does not pickle, such as MutualInformation(), inside it"
        ) from cause
