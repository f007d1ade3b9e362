#!/usr/bin/env bash
# guessed: an option that a solver does not have is an error, as it is with Clarabel and HiGHS.
# is so: with GLOP a misspelt tolerance is ignored, and the status is optimal.
# source: seen by running.
# matters: a design is believed to be solved to 1e-12, and was solved to the tolerance that the
#   solver starts with.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy==1.9.3 ortools==9.15.6755 clarabel==0.11.1 highspy==1.16.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import cvxpy

print("cvxpy", cvxpy.__version__)
x = cvxpy.Variable(2, nonneg=True)
problem = cvxpy.Problem(cvxpy.Minimize(x[0] + 2 * x[1]), [cvxpy.sum(x) == 1])
seen = {}
for solver in ("CLARABEL", "HIGHS", "GLOP"):
    try:
        problem.solve(solver=solver, primal_feasability_tolerance=1e-12)
        seen[solver] = problem.status
    except (TypeError, ValueError) as error:
        seen[solver] = type(error).__name__
print("expected by many: an error from all three, for the option is misspelt")
print("seen:", seen)
assert seen == {"CLARABEL": "TypeError", "HIGHS": "ValueError", "GLOP": "optimal"}
PYTHON
