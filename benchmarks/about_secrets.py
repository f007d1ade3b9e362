"""The privacy funnel for several secrets, and metric privacy by neighbours beside all pairs.

    python benchmarks/about_secrets.py [--output FILE.png] [--points 25] [--sizes 10 20 30 60]
        [--repeats 3] [--large 200] [--grid 15] [--letters 60] [--plane 20 60 120] [--limit 200]

The picture: the largest mutual information of six levels of education (counts of the Adult data) and what is
released, over the PML level about a secret, for secrets that are functions of the level, for an income that
depends on it by chance, and for the level itself. The law of the income given the level is made up: `INCOME`.
Tables: metric privacy on a line with |i - j| as distance and as loss, from the numbers to the certificate,
beside all pairs in plain cvxpy by HiGHS, as one sparse matrix and pair by pair; a long line and a grid; the
funnel for a secret of two values and many letters; and random points of the plane beside all pairs in plain
cvxpy by Clarabel, which is stopped after `--limit` seconds. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from common import FloatArray, drawing, interleaved, machine, table
from information import merged
from scipy import sparse

from pmlopt import (
    PML,
    ExpectedLoss,
    MetricPrivacy,
    MutualInformation,
    Prior,
    Result,
    Secret,
    design,
    solve,
)
from pmlopt.model.utility import absolute
from pmlopt.programs.plots import draw_curves, save_figure

INCOME = (0.05, 0.15, 0.2, 0.25, 0.4, 0.6)
"""The probability of a high income for each level of education, made up to rise with it."""

EPSILON = 0.5
"""Of metric privacy, for a distance of one."""

STEEP = 5.0
"""The same of points of the unit square."""


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the funnel, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("secrets"))
    parser.add_argument("--points", type=int, default=25)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 30, 60])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=200, help="Letters of the long line.")
    parser.add_argument("--grid", type=int, default=15, help="Letters on each side of the grid.")
    parser.add_argument(
        "--letters", type=int, default=60, help="Of the funnel with a binary secret."
    )
    parser.add_argument(
        "--plane", type=int, nargs="*", default=[20, 60, 120], help="Points of the plane."
    )
    parser.add_argument("--limit", type=float, default=200.0, help="Seconds for Clarabel on these.")
    arguments = parser.parse_args(argv)
    print(machine())
    draw(arguments.output, arguments.points)
    lines = [line(size, arguments.repeats) for size in arguments.sizes]
    head = (
        "N", "pmlopt [s]", "all pairs, one sparse matrix [s]", "pair by pair [s]", "its loss less ours",
        "the same of pair by pair",
    )  # fmt: skip
    table(head, lines)
    print()
    large = [
        long_line(arguments.large),
        on_a_grid(arguments.grid),
        binary_secret(arguments.letters),
    ]
    table(("problem", "seconds", "status", "gap", "method"), large)
    print()
    planes = [plane(size, arguments.limit) for size in arguments.plane]
    table(
        ("points", "pmlopt [s]", "gap", "method", "all pairs, Clarabel [s]", "its loss less ours"),
        planes,
    )


def secrets() -> dict[str, Secret]:
    """The secrets of the picture, each with its joint law with the six levels of education."""
    prior = merged()
    p, levels = prior.pmf, list(prior.labels)
    high = np.array(INCOME)
    degree = np.array([level in ("bachelor", "graduate") for level in levels], dtype=float)
    bands = np.repeat(np.eye(3), 2, axis=1)
    laws = {
        "the level itself": np.diag(p),
        "three bands of levels": bands * p,
        "whether there is a degree": np.array([p * (1 - degree), p * degree]),
        "an income that depends on it": np.array([p * (1 - high), p * high]),
    }
    return {name: Secret(law / law.sum(), levels) for name, law in laws.items()}


def draw(output: Path, points: int) -> None:
    """Mutual information over the level about each secret; all points are certified."""
    grid = np.linspace(0.0, 1.5, points)
    grid[0] = 1e-6  # at 0 itself floats are seldom perfectly private
    curves, largest = {}, 0.0
    for name, secret in secrets().items():
        results = [
            solve(design(secret.prior, PML(float(e), about=secret), MutualInformation()))
            for e in grid
        ]
        assert all(result.certificate.verify() for result in results)
        largest = max(largest, *(result.gap for result in results))
        curves[name] = [result.value for result in results]
    title = "Adult data, 6 levels of education: what can be told where a secret is protected"
    save_figure(draw_curves(grid.tolist(), curves, "mutual information [nats]", title), output)
    table(("epsilon", *curves), [
        (f"{grid[k]:.3g}", *(f"{values[k]:.4f}" for values in curves.values()))
        for k in sorted({0, points // 6, points // 3, points - 1})
    ])  # fmt: skip
    print(f"\nThe largest gap is {largest:.1e}.\n")


def on_a_line(size: int) -> Result[Any]:
    """The optimal mechanism on a line by its neighbours."""
    prior = Prior.uniform(size)
    return solve(design(prior, MetricPrivacy(EPSILON, absolute), ExpectedLoss(absolute)))


def distances(size: int) -> FloatArray:
    """(N, N) |i - j|."""
    places = np.arange(size)
    return np.abs(np.subtract.outer(places, places)).astype(float)


def all_pairs(losses: FloatArray, epsilon: float, solver: str, **options: Any) -> float:
    """The least loss with a constraint for each pair of letters and each output; the loss is the distance."""
    size = len(losses)
    pairs = np.array(list(permutations(range(size), 2)))
    rows, ones = np.arange(len(pairs)), np.ones(len(pairs))
    shrink = np.exp(-epsilon * losses[pairs[:, 0], pairs[:, 1]])
    shape = (len(pairs), size)
    system = sparse.csr_array((shrink, (rows, pairs[:, 0])), shape)
    system = system - sparse.csr_array((ones, (rows, pairs[:, 1])), shape)
    matrix = cp.Variable((size, size), nonneg=True)
    constraints = [system @ matrix <= 0, cp.sum(matrix, axis=1) == 1]
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(losses / size, matrix))), constraints)
    return float(problem.solve(solver=solver, **options))


def pair_by_pair(size: int) -> float:
    """The same as one writes it down: a constraint for each pair of letters."""
    losses = distances(size)
    matrix = cp.Variable((size, size), nonneg=True)
    within = [
        matrix[x] <= np.exp(EPSILON * losses[x, other]) * matrix[other]
        for x, other in permutations(range(size), 2)
    ]
    problem = cp.Problem(
        cp.Minimize(cp.sum(cp.multiply(losses / size, matrix))),
        [*within, cp.sum(matrix, axis=1) == 1],
    )
    return float(problem.solve(solver=cp.HIGHS))


def line(size: int, repeats: int) -> tuple[Any, ...]:
    """Both for one size, timed in turn."""
    contestants: dict[str, Callable[[], Any]] = {
        "ours": lambda: on_a_line(size),
        "all pairs": lambda: all_pairs(distances(size), EPSILON, cp.HIGHS),
        "pair by pair": lambda: pair_by_pair(size),
    }
    found = interleaved(contestants, repeats)
    ours, result = found["ours"]
    assert result.certificate.verify()
    others = [found["all pairs"], found["pair by pair"]]
    return (
        size,
        f"{ours:.3f}",
        *(f"{seconds:.3f} ({seconds / ours:.1f} times)" for seconds, _ in others),
        *(f"{value - result.value:.1e}" for _, value in others),
    )


def timed(name: str, work: Callable[[], Result[Any]]) -> tuple[Any, ...]:
    """One run, from the numbers to the certificate."""
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    assert result.certificate.verify()
    return name, f"{seconds:.1f}", result.status.value, f"{result.gap:.1e}", result.solver


def long_line(size: int) -> tuple[Any, ...]:
    """A line of many letters."""
    return timed(f"a line of {size} letters", lambda: on_a_line(size))


def on_a_grid(side: int) -> tuple[Any, ...]:
    """The l1 distance on a grid, as distance and as loss."""
    places = np.array(list(np.ndindex(side, side)))
    distance: FloatArray = np.abs(places[:, None] - places).sum(axis=2).astype(float)
    prior = Prior.uniform(side * side)
    return timed(
        f"a grid of {side} by {side} letters",
        lambda: solve(design(prior, MetricPrivacy(EPSILON, distance), ExpectedLoss(distance))),
    )


def plane(size: int, limit: float) -> tuple[Any, ...]:
    """Random points of the unit square, with their distance as the loss, beside all pairs by Clarabel."""
    points = np.random.default_rng(9).random((size, 2))
    apart: FloatArray = np.linalg.norm(points[:, None] - points, axis=2)
    start = time.perf_counter()
    result = solve(design(Prior.uniform(size), MetricPrivacy(STEEP, apart), ExpectedLoss(apart)))
    ours = time.perf_counter() - start
    assert result.certificate.verify()
    middle = time.perf_counter()
    row = (size, f"{ours:.2f}", f"{result.gap:.1e}", result.solver)
    try:
        value = all_pairs(apart, STEEP, cp.CLARABEL, time_limit=limit)
    except cp.error.SolverError:
        return (*row, f"> {limit:.0f}", "")
    return (*row, f"{time.perf_counter() - middle:.2f}", f"{value - result.value:.1e}")


def binary_secret(letters: int) -> tuple[Any, ...]:
    """The funnel for a random joint law of a secret of two values, to a gap of 1e-8."""
    secret = Secret(np.random.default_rng(6).dirichlet(np.ones(2 * letters)).reshape(2, letters))
    return timed(
        f"the funnel for {letters} letters and 2 values",
        lambda: solve(design(secret.prior, PML(0.1, about=secret), MutualInformation()), gap=1e-8),
    )


if __name__ == "__main__":
    main()
