"""Linear programs beside closed forms: the same value, and what the formula saves, over N.

    python benchmarks/lp_closed_form.py [--sizes 5 10 20 50 100] [--repeats 3] [--out FOLDER] [--quick]

The first table solves LPs whose optimum is known by formula, cold and certified, and times the search for the
closed form with its own dual certificate. The second is the library check of `pmlopt bench`: each instance
that names a closed form, its LP, and the formula alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from common import growth_figure, interleaved, machine, report, suite_parser
from warm_start import programs

from pmlopt import solve
from pmlopt.library import bench, load_all
from pmlopt.programs.linear.certifying import known_optimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.plots import save_figure

HEAD = ("LP", "N", "closed form", "LP [ms]", "closed form [ms]", "ratio", "difference", "gap", "solver")
LIBRARY = (
    "instance", "claim", "closed form", "holds", "difference", "LP [ms]", "closed form [ms]", "ratio",
    "problem",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, print both tables and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args(argv)
    print(machine())
    sizes, repeats = ([5, 10], 1) if arguments.quick else (arguments.sizes, arguments.repeats)
    lines: dict[str, tuple[list[float], list[float]]] = {}
    rows = []
    for name, program in programs(sizes):
        row, seconds = compared(name, program, repeats)
        rows.append(row)
        for what, time in seconds.items():
            across, times = lines.setdefault(f"{name}, {what}", ([], []))
            across.append(program.prior.size)
            times.append(time)
    report(arguments.out, "lp_closed_form", HEAD, rows)
    print()
    report(arguments.out, "lp_closed_form-library", LIBRARY, library(repeats))
    if arguments.out is not None:
        save_figure(growth_figure(lines, "seconds"), arguments.out / "lp_closed_form.png")


def compared(name: str, program: LinearDesign, repeats: int) -> tuple[list[str], dict[str, float]]:
    """One row, and the seconds of both."""
    measured = interleaved(
        {"LP": partial(solve, program, warm_start=False), "closed form": partial(known_optimum, program)},
        repeats,
    )
    (slow, result), (fast, known) = measured["LP"], measured["closed form"]
    row = [
        name, str(program.prior.size), known.name, f"{1000 * slow:.2f}", f"{1000 * fast:.3f}",
        f"{slow / fast:.1f}", f"{result.value - known.value:.0e}", f"{result.gap:.0e}", result.solver,
    ]  # fmt: skip
    return row, {"LP": slow, "closed form": fast}


def library(repeats: int) -> list[list[str]]:
    """The rows of `pmlopt bench`; an assertion fails where a claim does not hold."""
    rows = []
    for row in bench.compare(load_all(), repeats):
        cells = ["", "", "", ""]
        if row.lp_seconds is not None:
            cells = [
                f"{row.difference:.0e}", f"{1000 * row.lp_seconds:.2f}", f"{1000 * row.closed_seconds:.3f}",
                f"{row.ratio:.0f}",
            ]  # fmt: skip
        rows.append([
            row.id, row.relation, row.closed_form, "yes" if row.agrees else "NO", *cells, row.problem or ""
        ])  # fmt: skip
    assert all(row[3] == "yes" for row in rows), [row[0] for row in rows if row[3] != "yes"]
    return rows


if __name__ == "__main__":
    main()
