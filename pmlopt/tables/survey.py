"""Tables from files of SPSS, Stata and SAS: codes, labels, formats and missing values.

Codes are the letters, or labels where that is asked for; value labels stay beside them in the file that is
written. What a file declares as missing is missing in a column that is released, and comes back as it was in
one that is kept.
"""

from __future__ import annotations

import atexit
import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pmlopt.core.files.child_process import start_child
from pmlopt.core.files.csv_rows import HEAD_BYTES
from pmlopt.core.files.file_kinds import SURVEY_KINDS, find_survey_ending
from pmlopt.core.frames import MISSING_LETTER
from pmlopt.core.lazy_imports import check_installed, compute, pyarrow
from pmlopt.core.numbers.arrays import BoolArray, IntArray, Label
from pmlopt.errors import FileFormatError, LabelWarning
from pmlopt.tables.survey_columns import PROGRAMS, SurveyColumn, SurveyMetadata
from pmlopt.tables.survey_process import METADATA, MIN_KIND, serve_file
from pmlopt.tables.table import Table, TableBatch, make_no_people_error


class ReadingProcess:
    """A process that reads a file, and answers for several tables in turn.

    Attributes:
        key: of what it reads.
        head: the schema of all columns, with what the file states of them among its metadata.
        is_idle: whether it waits for a question.

    Args:
        key: of what it reads.
        path: of the file.
        ending: for such a file.
        encoding: of the text; empty for what the file states.
        kind: of the file, in words.

    Raises:
        FileFormatError: it is not a whole file of that kind.
    """

    def __init__(
        self, key: tuple[Any, ...], path: Any, ending: str, encoding: str, kind: str
    ) -> None:
        self.key = key
        self._where = path
        self._kind = kind
        self._child = start_child(serve_file, path=str(path), ending=ending, encoding=encoding)
        self.head = self._open_stream().read_all().schema
        self.is_idle = True

    def _open_stream(self) -> Any:
        """Open the next stream of the process."""
        try:
            return pyarrow.ipc.open_stream(self._child.stdout)
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise self._explain(cause) from None

    def read_rows(self, names: Sequence[str]) -> Iterator[Any]:
        """Yield record batches of some columns.

        Raises:
            FileFormatError: the file is damaged.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        try:
            self.is_idle = False
            self._child.stdin.write(json.dumps(names).encode() + b"\n")
            self._child.stdin.flush()
            yield from self._open_stream()
            self.is_idle = self._child.stdout.read(1) == b"+"
        except (pyarrow.ArrowInvalid, OSError) as cause:
            raise self._explain(cause) from None
        if not self.is_idle:
            raise self._explain("")

    def _explain(self, cause: object) -> FileFormatError:
        """Return the error of a file that the process could not read."""
        said = self._child.communicate()[1].decode(errors="replace").strip()
        if self._child.returncode == 2:
            cause = said.splitlines()[-1] if said else cause
        elif self._child.returncode:
            cause = "the process that reads it ended, as it does on some damaged files"
        return FileFormatError(f"{self._where}: is a {self._kind}, but no whole one: {cause}")

    def close(self) -> None:
        """End the process."""
        self._child.kill()
        self._child.communicate()


_IDLE: dict[tuple[Any, ...], ReadingProcess] = {}
"""The process that was used last, by what it reads and the process that started it."""


def _take_process(path: Any, ending: str, encoding: str, kind: str) -> ReadingProcess:
    """Return the idle process of a file that is as it was, or start one."""
    about = Path(path).stat()
    state = (about.st_ino, about.st_size, about.st_mtime_ns)
    key = (os.getpid(), str(Path(path).absolute()), ending, encoding, *state)
    return _IDLE.pop(key, None) or ReadingProcess(key, path, ending, encoding, kind)


def _give_back(process: ReadingProcess) -> None:
    """Keep a process in place of the one before; end it where it is not idle."""
    _end_idle()
    if process.is_idle:
        _IDLE[process.key] = process
    else:
        process.close()


@atexit.register
def _end_idle() -> None:
    """End the process that is kept, unless this one was forked from the one that started it."""
    for key in list(_IDLE):
        process = _IDLE.pop(key, None)  # which another thread may have taken
        if process is not None and key[0] == os.getpid():
            process.close()


def _read_ending(path: Any) -> str | None:
    """Return the ending of a survey file by its first bytes; None for another one."""
    with Path(path).open("rb") as stream:
        return find_survey_ending(stream.read(HEAD_BYTES))


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
        self.where = path
        self.ending = ending
        self._read = 0
        self.program = PROGRAMS[ending]
        self.kind = f"{SURVEY_KINDS[ending]} ({ending})"
        check_installed(f"files that end in {self.ending}", "pyreadstat")
        if not Path(path).is_file() or _read_ending(path) != ending:
            raise FileFormatError(
                f"{path}: is a {self.kind}, which is read from a file on disk that is not packed: write it "
                "there first"
            )
        self._process = _take_process(path, ending, encoding or "", self.kind)
        self._is_open = True
        schema = self._process.head
        self.metadata = SurveyMetadata.from_json(schema.metadata[METADATA])
        self.names = list(self.metadata.names)
        self.rows = self.metadata.rows
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

    def keep_numbers(self) -> None:
        """Give columns as they are in the file: see `keeps_numbers`."""
        self.keeps_numbers = True
        self.types = self._stored

    def batches(self) -> Iterator[TableBatch]:
        """Yield the batches of rows."""
        return self._read_batches(self.names)

    def read_columns(self, names: Collection[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, of a large file with some columns only."""
        is_large = self.rows is not None and self.rows > 10_000
        return self._read_batches([one for one in self.names if one in names or not is_large])

    def _read_batches(self, names: Sequence[str]) -> Iterator[TableBatch]:
        """Yield the batches of rows, with some columns."""
        for batch in self._process.read_rows(names):
            found = dict(zip(names, batch.columns, strict=True))
            columns = [found.get(name) for name in self.names]
            yield SurveyBatch(columns, batch.num_rows, self._read + 1, self)
            self._read += batch.num_rows
        if not self._read:
            raise make_no_people_error(self.where)
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
        """Leave the process to the next table of the file."""
        if self._is_open:
            _give_back(self._process)
        self._is_open = False

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
        found = super().get_column(place, kept_mask)
        about = self._table.columns[place]
        if self._table.keeps_numbers or str(found.type) != "double":
            return found
        numbers = compute.if_else(
            compute.less(found, MIN_KIND), found, pyarrow.scalar(None, found.type)
        )
        return numbers if about.time is None else about.time.to_arrow(numbers, about.name)
