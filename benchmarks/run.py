"""Every benchmark, by one command: a table and a plot each, with the machine that they belong to.

    python benchmarks/run.py [--out FOLDER] [--quick] [--only NAME ...] [--list]

Writes `<name>.csv`, `<name>.png` and what was printed as `<name>.md` to the folder, `summary.csv` with how
each benchmark ended, and `machine.json`. Each runs in a process of its own; one that fails, or leaves no
table or no plot, is recorded, the others still run, and the exit code is 1. `--quick` makes all of them
small: a smoke test, whose times mean nothing. Needs `pip install '.[benchmarks]'`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common import kept, machine_facts, table, write_csv

OUT = Path("benchmark-results")
HEAD = ("benchmark", "seconds", "ended", "problem")


@dataclass(frozen=True)
class Benchmark:
    """One script beside this one.

    Attributes:
        about: what it measures.
        full, quick: its arguments; `{out}` stands for the folder.
    """

    about: str
    full: tuple[str, ...] = ("--out", "{out}")
    quick: tuple[str, ...] = ("--out", "{out}", "--quick")


def drawn(name: str, *quick: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments of a script that takes the path of its plot."""
    full = ("--output", f"{{out}}/{name}.png")
    return full, (*full, *quick)


BENCHMARKS: Mapping[str, Benchmark] = {
    "tampering": Benchmark("saved results with one number changed, and both verifiers"),
    "samplers": Benchmark("generated samplers of each language against their matrix"),
    "release_check": Benchmark("how often the check of a release refuses honest and copied rows"),
    "large": Benchmark(
        "linear designs up to N = 400, and of 4,000 x 20, beside generic LP solvers"
    ),
    "ends": Benchmark("metric privacy on many points of planes, grids and roads beside cvxpy"),
    "small": Benchmark("processes of the command, and designs on few letters beside cvxpy"),
    "qif_compare": Benchmark("LDP designs beside the library qif"),
    "estimation_peers": Benchmark("frequencies by multi-freq-ldpy and pure-ldp, and by designs"),
    "interval_coverage": Benchmark("how often the intervals of estimates hold"),
    "models": Benchmark("regressions on released columns: coverage, bias, and seconds of a fit"),
    "audit_power": Benchmark(
        "samples that refute or confirm a claim, beside intervals of all entries"
    ),
    "program_audits": Benchmark(
        "how often the bounds on programs are wrong at fixed sizes and any stop, and how wide they are"
    ),
    "streams": Benchmark(
        "a chain from the climate: streams beside LDP at epsilon / T, and a bound on policies"
    ),
    "growth": Benchmark("every kind of problem over its size"),
    "structured_kinds": Benchmark("the kinds of the structured interior point beside PML"),
    "operations": Benchmark("the structured interior point beside the rate of the processor"),
    "ending": Benchmark(
        "solves with limits from a millisecond on: a mechanism each time, and no overrun",
        ("--count", "300"),
        ("--count", "36"),
    ),
    "dust": Benchmark(
        "the rarest outputs of designs that an interior point solves",
        *drawn("dust", "--count", "12"),
    ),
    "symmetry": Benchmark(
        "designs by orbit against the number of records, beside the listed program"
    ),
    "sweeps": Benchmark("a sweep of thirty epsilon beside cold solves and DPP"),
    "formulations": Benchmark("sparse forms beside the printed ones"),
    "lp_closed_form": Benchmark(
        "linear programs beside closed forms, and the simplex started from them"
    ),
    "vipr_proofs": Benchmark(
        "proofs of every linear kind by a checker of certificates, and changed ones",
        ("--out", "{out}", "--results", "100", "--letters", "4", "12"),
    ),
    "row_order": Benchmark("the random order of released rows"),
    "enumeration": Benchmark(
        "mutual information: all extreme columns, or generated ones",
        *drawn("enumeration", "--sizes", "6", "8"),
    ),
    "tradeoff": Benchmark("error against epsilon, Adult data", *drawn("tradeoff", "--points", "6")),
    "information": Benchmark(
        "mutual information against epsilon, Adult data", *drawn("information", "--points", "4")
    ),
    "information_gaps": Benchmark(
        "what is proved of f-informations on many letters, and over sets of priors"
    ),
    "about_secrets": Benchmark(
        "the privacy funnel for several secrets, and metric privacy beside all pairs",
        *drawn(
            "secrets",
            "--points",
            "4",
            "--sizes",
            "5",
            "--repeats",
            "1",
            "--large",
            "12",
            "--grid",
            "3",
            "--letters",
            "10",
            "--plane",
            "10",
        ),
    ),
    "worst_case": Benchmark(
        "song2026worstcase, Figures 1 to 3, and what the optimum costs",
        *drawn(
            "worst_case",
            "--draws",
            "50",
            "--sizes",
            "10",
            "--large",
            "50",
            "--sets",
            "6",
            "--repeats",
            "1",
            "--study",
            "5",
        ),
    ),
    "estimation": Benchmark(
        "grosse2025empirical, Figures 2 and 3", *drawn("estimation", "--priors", "200")
    ),
    "estimation_designs": Benchmark(
        "designs for estimation beside the literature's, and coverage of intervals",
        *drawn("estimation_designs", "--runs", "100", "--letters", "6", "--without-list"),
    ),
    "envelope": Benchmark(
        "saeidian2026envelopes, Figures 1 and 2, and what the envelope costs",
        *drawn("envelope", "--priors", "50", "--letters", "5", "--sizes", "5x5"),
    ),
    "envelope_design": Benchmark(
        "designs within an envelope: gains over PML, and gaps",
        (),
        ("--draws", "3", "--letters", "2", "3"),
    ),
    "noise": Benchmark(
        "grosse2025empirical, Figures 4 to 7, and saeidian2025histogram, Figure 1",
        ("--output", "{out}/noise.png", "--histogram", "{out}/noise-histogram.png"),
        (
            "--output",
            "{out}/noise.png",
            "--histogram",
            "{out}/noise-histogram.png",
            "--repeats",
            "50",
        ),
    ),
    "additive_noise": Benchmark("the least loss at a level next to additive noise, for five laws"),
    "records": Benchmark("wu2026entropy, Table 3 and Figures 3 to 5", *drawn("records", "--quick")),
    "record_dimensions": Benchmark(
        "the proved gap of a record's leakage over the number of outputs",
        *drawn("record_dimensions", "--quick"),
    ),
    "distortion": Benchmark("wu2026entropy, Figures 5 to 7", *drawn("distortion", "--quick")),
    "continuous": Benchmark("secrets that are numbers: both ends of the least loss over the bins"),
    "apply": Benchmark(
        "10 million rows released beside a plain script; draws, noise, random tables and back"
    ),
    "engines": Benchmark(
        "releases inside DuckDB, Polars, Dask and on Arrow batches, beside joins by hand"
    ),
    "columns_together": Benchmark(
        "columns of a person under one total: by hand, in turn and together", ("--quick",)
    ),
    "survey": Benchmark(
        "a column of an SPSS file through a mechanism, beside pyreadstat that reads and writes it",
        (),
        ("--rows", "20000", "--repeats", "1"),
    ),
    "releases": Benchmark("a ledger of many people, and what releases leak together"),
    "main_path": Benchmark("functions, files and calls of a small design, and its processor time"),
    "ledger_writers": Benchmark(
        "two writers on one ledger, killed at random moments: nothing lost, nothing counted twice",
        (),
        ("--quick",),
    ),
}
HELPERS = (
    "against", "against_rows", "common", "equal_to", "limited", "run",
    "additive_noise_claims", "distortion_claims", "records_claims", "design_times",
    "peers", "peer_measures", "statuses", "direct_statuses",
    "figures", "figure_style", "figures_of_priors", "figures_of_records", "papers", "points",
    "prior_sets", "report_picture",
)  # fmt: skip
"""Modules that are no benchmarks."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what was chosen; 1 if any of it failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--quick", action="store_true", help="Small instances: a smoke test.")
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--list", action="store_true", help="The names, and what they measure.")
    parser.add_argument("--here", choices=list(BENCHMARKS), help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.list:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:16} {benchmark.about}")
        return 0
    if arguments.here is not None:
        here(arguments.here, arguments.out, arguments.quick)
        return 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "machine.json").write_text(json.dumps(machine_facts(), indent=2) + "\n")
    rows: list[tuple[str, str, str, str]] = []
    for name in arguments.only or BENCHMARKS:
        print(f"\n# {name}: {BENCHMARKS[name].about}\n", flush=True)
        rows.append(alone(name, arguments.out, arguments.quick))
        write_csv(arguments.out / "summary.csv", HEAD, rows)
    print()
    table(HEAD, rows)
    return int(any(row[2] != "done" for row in rows))


def here(name: str, out: Path, quick: bool) -> None:
    """Run one benchmark in this process, and keep the tables that it prints."""
    benchmark = BENCHMARKS[name]
    arguments = [part.format(out=out) for part in (benchmark.quick if quick else benchmark.full)]
    with kept(out, name):
        importlib.import_module(name).main(arguments)


def alone(name: str, out: Path, quick: bool) -> tuple[str, str, str, str]:
    """Run one benchmark in its own process, and show and keep what it prints."""
    files = [out / f"{name}.csv", out / f"{name}.png"]
    for file in files:
        file.unlink(missing_ok=True)
    command = [
        sys.executable,
        __file__,
        "--here",
        name,
        "--out",
        str(out),
        *(["--quick"] if quick else []),
    ]
    start = time.perf_counter()
    complaint = out / f"{name}.err"
    with (
        (out / f"{name}.md").open("w") as kept_text,
        complaint.open("w") as stream,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True) as child,
    ):
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            kept_text.write(line)
    seconds = f"{time.perf_counter() - start:.1f}"
    said = complaint.read_text().strip()
    if not said:
        complaint.unlink()
    if child.returncode:
        return (
            name,
            seconds,
            "failed",
            (said.splitlines() or [f"exit code {child.returncode}"])[-1][:200],
        )
    missing = [file.name for file in files if not file.exists()]
    return (
        name,
        seconds,
        *(("failed", f"left no {' and no '.join(missing)}") if missing else ("done", "")),
    )


if __name__ == "__main__":
    sys.exit(main())
