"""The process that reads a file of SPSS, Stata or SAS by pyreadstat, and writes its rows as Arrow streams.

A damaged file can end the process that reads it, which is therefore another one. The first stream that it
writes has no rows, and the labels, formats and missing values as JSON. Each line of JSON that it reads, the
names of columns, is answered by a stream with the rows of these and a + behind it; an error goes to the
standard error stream, and the process ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.lazy_imports import pyarrow
from pmlopt.core.numbers.arrays import BoolArray, FloatArray
from pmlopt.errors import FileFormatError

READERS = {
    ".sav": ("read_sav", True),
    ".zsav": ("read_sav", True),
    ".dta": ("read_dta", True),
    ".sas7bdat": ("read_sas7bdat", True),
    ".xpt": ("read_xport", False),
    ".por": ("read_por", False),
}
"""The function of pyreadstat for each kind of file, and whether it can keep declared missing values."""

METADATA = b"pmlopt"
"""The key of the JSON text among the metadata of the stream."""

MIN_KIND = 2.0**1023
"""A kind of missing value is a number from here on, as in Stata's own files; no value is."""

_FIELDS = {
    "names": "column_names",
    "rows": "number_rows",
    "labels": "column_names_to_labels",
    "missing": "missing_ranges",
    "formats": "original_variable_types",
    "storage": "readstat_variable_types",
    "widths": "variable_display_width",
    "measures": "variable_measure",
}
"""The fields of `SurveyMetadata`, and what pyreadstat calls them."""


def serve_file(path: str, ending: str, encoding: str) -> None:
    """Answer what comes in by the standard input stream; see `FileServer`.

    Args:
        path: of the file.
        ending: of the names of such files.
        encoding: of its text; empty for what the file states.
    """
    stream = sys.stdout.buffer
    try:
        server = FileServer(path, ending, encoding)
        server.write_head(stream)
        for line in sys.stdin.buffer:
            server.write_rows(json.loads(line), stream)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as cause:  # whatever pyreadstat raises of a damaged file
        sys.stderr.write(f"{cause}\n")
        sys.exit(2)


class FileServer:
    """A reader of a file that keeps the columns of few values which it has read, a byte for each cell.

    A release reads its column to design for it, to count it with those in clear, and to draw: the second and
    the third time such columns are there.

    Args:
        path: of the file.
        ending: of the names of such files.
        encoding: of its text; empty for what the file states.
    """

    def __init__(self, path: str, ending: str, encoding: str) -> None:
        how = {"encoding": encoding} if encoding and ending != ".por" else {}
        self._read = partial(_read, path, ending, **how)
        self._found = self._read(metadataonly=True)[1]
        self._types = {
            name: pyarrow.string()
            if self._found.readstat_variable_types[name].startswith("string")
            else pyarrow.float64()
            for name in self._found.column_names
        }
        self._kept: dict[str, list[Any]] = {}

    def write_head(self, stream: BinaryIO) -> None:
        """Write a stream without rows, with what the file states of its columns."""
        told = {field: getattr(self._found, theirs) for field, theirs in _FIELDS.items()} | {
            "value_labels": {
                name: list(labels.items())
                for name, labels in self._found.variable_value_labels.items()
            }
        }
        head = pyarrow.schema(
            [(f"f{place}", kind) for place, kind in enumerate(self._types.values())],
            metadata={METADATA: json.dumps(told)},
        )
        pyarrow.ipc.new_stream(stream, head).close()
        stream.flush()

    def write_rows(self, names: Sequence[str], stream: BinaryIO) -> None:
        """Write a stream with the rows of some columns, and a + behind it."""
        schema = pyarrow.schema(
            [(f"f{place}", self._types[name]) for place, name in enumerate(names)]
        )
        with pyarrow.ipc.new_stream(stream, schema) as writer:
            for columns in self._make_batches(names):
                writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))
        stream.write(b"+")
        stream.flush()

    def _make_batches(self, names: Sequence[str]) -> Iterator[list[Any]]:
        """Yield the columns of some rows at a time, and keep those of few values."""
        known = [name for name in names if name in self._kept]
        fresh = [name for name in names if name not in self._kept]
        encoded: dict[str, list[Any]] = {name: [] for name in fresh}
        batches = _read_batches(self._read, fresh, self._found)
        if known and not fresh:
            batches = repeat([], len(self._kept[known[0]]))
        for number, cells in enumerate(batches):
            found = {name: self._kept[name][number].dictionary_decode() for name in known}
            for name, column in zip(fresh, cells, strict=True):
                found[name] = _to_arrow(column, self._types[name])
                if name in encoded and (codes := _encode(found[name])) is not None:
                    encoded[name].append(codes)
                else:
                    encoded.pop(name, None)
            yield [found[name] for name in names]
        for name, codes in encoded.items():
            if sum(map(_count_rows, (codes, *self._kept.values()))) <= 2**26:  # bytes in memory
                self._kept[name] = codes


