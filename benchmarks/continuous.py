"""Secrets that are numbers: the loss of mechanisms on bins and the bound on all mechanisms, over the bins.

Both ends for a uniform law on a circle, where the least mean distance is (circumference) e^-eps / 4, for a
normal law on an interval and for two independent numbers, drawn side by side.

    python benchmarks/continuous.py [--out FOLDER] [--quick]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from common import report

from pmlopt import PML, Continuous, DistanceLoss, design
from pmlopt.programs.continuous.certificate import ContinuousCertificate
from pmlopt.programs.continuous.methods import certified_on

EPSILON = 1.0
CASES = {
    "circle of length 1, uniform": (
        Continuous(scipy.stats.uniform(), period=True),
        DistanceLoss(),
        (8, 16, 32, 64, 128, 256),
    ),
    "age, normal(40, 15) on [0, 100]": (
        Continuous(scipy.stats.norm(40, 15), support=(0, 100)),
        DistanceLoss(),
        (8, 16, 32, 64, 128, 256),
    ),
    "the same, squared": (
        Continuous(scipy.stats.norm(40, 15), support=(0, 100)),
        DistanceLoss(np.square),
        (8, 16, 32, 64, 128, 256),
    ),
    "unit square, uniform": (
        Continuous([scipy.stats.uniform(), scipy.stats.uniform()]),
        DistanceLoss(),
        (4, 6, 8, 12, 16, 20),
    ),
}


def ends(name: str, quick: bool) -> list[ContinuousCertificate]:
    """Both ends for each number of bins along an axis, on eight to 32 times as many boxes."""
    secret, loss, bins = CASES[name]
    program = design(secret, PML(EPSILON), loss)
    found = []
    for count in bins[:3] if quick else bins:
        boxes = min(32 * count, 8192) if secret.axes == 1 else 2048
        found.append(certified_on(program, secret.even(count), boxes))
    return found


def rows(name: str, found: Sequence[ContinuousCertificate]) -> list[tuple[Any, ...]]:
    """A line of the table for each number of bins."""
    return [(name, c.grid.size, c.bound, c.value, c.gap / c.value) for c in found]


def draw(found: dict[str, list[ContinuousCertificate]], path: Path) -> None:
    """Both ends over the number of bins, each case beside its best bound."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(11, 2.8), constrained_layout=True)
    for axis, (name, certificates) in zip(axes, found.items(), strict=True):
        bins = [certificate.grid.size for certificate in certificates]
        axis.plot(bins, [c.value for c in certificates], "o-", color="#0072B2")
        axis.plot(bins, [c.bound for c in certificates], "s-", color="#D55E00")
        axis.set_xscale("log", base=2)
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("bins")
        for text, at, above, color in (
            ("mechanism on bins", certificates[2].value, 12, "#0072B2"),
            ("no mechanism betters", certificates[2].bound, -16, "#D55E00"),
        ):
            axis.annotate(
                text, (bins[2], at), (2, above), textcoords="offset points", color=color, fontsize=8
            )
    axes[0].axhline(math.exp(-EPSILON) / 4, color="black", linewidth=0.8)
    axes[0].set_ylabel("mean distance")
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> None:
    """All cases, the closed form of the circle among them, and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(argv)
    found = {name: ends(name, arguments.quick) for name in CASES}
    head = ("secret", "bins", "no mechanism betters", "mechanism on bins", "gap / value")
    table = [row for name, certificates in found.items() for row in rows(name, certificates)]
    closed = math.exp(-EPSILON) / 4
    report(arguments.out, "continuous", head, [*table, ("circle, closed form", "", closed, closed, 0.0)])
    if arguments.out is not None:
        for ending in ("png", "svg"):
            draw(found, arguments.out / f"continuous.{ending}")


if __name__ == "__main__":
    main()
