"""Rows of comma-separated values, read and written."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pmlopt.core.file_kinds import describe_foreign_file
from pmlopt.core.files import digest_file as digest_file
from pmlopt.core.files import read_bytes
from pmlopt.core.matrix_layout import is_number as is_number
from pmlopt.core.matrix_layout import parse_number as parse_number
from pmlopt.errors import FileFormatError

_QUOTED_NAMES = re.compile(r'\ufeff?"(?:[^"]|"")*"(?: "(?:[^"]|"")*")+\s*')


def has_blank_delimiter(header: str) -> bool:
    """Return whether a header has quoted names with a blank between them, as R's write.table writes it.

    Examples:
        >>> has_blank_delimiter('"age group" "n"'), has_blank_delimiter("age group")
        (True, False)
    """
    return _QUOTED_NAMES.fullmatch(header) is not None


def parse_rows(
    text: Iterable[str],
    where: object,
    delimiter: str = ",",
    not_text: str = "",
    *,
    labelled: bool = False,
) -> Iterator[list[str]]:
    """Parse CSV text to rows of equal length.

    Blank lines are no rows, but in a file of one column, where they are missing cells.

    Args:
        text: its lines, with their ends.
        where: the file, for messages.
        delimiter: between cells.
        not_text: the message where the bytes are not of the encoding.
        labelled: whether the rows may have a label more than the header, as R's write.table leaves the corner
            of a matrix out.

    Raises:
        FileFormatError: a row is longer or shorter, a quoted cell does not end, or it is no text.
    """
    length, number, first = 0, 0, ""
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            if not row and length != 1:
                continue
            number += 1
            if number == 1:
                length, first = len(row), row[0]
            # a first cell that is empty is the corner
            without_corner = number == 2 and len(row) == length + 1 and first != ""
            length += without_corner and labelled
            if len(row or [""]) != length:
                hint = ", or these are row names of R (row.names = FALSE)" if without_corner else ""
                raise FileFormatError(
                    f"{where}: row {number} has {len(row)} cells and the header {length}: "
                    f"the file may be cut short{hint}"
                )
            yield row or [""]  # as some programs write a missing cell
    except UnicodeError:
        raise FileFormatError(
            not_text or f"{where}: is not text in UTF-8, so not a CSV file"
        ) from None
    except csv.Error as cause:
        raise FileFormatError(
            f"{where}: is not a whole CSV file: row {number + 1}: {cause}"
        ) from None


def read_rows(
    path: str | os.PathLike[str],
    content: bytes | None = None,
    delimiter: str = ",",
    least: int = 2,
    *,
    labelled: bool = False,
) -> list[list[str]]:
    """Read a UTF-8 CSV file with at least a header and one row.

    A header of a labelled matrix that lacks the corner gets an empty one.
    """
    content = read_bytes(path) if content is None else content
    if (foreign := describe_foreign_file(content, small=True)) is not None:
        raise FileFormatError(f"{path}: {foreign}")
    stream = io.BytesIO(content)
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    rows = list(parse_rows(text, path, delimiter, labelled=labelled))
    if labelled and rows and len(rows[0]) < len(rows[-1]):
        rows[0].insert(0, "")
    if len(rows) < least:
        raise FileFormatError(
            f"{path}: has {len(rows)} row(s): a header and at least one row are needed"
        )
    return rows


def encode_csv(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> bytes:
    r"""Encode rows as CSV that round-trips every cell.

    Examples:
        >>> encode_csv([["a", 1], ["b\r", 2]])
        b'a,1\n"b\r","2"\n'
    """
    # newline="" keeps line ends inside cells as they are
    stream = io.StringIO(newline="")
    plain = csv.writer(stream, lineterminator="\n", delimiter=delimiter)
    quoted = csv.writer(stream, lineterminator="\n", delimiter=delimiter, quoting=csv.QUOTE_ALL)
    for row in rows:
        # the writer does not see that a carriage return needs quotes
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    try:
        return stream.getvalue().encode()
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label or a cell cannot be written as UTF-8: {cause}") from None
