"""A sweep of thirty epsilon: `pmlopt.sweep` beside thirty cold solves by cvxpy, and beside its DPP.

    python benchmarks/sweeps.py [--size 100] [--points 30] [--limit 250] [--alone] [--out FOLDER] [--quick]

Expected gain under PML at epsilon from 0.1 to 3, N = M, random gains and |i - j|. The cold contestants
declare the same program at each point and call `program.problem.solve`; the DPP ones declare it once, with
e^epsilon as a `cp.Parameter` in the M rows `t = e^epsilon q`, as sparse as ours. They certify nothing. Every
contestant is a process of its own with a hard limit on wall time; ratios are to the serial sweep. The sweeps
take turns, and each reports its run of least processor time, that of its workers included.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np
from common import instance, machine, report, report_times, suite_parser
from limited import Run, limited

from pmlopt import PML, ExpectedGain, Program, design
from pmlopt.core.display import get_figure_class
from pmlopt.programs.plots import save_figure

OURS: Mapping[str, dict[str, int]] = {
    "pmlopt.sweep": {},
    "pmlopt.sweep, 2 processes": {"workers": 2},
}
TURNS = 3
SETTINGS: Mapping[str, dict[str, Any]] = {
    "default (Clarabel)": {},
    "HiGHS": {"solver": "HIGHS"},
    "SCS": {"solver": "SCS", "eps_abs": 1e-7, "eps_rel": 1e-7, "max_iters": 1_000_000},
}
Found: TypeAlias = dict[tuple[str, str], Run]
HEAD = (
    "gain", "contestant", "status", "seconds", "processor seconds", "iterations", "largest difference",
    "peak [MiB]", "ratio to the sweep", "best cold / ours",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run every contestant, print the table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--points", type=int, default=30)
    parser.add_argument("--limit", type=float, default=250.0, help="Seconds for each contestant.")
    parser.add_argument("--alone", action="store_true", help="No contestants but the sweeps.")
    arguments = parser.parse_args(argv)
    print(machine())
    size, points = (15, 4) if arguments.quick else (arguments.size, arguments.points)
    found: Found = {}
    for kind in ("random",) if arguments.quick else ("random", "absolute"):
        given = {"kind": kind, "size": size, "points": points}
        turns = [
            {
                name: limited("sweeps:ours", {**given, **way}, arguments.limit)
                for name, way in OURS.items()
            }
            for _ in range(TURNS)
        ]
        for name in OURS:
            found[kind, name] = min((turn[name] for turn in turns), key=processor_seconds)
        for way in () if arguments.alone else ("cold", "dpp"):
            for name, settings in SETTINGS.items():
                work = {**given, "settings": settings}
                found[kind, f"cvxpy {way}, {name}"] = limited(
                    f"sweeps:{way}", work, arguments.limit
                )
                report(arguments.out, "sweeps", HEAD, rows_of(found), show=False)
    report_times(arguments.out, "sweeps", HEAD, rows_of(found), clock="wall")
    if arguments.out is not None:
        draw(found, arguments.out / "sweeps.png", f"{points} points, N = {size}")


# ---------------------------------------------------------------- in a process of their own


def grid(points: int) -> list[float]:
    """The values of epsilon."""
    return [float(epsilon) for epsilon in np.linspace(0.1, 3.0, points)]


def built(epsilon: float, kind: str, size: int) -> Program[Any]:
    """The program of one point."""
    p, gains = instance(kind, size, 1)
    return design(p, PML(epsilon), ExpectedGain(gains))


def ours(kind: str, size: int, points: int, workers: int = 1) -> dict[str, Any]:
    """The sweep, from the grid to the table; a pool of processes is made within the time."""
    from pmlopt import sweep

    builder = partial(built, kind=kind, size=size)
    start, before = time.perf_counter(), sum(os.times()[:4])
    if workers == 1:
        table = sweep(builder, {"epsilon": grid(points)})
    else:
        with ProcessPoolExecutor(workers) as pool:
            table = sweep(builder, {"epsilon": grid(points)}, pool)
    seconds, used = time.perf_counter() - start, sum(os.times()[:4]) - before
    return {
        "seconds": seconds,
        "processor_seconds": used,
        "iterations": int(table.column("iterations").sum()),
        "values": [float(value) for value in table.column("value")],
    }


def cold(kind: str, size: int, points: int, settings: dict[str, Any]) -> dict[str, Any]:
    """A new program at every point."""
    start = time.perf_counter()
    values = [
        float(built(epsilon, kind, size).problem.solve(**settings)) for epsilon in grid(points)
    ]
    return {"seconds": time.perf_counter() - start, "values": values}


def dpp(kind: str, size: int, points: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One program with a parameter."""
    p, gains = instance(kind, size, 1)
    start = time.perf_counter()
    factor = cp.Parameter(nonneg=True)
    mechanism = cp.Variable((size, size), nonneg=True)
    law, bound = cp.Variable((1, size), nonneg=True), cp.Variable((1, size))
    problem = cp.Problem(
        cp.Maximize(cp.sum(cp.multiply(p[:, None] * gains, mechanism))),
        [
            cp.sum(mechanism, axis=1) == 1,
            p[None, :] @ mechanism == law,
            bound == factor * law,
            mechanism <= np.ones((size, 1)) @ bound,
        ],
    )
    values = []
    for epsilon in grid(points):
        factor.value = np.exp(epsilon)
        values.append(float(problem.solve(**settings)))
    return {"seconds": time.perf_counter() - start, "values": values}


