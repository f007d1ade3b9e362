"""What a small design runs: its functions, files and hops to the solver, and its time.

    python benchmarks/main_path.py
    python benchmarks/main_path.py --against CHECKOUT

Counts are of functions of the package, on the first and on the second run of a process. Hops are the calls
one within another from `solve` to HiGHS. Whoever follows a prior that is given stays in a file until a
function of another one is called or returned to; where that is in a room above, it is a climb. The time is
that of the processor for designs on eight letters; with another checkout it is a ratio, of the least times of
processes that alternate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from call_counts import count_calls, count_files, count_hops, count_stays, list_steps

from pmlopt import LDP, PML, ExpectedGain, KLBall, Prior, design, solve

COUNTS = {"never": 40, "monthly": 30, "weekly": 20, "daily": 10}
REQUIREMENTS = {"PML": PML(1.0), "LDP": LDP(1.0)}


def save_design(path: Path) -> None:
    """Design a mechanism on four letters, and save the result."""
    program = design(Prior([0.4, 0.3, 0.2, 0.1]), PML(1.0), "hamming")
    solve(program).save(path)


def design_readme(ball: float | None = None) -> None:
    """Solve the example of the README, over a ball of priors where its radius is given, and read it."""
    prior = Prior.from_counts(COUNTS)
    requirement = PML(0.5) if ball is None else PML(0.5, over=KLBall(prior, ball))
    result = solve(design(prior, requirement, "hamming"))
    print(f"  {result.status.value} {result.value:.4f} {result.level:.4f}")


def print_route(name: str, run: Callable[[], None]) -> None:
    """Print the functions, files and hops of the first and of the second run."""
    for time_of_run in ("first", "second"):
        steps = list_steps(run)
        functions = {step[:2] for step in steps}
        files = {file for file, _ in functions}
        found = f"{len(functions)} functions, {len(files)} files, {count_hops(steps)} hops"
        print(f"{name}, {time_of_run}: {found}")


def print_walks() -> None:
    """Print the stays and climbs of a prior that is given in different forms."""
    import pandas
    import pyarrow

    shares = {label: count / 100 for label, count in COUNTS.items()}
    frame = pandas.DataFrame({"answer": list(shares), "share": list(shares.values())})
    given: dict[str, Any] = {
        "array": np.array(list(shares.values())),
        "mapping": shares,
        "series": pandas.Series(shares),
        "frame": frame,
        "arrow": pyarrow.Table.from_pandas(frame),
    }
    for name, data in given.items():
        Prior(data)
        stays, climbs = count_stays(partial(Prior, data))
        print(f"a prior as {name}: {stays} stays, {climbs} climbs")


def print_counts() -> None:
    """Print what runs from `Prior` to a saved file, from the README's example, and over a ball."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):
            calls = count_calls(lambda: save_design(Path(folder) / "design.json"))
            print(
                f"{name} design: {len(calls)} functions, {count_files(calls)} files, {calls.total()} calls"
            )
    print_route("the README's example", design_readme)
    print_route("over a KL ball", partial(design_readme, 0.05))
    print_walks()


def measure_design(name: str, repeats: int = 60) -> float:
    """Return the least processor time of designs on eight letters, in milliseconds."""
    rng, seconds = np.random.default_rng(5), []
    for _ in range(repeats + 1):
        prior, gains = rng.dirichlet(np.full(8, 5.0)), rng.random((8, 8))
        begin = time.process_time()
        solve(design(Prior(prior), REQUIREMENTS[name], ExpectedGain(gains)))
        seconds.append(time.process_time() - begin)
    return 1e3 * min(seconds[1:])


def measure_in_process(checkout: Path, name: str) -> float:
    """Return what `measure_design` of a checkout finds in a process of its own."""
    command = [sys.executable, __file__, "--time", name]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(found.stdout)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the counts, and the times or their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", type=Path, help="another checkout of the project")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--time", choices=REQUIREMENTS, help="print one time only")
    given = parser.parse_args(argv)
    if given.time:
        print(measure_design(given.time))
        return
    print_counts()
    own = Path(__file__).parents[1]
    for name in REQUIREMENTS:
        if given.against is None:
            print(f"{name} on 8 letters: {measure_design(name):.2f} ms")
            continue
        ratios = [
            measure_in_process(own, name) / measure_in_process(given.against, name)
            for _ in range(given.pairs)
        ]
        print(f"{name} on 8 letters: {statistics.median(ratios):.2f} of the other checkout's time")


if __name__ == "__main__":
    main()
