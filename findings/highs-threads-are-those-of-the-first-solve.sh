#!/usr/bin/env bash
# guessed: a number of threads is an option of a solve, which other solves of the process do not touch.
# is so: the first solve fixes it for the process; a later one that asks for another number ends with an
#   error and the status "not set", and cvxpy says that HiGHS failed on the program.
# source: seen by running; issue 130 of jump-dev/HiGHS.jl has it in Julia.
# matters: the second of two equal problems is reported unsolved, or a fallback is taken for its answer.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 cvxpy==1.9.3
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import cvxpy as cp
import highspy

print("highspy", highspy.Highs().version(), "cvxpy", cp.__version__)


def solve(threads: int) -> str:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", threads)
    share = solver.addVariable(lb=0, ub=1, obj=-1)
    solver.addConstr(share <= 0.5)
    return f"{solver.run().name} {solver.getModelStatus().name}"


def model(**options: int) -> str:
    share = cp.Variable(nonneg=True)
    problem = cp.Problem(cp.Maximize(share), [share <= 0.5])
    try:
        problem.solve(solver=cp.HIGHS, **options)
    except cp.error.SolverError:
        return "SolverError"
    return str(problem.status)


seen = [solve(2), solve(1), solve(2), model(threads=1), model()]
print("expected by many: all five are optimal, with two threads, one, two, one and the default")
print("seen:", seen)
assert seen == ["kOk kOptimal", "kError kNotset", "kOk kOptimal", "SolverError", "optimal"]
PYTHON
