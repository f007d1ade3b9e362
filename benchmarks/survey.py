"""A column of an SPSS file through a mechanism, beside pyreadstat that reads and writes the file.

Both run in turn as processes of their own: processor seconds with those of their children, and the largest
memory of a process. pyreadstat writes a file from a whole table, so that memory grows with the rows.

    python benchmarks/survey.py [--rows 2000000] [--repeats 3] [--out FOLDER]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import report, suite_parser

from pmlopt import LDP, Prior, design, solve

READ_AND_WRITE = """
import sys
import pyreadstat
frame, _ = pyreadstat.read_sav(sys.argv[1])
pyreadstat.write_sav(frame, sys.argv[2])
"""


def write_people(path: Path, rows: int) -> None:
    """An answer with labels, a region and a weight."""
    import pandas as pd
    import pyreadstat

    rng = np.random.default_rng(0)
    people = pd.DataFrame({
        "smokes": rng.choice([1.0, 2.0, 3.0], rows),
        "region": rng.choice(["north", "south"], rows),
        "weight": rng.uniform(0.5, 2.0, rows),
    })  # fmt: skip
    labels = {"smokes": {1.0: "never", 2.0: "sometimes", 3.0: "daily"}}
    pyreadstat.write_sav(people, str(path), variable_value_labels=labels)


def measure(command: list[str]) -> tuple[float, float]:
    """Return the processor seconds of a process and its children, and its memory in MiB."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both, and print the table."""
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        data, rule = Path(folder, "people.sav"), Path(folder, "rule.json")
        write_people(data, arguments.rows)
        solve(design(Prior.from_counts({1: 1, 2: 1, 3: 1}), LDP(1.0), "hamming")).save(rule)
        commands = {
            "pyreadstat reads and writes": [sys.executable, "-c", READ_AND_WRITE],
            "pmlopt apply": [
                sys.executable, "-m", "pmlopt", "apply", str(rule), "--column", "smokes",
                "--keep", "region", "--keep", "weight",
            ],
            "pmlopt release": [
                sys.executable, "-m", "pmlopt", "release", "--column", "smokes", "--keep", "region",
                "--drop", "weight", "--epsilon", "1", "--utility", "hamming",
            ],
        }  # fmt: skip
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for repeat in range(arguments.repeats):
            for name, command in commands.items():
                target = str(Path(folder, f"{name.split()[1]}{repeat}.sav"))
                ends = [str(data), target] if "-c" in command else [str(data), "-o", target]
                seen[name].append(measure([*command, *ends]))
        times = {name: statistics.median(one[0] for one in runs) for name, runs in seen.items()}
        first = next(iter(times.values()))
        rows = [
            (
                name,
                f"{times[name]:.1f}",
                f"{times[name] / first:.2f}",
                f"{max(one[1] for one in runs):.0f}",
            )
            for name, runs in seen.items()
        ]
    head = (f"{arguments.rows:,} rows", "processor s", "ratio", "MiB")
    report(arguments.out, "survey", head, rows)


if __name__ == "__main__":
    main()
