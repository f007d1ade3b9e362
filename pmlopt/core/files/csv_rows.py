"""Rows of text files, read and written: CSV, with its delimiters and decimal commas."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pmlopt.core.files.disk import digest_file as digest_file
from pmlopt.core.files.disk import read_bytes
from pmlopt.core.files.file_kinds import describe_foreign_file
from pmlopt.core.files.matrix_layout import is_number as is_number
from pmlopt.core.files.matrix_layout import parse_number as parse_number
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.errors import FileFormatError


def parse_rows(
    text: Iterable[str],
    where: object,
    delimiter: str = ",",
    not_text: str = "",
    *,
    labelled: bool = False,
) -> Iterator[list[str]]:
    """Parse CSV text to rows of equal length.

    Blank lines are no rows, but in a file of one column, where they are missing cells; nor is a first line
    that states the delimiter.

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
    length = 0
    number = 0
    first = ""
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            if (not row and length != 1) or (number == 0 and states_delimiter(row, delimiter)):
                continue
            number += 1
            if number == 1:
                length = len(row)
                first = row[0]
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


DELIMITERS = ",;\t|"
"""What may stand between cells."""

HEAD_BYTES = 2**20
"""Bytes or characters of a file from which its form is found."""

_STATED = re.compile(r"""\ufeff?[\r\n]*(['"]?)sep=([!-~]|\t)\1[ \t]*(?=[\r\n]|\Z)""", re.IGNORECASE)
"""The first line `sep=;`, by which a file states to Excel what stands between its cells."""

_GROUPED = re.compile(r"[1-9]\d{0,2}([.,]\d{3})+")
"""A number with commas between its thousands, or with three digits behind a decimal comma."""

_QUOTED_NAMES = re.compile(r'"(?:[^"]|"")*"(?: "(?:[^"]|"")*")+\s*')


def list_delimiters(text: str, *, whole: bool = True) -> list[str]:
    r"""List the delimiters that give the header and all rows one number of cells, two or more.

    Between quoted names in the header, as R's write.table writes them, a blank is the only one; so is one
    that the first line states.

    Args:
        text: of a file, from its start.
        whole: whether it is all of it; else its last row is cut.

    Examples:
        >>> list_delimiters("id;income\n1;2,5\n"), list_delimiters("a;b,c\n1;2,3\n")
        ([';'], [',', ';'])
        >>> list_delimiters('"age group" "n"\n"18 to 30" 7\n'), list_delimiters("age group\n18 30\n")
        ([' '], [])
    """
    if (stated := find_stated_delimiter(text)) is not None:
        return [stated]
    if _QUOTED_NAMES.fullmatch(_double_quotes(_find_header(text))):
        return [" "]
    return [mark for mark in DELIMITERS if mark in text and _fits(text, mark, whole=whole)]


def find_stated_delimiter(text: str) -> str | None:
    r"""Return the delimiter that the first line of a text states, as Excel reads it; None where none does.

    Examples:
        >>> find_stated_delimiter("sep=;\r\nletter;count\r\n"), find_stated_delimiter("sep;x\n")
        (';', None)
    """
    found = _STATED.match(text)
    return None if found is None else found[2]


def states_delimiter(row: Sequence[str], delimiter: str) -> bool:
    """Return whether a row that was split at a delimiter is the line that states one."""
    return find_stated_delimiter(delimiter.join(row)) is not None


def _find_header(text: str) -> str:
    """Return the first line that is not blank."""
    return text.lstrip("\ufeff\r\n").partition("\n")[0].rstrip("\r")


def _double_quotes(text: str) -> str:
    """Double the quotes in cells, before which R's write.table puts a backslash."""
    return text.replace('\\"', '""')


def _fits(text: str, delimiter: str, *, whole: bool, labelled: bool = False) -> bool:
    """Return whether a delimiter gives all complete rows equal length, in a matrix without corner too."""
    try:
        header, *rows = (len(row) for row in split_cells(text, delimiter) if row)
    except (csv.Error, ValueError):  # or there is no header
        return False
    if not whole:
        if not rows:
            return False
        del rows[-1]  # it may be cut, which is no fault of the delimiter
    length = header + bool(labelled and rows and rows[0] == header + 1)
    return length > 1 and all(row == length for row in rows)


