"""Our route against the same sparse LP through plain cvxpy, by each solver, side by side.

    python benchmarks/solvers.py [--size 100] [--repeats 5]

The LP is expected gain under PML at epsilon = 1. The first contestant is `solve` with everything it
does: compile, solve, repair, certify. The others are `cvxpy.Problem.solve` on the same problem; they
certify nothing. A ratio above one says that plain cvxpy takes that many times longer than `solve`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import cvxpy as cp
from common import instance, interleaved, machine, table

from pmlopt import PML, ExpectedGain, Result, design, leakage_level, solve

PLAIN: dict[str, dict[str, Any]] = {
    "Clarabel": {"solver": cp.CLARABEL},
    "HiGHS simplex": {"solver": cp.HIGHS, "highs_options": {"solver": "simplex"}},
    "HiGHS IPM": {"solver": cp.HIGHS, "highs_options": {"solver": "ipm"}},
    "HiGHS IPM, no crossover": {
        "solver": cp.HIGHS,
        "highs_options": {"solver": "ipm", "run_crossover": "off"},
    },
    "SCS": {"solver": cp.SCS, "eps_abs": 1e-7, "eps_rel": 1e-7},
}


def main() -> None:
    """Run the comparison and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(machine())
    rows = []
    for kind in ("random", "absolute", "hamming"):
        rows += compare(kind, arguments.size, arguments.repeats)
    table(["gain", "route", "seconds", "compile", "ratio", "value", "PML excess of its matrix"], rows)


def compare(kind: str, size: int, repeats: int) -> list[list[str]]:
    """The rows of one kind of gain."""
    prior, gains = instance(kind, size, seed=1)

    def declare() -> Any:
        return design(prior, PML(1.0), ExpectedGain(gains))

    def plain(options: dict[str, Any]) -> Callable[[], Any]:
        def run() -> Any:
            program = declare()
            program.problem.solve(**options)
            return program

        return run

    contestants: dict[str, Callable[[], Any]] = {"pmlopt.solve": lambda: solve(declare())}
    contestants |= {f"cvxpy, {name}": plain(options) for name, options in PLAIN.items()}
    measured = interleaved(contestants, repeats)
    ours = measured["pmlopt.solve"][0]
    rows = []
    for name, (seconds, answer) in measured.items():
        if isinstance(answer, Result):
            value, matrix = answer.value, answer.mechanism.matrix
            label, compiling = f"{name} ({answer.solver})", f"{answer.timings.compile:.3f}"
        else:
            value, label, compiling = (
                float(answer.problem.value),
                name,
                f"{answer.problem.compilation_time:.3f}",
            )
            matrix = answer.mechanism.value.clip(min=0)
            matrix = matrix / matrix.sum(axis=1, keepdims=True)
        excess = leakage_level(prior, matrix) - 1.0
        rows.append(
            [
                kind,
                label,
                f"{seconds:.3f}",
                compiling,
                f"{seconds / ours:.2f}",
                f"{value:.9f}",
                f"{excess:.1e}",
            ]
        )
    return rows


if __name__ == "__main__":
    main()
