"""Secrets that are numbers: the loss of mechanisms on bins and the bound on all mechanisms, over the bins.

Both ends for a uniform law on a circle, where the least mean distance is (circumference) e^-eps / 4, for a
normal law on an interval and for two independent numbers. The figure of `benchmarks/figures.py` is drawn from
the table, kept in benchmarks/data.

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
from pmlopt.programs.continuous.methods import certify_on_grid

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
        found.append(certify_on_grid(program, secret.even(count), boxes))
    return found


def rows(name: str, found: Sequence[ContinuousCertificate]) -> list[tuple[Any, ...]]:
    """A line of the table for each number of bins."""
    return [(name, c.grid.size, c.bound, c.value, c.gap / c.value) for c in found]


def main(argv: Sequence[str] | None = None) -> None:
    """All cases, and the closed form of the circle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args(argv)
    found = {name: ends(name, arguments.quick) for name in CASES}
    head = ("secret", "bins", "no mechanism betters", "mechanism on bins", "gap / value")
    table = [row for name, certificates in found.items() for row in rows(name, certificates)]
    closed = math.exp(-EPSILON) / 4
    report(
        arguments.out,
        "continuous",
        head,
        [*table, ("circle, closed form", "", closed, closed, 0.0)],
    )


if __name__ == "__main__":
    main()
