"""Files: exact round trips, whole-or-nothing writing, and errors for everything broken."""

from __future__ import annotations

import errno
import io
import os
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from cli.hostile import ABOUT, write
from cli.hostile import mechanism as told
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import MODEST, mechanisms

from pmlopt import PML, ExpectedLoss, design
from pmlopt.core.files import disk
from pmlopt.core.files.letter_files import read_letters
from pmlopt.core.matrices.formats import read_matrix
from pmlopt.core.numbers.arrays import FloatArray, parse_labels
from pmlopt.data.mechanism import Mechanism
from pmlopt.errors import FileFormatError, InputError, PmloptError

ENDINGS = [".csv", ".json", ".npz"]
MATRIX = np.array([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 - 2 / 3]])
OUTPUTS = ("low", "mid", "high")


def labelled() -> Mechanism:
    return Mechanism(MATRIX, ["no", "yes"], OUTPUTS)


def saved(folder: Path, ending: str) -> Path:
    path = folder / f"mechanism{ending}"
    labelled().save(path)
    return path


def assert_same(left: Mechanism, right: Mechanism) -> None:
    assert left.matrix.tobytes() == right.matrix.tobytes()
    assert left.matrix.shape == right.matrix.shape
    assert (left.inputs, left.outputs) == (right.inputs, right.outputs)
    assert [type(v) for v in left.inputs] == [type(v) for v in right.inputs]
    assert [type(v) for v in left.outputs] == [type(v) for v in right.outputs]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


KEPT: list[tuple[Any, Any]] = [
    ("no", "yes"), (0, 1), (-5, 12), (0.5, 1e-30), (0.1, -0.25), ("01", "2"), ("1e3", "x"), ("+1", "-1"),
    (" 1", "2"), ("1_000", "2"), ("comma, here", 'quote " here'), ("two\nlines", "tab\there"),
    ("return\rhere", "x"), ("", " "), ("é", "ß"), (("no", "f"), ("yes", "f")),
    (("quote ' here", 'and " here'), ("comma, here", "two\nlines")),
    (("1", 2, 0.5, True), (-1, "x", 1e-30, False)), (((0, 1), "a"), ((0, ("deep", 2)), "a")),
    ((), ("one",)), ("(1, 2", "x)"),
]  # fmt: skip
"""Labels that every kind of file gives back."""


