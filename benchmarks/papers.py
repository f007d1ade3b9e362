"""Every figure and table of the papers: computed, and set beside what is printed.

    python benchmarks/papers.py [NAME ...] [--out FOLDER] [--resume] [--keep]
    python benchmarks/papers.py [NAME ...] --kept [--markdown]

The studies of the chosen figures run, and write their points into the folder. Then two things are asked of
each figure. Every point must be the one that is kept in benchmarks/data, within the figure's tolerance. And
every value that the paper states, or that a reader can work out by hand, must come out, within its own:
printed.toml lists them, with the value that is expected instead where the print is not right. One table for
each figure says what is printed, what was computed, what bounds it from above, and the difference; the exit
code is 1 where anything is outside its tolerance.

A study that has ended in the folder is not run again with `--resume`. `--keep` keeps the computed points
from then on. With `--kept` nothing is computed: the kept points are read. `--markdown` prints the tables for
the site.
"""

from __future__ import annotations

import argparse
import math
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from common import write_csv
from points import HERE, computed_in, rows_of, seconds_of

Rows = list[dict[str, str]]
Claim = Mapping[str, Any]
Line = tuple[str, str, str, str, str, bool]
"""What it is, printed, computed, its bound, the difference, and whether that is within the tolerance."""

PAPERS = tomllib.loads((HERE / "printed.toml").read_text("utf-8"))
FIGURES: Mapping[str, Claim] = PAPERS["figure"]
MOST = 2000
"""Points that are kept of one table."""

HEAD = ("what", "printed", "computed", "bound", "difference")


