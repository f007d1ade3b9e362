"""The base of tables read once in batches of Arrow arrays."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, time
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from pmlopt.core.declared_orders import find_declared_order
from pmlopt.core.descriptions import describe_value
from pmlopt.core.frames import MISSING_LETTER, is_absent, is_missing, to_integer
from pmlopt.core.lazy_imports import difflib, pyarrow
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import BoolArray, IntArray, Label
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.arrow_text import check_text, encode_text_codes, without_text_views
from pmlopt.tables.streams import CsvFormat


def find_column(names: Sequence[str], column: str, where: object) -> int:
    """Find the index of a uniquely named column.

    Raises:
        InputError: there is none, or more than one.

    Examples:
        >>> find_column(["id", "level"], "level", "people.csv")
        1
        >>> find_column(["id", "Département"], "departement", "visits.csv")
        Traceback (most recent call last):
        ...
        pmlopt.errors.InputError: visits.csv: has no column 'departement': did you mean 'Département'? It has
        ['id', 'Département']
    """
    found = [place for place, name in enumerate(names) if name == column]
    if len(found) > 1:
        raise InputError(
            f"{where}: has {len(found)} columns named {column!r}: give each a name of its own"
        )
    if not found:
        raise InputError(f"{where}: has no column {column!r}: {_suggest_column(names, column)}")
    return found[0]


def _suggest_column(names: Sequence[str], column: str) -> str:
    """Return what to write in place of a column that is not there, and the columns that are."""
    has = f"it has {describe_value(list(names))}"
    parts = [part.strip() for part in str(column).split(",")]
    if len(parts) > 1 and set(parts) <= set(names):
        return f"{has}: name one at a time"
    nearest = find_similar_column(names, column)
    return has if nearest is None else f"did you mean {nearest!r}? I{has[1:]}"


def find_similar_column(names: Sequence[str], column: str) -> str | None:
    """Find the column whose name is most like another name, where one is like it.

    Examples:
        >>> find_similar_column(["id", "Département"], "departement")
        'Département'
    """
    # names of pandas may be numbers; capitals and accents are what people leave out
    plain = {_simplify_name(name): name for name in reversed(names)}
    nearest = difflib.get_close_matches(_simplify_name(column), plain, n=1)
    return plain[nearest[0]] if nearest else None


def _simplify_name(name: object) -> str:
    """Return a name in small letters, without accents and outer spaces."""
    apart = unicodedata.normalize("NFKD", str(name).strip().casefold())
    return "".join(sign for sign in apart if not unicodedata.combining(sign))


def to_numpy_type(kind: Any) -> np.dtype[Any]:
    """Return the numpy type of an Arrow number type, without loading pandas."""
    floats = {"halffloat": "float16", "float": "float32", "double": "float64"}
    return np.dtype(floats.get(str(kind), str(kind)))


def to_numpy_integers(numbers: Any) -> IntArray:
    """Convert an Arrow integer array to numpy, without loading pandas."""
    values = np.frombuffer(numbers.buffers()[1], dtype=to_numpy_type(numbers.type))
    return values[numbers.offset : numbers.offset + len(numbers)].astype(np.int64)


def integers_to_arrow(numbers: IntArray) -> Any:
    """Convert integers to an Arrow array, without loading pandas.

    Examples:
        >>> to_numpy_integers(integers_to_arrow(np.array([2, 0, 1]))[1:]).tolist()
        [0, 1]
    """
    held = pyarrow.py_buffer(np.ascontiguousarray(numbers, dtype=np.int64))
    return pyarrow.Array.from_buffers(pyarrow.int64(), len(numbers), [None, held])


def labels_to_arrow(texts: Sequence[str]) -> Any:
    """Convert texts to an Arrow array, without loading pandas.

    Raises:
        UnicodeEncodeError: a text cannot be written as UTF-8.

    Examples:
        >>> labels_to_arrow(["a", "", "bc"]).to_pylist()
        ['a', '', 'bc']
    """
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    held = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(b"".join(encoded))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(encoded), held)


class TableBatch:
    """A batch of table rows as Arrow arrays.

    Attributes:
        size: the number of rows.
        first: the number of the first one, as messages count them.
        times: (size,) how many rows of the data each represents, where an engine has counted equal ones.
        lines: (size,) of the file, from 1, where a row is a line.
        orders: the categories of columns in their declared order, by place, where the arrays lack it.

    Args:
        columns: the arrays.
        size: the number of rows.
        first: the number of the first one.
        text: whether all cells are text from a CSV file.
        names: of the columns, for messages.
        where: the table, for messages.
    """

    times: IntArray | None = None
    lines: Sequence[int] | None = None
    orders: Mapping[int, tuple[Any, ...] | None] = MappingProxyType({})

    def __init__(
        self,
        columns: Sequence[Any],
        size: int,
        first: int,
        text: bool,
        names: Sequence[object] | None = None,
        where: object = "the table",
    ) -> None:
        self.columns = columns
        self.size = size
        self.first = first
        self._text = text
        self._names = names
        self._where = where

    def name_row(self, row: int) -> str:
        """Name a row of the batch as messages count it."""
        return f"row {self.first + row}" if self.lines is None else f"line {self.lines[row]}"

    def _column_name(self, place: int) -> object:
        """Return a column's name or position for messages."""
        return place if self._names is None else self._names[place]

    def encode_column(self, place: int) -> tuple[list[Any], IntArray]:
        """Encode a column as distinct values and (size,) indices."""
        column = self.columns[place]
        try:
            coded = encode_text_codes(column)
            if coded is None:
                if pyarrow.types.is_dictionary(column.type):
                    column = without_text_views(column)
                    column = column.cast(column.type.value_type)
                coded = column.dictionary_encode(null_encoding="encode")
        except (pyarrow.ArrowNotImplementedError, pyarrow.ArrowInvalid):
            raise make_type_error(self._column_name(place), column.type) from None
        if isinstance(coded, pyarrow.ChunkedArray):
            coded = coded.combine_chunks()
        try:
            values = coded.dictionary.to_pylist()
        except UnicodeDecodeError:
            check_text(column, self._column_name(place), self._where, self.first)
            raise
        codes = to_numpy_integers(coded.indices)
        if self._text:
            return [value or None for value in values], codes
        return [None if is_missing(value) else _to_letter(value) for value in values], codes

    def find_order(self, place: int) -> tuple[Any, ...] | None:
        """Return the categories of an ordered column, in their order; None where none is declared."""
        if place in self.orders:
            return self.orders[place]
        order = None if self._text else find_declared_order(self.columns[place])
        return None if order is None else tuple(map(_to_letter, order))

    def column_texts(self, place: int) -> list[str]:
        """Return a column's cells as text; missing ones are empty."""
        values, codes = self.encode_column(place)
        shown = ["" if is_absent(value) else str(value) for value in values]
        return [shown[code] for code in codes.tolist()]

    def get_column(self, place: int, kept_mask: BoolArray | None = None) -> Any:
        """Return a column's array for kept rows.

        Raises:
            FileFormatError: it holds text that is not UTF-8.
        """
        column = self.columns[place]
        check_text(column, self._column_name(place), self._where, self.first)
        if kept_mask is None:
            return column
        return column.take(integers_to_arrow(np.flatnonzero(kept_mask)))


