"""What is proved of mutual information and other f-informations on many letters, and over sets of priors.

    python benchmarks/information_gaps.py [--sizes 22 24 26 28 50 100 200] [--closed 18 24 32 60 100]
        [--sets 14 16 20 30 50] [--time-limit 100] [--out FOLDER] [--quick]

Priors are Dirichlet(5) under PML alone and Dirichlet(2) over sets, epsilon = 1, asked for 1e-8 of the range.
The sets of `--closed` are those whose mutual information is proved in closed form, or by exact pricing.
Seconds are of the processor. The gap is given in nats, as a share of the range, and in percent of the value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from common import FloatArray, machine, report, suite_parser
from structured_kinds import box, hull

from pmlopt import PML, FInformation, L1Ball, MinimumMass, MutualInformation, Prior, design, solve
from pmlopt.model.privacy import Requirement
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import ChiSquare, Hellinger, TotalVariation

HEAD = (
    "requirement",
    "N",
    "utility",
    "value",
    "gap",
    "of the range",
    "% of the value",
    "CPU [s]",
    "status",
    "pricing",
)
UTILITIES: tuple[Callable[[], FInformation], ...] = (
    MutualInformation,
    ChiSquare,
    TotalVariation,
    Hellinger,
)
CLOSED: Mapping[str, Callable[[FloatArray], PriorSet]] = {
    "l1 ball of 0.02": lambda p: L1Ball(p, 0.02),
    "least masses of 0.3 / N": lambda p: MinimumMass(len(p), 0.3 / len(p)),
}
OVER: Mapping[str, Callable[[FloatArray], PriorSet]] = {
    "a third around": box,
    "hull of 3": hull,
    "l1 ball of 0.2": lambda p: L1Ball(p, 0.2),
}


def measured(
    name: str, prior: Prior, privacy: Requirement, utility: FInformation, limit: float
) -> tuple[Any, ...]:
    """One row."""
    begin = time.process_time()
    program = design(prior, privacy, utility)
    result = solve(program, tolerance=1e-8, time_limit=limit)
    seconds = time.process_time() - begin
    return (name, prior.size, utility.name, f"{result.value:.8f}", f"{result.gap:.1e}",
            f"{result.gap / program.scale:.1e}", f"{100 * result.gap / result.value:.2g}", f"{seconds:.1f}",
            result.status.value, result.certificate.pricing)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables as one."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[22, 24, 26, 28, 50, 100, 200])
    parser.add_argument("--closed", type=int, nargs="*", default=[18, 24, 32, 60, 100])
    parser.add_argument("--sets", type=int, nargs="*", default=[14, 16, 20, 30, 50])
    parser.add_argument("--time-limit", type=float, default=100.0)
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.sizes, arguments.sets, arguments.time_limit = [22, 50], [14], 20.0
        arguments.closed = [18, 32]
    print(machine())
    rows: list[tuple[Any, ...]] = []
    for size in arguments.sizes:
        prior, limit = (
            Prior(np.random.default_rng(0).dirichlet(np.full(size, 5.0))),
            arguments.time_limit,
        )
        rows.extend(measured("PML", prior, PML(1.0), kind(), limit) for kind in UTILITIES)
    named = [(name, over, arguments.closed) for name, over in CLOSED.items()]
    named += [(name, over, arguments.sets) for name, over in OVER.items()]
    for name, over, sizes in named:
        for size in sizes:
            p = np.random.default_rng(0).dirichlet(np.full(size, 2.0))
            privacy = PML(1.0, over=over(p))
            rows.append(
                measured(name, Prior(p), privacy, MutualInformation(), arguments.time_limit)
            )
    report(arguments.out, "information_gaps", HEAD, rows)


if __name__ == "__main__":
    main()
