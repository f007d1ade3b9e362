"""Digests of data: whether the rows that are released are those that were counted."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmlopt.core.arrays import IntArray
from pmlopt.core.drafts import digest_file, digest_names
from pmlopt.core.files import describe_os_error, is_standard_stream
from pmlopt.errors import FileFormatError
from pmlopt.tables.frame_tables import LazyTable
from pmlopt.tables.reading import (
    Table,
    TableBatch,
    find_column,
    is_data_folder,
    list_data_files,
)


def digest_data(data: Any) -> str | None:
    """Return a SHA-256 of a data file, or of all files of a folder or a pattern and their names.

    None for a frame or standard input, of which the rows are digested where they are read (`RowDigest`).

    Raises:
        FileFormatError: a file cannot be read.
    """
    if not isinstance(data, str | os.PathLike) or is_standard_stream(data):
        return None
    try:
        if not is_data_folder(data):
            return digest_file(Path(data))
        folder, found = list_data_files(data)
        return digest_files(
            {file.relative_to(folder).as_posix(): digest_file(file) for file in found}
        )
    except (OSError, ValueError) as cause:
        raise FileFormatError(f"{data}: cannot be read: {describe_os_error(cause)}") from None


def digest_files(digests: dict[str, str]) -> str:
    """Return the digest of a folder by those of its files."""
    return digest_names(digests.items())


class RowDigest:
    """A digest of the rows of a table while they are read: the letters, and the cells of other columns.

    It depends on the order of the rows, but for frames that an engine computes, which has them in any order.

    Args:
        table: that is read.
        columns: the other columns.
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._places = [find_column(table.names, name, table.where) for name in columns]
        self._ordered = not isinstance(table, LazyTable)
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()

    def add_batch(self, batch: TableBatch, letters: Sequence[IntArray]) -> None:
        """Add the rows of a batch, with the letter of each row for each mechanism."""
        for number, codes in enumerate(letters):
            if self._ordered:
                self._hash.update(codes.tobytes())
            else:
                self._counts.update(f"{number} {code}" for code in codes.tolist())
        for place in self._places:
            values, codes = batch.encode_column(place)
            if self._ordered:
                self._hash.update(repr(values).encode("utf-8", "surrogatepass") + codes.tobytes())
            else:
                self._counts.update(f"{place} {values[code]!r}" for code in codes.tolist())

    def compute_digest(self) -> str:
        """Return the digest of all rows so far."""
        counted = repr(sorted(self._counts.items())).encode("utf-8", "surrogatepass")
        return hashlib.sha256(self._hash.digest() + counted).hexdigest()
