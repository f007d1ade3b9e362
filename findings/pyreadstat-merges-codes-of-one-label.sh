#!/usr/bin/env bash
# guessed: two codes with the same label stay two values, or are refused as pandas refuses them.
# is so: with its labels applied, an SPSS or Stata file of four codes has one letter less; codes
#   without a label stay numbers between texts.
# source: seen by running.
# matters: 'refused' of two questions, or of two waves, becomes one letter: the prior has a letter
#   less than the mechanism was designed for, and its shares are others.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyreadstat==1.3.7 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import pandas
import pyreadstat

print("pyreadstat", pyreadstat.__version__, "pandas", pandas.__version__)
people = pandas.DataFrame({"answer": [1, 2, 3, 4]})
labels = {"answer": {1: "Refused", 2: "Yes", 3: "Refused"}}
pyreadstat.write_dta(people, "answers.dta", variable_value_labels=labels)
named, _ = pyreadstat.read_dta("answers.dta", apply_value_formats=True)
try:
    by_pandas = len(set(pandas.read_stata("answers.dta")["answer"]))
except ValueError:
    by_pandas = "refused"
seen = named["answer"].tolist(), by_pandas
print("expected by many: four values, or an error from both")
print("seen:", seen)
assert seen == (["Refused", "Yes", "Refused", 4.0], "refused")
PYTHON
