"""Tables of PostgreSQL, SQLite and DuckDB as data, in one snapshot, and written back whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from commands import run
from oracles.samplers import serve_postgres

from pmlopt import LDP, Mechanism, Prior, design, solve
from pmlopt.errors import FileFormatError, InputError
from pmlopt.publishing import release
from pmlopt.releases import Ledger
from pmlopt.tables import Database, column_counts, open_table

pytest.importorskip("adbc_driver_manager")
duckdb = pytest.importorskip("duckdb")

ROWS = 600
LEVELS = ("low", "mid", "high")
Ask = Callable[[str], list[Any]]
"""Runs SQL and returns the first column of its rows."""

PEOPLE = [(k, LEVELS[k % 4 % 3], "NS"[k % 3 % 2]) for k in range(ROWS)]
MADE = (
    "CREATE TABLE people (id INTEGER, level {}, region TEXT);"
    + "INSERT INTO people VALUES {};".format(",".join(map(str, PEOPLE)))
)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Ask]]:
    """The URL of a server of PostgreSQL, and what asks it."""
    with serve_postgres() as answers:
        if answers is None:
            if os.environ.get("PMLOPT_NEEDS_POSTGRES"):
                pytest.fail("no server of PostgreSQL can be started here")
            pytest.skip("there is no server of PostgreSQL here")
        folder = answers("SHOW unix_socket_directories")[0]
        yield f"postgresql://postgres@/postgres?host={folder}", answers


@pytest.fixture(params=["postgresql", "sqlite", "duckdb"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Ask]:
    """The URL of a database with people, and what asks it."""
    enumeration = "CREATE TYPE lvl AS ENUM ('low', 'mid', 'high');"
    if request.param == "postgresql":
        url, ask = request.getfixturevalue("server")
        ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public;" + enumeration + MADE.format("lvl"))
        return url, ask
    path = tmp_path / f"people.{request.param}"
    if request.param == "sqlite":
        connection = sqlite3.connect(path)
        connection.executescript(MADE.format("TEXT"))
        connection.close()

        def ask_sqlite(text: str) -> list[Any]:
            with sqlite3.connect(path) as connection:
                return [row[0] for row in connection.execute(text)]

        return f"sqlite:///{path}", ask_sqlite
    with duckdb.connect(str(path)) as connection:
        connection.execute(enumeration + MADE.format("lvl"))

    def ask_duckdb(text: str) -> list[Any]:
        with duckdb.connect(str(path)) as connection:
            return [row[0] for row in connection.execute(text).fetchall()]

    return f"duckdb:///{path}", ask_duckdb


HOW = ("--column", "level", "--keep", "region", "--drop", "id", "--epsilon", 1, "--privacy", "ldp")


def test_a_table_is_released_to_a_folder_and_to_a_new_table(
    database: tuple[str, Ask], tmp_path: Path
) -> None:
    url, ask = database
    how = (*HOW, "--utility", "hamming", "--into", "released", "-o", tmp_path / "out")
    said = run("release", url, "--table", "people", *how)
    assert "600 rows written to the new table released" in said
    run("check", tmp_path / "out", code=3)  # columns in clear follow from the data
    run("estimate", tmp_path / "out")
    letters = sorted(LEVELS) if url.startswith("sqlite") else LEVELS
    assert Mechanism.load(tmp_path / "out" / "mechanisms" / "level.json").inputs == tuple(letters)
    with open_table(tmp_path / "out" / "released.parquet") as table:
        (batch,) = table.batches()
        rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        written = Counter(f"{level} {region}" for level, region in rows)
    assert Counter(ask("SELECT level || ' ' || region FROM released")) == written
    assert Counter(ask("SELECT region FROM released")) == Counter(one[2] for one in PEOPLE)
    assert sorted(ask("SELECT id FROM people")) == sorted(ask("SELECT id FROM people"))


def test_a_table_that_is_there_is_not_replaced(database: tuple[str, Ask], tmp_path: Path) -> None:
    url, ask = database
    how = (*HOW, "--utility", "hamming", "--into", "people", "-o", tmp_path / "out")
    said = run("release", url, "--query", "SELECT * FROM people", *how, code=2)
    assert "already exists" in said
    assert not (tmp_path / "out").exists()
    assert int(ask("SELECT count(*) FROM people")[0]) == ROWS


def test_a_table_appears_with_all_rows_or_not_at_all(
    database: tuple[str, Ask], tmp_path: Path
) -> None:
    url, ask = database
    (tmp_path / "no.parquet").write_bytes(b"PAR1")
    with Database(url, table="people") as one:
        one.reserve_table("released")
        with pytest.raises(Exception, match=r"Parquet|magic"):
            one.fill_table("released", tmp_path / "no.parquet")
    with pytest.raises(Exception, match=r"released"):
        ask("SELECT 1 FROM released")


def test_enumerations_are_in_their_order(database: tuple[str, Ask]) -> None:
    url, _ = database
    expected = Counter(level for _, level, _ in PEOPLE)
    with Database(url, table="people") as one:
        counts = column_counts(one, "level")
    assert counts == expected
    assert list(counts) == (sorted(LEVELS) if url.startswith("sqlite") else list(LEVELS))


def test_all_reads_are_of_one_snapshot(database: tuple[str, Ask]) -> None:
    url, ask = database
    if url.startswith("duckdb"):
        pytest.skip("a file of DuckDB is open in one process, once")
    if url.startswith("sqlite"):
        ask("PRAGMA journal_mode = WAL")
    with Database(url, table="people") as one:
        before = column_counts(one, "level")
        write = "DELETE FROM people WHERE id < 100"
        ask(write)
        assert column_counts(one, "level") == before
    with Database(url, table="people") as one:
        assert sum(column_counts(one, "level").values()) == ROWS - 100


def test_a_query_that_answers_otherwise_each_time_is_refused(
    database: tuple[str, Ask], tmp_path: Path
) -> None:
    url, _ = database
    query = "SELECT level, abs(random() * 1000000) AS x FROM people"
    prior = Prior.from_counts(Counter(level for _, level, _ in PEOPLE))
    mechanism = solve(design(prior, LDP(1.0), "hamming")).mechanism
    with (
        Database(url, query=query) as one,
        pytest.raises(InputError, match=r"data were changed since their rows were counted"),
    ):
        release(one, {"level": mechanism}, tmp_path / "out", keep=["x"])
    assert not (tmp_path / "out").exists()


def test_a_table_without_rows_and_none_are_refused(database: tuple[str, Ask]) -> None:
    url, _ = database
    none = Database(url, query="SELECT * FROM people WHERE id < 0")
    with none as one, pytest.raises(FileFormatError, match="0 rows"):
        column_counts(one, "level")
    with Database(url, table="nobody") as one, pytest.raises(FileFormatError, match="nobody"):
        column_counts(one, "level")


def test_people_of_a_ledger_are_named_by_a_column(
    database: tuple[str, Ask], tmp_path: Path
) -> None:
    url, _ = database
    counts = Counter(level for _, level, _ in PEOPLE)
    prior = Prior.from_counts([counts[one] for one in LEVELS], LEVELS)
    Ledger(prior, ROWS, total=3.0).save(tmp_path / "book.npz")
    how: tuple[Any, ...] = (
        "--ledger",
        tmp_path / "book.npz",
        "--drop",
        "region",
        "-o",
        tmp_path / "out",
    )
    how = ("--column", "level", "--epsilon", 1, "--privacy", "ldp", "--utility", "hamming", *how)
    said = run("release", url, "--table", "people", *how, "--drop", "id", "--exact-counts", code=2)
    assert "its rows have no order" in said
    run(
        "release", url, "--table", "people", *how, "--drop", "id", "--exact-counts", "--person-column", "id"
    )  # fmt: skip
    assert Ledger.load(tmp_path / "book.npz").releases == 1


NAMES = """
CREATE TABLE "order" AS SELECT level AS "select", region AS "from" FROM people;
CREATE VIEW group_view AS SELECT "select", "from" AS "a;b" FROM "order";
"""
QUERIES = (
    {"table": "order"},
    {"table": "{schema}.order"},
    {"table": "group_view"},
    {"query": 'SELECT * FROM "order";'},
    {"query": "SELECT \"select\", 'it''s; no end' AS x FROM \"order\" -- all; of it\n ; "},
    {"query": 'SELECT "select", "a;b" FROM /* ; */ group_view'},
)


def test_reserved_words_schemas_views_and_semicolons(database: tuple[str, Ask]) -> None:
    url, ask = database
    for statement in NAMES.strip().split(";\n"):
        ask(statement)
    schema = {"postgresql": "public", "sqlite": "main", "duckdb": "main"}[url.partition(":")[0]]
    expected = Counter(level for _, level, _ in PEOPLE)
    for given in QUERIES:
        named = {key: text.format(schema=schema) for key, text in given.items()}
        with Database(url, **named) as one:
            assert column_counts(one, "select") == expected


@pytest.mark.parametrize("query", [
    "", " ;\n", "SELECT 1 AS a; SELECT 2 AS a", "DELETE FROM people; COMMIT",
    "SELECT ';' AS a -- ;\n; SELECT 2 AS a", "-- SELECT 1 AS a;",
])  # fmt: skip
def test_a_query_is_one_statement(query: str) -> None:
    with pytest.raises(InputError, match="one statement"):
        Database("sqlite:///a.db", query=query)


TYPES = """SELECT 5::numeric(5,0) AS n0, 1.5::numeric(9,2) AS n2, 0.5::numeric AS n, NULL::uuid AS none,
'c4ca4238-a0b9-2382-0dcc-509a6f75849b'::uuid AS u, true AS b, DATE '2020-01-02' AS d, 'x'::varchar AS v,
'{"a": 1}'::jsonb AS j, 7::smallint AS s"""


def test_types_of_postgresql_are_letters(server: tuple[str, Ask]) -> None:
    url, _ = server
    with Database(url, query=TYPES) as one, open_table(one) as table:
        (batch,) = table.batches()
        values = {name: batch.encode_column(place)[0][0] for place, name in enumerate(table.names)}
    assert {name: values[name] for name in ("n0", "n2", "n", "none", "u", "b", "v", "s")} == {
        "n0": 5, "n2": Decimal("1.50"), "n": "0.5", "none": None,
        "u": "c4ca4238-a0b9-2382-0dcc-509a6f75849b", "b": True, "v": "x", "s": 7,
    }  # fmt: skip
    assert type(values["n0"]) is int


SECRETS = ("hush", "hu%zsh", "h@sh", "h%40sh", "hu/sh", "100%")


@pytest.mark.parametrize("secret", SECRETS)
def test_no_message_has_the_password(secret: str, tmp_path: Path) -> None:
    url = f"postgresql://ann:{secret}@localhost:1/census"
    for how in (
        ("release", url, "--table", "people", "--column", "q", "-o", tmp_path / "out"),
        ("release", url, "--column", "q", "-o", tmp_path / "out"),
        ("release", f"{url}?sslpassword={secret}", "--table", "a", "--column", "q", "--dry-run"),
        ("release", "a.csv", url, "--column", "q", "--dry-run"),
        ("apply", tmp_path / "m.json", url, "--column", "q", "-o", tmp_path / "out.csv"),
    ):
        utility = ("--utility", "hamming", "--epsilon", 1) if how[0] == "release" else ()
        said = run(*how, *utility, code=2)
        assert secret not in said.replace("***", "")
    assert secret not in repr(Database(url, table="people"))
    assert list(tmp_path.iterdir()) == []


def test_a_column_of_sqlite_with_two_types_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE mixed (a)")
        # the types are those of the first rows
        rows = "WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n LIMIT 65536)"
        connection.execute(f"INSERT INTO mixed {rows} SELECT k % 3 FROM n UNION ALL SELECT 'x'")
    mixed = Database(f"sqlite:///{tmp_path}/a.db", table="mixed")
    with mixed as one, pytest.raises(FileFormatError, match=r"Type mismatch.*casts"):
        column_counts(one, "a")


@pytest.mark.parametrize(("url", "given", "words"), [
    ("mysql://db/x", {"table": "a"}, "give a database as postgresql://"),
    ("sqlite:///a.db", {}, "give --table NAME or --query SQL"),
    ("sqlite:///a.db", {"table": "a", "query": "b"}, "give --table NAME or --query SQL"),
    ("sqlite:///no/such.db", {"table": "a"}, "there is no file 'no/such.db'"),
    ("duckdb://a.db", {"table": "a"}, "there is no file"),
])  # fmt: skip
def test_what_is_no_database_is_refused(url: str, given: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words), Database(url, **given):
        pass


def test_options_of_a_database_need_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q\nx\ny\n")
    how = ("--column", "q", "--epsilon", 1, "--utility", "hamming", "--dry-run", "--table", "a")
    assert "give one by its URL" in run("release", tmp_path / "a.csv", *how, code=2)


def test_a_published_folder_stays_where_the_table_cannot_be_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TYPE lvl AS ENUM ('low', 'mid', 'high');" + MADE.format("lvl"))

    def refuse(self: Database, name: str, path: Path) -> int:
        raise FileFormatError(f"{self.name}: the disk is full")

    monkeypatch.setattr(Database, "fill_table", refuse)
    how = (*HOW, "--utility", "hamming", "--into", "released", "-o", tmp_path / "out")
    said = run("release", f"duckdb:///{tmp_path}/a.duckdb", "--table", "people", *how, code=2)
    assert "the folder is published, and the table 'released' is not there: write it from" in said
    run("check", tmp_path / "out", code=3)
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        assert connection.execute("SHOW TABLES").fetchall() == [("people",)]
