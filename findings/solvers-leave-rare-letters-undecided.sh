#!/usr/bin/env bash
# guessed: scaling makes up for a small prior: a solver that says optimal has the best row for
#   each letter.
# is so: Clarabel, SCS and OSQP stop where the mean is within their tolerance, which the row of a
#   letter with the prior 1e-8 does not change; HiGHS ends at a vertex.
# source: seen by running.
# matters: the rows of the rarest people, who need care most, are whatever the solver started
#   from, with the status optimal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy==1.9.3 clarabel==0.11.1 scs==3.3.1 osqp==1.1.3 highspy==1.16.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import cvxpy

print("cvxpy", cvxpy.__version__)
rare = 1e-8
seen = {}
for solver in ("HIGHS", "CLARABEL", "SCS", "OSQP"):
    # each letter is kept with a probability of at most 3/4, and the mean of these is maximized
    rows = cvxpy.Variable((2, 2), nonneg=True)
    kept = cvxpy.diag(rows)
    goal = cvxpy.Maximize((1 - rare) * kept[0] + rare * kept[1])
    problem = cvxpy.Problem(goal, [cvxpy.sum(rows, axis=1) == 1, kept <= 0.75])
    problem.solve(solver=solver)
    seen[solver] = problem.status, round(float(rows.value[1, 1]), 2)
print("expected by many: 'optimal' and 0.75 for the rare letter from each")
print("seen:", seen)
undecided = {name for name, (status, value) in seen.items() if status == "optimal" and value < 0.7}
assert undecided == {"CLARABEL", "SCS", "OSQP"}
PYTHON
