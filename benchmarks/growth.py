"""How every kind of problem grows with its size: time and memory.

    python benchmarks/growth.py [--kinds NAME ...] [--largest 400] [--repeats 3] [--limit 60] [--out FOLDER]
        [--quick]

Each point is a process of its own (so that peak memory is its own) with a hard limit on wall time, and solves
the same instance `--repeats` times; seconds are medians of processor times, from the declaration to the
certificate. A kind that runs out of time is not tried at larger sizes. A run that fails is written into the
table as "failed", and the exit code is then 1. The exponent is the slope of log time over log size, fitted to
the sizes from 100 on, where there are three. Sizes are letters (N = M), or records for the last two kinds.
With letters each run takes turns with the PML design of the same size, and the ratio is that of the least
times: on a shared machine the column to read.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from common import growth_figure, instance, machine, report, report_times, suite_parser
from limited import Run, limited

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    ExpectedLoss,
    L1Ball,
    MaximalLeakage,
    MutualInformation,
    Prior,
    best_worst_case,
    design,
    envelope,
    leakage_distortion,
    least_leakage,
    record_leakage,
    solve,
    worst_case_utility,
)
from pmlopt.model.privacy import Requirement
from pmlopt.model.queries import ModularSum, symmetric_channel
from pmlopt.model.utility import utility_order
from pmlopt.programs.plots import save_figure

BIT = float(np.log(2))
Work: TypeAlias = Callable[[int], Callable[[], Any]]
"""From the size to the work that is timed."""

HEAD = (
    "kind", "size", "status", "seconds", "peak [MiB]", "gap", "solver", "ratio to PML", "exponent",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of problem: how to make the work, and the sizes to try."""

    work: Work
    sizes: tuple[int, ...]


def linear(privacy: Callable[[Prior], Requirement]) -> Work:
    """Expected gain, random gains."""

    def prepared(size: int) -> Callable[[], Any]:
        p, gains = instance("random", size, 1)
        return lambda: solve(design(p, privacy(Prior(p)), ExpectedGain(gains)))

    return prepared


def information(size: int) -> Callable[[], Any]:
    """Mutual information, a prior of 20,000 counts."""
    p, _ = instance("random", size, 1)
    counts = (np.random.default_rng(2).multinomial(20_000, p) + 1).tolist()
    labels = range(size)  # many counts of the same number look like observations without labels
    return lambda: solve(design(Prior.from_counts(counts, labels), PML(1.0), MutualInformation()))


