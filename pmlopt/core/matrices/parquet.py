"""Matrices in Parquet: one column per output, after one of inputs.

Names of columns are text. The label of an output is kept in the metadata of its field, too, and so goes with
the column wherever Arrow takes it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from pmlopt.core.files.disk import MAX_FILE_BYTES
from pmlopt.core.files.matrix_layout import check_layout
from pmlopt.core.lazy_imports import import_optional
from pmlopt.core.matrices.matrix_file import (
    OTHER_FORMATS,
    MatrixFile,
    Source,
    check_kept,
    to_real_matrix,
)
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import (
    Label,
    Labels,
    abbreviate,
    check_json_labels,
    check_labels_of_size,
    name_outputs,
    parse_labels,
)
from pmlopt.errors import FileFormatError

PURPOSE = "files of Parquet"
"""What pyarrow is needed for here."""

INPUT_COLUMN = "input"
"""The name of the column of inputs, with lines before it where an output has that name."""
LABEL, LABELS = b"pmlopt.label", b"pmlopt.labels"
"""Keys in the metadata of a field: the label of an output in JSON; that the inputs are JSON, each."""


def encode_parquet(stored: MatrixFile) -> bytes:
    """Encode a matrix as Parquet."""
    pyarrow = import_optional("pyarrow", PURPOSE)
    parquet = import_optional("pyarrow.parquet", PURPOSE)

    outputs = name_outputs(stored.inputs, stored.outputs)
    check_json_labels((*stored.inputs, *outputs))
    names = [str(label) for label in outputs]
    if len(set(names)) < len(names):
        raise FileFormatError(
            f"two of the outputs {abbreviate(outputs)} are one name of a column: {OTHER_FORMATS}"
        )
    first = INPUT_COLUMN
    while first in names:
        first = f"_{first}"
    try:
        inputs = _build_input_field(stored.inputs, first)
        fields = [
            pyarrow.field(
                name, pyarrow.float64(), nullable=False, metadata={LABEL: json.dumps(label)}
            )
            for name, label in zip(names, outputs, strict=True)
        ]
        columns = [inputs[1], *(pyarrow.array(column) for column in stored.matrix.T)]
        table = pyarrow.table(columns, schema=pyarrow.schema([inputs[0], *fields]))
        stream = io.BytesIO()
        parquet.write_table(table, stream)
    except (UnicodeEncodeError, pyarrow.ArrowInvalid) as cause:
        raise FileFormatError(f"a label cannot be written to Parquet: {cause}") from None
    return stream.getvalue()


def decode_parquet(source: Source) -> MatrixFile:
    """Decode a Parquet matrix, inputs in the first column or pandas index."""
    table = read_parquet_table(source)
    place = _find_input_column(table, source)
    labels = _read_input_labels(table.field(place), table.column(place), source)
    rest = table.remove_column(place)
    if rest.num_columns == 0 or rest.num_rows == 0:
        raise source.refuse("has no output column or no row: the first column holds the inputs")
    matrix = np.column_stack(
        [
            _to_floats(rest.column(k), f"the column {rest.field(k).name!r}", source)
            for k in range(rest.num_columns)
        ]
    )
    outputs = _read_output_labels(list(rest.schema))
    if source.stochastic and all(isinstance(label, float) for label in labels):
        check_layout([["", *rest.column_names], *_to_text_columns(labels, matrix)], source.path)
    for side in (labels, outputs):
        warn_of_near_labels(side, source.path)
    return MatrixFile(matrix, labels, outputs)


def _build_input_field(labels: Labels, name: str) -> tuple[Any, Any]:
    """Build the Arrow field and array of input labels, as JSON for mixed types."""
    pyarrow = import_optional("pyarrow", PURPOSE)

    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    kinds = {type(label) for label in labels}
    kind = types.get(kinds.pop()) if len(kinds) == 1 else None
    if kind == types[int] and any(not -(2**63) <= label < 2**63 for label in labels):  # type: ignore[operator]
        kind = None
    if kind is not None:
        return pyarrow.field(name, kind, nullable=False), pyarrow.array(labels, kind)
    texts = [json.dumps(label) for label in labels]
    check_kept(labels, tuple(_decode_label(text) for text in texts), "Parquet")
    field = pyarrow.field(name, types[str], nullable=False, metadata={LABELS: "json"})
    return field, pyarrow.array(texts, types[str])


def read_parquet_table(source: Source) -> Any:
    """Read a Parquet table after checking its uncompressed size."""
    pyarrow = import_optional("pyarrow", PURPOSE)
    parquet = import_optional("pyarrow.parquet", PURPOSE)

    try:
        file = parquet.ParquetFile(io.BytesIO(source.content))
        cells = file.metadata.num_rows * file.metadata.num_columns
        if cells * 8 > MAX_FILE_BYTES:
            raise source.refuse(f"has {cells} cells, more than fit into {MAX_FILE_BYTES} bytes")
        table = file.read()
        table.validate(full=True)  # text that is not UTF-8 would end in an error of Python
        return table
    except (pyarrow.ArrowException, OSError, ValueError) as cause:
        if isinstance(cause, FileFormatError):
            raise
        raise source.refuse(f"is not a whole Parquet file: {cause}") from None


def _find_input_column(table: Any, source: Source) -> int:
    """Return the index of the inputs' column."""
    try:
        metadata = table.schema.pandas_metadata
    except ValueError:
        metadata = None
    index = metadata.get("index_columns") if isinstance(metadata, dict) else None
    named = [name for name in index if isinstance(name, str)] if isinstance(index, list) else []
    if len(named) > 1:
        raise source.refuse(f"has an index of {len(named)} columns: make it one")
    if not named:
        return 0
    return int(table.schema.get_field_index(named[0]))


