"""The ends of the range, few letters, many letters and many points of a metric, beside generic solvers.

    python benchmarks/ends.py [--out FOLDER] [--quick] [--sizes 36 64 100] [--large 144 256 400 1000]
        [--limit 120] [--letters 200 400 1000] [--values 1000 3000 10000]

The first table has designs on eight letters and a sweep of them, and designs on many, in processor seconds
and as ratios to PML on as many letters and to the same linear program in plain cvxpy: HiGHS, its first-order
method PDLP, and Clarabel. A sweep is beside single designs. Mutual information is maximised, which cvxpy
cannot state.

The second has other work: a level from few samples, steps of a stream, frequencies of many letters, least
leakages, a column of many different letters that is released and checked, and whole processes of the
command, each beside the best generic way that is known.

The third has metric privacy on points of the plane, on grids and on roads. The distance is the loss, epsilon
is 1, and there is a point for each unit of area. Smaller sizes are solved to the ordinary tolerance, larger
ones to a thousandth of the range of the loss. Next to each of the smaller ones is the linear program of all
pairs in plain cvxpy. The library qif has distances of numbers on a line, and not of these.

Every row is a process of its own; its seconds are those of the processor, without the start. A generic way
is stopped after `--limit` of them: its ratio is then a lower bound.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from about_secrets import all_pairs, distances
from common import (
    FloatArray,
    growth_figure,
    instance,
    machine,
    report_times,
    suite_parser,
)
from limited import Run, limited
from small import ALONE, DESIGN, PROCESS, spent
from small import KINDS as REQUIREMENTS

from pmlopt import (
    PML,
    Chain,
    ExpectedGain,
    ExpectedLoss,
    MaximalAlphaLeakage,
    MetricPrivacy,
    MutualInformation,
    Prior,
    RenyiPML,
    Secret,
    design,
    estimate,
    least_leakage,
    solve,
    sweep,
)
from pmlopt.model.privacy import Requirement
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

GENERIC_HEADS = ("HiGHS / pmlopt", "PDLP of HiGHS / pmlopt", "Clarabel / pmlopt")


def main(argv: Sequence[str] | None = None) -> None:
    """Print the tables, and draw the seconds over the number of points."""
    parser = suite_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--sizes", type=int, nargs="*", default=[36, 64, 100])
    parser.add_argument("--large", type=int, nargs="*", default=[144, 256, 400, 1000])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--letters", type=int, nargs="*", default=[200, 400, 1000])
    parser.add_argument("--tall", type=int, default=100_000)
    parser.add_argument("--values", type=int, nargs="*", default=[1000, 3000, 10_000])
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.sizes, arguments.large, arguments.limit = [25], [36], 20.0
        arguments.letters, arguments.tall, arguments.values = [50], 400, [30]
    print(machine())
    for part in arguments.parts:
        PARTS[part](arguments)
        print()


def report_designs(arguments: argparse.Namespace) -> None:
    """Report designs on few letters and on many, as ratios to PML and to generic ways."""
    repeats, count = (3, 10) if arguments.quick else (60, 1_000)
    rows = list_rows("compare_small", {"repeats": repeats})
    rows += list_rows("compare_sweep", {"count": count})
    for shape in [*((size, size) for size in arguments.letters), (arguments.tall, 20)]:
        rows += compare_large(*shape, arguments.limit)
    head = ("work", "pmlopt [ms]", "/ PML", *GENERIC_HEADS)
    filled = [(*row, *[""] * (len(head) - len(row))) for row in rows]
    report_times(arguments.out, "ends-designs", head, filled)


def list_rows(name: str, arguments: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of a table that one process makes, or what it ended with."""
    run = limited(f"ends:{name}", arguments, 3600.0)
    if not run.done:
        return [(name, run.problem or run.status)]
    return [tuple(row) for row in run.answer["rows"]]


