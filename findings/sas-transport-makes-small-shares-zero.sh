#!/usr/bin/env bash
# guessed: a file of survey packages keeps doubles, or refuses one that it cannot hold.
# is so: SAS transport files have floats of another kind: 1e-80 becomes 0 and 1e300 infinity,
#   without a word. SPSS and Stata files keep both.
# source: seen by running; the range of these floats, 5.4e-79 to 7.2e75, is in the description of
#   the transport format.
# matters: a prior that is small becomes one that is impossible, and with it every bound that
#   divides by it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyreadstat==1.3.7 pandas==3.1.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import pandas
import pyreadstat

print("pyreadstat", pyreadstat.__version__)
shares = pandas.DataFrame({"share": [0.5, 1e-80, 1e300]})
ways = {
    "sav": (pyreadstat.write_sav, pyreadstat.read_sav),
    "dta": (pyreadstat.write_dta, pyreadstat.read_dta),
    "xpt": (pyreadstat.write_xport, pyreadstat.read_xport),
}
seen = {}
for ending, (write, read) in ways.items():
    write(shares, f"shares.{ending}")
    seen[ending] = read(f"shares.{ending}")[0]["share"].tolist()
print("expected by many: the same three numbers from each, or an error")
print("seen:", seen)
assert seen["sav"] == seen["dta"] == [0.5, 1e-80, 1e300] and seen["xpt"] == [0.5, 0.0, float("inf")]
PYTHON
