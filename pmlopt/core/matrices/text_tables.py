"""Matrices in CSV, TSV and other text: output header, input column, and exact numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import check_csv_labels, name_outputs, parse_labels
from pmlopt.core.csv_rows import encode_csv, read_rows
from pmlopt.core.matrices.matrix_file import MatrixFile, Source
from pmlopt.core.matrix_layout import check_layout, is_number, parse_number
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.errors import FileFormatError


def encode_text(stored: MatrixFile, delimiter: str = ",") -> bytes:
    """Encode a matrix as delimited text."""
    outputs = name_outputs(stored.inputs, stored.outputs)
    check_csv_labels(stored.inputs, outputs)
    rows = zip(stored.inputs, stored.matrix.tolist(), strict=True)
    return encode_csv(
        [["", *outputs], *([label, *map(format_decimal, row)] for label, row in rows)], delimiter
    )


def format_decimal(value: float) -> str:
    """Format a float as the shortest decimal, or with 17 digits where another program may read a neighbour.

    R 4.2 rounds twice, to 64 bits and to 53: it takes a decimal that is almost half a unit in the last place
    away from its float, as one of some thousands of shortest ones is, for one of the other side.

    Examples:
        >>> format_decimal(0.1), format_decimal(1 / 3), format_decimal(0.226143375226335)
        ('0.1', '0.3333333333333333', '0.22614337522633501')
    """
    text = repr(value)
    whole, _, power = text.partition("e")
    left, _, right = whole.partition(".")
    # 17 digits are near enough to their float; integers and subnormal floats are not scaled in this way
    if len((left + right).strip("0")) > 16 or not 1e-300 < value < 1:
        return text
    mantissa, binary = math.frexp(value)
    units, ten = int(mantissa * 2.0**53), 10 ** (len(right) - int(power or 0))
    # |decimal - float| in units in the last place is this number over ten
    apart = abs((int(left + right) << (53 - binary)) - units * ten)
    return text if 100 * apart < 49 * ten else f"{value:.17g}"


def decode_text(source: Source, delimiter: str = ",") -> MatrixFile:
    """Decode delimited text with header and input column."""
    rows = read_rows(source.path, source.content, delimiter, labelled=True)
    return parse_labelled_matrix(rows, source.path, stochastic=source.stochastic)


def decode_any_text(source: Source) -> MatrixFile:
    """Decode a table of text as R's write.table writes it, by default with blanks between its cells.

    The delimiter is the first of tab, semicolon, comma and blank, and the decimal mark the first of point and
    comma, with which the cells of the first input are numbers. A quote in a label may have a backslash.
    """
    content = source.content.replace(b'\\"', b'""')
    for delimiter in "\t;, ":
        try:
            rows = read_rows(source.path, content, delimiter, labelled=True)
        except FileFormatError:
            continue
        for mark in ".,":
            cells = [cell.replace(mark, ".") for cell in rows[1][1:]]
            if cells and all(map(is_number, cells)):
                return parse_labelled_matrix(rows, source.path, mark, stochastic=source.stochastic)
    raise source.refuse(
        "is no table of numbers as R's write.table writes it: a header with the outputs, and a row for each "
        "input, of its label and numbers"
    )


def parse_labelled_matrix(
    rows: Sequence[Sequence[str]], path: object, mark: str = ".", *, stochastic: bool = True
) -> MatrixFile:
    """Parse text rows to a labelled matrix, with a given decimal mark."""
    if len(rows[0]) < 2:
        raise FileFormatError(f"{path}: has no output column: the first column holds the inputs")
    if stochastic:
        check_layout([[cell.replace(mark, ".") for cell in row] for row in rows], path)
    matrix = [
        [parse_number(cell.replace(mark, "."), f"{path}: row {number}") for cell in row[1:]]
        for number, row in enumerate(rows[1:], start=2)
    ]
    inputs, outputs = (parse_labels(texts) for texts in ([row[0] for row in rows[1:]], rows[0][1:]))
    for labels in (inputs, outputs):
        warn_of_near_labels(labels, path)
    return MatrixFile(np.array(matrix), inputs, outputs)
