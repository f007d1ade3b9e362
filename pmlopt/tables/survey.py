"""Tables from files of SPSS, Stata and SAS: codes, labels, formats and missing values.

Codes are the letters, or labels where that is asked for; value labels stay beside them in the file that is
written. What a file declares as missing is missing in a column that is released, and comes back as it was in
one that is kept.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pmlopt.core.files.file_kinds import SURVEY_KINDS
from pmlopt.core.frames import MISSING_LETTER
from pmlopt.core.lazy_imports import check_installed
from pmlopt.core.numbers.arrays import BoolArray, IntArray, Label
from pmlopt.errors import FileFormatError, LabelWarning
from pmlopt.tables.survey_columns import PROGRAMS, SurveyColumn, SurveyMetadata
from pmlopt.tables.survey_process import METADATA, MIN_KIND
from pmlopt.tables.table import Table, TableBatch


class SurveyTable(Table):
    """A table over a file of SPSS, Stata or SAS, read some rows at a time by a process of its own.

    Attributes:
        ending: that names of such files have, as `find_survey_ending` states it.
        program: spss, stata or sas.
        kind: of the file, in words.
        metadata: labels, formats and missing values.
        columns: what makes letters of their values.
        keeps_numbers: whether columns are as they are in the file: dates are numbers, and kinds of missing
            values too, as `number_kinds` makes them; else dates are dates, and kinds null.

    Args:
        path: of the file.
        ending: for such a file.
        labels: whether value labels are the letters.
        encoding: of the text; None for what the file states.

    Raises:
        FileFormatError: it is not a whole file of that kind.
        MissingExtraError: pyreadstat is not installed.
    """

    keeps_numbers = False

    def __init__(
        self, path: Any, ending: str, *, labels: bool = False, encoding: str | None = None
    ) -> None:
        self.where, self.ending, self._read = path, ending, 0
        self.program, self.kind = PROGRAMS[ending], f"{SURVEY_KINDS[ending]} ({ending})"
        check_installed(f"files that end in {self.ending}", "pyreadstat")
        if not Path(path).is_file():
            raise FileFormatError(
                f"{path}: is a {self.kind}, which is read from a file on disk: write it there first"
            )
        self._process = subprocess.Popen(  # noqa: S603 -- our own module
            [
                sys.executable,
                "-m",
                "pmlopt.tables.survey_process",
                str(path),
                ending,
                encoding or "",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        schema = self._open_stream().read_all().schema
        self.metadata = SurveyMetadata.from_json(schema.metadata[METADATA])
        self.names, self.rows = list(self.metadata.names), self.metadata.rows
        self.columns = [
            SurveyColumn(name, self.metadata, self.program, labels=labels) for name in self.names
        ]
        self._stored = list(schema.types)
        self.types = [
            kind if column.time is None else column.time.arrow_type
            for kind, column in zip(self._stored, self.columns, strict=True)
        ]
        kinds = "_abcdefghijklmnopqrstuvwxyz"
        self.missing_letters = {MISSING_LETTER, *(f".{kind}" for kind in kinds + kinds.upper())}

    def _open_stream(self) -> Any:
        """Open the next stream of the process."""
        import pyarrow

        try:
            return pyarrow.ipc.open_stream(self._process.stdout)
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise self._explain(cause) from None

    def _explain(self, cause: object) -> FileFormatError:
        """Return the error of a file that the process could not read."""
        said = self._process.communicate()[1].decode(errors="replace").strip()
        if self._process.returncode == 2:
            cause = said.splitlines()[-1] if said else cause
        elif self._process.returncode:
            cause = "the process that reads it ended, as it does on some damaged files"
        return FileFormatError(f"{self.where}: is a {self.kind}, but no whole one: {cause}")

    def keep_numbers(self) -> None:
        """Give columns as they are in the file: see `keeps_numbers`."""
        self.keeps_numbers, self.types = True, self._stored

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        return self._read_batches(self.names)

    def read_columns(self, names: Collection[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, of a large file with some columns only."""
        is_large = self.rows is not None and self.rows > 10_000
        return self._read_batches([one for one in self.names if one in names or not is_large])

    def _read_batches(self, names: Sequence[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, with some columns."""
        import pyarrow

        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(names).encode() + b"\n")
            self._process.stdin.flush()
            for batch in self._open_stream():
                found = dict(zip(names, batch.columns, strict=True))
                columns = [found.get(name) for name in self.names]
                yield SurveyBatch(columns, batch.num_rows, self._read + 1, self)
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

    def find_value_labels(self, column: str) -> Mapping[Label, str]:
        """Return the labels of the values of a column by the codes; empty where labels are the letters."""
        own = self.columns[self.names.index(column)]
        if own.has_label_letters:
            return {}
        return {own.get_code(value): label for value, label in own.labels.items()}

    def warn_of_labels(self, column: str, letters: Sequence[Label]) -> None:
        """Warn of letters that may be meant as one, values without a label, and labels without people."""
        super().warn_of_labels(column, letters)
        if found := list(self.columns[self.names.index(column)].describe_labels(letters)):
            warnings.warn(
                f"{self.where}: the column {column!r} has {'; '.join(found)}",
                LabelWarning,
                stacklevel=2,
            )

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def done(self) -> float | None:
        """Return the fraction of the rows that was read."""
        return self._read / self.rows if self.rows else None


class SurveyBatch(TableBatch):
    """A batch of rows, whose letters their columns make of the values."""

    def __init__(self, columns: Sequence[Any], size: int, first: int, table: SurveyTable) -> None:
        super().__init__(columns, size, first, text=False, names=table.names, where=table.where)
        self._table = table

    def encode_column(self, place: int) -> tuple[list[Any], IntArray]:
        """Encode a column as distinct letters and (size,) indices; a missing one may be a `MissingKind`."""
        values, codes = super().encode_column(place)
        column = self._table.columns[place]
        return [column.find_letter(value) for value in values], codes

    def find_order(self, place: int) -> tuple[Any, ...] | None:
        """Return the letters in the order of their codes, where they are labels."""
        column = self._table.columns[place]
        if not column.has_label_letters:
            return None
        return column.find_order(super().encode_column(place)[0], self._table.where)

    def get_column(self, place: int, kept_mask: BoolArray | None = None) -> Any:
        """Return a column's array for kept rows."""
        from pyarrow import compute, scalar

        found, about = super().get_column(place, kept_mask), self._table.columns[place]
        if self._table.keeps_numbers or str(found.type) != "double":
            return found
        numbers = compute.if_else(compute.less(found, MIN_KIND), found, scalar(None, found.type))
        return numbers if about.time is None else about.time.to_arrow(numbers, about.name)
