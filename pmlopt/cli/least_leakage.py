"""The commands about the least leakage: under floors on the utility, and for the worst case by rank."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pmlopt.cli.options import NOT_SOLVED, PATH, Run, code_of, exits, main, runs
from pmlopt.cli.printing import echo_json, nats, print_table, status
from pmlopt.cli.reading import read_linear, read_outputs, read_prior
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.program import Program
    from pmlopt.programs.least_leakage.thresholds import BestWorstCase, RankedResult

_prior_option = click.option(
    "--prior", "prior_file", type=PATH, required=True,
    help="CSV with a header and two columns: letter, and count or probability.",
)  # fmt: skip
_utility_option = click.option(
    "--utility", "utility_name", required=True, help="hamming, absolute, squared, or a CSV matrix of gains."
)
_minimise_option = click.option("--minimise", is_flag=True, help="The CSV matrix holds losses.")


@main.command("least-leakage")
@_prior_option
@_utility_option
@_minimise_option
@click.option("--expected", type=float, help="What the expected gain must reach, or the loss not exceed.")
@click.option("--worst", type=float, help="The same for every letter and output that can occur together.")
@click.option("--outputs", help="The outputs: their number, or their labels with commas between.")
@runs
@exits
def least_leakage(
    prior_file: Path,
    utility_name: str,
    minimise: bool,
    expected: float | None,
    worst: float | None,
    outputs: str | None,
    run: Run,
) -> None:
    """Find the least PML level at which a utility can be promised."""
    run.check()
    prior = read_prior(prior_file)
    utility, columns = read_linear(utility_name, minimise, prior)
    letters = read_outputs(outputs) if outputs is not None else columns

    def declare() -> Program:
        from pmlopt.programs.least_leakage.program import least_leakage as build

        return build(prior, utility, expected=expected, worst=worst, outputs=letters)

    result = run.solve(declare)
    run.show(result, f"Least leakage for {prior_file.name}")
    sys.exit(code_of(result))


@main.command("worst-case")
@_prior_option
@_utility_option
@_minimise_option
@click.option(
    "--ties", type=click.Choice(["first", "grouped"]), default="first", show_default=True,
    help="Equal utilities: the first output ranks lower, or they rank together.",
)  # fmt: skip
@click.option("--threshold", type=int, help="No output below this rank; left out, a table of all.")
@click.option("--epsilon", type=float, help="The highest threshold within this PML level, in nats.")
@runs
@exits
def worst_case(
    prior_file: Path,
    utility_name: str,
    minimise: bool,
    ties: Any,
    threshold: int | None,
    epsilon: float | None,
    run: Run,
) -> None:
    """Release no output of a low rank: 1 is each letter's worst output, and the most its best."""
    from pmlopt.utility.orders import utility_order

    if threshold is not None and epsilon is not None:
        raise InputError("--threshold and --epsilon both say which rank to keep: give one")
    run.check()
    prior = read_prior(prior_file)
    utility, columns = read_linear(utility_name, minimise, prior)
    outputs = prior.labels if columns is None else tuple(columns)
    order = utility_order(utility.gains(prior.labels, outputs), ties)

    def declare() -> Program:
        from pmlopt.programs.least_leakage.program import worst_case_utility

        assert threshold is not None
        return worst_case_utility(prior, order, threshold, outputs)

    if threshold is None and epsilon is None:
        _print_curve(prior, order, run)
        return
    best = None
    rows: list[tuple[str, str]] = []
    known: dict[str, Any] = {}
    if epsilon is not None:
        from pmlopt.programs.least_leakage.thresholds import best_worst_case

        with status("solving", run.as_json):
            best = best_worst_case(prior, order, epsilon, **run.options)
        threshold = best.threshold
        rows = [("next threshold", _next(best, epsilon))]
        known = {"next_bound": _finite(best.next_bound), "proved": best.proved}
    result = run.solve(declare, None if best is None else best.result)
    run.show(
        result,
        f"Worst case for {prior_file.name}",
        [("threshold", f"{threshold} of {len(outputs)}"), *rows],
        {"threshold": threshold, **known},
    )
    sys.exit(code_of(result))


def _next(best: BestWorstCase, epsilon: float) -> str:
    """Why there is no higher threshold."""
    if math.isinf(best.next_bound):
        return "none"
    told = "" if best.proved else f", which does not rule it out at {epsilon!r}"
    return f"leaks at least {nats(best.next_bound)}{told}"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _print_curve(prior: Any, order: Any, run: Run) -> None:
    from pmlopt.programs.least_leakage.thresholds import worst_case_curve

    if run.output is not None or run.mps is not None or run.plot is not None:
        raise InputError("a table of all thresholds has no one mechanism to write: give --threshold")
    with status("solving", run.as_json):
        points = worst_case_curve(prior, order, **run.options)
    if run.as_json:
        echo_json({"curve": [_record(point) for point in points]})
    else:
        head = ["threshold", "least leakage", "gap", "status"]
        print_table(head, [
            (str(p.threshold), nats(p.result.value), f"{p.result.gap:.1e}", p.result.status.value)
            for p in points
        ])  # fmt: skip
    sys.exit(max((code_of(point.result) for point in points), default=NOT_SOLVED))


def _record(point: RankedResult) -> dict[str, Any]:
    result = point.result
    return {
        "threshold": point.threshold,
        "status": result.status.value,
        "value": result.value,
        "bound": result.bound,
        "gap": result.gap,
    }
