"""The layout of text matrices: headers, label columns and numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pmlopt.errors import FileFormatError


def is_number(text: str) -> bool:
    """Return whether text is a number, possibly infinite or NaN."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parse_number(cell: str, where: str) -> float:
    """Parse the number of a CSV cell.

    Raises:
        FileFormatError: the cell has another text.
    """
    try:
        return float(cell)
    except ValueError:
        pass
    if cell.strip().endswith("%") and is_number(cell.strip()[:-1]):
        raise FileFormatError(
            f"{where}: {cell!r} is a percentage: divide all numbers by 100, and leave out the signs"
        ) from None
    hint = ": write it as in 40 or 0.25"
    if re.fullmatch(r"\s*\d{1,3}(,\d{3})+\s*", cell):
        hint = ": leave out the commas between thousands"
    elif re.fullmatch(r"\s*\d{1,3}([ '\u2019\u00a0\u202f]\d{3})+\s*", cell):
        hint = ": leave out what is between thousands"
    elif re.fullmatch(r"\s*[+-]?\d*,\d+\s*", cell):
        hint = f": write {cell.strip().replace(',', '.')}"
    raise FileFormatError(f"{where}: {cell!r} is in the place of a number{hint}") from None


def is_rounded_sum(total: float, exact: float = 1.0) -> bool:
    """Return whether a sum is within 0.01 of the exact one, in proportion and but for float rounding.

    Numbers of two digits, or a hundred ones of five, that were rounded have such sums.

    Examples:
        >>> 1.01 - 1 <= 0.01, is_rounded_sum(1.01), is_rounded_sum(0.99), is_rounded_sum(1.02)
        (False, True, True, False)
    """
    # decimals at the border, such as 1.01, are off by the last digits of floats
    return abs(total - exact) <= (0.01 + 1e-9) * exact


def check_layout(rows: Sequence[Sequence[str]], path: object) -> None:
    """Raise an error for a mechanism table without header or input column.

    A header of numbers is one where the numbers are no row of probabilities, or where its first cell is
    empty, as pmlopt writes it.

    Args:
        rows: the header and the rows of a CSV file, as text.
        path: of the file, for messages.

    Raises:
        FileFormatError: the header or the inputs are missing.

    Examples:
        >>> check_layout([["low", "0.7", "0.3"], ["high", "0.2", "0.8"]], "m.csv")
        Traceback (most recent call last):
        ...
        pmlopt.errors.FileFormatError: m.csv: the header is missing, for the first row has the probabilities
        ['0.7', '0.3'] of 'low': put a row above it with a name for the column of inputs and each output
    """
    first, *rest = rows
    if first[0].strip() and _are_probabilities(first[1:]) and not all(map(_is_integer, first[1:])):
        raise FileFormatError(
            f"{path}: the header is missing, for the first row has the probabilities {list(first[1:5])} of "
            f"{first[0]!r}: put a row above it with a name for the column of inputs and each output"
        )
    if all(_are_probabilities(row) for row in rest) and not any(
        _are_probabilities(row[1:]) for row in rest
    ):
        raise FileFormatError(
            f"{path}: the column of inputs is missing, for the rows sum to one with their first cells, such "
            f"as {rest[0][0]!r}: put the input of each row before it"
        )


def _are_probabilities(cells: Sequence[str]) -> bool:
    """Return whether cells are probabilities or percentages that sum to one."""
    texts = [cell.strip().removesuffix("%") for cell in cells]
    if not all(map(is_number, texts)):
        return False
    numbers = [float(text) for text in texts]
    total = sum(numbers)
    return min(numbers, default=-1.0) >= 0 and any(
        is_rounded_sum(total, whole) for whole in (1.0, 100.0)
    )


def _is_integer(cell: str) -> bool:
    """Return whether text is a nonnegative integer."""
    return cell.strip().isdigit()
