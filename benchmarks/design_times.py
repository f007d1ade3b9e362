"""The processor time of twelve kinds of designs at 2 to 400 letters, here and in another checkout.

    python benchmarks/design_times.py BUILD [--kinds NAME ...] [--letters NUMBER ...] [--pairs NUMBER]

BUILD is the folder of the other checkout. Each has its package in `.venv`. A time is the least of several
designs from numbers to certificate in a process of its own; the processes of both take turns, and the ratio
is the median over the pairs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pmlopt
from pmlopt import uncertainty

LETTERS = (2, 8, 40, 400)
MAX_SECONDS = 2.0
"""Of the designs of one process: at least three are timed, and no more than thirty."""

Inputs = tuple[Any, Any, Any]
"""A prior, a utility and a distance of letters in steps of one over their number."""

KINDS: Mapping[str, tuple[int, Callable[[Any, Any, Any], Any]]] = {
    "pml": (400, lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0), u)),
    "ldp": (400, lambda p, u, _: pmlopt.design(p, pmlopt.LDP(1.0), u)),
    "lip": (400, lambda p, u, _: pmlopt.design(p, pmlopt.LIP(1.0, 1.0), u)),
    "maximal": (100, lambda p, u, _: pmlopt.design(p, pmlopt.MaximalLeakage(0.5), u)),
    "hamming": (400, lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0), "hamming")),
    "metric": (40, lambda p, u, d: pmlopt.design(p, pmlopt.MetricPrivacy(5.0, d), u)),
    "l1-ball": (
        400,
        lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0, over=uncertainty.L1Ball(p, 0.05)), u),
    ),
    "kl-ball": (
        40,
        lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0, over=uncertainty.KLBall(p, 0.05)), u),
    ),
    "pml-information": (
        40,
        lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0), pmlopt.MutualInformation()),
    ),
    "ldp-information": (
        8,
        lambda p, u, _: pmlopt.design(p, pmlopt.LDP(1.0), pmlopt.MutualInformation()),
    ),
    "estimation": (8, lambda p, u, _: pmlopt.design(p, pmlopt.PML(1.0), pmlopt.EstimationError())),
    "least": (
        400,
        lambda p, u, d: pmlopt.least_leakage(p, pmlopt.ExpectedLoss(d), expected=0.1),
    ),
}
"""By name: the largest number of letters, and what builds the program."""


def measure_kind(name: str, letters: int) -> float:
    """Return the least processor seconds of designs of a kind, the first one apart."""
    rng = np.random.default_rng(letters)
    law = rng.dirichlet(np.full(letters, 5.0))
    gains = rng.random((letters, letters))
    steps = np.abs(np.subtract.outer(np.arange(letters), np.arange(letters))) / letters
    build, seconds = KINDS[name][1], list[float]()
    begin = time.monotonic()
    while len(seconds) < 4 or (len(seconds) < 31 and time.monotonic() - begin < MAX_SECONDS):
        started = time.process_time()
        program = build(pmlopt.Prior(law), pmlopt.ExpectedGain(gains), steps)
        assert pmlopt.solve(program).certificate.verify()
        seconds.append(time.process_time() - started)
    return min(seconds[1:])


def measure_in_checkout(checkout: Path, name: str, letters: int) -> float:
    """Return what `measure_kind` finds with the package of a checkout."""
    python = str(checkout / ".venv" / "bin" / "python")
    command = [python, __file__, "--measure", name, "--letters", str(letters)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a row for each kind and number of letters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("build", type=Path, nargs="?", metavar="BUILD")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--letters", nargs="+", type=int, default=list(LETTERS))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--measure", choices=list(KINDS), help="print one time only")
    given = parser.parse_args(argv)
    if given.measure:
        print(measure_kind(given.measure, *given.letters))
        return
    if given.build is None:
        parser.error("give the folder of the other checkout")
    own, other = Path(__file__).resolve().parents[1], given.build.resolve()
    for name in given.kinds:
        for letters in (number for number in given.letters if number <= KINDS[name][0]):
            pairs = [
                [measure_in_checkout(one, name, letters) for one in (other, own)]
                for _ in range(given.pairs)
            ]
            ratio = statistics.median(ours / theirs for theirs, ours in pairs)
            least = 1e3 * min(ours for _, ours in pairs)
            print(f"{name:16} {letters:4} letters {least:10.2f} ms {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