def main(argv: Sequence[str] | None = None) -> int:
    """Compute and compare; 1 where something is outside its tolerance."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"Of {', '.join(FIGURES)}; all, if none."
    )
    parser.add_argument("--out", type=Path, help="The folder for the points.")
    parser.add_argument(
        "--resume", action="store_true", help="Keep the studies that have ended there."
    )
    parser.add_argument(
        "--keep", action="store_true", help="Keep the computed points in benchmarks/data."
    )
    parser.add_argument(
        "--kept", action="store_true", help="Compute nothing: read the kept points."
    )
    parser.add_argument("--markdown", action="store_true", help="Print the tables for the site.")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(FIGURES)
    if unknown := set(names) - set(FIGURES):
        parser.error(f"no figure {', '.join(sorted(unknown))}; there are {', '.join(FIGURES)}")
    folder = (arguments.out or Path(mkdtemp(prefix="papers-"))).absolute()
    if not (arguments.kept or arguments.resume):
        for study in {study for name in names for study in studies(name)}:
            (folder / f".{study}").unlink(missing_ok=True)
    outside = []
    with nullcontext() if arguments.kept else computed_in(folder, of_the_paper=True):
        for name in names:
            if arguments.keep:
                keep(FIGURES[name])
            lines = [*claimed(FIGURES[name]), *([] if arguments.kept else compared(FIGURES[name]))]
            print("\n".join(shown(name, lines, markdown=arguments.markdown)), flush=True)
            outside += [f"{name}: {line[0]}" for line in lines if not line[-1]]
            if not arguments.kept:
                print(
                    f"\n{', '.join(f'{study}: {seconds_of(study)} s' for study in studies(name))}\n"
                )
    for line in outside:
        print(f"outside its tolerance: {line}", file=sys.stderr)
    if not arguments.kept:
        print(f"The points are in {folder}.")
    return bool(outside)


def studies(name: str) -> list[str]:
    """The studies that write the points of a figure."""
    return sorted({file.partition("/")[0] for file in FIGURES[name]["points"]})


def claimed(figure: Claim) -> Iterator[Line]:
    """The values of a figure that are printed, or known."""
    for claim in figure.get("value", ()):
        rows = [row for row in rows_of(claim["points"]) if matches(row, claim.get("where", {}))]
        if not rows:
            raise LookupError(f"no row of {claim['points']} has {claim['where']}")
        computed = number(rows, claim)
        expected = claim.get("here", claim.get("printed"))
        bound = f"{float(rows[0][claim['bound']]):.6g}" if "bound" in claim else ""
        difference = computed - expected
        within = {
            "equal": abs(difference) <= claim["tolerance"],
            "at least": difference >= -claim["tolerance"],
            "at most": difference <= claim["tolerance"],
        }[claim.get("relation", "equal")]
        printed = f"{claim['printed']:g}" if "printed" in claim else ""
        apart = f"{computed - claim.get('printed', expected):.2g}"
        yield claim["says"], printed, f"{computed:.6g}", bound, apart, within


def matches(row: Mapping[str, str], where: Mapping[str, Any]) -> bool:
    """Whether a row has these entries, numbers to six digits."""
    return all(
        row[name] == wanted
        if isinstance(wanted, str)
        else math.isclose(float(row[name]), wanted, rel_tol=1e-5, abs_tol=1e-9)
        for name, wanted in where.items()
    )


def number(rows: Rows, claim: Claim) -> float:
    """The number that a claim is about: of one row, the largest or smallest, or where a column rises."""
    values = [
        float(row[claim["column"]]) - float(row.get(claim.get("less", ""), "0")) for row in rows
    ]
    match claim.get("read", "only"):
        case "only":
            (value,) = values
            return value
        case "largest":
            return max(values)
        case "smallest":
            return min(values)
        case "rise":
            risen = [k for k in range(1, len(values)) if values[k] > values[k - 1] + 1e-9]
            return float(rows[risen[claim["nth"] - 1]][claim["along"]])
        case other:
            raise ValueError(f"unknown way to read a number: {other!r}")


def compared(figure: Claim) -> Iterator[Line]:
    """How far the points of a figure are from those that are kept, which may be fewer."""
    for file in figure["points"]:
        found, (kept, tolerance) = rows_of(file), (rows_of(file, kept=True), figure["tolerance"])
        apart = max(
            (
                distance(row[column], found[place][column])
                for place, row in enumerate(kept)
                for column in row.keys() - set(figure.get("but", ()))
            ),
            default=0.0,
        )
        says = f"{len(kept):,} points of {file} and those kept, apart by at most"
        yield (
            says,
            "",
            f"{apart:.1g}",
            f"{tolerance:g}",
            "",
            apart <= tolerance and len(found) >= len(kept),
        )


def keep(figure: Claim) -> None:
    """Keep the points of a figure to six digits, and of those that are many as many as a figure needs."""
    for file in figure["points"]:
        rows = rows_of(file)[:MOST]
        write_csv(
            HERE / "data" / f"{file}.csv",
            list(rows[0]),
            [list(map(rounded, row.values())) for row in rows],
        )


def rounded(entry: str) -> str:
    """A number to six digits, and a word as it is."""
    try:
        return f"{float(entry):.6g}"
    except ValueError:
        return entry


def distance(kept: str, found: str) -> float:
    """How far two entries are apart, relative to 1 and to the kept one; words must be the same."""
    if kept == found:
        return 0.0
    try:
        one, other = float(kept), float(found)
    except ValueError:
        return math.inf
    return abs(one - other) / max(1.0, abs(one)) if one != other else 0.0


def shown(name: str, lines: Sequence[Line], *, markdown: bool) -> Iterator[str]:
    """The table of a figure, without columns that are empty in all its rows."""
    figure = FIGURES[name]
    page = figure.get("page")
    yield (
        f"## [{figure['title']}](gallery/index.md#{page})"
        if markdown and page
        else f"## {figure['title']}"
    )
    yield ""
    if markdown:
        yield f"[{figure['paper']}, {figure['place']}], `python benchmarks/papers.py {name}`"
        yield ""
    rows = [(*line[:4], line[4] if line[-1] else f"**{line[4]} outside**") for line in lines]
    used = [column for column in range(len(HEAD)) if any(row[column] for row in rows)]
    yield "| " + " | ".join(HEAD[column] for column in used) + " |"
    yield "|" + " --- |" * len(used)
    for row in rows:
        yield "| " + " | ".join(row[column] for column in used) + " |"
    if markdown:
        yield ""


if __name__ == "__main__":
    sys.exit(main())