def worst_case(size: int) -> Callable[[], Any]:
    """The least leakage for a worst rank of N/2 + 1."""
    p, gains = instance("random", size, 1)
    order = utility_order(gains)
    return lambda: solve(worst_case_utility(p, order, size // 2 + 1))


def best_worst(size: int) -> Callable[[], Any]:
    """The highest worst rank within a level of 1."""
    p, gains = instance("random", size, 1)
    order = utility_order(gains)
    return lambda: solve(best_worst_case(p, order, 1.0))


def least(size: int) -> Callable[[], Any]:
    """The least leakage for an expected |i - j| of a tenth of its range."""
    p, gains = instance("absolute", size, 1)
    return lambda: solve(least_leakage(p, ExpectedLoss(-gains), expected=0.1))


def outside(size: int) -> Callable[[], Any]:
    """The envelope of a random mechanism at delta = 0.1."""
    p, gains = instance("random", size, 1)
    matrix = gains / gains.sum(axis=1, keepdims=True)
    return lambda: solve(envelope(p, matrix, 0.1))


def records(size: int) -> Callable[[], Any]:
    """Parity of n records through a symmetric channel, half a bit short of all entropy."""
    parity = ModularSum(size, 2)
    channel = symmetric_channel(parity, 0.2)
    return lambda: solve(record_leakage(parity, channel, (size - 0.5) * BIT))


def distortion(size: int) -> Callable[[], Any]:
    """The least leakage of parity at an expected distortion of 0.2, half a bit short of all entropy."""
    parity = ModularSum(size, 2)
    return lambda: solve(leakage_distortion(parity, 0.2, (size - 0.5) * BIT))


LETTERS = (10, 20, 50, 100, 200, 400)
KINDS: Mapping[str, Kind] = {
    "PML": Kind(linear(lambda prior: PML(1.0)), LETTERS),
    "LDP": Kind(linear(lambda prior: LDP(1.0)), LETTERS),
    "LIP": Kind(linear(lambda prior: LIP(1.0, 1.0)), LETTERS),
    "maximal leakage": Kind(linear(lambda prior: MaximalLeakage(1.0)), LETTERS),
    "PML over an l1 ball of min p": Kind(
        linear(lambda prior: PML(1.0, over=L1Ball(prior, float(prior.pmf.min())))), LETTERS
    ),
    "PML over an l1 ball of 0.05": Kind(
        linear(lambda prior: PML(1.0, over=L1Ball(prior, 0.05))), LETTERS
    ),
    "mutual information": Kind(information, LETTERS),
    "worst case": Kind(worst_case, LETTERS),
    "best worst case": Kind(best_worst, LETTERS),
    "least leakage": Kind(least, LETTERS),
    "envelope": Kind(outside, LETTERS),
    "record leakage, parity": Kind(records, (4, 10, 100, 1000, 10_000)),
    "leakage-distortion, parity": Kind(distortion, (2, 4, 8, 16, 32, 64)),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run every kind, print the table and draw the times."""
    parser = suite_parser(__doc__)
    parser.add_argument(
        "--kinds", nargs="+", default=list(KINDS), choices=list(KINDS), metavar="NAME"
    )
    parser.add_argument("--largest", type=int, default=400, help="Letters.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="Seconds for each process.")
    arguments = parser.parse_args(argv)
    print(machine())
    found: dict[str, dict[int, Run]] = {}
    for name in arguments.kinds:
        sizes = [
            n for n in KINDS[name].sizes if n <= arguments.largest or KINDS[name].sizes != LETTERS
        ]
        if arguments.quick:
            sizes, arguments.repeats, arguments.limit = sizes[:2], 1, 30.0
        found[name] = grown(name, sizes, arguments.repeats, arguments.limit)
        report(arguments.out, "growth", HEAD, rows_of(found), show=False)
    report_times(arguments.out, "growth", HEAD, rows_of(found))
    if arguments.out is not None:
        curves = {name: curve(runs) for name, runs in found.items()}
        figure = growth_figure(curves, "seconds", "size (letters, or records)")
        save_figure(figure, arguments.out / "growth.png")
    failed = list_failures(found)
    if failed:
        sys.exit("\n".join(failed))


def grown(name: str, sizes: Sequence[int], repeats: int, limit: float) -> dict[int, Run]:
    """The runs of one kind, up to the first that does not end in time."""
    runs: dict[int, Run] = {}
    for size in sizes:
        runs[size] = limited(
            "growth:point", {"name": name, "size": size, "repeats": repeats}, limit
        )
        if not runs[size].done:
            break
    return runs


def point(name: str, size: int, repeats: int) -> dict[str, Any]:
    """One point, in a process of its own; runs of more than five seconds are not repeated."""
    KINDS[name].work(KINDS[name].sizes[0])()  # what is imported when it is first needed
    work = KINDS[name].work(size)
    beside = KINDS["PML"].work(size) if KINDS[name].sizes == LETTERS else None
    if beside is not None:
        KINDS["PML"].work(LETTERS[0])()
    seconds: list[float] = []
    others: list[float] = []
    while not seconds or (len(seconds) < repeats and sum(seconds) < 5.0):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
        if beside is not None:
            start = time.process_time()
            beside()
            others.append(time.process_time() - start)
    status = str(result.status.value)
    return {
        "seconds": statistics.median(seconds), "gap": result.gap, "status": status,
        "solver": getattr(result, "solver", "linear programs"),
        "ratio": f"{min(seconds) / min(others):.1f}" if others else "",
    }  # fmt: skip


def rows_of(found: Mapping[str, Mapping[int, Run]]) -> list[list[str]]:
    """The table."""
    rows = []
    for name, runs in found.items():
        slope = exponent(*curve(runs))
        for place, (size, run) in enumerate(runs.items()):
            last = slope if place == len(runs) - 1 else ""
            rows.append([name, str(size), *described(run), last])
    return rows


def list_failures(found: Mapping[str, Mapping[int, Run]]) -> list[str]:
    """List the runs that ended for another reason than a limit."""
    return [
        f"{name}, size {size}: {run.problem}"
        for name, runs in found.items()
        for size, run in runs.items()
        if run.status == "failed"
    ]


def described(run: Run) -> list[str]:
    """The columns of one point."""
    if not run.done:
        late = f"{run.status} {run.problem}".strip()
        seconds = f"> {run.seconds:.0f}" if run.status == "time-out" else run.status
        return [late, seconds, f"{run.memory:.0f}", "", "", ""]
    said = run.answer
    return [
        said["status"], f"{said['seconds']:.4f}", f"{run.memory:.0f}", f"{said['gap']:.0e}", said["solver"],
        said["ratio"],
    ]  # fmt: skip


def curve(runs: Mapping[int, Run]) -> tuple[list[float], list[float]]:
    """Sizes and seconds of the runs that ended."""
    done = {size: run for size, run in runs.items() if run.done}
    return [float(size) for size in done], [float(run.answer["seconds"]) for run in done.values()]


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> str:
    """The fitted slope, where there are three sizes at which little else is timed."""
    large = [(size, time) for size, time in zip(sizes, seconds, strict=True) if size >= 100]
    if len(large) < 3:
        return ""
    across, upright = np.log(np.array(large)).T
    return f"{np.polyfit(across, upright, 1)[0]:.2f}"


if __name__ == "__main__":
    main()
