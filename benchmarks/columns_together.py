"""Columns of a person under one total: apart at one epsilon, in groups designed in turn, on tuples.

    python benchmarks/columns_together.py [--totals 0.25 0.5 1 2] [--files FILE ...] [--out FOLDER] [--quick]

The data are those of `pmlopt example`, with education by the absolute error over 15 and sex by half the
balanced error, and any CSV files in whose first three columns short lists of values stand; counts are rounded
as in a release. Each row has the expected loss of releasing nothing, of separate mechanisms at the largest
common epsilon that keeps the total, of separate mechanisms designed in turn, and of one on the tuples.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import machine, report, suite_parser

from pmlopt import Prior, solve
from pmlopt.programs.column_designs import joint_design, measure_columns
from pmlopt.publishing.example import write_example
from pmlopt.publishing.joint_columns import count_stated_rows
from pmlopt.releases.accounts.column_groups import group_design, split_evenly

HEAD = ("file", "columns", "tuples", "total", "nothing", "apart", "in turn", "together", "cpu [s]")
EDUCATION_AND_SEX = {"education": "absolute", "sex": "balanced-match"}
UNITS = {"education": 1 / 15, "sex": 1 / 2}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every file at every total, and print the table."""
    parser = suite_parser(__doc__)
    parser.add_argument("--totals", nargs="+", type=float, default=[0.25, 0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--files", nargs="*", type=Path, default=[])
    arguments = parser.parse_args(argv)
    print(machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        example = Path(folder) / "example.csv"
        write_example(example)
        tasks = [(example, EDUCATION_AND_SEX, UNITS), *map(read_task, arguments.files)]
        for path, utilities, weights in tasks:
            for total in arguments.totals[1:3] if arguments.quick else arguments.totals:
                rows.append(measure(path, utilities, weights, total))
                report(arguments.out, "columns_together", HEAD, rows, show=False)
    report(arguments.out, "columns_together", HEAD, rows)


def read_task(path: Path) -> tuple[Path, dict[str, str], None]:
    """Return a file with the Hamming loss for each of its first three columns."""
    with path.open(newline="") as lines:
        names = next(csv.reader(lines))
    return path, dict.fromkeys(names[:3], "hamming"), None


def measure(
    path: Path, utilities: dict[str, Any], weights: Mapping[str, float] | None, total: float
) -> tuple[Any, ...]:
    """Measure the three ways on the rounded counts of a file."""
    begin = time.process_time()
    stated = count_stated_rows(path, list(utilities))
    prior = Prior.from_weights(list(stated.values()), list(stated))
    apart = split_evenly(prior, total, utilities, weights)
    groups = [[name] for name in utilities]
    in_turn = group_design(prior, total, utilities, groups, weights=weights)
    together = solve(joint_design(prior, total, utilities, weights=weights))
    parts = measure_columns(prior, together.mechanism, utilities, weights)
    nothing = sum(one.weight * one.nothing for one in parts)
    values = (nothing, apart.value, in_turn.value, together.value)
    seconds = round(time.process_time() - begin, 1)
    return (
        path.stem, " ".join(utilities), prior.size, total, *(round(v, 4) for v in values), seconds,
    )  # fmt: skip


if __name__ == "__main__":
    main()
