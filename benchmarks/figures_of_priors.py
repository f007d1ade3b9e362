"""Figures of grosse2025empirical and both papers by Saeidian et al.."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from common import FloatArray
from figure_style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    explain,
    label_ends,
    note,
    panels,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from points import columns, rows_of

# ---------------------------------------------------------------- grosse2025empirical


def empirical_2() -> Figure:
    """Random priors below the bound of Theorem 4."""
    figure, axes = panels(1, 2)
    for panel, part, title in zip(axes, "ab", ("Example 1", "Example 2, 2-singular"), strict=True):
        drawn, bound = (
            columns(f"estimation/figure-2{part}"),
            columns(f"estimation/figure-2{part}-bound"),
        )
        panel.plot(
            drawn["distance"],
            drawn["increase"],
            ".",
            color=GREY,
            markersize=1.5,
            label="_",
            rasterized=True,
        )
        panel.plot(bound["radius"], bound["bound"], color=BLUE)
        panel.plot(bound["radius"], bound["exact"], "--", color=ORANGE)
        panel.set(
            xlabel="l1 distance",
            ylabel="leakage increase [nats]",
            ylim=(0, None),
            xlim=(0, None),
            title=title,
        )
        top, right = float(bound["bound"][-1]), float(bound["radius"][-1])
        note(panel, "bound (Theorem 4),\nand exact (dashed)", (0.04 * right, 0.88 * top), BLUE)
        note(panel, "random priors", (0.62 * right, 0.1 * top), GREY)
    return figure


def empirical_3() -> Figure:
    """What a sample promises: failure over the increase, and the level over the sample."""
    figure, (left, right) = panels(1, 2)
    failures = columns("estimation/figure-3a")
    for name, colour in zip(list(failures)[1:], COLOURS, strict=False):
        curve = np.maximum(failures[name], 1e-30)
        left.semilogy(failures["increase"], curve, color=colour)
        size = int(name[2:]) // 1000
        place = int(np.argmin(np.abs(np.log(curve) - math.log(1e-9))))
        first = size == 300  # the leftmost curve has its name at the left
        across = float(failures["increase"][place]) + (-0.006 if first else 0.006)
        note(
            left, f"{size}k", (across, float(curve[place])), colour, ha="right" if first else "left"
        )
    left.set(
        xlabel="leakage increase [nats]",
        ylabel="failure probability",
        xlim=(-0.03, 0.3),
        ylim=(1e-12, 3),
    )
    left.set_title("(a) 10,000 to 300,000 samples")
    levels = columns("estimation/figure-3b")
    for name, colour in zip(list(levels)[1:], COLOURS, strict=False):
        right.semilogx(
            levels["samples"], levels[name], color=colour, label=name.removeprefix("epsilon=")
        )
        right.axhline(
            math.log(float(name.split()[-1])), linestyle=":", color=colour, linewidth=0.9, label="_"
        )
    right.set(
        xlabel="samples",
        ylabel="level under the true prior [nats]",
        ylim=(0, 4),
        title="(b) designs at three levels",
    )
    label_ends(right)
    return figure


def empirical_4() -> Figure:
    """Information left by Laplace noise in two features."""
    figure, axes = panels(1, 2, sharey=True)
    for panel, feature in zip(axes, ("income", "sex"), strict=True):
        table = columns(f"noise/figure-4-{feature}")
        _with_bars(panel, table, "epsilon")
        panel.set(xlabel="epsilon [nats]", title=feature, ylim=(0, 0.68))
        label_ends(panel, order=("m = 32,561", "m = 5,000", "m = 1,000"))
    axes[0].set_ylabel("mutual information [nats]")
    return figure


def empirical_5() -> Figure:
    """The same over the sample, for several probabilities of failure."""
    figure, (panel,) = panels()
    _with_bars(panel, columns("noise/figure-5"), "samples")
    panel.set(
        xscale="log", xlabel="samples", ylabel="mutual information [nats]", ylim=(0.025, None)
    )
    panel.set_title("income, epsilon = log 2")
    label_ends(panel)
    return figure


def _with_bars(panel: Axes, table: Mapping[str, FloatArray], across: str) -> None:
    """Curves with two standard errors as a band; LDP is grey."""
    colours = iter(COLOURS)
    for name in table:
        if name == across or "standard error" in name:
            continue
        local = name.endswith(("LDP", "DP"))
        colour = GREY if local else next(colours)
        panel.plot(table[across], table[name], "--" if local else "-", color=colour, label=name)
        error = 2 * table[f"{name} (standard error)"]
        panel.fill_between(
            table[across],
            table[name] - error,
            table[name] + error,
            color=colour,
            alpha=0.2,
            linewidth=0,
        )


def empirical_6() -> Figure:
    """Level and failure probability of Gaussian noise, as published and sharper."""
    figure, axes = panels(3, 1, height=2.3, sharex=True)
    titles = {
        "6a": "6a: p = (0.5, 0.5), sigma = 1.5",
        "6b": "6b: p = (0.5, 0.5), sigma = 2",
        "7": "7: p = (0.3, 0.7), sigma = 1.5",
    }
    for panel, (name, title) in zip(axes, titles.items(), strict=True):
        table = columns(f"noise/figure-{name}")
        panel.semilogy(
            table["epsilon"], table["plocal"], ":", color=GREY, label="probabilistic LDP"
        )
        for samples, colour in ((100, BLUE), (1000, RED), (100_000, GREEN)):
            sharp, published = table[f"delta m={samples}"], table[f"published epsilon m={samples}"]
            panel.semilogy(table["epsilon"], sharp, color=colour, label="_")
            panel.semilogy(published, sharp, "--", color=colour, linewidth=0.9, label="_")
            place = int(np.argmin(np.abs(np.log(np.maximum(sharp, 1e-30)) - math.log(1e-4))))
            reached = sharp[place] < 1e-3
            left = (
                samples == 100_000 or not reached
            )  # the curve has its dashed one on the other side
            across = float(table["epsilon"][place]) + (-0.03 if left else 0.03)
            upright = float(sharp[place]) * (1.0 if reached else 0.15)
            note(panel, f"{samples:,}", (across, upright), colour, ha="right" if left else "left")
        panel.set(ylabel="failure probability", xlim=(0, 2.5), ylim=(3e-7, 3), title=title)
        label_ends(panel)
    axes[-1].set_xlabel("epsilon [nats]")
    signs = {"sharper bound, by samples": {}, "as published": {"linestyle": "--", "linewidth": 0.9}}
    explain(axes[0], signs, "center right")
    return figure


def additive_noise() -> Figure:
    """Mean distance of additive noise over the least at the same level."""
    figure, axes = panels(1, 2, sharey=True)
    rows = rows_of("additive-noise")
    for panel, column, title in zip(
        axes,
        ("noise", "best letter"),
        ("noise, clipped", "noise, then the best letter"),
        strict=True,
    ):
        for name in dict.fromkeys(row["law"] for row in rows):
            own = [row for row in rows if row["law"] == name]
            ratio = [float(row[column]) / float(row["design"]) for row in own]
            panel.plot([float(row["epsilon"]) for row in own], ratio, "o-", label=name)
        panel.set(xlabel="epsilon [nats]", title=title, yscale="log")
        panel.set_yticks([1, 2, 3, 4, 6], ["1", "2", "3", "4", "6"])
        panel.minorticks_off()
        label_ends(panel)
    axes[0].set_ylabel("mean distance over the least")
    return figure


def histogram_1() -> Figure:
    """Distance of noisy histograms under PML and under differential privacy."""
    figure, (left, right) = panels(1, 2)
    first = columns("noise/hist-figure-1a")
    for k, colour in ((5, BLUE), (10, RED)):
        for kind, line in (("DP", "--"), ("alpha = 0.05", "-"), (f"alpha = {1 / k:g}", ":")):
            left.plot(first["epsilon"], first[f"k = {k}, {kind}"], line, color=colour, label="_")
        note(left, f"{k} classes", (0.25, 0.07) if k == 10 else (0.013, 0.06), colour)
    left.set(xscale="log", yscale="log", xlabel="epsilon [nats]", ylabel="total variation distance")
    left.set_title("(a) over epsilon")
    signs = {"DP": "--", "PML, alpha = 0.05": "-", "PML, alpha = 1/k": ":"}
    explain(left, {name: {"linestyle": line} for name, line in signs.items()}, "lower left")
    second = columns("noise/hist-figure-1b")
    for epsilon, colour in (("0.1", BLUE), ("0.5", RED), ("1", GREEN)):
        right.plot(
            second["classes"], second[f"epsilon = {epsilon}, DP"], "--", color=colour, label="_"
        )
        right.plot(
            second["classes"],
            second[f"epsilon = {epsilon}, alpha = 0.05"],
            color=colour,
            label=f"epsilon = {epsilon}",
        )
    right.set(
        yscale="log",
        xlabel="classes",
        xticks=range(2, 21, 3),
        title="(b) over classes, alpha = 0.05",
    )
    label_ends(right)
    return figure


# ---------------------------------------------------------------- saeidian2026envelopes


def envelope_1() -> Figure:
    """The law of the leakage of Example 1, and three levels at delta = 0.1."""
    figure, (panel,) = panels()
    table = columns("envelope/figure-1")
    panel.step(table["t"], table["P"], where="post", color=BLUE, label="_")
    note(panel, "P(leakage <= t)", (0.5, 0.94), BLUE, va="bottom")
    for name, at, colour, line in (
        ("lower quantile\n0.105", math.log(10 / 9), GREEN, "--"),
        ("upper quantile\nand envelope\n1.386 = log 4", math.log(4), RED, "-"),
    ):
        panel.axvline(at, color=colour, linestyle=line, linewidth=1.2, label="_")
        note(
            panel,
            name,
            (at + (0.02 if at < 1 else -0.02), 0.45),
            colour,
            ha="left" if at < 1 else "right",
        )
    panel.set(
        xlabel="leakage t [nats]", ylim=(0, 1.05), xlim=(0, 1.6), title="Example 1, delta = 0.1"
    )
    return figure


def envelope_2() -> Figure:
    """The envelope of randomized response, exact, with the bounds of the paper."""
    figure, axes = panels(2, 2, sharey=True)
    titles = {"a": "k = 3", "b": "k = 5", "c": "k = 12", "d": "k = 20"}
    for place, (panel, (part, title)) in enumerate(zip(axes, titles.items(), strict=True)):
        names = {
            "upper bound": (0.62, 0.77),
            "exact": (0.46, 0.52),
            "binary envelope": (0.64, 0.3),
            "approximate DP": (0.1, 0.92),
        }
        _response(panel, f"envelope/figure-2{part}", names if place == 0 else {})
        panel.set_title(title)
        panel.set(
            xlabel="probability delta" if place > 1 else None,
            ylabel="leakage [nats]" if place % 2 == 0 else None,
        )
    return figure


def envelope_skewed() -> Figure:
    """A prior on which the paper's condition fails."""
    figure, (panel,) = panels()
    names = {
        "upper bound": (0.87, 0.93),
        "exact": (0.58, 0.87),
        "h_delta": (0.75, 0.36),
        "binary envelope": (0.53, 0.38),
        "approximate DP": (0.02, 0.2),
    }
    _response(panel, "envelope/figure-skewed", names, lower=True)
    panel.set(
        xlabel="probability delta",
        ylabel="leakage [nats]",
        title="prior (0.02, 0.03, 0.05, 0.45, 0.45)",
    )
    return figure


