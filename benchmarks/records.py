"""[wu2026entropy] Table 3 and Figures 3 to 5 with certified values, its claims checked, what methods cost.

    python benchmarks/records.py [--output FILE.png] [--csv FOLDER] [--restarts 8] [--starts 2]
        [--points 8] [--repeats 5] [--sizes 4 100 1000 10000] [--listed 4 6 8 10]
        [--weights 10 100 1000 10000] [--mechanisms 100] [--time-limit 20] [--quick]

Table 3: Laplace noise and the exponential mechanism at epsilon = 1 on the parity of four records: printed,
alternating and certified; where the print is too small, what one prior leaks, added up over the 16 datasets.
Figure 3: the leakage of parity through a symmetric channel over the entropy b. Figure 4: over epsilon of
differential privacy. Figure 5: beside the expected distortion. Then tables: those claims of the paper that a
number decides, how both methods grow with the number of records n at b = (n - 1/2) log 2, and queries of more
than two values. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from common import FloatArray, drawing, interleaved, machine, report, table
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from records_claims import BIT, claims
from scipy.special import xlogy

from pmlopt import Result, queries, record_leakage, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.closed_forms import parity_leakage
from pmlopt.model.queries import ModularSum, Quadratic, Query, Weight, symmetric_channel
from pmlopt.programs import Alternating
from pmlopt.programs.plots import save_figure
from pmlopt.programs.record_leakage.certificate import RecordCertificate

Leakage = Result[RecordCertificate]
MECHANISMS = {"Laplace": queries.laplace, "exponential": queries.exponential}
PRINTED = {
    "Laplace": {0.0: 0.079, 0.5: 0.062, 1.0: 0.041, 1.5: 0.022, 2.0: 0.009, 4 * BIT: 0.0},
    "exponential": {0.0: 0.032, 0.5: 0.024, 1.0: 0.015, 1.5: 0.008, 2.0: 0.003, 4 * BIT: 0.0},
}
"""Table 3; its last row, "2.77 (max)", is 4 log 2."""

ENTROPIES = (0.0, 0.5, 1.0, 1.5, 2.0, 2.2, 2.5, 2.7, 4 * BIT)
ERRORS = (0.1, 0.2, 0.3, 0.4)
RECORDS = (4, 5, 6)
EPSILONS = np.geomspace(0.1, 10, 17)
MISSING = (None, 0.4, 0.15, 0.03)
"""Figure 5: how far b lies below log |X|, in nats; None for b = 0."""

DISTORTIONS = np.array([0.005, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45])


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figures and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("records"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument(
        "--restarts", type=int, default=8, help="Of the alternating method, in Table 3."
    )
    parser.add_argument(
        "--starts", type=int, default=2, help="The same for each point of Figure 3."
    )
    parser.add_argument(
        "--points", type=int, default=8, help="Values of b in Figure 3, for each bit."
    )
    parser.add_argument("--repeats", type=int, default=5, help="Of each timing of growth.")
    parser.add_argument("--sizes", type=int, nargs="*", default=[4, 100, 1000, 10_000])
    parser.add_argument("--listed", type=int, nargs="*", default=[4, 6, 8, 10])
    parser.add_argument("--weights", type=int, nargs="*", default=[10, 100, 1000, 10_000])
    parser.add_argument("--mechanisms", type=int, default=100, help="Random ones for Theorem 4.")
    parser.add_argument(
        "--time-limit", type=float, default=20.0, help="Seconds for each harder query."
    )
    parser.add_argument(
        "--quick", action="store_true", help="Four records, few points, and no claims."
    )
    parser.add_argument(
        "--figures-only", action="store_true", help="Nothing but what the paper has."
    )
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.restarts = arguments.starts = arguments.points = arguments.repeats = 1
        arguments.sizes, arguments.listed, arguments.weights, arguments.time_limit = (
            [4],
            [4],
            [10],
            0.5,
        )
    print(machine())
    begin = time.perf_counter()
    table_3(arguments.restarts, arguments.csv, ENTROPIES[::4] if arguments.quick else ENTROPIES)
    figure = Figure(figsize=(12, 10.5), layout="constrained")
    panels = figure.subplots(3, 3)
    for place, records in enumerate(RECORDS[:1] if arguments.quick else RECORDS):
        figure_3(panels[0, place], records, arguments.points, arguments.starts, arguments.csv)
        figure_4(panels[1, place], records, arguments.csv)
        figure_5(panels[2, place], records, arguments.csv)
    save_figure(figure, arguments.output)
    print()
    if arguments.figures_only:
        return
    if not arguments.quick:
        table(("claim", "measured"), claims(arguments.mechanisms))
        print()
    growth(arguments.sizes, arguments.listed, arguments.weights, arguments.repeats, arguments.csv)
    print()
    harder(arguments.time_limit, arguments.csv)
    print(f"\nThe whole run: {time.perf_counter() - begin:.0f} s")


# ---------------------------------------------------------------- Table 3


def table_3(restarts: int, folder: Path | None, entropies: Sequence[float]) -> None:
    """Both mechanisms at epsilon = 1 on the parity of four records."""
    head = (
        "mechanism", "b [nats]", "printed", "alternating", "certified, from", "to", "gap", "exact [s]",
        "alternating [s]", "one prior leaks", "its entropy",
    )  # fmt: skip
    asked = [(name, b) for name in MECHANISMS for b in entropies]
    rows = [
        row_3(name, b, restarts) for name, b in iterate_with_progress(asked, len(asked), "Table 3")
    ]
    report(folder, "table-3", head, rows)


def row_3(name: str, entropy: float, restarts: int) -> list[Any]:
    """One row."""
    parity = ModularSum(4, 2)
    mechanism = MECHANISMS[name](parity, 1.0)
    program = record_leakage(parity, mechanism, entropy)
    exact, local = solve(program), solve(program, solver=Alternating(restarts=restarts))
    printed = PRINTED[name].get(entropy)
    leaked, uncertain = enumerated(hiding_prior(4), mechanism.matrix)
    shown = printed is not None and uncertain >= entropy and leaked > printed + 1e-3
    return [
        name, f"{entropy:.4f}".rstrip("0").rstrip("."), "" if printed is None else f"{printed:.3f}",
        f"{local.value:.6f}", f"{exact.value:.7f}", f"{exact.bound:.7f}", f"{exact.gap:.0e}",
        f"{exact.timings.total:.2f}", f"{local.timings.total:.2f}",
        f"{leaked:.7f}" if shown else "", f"{uncertain:.4f}" if shown else "",
    ]  # fmt: skip


def hiding_prior(records: int) -> FloatArray:
    """(2,) * n: x_1 is uniform, the others are uniform on the half of even parity, so that f(x) = x_1."""
    others = np.indices((2,) * records)[1:].sum(axis=0) % 2
    return np.asarray((others == 0) / (others == 0).sum())


def enumerated(prior: FloatArray, matrix: FloatArray) -> tuple[float, float]:
    """I(X_1; Y) for the parity, and H(X), added up over all datasets."""
    parity = np.indices(prior.shape).sum(axis=0) % 2
    joint = np.zeros((2, matrix.shape[1]))
    for place, mass in np.ndenumerate(prior):
        joint[place[0]] += mass * matrix[parity[place]]
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return float(xlogy(joint, joint / apart).sum()), float(-xlogy(prior, prior).sum())


# ---------------------------------------------------------------- the figures


def curve(query: Query, mechanism: Mechanism, entropies: Sequence[float]) -> list[Leakage]:
    """The leakage at each entropy, in their order; solved from the largest down, each from the one before."""
    found: dict[float, Leakage] = {}
    last: Leakage | None = None
    for b in sorted(entropies, reverse=True):
        found[b] = last = solve(record_leakage(query, mechanism, b), warm_start=last)
    return [found[b] for b in entropies]


def figure_3(axes: Axes, records: int, points: int, starts: int, folder: Path | None) -> None:
    """The certified leakage over b, and what the alternating method finds at whole and half bits."""
    parity = ModularSum(records, 2)
    grid = np.linspace(0, records * BIT, records * points + 1).tolist()
    every = max(1, points // 2)
    some = grid[::every]
    rows: list[list[Any]] = []
    rises, short, away = 0, 0.0, 0.0
    for error, colour in zip(
        ERRORS, ("tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True
    ):
        channel = symmetric_channel(parity, error)
        exact = curve(parity, channel, grid)
        local = [
            solve(record_leakage(parity, channel, b), solver=Alternating(starts, place)).value
            for place, b in enumerate(
                iterate_with_progress(some, len(some), f"Figure 3, n = {records}, p = {error}")
            )
        ]
        axes.plot(grid, [r.bound for r in exact], color=colour, label=f"p = {error}")
        axes.plot(some, local, "x:", color=colour, markersize=4, linewidth=0.8)
        known = [parity_leakage(records, error, b) for b in grid]
        away = max(
            away, *(max(k - r.bound, r.value - k) for k, r in zip(known, exact, strict=True))
        )
        short = max(short, *(r.value - a for r, a in zip(exact[::every], local, strict=True)))
        rises += sum(b > a + 1e-6 for a, b in pairwise(local))
        missing: list[Any] = [""] * len(grid)
        missing[::every] = local
        rows += [
            [error, b, r.value, r.bound, a] for b, r, a in zip(grid, exact, missing, strict=True)
        ]
    axes.axvline((records - 1) * BIT, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlabel="b [nats]", ylabel="leakage per record [nats]", ylim=(0, 0.5))
    axes.set_title(f"[wu2026entropy] Figure 3: n = {records}", fontsize="medium")
    axes.plot([], [], "kx:", markersize=4, linewidth=0.8, label=f"alternating, {starts} starts")
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    print(
        f"Figure 3, n = {records}: the closed form is outside the proved interval by {max(away, 0.0):.0e}; "
        f"alternating is short by up to {short:.3f} nats, and rises with b {rises} times"
    )
    head = ("p", "b", "certified, from", "to", "alternating")
    report(folder, f"figure-3-{records}", head, rows, show=False)


def figure_4(axes: Axes, records: int, folder: Path | None) -> None:
    """The certified leakage over epsilon of differential privacy at b = 0, and BSC(0.3) at several b."""
    parity = ModularSum(records, 2)
    rows: list[list[Any]] = []
    for (name, mechanism), style in zip(MECHANISMS.items(), ("b-", "r-"), strict=True):
        found = [
            solve(record_leakage(parity, mechanism(parity, e), 0.0)) for e in EPSILONS.tolist()
        ]
        axes.semilogx(EPSILONS, [r.bound for r in found], style, label=f"{name}, b = 0")
        rows += [[name, e, 0.0, r.value, r.bound] for e, r in zip(EPSILONS, found, strict=True)]
    lines: dict[str, list[float]] = {}
    wanted = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    for b, result in zip(
        wanted, curve(parity, symmetric_channel(parity, 0.3), wanted), strict=True
    ):
        lines.setdefault(f"{result.bound:.4f}", []).append(b)
        rows.append(["BSC(0.3)", "", b, result.value, result.bound])
    for (level, those), colour in zip(lines.items(), ("tab:green", "tab:purple"), strict=False):
        bs = f"b = {those[0]:g}" + (f" to {those[-1]:g}" if len(those) > 1 else "")
        axes.axhline(float(level), color=colour, linestyle="--", label=f"BSC(0.3), {bs}: {level}")
    if records == 4:
        axes.axhline(
            0.0931, color="grey", linestyle=":", label="BSC(0.3), b = 0, as printed: 0.0931"
        )
    axes.set(
        xlabel="epsilon of differential privacy", ylabel="leakage per record [nats]", ylim=(0, 0.72)
    )
    axes.set_title(f"[wu2026entropy] Figure 4: n = {records}", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", loc="upper left")
    report(
        folder, f"figure-4-{records}", ("mechanism", "epsilon", "b", "certified, from", "to"), rows,
        show=False,
    )  # fmt: skip
    print(
        f"Figure 4, n = {records}: BSC(0.3) at b = 0 leaks {rows[-6][3]:.7f} to {rows[-6][4]:.7f} nats"
    )


def figure_5(axes: Axes, records: int, folder: Path | None) -> None:
    """The expected distortion of parity against the leakage, and against epsilon as the paper has it."""
    parity = ModularSum(records, 2)
    rows: list[list[Any]] = []
    for missing, style in zip(MISSING, ("k-", "k--", "k-.", "k:"), strict=True):
        b = 0.0 if missing is None else parity.log_size - missing
        line = [
            solve(record_leakage(parity, symmetric_channel(parity, p), b))
            for p in DISTORTIONS.tolist()
        ]
        axes.semilogx(
            [r.bound for r in line], DISTORTIONS, style, linewidth=1, label=f"BSC, b = {b:.2f}"
        )
        rows += [
            [f"BSC, b = {b:.4f}", p, r.value, r.bound]
            for p, r in zip(DISTORTIONS, line, strict=True)
        ]
    away = 0.0
    for (name, mechanism), colour in zip(MECHANISMS.items(), ("tab:blue", "tab:red"), strict=True):
        matrices = [mechanism(parity, e) for e in EPSILONS.tolist()]
        lost = [float(matrix.matrix[0, 1]) for matrix in matrices]
        true = [solve(record_leakage(parity, matrix, 0.0)) for matrix in matrices]
        axes.semilogx(EPSILONS, lost, color=colour, label=f"{name}, its epsilon")
        marker = "o" if name == "Laplace" else "x"
        axes.semilogx(
            [r.bound for r in true],
            lost,
            marker,
            color=colour,
            markersize=4,
            label=f"{name}, certified",
        )
        closed = [parity_leakage(records, p, 0.0) for p in lost]
        away = max(away, *(abs(r.value - c) for r, c in zip(true, closed, strict=True)))
        rows += [
            [f"{name}, epsilon = {e:.4g}", p, r.value, r.bound]
            for e, p, r in zip(EPSILONS, lost, true, strict=True)
        ]
    axes.set(
        xlabel="leakage, or epsilon [nats]",
        ylabel="expected distortion",
        xlim=(1e-3, 12),
        ylim=(0, 0.75),
    )
    axes.set_title(f"[wu2026entropy] Figure 5: n = {records}", fontsize="medium")
    axes.legend(frameon=False, fontsize="small", ncols=2, loc="upper right")
    report(
        folder, f"figure-5-{records}", ("mechanism", "distortion", "certified, from", "to"), rows,
        show=False,
    )  # fmt: skip
    print(
        f"Figure 5, n = {records}: Laplace and exponential are BSCs; certified less closed form {away:.0e}"
    )


# ---------------------------------------------------------------- what it costs


def growth(
    sizes: Iterable[int],
    listed: Iterable[int],
    weights: Iterable[int],
    repeats: int,
    folder: Path | None,
) -> None:
    """Both methods as n grows, medians in one run, BSC(0.1) and b = (n - 1/2) log 2."""
    contestants: dict[tuple[str, str, int], Callable[[], Leakage]] = {}
    for n in sizes:
        contestants["parity", "exact", n] = partial(ask, ModularSum(n, 2))
    for n in weights:
        contestants["w > n/2", "exact", n] = partial(ask, Weight(n, partial(majority, n)))
    for n in listed:
        contestants["parity", "alternating", n] = partial(ask, ModularSum(n, 2), starts=1)
    names: Mapping[str, Callable[[], Leakage]] = {
        f"{query}, {method}, {n}": work for (query, method, n), work in contestants.items()
    }
    measured = interleaved(names, repeats)
    smallest: dict[tuple[str, str], float] = {}
    rows = []
    for query, method, n in contestants:
        seconds, found = measured[f"{query}, {method}, {n}"]
        first = smallest.setdefault((query, method), seconds)
        bound = f"{found.bound:.7f}" if math.isfinite(found.bound) else "none"
        rows.append([
            query, method, f"{n:,}", f"{found.value:.7f}", bound, found.iterations, f"{seconds:.2f}",
            f"{seconds / first:.2f}",
        ])  # fmt: skip
    head = (
        "query",
        "method",
        "n",
        "leaks [nats]",
        "at most",
        "cells or starts",
        "median [s]",
        "ratio",
    )
    report(folder, "growth", head, rows)


def majority(records: int, weight: int) -> int:
    """Whether more than half of the records are one."""
    return int(2 * weight > records)


def ask(query: Query, starts: int = 0) -> Leakage:
    """One call: exact, or alternating from so many starts."""
    entropy = (query.records - 0.5) * BIT
    channel = symmetric_channel(query, 0.1)
    program = record_leakage(query, channel, entropy)
    return solve(program, solver=Alternating(restarts=starts) if starts else "auto")


def harder(limit: float, folder: Path | None) -> None:
    """Queries of more than two values: a sum modulo 3 and the quadratic one, exactly."""
    asked: list[tuple[str, Query, float]] = [
        *(("sum mod 3", ModularSum(n, 3), 0.3) for n in (3, 4, 6)),
        *(("quadratic", Quadratic(n), 0.2) for n in (3, 4, 5, 6)),
    ]
    rows = []
    for name, query, error in iterate_with_progress(asked, len(asked), "harder queries"):
        bits = query.records - 0.5
        program = record_leakage(query, symmetric_channel(query, error), bits * BIT)
        found = solve(program, time_limit=limit)
        rows.append([
            name, query.records, len(query.values), f"{bits:g}", f"{found.value:.7f}", f"{found.bound:.7f}",
            f"{found.gap:.0e}", found.iterations, f"{found.timings.total:.1f}", found.status.value,
        ])  # fmt: skip
    head = (
        "query", "n", "values", "b [bits]", "leaks [nats]", "at most", "gap", "cells", "seconds", "status",
    )  # fmt: skip
    report(folder, "harder", head, rows)


if __name__ == "__main__":
    main()
