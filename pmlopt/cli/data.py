"""Options of commands that read a data file, and that work side by side, and the command that counts."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

from pmlopt.cli.options import TARGET, Arg, Opt, command, main
from pmlopt.cli.printing import say, terminal
from pmlopt.cli.reading import read_counts, read_prior
from pmlopt.core import files
from pmlopt.core.frames import Missing
from pmlopt.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pmlopt.core.arrays import Label
    from pmlopt.data.prior import Prior
    from pmlopt.data.tables import CsvForm, Table


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

    def executor(self) -> AbstractContextManager[Executor | None]:
        """What runs the tasks; None for this process. An interrupt ends processes at once.

        Raises:
            InputError: both were asked for, or no scheduler answers at the address.
        """
        if self.scheduler is not None:
            if self.workers > 1:
                raise InputError(
                    "--workers are processes of this machine, and --scheduler has its own: give one"
                )
            return _client(self.scheduler)
        return nullcontext() if self.workers == 1 else _processes(self.workers)


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


Delimiter: TypeAlias = Annotated[
    str | None, Opt("Of a CSV data file: one character, or tab; else it is found.")
]
Encoding: TypeAlias = Annotated[
    str | None, Opt("Of a CSV data file, such as cp1252; else UTF-8, or as its mark says.")
]
PriorFile: TypeAlias = Annotated[
    Path, Opt("CSV with a header and two columns: letter, and count or probability.", "--prior")
]
Columns: TypeAlias = Annotated[tuple[str, ...], Opt(
    "The file of the prior is data instead (CSV, Parquet or Arrow): count this column of it, or the tuples "
    "of several.", "--column"
)]  # fmt: skip
MissingCells: TypeAlias = Annotated[Missing, Opt(
    "What to do with a missing cell: refuse it, drop the row, or make it the letter '', empty text."
)]  # fmt: skip
Who: TypeAlias = Annotated[
    str | None, Opt("With --ledger: the column of DATA with the numbers of the people, from 0.")
]
Seed: TypeAlias = Annotated[
    int | None, Opt("For tests: whoever knows it knows the draws.", type=click.IntRange(min=0))
]


@dataclass(frozen=True)
class DataOptions:
    """How a CSV file of data is written; None where that shall be found."""

    delimiter: Delimiter = None
    encoding: Encoding = None

    @property
    def form(self) -> CsvForm:
        """The delimiter and the encoding."""
        from pmlopt.data.tables import CsvForm

        return CsvForm(self.delimiter, self.encoding)

    def open(self, path: Path) -> Table:
        """The table of a data file."""
        from pmlopt.data.tables import open_table

        return open_table(path, self.form)

    def counts(self, path: Path, columns: Sequence[str], missing: Missing = "refuse") -> dict[Label, int]:
        """How often each value of a column of a data file occurs, or each tuple of values of several."""
        found = self.tuple_counts(path, columns, missing)
        return {(label if len(columns) > 1 else label[0]): count for label, count in found.items()}

    def tuple_counts(
        self, path: Path, columns: Sequence[str], missing: Missing = "refuse"
    ) -> dict[tuple[Label, ...], int]:
        """How often each tuple of values occurs in some columns of a data file."""
        from pmlopt.data.tables.counting import tally

        with self.open(path) as table:
            return tally(table, columns, missing)

    def texts(self, path: Path, columns: Sequence[str]) -> list[list[str]]:
        """The cells of some columns of a data file as text, an empty one where one is missing."""
        from pmlopt.data.tables.reading import texts_in

        with self.open(path) as table:
            return texts_in(table, columns)


@dataclass(frozen=True)
class ColumnOptions(DataOptions):
    """How a prior is read: from a table of letters, or by counting columns of a data file."""

    columns: Columns = ()
    missing: MissingCells = "refuse"

    def law_in(self, path: Path) -> Prior:
        """The prior of a table of letters, or of columns of a data file."""
        if not self.columns:
            return read_prior(path)
        from pmlopt.data.prior import Prior

        return Prior.from_counts(self.counts(path, self.columns, self.missing))

    def sample_in(self, path: Path) -> Prior:
        """The same, with its sample size."""
        return self.law_in(path) if self.columns else read_counts(path)


@command(main, "count")
def count_command(
    data: Annotated[Path, Arg("DATA")],
    columns: Annotated[
        tuple[str, ...], Opt("The column of DATA to count; of several, their tuples.", "--column")
    ],
    form: DataOptions,
    by: Annotated[
        str | None, Opt("Another column, such as that of a secret: count the pairs, as a crosstab.")
    ] = None,
    missing: MissingCells = "refuse",
    output: Annotated[
        Path, Opt("The CSV file to write; standard output if left out.", "-o/--output", TARGET)
    ] = Path("-"),
) -> None:
    """Count the values in columns of DATA.

    DATA is CSV, Parquet or Arrow. What it writes is a prior for --prior and --counts, of several columns with
    their tuples as letters; or with --by a joint law for --about: a row for each value of that column, and a
    column for each value of the other.
    """
    from pmlopt.data.tables import cross_counts

    if by is not None and len(columns) > 1:
        raise InputError("--by counts the pairs with one column: give --column once")
    if by is None:
        found = form.tuple_counts(data, columns, missing)
        rows: list[list[Any]] = [[*columns, "count"], *([*label, count] for label, count in found.items())]
    else:
        pairs = cross_counts(data, by, columns[0], missing, form.form)
        letters = list(dict.fromkeys(letter for _, letter in sorted(pairs, key=lambda pair: str(pair[1]))))
        values = list(dict.fromkeys(value for value, _ in pairs))
        rows = [
            [by, *letters],
            *([value, *(pairs.get((value, letter), 0) for letter in letters)] for value in values),
        ]
    files.write_whole(output, files.csv_bytes(rows))


@contextmanager
def row_progress(table: Table) -> Iterator[Callable[[int], None]]:
    """A line on a terminal with rows, rows a second and the time that is left; a function that adds rows."""
    if (console := terminal()) is None:
        yield lambda rows: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[rows]:,} rows, {task.fields[rate]:,.0f} a second"),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0 if table.done() is not None else None, rows=0, rate=0.0)

        def add(rows: int) -> None:
            shown = bar.tasks[0]
            total = shown.fields["rows"] + rows
            bar.update(
                task, completed=table.done() or 0.0, rows=total, rate=total / max(shown.elapsed or 0.0, 1e-9)
            )

        yield add


def warn_of_seed(seed: int | None) -> None:
    """Say that a seed is for tests."""
    if seed is not None:
        say(
            "warning: with --seed whoever knows or guesses the seed knows the draws: for tests only", err=True
        )


@dataclass(frozen=True)
class Beside:
    """Which of the other columns of a data file stay, in clear, beside what is released."""

    keep: Annotated[
        tuple[str, ...], Opt("Another column that stays, in clear; the rest goes. Give it once for each.")
    ] = ()
    drop: Annotated[tuple[str, ...], Opt("Another column that goes. Give it once for each.")] = ()
    drop_all: Annotated[bool, Opt("All other columns go.")] = False

    def columns(self, names: Sequence[str], taken: Sequence[str], where: object, assessed: bool) -> list[str]:
        """The names of the other columns that stay, which are said: nothing is written yet.

        Args:
            names: of all columns.
            taken: those that are released.
            where: the data file, for messages.
            assessed: whether it is printed later what they tell.

        Raises:
            InputError: a name is of no other column, or more than one option says which stay.
        """
        from pmlopt.data.tables import column_place

        places = [column_place(names, name, where) for name in taken]
        others = [name for place, name in enumerate(names) if place not in places]
        if (self.keep != ()) + (self.drop != ()) + self.drop_all > 1:
            raise InputError("--keep, --drop and --drop-all all say which columns stay: give one")
        for name in self.keep + self.drop:
            if name not in others:
                raise InputError(
                    f"--keep or --drop: {name!r} is no other column of {list(names)}: name one column by "
                    "each option, and give --drop-all to drop all"
                )
        if self.drop_all:
            return []
        stay = [name for name in others if (name in self.keep if self.keep else name not in self.drop)]
        if stay:
            text = f"stay in clear: {', '.join(map(repr, stay))}"
            if not self.keep and not self.drop and not assessed:
                text = (
                    f"warning: {text}; the level of the mechanism does not count what they tell: choose with "
                    "--keep, --drop or --drop-all, and see --assess"
                )
            say(text, err=True)
        return stay
