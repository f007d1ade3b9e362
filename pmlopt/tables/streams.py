"""The bytes of a data file, looked at before they are read, and its rows in plain Python."""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from pmlopt.errors import FileFormatError
from pmlopt.tables.csv_form import HEAD, CsvForm
from pmlopt.whole_files import reason_of


class DataStream(io.RawIOBase):
    """A binary stream whose first bytes have been looked at, as if they had not.

    Attributes:
        head: its first megabyte.
        size: of the whole file, None where that is not known.
        watch: is called with what is read, nothing at the end.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.head = stream.read(HEAD)
        self._ahead = self.head
        self._read = 0
        self.watch: Callable[[bytes], None] | None = None
        try:
            self.size = os.fstat(stream.fileno()).st_size or None
        except (OSError, ValueError):
            self.size = None

    def skip_blank_lines(self) -> None:
        """Leave out what stands above a header."""
        self._ahead = self._ahead.lstrip(b"\r\n")

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """Whether one can go back in it."""
        return self.size is not None and self._stream.seekable()

    def readinto(self, buffer: Any) -> int:
        """Read what is left of the head, then the rest."""
        view = memoryview(buffer).cast("B")
        chunk = self._ahead[: len(view)] or self._more(len(view))
        self._ahead = self._ahead[len(view) :]
        view[: len(chunk)] = chunk
        self._read += len(chunk)
        if self.watch is not None:
            self.watch(chunk)
        return len(chunk)

    def _more(self, size: int) -> bytes:
        try:
            return self._stream.read(size) or b""
        except OSError as cause:
            name = getattr(self._stream, "name", "the data")
            raise FileFormatError(f"{name}: cannot be read: {reason_of(cause)}") from None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the file."""
        if whence == os.SEEK_CUR:
            offset, whence = offset + self.tell(), os.SEEK_SET
        self._ahead = b""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._stream.tell() - len(self._ahead)

    def close(self) -> None:
        """Close the file, but for standard input."""
        if not self.closed and (sys.stdin is None or self._stream is not sys.stdin.buffer):
            self._stream.close()
        super().close()

    def done(self) -> float | None:
        """The share of the file that was read."""
        return None if self.size is None else min(1.0, self._read / self.size)


def with_seeking(source: DataStream) -> DataStream:
    """The stream, or a copy of it on disk, without a name, where one cannot go back in it."""
    if source.seekable():
        return source
    copy = tempfile.TemporaryFile()  # noqa: SIM115 -- the stream closes it
    shutil.copyfileobj(cast("BinaryIO", source), copy)
    copy.seek(0)
    return DataStream(cast("BinaryIO", copy))


def text_rows(source: Any, form: CsvForm, where: object) -> Iterator[list[str]]:
    """The rows of a CSV file in plain Python, the header first."""
    buffered = io.BufferedReader(source, 2**16) if isinstance(source, io.RawIOBase) else source
    return form.rows(io.TextIOWrapper(buffered, encoding=form.encoding, newline=""), where)
