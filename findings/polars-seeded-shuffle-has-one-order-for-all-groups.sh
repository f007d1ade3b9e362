#!/usr/bin/env bash
# guessed: a seed makes a shuffle repeatable as a whole: each group and each column has an order
#   of its own.
# is so: each group starts again from the seed, so groups of one size have one and the same order,
#   and so do columns.
# source: seen by running; the documentation of `Expr.shuffle` speaks of the seed only.
# matters: who knows the order of one group (or of one column) knows that of all: shuffled reports
#   are linked to people again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import polars

print("polars", polars.__version__)
size = 20
people = polars.DataFrame({"region": [g for g in "abc" for _ in range(size)], "n": [*range(size)] * 3})
order = polars.col("n").shuffle(seed=7).over("region")
mixed = people.with_columns(order)["n"].to_list()
orders = {tuple(mixed[k : k + size]) for k in range(0, 3 * size, size)}
print("expected by many: 3 orders of 3 groups")
print("seen:", len(orders), "order of 3 groups")
assert len(orders) == 1
PYTHON
