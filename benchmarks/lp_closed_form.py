"""Linear programs beside closed forms: the same value, and what the formula saves, over N.

    python benchmarks/lp_closed_form.py [--letters 5 10 20 50 100] [--only PATTERN] [--repeats 3]
        [--out FOLDER] [--quick]

The first table solves LPs whose optimum is known by formula, cold and certified, and times the search for the
closed form with its own dual certificate. The second and third are the library check of `pmlopt bench`: each
instance that names a closed form, its linear program or what else solves it, and the formula alone. Each is
run once before it is timed. The last is HiGHS's simplex with and without the closed form as a start.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from common import growth_figure, interleaved, machine, report, report_times, suite_parser

from pmlopt import solve
from pmlopt.library import bench, load_all
from pmlopt.library.bench import list_families
from pmlopt.programs.linear.formulation import find_known_optimum
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.plots import save_figure

HEAD = (
    "LP",
    "N",
    "closed form",
    "LP [ms]",
    "closed form [ms]",
    "ratio",
    "difference",
    "gap",
    "solver",
)
LIBRARY = (
    "instance", "claim", "closed form", "holds", "difference", "solved [ms]", "closed form [ms]", "ratio",
    "problem",
)  # fmt: skip
STARTS = (
    "LP",
    "N",
    "iterations cold",
    "iterations warm",
    "solver's times, ratio",
    "whole times, ratio",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Compare, print both tables and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--letters", type=int, nargs="+", default=[5, 10, 20, 50, 100])
    parser.add_argument("--only", default="*", help="A pattern of names of families and problems.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args(argv)
    print(machine())
    sizes, repeats = ([5, 10], 1) if arguments.quick else (arguments.letters, arguments.repeats)
    lines: dict[str, tuple[list[float], list[float]]] = {}
    rows = []
    for name, program in list_families(sizes):
        if not fnmatchcase(name, arguments.only):
            continue
        row, seconds = compared(name, program, repeats)
        rows.append(row)
        for what, time in seconds.items():
            across, times = lines.setdefault(f"{name}, {what}", ([], []))
            across.append(program.prior.size)
            times.append(time)
    report_times(arguments.out, "lp_closed_form", HEAD, rows)
    print()
    linear, others = library(repeats, arguments.only)
    report(arguments.out, "lp_closed_form-library", LIBRARY, linear)
    print()
    report(arguments.out, "lp_closed_form-others", LIBRARY, others)
    print()
    starts = [start_from_form(*one, repeats) for one in list_families(sizes)]
    report(arguments.out, "lp_closed_form-starts", STARTS, starts)
    if arguments.out is not None:
        save_figure(growth_figure(lines, "seconds"), arguments.out / "lp_closed_form.png")


def compared(name: str, program: LinearDesign, repeats: int) -> tuple[list[str], dict[str, float]]:
    """One row, and the seconds of both."""
    solve(program, warm_start=False)  # loads the solver
    measured = interleaved(
        {
            "LP": partial(solve, program, warm_start=False),
            "closed form": partial(find_known_optimum, program),
        },
        repeats,
    )
    (slow, result), (fast, known) = measured["LP"], measured["closed form"]
    row = [
        name, str(program.prior.size), known.name, f"{1000 * slow:.2f}", f"{1000 * fast:.3f}",
        f"{slow / fast:.1f}", f"{result.value - known.value:.0e}", f"{result.gap:.0e}", result.solver,
    ]  # fmt: skip
    return row, {"LP": slow, "closed form": fast}


def start_from_form(name: str, program: LinearDesign, repeats: int) -> list[Any]:
    """Return iterations and ratios of times of the simplex without and with a closed form as a start."""
    starts = {"cold": partial(solve, program, "highs", warm_start=False)}
    starts["warm"] = partial(solve, program, "highs")
    measured = interleaved(starts, repeats)
    (slow, cold), (fast, warm) = measured["cold"], measured["warm"]
    assert warm.warm_started
    assert abs(cold.value - warm.value) < 1e-9
    solver = f"{cold.timings.solve / warm.timings.solve:.1f}"
    return [
        name,
        program.prior.size,
        cold.iterations,
        warm.iterations,
        solver,
        f"{slow / fast:.1f}",
    ]


def library(repeats: int, pattern: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of `pmlopt bench`, linear programs and others; fail where a claim does not hold."""
    rows: tuple[list[list[str]], list[list[str]]] = [], []
    for row in bench.compare_instances(
        (one for one in load_all() if fnmatchcase(one.id, pattern)), repeats
    ):
        cells = ["", "", "", ""]
        if row.solve_seconds is not None:
            cells = [
                f"{row.difference:.0e}", f"{1000 * row.solve_seconds:.2f}",
                f"{1000 * row.closed_seconds:.3f}",
                f"{row.ratio:.0f}",
            ]  # fmt: skip
        rows[not row.linear].append([
            row.id, row.relation, row.closed_form, "yes" if row.holds else "NO", *cells, row.problem or ""
        ])  # fmt: skip
    assert not (wrong := [row[0] for part in rows for row in part if row[3] != "yes"]), wrong
    return rows


if __name__ == "__main__":
    main()
