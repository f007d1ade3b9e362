"""The ends of the range, few letters, many letters and many points of a metric, beside generic solvers.

    python benchmarks/ends.py [--out FOLDER] [--quick] [--sizes 36 64 100] [--large 144 256 400 1000]
        [--limit 120] [--letters 200 400 1000]

The first table has designs on eight letters and a sweep of them, and designs on many, in processor seconds
and as ratios to PML on as many letters and to the same linear program in plain cvxpy. A sweep is beside
single designs. Mutual information is maximised, which cvxpy cannot state.

The second has metric privacy on points of the plane, on grids and on roads.

The distance is the loss, epsilon is 1, and there is a point for each unit of area. Smaller sizes are solved
to the ordinary tolerance, larger ones to a thousandth of the range of the loss. Next to each of the smaller
ones is the linear program of all pairs in plain cvxpy: HiGHS, its first-order method PDLP, and Clarabel, each
stopped after `--limit` seconds. Every run is a process of its own; the seconds are those of the processor,
without the start. Before these come a level from few samples, steps of a stream, and frequencies of many
letters. The library qif has distances of numbers on a line, and not of these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import cvxpy as cp
import numpy as np
from about_secrets import all_pairs, distances
from common import FloatArray, growth_figure, instance, machine, report, suite_parser, table
from limited import Run, limited
from small import KINDS as REQUIREMENTS
from small import plain

from pmlopt import (
    PML,
    Chain,
    ExpectedGain,
    ExpectedLoss,
    MetricPrivacy,
    MutualInformation,
    Prior,
    design,
    estimate,
    solve,
    sweep,
)
from pmlopt.model.privacy.metric_privacy import compute_shortest_paths
from pmlopt.programs.plots import save_figure
from pmlopt.releases import Stream
from pmlopt.releases.estimation import level_from_samples

GENERIC: Mapping[str, Mapping[str, Any]] = {
    "HiGHS": {"solver": "HIGHS"},
    "PDLP of HiGHS": {"solver": "HIGHS", "highs_options": {"solver": "pdlp"}},
    "Clarabel": {"solver": "CLARABEL"},
}
"""The generic ways by name, with what cvxpy is given."""


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, and draw the seconds over the number of points."""
    parser = suite_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[36, 64, 100])
    parser.add_argument("--large", type=int, nargs="*", default=[144, 256, 400, 1000])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--letters", type=int, nargs="*", default=[200, 400, 1000])
    arguments = parser.parse_args(argv)
    repeats, count = 60, 1_000
    if arguments.quick:
        arguments.sizes, arguments.large, arguments.limit = [25], [36], 20.0
        arguments.letters, repeats, count = [50], 3, 10
    print(machine())
    rows = [*compare_small(repeats), compare_sweep(count)]
    rows += [row for size in arguments.letters for row in compare_large(size, arguments.limit)]
    table(("work", "pmlopt [ms]", "/ PML", "HiGHS / pmlopt", "Clarabel / pmlopt"), rows)
    print()
    head: tuple[str, ...] = ("work", "pmlopt [s]", "generic / pmlopt")
    report(arguments.out, "ends-small", head, compare_small_work(arguments.quick, arguments.limit))
    curves: dict[str, tuple[list[float], list[float]]] = {}
    rows = []
    for kind in KINDS:
        for size in (*arguments.sizes, *arguments.large):
            exact = size in arguments.sizes
            own = limited("ends:ours", {"kind": kind, "size": size, "exact": exact}, 3600.0)
            if not own.done:
                rows.append((kind, size, own.status, "", "", "", *[""] * len(GENERIC)))
                continue
            others = [beside(kind, size, name, own, arguments.limit) for name in GENERIC if exact]
            answer = own.answer
            rows.append((
                kind, size, f"{answer['seconds']:.2f}", answer["status"], f"{answer['gap']:.1e}",
                f"{own.memory:.0f}", *others, *[""] * (len(GENERIC) - len(others)),
            ))  # fmt: skip
            sizes, seconds = curves.setdefault(kind, ([], []))
            sizes.append(size)
            seconds.append(answer["seconds"])
    head = (
        "points", "N", "pmlopt [s]", "status", "gap, share of the range", "memory [MiB]",
        *(f"{name} / pmlopt" for name in GENERIC),
    )  # fmt: skip
    report(arguments.out, "ends", head, rows)
    if arguments.out is not None and curves:
        save_figure(growth_figure(curves, "seconds of the processor"), arguments.out / "ends.png")


def measure(work: Callable[[], Any]) -> float:
    """Return the processor milliseconds that a piece of work takes."""
    begin = time.process_time()
    work()
    return 1e3 * (time.process_time() - begin)


