"""Run a sweep: hand out the points of its chains, solve them, and write down what comes back."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from pmlopt import __version__
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, SolverError, SweepError, SweepStoppedError
from pmlopt.programs.certificate import Restart
from pmlopt.programs.program import Program
from pmlopt.programs.result import Result
from pmlopt.programs.solving import check_name, check_options, solve
from pmlopt.solvers.outcome import one_thread
from pmlopt.sweeps.grid import Grid, Points, points_of
from pmlopt.sweeps.journal import Journal, fingerprint, name_of
from pmlopt.sweeps.table import FAILED, Row, Sweep, one_line, text_of


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


CHAIN = 10
"""How many points a chain has at most: the first one starts cold."""
GRACE = 10.0
"""Seconds for what is under way when an executor breaks or is shut down."""
SHOWN = 4
"""How many points a message names."""

Builder = Callable[..., Program[Any]]
File = str | os.PathLike[str]


def sweep(
    builder: Builder,
    grid: Grid,
    executor: Executor | None = None,
    *,
    out: File | None = None,
    mechanisms: File | None = None,
    solver: str = "auto",
    tolerance: float | None = None,
    time_limit: float | None = None,
    chain: int = CHAIN,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Solve many related problems in warm-started chains, and keep what is finished on disk.

    Neighbours in the grid form chains, and each point of a chain starts where the one before it ended. Where
    chains are cut depends on the grid and on `chain` alone, so that every executor, however many workers it
    has, gives the same table but for the seconds. (A time limit cuts by the clock: what it cuts may differ.)

    With `out`, a row is on disk as soon as its point is solved. Called again after a kill, the sweep keeps
    the rows that are there, solves the others, and ends with the same table. A point that fails is a row with
    the status "failed" and its error; it stops nothing.

    Args:
        builder: called with a point as keyword arguments; returns a program, as `design(...)` does. Other
            processes must be able to import it: define it at the top level of a module.
        grid: names with their values, for all combinations, the last name varying fastest; or the points
            one by one, each a mapping of names to values, or a number, the builder's only argument.
        executor: where the points are solved: a pool of processes, dask's `client.get_executor()`,
            `mpi4py.futures.MPIPoolExecutor`, or any other with `submit`. Left out, in this process. A process
            solves one point at a time, on one thread.
        out: the table to write: .csv, .json, or .parquet.
        mechanisms: a folder for the mechanism of each point, with its certificate: 00000.json is the first.
        solver: for each point, by its name.
        tolerance: the same.
        time_limit: seconds for each solver and point.
        chain: how many points a chain has at most; 1 starts every point cold.
        progress: called with how many points are finished, and how many there are.

    Raises:
        SweepError: the grid cannot be meant, the executor cannot run the builder, or `out` is there already
            or has the journal of another sweep.
        SweepStoppedError: the executor broke; what was finished is on disk and in its `.sweep`.
        SolverUnavailableError: the solver's name is unknown.

    Examples:
        >>> from pmlopt import ExpectedGain, PML, design
        >>> def guessing(epsilon):
        ...     return design([0.25] * 4, PML(epsilon), ExpectedGain([[1, 0, 0, 0], [0, 1, 0, 0],
        ...                                                           [0, 0, 1, 0], [0, 0, 0, 1]]))
        >>> table = sweep(guessing, {"epsilon": [0.0, 0.25, 0.5]})
        >>> table.column("value").round(9)
        array([0.25      , 0.32100635, 0.41218032])
        >>> [row.status for row in table.rows]
        ['optimal', 'optimal', 'optimal']
    """
    points = points_of(grid, builder)
    chains = points.chains(chain)
    options = {"solver": solver, "tolerance": tolerance, "time_limit": time_limit}
    _check(builder, executor, options)
    folder = None if mechanisms is None else _folder(mechanisms)
    journal = None
    if out is not None:
        about = _identity(builder, points, {**options, "chain": chain}, out, folder)
        journal = Journal(out, points, about)
    run = _Run(builder, points, options, journal, folder, progress or (lambda done, total: None))
    try:
        return run.table(chains, executor)
    finally:
        if journal is not None:
            journal.close()


@dataclass(eq=False)
class _Chain:
    """Points that are solved one after the other.

    Attributes:
        positions: of those that are left.
        restart: what the point before them left.
    """

    positions: deque[int]
    restart: Restart | None = None