def report_work(arguments: argparse.Namespace) -> None:
    """Report other work, as ratios to the best generic way that is known."""
    rows = compare_work(arguments)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "prior.csv").write_text("x,count\na,4\nb,3\nc,2\nd,1\n")
        alone = min(spent(ALONE, (), folder)[0] for _ in range(3))
        for name, words in (("--help", ("--help",)), ("design, 4 letters", DESIGN)):
            seconds = min(spent(PROCESS, words, folder)[0] for _ in range(3))
            ratio = f"{alone / seconds:.1f} (import cvxpy)"
            rows.append((f"whole process, {name}", f"{seconds:.3f}", ratio))
    report_times(arguments.out, "ends-work", ("work", "pmlopt [s]", "generic / pmlopt"), rows)


def report_metrics(arguments: argparse.Namespace) -> None:
    """Report metric privacy on points by their number, and draw the seconds."""
    curves: dict[str, tuple[list[float], list[float]]] = {}
    rows: list[tuple[Any, ...]] = []
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
        "points", "N", "pmlopt [s]", "status", "gap / range", "memory [MiB]",
        *GENERIC_HEADS,
    )  # fmt: skip
    report_times(arguments.out, "ends-metrics", head, rows)
    if arguments.out is not None and curves:
        save_figure(growth_figure(curves, "seconds of the processor"), arguments.out / "ends.png")


PARTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    "designs": report_designs,
    "work": report_work,
    "metrics": report_metrics,
}
"""The tables by name."""


def measure(work: Callable[[], Any]) -> float:
    """Return the processor milliseconds that a piece of work takes."""
    begin = time.process_time()
    work()
    return 1e3 * (time.process_time() - begin)


def stop_after(seconds: float) -> None:
    """Let the process end by a signal once it has used so many seconds of the processor."""
    spent_so_far = sum(os.times()[:2])
    end = math.ceil(spent_so_far + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, end + 5))


def compare_runs(run: Run, seconds: float, limit: float) -> str:
    """Return how many times as long a generic way takes, or at least."""
    if run.done:
        return f"{run.answer['seconds'] / seconds:.1f}"
    if run.problem == f"signal {int(signal.SIGXCPU)}":
        return f"> {limit / seconds:.1f}"
    return run.problem[:60] or run.status


def solve_small(name: str, generic: str) -> Any:
    """Solve a design on eight letters, or the same by a generic way."""
    prior, size = Prior(instance("random", 8, 1)[0]), 8
    if name == "information":
        return solve(design(prior, PML(1.0), MutualInformation()))
    program = design(prior, REQUIREMENTS[name](size), ExpectedLoss(distances(size)))
    return program.problem.solve(**GENERIC[generic]) if generic else solve(program)


def compare_small(repeats: int) -> dict[str, Any]:
    """Compare designs on eight letters with PML and with plain cvxpy, in turn in one process."""
    keys = [*product(("PML", "metric", "about a secret"), ("", *GENERIC)), ("information", "")]
    works = {key: partial(solve_small, *key) for key in keys}
    seconds = {key: [measure(work) for _ in range(2)][1:] for key, work in works.items()}
    for _ in range(repeats):
        for key, work in works.items():
            seconds[key].append(measure(work))
    found = {key: float(np.median(values)) for key, values in seconds.items()}
    rows: list[tuple[str, ...]] = []
    for (name, generic), own in found.items():
        if not generic:
            others = [found[name, one] / own if (name, one) in found else None for one in GENERIC]
            ratios = ["" if one is None else f"{one:.1f}" for one in others]
            ratio = f"{own / found['PML', '']:.1f}"
            rows.append((f"{name}, 8 letters", f"{own:.1f}", ratio, *ratios))
    return {"rows": rows}


def compare_sweep(count: int) -> dict[str, Any]:
    """Compare a design of a sweep on eight letters with a single one."""
    prior, gains = instance("random", 8, 1)[0], np.random.default_rng(0).random((8, 8))
    levels = np.linspace(0.1, 2.0, count).tolist()

    def build(epsilon: float) -> Any:
        return design(Prior(prior), PML(epsilon), ExpectedGain(gains))

    single = measure(lambda: [solve(build(epsilon)) for epsilon in levels]) / count
    each = measure(lambda: sweep(build, {"epsilon": levels})) / count

    def solve_plainly(name: str) -> None:
        for epsilon in levels[::10]:
            build(epsilon).problem.solve(**GENERIC[name])

    plain = [measure(partial(solve_plainly, name)) / len(levels[::10]) for name in GENERIC]
    ratios = [f"{each / single:.1f}", *(f"{one / each:.1f}" for one in plain)]
    return {"rows": [(f"each of a sweep of {count:,}, 8 letters", f"{each:.1f}", *ratios)]}


