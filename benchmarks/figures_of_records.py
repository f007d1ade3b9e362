"""Figures of song2026worstcase and wu2026entropy, drawn from the points stored in benchmarks/data."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    explain,
    label_ends,
    note,
    panels,
)
from matplotlib.figure import Figure
from points import columns, rows_of

BIT = math.log(2)

# ---------------------------------------------------------------- song2026worstcase


def worst_case_1() -> Figure:
    """The least utility that a counting query's mechanisms draw, over epsilon."""
    figure, (panel,) = panels()
    table = columns("worst_case/figure-1")
    styles = {
        "utility-optimal": (GREEN, "-"),
        "rank-optimal": (BLUE, "-"),
        "utility-safe": (RED, "--"),
        "randomized response": (GREY, ":"),
    }
    for name, (colour, line) in styles.items():
        panel.step(table["epsilon"], table[name], line, where="post", color=colour, label=name)
    panel.set(
        xlabel="epsilon [nats]",
        ylabel="least utility of 1,000 draws",
        title="Counting query on six records",
    )
    label_ends(
        panel, order=("utility-optimal", "rank-optimal", "utility-safe", "randomized response")
    )
    return figure


def worst_case_2() -> Figure:
    """The least leakage over the rarest letter: one rare letter, and three."""
    figure, axes = panels(1, 2, sharex=True)
    for panel, number, title in zip(
        axes, (2, 3), ("one rare letter", "three rare letters"), strict=True
    ):
        table = columns(f"worst_case/figure-{number}")
        for h, colour in ((3, BLUE), (2, RED)):
            panel.plot(table["p_min"], table[f"h={h} optimal"], color=colour, label=f"h = {h}")
            panel.plot(
                table["p_min"], table[f"h={h} safe"], "o", color=colour, fillstyle="none", label="_"
            )
        panel.set(
            xlabel="least probability of a letter",
            ylim=(0, None),
            title=f"Figure {number}: {title}",
            xticks=(0.05, 0.1, 0.15, 0.2),
        )
        label_ends(panel)
    axes[0].set_ylabel("least leakage [nats]")
    note(axes[1], "line: optimal\ncircle: utility-safe", (0.1, 2.9), BLACK)
    return figure


# ---------------------------------------------------------------- wu2026entropy


def records_3() -> Figure:
    """The certified leakage over b, and what the alternating method finds."""
    figure, axes = panels(3, 1, height=2.3)
    for panel, records in zip(axes, (4, 5, 6), strict=True):
        rows = rows_of(f"records/figure-3-{records}")
        for error, colour in zip(
            ("0.1", "0.2", "0.3", "0.4"), (BLUE, RED, GREEN, PURPLE), strict=True
        ):
            line = [row for row in rows if row["p"] == error]
            b = [float(row["b"]) for row in line]
            panel.plot(b, [float(row["to"]) for row in line], color=colour, label="_")
            local = [
                (float(row["b"]), float(row["alternating"])) for row in line if row["alternating"]
            ]
            panel.plot(*zip(*local, strict=True), "x:", color=colour, linewidth=0.8, label="_")
            above = (0.06, float(line[0]["to"]) + 0.008)
            note(panel, f"p = {error}", above, colour, va="bottom")
        panel.axvline((records - 1) * BIT, color=GREY, linewidth=0.8, linestyle="--", label="_")
        note(panel, "(n - 1) log 2", ((records - 1) * BIT - 0.03, 0.46), GREY, ha="right")
        panel.set(
            ylabel="leakage per record [nats]",
            ylim=(0, 0.5),
            xlim=(0, records * BIT),
            title=f"n = {records}",
        )
    axes[-1].set_xlabel("least entropy b of the records [nats]")
    signs = {
        "certified": {},
        "alternating method, two starts": {"marker": "x", "linestyle": ":", "linewidth": 0.8},
    }
    explain(axes[0], signs, "upper left", columns=2)
    return figure