class _Run:
    """The state of one call of `sweep`: chains under way, rows written, failures."""

    def __init__(
        self,
        builder: Builder,
        points: Points,
        options: Mapping[str, Any],
        journal: Journal | None,
        folder: Path | None,
        progress: Callable[[int, int], None],
    ) -> None:
        self.builder, self.points, self.options = builder, points, options
        self.journal, self.folder, self.progress = journal, folder, progress
        self.rows: dict[int, Row] = {}
        self.active: dict[Future[Answer], _Chain] = {}
        self.finished: SimpleQueue[Future[Answer]] = SimpleQueue()

    def table(self, chains: tuple[range, ...], executor: Executor | None) -> Sweep:
        """Solve what is left, and write the table."""
        waiting = deque(left for left in map(self._left, chains) if left.positions)
        self.progress(len(self.rows), len(self.points.all))
        if waiting and executor is not None:
            try_executor(executor, self.builder, self.points.all)
        self._solve(waiting, Here() if executor is None else executor)
        done = self._sweep()
        if self.journal is not None:
            done.save(self.journal.out)
            self.journal.remove()
        return done

    def _left(self, chain: range) -> _Chain:
        """What is left of a chain: all of it where it cannot go on from its last point as it would have."""
        rows = {} if self.journal is None else self.journal.rows
        known = [position for position in chain if position in rows]
        count = len(known) if known == list(chain[: len(known)]) else 0
        restart = None
        if self.journal is not None and 0 < count < len(chain) and not rows[chain[count - 1]].failed:
            restart = self.journal.restart(chain[count - 1])
            count = count if restart is not None else 0
        self.rows.update((position, rows[position]) for position in chain[:count])
        return _Chain(deque(chain[count:]), restart)

    def _solve(self, waiting: deque[_Chain], executor: Executor) -> None:
        """At most one point of a chain is under way; in this process, one in all."""
        try:
            while waiting or self.active:
                while waiting and not (self.active and isinstance(executor, Here)):
                    self._submit(waiting.popleft(), executor)
                if self.active:
                    self._take(self.finished.get(), waiting, executor)
        finally:
            for future in self.active:
                future.cancel()

    def _submit(self, chain: _Chain, executor: Executor) -> None:
        point = self.points.all[chain.positions[0]]
        task = Task(self.builder, point, chain.restart, self.options, self.folder is not None)
        try:
            future = executor.submit(work, task)
        except RuntimeError as cause:  # it broke, or is shut down
            self._broken(cause, executor)
            return
        self.active[future] = chain
        future.add_done_callback(self.finished.put)

    def _take(self, future: Future[Answer], waiting: deque[_Chain], executor: Executor) -> None:
        """Write down what came of a point; the next one of its chain waits."""
        try:
            answer = future.result()
        except (BrokenExecutor, CancelledError) as cause:
            self._broken(cause, executor)
            return
        except Exception as cause:  # its worker was lost, and the executor has others
            answer = Answer(failure(cause))
        chain = self.active.pop(future)
        self._add(chain, answer)
        if chain.positions:
            waiting.appendleft(chain)

    def _add(self, chain: _Chain, answer: Answer) -> None:
        position = chain.positions.popleft()
        row = Row(self.points.all[position], **answer.entries)
        chain.restart = answer.restart if chain.positions else None
        if self.folder is not None and answer.mechanism is not None:
            mechanism, record = answer.mechanism
            mechanism.save(self.folder / f"{position:05d}.json", record)
        if self.journal is not None:
            self.journal.add(position, row, chain.restart)
        self.rows[position] = row
        self.progress(len(self.rows), len(self.points.all))

    def _broken(self, cause: Exception, executor: Executor) -> None:
        """Write down what was finished before the executor broke; raise unless that is all.

        Workers take points in the order in which they were handed out: a single one was at the first.
        """
        wait(self.active, timeout=GRACE)
        lost = []
        for future, chain in self.active.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self._add(chain, future.result())
            else:
                lost.append(chain)
        self.active.clear()
        workers = getattr(executor, "_max_workers", len(lost))
        if workers == 1 and lost and isinstance(cause, BrokenExecutor):
            self._add(lost.pop(0), Answer(failure(cause)))
        if len(self.rows) < len(self.points.all):
            finished = f"{len(self.rows)} of {len(self.points.all)} points are finished"
            where = "in the `sweep` of this error" if self.journal is None else f"in {self.journal.path}"
            there = [str(dict(self.points.all[chain.positions[0]])) for chain in lost[:workers]]
            raise SweepStoppedError(
                f"the executor broke ({type(cause).__name__}: {cause}); {finished}, {where}. The cause may "
                "be a point under way, such as one that needs more memory than there is: "
                f"{', '.join(there[:SHOWN]) or 'none is known'}. Call sweep again with a new executor to go "
                "on. A pool of one process finds the point that breaks it, and the next call goes on past it",
                self._sweep(),
            ) from cause

    def _sweep(self) -> Sweep:
        return Sweep(self.points.names, tuple(self.rows[position] for position in sorted(self.rows)))


def _check(builder: Any, executor: Any, options: Mapping[str, Any]) -> None:
    """Complain of what no point could be solved with."""
    if not callable(builder):
        raise SweepError(f"the builder is {builder!r:.60}: give a function that returns design(...)")
    if executor is not None and not hasattr(executor, "submit"):
        raise SweepError(
            f"the executor is {executor!r:.60}: give one with `submit`, as concurrent.futures has"
        )
    check_options(options["time_limit"], options["tolerance"])
    check_name(options["solver"])


def _folder(path: File) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as cause:
        raise FileFormatError(f"{folder}: is not a folder and cannot be made one: {cause}") from None
    return folder


def _identity(
    builder: Builder, points: Points, options: Mapping[str, Any], out: File, folder: Path | None
) -> dict[str, Any]:
    """What a journal must agree with, by name."""
    place = None if folder is None else os.path.relpath(folder, Path(out).parent)
    return {
        "pmlopt": __version__,
        "builder": name_of(builder),
        **options,
        "mechanisms": place,
        "names": list(points.names),
        "grid": [[text_of(value) for value in point.values()] for point in points.all],
        "data in the builder or the grid": fingerprint(builder, points.all),
    }
