"""Additive noise next to the least loss at the same level, and its claims against brute force.

Five laws on letters, one on an interval, and three levels: the mean distance between a number and its
release, by the optimal mechanism (`design`, with the letters or points of the interval as outputs), by
geometric or Laplace noise whose outcomes are clipped to the range of the letters, the same with each outcome
replaced by the best letter, and by noise of the scale of local differential privacy. The figure of
`benchmarks/figures.py` is drawn from the table, kept in benchmarks/data.

    python benchmarks/additive_noise.py [--out FOLDER] [--quick] [--claims N] [--seed S]

`--claims N` checks N random laws, of the seeds from S on, against enumeration, sixty digits, quadrature and
counts of draws instead.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from additive_noise_claims import CLAIMS
from common import FloatArray, report
from scipy.stats import binom, norm

from pmlopt import PML, Continuous, DistanceLoss, Mechanism, Prior, design, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.core.display import get_figure_class
from pmlopt.releases.noise import Geometric, Laplace

LEVELS = (0.25, 0.5, 1.0)
HEAD = ("law", "epsilon", "scale", "LDP scale", "design", "best letter", "noise", "LDP noise")


def list_laws() -> dict[str, Prior]:
    """The five laws, on whole numbers."""
    twelve = np.arange(12)
    shapes = {
        "uniform on 12": np.ones(12),
        "binomial(11, 1/2)": binom.pmf(twelve, 11, 0.5),
        "falling by a third": (2 / 3) ** twelve,
        "two groups": np.exp(-((twelve - 1.5) ** 2)) + np.exp(-((twelve - 9.5) ** 2)) + 0.01,
        "one of 12 at 1/2": np.where(twelve == 3, 11.0, 1.0),
    }
    return {name: Prior(shape / shape.sum(), twelve.tolist()) for name, shape in shapes.items()}


def read_numbers(labels: Sequence[Any]) -> FloatArray:
    """Labels as numbers."""
    return np.array(labels, dtype=float)


def expected_distance(prior: Prior, mechanism: Mechanism) -> float:
    """The mean distance between letter and output."""
    apart = np.abs(np.subtract.outer(read_numbers(prior.labels), read_numbers(mechanism.outputs)))
    return float((prior.pmf[:, None] * mechanism.matrix * apart).sum())


def best_letter_distance(prior: Prior, mechanism: Mechanism) -> float:
    """The same with each output replaced by the letter that is nearest in the mean."""
    numbers = read_numbers(prior.labels)
    apart = np.abs(np.subtract.outer(numbers, numbers))
    joint = prior.pmf[:, None] * mechanism.matrix
    return float((apart.T @ joint).min(axis=0).sum())


def compare(name: str, prior: Prior, epsilon: float) -> tuple[object, ...]:
    """A row of the table."""
    labels = [int(label) for label in prior.labels if isinstance(label, int)]
    spread = max(labels) - min(labels)
    noise, local = Geometric.calibrate(prior, epsilon), Geometric(spread / epsilon)
    least = solve(design(prior, PML(epsilon), "absolute")).value
    own, other = noise.to_mechanism(prior), local.to_mechanism(prior)
    assert noise.level(prior) <= epsilon
    found = (
        abs(least), best_letter_distance(prior, own), expected_distance(prior, own),
        expected_distance(prior, other),
    )  # fmt: skip
    return name, epsilon, *(f"{one:.4f}" for one in (noise.scale, local.scale, *found))


def clipped_distance(masses: FloatArray, places: FloatArray, scale: float, high: float) -> float:
    """The mean distance of Laplace noise clipped to 0 and a number, at places between."""
    lost = np.exp(-places / scale) + np.exp(-(high - places) / scale)
    return float(masses @ (scale / 2 * (2 - lost)))


def compare_interval(epsilon: float) -> tuple[object, ...]:
    """A row of the table for a number on an interval: age, normal and cut off at 0 and 100."""
    age = Continuous(norm(40, 15), support=(0, 100))
    noise, local = Laplace.calibrate(age, epsilon), Laplace(100 / epsilon)
    least = solve(design(age, PML(epsilon), DistanceLoss())).value
    assert noise.level(age) <= epsilon
    prior = age.prior(age.even(500))
    places = read_numbers(prior.labels)
    binned = noise.bin_outcomes(prior, np.linspace(0, 100, 501))
    found = (
        abs(least), best_letter_distance(prior, binned),
        clipped_distance(prior.pmf, places, noise.scale, 100.0),
        clipped_distance(prior.pmf, places, local.scale, 100.0),
    )  # fmt: skip
    numbers = (f"{one:.4f}" for one in (noise.scale, local.scale, *found))
    return "normal on 0 to 100", epsilon, *numbers


def main(argv: Sequence[str] | None = None) -> None:
    """The table, or the claims."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, help="a folder for additive-noise.csv and its plot")
    parser.add_argument("--quick", action="store_true", help="two laws at one level")
    parser.add_argument("--claims", type=int, default=0, metavar="N", help="check N random laws")
    parser.add_argument("--seed", type=int, default=0, help="the first seed of the claims")
    asked = parser.parse_args(argv)
    if asked.claims:
        report(asked.out, "additive-noise-claims", ("claim", "found"),
               [(name, claim(asked.claims, asked.seed)) for name, claim in CLAIMS.items()])  # fmt: skip
        return
    laws = list(list_laws().items())[: 2 if asked.quick else None]
    cases = [(*law, epsilon) for law in laws for epsilon in LEVELS[: 1 if asked.quick else None]]
    rows = [compare(*case) for case in iterate_with_progress(cases, len(cases), "laws")]
    if not asked.quick:
        rows += [compare_interval(epsilon) for epsilon in LEVELS]
    report(asked.out, "additive-noise", HEAD, rows)
    if asked.out is not None:
        plot(rows, asked.out / "additive-noise.png")


def plot(rows: Sequence[tuple[object, ...]], path: Path) -> None:
    """Draw the ratio of the losses over the level."""
    figure = get_figure_class()(figsize=(6, 4), layout="constrained")
    panel = figure.subplots()
    for name in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == name]
        ratio = [float(str(row[6])) / max(float(str(row[4])), math.ulp(1.0)) for row in own]
        panel.plot([float(str(row[1])) for row in own], ratio, "o-", label=str(name))
    panel.set(xlabel="epsilon [nats]", ylabel="mean distance over the least", xscale="log")
    panel.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main()
