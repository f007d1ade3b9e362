"""HiGHS simplex iterations with and without the closed form as a warm start, where it is optimal.

python benchmarks/warm_start.py [--sizes 10 20 50 100] [--repeats 3] [--output FILE.png]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from common import growth_figure, interleaved, machine, table

from pmlopt import solve
from pmlopt.library.bench import list_families
from pmlopt.programs.plots import save_figure


def main(argv: Sequence[str] | None = None) -> None:
    """Run the comparison and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="A plot of the ratios.")
    arguments = parser.parse_args(argv)
    print(machine())
    rows = []
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for name, program in list_families(arguments.sizes):
        measured = interleaved(
            {
                "cold": partial(solve, program, "highs", warm_start=False),
                "warm": partial(solve, program, "highs"),
            },
            arguments.repeats,
        )
        cold, warm = measured["cold"], measured["warm"]
        assert warm[1].warm_started
        assert abs(cold[1].value - warm[1].value) < 1e-9
        rows.append(
            [
                f"{name}, N = {program.prior.size}",
                warm[1].closed_form.name,
                cold[1].iterations,
                warm[1].iterations,
                f"{cold[1].timings.solve / warm[1].timings.solve:.1f}",
                f"{cold[0] / warm[0]:.1f}",
            ]
        )
        sizes, ratios = lines.setdefault(name, ([], []))
        sizes.append(program.prior.size)
        ratios.append(cold[0] / warm[0])
    table(
        [
            "LP",
            "closed form",
            "iterations cold",
            "iterations warm",
            "solver time ratio",
            "whole time ratio",
        ],
        rows,
    )
    if arguments.output is not None:
        save_figure(growth_figure(lines, "time cold / warm"), arguments.output)


if __name__ == "__main__":
    main()
