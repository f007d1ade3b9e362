"""Releases inside DuckDB, Polars and Dask: the same kernel, no draw shared, none done twice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import duckdb
import numpy as np
import pandas
import polars
import pytest

import pmlopt.adapters.expressions  # noqa: F401 -- registers the namespace
from pmlopt import Mechanism, Prior, estimate
from pmlopt.adapters import dask as on_dask
from pmlopt.adapters import duckdb as on_duckdb
from pmlopt.errors import InputError, MechanismError
from pmlopt.tables import column_counts, counts_by_column, cross_counts

pytestmark = [
    # narwhals 2.29 announces a package of its own for Dask, which is not published yet
    pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore:The inplace keyword in DataFrame:Warning"
    ),  # Dask's own writing
]

FLIP = Mechanism([[0.0, 1.0], [1.0, 0.0]], ["no", "yes"], ["no", "yes"])
COIN = Mechanism([[0.5, 0.5], [0.5, 0.5]], ["no", "yes"], ["no", "yes"])
RESPONSE = Mechanism([[0.75, 0.25], [0.125, 0.875]], ["no", "yes"], ["no", "yes"])
ROWS = 40_000


@pytest.fixture
def people() -> pandas.DataFrame:
    ids = np.arange(ROWS)
    return pandas.DataFrame({"id": ids, "smokes": np.where(ids % 4 == 0, "yes", "no")})


def connected(people: pandas.DataFrame, **functions: Mechanism) -> Any:
    """A connection of DuckDB with the people, and mechanisms as functions."""
    connection = duckdb.connect()
    connection.register("people", people)
    for name, mechanism in functions.items():
        on_duckdb.register(connection, name, mechanism)
    return connection


def in_duckdb(people: pandas.DataFrame, mechanism: Mechanism) -> Any:
    connection = connected(people, release=mechanism)
    return connection.sql("SELECT id, release(smokes) AS smokes FROM people ORDER BY id").df()


def in_polars(people: pandas.DataFrame, mechanism: Mechanism) -> Any:
    lazy = polars.from_pandas(people).lazy()
    released = lazy.with_columns(polars.col("smokes").pmlopt.release(mechanism))
    return released.collect(engine="streaming").to_pandas()


def in_dask(people: pandas.DataFrame, mechanism: Mechanism) -> Any:
    frame = dask.dataframe.from_pandas(people, npartitions=5)
    released = on_dask.release(frame, {"smokes": mechanism}, keep=["id"]).compute()
    return released.sort_values("id").reset_index(drop=True)


ENGINES = pytest.mark.parametrize("engine", [in_duckdb, in_polars, in_dask])


@ENGINES
def test_rows_are_released_beside_their_cells_with_the_law_of_the_mechanism(
    engine: Any, people: pandas.DataFrame
) -> None:
    released = engine(people, FLIP)
    assert released["id"].tolist() == people["id"].tolist()
    assert released["smokes"].tolist() == people["smokes"].map({"no": "yes", "yes": "no"}).tolist()
    released = engine(people, RESPONSE)
    for letter, row in zip(RESPONSE.inputs, RESPONSE.matrix, strict=True):
        own = released[(people["smokes"] == letter).to_numpy()]
        found, rows = int((own["smokes"] == "yes").sum()), len(own)
        assert abs(found - rows * row[1]) < 6 * np.sqrt(
            rows * row[1] * row[0]
        )  # falsely once in 5e8 times
    people.loc[7, "smokes"] = "maybe"
    with pytest.raises(Exception, match="'maybe' is not an input"):
        engine(people, FLIP)


@pytest.mark.parametrize("missing", ["drop", "letter"])
def test_engines_count_what_the_frame_counts(people: pandas.DataFrame, missing: Any) -> None:
    people["group"] = people["id"] % 3
    connection = connected(people)
    expected = {name: column_counts(people, name) for name in ("smokes", "group")}
    assert counts_by_column(connection.table("people"), ["smokes", "group"]) == expected
    assert counts_by_column(people[["smokes", "group"]]) == expected
    people.loc[::10, "smokes"] = None
    lazy = polars.from_pandas(people).lazy()
    frames = [
        connected(people).table("people"),
        lazy,
        dask.dataframe.from_pandas(people, npartitions=3),
    ]
    one = column_counts(people, "smokes", missing=missing)
    two = cross_counts(people, "group", "smokes", missing=missing)
    assert sum(one.values()) == (ROWS if missing == "letter" else ROWS - ROWS // 10)
    for frame in frames:
        assert column_counts(frame, "smokes", missing=missing) == one
        assert cross_counts(frame, "group", "smokes", missing=missing) == two
        with pytest.raises(InputError, match="a cell of 'smokes' is missing"):
            column_counts(frame, "smokes")
        with pytest.raises(InputError, match="no column 'drinks'"):
            column_counts(frame, "drinks")


def test_an_estimate_is_made_where_the_rows_are_and_each_use_draws_anew(
    people: pandas.DataFrame,
) -> None:
    connection = connected(people, release=RESPONSE, coin=COIN)
    connection.execute("CREATE TABLE released AS SELECT release(smokes) AS smokes FROM people")
    found = estimate(RESPONSE, column_counts(connection.table("released"), "smokes"))
    truth = Prior.from_counts(column_counts(people, "smokes"))
    # the share is off by sqrt(.25 * .75 / n) / .625 = .0035 at most; six times that falsely once in 5e8 times
    assert abs(found.frequencies[1] - truth.probabilities[1]) < 6 * 0.0035
    query = "SELECT count(*) FILTER (coin(smokes) = coin(smokes)) FROM people"
    ((agree,),) = connection.sql(query).fetchall()
    assert abs(agree - ROWS / 2) < 6 * np.sqrt(ROWS) / 2  # falsely once in 5e8 times


def test_duckdb_takes_tuples_numbers_and_missing_cells() -> None:
    connection = duckdb.connect()
    pairs = [("x", 1), ("x", 2), ("y", 1), ("y", 2)]
    on_duckdb.register(connection, "pair", Mechanism(np.eye(4), pairs, [11, 12, 21, 22]))
    found = connection.sql(
        "SELECT pair(a, b) FROM (VALUES ('y', 1), ('x', 2)) AS t(a, b)"
    ).fetchall()
    assert found == [(21,), (12,)]
    letters = ["no", "yes", ""]
    on_duckdb.register(connection, "same", Mechanism(np.eye(3), letters, ["no", "yes", "none"]))
    found = connection.sql("SELECT same(a) FROM (VALUES ('no'), (NULL)) AS t(a)").fetchall()
    assert found == [("no",), ("none",)]
    with pytest.raises(MechanismError, match="which are no column"):
        on_duckdb.register(connection, "tuples", Mechanism(np.eye(4), pairs, pairs))


@pytest.fixture
def coins(people: pandas.DataFrame) -> Iterator[tuple[Any, Any]]:
    """A Dask frame of five partitions with the same letters, and its release through a coin."""
    people["smokes"] = "no"
    frame = dask.dataframe.from_pandas(people, npartitions=5)
    with dask.config.set(scheduler="synchronous"):
        yield frame, on_dask.release(frame, {"smokes": COIN}, keep=["id"])


def test_dask_draws_once_however_often_it_computes(coins: tuple[Any, Any], tmp_path: Path) -> None:
    frame, released = coins
    whole = released.compute().set_index("id")["smokes"]
    assert (released.compute().set_index("id")["smokes"] == whole).all()  # in the same order, too
    part = released.partitions[3].compute().set_index("id")["smokes"]
    assert (part == whole[part.index]).all()
    released.to_parquet(tmp_path / "out")
    stored = pandas.read_parquet(tmp_path / "out").set_index("id")["smokes"]
    assert (stored[whole.index] == whole).all()
    another = (
        on_dask.release(frame, {"smokes": COIN}, keep=["id"]).compute().set_index("id")["smokes"]
    )
    agree = int((another[whole.index] == whole).sum())
    assert abs(agree - ROWS / 2) < 6 * np.sqrt(ROWS) / 2  # falsely once in 5e8 times


def test_dask_puts_rows_into_a_random_order_over_all_partitions(people: pandas.DataFrame) -> None:
    frame = dask.dataframe.from_pandas(people, npartitions=5)
    released = on_dask.release(frame, {"smokes": FLIP}, keep=["id"])
    parts = [part["id"].to_numpy() for part in dask.compute(*released.to_delayed())]
    assert sorted(np.concatenate(parts)) == people["id"].tolist()
    for own in parts:  # Hoeffding: off by 0.1 with probability at most 2 exp(-0.02 n)
        assert (own < ROWS / 2).mean() == pytest.approx(0.5, abs=0.1)
        assert abs(np.corrcoef(own, np.arange(len(own)))[0, 1]) < 6 / np.sqrt(len(own) - 1)
    kept = on_dask.release(frame, {"smokes": FLIP}, keep=["id"], keep_order=True).compute()
    assert kept["id"].tolist() == people["id"].tolist()


def test_dask_releases_no_category_that_no_row_shows(people: pandas.DataFrame) -> None:
    people["doctor"] = pandas.Categorical(["A"] * (ROWS - 1) + ["RARE"])
    people.loc[people.index[-1], "smokes"] = None
    frame = dask.dataframe.from_pandas(people, npartitions=2)
    released = on_dask.release(frame, {"smokes": FLIP}, keep=["doctor"], drop_missing=True)
    for one in (released._meta, released.compute()):
        assert "RARE" not in str(one["doctor"].dtype)
        assert "RARE" not in set(one["doctor"])


def test_partitions_of_dask_share_no_draws(coins: tuple[Any, Any]) -> None:
    released = on_dask.release(coins[0], {"smokes": COIN}, keep=["id"], keep_order=True)
    parts = [part["smokes"].to_numpy() for part in dask.compute(*released.to_delayed())]
    rows = len(parts[0])
    for first in range(5):
        for second in range(first):
            agree = int((parts[first] == parts[second]).sum())
            assert abs(agree - rows / 2) < 6 * np.sqrt(rows) / 2  # falsely once in 5e8 times


def test_dask_keeps_types_and_drops_the_index_and_what_is_not_kept(
    people: pandas.DataFrame,
) -> None:
    people["weight"] = np.float32(0.5)
    people["when"] = pandas.Timestamp("2026-01-01")
    people.index = people["id"].to_numpy() + 1_000_000
    people.loc[people.index[3], "smokes"] = None
    frame = dask.dataframe.from_pandas(people, npartitions=2)
    released = on_dask.release(frame, {"smokes": FLIP}, keep=["weight", "when"], drop_missing=True)
    found = released.compute()
    assert dict(found.dtypes) == dict(released.dtypes)
    assert [found["weight"].dtype, found["when"].dtype] == [
        people["weight"].dtype,
        people["when"].dtype,
    ]
    assert list(found.columns) == ["smokes", "weight", "when"]
    assert len(found) == ROWS - 1
    assert found.index.max() < ROWS


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "int64[pyarrow]", "uint64[pyarrow]"])
@pytest.mark.parametrize("number", [2**53 + 1, 1582218195625938945, 2**63 - 1])
def test_dask_keeps_every_digit_beside_a_missing_cell(kind: str, number: int) -> None:
    same = Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])
    frame = pandas.DataFrame({
        "k": pandas.array([number, None, number - 2], dtype=kind), "s": ["no", "yes", "no"],
        "o": [number, None, "text"], "t": pandas.array([1.5, None, 2], dtype="Float64"),
    })  # fmt: skip
    data = dask.dataframe.from_pandas(frame, npartitions=1)
    released = on_dask.release(data, {"s": same}, keep=["k", "o", "t"], keep_order=True)
    found = released.compute()
    assert list(found.columns) == ["k", "s", "o", "t"]
    assert str(found["k"].dtype) == str(released.dtypes["k"]) == kind
    assert [None if pandas.isna(one) else int(one) for one in found["k"]] == [
        number,
        None,
        number - 2,
    ]
    assert found["s"].tolist() == ["no", "yes", "no"]


def test_dask_releases_letters_past_the_floats() -> None:
    letters = [2**53 + 1, 2**53 + 3]
    frame = pandas.DataFrame({"k": pandas.array([*letters, None], dtype="Int64")})
    data = dask.dataframe.from_pandas(frame, npartitions=1)
    kept = on_dask.release(
        data, {"k": Mechanism(np.eye(2), letters, letters)}, drop_missing=True
    ).compute()
    assert sorted(kept["k"].tolist()) == letters


def test_frames_of_dask_are_named_by_text() -> None:
    data = dask.dataframe.from_pandas(
        pandas.DataFrame([["no", "yes"]], columns=["s", 1]), npartitions=1
    )
    with pytest.raises(InputError, match="a column named 1: name all columns by text"):
        on_dask.release(data, {"s": Mechanism(np.eye(2), ["no", "yes"], ["no", "yes"])})


def test_duckdb_draws_for_each_row_of_a_constant() -> None:
    response = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
    connection = duckdb.connect()
    on_duckdb.register(connection, "release", response)
    for source in ("range(10000)", "(SELECT 'yes' AS k FROM range(10000))"):
        argument = "'yes'" if source.startswith("range") else "k"
        query = f"SELECT avg((release({argument}) = 'yes')::INT) FROM {source}"
        # off by .05 with probability 2 exp(-2 * 10,000 * .05^2), below 1e-21, by Hoeffding's inequality
        assert abs(connection.sql(query).fetchall()[0][0] - 0.75) < 0.05


DENIABLE = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"])
"""LDP of log 3: no outcome is more than three times as likely under one letter as under the other."""


def test_duckdb_writes_a_table_with_one_draw_for_each_row(people: pandas.DataFrame) -> None:
    connection = connected(people)
    released = on_duckdb.release(
        connection, "people", {"smokes": DENIABLE}, into="released", keep=["id"], keep_order=True
    )
    assert released.columns == ["id", "smokes"]
    assert [row[0] for row in released.select("id").fetchall()] == people["id"].tolist()
    # NULLIF and CASE of a column draw nothing: each outcome keeps its law, and no dropped value stays
    query = (
        "SELECT p.smokes, avg((NULLIF(r.smokes, 'no') IS NULL)::INT), "
        "count(*) FILTER (NULLIF(r.smokes, 'no') = 'no'), "
        "avg(CASE r.smokes WHEN 'no' THEN 1 WHEN 'yes' THEN 0 END) "
        "FROM people p JOIN released r USING (id) GROUP BY p.smokes ORDER BY p.smokes"
    )
    found = connection.sql(query).fetchall()
    for (letter, dropped, left, cases), law in zip(found, DENIABLE.matrix[:, 0], strict=True):
        rows = ROWS * 3 // 4 if letter == "no" else ROWS // 4
        # off by more with probability 2 exp(-2 * 6^2 * .1875), below 3e-6
        assert dropped == pytest.approx(law, abs=6 * np.sqrt(0.1875 / rows))
        assert left == 0
        assert cases == pytest.approx(dropped, abs=1e-12)


def test_duckdb_draws_again_where_a_query_computes_of_the_function(
    people: pandas.DataFrame,
) -> None:
    """Why the table comes first: this test ends when DuckDB evaluates the argument of NULLIF once."""
    people["smokes"] = "no"
    connection = connected(people, release=DENIABLE)
    query = "SELECT count(*) FILTER (NULLIF(release(smokes), 'no') = 'no') FROM people"
    # NULLIF leaves "no" with probability .25 * .75: fewer than 1,000 of 40,000 with one below 1e-300
    assert connection.sql(query).fetchall()[0][0] > 1000


def test_duckdb_puts_the_rows_of_the_table_into_a_random_order(people: pandas.DataFrame) -> None:
    connection = connected(people)
    released = on_duckdb.release(
        connection, "people", {"smokes": FLIP}, into="released", keep=["id"]
    )
    rows = released.fetchall()
    ids = [one for one, _ in rows]
    assert sorted(ids) == people["id"].tolist()
    assert abs(np.corrcoef(ids, np.arange(ROWS))[0, 1]) < 6 / np.sqrt(ROWS - 1)
    law = dict(zip(people["id"], people["smokes"], strict=True))
    assert all((law[one] == "no") == (smokes == "yes") for one, smokes in rows)


def test_duckdb_writes_tuples_and_odd_names_and_no_value_that_no_row_shows() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TYPE colour AS ENUM ('red', 'RARE')")
    people = connection.sql(
        "SELECT 'x' AS a, i AS \"b\"\"c\", 'red'::colour AS kept, ['red'::colour] AS many FROM range(2) t(i)"
    )
    pairs = Mechanism(np.eye(2), [("x", 0), ("x", 1)], [10, 11])
    released = on_duckdb.release(
        connection, people, {("a", 'b"c'): pairs}, into="released", keep=["kept", "many"]
    )
    assert released.columns == ['a+b"c', "kept", "many"]
    assert list(map(str, released.types)) == ["BIGINT", "VARCHAR", "VARCHAR[]"]
    assert sorted(released.fetchall()) == [(10, "red", ["red"]), (11, "red", ["red"])]
    ((functions,),) = connection.sql(
        "SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'pmlopt_%'"
    ).fetchall()
    assert functions == 0


def test_what_duckdb_cannot_release_leaves_no_table(people: pandas.DataFrame) -> None:
    connection = connected(people)
    make = partial(on_duckdb.release, connection, "people", into="released")
    with pytest.raises(InputError, match="no column 'drinks'"):
        make({"drinks": FLIP})
    with pytest.raises(InputError, match="a column is released once"):
        make({"smokes": FLIP, ("smokes", "id"): Mechanism(np.eye(1), [("no", 0)], ["z"])})
    with pytest.raises(MechanismError, match="'yes' is not an input"):
        make({"smokes": Mechanism(np.eye(2), ["no", "maybe"], ["no", "maybe"])})
    with pytest.raises(duckdb.CatalogException):
        connection.table("released")
    connection.execute("CREATE TABLE released AS SELECT 1 AS one")
    with pytest.raises(duckdb.CatalogException, match="exists"):
        make({"smokes": FLIP})


@pytest.mark.parametrize(("letters", "value", "kind"), [
    (["no", "yes"], "true", "BOOLEAN"), (["no", "yes"], "1", "INTEGER"), ([0, 1], "true", "BOOLEAN"),
    ([0, 1], "0.4::DOUBLE", "DOUBLE"), ([2.0**53, 0.5], "9007199254740993", "BIGINT"),
    (["no", "yes"], "x'6e6f'::BLOB", "BLOB"), (["no", "yes"], "DATE '2026-01-01'", "DATE"),
])  # fmt: skip
def test_duckdb_names_the_type_of_a_value_that_is_no_letter(
    letters: list[Any], value: str, kind: str
) -> None:
    same = Mechanism(np.eye(2), letters, letters)
    connection = duckdb.connect()
    on_duckdb.register(connection, "same", same)
    with pytest.raises(
        Exception, match=f"is not an input(?s:.*)is {kind}(?s:.*)all_varchar = true"
    ):
        connection.sql(f"SELECT same({value})").fetchall()
    source = connection.sql(f"SELECT {value} AS k")
    with pytest.raises(MechanismError, match=f"is {kind}: .* all_varchar = true"):
        on_duckdb.release(connection, source, {"k": same}, into="released")


def test_yes_and_no_of_a_csv_file_are_letters_where_all_columns_are_text(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("smokes\nyes\nno\nyes\n")
    connection = duckdb.connect()
    guessed = connection.read_csv(str(tmp_path / "people.csv"))
    if str(guessed.types[0]) == "BOOLEAN":
        with pytest.raises(MechanismError, match="To DuckDB the column is BOOLEAN"):
            on_duckdb.release(connection, guessed, {"smokes": FLIP}, into="released")
    text = connection.read_csv(str(tmp_path / "people.csv"), all_varchar=True)
    released = on_duckdb.release(connection, text, {"smokes": FLIP}, into="released")
    assert sorted(released.fetchall()) == [("no",), ("no",), ("yes",)]
