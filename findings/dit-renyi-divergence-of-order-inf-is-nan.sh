#!/usr/bin/env bash
# guessed: the Rényi divergence of order infinity is the largest log ratio: its limit, or an error.
# is so: dit returns NaN for it, without an error, while orders below come near the limit.
# source: seen by running.
# matters: pointwise maximal leakage is this divergence; a check `divergence > limit` passes on NaN.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dit==2.3 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import math

import dit

print("dit", dit.__version__)
posterior = dit.Distribution(["ill", "not ill"], [0.9, 0.1])
prior = dit.Distribution(["ill", "not ill"], [0.5, 0.5])
orders = (2, 100, math.inf)
seen = [dit.divergences.renyi_divergence(posterior, prior, alpha=order) for order in orders]
print("expected by many: 0.714, 0.846 and log2(0.9 / 0.5) = 0.848 bits")
print("seen:", seen, "above a limit of 0.5 bits:", seen[2] > 0.5)
assert [round(one, 3) for one in seen[:2]] == [0.714, 0.846] and math.isnan(seen[2])
PYTHON
