"""Matrices in workbooks of Excel (.xlsx): one sheet, the outputs above and the inputs before the numbers.

Numbers are written by their repr, of which openpyxl would keep 16 digits. Text is written as text whatever it
looks like, so that no label is a formula, and so are whole numbers beyond 2^53, of which Excel would keep 15
digits.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time
from typing import Any

import numpy as np

from pmlopt.core.files.disk import MAX_FILE_BYTES, compute_expanded_size
from pmlopt.core.files.matrix_layout import check_layout
from pmlopt.core.lazy_imports import require_extra
from pmlopt.core.matrices.matrix_file import OTHER_FORMATS, MatrixFile, Source, check_kept
from pmlopt.core.near_labels import warn_of_near_labels
from pmlopt.core.numbers.arrays import (
    Label,
    Labels,
    abbreviate,
    check_json_labels,
    name_outputs,
    parse_labels,
)
from pmlopt.core.numbers.differences import MAX_EXACT_INTEGER
from pmlopt.errors import FileFormatError, LabelWarning

SHEET = "mechanism"
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
"""The size of a sheet of Excel."""
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
_STARTS_FORMULA = ("=", "+", "-", "@", "'")


def encode_xlsx(stored: MatrixFile) -> bytes:
    """Encode a matrix as a workbook of one sheet.

    Raises:
        MissingExtraError: openpyxl is not installed.
        FileFormatError: the sheet would be too large, or labels would not come back as they are.
    """
    outputs = name_outputs(stored.inputs, stored.outputs)
    _check_size(len(stored.inputs) + 1, len(outputs) + 1, OTHER_FORMATS)
    check_json_labels((*stored.inputs, *outputs))
    sides = (stored.inputs, outputs)
    if not all(map(_needs_no_escape, (label for side in sides for label in side))):
        for side in sides:  # rare characters and kinds: write and read the labels first
            tested: list[list[Any]] = [[label, _ExactNumber("0")] for label in side]
            content = build_workbook({SHEET: [[None, "y"], *tested]})
            cells = [row[0] for row in _read_cells(Source("labels", content))[1:]]
            check_kept(side, _parse_labels(cells, Source("labels", b"")), "Excel")
    numbers = (map(repr, row) for row in stored.matrix.tolist())
    entries = (
        [label, *map(_ExactNumber, row)] for label, row in zip(stored.inputs, numbers, strict=True)
    )
    return build_workbook({SHEET: [[None, *outputs], *entries]}, freeze="B2")


def decode_xlsx(source: Source) -> MatrixFile:
    """Read a matrix from a workbook's named or only visible sheet.

    Raises:
        MissingExtraError: openpyxl is not installed.
        FileFormatError: it is no workbook, has several sheets, or the sheet holds no matrix.
    """
    rows = _read_cells(source)
    if len(rows) < 2 or len(rows[0]) < 2:
        raise source.refuse(
            "its sheet has no matrix: a header, a column of inputs and numbers are needed"
        )
    numbers = [
        [
            _parse_cell_number(value, source, row, column)
            for column, value in enumerate(values[1:], 2)
        ]
        for row, values in enumerate(rows[1:], 2)
    ]
    header = rows[0][1:]
    before = [row[0] for row in rows[1:]]
    if source.stochastic:
        texts = [["" if value is None else str(value) for value in row] for row in rows]
        check_layout(texts, source.path)
    inputs = _parse_labels(before, source)
    outputs = _parse_labels(header, source)
    for labels in (inputs, outputs):
        warn_of_near_labels(labels, source.path)
    return MatrixFile(np.array(numbers, dtype=np.float64), inputs, outputs)


class _ExactNumber(str):
    """A number cell with all of its digits."""

    __slots__ = ()


class Formula(str):
    """A formula cell, which begins with an equals sign."""

    __slots__ = ()


def _import_openpyxl() -> Any:
    """Return the openpyxl module, or raise an error that names the extra."""
    with require_extra(
        "files of Excel (.xlsx) need openpyxl, and .csv and .tsv nothing more", "excel"
    ):
        import openpyxl
    return openpyxl


def check_excel() -> None:
    """Raise an error where openpyxl is missing.

    Raises:
        MissingExtraError: openpyxl is not installed.
    """
    _import_openpyxl()


def _needs_no_escape(label: Label) -> bool:
    """Return whether a label needs no escaping: a number, or short usual text."""
    if isinstance(label, str):
        usual = label.isascii() and label.isprintable() and 0 < len(label) < 1000
        return usual and label[0] != "(" and not label.removeprefix("-").isdigit()
    return isinstance(label, float) or (isinstance(label, int) and abs(label) <= MAX_EXACT_INTEGER)


def _check_size(rows: int, columns: int, advice: str) -> None:
    """Raise an error for a sheet that would be too large."""
    if rows > MAX_ROWS or columns > MAX_COLUMNS:
        raise FileFormatError(
            f"a sheet of Excel has {MAX_ROWS} rows and {MAX_COLUMNS} columns, and {rows} and {columns} are "
            f"needed: {advice}"
        )


def build_workbook(
    sheets: Mapping[str, Sequence[Sequence[Any]]], freeze: str | None = None
) -> bytes:
    """Build a workbook from rows of text, numbers, dates, empty cells and formulas.

    Args:
        sheets: the rows of each sheet.
        freeze: the first cell that scrolls.

    Raises:
        MissingExtraError: openpyxl is not installed.
        FileFormatError: a sheet would be too large, or a text cannot be written.
    """
    openpyxl = _import_openpyxl()
    book = openpyxl.Workbook(write_only=True)
    for title, rows in sheets.items():
        _check_size(len(rows), max(map(len, rows)), "merge letters or outcomes")
        sheet = book.create_sheet(title)
        sheet.freeze_panes = freeze
        for row in rows:
            sheet.append([_build_cell(sheet, value, openpyxl) for value in row])
    stream = io.BytesIO()
    try:
        book.save(stream)
    except UnicodeEncodeError as cause:
        raise FileFormatError(f"a label cannot be written as UTF-8: {cause}") from None
    return stream.getvalue()


def _build_cell(sheet: Any, value: Any, openpyxl: Any) -> Any:
    """Build the typed cell of a label, number or date."""
    if value is None:
        return None
    cell = openpyxl.cell.WriteOnlyCell(sheet)
    if isinstance(value, _ExactNumber):
        cell.value = str(value)
        cell.data_type = "n"
    elif isinstance(value, Formula):
        cell.value = str(value)
        cell.data_type = "f"
    elif isinstance(value, bool | date | time):
        cell.value = value
    elif isinstance(value, float) or (isinstance(value, int) and abs(value) <= MAX_EXACT_INTEGER):
        cell.value = repr(value)
        cell.data_type = "n"
    else:
        cell.value = _escape_cell_text(str(value))
        cell.data_type = "s"
        if str(value).startswith(_STARTS_FORMULA):
            cell.quotePrefix = True  # else it becomes a formula when a user edits it
    return cell


def _escape_cell_text(text: str) -> str:
    """Escape control characters and escape sequences in cell text."""
    safe = _ESCAPED.sub(lambda found: f"_x005F_x{found[1]}_", text)
    return _CONTROL.sub(lambda found: f"_x{ord(found[0]):04X}_", safe)


def unescape_cell_text(text: str) -> str:
    """Undo `_escape_cell_text`."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _read_cells(source: Source) -> list[list[Any]]:
    """Return the sheet's cell values without empty margins."""
    with open_workbook(source, data_only=True) as book:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        shown = [title for title, sheet in sheets.items() if sheet.sheet_state == "visible"]
        chosen = source.choose_part(shown if source.name is None else list(sheets), "sheet")
        rows, columns = find_hidden_lines(sheets[chosen])
        found = _list_rows(sheets[chosen], rows, columns)
    if rows or columns:
        warnings.warn(
            f"{source.path}: hidden rows and columns of {chosen!r} are left out, as hidden sheets are: show "
            "or delete them",
            LabelWarning,
            stacklevel=2,
        )
    return found


