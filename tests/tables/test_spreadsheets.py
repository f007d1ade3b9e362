"""Workbooks of Excel and OpenDocument spreadsheets as tables of people."""

from __future__ import annotations

import datetime as dt
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run, run_fully

from pmlopt import Mechanism
from pmlopt.errors import FileFormatError, InputError, LabelWarning
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, column_counts, converted, open_table
from pmlopt.tables.spreadsheets import read_workbook

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture(autouse=True)
def _without_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert in this process; the other one is tested with files of R."""

    def call_here(function: Any, content: bytes, **given: Any) -> bytes:
        arguments = {name: given[name] for name in ("ending", "part")}
        return bytes(function(content, **arguments))

    monkeypatch.setattr(converted, "call_in_child", call_here)


HEADER: list[Any] = ["code", "share", "day", "moment", "yes", "text", 2020]
ROWS: list[list[Any]] = [
    [1, 2.5, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4), True, "007", 1],
    [2, 3, None, dt.datetime(1999, 12, 31, 23, 59, 59), False, " x ", 2],
    [None] * 7,
    [3, None, dt.date(1900, 3, 1), None, None, "=1+1", 3],
]
COLUMNS: dict[str, list[Any]] = {
    "code": [1, 2, None, 3],
    "share": [2.5, 3.0, None, None],
    "day": [dt.date(2020, 1, 2), None, None, dt.date(1900, 3, 1)],
    "moment": [dt.datetime(2020, 1, 2, 3, 4), dt.datetime(1999, 12, 31, 23, 59, 59), None, None],
    "yes": [True, False, None, None],
    "text": ["007", " x ", None, "=1+1"],
    "2020": [1, 2, None, 3],
}


def write_excel(
    path: Path, rows: list[list[Any]], change: Callable[[Any], None] | None = None
) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for (cell,) in book.active.iter_rows(min_col=6, max_col=6):
        cell.data_type = "s" if cell.value is not None else cell.data_type
    if change is not None:
        change(book.active)
    book.save(path)
    return path


OPEN = (
    '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0">'
    "<office:body><office:spreadsheet>{}</office:spreadsheet></office:body></office:document-content>"
)
END = (
    '<table:table-row table:number-rows-repeated="1048570"><table:table-cell '
    'table:number-columns-repeated="16384"/></table:table-row>'
)
"""The empty rest of a sheet, as LibreOffice writes it."""


def make_open_cell(value: Any) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, bool):
        kind, stated = "boolean", f'office:boolean-value="{str(value).lower()}"'
    elif isinstance(value, int | float):
        kind, stated = "float", f'office:value="{value}"'
    elif isinstance(value, dt.date):
        kind, stated = "date", f'office:date-value="{value.isoformat()}"'
    else:
        kind, stated = "string", ""
        value = str(value).replace(" ", "<text:s/>")
    return (
        f'<table:table-cell office:value-type="{kind}" calcext:value-type="{kind}" {stated}>'
        f"<text:p>{value}</text:p></table:table-cell>"
    )


def make_open_row(row: list[Any], about: str = "") -> str:
    return f"<table:table-row {about}>{''.join(map(make_open_cell, row))}</table:table-row>"


def write_open(path: Path, *sheets: str) -> Path:
    tables = (
        f'<table:table table:name="Sheet{place}">{one}{END}</table:table>'
        for place, one in enumerate(sheets, 1)
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", OPEN.format("".join(tables)))
    return path


def read_columns(path: Path, sheet: str | None = None) -> dict[str, list[Any]]:
    with open_table(path, CsvFormat(sheet=sheet)) as table:
        (batch,) = table.batches()
        return {
            name: column.to_pylist()
            for name, column in zip(table.names, batch.columns, strict=True)
        }


@pytest.mark.parametrize("ending", [".xlsx", ".ods"])
def test_cells_have_their_types_and_whole_numbers_stay_whole(ending: str, tmp_path: Path) -> None:
    if ending == ".xlsx":
        path = write_excel(tmp_path / "a.xlsx", [HEADER, *ROWS])
    else:
        path = write_open(tmp_path / "a.ods", "".join(map(make_open_row, [HEADER, *ROWS])))
    found = read_columns(path)
    assert found == COLUMNS
    assert all(type(one) is int for one in found["code"] if one is not None)
    counts = column_counts(path, "code", missing="drop")
    assert counts == {1: 1, 2: 1, 3: 1}
    assert all(type(label) is int for label in counts)


def test_a_workbook_is_released_as_one(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [HEADER, *ROWS])
    same = Mechanism(np.eye(3), [1, 2, 3], [1, 2, 3])
    with open_table(path) as table:
        apply_columns(
            table,
            [ColumnRelease(same, ("code",))],
            tmp_path / "b.xlsx",
            drop_missing=True,
            keep_order=True,
        )
    expected = {
        name: [cell for k, cell in enumerate(cells) if k != 2] for name, cells in COLUMNS.items()
    }
    assert read_columns(tmp_path / "b.xlsx") == expected
    (sheet,) = openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets
    assert sheet["F4"].data_type == "s"  # text, and no formula


def test_an_open_document_is_released_as_a_workbook_which_is_said(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        ["q", "sex"],
        *[[answer, sex] for answer in (1, 2) for sex in ("f", "m")] * 20,
    ]
    path = write_open(tmp_path / "a.ods", "".join(map(make_open_row, rows)))
    how = (
        "release",
        path,
        "--column",
        "q",
        "--utility",
        "hamming",
        "--epsilon",
        1,
        "--privacy",
        "ldp",
    )
    said = run(*how, "--drop", "sex", "-o", tmp_path / "out")
    assert "the rows are released as .xlsx" in said
    assert run("check", tmp_path / "out")
    assert sum(column_counts(tmp_path / "out" / "released.xlsx", "q").values()) == 80
    run("estimate", tmp_path / "out")


def test_one_of_several_sheets_is_named(tmp_path: Path) -> None:
    first, other = (
        make_open_row(["a"]) + make_open_row([1]),
        make_open_row(["b"]) + make_open_row([2]),
    )
    path = write_open(tmp_path / "a.ods", first, other)
    with pytest.raises(
        FileFormatError, match="sheets Sheet1 and Sheet2: name one of them by --sheet"
    ):
        open_table(path)
    assert read_columns(path, "Sheet2") == {"b": [2]}
    text = run(
        "design",
        "--prior",
        path,
        "--column",
        "b",
        "--sheet",
        "Sheet3",
        "--epsilon",
        1,
        "--utility",
        "hamming",
        code=2,
    )
    assert "name one of them" in text


def hide_lines(sheet: Any) -> None:
    sheet.row_dimensions[3].hidden = True
    sheet.column_dimensions["B"].hidden = True


def test_hidden_rows_and_columns_are_read_and_said(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [["a", "b"], [1, 2], [3, 4]], hide_lines)
    with pytest.warns(LabelWarning, match="hidden") as said:
        assert read_columns(path) == {"a": [1, 3], "b": [2, 4]}
    assert sorted(str(one.message).partition(": ")[2] for one in said) == [
        "has 1 hidden column, which is read", "has 1 hidden row, which is read",
    ]  # fmt: skip
    hidden = (
        '<table:table-column/><table:table-column table:visibility="collapse"/>'
        + make_open_row(["a", "b"])
    )
    path = write_open(
        tmp_path / "a.ods", hidden + make_open_row([1, 2], 'table:visibility="filter"')
    )
    with pytest.warns(LabelWarning, match="hidden") as said:
        assert read_columns(path) == {"a": [1], "b": [2]}
    assert len(said) == 2


def test_merged_cells_are_refused(tmp_path: Path) -> None:
    path = write_excel(
        tmp_path / "a.xlsx", [["a"], [1], [2]], lambda sheet: sheet.merge_cells("A2:A3")
    )
    merged = make_open_cell(1).replace(
        "<table:table-cell ", '<table:table-cell table:number-rows-spanned="2" '
    )
    other = write_open(
        tmp_path / "a.ods",
        make_open_row(["a"]) + f"<table:table-row>{merged}</table:table-row>"
        "<table:table-row><table:covered-table-cell/></table:table-row>",
    )
    for one in (path, other):
        with pytest.raises(FileFormatError, match="1 area of merged cells"):
            open_table(one)


def test_formulas_have_their_values_and_errors_are_text(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [["a"], ["=1+1"]])
    with pytest.raises(FileFormatError, match="1 formula without a value"):
        open_table(path)
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            new.writestr(
                name, old.read(name).replace(b"<v />", b"<v>2</v>").replace(b"<v/>", b"<v>2</v>")
            )
    table, notes = read_workbook(content.getvalue(), None)
    assert (table.to_pydict(), notes) == ({"a": [2]}, [])
    path = write_excel(tmp_path / "b.xlsx", [["a"], [1], ["#N/A"]])
    error = '<table:table-cell office:value-type="string" calcext:value-type="error"><text:p>#N/A</text:p>'
    other = write_open(
        tmp_path / "b.ods",
        make_open_row(["a"]) + make_open_row([1])
        + f"<table:table-row>{error}</table:table-cell></table:table-row>",
    )  # fmt: skip
    for one in (path, other):
        with pytest.warns(LabelWarning, match="1 cell with an error such as #N/A"):
            assert read_columns(one) == {"a": ["1", "#N/A"]}


def test_a_column_of_numbers_and_text_is_text_which_is_said(tmp_path: Path) -> None:
    path = write_excel(tmp_path / "a.xlsx", [["a"], [1], ["none"]])
    with pytest.warns(LabelWarning, match="'a' has cells of int and text: all are read as text"):
        assert column_counts(path, "a") == {"1": 1, "none": 1}


@pytest.mark.parametrize("rows", [
    [["a", None], [1, 2]], [[None, None], [1, 2]], [],
])  # fmt: skip
def test_a_sheet_without_a_header_is_refused(rows: list[list[Any]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no name in row 1|without cells"):
        open_table(write_excel(tmp_path / "a.xlsx", rows))


def test_a_table_within_a_cell_is_refused(tmp_path: Path) -> None:
    inner = '<table:table table:is-sub-table="true">' + make_open_row([1]) + "</table:table>"
    row = f"<table:table-row><table:table-cell>{inner}</table:table-cell></table:table-row>"
    path = write_open(tmp_path / "a.ods", make_open_row(["a"]) + row)
    for sheet in (None, "Sheet1"):
        with pytest.raises(FileFormatError, match="table within a cell"):
            read_columns(path, sheet)


@pytest.mark.parametrize("ending", [".xlsx", ".ods"])
@pytest.mark.parametrize("cut", [60, 700, -30])
def test_a_damaged_file_ends_with_exit_2(ending: str, cut: int, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    if ending == ".xlsx":
        write_excel(path, [["a"], [1]])
    else:
        write_open(path, make_open_row(["a"]) + make_open_row([1]))
    path.write_bytes(path.read_bytes()[:cut])
    ended = run_fully(
        "design", "--prior", path, "--column", "a", "--epsilon", 1, "--utility", "hamming", code=2
    )
    assert ending[1:] in ended.output or "Excel" in ended.output or "OpenDocument" in ended.output


@pytest.mark.parametrize(("column", "words"), [
    ({"a": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]}, "timestamp"),
    ({"a": [[1]]}, "list"),
])  # fmt: skip
def test_what_excel_cannot_hold_is_refused_before_anything_is_drawn(
    column: dict[str, list[Any]], words: str, tmp_path: Path
) -> None:
    same = Mechanism([[1.0]], ["x"], ["x"])
    with (
        open_table({"q": ["x"], **column}) as table,
        pytest.raises(
            InputError, match=f"'a' of {words}.*cannot be written as a workbook of Excel"
        ),
    ):
        apply_columns(table, [ColumnRelease(same, ("q",))], tmp_path / "b.xlsx")
    assert list(tmp_path.iterdir()) == []