def _response(
    panel: Axes, name: str, names: Mapping[str, tuple[float, float]], *, lower: bool = False
) -> None:
    table = columns(name)
    delta = table["delta"]
    styles = {
        "upper bound": (SKY, "--"), "exact": (BLUE, "-"), "h_delta": (RED, "-."),
        "binary envelope": (GREEN, "-"), "approximate DP": (PURPLE, ":"),
    }  # fmt: skip
    for curve, (colour, line) in styles.items():
        if curve == "h_delta" and not lower:
            continue
        panel.plot(
            delta,
            table[curve],
            line,
            color=colour,
            label="_",
            linewidth=2.2 if curve == "exact" else 1.4,
        )
    panel.set(ylim=(0, 1.05), xlim=(0, 1))
    for curve, place in names.items():
        note(panel, curve, place, styles[curve][0])


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "empirical-figure-2": empirical_2,
    "empirical-figure-3": empirical_3,
    "empirical-figure-4": empirical_4,
    "empirical-figure-5": empirical_5,
    "empirical-figures-6-7": empirical_6,
    "histogram-figure-1": histogram_1,
    "additive-noise": additive_noise,
    "envelopes-figure-1": envelope_1,
    "envelopes-figure-2": envelope_2,
    "envelopes-skewed": envelope_skewed,
}
"""Every figure by the name of its file."""
