"""Large alphabets: our solve beside generic LP solvers on the same sparse LP, each in its own process.

    python benchmarks/large.py [--sizes 100 200 400 4000x20 20x4000] [--kinds random absolute]
        [--limit 250] [--contestants NAME ...] [--huge] [--out FOLDER] [--quick]

Expected gain under PML at epsilon = 1, N = M but where the size says both (`4000x20`: N letters, M outputs,
with random gains), to a certified gap of 1e-6 of what the outputs can change. Ours is timed from `design`
to the certificate; the others compile and solve the same `Program.problem` through cvxpy, with the
objective scaled for them, and nothing that comes after counts: their matrix is then repaired and certified
by us, and the table says what gap it has. Every contestant runs alone in a process with a hard limit on
wall time; time-outs are rows. `--huge` adds N = M = 1000, and 100,000 letters with 20 outputs. Solvers use
the threads that they choose.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from common import growth_figure, instance, machine, report, report_times, suite_parser
from limited import Run, limited

from pmlopt import PML, ExpectedGain, design, solve
from pmlopt.programs.linear.build_certificate import certify_linear as certify
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.plots import save_figure

EPSILON, GAP = 1.0, 1e-6
OURS = {"pmlopt.solve": "auto"}
REPEATS = 5
"""Our time is the median of so many up to 160,000 entries; the others take minutes there, and run once."""
GENERIC: Mapping[str, dict[str, Any]] = {
    "Clarabel": {
        "solver": "CLARABEL",
        **dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-7),
    },
    "Clarabel, no refinement": {"solver": "CLARABEL", "iterative_refinement_enable": False},
    "SCS": {"solver": "SCS", "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 1_000_000},
    "HiGHS IPX": {
        "solver": "HIGHS",
        "highs_options": {
            "solver": "ipx",
            "run_crossover": "off",
            "ipm_optimality_tolerance": 1e-7,
        },
    },
    "HiGHS HiPO": {
        "solver": "HIGHS",
        "highs_options": {
            "solver": "hipo",
            "run_crossover": "off",
            "ipm_optimality_tolerance": 1e-7,
        },
    },
    "HiGHS PDLP": {"solver": "HIGHS", "highs_options": {"solver": "pdlp"}},
    "HiGHS simplex": {"solver": "HIGHS", "highs_options": {"solver": "simplex"}},
}
"""Each at the loosest tolerances at which the repaired matrix has the gap asked for at N = 200 and 400 (SCS:
at 1e-5 its gap is 4e-4); HiPO is slower there with two threads than with one."""

HEAD = (
    "gain", "size", "contestant", "status", "seconds", "compile [s]", "certify [s]", "cpu [s]", "peak [MiB]",
    "value", "certified gap / range", "certifies 1e-6", "ratio to ours", "best generic / ours", "note",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run every contestant, print the table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", nargs="*", default=["100", "200", "400", "4000x20", "20x4000"])
    parser.add_argument("--kinds", nargs="+", default=["random", "absolute"])
    parser.add_argument("--limit", type=float, default=250.0, help="Seconds for each contestant.")
    parser.add_argument(
        "--contestants",
        nargs="+",
        default=[*OURS, *GENERIC],
        help="Of the list, or names of solvers that cvxpy finds, with their own settings.",
    )
    parser.add_argument("--huge", action="store_true", help="N = M = 1000 and 100000x20, too.")
    arguments = parser.parse_args(argv)
    print(machine())
    sizes = [*arguments.sizes, *(["1000", "100000x20"] if arguments.huge else [])]
    if arguments.quick:
        sizes = ["20", "40", "60x4"]
    limit = 20.0 if arguments.quick else arguments.limit
    runs: dict[tuple[str, str, str], Run] = {}
    for kind in arguments.kinds[:1] if arguments.quick else arguments.kinds:
        for size in sizes if kind == "random" else [size for size in sizes if "x" not in size]:
            for name in arguments.contestants:
                runs[kind, size, name] = run(kind, size, name, limit)
                report(arguments.out, "large", HEAD, rows_of(runs), show=False)
    report_times(arguments.out, "large", HEAD, rows_of(runs), clock="wall")
    if arguments.out is not None:
        save_figure(growth_figure(curves(runs), "seconds"), arguments.out / "large.png")


def run(kind: str, size: str, name: str, limit: float) -> Run:
    """One contestant on one instance."""
    given = {"kind": kind, "size": size}
    if name in OURS:
        return limited("large:ours", {**given, "solver": OURS[name]}, limit)
    settings = GENERIC.get(name, {"solver": name})
    return limited("large:generic", {**given, "settings": settings}, limit)


def shape_of(size: str) -> tuple[int, int]:
    """Letters and outputs: `"400"` has 400 of both, `"4000x20"` 4,000 letters."""
    letters, _, outputs = size.partition("x")
    return int(letters), int(outputs or letters)


# ---------------------------------------------------------------- in a process of their own


def declared(kind: str, size: str) -> LinearDesign:
    """The instance."""
    letters, outputs = shape_of(size)
    prior, gains = instance(kind, letters, 1, outputs)
    program = design(prior, PML(EPSILON), ExpectedGain(gains))
    assert isinstance(program, LinearDesign)
    return program


def ours(kind: str, size: str, solver: str) -> dict[str, Any]:
    """From the numbers to the certificate."""
    solve(declared(kind, "30"))  # what is imported when it is first used is not the method's time
    times = []
    for _ in range(REPEATS if math.prod(shape_of(size)) <= 160_000 else 1):
        clock = stopwatch()
        program = declared(kind, size)
        result = solve(program, solver, tolerance=GAP)
        times.append(clock())
    seconds, cpu = sorted(times)[len(times) // 2]
    return {
        "seconds": seconds, "cpu": cpu, "compile": result.timings.compile, "certify": result.timings.certify,
        "value": result.value, "gap": result.gap / program.scale, "note": result.solver,
    }  # fmt: skip


def generic(kind: str, size: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The same problem through cvxpy; what comes after its answer is ours, and timed apart."""
    clock = stopwatch()
    program = declared(kind, size)
    scale = float(1 / np.abs(program.prior.pmf[:, None] * program.centered_gains).max())
    problem = cp.Problem(
        cp.Maximize(scale * program.problem.objective.expr), [*program.constraints.values()]
    )
    problem.solve(**settings)
    seconds, cpu = clock()
    start = time.perf_counter()
    multipliers = program.constraints["rows"].dual_value / scale / program.prior.pmf
    certificate = certify(program, program.mechanism.value, multipliers)
    return {
        "seconds": seconds, "cpu": cpu, "compile": problem.compilation_time,
        "certify": time.perf_counter() - start, "value": certificate.value,
        "gap": certificate.gap / program.scale,
        "note": f"{problem.status}, {problem.solver_stats.num_iters} iterations",
    }  # fmt: skip


