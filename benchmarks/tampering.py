"""Random saved results with one number changed, which is refused or true, for both verifiers.

Results of every kind of the fuzzer are saved. `verify_file` must find each true, and `verifier.py`, which
stands alone, must not disagree: it may say "not checked". Then numbers of the file are changed, one by one,
by a share of 1e-3 or 1e-9: each change must be refused, leave the claims as they are (a multiplier), or leave
a claim that is true when the program is solved again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import table, write_csv

from pmlopt import verifier, verify_file
from pmlopt.drawing import figure_class
from pmlopt.errors import PmloptError
from pmlopt.testing.fuzz import KINDS
from pmlopt.testing.tampering import changed, is_proof, leaves, still_true

HEAD = ("kind", "files", "true", "script true", "script silent", "changes", "refused", "proofs", "still true",
        "disagreements", "false")  # fmt: skip
SIZES = (1e-3, -1e-3, 1e-9)


def script(path: Path) -> int:
    """The exit code of the verifier that stands alone."""
    with contextlib.redirect_stdout(io.StringIO()):
        return int(verifier.main(str(path)))  # type: ignore[no-untyped-call]


def verdict(path: Path, data: Any) -> bool | None:
    """What `verify_file` says of data; what is not of the format is refused."""
    path.write_text(json.dumps(data))
    try:
        return verify_file(path).holds
    except PmloptError:
        return False


def study(kind: str, files: int, changes: int, folder: Path) -> dict[str, Any]:
    """Counts for the results of one kind."""
    counts: Counter[str] = Counter()
    path = folder / "result.json"
    for place in range(files):
        rng = np.random.default_rng([26, sorted(KINDS).index(kind), place])
        result = KINDS[kind](rng)
        try:
            result.save(path)
        except PmloptError:  # labels that no file holds
            continue
        data = json.loads(path.read_text())
        holds, code = verdict(path, data), script(path)
        counts["files"] += 1
        counts["true"] += holds is True
        counts["script true"] += code == 0
        counts["script silent"] += code == 3
        counts["disagreements"] += (code == 0 and holds is not True) or (code in (1, 2) and holds is True)
        places = list(leaves(data))
        for chosen in rng.choice(len(places), min(changes, len(places)), replace=False).tolist():
            other = changed(data, places[chosen], float(rng.choice(SIZES)))
            holds, code = verdict(path, other), script(path)
            counts["changes"] += 1
            counts["disagreements"] += (code == 0 and holds is not True) or (code in (1, 2) and holds is True)
            if holds is not True:
                counts["refused"] += 1
            elif is_proof(places[chosen]):
                counts["proofs"] += 1
            elif still_true(other):
                counts["still true"] += 1
            else:
                counts["false"] += 1
                print("not shown to be true:", kind, place, places[chosen])
    return {"kind": kind, **{name: counts[name] for name in HEAD[1:]}}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study, and write its table and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--files", type=int, default=50, help="of each kind")
    parser.add_argument("--changes", type=int, default=10, help="of each file")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=sorted(KINDS))
    options = parser.parse_args(argv)
    files, changes = (2, 2) if options.quick else (options.files, options.changes)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        rows = [study(kind, files, changes, Path(folder)) for kind in options.kinds]
    cells = [[row[name] for name in HEAD] for row in rows]
    table(HEAD, cells)
    write_csv(options.out / "tampering.csv", HEAD, cells)
    figure = figure_class()(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    left = np.zeros(len(rows))
    for name in ("refused", "proofs", "still true", "false"):
        counts = np.array([row[name] for row in rows], dtype=float)
        axes.barh([row["kind"] for row in rows], counts, left=left, label=name)
        left += counts
    axes.set_xlabel("changes of one number")
    axes.legend()
    figure.savefig(options.out / "tampering.png", dpi=150)
    return 1 if any(row["false"] or row["disagreements"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
