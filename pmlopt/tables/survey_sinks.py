"""Writers of files of SPSS, Stata and SAS by pyreadstat, with the labels and formats of what was read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from pmlopt.core.lazy_imports import import_optional, tempfile
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.survey import SurveyMetadata, SurveyTable
from pmlopt.tables.survey_process import MIN_KIND, READERS, list_with_kinds
from pmlopt.tables.table import Table
from pmlopt.tables.typed_sinks import OutputColumn, TypedSink


class SurveySink(TypedSink):
    """A writer of a file of SPSS, Stata or SAS, with the labels and formats of the file that was read.

    pyreadstat writes a file from a whole table, so that the rows are held in memory until the end.
    """

    kind, max_name_bytes, max_label_bytes, compressed = "SPSS", 64, 256, False

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        import_optional("pandas", f"writers of files of {self.kind}")
        self._writing = import_optional("pyreadstat", f"writers of files of {self.kind}")
        super().__init__(stream, columns, like)
        self._like = like
        for column, field in zip(columns, self._schema, strict=True):
            self._check_column(column, field.type)

    def _check_column(self, column: OutputColumn, kind: Any) -> None:
        """Raise an error for a column that the format cannot hold."""
        import pyarrow

        types = pyarrow.types
        if not (types.is_floating(kind) or types.is_integer(kind) or kind == pyarrow.string()):
            raise InputError(
                f"the column {column.name!r} of {kind} cannot be written as a file of {self.kind}, which has "
                "numbers and text: convert it, or leave it out by --drop"
            )
        name = str(column.name)
        if not re.fullmatch(r"[^\W\d]\w*", name) or len(name.encode()) > self.max_name_bytes:
            raise InputError(
                f"a file of {self.kind} cannot have a column {name!r}: rename it, to a letter and at most "
                f"{self.max_name_bytes - 1} letters, digits and _"
            )
        label = self._find_metadata().labels.get(name) or ""
        if column.place is not None and len(label.encode()) > self.max_label_bytes:
            raise InputError(
                f"the label of the column {name!r} has more than {self.max_label_bytes} bytes, the most "
                f"of a file of {self.kind}: shorten it, or write .sav"
            )
        if any(isinstance(label, int) and abs(label) > 2**53 for label in column.labels):
            raise InputError(
                f"the outputs of {name!r} have whole numbers above 2^53, which a file of {self.kind} rounds: "
                "give them labels of text"
            )

    def _open_writer(self, first: Any) -> _WholeTable:
        """Return what holds the rows until all are there."""
        return _WholeTable(self._schema, self._write_file)

    def _write_file(self, table: Any) -> None:
        """Write a whole table by pyreadstat, and copy the file into the stream."""
        with tempfile.TemporaryDirectory(prefix="pmlopt-") as folder:
            path = Path(folder) / "table"
            try:
                self._write_frame(self._make_frame(table), str(path))
            except (
                self._writing.ReadstatError,
                self._writing.PyreadstatError,
                ValueError,
            ) as cause:
                raise FileFormatError(
                    f"the rows cannot be written as a file of {self.kind}: {cause}"
                ) from None
            with path.open("rb") as made:
                while chunk := made.read(2**20):
                    self._stream.write(chunk)

    def _make_frame(self, table: Any) -> Any:
        """Build the frame that pyreadstat writes."""
        import pandas as pd

        return pd.DataFrame({
            name: pd.Series(self._to_cells(name, column), dtype=None if len(column) else object)
            for name, column in zip(table.column_names, table.columns, strict=True)
        })  # fmt: skip

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column to what pyreadstat writes."""
        import pyarrow

        if column.type == pyarrow.string():
            return np.array(column.fill_null("").to_pylist(), dtype=object)
        return np.asarray(column.cast(pyarrow.float64()).to_numpy())

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        found, kept = self._find_metadata(".sav", ".zsav"), self._names_in_clear()
        self._writing.write_sav(
            frame,
            path,
            compress=self.compressed,
            column_labels=self._make_labels(),
            variable_value_labels=self._make_value_labels(),
            missing_ranges=_select(found.missing, kept),
            variable_display_width=_select(found.widths, kept),
            variable_measure=_select(found.measures, frame.columns),
            variable_format=_select(found.formats, kept),
        )

    def _find_metadata(self, *endings: str) -> SurveyMetadata:
        """Return the metadata of the file that was read; empty where it has none of some endings."""
        if isinstance(self._like, SurveyTable) and self._like.ending in (endings or READERS):
            return self._like.metadata
        return SurveyMetadata()

    def _names_in_clear(self) -> set[str]:
        """Return the names of the columns that are kept as they are."""
        return {column.name for column in self._columns if column.place is not None}

    def _make_labels(self) -> dict[str, str]:
        """Return the label of each column, and state which are randomized."""
        known = self._find_metadata().labels
        labels = {column.name: known.get(column.name) or "" for column in self._columns}
        for name in set(labels) - self._names_in_clear():
            stated = f"{labels[name] or name} (randomized)"
            is_short = len(stated.encode()) <= self.max_label_bytes
            labels[name] = stated if is_short else f"{name} (randomized)"
        return {name: label for name, label in labels.items() if label}

    def _make_value_labels(self) -> dict[str, dict[Any, str]]:
        """Return the value labels of each column."""
        known = self._find_metadata().value_labels
        return {
            column.name: known[column.name]
            for column, field in zip(self._columns, self._schema, strict=True)
            if column.name in known and _is_of_kind(known[column.name], field.type)
        }


