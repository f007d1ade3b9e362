#!/usr/bin/env bash
# guessed: two statements in one query are an error, as in Python's own sqlite3, or both engines answer alike.
# is so: ADBC's SQLite driver answers the first and leaves the second undone, DuckDB runs both and answers the
#   last, neither with a word.
# source: https://sqlite.org/c3ref/prepare.html (only the first statement is compiled, and where it ends is
#   handed back); the rest seen by running.
# matters: a file of SQL that selects the people of a release after something else releases other people.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet adbc-driver-manager==1.13.0 adbc-driver-sqlite==1.13.0 duckdb==2.0.1 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import sqlite3

import adbc_driver_sqlite
import adbc_driver_sqlite.dbapi
import duckdb

print("adbc-driver-sqlite", adbc_driver_sqlite.__version__, "duckdb", duckdb.__version__)
query = "SELECT 'all people' AS who; SELECT 'those who agreed' AS who"
try:
    sqlite3.connect(":memory:").execute(query)
except sqlite3.Error as error:
    print("sqlite3 refuses it:", error)
with adbc_driver_sqlite.dbapi.connect() as connection, connection.cursor() as cursor:
    cursor.execute(query)
    first = cursor.fetchall()
last = duckdb.connect().execute(query).fetchall()
print("expected by many: an error, or the same answer from both")
print("seen:", first, last)
assert (first, last) == ([("all people",)], [("those who agreed",)])
PYTHON
