#!/usr/bin/env bash
# guessed: programs that read MPS files agree on an entry that is there twice: all add it up, or
#   all refuse.
# is so: HiGHS, SCIP, GLPK and OR-Tools have different answers: two different optima, a file that
#   cannot be read, and an invalid model.
# source: seen by running.
# matters: a program that one tool wrote by appending terms has another optimum, and another
#   certified level, in the next tool.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 pyscipopt==6.3.0 swiglpk==5.0.13 ortools==9.15.6755
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
from pathlib import Path

import highspy
import pyscipopt
import swiglpk
from ortools.linear_solver.python import model_builder

print("highspy", highspy.Highs().version(), "pyscipopt", pyscipopt.__version__)
lines = ["NAME t", "ROWS", " N obj", " L c", "COLUMNS", " x obj -1 c 1", " x obj -1 c 1", "RHS", " r c 7"]
Path("twice.mps").write_text("\n".join([*lines, "ENDATA", ""]))

highs = highspy.Highs()
highs.setOptionValue("output_flag", False)
highs.readModel("twice.mps")
highs.run()
scip = pyscipopt.Model()
scip.hideOutput()
scip.readProblem("twice.mps")
scip.optimize()
swiglpk.glp_term_out(swiglpk.GLP_OFF)
refused = swiglpk.glp_read_mps(swiglpk.glp_create_prob(), swiglpk.GLP_MPS_FILE, None, "twice.mps")
model = model_builder.Model()
model.import_from_mps_file("twice.mps")
seen = (
    highs.getInfo().objective_function_value,
    scip.getObjVal(),
    "refused" if refused else "read",
    model_builder.Solver("glop").solve(model).name,
)
print("expected by many: one reading")
print("seen: HiGHS, SCIP, GLPK, OR-Tools:", seen)
assert seen == (-7.0, -3.5, "refused", "MODEL_INVALID")
PYTHON
