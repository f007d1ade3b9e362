#!/usr/bin/env bash
# guessed: a cell that is set to NA is overwritten, so that a file written afterwards does not
#   have its number.
# is so: nullable columns of pandas, and columns that Polars masks by when/then, mark the cell as
#   missing and keep the number below the mark; Feather (Arrow IPC) files carry it, Parquet files
#   do not.
# source: seen by running; that the slot of a null may hold anything is in the Arrow columnar
#   format.
# matters: a table of which rare or large values were suppressed is published with them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1 polars==2.1.0 pyarrow==26.0.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import struct
from pathlib import Path

import pandas
import polars

print("pandas", pandas.__version__, "polars", polars.__version__)
number = 987_654_321
cells = struct.pack("<q", number)

people = pandas.DataFrame({"income": pandas.array([31_000, 42_000, number], dtype="Int64")})
people.loc[people["income"] > 1_000_000, "income"] = pandas.NA
people.to_feather("pandas.feather", compression="uncompressed")
people.to_parquet("pandas.parquet", compression=None)

kept = polars.col("income") < 1_000_000
rows = polars.DataFrame({"income": [31_000, 42_000, number]})
rows.with_columns(polars.when(kept).then("income").alias("income")).write_ipc("polars.feather")

files = ["pandas.feather", "polars.feather", "pandas.parquet"]
seen = [cells in Path(file).read_bytes() for file in files]
print("expected by many: the suppressed number is in none of", files, "[False, False, False]")
print("seen:", seen)
assert seen == [True, True, False]
PYTHON
