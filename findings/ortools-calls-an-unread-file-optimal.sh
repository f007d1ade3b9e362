#!/usr/bin/env bash
# guessed: a linear program in the usual LP format is read, or refused by an exception.
# is so: OR-Tools has another dialect of LP files; it returns False, leaves the model empty, and
#   solves that to optimality with the objective 0. HiGHS reads the file.
# source: seen by running.
# matters: the least leakage of an exported program comes out as 0, with the status optimal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ortools==9.15.6755 highspy==1.16.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
from pathlib import Path

import highspy
import ortools
from ortools.linear_solver.python import model_builder

print("ortools", ortools.__version__)
Path("least.lp").write_text("Minimize\n obj: 2 x + 3 y\nSubject To\n mass: x + y >= 1\nEnd\n")
model = model_builder.Model()
read = model.import_from_lp_file("least.lp")
solver = model_builder.Solver("glop")
status = solver.solve(model)
highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("least.lp")
highs.run()
seen = read, status.name, solver.objective_value, highs.getInfo().objective_function_value
print("expected by many: the optimum 2 from both, or an exception")
print("seen: read, status, optimum; optimum of HiGHS:", seen)
assert seen == (False, "OPTIMAL", 0.0, 2.0)
PYTHON