def split_cells(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of a text, whatever their lengths."""
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)


def find_delimiter(text: str, *, labelled: bool = False) -> str:
    r"""Find the delimiter of a table of numbers: of those that fit, the one with most numbers in its cells.

    A blank is one too where all cells but those of the header and the first column are numbers then. Where
    none fits, it is the first one that the header has.

    Args:
        text: of a file, from its start.
        labelled: whether the header may lack its first cell.

    Examples:
        >>> find_delimiter('"truth";"a"\n"no";0,75\n'), find_delimiter("a|b,c\nd|e,0.5\n")
        (';', ',')
        >>> find_delimiter("a b\nno 0,75 0,25\n", labelled=True)
        ' '
    """
    head = text[:HEAD_BYTES]
    whole = len(text) <= HEAD_BYTES
    fitting = list_delimiters(head, whole=whole) or [
        mark
        for mark in f"{DELIMITERS} "
        if _fits(_quote_for(mark, head), mark, whole=whole, labelled=labelled)
        and (mark != " " or _has_numbers(head))
    ]
    if fitting:
        return fitting[0] if len(fitting) == 1 else max(fitting, key=partial(_count_share, head))
    header = _find_header(head)
    return next((mark for mark in DELIMITERS if _fits(header, mark, whole=True)), ",")


def _quote_for(delimiter: str, text: str) -> str:
    """Return a text with the quotes as a delimiter has them: with blanks, a file is of R's write.table."""
    return _double_quotes(text) if delimiter == " " else text


def _has_numbers(head: str) -> bool:
    """Return whether with blanks all complete rows have numbers after their first cells."""
    _, *rows = filter(None, split_cells(_double_quotes(head), " "))
    return all(is_number(cell.replace(",", ".")) for row in rows[:-1] or rows for cell in row[1:])


def _count_share(head: str, delimiter: str) -> float:
    """Return the share of cells that are numbers."""
    mark = get_decimal_mark(delimiter)
    cells = [
        is_number(cell.replace(mark, ".")) for row in split_cells(head, delimiter) for cell in row
    ]
    return sum(cells) / len(cells)


def get_decimal_mark(delimiter: str) -> str:
    """Return the decimal mark that a delimiter leaves room for; a point is understood beside a comma."""
    return "." if delimiter == "," else ","


@light_dataclass(frozen=True)
class TextTable:
    """The rows of a file of text, whose numbers may have decimal commas.

    Attributes:
        rows: the header and the others, all of one length.
        delimiter: between cells. Where it is no comma, a comma in a number is the decimal mark.
        path: of the file, for messages.
    """

    rows: list[list[str]]
    delimiter: str
    path: object

    def with_points(self, cell: str) -> str:
        """Return a cell with a decimal point in place of a decimal comma."""
        return cell.replace(get_decimal_mark(self.delimiter), ".")

    def parse_number(self, cell: str, where: str) -> float:
        """Parse the number of a cell.

        Raises:
            FileFormatError: the cell has another text.
        """
        pointed = self.with_points(cell)
        return float(pointed) if is_number(pointed) else parse_number(cell, where)

    def check_decimal_marks(self, cells: Iterable[str], marks: str = ",") -> None:
        """Raise an error where marks may as well be between thousands: in `1,000`, and not in `0,500`.

        Args:
            cells: with numbers.
            marks: that are checked, commas or points.

        Raises:
            FileFormatError: all cells with a mark are so.
        """
        written = [cell.strip() for cell in cells if any(mark in cell for mark in marks)]
        if self.delimiter != "," and written and all(map(_GROUPED.fullmatch, written)):
            mark = "comma" if "," in written[0] else "point"
            raise FileFormatError(
                f"{self.path}: the {mark} in {written[0]!r} may be between thousands or before decimals: "
                "leave it out, or write decimals as in 1.5"
            )


def read_text_table(
    path: str | os.PathLike[str],
    content: bytes | None = None,
    least: int = 2,
    *,
    labelled: bool = False,
) -> TextTable:
    """Read a CSV file in UTF-8 with at least a header and one row; its delimiter is found.

    Cells are separated by commas; or by semicolons, tabs, bars or blanks, and then numbers may have decimal
    commas. A quote in a cell is doubled, or has a backslash as R's write.table writes it. A header of a
    labelled matrix that lacks the corner gets an empty one.

    Args:
        path: of the file.
        content: all of its bytes, where they have been read.
        least: how many rows there must be.
        labelled: whether the header may lack its first cell.

    Raises:
        FileFormatError: it is a file of another kind, no text in UTF-8, or has rows of different lengths.
    """
    content = read_bytes(path) if content is None else content
    if (foreign := describe_foreign_file(content, small=True)) is not None:
        raise FileFormatError(f"{path}: {foreign}")
    delimiter = find_delimiter(
        content[: 4 * HEAD_BYTES + 8].decode("utf-8-sig", "replace"), labelled=labelled
    )
    doubled = content.replace(b'\\"', b'""')
    try:
        rows = _read_rows(path, doubled if delimiter == " " else content, delimiter, labelled)
    except FileFormatError:
        if doubled == content or delimiter == " ":
            raise
        rows = _read_rows(path, doubled, delimiter, labelled)
    if len(rows) < least:
        raise FileFormatError(
            f"{path}: has {len(rows)} row(s): a header and at least one row are needed"
        )
    return TextTable(rows, delimiter, path)


def _read_rows(path: object, content: bytes, delimiter: str, labelled: bool) -> list[list[str]]:
    """Read the rows of a file, with an empty corner where a matrix lacks it."""
    text = io.TextIOWrapper(io.BytesIO(content), "utf-8-sig", newline="")
    rows = list(parse_rows(text, path, delimiter, labelled=labelled))
    if labelled and rows and len(rows[0]) < len(rows[-1]):
        rows[0].insert(0, "")
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
