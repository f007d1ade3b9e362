"""The conversion of labelled input (mappings, series, frames, arrays) to labelled arrays.

Whatever holds a vector or a table of numbers is read here, and put into the order of the letters or outputs
that it is for: by label wherever it names anything, by position only where it names nothing and its shape
fits. Which labels are the same states `pmlopt.core.numbers.arrays`.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.declared_orders import make_label_rank
from pmlopt.core.frames import (
    get_column_names,
    get_row_names,
    has_labels,
    is_frame,
    is_masked_array,
    is_missing,
    list_columns,
    list_missing,
    read_frame,
    to_narwhals,
    to_plain_list,
)
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import (
    NUMBER_HEADERS,
    DefaultLabels,
    Label,
    Labels,
    abbreviate,
    are_plain_labels,
    check_labels_of_size,
    check_unmasked,
    indices_of,
    is_plain,
    parse_labels,
)
from pmlopt.core.numbers.counts import CountedTuples
from pmlopt.errors import InputError

Axes = tuple[Labels | None, ...]
Numbers: TypeAlias = ArrayLike | Mapping[Any, Any] | os.PathLike[str]
"""What holds numbers, with labels or without: frames and series of other libraries too."""


@light_dataclass(frozen=True, eq=False)
class LabelledArray:
    """A vector or matrix with optional labels for each axis.

    Attributes:
        values: a list or an array of numbers, of two axes a list of rows or an array.
        axes: the labels along each.
        what: it is, for messages.
        text: whether labels are cells of a text file, which are the labels that read like them.
    """

    values: Any
    axes: Axes
    what: str
    text: bool = False

    def reorder_axis(
        self,
        axis: int,
        known: Sequence[Label],
        error: type[InputError],
        absent: float | None = None,
    ) -> LabelledArray:
        """Reorder an axis by known labels.

        Args:
            axis: 0 or 1.
            known: the labels, in the order that is wanted.
            error: what is raised.
            absent: the value of a known label that is not there; None refuses that.

        Raises:
            InputError: of the class `error`: a label is not known or occurs twice, or one is missing; or
                there are no labels, and more or fewer entries than known labels.
        """
        found = self.axes[axis]
        size = _axis_size(self.values, axis)
        if found is None:
            side = "entries" if len(self.axes) == 1 else ("rows", "columns")[axis]
            if size != len(known):
                raise error(
                    f"{self.what} have {size} {side} for {abbreviate(known)}: give one for each"
                )
            if any(names is not None for names in self.axes) and not isinstance(
                known, DefaultLabels
            ):
                raise error(
                    f"the {side} of {self.what} have no names: name them too, by {abbreviate(known)}"
                )
            return self
        places = indices_of(found, known, self.what, error, text=self.text)
        order = np.full(len(known), -1)
        order[places] = range(len(places))
        lacking = [label for label, place in zip(known, order, strict=True) if place < 0]
        if len(set(places)) < len(places):  # cells such as 1 and 1.0
            raise error(
                f"{self.what}: two of {abbreviate(found)} are one label: add their entries up"
            )
        if lacking and absent is None:
            raise error(
                f"{self.what} have no entry for {lacking[0]!r}: give one for each of {abbreviate(known)}"
            )
        axes = tuple(tuple(known) if k == axis else names for k, names in enumerate(self.axes))
        return LabelledArray(
            _take_entries(self.values, axis, order, absent), axes, self.what, self.text
        )


def _axis_size(values: Any, axis: int) -> int:
    """Return the size of one axis."""
    return len(values) if axis == 0 else len(values[0])


def _take_entries(values: Any, axis: int, order: Any, absent: float | None) -> Any:
    """Take entries along an axis, with a default for index -1."""
    if isinstance(values, np.ndarray) and (order >= 0).all():
        return values.take(order, axis=axis)
    if axis == 1:
        return [_take_entries(list(row), 0, order, absent) for row in values]
    width = np.shape(values[:1])[1:]
    blank = [absent] * width[0] if width else absent
    return [values[place] if place >= 0 else blank for place in order.tolist()]


def read_vector(data: Any, what: str, error: type[InputError]) -> LabelledArray:
    """Read a labelled vector from a mapping, series, frame or file.

    A frame has its labels in its index and then one column, or in its first column and then two; or in as
    many as there are before a last one that is named `count` or `probability`, and a label is their tuple.

    Raises:
        InputError: of the class `error`: it is no such thing, a label is missing, or occurs twice.

    Examples:
        >>> found = read_vector({"b": 1, "a": 3}, "the counts", InputError)
        >>> found.axes, found.reorder_axis(0, ("a", "b"), InputError).values
        ((('b', 'a'),), [3, 1])
    """
    if isinstance(data, LabelledArray) or _is_plain_array(data, 1):
        return data if isinstance(data, LabelledArray) else LabelledArray(data, (None,), what)
    if isinstance(data, os.PathLike):
        return _read_file(data, read_vector, error)
    if isinstance(data, Mapping):
        return LabelledArray(list(data.values()), (_clean_labels(data, what, error),), what)
    parts = read_frame(data)
    if parts is None:
        return LabelledArray(_list_entries(data, what, error), (None,), what)
    names, header, columns, orders = parts
    several = len(columns) == 2 or (len(columns) > 2 and str(header[-1]).lower() in NUMBER_HEADERS)
    if names is None and several:
        names = columns[0] if len(columns) == 2 else list(zip(*columns[:-1], strict=True))
        orders = orders[1:-1]
    elif len(columns) != 1:
        raise error(
            f"{what} are a table with the columns {header}: give a table of two, the label "
            "and its number, a mapping, or a pandas Series with its index"
        )
    else:
        orders = orders[:1]
    labels = _clean_labels(names, what, error)
    numbers = columns[-1]
    if labels is None or None in orders:
        return LabelledArray(numbers, (labels,), what)
    # `value_counts` puts the commonest first, also of a column that declares an order
    rank = make_label_rank(labels, orders)
    ordered = labels if rank is None else tuple(sorted(labels, key=rank))
    return LabelledArray(numbers, (labels,), what).reorder_axis(0, ordered, error)


def read_labelled_table(
    data: Any, what: str, error: type[InputError], absent: float | None = None
) -> LabelledArray:
    """Read a labelled matrix from nested mappings, pair mappings, a frame or a file.

    The rows of a frame are named by its index, or, where it has none, by its first column.

    Args:
        data: the table; a list of rows or an array has no labels.
        what: it is.
        error: what is raised.
        absent: the value of a pair that a mapping does not have; None refuses that.

    Raises:
        InputError: of the class `error`: it is no table, rows have different lengths, a label is missing or
            occurs twice, or only one side has names.

    Examples:
        >>> counts = {"a": {"u": 1, "v": 2}, "b": {"v": 3}}
        >>> read_labelled_table(counts, "the counts", InputError, absent=0).values
        [[1, 2], [0, 3]]
        >>> import pandas
        >>> frame = pandas.DataFrame([[1, 0], [0, 1]], index=["x", "y"], columns=[1, 2])
        >>> read_labelled_table(frame, "the counts", InputError).axes
        (('x', 'y'), (1, 2))
    """
    if isinstance(data, LabelledArray):
        return data
    if _is_plain_array(data, 2) or _are_plain_rows(data):
        return LabelledArray(data, (None, None), what)
    if isinstance(data, os.PathLike):
        return _read_file(data, read_labelled_table, error)
    if isinstance(data, Mapping):
        return _read_mapping(data, what, error, absent)
    found = to_narwhals(data)
    if found is None:
        return LabelledArray(_list_rows(data, what, error), (None, None), what)
    if not is_frame(found):
        raise error(f"{what} are one column: give a table with two sides")
    names = get_row_names(found)
    columns = get_column_names(found)
    if names is None and columns is not None:
        names, columns, found = _take_first_column_as_labels(found, columns, what, error)
    return LabelledArray(
        _get_cells(found),
        (_clean_labels(names, what, error), _clean_labels(columns, what, error)),
        what,
    )


def _read_file(path: os.PathLike[str], door: Any, error: type[InputError]) -> LabelledArray:
    """Read a labelled file: typed labels of Parquet, parsed text labels of CSV."""
    from pathlib import Path

    from pmlopt.core.files.disk import read_bytes
    from pmlopt.core.files.letter_files import read_letters
    from pmlopt.core.matrices.formats import read_table

    ending = Path(path).suffix.lower()
    what = str(path)
    if ending in (".parquet", ".pq") and (door is read_vector or ending == ".pq"):
        from pmlopt.core.matrices.matrix_file import Source
        from pmlopt.core.matrices.parquet import read_parquet_table

        table = read_parquet_table(Source(path, read_bytes(path)))
        return cast("LabelledArray", door(table, what, error))
    if ending == ".json":
        from pmlopt.core.records.record import parse_json

        data = parse_json(read_bytes(path), what)
        if not (
            isinstance(data, dict) and "format" in data
        ):  # a mapping, or rows, and no mechanism
            return _read_text_file(door(data, what, error))
    *axes, values = read_letters(path) if door is read_vector else read_table(path)
    named = tuple(
        None if isinstance(side, DefaultLabels) else check_labels_of_size(side, None, what, error)
        for side in axes
    )
    return LabelledArray(values, named, what, text=ending in (".csv", ".tsv", ".txt"))


def _read_text_file(found: LabelledArray) -> LabelledArray:
    """Parse the labels of a text file's content."""
    sides = (None if side is None else tuple(map(str, side)) for side in found.axes)
    axes = tuple(None if side is None else parse_labels(side) for side in sides)
    return LabelledArray(found.values, axes, found.what, text=True)


