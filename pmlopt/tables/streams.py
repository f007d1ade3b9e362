"""Byte streams of data files: detection, quoting and CSV formats."""

from __future__ import annotations

import codecs
import io
import lzma
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.files.csv_rows import (
    HEAD_BYTES,
    find_stated_delimiter,
    list_delimiters,
    parse_rows,
)
from pmlopt.core.files.disk import describe_os_error
from pmlopt.errors import FileFormatError, InputError

_QUOTE = ord('"')


class QuoteCheck:
    """An incremental check that CSV quotes are well formed.

    Args:
        delimiter: between cells.

    Attributes:
        unusual: whether one does not.
    """

    def __init__(self, delimiter: str) -> None:
        self._ends = np.zeros(256, dtype=bool)
        self._ends[[_QUOTE, ord(delimiter), ord("\n"), ord("\r")]] = True
        self._inside = False
        self._before = ord("\n")
        self._closed_last = False
        self.unusual = False

    def check_chunk(self, chunk: bytes) -> None:
        """Check the next bytes; empty at the end of the file."""
        if not chunk:
            self.unusual |= self._inside
            return
        data = np.frombuffer(chunk, dtype=np.uint8)
        if self._closed_last:
            self.unusual |= not self._ends[data[0]]
        places = np.flatnonzero(data == _QUOTE)
        opens = (np.arange(len(places)) + self._inside) % 2 == 0
        self._closed_last = (
            bool(len(places)) and bool(places[-1] == len(data) - 1) and not opens[-1]
        )
        self.unusual |= not (
            self._is_valid_before(data, places[opens])
            and self._is_valid_after(data, places[~opens])
        )
        self._inside ^= bool(len(places) % 2)
        self._before = int(data[-1])

    def _is_valid_before(self, data: NDArray[np.uint8], places: NDArray[np.intp]) -> bool:
        """Return whether each opening quote begins a cell or is doubled."""
        first = places[:1] == 0
        before = data[places - 1]
        before[:1][first] = self._before
        return bool(self._ends[before].all())

    def _is_valid_after(self, data: NDArray[np.uint8], places: NDArray[np.intp]) -> bool:
        """Return whether each closing quote ends a cell or is doubled."""
        return bool(self._ends[data[places[places + 1 < len(data)] + 1]].all())


_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class CsvFormat:
    r"""How a file is read: delimiter and encoding of CSV, None where detected, sheet of a workbook, letters.

    The delimiter is a comma, a semicolon, a tab or a bar: the one that gives the header and all rows of the
    first megabyte the same number of cells, two or more; a blank between quoted names, as R's write.table
    writes them; what a first line `sep=;` states; a comma where none does. The encoding is UTF-8, or
    what a mark at the file's start states (UTF-16, UTF-32). Others have to be given: no file distinguishes
    them.

    Args:
        delimiter: one character, or `tab`.
        encoding: as Python names it, such as `cp1252`.
        sheet: of a workbook, or the data frame of a file of R, where it has several.
        states_delimiter: whether the first line is one that states the delimiter, and no header.
        labels: of files of SPSS, Stata and SAS, whether value labels are the letters, in place of codes.

    Raises:
        InputError: the delimiter is not one character, or the encoding is not known.

    Examples:
        >>> CsvFormat().detect(b"id;income\n1;2,5\n2;3,0\n", "people.csv")
        CsvFormat(delimiter=';', encoding='utf-8')
    """

    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = field(default=None, repr=False, kw_only=True)
    states_delimiter: bool = field(default=False, repr=False)
    labels: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii()
        ):
            raise InputError(
                f"the delimiter is {self.delimiter!r}: give one character such as ';', or tab"
            )
        try:
            "a".encode(self.encoding or "utf-8")  # refuses codecs of no text, too
        except (LookupError, ValueError):
            raise InputError(
                f"the encoding {self.encoding!r} is not known: give one such as cp1252"
            ) from None

    def detect(self, head: bytes, where: object, *, whole: bool = True) -> CsvFormat:
        """Detect the missing format parts from a file's first bytes.

        Args:
            head: the first bytes.
            where: the file, for messages about it.
            whole: whether these are all bytes of the file.

        Raises:
            FileFormatError: the bytes are not of the encoding, or two delimiters would do.
        """
        marks = (name for mark, name in _MARKS if head.startswith(mark))
        encoding = self.encoding or next(marks, "utf-8")
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = decoder.decode(head, final=whole)
        except UnicodeError:
            raise FileFormatError(self.encoding_error(where, encoding)) from None
        stated = find_stated_delimiter(text) is not None
        form = replace(self, encoding=encoding, states_delimiter=stated)
        if self.delimiter:
            return form
        return replace(form, delimiter=_detect_delimiter(text, where, whole=whole))

    def encoding_error(self, where: object, encoding: str) -> str:
        """Build the error of a file with another encoding."""
        name = "UTF-8" if encoding in ("utf-8", "utf-8-sig") else encoding
        return f"{where}: is not text in {name}, so not a CSV file of it: give its --encoding, such as cp1252"