def stopwatch() -> Callable[[], tuple[float, float]]:
    """Wall and processor seconds from now on."""
    wall, processor = time.perf_counter(), time.process_time()
    return lambda: (time.perf_counter() - wall, time.process_time() - processor)


# ---------------------------------------------------------------- the table and the plot


def rows_of(runs: Mapping[tuple[str, str, str], Run]) -> list[list[Any]]:
    """The table, with ratios to ours on the same instance."""
    rows = []
    for (kind, size, name), one in runs.items():
        others = {label: other for (k, n, label), other in runs.items() if (k, n) == (kind, size)}
        rows.append(
            [
                kind,
                size,
                name,
                *described(one),
                *ratios(one, others),
                one.answer.get("note", one.problem),
            ]
        )
    return rows


def described(one: Run) -> list[str]:
    """The columns of one run."""
    if not one.done:
        return [one.status, f"> {one.seconds:.0f}", "", "", "", f"{one.memory:.0f}", "", "", "no"]
    said = one.answer
    return [
        one.status, f"{said['seconds']:.3f}", f"{said['compile']:.3f}", f"{said['certify']:.3f}",
        f"{said['cpu']:.2f}", f"{one.memory:.0f}", f"{said['value']:.9f}", f"{said['gap']:.1e}",
        "yes" if said["gap"] <= GAP else "no",
    ]  # fmt: skip


def ratios(one: Run, others: Mapping[str, Run]) -> list[str]:
    """Its seconds over ours, and in our own rows those of the best generic solver."""
    if one.status == "failed":
        return ["", ""]
    ours_done = [seconds_of(others[name]) for name in OURS if name in others and others[name].done]
    if not ours_done:
        return ["", ""]
    mark = "" if one.done else "> "
    here = f"{mark}{seconds_of(one) / min(ours_done):.1f}"
    if one is not others.get("pmlopt.solve"):
        return [here, ""]
    generic_runs = [other for label, other in others.items() if label not in OURS]
    reached = [seconds_of(other) for other in generic_runs if certified(other)]
    if reached:
        return [here, f"{min(reached) / seconds_of(one):.1f}"]
    late = [seconds_of(other) for other in generic_runs if other.status == "time-out"]
    return [here, f"> {min(late) / seconds_of(one):.1f}" if late else ""]


def certified(one: Run) -> bool:
    """Whether its repaired matrix reaches the gap."""
    return one.done and one.answer["gap"] <= GAP


def seconds_of(one: Run) -> float:
    """Of the work alone, or of the process where it did not end."""
    return float(one.answer["seconds"]) if one.done else one.seconds


def curves(runs: Mapping[tuple[str, str, str], Run]) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds over N for each contestant that ended."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for (kind, size, name), one in runs.items():
        if one.done and "x" not in size:
            sizes, seconds = found.setdefault(f"{name}, {kind}", ([], []))
            sizes.append(float(size))
            seconds.append(seconds_of(one))
    return found


if __name__ == "__main__":
    main()