# ---------------------------------------------------------------- the table and the plot


def rows_of(found: Found) -> list[list[str]]:
    """The table; differences are to the serial sweep, or where it failed to the first that ended."""
    rows = []
    for (kind, name), run in found.items():
        others = {label: other for (k, label), other in found.items() if k == kind}
        if not run.done:
            late = f"{run.status} {run.problem}".strip()
            rows.append(
                [kind, name, late, f"> {run.seconds:.0f}", "", "", "", f"{run.memory:.0f}", "", ""]
            )
            continue
        known = next(np.array(other.answer["values"]) for other in others.values() if other.done)
        apart = np.abs(np.array(run.answer["values"]) - known).max()
        rows.append([
            kind, name, "done", f"{run.answer['seconds']:.2f}", *effort(run), f"{apart:.0e}",
            f"{run.memory:.0f}", *ratios(name, run, others),
        ])  # fmt: skip
    return rows


def processor_seconds(run: Run) -> float:
    """Of a sweep, its workers included; without end where it did not end."""
    return float(run.answer.get("processor_seconds", np.inf))


def effort(run: Run) -> tuple[str, str]:
    """Processor seconds and iterations, of the sweeps."""
    if "iterations" not in run.answer:
        return "", ""
    return f"{processor_seconds(run):.2f}", str(run.answer["iterations"])


def ratios(name: str, run: Run, others: Mapping[str, Run]) -> tuple[str, str]:
    """To the serial sweep, and in its row that of the best cold solves."""
    sweep = others["pmlopt.sweep"]
    ratio = f"{run.answer['seconds'] / sweep.answer['seconds']:.2f}" if sweep.done else ""
    cold_ones = [
        other.answer["seconds"]
        for label, other in others.items()
        if label not in OURS and "cold" in label and other.done
    ]
    best = f"{min(cold_ones) / run.answer['seconds']:.1f}" if name in OURS and cold_ones else ""
    return ratio, best


def draw(found: Found, path: Path, title: str) -> None:
    """Seconds of every contestant that ended."""
    figure = get_figure_class()(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.subplots()
    labels = list(dict.fromkeys(name for _, name in found))
    for kind, mark in zip(dict.fromkeys(kind for kind, _ in found), "os", strict=False):
        done = [
            (row, found[kind, name]) for row, name in enumerate(labels) if found[kind, name].done
        ]
        seconds = [run.answer["seconds"] for _, run in done]
        axes.plot(seconds, [row for row, _ in done], mark, label=kind)
    axes.set_yticks(range(len(labels)), labels)
    axes.grid(visible=True, linewidth=0.3)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="seconds")
    axes.set_title(title, fontsize="medium")
    axes.legend(frameon=False)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
