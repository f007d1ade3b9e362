"""Frequencies from releases: designs beside the literature's, error against people, coverage.

    python benchmarks/estimation_designs.py [--output FILE.png] [--csv FILE]
        [--runs 10000] [--letters 16]

First the summed variance of prefix sums under LDP, for given people, beside the values that
the program of [mckenna2020workload] finds (27.84, 2.391 and 55.10: its least of three starts), randomized
response, subset selection, two unary encodings and Hadamard response. Then the root mean square error of the
frequencies of education (Adult data) at epsilon = 1 against the number of people, of maximum likelihood.
Last how often intervals hold: of estimates and of levels from samples. Needs the extra `plots`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
from common import drawing, table, write_csv
from matplotlib.figure import Figure
from scipy.linalg import hadamard

from pmlopt import (
    LDP,
    PML,
    EstimationError,
    Mechanism,
    Prior,
    design,
    estimate,
    leakage_level,
    solve,
)
from pmlopt.library import find
from pmlopt.model.closed_forms import randomized_response, subset_selection
from pmlopt.programs.plots import save_figure
from pmlopt.releases.estimation import level_from_samples, samples_to_refute
from pmlopt.releases.estimation.frequencies import maximize_likelihood

PEER = ((8, 1.0, 27.84), (8, 3.0, 2.391), (12, 1.0, 55.10))
"""Letters, epsilon, and the summed variance of prefix sums that the program of mckenna2020workload finds."""

PEOPLE = (1_000, 3_000, 10_000, 30_000, 100_000)
CONFIDENCE = 0.95


def main(argv: Sequence[str] | None = None) -> None:
    """Print the comparisons, and draw the error against the number of people."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=drawing("estimation_designs"))
    parser.add_argument("--csv", type=Path, help="Write the errors, too.")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument(
        "--letters", type=int, default=16, help="Levels of education, the commonest."
    )
    parser.add_argument(
        "--without-list",
        type=int,
        nargs="*",
        default=[20, 24, 32, 60, 100],
        help="Letters of designs without a list.",
    )
    arguments = parser.parse_args(argv)
    compare_prefix_sums()
    without_list(arguments.without_list)
    study(arguments.letters, max(20, arguments.runs // 100), arguments.output, arguments.csv)
    coverage(arguments.runs)


def unary(size: int, stays: float, appears: float) -> Mechanism:
    """Unary encoding: a bit for each letter, one with probability `stays` for the input, else `appears`."""
    bits = np.array(list(product((0, 1), repeat=size)), dtype=float)
    other = np.where(bits == 1, appears, 1 - appears).prod(axis=1)
    own = np.where(bits == 1, stays / appears, (1 - stays) / (1 - appears))
    return Mechanism((other[:, None] * own).T)


def hadamard_response(size: int, epsilon: float) -> Mechanism:
    """Hadamard response: the outputs where the input's row of a Hadamard matrix is one are likelier."""
    outputs = 2 ** math.ceil(math.log2(size + 1))
    rows = hadamard(outputs)[1 : size + 1]
    matrix = np.where(rows > 0, math.exp(epsilon), 1.0)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True))


def literature(
    size: int, epsilon: float, error: EstimationError, prior: Prior
) -> dict[str, Mechanism]:
    """The mechanisms of the literature within epsilon-LDP that have a matrix of a moderate size."""
    half, up = math.exp(epsilon / 2), math.exp(epsilon)
    sets = [d for d in range(1, size) if math.comb(size, d) <= 5_000]
    best = min(
        (subset_selection(size, d, epsilon) for d in sets),
        key=lambda found: error.value(prior, found),
    )
    found = {"randomized response": randomized_response(size, epsilon), "subset selection": best}
    if size <= 12:
        found["unary encoding, symmetric"] = unary(size, half / (half + 1), 1 / (half + 1))
        found["unary encoding, optimized"] = unary(size, 0.5, 1 / (up + 1))
    return {**found, "Hadamard response": hadamard_response(size, epsilon)}


def compare_prefix_sums() -> None:
    """Summed variance of prefix sums for given people: the value without the variance of who they are."""
    error, rows = EstimationError("prefix"), []
    for size, epsilon, theirs in PEER:
        prior = Prior.uniform(size)
        wanted = error.build_combinations(prior)
        own = float((wanted**2).sum(axis=0) @ prior.pmf - ((wanted @ prior.pmf) ** 2).sum())
        begin = time.perf_counter()
        result = solve(design(prior, LDP(epsilon), error))
        seconds = time.perf_counter() - begin
        others = literature(size, epsilon, error, prior)
        numbers = [result.value - own, result.bound - own, theirs]
        numbers += [error.value(prior, mechanism) - own for mechanism in others.values()]
        rows.append(
            [f"{size}", f"{epsilon:g}", *(f"{number:.4g}" for number in numbers), f"{seconds:.2f}"]
        )
    table(("N", "epsilon", "optimal", "bound", "mckenna2020workload", *others, "seconds"), rows)


