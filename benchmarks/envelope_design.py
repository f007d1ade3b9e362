"""Designs within an envelope: what they gain over PML and approximate PML, and how often they are proved.

    python benchmarks/envelope_design.py [--draws 60] [--letters 2 3 4 6] [--seed 0]

First guesses of the letter (Hamming loss) under a few priors; then random gains with as many outputs as
letters, on Dirichlet priors, epsilon in (0.1, 1.5), at some delta: how many are proved, and the gaps as
shares of the range of the utility.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import machine, table

from pmlopt import PML, ApproximatePML, ExpectedGain, ExpectedLoss, design, envelope_design, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.measures import envelope_slack
from pmlopt.model.utility import hamming
from pmlopt.programs import Status

PRIORS = {
    "0.8, 0.2": [0.8, 0.2],
    "0.5, 0.5": [0.5, 0.5],
    "0.4, 0.3, 0.2, 0.1": [0.4, 0.3, 0.2, 0.1],
    "0.7, 0.1, 0.1, 0.05, 0.05": [0.7, 0.1, 0.1, 0.05, 0.05],
    "4 x 0.25": [0.25] * 4,
    "20 x 0.05": [0.05] * 20,
}
DELTAS = (0.01, 0.05, 0.3)
EPSILON = 0.5

GUESSES_HEAD = (
    "prior",
    "delta",
    "PML",
    "approximate PML",
    "within the envelope",
    "bound",
    "gap",
    "programs",
)
STUDY_HEAD = (
    "letters", "delta", "designs", "proved", "gain over PML: mean", "largest", "gap: mean", "largest",
    "median [s]", "longest [s]",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--letters", type=int, nargs="*", default=[2, 3, 4, 6])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    print(machine())
    table(GUESSES_HEAD, [guesses(name, delta) for name in PRIORS for delta in DELTAS])
    print()
    for size in arguments.letters:
        table(STUDY_HEAD, [study(size, delta, arguments.draws, arguments.seed) for delta in DELTAS])
        print(flush=True)


def guesses(name: str, delta: float) -> list[Any]:
    """One row: the Hamming loss under the three requirements."""
    prior, loss = PRIORS[name], ExpectedLoss(hamming)
    plain = solve(design(prior, PML(EPSILON), loss))
    slack = envelope_slack(len(prior), EPSILON, delta)
    approximate = solve(design(prior, ApproximatePML(0.0, slack), loss))
    found = solve(envelope_design(prior, EPSILON, delta, loss))
    assert found.certificate.verify()
    return [
        name, delta, f"{plain.value:.6f}", f"{approximate.value:.6f}", f"{found.value:.6f}",
        f"{found.bound:.6f}", f"{found.gap:.0e}", found.iterations,
    ]  # fmt: skip


def study(size: int, delta: float, draws: int, seed: int) -> list[Any]:
    """One row: random gains on random priors."""
    ahead, gaps, seconds, proved = [], [], [], 0
    for number in iterate_with_progress(range(draws), draws, f"{size} letters, delta {delta:g}"):
        rng = np.random.default_rng([seed, size, number])
        prior, gains = rng.dirichlet(np.ones(size)), ExpectedGain(rng.random((size, size)))
        epsilon = float(rng.uniform(0.1, 1.5))
        program = envelope_design(prior, epsilon, delta, gains)
        found = solve(program)
        assert found.certificate.verify()
        plain = solve(design(prior, PML(epsilon), gains))
        ahead.append((found.value - plain.value) / program.scale)
        gaps.append(found.gap / program.scale)
        seconds.append(found.timings.total)
        proved += found.status is Status.OPTIMAL
    return [
        size, delta, draws, proved, f"{np.mean(ahead):.2g}", f"{max(ahead):.2g}", f"{np.mean(gaps):.1g}",
        f"{max(gaps):.1g}", f"{np.median(seconds):.2f}", f"{max(seconds):.1f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
