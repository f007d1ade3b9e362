"""How far the leakage of a binary record is proved, over the number of outputs, by two kinds of simplices.

    python benchmarks/record_dimensions.py [--output FILE.png] [--csv FOLDER]
        [--seconds 20] [--largest 18] [--adversaries 500] [--quick]

The gap at b = (n - 1/2) log 2 after so many seconds, by simplices of posteriors and of class laws: the
weight of n records with Laplace noise at epsilon = 1, the quadratic query through a symmetric channel with
p = 0.2, and sums modulo m of six records with p = 0.3. Then parities and other queries of few values through
random mechanisms of many outputs, where class laws have fewer dimensions; and adversaries over all datasets
against bounds of both kinds. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from common import FloatArray, drawing, machine, report
from matplotlib.figure import Figure

from pmlopt import Result, queries, record_leakage, solve
from pmlopt.cli.printing import iterate_with_progress
from pmlopt.data.mechanism import MechanismLike
from pmlopt.model.queries import Explicit, ModularSum, Quadratic, Query, Weight
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)
from pmlopt.programs import BranchAndBound
from pmlopt.programs.plots import save_figure
from pmlopt.programs.record_leakage import branch_and_bound
from pmlopt.programs.record_leakage.certificate import RecordCertificate

Leakage = Result[RecordCertificate]
METHODS = {"posteriors": math.inf, "class laws": 0.0}
"""Up to how many outputs for each dimension of the laws of Y posteriors are taken."""
BIT = math.log(2)
LEAST_GAP = 1e-8
"""Below it a gap is drawn as this."""


def main(argv: Sequence[str] | None = None) -> None:
    """Draw the figure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("record-dimensions"))
    parser.add_argument(
        "--csv", type=Path, help="Write the points to CSV files in this folder, too."
    )
    parser.add_argument("--seconds", type=float, default=20.0, help="For each query and method.")
    parser.add_argument("--largest", type=int, default=18, help="The most outputs.")
    parser.add_argument(
        "--adversaries", type=int, default=500, help="Random cases over all datasets."
    )
    parser.add_argument("--quick", action="store_true", help="Few outputs, little time, few cases.")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.seconds, arguments.largest, arguments.adversaries = 0.5, 4, 5
    print(machine())
    begin = time.perf_counter()
    dimensions(arguments.largest, arguments.seconds, arguments.output, arguments.csv)
    print()
    many_outputs(arguments.largest, arguments.seconds, arguments.csv)
    print()
    adversaries(arguments.adversaries)
    print(f"\nThe whole run: {time.perf_counter() - begin:.0f} s")


def families(largest: int) -> dict[str, list[tuple[Query, MechanismLike]]]:
    """Queries with a mechanism each, by the number of outputs."""
    weights = [Weight(n) for n in (2, 3, 4, 5, 6, 8, 10, 12, 14, 17) if n < largest]
    quadratics = [Quadratic(n) for n in (3, 4, 5, 6, 7, 8, 9, 10) if n <= largest]
    sums = [ModularSum(6, m) for m in (3, 4, 5, 6) if m <= largest]
    return {
        "weight, Laplace": [(query, queries.laplace(query, 1.0)) for query in weights],
        "quadratic": [(query, queries.symmetric_channel(query, 0.2)) for query in quadratics],
        "sum modulo m of six": [(query, queries.symmetric_channel(query, 0.3)) for query in sums],
    }


def proved(query: Query, mechanism: MechanismLike, method: str, seconds: float) -> Leakage:
    """What one method proves at b = (n - 1/2) log 2."""
    program = record_leakage(query, mechanism, (query.records - 0.5) * BIT)
    with patch.object(branch_and_bound, "MAX_OUTPUTS_BY_DIMENSION", METHODS[method]):
        return solve(program, time_limit=seconds)


def dimensions(largest: int, seconds: float, output: Path, folder: Path | None) -> None:
    """The gap over the number of outputs."""
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    axes = figure.subplots()
    rows = []
    colours = ("tab:blue", "tab:orange", "tab:green")
    for (name, cases), colour in zip(families(largest).items(), colours, strict=True):
        for method, line in zip(METHODS, ("o-", "x:"), strict=True):
            found = [
                proved(*case, method, seconds)
                for case in iterate_with_progress(cases, len(cases), f"{name}, {method}")
            ]
            outputs = [result.certificate.channel.rows.shape[1] for result in found]
            gaps = [max(result.gap, LEAST_GAP) for result in found]
            axes.semilogy(outputs, gaps, line, color=colour, label=f"{name}, {method}")
            rows += [
                line_of(name, case[0], method, result)
                for case, result in zip(cases, found, strict=True)
            ]
    axes.set(xlabel="outputs", ylabel=f"gap [nats] after at most {seconds:g} s")
    axes.legend(frameon=False, fontsize="small")
    save_figure(figure, output)
    report(folder, "record-dimensions", HEAD, rows)


