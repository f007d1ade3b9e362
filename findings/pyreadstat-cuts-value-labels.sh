#!/usr/bin/env bash
# guessed: a value label that is too long for an SPSS file is refused, as a variable label of Stata is.
# is so: it is cut after 120 bytes without a word, so that two answers whose labels begin alike have one label.
# source: seen by running.
# matters: the answers of a questionnaire, such as agreement with two long statements, cannot be told apart
#   afterwards, and become one value where labels are applied.
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
stem = "I was told of the study, had the time to ask what I wanted to know, and was free to say no at any time before it began, "
labels = {"consent": {1: f"{stem}and I agree", 2: f"{stem}and I do not agree"}}
people = pandas.DataFrame({"consent": [1.0, 2.0, 2.0]})
pyreadstat.write_sav(people, "study.sav", variable_value_labels=labels)
named, _ = pyreadstat.read_sav("study.sav", apply_value_formats=True)
seen = named["consent"].nunique()
print("expected by many: an error, or 2 different answers")
print("seen:", seen, "answer:", repr(named["consent"].iloc[0]))
assert seen == 1
PYTHON