def _to_letter(value: Any) -> Any:
    """Return what stands for a value among letters: dates and times as text, which files keep."""
    return str(value) if isinstance(value, date | time) else to_integer(value)


class Table(ABC):
    """The base of tables that are read once, in batches.

    Attributes:
        names: of the columns.
        where: the file, for messages.
        typed: whether cells have types, or are text from a CSV file.
        form: of the CSV file, or None.
        rows: how many there are, where that is known before they are read.
        types: the types of the columns in Arrow.
        lost_orders: the columns of ordered categories whose order the file does not hold.
        missing_letters: those that missing cells are where they count as letters.
        ending: of the file, where it was converted.
        is_ordered: whether the rows have an order, in which they are read each time.
    """

    names: list[str]
    where: object
    typed: bool = True
    form: CsvFormat | None = None
    rows: int | None = None
    types: Sequence[Any]
    lost_orders: Collection[str] = ()
    missing_letters: Collection[str] = frozenset({MISSING_LETTER})
    ending: str = ""
    is_ordered: bool = True

    @abstractmethod
    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows, in their order."""

    def read_columns(self, names: Collection[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, in which only the cells of some columns are there to be encoded.

        A large table need not read the others; a small one has them, which show what its rows are.
        """
        return self.batches()

    def find_value_labels(self, column: str) -> Mapping[Label, str]:
        """Return the names of the values of a column by the letters, where a file has some."""
        return {}

    def warn_of_labels(self, column: str, letters: Sequence[Label]) -> None:
        """Warn of letters of a column that may be meant as one, or stand for missing cells."""
        warn_of_near_labels(letters, f"{self.where}: the column {column!r}")

    def count_by_engine(self, columns: Sequence[str]) -> Table:
        """Return a table with equal value-tuple counts, counted by an engine where possible."""
        return self

    def close(self) -> None:
        """Close the file, if there is one."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def done(self) -> float | None:
        """Return the fraction read so far; None if unknown."""
        return None


def make_type_error(name: object, kind: object) -> InputError:
    """Build the error of a column whose type cannot be letters."""
    return InputError(
        f"the column {name!r} ({kind}) is no column of letters: give one of text or numbers, or convert it "
        "to text"
    )


def make_no_people_error(where: object) -> FileFormatError:
    """Build the error of a table without rows, whose columns are named elsewhere."""
    return FileFormatError(f"{where}: has 0 rows: at least one is needed")


def make_no_rows_error(where: object, rows: int = 1) -> FileFormatError:
    """Build the error of a table without rows."""
    return FileFormatError(f"{where}: has {rows} row(s): a header and at least one row are needed")
