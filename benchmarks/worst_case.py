"""[song2026worstcase, Figures 1 to 3], and what the optimal worst case costs beside M*(h) and beside DQCP.

    python benchmarks/worst_case.py [--output FILE.png] [--csv FOLDER] [--draws 1000] [--seed 0]
        [--sizes 20 50 100 150 200] [--large 500 1000 2000 5000] [--sets 20 40 60] [--time-limit 120]

Figure 1: the least utility among 1,000 draws of the counting query of Section IV-A, for the utility-safe,
exponential and randomized-response mechanisms at the same PML level, for the mechanism of the highest rank
that every output can be promised (rank-optimal), and for that of the highest utility (utility-optimal).
Figures 2 and 3: the least leakage of M*(h) and of the optimum, for both patterns of priors. Then tables:
random priors and orders with h = M/2 + 1 as N grows, M*(h) beyond that, the same over sets of priors, how
many linear programs random problems take, and cvxpy's own quasiconvex bisection on the same problem. Needs
the extra `plots`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cvxpy as cp
import cvxpy.reductions.solvers.bisection as cvxpy_bisection
import numpy as np
from common import FloatArray, drawing, interleaved, machine, table, write_csv
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pmlopt import (
    Box,
    ConvexHull,
    ExpectedGain,
    L1Ball,
    Mechanism,
    MinimumMass,
    Prior,
    Result,
    closed_forms,
    leakage_level,
    least_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.core.numbers.arrays import IntArray
from pmlopt.model.utility import highest_threshold, utility_order
from pmlopt.programs import best_guaranteed_utility
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.plots import save_figure

SQUARES = np.subtract.outer(np.arange(7), np.arange(7)) ** 2
QUERY = -(SQUARES + np.tril(np.ones((7, 7)), -1)).astype(float)
"""Utilities of the counting query on six records: the squared error, and one more where y < x."""

EXAMPLE = np.array([[4, 3, 2, 1], [1, 4, 3, 2], [2, 1, 4, 3], [3, 2, 1, 4]])
"""The utility order of [song2026worstcase, eq. (13)]."""

GRID = np.arange(50, 201, 5) / 100
LOWEST = np.arange(1, 11) / 50
PATTERNS = {
    "one low, three high": lambda p: np.array([p, *[(1 - p) / 3] * 3]),
    "three low, one high": lambda p: np.array([1 - 3 * p, p, p, p]),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Reproduce the figures, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("worst_case"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="*", default=[20, 50, 100, 150, 200])
    parser.add_argument("--large", type=int, nargs="*", default=[500, 1000, 2000, 5000])
    parser.add_argument("--sets", type=int, nargs="*", default=[20, 40, 60])
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--study", type=int, default=200, help="Random problems of each kind.")
    parser.add_argument(
        "--figures-only", action="store_true", help="Nothing but what the paper has."
    )
    arguments = parser.parse_args(argv)
    print(machine())
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    first, *others = figure.subplots(1, 3)
    names, worst = sampled_worst(arguments.draws, np.random.default_rng(arguments.seed))
    draw_worst(first, names, worst)
    if arguments.csv is not None:
        write_csv(
            arguments.csv / "figure-1.csv", ("epsilon", *names), np.column_stack([GRID, worst])
        )
    for axes, (title, pattern), number in zip(others, PATTERNS.items(), (2, 3), strict=True):
        levels = pattern_levels(pattern)
        draw_levels(axes, f"Figure {number}: {title}", levels)
        if arguments.csv is not None:
            columns = ("p_min", "h=3 safe", "h=3 optimal", "h=2 safe", "h=2 optimal")
            write_csv(
                arguments.csv / f"figure-{number}.csv", columns, np.column_stack([LOWEST, levels])
            )
    save_figure(figure, arguments.output)
    if arguments.figures_only:
        return
    head: tuple[str, ...] = (
        "N", "optimum [nats]", "M*(h) [nats]", "gap", "linear programs", "optimum [s]", "M*(h) [s]", "ratio",
    )  # fmt: skip
    table(head, [grow(size, arguments.time_limit) for size in arguments.sizes])
    print()
    table(
        ("N", "M*(h) [nats]", "least by support [nats]", "M*(h) [s]"),
        [large(n) for n in arguments.large],
    )
    print()
    head = ("N", "set", "level [nats]", "gap", "linear programs", "seconds", "certificate [s]")
    table(head, [row for size in arguments.sets for row in over_sets(size, arguments.time_limit)])
    print()
    head = ("demands", "problems", "programs, mean", "most", "gap to 1e-9", "largest gap")
    table(
        head, [study(kind, arguments.study) for kind in ("ranks", "expected gain", "both floors")]
    )
    print()
    head = ("N", "h", "DQCP [nats]", "pmlopt [nats]", "programs", "DQCP [s]", "pmlopt [s]", "ratio")
    table(head, [against_dqcp(20, threshold, arguments.repeats) for threshold in (6, 11, 16)])


# ---------------------------------------------------------------- the figures


def sampled_worst(draws: int, rng: np.random.Generator) -> tuple[list[str], FloatArray]:
    """The least utility among the draws, for each epsilon and mechanism."""
    prior = Prior.uniform(7)
    order = utility_order(QUERY)
    results = [
        solve(worst_case_utility(prior, order, h)) for h in range(1, highest_threshold(order) + 1)
    ]
    optimal = [(result.value, result.mechanism) for result in results]
    safe = [
        (
            closed_forms.utility_safe_level(prior, order, h),
            closed_forms.utility_safe_mechanism(order, h),
        )
        for h in range(1, 8)
    ]
    rows = []
    for epsilon in GRID:
        ldp = min(closed_forms.ldp_for_pml(prior, epsilon), 700.0)
        mechanisms = (
            last_within(safe, epsilon),
            last_within(optimal, epsilon),
            closed_forms.exponential(QUERY, ldp),
            closed_forms.randomized_response(7, ldp),
        )
        rows.append([least_drawn(mechanism, draws, rng) for mechanism in mechanisms])
    names = [
        "utility-safe",
        "rank-optimal",
        "exponential",
        "randomized response",
        "utility-optimal",
    ]
    own = np.random.default_rng(0)  # so that the draws of the others stay as they are
    best = [least_drawn(most_useful(prior, epsilon), draws, own) for epsilon in GRID.tolist()]
    return names, np.column_stack([np.array(rows), best])


def most_useful(prior: Prior, epsilon: float) -> Mechanism:
    """The mechanism within a level whose least utility is highest: ranks tie utilities that differ."""
    found = solve(best_guaranteed_utility(prior, ExpectedGain(QUERY), epsilon)).mechanism
    assert isinstance(found, Mechanism)
    return found


def last_within(ranked: Sequence[tuple[float, Mechanism]], epsilon: float) -> Mechanism:
    """The mechanism of the highest threshold whose level is within epsilon."""
    return [mechanism for level, mechanism in ranked if level <= epsilon + 1e-12][-1]


def least_drawn(mechanism: Mechanism, draws: int, rng: np.random.Generator) -> float:
    """The least utility among draws of X, uniform, and Y."""
    secrets = rng.integers(7, size=draws)
    sums = mechanism.matrix.cumsum(axis=1)[secrets]
    outputs = (rng.random(draws)[:, None] > sums).sum(axis=1)
    return float(QUERY[secrets, np.minimum(outputs, 6)].min())


def pattern_levels(pattern: Callable[[float], FloatArray]) -> FloatArray:
    """(10, 4) for each p_min: M*(3), the optimum for h = 3, M*(2), the optimum for h = 2."""
    rows = []
    for p in LOWEST:
        prior = pattern(float(p))
        row: list[float] = []
        for threshold in (3, 2):
            row.append(closed_forms.utility_safe_level(prior, EXAMPLE, threshold))
            row.append(solve(worst_case_utility(prior, EXAMPLE, threshold)).value)
        rows.append(row)
    return np.array(rows)


def draw_worst(axes: Axes, names: Sequence[str], worst: FloatArray) -> None:
    """Figure 1."""
    for name, curve, style in zip(names, worst.T, ("-", "--", ":", "-.", "-"), strict=True):
        axes.plot(GRID, curve, style, label=name)
    axes.set(xlabel="epsilon [nats]", ylabel="least utility drawn")
    axes.set_title("Figure 1: counting query", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


def draw_levels(axes: Axes, title: str, levels: FloatArray) -> None:
    """Figure 2 or 3."""
    for curve, name, style in zip(
        levels.T,
        ("h = 3, utility-safe", "h = 3, optimal", "h = 2, utility-safe", "h = 2, optimal"),
        ("r--o", "b--x", "r-o", "b-x"),
        strict=True,
    ):
        axes.plot(LOWEST, curve, style, label=name, fillstyle="none")
    axes.set(xlabel="p_min", ylabel="least leakage [nats]", ylim=(0, None))
    axes.set_title(title, fontsize="medium")
    axes.legend(frameon=False, fontsize="small")


# ---------------------------------------------------------------- what it costs


def random_problem(size: int) -> tuple[Prior, IntArray]:
    """A Dirichlet prior and a random order."""
    rng = np.random.default_rng(size)
    return Prior(rng.dirichlet(np.ones(size))), utility_order(rng.random((size, size)))


def grow(size: int, time_limit: float) -> list[Any]:
    """One row: the optimum by linear programs beside M*(h), with h = M/2 + 1."""
    prior, order = random_problem(size)
    threshold = size // 2 + 1
    start = time.perf_counter()
    safe = leakage_level(prior, closed_forms.utility_safe_mechanism(order, threshold).matrix)
    quick = time.perf_counter() - start
    start = time.perf_counter()
    result = solve(worst_case_utility(prior, order, threshold), time_limit=time_limit)
    seconds = time.perf_counter() - start
    programs = counted(result)
    return [
        size, f"{result.value:.9f}", f"{safe:.9f}", f"{result.gap:.1e}", programs, f"{seconds:.2f}",
        f"{quick:.4f}", f"{seconds / quick:.0f}",
    ]  # fmt: skip


def large(size: int) -> list[Any]:
    """One row: M*(h) where the linear programs take too long, and a bound that needs none."""
    prior, order = random_problem(size)
    threshold = size // 2 + 1
    start = time.perf_counter()
    level = leakage_level(prior, closed_forms.utility_safe_mechanism(order, threshold).matrix)
    seconds = time.perf_counter() - start
    bound = closed_forms.support_bound(prior, order, threshold)
    return [size, f"{level:.6f}", f"{bound:.6f}", f"{seconds:.2f}"]


def over_sets(size: int, time_limit: float) -> list[list[Any]]:
    """Rows: the least level over sets around one prior, with h = M/2 + 1."""
    rng = np.random.default_rng(size)
    p, order = rng.dirichlet(np.full(size, 3.0)), utility_order(rng.random((size, size)))
    points = np.vstack([p, rng.dirichlet(np.full(size, 3.0), 4)])
    sets = {
        "the prior alone": None,
        "l1 ball, half of 2 min p": L1Ball(p, float(p.min())),
        "l1 ball, 0.2": L1Ball(p, 0.2),
        "box, 0.8 to 1.3 times p": Box(0.8 * p, np.minimum(1.3 * p, 1.0)),
        "minimum mass, 0.2 / N": MinimumMass(size, 0.2 / size),
        "5 vertices": ConvexHull(points),
    }
    rows = []
    for name, over in sets.items():
        start = time.perf_counter()
        result = solve(
            worst_case_utility(p, order, size // 2 + 1, over=over), time_limit=time_limit
        )
        seconds = time.perf_counter() - start
        rows.append(
            [
                size, name, f"{result.value:.6f}", f"{result.gap:.1e}", counted(result), f"{seconds:.2f}",
                f"{result.timings.certify:.3f}",
            ]
        )  # fmt: skip
    return rows


def study(kind: str, count: int) -> list[Any]:
    """One row: random problems with up to 24 letters and outputs."""
    programs, gaps = [], []
    for seed in range(count):
        rng = np.random.default_rng([seed, len(kind)])
        n, m = (int(v) for v in rng.integers(2, 25, 2))
        prior = Prior(rng.dirichlet(np.full(n, float(rng.choice([0.5, 1.0, 5.0])))))
        gains = rng.random((n, m))
        if kind == "ranks":
            program = worst_case_utility(prior, utility_order(gains), int(rng.integers(1, m + 1)))
        else:
            worst = None if kind == "expected gain" else float(gains.max(axis=1).min()) / 2
            allowed = gains >= (0.0 if worst is None else worst)
            most = float(prior.pmf @ np.where(allowed, gains, 0.0).max(axis=1))
            least = float((prior.pmf @ gains).max())
            expected = least + (most - least) * float(rng.random())
            program = least_leakage(
                prior, ExpectedGain(gains), expected=min(expected, most), worst=worst
            )
        result = solve(program)
        programs.append(int(counted(result)))
        gaps.append(result.gap)
    within = sum(gap <= 1e-9 for gap in gaps)
    return [
        kind, count, f"{np.mean(programs):.1f}", max(programs), f"{within / count:.1%}", f"{max(gaps):.0e}"
    ]  # fmt: skip


def counted(result: Result[Any]) -> str:
    """How many linear programs a search took."""
    return result.reason.split(" after ")[1].split()[0]


def against_dqcp(size: int, threshold: int, repeats: int) -> list[Any]:
    """One row: cvxpy's bisection on the quasiconvex problem, to 1e-9 in the share e^-epsilon."""
    prior, order = random_problem(size)
    program = worst_case_utility(prior, order, threshold)

    def dqcp() -> tuple[float, int]:
        return bisection(program)

    def ours() -> float:
        return solve(worst_case_utility(prior, order, threshold)).value

    measured = interleaved({"dqcp": dqcp, "pmlopt": ours}, repeats)
    (slow, (there, theirs)), (fast, here) = measured["dqcp"], measured["pmlopt"]
    programs = counted(solve(program))
    return [
        size, threshold, f"{there:.9f}", f"{here:.9f}", f"{theirs} / {programs}", f"{slow:.2f}",
        f"{fast:.3f}", f"{slow / fast:.0f}",
    ]  # fmt: skip


