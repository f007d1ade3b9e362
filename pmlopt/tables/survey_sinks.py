"""Writers of files of SPSS, Stata and SAS by pyreadstat, with the labels and formats of what was read."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NoReturn

import numpy as np

from pmlopt.core.display import format_nats
from pmlopt.core.frames import MISSING_LETTER
from pmlopt.core.lazy_imports import compute, import_optional, pyarrow, tempfile
from pmlopt.core.numbers.arrays import Label
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.survey import SurveyTable
from pmlopt.tables.survey_columns import SurveyColumn, SurveyMetadata
from pmlopt.tables.survey_process import (
    MIN_KIND,
    find_kinds,
    list_with_kinds,
    name_kind,
    number_kind,
)
from pmlopt.tables.survey_times import choose_time_format, count_units
from pmlopt.tables.table import Table
from pmlopt.tables.typed_sinks import (
    OutputColumn,
    TypedSink,
    WholeTable,
    make_write_error,
    to_typed_array,
)

NUMBERS = ("double", "float", "int8", "int16", "int32")
"""How files store numbers."""


class SurveySink(TypedSink):
    """A writer of a file of SPSS, Stata or SAS, with the labels and formats of the file that was read.

    A new column is one of numbers where all its labels are: codes, dates in the format of the column that it
    is made from, and missing cells. pyreadstat writes a file from a whole table, so that the rows are held in
    memory until the end.
    """

    kind: ClassVar[str] = "SPSS"
    program: ClassVar[str] = "spss"
    max_label_bytes = 256
    max_value_label_bytes: ClassVar[int | None] = 120
    has_kinds = False
    keeps_blanks = False
    compressed = False
    ignores_case = True

    def __init__(self, stream: BinaryIO, columns: Sequence[OutputColumn], like: Table) -> None:
        import_optional("pandas", f"writers of files of {self.kind}")
        self._writing = import_optional("pyreadstat", f"writers of files of {self.kind}")
        survey = like if isinstance(like, SurveyTable) else None
        self._metadata = SurveyMetadata() if survey is None else survey.metadata
        self._is_own = survey is not None and survey.program == self.program
        self._about: dict[str, SurveyColumn] = {}
        if survey is not None:
            self._about = {column.name: column for column in survey.columns}
            if self._is_own:
                survey.keep_numbers()
        super().__init__(stream, columns, like)
        for column, field in zip(columns, self._schema, strict=True):
            self._check_column(column, field.type)
        if self.ignores_case:
            self._check_case([column.name for column in columns])
        self._try_columns()

    def _check_case(self, names: Sequence[str]) -> None:
        """Raise an error for two names that are one to the programs that read the format."""
        owners: dict[str, str] = {}
        for name in names:
            if (other := owners.setdefault(name.casefold(), name)) != name:
                raise InputError(
                    f"a file of {self.kind} cannot have the columns {other!r} and {name!r}, whose names "
                    "differ by case only: rename one, or write .dta, .parquet or .csv"
                )

    def _make_values(self, column: OutputColumn) -> Any:
        """Return the values of the labels of a new column: numbers where all are, or their missing cells."""
        found = [self._to_number(label, self._about.get(column.name)) for label in column.labels]
        numbers = [one for one in found if one is not None]
        if len(numbers) < len(found) or all(np.isnan(one) or one >= MIN_KIND for one in numbers):
            return column.values
        if all(type(label) is int for label in column.labels):
            return column.values
        return to_typed_array(numbers, pyarrow.float64())

    def _to_number(self, label: Label, about: SurveyColumn | None) -> float | None:
        """Return the number of a label in this format, NaN for a missing cell; None for text."""
        if type(label) in (int, float):
            return float(label)  # type: ignore[arg-type]
        if label == MISSING_LETTER:
            return np.nan
        if self.has_kinds and isinstance(label, str) and re.fullmatch(r"\.[a-z]", label):
            return number_kind(label[1])
        if not self._is_own or about is None or about.time is None or not isinstance(label, str):
            return None
        return about.time.parse_text(label)

    def _check_column(self, column: OutputColumn, kind: Any) -> None:
        """Raise an error for a column that the format cannot hold."""
        types = pyarrow.types
        name = str(column.name)
        is_number = types.is_floating(kind) or types.is_integer(kind)
        is_time = choose_time_format(kind, self.program) is not None
        if not (is_number or is_time or kind == pyarrow.string()):
            has = f"a file of {self.kind}, which has numbers, text and dates"
            raise make_write_error(name, kind, has)
        label = self._metadata.labels.get(name) or ""
        if column.place is not None and len(label.encode()) > self.max_label_bytes:
            raise InputError(
                f"the label of the column {name!r} has more than {self.max_label_bytes} bytes, the most "
                f"of a file of {self.kind}: shorten it, or write .sav"
            )
        if column.place is None and kind == pyarrow.string():
            self._check_texts(name, column.texts)
        self._check_value_labels(name)
        if any(isinstance(label, int) and abs(label) > 2**53 for label in column.labels):
            raise InputError(
                f"the outputs of {name!r} have whole numbers above 2^53, which a file of {self.kind} rounds: "
                "give them labels of text"
            )

    def _check_value_labels(self, name: str) -> None:
        """Raise an error for value labels that the format cannot hold."""
        for value, label in self._make_value_labels().get(name, {}).items():
            if self.max_value_label_bytes and len(label.encode()) > self.max_value_label_bytes:
                raise InputError(
                    f"the label {label[:40]!r}... of a value of {name!r} has more than "
                    f"{self.max_value_label_bytes} bytes, the most of a file of {self.kind}: shorten it, or "
                    "leave the column out"
                )
            is_whole = isinstance(value, float) and (value >= MIN_KIND or value.is_integer())
            if self.has_kinds and not is_whole:
                raise InputError(
                    f"the column {name!r} has the label {label!r} for {value!r}, and a file of {self.kind} "
                    "has labels for whole numbers: write .sav, or leave the column out"
                )

    def _open_writer(self, first: Any) -> WholeTable:
        """Return what holds the rows until all are there."""
        return WholeTable(self._schema, self._write_file)

    def _write_file(self, table: Any) -> None:
        """Write a whole table by pyreadstat, and copy the file into the stream."""
        with tempfile.TemporaryDirectory(prefix="pmlopt-") as folder:
            path = Path(folder) / "table"
            try:
                self._write_frame(self._make_frame(table), str(path))
            except self._errors as cause:
                raise FileFormatError(
                    f"the rows cannot be written as a file of {self.kind}: {cause}"
                ) from None
            with path.open("rb") as made:
                while chunk := made.read(2**20):
                    self._stream.write(chunk)

    def _try_columns(self) -> None:
        """Raise an error where pyreadstat writes no row of missing cells of these columns."""
        row = pyarrow.Table.from_arrays(
            [pyarrow.nulls(1, kind) for kind in self._schema.types], schema=self._schema
        )
        with tempfile.TemporaryDirectory(prefix="pmlopt-") as folder:
            path = str(Path(folder) / "row")
            frame = self._make_frame(row)
            try:
                self._write_frame(frame, path)
            except self._errors as cause:
                for name in frame.columns:
                    self._try_name(frame[[name]], path)
                raise InputError(
                    f"a file of {self.kind} cannot have these columns: {cause}"
                ) from None

    def _try_name(self, frame: Any, path: str) -> None:
        """Raise an error where pyreadstat writes no column of such a name."""
        try:
            self._write_plainly(frame, path)
        except self._errors as cause:
            raise InputError(
                f"a file of {self.kind} cannot have a column {frame.columns[0]!r} ({cause}): rename it, to a "
                "letter and at most 31 letters and digits, or write .parquet or .csv"
            ) from None

    @property
    def _errors(self) -> tuple[type[Exception], ...]:
        """Return the classes of the errors that pyreadstat raises."""
        return self._writing.ReadstatError, self._writing.PyreadstatError, ValueError

    def _write_plainly(self, frame: Any, path: str) -> None:
        """Write a frame to a path without labels and formats."""
        self._writing.write_sav(frame, path)

    def _make_frame(self, table: Any) -> Any:
        """Build the frame that pyreadstat writes."""
        import pandas as pd

        return pd.DataFrame({
            name: pd.Series(self._to_cells(name, column), dtype=None if len(column) else object)
            for name, column in zip(table.column_names, table.columns, strict=True)
        })  # fmt: skip

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column to what pyreadstat writes."""
        if column.type == pyarrow.string():
            found = column.fill_null("").dictionary_encode().combine_chunks()
            self._check_texts(name, found.dictionary)
            texts = np.array(found.dictionary.to_pylist(), dtype=object)
            return texts[found.indices.to_numpy()]
        if pyarrow.types.is_temporal(column.type):
            return count_units(column, self.program)
        numbers = np.asarray(column.cast(pyarrow.float64()).to_numpy())
        kinds = find_kinds(numbers)
        if (odd := ~kinds & (np.abs(numbers) >= MIN_KIND)).any():
            self._refuse_number(name, numbers[odd][0])
        return numbers if self.has_kinds else np.where(kinds, np.nan, numbers)

    def _refuse_number(self, name: str, number: float) -> NoReturn:
        """Raise the error of a number that the format cannot hold."""
        raise FileFormatError(
            f"the column {name!r} has {number:g}, which a file of {self.kind} cannot hold: write .parquet or "
            ".csv, or leave the column out"
        )

    def _check_texts(self, name: str, texts: Any) -> None:
        """Raise an error for text that would come back as another one."""
        pattern = r"\x00" if self.keeps_blanks else r"\x00| $"
        is_cut = compute.match_substring_regex(texts, pattern)
        if compute.any(is_cut).as_py():
            text = texts.filter(is_cut)[0].as_py()
            raise FileFormatError(
                f"the column {name!r} has the text {text!r:.80}, whose end a file of {self.kind} cuts off: "
                "write .parquet or .csv, or strip it before"
            )

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        found = self._metadata if self._is_own else SurveyMetadata()
        self._writing.write_sav(
            frame,
            path,
            compress=self.compressed,
            column_labels=self._make_labels(),
            variable_value_labels=self._make_value_labels(),
            missing_ranges=_select(found.missing, self._names_in_clear()),
            variable_display_width=_select(found.widths, self._names_as_before()),
            variable_measure=_select(found.measures, frame.columns),
            variable_format=self._make_formats(),
        )

    def _names_in_clear(self) -> set[str]:
        """Return the names of the columns that are kept as they are."""
        return {column.name for column in self._columns if column.place is not None}

    def _names_as_before(self) -> set[str]:
        """Return the names of the columns of their kind before: those in clear, and new ones of numbers."""
        return self._names_in_clear() | {
            column.name
            for column, field in zip(self._columns, self._schema, strict=True)
            if str(field.type) != "string" and self._metadata.storage.get(column.name) in NUMBERS
        }

    def _make_formats(self) -> dict[str, str]:
        """Return the format of each column: that of before, or of dates from another program."""
        known = self._metadata.formats if self._is_own else {}
        times = {field.name: choose_time_format(field.type, self.program) for field in self._schema}
        return _select({**times, **_select(known, self._names_as_before())}, times)

    def _make_labels(self) -> dict[str, str]:
        """Return the label of each column, and state which are randomized."""
        known = self._metadata.labels
        labels = {column.name: known.get(column.name) or "" for column in self._columns}
        levels = {
            column.name: "randomized"
            + ("" if column.level is None else f", {format_nats(column.level)}")
            for column in self._columns
        }
        for name in set(labels) - self._names_in_clear():
            stated = f"{labels[name] or name} ({levels[name]})"
            is_short = len(stated.encode()) <= self.max_label_bytes
            labels[name] = stated if is_short else f"{name} ({levels[name]})"
        return {name: label for name, label in labels.items() if label}

    def _make_value_labels(self) -> dict[str, dict[Any, str]]:
        """Return the value labels of each column; of a new one those of its outputs."""
        found = {}
        for column, values, field in zip(self._columns, self._values, self._schema, strict=True):
            about = self._about.get(column.name)
            is_text = str(field.type) == "string"
            if about is None:
                continue
            outputs = None if values is None else set(values.to_pylist())
            found[column.name] = {
                value: label
                for value, label in about.labels.items()
                if isinstance(value, str) == is_text and (outputs is None or value in outputs)
            }
        return _select(found, found)