def without_list(sizes: Sequence[int]) -> None:
    """Values and bounds where the extreme columns are searched, at even and at drawn masses."""
    rows = []
    for size in sizes:
        drawn = np.sort(np.random.default_rng(1).dirichlet(np.full(size, 2.0)))[::-1]
        for name, prior in (("uniform", Prior.uniform(size)), ("drawn", Prior(drawn))):
            for privacy in (PML(1.0), LDP(1.0)):
                for error in (
                    EstimationError(),
                    EstimationError("prefix"),
                    EstimationError(criterion="D"),
                ):
                    begin = time.process_time()
                    program = design(prior, privacy, error)
                    if program.columns.is_complete:
                        continue
                    found = solve(program)
                    seconds = time.process_time() - begin
                    asked = "D" if error.criterion == "D" else error.workload or "identity"
                    numbers = (
                        f"{found.value:.6g}",
                        f"{found.bound:.6g}",
                        f"{found.gap / program.scale:.1e}",
                    )
                    rows.append(
                        [f"{size}", name, privacy.name, str(asked), *numbers, f"{seconds:.1f}"]
                    )
    table(
        ("N", "prior", "requirement", "error", "value", "bound", "gap / scale", "CPU seconds"), rows
    )


def study(letters: int, runs: int, output: Path, csv: Path | None) -> None:
    """Root mean square error of the frequencies of education against people, at epsilon = 1."""
    counts = find("adult-education-hamming").prior.counts or ()
    prior, error = Prior.from_counts(sorted(counts, reverse=True)[:letters]), EstimationError()
    contestants = {
        "PML, optimal": solve(design(prior, PML(1.0), error)).mechanism,
        "LDP, optimal": solve(design(prior, LDP(1.0), error)).mechanism,
        **literature(letters, 1.0, error, prior),
    }
    rng, names, rows = np.random.default_rng(0), list(contestants), []
    for mechanism in contestants.values():
        law, errors = prior.pmf @ mechanism.matrix, []
        for people in PEOPLE:
            samples = rng.multinomial(people, law / law.sum(), runs)
            found = np.array(
                [maximize_likelihood(mechanism.matrix, sample.astype(float)) for sample in samples]
            )
            errors.append(math.sqrt(((found - prior.pmf) ** 2).sum(axis=1).mean()))
        rows.append([math.sqrt(error.value(prior, mechanism)), *errors])
    head = ("mechanism", "sqrt(value)", *(f"n = {people:,}" for people in PEOPLE))
    table(head, [[names[k], *(f"{number:.4g}" for number in rows[k])] for k in range(len(rows))])
    if csv is not None:
        write_csv(csv, head, [[name, *row] for name, row in zip(names, rows, strict=True)])
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, row in zip(names, rows, strict=True):
        axes.loglog(PEOPLE, row[1:], marker="o", label=name)
    axes.set_xlabel("people")
    axes.set_ylabel("root mean square error of the frequencies")
    axes.set_title(f"Adult data, {letters} levels of education, epsilon = 1, {runs} runs")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
    save_figure(figure, output)


def coverage(runs: int) -> None:
    """How often intervals hold, and how far the mean of linear estimates is from the truth."""
    rng, prior = np.random.default_rng(1), Prior([0.4, 0.3, 0.2, 0.1])
    mechanism = solve(design(prior, PML(0.8), EstimationError())).mechanism
    law, people, few = prior.pmf @ mechanism.matrix, 500, max(20, runs // 5)
    found = [
        estimate(mechanism, counts, "linear")
        for counts in rng.multinomial(people, law / law.sum(), few)
    ]
    values = np.array([one.frequencies for one in found])
    off = np.abs(values.mean(axis=0) - prior.pmf) / (values.std(axis=0, ddof=1) / math.sqrt(few))
    ends = np.array([one.intervals for one in found])
    held = ((ends[:, :, 0] <= prior.pmf) & (prior.pmf <= ends[:, :, 1])).all(axis=1)
    rows = [
        ["linear estimate, bias over its standard error, largest", f"{few}", f"{off.max():.2f}"],
        [f"exact intervals of {people} people hold together", f"{few}", f"{np.mean(held):.4f}"],
    ]
    level = leakage_level(prior, mechanism)
    needed = samples_to_refute(prior, mechanism, level - 0.2)
    inside, caught = 0, 0
    for _ in range(runs):
        sampled = level_from_samples(
            prior,
            [rng.multinomial(needed, row / row.sum()) for row in mechanism.matrix],
            CONFIDENCE,
        )
        inside += sampled.lower <= level <= sampled.upper
        caught += sampled.refutes(level - 0.2)
    rows += [
        [
            f"level from {needed} samples at each letter in its interval",
            f"{runs}",
            f"{inside / runs:.4f}",
        ],
        ["claim broken by 0.2 nats caught", f"{runs}", f"{caught / runs:.4f}"],
    ]
    table(("what", "runs", "measured"), rows)


if __name__ == "__main__":
    main()
