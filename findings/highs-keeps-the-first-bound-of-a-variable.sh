#!/usr/bin/env bash
# guessed: a variable that an MPS file makes free, and then gives an upper limit, has that limit.
# is so: HiGHS keeps the first line of bounds and leaves the variable free, SCIP and OR-Tools take the
#   last one, and GLPK refuses the file. (MI in place of FR is read alike by all.)
# source: seen by running.
# matters: a probability that a modelling tool limits is unlimited, and the program unbounded.
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


def read(kind: str) -> tuple[object, ...]:
    lines = ["NAME t", "ROWS", " N cost", " G least", "COLUMNS", " share cost -1 least 1", "RHS"]
    bounds = [" rhs least -7", "BOUNDS", f" {kind} b share", " UP b share 3", "ENDATA", ""]
    Path("share.mps").write_text("\n".join([*lines, *bounds]))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel("share.mps")
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem("share.mps")
    swiglpk.glp_term_out(swiglpk.GLP_OFF)
    free, nothing = swiglpk.GLP_MPS_FILE, swiglpk.glp_create_prob()
    refused = swiglpk.glp_read_mps(nothing, free, None, "share.mps")
    model = model_builder.Model()
    model.import_from_mps_file("share.mps")
    return (
        highs.getLp().col_upper_[0],
        scip.getVars()[0].getUbOriginal(),
        model.get_variables()[0].upper_bound,
        "refused" if refused else "read",
    )


seen = {kind: read(kind) for kind in ("FR", "MI")}
print("expected by many: the upper limit 3 from all, for both kinds")
print("seen: upper limits of HiGHS, SCIP, OR-Tools; GLPK:", seen)
infinity = float("inf")
assert seen == {"FR": (infinity, 3.0, 3.0, "refused"), "MI": (3.0, 3.0, 3.0, "read")}
PYTHON