def solve_small(name: str, solver: str) -> Any:
    """Solve a design on eight letters, or the same by a solver of cvxpy."""
    prior, size = Prior(instance("random", 8, 1)[0]), 8
    if name == "information":
        return solve(design(prior, PML(1.0), MutualInformation()))
    program = design(prior, REQUIREMENTS[name](size), ExpectedLoss(distances(size)))
    return plain(program, solver) if solver else solve(program)


def compare_small(repeats: int) -> list[tuple[str, ...]]:
    """Compare designs on eight letters with PML and with plain cvxpy, in turn in one process."""
    keys = [
        *product(("PML", "metric", "about a secret"), ("", "HIGHS", "CLARABEL")),
        ("information", ""),
    ]
    works = {key: partial(solve_small, *key) for key in keys}
    seconds = {key: [measure(work) for _ in range(2)][1:] for key, work in works.items()}
    for _ in range(repeats):
        for key, work in works.items():
            seconds[key].append(measure(work))
    found = {key: float(np.median(values)) for key, values in seconds.items()}
    rows: list[tuple[str, ...]] = []
    for (name, solver), own in found.items():
        if not solver:
            others = [found[key] for key in ((name, "HIGHS"), (name, "CLARABEL")) if key in found]
            ratios = (own / found["PML", ""], *(other / own for other in others))
            rows.append((f"{name}, 8 letters", f"{own:.1f}", *(f"{one:.1f}" for one in ratios)))
    return rows


def compare_sweep(count: int) -> tuple[str, ...]:
    """Compare a design of a sweep on eight letters with a single one."""
    prior, gains = instance("random", 8, 1)[0], np.random.default_rng(0).random((8, 8))
    levels = np.linspace(0.1, 2.0, count).tolist()

    def build(epsilon: float) -> Any:
        return design(Prior(prior), PML(epsilon), ExpectedGain(gains))

    single = measure(lambda: [solve(build(epsilon)) for epsilon in levels]) / count
    each = measure(lambda: sweep(build, {"epsilon": levels})) / count
    return f"each of a sweep of {count:,}", f"{each:.1f}", f"{each / single:.1f}"


def compare_large(size: int, limit: float) -> list[tuple[str, ...]]:
    """Compare PML and information on many letters, and PML with plain cvxpy, each in a process."""
    limits = {"PML": 3600.0, "information": 3600.0, "HIGHS": limit, "CLARABEL": limit}
    runs = {
        kind: limited("ends:design_large", {"size": size, "kind": kind}, seconds)
        for kind, seconds in limits.items()
    }
    found = {kind: run.answer["seconds"] for kind, run in runs.items() if run.done}
    rows: list[tuple[str, ...]] = []
    for kind in ("PML", "information"):
        if kind not in found or "PML" not in found:
            rows.append((f"{kind}, {size} letters", runs[kind].status))
            continue
        others = [
            f"{found[other] / found[kind]:.1f}" if other in found else f"{runs[other].status}, {limit:.0f} s"
            for other in ("HIGHS", "CLARABEL")
        ]  # fmt: skip
        ratio, more = f"{found[kind] / found['PML']:.1f}", others if kind == "PML" else []
        rows.append((f"{kind}, {size} letters", f"{1e3 * found[kind]:.0f}", ratio, *more))
    return rows


def design_large(size: int, kind: str) -> dict[str, Any]:
    """From the prior to the certificate, or the same in plain cvxpy, in processor seconds."""
    random = np.random.default_rng(0)
    prior, gains = Prior(random.dirichlet(np.full(size, 5.0))), random.random((size, size))
    if kind == "information":
        seconds = measure(lambda: solve(design(prior, PML(1.0), MutualInformation())))
    elif kind == "PML":
        seconds = measure(lambda: solve(design(prior, PML(1.0), ExpectedGain(gains))))
    else:
        seconds = measure(lambda: plain(design(prior, PML(1.0), ExpectedGain(gains)), kind))
    return {"seconds": seconds / 1e3}


def compare_small_work(quick: bool, limit: float) -> list[tuple[str, ...]]:
    """Return rows of a level from 5 draws, of steps of a stream, and of frequencies of many letters."""
    steps, letters = (10, 60) if quick else (60, 1000)
    rows: list[tuple[str, ...]] = []
    for name, target, arguments in (
        ("level from 5 draws at each of 2 letters", "ends:bound_levels", {}),
        (
            f"step of a stream, 20 states on a line, {steps} steps",
            "ends:step_stream",
            {"steps": steps},
        ),
        (f"frequencies of {letters:,} letters", "ends:estimate_frequencies", {"letters": letters}),
    ):
        run = limited(target, arguments, limit * 10)
        generic = run.answer.get("generic")
        seconds = run.answer.get("seconds", float("nan"))
        ratio = "none" if generic is None else f"{generic / seconds:.1f}"
        rows.append((name, f"{seconds:.3f}" if run.done else run.status, ratio))
    return rows


