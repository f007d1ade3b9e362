"""Digests of data, to detect changes between count and release."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pmlopt.core.files.disk import describe_os_error, digest_file, is_standard_stream
from pmlopt.core.files.drafts import digest_names
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.errors import FileFormatError
from pmlopt.tables.reading import (
    Table,
    TableBatch,
    find_column,
    is_data_folder,
    list_data_files,
)


def digest_data(data: Any) -> str | None:
    """Compute the SHA-256 digest of a data file or folder.

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
    """Combine file digests to a folder digest."""
    return digest_names(digests.items())


class RowDigest:
    """The running digest of a table's letters and other cells.

    It depends on the order of the rows, but for those of engines and databases, which have them in any order.

    Args:
        table: that is read.
        columns: the other columns.
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._places = [find_column(table.names, name, table.where) for name in columns]
        self._ordered = table.is_ordered
        self._hash = hashlib.sha256()
        self._counts: Counter[str] = Counter()

    def add_batch(self, batch: TableBatch, letters: Sequence[IntArray]) -> None:
        """Add a batch with its letters."""
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