def _is_of_kind(labels: Mapping[Any, str], kind: Any) -> bool:
    """Return whether the values that have labels are text exactly where the column is."""
    return all(isinstance(value, str) == (str(kind) == "string") for value in labels)


def _select(found: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Select the entries of some columns that are set."""
    return {name: value for name, value in found.items() if name in names and value}


class ZippedSurveySink(SurveySink):
    """A writer of a compressed file of SPSS."""

    compressed = True


class StataSink(SurveySink):
    """A writer of a file of Stata, with its kinds of missing values."""

    kind, max_name_bytes, max_label_bytes = "Stata", 32, 80

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        super().__init__(stream, columns, like)
        if isinstance(like, SurveyTable):
            like.keeps_kinds = True

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column, to the storage type that it had where all its cells fit."""
        cells = super()._to_cells(name, column)
        if cells.dtype == object:
            return cells
        known = self._find_metadata().storage
        integer = known.get(name, "int32" if str(column.type) == "int64" else "double")
        if np.isfinite(cells).all() and integer.startswith("int") and (np.abs(cells) < 2**31).all():
            return cells.astype(integer)
        if not (cells >= MIN_KIND).any():
            return cells
        return np.array(list_with_kinds(cells), dtype=object)

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        found = self._find_metadata(".dta")
        self._writing.write_dta(
            frame,
            path,
            column_labels=self._make_labels(),
            variable_value_labels={
                name: {
                    value if isinstance(value, str) else int(value): label
                    for value, label in labels.items()
                }
                for name, labels in self._make_value_labels().items()
            },
            missing_user_values=self._list_kinds(frame),
            variable_format=_select(found.formats, self._names_in_clear()),
        )

    def _list_kinds(self, frame: Any) -> dict[str, list[str]]:
        """List the kinds of missing values in the columns of numbers."""
        kinds = {
            field.name: sorted({cell for cell in frame[field.name] if isinstance(cell, str)})
            for field in self._schema
            if str(field.type) == "double" and frame[field.name].dtype == object
        }
        return _select(kinds, kinds)


class TransportSink(SurveySink):
    """A writer of a transport file of SAS, version 8, which has no value labels."""

    kind, max_name_bytes = "SAS transport", 32

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column, whose numbers must be within the range of the format."""
        cells = super()._to_cells(name, column)
        if cells.dtype != object:
            sizes = np.abs(cells)
            outside = ((sizes > 0) & (sizes < 5.4e-79)) | (sizes > 7.2e75)
            if outside.any():
                raise FileFormatError(
                    f"the column {name!r} has {cells[outside][0]:g}, which a file of "
                    f"{self.kind} cannot hold: write .sav, .dta or .parquet"
                )
        return cells

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        self._writing.write_xport(frame, path, column_labels=self._make_labels())


class _WholeTable:
    """The row groups of a table, until it is written."""

    def __init__(self, schema: Any, write: Callable[[Any], None]) -> None:
        self._schema, self._write = schema, write
        self._groups: list[Any] = []

    def write_batch(self, group: Any) -> None:
        """Hold a group of rows."""
        self._groups.append(group)

    def close(self) -> None:
        """Write all rows."""
        import pyarrow

        self._write(pyarrow.Table.from_batches(self._groups, schema=self._schema))


SURVEY_SINKS: Mapping[str, type[SurveySink]] = {
    ".sav": SurveySink,
    ".zsav": ZippedSurveySink,
    ".dta": StataSink,
    ".xpt": TransportSink,
}
"""The writers by ending."""
