"""Sets of priors: confidence sets of one sample compared, and each set against convex programs in a prior.

    python benchmarks/prior_sets.py [--samples 1000 10000 100000] [--columns 300] [--designs 200]
        [--kinds chi-square kl ...] [--seed 0]

The first table is the least expected distance |i - j| for the highest education in the Adult data (16
letters), for the true distribution except with probability 1e-6 over samples of m people with its shares.
Then random columns and designs over sets of each kind are compared with the definitions of the sets: means
and optima within 1e-6, levels below epsilon, exact proofs.
"""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import table

from pmlopt import (
    LDP,
    PML,
    ExpectedLoss,
    Prior,
    confidence_ball,
    confidence_box,
    confidence_region,
    design,
    solve,
)
from pmlopt.model.uncertainty import PriorSet

PROBLEM = Path(__file__).parents[1] / "problems" / "robust" / "adult-education-ball.toml"
SETS: Mapping[str, Callable[[Prior, float], PriorSet]] = {
    "region": confidence_region,
    "ball": confidence_ball,
    "box": confidence_box,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the confidence sets' table, then compare as many columns and designs as requested."""
    from oracles.divergence_balls import KINDS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--designs", type=int, default=200)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    head = ("level", "m", "known prior", *SETS, "LDP")
    levels = [(epsilon, m) for epsilon in (2.0, 1.0) for m in arguments.samples]
    if levels:
        table(head, [measure_sets(epsilon, m) for epsilon, m in levels])
    rows = [
        compare_kind(name, arguments.columns, arguments.designs, arguments.seed)
        for name in arguments.kinds
    ]
    differences = ("means differ by", "values differ by", "levels exceed by")
    table(("set", "columns", "designs", *differences, "CPU [s]"), rows)


def draw_shares(samples: int) -> Prior:
    """A sample of so many people whose counts are nearest to the shares in the Adult data."""
    counts = tomllib.loads(PROBLEM.read_text())["params"]["prior"]["counts"]
    seen = np.array([*counts.values()])
    exact = seen / seen.sum() * samples
    whole = np.floor(exact).astype(int)
    # the largest remainders are rounded up
    whole[np.argsort(whole - exact, kind="stable")[: samples - whole.sum()]] += 1
    return Prior.from_counts(dict(zip(counts, whole.tolist(), strict=True)))


def measure_sets(epsilon: float, samples: int) -> list[Any]:
    """One row: the least expected distance at a level, for each set of one sample."""
    prior = draw_shares(samples)
    requirements = [
        PML(epsilon),
        *(PML(epsilon, over=make(prior, 1e-6)) for make in SETS.values()),
        LDP(epsilon),
    ]
    places = {letter: place for place, letter in enumerate(prior.labels)}
    loss = ExpectedLoss(lambda x, y: abs(places[x] - places[y]))
    values = [solve(design(prior, privacy, loss)).value for privacy in requirements]
    return [epsilon, f"{samples:,}", *(f"{value:.3f}" for value in values)]


def compare_kind(name: str, columns: int, designs: int, seed: int) -> list[Any]:
    """One row: so many random columns and designs over one kind of set, each compared or an error raised."""
    from oracles.divergence_balls import KINDS
    from oracles.set_comparisons import compare_columns, compare_designs

    begin = time.process_time()
    means = compare_columns(KINDS[name], seed, columns)
    values, levels = compare_designs(KINDS[name], seed + 1, designs)
    largest = (f"{number:.1e}" for number in (means, values, levels))
    return [name, columns, designs, *largest, f"{time.process_time() - begin:.0f}"]


if __name__ == "__main__":
    main()
