"""In-memory and lazy frames as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn

import numpy as np

from pmlopt.core.declared_orders import find_declared_order
from pmlopt.core.frames import (
    collect_frame,
    engine_errors,
    has_wide_integers,
    is_frame,
    to_narwhals,
    to_plain_list,
)
from pmlopt.core.lazy_imports import pyarrow
from pmlopt.errors import InputError
from pmlopt.tables.table import Table, TableBatch, make_no_rows_error, make_type_error


class FrameTable(Table):
    """A table over an in-memory frame."""

    where = "the table"

    def __init__(self, data: Any, orders: Mapping[str, tuple[str, ...]] | None = None) -> None:
        frame = to_narwhals(data)
        if isinstance(data, Mapping):
            found = [find_declared_order(column) for column in data.values()]
            columns: dict[Any, Any] = {
                name: _to_python_list(column, name) for name, column in data.items()
            }
        elif frame is not None and is_frame(frame):
            _check_levels(frame)
            found = [find_declared_order(frame[:, place]) for place in range(frame.shape[1])]
            columns = {
                name: partial(_convert_column, frame[:, place], name)
                for place, name in enumerate(frame.columns)
            }
        else:
            raise InputError(
                f"{type(data).__name__!r} is no table: give the path of a file, a frame of pandas, Polars or "
                "Arrow, or a mapping from names to columns"
            )
        self.names = list(columns)
        self._columns = columns
        self._orders = {
            place: (orders or {}).get(name, order)
            for place, (name, order) in enumerate(zip(self.names, found, strict=True))
        }
        sizes = {name: len(column) for name, column in columns.items() if isinstance(column, list)}
        if len(set(sizes.values())) > 1:
            raise InputError(
                f"the columns have different numbers of rows, {sizes}: give each as many cells, None where "
                "one is missing"
            )
        self._size = next(iter(sizes.values()), 0) if frame is None else len(frame)

    def refuse_columns(self, kinds: Mapping[str, str]) -> None:
        """Refuse to read some columns, given their types by name."""
        for name, kind in kinds.items():
            self._columns[name] = partial(_raise_lossy_type, name, kind)

    @property
    def types(self) -> Sequence[Any]:  # type: ignore[override]  # made on demand
        """Return the Arrow types of the columns."""
        return [column.type for column in _ConvertedColumns(self._columns)]

    def batches(self) -> Iterator[TableBatch]:
        """Yield all rows in one batch."""
        if not self._size:
            raise make_no_rows_error(self.where)
        batch = TableBatch(
            _ConvertedColumns(self._columns), self._size, 0, text=False, names=self.names
        )
        batch.orders = self._orders
        yield batch


class LazyTable(Table):
    """A table over a lazy frame, counted by its engine where possible."""

    where = "the table"
    is_ordered = False

    def __init__(self, frame: Any) -> None:
        with engine_errors():
            schema = frame.collect_schema()
        self._refused = find_lossy_columns(frame)
        self._frame = frame
        self.names = schema.names()
        # what DuckDB hands to Arrow lacks the order of its ENUM
        self._orders = {
            name: tuple(kind.categories) for name, kind in schema.items() if _is_enum(kind)
        }

    def batches(self) -> Iterator[TableBatch]:
        """Yield all rows in one batch."""
        table = FrameTable(collect_frame(self._frame), self._orders)
        table.refuse_columns(self._refused)
        return table.batches()

    def count_by_engine(self, columns: Sequence[str]) -> Table:
        """Count distinct value tuples with the frame's engine."""
        import narwhals

        # engines name columns by text
        if not all(isinstance(name, str) and name not in self._refused for name in columns):
            return self
        schema = self._frame.collect_schema()
        for name in columns:
            _check_no_objects(self._frame, schema[name], name)
        size = "-".join(["rows", *columns])  # no column's name
        with engine_errors():
            texts = without_collations(self._frame, columns)
            groups = texts.group_by(*columns).agg(narwhals.len().alias(size))
        try:
            counted = collect_frame(groups)
        except TypeError as cause:  # of Dask, about lists and the like
            raise InputError(
                f"one of the columns {columns} holds what is no letter: give text or numbers ({cause})"
            ) from None
        return _CountedTable(counted, size, self._orders)