def _select(found: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Select the entries of some columns that are set."""
    return {name: value for name, value in found.items() if name in names and value}


class ZippedSurveySink(SurveySink):
    """A writer of a compressed file of SPSS."""

    compressed = True


class StataSink(SurveySink):
    """A writer of a file of Stata, with its kinds of missing values."""

    kind, program = "Stata", "stata"
    max_label_bytes, max_value_label_bytes = 80, None
    has_kinds = True
    keeps_blanks = True
    ignores_case = False

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column, to the storage type that it had where all its cells fit."""
        cells = super()._to_cells(name, column)
        if cells.dtype == object:
            return cells
        known = self._metadata.storage if self._is_own else {}
        integer = known.get(name, "int32" if str(column.type) == "int64" else "double")
        if np.isfinite(cells).all() and integer.startswith("int") and (np.abs(cells) < 2**31).all():
            return cells.astype(integer)
        if not (cells >= MIN_KIND).any():
            return cells
        return np.array(list_with_kinds(cells), dtype=object)

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        self._writing.write_dta(
            frame,
            path,
            column_labels=self._make_labels(),
            variable_value_labels={
                name: dict(zip(_to_stata_codes(labels), labels.values(), strict=True))
                for name, labels in self._make_value_labels().items()
            },
            missing_user_values=self._list_kinds(frame),
            variable_format=self._make_formats(),
        )

    def _write_plainly(self, frame: Any, path: str) -> None:
        """Write a frame to a path without labels and formats."""
        self._writing.write_dta(frame, path)

    def _list_kinds(self, frame: Any) -> dict[str, list[str]]:
        """List the kinds of missing values in the columns of numbers, with those that have labels."""
        labels = self._make_value_labels()
        kinds = {
            name: sorted({
                *(cell for cell in column if isinstance(cell, str)),
                *(name_kind(value) for value in labels.get(name, ()) if value >= MIN_KIND),
            })
            for name, column in ((one.name, frame[one.name]) for one in self._schema
                                 if str(one.type) != "string")
        }  # fmt: skip
        return _select(kinds, kinds)


def _to_stata_codes(labels: Mapping[Any, str]) -> list[Any]:
    """Return values that have labels as Stata has them: whole numbers, and letters of kinds."""
    return [name_kind(value) if value >= MIN_KIND else int(value) for value in labels]


class TransportSink(SurveySink):
    """A writer of a transport file of SAS, version 8, which has no value labels."""

    kind, program = "SAS transport", "sas"
    max_value_label_bytes = None

    def _to_cells(self, name: str, column: Any) -> Any:
        """Convert a column, whose numbers must be within the range of the format."""
        cells = super()._to_cells(name, column)
        if cells.dtype != object:
            sizes = np.abs(cells)
            outside = ((sizes > 0) & (sizes < 5.4e-79)) | (sizes > 7.2e75)
            if outside.any():
                self._refuse_number(name, cells[outside][0])
        return cells

    def _write_frame(self, frame: Any, path: str) -> None:
        """Write a frame to a path."""
        self._writing.write_xport(
            frame, path, column_labels=self._make_labels(), variable_format=self._make_formats()
        )

    def _write_plainly(self, frame: Any, path: str) -> None:
        """Write a frame to a path without labels and formats."""
        self._writing.write_xport(frame, path)


SURVEY_SINKS: Mapping[str, type[SurveySink]] = {
    ".sav": SurveySink,
    ".zsav": ZippedSurveySink,
    ".dta": StataSink,
    ".xpt": TransportSink,
}
"""The writers by ending."""
