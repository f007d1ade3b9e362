"""Robust PML: Proposition 2 as printed beside the sparse form, and what robust designs cost as N grows.

    python benchmarks/robust.py [--sizes 10 20 30] [--large 50 100] [--repeats 3] [--output FILE.png]

The first table solves the same robust design (l1 ball, half of 2 min p, epsilon = 1, random gains) in one run
as [grosse2025empirical] prints it, with `P[i,j] <= e^eps' (p P[:,j] + beta/2 P[k,j])` for all i, k, j, and in
the sparse form that `design` declares; times are cvxpy's compile plus HiGHS. The printed rows are written in
two ways: one by one (timed once), and as one block of N M rows for each k. The second table compiles and
solves a design with N letters and N outputs for each set of priors.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np
from common import FloatArray, growth_figure, instance, interleaved, machine, table

from pmlopt import (
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    L1Ball,
    MinimumMass,
    Prior,
    design,
    solve,
)
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs.plots import save_figure

EPSILON = 1.0


def main(argv: Sequence[str] | None = None) -> None:
    """Run both comparisons and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 30])
    parser.add_argument("--large", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, help="A plot of what the sets cost.")
    arguments = parser.parse_args(argv)
    print(machine())
    head = (
        "N", "rows printed", "rows sparse", "one by one [s]", "in blocks [s]", "sparse [s]",
        "one by one / sparse", "in blocks / sparse", "difference",
    )  # fmt: skip
    table(head, [compare(size, arguments.repeats) for size in arguments.sizes])
    print()
    costs = ("N", "set", "compile [s]", "solve [s]", "certify [s]", "value", "gap")
    rows = [grow(size, name) for size in arguments.large for name in SETS]
    table(costs, rows)
    if arguments.output is not None:
        save_figure(growth_figure(curves(rows), "compile, solve and certify [s]"), arguments.output)


def curves(rows: Sequence[Sequence[Any]]) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds over N for each set."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for size, name, *parts in rows:
        sizes, seconds = lines.setdefault(name, ([], []))
        sizes.append(float(size))
        seconds.append(sum(float(part) for part in parts[:3]))
    return lines


Rows: TypeAlias = Callable[[cp.Variable, FloatArray, float, float], list[cp.Constraint]]


def one_by_one(
    mechanism: cp.Variable, p: FloatArray, factor: float, half: float
) -> list[cp.Constraint]:
    """[grosse2025empirical, (10)]: a row for each i, k and j."""
    n, m = mechanism.shape
    return [
        mechanism[i, j] <= factor * (p @ mechanism[:, j] + half * mechanism[k, j])
        for j in range(m)
        for k in range(n)
        for i in range(n)
    ]


def in_blocks(
    mechanism: cp.Variable, p: FloatArray, factor: float, half: float
) -> list[cp.Constraint]:
    """[grosse2025empirical, (10)]: a block of rows for each k."""
    ones, law = np.ones((len(p), 1)), p[None, :] @ mechanism
    return [
        mechanism <= factor * (ones @ law + half * (ones @ mechanism[k : k + 1, :]))
        for k in range(len(p))
    ]


def printed(p: FloatArray, gains: FloatArray, radius: float, rows: Rows) -> cp.Problem:
    """The program of [grosse2025empirical, (10) to (12)]."""
    mechanism = cp.Variable(gains.shape, nonneg=True)
    factor = math.exp(EPSILON) / (1 + radius / 2 * math.exp(EPSILON))
    expected = cp.sum(cp.multiply(p[:, None] * gains, mechanism))
    constraints = [*rows(mechanism, p, factor, radius / 2), cp.sum(mechanism, axis=1) == 1]
    return cp.Problem(cp.Maximize(expected), constraints)


def compare(size: int, repeats: int) -> list[Any]:
    """One row: the same design in all forms."""
    p, gains = instance("random", size, 0)
    radius = float(Prior(p).pmf.min())

    def solved(declare: Callable[[], cp.Problem]) -> Callable[[], tuple[float, int]]:
        def run() -> tuple[float, int]:
            problem = declare()
            problem.solve(solver=cp.HIGHS)
            return float(problem.value), sum(constraint.size for constraint in problem.constraints)

        return run

    privacy = PML(EPSILON, over=L1Ball(p, radius))
    blocks = solved(lambda: printed(p, gains, radius, in_blocks))
    sparse = solved(lambda: design(p, privacy, ExpectedGain(gains)).problem)
    measured = interleaved({"blocks": blocks, "sparse": sparse}, repeats)
    (slow, (there, many)), (fast, (here, few)) = measured["blocks"], measured["sparse"]
    start = time.perf_counter()
    solved(lambda: printed(p, gains, radius, one_by_one))()
    slowest = time.perf_counter() - start
    return [
        size, f"{many:,}", f"{few:,}", f"{slowest:.2f}", f"{slow:.3f}", f"{fast:.3f}",
        f"{slowest / fast:.0f}", f"{slow / fast:.0f}", f"{here - there:.1e}",
    ]  # fmt: skip


def grow(size: int, name: str) -> list[Any]:
    """One row: a design over one of the sets, from the prior to the certificate."""
    p, gains = instance("random", size, 0)
    prior = Prior(p)
    privacy = PML(EPSILON, over=SETS[name](prior))
    start = time.perf_counter()
    program = design(prior, privacy, ExpectedGain(gains))
    declared = time.perf_counter() - start
    result = solve(program)
    timings = result.timings
    return [
        size, name, f"{declared + timings.compile:.3f}", f"{timings.solve:.2f}", f"{timings.certify:.2f}",
        f"{result.value:.6f}", f"{result.gap:.1e}",
    ]  # fmt: skip


def _vertices(prior: Prior) -> PriorSet:
    return ConvexHull(np.random.default_rng(1).dirichlet(np.full(prior.size, 2.0), size=5))


SETS: Mapping[str, Callable[[Prior], PriorSet]] = {
    "l1 ball, half of 2 min p": lambda prior: L1Ball(prior, float(prior.pmf.min())),
    "l1 ball, 0.3": lambda prior: L1Ball(prior, 0.3),
    "minimum mass, 0.2 / N": lambda prior: MinimumMass(prior.size, 0.2 / prior.size),
    "box, within a factor of 2": lambda prior: Box(prior.pmf / 2, np.minimum(1.0, 2 * prior.pmf)),
    "5 vertices": _vertices,
    "all priors (LDP)": lambda prior: AllPriors(prior.size),
}


if __name__ == "__main__":
    main()