def records_4() -> Figure:
    """The certified leakage over epsilon of differential privacy, and a symmetric channel as printed."""
    figure, (panel,) = panels()
    rows = rows_of("records/figure-4-4")
    for name, colour in (("Laplace", BLUE), ("exponential", RED)):
        line = [row for row in rows if row["mechanism"] == name]
        panel.semilogx(
            [float(r["epsilon"]) for r in line],
            [float(r["to"]) for r in line],
            color=colour,
            label=name,
        )
    panel.axhline(BIT, color=GREY, linewidth=0.8, linestyle="--", label="_")
    note(panel, "log 2", (0.11, BIT + 0.008), GREY, va="bottom")
    levels: dict[str, list[str]] = {}
    for row in rows:
        if row["mechanism"] == "BSC(0.3)":
            levels.setdefault(f"{float(row['to']):.4f}", []).append(f"{float(row['b']):g}")
    for level, those in levels.items():
        panel.axhline(float(level), color=GREEN, linewidth=1.2, label="_")
        span = those[0] if len(those) == 1 else f"{those[0]} to {those[-1]}"
        beside = panel.get_yaxis_transform()  # to the right of the axes
        note(panel, f"BSC, b = {span}: {level}", (1.03, float(level)), GREEN, transform=beside)
    panel.axhline(0.0931, color=ORANGE, linewidth=1.0, linestyle=":", label="_")
    note(panel, "BSC(0.3), b = 0, as printed: 0.0931", (0.11, 0.125), ORANGE)
    panel.set(
        xlabel="epsilon of differential privacy [nats]",
        ylabel="leakage per record [nats]",
        ylim=(0, 0.76),
        title="Parity of four records, b = 0",
    )
    label_ends(panel)
    return figure


def records_5() -> Figure:
    """The expected distortion of parity over what it leaks, and over epsilon as the paper has it."""
    figure, (panel,) = panels()
    rows = rows_of("records/figure-5-4")
    names = dict.fromkeys(r["mechanism"] for r in rows if r["mechanism"].startswith("BSC"))
    for place, (name, colour) in enumerate(zip(names, (BLUE, RED, GREEN, PURPLE), strict=False)):
        those = [row for row in rows if row["mechanism"] == name]
        leaks, lost = [float(r["to"]) for r in those], [float(r["distortion"]) for r in those]
        panel.semilogx(leaks, lost, color=colour, label="_")
        k = int(np.argmin(np.abs(np.array(lost) - (0.05, 0.15)[place == 0])))
        note(
            panel,
            f"{'b = ' if place == 0 else ''}{float(name.split()[-1]):.3g}",
            (leaks[k] * (1.2 if place == 0 else 0.85), lost[k]),
            colour,
            ha="left" if place == 0 else "right",
        )
    for kind, colour in (("Laplace", ORANGE), ("exponential", GREY)):
        those = [row for row in rows if row["mechanism"].startswith(kind)]
        epsilons = [float(row["mechanism"].split()[-1]) for row in those]
        lost = [float(row["distortion"]) for row in those]
        panel.semilogx(epsilons, lost, "--", color=colour, label="_")
        panel.semilogx(
            [float(row["to"]) for row in those], lost, "o", color=colour, markersize=3, label="_"
        )
        k = len(those) // 2
        note(
            panel,
            f"{kind},\nover its epsilon",
            (epsilons[k] * (0.6 if kind == "Laplace" else 1.3), lost[k] + 0.02),
            colour,
            ha="right" if kind == "Laplace" else "left",
        )
    panel.set(
        xlabel="leakage per record, dashed: epsilon [nats]",
        ylabel="expected distortion",
        xlim=(1e-3, 12),
        ylim=(0, 0.6),
        title="Parity of four records, by the entropy b [nats]",
    )
    note(panel, "dots: at their certified leakage", (0.0013, 0.55), BLACK)
    return figure


def distortion_5() -> Figure:
    """The designed optimum for parity, and mechanisms of differential privacy at their certified leakage."""
    figure, axes = panels(1, 3, height=3.1, sharey=True)
    for panel, records in zip(axes, (4, 5, 6), strict=True):
        rows = rows_of(f"distortion/figure-5-designed-{records}")
        entropies = dict.fromkeys(row["b"] for row in rows)
        for b, colour in zip(entropies, (BLUE, RED, GREEN, PURPLE), strict=False):
            line = [row for row in rows if row["b"] == b and row["mechanism"] == "designed"]
            lost = [float(r["distortion"]) for r in line]
            leaks = [float(r["leaks at most"]) for r in line]
            panel.semilogy(lost, leaks, color=colour, label=f"b = {float(b):.2f}")
            for kind, mark in (("Laplace", "o"), ("exponential", "x")):
                those = [row for row in rows if row["b"] == b and row["mechanism"] == kind]
                points = [(float(r["distortion"]), float(r["leaks at most"])) for r in those]
                panel.semilogy(*zip(*points, strict=True), mark, color=colour, label="_")
        panel.set(xlabel="expected distortion", xlim=(0, 0.46), title=f"n = {records}")
        label_ends(panel)
    axes[0].set_ylabel("leakage per record [nats]")
    signs = {
        "designed": {},
        "Laplace": {"marker": "o", "linestyle": ""},
        "exponential": {"marker": "x", "linestyle": ""},
    }
    explain(axes[0], signs, "lower left")
    return figure


