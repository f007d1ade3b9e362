#!/usr/bin/env bash
# guessed: counts are drawn from a row of probabilities only if it sums to one.
# is so: the last probability is never read: a row of the sum 1.6 draws as (0.5, 0.2, 0.3); SciPy
#   writes that over it.
# source: documentation of `numpy.random.Generator.multinomial` and of `scipy.stats.multinomial`.
# matters: a row of a mechanism that lost or gained mass is used without a word, with another law
#   for its last output.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 scipy==1.17.1
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import numpy
import scipy
from scipy import stats

print("numpy", numpy.__version__, "scipy", scipy.__version__)
row = [0.5, 0.2, 0.9]
counts = numpy.random.default_rng(1).multinomial(100_000, row)
law = [round(float(share), 9) for share in stats.multinomial(10, row).p]
shares = [round(float(count) / 100_000, 2) for count in counts]
print("expected by many: an error, for the sum is 1.6")
print("seen: shares of numpy", shares, "law of scipy", law)
assert max(abs(a - b) for a, b in zip(shares, law)) < 0.02 and law == [0.5, 0.2, 0.3]
PYTHON
