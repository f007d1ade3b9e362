"""Noise: closed forms beside numerical routes, and the figures of two papers.

They are [grosse2025empirical, Figures 4 to 7] and [saeidian2025histogram, Figure 1].

    python benchmarks/noise.py [--output FILE.png] [--histogram FILE.png] [--csv FOLDER]
        [--repeats 10000] [--seed 0]

[grosse2025empirical, Figures 4 and 5]: the mutual information between a binary feature of the Adult data and
its sign after Laplace noise, with delta = 1e-9, averaged over 100 shuffles; only the feature's counts matter,
so shuffles and signs are drawn as counts. Figures 6 and 7: the failure probability of Gaussian noise as
published and as `Gaussian.promise` has it, beside probabilistic LDP. [saeidian2025histogram, Figure 1]:
the total variation distance between a histogram of 1,000 uniform records and its release, clipped, rounded
and normalised (all zeros count as uniform), 10,000 repetitions a point. Bars are two standard errors. The
papers leave out some parameters; those here are in the legends. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from common import FloatArray, drawing, machine, table, write_csv
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import brentq

from pmlopt import L1Ball, Prior, leakage_level
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.model.uncertainty import level_within_distance, weissman_radius
from pmlopt.programs.plots import save_figure
from pmlopt.releases.noise import (
    Gaussian,
    LaplaceHistogram,
    Promise,
    laplace_level,
    laplace_scale,
    plocal_failure,
)

ADULT = {"income": (24_720, 7_841), "sex": (21_790, 10_771)}
SHUFFLES, DELTA = 100, 1e-9
RECORDS = 1000


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figures and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("noise"))
    parser.add_argument("--histogram", type=Path, default=drawing("histogram"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument("--repeats", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(arguments.seed)
    print(machine())
    start = time.perf_counter()
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, 3).ravel().tolist()
    for axes, feature in zip(panels, ADULT, strict=False):
        figure_4(axes, feature, rng, arguments.csv)
    figure_5(panels[2], rng, arguments.csv)
    for axes, (name, prior, scale) in zip(panels[3:], GAUSSIANS, strict=True):
        gaussian_figure(axes, name, prior, scale, arguments.csv)
    save_figure(figure, arguments.output)
    print(f"grosse2025empirical, Figures 4 to 7: {time.perf_counter() - start:.1f} s")
    start = time.perf_counter()
    figure = Figure(figsize=(10, 4), layout="constrained")
    first, second = figure.subplots(1, 2)
    better = histogram_figure_a(first, rng, arguments.repeats, arguments.csv)
    better += histogram_figure_b(second, rng, arguments.repeats, arguments.csv)
    save_figure(figure, arguments.histogram)
    seconds = time.perf_counter() - start
    print(
        f"saeidian2025histogram, Figure 1: {seconds:.1f} s; "
        f"PML closer than DP at {sum(better)} of {len(better)} points"
    )
    table(
        ("a", "epsilon", "closed form [us]", "root search [us]", "ratio", "difference"),
        inversions(),
    )
    print()
    table(("a", "scale", "formula [nats]", "discretised [nats]", "difference"), discretised())


# ---------------------------------------------------------------- grosse2025empirical, Figures 4 and 5


def laplace_information(
    counts: tuple[int, int],
    samples: int,
    epsilon: float,
    delta: float | None,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The mean over the shuffles of the empirical mutual information, and its standard error.

    Args:
        counts: of both values in the whole data.
        samples: m.
        epsilon: the level.
        delta: of the l1 ball; None for LDP.
        rng: for the shuffles and the signs.
    """
    first = rng.hypergeometric(*counts, samples, size=SHUFFLES)
    radius = 2.0 if delta is None else weissman_radius(samples, 2, delta)
    shares = np.stack([first, samples - first]) / samples
    least = np.maximum(0.0, shares.min(axis=0) - radius / 2)
    scales = np.array([laplace_scale(epsilon, share) for share in least])
    with np.errstate(divide="ignore"):
        flips = np.where(scales > 0, np.exp(-1 / scales) / 2, 0.0)
    wrong = rng.binomial(first, flips), rng.binomial(samples - first, flips)
    joint = (
        np.array([[first - wrong[0], wrong[0]], [wrong[1], samples - first - wrong[1]]]) / samples
    )
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(joint > 0, joint * np.log(joint / product), 0.0)
    found = terms.sum(axis=(0, 1))
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(SHUFFLES))


def figure_4(axes: Axes, feature: str, rng: np.random.Generator, folder: Path | None) -> None:
    """The information against epsilon, for several sample sizes and for LDP."""
    grid = np.linspace(0.1, 2.0, 20)
    curves = {"LDP": (32_561, None), **{f"m = {m:,}": (m, DELTA) for m in (1_000, 5_000, 32_561)}}
    points = {
        name: np.array([laplace_information(ADULT[feature], m, float(e), delta, rng) for e in grid])
        for name, (m, delta) in curves.items()
    }
    draw(
        axes,
        grid,
        points,
        f"grosse2025empirical, Figure 4: {feature}",
        "epsilon [nats]",
        "mutual information [nats]",
    )
    save_points(folder, f"figure-4-{feature}", "epsilon", grid, points)


