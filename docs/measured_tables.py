"""Write the tables of pages that come from files of measured figures: `python docs/measured_tables.py`.

A page has two comments where such a table belongs, `<!-- table of FILE -->` and `<!-- end of the table -->`,
with the path of a CSV file from the root of the project; what is between them is written here. With
`<!-- table of FILE: VIEW -->` it is that view of the file's rows. Under a table stands when and on which
machine it was measured, where the benchmark has left that beside the file. A page with the comments
`<!-- machines -->` and `<!-- end of the machines -->` has the machines and versions of its tables once,
between them, and only date, clock and load under each table.
"""

from __future__ import annotations

import csv
import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

DOCS = Path(__file__).parent
PLACE = re.compile(
    r"(<!-- table of ([^\s:]+)(?:: ([^>]+?))? -->\n).*?(<!-- end of the table -->)", re.DOTALL
)
MACHINES = re.compile(r"(<!-- machines -->\n).*?(<!-- end of the machines -->)", re.DOTALL)
SHOWN_PACKAGES = ("pmlopt", "numpy", "scipy", "cvxpy", "highspy", "clarabel", "scs", "qif")

Row: TypeAlias = dict[str, str]
Table: TypeAlias = list[list[str]]
"""The head, and the rows."""

Facts: TypeAlias = Mapping[str, object]
"""What a benchmark leaves about its run: date, clock, machine and versions."""


def read_rows(path: str) -> list[Row]:
    """Read the rows of a CSV file by their heads.

    Raises:
        ValueError: a run failed: its numbers are those of a mistake in the benchmark.
    """
    with (DOCS.parent / path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows, 1):
        if any(cell.startswith("failed") for cell in row.values()):
            raise ValueError(f"{path}: run {number} failed: repair its benchmark, and run it again")
    return rows


# ---------------------------------------------------------------- what a page shows of a file


def select_columns(rows: Sequence[Row], columns: Mapping[str, str]) -> Table:
    """Select columns, given by their heads on the page."""
    return [list(columns), *([row[name] for name in columns.values()] for row in rows)]


def spread_sizes(
    rows: Sequence[Row], value: str, *, size: str = "N", last: Sequence[str] = ()
) -> Table:
    """Put the sizes of each kind side by side, and then other columns of its largest size."""
    sizes = list(dict.fromkeys(row[size] for row in rows))
    kinds: dict[str, dict[str, Row]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], {})[row[size]] = row
    head = ["kind", *(f"`N = {n}`" for n in sizes), *(f"{name} at {sizes[-1]}" for name in last)]
    return [head, *([kind, *(found[n][value] for n in sizes), *(found[sizes[-1]][name] for name in last)]
                    for kind, found in kinds.items())]  # fmt: skip


def _letters(rows: Sequence[Row]) -> list[Row]:
    counted_in_records = ("record leakage", "leakage-distortion")
    return [row for row in rows if not row["kind"].startswith(counted_in_records)]


GROWTH_INSTANCES = {
    "mutual information": "mutual information, 20,000 counts",
    "least leakage": r"least leakage, loss \|i-j\|",
}
"""Kinds of benchmarks/growth.py with another instance than random probabilities and gains."""


def show_growth(rows: Sequence[Row]) -> Table:
    """Show seconds by the number of letters, the exponent, and the largest peak of memory."""
    head, *lines = spread_sizes(_letters(rows), "seconds", size="size")
    last = {row["kind"]: row["exponent"] for row in rows if row["exponent"]}
    peaks: dict[str, int] = {}
    for row in rows:
        peaks[row["kind"]] = max(peaks.get(row["kind"], 0), int(row["peak [MiB]"]))
    more = [
        [GROWTH_INSTANCES.get(kind, kind), *seconds, last.get(kind, ""), str(peaks[kind])]
        for kind, *seconds in lines
    ]
    return [[*head, "exponent", "largest peak [MiB]"], *more]


def show_structured(rows: Sequence[Row]) -> Table:
    """Show the ratio of every kind to PML, by the number of letters."""
    return spread_sizes(rows, "ratio to PML", last=("seconds", "gap"))


def show_small(rows: Sequence[Row]) -> Table:
    """Show milliseconds by the number of letters, and the ratios of the generic solvers at each."""
    others = ("Clarabel / ours", "HiGHS / ours")
    head, *lines = spread_sizes(rows, "pmlopt.solve [ms]")
    for line in lines:
        own = [row for row in rows if row["kind"] == line[0]]
        line += [", ".join(filter(None, (row[other] for row in own))) for other in others]
    return [[*head, *others], *lines]


def show_processes(rows: Sequence[Row]) -> Table:
    """Show the processor time of each command."""
    return select_columns(rows, {"process": "process", "processor [s]": "processor [s]"})