def _count_rows(batches: Sequence[Any]) -> int:
    """Return how many rows some arrays have together."""
    return sum(map(len, batches))


def _to_arrow(cells: Sequence[Any], kind: Any) -> Any:
    """Convert the cells of a column to an Arrow array without nulls."""
    if kind == pyarrow.string():
        return pyarrow.array(["" if cell is None else cell for cell in cells], kind)
    return pyarrow.array(number_kinds(cells))


def _encode(column: Any) -> Any:
    """Encode a column of at most 256 values, a byte for each cell; None for one of more."""
    coded = column.dictionary_encode()
    if len(coded.dictionary) > np.iinfo(np.uint8).max + 1:
        return None
    codes = coded.indices.cast(pyarrow.uint8())
    return pyarrow.DictionaryArray.from_arrays(codes, coded.dictionary)


def _read(path: str, ending: str, **how: Any) -> Any:
    """Call pyreadstat's reader."""
    import pyreadstat

    name, keeps_missing = READERS[ending]
    how |= {"user_missing": True} if keeps_missing else {}
    return getattr(pyreadstat, name)(
        path, output_format="dict", disable_datetime_conversion=True, **how
    )


def _read_batches(
    read: Callable[..., Any], names: Sequence[str], found: Any
) -> Iterator[list[Any]]:
    """Yield the columns of some rows at a time, of as many whichever columns are asked for."""
    known = found.number_rows
    done = 0
    # Cells of a batch; as many are read at a time, or a 64th of the rows, since rows before are skipped,
    # which takes time in a compressed file.
    size = max(1, 2**20 // max(1, len(found.column_names)))
    batches = max(len(found.column_names) // max(1, len(names)), -(-(known or 0) // (64 * size)), 1)
    at_once = size * batches
    while names and (known is None or done < known):
        cells = read(row_offset=done, row_limit=at_once, usecols=names)[0]
        rows = len(cells[names[0]])
        for first in range(0, rows, size):
            yield [cells[name][first : first + size] for name in names]
        if rows < at_once:
            return
        done += rows


def number_kinds(cells: Sequence[Any]) -> FloatArray:
    """Convert numbers to floats: NaN for a missing one, and above `MIN_KIND` the letter of its kind.

    Raises:
        FileFormatError: a value is that large.

    Examples:
        >>> list_with_kinds(number_kinds([1, "a", None]))
        [1.0, 'a', None]
    """
    try:
        numbers, has_kinds = np.array(cells, dtype=float), False  # None becomes NaN
    except ValueError:
        values = [None if isinstance(cell, str) else cell for cell in cells]
        numbers = np.array(values, dtype=float)
        has_kinds = True
    if (numbers >= MIN_KIND).any():
        raise FileFormatError("a number is above 8.9e307, where kinds of missing values begin")
    for row, cell in enumerate(cells if has_kinds else ()):
        if isinstance(cell, str):
            numbers[row] = number_kind(cell)
    return numbers


def number_kind(letter: str) -> float:
    """Return the number that stands for a kind of missing value."""
    return MIN_KIND * (1 + ord(letter[0]) / 4096)


def find_kinds(numbers: FloatArray) -> BoolArray:
    """Return the mask of the numbers that stand for kinds of missing values.

    Examples:
        >>> find_kinds(np.array([1.0, np.inf, number_kind("a")])).tolist()
        [False, False, True]
    """
    ratios = (numbers / MIN_KIND - 1) * 4096
    return np.asarray((ratios > 0) & (ratios < 256) & (ratios == np.round(ratios)))


def list_with_kinds(numbers: FloatArray) -> list[Any]:
    """List floats, with the letter of a missing one of a kind, and None for others."""
    return [
        None if number != number else name_kind(number) if number >= MIN_KIND else number
        for number in numbers.tolist()
    ]


def name_kind(number: float) -> str:
    """Return the letter of the kind of missing value that a number stands for.

    Examples:
        >>> name_kind(number_kind("z"))
        'z'
    """
    return chr(round((number / MIN_KIND - 1) * 4096))