def _read_input_labels(field: Any, column: Any, source: Source) -> Labels:
    """Return the labels in the input column."""
    values = column.to_pylist()
    if None in values:
        raise source.refuse(f"the input in row {values.index(None) + 1} is missing")
    if (field.metadata or {}).get(LABELS) != b"json":
        return check_labels_of_size(values, None, f"{source.path}: the inputs", FileFormatError)
    try:
        return tuple(_decode_label(value) for value in values)
    except (ValueError, TypeError):
        raise source.refuse(
            f"its column {field.name!r} should hold labels in JSON, and does not"
        ) from None


def _read_output_labels(fields: list[Any]) -> Labels:
    """Return the column labels, stored ones or parsed names."""
    kept = [_get_stored_label(field) for field in fields]
    if all(one is None for one in kept):
        return parse_labels([field.name for field in fields])
    return tuple(
        field.name if one is None else one for one, field in zip(kept, fields, strict=True)
    )


def _get_stored_label(field: Any) -> Label | None:
    """Return the label stored with a field; None for a renamed one."""
    text = (field.metadata or {}).get(LABEL)
    try:
        label = None if text is None else _decode_label(text.decode())
    except ValueError:
        return None
    return label if str(label) == field.name else None


def _decode_label(text: str) -> Label:
    """Decode a label from JSON."""
    label: Label = _convert_to_tuples(json.loads(text))
    return label


def _convert_to_tuples(value: Any) -> Any:
    """Convert nested lists to tuples."""
    return tuple(map(_convert_to_tuples, value)) if isinstance(value, list) else value


def _to_floats(column: Any, what: str, source: Source) -> Any:
    """Convert a column to floats."""
    if column.null_count:
        raise source.refuse(f"{what} has a missing entry")
    pyarrow = import_optional("pyarrow", PURPOSE)

    try:
        array = column.to_numpy()
    except (ValueError, NotImplementedError, pyarrow.ArrowException):
        array = np.empty(0, dtype=object)
    return to_real_matrix(array.reshape(-1, 1), source, what)[:, 0]


def _to_text_columns(labels: Iterable[Label], matrix: Any) -> list[list[str]]:
    """Convert labels and matrix to text columns."""
    return [
        [str(label), *map(repr, row)] for label, row in zip(labels, matrix.tolist(), strict=True)
    ]
