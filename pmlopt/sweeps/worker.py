"""What a worker does with a point of a sweep, and the executors that points are handed to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import SolverError, SweepError
from pmlopt.programs.certificate import Restart
from pmlopt.programs.program import Program
from pmlopt.programs.result import Result
from pmlopt.programs.solving import solve
from pmlopt.solvers.outcome import one_thread
from pmlopt.sweeps.table import FAILED, one_line


@dataclass(frozen=True, eq=False)
class Task:
    """A point of the grid, as it is handed to a worker.

    Attributes:
        builder: of the program.
        point: what it is called with.
        restart: what the point before in the chain left.
        options: of `pmlopt.solve`.
        keeps: whether the mechanism is wanted.
    """

    builder: Callable[..., Program[Any]]
    point: Mapping[str, Any]
    restart: Restart | None
    options: Mapping[str, Any]
    keeps: bool


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of it: plain data, which pickle.

    Attributes:
        entries: the cells of the row, by column.
        restart: for the next point of the chain; None where this one failed.
        mechanism: with its certificate and the solver's record, where it is wanted and there is one.
    """

    entries: Mapping[str, Any]
    restart: Restart | None = None
    mechanism: tuple[Mechanism, Mapping[str, Any]] | None = None


def receive(*_: Any) -> None:
    """Nothing: whoever can run it has got the arguments."""


def work(task: Task) -> Answer:
    """Solve one point. Whatever goes wrong with it is an answer too; only an interrupt is raised."""
    with _alone():
        begin = time.perf_counter()
        result: Result[Any] | None = None
        error: BaseException | None = None
        try:
            result = solve(task.builder(**task.point), warm_start=task.restart, **task.options)
        except KeyboardInterrupt:
            raise
        except SolverError as cause:
            result, error = cause.result, cause
        except BaseException as cause:  # solvers written in Rust panic past Exception
            error = cause
        return _answer(task, result, error, time.perf_counter() - begin)


def failure(error: BaseException, seconds: float | None = None) -> dict[str, Any]:
    """The cells of a point that has nothing but an error."""
    return {
        "status": FAILED,
        "seconds": seconds,
        "error": one_line(f"{type(error).__name__}: {error}"),
    }


def _answer(task: Task, result: Result[Any] | None, error: BaseException | None, seconds: float) -> Answer:
    entries: dict[str, Any] = {} if error is None else failure(error)
    if result is None:
        return Answer({**entries, "seconds": seconds})
    numbers = {name: float(getattr(result, name)) for name in ("value", "bound", "gap", "level")}
    found = {
        "status": result.status.value,
        **numbers,
        "solver": result.solver,
        "iterations": None if result.iterations is None else int(result.iterations),
        "warm_started": bool(result.warm_started),
    }
    kept = None
    if task.keeps:
        record = {key: item for key, item in result.to_dict().items() if key != "mechanism"}
        kept = result.mechanism, record
    return Answer({**found, **entries, "seconds": seconds}, result.restart if error is None else None, kept)


_TURN = threading.Lock()


@contextmanager
def _alone() -> Iterator[None]:
    """One point at a time in a process, and one thread for linear algebra.

    cvxpy numbers its variables by a counter that threads would tear.
    """
    with _TURN, one_thread():
        yield


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
