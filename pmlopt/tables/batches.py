"""Batches of rows, each column with few distinct values as codes; and what a table of them is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np

from pmlopt.arrays import BoolArray, IntArray, Label
from pmlopt.errors import InputError
from pmlopt.frames import is_missing
from pmlopt.tables.csv_form import CsvForm

Missing: TypeAlias = Literal["refuse", "drop", "letter"]
"""What becomes of a row with a missing cell: an error, no row, or the letter `MISSING_LETTER`."""

MISSING_LETTER = ""
"""The letter that stands for a missing cell: the empty text, as it is in a CSV file."""

BATCH_ROWS = 2**16
"""Rows of a batch that plain Python reads."""


def check_missing(missing: object, error: type[InputError] = InputError) -> None:
    """Raise for what is no way to deal with a missing cell."""
    if missing not in get_args(Missing):
        raise error(
            f"missing={missing!r} is not known: give one of {', '.join(map(repr, get_args(Missing)))}"
        )


class Batch(ABC):
    """Some rows of a table.

    Attributes:
        size: the number of rows.
        first: the number of the first one, as messages count them.
    """

    size: int
    first: int

    @abstractmethod
    def encoded(self, place: int) -> tuple[list[Any], IntArray]:
        """The distinct values of a column, None for a missing cell, and (size,) the place of each row's."""

    @abstractmethod
    def column(self, place: int, keep: BoolArray | None = None) -> Any:
        """A column as the sink for this kind of table takes it, of the rows to keep."""

    @abstractmethod
    def labelled(self, labels: Sequence[Label], codes: IntArray, *, typed: bool) -> Any:
        """A new column of labels, by their places: with their type where the sink has types, else as text."""


@dataclass
class RowBatch(Batch):
    """Rows in plain Python, as a list for each column.

    Attributes:
        columns: the cells, as text where they are from a CSV file.
        first: the number of the first row.
        text: whether cells are text, of which the empty one is missing.
    """

    columns: Sequence[Sequence[Any]]
    first: int
    text: bool

    def __post_init__(self) -> None:
        self.size = len(self.columns[0])

    def encoded(self, place: int) -> tuple[list[Any], IntArray]:
        """The distinct values of a column, and the place of each row's value among them."""
        seen: dict[Any, int] = {}
        cells = self.columns[place]
        try:
            codes = np.fromiter((seen.setdefault(cell, len(seen)) for cell in cells), np.int64, len(cells))
        except TypeError:
            raise InputError("a column holds values that are no letters, such as lists") from None
        if self.text:
            return [value or None for value in seen], codes
        return [None if is_missing(value) else value for value in seen], codes

    def column(self, place: int, keep: BoolArray | None = None) -> list[Any]:
        """The cells of a column."""
        cells = self.columns[place]
        return list(cells if keep is None else [cells[row] for row in np.flatnonzero(keep).tolist()])

    def labelled(self, labels: Sequence[Label], codes: IntArray, *, typed: bool = False) -> list[str]:
        """The texts of labels."""
        texts = list(map(str, labels))
        return [texts[code] for code in codes.tolist()]


class Table(ABC):
    """A table that is read once, in batches.

    Attributes:
        names: of the columns.
        where: the file, for messages.
        typed: whether cells have types, or are text from a CSV file.
        form: of the CSV file, or None.
        rows: how many there are, where that is known before they are read.
    """

    names: list[str]
    where: object
    typed: bool
    form: CsvForm | None = None
    rows: int | None = None

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """The batches of rows, in their order."""

    @property
    def arrow_schema(self) -> Any:
        """The schema in Arrow, where columns are arrays of it, else None."""
        return None

    def close(self) -> None:
        """Close the file, if there is one."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def done(self) -> float | None:
        """The share that has been read so far; None where that is not known."""
        return None
