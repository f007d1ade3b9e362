"""The execution of sweeps: points are solved by workers and recorded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from pmlopt import __version__
from pmlopt.core.programming_errors import raise_if_strict
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, SolverError, SweepError, SweepStoppedError
from pmlopt.programs.program import Program
from pmlopt.programs.result import Result
from pmlopt.programs.solving import check_limits, check_solver_name, solve
from pmlopt.solvers.solver_result import limit_threads
from pmlopt.sweeps.journal import SweepJournal, compute_fingerprint, get_builder_name
from pmlopt.sweeps.table import (
    FAILED,
    Grid,
    Points,
    Sweep,
    SweepRow,
    format_cell,
    join_lines,
    list_points,
)


@dataclass(frozen=True, eq=False)
class PointAnswer:
    """A solved point's answer as picklable data.

    Attributes:
        entries: the cells of the row, by column.
        mechanism: with its certificate and the solver's record, where it is wanted and there is one.
    """

    entries: Mapping[str, Any]
    mechanism: tuple[Mechanism, Mapping[str, Any]] | None = None


_TURN = threading.Lock()
"""One point at a time in a process: cvxpy numbers its variables by a counter that threads would tear."""


def solve_point(
    builder: Callable[..., Program[Any]],
    point: Mapping[str, Any],
    options: Mapping[str, Any],
    keeps: bool,
) -> PointAnswer:
    """Solve one point; errors are returned as answers.

    Whatever goes wrong with it is an answer too; only an interrupt is raised.

    Args:
        builder: of the program.
        point: what it is called with.
        options: of `pmlopt.solve`.
        keeps: whether the mechanism is wanted.
    """
    with _TURN, limit_threads():
        begin = time.perf_counter()
        result: Result[Any] | None = None
        failed: dict[str, Any] = {}
        try:
            result = solve(builder(**point), **options)
        except KeyboardInterrupt:
            raise
        except BaseException as cause:  # solvers written in Rust panic past Exception
            raise_if_strict(cause)
            failed = make_error_cells(cause)
            result = cause.result if isinstance(cause, SolverError) else None
        seconds = time.perf_counter() - begin
    if result is None:
        return PointAnswer({**failed, "seconds": seconds})
    entries: dict[str, Any] = {
        name: float(getattr(result, name)) for name in ("value", "bound", "gap", "level")
    }
    entries |= {
        "status": result.status.value,
        "solver": result.solver,
        "iterations": None if result.iterations is None else int(result.iterations),
        "warm_started": bool(result.warm_started),
    }
    kept = None
    if keeps:
        record = {key: item for key, item in result.to_dict().items() if key != "mechanism"}
        kept = result.mechanism, record
    return PointAnswer({**entries, **failed, "seconds": seconds}, kept)


def make_error_cells(error: BaseException) -> dict[str, Any]:
    """Return the table cells of a failed point."""
    return {"status": FAILED, "error": join_lines(f"{type(error).__name__}: {error}")}


def check_executor(executor: Executor, *data: Any) -> None:
    """Check that a worker can unpickle pmlopt data.

    Raises:
        SweepError: it cannot; the message states what to do.
    """
    try:
        executor.submit(bool, data).result()  # a process that can run it has the data
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
    solver_options: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Solve a grid of related problems, with finished points kept on disk.

    Each point is solved separately, so that every executor, however many workers it has, gives the same table
    but for the seconds. (A time limit cuts by the clock: what it cuts may differ.)

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
        time_limit: seconds for each point.
        solver_options: options of the solver that `solver` names, as `pmlopt.solve` takes them.
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
    points = list_points(grid, builder)
    solver = check_solver_name(solver)
    options: dict[str, Any] = {"solver": solver, "tolerance": tolerance, "time_limit": time_limit}
    if solver_options:
        options["solver_options"] = solver_options
    _check_arguments(builder, executor, options)
    folder, journal = None if mechanisms is None else Path(mechanisms), None
    if folder is not None:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as cause:
            raise FileFormatError(
                f"{folder}: is not a folder and cannot be made one: {cause}"
            ) from None
    if out is not None:
        about = _describe_sweep(builder, points, options, out, folder)
        journal = SweepJournal(out, points, about)
    rows = {} if journal is None else dict(journal.rows)
    run = _SweepRun(
        builder, points, options, journal, folder, progress or (lambda done, total: None), rows
    )
    try:
        return run.solve_table(executor)
    finally:
        if journal is not None:
            journal.close()


@dataclass(eq=False)
class _SweepRun:
    """The state of a running sweep: pending points, rows and failures."""

    builder: Builder
    points: Points
    options: Mapping[str, Any]
    journal: SweepJournal | None
    folder: Path | None
    progress: Callable[[int, int], None]
    rows: dict[int, SweepRow]
    active: dict[Future[PointAnswer], int] = field(default_factory=dict)
    finished: SimpleQueue[Future[PointAnswer]] = field(default_factory=SimpleQueue)

    def solve_table(self, executor: Executor | None) -> Sweep:
        """Solve the remaining points, and write the table."""
        left = [position for position in range(len(self.points)) if position not in self.rows]
        self.progress(len(self.rows), len(self.points))
        if left and executor is not None:
            check_executor(executor, self.builder, self.points)
        self._solve_points(left, executor)
        done = self._build_sweep()
        if self.journal is not None:
            done.save(self.journal.out)
            self.journal.remove()
        return done

    def _solve_points(self, left: list[int], executor: Executor | None) -> None:
        """Submit all points to the executor, or solve them serially."""
        tasks = [
            (position, (self.builder, self.points[position], self.options, self.folder is not None))
            for position in left
        ]
        if executor is None:
            with limit_threads():  # once: for each point it takes as long as a part of a design
                for position, task in tasks:
                    self._add_row(position, solve_point(*task))
            return
        try:
            for position, task in tasks:
                try:
                    future = executor.submit(solve_point, *task)
                except RuntimeError as cause:  # it broke, or is shut down
                    self._finish_broken(cause, executor)
                    return
                self.active[future] = position
                future.add_done_callback(self.finished.put)
            while self.active:
                self._record_future(self.finished.get(), executor)
        finally:
            for future in self.active:
                future.cancel()

    def _record_future(self, future: Future[PointAnswer], executor: Executor) -> None:
        """Record a finished point."""
        try:
            answer = future.result()
        except (BrokenExecutor, CancelledError) as cause:
            self._finish_broken(cause, executor)
            return
        except Exception as cause:  # its worker was lost, and the executor has others
            raise_if_strict(cause)
            answer = PointAnswer(make_error_cells(cause))
        self._add_row(self.active.pop(future), answer)

    def _add_row(self, position: int, answer: PointAnswer) -> None:
        """Add a point's row to journal and table, and save its mechanism."""
        row = SweepRow(self.points[position], **answer.entries)
        if self.folder is not None and answer.mechanism is not None:
            mechanism, record = answer.mechanism
            mechanism.save(self.folder / f"{position:05d}.json", record)
        if self.journal is not None:
            self.journal.add(position, row)
        self.rows[position] = row
        self.progress(len(self.rows), len(self.points))

    def _finish_broken(self, cause: Exception, executor: Executor) -> None:
        """Save finished rows after the executor broke, and raise an error for the rest.

        Workers take points in the order in which they were handed out: a single one was at the first.
        """
        # Seconds for what is under way when an executor breaks or is shut down.
        wait(self.active, timeout=10.0)
        lost = []
        for future, position in self.active.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                self._add_row(position, future.result())
            else:
                lost.append(position)
        self.active.clear()
        workers = getattr(executor, "_max_workers", len(lost))
        if workers == 1 and lost and isinstance(cause, BrokenExecutor):
            self._add_row(lost.pop(0), PointAnswer(make_error_cells(cause)))
        if len(self.rows) < len(self.points):
            finished = f"{len(self.rows)} of {len(self.points)} points are finished"
            where = (
                "in the `sweep` of this error"
                if self.journal is None
                else f"in {self.journal.path}"
            )
            there = [str(dict(self.points[position])) for position in lost[:workers]]
            # How many points a message names.
            raise SweepStoppedError(
                f"the executor broke ({type(cause).__name__}: {cause}); {finished}, {where}. The cause may "
                "be a point under way, such as one that needs more memory than there is: "
                f"{', '.join(there[:4]) or 'none is known'}. Call sweep again with a new executor to go "
                "on. A pool of one process finds the point that breaks it, and the next call goes on past it",
                self._build_sweep(),
            ) from cause

    def _build_sweep(self) -> Sweep:
        """Build the table of all rows."""
        return Sweep(
            tuple(self.points[0]), tuple(self.rows[position] for position in sorted(self.rows))
        )


