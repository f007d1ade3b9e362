"""The number of rows with a missing cell, and what is printed of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pmlopt.core.display import format_row_share
from pmlopt.core.frames import MISSING_LETTER, Missing, is_absent
from pmlopt.core.numbers.arrays import BoolArray, IntArray, join_words
from pmlopt.errors import InputError
from pmlopt.tables.table import TableBatch

_REMEDY = (
    "Give --missing drop to leave them out: shares are then among the others; or --missing letter to count "
    "them as a value of their own"
)


@dataclass
class MissingRows:
    """The running number of rows of a table, and of those with a missing cell in some columns.

    Attributes:
        columns: their names.
        weight_column: the one of them that has weights, whose missing cells are no letters.
        where: the table, for messages.
        rows: how many were read.
        missing: how many of them have a missing cell.
        first: which cell of them is the first.
        kinds: how many of them have each kind of missing cell first, where their file has kinds.
    """

    columns: Sequence[str] = ()
    where: object = "the table"
    rows: int = 0
    missing: int = 0
    first: str = ""
    kinds: Counter[str] = field(default_factory=Counter)
    weight_column: str | None = None

    def add_batch(
        self, batch: TableBatch, values: Sequence[tuple[Any, ...]], codes: IntArray
    ) -> BoolArray | None:
        """Count the rows of a batch; return the (size,) mask of those with a missing cell, or None.

        Args:
            batch: some rows.
            values: the distinct tuples of these columns.
            codes: (size,) which of them each row has.
        """
        times = batch.times
        self.rows += batch.size if times is None else int(times.sum())
        absent = np.array([any(map(is_absent, value)) for value in values], dtype=bool)
        if not absent.any():
            return None
        lacking = absent[codes]
        numbers = np.zeros(len(values), dtype=np.int64)
        np.add.at(numbers, codes[lacking], 1 if times is None else times[lacking])
        self.missing += int(numbers.sum())
        for code in np.flatnonzero(numbers).tolist():
            kind = next(part for part in values[code] if is_absent(part))
            self.kinds[getattr(kind, "name", "")] += int(numbers[code])
        if not self.first and lacking.any():
            row = int(lacking.argmax())
            place = next(k for k, part in enumerate(values[int(codes[row])]) if is_absent(part))
            where = "a" if times is not None else f"{batch.name_row(row)}: the"
            self.first = f"{where} cell of {self.columns[place]!r}"
        return lacking

    def refuse(self) -> None:
        """Raise an InputError where a row has a missing cell."""
        if self.missing:
            share = format_row_share(self.missing, self.rows)
            raise InputError(
                f"{self.where}: {self.first} is missing; {share} have none{self._list_kinds()}. "
                f"{self._describe_remedy()}"
            )

    def describe_choice(self) -> str:
        """Return a sentence that gives the number of rows to decide about.

        Examples:
            >>> print(MissingRows(["ill"], "people.csv", rows=9_000, missing=36).describe_choice()[:54])
            36 of 9,000 rows (0.4 %) have no value of 'ill'. Give
        """
        return f"{self._describe_share(self.columns)}. {self._describe_remedy()}"

    def _describe_remedy(self) -> str:
        """Return which ways there are with missing cells."""
        letters = repr(MISSING_LETTER) + (" or that of its kind" if any(self.kinds) else "")
        return f"{_REMEDY}, {letters}"

    def _list_kinds(self) -> str:
        """Return how many rows there are of each kind of missing cell; empty where there are no kinds."""
        if not any(self.kinds):
            return ""
        listed = (f"{kind or 'no kind'}: {count:,}" for kind, count in sorted(self.kinds.items()))
        return f" ({join_words(listed, 30)})"

    def describe(self, missing: Missing) -> str:
        """Return a sentence on what became of the rows with a missing cell; empty without any.

        Examples:
            >>> MissingRows(["ill"], "people.csv", rows=9_000, missing=36).describe("drop")
            "people.csv: 36 of 9,000 rows (0.4 %) have no value of 'ill' and are left out"
            >>> MissingRows(["ill"], "people.csv", rows=9_000, missing=36).describe("letter")
            "people.csv: 36 of 9,000 rows (0.4 %) have no value of 'ill' and count as the value ''"
        """
        if not self.missing:
            return ""
        own = ", or a value for each kind" if any(self.kinds) else ""
        became = (
            "are left out" if missing == "drop" else f"count as the value {MISSING_LETTER!r}{own}"
        )
        columns = [name for name in self.columns if missing == "drop" or name != self.weight_column]
        return f"{self.where}: {self._describe_share(columns)} and {became}"

    def _describe_share(self, columns: Sequence[str]) -> str:
        """Return how many rows have no value of the columns."""
        names = join_words(map(repr, columns), word="or")
        return f"{format_row_share(self.missing, self.rows)} have no value of {names}{self._list_kinds()}"
