"""Two writers on one ledger, killed at random moments: nothing is lost, and nothing counted twice.

    python benchmarks/ledger_writers.py [--runs 100] [--releases 8] [--seed 0]

In each run two processes record releases of their own in one ledger, and publish a file with each, as
`pmlopt apply --ledger` does. They are killed (SIGKILL) at random moments and begun again until both are done.
Then the ledger must hold each release once, whether its writer lived to acknowledge it or not, the files must
be those of the releases, and the level must be that of all releases recorded by one process.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import common  # noqa: F401 - finds what the tests share
import numpy as np
from fuzzing.ledger_writers import run


def main(argv: Sequence[str] | None = None) -> None:
    """Do the runs, and print how often a writer was killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--releases", type=int, default=8, help="of each writer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="two runs")
    arguments = parser.parse_args(argv)
    runs = 2 if arguments.quick else arguments.runs
    told: Counter[str] = Counter()
    start = time.perf_counter()
    for number in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            told += run(
                Path(folder), arguments.releases, np.random.default_rng([arguments.seed, number])
            )
    print(
        f"{runs} runs in {time.perf_counter() - start:.0f} s: {told['killed']} writers killed, "
        f"{told['acknowledged']} releases acknowledged, none lost and none counted twice"
    )


if __name__ == "__main__":
    main()
