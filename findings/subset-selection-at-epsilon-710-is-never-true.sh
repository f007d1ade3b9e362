#!/usr/bin/env bash
# guessed: beyond the largest exponential of floats a mechanism is nearly the truth, or raises an
#   error.
# is so: subset selection of multi-freq-ldpy reports the truth always at epsilon 709, and at 710
#   never: infinity by infinity is no number, and every comparison with it fails.
# source: seen by running.
# matters: the end of a sweep over epsilon, where the truth is the check, has the opposite of it,
#   and rules the truth out.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet multi-freq-ldpy==0.2.5
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
from importlib.metadata import version

from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client

print("multi-freq-ldpy", version("multi-freq-ldpy"))
seen = {
    epsilon: sum(2 in SS_Client(2, 5, epsilon) for _ in range(1000)) / 1000
    for epsilon in (1.0, 709.0, 710.0)
}
print("expected by many: the share of true reports increases to 1")
print("seen:", seen)
assert 0.3 < seen[1.0] < 0.6 and (seen[709.0], seen[710.0]) == (1.0, 0.0)
PYTHON
