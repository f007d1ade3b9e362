"""Designs by orbit: variables, seconds and memory against the number of records, beside the listed program.

    python benchmarks/symmetry.py [--records 4 8 16 24 32 48 64] [--limit 300] [--out FOLDER] [--quick]

Independent bits with probability 0.3 under PML at one nat, Hamming loss. By orbits from `design` to the
certificate, with `verify` and 10^5 draws timed apart; the listed program where it has at most 2^10 letters.
Every run is alone in a process with a hard limit on wall time. Then tables over three letters, and circles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from common import growth_figure, machine, report, report_times, suite_parser
from limited import Run, limited

from pmlopt import PML, CirclePrior, CoordinateLoss, ExpectedLoss, IIDPrior, design, solve
from pmlopt.model.utility import DisplacementLoss
from pmlopt.programs.plots import save_figure

EPSILON, CHANCE, DRAWS = 1.0, 0.3, 100_000
HAMMING = CoordinateLoss([[0, 1], [1, 0]])
LARGEST_LISTED = 10
"""Records up to which the listed program is run: 2^10 letters, a million variables."""

HEAD = (
    "problem", "letters", "method", "variables", "status", "seconds", "cpu [s]", "verify [s]",
    "10^5 draws [s]", "peak [MiB]", "value", "certified gap", "note",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run every size, print the table and draw the growth."""
    parser = suite_parser(__doc__)
    parser.add_argument("--records", type=int, nargs="*", default=[4, 6, 8, 10, 16, 24, 32, 48, 64])
    parser.add_argument("--limit", type=float, default=300.0, help="Seconds for each run.")
    arguments = parser.parse_args(argv)
    print(machine())
    sizes = [4, 6] if arguments.quick else arguments.records
    runs: dict[tuple[str, int, str], Run] = {}

    def ran(problem: str, size: int, method: str, target: str, **given: Any) -> None:
        runs[problem, size, method] = limited(f"symmetry:{target}", given, arguments.limit)
        report(arguments.out, "symmetry", HEAD, rows_of(runs), show=False)

    for n in sizes:
        ran(f"{n} bits", 2**n, "orbits", "tables", records=n, letters=2)
        for solver in ("auto", "block-ipm") if n <= LARGEST_LISTED else ():
            ran(f"{n} bits", 2**n, f"listed, {solver}", "listed", records=n, solver=solver)
    for n in [2] if arguments.quick else [4, 8, 10]:
        ran(f"{n} records of 3", 3**n, "orbits", "tables", records=n, letters=3)
    for n in [10] if arguments.quick else [1000, 100_000]:
        ran(f"circle of {n}", n, "orbits", "circle", around=n)
    report_times(arguments.out, "symmetry", HEAD, rows_of(runs))
    if arguments.out is not None:
        figure = growth_figure(curves(runs), "processor seconds", "binary digits of a letter")
        save_figure(figure, arguments.out / "symmetry.png")


# ---------------------------------------------------------------- in a process of their own


def tables(records: int, letters: int) -> dict[str, Any]:
    """Tables of records, from the law to the certificate; then the check, and releases."""
    solve(
        design(IIDPrior([0.7, 0.3], 2), PML(EPSILON), HAMMING)
    )  # imports are not the method's time
    law = [1 - CHANCE, CHANCE] if letters == 2 else [0.5, 0.3, 0.2]
    loss = CoordinateLoss(1 - np.eye(letters))
    wall, cpu = time.perf_counter(), time.process_time()
    program = design(IIDPrior(law, records), PML(EPSILON), loss)
    result = solve(program)
    found = answered(program.space.orbits.count, result, wall, cpu)
    clock = time.perf_counter()
    assert result.certificate.verify()
    found["verify"] = time.perf_counter() - clock
    rng = np.random.default_rng(1)
    drawn = rng.choice(letters, p=law, size=(DRAWS, records)).astype(np.int8)
    clock = time.perf_counter()
    result.certificate.mechanism.sample_array(drawn, 2)
    found["draws"] = time.perf_counter() - clock
    return found


def listed(records: int, solver: str) -> dict[str, Any]:
    """The same bits letter by letter, of whose symmetry nothing is said: with the classes that `solve` finds,
    and by the structured interior point.
    """
    solve(design([0.5, 0.3, 0.2], PML(EPSILON), ExpectedLoss(1 - np.eye(3))))
    prior = IIDPrior([1 - CHANCE, CHANCE], records).listed()
    codes = np.arange(2**records)
    distance = np.bitwise_count(codes[:, None] ^ codes).astype(float)
    wall, cpu = time.perf_counter(), time.process_time()
    program = design(prior, PML(EPSILON), ExpectedLoss(distance))
    result = solve(program, solver)
    return answered(distance.size, result, wall, cpu)


def circle(around: int) -> dict[str, Any]:
    """The loss along a circle."""
    solve(design(CirclePrior(8), PML(EPSILON), DisplacementLoss(np.ones(8))))
    wall, cpu = time.perf_counter(), time.process_time()
    along = np.minimum(np.arange(around), around - np.arange(around))
    program = design(CirclePrior(around), PML(EPSILON), DisplacementLoss(along / around))
    return answered(program.space.orbits.count, solve(program), wall, cpu)


def answered(variables: int, result: Any, wall: float, cpu: float) -> dict[str, Any]:
    """What the table says of a result."""
    return {
        "variables": variables, "seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
        "value": result.value, "gap": result.gap, "note": f"{result.solver}: {result.status.value}",
    }  # fmt: skip


# ---------------------------------------------------------------- the table and the plot


def rows_of(runs: Mapping[tuple[str, int, str], Run]) -> list[list[Any]]:
    """The table."""
    rows = []
    for (problem, letters, method), one in runs.items():
        said = one.answer
        size = f"{letters:,}" if letters < 10**7 else f"2^{math.log2(letters):.1f}"
        if not one.done:
            late = f"> {one.seconds:.0f}"
            rows.append([problem, size, method, "", one.status, late, *[""] * 6, one.problem])
            continue
        parts = ("seconds", "cpu", "verify", "draws")
        times = [f"{said[name]:.3f}" if name in said else "" for name in parts]
        rows.append([
            problem, size, method, f"{said['variables']:,}", one.status, *times, f"{one.memory:.0f}",
            f"{said['value']:.10f}", f"{said['gap']:.1e}", said["note"],
        ])  # fmt: skip
    return rows


def curves(runs: Mapping[tuple[str, int, str], Run]) -> dict[str, tuple[list[float], list[float]]]:
    """Collect processor seconds over the binary digits of a letter."""
    kinds = {"bits": "bits", "of 3": "records over three letters", "circle": "circle"}
    drawn: dict[str, tuple[list[float], list[float]]] = {}
    for (problem, letters, method), one in runs.items():
        if one.done:
            kind = next(name for key, name in kinds.items() if key in problem)
            digits, seconds = drawn.setdefault(f"{kind}, {method}", ([], []))
            digits.append(math.log2(letters))
            seconds.append(one.answer["cpu"])
    return drawn


if __name__ == "__main__":
    main()