class _CountedTable(FrameTable):
    """A table of distinct value tuples with multiplicities."""

    def __init__(self, data: Any, size: str, orders: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__(data.drop(size), orders)
        self._times = np.array(data[size].to_list(), dtype=np.int64)

    def batches(self) -> Iterator[TableBatch]:
        """Yield all value tuples in one batch."""
        for batch in super().batches():
            batch.times = self._times
            yield batch


class _ConvertedColumns(Sequence[Any]):
    """A lazy mapping of columns to Arrow arrays."""

    def __init__(self, columns: Mapping[Any, Any]) -> None:
        self._columns = list(columns.items())

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, place: Any) -> Any:
        name, column = self._columns[place]
        try:
            return pyarrow.array(column, from_pandas=True) if isinstance(column, list) else column()
        except pyarrow.ArrowNotImplementedError as cause:
            raise make_type_error(name, cause) from None
        except (
            pyarrow.ArrowInvalid,
            pyarrow.ArrowTypeError,
            OverflowError,
            UnicodeEncodeError,
        ) as cause:
            raise InputError(
                f"the column {name!r} mixes kinds, or holds what is no letter: convert it to text or to "
                f"numbers ({cause})"
            ) from None


def _raise_lossy_type(name: str, kind: str) -> NoReturn:
    """Raise the error of a column that loses what distinguishes its values on the way to Arrow."""
    raise InputError(
        f"the column {name!r} ({kind}) loses its time zone outside of the engine, so that two values become "
        "one: cast it to text there"
    )


def _convert_column(column: Any, name: object) -> Any:
    """Convert a column of a frame to Arrow, which has no integers of 128 bits."""
    _check_no_objects(column, column.dtype, name)
    if not has_wide_integers(column):
        return column.to_arrow()
    whole = [None if one is None else Decimal(one) for one in column.to_list()]
    return pyarrow.array(whole, pyarrow.decimal256(39, 0))


def _check_no_objects(frame: Any, kind: Any, name: object) -> None:
    """Raise an error for a column of Polars with Python objects, which are addresses in memory to Arrow."""
    if frame.implementation.is_polars() and str(kind) == "Object":
        raise InputError(
            f"the column {name!r} (Object) holds Python objects, which no file keeps as they are: convert it "
            "to text or to numbers"
        )


def _is_enum(kind: Any) -> bool:
    """Return whether a narwhals type is an enumeration whose categories are known."""
    return type(kind).__name__ == "Enum" and bool(getattr(kind, "categories", None))


def _check_levels(frame: Any) -> None:
    """Raise an error for pandas multi-level column names."""
    levels = getattr(getattr(frame.to_native(), "columns", None), "nlevels", 1)
    if levels > 1:
        raise InputError(
            f"the columns of the table have names of {levels} levels, such as {frame.columns[0]!r}: name "
            "each by one text, such as with frame.columns = frame.columns.map('_'.join)"
        )


def _to_python_list(column: Any, name: object) -> list[Any]:
    """Convert a column to a list of Python values."""
    if isinstance(column, str | bytes) or not hasattr(column, "__len__"):
        raise InputError(f"the column {name!r} is {column!r}: give a list or an array of its cells")
    return to_plain_list(column)


def without_collations(frame: Any, columns: Sequence[str]) -> Any:
    """Return a lazy frame with binary collation of some columns.

    A column of DuckDB may have a collation, its own or that of the connection, by which `a` and `A` are
    equal and grouped as one of them. Frames of other engines are returned as they are.

    Args:
        frame: the lazy frame.
        columns: the names of the columns that are grouped by.
    """
    if not frame.implementation.is_duckdb():
        return frame
    import narwhals

    relation = frame.to_native()
    types = dict(zip(relation.columns, map(str, relation.types), strict=True))
    return narwhals.from_native(
        relation.project(", ".join(_make_projection(name, types[name]) for name in columns))
    )


def find_lossy_columns(frame: Any) -> dict[str, str]:
    """Return the types, by name, of columns of DuckDB that Arrow has without their time zones."""
    if not frame.implementation.is_duckdb():
        return {}
    relation = frame.to_native()
    types = zip(relation.columns, map(str, relation.types), strict=True)
    return {name: kind for name, kind in types if "TIME WITH TIME ZONE" in kind}


def _make_projection(name: str, kind: str) -> str:
    """Return the SQL projection of a column with binary collation."""
    quoted = quote_name(name)
    return f'{quoted} COLLATE "binary" AS {quoted}' if kind == "VARCHAR" else quoted


def quote_name(name: str) -> str:
    """Return the name of a column as SQL quotes it.

    Examples:
        >>> quote_name("the age"), len(quote_name('"'))
        ('"the age"', 4)
    """
    return '"' + name.replace('"', '""') + '"'