@pytest.mark.parametrize("ending", ENDINGS)
def test_save_and_load_give_back_every_bit(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"m{ending}"
    for labels in KEPT:
        mechanism = Mechanism([[0.1, 0.9], [1 / 3, 1 - 1 / 3]], labels, labels)
        mechanism.save(path)
        assert_same(Mechanism.load(path), mechanism)
    capitals = str(tmp_path / f"M{ending.upper()}")
    labelled().save(capitals)
    assert_same(Mechanism.load(capitals), labelled())


SCALARS = st.text(max_size=3) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LABELS = st.recursive(
    SCALARS | st.booleans(), lambda parts: st.lists(parts, max_size=3).map(tuple), max_leaves=6
)


@pytest.mark.parametrize("ending", ENDINGS)
@given(labels=st.lists(LABELS, min_size=2, max_size=2, unique=True), matrix=mechanisms(2))
@example(labels=[1, 2.5], matrix=np.eye(2))
@example(labels=[1, "1"], matrix=np.eye(2))
@example(labels=["nan", "inf"], matrix=np.eye(2))
@example(labels=[True, False], matrix=np.eye(2))
@example(labels=["(1, 2)", "(3, 4)"], matrix=np.eye(2))
@example(labels=[(1, "a"), "b"], matrix=np.eye(2))
@MODEST
def test_labels_come_back_as_they_were_or_nothing_is_written(
    tmp_path_factory: pytest.TempPathFactory, ending: str, labels: list[Any], matrix: FloatArray
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    mechanism = Mechanism(matrix, labels)
    try:
        mechanism.save(folder / f"m{ending}")
    except FileFormatError:
        assert ending == ".csv"
        assert not all(isinstance(label, tuple) for label in labels)
        assert names_in(folder) == []
    else:
        # a CSV file cannot state that nobody named the outputs: they are y0, y1, ... in it
        written = mechanism.with_named_outputs() if ending == ".csv" else mechanism
        assert_same(Mechanism.load(folder / f"m{ending}"), written)
        assert repr(Mechanism.load(folder / f"m{ending}").inputs) == repr(
            tuple(labels)
        )  # tells 1 from True


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("labels", [[(1, None), (3, 4)], [(float("inf"),), (1,)]])
def test_labels_that_no_file_holds_are_refused(
    tmp_path: Path, ending: str, labels: list[Any]
) -> None:
    with pytest.raises(FileFormatError):
        Mechanism(np.eye(2), labels).save(tmp_path / f"m{ending}")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    "text", ["(1, 2", "()(", "(1,2)", "(" * 10_000 + ")" * 10_000, "(f(), 1)", "(1 + 2j,)"]
)
def test_text_that_is_no_tuple_stays_text(text: str) -> None:
    assert parse_labels([text, text]) == (text, text)


def test_columns_of_letters_are_tuples_where_the_last_one_is_named_as_a_number(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("smokes,age,count\nno,20,3\nyes,20,4\nno,30,5\n")
    assert read_letters(path) == ((("no", 20), ("yes", 20), ("no", 30)), [3, 4, 5])
    path.write_text("smokes,age,weight\nno,20,3\nyes,20,4\n")
    with pytest.raises(FileFormatError, match="3 column"):
        read_letters(path)


def test_csv_has_numbers_as_python_writes_them_and_marks_blank_lines_and_returns(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbf,1,2\r\n\r\n0.5,1.0,0.0\r\n1.5,0.0,1.0\r\n")
    mechanism = Mechanism.load(path)
    assert (mechanism.inputs, mechanism.outputs) == ((0.5, 1.5), (1, 2))


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_metadata_is_kept_or_refused(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"m{ending}"
    for metadata in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises(PmloptError):
            labelled().save(path, metadata)
    assert names_in(tmp_path) == []
    labelled().save(path, {"epsilon": np.float64(0.1), "levels": np.array([1, 2]), "note": "é"})
    assert read_matrix(path).metadata == {"epsilon": 0.1, "levels": [1, 2], "note": "é"}


class FullDisk(io.BufferedWriter):
    """A stream that takes half of what it is given, and then the disk is full."""

    def write(self, data: Any) -> int:
        super().write(data[: len(data) // 2])
        self.flush()
        raise OSError(errno.ENOSPC, "No space left on device")


def half_open(handle: int, mode: str) -> FullDisk:
    return FullDisk(io.FileIO(handle, "w"))


def interrupted(*args: Any) -> NoReturn:
    raise KeyboardInterrupt


def not_allowed(*args: Any) -> NoReturn:
    raise OSError(errno.EACCES, "Permission denied")


FAILURES = [
    (os, "fdopen", half_open, FileFormatError),
    (Path, "replace", not_allowed, FileFormatError),
    (Path, "replace", interrupted, KeyboardInterrupt),
    (Path, "chmod", not_allowed, FileFormatError),
]


@pytest.mark.parametrize(("owner", "name", "failing", "error"), FAILURES)
def test_a_failed_save_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str,
    failing: Callable[..., Any], error: type[BaseException],
) -> None:  # fmt: skip
    whole = {path: path.read_bytes() for path in (saved(tmp_path, ending) for ending in ENDINGS)}
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing)
        # the permissions of a new file are set when it is made, and only those of an old one are carried over
        new = [] if name == "chmod" else [tmp_path / f"new{ending}" for ending in ENDINGS]
        for target in (*whole, *new):
            with pytest.raises(error):
                Mechanism([[1.0]]).save(target)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == whole


@pytest.mark.parametrize("ending", ENDINGS)
def test_saving_or_loading_where_no_file_can_be_is_told(tmp_path: Path, ending: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / f"folder{ending}").mkdir()
    for name in (f"missing/m{ending}", f"file/m{ending}", f"folder{ending}"):
        with pytest.raises(FileFormatError, match=f"{name}.*cannot be written"):
            labelled().save(tmp_path / name)
        with pytest.raises(FileFormatError, match=f"{name}.*cannot be read"):
            Mechanism.load(tmp_path / name)
    assert names_in(tmp_path) == ["file", f"folder{ending}"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_saving_to_a_read_only_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(FileFormatError, match="Permission denied"):
        labelled().save(folder / "m.csv")
    assert names_in(folder) == []


@pytest.mark.parametrize("name", ["m.dat", "m", "m.csv.gz", ".csv"])
def test_other_endings_are_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileFormatError, match=r"\.csv, \.json, \.npz"):
        labelled().save(tmp_path / name)
    with pytest.raises(FileFormatError, match=r"\.csv, \.json, \.npz"):
        Mechanism.load(tmp_path / name)
    assert names_in(tmp_path) == []


CSV = b",low,high\nno,0.25,0.75\nyes,0.5,0.5\n"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_cut_file_is_told_at_every_byte(tmp_path: Path, ending: str) -> None:
    path = saved(tmp_path, ending)
    content = CSV if ending == ".csv" else path.read_bytes().rstrip(b"\n")
    row = CSV.index(b"\nyes")  # a cut at the end of a row cannot be seen
    for size in range(0, len(content.rstrip()), 1 if ending == ".csv" else 7):
        if ending != ".csv" or size not in (row, row + 1):
            path.write_bytes(content[:size])
            with pytest.raises(FileFormatError, match="mechanism"):
                Mechanism.load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_changed_byte_is_no_crash(tmp_path: Path, ending: str) -> None:
    path = saved(tmp_path, ending)
    content = path.read_bytes()
    crashes = []
    for place in range(0, len(content), 2 if ending == ".npz" else 1):
        mask = (0x01, 0x08, 0xFF)[place % 3]
        path.write_bytes(content[:place] + bytes([content[place] ^ mask]) + content[place + 1 :])
        try:
            Mechanism.load(path)
        except InputError:
            continue
        except Exception as crash:
            crashes.append((place, repr(crash)))
    assert crashes == []


def npz(compressed: bool = False, **arrays: Any) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(stream, **arrays)
    return stream.getvalue()


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def promising(shape: tuple[int, ...]) -> bytes:
    """The header of an array of this shape, and no entries."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    return stream.getvalue()


NAN, EYE = float("nan"), np.eye(3)
BROKEN: dict[str, list[tuple[str | bytes, str]]] = {
    ".csv": [
        ("", "0 row"),
        (",a,b\n", "1 row"),
        ("x\ny\n", "no output column"),
        (",a,b\nx,0.5,half\n", "row 2: 'half'"),
        (",a,b\nx,0.5,\n", "row 2: ''"),
        (",a,b\nx,0.5,0.5\ny,1.0\n", "row 3 has 2 cells"),
        (",a,b\nx,0.5,0.5,0\n", "row 2 has 4 cells"),
        (',a,b\n"x,0.5,0.5\n', "not a whole CSV"),
        (',a,b\n"x"y,0.5,0.5\n', "not a whole CSV"),
        (b"\xff\xfe,\x00", "UTF-8"),
        (",a,a\nx,0.5,0.5\n", "occurs twice"),
        (",a,b\nx,0.5,0.5\nx,0.5,0.5\n", "occurs twice"),
        *((f",a,b\nx,0.5,{cell}\n", said) for cell, said in
          [("nan", "finite"), ("inf", "finite"), ("-0.5", "negative"), ("0.7", "sums to 1.2")]),
    ],
    ".json": [
        ("", "not a whole JSON"),
        (told()[:60], "not a whole JSON"),
        ("[" * 200_000, "not a whole JSON"),
        ('{"a":' * 100_000, "not a whole JSON"),
        (b"\xff\xfe{", "not a whole JSON"),
        (told().replace("0.5", "5" * 5000, 1), "not a whole JSON"),
        (told(matrix=[[NAN, 0.5, 0.5]] * 3), "not a whole JSON"),
        (told(outputs=[NAN, NAN, NAN]), "not a whole JSON"),
        (told().replace('"metadata": {}', '"metadata": {"a": 1, "a": 2}'), "the key 'a' twice"),
        (told(version=2), "has version 2"),
        (told(version=None), "has version None"),
        (told(format="other"), "has format 'other'"),
        ("[1, 2]", "format"),
        *((told(**{key: None}), f"lacks the key '{key}'")
          for key in ("matrix", "inputs", "outputs", "unnamed", "metadata")),
        (told(inputs="abc"), r"inputs is 'abc': it must be a list"),
        (told(inputs=["a", "a", "b"]), "occurs twice"),
        (told(inputs=["a", "b"]), "2 labels for 3"),
        (told(inputs=[{}, {}, {}]), r"inputs\[0\] is {}"),
        (told(unnamed=["inputs"]), "they are not unnamed"),
        (told(unnamed=["rows"]), r"unnamed\[0\] is 'rows'"),
        (told(unnamed="inputs"), "unnamed is 'inputs'"),
        (told(metadata=[]), r"metadata is \[\]: it must be a table"),
        (told(matrix="eye"), "matrix is 'eye': it must be a list"),
        (told(matrix=[]), "at least one entry"),
        (told(matrix=[["a"] * 3] * 3), r"matrix\[0\]\[0\] is 'a'"),
        (told(matrix=[[True, False, False]] * 3), r"matrix\[0\]\[0\] is True"),
        (told().replace("[[0.5", "[" * 400 + "0.5"), r"whole JSON"),
        (told(matrix=[[10**400, 0, 0]] * 3), r"matrix\[0\]\[0\]"),
        (told(matrix=[[-0.5, 1, 0.5]] * 3), r"matrix\[0\]\[0\] is -0.5"),
        (told(matrix=[[0.5, 0.5, 0.5]] * 3), "sums to 1.5"),
        (npz(matrix=EYE, about=ABOUT), "not a whole JSON"),
    ],
    ".npz": [
        (b"", "not a whole mechanism"),
        (b"no archive", "not a whole mechanism"),
        (told(), "not a whole mechanism"),
        (npz(matrix=EYE, about=ABOUT)[:-30], "not a whole mechanism"),
        (npz(matrix=np.array([[object()]]), about=ABOUT), "not a whole mechanism"),
        (npz(matrix=EYE, about=np.array([{}])), "not a whole mechanism"),
        (npz(matrix=EYE), "not a whole mechanism"),
        (npz(about=ABOUT), "not a whole mechanism"),
        (npz(matrix=EYE, about=ABOUT[:20]), "not a whole JSON"),
        (npz(matrix=EYE, about=np.ones(3)), "not a whole JSON"),
        (npz(matrix=np.eye(4), about=ABOUT), "3 labels for 4"),
        (promising((2, 2)), "not a whole mechanism"),
        (zipped(matrix=b"text", about=b"text"), "not a whole mechanism"),
        (zipped(matrix=promising((10**8, 10**7)), about=b""), "not a whole mechanism"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_broken_files_are_told_with_their_place(tmp_path: Path, ending: str) -> None:
    for content, message in BROKEN[ending]:
        path = write(tmp_path, f"m{ending}", content)
        with pytest.raises(FileFormatError, match=f"(?s)m{ending}.*{message}"):
            Mechanism.load(path)


def test_an_archive_that_expands_to_far_more_than_it_has_is_refused(tmp_path: Path) -> None:
    content = npz(True, matrix=np.zeros((3000, 3000)), about=ABOUT)
    path = write(tmp_path, "m.npz", content)
    with pytest.raises(FileFormatError, match=r"(?s)m\.npz.*MAX_EXPANDED_ENTRIES"):
        Mechanism.load(path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_overwriting_keeps_permissions_and_link_and_leaves_nothing_else(
    tmp_path: Path, ending: str
) -> None:
    real, link = saved(tmp_path, ending), tmp_path / f"link{ending}"
    real.chmod(0o600)
    link.symlink_to(real)
    other = Mechanism([[1.0]], ["a"], ["b"])
    other.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert_same(Mechanism.load(real), other)
    assert names_in(tmp_path) == [link.name, real.name]


@pytest.mark.parametrize(
    "path", [None, 3, object(), ["a.csv"], {}], ids=lambda path: type(path).__name__
)
def test_what_is_no_path_is_refused(path: Any) -> None:
    program = design([0.5, 0.5], PML(0.2), ExpectedLoss([[0, 1], [1, 0]]))
    for use in (Mechanism.load, Mechanism(np.eye(2)).save, program.write_mps, disk.check_target):
        with pytest.raises(FileFormatError):
            use(path)


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done = tmp_path / "file.csv", []
    kept = os.fsync

    def synchronised(handle: int) -> None:
        done.append(("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file", path.exists()))
        kept(handle)

    monkeypatch.setattr(os, "fsync", synchronised)
    disk.atomic_write(path, b"letter,count")
    assert done == [("file", False), ("folder", True)]


def test_a_file_has_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    (tmp_path / "link.csv").symlink_to(path)
    for name in ("file.csv", "link.csv", "file.csv"):
        with (
            disk.exclusive_lock(path),
            pytest.raises(InputError, match="another process is writing it"),
            disk.exclusive_lock(tmp_path / name, wait=0, error=InputError),
        ):
            pass
    assert not path.with_name("file.csv.lock").exists()
    with (
        pytest.raises(FileFormatError, match="cannot be written"),
        disk.exclusive_lock(tmp_path / "no" / "file.csv"),
    ):
        pass
