"""The declared order of categories is the order of letters, from frames, files and engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from pmlopt import Chain, Mechanism, Prior, Secret, estimate
from pmlopt.errors import InputError, LabelWarning
from pmlopt.tables import column_counts, cross_counts, state_sequences

narwhals = pytest.importorskip("narwhals")
older = pytest.importorskip("narwhals.stable.v1")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")

SCALE = ["never", "low", "medium", "high"]
"""Declared; `never` does not occur, and the alphabet has another order."""
CELLS = ["high", "high", "low", "medium", "medium", "medium"]
SIDES = ["a", "b", "b", "a", "b", "b"]
"""Beside the cells: `a` has no `low`, so that the pairs alone have the letters in another order."""


def by_pandas() -> Any:
    column = pandas.Categorical(CELLS, categories=SCALE, ordered=True)
    return pandas.DataFrame({"income": column, "side": SIDES})


def by_polars() -> Any:
    return polars.DataFrame(
        {"income": polars.Series(CELLS, dtype=polars.Enum(SCALE)), "side": SIDES}
    )


def by_arrow() -> Any:
    """Two chunks, of which the second one knows more categories."""
    kind = pyarrow.dictionary(pyarrow.int8(), pyarrow.string(), ordered=True)
    parts = [(CELLS[:3], ["low", "high"]), (CELLS[3:], ["low", "medium", "high"])]
    chunks = [
        pyarrow.DictionaryArray.from_arrays(
            pyarrow.array([known.index(cell) for cell in cells], pyarrow.int8()),
            known,
            ordered=True,
        )
        for cells, known in parts
    ]
    return pyarrow.table({"income": pyarrow.chunked_array(chunks, kind), "side": SIDES})


def by_duckdb() -> Any:
    database = duckdb.connect()
    database.register("people", by_pandas().astype(str))
    kind = ", ".join(f"'{one}'" for one in SCALE)
    return database.sql(f"SELECT income::ENUM({kind}) AS income, side FROM people")


FRAMES: dict[str, Callable[[], Any]] = {
    "pandas": by_pandas,
    "polars": by_polars,
    "arrow": by_arrow,
    "duckdb": by_duckdb,
    "lazy polars": lambda: by_polars().lazy(),
    "narwhals": lambda: narwhals.from_native(by_pandas()),
    "narwhals of duckdb": lambda: narwhals.from_native(by_duckdb()),
    "older narwhals": lambda: older.from_native(by_polars()),
    "older narwhals of duckdb": lambda: older.from_native(by_duckdb()),
    "mapping": lambda: {"income": by_pandas()["income"], "side": SIDES},
    "mapping of arrow": lambda: {"income": by_arrow()["income"], "side": SIDES},
}


@pytest.mark.parametrize("kind", FRAMES)
def test_letters_have_the_declared_order(kind: str) -> None:
    frame = FRAMES[kind]()
    assert list(column_counts(frame, "income").items()) == [("low", 1), ("medium", 3), ("high", 2)]
    secret = Secret.from_counts(cross_counts(frame, "side", "income"))
    assert (secret.values, secret.labels) == (("a", "b"), ("low", "medium", "high"))
    assert (secret.joint[0] * 6).round(9).tolist() == [[0, 1, 1], [1, 2, 1]]
    about = Secret.from_counts(cross_counts(frame, "income", "side"))
    assert (about.values, about.labels) == (("low", "medium", "high"), ("a", "b"))


COLUMNS: dict[str, Callable[[], Any]] = {
    "series": lambda: by_pandas()["income"],
    "categorical": lambda: by_pandas()["income"].array,
    "index": lambda: pandas.Index(by_pandas()["income"]),
    "polars": lambda: by_polars()["income"],
    "chunks": lambda: by_arrow()["income"],
    "array": lambda: by_arrow()["income"].chunk(1).take([0, 1, 2]),
    "narwhals": lambda: narwhals.from_native(by_pandas())["income"],
    "older narwhals": lambda: older.from_native(by_polars())["income"],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_samples_have_the_declared_order(kind: str) -> None:
    column = COLUMNS[kind]()
    occurring = [letter for letter in SCALE if letter in set(np.asarray(column).tolist())]
    assert list(Prior.from_samples(column).labels) == occurring
    assert (
        list(
            Secret.from_samples(
                [*"ab"] * (len(column) // 2) + ["a"] * (len(column) % 2), column
            ).labels
        )
        == occurring
    )


def test_tuples_of_several_columns_are_ordered_column_by_column() -> None:
    letters = Prior.from_samples(by_pandas()[["side", "income"]]).labels
    assert letters == (("a", "medium"), ("a", "high"), ("b", "low"), ("b", "medium"), ("b", "high"))


@pytest.mark.parametrize(
    "counts",
    [
        lambda: by_pandas()["income"].cat.remove_unused_categories().value_counts(),
        lambda: by_polars()["income"].value_counts(sort=True),
        lambda: by_polars()["income"].to_arrow().value_counts(),
    ],
)
def test_value_counts_have_the_declared_order(counts: Callable[[], Any]) -> None:
    prior = Prior.from_counts(counts())
    assert (prior.labels, prior.counts) == (("low", "medium", "high"), (1, 3, 2))


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series(pandas.Categorical(CELLS, categories=SCALE)),
        polars.Series(CELLS, dtype=polars.Categorical),
        pyarrow.array(CELLS).dictionary_encode(),
        pandas.Series(CELLS),
    ],
    ids=["pandas", "polars", "arrow", "text"],
)
def test_without_a_declared_order_letters_are_alphabetical(column: Any) -> None:
    assert Prior.from_samples(column).labels == ("high", "low", "medium")
    assert list(column_counts({"income": column}, "income")) == ["high", "low", "medium"]


def test_a_missing_cell_is_the_last_letter_unless_it_is_declared() -> None:
    cells = ["high", None, "low"]
    column = pandas.Categorical(cells, categories=["low", "high"], ordered=True)
    assert list(column_counts({"c": column}, "c", missing="letter")) == ["low", "high", ""]
    assert Prior.from_samples(column, missing="letter").labels == ("low", "high", "")
    declared = pandas.Categorical(["high", "", "low"], categories=["", "low", "high"], ordered=True)
    assert list(column_counts({"c": declared}, "c")) == ["", "low", "high"]


def test_numbers_in_a_declared_order_keep_it() -> None:
    column = pandas.Categorical([10, 9, 8], categories=[9, 10, 8], ordered=True)
    assert list(column_counts(pandas.DataFrame({"c": column}), "c")) == [9, 10, 8]
    assert Prior.from_samples(column).labels == (9, 10, 8)


FILES: dict[str, Callable[[Path], None]] = {
    "pandas.parquet": lambda path: by_pandas().to_parquet(path, row_group_size=2),
    "polars.parquet": lambda path: by_polars().write_parquet(path, row_group_size=2),
    "pandas.feather": lambda path: by_pandas().to_feather(path),
    "polars.arrow": lambda path: by_polars().write_ipc(path),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_hold_the_order_keep_it(tmp_path: Path, name: str) -> None:
    FILES[name](tmp_path / name)
    assert list(column_counts(tmp_path / name, "income")) == ["low", "medium", "high"]


def test_files_that_lose_the_order_are_alphabetical(tmp_path: Path) -> None:
    by_pandas().to_csv(tmp_path / "p.csv", index=False)
    assert list(column_counts(tmp_path / "p.csv", "income")) == ["high", "low", "medium"]
    by_pandas().to_parquet(tmp_path / "p.parquet", use_dictionary=False)
    with pytest.warns(LabelWarning, match="the file does not hold their order"):
        found = column_counts(tmp_path / "p.parquet", "income")
    assert list(found) == ["high", "low", "medium"]


def test_the_files_of_a_folder_have_one_order(tmp_path: Path) -> None:
    def write(name: str, cells: list[str], scale: list[str]) -> None:
        column = pandas.Categorical(cells, categories=scale, ordered=True)
        pandas.DataFrame({"c": column}).to_parquet(tmp_path / name)

    write("1.parquet", ["low"], ["low", "medium"])
    write("2.parquet", ["high", "medium"], ["medium", "high"])
    assert list(column_counts(tmp_path, "c")) == ["low", "medium", "high"]
    write("2.parquet", ["low", "medium"], ["medium", "low"])
    with pytest.raises(InputError, match="the column 'c': parts of a column declare the orders"):
        column_counts(tmp_path, "c")


def test_states_of_streams_have_the_declared_order() -> None:
    people = by_pandas().assign(who=["p", "p", "p", "q", "q", "q"], time=[1, 2, 3, 1, 2, 3])
    sequences = state_sequences(people, "who", "income", "time")
    assert sequences == [["high", "high", "low"], ["medium", "medium", "medium"]]
    assert Chain.from_sequences(sequences, 0.5).labels == ("low", "medium", "high")
    column = people["income"]
    assert Chain.from_sequences([column, column], 0.5).labels == ("low", "medium", "high")


def test_cumulative_sums_follow_the_declared_order() -> None:
    cells = ["low"] * 30 + ["medium"] * 50 + ["high"] * 20
    column = pandas.Categorical(cells, categories=["low", "medium", "high"], ordered=True)
    prior = Prior.from_samples(column)
    found = estimate(
        Mechanism(np.eye(3), prior.labels, prior.labels), released=cells, workload="prefix"
    )
    # nothing was perturbed: the shares of the low, and of the low and medium, themselves
    assert list(found.letters)[:2] == ["<= low", "<= medium"]
    assert np.allclose(found.frequencies[:2], [0.3, 0.8], atol=1e-9)
