#!/usr/bin/env bash
# guessed: the epsilon of a composition is at most the sum of the epsilons: 1,000 times 1e-5 is at
#   most 0.01.
# is so: losses are rounded up to multiples of 1e-4, so small epsilons count ten times and more:
#   0.057 at delta 1e-9.
# source: seen by running; the default is `value_discretization_interval` in the documentation of
#   the package.
# matters: an account of many small releases refuses what the sum of their levels allows; the sum
#   is the better bound there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dp-accounting==0.6.0 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
from importlib.metadata import version

from dp_accounting.pld import common, privacy_loss_distribution

print("dp-accounting", version("dp-accounting"))
small, times = 1e-5, 1000
each = common.DifferentialPrivacyParameters(small, 0.0)
seen = {}
for interval in (1e-4, 1e-6):
    one = privacy_loss_distribution.from_privacy_parameters(each, value_discretization_interval=interval)
    seen[interval] = round(float(one.self_compose(times).get_epsilon_for_delta(1e-9)), 4)
print("expected by many: at most", small * times, "by any interval")
print("seen: by interval", seen)
assert seen[1e-4] > 5 * small * times >= 5 * seen[1e-6]
PYTHON
