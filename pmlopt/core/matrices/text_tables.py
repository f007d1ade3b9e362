"""Matrices in CSV, TSV and other text: output header, input column, and exact numbers."""

from __future__ import annotations

import math

import numpy as np

from pmlopt.core.files.csv_rows import TextTable, encode_csv, read_text_table
from pmlopt.core.files.matrix_layout import check_layout
from pmlopt.core.matrices.matrix_file import MatrixFile, Source
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import check_csv_labels, name_outputs, parse_labels
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
    units = int(mantissa * 2.0**53)
    ten = 10 ** (len(right) - int(power or 0))
    # |decimal - float| in units in the last place is this number over ten
    apart = abs((int(left + right) << (53 - binary)) - units * ten)
    return text if 100 * apart < 49 * ten else f"{value:.17g}"


def decode_text(source: Source) -> MatrixFile:
    """Decode delimited text with header and input column."""
    table = read_text_table(source.path, source.content, labelled=True)
    return parse_labelled_matrix(table, stochastic=source.stochastic)


def parse_labelled_matrix(table: TextTable, *, stochastic: bool = True) -> MatrixFile:
    """Parse the rows of a text to a labelled matrix."""
    rows = table.rows
    path = table.path
    if len(rows[0]) < 2:
        raise FileFormatError(f"{path}: has no output column: the first column holds the inputs")
    if stochastic:
        check_layout([[table.with_points(cell) for cell in row] for row in rows], path)
    else:
        table.check_decimal_marks(cell for row in rows[1:] for cell in row[1:])
    matrix = [
        [table.parse_number(cell, f"{path}: row {number}") for cell in row[1:]]
        for number, row in enumerate(rows[1:], start=2)
    ]
    inputs = parse_labels([row[0] for row in rows[1:]])
    outputs = parse_labels(rows[0][1:])
    for labels in (inputs, outputs):
        warn_of_near_labels(labels, path)
    return MatrixFile(np.array(matrix), inputs, outputs)