def _take_first_column_as_labels(
    found: Any, columns: list[Any], what: str, error: type[InputError]
) -> tuple[list[Any], list[Any], Any]:
    """Use a frame's first column as row labels."""
    if len(columns) < 2:
        raise error(
            f"{what} have the one column {columns[0]!r}: give names of the rows and columns of numbers"
        )
    first = found[:, 0]
    if first.dtype.is_numeric() and hasattr(found.to_native(), "index"):
        raise error(
            f"{what} have named columns, {abbreviate(columns)}, and rows without names: make the column "
            "of names "
            f"the index, such as .set_index({columns[0]!r})"
        )
    return to_plain_list(first), columns[1:], found[:, 1:]


def _get_cells(found: Any) -> Any:
    """Return the cells of a frame as an array or rows."""
    kinds = set(found.schema.dtypes())
    if len(kinds) == 1 and next(iter(kinds)).is_numeric():
        return np.asarray(found.to_numpy())
    return [list(row) for row in zip(*list_columns(found), strict=True)]


def _read_mapping(
    data: Mapping[Any, Any], what: str, error: type[InputError], absent: float | None
) -> LabelledArray:
    """Read a table from nested mappings or a pair mapping."""
    rows = dict.fromkeys(data)
    inner = [
        None if _is_number_or_text(value) else read_vector(value, what, error)
        for value in data.values()
    ]
    if any(row is None for row in inner):
        return _read_pairs(data, what, error, absent)
    lines = [row for row in inner if row is not None]
    sides = [row.axes[0] for row in lines]
    if all(side is None for side in sides):
        return LabelledArray(
            _list_rows([row.values for row in lines], what, error),
            (_clean_labels(rows, what, error), None),
            what,
        )
    if any(side is None for side in sides):
        raise error(f"{what} name the columns of some rows and not of others: name them in each")
    columns = check_labels_of_size(
        dict.fromkeys(label for side in sides for label in side or ()), None, what, error
    )
    values = [row.reorder_axis(0, columns, error, absent).values for row in lines]
    return LabelledArray(values, (_clean_labels(rows, what, error), columns), what)


