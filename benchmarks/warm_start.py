"""HiGHS simplex iterations with and without the closed form as a warm start, where it is optimal.

python benchmarks/warm_start.py [--repeats 3]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from functools import partial

import numpy as np
from common import interleaved, machine, table

from pmlopt import LDP, PML, ExpectedGain, ExpectedLoss, Prior, Program, closed_forms, design, solve
from pmlopt.measures import information_density
from pmlopt.utility import hamming


def programs() -> Iterator[tuple[str, Program]]:
    """LPs whose optimum is known by formula."""
    for size in (10, 20, 50, 100):
        prior = Prior.uniform(size)
        yield f"uniform, PML 0.7, N = {size}", design(prior, PML(0.7), ExpectedLoss(hamming))
        yield f"uniform, LDP 1, N = {size}", design(prior, LDP(1.0), ExpectedLoss(hamming))
    for size in (10, 20, 50):
        prior = Prior.from_counts([int(c) for c in 1000 / np.arange(1, size + 1)])
        epsilon = -0.9 * math.log1p(-float(prior.pmf.min()))
        form = closed_forms.high_privacy(prior, epsilon)
        gain = ExpectedGain(information_density(prior, form))
        yield f"Zipf counts, first region, N = {size}", design(prior, PML(epsilon), gain)


def main() -> None:
    """Run the comparison and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    print(machine())
    rows = []
    for name, program in programs():
        measured = interleaved(
            {
                "cold": partial(solve, program, "highs", warm_start=False),
                "warm": partial(solve, program, "highs"),
            },
            repeats,
        )
        cold, warm = measured["cold"], measured["warm"]
        assert warm[1].warm_started
        assert abs(cold[1].value - warm[1].value) < 1e-9
        rows.append(
            [
                name,
                warm[1].closed_form.name,
                cold[1].iterations,
                warm[1].iterations,
                f"{cold[1].timings.solve / warm[1].timings.solve:.1f}",
                f"{cold[0] / warm[0]:.1f}",
            ]
        )
    table(
        ["LP", "closed form", "iterations cold", "iterations warm", "solver time ratio", "whole time ratio"],
        rows,
    )


if __name__ == "__main__":
    main()