def figure_5(axes: Axes, rng: np.random.Generator, folder: Path | None) -> None:
    """The information against the sample size, for several delta, at epsilon = log 2."""
    sizes = np.geomspace(100, 32_561, 20).astype(int)
    deltas: dict[str, float | None] = {
        "LDP": None,
        **{f"delta = {d:g}": d for d in (1e-12, 1e-9, 1e-6, 1e-3)},
    }
    points = {
        name: np.array([
            laplace_information(ADULT["income"], int(m), math.log(2), delta, rng) for m in sizes
        ])
        for name, delta in deltas.items()
    }  # fmt: skip
    draw(
        axes,
        sizes,
        points,
        "grosse2025empirical, Figure 5: income, epsilon = log 2",
        "samples",
        "mutual information [nats]",
    )
    axes.set_xscale("log")
    save_points(folder, "figure-5", "samples", sizes, points)


# ---------------------------------------------------------------- grosse2025empirical, Figures 6 and 7


GAUSSIANS = (
    ("6a", (0.5, 0.5), 1.5),
    ("6b", (0.5, 0.5), 2.0),
    ("7", (0.3, 0.7), 1.5),
)
SECOND = 1e-6


def gaussian_figure(
    axes: Axes, name: str, prior: tuple[float, float], scale: float, folder: Path | None
) -> None:
    """The failure probability against epsilon: as published, sharper, and of probabilistic LDP."""
    grid = np.arange(5, 251) / 100
    local = [plocal_failure(float(e), scale) for e in grid]
    axes.semilogy(grid, local, "k:", label="probabilistic LDP")
    columns: list[Any] = [grid, local]
    head = ["epsilon", "plocal"]
    for color, samples in zip(
        ("tab:blue", "tab:orange", "tab:green"), (100, 1_000, 100_000), strict=True
    ):
        letters, radius = Prior(prior, [-1, 1]), weissman_radius(samples, 2, SECOND)
        ball = L1Ball(letters, radius)
        promises = [Gaussian(scale).promise(letters, float(e), ball, SECOND) for e in grid]
        # Theorem 4 on top
        published = [Promise(level_within_distance(p.epsilon, radius), p.delta) for p in promises]
        axes.semilogy(grid, [p.delta for p in promises], color=color, label=f"m = {samples:,}")
        axes.semilogy(
            [p.epsilon for p in published],
            [p.delta for p in published],
            "--",
            color=color,
            linewidth=0.9,
        )
        columns += [[p.delta for p in promises], [p.epsilon for p in published]]
        head += [f"delta m={samples}", f"published epsilon m={samples}"]
    axes.set(xlabel="epsilon [nats]", ylabel="failure probability", xlim=(0, 2.5), ylim=(1e-7, 2))
    axes.set_title(
        f"grosse2025empirical, Figure {name}: p = {prior}, sigma = {scale:g}\n(dashed: as published)",
        fontsize="medium",
    )
    axes.legend(frameon=False, fontsize="small")
    if folder is not None:
        write_csv(folder / f"figure-{name}.csv", head, np.column_stack(columns))


# ---------------------------------------------------------------- saeidian2025histogram, Figure 1


