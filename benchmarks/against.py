"""What this checkout takes of what another one of the project takes, row by row.

    python benchmarks/against.py BUILD [--rows NAME ...] [--without NAME ...] [--pairs NUMBER] [--out FOLDER]
    python benchmarks/against.py --list

BUILD is the folder of the other checkout. Each has its package in `.venv`. Both do the work of a row in turn,
the other one first, once to warm up and then in pairs, a long row in one pair alone; the ratio is the median
over the pairs. A time is that of the processor, of a process and of all that it starts; or, of work inside a
process, what the process prints last. Some rows have something else in place of the other checkout: HiGHS
alone, on the same programs (`beside-highs-...`), the same with fewer solves, or a limit. The table is printed
in Markdown with the machine and the date, and written to the folder after each row.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from against_rows import ROWS, AgainstError, AgainstTimeLimitError, Row
from common import machine, report, report_times

ROOT = Path(__file__).resolve().parents[1]
FILES = {"counts.csv": "answer,count\nnever,40\nmonthly,30\nweekly,20\ndaily,10\n"}
"""What there is in the folder in which a command runs, next to `people.parquet` where a row needs it."""

PEOPLE = 2_000_000


def measure(checkout: Path, row: Row, folder: Path) -> float:
    """Do the work of a row once; return its seconds.

    Raises:
        AgainstError: it failed.
        AgainstTimeLimitError: it takes too long.
    """
    python = checkout / ".venv" / "bin" / "python"
    made = str(folder / f"made-{time.time_ns()}")
    words = [str(python), *(word.replace("{made}", made) for word in row.arguments(checkout))]
    place = checkout if row.in_checkout else folder
    # compiled files are kept, as where somebody works
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = count_child_seconds()
    with subprocess.Popen(
        words,
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            printed, complaint = child.communicate(timeout=row.limit)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            raise AgainstTimeLimitError(f"{checkout.name} over {row.limit:g} s") from None
    reap_orphans(child.pid)
    if child.returncode:
        last = (complaint or printed).strip().splitlines()[-1:]
        raise AgainstError(
            f"{checkout}: {row.about}: exit code {child.returncode}: {' '.join(last)}"
        )
    return float(printed.split()[-1]) if row.is_inside else count_child_seconds() - before


def count_child_seconds() -> float:
    """The processor seconds of all processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def adopt_orphans() -> None:
    """Let processes whose parent ends before them be children of this one, so that their time counts."""
    with suppress(OSError, AttributeError):  # Linux has it
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def reap_orphans(group: int) -> None:
    """Wait for the processes of a group that were left behind."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


def compare(other: Path, row: Row, pairs: int) -> tuple[float, float, float]:
    """The median seconds of the other checkout and of this one, and the median ratio of the pairs."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in FILES.items():
            (Path(name) / file).write_text(text)
        if row.needs_people:
            write_people(Path(name) / "people.parquet")
        # what stands in for the other checkout is done by this one
        first = (other, row) if row.beside is None else (ROOT, replace(row, arguments=row.beside))
        both = (first, (ROOT, row))
        if pairs > 1:
            for checkout, work in both:
                measure(checkout, work, Path(name))
        times = [
            tuple(measure(checkout, work, Path(name)) for checkout, work in both)
            for _ in range(pairs)
        ]
    theirs, ours = zip(*times, strict=True)
    ratio = statistics.median(own / their for their, own in times)
    return statistics.median(theirs), statistics.median(ours), ratio


def write_people(path: Path) -> None:
    """Write a large table of made-up people."""
    rng = np.random.default_rng(0)
    levels = np.array(["none", "primary", "secondary", "bachelor", "graduate"])
    columns = {
        "education": levels[rng.choice(5, PEOPLE, p=[0.05, 0.15, 0.4, 0.25, 0.15])],
        "sex": np.array(["f", "m"])[rng.choice(2, PEOPLE, p=[0.52, 0.48])],
        "age": rng.integers(18, 90, PEOPLE),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


HEAD = ("work", "unit", "other", "this", "ratio", "asked", "reached", "pairs")


def main(argv: Sequence[str] | None = None) -> int:
    """Compare the rows, and print the table; 1 if one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), metavar="NAME", default=list(ROWS))
    parser.add_argument("--without", nargs="+", choices=list(ROWS), metavar="NAME", default=[])
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--list", action="store_true", help="The rows.")
    arguments = parser.parse_args(argv)
    if arguments.list or arguments.build is None:
        for name, row in ROWS.items():
            print(f"{name:20} {row.about}")
        return 0 if arguments.list else 2
    adopt_orphans()
    rows, failed = list[Sequence[object]](), False
    for name in (one for one in arguments.rows if one not in arguments.without):
        row, pairs = ROWS[name], arguments.pairs or ROWS[name].pairs
        try:
            theirs, ours, ratio = compare(arguments.build.resolve(), row, pairs)
        except AgainstTimeLimitError as cause:
            rows.append((row.about, row.unit, "", "", "", f"{row.asked:.2f}", str(cause), 1))
            continue
        except AgainstError as cause:
            print(cause, file=sys.stderr)
            failed = True
            continue
        reached = "yes" if ratio <= row.asked else "no"
        rows.append(
            (
                row.about,
                row.unit,
                f"{theirs:.4g}",
                f"{ours:.4g}",
                f"{ratio:.2f}",
                f"{row.asked:.2f}",
                reached,
                pairs,
            )
        )
        # a row takes minutes, and what comes after it may be stopped
        if arguments.out is not None:
            report(arguments.out, "against", HEAD, rows, show=False)
            print(" | ".join(map(str, rows[-1])), flush=True)
    report_times(arguments.out, "against", HEAD, rows)
    print_machine()
    return int(failed)


def print_machine() -> None:
    """Print the date and the machine."""
    load = os.getloadavg()[0]
    print(f"\n{date.today().isoformat()}, {os.cpu_count()} cores, load {load:.1f}, {machine()}")


if __name__ == "__main__":
    sys.exit(main())