def _read_pairs(
    data: Mapping[Any, Any], what: str, error: type[InputError], absent: float | None
) -> LabelledArray:
    """Read a table from a pair mapping; one of counted tuples has the order of its columns."""
    for pair in data:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise error(
                f"{what} have the key {pair!r}: give pairs of labels, or a mapping for each row"
            )
    sides: Any = [dict.fromkeys(pair[side] for pair in data) for side in (0, 1)]
    if isinstance(data, CountedTuples):
        sides = data.letters
    rows, columns = (check_labels_of_size(side, None, what, error) for side in sides)
    if absent is None and len(data) < len(rows) * len(columns):
        pair = next(
            (row, column) for row in rows for column in columns if (row, column) not in data
        )
        raise error(f"{what} have no entry for the pair {pair!r}")
    values = [[data.get((row, column), absent) for column in columns] for row in rows]
    return LabelledArray(values, (rows, columns), what)


def read_combinations(data: Any, what: str, error: type[InputError]) -> LabelledArray:
    """Read linear combinations as rows with optional names and column labels.

    Examples:
        >>> read_combinations({"b": 1, "a": 0}, "the workload", InputError).reorder_axis(
        ...     1, ("a", "b"), InputError
        ... ).values
        [[0, 1]]
    """
    if isinstance(data, LabelledArray):
        return data
    found = to_narwhals(data)
    if found is not None and is_frame(found):
        names = get_row_names(found), get_column_names(found)
        return LabelledArray(
            _get_cells(found), tuple(_clean_labels(side, what, error) for side in names), what
        )
    if isinstance(data, Mapping):
        single = all(map(_is_number_or_text, data.values()))
    else:
        data = data if found is not None else _list_entries(data, what, error)
        single = found is not None or np.ndim(data[0] if len(data) else 0) == 0
    if single:
        row = read_vector(data, what, error)
        return LabelledArray([row.values], (None, row.axes[0]), what)
    return read_labelled_table(data, what, error)


