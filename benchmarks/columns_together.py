"""Columns of a person under one total: apart at one epsilon, in groups designed in turn, on tuples.

    python benchmarks/columns_together.py [--totals 0.25 0.5 1 2] [--out FOLDER] [--quick]
    python benchmarks/columns_together.py --laws 200

The data are those of `pmlopt example`, with education by the absolute error over 15 and sex by half the
balanced error, and three columns with the Hamming loss of each of three data sets of statsmodels; counts are
rounded as in a release. Each row has the expected loss of releasing nothing, of separate mechanisms at the
largest common epsilon that keeps the total, of separate mechanisms designed in turn, and of one on tuples.
With --laws groups are tested on so many random laws: within the total in fractions, no worse than by hand.
"""

from __future__ import annotations

import runpy
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import machine, report, report_times, suite_parser

from pmlopt import Prior, solve
from pmlopt.programs.column_designs import joint_design, measure_columns
from pmlopt.publishing.example import write_example
from pmlopt.publishing.joint_columns import count_stated_rows
from pmlopt.releases.accounts.column_groups import group_design, split_evenly

HEAD = ("file", "columns", "tuples", "total", "nothing", "apart", "in turn", "together", "cpu [s]")
EDUCATION_AND_SEX = {"education": "absolute", "sex": "balanced-match"}
UNITS = {"education": 1 / 15, "sex": 1 / 2}
PACKAGED = {
    "anes96": ("PID", "vote", "educ"),
    "fair": ("rate_marriage", "religious", "educ"),
    "randhie": ("idp", "hlthg", "hlthf"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every file at every total, and print the table."""
    parser = suite_parser(__doc__)
    parser.add_argument("--totals", nargs="+", type=float, default=[0.25, 0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--laws", type=int)
    arguments = parser.parse_args(argv)
    if arguments.laws is not None:
        check_laws(arguments.laws)
        return
    print(machine())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        example = Path(folder) / "example.csv"
        write_example(example)
        tasks: list[tuple[Path, dict[str, str], dict[str, float] | None]] = [
            (example, EDUCATION_AND_SEX, UNITS)
        ]
        if not arguments.quick:
            tasks += [write_task(Path(folder), *one) for one in PACKAGED.items()]
        for path, utilities, weights in tasks:
            for total in arguments.totals[1:3] if arguments.quick else arguments.totals:
                rows.append(measure(path, utilities, weights, total))
                report(arguments.out, "columns_together", HEAD, rows, show=False)
    report_times(arguments.out, "columns_together", HEAD, rows)


def check_laws(count: int) -> None:
    """Run the test of groups on random laws; an assertion fails at the first that is wrong."""
    path = Path(__file__).parents[1] / "tests/releases/accounts/test_column_groups.py"
    test = runpy.run_path(str(path))[
        "test_groups_keep_the_total_exactly_and_lose_no_more_than_by_hand"
    ]
    for seed in range(count):
        test(seed)
    print(f"groups keep the total on {count} random laws, and lose no more than by hand")


def write_task(
    folder: Path, name: str, columns: Sequence[str]
) -> tuple[Path, dict[str, str], None]:
    """Write columns of a data set of statsmodels to a file, with the Hamming loss for each."""
    from statsmodels import datasets  # a package of the benchmarks

    path = folder / f"{name}.csv"
    getattr(datasets, name).load_pandas().data[list(columns)].to_csv(path, index=False)
    return path, dict.fromkeys(columns, "hamming"), None


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
