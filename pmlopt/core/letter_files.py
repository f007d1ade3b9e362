"""CSV tables of letters with counts or probabilities."""

from __future__ import annotations

import os
from collections.abc import Sequence

from pmlopt.core.arrays import NUMBER_HEADERS, Label, parse_labels
from pmlopt.core.csv_rows import read_rows
from pmlopt.core.matrix_layout import is_number, parse_number
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.errors import FileFormatError


def read_letters(path: str | os.PathLike[str]) -> tuple[tuple[Label, ...], list[int] | list[float]]:
    """Read labels and numbers of a CSV with a header: letter, count (or probability).

    With two columns of letters or more before one that is named as in `NUMBER_HEADERS`, a label is the tuple
    of them. Whole numbers are counts and come back as int; anything else comes back as float.
    """
    rows = read_rows(path)
    if len(rows[0]) < 2 or (len(rows[0]) > 2 and rows[0][-1].strip().lower() not in NUMBER_HEADERS):
        raise FileFormatError(
            f"{path}: has {len(rows[0])} column(s): a prior has two, letter and count (or probability), "
            "with a comma between; letters of several attributes take a column each, and then the last one "
            "is named count or probability"
        )
    if is_number(rows[0][-1]):
        raise FileFormatError(
            f"{path}: the first row, {rows[0]}, looks like data: put a header above it"
        )
    columns = [parse_labels(column) for column in list(zip(*rows[1:], strict=True))[:-1]]
    labels = columns[0] if len(columns) == 1 else tuple(zip(*columns, strict=True))
    for column in columns:
        warn_of_near_labels(column, path)
    return labels, _parse_numbers(path, labels, [row[-1].strip() for row in rows[1:]])


def _parse_numbers(
    path: str | os.PathLike[str], labels: tuple[Label, ...], texts: Sequence[str]
) -> list[int] | list[float]:
    """Parse a letter table's numbers: ints where all are integers."""
    if all(text.isascii() and text.isdigit() and len(text) < 4000 for text in texts):
        return [int(text) for text in texts]
    numbers = [
        parse_number(text, f"{path}: row {number}, the letter {label!r}")
        for number, (label, text) in enumerate(zip(labels, texts, strict=True), start=2)
    ]
    if all(number.is_integer() for number in numbers):
        return [int(number) for number in numbers]
    return numbers