def read_workbook(source: Source) -> dict[str, list[list[Any]]]:
    """Read the cells of all sheets, with their formulas, without empty margins.

    Raises:
        MissingExtraError: openpyxl is not installed.
        FileFormatError: it is no workbook.
    """
    with open_workbook(source, data_only=False) as book:
        return {sheet.title: _list_rows(sheet) for sheet in book.worksheets}


@contextmanager
def open_workbook(source: Source, *, data_only: bool) -> Iterator[Any]:
    """Yield an opened workbook, and raise what goes wrong in it as an error of its file."""
    openpyxl = _import_openpyxl()
    try:
        if compute_expanded_size(source.stream) > MAX_FILE_BYTES:
            raise source.refuse(f"expands to more than {MAX_FILE_BYTES} bytes")
        content = io.BytesIO(source.content)
        yield openpyxl.load_workbook(content, read_only=True, data_only=data_only)
    except FileFormatError:
        raise
    except Exception as cause:  # what is raised on foreign bytes has no bounds
        raise source.refuse(f"is not a whole workbook of Excel (.xlsx): {cause}") from None


def find_hidden_lines(sheet: Any) -> tuple[set[int], set[int]]:
    """Return the numbers, from 1, of the rows and columns that are hidden, filtered or folded."""
    rows: set[int] = set()
    columns: set[int] = set()
    number, default = 0, False
    with sheet._get_source() as stream:
        parse = _import_openpyxl().xml.functions.iterparse
        for event, element in parse(stream, events=("start", "end")):
            name = element.tag.rpartition("}")[2]
            given = element.attrib
            if event == "end":
                element.clear()
            elif name == "sheetFormatPr":
                default = given.get("zeroHeight") in _TRUE
            elif name == "col" and given.get("hidden") in _TRUE:
                columns |= {*range(int(given["min"]), min(int(given["max"]), MAX_COLUMNS) + 1)}
            elif name == "row":
                number = int(given.get("r", number + 1))
                if given.get("hidden", "1" if default and "ht" not in given else "0") in _TRUE:
                    rows.add(number)
    return rows, columns


