"""What a random order of the rows costs: `pmlopt apply` with it and with --keep-order, and other code.

The programs run in turn as processes of their own on the data of `apply.py`, each format by itself; time is
that of the processors, memory the peak of the process. With --other a checkout of other code, such as an
older one that keeps the order, runs as well.

    python benchmarks/row_order.py [--rows 10000000] [--repeats 3] [--other CHECKOUT] [--out FOLDER]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from apply import OWN, apply_command, data_folder, measured
from common import report, suite_parser


def compare(rows: int, repeats: int, other: Path | None, out: Path | None) -> None:
    """All programs on both formats, in turn."""
    programs: dict[str, tuple[Path, tuple[str, ...]]] = {
        "random order": (OWN, ()),
        "kept order": (OWN, ("--keep-order",)),
    }
    if other is not None:
        programs["other code"] = (other.resolve(), ())
    table: list[tuple[str, ...]] = []
    with data_folder(rows) as folder:
        for ending in ("csv", "parquet"):
            found: dict[str, list[tuple[float, float]]] = {program: [] for program in programs}
            for _ in range(repeats):
                for program, (checkout, options) in programs.items():
                    cpu_time, _, peak = measured(apply_command(ending, *options), folder, checkout)
                    found[program].append((cpu_time, peak))
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
