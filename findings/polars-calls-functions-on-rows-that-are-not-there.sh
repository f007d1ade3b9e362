#!/usr/bin/env bash
# guessed: a function of a column is called with the rows of the frame and with nothing else.
# is so: without return_dtype, `map_batches` first calls it on two rows of its own making and
#   `map_elements` on two values more, to learn the type of the answer.
# source: seen by running; the documentation of `map_batches` asks for return_dtype and warns of
#   wrong types, not of more calls.
# matters: a function that draws, counts or charges a budget is charged for rows that no person is
#   behind.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import polars

print("polars", polars.__version__)
lazy = polars.LazyFrame({"x": [1, 2, 3]})
charged: dict[str, int] = {}


def charge(key: str, rows: int) -> None:
    charged[key] = charged.get(key, 0) + rows


def batch(key: str):
    return lambda column: (charge(key, len(column)), column)[1]


def cell(key: str):
    return lambda value: (charge(key, 1), value)[1]


x, kind = polars.col("x"), polars.Int64
lazy.select(x.map_batches(batch("batches"))).collect()
lazy.select(x.map_batches(batch("batches, typed"), return_dtype=kind)).collect()
lazy.collect().select(x.map_elements(cell("cells")))
lazy.collect().select(x.map_elements(cell("cells, typed"), return_dtype=kind))
print("expected by many: 3 rows are charged in each case")
print("seen:", charged)
assert charged == {"batches": 5, "batches, typed": 3, "cells": 5, "cells, typed": 3}
PYTHON
