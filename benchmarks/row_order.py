"""What a random order of the rows costs: `pmlopt apply` with it and with --keep-order, and other code.

The programs run in turn as processes of their own on the data of `apply.py`, each format by itself; time is
that of the processors, memory the peak of the process. With --other a checkout of other code, such as an
older one that keeps the order, runs as well.

    python benchmarks/row_order.py [--rows 10000000] [--repeats 3] [--other CHECKOUT] [--out FOLDER]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from apply import rule, write_data
from common import report, suite_parser

import pmlopt


def measured(checkout: Path, folder: Path, ending: str, *options: str) -> tuple[float, float]:
    """Seconds of the processors, and the peak memory in MiB, of one process that applies a mechanism."""
    columns = ["--column", "level", "--keep", "id", "--keep", "region", "--keep", "age"]
    words = ["apply", "rule.json", f"people.{ending}", *columns, "-o", f"out.{ending}", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "pmlopt", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def compare(rows: int, repeats: int, other: Path | None, out: Path | None) -> None:
    """All programs on both formats, in turn."""
    own = Path(pmlopt.__file__).parent.parent
    programs: dict[str, tuple[Path, tuple[str, ...]]] = {
        "random order": (own, ()),
        "kept order": (own, ("--keep-order",)),
    }
    if other is not None:
        programs["other code"] = (other.resolve(), ())
    table: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # a process starts with the peak of the one that made it: the data are made elsewhere
        writer = get_context("spawn").Process(target=write_data, args=(folder, rows))
        writer.start()
        writer.join()
        rule().save(folder / "rule.json")
        for ending in ("csv", "parquet"):
            found: dict[str, list[tuple[float, float]]] = {program: [] for program in programs}
            for _ in range(repeats):
                for program, (checkout, options) in programs.items():
                    found[program].append(measured(checkout, folder, ending, *options))
            cpu = {program: np.array(runs)[:, 0] for program, runs in found.items()}
            for program, runs in found.items():
                # of each turn by itself, as the machine may be slower in another
                ratio = float(np.median(cpu["random order"] / cpu[program]))
                seconds, peak = np.median(np.array(runs), axis=0)
                table.append((ending, program, f"{seconds:.2f}", f"{peak:.0f}", f"{ratio:.2f}"))
    head = ("format", f"{rows:,} rows", "processor [s]", "peak [MiB]", "random order costs, times")
    report(out, "row_order", head, table)


def main(argv: Sequence[str] | None = None) -> None:
    """Compare the programs."""
    parser = suite_parser(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--other", type=Path)
    asked = parser.parse_args(argv)
    quick = asked.quick
    compare(100_000 if quick else asked.rows, 1 if quick else asked.repeats, asked.other, asked.out)


if __name__ == "__main__":
    main()
