"""Matrices in every format: labels and entries come back as they were, or nothing is written."""

from __future__ import annotations

import io
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from commands import run
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import loadmat, savemat
from strategies import MODEST

from pmlopt import Mechanism
from pmlopt.core.files.child_process import call_in_child
from pmlopt.core.files.disk import ENDINGS
from pmlopt.core.matrices import matlab
from pmlopt.core.matrices.formats import FORMATS, read_matrix
from pmlopt.core.matrices.text_tables import format_decimal
from pmlopt.core.numbers.arrays import DefaultLabels, FloatArray
from pmlopt.errors import FileFormatError, InputError, LabelWarning

HAS_EXCEL = find_spec("openpyxl") is not None
needs_excel = pytest.mark.skipif(not HAS_EXCEL, reason="openpyxl is not installed")
NEW = [".tsv", ".npy", ".mat", ".parquet", pytest.param(".xlsx", marks=needs_excel)]
NAMED_ONLY = (".tsv", ".parquet", ".xlsx")
"""Formats that have no room for the absence of labels."""
EXACT = [0.1 + 0.2, 5e-324, 1 / 3, -0.0, 1e-17, 2.0**-1022]
"""Numbers of 17 digits and of the ends of the doubles."""


def call_here(
    function: Callable[..., bytes], content: bytes, *, packages: Any, max_bytes: int, **more: Any
) -> bytes:
    """Call what would be called in another process: one takes a third of a second to start."""
    assert packages
    assert max_bytes
    found: bytes = function(content, **more)
    return found


@pytest.fixture(autouse=True, scope="module")
def without_children() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matlab, "call_in_child", call_here)
        yield