HEAD = ("query", "n", "outputs", "method", "leaks [nats]", "gap", "parts", "seconds", "status")


def line_of(name: str, query: Query, method: str, found: Leakage) -> list[Any]:
    """One row of a table."""
    return [
        name, query.records, found.certificate.channel.rows.shape[1], method, f"{found.value:.7f}",
        f"{found.gap:.0e}", found.iterations, f"{found.timings.total:.1f}", found.status.value,
    ]  # fmt: skip


def many_outputs(largest: int, seconds: float, folder: Path | None) -> None:
    """Queries of few values through random mechanisms of many outputs."""
    asked = [
        (query, outputs)
        for query in (ModularSum(6, 2), ModularSum(6, 3), Quadratic(4))
        for outputs in (3, 6, 9, 12, 18)
        if outputs <= largest
    ]
    rows = []
    for query, outputs in iterate_with_progress(asked, len(asked), "many outputs"):
        random = np.random.default_rng(outputs)
        matrix = random.dirichlet(np.full(outputs, 0.4), size=len(query.values))
        for method in METHODS:
            found = proved(query, matrix, method, seconds)
            rows.append(line_of(f"{len(query.values)} values", query, method, found))
    report(folder, "record-many-outputs", HEAD, rows)


# ---------------------------------------------------------------- adversaries over all datasets


def adversaries(cases: int) -> None:
    """The least distance of a bound from what an adversary over the simplex of all datasets reaches."""
    least, verified = math.inf, 0
    for seed in iterate_with_progress(range(cases), cases, "adversaries"):
        random = np.random.default_rng(seed)
        shapes = ((2, 2), (2, 2, 2), (3, 2), (3, 3), (2, 2, 3), (3, 3, 3))
        alphabets = shapes[seed % len(shapes)]
        size = math.prod(alphabets)
        rows = random.dirichlet(np.full(int(random.integers(2, 5)), 0.6), size=size)
        entropy = float(random.uniform(0, 0.98)) * math.log(size)
        program = record_leakage(Explicit(np.arange(size).reshape(alphabets)), rows, entropy)
        nodes = (None, 1, 10)[seed // len(shapes) % 3]
        with patch.object(branch_and_bound, "MAX_OUTPUTS_BY_DIMENSION", 3 * (seed // 2 % 2)):
            found = solve(program, solver=BranchAndBound(nodes), tolerance=1e-3, time_limit=2)
        verified += found.certificate.verify()
        reached = max(
            attack(random, rows, alphabets, record, entropy) for record in range(len(alphabets))
        )
        least = min(least, found.bound - reached)
    print(f"{cases} adversaries over all datasets: the bound is above each by at least {least:.1e} nats; "
          f"{verified} certificates hold")  # fmt: skip


def attack(
    random: np.random.Generator,
    rows: FloatArray,
    alphabets: Sequence[int],
    record: int,
    entropy: float,
) -> float:
    """The most that some priors on all datasets, each improved, leak of a record; no datasets are merged.

    A prior is improved by steps along the slope of I, as logarithms, mixed with the uniform prior until its
    entropy is b.
    """
    size = len(rows)
    members = np.eye(alphabets[record])[np.indices(alphabets)[record].ravel()].T
    counts = np.where(members > 0, 0.0, -np.inf)
    best = 0.0
    for _ in range(4):
        prior = allowed(random.dirichlet(np.full(size, 0.2)), entropy)
        value = compute_record_information(members * prior, rows)
        step = 1.0
        for _ in range(60):
            law = members * prior @ rows
            apart = law.sum(axis=1, keepdims=True) * law.sum(axis=0)
            ratio = np.log(np.maximum(law, 1e-300) / np.maximum(apart, 1e-300))
            slope = (rows * (members.T @ ratio)).sum(axis=1)
            moved = prior * np.exp(step * (slope - slope.max()))
            moved = allowed(moved / moved.sum(), entropy)
            found = compute_record_information(members * moved, rows)
            prior, value, step = (
                (moved, found, 1.5 * step) if found > value else (prior, value, step / 3)
            )
        assert compute_dataset_entropy(members * prior, counts) >= entropy - 1e-12
        best = max(best, value)
    return best


def allowed(prior: FloatArray, entropy: float) -> FloatArray:
    """The prior mixed with the uniform one until its entropy is large enough."""

    def uncertain(share: float) -> float:
        mixed = (1 - share) * prior + share / len(prior)
        return float(-(mixed * np.log(np.maximum(mixed, 1e-300))).sum())

    if uncertain(0.0) >= entropy:
        return prior
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if uncertain(middle) >= entropy else (middle, high)
    return np.asarray((1 - high) * prior + high / len(prior))


if __name__ == "__main__":
    main()
