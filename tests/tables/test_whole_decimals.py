"""Whole numbers that databases have as decimals or in 128 bits are letters like all whole numbers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pmlopt import Mechanism, Prior
from pmlopt.cli import main
from pmlopt.errors import FileFormatError, InputError
from pmlopt.tables import column_counts, cross_counts

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
duckdb = pytest.importorskip("duckdb")

LARGEST = 2**127 - 1


def by_duckdb(kind: str) -> Any:
    return duckdb.connect().sql(
        f"SELECT x::{kind} AS x, 1 AS y FROM (VALUES (3), (2), (3)) AS t(x)"
    )


def by_polars(kind: Any) -> Any:
    return polars.DataFrame({"x": polars.Series([3, 2, 3]).cast(kind), "y": [1, 1, 1]})


TABLES = {
    "DECIMAL(10,2)": by_duckdb("DECIMAL(10,2)"),
    "HUGEINT": by_duckdb("HUGEINT"),
    "UHUGEINT": by_duckdb("UHUGEINT"),
    "Decimal": by_polars(polars.Decimal(10, 2)),
    "Int128": by_polars(polars.Int128),
    "lazy Int128": by_polars(polars.Int128).lazy(),
    "Arrow": pyarrow.table(
        {"x": [Decimal("3.00"), Decimal("2.00"), Decimal("3.00")], "y": [1] * 3}
    ),
    "lists": {"x": [Decimal("3.00"), Decimal("2.00"), Decimal("3.00")], "y": [1] * 3},
}


@pytest.mark.parametrize("kind", TABLES)
def test_they_are_counted_as_integers(kind: str) -> None:
    found = column_counts(TABLES[kind], "x")
    assert list(found.items()) == [(2, 1), (3, 2)]
    assert {type(label) for label in found} == {int}
    assert cross_counts(TABLES[kind], "x", "y") == {(2, 1): 1, (3, 1): 2}


@pytest.mark.parametrize(
    "column",
    [
        polars.Series([3, 2]).cast(polars.Decimal(10, 2)),
        polars.Series([3, 2], dtype=polars.Int128),
        pyarrow.array([Decimal("3.00"), Decimal("2.00")]),
        [Decimal(3), Decimal("2.0")],
    ],
)
def test_a_mechanism_knows_them(column: Any) -> None:
    assert Mechanism([[1, 0], [0, 1]], [2, 3], [2, 3]).sample(column).tolist() == [3, 2]


def test_sums_of_an_engine_are_counts() -> None:
    rows = duckdb.connect().sql(
        "SELECT x, sum(n) AS n FROM (VALUES (1, 5), (2, 7)) AS t(x, n) GROUP BY x"
    )
    assert rows.types[1] == "HUGEINT"
    prior = Prior.from_counts(rows)
    assert prior.counts is not None  # in the order of the engine, which is any
    assert dict(zip(prior.labels, prior.counts, strict=True)) == {1: 5, 2: 7}


def test_the_largest_ones_keep_all_of_their_digits() -> None:
    frame = polars.DataFrame({"x": polars.Series([LARGEST, -LARGEST], dtype=polars.Int128)})
    assert column_counts(frame, "x") == {-LARGEST: 1, LARGEST: 1}
    rows = duckdb.connect().sql(f"SELECT {LARGEST}::HUGEINT AS x")
    assert column_counts(rows, "x") == {LARGEST: 1}


def test_commands_match_them_with_the_letters_of_a_matrix(tmp_path: Path) -> None:
    parquet.write_table(TABLES["Arrow"], tmp_path / "people.parquet")
    Mechanism([[1, 0], [0, 1]], [2, 3], [2, 3]).save(tmp_path / "m.csv")
    line = f"apply {tmp_path}/m.csv {tmp_path}/people.parquet --column x --drop-all -o {tmp_path}/o.csv"
    result = CliRunner().invoke(main, [*line.split(), "--keep-order"])
    assert (result.exit_code, (tmp_path / "o.csv").read_text().split()) == (0, ["x", "3", "2", "3"])


def test_a_parquet_file_with_integers_of_128_bits_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    by_polars(polars.Int128).write_parquet(path)
    with pytest.raises(FileFormatError, match="write it again with that column as text"):
        column_counts(path, "x")


def test_times_that_differ_by_their_zone_are_refused_and_not_joined() -> None:
    zones = "('12:00:00+01'::TIMETZ), ('12:00:00+02'::TIMETZ)"
    rows = duckdb.connect().sql(f"SELECT x, 1 AS y FROM (VALUES {zones}) AS t(x)")
    for read in (lambda: column_counts(rows, "x"), lambda: cross_counts(rows, "y", "x")):
        with pytest.raises(InputError, match="cast it to text"):
            read()
    assert column_counts(rows, "y") == {1: 2}
    assert column_counts(rows.project("x::VARCHAR AS x"), "x") == {
        "12:00:00+01": 1,
        "12:00:00+02": 1,
    }


def test_a_result_that_was_not_fetched_is_refused_in_words_and_stays_whole() -> None:
    connection = duckdb.connect()
    rows = connection.sql("SELECT i % 2 AS x FROM range(4) AS t(i)")
    pending = connection.execute("SELECT i FROM range(3) AS t(i)")
    assert pending.fetchone() == (0,)
    for read in (lambda: column_counts(rows, "x"), lambda: Prior.from_counts(rows)):
        with pytest.raises(InputError, match=r"computed by duckdb: .*unfinished result"):
            read()
    assert pending.fetchall() == [(1,), (2,)]
    assert column_counts(rows, "x") == {0: 2, 1: 2}
