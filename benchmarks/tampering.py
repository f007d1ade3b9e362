"""Random saved results with one number changed, which is refused or true, for both verifiers.

Results of every kind of the fuzzer are saved. `verify_file` must find each true, and `verifier.py`, which
stands alone, must not disagree: it may say that it proves nothing. Then what stands in the file is changed,
one thing at a time: numbers by a share of 1e-3 or 1e-9, keys, labels and flags into others. Each change must
be refused, leave the claims as they are (a multiplier, a name), or leave a claim that is true when the
program is solved again. Each is checked in a process of its own: no check may abort, or take
more than 5 seconds or 1 GiB.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import random
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import table, write_csv
from fuzz import KINDS
from fuzzing.tampering import changed, is_proof, leaves, mutated, places, still_true, tells_nothing

from pmlopt import verify_file
from pmlopt.core.display import get_figure_class
from pmlopt.errors import PmloptError
from pmlopt.verification import verifier

HEAD = ("kind", "files", "true", "script true", "script silent", "changes", "refused", "proofs", "still true",
        "disagreements", "slow", "aborted", "MiB", "false")  # fmt: skip
SIZES = (1e-3, -1e-3, 1e-9)
SLOW = 5.0
"""Seconds that no check of a changed file may take."""

MEMORY = 2**10
"""MiB that no check of a changed file may take."""

ADDRESSES = 2**31
"""Bytes of addresses that it may have besides: whoever reads a file reserves what the largest may have."""

NAMED = ("outputs", "inputs", "labels", "values", "name", "unnamed", "pricing")
"""What holds names, of which other ones are as true."""

Path_ = tuple[str | int, ...]


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


def apart(path: Path, data: Any) -> tuple[bool, int, float, float]:
    """What both verifiers say of data, in a process of its own.

    Returns:
        What `verify_file` says, the code of the script (-1 where the process ended before both had spoken),
        the seconds, and the MiB that it took.
    """
    begin = time.monotonic()
    told, telling = os.pipe()
    child = os.fork()
    if child == 0:
        born = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (addresses + ADDRESSES,) * 2)
        with contextlib.suppress(BaseException):
            said = f"{int(verdict(path, data) is True)} {script(path)}"
            taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - born
            os.write(telling, f"{said} {taken / 2**10}".encode())
        os._exit(0)
    os.close(telling)
    os.waitpid(child, 0)
    answer = os.read(told, 100).split()
    os.close(told)
    seconds = time.monotonic() - begin
    if not answer:
        return False, -1, seconds, math.inf
    return answer[0] == b"1", int(answer[1]), seconds, float(answer[2])


def changes_of(data: Any, count: int, rng: np.random.Generator) -> Iterator[tuple[Path_, Any]]:
    """Places of a file with the file in which another thing stands there: numbers first, then anything."""
    numbers, every = list(leaves(data)), list(places(data))
    for chosen in rng.choice(len(numbers), min(count, len(numbers)), replace=False).tolist():
        yield numbers[chosen], changed(data, numbers[chosen], float(rng.choice(SIZES)))
    seeded = random.Random(int(rng.integers(2**32)))
    for place in seeded.sample(every, min(count, len(every))):
        yield place, mutated(data, place, seeded)


def shown(data: Any) -> bool:
    """Whether what the file claims is true when its program is solved again."""
    try:
        return still_true(data)
    except PmloptError:  # a program that cannot be stated again
        return False


def study(kind: str, files: int, changes: int, folder: Path) -> dict[str, Any]:
    """Counts for the results of one kind."""
    counts: Counter[str] = Counter()
    path, most = folder / "result.json", 0.0
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
        counts["script silent"] += code == 2
        counts["disagreements"] += code == 1 and holds is True
        for chosen, other in changes_of(data, changes, rng):
            holds, code, seconds, memory = apart(path, other)
            most = max(most, memory)
            counts["slow"] += seconds > SLOW
            counts["aborted"] += code == -1 or memory > MEMORY
            counts["changes"] += 1
            counts["disagreements"] += code == 1 and holds is True
            if other == data or not (holds or code == 0):
                counts["refused"] += 1
            elif is_proof(chosen) or tells_nothing(chosen) or set(NAMED) & set(chosen):
                counts["proofs"] += 1
            elif shown(other):
                counts["still true"] += 1
            else:
                counts["false"] += 1
                print("not shown to be true:", kind, place, chosen)
    return {"kind": kind, **{name: counts[name] for name in HEAD[1:]}, "MiB": math.ceil(most)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study, and write its table and plot."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"))
    parser.add_argument("--files", type=int, default=5, help="of each kind")
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
    figure = get_figure_class()(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    left = np.zeros(len(rows))
    for name in ("refused", "proofs", "still true", "false"):
        counts = np.array([row[name] for row in rows], dtype=float)
        axes.barh([row["kind"] for row in rows], counts, left=left, label=name)
        left += counts
    axes.set_xlabel("changes of one thing")
    axes.legend()
    figure.savefig(options.out / "tampering.png", dpi=150)
    return (
        1
        if any(
            row["false"] or row["disagreements"] or row["slow"] or row["aborted"] for row in rows
        )
        else 0
    )


if __name__ == "__main__":
    raise SystemExit(main())
