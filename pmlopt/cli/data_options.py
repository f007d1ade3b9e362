"""Options of data files: format, counting, and the rows and columns to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import click

from pmlopt.cli.exits import prints_json
from pmlopt.cli.printing import open_console
from pmlopt.cli.reading import read_prior, require_counts
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import pluralize
from pmlopt.core.frames import Missing
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import Label, join_words
from pmlopt.errors import FileFormatError, InputError

if TYPE_CHECKING:
    from pmlopt.core.numbers.counts import CountedTuples
    from pmlopt.data.prior import Prior
    from pmlopt.tables import CsvFormat, Database, Table


PriorFile: TypeAlias = Annotated[
    Path, "CSV with a header and two columns: letter, and count or probability."
]
MissingCells: TypeAlias = Annotated[
    Missing,
    "What to do with rows that have a missing cell: refuse them; drop them, for shares among the others; or "
    "letter: count the cell as a value of its own, ''.",
]
KeepOrder: TypeAlias = Annotated[
    bool,
    "Keep the order of the rows, which may reveal what DATA are sorted by; else it is random.",
]
PersonColumn: TypeAlias = Annotated[
    str | None, "With --ledger: the column of DATA with the numbers of the people, from 0."
]
Seed: TypeAlias = Annotated[
    int | None, "For tests: the seed determines the draws.", click.IntRange(min=0)
]


@light_dataclass(frozen=True)
class DataOptions:
    """How a data file is read: options that are None are detected; and what its letters are."""

    delimiter: Annotated[
        str | None, "Of a CSV data file: one character, or tab; else it is found."
    ] = None
    encoding: Annotated[
        str | None,
        "Of a CSV data file, such as cp1252; else UTF-8, or by its byte order mark. Of one of SPSS, Stata or "
        "SAS in place of what it states.",
    ] = None
    sheet: Annotated[
        str | None, "Of a workbook the sheet, of a file of R the data frame, where it has several."
    ] = None
    labels: Annotated[
        bool, "Of a file of SPSS, Stata or SAS: value labels are the letters, in place of codes."
    ] = False

    @property
    def csv_format(self) -> CsvFormat:
        """Return the CSV format of the options."""
        from pmlopt.tables import CsvFormat

        return CsvFormat(self.delimiter, self.encoding, sheet=self.sheet, labels=self.labels)

    def open_table(self, path: Path | Database) -> Table:
        """Open a data file as a table."""
        from pmlopt.tables import open_table

        return open_table(path, self.csv_format)

    def count_values(
        self, path: Path, columns: Sequence[str], missing: Missing = "refuse"
    ) -> dict[Label, int]:
        """Count the values (or value tuples) of columns in a data file."""
        found = self.count_tuples(path, columns, missing)
        return {(label if len(columns) > 1 else label[0]): count for label, count in found.items()}

    def count_tuples(
        self,
        path: Path,
        columns: Sequence[str],
        missing: Missing = "refuse",
        weight_column: str | None = None,
    ) -> CountedTuples:
        """Count the value tuples of columns in a data file, and print how many rows have a missing cell."""
        from pmlopt.tables.counting import count_tuples
        from pmlopt.tables.missing_cells import MissingRows

        lacking = MissingRows(weight_column=weight_column)
        with self.open_table(path) as table:
            found = count_tuples(table, columns, missing, lacking)
            labels = [table.find_value_labels(name) for name in columns]
        for name, known, letters in zip(columns, labels, found.letters, strict=True):
            if named := [f"{one} ({known[one]})" for one in letters if one in known]:
                print_line(f"{path}: the values of {name!r} are {join_words(named, 30)}", err=True)
        if lacking.missing:
            print_line(lacking.describe(missing), err=True)
        return found

    def read_texts(self, path: Path, columns: Sequence[str]) -> list[list[str]]:
        """Read columns of a data file as text; missing cells are empty."""
        from pmlopt.tables.reading import read_texts

        with self.open_table(path) as table:
            return read_texts(table, columns)


@light_dataclass(frozen=True)
class DatabaseOptions:
    """The options of a database that is given by its URL in place of a data file."""

    table: Annotated[str | None, "Of a database, whose URL is DATA: the table."] = None
    query: Annotated[str | None, "Of a database: the SQL that selects its rows, for --table."] = (
        None
    )
    into: Annotated[
        str | None,
        "Write the released rows to a new table of the database, too, in one transaction.",
    ] = None

    @contextmanager
    def open_source(self, data: Path | str) -> Iterator[Path | Database]:
        """Yield the path of a data file, or the database with an open connection."""
        from pmlopt.tables import Database

        if isinstance(data, str):
            with Database(data, table=self.table, query=self.query) as database:
                yield database
        elif self != DatabaseOptions():
            raise InputError(
                "--table, --query and --into are of a database: give one by its URL, such as sqlite:///FILE"
            )
        else:
            yield data

    def reserve_table(self, source: Path | Database) -> None:
        """Make the new table, where one is to be written, before anything is drawn."""
        if self.into is not None and not isinstance(source, Path):
            source.reserve_table(self.into)

    def explain_absent_table(self, folder: Path) -> None:
        """Print that the new table is still to be written, where a release was only published now."""
        if self.into is not None:
            print_line(f"The table {self.into} is not there: write it from {folder}.", err=True)

    def fill_table(self, source: Path | Database, released: Path) -> None:
        """Write the released rows to the new table, where one is to be written."""
        if self.into is None or isinstance(source, Path):
            return
        try:
            rows = source.fill_table(self.into, released)
        except InputError as error:
            raise FileFormatError(
                f"the folder is published, and the table {self.into!r} is not there: write it from "
                f"{released} ({error})"
            ) from None
        print_line(f"{rows:,} rows written to the new table {self.into}.", err=prints_json())


@light_dataclass(frozen=True)
class ColumnOptions(DataOptions):
    """Options for reading a prior: from a letter table, or by counting data columns."""

    columns: Annotated[
        tuple[str, ...],
        "The file of the prior is data instead (CSV, Parquet or Arrow): count this column of it, or the "
        "tuples of several.",
        "--column",
    ] = ()
    missing: MissingCells = "refuse"
    normalise: Annotated[
        bool,
        "Divide shares that sum to one but for rounding (within 0.01) by their sum; with `audit` the rows of "
        "the matrix too.",
    ] = False

    def read_law(self, path: Path, announce: bool = True) -> Prior:
        """Read the prior of a table of letters, or of columns of a data file.

        Args:
            path: of the file.
            announce: whether the prior is printed to standard error; with --json it is not.
        """
        from pmlopt.core.files.letter_files import LetterLayoutError
        from pmlopt.data.prior import Prior

        if self.columns:
            prior = Prior.from_counts(self.count_values(path, self.columns, self.missing))
        else:
            try:
                prior = read_prior(path, self.normalise)
            except LetterLayoutError as error:
                raise LetterLayoutError(f"{error}{_suggest_column(error.columns)}") from None
        if announce and not prints_json():
            print_line(self.describe_law(path, prior), err=True)
        return prior

    def describe_law(self, path: Path, prior: Prior) -> str:
        """Describe the prior of a file: how it was read, and its shares."""
        people = pluralize(prior.samples or 0, "person", "people")
        if self.columns:
            read = f"{join_words(map(repr, self.columns))} of {people} counted"
        else:
            read = "read as shares" if prior.samples is None else f"read as counts of {people}"
        return describe_shares(f"{path.name}, {read}", prior)

    def read_sample(self, path: Path, announce: bool = True) -> Prior:
        """Read the prior with its sample size."""
        return require_counts(self.read_law(path, announce), path)


def describe_shares(source: str, prior: Prior) -> str:
    """Return the line on a prior: where it is from, and its shares.

    Examples:
        >>> from pmlopt.data.prior import Prior
        >>> describe_shares("p.csv, read as shares", Prior([0.75, 0.25], ["low", "high"]))
        'The prior is p.csv, read as shares; low: 0.75, high: 0.25.'
    """
    shares = zip(prior.labels, prior.pmf.tolist(), strict=True)
    most = 12  # letters that are listed
    listed = [f"{join_words([label])}: {share:.4g}" for label, share in islice(shares, most)]
    left = "" if prior.size <= most else f", and {pluralize(prior.size - most, 'other')}"
    return f"The prior is {source}; {', '.join(listed)}{left}."


def _suggest_column(names: Sequence[str]) -> str:
    """Return the advice to count a column of a data file; empty without names."""
    if not names:
        return ""
    which = (
        repr(names[0]) if len(names) == 1 else f"one of {join_words(map(repr, names), 20, 'or')}"
    )
    return (
        f". If it is data, a row for each person, add --column with {which}: its values are counted"
    )


@contextmanager
def show_row_progress(table: Table) -> Iterator[Callable[[int], None]]:
    """Show a progress line of rows on a terminal, and yield the function that advances it."""
    if (console := open_console()) is None:
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

        def add_rows(rows: int) -> None:
            shown = bar.tasks[0]
            total = shown.fields["rows"] + rows
            bar.update(
                task,
                completed=table.done() or 0.0,
                rows=total,
                rate=total / max(shown.elapsed or 0.0, 1e-9),
            )

        yield add_rows


def warn_of_seed(seed: int | None) -> None:
    """Warn that a seed makes the release predictable."""
    if seed is not None:
        print_line(
            "warning: with --seed anyone who guesses the seed knows the draws: for tests only",
            err=True,
        )


def warn_of_order(keep_order: bool) -> None:
    """Warn that kept row order may identify people."""
    if keep_order:
        print_line(
            "warning: with --keep-order the rows keep the order of the data, and may reveal what these are "
            "sorted by: the level of the mechanism does not include that",
            err=True,
        )


@light_dataclass(frozen=True)
class KeepOptions:
    """Options for the other columns of a data file: kept in clear, or dropped."""

    keep: Annotated[
        tuple[str, ...],
        "Another column that stays, in clear; the rest goes. Give it once for each.",
    ] = ()
    drop: Annotated[tuple[str, ...], "Another column that goes. Give it once for each."] = ()
    drop_all: Annotated[bool, "All other columns go."] = False

    def list_kept(
        self, names: Sequence[str], taken: Sequence[str], where: object, assessed: bool
    ) -> list[str]:
        """Return and print the columns kept in clear.

        Args:
            names: of all columns.
            taken: those that are released.
            where: the data file, for messages.
            assessed: whether it is printed later what they reveal.

        Raises:
            InputError: a name is of no other column, more than one option selects those that stay, or none
                does and some would.
        """
        from pmlopt.tables import find_column

        places = [find_column(names, name, where) for name in taken]
        others = [name for place, name in enumerate(names) if place not in places]
        if (self.keep != ()) + (self.drop != ()) + self.drop_all > 1:
            raise InputError(
                "--keep, --drop and --drop-all all select the columns that stay: give one"
            )
        for name in self.keep + self.drop:
            find_column(names, name, where)
            if name not in others:
                raise InputError(
                    f"--keep or --drop: the column {name!r} is released: leave it out here"
                )
        if self.drop_all:
            return []
        stay = [
            name for name in others if (name in self.keep if self.keep else name not in self.drop)
        ]
        named = ", ".join(map(repr, stay))
        if stay and not self.keep and not self.drop and not assessed:
            raise InputError(
                f"{where}: nothing is said of {named}, which would be published unchanged: choose by "
                "--keep, --drop or --drop-all; --assess prints what they reveal"
            )
        if stay:
            print_line(f"stay in clear: {named}", err=True)
        return stay