def compare_large(letters: int, outputs: int, limit: float) -> list[tuple[str, ...]]:
    """Compare PML and information on many letters, and PML with plain cvxpy, each in a process."""
    shape = {"letters": letters, "outputs": outputs, "limit": limit}
    kinds = ["PML", *(["information"] if letters == outputs <= 400 else [])]
    ours = {kind: limited("ends:design_large", {**shape, "kind": kind}, 3600.0) for kind in kinds}
    name = f"{letters:,} letters" if letters == outputs else f"{letters:,} letters x {outputs}"
    rows: list[tuple[str, ...]] = []
    for kind, run in ours.items():
        if not run.done or not ours["PML"].done:
            rows.append((f"{kind}, {name}", run.problem or run.status))
            continue
        seconds = run.answer["seconds"]
        ratios = [f"{seconds / ours['PML'].answer['seconds']:.1f}"]
        if kind == "PML":
            for one in GENERIC:
                other = limited("ends:design_large", {**shape, "kind": one}, 20 * limit)
                ratios.append(compare_runs(other, seconds, limit))
        rows.append((f"{kind}, {name}", f"{1e3 * seconds:.0f}", *ratios))
    return rows


def design_large(letters: int, outputs: int, limit: float, kind: str) -> dict[str, Any]:
    """From the prior to the certificate, or the same in plain cvxpy, in processor seconds."""
    random = np.random.default_rng(0)
    prior, gains = (
        Prior(random.dirichlet(np.full(letters, 5.0))),
        random.random((letters, outputs)),
    )
    if kind == "information":
        seconds = measure(lambda: solve(design(prior, PML(1.0), MutualInformation())))
    elif kind == "PML":
        seconds = measure(lambda: solve(design(prior, PML(1.0), ExpectedGain(gains))))
    else:
        stop_after(limit)
        program = design(prior, PML(1.0), ExpectedGain(gains))
        seconds = measure(lambda: program.problem.solve(**GENERIC[kind]))
    return {"seconds": seconds / 1e3}


