"""Reading data files: the forms of CSV, Parquet and Arrow, and frames; CSV is read as the csv module does."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tables.tables_of_any_kind import cells_of, csv_bytes, write_table

from pmlopt import Mechanism
from pmlopt.core.files.letter_files import read_letters
from pmlopt.errors import FileFormatError, InputError
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import CsvFormat, column_counts, open_table, reading
from pmlopt.tables.streams import QuoteCheck
from pmlopt.tables.table import TableBatch

CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
NASTY = st.sampled_from(
    [
        "",
        " ",
        "a",
        "1",
        "0.5",
        '"',
        '""',
        ",",
        ";",
        "\n",
        "\r",
        "\r\n",
        "a\rb",
        "\ufeff",
        "NA",
        "null",
        "é",
    ]
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), delimiter=st.sampled_from(",;\t|"))
def test_every_cell_is_read_as_it_was_written(
    tmp_path: Path, end: str, data: st.DataObject, delimiter: str
) -> None:
    width = data.draw(st.integers(1, 3))
    row = st.lists(st.one_of(CELLS, NASTY), min_size=width, max_size=width)
    body = data.draw(st.lists(row, min_size=1, max_size=5))
    names = [f"n{place}" for place in range(width)]
    path = tmp_path / "data.csv"
    path.write_bytes(csv_bytes([names, *body], delimiter, end))
    table = open_table(path, CsvFormat(delimiter))
    assert table.names == names
    assert cells_of(table) == [[cell or None for cell in row] for row in body]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(st.sampled_from('a1,"\n\r;é '), max_size=25))
def test_whatever_text_is_read_as_by_the_csv_module(tmp_path: Path, text: str) -> None:
    """What the one refuses the other refuses, and else both read the same."""
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    try:
        table = open_table(path)
        found: Any = (table.names, cells_of(table))
    except FileFormatError:
        found = None
    assert found == by_the_csv_module(text)


def by_the_csv_module(text: str) -> Any:
    """The header and the cells of a text with rows of one length; None for any other."""
    try:
        delimiter = CsvFormat().detect(text.encode(), "data.csv").delimiter or ","
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except (FileFormatError, csv.Error):
        return None
    while rows and not rows[0]:
        rows.pop(0)
    if not rows:
        return None
    body = (
        [row or [""] for row in rows[1:]] if len(rows[0]) == 1 else [row for row in rows[1:] if row]
    )
    if not body or any(len(row) != len(rows[0]) for row in body):
        return None
    return rows[0], [[cell or None for cell in row] for row in body]


def test_encodings_are_found_or_said(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"):
        path.write_bytes("größe;ort\n1;Zürich\n2;Köln\n".encode(encoding))
        told = encoding in ("cp1252", "latin-1")
        if told:
            with pytest.raises(FileFormatError, match="--encoding"):
                open_table(path)
        table = open_table(path, CsvFormat(None, encoding if told else None))
        assert table.names == ["größe", "ort"]
        assert cells_of(table) == [["1", "Zürich"], ["2", "Köln"]]
    path.write_bytes(b"a,b\n" + (b"x," + b"y" * 1000 + b"\n") * 1200 + b"\xff,y\n")
    table = open_table(path)
    with pytest.raises(FileFormatError, match="UTF-8"):  # past the head
        cells_of(table)


def test_delimiters_are_found_or_asked_about() -> None:
    for text, delimiter in (
        ("a,b\n1,2\n", ","), ("a;b\n1,5;2\n", ";"), ("a\tb\n1\t2\n", "\t"), ("a|b\n1|2\n", "|"),
        ("a\n1;2\n", ","), ('"a,b";c\n1;2\n', ";"), ("a,b\n1\n", ","),
    ):  # fmt: skip
        assert CsvFormat().detect(text.encode(), "data.csv").delimiter == delimiter
    with pytest.raises(FileFormatError, match=r"commas and semicolons.*--delimiter"):
        CsvFormat().detect(b"a;b,c\n1;2,3\n", "data.csv")
    assert CsvFormat("tab").delimiter == "\t"
    for bad in ("", ";;", '"', "\n", "é"):
        with pytest.raises(InputError, match="delimiter"):
            CsvFormat(bad)
    with pytest.raises(InputError, match="encoding"):
        CsvFormat(None, "no-such")


def test_files_that_are_no_table_are_told_with_the_row(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    for text, message in (
        ("", "0 row"), ("\n\n", "0 row"), ("a,b\n", "1 row"),
        ("a,b\n1,2\n3\n", "row 3 has 1 cells and the header 2"), ("a,b\n1,2\n3,4,5\n", "row 3 has 3 cells"),
        ('a,b\n1,2\n3,"4\n', "row 3"), ('a,b\n1,"2"x\n', "row 2"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(FileFormatError, match=message):
            cells_of(open_table(path))


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_typed_files_keep_types_and_missing_cells(tmp_path: Path, ending: str) -> None:
    columns: dict[str, list[Any]] = {
        "text": ["a", None, ""], "whole": [1, None, 3], "real": [0.5, float("nan"), None],
        "truth": [True, False, None],
    }  # fmt: skip
    path = tmp_path / f"data{ending}"
    write_table(path, columns)
    table = open_table(path)
    assert table.names == list(columns)
    rows = cells_of(table)
    assert rows == [["a", 1, 0.5, True], [None, None, None, False], ["", 3, None, None]]
    (tmp_path / "cut.parquet").write_bytes(path.read_bytes()[:-10])
    with pytest.raises(FileFormatError, match="is not a whole"):
        open_table(tmp_path / "cut.parquet")


def test_frames_of_every_library_are_tables() -> None:
    pandas, polars, pyarrow = (
        pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow")
    )
    columns = {"a": ["x", "y", None], "b": [1, 2, 3]}
    frames = [
        columns, pandas.DataFrame(columns, index=[9, 8, 7]), polars.DataFrame(columns),
        pyarrow.table(columns),
    ]  # fmt: skip
    for frame in frames:
        assert cells_of(open_table(frame)) == [["x", 1], ["y", 2], [None, 3]]
    with pytest.raises(InputError, match="no table"):
        open_table(3)
    with pytest.raises(InputError, match="more than one column of one name"):
        open_table(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_batches_know_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,b\n" + "".join(f"{row},{'x' * 40}\n" for row in range(2, 30_002)))
    with open_table(path) as table:
        seen, batches = 2, 0
        for batch in table.batches():
            assert batch.first == seen
            values, codes = batch.encode_column(0)
            assert values[codes[0]] == str(seen)
            seen, batches = seen + batch.size, batches + 1
        assert seen == 30_002
        assert batches > 1
        assert table.done() == 1.0


# ---------------------------------------------------------------- quotes


def is_usual(text: str) -> bool:
    """Whether each quote opens a cell, closes it or is doubled inside, by a walk through the text."""
    inside, k = False, 0
    while k < len(text):
        before, after = (text[k - 1] if k else "\n"), text[k + 1 : k + 2]
        if text[k] == '"' and not inside:
            if before not in ",\n\r":
                return False
            inside = True
        elif text[k] == '"' and after == '"':
            k += 1
        elif text[k] == '"':
            if after not in ("", ",", "\n", "\r"):
                return False
            inside = False
        k += 1
    return not inside


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from('a",\n\r'), max_size=12), st.lists(st.integers(0, 12), max_size=3))
def test_quotes_are_judged_as_by_a_walk(text: str, cuts: list[int]) -> None:
    check = QuoteCheck(",")
    ends = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    for start, end in pairwise(ends):
        check.check_chunk(text[start:end].encode())
    check.check_chunk(b"")
    assert check.unusual is not is_usual(text)


ENDINGS = [
    ".csv",
    ".tsv",
    ".txt",
    "",
    ".csv.gz",
    ".csv.bz2",
    ".csv.zst",
    ".parquet",
    ".feather",
    ".arrow",
]
SURE = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["f", "m"], ["f", "m"])
PEOPLE = pd.DataFrame({
    "sex": ["f", "m", "m"] * 1_000, "n": range(3_000), "town": pd.Categorical(list("abb") * 1_000)
})  # fmt: skip


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.parquet"
    PEOPLE.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(source: Path, tmp_path: Path, ending: str) -> None:
    target, again = tmp_path / f"out{ending}", tmp_path / "again.csv.gz"
    with open_table(source) as table:
        assert (
            apply_columns(table, [ColumnRelease(SURE, ("sex",))], target, keep_order=True).rows
            == 3_000
        )
    assert column_counts(target, "sex") == {"f": 2_000, "m": 1_000}
    with open_table(target) as table:
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], again, keep_order=True)
    back = pd.read_csv(again)
    assert back["sex"].tolist() == PEOPLE["sex"].tolist()
    assert back["n"].tolist() == PEOPLE["n"].tolist()
    assert back["town"].tolist() == PEOPLE["town"].tolist()


@pytest.mark.parametrize("ending", [".xlsx.gz", ".json", ".npz", ".parquet.gz", ".xls"])
def test_other_endings_are_refused_before_anything_is_read(tmp_path: Path, ending: str) -> None:
    with (
        open_table({"sex": ["f"]}) as table,
        pytest.raises(FileFormatError, match=r"end the name in \.parquet"),
    ):
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], tmp_path / f"out{ending}")
    assert not list(tmp_path.iterdir())


def test_a_compressed_file_that_is_cut_short_is_told(source: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.csv.gz"
    with open_table(source) as table:
        apply_columns(table, [ColumnRelease(SURE, ("sex",))], whole)
    content = whole.read_bytes()
    for share in (0.01, 0.5, 0.99):
        (tmp_path / "cut.csv.gz").write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileFormatError, match="cut"):
            column_counts(tmp_path / "cut.csv.gz", "sex")


def test_tables_of_people_and_of_letters_by_write_table(tmp_path: Path) -> None:
    """As R 4.2.2 writes them with row.names = FALSE; row names would be a column without a name."""
    people, letters = tmp_path / "d.txt", tmp_path / "c.txt"
    people.write_text('"age group" "ill"\n"18 to 30" "no"\n"31 to 60" "yes"\n"18 to 30" "no"\n')
    assert column_counts(people, "age group") == {"18 to 30": 2, "31 to 60": 1}
    letters.write_text('"letter" "count"\n"not ill" 60\n"ill" 40\n')
    assert read_letters(letters) == (("not ill", "ill"), [60, 40])
    people.write_text('"ill" "w"\n"1" "no" 2\n"2" "yes" 1\n')
    with pytest.raises(FileFormatError, match=r"row names of R \(row.names = FALSE\)"):
        column_counts(people, "ill")
    with pytest.raises(FileFormatError, match=r"row names of R \(row.names = FALSE\)"):
        read_letters(people)


def test_some_columns_of_a_large_file_have_the_cells_that_all_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MAX_BATCH_ROWS", 4)
    words = ["b", "a", None, "b", "c", "a", "a", "", "b", "d"]
    table = pyarrow.table(
        {
            "a.b": words,
            "a": pyarrow.array(words[::-1], pyarrow.large_string()),
            "kind": pyarrow.array(words).dictionary_encode(),
            "number": [1, 2, None, 4, 5, 6, 7, 8, 9, 10],
            "other": [[1]] * 10,
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=7)
    (tmp_path / "parts").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "parts" / "one.parquet")
    for path in (tmp_path / "people.parquet", tmp_path / "parts"):
        with open_table(path) as whole, open_table(path) as some:
            wanted = ["number", "a", "kind"]
            pairs = list(zip(whole.batches(), some.read_columns(wanted), strict=True))
        assert len(pairs) > 1
        for one, other in pairs:
            assert (one.size, one.first) == (other.size, other.first)
            assert other.columns[0] is None is other.columns[4]
            for place in (1, 2, 3):
                values, codes = one.encode_column(place)
                found, found_codes = other.encode_column(place)
                assert (values, codes.tolist()) == (found, found_codes.tolist())


def test_a_small_file_has_all_columns_where_some_are_wanted(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"a": ["x"], "b": [2]}), tmp_path / "few.parquet")
    with open_table(tmp_path / "few.parquet") as table:
        (batch,) = table.read_columns(["a"])
    assert [column.to_pylist() for column in batch.columns] == [["x"], [2]]


def test_text_with_a_dictionary_is_encoded_as_text_without_one() -> None:
    words = ["b", None, "a", "b", "c", None, "a"]
    plain = pyarrow.array(words)
    unused = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([2, None, 1, 2, 4, None, 1]), pyarrow.array(["z", "a", "b", "y", "c"])
    )
    doubled = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([0, None, 1, 2, 3, None, 1]), pyarrow.array(["b", "a", "b", "c"])
    )
    hidden = pyarrow.DictionaryArray.from_arrays(
        pyarrow.array([1, 0, 2, 1, 3, 0, 2]), pyarrow.array([None, "b", "a", "c"])
    )
    expected = TableBatch([plain], 7, 1, text=False).encode_column(0)
    for column in (unused, doubled, hidden, unused.slice(2), plain.dictionary_encode()):
        values, codes = TableBatch([column], len(column), 1, text=False).encode_column(0)
        shown = [values[code] for code in codes.tolist()]
        assert shown == words[len(words) - len(column) :]
        assert len(set(values)) == len(values)
        if len(column) == 7:
            assert (values, codes.tolist()) == (expected[0], expected[1].tolist())
