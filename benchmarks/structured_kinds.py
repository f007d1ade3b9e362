"""Every kind that the structured interior point serves, beside a generic solver and beside PML.

    python benchmarks/structured_kinds.py [--instances 20] [--sizes 50 100 200 400] [--repeats 3]
        [--kinds NAME ...] [--entries 15000] [--out FOLDER] [--quick]

First random designs of 2 to 12 letters, `--instances` for each kind: whether the structured method proves
its answer, and how far its value is from that of HiGHS on the program in cvxpy, as a share of the utility's
range. Every second one is begun in single precision, as large designs are. With `--entries` the designs have
any shape of up to so many entries instead, from 1 x 1 to tall and to wide, and are solved as `solve` solves
them. Then the time of each kind over that of PML at the same size, random gains, epsilon = 1, N = M, from the
declaration to the certificate; medians of processor times, in turn in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import (
    FloatArray,
    growth_figure,
    instance,
    interleaved,
    machine,
    report_times,
    suite_parser,
    table,
)

from pmlopt import (
    LDP,
    LIP,
    PML,
    ApproximatePML,
    Box,
    ConvexHull,
    ExpectedGain,
    GuessLeakage,
    L1Ball,
    MaximalLeakage,
    MinimumMass,
    Prior,
    design,
    solve,
)
from pmlopt.model.privacy import Requirement
from pmlopt.programs import Status
from pmlopt.programs.plots import save_figure
from pmlopt.solvers.structured import interior_point

HEAD = ("kind", "N", "seconds", "ratio to PML", "iterations", "gap", "solver")
STUDY = ("kind", "instances", "proved", "largest difference", "largest gap", "exact")


def box(p: FloatArray) -> Box:
    """A third of each probability below and above it."""
    return Box(p * (2 / 3), np.minimum(p * (4 / 3), 1.0))


def hull(p: FloatArray) -> ConvexHull:
    """The prior, and two laws half-way to others."""
    rng = np.random.default_rng(len(p))
    return ConvexHull(np.array([p, *((p + rng.dirichlet(np.ones(len(p)))) / 2 for _ in range(2))]))


KINDS: Mapping[str, Callable[[FloatArray, float], Requirement]] = {
    "PML": lambda p, epsilon: PML(epsilon),
    "LDP": lambda p, epsilon: LDP(epsilon),
    "LIP": lambda p, epsilon: LIP(epsilon, epsilon),
    "l1 ball of min p": lambda p, epsilon: PML(epsilon, L1Ball(p, float(p.min()))),
    "least masses": lambda p, epsilon: PML(epsilon, MinimumMass(len(p), 0.5 / len(p))),
    "l1 ball of 0.05": lambda p, epsilon: PML(epsilon, L1Ball(p, 0.05)),
    "l1 ball of 0.5": lambda p, epsilon: PML(epsilon, L1Ball(p, 0.5)),
    "box": lambda p, epsilon: PML(epsilon, box(p)),
    "hull of 3": lambda p, epsilon: PML(epsilon, hull(p)),
    "maximal leakage": lambda p, epsilon: MaximalLeakage(epsilon),
    "approximate PML": lambda p, epsilon: ApproximatePML(epsilon, 0.01),
    "five guesses": lambda p, epsilon: GuessLeakage(5, epsilon),
}


def shape(rng: np.random.Generator, entries: int | None) -> tuple[int, int]:
    """2 to 12 letters and outputs, or any shape of up to so many entries, all orders of magnitude alike."""
    if entries is None:
        return int(rng.integers(2, 13)), int(rng.integers(2, 13))
    size = entries ** rng.random()
    n = max(1, round(size ** rng.random()))
    return n, max(1, round(size / n))


def compared(name: str, instances: int, entries: int | None) -> tuple[Any, ...]:
    """One kind on random designs, beside HiGHS on the program in cvxpy."""
    proved, off, gap, exact = 0, 0.0, 0.0, 0
    usual = interior_point.MIN_SINGLE_PRECISION_ENTRIES
    for seed in range(instances):
        rng = np.random.default_rng([list(KINDS).index(name), seed])
        n, m = shape(rng, entries)
        if name == "five guesses":
            n = max(n, 6)  # of at most five letters five guesses find each
        p = rng.dirichlet(np.full(n, 2.0)) + 1e-3
        p /= p.sum()
        privacy = KINDS[name](p, float(rng.uniform(0.05, 2.5)))
        program = design(Prior(p), privacy, ExpectedGain(rng.normal(size=(n, m))))
        interior_point.MIN_SINGLE_PRECISION_ENTRIES = 0 if seed % 2 and entries is None else usual
        result = solve(program, "block-ipm" if entries is None else "auto")
        if result.status is not Status.OPTIMAL:
            continue
        proved += 1
        program.problem.solve(solver="HIGHS")
        other = float(program.problem.value)
        off = max(off, abs(result.value - other) / (program.scale or 1.0))
        gap = max(gap, result.gap / (program.scale or 1.0))
        exact += result.certificate.verify()
    interior_point.MIN_SINGLE_PRECISION_ENTRIES = usual
    return name, instances, proved, f"{off:.1e}", f"{gap:.1e}", exact


def solve_design(name: str, p: FloatArray, gains: FloatArray) -> Any:
    """Solve a design of one kind at epsilon = 1, from the numbers to the certificate."""
    return solve(design(Prior(p), KINDS[name](p, 1.0), ExpectedGain(gains)))


def main(argv: Sequence[str] | None = None) -> None:
    """Run both parts, print the tables and draw the ratios."""
    parser = suite_parser(__doc__)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200, 400])
    parser.add_argument("--entries", type=int, help="Random designs of any shape of up to so many.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="NAME"
    )
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.instances, arguments.sizes, arguments.repeats = 2, [10, 20], 1
    print(machine())
    table(
        STUDY, [compared(name, arguments.instances, arguments.entries) for name in arguments.kinds]
    )
    rows: list[tuple[Any, ...]] = []
    curves: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in arguments.kinds
    }
    for size in arguments.sizes:
        p, gains = instance("random", size, 1)
        works = {
            name: partial(solve_design, name, p, gains)
            for name in dict.fromkeys(["PML", *arguments.kinds])
        }
        found = interleaved(works, arguments.repeats)
        for name in arguments.kinds:
            seconds, result = found[name]
            ratio = seconds / found["PML"][0]
            rows.append((name, size, f"{seconds:.4f}", f"{ratio:.2f}", result.iterations, f"{result.gap:.0e}",
                         result.solver))  # fmt: skip
            curves[name][0].append(size)
            curves[name][1].append(seconds)
    report_times(arguments.out, "structured_kinds", HEAD, rows)
    if arguments.out is not None:
        save_figure(
            growth_figure(curves, "seconds", "letters"), arguments.out / "structured_kinds.png"
        )


if __name__ == "__main__":
    main()