def _check_arguments(builder: Any, executor: Any, options: Mapping[str, Any]) -> None:
    """Raise an error for invalid sweep arguments."""
    if not callable(builder):
        raise SweepError(
            f"the builder is {builder!r:.60}: give a function that returns design(...)"
        )
    if executor is not None and not hasattr(executor, "submit"):
        raise SweepError(
            f"the executor is {executor!r:.60}: give one with `submit`, as concurrent.futures has"
        )
    check_limits(
        options["time_limit"],
        options["tolerance"],
        options["solver"],
        options.get("solver_options"),
    )


def _describe_sweep(
    builder: Builder, points: Points, options: Mapping[str, Any], out: File, folder: Path | None
) -> dict[str, Any]:
    """Return the named data that identify a sweep."""
    place = None if folder is None else os.path.relpath(folder, Path(out).parent)
    own = options.get("solver_options")
    named = (
        {} if own is None else {"solver_options": {name: repr(own[name]) for name in sorted(own)}}
    )
    return {
        "pmlopt": __version__,
        "builder": get_builder_name(builder),
        **options,
        **named,
        "mechanisms": place,
        "names": list(points[0]),
        "grid": [[format_cell(value) for value in point.values()] for point in points],
        "data in the builder or the grid": compute_fingerprint(builder, points),
    }