def bisection(program: LeastLeakage) -> tuple[float, int]:
    """The least level by cvxpy's bisection, to 1e-9 in e^-epsilon, and how many programs that took.

    The quasiconcave objective is the least ratio, over the outputs, of a column's mean to its largest
    entry; cvxpy asks for `mean - t largest >= 0`, which outputs that never occur satisfy.
    """
    matrix = cp.Variable(program.allowed.shape, nonneg=True)
    largest = cp.Variable(program.allowed.shape[1], pos=True)
    law = program.prior.pmf @ matrix
    ratios = [law[y] / largest[y] for y in range(len(program.outputs))]
    problem = cp.Problem(
        cp.Maximize(cp.minimum(*ratios)),
        [
            cp.sum(matrix, axis=1) == 1,
            matrix[np.nonzero(~program.allowed)] == 0,
            matrix
            <= np.ones((program.prior.size, 1)) @ cp.reshape(largest, (1, largest.size), order="C"),
        ],
    )
    with (
        patch.object(cvxpy_bisection, "_solve", wraps=cvxpy_bisection._solve) as solved,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter(
            "ignore", RuntimeWarning
        )  # 0 / 0 in the value, for outputs that never occur
        problem.solve(qcp=True, solver=cp.HIGHS, low=0.0, high=1.0, eps=1e-9)
    kept = np.where(matrix.value > 1e-9, matrix.value, 0.0)
    return leakage_level(program.prior, kept / kept.sum(axis=1, keepdims=True)), solved.call_count


if __name__ == "__main__":
    main()
