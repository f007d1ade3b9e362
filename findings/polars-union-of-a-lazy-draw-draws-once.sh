#!/usr/bin/env bash
# guessed: a lazy frame that is computed in each use draws anew in each half of a union.
# is so: one query computes equal parts of its plan once: both halves have the same draws, while
#   two calls of collect have different ones.
# source: seen by running; the optimization is `comm_subplan_elim` in the documentation of
#   `LazyFrame.collect`.
# matters: two releases of a person that were designed as independent are one, and a study of the
#   noise by repetitions sees none.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import numpy
import polars

print("polars", polars.__version__)
generator = numpy.random.default_rng()


def draw(column: polars.Series) -> polars.Series:
    return polars.Series(generator.random(len(column)))


people = polars.LazyFrame({"x": [1, 2, 3]})
released = people.with_columns(
    r=polars.col("x").map_batches(draw, return_dtype=polars.Float64)
)
union = polars.concat([released, released]).collect()["r"].to_list()
twice = [released.collect()["r"].to_list() for _ in range(2)]
seen = {"halves of a union": union[:3] == union[3:], "two collects": twice[0] == twice[1]}
print("expected by many: equal draws in neither case")
print("seen:", seen)
assert seen == {"halves of a union": True, "two collects": False}
PYTHON
