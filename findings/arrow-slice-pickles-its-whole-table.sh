#!/usr/bin/env bash
# guessed: two rows that are cut from a table are pickled as two rows.
# is so: the pickle of a slice has the buffers of the whole table; Arrow IPC writes the rows of
#   the slice only.
# source: seen by running.
# matters: whoever passes two released rows on by pickle (queues, caches, workers, joblib) passes
#   on all rows.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 numpy==2.4.6
cd "$folder"
"$folder/venv/bin/python" -W ignore <<'PYTHON'
import pickle
import struct

import numpy
import pyarrow

print("pyarrow", pyarrow.__version__)
number = 987_654_321
people = pyarrow.table({"income": numpy.append(numpy.arange(100_000), number)})
two = people.slice(0, 2)
sink = pyarrow.BufferOutputStream()
with pyarrow.ipc.new_file(sink, two.schema) as writer:
    writer.write_table(two)
forms = {"pickle": pickle.dumps(two), "ipc": sink.getvalue().to_pybytes()}
seen = {form: struct.pack("<q", number) in written for form, written in forms.items()}
print("expected by many: the last row is in neither form of the first two rows")
print("seen:", seen, {form: len(written) for form, written in forms.items()}, "bytes")
assert seen == {"pickle": True, "ipc": False}
PYTHON