def show_qif(rows: Sequence[Row]) -> Table:
    """Show each design beside the fastest solver of qif that ended, and beside qif's own choice."""
    head = ["loss", "prior", "N", "pmlopt.solve [ms]", "best of qif [ms]", "which", "qif's own choice [ms]",
            "best of qif / ours", "level of its matrix"]  # fmt: skip
    losses = {"absolute": r"\|i-j\|", "hamming": "Hamming"}
    designs: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        place = (row["loss"], row["prior"], row["N"])
        designs.setdefault(place, {})[row["contestant"]] = row
    lines = []
    for (loss, prior, size), found in designs.items():
        own, *others = (row for row in found.values() if row["status"] == "done")
        best = min(others, key=lambda row: float(row["milliseconds"]))
        ratio = float(best["milliseconds"]) / float(own["milliseconds"])
        lines.append([losses[loss], prior, size, own["milliseconds"], best["milliseconds"],
                      best["contestant"].removeprefix("qif, "), found["qif, its choice"]["milliseconds"],
                      f"{ratio:.2f}", best["level"]])  # fmt: skip
    return [head, *lines]


def show_dual_signs(rows: Sequence[Row]) -> Table:
    """Show the solvers that were called without cvxpy by the signs of their dual values."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row["program"] == "known" and row["direct_status"]:
            ends = [row[f"direct_dual_of_{end}"] for end in ("equation", "bound")]
            signs = ", ".join(f"{float(one):.2g}" for one in ends if one) or "none"
            groups.setdefault(signs, []).append(row["solver"])
    lines = [[", ".join(names), signs] for signs, names in groups.items()]
    return [["solvers", "dual values"], *lines]


VIEWS: Mapping[str, Callable[[Sequence[Row]], Table]] = {
    "seconds": show_growth,
    "kinds": show_structured,
    "processes": show_processes,
    "small": show_small,
    "best of qif": show_qif,
    "signs of duals": show_dual_signs,
}
"""What pages show of a file, by the name in the comment."""


# ---------------------------------------------------------------- the pages


def write_table(table: Table) -> str:
    """Write a table in Markdown, whose stars and bars mean themselves."""
    head, *rows = [[re.sub(r"(?<!\\)[|*]", r"\\\g<0>", cell) for cell in line] for line in table]
    head_line, *lines = (f"| {' | '.join(line)} |\n" for line in (head, *rows))
    return f"{head_line}|{'---|' * len(head)}\n{''.join(lines)}"


def render_table(path: str, view: str | None = None, *, short: bool = False) -> str:
    """Render a CSV file, or a view of it, as a table in Markdown with its origin: if `short`, no machine."""
    found = read_rows(path)
    head, *rows = [list(found[0]), *(list(row.values()) for row in found)]
    if view is not None:
        head, *rows = VIEWS[view](found)
    text = write_table([head, *rows])
    facts = read_facts(path)
    if facts is None:
        return f"\n{text}\n"
    origin = describe_run(facts) if short else f"{describe_run(facts)}: {describe_machine(facts)}"
    return f"\n{text}\n{textwrap.fill(f'*{origin}.*', 110)}\n\n"


def read_facts(path: str) -> Facts | None:
    """Read when, where and with what a file was measured, if that is known."""
    file = DOCS.parent / path
    for stem in dict.fromkeys((file.stem, file.stem.split("-")[0])):
        facts = file.with_name(f"{stem}-machine.json")
        if facts.exists():
            found: Facts = json.loads(facts.read_text("utf-8"))
            return found
    return None


def describe_run(facts: Facts) -> str:
    """Describe when a run was: its date, clock and load."""
    clock = f" in {facts['clock']} time" if "clock" in facts else ""
    load = f", load average {facts['load']}" if "load" in facts else ""
    return f"Measured on {facts['date']}{clock}{load}"


def describe_machine(facts: Facts) -> str:
    """Describe the machine of a run, and the versions."""
    packages = facts["packages"]
    assert isinstance(packages, dict)
    versions = [f"{name} {packages[name]}" for name in SHOWN_PACKAGES if packages.get(name)]
    processor = f" of {facts['processor']}" if "processor" in facts else ""
    where = f"{facts['cores']} cores{processor}, {facts['system']}"
    return f"{where}; Python {facts['python']}, {', '.join(versions)}"


def list_machines(paths: Sequence[str]) -> str:
    """List the machines and versions of these files, each with the dates of its runs."""
    dates: dict[str, set[str]] = {}
    for facts in filter(None, map(read_facts, paths)):
        dates.setdefault(describe_machine(facts), set()).update(str(facts["date"]).split(" to "))
    lines = [
        textwrap.fill(
            f"*Measured on {' to '.join(sorted({min(days), max(days)}))}: {machine}.*",
            110,
            initial_indent="- ",
            subsequent_indent="  ",
        )
        for machine, days in dates.items()
    ]
    return "\n" + "\n".join(lines) + "\n\n"


def fill_tables(page: str) -> str:
    """Return the text of a page with its tables as the files have them."""
    short = MACHINES.search(page) is not None
    filled = PLACE.sub(
        lambda found: found[1] + render_table(found[2], found[3], short=short) + found[4], page
    )
    listed = list_machines([found[2] for found in PLACE.finditer(page)])
    return MACHINES.sub(lambda found: found[1] + listed + found[2], filled)


def list_pages() -> list[Path]:
    """List the pages that have such tables."""
    return [path for path in sorted(DOCS.rglob("*.md")) if PLACE.search(path.read_text("utf-8"))]


def main() -> None:
    """Write all pages."""
    for path in list_pages():
        path.write_text(fill_tables(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
