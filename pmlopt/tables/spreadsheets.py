"""Sheets of workbooks (.xlsx) and of OpenDocument spreadsheets (.ods) as tables of people."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any
from xml.etree import ElementTree  # expat limits what entities expand to

from pmlopt.core.display import pluralize
from pmlopt.core.files.disk import MAX_FILE_BYTES, compute_expanded_size
from pmlopt.core.lazy_imports import pyarrow, zipfile
from pmlopt.core.matrices.excel import (
    MAX_COLUMNS,
    MAX_ROWS,
    find_hidden_lines,
    open_workbook,
    unescape_cell_text,
)
from pmlopt.core.matrices.matrix_file import Source
from pmlopt.core.numbers.arrays import join_words
from pmlopt.errors import FileFormatError


class CellError(str):
    """What a formula that fails shows, such as #N/A."""

    __slots__ = ()


@dataclass
class Sheet:
    """The cells of a sheet, and what a reader of its cells would not see.

    Attributes:
        rows: of cells; the first has the names of the columns.
        merged: how many areas of merged cells there are.
        hidden: the numbers, from 1, of the rows and of the columns that are hidden, filtered or folded.
        unknown: cells with a formula whose value the file does not have.
    """

    rows: list[list[Any]] = field(default_factory=list)
    merged: int = 0
    hidden: tuple[set[int], set[int]] = field(default_factory=lambda: (set(), set()))
    unknown: int = 0

    def convert(self) -> tuple[Any, list[str]]:
        """Return the table of Arrow, and notes.

        Raises:
            FileFormatError: cells are merged, a column has no name, or a formula has no value.
        """
        if self.merged:
            raise FileFormatError(
                f"has {pluralize(self.merged, 'area')} of merged cells, of which only the first has a value: "
                "unmerge them"
            )
        if self.unknown:
            raise FileFormatError(
                f"has {pluralize(self.unknown, 'formula')} without a value: open and save it in the program "
                "that it is for"
            )
        while self.rows and not any(cell is not None for cell in self.rows[-1]):
            self.rows.pop()
        if not self.rows:
            raise FileFormatError(
                "has a sheet without cells: a header and at least one row are needed"
            )
        header, *rows = self.rows
        width = max(map(len, self.rows))
        columns = {
            place: [row[place] if place < len(row) else None for row in rows]
            for place in range(width)
        }
        names = [*header, *[None] * (width - len(header))]
        used = [
            place for place, cells in columns.items()
            if names[place] is not None or any(cell is not None for cell in cells)
        ]  # fmt: skip
        if any(names[place] is None for place in used):
            nameless = next(place for place in used if names[place] is None) + 1
            raise FileFormatError(
                f"has no name in row 1 for its column {nameless}, which has cells: the first row names the "
                "columns"
            )
        notes = [
            f"has {pluralize(count, what)}, which {'is' if count == 1 else 'are'} read"
            for what, numbers, most in zip(
                ("hidden row", "hidden column"), self.hidden, (len(self.rows), width), strict=True
            )
            if (count := sum(number <= most for number in numbers))
        ]
        shown = [str(names[place]) for place in used]
        arrays = [
            _convert_cells(columns[place], name, notes)
            for place, name in zip(used, shown, strict=True)
        ]
        return pyarrow.table(arrays, names=shown), notes


def _convert_cells(cells: list[Any], name: str, notes: list[str]) -> Any:
    """Return the cells of a column as an array of Arrow: as text where their kinds differ."""
    kinds = {type(cell) for cell in cells if cell is not None}
    errors = [cell for cell in cells if isinstance(cell, CellError)]
    if errors:
        notes.append(
            f"the column {name!r} has {pluralize(len(errors), 'cell')} with an error such as {errors[0]}, "
            "which count as text"
        )
    if kinds == {int, float} or (kinds == {int} and any(abs(cell or 0) >= 2**63 for cell in cells)):
        kinds = {float}
    if kinds == {datetime} and all(cell.time() == time() for cell in cells if cell is not None):
        kinds = {date}
        cells = [None if cell is None else cell.date() for cell in cells]
    types = {
        int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.string(),
        date: pyarrow.date32(), datetime: pyarrow.timestamp("us"), time: pyarrow.time64("us"),
    }  # fmt: skip
    if len(kinds) == 1 and (kind := types.get(*kinds)) is not None:
        return pyarrow.array(cells, kind)
    if kinds:
        words = sorted({"text" if issubclass(one, str) else one.__name__ for one in kinds})
        if len(words) > 1 or words == ["timedelta"]:
            notes.append(
                f"the column {name!r} has cells of {join_words(words)}: all are read as text"
            )
    return pyarrow.array([None if cell is None else str(cell) for cell in cells], pyarrow.string())


def _choose_sheet(names: Sequence[str], part: str | None) -> int:
    """Return the place of the sheet that is meant."""
    if part in names:
        return names.index(str(part))
    if part is None and len(names) == 1:
        return 0
    raise FileFormatError(f"has the sheets {join_words(names)}: name one of them by --sheet")


def read_workbook(content: bytes, part: str | None) -> tuple[Any, list[str]]:
    """Return a sheet of a workbook of Excel as a table of Arrow, and notes.

    Formulas have the values that the file holds for them, and dates and whole numbers stay what they are.

    Args:
        content: of the file.
        part: the name of the sheet; None where one sheet is visible.
    """
    with open_workbook(Source("", content), data_only=True) as book:
        shown = [one for one in book.worksheets if part is not None or one.sheet_state == "visible"]
        sheet = shown[_choose_sheet([one.title for one in shown], part)]
        found = _inspect_sheet(sheet)
        found.hidden = find_hidden_lines(sheet)
        sheet.reset_dimensions()  # programs write wrong ones
        found.rows = [[_get_cell_value(cell) for cell in row] for row in sheet.iter_rows()]
    return found.convert()


