#!/usr/bin/env bash
# guessed: a solver that a limit stops before it has a point gives the status user_limit, or an error.
# is so: of Gurobi and COPT cvxpy makes infeasible_inaccurate and the value -inf, as of a program
#   without a point; of HiGHS it makes user_limit.
# source: seen by running.
# matters: a feasible design is reported to have no mechanism, because the machine was busy.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy==1.9.3 gurobipy==13.0.3 highspy==1.16.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON' | grep -v -i license
import cvxpy
import numpy

print("cvxpy", cvxpy.__version__)
rng = numpy.random.default_rng(0)
x, rows, gains = cvxpy.Variable(30, nonneg=True), rng.random((30, 30)), rng.random(30)
problem = cvxpy.Problem(cvxpy.Maximize(gains @ x), [cvxpy.sum(x) == 1, rows @ x <= 0.6])
seen = []
for solver, limit in (("GUROBI", {"IterationLimit": 0}), ("HIGHS", {"time_limit": 0.0}), ("GUROBI", {})):
    problem.solve(solver=solver, **limit)
    seen.append((solver, problem.status, round(problem.value, 3)))
print("expected by many: user_limit from both that are stopped, and no value")
print("seen: Gurobi and HiGHS stopped, Gurobi to its end:", seen)
assert seen == [
    ("GUROBI", "infeasible_inaccurate", -numpy.inf),
    ("HIGHS", "user_limit", 0.0),
    ("GUROBI", "optimal", 0.867),
]
PYTHON
