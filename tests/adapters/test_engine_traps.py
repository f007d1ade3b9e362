"""What engines do with a draw inside of a query, as the table of docs/engines.md states it.

Each test ends when its engine does otherwise: then the table changes. No test is wrong by chance but with a
probability below 1e-100, by Hoeffding's inequality for the shares.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

ROWS = 20_000


@pytest.fixture
def duck() -> Iterator[Any]:
    """What asks DuckDB, which has a table with many rows."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE people AS SELECT i FROM range({ROWS}) t(i)")
        yield lambda text: connection.execute(text).fetchall()


@pytest.fixture
def lite() -> Iterator[Any]:
    """What asks SQLite, which has a table with many rows."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE people (i INTEGER)")
    connection.executemany("INSERT INTO people VALUES (?)", [(k,) for k in range(ROWS)])
    yield lambda text: connection.execute(text).fetchall()
    connection.close()


def test_duckdb_reads_yes_and_no_as_truth_values(duck: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\nyes\nno\n")
    assert duck(f"SELECT a FROM '{tmp_path}/a.csv'") == [(True,), (False,)]
    text = duck(f"SELECT a FROM read_csv('{tmp_path}/a.csv', all_varchar = true)")
    assert text == [("yes",), ("no",)]


def test_duckdb_sorts_an_enum_by_level_and_compares_it_with_text_by_letter(duck: Any) -> None:
    duck("CREATE TYPE lvl AS ENUM ('low', 'mid', 'high')")
    duck("CREATE TABLE e AS SELECT unnest(['high', 'low', 'mid'])::lvl AS l")
    assert duck("SELECT l FROM e ORDER BY l") == [("low",), ("mid",), ("high",)]
    assert duck("SELECT l FROM e WHERE l > 'low'") == [("mid",)]
    assert sorted(duck("SELECT l FROM e WHERE l > 'low'::lvl")) == [("high",), ("mid",)]


def test_duckdb_takes_a_condition_that_is_written_twice_once(duck: Any) -> None:
    (kept,) = duck("SELECT count(*) FROM people WHERE random() < 0.5 AND random() < 0.5")[0]
    assert abs(kept / ROWS - 0.5) < 0.1  # independent draws keep a quarter


def test_duckdb_draws_once_for_each_branch_of_a_simple_case(duck: Any) -> None:
    query = (
        "SELECT avg(CASE (random() < 0.5)::INT WHEN 0 THEN 1 WHEN 1 THEN 1 ELSE 0 END) FROM people"
    )
    assert abs(duck(query)[0][0] - 0.75) < 0.1  # one draw is always in a branch


@pytest.mark.parametrize("engine", ["duck", "lite"])
def test_a_query_after_with_draws_once_and_a_view_each_time(
    engine: str, request: pytest.FixtureRequest
) -> None:
    ask = request.getfixturevalue(engine)
    same = "SELECT count(*) FROM {0} a JOIN {0} b USING (i) WHERE a.r = b.r"
    drawn = "SELECT i, random() AS r FROM people"
    assert ask(f"WITH d AS ({drawn}) {same.format('d')}") == [(ROWS,)]
    ask(f"CREATE VIEW v AS {drawn}")
    assert ask(same.format("v"))[0][0] < ROWS / 10


@pytest.mark.parametrize("engine", ["duck", "lite"])
def test_order_by_random_sorts_a_column_of_the_same_expression(
    engine: str, request: pytest.FixtureRequest
) -> None:
    ask = request.getfixturevalue(engine)
    drawn = [one for (one,) in ask("SELECT random() AS r FROM people ORDER BY random()")]
    assert drawn == sorted(drawn)
    assert len(drawn) == ROWS


def test_sqlite_selects_by_one_draw_and_shows_another(lite: Any) -> None:
    drawn = "(SELECT abs(random()) % 2 AS r FROM people)"
    shown = [one for (one,) in lite(f"SELECT r FROM {drawn} WHERE r = 1")]
    assert 0.4 < np.mean(shown) < 0.6
    lite(f"CREATE TABLE released AS SELECT r FROM {drawn}")
    assert set(lite("SELECT r FROM released WHERE r = 1")) == {(1,)}


def test_a_hive_folder_has_three_types_in_three_engines(duck: Any, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    for code in ("01", "2"):
        (tmp_path / f"code={code}").mkdir()
        pa.parquet.write_table(pa.table({"x": [1]}), tmp_path / f"code={code}" / "a.parquet")
    found = duck(
        f"SELECT code FROM read_parquet('{tmp_path}/*/*.parquet', hive_partitioning = true)"
    )
    assert sorted(found) == [("01",), ("2",)]
    read = polars.scan_parquet(tmp_path, hive_partitioning=True).collect()["code"]
    assert (str(read.dtype), read.to_list()) == ("Int64", [1, 2])
    arrow = pa.dataset.dataset(tmp_path, partitioning="hive").to_table()["code"]
    assert (str(arrow.type), arrow.to_pylist()) == ("int32", [1, 2])


def test_dask_takes_two_draws_by_one_function_as_one_and_a_seed_for_each_partition() -> None:
    pandas, dask = pytest.importorskip("pandas"), pytest.importorskip("dask")
    dataframe = pytest.importorskip("dask.dataframe")

    def draw(part: Any, seed: int | None = None) -> Any:
        return part.assign(y=np.random.default_rng(seed).random(len(part)))

    frame = dataframe.from_pandas(pandas.DataFrame({"x": range(400)}), npartitions=4)
    with dask.config.set(scheduler="synchronous"):
        one, other = dask.compute(frame.map_partitions(draw), frame.map_partitions(draw))
        seeded = frame.map_partitions(draw, seed=1).compute()["y"].to_numpy().reshape(4, -1)
    assert (one["y"] == other["y"]).all()
    assert (seeded == seeded[0]).all()
