"""Folders, frames and engines as others make them: their values, names, empty parts and broken text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
from commands import COUNTING, run

from pmlopt import Mechanism
from pmlopt.errors import FileFormatError, InputError
from pmlopt.releases.rows.applying import apply_columns
from pmlopt.releases.rows.batches import ColumnRelease
from pmlopt.tables import column_counts, counts_by_column, cross_counts, open_table

SAME = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


# ---------------------------------------------------------------- the names of folders

PLACES = ["a/b", "x y", None, "a/b", "N=A", "50%", "é", "a%2Fb", "1:2"]


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    """A folder as pyarrow writes it, of rows whose region is in the names of folders."""
    table = pyarrow.table({"c": ["no", "yes", "no"] * 3, "region": PLACES})
    pyarrow.parquet.write_to_dataset(table, tmp_path / "hive", partition_cols=["region"])
    return tmp_path / "hive"


def test_values_in_the_names_of_folders_are_those_that_engines_read(hive: Path) -> None:
    expected = {"1:2": 1, "50%": 1, "N=A": 1, "a%2Fb": 1, "a/b": 2, "x y": 1, "é": 1}
    by_arrow = pyarrow.dataset.dataset(hive, partitioning="hive").to_table()
    by_polars = pl.scan_parquet(hive / "**/*.parquet", hive_partitioning=True)
    for source in (hive, str(hive / "*" / "*.parquet"), by_arrow, by_polars):
        assert column_counts(source, "region", "drop") == expected
        with pytest.raises(InputError, match="missing"):
            column_counts(source, "region")
        assert column_counts(source, "region", "letter") == {**expected, "": 1}
        assert cross_counts(source, "region", "c", "drop")["N=A", "yes"] == 1


def test_a_missing_name_of_a_folder_is_refused_by_the_commands(hive: Path, tmp_path: Path) -> None:
    assert "the cell of 'region' is missing" in run(*COUNTING, hive, "--column", "region", code=2)
    SAME.save(tmp_path / "same.json")
    run(
        "apply",
        tmp_path / "same.json",
        hive,
        "--column",
        "c",
        "--keep",
        "region",
        "-o",
        tmp_path / "out",
    )
    # the released folder has the same places, which engines read as they read those of the data
    one, other = (
        pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive", exclude_invalid_files=True)
        .to_table().sort_by([("region", "ascending"), ("c", "ascending")]).select(["c", "region"])
        for folder in (hive, tmp_path / "out")
    )  # fmt: skip
    assert one.to_pylist() == other.to_pylist()


def test_a_column_may_be_in_the_files_and_in_the_names_of_their_folders(tmp_path: Path) -> None:
    for region in ("a", "b"):
        write(tmp_path / f"region={region}" / "0.parquet", c=["no", "yes"], region=[region] * 2)
    with open_table(tmp_path) as table:
        assert table.names == ["c", "region"]
    assert column_counts(tmp_path, "region") == {"a": 2, "b": 2}


def test_a_name_of_a_folder_that_is_no_text_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "region=caf%E9" / "0.parquet", c=["no"])
    with pytest.raises(FileFormatError, match=r"'caf%E9' of its folder is .*not UTF-8"):
        column_counts(tmp_path, "region")


# ---------------------------------------------------------------- parts without rows


@pytest.mark.parametrize("kind", [pyarrow.string(), pyarrow.null()])
@pytest.mark.parametrize("place", [0, 1])
def test_a_part_without_rows_is_a_part(tmp_path: Path, kind: Any, place: int) -> None:
    data = tmp_path / "people"
    write(data / f"part-{1 - place}.parquet", c=["no", "yes"])
    write(data / f"part-{place}.parquet", c=pyarrow.array([], kind))
    assert column_counts(data, "c") == {"no": 1, "yes": 1}
    SAME.save(tmp_path / "same.json")
    run(*COUNTING, data, "--column", "c")
    for name, words in {
        "applied": ("apply", tmp_path / "same.json", data, "--column", "c"),
        "released": ("release", data, "--column", "c", "--mechanism", tmp_path / "same.json"),
    }.items():
        run(*words, "-o", tmp_path / name)
        whole = pyarrow.dataset.dataset(
            tmp_path / name, format="parquet", exclude_invalid_files=True
        )
        assert sorted(whole.to_table()["c"].to_pylist()) == ["no", "yes"]
    run("check", tmp_path / "released", code=3)  # the mechanism is a matrix without a certificate


def test_a_folder_without_rows_is_refused_and_has_no_header(tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / f"part-{number}.parquet", c=pyarrow.array([], pyarrow.string()))
    for data in (tmp_path, tmp_path / "part-0.parquet"):
        with pytest.raises(FileFormatError, match=r"has 0 rows: at least one is needed$"):
            column_counts(data, "c")


def test_a_part_in_which_all_cells_are_missing_is_a_part(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", c=["no", "yes"])
    write(tmp_path / "1.parquet", c=pyarrow.nulls(3))
    assert column_counts(tmp_path, "c", "drop") == {"no": 1, "yes": 1}
    assert column_counts(tmp_path, "c", "letter") == {"no": 1, "yes": 1, "": 3}


def test_truth_values_in_one_part_and_numbers_in_another_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", c=[True, False])
    write(tmp_path / "1.parquet", c=[1, 1])
    with pytest.raises(InputError, match=r"is of int64, and in .* of bool"):
        column_counts(tmp_path, "c")


# ---------------------------------------------------------------- text that is not UTF-8


def broken(kind: str = "string") -> pyarrow.Array:
    """Four cells, of which the third is text in Windows-1252."""
    ends = pyarrow.py_buffer(np.array([0, 2, 4, 8, 10], dtype=np.int32))
    held = pyarrow.py_buffer(b"no" + b"no" + b"caf\xe9" + b"no")
    column = pyarrow.Array.from_buffers(pyarrow.string(), 4, [None, ends, held])
    if kind == "dictionary":
        return column.dictionary_encode()
    if kind == "list":
        return pyarrow.ListArray.from_arrays(pyarrow.array([0, 1, 2, 3, 4]), column)
    return pyarrow.StructArray.from_arrays([column], ["part"]) if kind == "struct" else column


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", ["string", "dictionary", "list", "struct"])
def test_text_that_is_not_utf8_is_refused_with_its_column_and_row(
    tmp_path: Path, ending: str, kind: str
) -> None:
    data, table = (
        tmp_path / f"people{ending}",
        pyarrow.table({"c": ["no", "yes"] * 2, "k": broken(kind)}),
    )
    if ending == ".parquet":
        pyarrow.parquet.write_table(table, data)
    else:
        with pyarrow.ipc.new_file(data, table.schema) as sink:
            sink.write_table(table)
    SAME.save(tmp_path / "same.json")
    commands: list[tuple[object, ...]] = [
        ("apply", tmp_path / "same.json", data, "--column", "c", "--keep", "k", "-o", tmp_path / "out.csv"),
        ("apply", tmp_path / "same.json", data, "--column=c", "--keep=k", "-o", tmp_path / "out.parquet"),
        ("apply", tmp_path / "same.json", data, "--column", "c", "--assess", "-o", tmp_path / "out.csv"),
        ("release", data, "--column", "c", "--mechanism", tmp_path / "same.json", "--keep", "k", "-o",
         tmp_path / "out"),
    ]  # fmt: skip
    if kind in ("string", "dictionary"):
        commands += [
            (*COUNTING, data, "--column", "k"),
            (
                "apply",
                tmp_path / "same.json",
                data,
                "--column",
                "k",
                "--drop-all",
                "-o",
                tmp_path / "out.csv",
            ),
        ]
    for words in commands:
        assert "'k'" in (found := run(*words, code=2))
        if kind in ("string", "dictionary"):
            assert "row 3: the cell of 'k' is text that is not UTF-8" in found
        assert not list(tmp_path.glob("out*"))
    assert column_counts(data, "c") == {"no": 2, "yes": 2}  # which does not need the other


def beyond(kind: str) -> pyarrow.Array:
    """Four cells, of which the second and third are at places that the file does not have."""
    ends = pyarrow.py_buffer(np.array([0, 2, 2**30, 8, 10], dtype=np.int32))
    texts = [None, ends, pyarrow.py_buffer(b"no" * 5)]
    if kind == "dictionary":
        codes = pyarrow.py_buffer(np.array([0, 99, 1, 2**30], dtype=np.int32))
        return pyarrow.DictionaryArray.from_buffers(
            pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), 4, [None, codes], broken()
        )
    if kind == "list":
        cells = pyarrow.array(["no"] * 10)
        return pyarrow.Array.from_buffers(
            pyarrow.list_(pyarrow.string()), 4, texts[:2], children=[cells]
        )
    column = pyarrow.Array.from_buffers(getattr(pyarrow, kind)(), 4, texts)
    # in a structure after text that is not UTF-8, too
    return column if kind == "binary" else pyarrow.StructArray.from_arrays([broken(), column], "ab")


@pytest.mark.parametrize("kind", ["string", "binary", "dictionary", "list"])
def test_cells_beyond_the_bytes_of_an_arrow_file_are_refused(tmp_path: Path, kind: str) -> None:
    data, table = tmp_path / "people.arrow", pyarrow.table({"k": beyond(kind), "c": ["no"] * 4})
    with pyarrow.ipc.new_file(data, table.schema) as sink:
        sink.write_table(table)
    for column in ("k", "c"):
        how = ["--column", column, "--epsilon", 1, "--utility", "hamming"]
        assert "people.arrow: cannot be read" in run("design", "--prior", data, *how, code=2)


def test_a_name_of_a_column_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    table = pyarrow.Table.from_arrays(
        [pyarrow.array(["no"])],
        schema=pyarrow.schema([pyarrow.field(b"caf\xe9", pyarrow.string())]),
    )
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    found = run(*COUNTING, tmp_path / "people.parquet", "--column", "c", code=2)
    assert r"the name b'caf\xe9' of a column is text that is not UTF-8" in found


# ---------------------------------------------------------------- collations


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"])
@pytest.mark.parametrize("by_default", [False, True])
def test_letters_that_a_collation_calls_equal_are_apart(collation: str, by_default: bool) -> None:
    connection = duckdb.connect()
    own = "" if by_default else f" COLLATE {collation}"
    connection.execute(f'CREATE TABLE t (c VARCHAR{own}, "the ""d" VARCHAR{own}, n INTEGER)')
    if by_default:
        connection.execute(f"SET default_collation = '{collation}'")
    connection.execute(
        "INSERT INTO t VALUES ('a', 'x', 1), ('A', 'X', 1), ('b', 'x', 2), ('a', 'x', 1), ('á', 'x', 1)"
    )
    relation = connection.table("t")
    expected = {"A": 1, "a": 2, "b": 1, "á": 1}
    assert column_counts(relation, "c") == expected
    assert column_counts(relation.to_arrow_table(), "c") == expected
    assert counts_by_column(relation) == counts_by_column(relation.to_arrow_table())
    assert cross_counts(relation, "c", 'the "d') == cross_counts(
        relation.to_arrow_table(), "c", 'the "d'
    )
    assert cross_counts(relation, "c", "n") == {("A", 1): 1, ("a", 1): 2, ("b", 2): 1, ("á", 1): 1}


# ---------------------------------------------------------------- names that are no text


@pytest.mark.filterwarnings("ignore::pmlopt.errors.CountedTableWarning")  # two rows of numbers
def test_columns_are_found_by_names_of_any_kind() -> None:
    nan = float("nan")
    assert column_counts(pd.DataFrame([[1, 2], [3, 4]]), 0) == {1: 1, 3: 1}  # type: ignore[arg-type]
    assert column_counts(pd.DataFrame([[1, 2], [3, 4]], columns=[7, "c"]), 7) == {1: 1, 3: 1}  # type: ignore[arg-type]
    for other in (("a", "b"), nan, 3, None, pd.Timestamp("2020-01-01")):
        frame = pd.DataFrame([[1, "a"], [2, "b"]], columns=pd.Index([other, "c"], dtype=object))
        assert column_counts(frame, "c") == {"a": 1, "b": 1}
        assert list(counts_by_column(frame, ["c"])["c"]) == ["a", "b"]
    pair = pd.DataFrame({("a", "b"): [1, 2], "c": ["a", "b"]})
    assert column_counts(pair, ("a", "b")) == {1: 1, 2: 1}  # type: ignore[arg-type]


def test_names_of_several_levels_and_columns_of_no_letters_are_refused() -> None:
    levels = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("c", "")]))
    with pytest.raises(InputError, match=r"names of 2 levels, such as \('a', 'x'\)"):
        column_counts(levels, "c")
    for column in ([1 + 2j, 0], np.array([1 + 2j, 0])):
        with pytest.raises(InputError, match="'c'"):
            column_counts(pd.DataFrame({"c": column}), "c")
    twice = pd.DataFrame([[1, 2]], columns=[0, 0])
    with pytest.raises(InputError, match="more than one column of one name"):
        column_counts(twice, 0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"has no column 'd': it has \[0, 1\]"):
        column_counts(pd.DataFrame([[1, 2]]), "d")
    with pytest.raises(InputError, match="'c'"):
        column_counts({"c": ["\ud800"]}, "c")


# ---------------------------------------------------------------- cells that are no letters


OBJECTS = {
    "texts": ["no", "yes", "no"],
    "mixed": [object(), "yes", 3],
    "missing": [None, "yes", "no"],
}


@pytest.mark.parametrize("cells", OBJECTS.values(), ids=OBJECTS)
def test_objects_of_polars_are_refused_where_they_are_read(
    cells: list[Any], tmp_path: Path
) -> None:
    """Arrow has their addresses in memory in place of them."""
    frame = pl.DataFrame({"s": ["no", "yes", "no"], "o": pl.Series(cells, dtype=pl.Object)})
    refused = pytest.raises(InputError, match="'o' \\(Object\\) holds Python objects")
    for data in (frame, frame.lazy()):
        for missing in ("refuse", "drop", "letter"):
            with refused:
                column_counts(data, "o", missing=missing)
        with refused:
            cross_counts(data, "s", "o")
        with refused:
            counts_by_column(data)
        # what is not read may be there
        assert column_counts(data, "s") == {"no": 2, "yes": 1}
    with refused:
        run_release(frame, tmp_path / "kept.parquet", keep=["o"])
    assert not (tmp_path / "kept.parquet").exists()
    run_release(frame, tmp_path / "made.parquet", keep=[])
    assert pyarrow.parquet.read_table(tmp_path / "made.parquet").column_names == ["s"]


def run_release(frame: Any, target: Path, keep: list[str]) -> None:
    with open_table(frame) as table:
        apply_columns(table, [ColumnRelease(SAME, ("s",))], target, keep=keep)


def make_dask_frame(columns: dict[str, list[Any]]) -> Any:
    """A frame of Dask that keeps objects: by default it makes text of them itself."""
    import dask
    import dask.dataframe

    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_pandas(pd.DataFrame(columns), npartitions=1)


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize(
    "cell", [b"a", [1], {"a": 1}, object()], ids=["bytes", "list", "dict", "object"]
)
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pyarrow.table, make_dask_frame])
def test_cells_that_can_be_no_letter_are_not_counted(make: Any, cell: Any) -> None:
    try:
        frame = make({"o": [cell, cell], "s": ["no", "yes"]})
    except pyarrow.ArrowInvalid:
        pytest.skip("Arrow has no such column")
    refused = r"'o'.*(no column of letters|Python objects|no letter)"
    with pytest.raises(InputError, match=refused):
        column_counts(frame, "o")
    with pytest.raises(InputError, match=refused):
        cross_counts(frame, "s", "o")
