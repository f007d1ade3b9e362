"""The envelope: figures of [saeidian2026envelopes] with the exact value, studies, and what the programs cost.

    python benchmarks/envelope.py [--output FILE.png] [--csv FOLDER] [--priors 5000] [--seed 0]
        [--letters 5 10 20 50] [--sizes 5x5 10x10 20x20 50x50 10x50 50x10] [--sparse 0]
        [--sets 0]

Figure 1: the law of the leakage in its Example 1, with both quantiles at delta = 0.1 and the envelope.
Figure 2: randomized response at epsilon = 1 on four priors: upper bound, lower bound h_delta where its
condition holds, binary envelope, the closed form, the linear program at some delta, and approximate DP; and
a fifth prior, on which the condition fails. Then tables: the closed form beside the linear program and
h_delta on random priors, where the condition of its Theorem 5 holds and where it fails; both timed on
randomized response; and random mechanisms as N and M grow. Last, with `--sparse`, how many
envelopes of so many random sparse channels are proved, and with letters down to 1e-9; with `--sets`,
where value and bound over sets of priors meet; `--only-sparse` leaves out the rest. Needs the extra
`plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import FloatArray, drawing, interleaved, machine, table, write_csv
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pmlopt import (
    Box,
    ConvexHull,
    L1Ball,
    Result,
    envelope,
    leakage_level,
    pointwise_leakage,
    solve,
)
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import PriorLike
from pmlopt.measures import binary_envelope, leakage_quantile
from pmlopt.model.closed_forms import (
    randomized_response,
    randomized_response_adp,
    randomized_response_condition,
    randomized_response_envelope,
    randomized_response_lower_bound,
    randomized_response_upper_bound,
)
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs import Status, failure_after_processing
from pmlopt.programs.envelope.certificate import EnvelopeCertificate
from pmlopt.programs.plots import save_figure

EXAMPLE = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]


def four_level(size: int, rho: float = 0.1) -> list[float]:
    """The paper's priors on large alphabets."""
    levels = (1 - 3 * rho, 1 - rho, 1 + rho, 1 + 3 * rho)
    return [levels[4 * i // size] / size for i in range(size)]


PRIORS = {
    "a": [0.2, 0.3, 0.5],
    "b": [0.1, 0.2, 0.2, 0.2, 0.3],
    "c": four_level(12),
    "d": four_level(20),
}
SKEWED = [0.02, 0.03, 0.05, 0.45, 0.45]
"""For delta above 0.5 or so the condition of [saeidian2026envelopes, Theorem 5] fails."""

EnvelopeResult = Result[EnvelopeCertificate]

SPARSE_HEAD = (
    "channels",
    "envelopes",
    "unproved",
    "largest gap",
    "verified",
    "median [s]",
    "longest [s]",
)
SETS_HEAD = (
    "set", "mechanisms", "envelopes proved", "mean gap [nats]", "largest",
    "probabilities proved", "mean gap", "largest",
)  # fmt: skip
SETS: dict[str, Callable[[FloatArray, np.random.Generator], PriorSet]] = {
    "ball of radius 0.02": lambda prior, rng: L1Ball(prior, 0.02),
    "ball of radius 0.1": lambda prior, rng: L1Ball(prior, 0.1),
    "ball of radius 0.5": lambda prior, rng: L1Ball(prior, 0.5),
    "box of 10 percent": lambda prior, rng: Box(0.9 * prior, np.minimum(1.0, 1.1 * prior)),
    "hull of 4 priors": lambda prior, rng: ConvexHull(
        [prior, *(0.8 * prior + 0.2 * rng.dirichlet(np.ones(len(prior)), 3))]
    ),
}
SPARSE_DELTAS = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99)

GRID = np.linspace(0.005, 0.995, 199)
NAMES = ("upper bound", "exact", "h_delta", "binary envelope", "approximate DP")


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figures and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("envelope"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument("--priors", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--letters", type=int, nargs="*", default=[5, 10, 20, 50])
    parser.add_argument(
        "--sizes", nargs="*", default=["5x5", "10x10", "20x20", "50x50", "10x50", "50x10"]
    )
    parser.add_argument("--sparse", type=int, default=0, help="How many sparse channels to study.")
    parser.add_argument(
        "--sets", type=int, default=0, help="How many mechanisms to study over sets of priors."
    )
    parser.add_argument("--only-sparse", action="store_true")
    parser.add_argument(
        "--figures-only", action="store_true", help="Nothing but what the paper has."
    )
    arguments = parser.parse_args(argv)
    print(machine())
    if not arguments.only_sparse:
        everything(arguments)
    if arguments.sparse:
        print()
        table(SPARSE_HEAD, [sparse_study(arguments.sparse, arguments.seed)])
        print()
        table(SPARSE_HEAD, [tiny_study(arguments.sparse, arguments.seed)])
    if arguments.sets:
        print()
        table(SETS_HEAD, [set_study(name, arguments.sets, arguments.seed) for name in SETS])


def everything(arguments: argparse.Namespace) -> None:
    """The figures, and the tables but that of sparse channels."""
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, 3).ravel().tolist()
    figure_1(panels[0], arguments.csv)
    for axes, (name, prior) in zip(panels[1:5], PRIORS.items(), strict=True):
        figure_2(axes, f"2{name}", prior, arguments.csv)
    figure_2(panels[5], "-skewed", SKEWED, arguments.csv, everywhere=True)
    save_figure(figure, arguments.output)
    if arguments.figures_only:
        return
    rng = np.random.default_rng(arguments.seed)
    head: tuple[str, ...] = (
        "condition", "priors", "from the linear program", "its gap", "outside it", "h_delta lower",
        "by at most [nats]", "h_delta higher",
    )  # fmt: skip
    table(head, study(arguments.priors, rng))
    print()
    head = ("k", "closed form [s]", "linear programs [s]", "programs", "ratio", "difference")
    table(head, [against_program(size) for size in arguments.letters])
    print()
    head = (
        "N x M",
        "one delta [s]",
        "programs",
        "largest gap",
        "50 deltas [s]",
        "programs",
        "50 / one",
    )
    table(head, [grow(*map(int, size.split("x"))) for size in arguments.sizes])


def at_deltas(
    prior: PriorLike, mechanism: MechanismLike, deltas: Iterable[float]
) -> list[EnvelopeResult]:
    """The envelope at many deltas, in ascending order."""
    return [solve(envelope(prior, mechanism, delta)) for delta in sorted(deltas)]


# ---------------------------------------------------------------- the figures


def figure_1(axes: Axes, folder: Path | None) -> None:
    """The distribution function of the leakage, and three levels at delta = 0.1."""
    prior = [0.25] * 4
    leakages = pointwise_leakage(prior, EXAMPLE)
    grid = np.linspace(0.0, 1.6, 1601)
    law = np.array(prior) @ np.array(EXAMPLE)
    below = [float(law[leakages <= t + 1e-12].sum()) for t in grid]
    axes.step(grid, below, where="post", label="P(leakage <= t)")
    marks = {
        "lower quantile": leakage_quantile(prior, EXAMPLE, 0.1),
        "upper quantile": leakage_quantile(prior, EXAMPLE, 0.1, upper=True),
        "envelope": solve(envelope(prior, EXAMPLE, 0.1)).value,
    }
    for (name, level), style in zip(marks.items(), ("--", "-.", ":"), strict=True):
        axes.axvline(level, linestyle=style, color="tab:red", label=f"{name}, {level:.3f}")
    axes.set(xlabel="t [nats]", ylim=(0, 1.05))
    axes.set_title("Figure 1: delta = 0.1", fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    if folder is not None:
        write_csv(folder / "figure-1.csv", ("t", "P"), zip(grid, below, strict=True))


def figure_2(
    axes: Axes, name: str, prior: list[float], folder: Path | None, *, everywhere: bool = False
) -> None:
    """One panel of Figure 2, h_delta where its condition holds or everywhere."""
    size = len(prior)
    mechanism = randomized_response(size, 1.0)
    curves = np.array([
        [
            randomized_response_upper_bound(prior, 1.0, d),
            randomized_response_envelope(prior, 1.0, d),
            randomized_response_lower_bound(prior, 1.0, d)
            if everywhere or randomized_response_condition(prior, 1.0, d) else math.nan,
            binary_envelope(prior, mechanism, d),
            randomized_response_adp(size, 1.0, d),
        ]
        for d in GRID.tolist()
    ])  # fmt: skip
    for curve, label, style in zip(curves.T, NAMES, ("--", "-", "-.", ":", "--"), strict=True):
        axes.plot(GRID, curve, style, label=label)
    some = GRID[10::30]
    found = at_deltas(prior, mechanism, some.tolist())
    axes.plot(some, [e.value for e in found], "k.", label="linear program")
    axes.set(xlabel="delta", ylabel="leakage [nats]", ylim=(0, None))
    title = f"the condition fails: {tuple(prior)}" if everywhere else f"Figure {name}: k = {size}"
    axes.set_title(title, fontsize="medium")
    axes.legend(frameon=False, fontsize="small")
    if folder is not None:
        write_csv(
            folder / f"figure-{name.strip('-')}.csv",
            ("delta", *NAMES),
            np.column_stack([GRID, curves]),
        )


# ---------------------------------------------------------------- the study


def study(count: int, rng: np.random.Generator) -> list[list[Any]]:
    """Two rows: random priors where the condition of Theorem 5 holds, and where it fails."""
    points: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    for _ in iterate_with_progress(range(count), count, "study"):
        size = int(rng.integers(2, 13))
        prior = random_prior(size, rng)
        epsilon, delta = float(rng.uniform(0.05, 4.0)), float(rng.uniform(0.01, 0.99))
        exact = randomized_response_envelope(prior, epsilon, delta)
        found = solve(envelope(prior, randomized_response(size, epsilon), delta))
        holds = randomized_response_condition(prior, epsilon, delta)
        lower = randomized_response_lower_bound(prior, epsilon, delta)
        outside = max(found.value - exact, exact - found.bound)
        points[holds].append((abs(exact - found.value), found.gap, outside, exact - lower))
    return [row("holds", points[True]), row("fails", points[False])]


def random_prior(size: int, rng: np.random.Generator) -> FloatArray:
    """Skewed, plain or nearly uniform."""
    prior = rng.dirichlet(np.full(size, float(rng.choice([0.3, 1.0, 5.0])))) + 1e-9
    return np.asarray(prior / prior.sum())


def row(name: str, points: list[tuple[float, ...]]) -> list[Any]:
    """What a part of the study shows."""
    values: FloatArray = np.array(points).reshape(-1, 4)
    difference, gap, outside, short = values.T
    return [
        name, f"{len(values):,}", f"{difference.max(initial=0.0):.1e}", f"{gap.max(initial=0.0):.1e}",
        int((outside > 1e-12).sum()), f"{int((short > 1e-9).sum()):,}", f"{max([0.0, *short.tolist()]):.2g}",
        int((short < -1e-9).sum()),
    ]  # fmt: skip


def sparse_channel(seed: int, number: int) -> tuple[FloatArray, FloatArray]:
    """A channel of 3 to 20 letters with a few likely outputs each, and a skewed prior; every other one is
    rounded to two digits, so that entries are 0.
    """
    rng = np.random.default_rng([seed, number])
    letters, outputs = (int(size) for size in rng.integers(3, 21, 2))
    prior = rng.dirichlet(np.full(letters, float(rng.choice([0.3, 1.0])))) + 1e-4
    matrix = rng.dirichlet(np.full(outputs, float(rng.choice([0.1, 0.3]))), letters)
    if number % 2:
        matrix = np.maximum(
            np.round(matrix, 2), 0.01 * (matrix == matrix.max(axis=1, keepdims=True))
        )
    return prior / prior.sum(), matrix / matrix.sum(axis=1, keepdims=True)


def sparse_study(count: int, seed: int) -> list[Any]:
    """One row: how many envelopes of sparse channels are proved to the tolerance, each solved by itself."""
    found: list[EnvelopeResult] = []
    for number in iterate_with_progress(range(count), count, "sparse channels"):
        prior, matrix = sparse_channel(seed, number)
        found += [solve(envelope(prior, matrix, delta), time_limit=20.0) for delta in SPARSE_DELTAS]
    return proofs(count, found)


def tiny_study(count: int, seed: int) -> list[Any]:
    """The same where letters and deltas may be as small as 1e-9."""
    found: list[EnvelopeResult] = []
    for number in iterate_with_progress(range(count), count, "tiny letters"):
        rng = np.random.default_rng([seed, number])
        letters, outputs = (int(size) for size in rng.integers(2, 8, 2))
        weights = 10.0 ** rng.uniform(-9, 0, letters)
        matrix = rng.dirichlet(np.full(outputs, float(rng.choice([0.3, 1.0]))), letters)
        delta = float(10.0 ** rng.uniform(-9, -1))
        found.append(solve(envelope(weights / weights.sum(), matrix, delta), time_limit=20.0))
    return proofs(count, found)


def proofs(count: int, found: list[EnvelopeResult]) -> list[Any]:
    """A row of `SPARSE_HEAD`."""
    seconds = [result.timings.total for result in found]
    return [
        count, f"{len(found):,}", sum(result.status is not Status.OPTIMAL for result in found),
        f"{max(result.gap for result in found):.1e}",
        f"{sum(result.certificate.verify() for result in found):,}",
        f"{np.median(seconds):.3f}", f"{max(seconds):.2f}",
    ]  # fmt: skip


def set_study(name: str, count: int, seed: int) -> list[Any]:
    """One row: value and bound over sets of priors of one kind, of both questions."""
    gaps: dict[str, list[float]] = {"envelope": [], "failure": []}
    for number in iterate_with_progress(range(count), count, name):
        rng = np.random.default_rng([seed, number])
        letters, outputs = (int(size) for size in rng.integers(2, 8, 2))
        prior = rng.dirichlet(np.full(letters, 5.0))
        matrix = rng.dirichlet(np.full(outputs, 0.5), letters)
        priors, share = SETS[name](prior, rng), float(rng.uniform(0.02, 0.9))
        level = share * leakage_level(prior, matrix)
        gaps["envelope"].append(solve(envelope(prior, matrix, share, over=priors)).gap)
        gaps["failure"].append(
            solve(failure_after_processing(prior, matrix, level, over=priors)).gap
        )
    row: list[Any] = [name, count]
    for found in gaps.values():
        row += [sum(gap <= 1e-8 for gap in found), f"{np.mean(found):.2g}", f"{max(found):.2g}"]
    return row


# ---------------------------------------------------------------- what it costs


def against_program(size: int) -> list[Any]:
    """One row: randomized response at epsilon = 1 by formula and by linear programs, for nine deltas."""
    prior = np.random.default_rng(size).dirichlet(np.ones(size))
    mechanism = randomized_response(size, 1.0)
    deltas = [i / 10 for i in range(1, 10)]

    def formula() -> list[float]:
        return [randomized_response_envelope(prior, 1.0, delta) for delta in deltas]

    def programs() -> list[EnvelopeResult]:
        return [solve(envelope(prior, mechanism, delta)) for delta in deltas]

    measured = interleaved({"formula": formula, "programs": programs}, 5)
    (quick, exact), (slow, found) = measured["formula"], measured["programs"]
    return [
        size, f"{quick / 9:.5f}", f"{slow / 9:.3f}", f"{np.mean([e.iterations or 0 for e in found]):.1f}",
        f"{slow / quick:.0f}", f"{max(abs(x - e.value) for x, e in zip(exact, found, strict=True)):.1e}",
    ]  # fmt: skip


def grow(letters: int, outputs: int) -> list[Any]:
    """One row: 50 deltas one by one (their mean), and all by `at_deltas`, on a random mechanism."""
    rng = np.random.default_rng([letters, outputs])
    prior = rng.dirichlet(np.ones(letters))
    mechanism = rng.dirichlet(np.full(outputs, 0.5), letters)
    deltas = np.linspace(0.02, 0.98, 50).tolist()
    start = time.perf_counter()
    apart = [solve(envelope(prior, mechanism, delta)) for delta in deltas]
    one = (time.perf_counter() - start) / len(deltas)
    start = time.perf_counter()
    together = at_deltas(prior, mechanism, deltas)
    all_deltas = time.perf_counter() - start
    return [
        f"{letters} x {outputs}", f"{one:.3f}", f"{np.mean([e.iterations or 0 for e in apart]):.1f}",
        f"{max(e.gap for e in [*apart, *together]):.1e}", f"{all_deltas:.2f}",
        sum(e.iterations or 0 for e in together),
        f"{all_deltas / one:.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
