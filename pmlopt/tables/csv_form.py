"""How a CSV file is written: what stands between its cells, and its encoding, said or found."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pmlopt.errors import FileFormatError, InputError

_CANDIDATES = ",;\t|"
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
HEAD = 2**20
"""Bytes of a file from which its form is found."""


@dataclass(frozen=True)
class CsvForm:
    r"""What stands between the cells of a CSV file, and its encoding; None where it shall be found.

    The delimiter is a comma, a semicolon, a tab or a bar: the one that gives the header and all rows of the
    first megabyte the same number of cells, two or more; a comma where none does. The encoding is UTF-8, or
    what a mark at the file's start says (UTF-16, UTF-32). Others have to be said: no file tells them apart.

    Args:
        delimiter: one character, or `tab`.
        encoding: as Python names it, such as `cp1252`.

    Raises:
        InputError: the delimiter is not one character, or the encoding is not known.

    Examples:
        >>> CsvForm().found(b"id;income\n1;2,5\n2;3,0\n", "people.csv")
        CsvForm(delimiter=';', encoding='utf-8')
    """

    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", "\\t"):
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii()
        ):
            raise InputError(f"the delimiter is {self.delimiter!r}: give one character such as ';', or tab")
        try:
            "".encode(self.encoding or "utf-8")  # refuses codecs of no text, too
        except LookupError:
            raise InputError(
                f"the encoding {self.encoding!r} is not known: give one such as cp1252"
            ) from None

    def found(self, head: bytes, where: object, *, whole: bool = True) -> CsvForm:
        """The form with what was not said found in the first bytes of a file.

        Args:
            head: the first bytes.
            where: the file, for what is said about it.
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
            raise FileFormatError(self.not_text(where, encoding)) from None
        form = replace(self, encoding=encoding)
        return form if self.delimiter else replace(form, delimiter=_delimiter(text, where, whole=whole))

    def not_text(self, where: object, encoding: str) -> str:
        """What to say of a file that is not of its encoding."""
        name = "UTF-8" if encoding in ("utf-8", "utf-8-sig") else encoding
        return f"{where}: is not text in {name}, so not a CSV file of it: say its --encoding, such as cp1252"

    def rows(self, text: io.TextIOBase, where: object) -> Iterator[list[str]]:
        """The rows of a file, all of the header's length.

        Blank lines are no rows, but in a file of one column, where they are missing cells.

        Raises:
            FileFormatError: a row is longer or shorter, or a quoted cell does not end.
        """
        reader = csv.reader(text, delimiter=self.delimiter or ",", strict=True)
        length = None
        number = 0
        try:
            for row in reader:
                if not row:
                    if length != 1:
                        continue
                    row = [""]  # as some programs write a missing cell
                number += 1
                length = length or len(row)
                if len(row) != length:
                    raise FileFormatError(
                        f"{where}: row {number} has {len(row)} cells and the header {length}: "
                        "the file may be cut short"
                    )
                yield row
        except UnicodeError:
            raise FileFormatError(self.not_text(where, self.encoding or "utf-8")) from None
        except csv.Error as cause:
            raise FileFormatError(f"{where}: is not a whole CSV file: row {number + 1}: {cause}") from None


def _delimiter(text: str, where: object, *, whole: bool) -> str:
    """The one delimiter by which all rows have as many cells as the header."""
    fitting = [candidate for candidate in _CANDIDATES if _fits(text, candidate, whole=whole)]
    if len(fitting) > 1:
        names = " and ".join(_NAMES[candidate] for candidate in fitting)
        raise FileFormatError(f"{where}: may have {names} between its cells: say which by --delimiter")
    return fitting[0] if fitting else ","


def _fits(text: str, delimiter: str, *, whole: bool) -> bool:
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error:
        return False
    rows = rows if whole else rows[:-1]  # the last one may be cut
    return bool(rows) and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)
