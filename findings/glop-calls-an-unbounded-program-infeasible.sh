#!/usr/bin/env bash
# guessed: a solver that calls a linear program infeasible means that no point meets its constraints.
# is so: GLOP says so of an unbounded program, which the point 0 meets; HiGHS and SCIP say unbounded.
# source: seen by running.
# matters: a requirement is said to allow no mechanism, and is weakened, where a limit was forgotten.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ortools==9.15.6755
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import ortools
from ortools.linear_solver.python import model_builder

print("ortools", ortools.__version__)
model = model_builder.Model()
x, y = (model.new_num_var(0, float("inf"), name) for name in "xy")
model.add(x - y <= 1)
model.maximize(x + y)
seen = {name: model_builder.Solver(name).solve(model).name for name in ("GLOP", "HIGHS", "SCIP")}
print("expected by many: UNBOUNDED from all, for x = y grow together")
print("seen:", seen)
assert seen == {"GLOP": "INFEASIBLE", "HIGHS": "UNBOUNDED", "SCIP": "UNBOUNDED"}
PYTHON
