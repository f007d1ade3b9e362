"""Options of commands that work side by side: processes of this machine, or the workers of a cluster."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import click

from pmlopt.cli.options import Opt
from pmlopt.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from concurrent.futures import Executor

MOST_WORKERS = 256
"""Processes of one command: each takes about 0.2 GB."""


@dataclass(frozen=True)
class Workers:
    """What works side by side; what it makes does not depend on it."""

    workers: Annotated[int, Opt(
        "Processes that work side by side, at most 256.", type=click.IntRange(1, MOST_WORKERS)
    )] = 1  # fmt: skip
    scheduler: Annotated[str | None, Opt(
        "The address of a dask scheduler, such as tcp://head:8786, whose workers work instead."
    )] = None  # fmt: skip

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """What runs the tasks; None for this process. An interrupt ends processes at once.

        Raises:
            InputError: both were asked for, or no scheduler answers at the address.
        """
        if self.scheduler is not None:
            if self.workers > 1:
                raise InputError(
                    "--workers are processes of this machine, and --scheduler has its own: give one"
                )
            with _client(self.scheduler) as pool:
                yield pool
        elif self.workers == 1:
            yield None
        else:
            with _processes(self.workers) as pool:
                yield pool


@contextmanager
def _client(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--scheduler needs dask: pip install 'pmlopt[dask]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError, TypeError) as cause:
        raise InputError(f"--scheduler {address}: no dask scheduler answers there: {cause}") from None
    with client:
        yield client.get_executor()


@contextmanager
def _processes(number: int) -> Iterator[Executor]:
    """A pool of processes, each of which starts a Python of its own."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children, get_context

    ignore = (signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the workers too, which would complain
    with ProcessPoolExecutor(number, get_context("spawn"), signal.signal, ignore) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            for worker in active_children():
                worker.terminate()
            raise
