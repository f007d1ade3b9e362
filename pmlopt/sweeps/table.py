"""The points and result table of a sweep."""

from __future__ import annotations

import io
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import product
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_type_hints

import numpy as np

from pmlopt.core.display import format_table_html, format_table_latex, import_pandas
from pmlopt.core.files.csv_rows import encode_csv
from pmlopt.core.files.disk import atomic_write, encode_json_bytes, get_file_format
from pmlopt.core.lazy_imports import import_optional
from pmlopt.core.records.fields import finite_or_none, have_equal_content
from pmlopt.errors import SweepError
from pmlopt.programs.plots import FIGURE_FORMATS, draw_curves, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def to_plain_number(value: Any) -> Any:
    """Convert a numpy number to a plain one."""
    return value.item() if isinstance(value, np.generic) else value


def to_plain_value(value: Any) -> Any:
    """Convert a grid value to text, number, boolean or None.

    Examples:
        >>> (
        ...     to_plain_value(np.float64(0.5)),
        ...     to_plain_value("a"),
        ...     to_plain_value(to_plain_value),
        ...     to_plain_value((1, 2)),
        ... )
        (0.5, 'a', 'to_plain_value', '(1, 2)')
    """
    value = to_plain_number(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    name = getattr(value, "__qualname__", None)
    return name if isinstance(name, str) else re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def format_cell(value: Any) -> str:
    """Format a table cell; floats exactly, None as empty.

    Examples:
        >>> format_cell(0.1 + 0.2), format_cell(None), format_cell(True)
        ('0.30000000000000004', '', 'True')
    """
    known = to_plain_value(value)
    return "" if known is None else repr(known) if isinstance(known, float) else str(known)


def parse_cell(column: str, text: str) -> Any:
    """Parse a table cell: the inverse of `format_cell`.

    Examples:
        >>> (
        ...     parse_cell("value", "0.30000000000000004"),
        ...     parse_cell("error", ""),
        ...     parse_cell("warm_started", "False"),
        ... )
        (0.30000000000000004, None, False)
    """
    if text == "":
        return None
    kind = COLUMNS[column]
    return text == "True" if kind is bool else kind(text)


def join_lines(text: str) -> str:
    """Replace line ends by spaces."""
    return " ".join(text.split())


ENDINGS = (".csv", ".parquet", ".json")
FAILED = "failed"


@dataclass(frozen=True)
class SweepRow:
    """A grid point with its solved answer.

    Attributes:
        point: its coordinates, as the builder got them.
        status: as of a `Result`, or "failed".
        value, bound, gap, level: of the certified mechanism; of a failed point None, unless its
            solver left one that is not proved well enough.
        solver, iterations, warm_started: as of a `Result`.
        seconds: for building, solving and certifying.
        error: what went wrong with a failed point.
    """

    point: Mapping[str, Any]
    status: str
    value: float | None = None
    bound: float | None = None
    gap: float | None = None
    level: float | None = None
    solver: str | None = None
    iterations: int | None = None
    warm_started: bool | None = None
    seconds: float | None = None
    error: str | None = None

    @property
    def failed(self) -> bool:
        """Return whether the point failed."""
        return self.status == FAILED

    @property
    def cells(self) -> list[Any]:
        """Return the row's plain values by column."""
        return [
            *map(to_plain_value, self.point.values()),
            *(getattr(self, name) for name in COLUMNS),
        ]


COLUMNS: Mapping[str, type] = {
    name: (get_args(kind) or (kind,))[0]
    for name, kind in get_type_hints(SweepRow).items()
    if name != "point"
}
"""The columns of a table after those of the grid, and what they hold; any but the status may be empty."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """The result table of a sweep, in grid order.

    Attributes:
        names: the coordinates of the grid's points.
        rows: one for each point.
    """

    names: tuple[str, ...]
    rows: tuple[SweepRow, ...]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.rows)

    def __iter__(self) -> Iterator[SweepRow]:
        """Iterate over the rows, in grid order."""
        return iter(self.rows)

    def __bool__(self) -> bool:
        """Return True, for a table without points too."""
        return True

    def __eq__(self, other: object) -> bool:
        """Return whether two tables have the same columns and cells."""
        if not isinstance(other, Sweep):
            return NotImplemented
        return self.columns == other.columns and have_equal_content(
            [row.cells for row in self], [row.cells for row in other]
        )

    def __hash__(self) -> int:
        return hash((self.names, len(self)))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as a stream of Arrow, which polars, DuckDB and pyarrow read.

        Missing values are null. Coordinates that are no plain numbers or text are text, as in files.

        Args:
            requested_schema: a capsule of the schema that is wanted, of the same columns.

        Raises:
            MissingExtraError: pyarrow is not installed.

        Examples:
            >>> import pyarrow
            >>> row = SweepRow({"epsilon": 0.1}, "optimal", value=0.5)
            >>> pyarrow.table(Sweep(("epsilon",), (row,)))["value"].to_pylist()
            [0.5]
        """
        return _to_arrow(self, "streams of Arrow").__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of all columns."""
        return (*self.names, *COLUMNS)

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """Return the failed rows."""
        return tuple(row for row in self.rows if row.failed)

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """Return a column as an array, NaN for missing numbers.

        Raises:
            SweepError: there is no such column.
        """
        if name not in self.columns:
            raise SweepError(f"the table has no column {name!r}; it has {', '.join(self.columns)}")
        place = self.columns.index(name)
        values = [row.cells[place] for row in self.rows]
        # of numbers, of truth values or of text where all are, else of objects
        if name in self.names:
            kinds = set(map(type, values))
            alike = (kinds <= {int, float} or len(kinds) == 1) and kinds != {type(None)}
            return np.array(values) if alike else np.array(values, dtype=object)
        kind = COLUMNS[name]
        empty: Any = "" if kind is str else False if kind is bool else float("nan")
        filled = [empty if value is None else value for value in values]
        return np.array(filled, dtype=float if kind is int else kind)

    def __repr__(self) -> str:
        """Return numbers of rows, coordinates and errors as text."""
        return f"<Sweep of {len(self.rows)} points over {', '.join(self.names)}; {len(self.failed)} failed>"

    def _repr_html_(self) -> str:
        """Return the table as a notebook shows it."""
        return format_table_html(repr(self).strip("<>"), self.columns, self._format_cells())

    def to_pandas(self) -> Any:
        """Return the table as a pandas data frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return import_pandas().DataFrame({name: self.column(name) for name in self.columns})

    def to_latex(self, columns: Sequence[str] | None = None) -> str:
        """Return the table for LaTeX, with the package booktabs.

        Args:
            columns: those to write; left out, the coordinates, value, bound and gap.
        """
        wanted = (*self.names, "value", "bound", "gap") if columns is None else tuple(columns)
        places = [self.columns.index(name) for name in wanted if self.column(name) is not None]
        return format_table_latex(
            wanted, [[row[place] for place in places] for row in self._format_cells()]
        )

    def _format_cells(self) -> list[list[str]]:
        """Return the cells of all rows as text."""
        rows = [["" if cell is None else cell for cell in row.cells] for row in self.rows]
        return [
            [f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row]
            for row in rows
        ]

    def plot(self, path: str | os.PathLike[str] | None = None, value: str = "value") -> Figure:
        """Plot a column over the first coordinate, a curve for each combination of the others.

        Args:
            path: of a picture (.png, .pdf or .svg) to write; left out, none is written.
            value: the column, such as "value", "bound" or "level".

        Raises:
            MissingExtraError: matplotlib is not installed.
            FileFormatError: the path has another ending, or cannot be written.
            SweepError: there is no such column, or the first coordinate is no number.
        """
        if path is not None:
            get_file_format(path, FIGURE_FORMATS)
        across, *others = self.names
        grid, heights = self.column(across), self.column(value)
        if not all(np.issubdtype(column.dtype, np.number) for column in (grid, heights)):
            raise SweepError(
                f"{across!r} or {value!r} has no numbers: plot other columns with to_pandas()"
            )
        keys = [
            ", ".join(f"{name}={row.point[name]}" for name in others) or value for row in self.rows
        ]
        points = {
            key: {x: y for k, x, y in zip(keys, grid, heights, strict=True) if k == key}
            for key in dict.fromkeys(keys)
        }
        places = sorted(set(grid))
        curves = {key: [along.get(x, math.nan) for x in places] for key, along in points.items()}
        figure = draw_curves(places, curves, value, across=across)
        if path is not None:
            save_figure(figure, path)
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Serialize the table to plain data, as printed by `--json`."""
        return {
            "columns": list(self.columns),
            "rows": [
                {
                    name: finite_or_none(cell) if isinstance(cell, float) else cell
                    for name, cell in zip(self.columns, row.cells, strict=True)
                }
                for row in self.rows
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the table atomically as .csv, .json or .parquet.

        Raises:
            FileFormatError: the ending is another one, or the file cannot be written.
        """
        ending = get_file_format(path, ENDINGS)
        if ending == ".csv":
            lines = [list(self.columns), *(list(map(format_cell, row.cells)) for row in self.rows)]
            atomic_write(path, encode_csv(lines))
        else:
            atomic_write(
                path,
                encode_json_bytes(self.to_dict()) if ending == ".json" else _encode_parquet(self),
            )


def _encode_parquet(table: Sweep) -> bytes:
    """Encode a sweep table as a Parquet file."""
    parquet = import_optional("pyarrow.parquet", "files of Parquet")
    stream = io.BytesIO()
    parquet.write_table(_to_arrow(table, "files of Parquet"), stream)
    return stream.getvalue()


def _to_arrow(table: Sweep, purpose: str) -> Any:
    """Convert a sweep table to one of pyarrow, with null for missing values."""
    pyarrow = import_optional("pyarrow", purpose)
    kinds = {
        str: pyarrow.string(),
        float: pyarrow.float64(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
    }
    columns = list(zip(*(row.cells for row in table), strict=True)) or [()] * len(table.columns)
    arrays = {}
    for name, values in zip(table.columns, columns, strict=True):
        kind = COLUMNS.get(name) or _infer_column_type(values)
        cells = [None if v is None else format_cell(v) if kind is str else kind(v) for v in values]
        arrays[name] = pyarrow.array(cells, type=kinds[kind])
    return pyarrow.table(arrays)


def _infer_column_type(values: Sequence[Any]) -> type:
    """Return the common type of a column's values; text if mixed."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return int if all(abs(value) < 2**63 for value in values if value is not None) else str
    if kinds and kinds <= {int, float}:
        return float
    return bool if kinds == {bool} else str


Grid: TypeAlias = Mapping[str, Any] | Iterable[Mapping[str, Any] | float]
"""Each name with its values, for all their combinations, or the points one by one."""


Points: TypeAlias = tuple[Mapping[str, Any], ...]
"""The points of a grid in its order, all with the same names."""


def list_points(grid: Grid, builder: Callable[..., Any] | None = None) -> Points:
    """List the points of a grid: all combinations of a mapping's values.

    Numbers are the values of the builder's argument, where it has one.

    Raises:
        SweepError: it is empty, its points differ in their names, or a name is a column of the table.

    Examples:
        >>> list_points({"size": [2, 3], "epsilon": [0.1, 0.2]})[1]
        {'size': 2, 'epsilon': 0.2}
        >>> list_points([{"epsilon": 0.1}, {"epsilon": 0.4}])[0]
        {'epsilon': 0.1}
        >>> list_points([0.1, 0.4], lambda epsilon: None)[1]
        {'epsilon': 0.4}
    """
    if isinstance(grid, Mapping):
        names = tuple(grid)
        values = [_list_values(name, grid[name]) for name in names]
        points: list[Any] = [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
    elif isinstance(grid, Iterable) and not isinstance(grid, str | bytes):
        only = _get_only_argument(builder)
        points = [{only: item} if only and isinstance(item, Real) else item for item in grid]
        names = tuple(points[0]) if points and isinstance(points[0], Mapping) else ()
    else:
        raise SweepError(
            f"a grid is a mapping of names to values, or a sequence of points, not {grid!r:.60}"
        )
    for position, point in enumerate(points):
        if not isinstance(point, Mapping):
            raise SweepError(
                f"point {position} of the grid is {point!r:.60}: give a mapping of names to values"
            )
        if set(point) != set(names):
            raise SweepError(
                f"point {position} of the grid has the names {sorted(point)}, and the first has "
                f"{sorted(names)}: give each point a value for each name"
            )
    _check_names(names)
    return tuple({name: to_plain_number(point[name]) for name in names} for point in points)


def _list_values(name: str, values: Any) -> list[Any]:
    """Return the values of a grid axis as a list."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise SweepError(
            f"the grid's {name!r} is {values!r:.60}: give a list of values, of one at least"
        )
    listed = list(values)
    if not listed:
        raise SweepError(f"the grid's {name!r} has no values: give one at least")
    return listed


def _get_only_argument(builder: Callable[..., Any] | None) -> str | None:
    """Return the name of a builder's only argument."""
    try:
        names = [] if builder is None else list(signature(builder).parameters)
    except (TypeError, ValueError):  # no function, or one without a signature
        return None
    return names[0] if len(names) == 1 else None


def _check_names(names: tuple[Any, ...]) -> None:
    """Raise an error for invalid coordinate names."""
    if not names:
        raise SweepError("the grid is empty: give a name with its values, or points with names")
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise SweepError(
                f"the grid's name {name!r} is no name of an argument of a function: rename it"
            )
        if name in COLUMNS:
            raise SweepError(
                f"the grid's name {name!r} is a column of the table already: rename it"
            )
