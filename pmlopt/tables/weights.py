"""The weights of people in a column of a data file."""

from __future__ import annotations

import math
from typing import Any

from pmlopt.core.files.matrix_layout import parse_number
from pmlopt.core.frames import Missing, is_absent
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables.reading import Table, find_column
from pmlopt.tables.table import TableBatch


def parse_weight(value: Any, where: str) -> float:
    """Parse the weight of a person: a finite number of at least 0.

    Raises:
        InputError: it is none.

    Examples:
        >>> parse_weight("2.5", "d.csv: row 2: the weight in 'w'")
        2.5
    """
    try:
        number = math.nan if isinstance(value, bool) else parse_number(str(value), where)
    except FileFormatError as error:
        raise InputError(str(error)) from None
    if not 0 <= number < math.inf:
        raise InputError(f"{where} is {value!r:.40}: a weight is a finite number of at least 0")
    return number


def check_batch_weights(
    batch: TableBatch, place: int, column: str, where: object, missing: Missing
) -> None:
    """Raise an InputError that names the column and the first row of a batch without a usable weight.

    Args:
        batch: some rows.
        place: of the column of weights.
        column: its name.
        where: the table, for messages.
        missing: what becomes of missing cells: a weight is no letter, so that only `drop` allows one.
    """
    values, codes = batch.encode_column(place)
    for code, value in enumerate(values):
        if is_absent(value) and missing == "drop":
            continue
        named = f"the weight in {column!r}"
        try:
            if is_absent(value):
                raise InputError(
                    f"{named} is missing, which is no value: give --missing drop to leave such rows out"
                )
            parse_weight(value, named)
        except InputError as error:
            row = ""
            if batch.times is None:
                row = f"{batch.name_row(int((codes == code).argmax()))}: "
            raise InputError(f"{where}: {row}{error}") from None


def check_weights(table: Table, column: str, missing: Missing) -> None:
    """Raise an InputError where a row of a table has no usable weight; see `check_batch_weights`."""
    place = find_column(table.names, column, table.where)
    for batch in table.batches():
        check_batch_weights(batch, place, column, table.where, missing)
