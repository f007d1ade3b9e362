"""How near the structured interior point comes to what the processor can do.

    python benchmarks/operations.py [--size 1000] [--out FOLDER] [--quick]

A PML design with random gains, epsilon = 1, N = M, to a gap of 1e-6. An iteration is two symmetric products
of N^2 M operations each and a Cholesky factorisation of N^3 / 3, and passes over matrices of N M entries. The
table counts iterations and operations in each precision, measures the rate of a general product of that size,
and says how long these operations would take at that rate: no method with these products takes less. One
thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
from common import FloatArray, instance, machine, report_times, suite_parser

from pmlopt import PML, ExpectedGain, design, solve
from pmlopt.core.display import get_figure_class
from pmlopt.programs.plots import save_figure
from pmlopt.solvers.solver_result import limit_threads
from pmlopt.solvers.structured import interior_point
from pmlopt.solvers.structured.factors import get_lapack
from pmlopt.solvers.structured.newton import NewtonSystem

HEAD = (
    "precision",
    "iterations",
    "operations [10^9]",
    "rate [10^9/s]",
    "seconds at that rate",
    "seconds",
)


def least_time(work: Callable[[], Any], repeats: int = 5) -> float:
    """The least of a few processor times."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def rate(matrix: FloatArray) -> float:
    """Operations a second of a general product of a matrix with another of its size."""
    other = matrix.T.copy()
    with limit_threads():
        return float(
            2 * matrix.shape[0] ** 2 * matrix.shape[1] / least_time(lambda: matrix @ other)
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Solve once, count, and print the table."""
    parser = suite_parser(__doc__)
    parser.add_argument("--size", type=int, default=1000)
    arguments = parser.parse_args(argv)
    print(machine())
    n = 100 if arguments.quick else arguments.size
    count, seconds = {True: 0, False: 0}, {True: 0.0, False: 0.0}
    iterate, build = interior_point._step_once, NewtonSystem.__init__

    def timed_iterate(newton: NewtonSystem) -> Any:
        single = newton.precision is get_lapack(single=True)
        count[single] += 1
        start = time.process_time()
        found = iterate(newton)
        seconds[single] += time.process_time() - start
        return found

    def timed_build(self: NewtonSystem, task: Any, at: Any) -> None:
        start = time.process_time()
        build(self, task, at)
        seconds[self.precision is get_lapack(single=True)] += time.process_time() - start

    p, gains = instance("random", n, 1)
    matrix = np.random.default_rng(2).random((n, n))
    rates = {False: rate(matrix), True: rate(np.asarray(matrix, dtype=np.float32))}
    start = time.process_time()
    with (
        patch.object(interior_point, "_step_once", timed_iterate),
        patch.object(NewtonSystem, "__init__", timed_build),
    ):
        solve(design(p, PML(1.0), ExpectedGain(gains)), "block-ipm", tolerance=1e-6)
    whole = time.process_time() - start
    rows, ideal = [], 0.0
    for single in (True, False):
        operations = count[single] * (2 * n**3 + n**3 / 3)
        at_rate = operations / rates[single]
        ideal += at_rate
        rows.append(("single" if single else "double", count[single], f"{operations / 1e9:.0f}",
                     f"{rates[single] / 1e9:.1f}", f"{at_rate:.2f}", f"{seconds[single]:.2f}"))  # fmt: skip
    rows.append(
        ("all, with the certificate", sum(count.values()), "", "", f"{ideal:.2f}", f"{whole:.2f}")
    )
    report_times(arguments.out, "operations", HEAD, rows)
    if arguments.out is not None:
        figure = get_figure_class()(figsize=(5, 3), layout="constrained")
        axes = figure.subplots()
        axes.barh(["operations of LAPACK at that rate", "the method"], [ideal, whole])
        axes.set_xlabel("seconds")
        save_figure(figure, arguments.out / "operations.png")
    print(f"\nThe operations of LAPACK alone would take {ideal / whole:.0%} of that time.")


if __name__ == "__main__":
    main()
