"""Options of parallel execution: local processes, or a dask scheduler."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from pmlopt.core.lazy_imports import require_extra
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True)
class WorkerOptions:
    """The parallel execution option; results do not depend on it."""

    # Processes of one command: each takes about 0.2 GB.
    workers: Annotated[
        int, "Processes that work side by side, at most 256.", click.IntRange(1, 256)
    ] = 1
    scheduler: Annotated[
        str | None,
        "The address of a dask scheduler, such as tcp://head:8786, whose workers work instead.",
    ] = None

    def open_executor(self) -> AbstractContextManager[Executor | None]:
        """Open the executor of the option; None for serial execution.

        An interrupt ends processes at once.

        Raises:
            InputError: both were requested, or no scheduler answers at the address.
        """
        if self.scheduler is not None:
            if self.workers > 1:
                raise InputError(
                    "--workers are processes of this machine, and --scheduler has its own: give one"
                )
            return _open_client_executor(self.scheduler)
        return nullcontext() if self.workers == 1 else _open_processes(self.workers)


@contextmanager
def _open_client_executor(address: str) -> Iterator[Executor]:
    """Open the executor of a dask scheduler."""
    with require_extra("--scheduler needs dask", "dask"):
        from distributed import Client
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TypeError) as cause:
        raise InputError(
            f"--scheduler {address}: no dask scheduler answers there: {cause}"
        ) from None
    with client:
        yield client.get_executor()


@contextmanager
def _open_processes(number: int) -> Iterator[Executor]:
    """Open a pool of spawned worker processes."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    ignore = (
        signal.SIGINT,
        signal.SIG_IGN,
    )  # a terminal sends it to the workers too, which would complain
    with ProcessPoolExecutor(number, get_context("spawn"), signal.signal, ignore) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            for worker in active_children():
                worker.terminate()
            raise