@pytest.fixture
def in_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files of MATLAB as people do, in another process."""
    monkeypatch.setattr(matlab, "call_in_child", call_in_child)


def laws(rows: int, columns: int, seed: int = 0) -> FloatArray:
    found = np.random.default_rng(seed).dirichlet(np.ones(columns), rows)
    assert np.abs(found.sum(axis=1) - 1).max() < 1e-12
    return found


def back(folder: Path, ending: str, mechanism: Mechanism) -> Mechanism:
    mechanism.save(folder / f"m{ending}")
    return Mechanism.load(folder / f"m{ending}")


def assert_kept(one: Mechanism, other: Mechanism) -> None:
    assert one.matrix.tobytes() == other.matrix.tobytes()
    assert repr(one.inputs) == repr(
        other.inputs
    )  # 1, 1.0 and True are equal, and their forms are not
    assert repr(one.outputs) == repr(other.outputs)


def test_the_table_has_every_ending() -> None:
    assert tuple(FORMATS) == ENDINGS


KEPT: list[tuple[Any, Any, Any]] = [
    ("low", "mid", "high"),
    (10**18, 10**18 + 1, -(10**18)),
    (0.5, 1e-30, 1e300),
    (0, 1, 2),
    (7.0, 1.0, 2.0),
    ("=1+1", "@SUM(A1)", "+1"),
    ("-2", "'quoted", "=HYPERLINK(\"x\")"),
    ("tab\there", "two\nlines", 'quote " and \''),
    ("é", "日本", "😀 x"),
    (" before", "after ", "a  b"),
    ("", "x", "y"),
    ("#N/A", "NaN", "TRUE"),
    ("_x000D_", "return\r", "\x01 control"),
    (("a", 1), ("b", 2), ("c", 3)),
]  # fmt: skip


@pytest.mark.parametrize("ending", NEW)
def test_labels_and_entries_come_back_bit_for_bit(tmp_path: Path, ending: str) -> None:
    for labels in KEPT:
        mechanism = Mechanism(laws(3, 3), labels, labels[::-1])
        assert_kept(back(tmp_path, ending, mechanism), mechanism)
    large = Mechanism(laws(40, 33), [f"x{k}" for k in range(40)], [f"y{k}" for k in range(33)])
    assert_kept(back(tmp_path, ending, large), large)
    tiny = [value for value in EXACT if 0 <= value < 0.1]
    rest = 1 - 0.25 - sum(tiny)
    small = Mechanism([[*tiny, 0.25, rest]], ["a"], [f"y{k}" for k in range(len(tiny) + 2)])
    assert_kept(back(tmp_path, ending, small), small)


SCALARS = (
    st.text(max_size=4)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
)
LABELS = st.recursive(SCALARS, lambda parts: st.lists(parts, max_size=3).map(tuple), max_leaves=5)


@pytest.mark.parametrize("ending", NEW)
@given(labels=st.lists(LABELS, min_size=2, max_size=2, unique=True))
@example(labels=[1, "1"])
@example(labels=[True, 0])
@example(labels=["1", "2"])
@example(labels=["(1, 2)", "(3, 4)"])
@example(labels=["9007199254740993", "x"])
@example(labels=["nul\0", "x"])
@example(labels=["\ud800", "x"])
@example(labels=["x" * 40_000, "y"])
@example(labels=[2**70, 1])
@MODEST
def test_strange_labels_come_back_or_nothing_is_written(
    tmp_path_factory: pytest.TempPathFactory, ending: str, labels: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    mechanism = Mechanism(laws(2, 2), labels, labels)
    try:
        mechanism.save(folder / f"m{ending}")
    except FileFormatError:
        assert list(folder.iterdir()) == []
    else:
        assert_kept(Mechanism.load(folder / f"m{ending}"), mechanism)


@pytest.mark.parametrize("ending", NEW)
def test_the_absence_of_labels_is_kept_where_there_is_room(tmp_path: Path, ending: str) -> None:
    bare = back(tmp_path, ending, Mechanism(np.eye(2)))
    assert (bare.inputs, bare.outputs) == ((0, 1), (0, 1))
    assert isinstance(bare.inputs, DefaultLabels) is (ending not in NAMED_ONLY)
    half = back(tmp_path, ending, Mechanism(np.eye(2), ["a", "b"]))
    assert half.outputs == (("y0", "y1") if ending in NAMED_ONLY else (0, 1))


def message_of(path: Path) -> str | None:
    """The error of loading a file, None where it is read."""
    try:
        Mechanism.load(path)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("ending", NEW)
@pytest.mark.usefixtures("in_child")
def test_a_cut_or_changed_file_is_refused_or_read_and_never_a_crash(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"m{ending}"
    Mechanism(laws(2, 2), ["no", "yes"], ["a", "b"]).save(path)
    content = path.read_bytes()
    parts = 10 if ending == ".mat" else 40  # each in another process
    step = max(1, len(content) // parts)
    for place in range(0, len(content), step):
        changed = bytearray(content)
        changed[place] ^= (0x01, 0x08, 0xFF)[place % 3]
        for broken in (content[:place], bytes(changed)):
            path.write_bytes(broken)
            told = message_of(path)
            assert told is None or (path.name in told and len(told) < 1000)


@pytest.mark.parametrize("ending", NEW)
def test_rows_that_do_not_sum_to_one_are_not_mended(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"m{ending}"
    Mechanism(np.eye(2), ["a", "b"], ["a", "b"]).save(path)
    stored = read_matrix(path)
    off = type(stored)(np.array([[0.333, 0.333], [0.5, 0.5]]), stored.inputs, stored.outputs)
    path.write_bytes(FORMATS[ending].encode(off))
    with pytest.raises(FileFormatError, match=r"sums to 0\.666"):
        Mechanism.load(path)


@pytest.mark.parametrize("ending", NEW)
def test_commands_write_and_read_every_format(tmp_path: Path, ending: str) -> None:
    prior, path, again = tmp_path / "p.csv", tmp_path / f"m{ending}", tmp_path / "again.json"
    prior.write_text("level,count\nlow,40\nmid,35\nhigh,25\n")
    run("design", "--prior", prior, "--epsilon", "1", "--utility", "hamming", "-o", path)
    run("design", "--prior", prior, "--epsilon", "1", "--utility", "hamming", "-o", again)
    assert_kept(Mechanism.load(path), Mechanism.load(again))
    run("audit", path, "--prior", prior, "--epsilon", "1")
    assert "level" in run("audit", path, "--prior", prior, "--epsilon", "0.5", code=1)
    # a matrix of gains in the same formats
    run(
        "design",
        "--prior",
        prior,
        "--epsilon",
        "1",
        "--utility",
        path,
        "-o",
        tmp_path / "gain.json",
    )


def test_the_matrix_of_a_npy_file_is_what_numpy_reads(tmp_path: Path) -> None:
    mechanism = Mechanism(laws(3, 2), ["a", "b", "c"], ["u", "v"])
    mechanism.save(tmp_path / "m.npy")
    assert np.load(tmp_path / "m.npy").tobytes() == mechanism.matrix.tobytes()
    for array in (np.asfortranarray(mechanism.matrix), mechanism.matrix.astype(">f8")):
        np.save(tmp_path / "other.npy", array)
        found = Mechanism.load(tmp_path / "other.npy")
        assert np.array_equal(found.matrix, mechanism.matrix)
        assert isinstance(found.inputs, DefaultLabels)


class Bomb:
    def __reduce__(self) -> Any:
        raise AssertionError("a pickle was made")


FOREIGN_ARRAYS: list[tuple[Any, str]] = [
    (np.ones(3) / 3, "1 dimension"),
    (np.eye(2)[None], "3 dimension"),
    (np.eye(2).astype(complex), "complex"),
    (np.eye(2, dtype=bool), "truth values"),
    (np.array([["a", "b"]]), "<U1"),
    (np.array([[1, 0]], dtype="M8[s]"), "datetime64"),
    (np.array([(1, 2)], dtype=[("a", int), ("b", int)]), r"\('a'"),
    (np.array([[2**62 + 1, 0]]), "2.53"),
    (np.array([[0.5, 0.6]]), "sums to 1.1"),
    (np.array([[np.nan, 1.0]]), "finite"),
    (np.zeros((0, 2)), "at least one entry"),
]  # fmt: skip


def test_foreign_arrays_of_numpy_are_refused_with_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "m.npy"
    for array, message in FOREIGN_ARRAYS:
        np.save(path, array)
        with pytest.raises(FileFormatError, match=f"m.npy.*{message}"):
            Mechanism.load(path)
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="pickles"):
        Mechanism.load(path)
    with path.open("wb") as stream:
        np.save(stream, np.eye(2))
        np.save(stream, np.eye(3))
    with pytest.raises(FileFormatError, match="several arrays"):
        Mechanism.load(path)
    np.save(path, np.eye(2, dtype=np.int8))
    assert Mechanism.load(path).matrix.tolist() == [[1, 0], [0, 1]]


def cells(*labels: Any) -> Any:
    found = np.empty((len(labels), 1), dtype=object)
    found[:, 0] = labels
    return found


FOREIGN_MAT: list[tuple[dict[str, Any], str]] = [
    ({"s": {"P": np.eye(2)}}, r"no matrix of numbers; it has s \(struct\)"),
    ({"P": {"a": 1}}, "no matrix"),
    ({"P": np.eye(2), "Q": np.eye(2), "inputs": np.eye(2)}, "variable inputs is no row or column"),
    ({"A": np.eye(2), "B": np.eye(3)}, r"2 variables that may be the matrix, A and B: name one.*name='A'"),
    ({"A": sparse.csc_array(np.eye(2))}, r"sparse: save it as full\(A\)"),
    ({"A": np.eye(2) + 0.5j}, "complex"),
    ({"A": np.eye(2, dtype=bool)}, r"A \(logical\)"),
    ({"A": np.ones((2, 2, 2))}, "3 dimension"),
    ({"A": cells(1, 2)}, "no matrix"),
    ({"A": "text"}, "no matrix"),
    ({}, "no variable"),
    ({"A": np.eye(2), "inputs": cells("a", "b", "c")}, "3 labels for 2"),
    ({"A": np.eye(2), "inputs": cells("a", np.eye(2))}, "neither one text nor one number"),
    ({"A": np.zeros((0, 0))}, "at least one entry"),
]  # fmt: skip


def test_foreign_variables_of_matlab_are_refused_with_the_choices(tmp_path: Path) -> None:
    path = tmp_path / "m.mat"
    for variables, message in FOREIGN_MAT:
        savemat(path, variables)
        with pytest.raises(FileFormatError, match=f"m.mat.*{message}"):
            Mechanism.load(path)
    for content, message in (
        (b"MATLAB 7.3 MAT-file, Platform", "-v7"),
        (b"# Created by Octave", "Octave's own format, which is not read: save"),
        (b"Octave-1-L", "Octave's own format, which is not read: save"),
        (b"% of another program", "not a whole"),
    ):
        path.write_bytes(content + bytes(500))
        with pytest.raises(FileFormatError, match=message):
            Mechanism.load(path)


def test_variables_of_matlab_are_read_by_their_rule(tmp_path: Path) -> None:
    path = tmp_path / "m.mat"
    savemat(path, {"P": np.eye(2), "Q": np.eye(3), "note": "text"})
    assert Mechanism.load(path).shape == (2, 2)
    assert Mechanism.load(path, name="Q").shape == (3, 3)
    with pytest.raises(FileFormatError, match="no variable 'R' that is read; it has P and Q"):
        Mechanism.load(path, name="R")
    for kind, compressed in ((float, True), (np.float32, False), (np.uint8, True)):
        savemat(path, {"A": np.eye(2, dtype=kind), "text": "x"}, do_compression=compressed)
        found = Mechanism.load(path)
        assert found == Mechanism(np.eye(2))
        assert isinstance(found.inputs, DefaultLabels)
    savemat(path, {"A": np.eye(2)}, format="4")
    with pytest.raises(FileFormatError, match="-v7"):
        Mechanism.load(path)
    # rows of characters are filled up with spaces, and every number of MATLAB is a double
    savemat(
        path,
        {"A": np.eye(2), "inputs": np.array(["ab ", "abc"]), "outputs": np.array([[1.0, 2.0]])},
    )
    found = Mechanism.load(path)
    assert (found.inputs, found.outputs) == (("ab", "abc"), (1, 2))


def test_a_variable_that_unpacks_to_more_than_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pmlopt.core.matrices.matlab.MAX_FILE_BYTES", 10_000)
    path = tmp_path / "m.mat"
    savemat(path, {"A": np.eye(100)}, do_compression=True)
    with pytest.raises(FileFormatError, match=r"shape \(100, 100\), more than 10000 bytes"):
        Mechanism.load(path)


@pytest.mark.usefixtures("in_child")
def test_files_of_matlab_are_read_and_refused_in_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.mat"
    mechanism = Mechanism(laws(3, 2), ["a", 1, ("b", 2.0)], [True, "é"])
    assert_kept(back(tmp_path, ".mat", mechanism), mechanism)
    with pytest.raises(
        FileFormatError, match=r"m\.mat: has no variable 'R' that is read; it has P"
    ):
        Mechanism.load(path, name="R")
    savemat(path, {"A": np.eye(2) + 0.5j})
    with pytest.raises(FileFormatError, match=r"m\.mat: .*complex numbers"):
        Mechanism.load(path)
    monkeypatch.setattr("pmlopt.core.matrices.matlab.MAX_FILE_BYTES", 10**7)
    savemat(path, {"A": np.eye(2), "inputs": np.zeros((20_000_000, 1))}, do_compression=True)
    if sys.platform == "linux":
        with pytest.raises(FileFormatError, match=r"m\.mat: .*(memory|damaged)"):
            Mechanism.load(path)


MATLAB_BYTES = (
    b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"  # big-endian, as machines of Sun wrote
    + bytes.fromhex(
        "0000000e 00000048"
        "00000006 00000008 00000006 00000000"  # flags: class double
        "00000005 00000008 00000002 00000002"  # shape 2, 2
        "00010001 50000000"  # the name P, as a small element
        "00000002 00000004 01000001 00000000"  # the doubles 1, 0, 0, 1 stored as bytes
    ).ljust(72 + 8, b"\0")
)  # fmt: skip
"""A file of MATLAB by hand, from the description of the format."""


def test_a_file_in_the_other_order_of_bytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.mat"
    path.write_bytes(MATLAB_BYTES)
    assert Mechanism.load(path) == Mechanism(np.eye(2))


def test_matlab_finds_the_matrix_and_its_labels(tmp_path: Path) -> None:
    mechanism = Mechanism(laws(2, 2), ["no", "yes"], [1, 2])
    mechanism.save(tmp_path / "m.mat")
    found = loadmat(tmp_path / "m.mat")
    assert found["P"].tobytes("C") == mechanism.matrix.tobytes()
    assert [str(one[0]) for one in found["inputs"][:, 0]] == ["no", "yes"]
    assert [int(one[0, 0]) for one in found["outputs"][:, 0]] == [1, 2]


def test_pandas_and_arrow_read_and_write_the_same_parquet(tmp_path: Path) -> None:
    import pandas

    path = tmp_path / "m.parquet"
    mechanism = Mechanism(laws(2, 2), ["no", "yes"], ["a", "b"])
    mechanism.save(path)
    frame = pandas.read_parquet(path).set_index("input")
    assert list(frame.index) == ["no", "yes"]
    assert frame.to_numpy().tobytes() == mechanism.matrix.tobytes()
    mechanism.to_pandas().to_parquet(path)  # with its index at the end
    assert_kept(Mechanism.load(path), mechanism)
    assert_kept(Mechanism(path), mechanism)
    # columns that are taken in another order keep their labels; one that was renamed has its new name
    Mechanism(mechanism.matrix, ["no", "yes"], [1, "b"]).save(path)
    table = pyarrow.parquet.read_table(path).select(["input", "b", "1"])
    pyarrow.parquet.write_table(table, path)
    assert Mechanism.load(path).outputs == ("b", 1)
    pyarrow.parquet.write_table(table.rename_columns(["input", "b", "c"]), path)
    assert Mechanism.load(path).outputs == ("b", "c")


FOREIGN_TABLES: list[tuple[dict[str, Any], str]] = [
    ({"a": [0.5, 0.25], "b": [0.5, 0.75]}, "the column of inputs is missing"),
    ({"x": ["u", None], "a": [0.5, 1.0], "b": [0.5, 0.0]}, "input in row 2 is missing"),
    ({"x": ["u", "v"], "a": [0.5, None], "b": [0.5, 0.0]}, "the column 'a' has a missing entry"),
    ({"x": ["u", "v"], "a": ["0.5", "1"], "b": [0.5, 0.0]}, "the column 'a' has"),
    ({"x": ["u", "u"], "a": [1.0, 1.0]}, "occurs twice"),
    ({"x": ["u", "v"]}, "no output column"),
    ({"x": [], "a": []}, "no row"),
    ({"x": ["u"], "a": [[1.0]]}, "the column 'a' has"),
    ({"x": ["u"], "a": [True]}, "truth values"),
]  # fmt: skip


def test_foreign_tables_of_parquet_are_refused_with_what_they_lack(tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    for columns, message in FOREIGN_TABLES:
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        with pytest.raises(FileFormatError, match=f"m.parquet.*{message}"):
            Mechanism.load(path)


def workbook(**sheets: Any) -> Any:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    return book


GOOD: list[list[Any]] = [[None, "a", "b"], ["x", 0.5, 0.5], ["y", 0.25, 0.75]]


@needs_excel
def test_sheets_are_read_by_their_rule(tmp_path: Path) -> None:
    path = tmp_path / "m.xlsx"
    book = workbook(one=GOOD, two=[[None, "u"], ["z", 1]])
    book.save(path)
    with pytest.raises(
        FileFormatError, match="2 sheets that may be the matrix, one and two: name one"
    ):
        Mechanism.load(path)
    assert Mechanism.load(path, name="two").outputs == ("u",)
    book["two"].sheet_state = "hidden"
    book.save(path)
    assert Mechanism.load(path).outputs == ("a", "b")
    assert Mechanism.load(path, name="two").outputs == ("u",)
    (tmp_path / "m.csv").write_text(",a\nx,1\n")
    with pytest.raises(FileFormatError, match="a name chooses among sheets or variables only"):
        Mechanism.load(tmp_path / "m.csv", name="x")


@needs_excel
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [[0.5, 0.5], [0.25, 0.75]],
            "the header is missing|the column of inputs is missing|sums to",
        ),
        ([[None, "a", "b"], ["x", "0.5", 0.5]], "row 2, column 2 holds the text '0.5'"),
        ([[None, "a", "b"], ["x", None, 1]], "row 2, column 2 is empty"),
        ([[None, "a", "b"], ["x", "=1/2", 0.5]], "a formula whose value"),
        ([[None, "a", "b"], ["x", True, 0]], "holds True"),
        ([[None, "a", "b"], ["x", "#DIV/0!", 0]], "#DIV/0!"),
        ([[None, "a", "a"], ["x", 1, 0]], "occurs twice"),
        ([[None]], "no matrix"),
        ([], "no matrix"),
    ],
)
def test_foreign_sheets_are_refused_with_the_cell(tmp_path: Path, rows: Any, message: str) -> None:
    path = tmp_path / "m.xlsx"
    workbook(sheet=rows).save(path)
    with pytest.raises(FileFormatError, match=f"m.xlsx.*({message})"):
        Mechanism.load(path)


@needs_excel
def test_a_date_is_no_label_and_blank_cells_at_the_end_are_left_out(tmp_path: Path) -> None:
    from datetime import date

    rows = GOOD
    path = tmp_path / "m.xlsx"
    workbook(sheet=[[None, date(2020, 1, 1), "b"], ["x", 1, 0]]).save(path)
    with pytest.raises(FileFormatError, match="is a date or a time: make its cell text"):
        Mechanism.load(path)
    book = workbook(sheet=[*([*row, None] for row in rows), [None] * 4])
    book["sheet"]["F9"].number_format = "0.00"
    book.save(path)
    assert Mechanism.load(path).shape == (2, 2)


@needs_excel
def test_no_label_is_a_formula(tmp_path: Path) -> None:
    import openpyxl

    path = tmp_path / "m.xlsx"
    labels = ["=1+1", '=cmd|"/c calc"!A1', "+2", "-3", "@A1"]
    Mechanism(laws(5, 5), labels, labels).save(path)
    sheet = openpyxl.load_workbook(path).active
    for cell in (*sheet[1][1:], *(row[0] for row in sheet.iter_rows(min_row=2))):
        assert cell.data_type == "s"
        assert cell.value in labels
        assert cell.quotePrefix
    whole = Mechanism(laws(2, 2), [10**18 + 1, 5], ["a", "b"])
    whole.save(path)
    # Excel would keep 15 digits of such a number
    assert openpyxl.load_workbook(path).active["A2"].value == str(10**18 + 1)


@needs_excel
@pytest.mark.parametrize("how", ["hidden", "filter"])
def test_hidden_rows_and_columns_of_a_sheet_are_left_out_with_a_warning(
    tmp_path: Path, how: str
) -> None:
    import openpyxl

    path, book = tmp_path / "m.xlsx", openpyxl.Workbook()
    sheet = book.active
    sheet.append([None, "a", "note", "b"])
    for row in (["no", 0.75, 7, 0.25], ["old", 0.5, 7, 0.5], ["yes", 0.25, 7, 0.75]):
        sheet.append(row)
    sheet.row_dimensions[3].hidden = sheet.column_dimensions["C"].hidden = True
    if how == "filter":
        sheet.auto_filter.ref = "A1:D4"
        sheet.auto_filter.add_filter_column(0, ["no", "yes"])
    book.save(path)
    with pytest.warns(LabelWarning, match="left out"):
        found = Mechanism.load(path)
    assert (found.inputs, found.outputs) == (("no", "yes"), ("a", "b"))
    assert found.matrix.tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_the_error_without_openpyxl_names_the_extra(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['openpyxl'] = None\n"
        "from pmlopt import Mechanism\nfrom pmlopt.errors import MissingExtraError\n"
        f"path = {str(tmp_path / 'm.xlsx')!r}\n"
        "for use in (Mechanism([[1.0]]).save, Mechanism.load):\n"
        "    open(path, 'wb').close() if use == Mechanism.load else None\n"
        "    try: use(path)\n"
        "    except MissingExtraError as error: assert 'the extra excel' in str(error)\n"
        "    else: raise AssertionError(use)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_standard_input_is_known_by_how_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = Mechanism(laws(2, 2), ["no", "yes"], ["a", "b"])
    for ending in ENDINGS:
        if ending in (".tsv", ".xlsx" if not HAS_EXCEL else ""):
            continue
        mechanism.save(tmp_path / f"m{ending}")
        content = (tmp_path / f"m{ending}").read_bytes()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert_kept(Mechanism.load("-"), mechanism)


def test_a_table_of_tabs_keeps_numbers_by_their_repr(tmp_path: Path) -> None:
    path = tmp_path / "m.tsv"
    Mechanism([[1 / 3, 2 / 3]], ["a\tb"], ["u", "v"]).save(path)
    assert path.read_text() == f'\tu\tv\n"a\tb"\t{1 / 3!r}\t{2 / 3!r}\n'
    assert math.isclose(Mechanism.load(path).matrix[0, 0], 1 / 3, rel_tol=0)


WRITTEN_BY_R = {
    "write.table(m)": '"a b" "c"\n"no" 0.75 0.25\n"it\'s \\"ill\\"" 0.2 0.8\n',
    'write.table(m, qmethod = "double")': '"a b" "c"\n"no" 0.75 0.25\n"it\'s ""ill""" 0.2 0.8\n',
    'write.table(m, sep = "\\t")': '"a b"\t"c"\n"no"\t0.75\t0.25\n"it\'s \\"ill\\""\t0.2\t0.8\n',
    'write.table(m, sep = "\\t", col.names = NA)':
        '""\t"a b"\t"c"\n"no"\t0.75\t0.25\n"it\'s \\"ill\\""\t0.2\t0.8\n',
    'write.table(m, dec = ",")': '"a b" "c"\n"no" 0,75 0,25\n"it\'s \\"ill\\"" 0,2 0,8\n',
    'write.table(m, sep = ";", dec = ",")':
        '"a b";"c"\n"no";0,75;0,25\n"it\'s \\"ill\\"";0,2;0,8\n',
}  # fmt: skip
"""What R 4.2.2 writes of a matrix with the rows no and it's "ill", by call."""


