"""The rarest outputs of designs that an interior point solves, under curved requirements and sets of priors.

An interior point leaves a little probability on outputs that an optimum does not need. Each drawn design is
solved, its certificate is checked again, and its rarest output and its tiny entries are counted.

    python benchmarks/dust.py --count 200 --seed 0
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import drawing, table

import pmlopt as pm
from pmlopt.model.privacy import Requirement
from pmlopt.programs.plots import save_figure
from pmlopt.programs.program import Program

HEAD = ("requirement", "designs", "rarest output", "entries below 1e-6", "median seconds")

RARE = 1e-7
"""The probability below which an output counts as dust."""

KINDS: Mapping[str, Callable[[pm.Prior, float, float, float], Requirement]] = {
    "PML of finite order": lambda _, epsilon, order, __: pm.RenyiPML(order, epsilon),
    "Sibson": lambda _, epsilon, order, __: pm.SibsonLeakage(order, epsilon),
    "maximal alpha": lambda _, epsilon, order, __: pm.MaximalAlphaLeakage(order, epsilon),
    "chi-square ball": lambda p, epsilon, _, radius: pm.PML(
        epsilon, over=pm.ChiSquareBall(p, radius)
    ),
    "KL ball": lambda p, epsilon, _, radius: pm.PML(epsilon, over=pm.KLBall(p, radius)),
    "two requirements": lambda _, epsilon, order, __: (
        pm.RenyiPML(order, epsilon) & pm.PML(2 * epsilon)
    ),
}


@dataclass(frozen=True)
class Solved:
    """A solved design: its kind, its rarest output, its tiny entries, and whether its claims hold."""

    kind: str
    rarest: float
    tiny_entries: int
    holds: bool
    seconds: float


def draw_design(rng: np.random.Generator, kind: str) -> Program[Any]:
    """Return a design for three to seven letters, with one of four utilities."""
    n = int(rng.integers(3, 8))
    law = np.maximum(rng.dirichlet(np.full(n, 2.0)), 0.02)
    prior = pm.Prior(law / law.sum())
    epsilon = float(rng.choice([0.1, 0.3, 0.5, 1.0, 2.0]))
    order = float(rng.choice([1.5, 2.0, 3.0, 5.0]))
    privacy = KINDS[kind](prior, epsilon, order, float(rng.choice([0.005, 0.02, 0.1])))
    places = np.arange(n, dtype=float)
    utilities: tuple[Any, ...] = (
        "hamming",
        pm.ExpectedLoss(rng.random((n, n))),
        pm.ExpectedGain(rng.normal(size=(n, n + int(rng.integers(0, 3))))),
        pm.ExpectedLoss(np.abs(places[:, None] - places)),
    )
    program: Program[Any] = pm.design(prior, privacy, utilities[int(rng.integers(0, 4))])
    return program


def solve_drawn(rng: np.random.Generator, kind: str) -> Solved:
    """Solve a drawn design, and measure what is rare in it."""
    program = draw_design(rng, kind)
    begin = time.perf_counter()
    result = pm.solve(program)
    seconds = time.perf_counter() - begin
    matrix = result.mechanism.matrix
    probabilities = result.certificate.prior.pmf @ matrix
    tiny = int(np.count_nonzero((matrix > 0) & (matrix < 1e-6)))
    rarest = float(probabilities[probabilities > 0].min())
    return Solved(kind, rarest, tiny, result.certificate.verify(), seconds)


def draw_rarest(found: Sequence[Solved], output: Path) -> None:
    """Draw the rarest output of each design, the designs of a kind in order."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for kind in KINDS:
        axes.semilogy(sorted(one.rarest for one in found if one.kind == kind), ".-", label=kind)
    axes.axhline(RARE, color="black", linewidth=0.5)
    axes.set(xlabel="design", ylabel="probability of the rarest output")
    axes.legend()
    save_figure(figure, output)


def main(argv: Sequence[str] | None = None) -> None:
    """Solve the designs, and print for each kind how rare an output is, and how many entries are tiny."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=drawing("dust"))
    given = parser.parse_args(argv)
    rng, kinds = np.random.default_rng(given.seed), list(KINDS)
    found = [solve_drawn(rng, kinds[place % len(kinds)]) for place in range(given.count)]
    rows = []
    for kind in kinds:
        own = [one for one in found if one.kind == kind]
        if own:
            rarest, tiny = min(one.rarest for one in own), sum(one.tiny_entries for one in own)
            seconds = float(np.median([one.seconds for one in own]))
            rows.append((kind, len(own), f"{rarest:.1e}", tiny, f"{seconds:.3f}"))
    table(HEAD, rows)
    draw_rarest(found, given.output)
    rare = sum(one.rarest < RARE for one in found)
    false = sum(not one.holds for one in found)
    print(
        f"{rare} of {len(found)} designs with an output below {RARE:g}, {false} false certificates"
    )


if __name__ == "__main__":
    main()
