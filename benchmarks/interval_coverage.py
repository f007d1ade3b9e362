"""How often the intervals of estimates hold, over designs, numbers of letters and of people.

    python benchmarks/interval_coverage.py [--samples 1000] [--letters 2 4 8 16] [--out FOLDER] [--quick]

Designs for estimation under PML and LDP at 0.5, 1 and 2 nats, with priors drawn from the simplex, of
which one letter has 0.002 (the frequencies of the people are those of the prior). The table has, by
number of people and kind of interval, the coverage of single intervals over all designs and letters, and
that of the worst design; of the guaranteed ones, the share of samples in which all hold at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import get_args

import numpy as np
from common import FloatArray, growth_figure, machine, report, suite_parser

from pmlopt import LDP, PML, EstimationError, Prior, design, estimate, solve
from pmlopt.programs.plots import save_figure
from pmlopt.releases.estimation import estimable
from pmlopt.releases.estimation.intervals import Intervals

RARE = 0.002
PEOPLE = (50, 500, 5_000, 50_000)
CONFIDENCES = (0.9, 0.95, 0.99)
HEAD = (
    "intervals",
    "people",
    "confidence",
    "coverage",
    "worst design",
    "designs",
    "samples of each",
)


def main(argv: Sequence[str] | None = None) -> None:
    """Count, print the table and draw it."""
    parser = suite_parser(__doc__)
    parser.add_argument("--samples", type=int, default=1_000)
    parser.add_argument("--letters", type=int, nargs="+", default=[2, 4, 8, 16])
    arguments = parser.parse_args(argv)
    print(machine())
    letters, samples = ([2, 4], 20) if arguments.quick else (arguments.letters, arguments.samples)
    rng = np.random.default_rng(3)
    found: dict[tuple[str, int, float], list[float]] = {}
    for size, name, epsilon in product(letters, ("pml", "ldp"), (0.5, 1.0, 2.0)):
        law, matrix, workload = instance(size, name, epsilon, rng)
        for people in PEOPLE:
            for key, share in coverage(law, matrix, workload, people, samples, rng).items():
                found.setdefault((key[0], people, key[1]), []).append(share)
        report(arguments.out, "interval_coverage", HEAD, rows_of(found, samples), show=False)
    report(arguments.out, "interval_coverage", HEAD, rows_of(found, samples))
    if arguments.out is not None:
        save_figure(
            growth_figure(curves(found), "share that does not hold", "people"),
            arguments.out / "interval_coverage.png",
        )


def instance(
    size: int, name: str, epsilon: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Frequencies, a mechanism designed for them, and what can be estimated from it."""
    law = rng.dirichlet(np.ones(size))
    law[law.argmin()] = RARE
    law /= law.sum()
    requirement = {"pml": PML(epsilon), "ldp": LDP(epsilon)}[name]
    mechanism = solve(design(Prior(law), requirement, EstimationError())).mechanism
    left = estimable(mechanism)
    return law, mechanism.matrix, np.eye(size) if left.rank == size else left.basis


def coverage(
    law: FloatArray,
    matrix: FloatArray,
    workload: FloatArray,
    people: int,
    samples: int,
    rng: np.random.Generator,
) -> Mapping[tuple[str, float], float]:
    """The share of intervals that hold, by kind and confidence."""
    held: dict[tuple[str, float], float] = {}
    truth = workload @ law
    kinds = [kind for kind in get_args(Intervals) if kind != "exact"]
    for counts in rng.multinomial(people, law @ matrix, samples):
        one = estimate(matrix, counts, workload=workload, min_p_value=0.0)
        for kind, confidence in product(kinds, CONFIDENCES):
            sure = kind == "bernstein"
            ends = one.confidence_interval(confidence, kind=kind, simultaneous=sure)
            holds = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            key = kind, confidence
            held[key] = held.get(key, 0.0) + float(holds.all() if sure else holds.mean()) / samples
    return held


def rows_of(
    found: Mapping[tuple[str, int, float], Sequence[float]], samples: int
) -> list[list[str]]:
    """The table."""
    return [
        [kind, f"{people:,}", f"{confidence:g}", f"{np.mean(shares):.3f}", f"{min(shares):.3f}",
         str(len(shares)), f"{samples:,}"]
        for (kind, people, confidence), shares in sorted(found.items())
    ]  # fmt: skip


def curves(
    found: Mapping[tuple[str, int, float], Sequence[float]],
) -> dict[str, tuple[list[float], list[float]]]:
    """What does not hold over the number of people, of each kind and confidence."""
    drawn: dict[str, tuple[list[float], list[float]]] = {}
    for (kind, people, confidence), shares in sorted(found.items()):
        missed = 1 - float(np.mean(shares))
        if missed > 0:
            across, upright = drawn.setdefault(f"{kind}, {confidence:g}", ([], []))
            across.append(float(people))
            upright.append(missed)
    return drawn


if __name__ == "__main__":
    main()
