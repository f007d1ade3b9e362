"""Small at once: whole processes of the command, and designs on few letters beside cvxpy.

    python benchmarks/small.py [--sizes 4 8 16] [--repeats 5] [--out FOLDER] [--quick]

The first table has the processor seconds of whole processes, beside those of `import cvxpy` alone, and
whether a process loaded cvxpy or scipy.stats. The second has milliseconds from the numbers to the
certificate, beside the same problem declared and solved in cvxpy by Clarabel and by HiGHS, in turn in one
run: least expected loss |i - j|, and mutual information, which cvxpy cannot maximise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from about_secrets import distances
from common import growth_figure, instance, interleaved, machine, report_times, suite_parser

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedLoss,
    MetricPrivacy,
    MutualInformation,
    Prior,
    Secret,
    design,
    solve,
)
from pmlopt.model.privacy import Requirement
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.plots import save_figure

DESIGN = (
    "design",
    "--prior",
    "prior.csv",
    "--epsilon",
    "1",
    "--utility",
    "hamming",
    "-o",
    "design.json",
)
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "design, 4 letters": DESIGN,
    "verify": ("verify", "design.json"),
    "audit": ("audit", "design.json", "--epsilon", "1"),
    "apply to 1,000 rows": ("apply", "design.json", "rows.csv", "--column", "x", "-o", "out.csv"),
}
PROCESS = """
import json, resource, sys
sys.argv = ["pmlopt", *json.loads(sys.argv[1])]
try:
    from pmlopt.__main__ import run_command_line
    run_command_line()
except SystemExit as ended:
    assert not ended.code, ended.code
spent = resource.getrusage(resource.RUSAGE_SELF)
loaded = [name for name in ("cvxpy", "scipy.stats") if name in sys.modules]
print(json.dumps([spent.ru_utime + spent.ru_stime, loaded]), file=sys.stderr)
"""
ALONE = PROCESS.replace(
    "from pmlopt.__main__ import run_command_line\n    run_command_line()", "import cvxpy"
)
KINDS: Mapping[str, Callable[[int], Requirement]] = {
    "PML": lambda n: PML(1.0),
    "LDP": lambda n: LDP(1.0),
    "LIP": lambda n: LIP(1.0, 1.0),
    "metric": lambda n: MetricPrivacy(1.0, lambda x, y: abs(x - y)),
    "about a secret": lambda n: PML(1.0, about=secret(n)),
}


def secret(size: int) -> Secret:
    """A secret of two values, at random, under the prior of the benchmark."""
    likely = np.random.default_rng(size).random(size)
    p, _ = instance("random", size, 1)
    return Secret(np.array([p * likely, p * (1 - likely)]))


def processes(repeats: int) -> list[tuple[Any, ...]]:
    """Processor seconds of whole processes, each the least of some."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "prior.csv").write_text("x,count\na,4\nb,3\nc,2\nd,1\n")
        (Path(folder) / "rows.csv").write_text("x\n" + "a\nb\nc\nd\n" * 250)
        works = {
            **{name: (PROCESS, words) for name, words in COMMANDS.items()},
            "import cvxpy": (ALONE, ()),
        }
        for name, (script, words) in works.items():
            found = [spent(script, words, folder) for _ in range(repeats)]
            loaded = ", ".join(found[0][1]) or "neither"
            rows.append((name, f"{min(seconds for seconds, _ in found):.2f}", loaded))
    return rows


def spent(script: str, words: Sequence[str], folder: str) -> tuple[float, list[str]]:
    """Processor seconds of one process, and what it loaded of what takes long."""
    command = [sys.executable, "-c", script, json.dumps(list(words))]
    ended = subprocess.run(
        command, cwd=folder, env=os.environ, capture_output=True, text=True, check=True
    )
    seconds, loaded = json.loads(ended.stderr.strip().splitlines()[-1])
    return float(seconds), list(loaded)


def plain(program: LinearDesign, solver: str) -> float:
    """The value of the same problem by cvxpy."""
    return float(program.problem.solve(solver=solver))


def small(name: str, size: int, repeats: int) -> tuple[Any, ...]:
    """One small design from the numbers to the certificate, beside cvxpy where it can be."""
    p, _ = instance("random", size, 1)
    if name == "information":
        solved: Callable[[], Any] = lambda: solve(design(Prior(p), PML(1.0), MutualInformation()))  # noqa: E731
        ours, result = interleaved({"ours": solved}, repeats)["ours"]
        return name, size, f"{1e3 * ours:.2f}", "", "", f"{result.gap:.0e}", result.solver

    def program() -> LinearDesign:
        return design(Prior(p), KINDS[name](size), ExpectedLoss(distances(size)))

    works: dict[str, Callable[[], Any]] = {
        "ours": lambda: solve(program()),
        "Clarabel": lambda: plain(program(), cp.CLARABEL),
        "HiGHS": lambda: plain(program(), cp.HIGHS),
    }
    found = interleaved(works, repeats)
    ours, result = found["ours"]
    ratios = [f"{found[other][0] / ours:.1f}" for other in ("Clarabel", "HiGHS")]
    return name, size, f"{1e3 * ours:.2f}", *ratios, f"{result.gap:.0e}", result.solver


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables, and draw the second."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.sizes, arguments.repeats = [4], 1
    print(machine())
    report_times(
        arguments.out,
        "small-processes",
        ("process", "processor [s]", "loaded"),
        processes(arguments.repeats),
    )
    print()
    rows: list[tuple[Any, ...]] = []
    curves: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in [*KINDS, "information"]
    }
    for size, name in product(arguments.sizes, [*KINDS, "information"]):
        row = small(name, size, arguments.repeats)
        rows.append(row)
        curves[name][0].append(size)
        curves[name][1].append(float(row[2]))
    head = ("kind", "N", "pmlopt.solve [ms]", "Clarabel / ours", "HiGHS / ours", "gap", "method")
    report_times(arguments.out, "small", head, rows)
    if arguments.out is not None:
        save_figure(growth_figure(curves, "milliseconds", "letters"), arguments.out / "small.png")


if __name__ == "__main__":
    main()
