"""Mutual information under PML: the LP over all extreme columns beside column generation, growth in N.

    python benchmarks/enumeration.py [--sizes 8 12 16 20 24 50 100] [--repeats 1] [--output FILE.png]

Both on the same instances in one run. Enumeration lists every column and solves one LP by HiGHS; it stops at
the list's limit. The ratio is its time over that of column generation at a certified gap of 1e-6 (1e-5 from
N = 50 on). `counts` are integer counts with a total of about 20,000, priced by dynamic programming to 1e-8.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import FloatArray, growth_figure, interleaved, machine, table

from pmlopt import PML, MutualInformation, Prior, Result, design, solve
from pmlopt.errors import ProgramError
from pmlopt.programs.plots import save_figure
from pmlopt.solvers.parametric_program import MasterProblem

HEAD = ("N", "prior", "epsilon", "columns", "enumeration [ms]", "generation [ms]",
        "ratio", "gap", "difference", "pricing")  # fmt: skip
LARGEST = 20
"""Letters up to which the LP over all columns is solved."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the comparison and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 12, 16, 20, 24, 50, 100])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--output", type=Path, help="A plot of the times.")
    arguments = parser.parse_args(argv)
    print(machine())
    rows = [
        compare(prior_of(kind, size), kind, epsilon, arguments.repeats)
        for size in arguments.sizes
        for kind in ("dirichlet", "zipf", "counts")
        for epsilon in (0.5, 1.0)
    ]
    table(HEAD, rows)
    if arguments.output is not None:
        save_figure(growth_figure(curves(rows), "seconds"), arguments.output)


def curves(rows: Sequence[Sequence[Any]]) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds over N of both ways for each kind of prior, at the first epsilon."""
    lines: dict[str, tuple[list[float], list[float]]] = {}
    for size, kind, epsilon, _, full, generated, *_ in rows:
        for way, seconds in (("enumeration", full), ("generation", generated)):
            if epsilon == rows[0][2] and seconds:
                sizes, times = lines.setdefault(f"{way}, {kind}", ([], []))
                sizes.append(float(size))
                times.append(float(seconds) / 1e3)
    return lines


def prior_of(kind: str, size: int) -> Prior:
    """A seeded Dirichlet prior, Zipf's, or integer counts."""
    rng = np.random.default_rng(0)
    law: FloatArray = rng.dirichlet(np.ones(size)) if kind != "zipf" else 1 / np.arange(1, size + 1)
    law = law / law.sum()
    if kind == "counts":
        return Prior.from_counts((rng.multinomial(20_000, law) + 1).tolist())
    return Prior(law)


def compare(prior: Prior, kind: str, epsilon: float, repeats: int) -> list[Any]:
    """One row: both ways on one instance."""
    tolerance = 1e-8 if kind == "counts" else (1e-6 if prior.size < 50 else 1e-5)

    def generate() -> Result[Any]:
        program = design(prior, PML(epsilon), MutualInformation())
        return solve(program, "column-generation", tolerance=tolerance / epsilon)

    def enumerate_all() -> float:
        program = design(prior, PML(epsilon), MutualInformation()).with_every_column()
        return MasterProblem(program.lifts, program.column_values).solve()[0]

    contestants: dict[str, Callable[[], Any]] = {"generation": generate}
    count = design(prior, PML(epsilon), MutualInformation()).space.column_count
    if prior.size <= LARGEST:
        contestants["enumeration"] = enumerate_all
    try:
        measured = interleaved(contestants, repeats)
    except ProgramError as problem:
        return [prior.size, kind, epsilon, str(problem), *[""] * 6]
    seconds, result = measured["generation"]
    full = measured.get("enumeration")
    return [
        prior.size,
        kind,
        epsilon,
        "" if count is None else f"{count:,}",
        "" if full is None else f"{1e3 * full[0]:.1f}",
        f"{1e3 * seconds:.1f}",
        "" if full is None else f"{full[0] / seconds:.2f}",
        f"{result.gap:.1e}",
        "" if full is None else f"{result.value - full[1]:.1e}",
        result.certificate.pricing,
    ]


if __name__ == "__main__":
    main()