@pytest.mark.parametrize("call", WRITTEN_BY_R)
def test_tables_of_r_are_read(tmp_path: Path, call: str) -> None:
    path = tmp_path / "m.txt"
    path.write_text(WRITTEN_BY_R[call])
    found = Mechanism.load(path)
    assert (found.inputs, found.outputs) == (("no", 'it\'s "ill"'), ("a b", "c"))
    assert found.matrix.tolist() == [[0.75, 0.25], [0.2, 0.8]]


@pytest.mark.parametrize("text", [
    '"a" "b"\n"no" 0.5 0.5\n"yes" 0.5\n', "a b\nno x y\n", '"a"\n', "", '"x\\" "b"\n"no" 0.5 0.5\n',
])  # fmt: skip
def test_other_text_is_no_table(tmp_path: Path, text: str) -> None:
    (tmp_path / "m.txt").write_text(text)
    with pytest.raises(FileFormatError, match=r"m\.txt"):
        Mechanism.load(tmp_path / "m.txt")


def test_a_table_of_one_output_and_names_without_quotes(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_text('"all"\n"no" 1\n"yes" 1\n')
    assert Mechanism.load(tmp_path / "m.txt").outputs == ("all",)
    (tmp_path / "n.txt").write_text("a b\nno 0.75 0.25\nyes 0.2 0.8\n")
    assert Mechanism.load(tmp_path / "n.txt").inputs == ("no", "yes")


def test_decimals_near_the_middle_of_two_floats_have_17_digits() -> None:
    """Each is read as its float; none of fewer digits is nearer to the middle than a hundredth of a unit."""
    drawn = np.random.default_rng(4).random(20_000) ** 3
    longer = 0
    for value in [*drawn.tolist(), *drawn.round(12).tolist(), 0.0, 1.0, 0.1, 1e-308, 5e-324]:
        text = format_decimal(value)
        assert float(text) == value
        longer += text != repr(value)
        apart = abs(Fraction(text) - Fraction(value)) / Fraction(math.ulp(value))
        assert apart <= Fraction(49, 100) or not 1e-300 < value < 1
    assert 0 < longer < 4_000  # about a fiftieth of those with few digits
