#!/usr/bin/env bash
# guessed: randomized response refuses a value that is none of its categories.
# is so: it answers with a category drawn uniformly, without a word.
# source: seen by running.
# matters: a misspelt or recoded answer becomes noise: frequencies that are estimated from the
#   reports are drawn to the uniform.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet opendp==0.16.0
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
from collections import Counter
from importlib.metadata import version

import opendp.prelude as dp

print("opendp", version("opendp"))
dp.enable_features("contrib")
respond = dp.m.make_randomized_response(["no", "yes"], prob=0.99)
truth = Counter(respond("yes") for _ in range(2000))
other = Counter(respond("Yes") for _ in range(2000))
print("expected by many: an error for 'Yes', for the categories are no and yes")
print("seen: reports for 'yes'", dict(truth), "and for 'Yes'", dict(other))
# uniform reports are outside these limits with a probability below 1e-18
assert truth["yes"] > 1900 and 800 < other["yes"] < 1200
PYTHON
