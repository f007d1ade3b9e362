#!/usr/bin/env bash
# guessed: the weighted geometric mean has the weights that were given, up to rounding.
# is so: weights are replaced by fractions with denominators up to 1,024: a prior of 1e-4 becomes
#   0, and its letter is no part of the program any more.
# source: documentation of `cvxpy.geo_mean` (`max_denom`).
# matters: a design that maximizes a mean of logarithms under the prior gives the rare letter
#   nothing, and the status is optimal.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy==1.9.3 clarabel==0.11.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import cvxpy

print("cvxpy", cvxpy.__version__)
prior = [1e-4, 0.4999, 0.5]
x = cvxpy.Variable(3, nonneg=True)
problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.geo_mean(x, prior)), [cvxpy.sum(x) == 1])
problem.solve(solver="CLARABEL")
share = float(x.value[0])
print("expected by many: the optimum is the prior, so 1e-4 for the first letter")
print("seen:", problem.status, f"{share:.1e}", "weights", [str(w) for w in cvxpy.geo_mean(x, prior).w])
assert problem.status == "optimal" and share < 1e-6
PYTHON
