"""CSV tables of letters with counts or probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from pmlopt.core.files.csv_rows import read_text_table
from pmlopt.core.files.matrix_layout import is_number, is_rounded_sum, parse_number
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import NUMBER_HEADERS, Label, Labels, join_words, parse_labels
from pmlopt.errors import FileFormatError

_LAYOUT = (
    "give a header and two columns, letter and count (or probability), such as the lines "
    "'letter,count', 'never,40', 'daily,10'"
)


class LetterLayoutError(FileFormatError):
    """A file has another layout than a table of letters; it may be data, a row for each person.

    Attributes:
        columns: the names in its header; empty where its first row is no header.
    """

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


def read_letters(path: str | os.PathLike[str]) -> tuple[Labels, list[int] | list[float]]:
    """Read labels and numbers of a CSV with a header: letter, count (or probability).

    Cells may be separated by semicolons or tabs, with decimal commas. With two columns of letters or more
    before one that is named as in `NUMBER_HEADERS`, a label is the tuple of them. Whole numbers are counts
    and come back as int; anything else comes back as float.

    Raises:
        LetterLayoutError: the file has other columns.
        FileFormatError: it is no CSV, or a number is none.
    """
    table = read_text_table(path, least=1)
    rows = table.rows
    _check_columns(path, rows)
    columns = [parse_labels(column) for column in list(zip(*rows[1:], strict=True))[:-1]]
    labels = columns[0] if len(columns) == 1 else tuple(zip(*columns, strict=True))
    for column in columns:
        warn_of_near_labels(column, path)
    table.check_decimal_marks((row[-1] for row in rows[1:]), ",.")
    texts = [table.with_points(row[-1].strip()) for row in rows[1:]]
    numbers = _parse_numbers(path, labels, texts)
    _check_sums(path, rows[0][-1], labels, numbers)
    return labels, numbers


def _check_sums(
    path: str | os.PathLike[str], header: str, labels: Sequence[Label], numbers: Sequence[float]
) -> None:
    """Raise an error for percentages, and for a row with the total of the others."""
    whole = all(isinstance(number, int) for number in numbers)
    named = header.strip().lower() in ("percent", "percentage", "percentages", "pct", "%")
    total = math.fsum(numbers)
    if is_rounded_sum(total, 100.0) and (named or not whole):
        raise FileFormatError(
            f"{path}: the numbers in {header!r} sum to {total:.12g}, as percentages do, which are neither "
            "shares nor counts of people: divide each by 100"
        )
    for label, number in zip(labels, numbers, strict=True):
        if str(label).strip().lower() in ("total", "sum", "all") and 2 * number == total:
            raise FileFormatError(
                f"{path}: the row {label!r} has the sum of all others: leave it out"
            )


def _check_columns(path: str | os.PathLike[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise an error where rows are not a header, and a row with a number for each letter."""
    header, *body = rows
    if all(map(is_number, header)):
        shape = "has no header, and one row" if not body else "has numbers only"
        raise LetterLayoutError(f"{path}: {shape}: {_LAYOUT}")
    if is_number(header[-1]):
        raise FileFormatError(
            f"{path}: the first row, {[*header]}, looks like data: put a header above it, such as "
            "letter,count"
        )
    is_named = header[-1].strip().lower() in NUMBER_HEADERS
    if len(header) > 2:
        check_row_names(path, rows)
    if len(header) < 2 or (len(header) > 2 and not is_named):
        count = "1 column" if len(header) == 1 else f"{len(header)} columns"
        more = (
            "; further columns of letters are before one named count or share"
            if len(header) > 2
            else ""
        )
        raise LetterLayoutError(
            f"{path}: has {count}, {join_words(map(repr, header), 6)}: {_LAYOUT}{more}", header
        )
    if not body:
        raise FileFormatError(f"{path}: has a header, and no row below it: {_LAYOUT}")
    if not is_named and len(body) == 1 and all(map(is_number, body[0])):
        raise LetterLayoutError(f"{path}: has the numbers of all letters in one row: {_LAYOUT}")
    if len(header) == 2 and not is_named and not any(_has_number(row[1]) for row in body):
        if header[0].strip().lower() in NUMBER_HEADERS:
            raise LetterLayoutError(
                f"{path}: has its numbers in the first column: put the letters before them"
            )
        raise LetterLayoutError(
            f"{path}: has no number in its second column, {header[1]!r}: {_LAYOUT}", header
        )


def check_row_names(path: str | os.PathLike[str], rows: Sequence[Sequence[str]]) -> None:
    """Raise an error where the first column numbers the rows, as R and pandas write it.

    Raises:
        LetterLayoutError: it has no name, and whole numbers one after another.
    """
    header, *body = rows
    first = [row[0].strip() for row in body]
    numbered = [[str(k) for k in range(begin, begin + len(first))] for begin in (0, 1)]
    if header[0].strip() or first not in numbered:
        return
    raise LetterLayoutError(
        f"{path}: the first column has no name and numbers the rows: leave it out, by row.names = FALSE in "
        "R or index=False in pandas",
        header,
    )


def _has_number(cell: str) -> bool:
    """Return whether a cell has a number, also in percent or with commas."""
    return is_number(cell.strip().removesuffix("%").replace(",", ""))


def _parse_numbers(
    path: str | os.PathLike[str], labels: Labels, texts: Sequence[str]
) -> list[int] | list[float]:
    """Parse a letter table's numbers: ints where all are integers."""
    if all(text.isascii() and text.isdigit() and len(text) < 4000 for text in texts):
        return [int(text) for text in texts]
    numbers = [
        parse_number(text, f"{path}: row {number}, the letter {label!r}")
        for number, (label, text) in enumerate(zip(labels, texts, strict=True), start=2)
    ]
    for text, label, number in zip(texts, labels, numbers, strict=True):
        if not math.isfinite(number):
            raise FileFormatError(
                f"{path}: the letter {label!r} has {text!r} in the place of its number: leave it out"
            )
    if all(number.is_integer() for number in numbers):
        return [int(number) for number in numbers]
    return numbers
