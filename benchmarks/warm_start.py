"""HiGHS simplex iterations with and without the closed form as a warm start, where it is optimal.

python benchmarks/warm_start.py [--sizes 10 20 50 100] [--repeats 3] [--output FILE.png]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from common import growth_figure, interleaved, machine, table

from pmlopt import LDP, PML, ExpectedGain, ExpectedLoss, Prior, closed_forms, design, solve
from pmlopt.measures import information_density
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility import LinearUtility, hamming
from pmlopt.programs.linear.program import LinearDesign
from pmlopt.programs.plots import save_figure

LARGEST = 50
"""Letters up to which the instances with Zipf counts are solved: beyond, their gains are all rounding."""


def programs(sizes: Sequence[int]) -> Iterator[tuple[str, LinearDesign]]:
    """LPs whose optimum is known by formula, with the family that they belong to."""
    for size in sizes:
        prior = Prior.uniform(size)
        yield "uniform, PML 0.7", linear(prior, PML(0.7), ExpectedLoss(hamming))
        yield "uniform, LDP 1", linear(prior, LDP(1.0), ExpectedLoss(hamming))
    for size in (size for size in sizes if size <= LARGEST):
        prior = Prior.from_counts([int(c) for c in 1000 / np.arange(1, size + 1)])
        epsilon = -0.9 * math.log1p(-float(prior.pmf.min()))
        form = closed_forms.high_privacy(prior, epsilon)
        gain = ExpectedGain(information_density(prior, form))
        yield "Zipf counts, first region", linear(prior, PML(epsilon), gain)


def linear(prior: Prior, privacy: Requirement, utility: LinearUtility) -> LinearDesign:
    """The design, known to be linear."""
    program = design(prior, privacy, utility)
    assert isinstance(program, LinearDesign)
    return program


def main(argv: Sequence[str] | None = None) -> None:
    """Run the comparison and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="A plot of the ratios.")
    arguments = parser.parse_args(argv)
    print(machine())
    rows = []
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for name, program in programs(arguments.sizes):
        measured = interleaved(
            {
                "cold": partial(solve, program, "highs", warm_start=False),
                "warm": partial(solve, program, "highs"),
            },
            arguments.repeats,
        )
        cold, warm = measured["cold"], measured["warm"]
        assert warm[1].warm_started
        assert abs(cold[1].value - warm[1].value) < 1e-9
        rows.append(
            [
                f"{name}, N = {program.prior.size}",
                warm[1].closed_form.name,
                cold[1].iterations,
                warm[1].iterations,
                f"{cold[1].timings.solve / warm[1].timings.solve:.1f}",
                f"{cold[0] / warm[0]:.1f}",
            ]
        )
        sizes, ratios = lines.setdefault(name, ([], []))
        sizes.append(program.prior.size)
        ratios.append(cold[0] / warm[0])
    table(
        ["LP", "closed form", "iterations cold", "iterations warm", "solver time ratio", "whole time ratio"],
        rows,
    )
    if arguments.output is not None:
        save_figure(growth_figure(lines, "time cold / warm"), arguments.output)


if __name__ == "__main__":
    main()