def bound_levels() -> dict[str, float]:
    """Over all counts of 5 draws at each of two letters; a generic way is not known."""
    level_from_samples([0.5, 0.5], [[3, 2], [1, 4]])  # what is imported is not counted
    begin = time.process_time()
    for first, second in np.ndindex(6, 6):
        level_from_samples([0.7, 0.3], [[first, 5 - first], [second, 5 - second]])
    return {"seconds": (time.process_time() - begin) / 36}


def step_stream(steps: int) -> dict[str, float]:
    """The median step, beside the last design in cvxpy with HiGHS."""
    rng, states = np.random.default_rng(0), 20
    line = np.eye(states) / 2 + np.eye(states, k=1) / 4 + np.eye(states, k=-1) / 4
    kernel = line / line.sum(axis=1, keepdims=True)
    stream = Stream(Chain(np.full(states, 1 / states), kernel), PML(1.0), "hamming")
    state, seconds = 0, []
    for _ in range(steps):
        begin = time.process_time()
        stream.release(state, rng)
        seconds.append(time.process_time() - begin)
        state = int(rng.choice(states, p=kernel[state]))
    program = stream.program()
    begin = time.process_time()
    program.problem.solve(solver="HIGHS")
    return {"seconds": float(np.median(seconds)), "generic": time.process_time() - begin}


def estimate_frequencies(letters: int) -> dict[str, float]:
    """Of randomized response, beside the most likely ones in cvxpy with Clarabel, without their errors."""
    rng = np.random.default_rng(0)
    matrix = np.full((letters, letters), 1.0) + (np.e - 1) * np.eye(letters)
    matrix /= matrix.sum(axis=1, keepdims=True)
    counts = rng.multinomial(100 * letters, rng.dirichlet(np.ones(letters)) @ matrix)
    begin = time.process_time()
    estimate(matrix, counts)
    seconds = time.process_time() - begin
    shares = cp.Variable(letters, nonneg=True)
    likelihood = counts / counts.sum() @ cp.log(matrix.T @ shares)
    begin = time.process_time()
    cp.Problem(cp.Maximize(likelihood), [cp.sum(shares) == 1]).solve(solver="CLARABEL")
    return {"seconds": seconds, "generic": time.process_time() - begin}


def beside(kind: str, size: int, name: str, own: Run, limit: float) -> str:
    """Return how many times as long a generic way takes, or at least."""
    run = limited("ends:generic", {"kind": kind, "size": size, "name": name}, limit)
    seconds = own.answer["seconds"]
    if run.status == "time-out":
        return f"stopped after {limit:.0f} s"
    if not run.done:
        return run.status
    off = run.answer["value"] - own.answer["value"]
    return f"{run.answer['seconds'] / seconds:.1f}" + (
        f" (off {off:.0e})" if abs(off) > 1e-4 else ""
    )


def draw_plane(size: int) -> FloatArray:
    """Return the distances of random points of a square."""
    points = np.random.default_rng(0).random((size, 2)) * size**0.5
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return np.asarray(np.maximum(apart, apart.T))


def lay_grid(size: int) -> FloatArray:
    """Return the distances along the streets of a grid of about so many corners."""
    side = round(size**0.5)
    places = np.array(list(np.ndindex(side, side)))
    return np.asarray(np.abs(places[:, None] - places).sum(axis=2).astype(float))


def lay_roads(size: int) -> FloatArray:
    """Return the shortest ways along the streets of a grid whose lengths vary by half."""
    grid, random = lay_grid(size), np.random.default_rng(1)
    lengths = np.triu(random.uniform(0.5, 1.5, grid.shape), 1)
    steps = np.where(grid == 1, lengths + lengths.T, np.inf)
    np.fill_diagonal(steps, 0.0)
    return compute_shortest_paths(steps)


KINDS: Mapping[str, Callable[[int], FloatArray]] = {
    "plane": draw_plane,
    "grid": lay_grid,
    "roads": lay_roads,
}
"""The points by name."""


def ours(kind: str, size: int, exact: bool) -> dict[str, Any]:
    """From the distances to the certificate."""
    distance = KINDS[kind](size)
    begin = time.process_time()
    program = design(
        Prior.uniform(len(distance)), MetricPrivacy(1.0, distance), ExpectedLoss(distance)
    )
    # a quarter of an hour, also of a busy processor's clock
    limit = None if exact else 900.0
    result = solve(program, tolerance=1e-7 if exact else 1e-3, time_limit=limit)
    seconds = time.process_time() - begin
    assert result.certificate.verify()
    return {
        "seconds": seconds,
        "value": result.value,
        "gap": result.gap / program.scale,
        "status": result.status.value,
    }


def generic(kind: str, size: int, name: str) -> dict[str, Any]:
    """All pairs in plain cvxpy, without a certificate."""
    distance = KINDS[kind](size)
    begin = time.process_time()
    value = all_pairs(distance, 1.0, **GENERIC[name])
    return {"seconds": time.process_time() - begin, "value": value}


if __name__ == "__main__":
    main()