def _inspect_sheet(sheet: Any) -> Sheet:
    """Return what a sheet of Excel has beside the values of its cells."""
    found = Sheet()
    with sheet._get_source() as stream:
        for _, element in ElementTree.iterparse(stream):  # noqa: S314
            name = element.tag.rpartition("}")[2]
            given = element.attrib
            if name == "mergeCell":
                found.merged += 1
            elif name == "c":
                parts = {one.tag.rpartition("}")[2]: one.text for one in element}
                found.unknown += "f" in parts and not parts.get("v") and given.get("t") != "str"
            if name in ("row", "c"):
                element.clear()
    return found


def _get_cell_value(cell: Any) -> Any:
    """Return the value of a cell of Excel, None for an empty one."""
    value = cell.value
    if not isinstance(value, str):
        return value
    return CellError(value) if cell.data_type == "e" else unescape_cell_text(value) or None


def read_open_document(content: bytes, part: str | None) -> tuple[Any, list[str]]:
    """Return a sheet of an OpenDocument spreadsheet as a table of Arrow, and notes.

    Args:
        content: of the file.
        part: the name of the sheet; None where there is one.
    """
    stream = io.BytesIO(content)
    if compute_expanded_size(stream) > MAX_FILE_BYTES:
        raise FileFormatError(f"expands to more than {MAX_FILE_BYTES} bytes")
    with zipfile.ZipFile(stream) as archive, archive.open("content.xml") as opened:
        body = ElementTree.parse(opened).getroot()  # noqa: S314
    sheets = [one for one in body.iter() if _get_name(one) == "table"]
    if any(_get(one, "is-sub-table") == "true" for one in sheets):
        raise FileFormatError("has a table within a cell: move it to a sheet of its own")
    names = [_get(one, "name") for one in sheets]
    return _read_open_sheet(sheets[_choose_sheet(names, part)]).convert()


def _get_name(element: Any) -> str:
    """Return the name of an element without its space."""
    return str(element.tag).rpartition("}")[2]


def _get(element: Any, name: str, default: str = "") -> str:
    """Return an attribute by its name without the space, of which the last one counts."""
    found = [value for key, value in element.attrib.items() if key.rpartition("}")[2] == name]
    return found[-1] if found else default


def _read_open_sheet(element: Any) -> Sheet:
    """Read the rows of a sheet, of which equal ones may stand once with their number."""
    found = Sheet()
    empty = 0
    columns = 0
    for one in element.iter():
        name = _get_name(one)
        is_hidden = _get(one, "visibility", "visible") != "visible"
        if name == "table-column":
            times = int(_get(one, "number-columns-repeated", "1"))
            if is_hidden:
                found.hidden[1].update(range(columns + 1, columns + min(times, MAX_COLUMNS) + 1))
            columns += times
        if name != "table-row":
            continue
        times = int(_get(one, "number-rows-repeated", "1"))
        cells = list(_read_open_cells(one, found))
        if not cells:
            empty += times  # a sheet ends with a million of them
            continue
        if len(found.rows) + empty + times > MAX_ROWS:
            raise FileFormatError(f"has more than {MAX_ROWS} rows")
        found.rows += [[]] * empty + [cells] * times
        if is_hidden:
            found.hidden[0].update(range(len(found.rows) - times + 1, len(found.rows) + 1))
        empty = 0
    return found


def _read_open_cells(row: Any, found: Sheet) -> Iterator[Any]:
    """Yield the cells of a row up to the last one with a value."""
    empty = 0
    for one in row:
        if _get_name(one) not in ("table-cell", "covered-table-cell"):
            continue
        spans = (_get(one, f"number-{side}-spanned", "1") for side in ("rows", "columns"))
        found.merged += any(span != "1" for span in spans)
        times = int(_get(one, "number-columns-repeated", "1"))
        value = _read_open_cell(one)
        if value is None:
            empty += times
            continue
        if empty + times > MAX_COLUMNS:
            raise FileFormatError(f"has more than {MAX_COLUMNS} columns")
        yield from [None] * empty + [value] * times
        empty = 0


def _read_open_cell(cell: Any) -> Any:
    """Return the value of a cell, None for an empty one."""
    kind = next(
        (value for key, value in cell.attrib.items() if key.endswith("office:1.0}value-type")), ""
    )
    shown = "\n".join(_read_text(one) for one in cell if _get_name(one) == "p")
    if any(key.endswith("value-type") and value == "error" for key, value in cell.attrib.items()):
        return CellError(shown)
    if kind in ("float", "percentage", "currency"):
        number = _get(cell, "value")
        return int(number) if number.lstrip("-").isdigit() else float(number)
    if kind == "boolean":
        return _get(cell, "boolean-value") == "true"
    if kind == "date":
        stated = _get(cell, "date-value")
        return datetime.fromisoformat(stated) if "T" in stated else date.fromisoformat(stated)
    return _get(cell, "string-value") or shown or None


def _read_text(element: Any) -> str:
    """Return the text of a paragraph, in which repeated spaces, tabs and line ends are elements."""
    parts = [element.text or ""]
    for one in element:
        name = _get_name(one)
        inside = {"s": " " * int(_get(one, "c", "1")), "tab": "\t", "line-break": "\n"}
        parts += [inside[name] if name in inside else _read_text(one), one.tail or ""]
    return "".join(parts)
