"""How leakage grows with the distance to the estimate, and what a sample can promise.

[grosse2025empirical, Figures 2 and 3]

    python benchmarks/estimation.py [--output FILE.png] [--csv FOLDER] [--priors 10000] [--seed 0]

Figure 2: for the mechanisms of Examples 1 and 2, 10,000 random priors within the range of Theorem 4, the
leakage increase D_inf(P_Y || Q_Y) of each over its l1 distance, the theorem's bound, and the exact
sensitivity of the ball. Figure 3: (a) Corollary 3, the failure probability against the increase, for
several sample sizes; (b) eq. (8), the level with delta = 1e-5 against the sample size, for several epsilon.
The paper does not say which sample sizes and levels it drew; those here are in the legends. Needs the extra
`plots`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import FloatArray, drawing, table, write_csv
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pmlopt import L1Ball, Mechanism, Prior, closed_forms, leakage_level
from pmlopt.model.uncertainty import (
    failure_bound,
    leakage_sensitivity,
    level_increase_within_distance,
    true_level_with_confidence,
)
from pmlopt.programs.plots import save_figure

LETTERS, DESIGN, DELTA = 20, math.log(5), 1e-5
SAMPLES = (10_000, 30_000, 100_000, 300_000)
LEVELS = (2, 5, 10)


@dataclass(frozen=True, eq=False)
class Example:
    """A prior and the mechanism that is optimal for it."""

    title: str
    prior: Prior
    mechanism: Mechanism


EXAMPLES = (
    Example(
        "Example 1, epsilon = log 9/8",
        Prior([0.4, 0.2, 0.2, 0.2]),
        closed_forms.high_privacy([0.4, 0.2, 0.2, 0.2], math.log(9 / 8)),
    ),
    Example("Example 2, 2-singular, N = 10", Prior.uniform(10), closed_forms.k_singular(10, 2)),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Compute both figures, draw them, and print how close the bounds come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("estimation"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument("--priors", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(arguments.seed)
    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    rows = []
    for panel, example, name in zip(axes[0], EXAMPLES, ("figure-2a", "figure-2b"), strict=True):
        distances, increases = sampled(example, arguments.priors, rng)
        grid = np.linspace(0.0, float(distances.max()), 60)
        bounds, exact = curves(example, grid)
        draw_increases(panel, example.title, distances, increases, grid, bounds, exact)
        at_most = np.array([bound_at(example, d) for d in distances])
        if arguments.csv is not None:
            write_csv(
                arguments.csv / f"{name}.csv",
                ("distance", "increase", "bound"),
                zip(distances, increases, at_most, strict=True),
            )
            write_csv(
                arguments.csv / f"{name}-bound.csv", ("radius", "bound", "exact"),
                zip(grid, bounds, exact, strict=True),
            )  # fmt: skip
        below = increases <= at_most + 1e-12
        rows.append((
            example.title, f"{len(distances):,}", int((~below).sum()),
            f"{np.max(np.abs(np.subtract(exact, bounds))):.1e}",
        ))  # fmt: skip
    increase = np.linspace(0.005, 0.5, 100)
    failures = [
        [failure_bound(m, LETTERS, DESIGN, DESIGN + step) for m in SAMPLES]
        for step in increase.tolist()
    ]
    sizes = np.unique(np.geomspace(1e3, 1e7, 120).astype(int))
    levels = [
        [true_level_with_confidence(int(m), LETTERS, math.log(r), DELTA) for r in LEVELS]
        for m in sizes
    ]
    draw_promises(axes[1], increase, np.array(failures), sizes, np.array(levels))
    if arguments.csv is not None:
        head = ("increase", *(f"m={m}" for m in SAMPLES))
        write_csv(
            arguments.csv / "figure-3a.csv",
            head,
            ((x, *y) for x, y in zip(increase, failures, strict=True)),
        )
        head = ("samples", *(f"epsilon=log {r}" for r in LEVELS))
        write_csv(
            arguments.csv / "figure-3b.csv",
            head,
            ((x, *y) for x, y in zip(sizes, levels, strict=True)),
        )
    save_figure(figure, arguments.output)
    table(
        ("mechanism", "random priors", "above the bound", "bound less exact sensitivity, at most"),
        rows,
    )


def sampled(
    example: Example, count: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Distances, uniform below 2 min p in random directions, and D_inf(P_Y || Q_Y) there."""
    p, matrix = example.prior.pmf, example.mechanism.matrix
    others = rng.dirichlet(np.ones(len(p)), size=count)
    spans = np.abs(others - p).sum(axis=1)
    wanted = rng.random(count) * np.minimum(2 * p.min(), spans)
    priors = p + (wanted / spans)[:, None] * (others - p)
    return wanted, np.log((p @ matrix) / (priors @ matrix)).max(axis=1)


def bound_at(example: Example, radius: float) -> float:
    """Theorem 4 at the mechanism's own level."""
    return level_increase_within_distance(
        example.prior, leakage_level(example.prior, example.mechanism), float(radius)
    )


def curves(example: Example, grid: FloatArray) -> tuple[list[float], list[float]]:
    """The bound and the exact sensitivity of the l1 ball, over the radius."""
    prior, mechanism = example.prior, example.mechanism
    radii = np.minimum(grid, 2 * prior.pmf.min() * (1 - 1e-9)).tolist()
    exact = [float(leakage_sensitivity(prior, L1Ball(prior, r), mechanism)) for r in radii]
    return [bound_at(example, r) for r in radii], exact


def draw_increases(
    axes: Axes,
    title: str,
    distances: FloatArray,
    increases: FloatArray,
    grid: FloatArray,
    bounds: Sequence[float],
    exact: Sequence[float],
) -> None:
    """One panel of Figure 2."""
    axes.plot(distances, increases, ".", markersize=1, color="tab:gray", label="random priors")
    axes.plot(grid, bounds, color="tab:blue", label="bound (Theorem 4)")
    axes.plot(grid, exact, "--", color="tab:orange", label="exact sensitivity")
    axes.set(xlabel="l1 distance", ylabel="leakage increase [nats]")
    axes.set_title(title, fontsize="medium")
    axes.legend(frameon=False)


def draw_promises(
    panels: Sequence[Axes],
    increase: FloatArray,
    failures: FloatArray,
    sizes: FloatArray,
    levels: FloatArray,
) -> None:
    """Both panels of Figure 3."""
    first, second = panels
    for samples, curve in zip(SAMPLES, failures.T, strict=True):
        first.semilogy(increase, np.maximum(curve, 1e-30), label=f"m = {samples:,}")
    first.set(xlabel="leakage increase [nats]", ylabel="failure probability", ylim=(1e-12, 2))
    first.set_title(f"Corollary 3, N = {LETTERS}, epsilon = log 5", fontsize="medium")
    for ratio, curve in zip(LEVELS, levels.T, strict=True):
        [line] = second.semilogx(sizes, curve, label=f"epsilon = log {ratio}")
        second.axhline(math.log(ratio), linestyle="--", color=line.get_color(), linewidth=0.8)
    second.set(xlabel="samples", ylabel="level in truth [nats]", ylim=(0, 4))
    second.set_title(f"eq. (8), N = {LETTERS}, delta = {DELTA:g}", fontsize="medium")
    first.legend(frameon=False)
    second.legend(frameon=False)


if __name__ == "__main__":
    main()
