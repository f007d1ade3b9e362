"""What a small design runs from `Prior` to its saved file: functions, files and calls, and its time.

    python benchmarks/main_path.py
    python benchmarks/main_path.py --against CHECKOUT

Counts are of functions of the package on the second design of a process, and of the first one. The time is
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
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from call_counts import count_calls, count_files

from pmlopt import LDP, PML, ExpectedGain, Prior, design, solve

REQUIREMENTS = {"PML": PML(1.0), "LDP": LDP(1.0)}


def save_design(path: Path) -> None:
    """Design a mechanism on four letters, and save the result."""
    program = design(Prior([0.4, 0.3, 0.2, 0.1]), PML(1.0), "hamming")
    solve(program).save(path)


def print_counts() -> None:
    """Print the functions, files and calls of the first and of the second design of this process."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):
            calls = count_calls(lambda: save_design(Path(folder) / "design.json"))
            print(
                f"{name} design: {len(calls)} functions, {count_files(calls)} files, {calls.total()} calls"
            )


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
