#!/usr/bin/env bash
# guessed: with `user_missing=True` a missing number without a kind stays missing in the frame.
# is so: in a column of whole numbers that has kinds of missing values (.a to .z) it is 0 in the
#   frame, a value that nobody gave; as lists, and without `user_missing`, it is missing.
# source: seen by running.
# matters: shares, priors and counts of a Stata file have zeros that are no answers.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyreadstat==1.3.7 pandas==3.1.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import pandas
import pyreadstat

print("pyreadstat", pyreadstat.__version__, "pandas", pandas.__version__)
answers = pandas.DataFrame({"visits": [3, "a", None, 5]})
pyreadstat.write_dta(answers, "people.dta", missing_user_values={"visits": ["a"]})
frame = pyreadstat.read_dta("people.dta", user_missing=True)[0]["visits"].tolist()
lists = pyreadstat.read_dta("people.dta", user_missing=True, output_format="dict")[0]["visits"]
print("expected by many: [3, 'a', missing, 5]")
print("seen:", frame, "in a frame,", list(lists), "as lists")
assert frame == [3, "a", 0, 5] and list(lists) == [3, "a", None, 5]
PYTHON