def compare_work(arguments: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return rows of work that is no single design, each in a process."""
    steps, letters = (10, 60) if arguments.quick else (60, 1000)
    works: list[tuple[str, str, dict[str, Any]]] = [
        ("level from 5 draws at each of 2 letters", "bound_levels", {}),
        (f"step of a stream, 20 states on a line, {steps} steps", "step_stream", {"steps": steps}),
        (f"frequencies of {letters:,} letters", "estimate_frequencies", {"letters": letters}),
    ]
    for kind, size in product(LEAST, (3, 4, 5)):
        works.append((f"least {kind}, {size} letters", "find_least", {"kind": kind, "size": size}))
    rows: list[tuple[str, ...]] = []
    for name, target, keywords in works:
        run = limited(f"ends:{target}", keywords, 1800.0)
        if not run.done:
            rows.append((name, run.problem[:60] or run.status, ""))
            continue
        seconds, generic = run.answer["seconds"], run.answer.get("generic")
        rows.append((
            name, f"{seconds:.3f}", "none" if generic is None else f"{generic / seconds:.1f}"
        ))  # fmt: skip
    for values in arguments.values:
        run = limited("ends:process_letters", {"values": values}, 1800.0)
        for one in ("released", "checked"):
            found = f"{run.answer[one]:.3f}" if run.done else run.problem[:60] or run.status
            rows.append((f"{values:,} different letters, {one}", found, "none" if run.done else ""))
    return rows


LEAST: Mapping[str, Callable[[Secret], Requirement]] = {
    "maximal alpha-leakage of order 2": lambda secret: MaximalAlphaLeakage(2.0, 0.0),
    "Rényi PML of order 2 about a secret": lambda secret: RenyiPML(2.0, 0.0, about=secret),
}
"""The families whose least levels are searched."""


def find_least(kind: str, size: int) -> dict[str, float]:
    """The median over four instances, half-way between the best constant and the best mechanism.

    Generic ways: the least divergence of order 2 is one convex program, and a least norm about a secret is
    found by 24 bisections, in cvxpy with Clarabel. Neither is certified.
    """
    own, others = [], []
    for seed in range(5):  # what is imported with the first is not counted
        random = np.random.default_rng([size, seed])
        secret = Secret(random.dirichlet(np.full(size * 3, 2.0)).reshape(3, size))
        prior, gains = secret.prior, random.random((size, size))
        low, high = (prior.pmf @ gains).max(), prior.pmf @ gains.max(axis=1)
        reach = float(low + high) / 2
        program = least_leakage(prior, LEAST[kind](secret), ExpectedGain(gains), reach)
        own.append(measure(lambda program=program: solve(program)) / 1e3)  # type: ignore[misc]
        others.append(measure(partial(find_least_by_cvxpy, kind, secret, gains, reach)) / 1e3)
    return {"seconds": float(np.median(own[1:])), "generic": float(np.median(others[1:]))}


def find_least_by_cvxpy(kind: str, secret: Secret, gains: FloatArray, reach: float) -> None:
    """Find about the least level in cvxpy."""
    p, matrix = secret.prior.pmf, cp.Variable(gains.shape, nonneg=True)
    rules = [
        cp.sum(matrix, axis=1) == 1,
        cp.sum(cp.multiply(p[:, None] * gains, matrix)) >= reach,
    ]
    if "maximal" in kind:
        law = cp.Variable(gains.shape[1])
        sums = [
            sum(cp.quad_over_lin(matrix[x, y], law[y]) for y in range(len(gains)))
            for x in range(len(gains))
        ]
        goal = cp.Minimize(cp.max(cp.hstack(sums)))
        cp.Problem(goal, [*rules, cp.sum(law) == 1]).solve(solver="CLARABEL")
        return
    norm, given = cp.Parameter(nonneg=True), secret.conditionals
    masses, parts = secret.joint[0].sum(axis=1), given @ matrix
    rules += [
        cp.norm(cp.multiply(np.sqrt(masses)[:, None], parts), 2, axis=0) <= norm * (p @ matrix)
    ]
    program, low, high = cp.Problem(cp.Minimize(0), rules), 0.0, -math.log(masses.min())
    for _ in range(24):
        norm.value = math.exp((low + high) / 4)
        reached = False
        # where Clarabel gives up, the level counts as too small
        with contextlib.suppress(cp.SolverError):
            program.solve(solver="CLARABEL")
            reached = program.status in ("optimal", "optimal_inaccurate")
        if reached:
            high = (low + high) / 2
        else:
            low = (low + high) / 2


def process_letters(values: int) -> dict[str, float]:
    """Release a column of so many different letters by `pmlopt release`, and check it; no generic way."""
    letters = [f"w{place}" for place in range(values)]
    more = np.random.default_rng(0).integers(0, values, 2 * values).tolist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "words.csv"
        path.write_text("\n".join(["word", *letters, *(letters[place] for place in more)]) + "\n")
        release = (
            "release", "words.csv", "--column", "word", "--epsilon", "1", "--utility", "hamming",
            "-o", "released",
        )  # fmt: skip
        return {
            "released": spent(PROCESS, release, folder)[0],
            "checked": spent(PROCESS, ("check", "released"), folder)[0],
        }


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
    """Return how many times as long a generic way takes, or at least, and by how much its value is off."""
    keywords = {"kind": kind, "size": size, "name": name, "limit": limit}
    run = limited("ends:generic", keywords, 20 * limit)
    found = compare_runs(run, own.answer["seconds"], limit)
    off = run.answer["value"] - own.answer["value"] if run.done else 0.0
    return f"{found} (off {off:.0e})" if abs(off) > 1e-4 else found


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


def generic(kind: str, size: int, name: str, limit: float) -> dict[str, Any]:
    """All pairs in plain cvxpy, without a certificate."""
    stop_after(limit)
    distance = KINDS[kind](size)
    begin = time.process_time()
    value = all_pairs(distance, 1.0, **GENERIC[name])
    return {"seconds": time.process_time() - begin, "value": value}


if __name__ == "__main__":
    main()
