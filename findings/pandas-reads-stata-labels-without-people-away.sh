#!/usr/bin/env bash
# guessed: categories that are written to a Stata file with their labels come back as they were.
# is so: a label that nobody has is in the file, and `read_stata` leaves it out of the categories.
# source: seen by running.
# matters: a design from the file that was read has no row for an answer that the form allows, and
#   the first person who gives it is refused, or gives away that they are the first.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import pandas

print("pandas", pandas.__version__)
kind = pandas.CategoricalDtype(["low", "middle", "high"], ordered=True)
people = pandas.DataFrame({"income": pandas.Series(["low", "high", "low"], dtype=kind)})
people.to_stata("income.dta", write_index=False)
back = pandas.read_stata("income.dta")["income"].cat.categories.tolist()
with pandas.io.stata.StataReader("income.dta") as file:
    labels = [*file.value_labels()["income"].values()]
print("expected by many: low, middle, high as categories")
print("seen:", back, "where the file has", labels)
assert back == ["low", "high"] and labels == ["low", "middle", "high"]
PYTHON
