"""The process that reads a file of SPSS, Stata or SAS by pyreadstat, and writes its rows as an Arrow stream.

A damaged file can end the process that reads it, which is therefore another one: `python -m
pmlopt.tables.survey_process PATH ENDING`. The first part of the stream has the labels, formats and missing
values as JSON; errors go to the standard error stream.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
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


def write_stream(path: str, ending: str, stream: BinaryIO) -> None:
    """Read a file by pyreadstat, some rows at a time, and write them as an Arrow stream."""
    import pyarrow

    found = _read(path, ending, metadataonly=True)[1]
    texts = [
        found.readstat_variable_types[name].startswith("string") for name in found.column_names
    ]
    types = [pyarrow.string() if text else pyarrow.float64() for text in texts]
    metadata = {field: getattr(found, theirs) for field, theirs in _FIELDS.items()} | {
        "value_labels": {
            name: list(labels.items()) for name, labels in found.variable_value_labels.items()
        }
    }
    schema = pyarrow.schema(
        [(f"f{place}", kind) for place, kind in enumerate(types)],
        metadata={METADATA: json.dumps(metadata)},
    )
    with pyarrow.ipc.new_stream(stream, schema) as writer:
        stream.flush()
        for cells in _read_batches(path, ending, found):
            columns = [
                pyarrow.array(["" if cell is None else cell for cell in column], pyarrow.string())
                if text else pyarrow.array(number_kinds(column))
                for column, text in zip(cells, texts, strict=True)
            ]  # fmt: skip
            writer.write_batch(pyarrow.RecordBatch.from_arrays(columns, schema=schema))


def _read(path: str, ending: str, **how: Any) -> Any:
    """Call pyreadstat's reader."""
    import pyreadstat

    name, keeps_missing = READERS[ending]
    how |= {"user_missing": True} if keeps_missing else {}
    return getattr(pyreadstat, name)(
        path, output_format="dict", disable_datetime_conversion=True, **how
    )


def _read_batches(path: str, ending: str, found: Any) -> Iterator[list[Any]]:
    """Yield the columns of some rows at a time."""
    names, done = found.column_names, 0
    # Cells that are read at a time.
    size = max(1, 2**20 // max(1, len(names)))
    while names and (found.number_rows is None or done < found.number_rows):
        cells = _read(path, ending, row_offset=done, row_limit=size)[0]
        rows = len(cells[names[0]])
        if not rows:
            return
        yield [cells[name] for name in names]
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
        numbers, has_kinds = np.array(values, dtype=float), True
    if (numbers >= MIN_KIND).any():
        raise FileFormatError("a number is above 8.9e307, where kinds of missing values begin")
    for row, cell in enumerate(cells if has_kinds else ()):
        if isinstance(cell, str):
            numbers[row] = MIN_KIND * (1 + ord(cell[0]) / 4096)
    return numbers


def list_with_kinds(numbers: FloatArray) -> list[Any]:
    """List floats, with the letter of a missing one of a kind, and None for others."""
    return [
        None if number != number
        else chr(round((number / MIN_KIND - 1) * 4096)) if number >= MIN_KIND
        else number
        for number in numbers.tolist()
    ]  # fmt: skip


if __name__ == "__main__":
    try:
        write_stream(sys.argv[1], sys.argv[2], sys.stdout.buffer)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as cause:  # whatever pyreadstat raises of a damaged file
        sys.stderr.write(f"{cause}\n")
        sys.exit(2)
