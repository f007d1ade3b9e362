"""Leakage against distortion: figures of [wu2026entropy] beside certified optima, its claims, and costs.

    python benchmarks/distortion.py [--output FILE.png] [--csv FOLDER] [--repeats 3]
        [--time-limit 15] [--tolerance 1e-5] [--quick]

Figure 5: leakage per record over expected distortion for parity: the designed optimum and mechanisms of
differential privacy at their certified leakage. Figure 6: parity of three records, b = 1.5; Figure 7: of
two, b = 0: certified optimum, closed form and the penalty method. Two more rows of panels: the sum modulo 3
and the quadratic query of three records. Then tables: claims of the paper that a number decides, cutting
planes beside the penalty method, the cases that take the exact method longest, and many records. Needs the
extra `plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from common import drawing, interleaved, machine, report, table
from distortion_claims import QUERIES, claims
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pmlopt import Result, distortion_leakage, leakage_distortion, queries, record_leakage, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.model.closed_forms import parity_distortion, parity_leakage
from pmlopt.model.queries import ModularSum, Query, Weight, expected_distortion
from pmlopt.programs.plots import save_figure
from pmlopt.programs.tradeoff.certificate import TradeoffCertificate
from pmlopt.programs.tradeoff.proof import Sense

Answer = Result[TradeoffCertificate]

MECHANISMS = {
    "Laplace": (queries.laplace, (0.5, 1.0, 2.0, 4.0, 7.0)),
    "exponential": (queries.exponential, (0.5, 1.0, 2.0, 4.0, 7.0)),
    "symmetric channel": (queries.symmetric_channel, (0.03, 0.1, 0.2, 0.35, 0.5)),
}
"""With their epsilons of differential privacy, or error probabilities."""

MISSING = (None, 0.4, 0.15, 0.03)
"""Figure 5: how far b lies below log |X|, in nats; None for b = 0."""

DISTORTIONS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
LEAKAGES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
MORE = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
ENTROPIES = (0.0, 1.0, 1.5)
PENALISED = (0.1, 0.2, 0.3, 0.4)
"""The distortions at which the penalty method is run; a point takes it 10 to 35 s."""

COMPARED: tuple[tuple[str, Sense, float, float], ...] = (
    ("parity", "leakage", 0.1, 1.5),
    ("parity", "leakage", 0.2, 1.5),
    ("parity", "distortion", 0.1, 1.5),
    ("sum mod 3", "leakage", 0.2, 1.0),
    ("sum mod 3", "distortion", 0.1, 1.0),
    ("quadratic", "leakage", 0.2, 1.0),
    ("quadratic", "distortion", 0.1, 1.0),
)
HARD: tuple[tuple[str, Sense, float, float], ...] = (
    ("sum mod 3", "leakage", 0.0, 1.9),
    ("sum mod 3", "distortion", 0.02, 1.9),
    ("quadratic", "leakage", 0.0, 1.9),
    ("quadratic", "distortion", 0.02, 1.9),
)
MANY: tuple[tuple[str, Query, float, float], ...] = (
    ("sum mod 3, n = 100", ModularSum(100, 3), 0.2, 0.15),
    ("sum mod 3, n = 1000", ModularSum(1000, 3), 0.2, 0.15),
    ("more than half, n = 300", Weight(300, lambda weight: int(weight > 150)), 0.1, 0.1),
    ("more than half, n = 10,000", Weight(10_000, lambda weight: int(weight > 5_000)), 0.1, 0.1),
)
"""Queries with D, and the error probability of the symmetric channel of that distortion."""

COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red")
MARKERS = {"Laplace": "o", "exponential": "x", "symmetric channel": "^"}


@dataclass(frozen=True)
class Ways:
    """What the parts share.

    Attributes:
        folder: for CSV files, or None.
        tolerance: of the curves.
        time_limit: seconds for each point.
    """

    folder: Path | None
    tolerance: float
    time_limit: float


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("distortion"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument(
        "--repeats", type=int, default=3, help="Of each timing of the exact method."
    )
    parser.add_argument(
        "--time-limit", type=float, default=15.0, help="Seconds for each exact point."
    )
    parser.add_argument("--tolerance", type=float, default=1e-5, help="Largest gap on the curves.")
    parser.add_argument(
        "--quick", action="store_true", help="Figures 5, n = 4, and 7 and the hard cases, roughly."
    )
    parser.add_argument(
        "--figures-only", action="store_true", help="Nothing but what the paper has."
    )
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.time_limit, arguments.tolerance = 0.5, 1e-3
    ways = Ways(arguments.csv, arguments.tolerance, arguments.time_limit)
    print(machine())
    begin = time.perf_counter()
    figure = Figure(figsize=(13, 15), layout="constrained")
    rows: Any = figure.subfigures(4, 1)
    for axes, records in zip(rows[0].subplots(1, 3), (4, 5, 6), strict=True):
        if records == 4 or not arguments.quick:
            figure_5(axes, records, ways)
    panels = rows[1].subplots(1, 4)
    figure_7(panels[2], panels[3], ways)
    if arguments.quick:
        save_figure(figure, arguments.output)
        hard(ways)
        return
    figure_6(panels[0], panels[1], ways)
    if arguments.figures_only:
        save_figure(figure, arguments.output)
        return
    for row, name in zip(rows[2:], ("sum mod 3", "quadratic"), strict=True):
        for axes, entropy in zip(row.subplots(1, 3), ENTROPIES, strict=True):
            beyond(axes, name, entropy, ways)
    save_figure(figure, arguments.output)
    print()
    table(("claim", "measured"), claims())
    print()
    compared(arguments.repeats, ways)
    print()
    hard(ways)
    print()
    many(ways)
    print(f"\nThe whole run: {time.perf_counter() - begin:.0f} s")


def answer(
    sense: Sense, query: Query, limit: float, entropy: float, solver: str = "auto",
    *, warm: Answer | None = None, time_limit: float | None = None, gap: float = 1e-6,
) -> Answer:  # fmt: skip
    """One problem, solved; the gap in units of the value."""
    builder = leakage_distortion if sense == "leakage" else distortion_leakage
    return solve(builder(query, limit, entropy), solver, warm, time_limit=time_limit, gap=gap)


def curve_of(
    sense: Sense,
    query: Query,
    limits: Sequence[float],
    entropy: float,
    time_limit: float,
    gap: float = 1e-6,
) -> list[Answer]:
    """Many limits, each from the priors of the one before."""
    found: list[Answer] = []
    for limit in limits:
        warm = found[-1] if found else None
        found.append(
            answer(sense, query, limit, entropy, warm=warm, time_limit=time_limit, gap=gap)
        )
    return found


@cache
def penalty(name: str, sense: Sense, limit: float, entropy: float) -> tuple[float, Answer]:
    """The penalty method, run once, and its seconds."""
    start = time.perf_counter()
    found = answer(sense, QUERIES[name], limit, entropy, "penalty")
    return time.perf_counter() - start, found


# ---------------------------------------------------------------- the figures


def figure_5(axes: Axes, records: int, ways: Ways) -> None:
    """Parity: the designed optimum, and mechanisms of differential privacy at their certified leakage."""
    parity = ModularSum(records, 2)
    rows: list[list[Any]] = []
    outside, apart = 0.0, 0.0
    for missing, colour in zip(MISSING, COLOURS, strict=True):
        b = 0.0 if missing is None else parity.log_size - missing
        curve = curve_of("leakage", parity, DISTORTIONS, b, ways.time_limit, ways.tolerance)
        axes.semilogy(
            DISTORTIONS,
            [r.value for r in curve],
            color=colour,
            linewidth=1,
            label=f"designed, b = {b:.2f}",
        )
        for limit, found in zip(DISTORTIONS, curve, strict=True):
            known = parity_leakage(records, limit, b)
            outside = max(outside, found.bound - known, known - found.value)
            rows.append(["designed", limit, b, limit, found.value, found.bound])
        for name in ("Laplace", "exponential"):
            work, levels = MECHANISMS[name]
            matrices = [work(parity, level) for level in levels[:4]]
            spent = [expected_distortion(parity, matrix) for matrix in matrices]
            audits = [
                solve(record_leakage(parity, matrix, b), gap=ways.tolerance) for matrix in matrices
            ]
            axes.semilogy(
                spent, [audit.bound for audit in audits], MARKERS[name], color=colour, markersize=4,
                label=f"{name}, certified" if missing is None else None,
            )  # fmt: skip
            for level, lost, audit in zip(levels, spent, audits, strict=False):
                known = parity_leakage(records, lost, b)
                apart = max(apart, known - audit.bound, audit.value - known)
                rows.append([name, level, b, lost, audit.bound, audit.value])
    axes.set(
        xlabel="expected distortion",
        ylabel="leakage per record [nats]",
        ylim=(1e-5, 1),
        xlim=(0, 0.5),
    )
    axes.set_title(f"[wu2026entropy], Figure 5: parity, n = {records}", fontsize="medium")
    axes.legend(frameon=False, fontsize="x-small", loc="lower left")
    print(
        f"Figure 5, n = {records}: the closed form is outside the proved intervals by {max(outside, 0):.0e}; "
        f"Laplace and exponential are off the optimum by {max(apart, 0):.0e}"
    )
    head = ("mechanism", "D, or epsilon", "b", "distortion", "leaks at most", "at least")
    report(ways.folder, f"figure-5-designed-{records}", head, rows, show=False)


def figure_6(left: Axes, right: Axes, ways: Ways) -> None:
    """Problem 2: leakage over D, and achieved over requested distortion."""
    parity, b = QUERIES["parity"], 1.5
    curve = curve_of("leakage", parity, DISTORTIONS, b, ways.time_limit)
    known = [parity_leakage(3, limit, b) for limit in DISTORTIONS]
    local = [
        penalty("parity", "leakage", limit, b)[1]
        for limit in iterate_with_progress(PENALISED, len(PENALISED), "Figure 6, penalty")
    ]
    left.plot(DISTORTIONS, [r.value for r in curve], "tab:blue", label="certified optimum")
    left.plot(DISTORTIONS, known, "k:", label="closed form")
    left.plot(PENALISED, [r.certificate.leakage for r in local], "rx", label="penalty method")
    left.set(xlabel="D", ylabel="leakage per record [nats]", ylim=(0, None))
    left.set_title("[wu2026entropy], Figure 6: n = 3, b = 1.5", fontsize="medium")
    left.legend(frameon=False, fontsize="small")
    right.plot((0, 0.5), (0, 0.5), "k--", linewidth=0.8, label="D")
    right.plot(
        DISTORTIONS,
        [r.certificate.distortion for r in curve],
        "tab:blue",
        label="certified optimum",
    )
    right.plot(PENALISED, [r.certificate.distortion for r in local], "rx", label="penalty method")
    right.set(xlabel="D", ylabel="achieved distortion")
    right.set_title("[wu2026entropy], Figure 6, right", fontsize="medium")
    right.legend(frameon=False, fontsize="small")
    by_limit = dict(zip(PENALISED, local, strict=True))
    show("figure-6", "D", DISTORTIONS, curve, known, by_limit, ways)


def figure_7(left: Axes, right: Axes, ways: Ways) -> None:
    """Problem 3: distortion over L, and achieved over requested leakage."""
    parity, b = QUERIES["parity, n = 2"], 0.0
    curve = curve_of("distortion", parity, LEAKAGES, b, ways.time_limit)
    known = [parity_distortion(2, limit, b) for limit in LEAKAGES]
    local = [penalty("parity, n = 2", "distortion", limit, b)[1] for limit in LEAKAGES]
    left.plot(
        LEAKAGES, [r.certificate.distortion for r in curve], "tab:blue", label="certified optimum"
    )
    left.plot(LEAKAGES, known, "k:", label="closed form")
    left.plot(LEAKAGES, [r.certificate.distortion for r in local], "rx", label="penalty method")
    left.set(xlabel="L [nats]", ylabel="distortion", ylim=(0, None))
    left.set_title("[wu2026entropy], Figure 7: n = 2, b = 0", fontsize="medium")
    left.legend(frameon=False, fontsize="small")
    right.plot((0, 0.6), (0, 0.6), "k--", linewidth=0.8, label="L")
    right.plot(
        LEAKAGES, [r.certificate.leakage for r in curve], "tab:blue", label="certified optimum"
    )
    right.plot(LEAKAGES, [r.certificate.leakage for r in local], "rx", label="penalty method")
    right.set(xlabel="L [nats]", ylabel="achieved leakage [nats]")
    right.set_title("[wu2026entropy], Figure 7, right", fontsize="medium")
    right.legend(frameon=False, fontsize="small")
    show("figure-7", "L", LEAKAGES, curve, known, dict(zip(LEAKAGES, local, strict=True)), ways)


def reached(result: Answer) -> list[str]:
    """Distortion and leakage of a mechanism."""
    return [f"{result.certificate.distortion:.4f}", f"{result.certificate.leakage:.4f}"]


def show(
    name: str, letter: str, limits: Sequence[float], curve: Sequence[Answer],
    known: Sequence[float], local: Mapping[float, Answer], ways: Ways,
) -> None:  # fmt: skip
    """The table of a figure."""
    rows = []
    for limit, found, closed in zip(limits, curve, known, strict=True):
        other = local.get(limit)
        rows.append([
            f"{limit:g}", f"{found.value:.6f}", f"{found.bound:.6f}", f"{closed:.6f}",
            f"{found.certificate.distortion:.4f}", f"{found.certificate.leakage:.4f}",
            *(["", ""] if other is None else reached(other)),
        ])  # fmt: skip
    head = (
        letter, "value", "proved bound", "closed form", "distortion", "leaks at most", "penalty: distortion",
        "penalty: leaks",
    )  # fmt: skip
    print()
    report(ways.folder, name, head, rows)
    print()


def beyond(axes: Axes, name: str, entropy: float, ways: Ways) -> None:
    """Queries of three values: the designed optimum beside mechanisms at their certified leakage."""
    query = QUERIES[name]
    given = {
        kind: [expected_distortion(query, work(query, level)) for level in levels]
        for kind, (work, levels) in MECHANISMS.items()
    }
    limits = sorted(
        {*MORE, *(x for those in given.values() for x in those if MORE[0] < x < MORE[-1])}
    )
    curve = curve_of("leakage", query, limits, entropy, ways.time_limit, ways.tolerance)
    axes.plot(
        [r.certificate.distortion for r in curve],
        [r.value for r in curve],
        "k-",
        label="designed, proved",
    )
    rows: list[list[Any]] = [
        ["designed", limit, r.certificate.distortion, r.value, r.bound]
        for limit, r in zip(limits, curve, strict=True)
    ]
    best = dict(zip(limits, curve, strict=True))
    most = {}
    for (kind, (work, levels)), colour in zip(MECHANISMS.items(), COLOURS, strict=False):
        matrices = [work(query, level) for level in levels]
        spent = given[kind]
        audits = [
            solve(record_leakage(query, m, entropy), gap=1e-3, time_limit=3) for m in matrices
        ]
        axes.plot(
            spent,
            [audit.bound for audit in audits],
            MARKERS[kind],
            color=colour,
            markersize=4,
            label=kind,
        )
        rows += [
            [kind, level, lost, audit.bound, audit.value]
            for level, lost, audit in zip(levels, spent, audits, strict=True)
        ]
        ratios = [
            (audit.value / best[lost].value, lost)
            for lost, audit in zip(spent, audits, strict=True)
            if lost in best
        ]
        most[kind] = f"{min(ratios)[0]:.2f} to {max(ratios)[0]:.2f}"
    axes.set(
        xlabel="expected distortion",
        ylabel="leakage per record [nats]",
        xlim=(0, 0.8),
        ylim=(0, 0.72),
    )
    axes.set_title(f"{name}, n = 3, b = {entropy:g}", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    shares = ", ".join(f"{kind} {ratio}" for kind, ratio in most.items())
    wide = sum(r.gap > ways.tolerance for r in curve)
    print(
        f"{name}, b = {entropy:g}: {len(curve)} points, {wide} with a gap above the tolerance, the largest "
        f"{max(r.gap for r in curve):.0e}; leak so many times the optimum of the same distortion: {shares}"
    )
    head = ("mechanism", "its parameter", "distortion", "leaks at most", "at least")
    report(ways.folder, f"{name}-{entropy:g}".replace(" ", "-"), head, rows, show=False)


# ---------------------------------------------------------------- what it costs


def compared(repeats: int, ways: Ways) -> None:
    """Cutting planes beside the penalty method."""
    rows = []
    for name, sense, limit, entropy in iterate_with_progress(COMPARED, len(COMPARED), "comparing"):
        exact: Mapping[str, Callable[[], Answer]] = {
            "exact": partial(
                answer, sense, QUERIES[name], limit, entropy, time_limit=ways.time_limit
            )
        }
        seconds, found = interleaved(exact, repeats)["exact"]
        asked = f"{'D' if sense == 'leakage' else 'L'} = {limit:g}"
        slow, other = penalty(name, sense, limit, entropy)
        for method, took, result in (("exact", seconds, found), ("penalty", slow, other)):
            proved = method == "exact"
            rows.append([
                name, asked, f"{entropy:g}", method,
                f"{result.certificate.distortion:.6f}", f"{result.certificate.leakage:.6f}",
                f"{result.bound:.6f}" if proved else "none", f"{result.gap:.0e}" if proved else "none",
                f"{result.certificate.violation:.3f}" if result.certificate.violation > 1e-9 else "0",
                result.status.value, f"{took:.2f}", f"{took / seconds:.1f}",
            ])  # fmt: skip
    head = (
        "query", "limit", "b [nats]", "method", "distortion", "leaks at most", "proved bound", "gap",
        "violation", "status", "seconds", "ratio",
    )  # fmt: skip
    report(ways.folder, "compared", head, rows)


def hard(ways: Ways) -> None:
    """What takes the exact method longest."""
    rows = []
    for name, sense, limit, entropy in iterate_with_progress(HARD, len(HARD), "hard cases"):
        found = answer(sense, QUERIES[name], limit, entropy, time_limit=ways.time_limit)
        rows.append([
            name, f"{'D' if sense == 'leakage' else 'L'} = {limit:g}", f"{entropy:g}", f"{found.value:.6f}",
            f"{found.bound:.6f}", f"{found.gap:.0e}", found.iterations, found.status.value,
            f"{found.timings.total:.1f}",
        ])  # fmt: skip
    head = (
        "query",
        "limit",
        "b [nats]",
        "value",
        "proved bound",
        "gap",
        "programs",
        "status",
        "seconds",
    )
    report(ways.folder, "hard", head, rows)


def many(ways: Ways) -> None:
    """Many records at b = (n - 1/2) log 2, beside the symmetric channel audited for as long."""
    rows = []
    for name, query, limit, error in iterate_with_progress(MANY, len(MANY), "many records"):
        entropy = (query.records - 0.5) * math.log(2)
        found = answer("leakage", query, limit, entropy, time_limit=ways.time_limit)
        channel = record_leakage(query, queries.symmetric_channel(query, error), entropy)
        audit = solve(channel, gap=1e-6, time_limit=ways.time_limit)
        rows.append([
            name, f"D = {limit:g}", f"{found.value:.4f}", f"{found.bound:.4f}", found.status.value,
            f"{found.timings.total:.1f}", f"{audit.bound:.4f}", f"{audit.timings.total:.1f}",
        ])  # fmt: skip
    head = (
        "query", "limit", "value", "proved bound", "status", "seconds",
        "symmetric channel, at most", "seconds",
    )  # fmt: skip
    report(ways.folder, "many", head, rows)


if __name__ == "__main__":
    main()