def distances(
    classes: int, noise: LaplaceHistogram, repeats: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The mean total variation distance of a release, and its standard error."""
    counts = rng.multinomial(RECORDS, np.full(classes, 1 / classes), size=repeats)
    released = noise.release(counts, rng)
    sums = released.sum(axis=1, keepdims=True)
    laws = np.where(sums > 0, released / np.where(sums > 0, sums, 1.0), 1 / classes)
    found = np.abs(laws - counts / RECORDS).sum(axis=1) / 2
    return float(found.mean()), float(found.std(ddof=1) / math.sqrt(repeats))


Case: TypeAlias = tuple[int, float, float]
"""Classes, epsilon and alpha."""


def histogram_figure_a(
    axes: Axes, rng: np.random.Generator, repeats: int, folder: Path | None
) -> list[bool]:
    """Against epsilon, for two numbers of classes and several alpha."""
    grid = np.geomspace(0.01, 2.0, 16)
    cases: dict[str, list[Case]] = {
        f"k = {k}, {f'alpha = {a:g}' if a else 'DP'}": [(k, float(e), a) for e in grid]
        for k in (5, 10)
        for a in (0.0, 0.05, 1 / k)
    }
    points = swept(cases, repeats, rng, "saeidian2025histogram, Figure 1a")
    draw(
        axes,
        grid,
        points,
        "saeidian2025histogram, Figure 1a",
        "epsilon [nats]",
        "total variation distance",
    )
    axes.set_xscale("log")
    save_points(folder, "hist-figure-1a", "epsilon", grid, points)
    return closer(points, 3)


def histogram_figure_b(
    axes: Axes, rng: np.random.Generator, repeats: int, folder: Path | None
) -> list[bool]:
    """Against the number of classes, alpha = 0.05, for several epsilon."""
    grid = np.arange(2.0, 21.0, 2.0)
    cases: dict[str, list[Case]] = {
        f"epsilon = {e:g}, {'alpha = 0.05' if a else 'DP'}": [(int(k), e, a) for k in grid]
        for e in (0.1, 0.5, 1.0)
        for a in (0.0, 0.05)
    }
    points = swept(cases, repeats, rng, "saeidian2025histogram, Figure 1b")
    draw(
        axes,
        grid,
        points,
        "saeidian2025histogram, Figure 1b",
        "classes",
        "total variation distance",
    )
    save_points(folder, "hist-figure-1b", "classes", grid, points)
    return closer(points, 2)


def swept(
    cases: dict[str, list[Case]], repeats: int, rng: np.random.Generator, label: str
) -> dict[str, FloatArray]:
    """(points, 2) mean and standard error for each curve."""
    work = [(name, case) for name, line in cases.items() for case in line]
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for name, (classes, epsilon, alpha) in iterate_with_progress(work, len(work), label):
        noise = LaplaceHistogram.calibrate(epsilon=epsilon, min_mass=alpha)
        points[name].append(distances(classes, noise, repeats, rng))
    return {name: np.array(values) for name, values in points.items()}


def closer(points: dict[str, FloatArray], group: int) -> list[bool]:
    """Whether PML is closer than DP, the first of each group of curves, at every point of the others."""
    curves = [values[:, 0] for values in points.values()]
    return [
        bool(below)
        for place, curve in enumerate(curves)
        if place % group
        for below in curve < curves[place - place % group]
    ]


# ---------------------------------------------------------------- closed forms beside numerical routes


def inversions() -> list[list[Any]]:
    """The scale by formula, and by a root search on the level."""
    rows = []
    for share in (0.0, 0.01, 0.1, 0.5):
        for epsilon in (0.01, 0.5):
            closed, closed_seconds = timed(lambda: laplace_scale(epsilon, share))  # noqa: B023
            searched, search_seconds = timed(
                lambda: brentq(lambda b: laplace_level(b, share) - epsilon, 1e-3, 1e4, xtol=1e-14)  # noqa: B023
            )
            rows.append([
                f"{share:g}", f"{epsilon:g}", f"{1e6 * closed_seconds:.1f}", f"{1e6 * search_seconds:.0f}",
                f"{search_seconds / closed_seconds:.0f}", f"{abs(closed - searched) / closed:.1e}",
            ])  # fmt: skip
    return rows


def discretised() -> list[list[Any]]:
    """The level of Laplace noise that is cut into 4,000 outcomes, and the formula."""
    rows = []
    for share in (0.05, 0.3, 0.5):
        for scale in (0.5, 2.0, 20.0):
            edges = np.linspace(-1 - 10 * scale, 1 + 10 * scale, 4001)
            cuts = np.concatenate([[-np.inf], edges, [np.inf]])
            matrix = np.stack([laplace_masses((cuts - x) / scale) for x in (-1.0, 1.0)])
            matrix /= matrix.sum(axis=1, keepdims=True)
            numeric = leakage_level([share, 1 - share], matrix)
            formula = laplace_level(scale, share)
            rows.append([
                f"{share:g}", f"{scale:g}", f"{formula:.9f}", f"{numeric:.9f}", f"{formula - numeric:.1e}"
            ])  # fmt: skip
    return rows


def laplace_masses(cuts: FloatArray) -> FloatArray:
    """Of the intervals between cuts, for scale one; from the tails, which keep their digits."""
    tails = np.exp(-np.abs(cuts)) / 2
    low, high = tails[:-1], tails[1:]
    straddling = (cuts[:-1] < 0) & (cuts[1:] > 0)
    return np.where(straddling, 1 - low - high, np.abs(low - high))


def timed(work: Callable[[], float], runs: int = 200) -> tuple[float, float]:
    """The answer, and seconds for one run."""
    start = time.perf_counter()
    for _ in range(runs):
        answer = work()
    return answer, (time.perf_counter() - start) / runs


# ---------------------------------------------------------------- what the figures share


def draw(
    axes: Axes, grid: FloatArray, points: dict[str, FloatArray], title: str, across: str, up: str
) -> None:
    """Curves with bars of two standard errors."""
    for name, values in points.items():
        plain = name.endswith(("LDP", "DP"))
        axes.errorbar(
            grid, values[:, 0], 2 * values[:, 1], label=name, linestyle="--" if plain else "-"
        )
    axes.set(xlabel=across, ylabel=up)
    axes.set_title(title, fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


def save_points(
    folder: Path | None, name: str, across: str, grid: FloatArray, points: dict[str, FloatArray]
) -> None:
    """Means and standard errors."""
    if folder is None:
        return
    head: Sequence[str] = [
        across,
        *(f"{key}{what}" for key in points for what in ("", " (standard error)")),
    ]
    write_csv(folder / f"{name}.csv", head, np.column_stack([grid, *points.values()]))


if __name__ == "__main__":
    main()
