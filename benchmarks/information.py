"""Mutual information against epsilon on six levels of education (Adult data), under four kinds of privacy.

    python benchmarks/information.py [--output FILE.png] [--csv FILE]

For each epsilon: the largest I(X; Y) under PML, under PML for every prior within an l1 radius of 0.1 of the
counts, under LDP, and of randomized response at that LDP level; every point is certified. Needs the extra
`plots`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from common import drawing, table, write_csv

from pmlopt import (
    LDP,
    PML,
    L1Ball,
    MutualInformation,
    Prior,
    closed_forms,
    design,
    mutual_information,
    solve,
)
from pmlopt.library import find
from pmlopt.model.privacy import Requirement
from pmlopt.programs.plots import draw_curves, save_figure

RADIUS = 0.1
GROUPS = {
    "no diploma": ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
    "high school": ("HS-grad",),
    "some college": ("Some-college",),
    "associate": ("Assoc-voc", "Assoc-acdm"),
    "bachelor": ("Bachelors",),
    "graduate": ("Masters", "Prof-school", "Doctorate"),
}
NAMES = (
    "optimal under PML",
    "optimal under robust PML",
    "optimal under LDP",
    "randomized response",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Solve the grid, draw it, and print a few points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("information"))
    parser.add_argument("--csv", type=Path, help="Write the points, too.")
    parser.add_argument("--points", type=int, default=61)
    parser.add_argument("--epsilon", type=float, default=3.0, help="The largest one, in nats.")
    arguments = parser.parse_args(argv)
    prior = merged()
    grid = np.linspace(0.0, arguments.epsilon, arguments.points)
    rows = [point(prior, float(epsilon)) for epsilon in grid]
    curves = dict(zip(NAMES, np.array(rows).T.tolist(), strict=True))
    title = f"Adult data, 6 levels of education, 32,561 people; l1 radius {RADIUS}"
    save_figure(
        draw_curves(grid.tolist(), curves, "mutual information [nats]", title), arguments.output
    )
    if arguments.csv is not None:
        points = ((e, *row) for e, row in zip(grid.tolist(), rows, strict=True))
        write_csv(arguments.csv, ("epsilon", *NAMES), points)
    shown = [[f"{e:g}", *(f"{value:.4f}" for value in point(prior, e))] for e in (0.5, 1.0, 2.0)]
    table(("epsilon", *NAMES), shown)


def merged() -> Prior:
    """The counts of the library, sixteen levels in six groups."""
    counts = find("adult-education-hamming").prior
    known = dict(zip(counts.labels, counts.counts or (), strict=True))
    return Prior.from_counts(
        {name: sum(known[level] for level in levels) for name, levels in GROUPS.items()}
    )


def point(prior: Prior, epsilon: float) -> list[float]:
    """The four values at one epsilon."""
    requirements: list[Requirement] = [
        PML(epsilon),
        PML(epsilon, over=L1Ball(prior, RADIUS)),
        LDP(epsilon),
    ]
    best = [
        solve(design(prior, one, MutualInformation()), tolerance=1e-5).value for one in requirements
    ]
    response = closed_forms.randomized_response(prior.size, epsilon)
    return [*best, mutual_information(prior, response.matrix)]


if __name__ == "__main__":
    main()