def distortion_6() -> Figure:
    """Least leakage for a distortion, least distortion for a leakage: certified, by formula, by penalty."""
    figure, axes = panels(1, 2)
    signs = {
        "certified": {"color": BLUE},
        "closed form": {"linestyle": ":"},
        "penalty method": {"color": RED, "marker": "x", "linestyle": ""},
    }
    kinds = (
        ("6", "D", "leakage per record [nats]", "penalty: leaks"),
        ("7", "L", "expected distortion", "penalty: distortion"),
    )
    for panel, (number, letter, upright, local) in zip(axes, kinds, strict=True):
        table = columns(f"distortion/figure-{number}")
        panel.plot(table[letter], table["value"], color=BLUE, label="_")
        panel.plot(table[letter], table["closed form"], ":", color=BLACK, label="_")
        panel.plot(table[letter], table[local], "x", color=RED, label="_")
        title = "Figure 6: n = 3, b = 1.5" if number == "6" else "Figure 7: n = 2, b = 0"
        bounds = {"D": "expected distortion D", "L": "leakage per record L [nats]"}
        panel.set(xlabel=bounds[letter], ylabel=upright, ylim=(0, None), title=title)
    explain(axes[0], signs, "upper right")
    return figure


def distortion_more() -> Figure:
    """Queries of three values: the designed optimum beside mechanisms at their certified leakage."""
    figure, axes = panels(2, 3, height=2.5, sharey=True, sharex=True)
    cases = [(name, b) for name in ("sum-mod-3", "quadratic") for b in ("0", "1", "1.5")]
    styles: Mapping[str, Mapping[str, Any]] = {
        "designed": {"color": BLUE},
        "Laplace": {"color": RED, "marker": "o", "linestyle": ""},
        "exponential": {"color": GREEN, "marker": "x", "linestyle": ""},
        "symmetric channel": {"color": PURPLE, "marker": "^", "linestyle": ""},
    }
    for place, (panel, (name, b)) in enumerate(zip(axes, cases, strict=True)):
        rows = rows_of(f"distortion/{name}-{b}")
        for kind, style in styles.items():
            those = sorted(
                (float(r["distortion"]), float(r["leaks at most"]))
                for r in rows
                if r["mechanism"] == kind
            )
            panel.plot(*zip(*those, strict=True), **style)
        panel.set(title=f"{name.replace('-', ' ')}, b = {b}", ylim=(0, 0.72), xlim=(0, None))
        if place > 2:
            panel.set_xlabel("expected distortion")
    axes[0].set_ylabel("leakage per record [nats]")
    axes[3].set_ylabel("leakage per record [nats]")
    explain(figure, styles, "outside lower center", columns=4)
    return figure


def dimensions() -> Figure:
    """The proved gap of a record's leakage over the number of outputs, by posteriors and by class laws."""
    rows = rows_of("record-dimensions")
    queries = list(dict.fromkeys(row["query"] for row in rows))
    figure, axes = panels(1, len(queries), height=3.0, sharey=True)
    for panel, query in zip(axes, queries, strict=True):
        for kind, colour, line in (("posteriors", BLUE, "o-"), ("class laws", RED, "x--")):
            those = [row for row in rows if (row["query"], row["method"]) == (query, kind)]
            outputs, gaps = ([float(row[name]) for row in those] for name in ("outputs", "gap"))
            panel.semilogy(outputs, gaps, line, color=colour, label=kind)
        panel.set(xlabel="outputs", title=query)
        label_ends(panel, order=("class laws", "posteriors"))
    axes[0].set_ylabel("gap [nats] after at most 20 s")
    return figure


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "worst-case-figure-1": worst_case_1,
    "worst-case-figures-2-3": worst_case_2,
    "records-figure-3": records_3,
    "records-figure-4": records_4,
    "records-figure-5": records_5,
    "distortion-figure-5": distortion_5,
    "distortion-figures-6-7": distortion_6,
    "distortion-three-values": distortion_more,
    "record-dimensions": dimensions,
}
"""Every figure by the name of its file."""
