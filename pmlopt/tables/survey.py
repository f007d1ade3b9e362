"""Tables from files of SPSS, Stata and SAS: codes, labels, formats and missing values.

Codes are the letters, and value labels stay beside them in the file that is written. What a file declares as
missing is missing in a column that is released, and comes back as it was in one that is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pmlopt.core.files.file_kinds import SURVEY_KINDS
from pmlopt.core.lazy_imports import check_installed
from pmlopt.core.numbers.arrays import BoolArray, IntArray
from pmlopt.errors import FileFormatError
from pmlopt.tables.survey_process import METADATA, MIN_KIND
from pmlopt.tables.table import Table, TableBatch


@dataclass(frozen=True)
class SurveyMetadata:
    """The labels, formats and missing values of a file, by the names of its columns.

    Attributes:
        names: of the columns.
        rows: how many the file states, or None.
        labels: of columns.
        value_labels: of the values of columns.
        missing: the values and ranges that SPSS declares as missing.
        formats: of columns.
        storage: how each column is stored.
        widths: in which columns are shown.
        measures: the level of measurement.
    """

    names: Sequence[str] = ()
    rows: int | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    value_labels: Mapping[str, dict[Any, str]] = field(default_factory=dict)
    missing: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    storage: Mapping[str, str] = field(default_factory=dict)
    widths: Mapping[str, int] = field(default_factory=dict)
    measures: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes) -> SurveyMetadata:
        """Read the metadata that the reading process writes."""
        found = json.loads(text)
        pairs = found.pop("value_labels").items()
        return cls(**found, value_labels={name: dict(labels) for name, labels in pairs})


class SurveyTable(Table):
    """A table over a file of SPSS, Stata or SAS, read some rows at a time by a process of its own.

    Attributes:
        ending: that names of such files have, as `find_survey_ending` states it.
        kind: of the file, in words.
        metadata: labels, formats and missing values.
        keeps_kinds: whether columns have kinds of missing values, as `number_kinds` makes them; else null.

    Args:
        path: of the file.
        ending: for such a file.

    Raises:
        FileFormatError: it is not a whole file of that kind.
        MissingExtraError: pyreadstat is not installed.
    """

    keeps_kinds = False

    def __init__(self, path: Any, ending: str) -> None:
        import pyarrow

        self.where, self.ending, self._read = path, ending, 0
        self.kind = f"{SURVEY_KINDS[ending]} ({ending})"
        check_installed(f"files that end in {self.ending}", "pyreadstat")
        if not Path(path).is_file():
            raise FileFormatError(
                f"{path}: is a {self.kind}, which is read from a file on disk: write it there first"
            )
        self._process = subprocess.Popen(  # noqa: S603 -- our own module
            [sys.executable, "-m", "pmlopt.tables.survey_process", str(path), self.ending],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            self._stream = pyarrow.ipc.open_stream(self._process.stdout)
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise self._explain(cause) from None
        self.metadata = SurveyMetadata.from_json(self._stream.schema.metadata[METADATA])
        self.names, self.rows = list(self.metadata.names), self.metadata.rows
        self.types = list(self._stream.schema.types)

    def _explain(self, cause: object) -> FileFormatError:
        """Return the error of a file that the process could not read."""
        said = self._process.communicate()[1].decode(errors="replace").strip()
        if self._process.returncode == 2:
            cause = said.splitlines()[-1] if said else cause
        elif self._process.returncode:
            cause = "the process that reads it ended, as it does on some damaged files"
        return FileFormatError(f"{self.where}: is a {self.kind}, but no whole one: {cause}")

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        import pyarrow

        try:
            for batch in self._stream:
                yield SurveyBatch(batch.columns, batch.num_rows, self._read + 1, self)
                self._read += batch.num_rows
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise self._explain(cause) from None
        if self._process.wait():
            raise self._explain("")
        if not self._read:
            raise FileFormatError(f"{self.where}: has 0 rows: at least one is needed")
        if self.rows is not None and self._read < self.rows:
            raise FileFormatError(
                f"{self.where}: states {self.rows} rows and has {self._read}: it is not whole"
            )

    def find_missing(self, place: int) -> Callable[[Any], bool]:
        """Return the test whether a value of a column is declared as missing."""
        return _DeclaredMissing(self.metadata.missing.get(self.names[place], ()))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def done(self) -> float | None:
        """Return the fraction of the rows that was read."""
        return self._read / self.rows if self.rows else None


class _DeclaredMissing:
    """The test whether a value is missing by an SPSS declaration of values and ranges."""

    def __init__(self, ranges: Sequence[Any]) -> None:
        self._ranges = [
            (one["lo"], one["hi"]) if isinstance(one, dict) else (one, one) for one in ranges
        ]

    def __call__(self, value: Any) -> bool:
        """Return whether a value is missing; blank text and kinds of missing values always are."""
        if value == "" or (isinstance(value, float) and value >= MIN_KIND):
            return True
        return any(
            low <= value <= high
            for low, high in self._ranges
            if isinstance(low, str) == isinstance(value, str)
        )


class SurveyBatch(TableBatch):
    """A batch of rows, whose whole numbers are letters without a fraction."""

    def __init__(self, columns: Sequence[Any], size: int, first: int, table: SurveyTable) -> None:
        super().__init__(columns, size, first, text=False, names=table.names, where=table.where)
        self._table = table

    def encode_column(self, place: int) -> tuple[list[Any], IntArray]:
        """Encode a column as distinct values and (size,) indices; declared missing values are None."""
        is_declared = self._table.find_missing(place)
        values, codes = super().encode_column(place)
        return [
            None if value is None or is_declared(value) else _drop_fraction(value)
            for value in values
        ], codes

    def get_column(self, place: int, kept_mask: BoolArray | None = None) -> Any:
        """Return a column's array for kept rows, without kinds of missing values but for a file of Stata."""
        from pyarrow import compute, scalar

        column = super().get_column(place, kept_mask)
        if self._table.keeps_kinds or str(column.type) != "double":
            return column
        return compute.if_else(compute.less(column, MIN_KIND), column, scalar(None, column.type))


def _drop_fraction(value: Any) -> Any:
    """Return a whole float as an integer: these files have no other numbers."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
