"""Our route against the same sparse LP through plain cvxpy, by each solver installed, side by side.

    python benchmarks/solvers.py [--sizes 10 30 100] [--repeats 5] [--out FOLDER] [--quick]

The LP is expected gain under PML at epsilon = 1. The first contestant is `solve` with everything it
does: compile, solve, repair, certify. The others are `cvxpy.Problem.solve` on the same problem, by every
installed solver that takes it; they certify nothing. A ratio above one says that plain cvxpy takes that many
times longer than `solve`. A solver that fails on an instance, or takes more than `--limit` seconds, keeps its
row, and is not repeated.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import cvxpy as cp
from common import growth_figure, instance, machine, report, suite_parser

from pmlopt import PML, ExpectedGain, Program, Result, design, leakage_level, solve
from pmlopt.programs.plots import save_figure

OURS = "pmlopt.solve"
OPTIONS: Mapping[str, dict[str, dict[str, Any]]] = {
    "HIGHS": {
        "HiGHS simplex": {"highs_options": {"solver": "simplex"}},
        "HiGHS IPM": {"highs_options": {"solver": "ipm"}},
        "HiGHS IPM, no crossover": {"highs_options": {"solver": "ipm", "run_crossover": "off"}},
    },
    "SCS": {"SCS": {"eps_abs": 1e-7, "eps_rel": 1e-7}},
    "OSQP": {"OSQP": {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iter": 100_000}},
}
"""Where a solver has methods, or defaults that are too loose; the others run as cvxpy calls them."""

HEAD = (
    "gain", "N", "route", "seconds", "compile", "ratio", "value", "PML excess of its matrix", "ended"
)  # fmt: skip


@dataclass
class Measured:
    """The runs of one contestant: seconds, the last answer, or what went wrong."""

    seconds: list[float] = field(default_factory=list)
    answer: Any = None
    problem: str = ""


Found: TypeAlias = dict[tuple[str, int], dict[str, Measured]]
"""The contestants for each gain and size."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the comparison, print one table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--kinds", nargs="+", default=["random", "absolute", "hamming"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--limit", type=float, default=10.0, help="A slower contestant is not repeated."
    )
    arguments = parser.parse_args(argv)
    print(machine())
    if arguments.quick:
        arguments.sizes, arguments.repeats = [5, 10], 1
    found: Found = {
        (kind, size): compare(kind, size, arguments.repeats, arguments.limit)
        for kind in arguments.kinds
        for size in arguments.sizes
    }
    rows = [row for (kind, size), runs in found.items() for row in rows_of(kind, size, runs)]
    report(arguments.out, "solvers", HEAD, rows)
    if arguments.out is not None:
        save_figure(
            growth_figure(curves(found, arguments.kinds[0]), "seconds"),
            arguments.out / "solvers.png",
        )


def plain() -> dict[str, dict[str, Any]]:
    """What to call `Problem.solve` with, for every installed solver."""
    routes = {}
    for solver in cp.installed_solvers():
        for name, options in OPTIONS.get(solver, {solver: {}}).items():
            routes[f"cvxpy, {name}"] = {"solver": solver, **options}
    return routes


def compare(kind: str, size: int, repeats: int, limit: float) -> dict[str, Measured]:
    """All contestants on one instance, in turn, so that a slow moment hits all alike."""
    prior, gains = instance(kind, size, seed=1)

    def declare() -> Program[Any]:
        return design(prior, PML(1.0), ExpectedGain(gains))

    def through(options: dict[str, Any]) -> Callable[[], Program[Any]]:
        def run() -> Program[Any]:
            program = declare()
            program.problem.solve(**options)
            return program

        return run

    contestants: dict[str, Callable[[], Any]] = {OURS: lambda: solve(declare())}
    contestants |= {name: through(options) for name, options in plain().items()}
    runs = {name: Measured() for name in contestants}
    for _ in range(repeats):
        for name, work in contestants.items():
            if not runs[name].problem and max(runs[name].seconds, default=0.0) < limit:
                attempt(work, runs[name])
    return runs


def attempt(work: Callable[[], Any], measured: Measured) -> None:
    """Run it once; a solver's failure is an answer, too."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a solution may be inaccurate
            measured.answer = work()
    except (cp.SolverError, ValueError) as cause:
        measured.problem = str(cause).splitlines()[0][:80]
    measured.seconds.append(time.perf_counter() - start)


def rows_of(kind: str, size: int, runs: Mapping[str, Measured]) -> list[list[str]]:
    """The rows of one instance."""
    prior, _ = instance(kind, size, seed=1)
    ours = statistics.median(runs[OURS].seconds)
    rows = []
    for name, measured in runs.items():
        label, compiling, value, ended, matrix = described(name, measured)
        seconds = statistics.median(measured.seconds)
        excess = "" if matrix is None else f"{leakage_level(prior, matrix) - 1.0:.1e}"
        rows.append([
            kind, str(size), label, f"{seconds:.4f}", compiling, f"{seconds / ours:.2f}", value, excess, ended
        ])  # fmt: skip
    return rows


def described(name: str, measured: Measured) -> tuple[str, str, str, str, Any]:
    """Label, compile time, value, how it ended, and the matrix as it is handed over, if there is one."""
    answer = measured.answer
    if isinstance(answer, Result):
        label = f"{name} ({answer.solver})"
        compiling, value = f"{answer.timings.compile:.4f}", f"{answer.value:.9f}"
        return label, compiling, value, answer.status.value, answer.mechanism.matrix
    if measured.problem:
        return name, "", "", measured.problem, None
    if answer.mechanism.value is None:
        return name, "", "", answer.problem.status, None
    matrix = answer.mechanism.value.clip(min=0)
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    compiling, value = f"{answer.problem.compilation_time:.4f}", f"{answer.problem.value:.9f}"
    return name, compiling, value, answer.problem.status, matrix


def curves(found: Found, kind: str) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds over N for one gain."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for (gain, size), runs in found.items():
        for name, measured in runs.items():
            if gain == kind and not measured.problem:
                sizes, seconds = lines.setdefault(name, ([], []))
                sizes.append(size)
                seconds.append(statistics.median(measured.seconds))
    return lines


if __name__ == "__main__":
    main()
