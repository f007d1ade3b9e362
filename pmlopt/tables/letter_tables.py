"""Recognition of tables of shares or counts that are counted as if each row were a person."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from pmlopt.core.files.matrix_layout import is_number, is_rounded_sum
from pmlopt.core.numbers.arrays import NUMBER_HEADERS, join_words
from pmlopt.errors import CountedTableWarning, InputError
from pmlopt.tables.table import Table, TableBatch, find_column

SHARE_HEADERS = frozenset(
    (*NUMBER_HEADERS, "frequency", "proportion", "percent", "percentage", "prob")
)
"""Headers of a column of shares or counts."""


def check_rows_are_people(
    table: Table, batches: Sequence[TableBatch], columns: Sequence[str], distinct: int
) -> None:
    """Raise an error, or warn, where the counted columns are those of a table of shares or counts.

    In such a table each value stands once, next to a number. Its rows, counted as people, would give each
    value the same share. It is an error where the number is a share or count by its header, or where the
    numbers sum to one within what rounding explains; and a warning where the number is the only other
    column, or where the table has the shares of several columns together.

    Args:
        table: that is counted.
        batches: with all of its rows, or the first two: a table of shares fits into one.
        columns: that are counted.
        distinct: how many values, or tuples of them, these columns have.

    Raises:
        InputError: see above.
    """
    if len(batches) != 1:
        return
    batch = batches[0]
    stands_once = distinct == batch.size
    if batch.times is not None or batch.size < 2 or (batch.size > 1000 and not stands_once):
        return
    counted = [find_column(table.names, column, table.where) for column in columns]
    others = [place for place in range(len(table.names)) if place not in counted]
    numeric = {
        place: numbers for place in others if (numbers := _parse_column(batch, place)) is not None
    }
    shares = [place for place in numeric if _are_shares(str(table.names[place]), numeric[place])]
    alone = len(others) == 1 and _may_be_counts(numeric.get(others[0], []))
    if stands_once and (shares or alone):
        other = table.names[shares[0] if shares else others[0]]
        text = (
            f"{table.where}: each value of {join_words(map(repr, columns))} stands once, next to a number in "
            f"{other!r}: counted as people, all values have the same share. {_REMEDY}"
        )
        if shares:
            raise InputError(f"{text}. If each row is a person, leave the column {other!r} out")
        warnings.warn(text, CountedTableWarning, stacklevel=2)
    elif shares and _is_cross_table(batch, [k for k in range(len(table.names)) if k != shares[0]]):
        warnings.warn(
            f"{table.where}: may be a table of shares or counts, in {table.names[shares[0]]!r}: its rows are "
            f"counted as people. {_REMEDY}",
            CountedTableWarning,
            stacklevel=2,
        )


_REMEDY = (
    "If the numbers are shares or counts, the file is a prior as it stands: give it by --prior without "
    "--column, or as Prior(shares, labels) or Prior.from_counts(counts, labels) in Python"
)


def _is_cross_table(batch: TableBatch, places: Sequence[int]) -> bool:
    """Return whether columns have each combination of values once, and each value several times."""
    cells = [batch.column_texts(place) for place in places]
    if len(cells) < 2 or any(len(set(column)) == batch.size for column in cells):
        return False  # a column with a value of its own in each row is one of people's names
    return len(set(zip(*cells, strict=True))) == batch.size


def _parse_column(batch: TableBatch, place: int) -> list[float] | None:
    """Parse the cells of a column as numbers, also with a decimal comma or in percent; None for others."""
    try:
        cells = [cell.strip().replace(",", ".") for cell in batch.column_texts(place)]
    except InputError:  # a type that is no letter, such as a list
        return None
    if not all(is_number(cell.removesuffix("%")) for cell in cells):
        return None
    return [float(one) if one[-1] != "%" else float(one[:-1]) / 100 for one in cells]


def _may_be_counts(numbers: Sequence[float]) -> bool:
    """Return whether numbers may be unequal counts or shares: positive, and not the numbers of rows."""
    size = len(numbers)
    least = min(numbers, default=0.0)
    # equal counts have the shares of counted rows
    is_unequal = len(set(numbers)) > 1
    return least > 0 and is_unequal and sorted(numbers) != [least + k for k in range(size)]


def _are_shares(header: str, numbers: Sequence[float]) -> bool:
    """Return whether a column of numbers is one of shares or counts, by its header or its sum."""
    if min(numbers) < 0:
        return False
    if header.strip().lower() in SHARE_HEADERS:
        return True
    # whole numbers, such as ages, may sum to 100 by chance
    is_whole = all(number.is_integer() for number in numbers)
    return not is_whole and any(is_rounded_sum(sum(numbers), whole) for whole in (1.0, 100.0))