def read_column(
    data: Any, what: str, error: type[InputError], *, missing: bool = False
) -> list[Any]:
    """Read a column of observations; tuples for several columns.

    Args:
        data: a list, an array, a series or a frame.
        what: it is.
        error: what is raised.
        missing: whether an observation may be missing.

    Raises:
        InputError: of the class `error`: it is no column, or an observation is missing that may not be.

    Examples:
        >>> import pandas
        >>> read_column(pandas.DataFrame({"smokes": ["no", "yes"]}), "the column", InputError)
        ['no', 'yes']
    """
    if isinstance(data, Mapping):
        raise error(f"{what} are a mapping: give one observation for each person")
    found = to_narwhals(data)
    if found is not None:
        columns = list_columns(found)
        values = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    else:
        # masked entries are missing ones, which `tolist` makes None
        entries = data if is_masked_array(data) else _list_entries(data, what, error, missing=True)
        values = entries if isinstance(entries, list) else to_plain_list(entries)
    if missing:
        return values
    for place, value in enumerate(() if are_plain_labels(values) else values):
        if any(map(is_missing, value)) if isinstance(value, tuple) else is_missing(value):
            raise error(f"{what} have a missing value at position {place}: leave it out")
    return values


def _list_entries(
    data: Any, what: str, error: type[InputError], ndim: int = 1, *, missing: bool = False
) -> Any:
    """Return the entries of an ordered iterable as a list; arrays unchanged."""
    if not missing:
        check_unmasked(data, what, error)
    if hasattr(data, "__array__") and np.ndim(data) and to_narwhals(data) is None:
        return np.asarray(data)
    if isinstance(data, str | bytes | set | frozenset) or not isinstance(data, Iterable):
        raise error(
            f"{what} are {reprlib.repr(data)}, of shape (), and must have {ndim} dimension(s): give a list, "
            "an array, a series, a frame, or a mapping from labels"
        )
    return to_plain_list(data)


def _is_plain_array(data: Any, ndim: int) -> bool:
    """Return whether data are a numeric array of the right dimension."""
    return type(data) is np.ndarray and data.size > 0 and is_plain(data, ndim)


def _are_plain_rows(data: Any) -> bool:
    """Return whether data are a list of lists of numbers, all of one length."""
    return type(data) is list and is_plain(data, 2) and len(set(map(len, data))) == 1


def _list_rows(data: Any, what: str, error: type[InputError]) -> Any:
    """Return a matrix, or rows of equal length."""
    given = _list_entries(data, what, error, 2)
    if any(isinstance(row, Mapping) or has_labels(row) for row in given):
        raise error(
            f"{what} are a list of rows with names: give a mapping from the label of each row to it"
        )
    rows = given
    if not isinstance(given, np.ndarray):
        rows = [to_plain_list(row) if isinstance(row, Iterable) else row for row in given]
    try:
        shape = np.shape(rows)
    except ValueError:
        raise error(
            f"{what} must be numbers in a regular 2-dimensional array: rows have different lengths"
        ) from None
    if len(shape) != 2 or 0 in shape:
        raise error(f"{what} must have 2 dimension(s) and at least one entry, not shape {shape}")
    return rows


def _is_number_or_text(value: Any) -> bool:
    """Return whether a value is a single entry: text or not iterable."""
    return isinstance(value, str) or not isinstance(value, Iterable)


def _clean_labels(
    labels: Iterable[Any] | None, what: str, error: type[InputError]
) -> Labels | None:
    """Convert labels of input data; raise an error for missing ones."""
    if labels is None:
        return None
    found = tuple(labels)
    for place in () if are_plain_labels(found) else list_missing(found):
        raise error(
            f"{what}: the label at position {place} is {found[place]!r}, a missing cell: leave it out, or "
            "make it a letter, such as the empty text ''"
        )
    return check_labels_of_size(found, None, what, error)
