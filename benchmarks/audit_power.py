"""Samples that an audit needs, by Fisher's combination and by intervals of all entries.

For randomized response of N letters at LDP epsilon 1, with counts as they are expected: from how many samples
at each letter on the claim "0.2 nats below" is refuted, and the claim "0.2 nats above" is confirmed, at
confidence 0.95. The intervals are Clopper and Pearson's of all entries, each end wrong with probability
0.05 / (2 N M); both are guaranteed at any number of samples.

    python benchmarks/audit_power.py [--out FOLDER] [--quick]

Some seven minutes; `--quick` leaves the ten letters out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from common import report, suite_parser

from pmlopt.model.closed_forms import randomized_response
from pmlopt.model.uncertainty.confidence import binomial_intervals
from pmlopt.releases.estimation import level_from_samples
from pmlopt.releases.estimation.sampled_levels import Measure, _compute_ratios

MARGIN, CONFIDENCE = 0.2, 0.95
MOST = 2**24


def intervals_of_all_entries(
    p: np.ndarray, counts: np.ndarray, measure: Measure
) -> tuple[float, float]:
    """The ends of the level by simultaneous intervals of all entries."""
    rest = counts.sum(axis=1, keepdims=True) - counts
    ends = binomial_intervals(counts.ravel(), rest.ravel(), (1 - CONFIDENCE) / (2 * counts.size))
    lower, upper = (end.reshape(counts.shape) for end in ends)
    return (
        float(_compute_ratios(p, lower, upper, measure).max()),
        float(_compute_ratios(p, upper, lower, measure).max()),
    )


def first(holds: Callable[[int], bool]) -> int:
    """The least number at which a condition holds, up to one in a hundred."""
    high = 4
    while not holds(high):
        high *= 2
        if high > MOST:
            raise RuntimeError("no number of samples is enough")
    low = high // 2
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def ends_of(
    p: np.ndarray, counts: np.ndarray, measure: Measure, combined: bool
) -> tuple[float, float]:
    """The ends of the level, by Fisher's combination or by the intervals of all entries."""
    if not combined:
        return intervals_of_all_entries(p, counts, measure)
    found = level_from_samples(p, counts, CONFIDENCE, measure)
    return found.lower, found.upper


def samples_needed(size: int, measure: Measure, combined: bool) -> tuple[int, int]:
    """From how many samples the claim below the level is refuted, and the claim above it confirmed."""
    p, matrix = np.full(size, 1 / size), randomized_response(size, 1.0).matrix
    level = 1.0 if measure == "ldp" else math.log(size * matrix[0, 0])

    def ends(samples: int) -> tuple[float, float]:
        return ends_of(p, np.rint(samples * matrix), measure, combined)

    refuted = first(lambda samples: ends(samples)[0] > level - MARGIN)
    return refuted, first(lambda samples: ends(samples)[1] < level + MARGIN)


ENDS = ("intervals", "combined", "ratio")
HEAD = (
    "letters",
    "measure",
    *(f"{what}, {how}" for what in ("refuted", "confirmed") for how in ENDS),
)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    arguments = suite_parser(__doc__).parse_args(argv)
    measures: tuple[Measure, ...] = ("pml", "ldp")
    rows = []
    for size in (2, 4) if arguments.quick else (2, 4, 10):
        for measure in measures:
            row = [f"{size}", measure]
            old, new = (samples_needed(size, measure, combined) for combined in (False, True))
            for before, now in zip(old, new, strict=True):
                row += [f"{before}", f"{now}", f"{before / now:.1f}"]
            rows.append(row)
    report(arguments.out, "audit_power", HEAD, rows)


if __name__ == "__main__":
    main()
