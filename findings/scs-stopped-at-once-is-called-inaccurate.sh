#!/usr/bin/env bash
# guessed: a solver that is stopped by its limit says user_limit and has no answer, and
#   'optimal_inaccurate' is an answer with some digits.
# is so: after one step SCS is 'optimal_inaccurate' with rows of the sum 2, and HiGHS has
#   'user_limit' with rows of zeros; both have a value.
# source: seen by running.
# matters: a script that accepts inaccurate answers, or asks only whether there is a value,
#   publishes what is no mechanism.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy==1.9.3 scs==3.3.1 highspy==1.16.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import cvxpy

print("cvxpy", cvxpy.__version__)
rows = cvxpy.Variable((3, 3), nonneg=True)
limits = [rows[i] <= 2.5 * rows[k] for i in range(3) for k in range(3)]
problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.trace(rows)), [cvxpy.sum(rows, axis=1) == 1, *limits])
seen = {}
for solver, limit in (("SCS", {"max_iters": 1}), ("HIGHS", {"time_limit": 0.0})):
    problem.solve(solver=solver, **limit)
    seen[solver] = problem.status, round(float(rows.value.sum(axis=1)[0]), 1)
print("expected by many: 'user_limit' without a value, or rows that sum to one within some digits")
print("seen: status and sum of the first row", seen)
inaccurate, (stopped, nothing) = seen["SCS"], seen["HIGHS"]
assert inaccurate[0] == "optimal_inaccurate" and inaccurate[1] > 1.5 and (stopped, nothing) == ("user_limit", 0.0)
PYTHON
