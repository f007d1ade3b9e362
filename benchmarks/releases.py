"""A ledger of many people, the worst outcome of many releases, and the histogram of many.

    python benchmarks/releases.py [--out FOLDER] [--quick]

First: seconds to record releases of 16 letters on many people, one after another, beside the first product
of the posteriors and the mechanism, which any method needs; with the histories that differ and the size of
the file. A random mechanism of 16 outputs makes nearly all histories different after six releases. Then the
seconds of the search for the worst outcome of many releases. Last, the level and the tail of the histogram
of the people of the Adult data, for the absolute loss, and the design for a level of the histogram.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import growth_figure, machine, report, suite_parser

from pmlopt import PML, ExpectedLoss, Ledger, Prior, design, joint_level, shuffled_level, solve
from pmlopt.library import find
from pmlopt.programs.plots import save_figure
from pmlopt.releases import calibrate_shuffled, shuffled_failure

LETTERS = 16


def main(argv: Sequence[str] | None = None) -> None:
    """Run all three and print their tables."""
    arguments = suite_parser(__doc__).parse_args(argv)
    print(machine())
    people = [10_000] if arguments.quick else [10_000, 100_000, 1_000_000]
    head: tuple[str, ...]
    head = ("people", "release", "histories", "record [s]", "product [s]", "ratio", "file [MB]")
    rows = [row for count in people for row in ledger(count)]
    report(arguments.out, "releases", head, rows)
    print()
    head = ("mechanisms", "outcomes", "level [nats]", "seconds")
    counts = (2, 5) if arguments.quick else (2, 5, 10, 20, 40)
    report(arguments.out, "releases-search", head, [search(count) for count in counts])
    print()
    head = (
        "local level",
        "people",
        "level, delta 1e-6",
        "seconds",
        "tail of that level",
        "seconds",
    )
    report(arguments.out, "releases-histogram", head, [histogram(e) for e in (0.5, 1.0, 2.0)])
    print()
    head = (
        "level of the histogram",
        "local level",
        "mean absolute error",
        "the same as local level",
        "seconds",
    )
    report(arguments.out, "releases-calibrated", head, [calibrated(e) for e in (0.02, 0.05, 0.1)])
    if arguments.out is not None:
        last = {count: [row for row in rows if row[0] == count][-1] for count in people}
        sizes = [float(count) for count in people]
        curve = {"the seventh release": (sizes, [float(last[count][3]) for count in people])}
        save_figure(growth_figure(curve, "record [s]", "people"), arguments.out / "releases.png")


def ledger(people: int, releases: int = 7) -> list[tuple[Any, ...]]:
    """Seconds of each release on that many people."""
    rng = np.random.default_rng(0)
    book = Ledger(Prior(rng.dirichlet(np.full(LETTERS, 2.0))), people, total=30.0)
    rows = []
    for number in range(1, releases + 1):
        matrix = rng.dirichlet(np.full(LETTERS, 5.0), LETTERS)
        outcomes = rng.integers(0, LETTERS, people)
        posteriors = rng.random((people, LETTERS))
        start = time.perf_counter()
        posteriors @ matrix
        product = time.perf_counter() - start
        start = time.perf_counter()
        book.record(matrix, outcomes)
        seconds = time.perf_counter() - start
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.npz"
            book.save(path)
            size = path.stat().st_size / 1e6
        rows.append((people, number, len(book.groups()), f"{seconds:.3f}", f"{product:.3f}",
                     f"{seconds / product:.1f}", f"{size:.1f}"))  # fmt: skip
    return rows


def search(count: int) -> tuple[Any, ...]:
    """The worst outcome of so many optimal releases of Adult's education."""
    prior = find("adult-education-absolute").prior
    assert prior is not None
    mechanism = optimal(prior, 0.2)
    start = time.perf_counter()
    level = joint_level(prior, [mechanism] * count)
    seconds = time.perf_counter() - start
    return count, f"{int(mechanism.support.sum())}^{count}", f"{level:.6f}", f"{seconds:.3f}"


def histogram(epsilon: float) -> tuple[Any, ...]:
    """The level and the tail of the histogram of Adult's people."""
    prior = find("adult-education-absolute").prior
    assert prior is not None
    assert prior.samples is not None
    mechanism = optimal(prior, epsilon)
    start = time.perf_counter()
    level = shuffled_level(prior, mechanism, prior.samples, 1e-6)
    middle = time.perf_counter()
    tail = shuffled_failure(prior, mechanism, prior.samples, level)
    end = time.perf_counter()
    return (
        epsilon,
        prior.samples,
        f"{level:.6f}",
        f"{middle - start:.2f}",
        f"{tail:.3e}",
        f"{end - middle:.2f}",
    )


def calibrated(epsilon: float) -> tuple[Any, ...]:
    """The design for a level of the histogram of Adult's people, beside that with it as the local level."""
    prior = find("adult-education-absolute").prior
    assert prior is not None
    assert prior.samples is not None
    start = time.perf_counter()
    local, mechanism = calibrate_shuffled(
        prior, lambda level: optimal(prior, level), prior.samples, epsilon, 1e-6
    )
    seconds = time.perf_counter() - start
    error = absolute(prior)
    errors = [error.value(prior, one) for one in (mechanism, optimal(prior, epsilon))]
    return epsilon, f"{local:.3f}", f"{errors[0]:.4f}", f"{errors[1]:.4f}", f"{seconds:.1f}"


def absolute(prior: Prior) -> ExpectedLoss:
    """The distance of places."""
    places = np.arange(prior.size, dtype=float)
    return ExpectedLoss(np.abs(np.subtract.outer(places, places)))


def optimal(prior: Prior, epsilon: float) -> Any:
    """The optimal mechanism for the absolute loss."""
    return solve(design(prior, PML(epsilon), absolute(prior))).mechanism


if __name__ == "__main__":
    main()
