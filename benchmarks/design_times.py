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

KINDS: Mapping[str, tuple[int, float, Callable[[Any, Any, Any, float], Any]]] = {
    "pml": (400, 1.0, lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e), u)),
    "ldp": (400, 1.0, lambda p, u, _, e: pmlopt.design(p, pmlopt.LDP(e), u)),
    "lip": (400, 1.0, lambda p, u, _, e: pmlopt.design(p, pmlopt.LIP(e, e), u)),
    "maximal": (100, 0.5, lambda p, u, _, e: pmlopt.design(p, pmlopt.MaximalLeakage(e), u)),
    "hamming": (400, 1.0, lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e), "hamming")),
    "metric": (40, 5.0, lambda p, u, d, e: pmlopt.design(p, pmlopt.MetricPrivacy(e, d), u)),
    "l1-ball": (
        400,
        1.0,
        lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e, over=uncertainty.L1Ball(p, 0.05)), u),
    ),
    "kl-ball": (
        40,
        1.0,
        lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e, over=uncertainty.KLBall(p, 0.05)), u),
    ),
    "pml-information": (
        40,
        1.0,
        lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e), pmlopt.MutualInformation()),
    ),
    "ldp-information": (
        8,
        1.0,
        lambda p, u, _, e: pmlopt.design(p, pmlopt.LDP(e), pmlopt.MutualInformation()),
    ),
    "estimation": (
        8,
        1.0,
        lambda p, u, _, e: pmlopt.design(p, pmlopt.PML(e), pmlopt.EstimationError()),
    ),
    "least": (
        400,
        0.1,
        lambda p, u, d, e: pmlopt.least_leakage(p, pmlopt.ExpectedLoss(d), expected=e),
    ),
}
"""By name: the largest number of letters, the level that is timed (of `least` the expected loss), and what
builds the program of a prior, a utility, a distance of letters in steps over their number, and a level."""


def measure_kind(name: str, letters: int) -> float:
    """Return the least processor seconds of designs of a kind, the first one apart."""
    rng = np.random.default_rng(letters)
    law = rng.dirichlet(np.full(letters, 5.0))
    gains = rng.random((letters, letters))
    steps = np.abs(np.subtract.outer(np.arange(letters), np.arange(letters))) / letters
    (_, level, build), seconds = KINDS[name], list[float]()
    begin = time.monotonic()
    while len(seconds) < 4 or (len(seconds) < 31 and time.monotonic() - begin < MAX_SECONDS):
        started = time.process_time()
        program = build(pmlopt.Prior(law), pmlopt.ExpectedGain(gains), steps, level)
        assert pmlopt.solve(program).certificate.verify()
        seconds.append(time.process_time() - started)
    return min(seconds[1:])


def run_in_checkout(checkout: Path, script: str, *words: str) -> str:
    """Return what a script of this folder prints with the package and the tests' helpers of a checkout."""
    python = str(checkout / ".venv" / "bin" / "python")
    environment = {**os.environ, "PYTHONPATH": f"{checkout}:{checkout / 'tests'}"}
    return subprocess.run(
        [python, script, *words], env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def measure_in_checkout(checkout: Path, name: str, letters: int) -> float:
    """Return what `measure_kind` finds with the package of a checkout."""
    return float(run_in_checkout(checkout, __file__, "--measure", name, "--letters", str(letters)))


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