_TRUE = ("1", "true")
"""What truth is in XML."""


def _list_rows(
    sheet: Any, hidden_rows: Collection[int] = (), hidden_columns: Collection[int] = ()
) -> list[list[Any]]:
    """Return a sheet's cell values without hidden rows and columns, and without empty margins."""
    sheet.reset_dimensions()  # programs write wrong ones
    rows = [
        [_get_cell_value(cell) for place, cell in enumerate(row, 1) if place not in hidden_columns]
        for number, row in enumerate(sheet.iter_rows(), 1)
        if number not in hidden_rows
    ]
    width = max(
        (k + 1 for row in rows for k, value in enumerate(row) if value is not None), default=0
    )
    height = max(
        (k + 1 for k, row in enumerate(rows) if any(value is not None for value in row)), default=0
    )
    return [(row + [None] * width)[:width] for row in rows[:height]]


def _get_cell_value(cell: Any) -> Any:
    """Return a cell's value; errors such as #N/A as text."""
    value = cell.value
    if cell.data_type == "f":
        return Formula(value)
    return unescape_cell_text(value) if isinstance(value, str) and cell.data_type != "e" else value


def _parse_labels(values: Sequence[Any], source: Source) -> Labels:
    """Parse labels from cells; blank is empty text, and tuples are as Python writes them."""
    given = list(_get_plain_labels(values, source))
    if all(isinstance(label, str) for label in given):
        read = parse_labels(given)
        return read if all(isinstance(label, tuple) for label in read) else tuple(given)
    return tuple(given)


def _get_plain_labels(values: Sequence[Any], source: Source) -> Iterator[Any]:
    """Convert cell values to labels without parsing."""
    for value in values:
        if value is None:
            yield ""
        elif isinstance(value, str):
            digits = value.removeprefix("-")
            large = digits.isascii() and digits.isdigit() and 16 <= len(digits) < 4000
            number = int(value) if large else 0
            yield number if abs(number) > MAX_EXACT_INTEGER and str(number) == value else value
        elif isinstance(value, bool | int | float):
            yield value
        else:
            raise source.refuse(
                f"the label {abbreviate([value])} is a date or a time: make its cell text, for labels "
                "are text or "
                "numbers"
            )


def _parse_cell_number(value: Any, source: Source, row: int, column: int) -> float:
    """Parse the number of a cell."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if value is None:
        what = (
            "is empty, or a formula whose value the file does not have (open and save it in Excel)"
        )
    elif isinstance(value, str):
        what = f"holds the text {value!r:.60}, and a number is needed there: change the type of the cell"
    else:
        what = f"holds {value!r:.60}, and a number is needed there"
    raise source.refuse(f"row {row}, column {column} {what}")