def _detect_delimiter(text: str, where: object, *, whole: bool) -> str:
    """Detect the only delimiter that gives all rows equal length."""
    fitting = list_delimiters(text, whole=whole)
    if len(fitting) > 1:
        names = " and ".join(_NAMES[candidate] for candidate in fitting)
        raise FileFormatError(
            f"{where}: may have {names} between its cells: choose one by --delimiter"
        )
    return fitting[0] if fitting else ","


class DataStream(io.RawIOBase):
    """A binary stream with a peeked head.

    Attributes:
        head: its first megabyte.
        size: of the whole file, None where that is not known.
        watch: is called with what is read, nothing at the end.

    Args:
        stream: whose bytes are read.
        where: the file, for messages; else the name of the stream.
    """

    def __init__(self, stream: BinaryIO, where: object = None) -> None:
        self._stream = stream
        self._where = where or getattr(stream, "name", "the data")
        self.head = stream.read(HEAD_BYTES)
        self._ahead = self.head
        self._read = 0
        self.watch: Callable[[bytes], None] | None = None
        try:
            self.size = os.fstat(stream.fileno()).st_size or None
        except (OSError, ValueError):
            self.size = None

    def skip_blank_lines(self) -> None:
        """Skip blank lines above the header."""
        self._ahead = self._ahead.lstrip(b"\r\n")

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the stream is seekable."""
        return self.size is not None and self._stream.seekable()

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer, from the head first."""
        view = memoryview(buffer).cast("B")
        chunk = self._ahead[: len(view)] or self._read_more(len(view))
        self._ahead = self._ahead[len(view) :]
        view[: len(chunk)] = chunk
        self._read += len(chunk)
        if self.watch is not None:
            self.watch(chunk)
        return len(chunk)

    def _read_more(self, size: int) -> bytes:
        """Read bytes from the underlying stream."""
        try:
            return self._stream.read(size) or b""
        except (OSError, EOFError, lzma.LZMAError) as cause:
            raise FileFormatError(
                f"{self._where}: cannot be read: {describe_os_error(cause)}"
            ) from None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position in the file."""
        if whence == os.SEEK_CUR:
            offset = offset + self.tell()
            whence = os.SEEK_SET
        self._ahead = b""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file."""
        return self._stream.tell() - len(self._ahead)

    def close(self) -> None:
        """Close the file, but for standard input."""
        if not self.closed and (sys.stdin is None or self._stream is not sys.stdin.buffer):
            self._stream.close()
        super().close()

    def done(self) -> float | None:
        """Return the fraction of the file that was read."""
        return None if self.size is None else min(1.0, self._read / self.size)


def make_seekable(source: DataStream) -> DataStream:
    """Return the stream, or a seekable temporary copy."""
    if source.seekable():
        return source
    copy = tempfile.TemporaryFile()  # noqa: SIM115 -- the stream closes it
    shutil.copyfileobj(cast("BinaryIO", source), copy)
    copy.seek(0)
    return DataStream(cast("BinaryIO", copy))


def read_text_rows(source: Any, form: CsvFormat, where: object) -> Iterator[list[str]]:
    """Read CSV rows with Python's reader, header first."""
    buffered = io.BufferedReader(source, 2**16) if isinstance(source, io.RawIOBase) else source
    text = io.TextIOWrapper(buffered, encoding=form.encoding, newline="")
    return parse_rows(
        text, where, form.delimiter or ",", form.encoding_error(where, form.encoding or "utf-8")
    )
