"""The commands about the least leakage: under floors on the utility, and for the worst case by rank."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pmlopt.cli.asked import AskedSet
from pmlopt.cli.data import ColumnOptions, PriorFile
from pmlopt.cli.options import NOT_SOLVED, Opt, Run, code_of, command, main
from pmlopt.cli.printing import echo_json, nats, print_table, solved_in_turn, status
from pmlopt.cli.reading import LinearName, Minimise, Outputs, read_linear, read_outputs
from pmlopt.errors import InputError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.model.uncertainty import PriorSet
    from pmlopt.programs.program import Program
    from pmlopt.programs.result import Result
    from pmlopt.programs.worst_case.certificate import ThresholdCertificate


@command(main, "least-leakage")
def least_leakage(
    prior_file: PriorFile,
    source: ColumnOptions,
    utility_name: LinearName,
    run: Run,
    minimise: Minimise = False,
    expected: Annotated[
        float | None, Opt("What the expected gain must reach, or the loss not exceed.")
    ] = None,
    worst: Annotated[
        float | None, Opt("The same for every letter and output that can occur together.")
    ] = None,
    outputs: Outputs = None,
) -> None:
    """Find the least level that allows a utility.

    It is the least PML level, in nats, at which the utility can be promised.
    """
    run.check([prior_file, Path(utility_name)])
    prior = source.prior(prior_file)
    utility, columns = read_linear(utility_name, minimise, prior)
    letters = read_outputs(outputs, prior.labels) if outputs is not None else columns

    def declare() -> Program[Any]:
        from pmlopt.programs.least_leakage.program import least_leakage as build

        return build(prior, utility, expected=expected, worst=worst, outputs=letters)

    run.answer(declare, f"Least leakage for {prior_file.name}")


@command(main, "worst-case")
def worst_case(
    prior_file: PriorFile,
    source: ColumnOptions,
    utility_name: LinearName,
    around: AskedSet,
    run: Run,
    minimise: Minimise = False,
    ties: Annotated[
        Literal["first", "grouped"],
        Opt("Equal utilities: the first output ranks lower, or they rank together."),
    ] = "first",
    threshold: Annotated[int | None, Opt("No output below this rank; left out, a table of all.")] = None,
    epsilon: Annotated[float | None, Opt("The highest threshold within this PML level, in nats.")] = None,
) -> None:
    """Release no output of a low rank.

    Rank 1 is each letter's worst output, and the highest rank its best.
    """
    from pmlopt.model.utility.orders import utility_order

    if threshold is not None and epsilon is not None:
        raise InputError("--threshold and --epsilon both say which rank to keep: give one")
    around.check()
    run.check([prior_file, Path(utility_name)])
    prior = source.prior(prior_file)
    over = around.priors(prior, prior)
    utility, columns = read_linear(utility_name, minimise, prior)
    outputs = prior.labels if columns is None else tuple(columns)
    order = utility_order(utility.gains(prior.labels, outputs), ties)

    if threshold is None and epsilon is None:
        _print_thresholds(prior, order, over, run)
        return

    def declare() -> Program[Any]:
        from pmlopt.programs.least_leakage.program import worst_case_utility
        from pmlopt.programs.worst_case.program import best_worst_case

        if epsilon is not None:
            return best_worst_case(prior, order, epsilon, outputs, over)
        assert threshold is not None
        return worst_case_utility(prior, order, threshold, outputs, over)

    result = run.solve(declare)
    kept = threshold if threshold is not None else int(result.value)
    rows = [("threshold", f"{kept} of {len(outputs)}")]
    known: dict[str, Any] = {"threshold": kept}
    if epsilon is not None:
        rows.append(("next threshold", _next(result, epsilon)))
        known |= {"next_bound": finite(result.certificate.next_bound), "proved": result.gap == 0}
    run.show(result, f"Worst case for {prior_file.name}", rows, known)
    sys.exit(code_of(result))


def _next(result: Result[ThresholdCertificate], epsilon: float) -> str:
    """Why there is no higher threshold."""
    beyond = result.certificate.next_bound
    if result.gap > 0:
        return f"{result.bound:.0f} is not ruled out at {epsilon!r}"
    return "none" if math.isinf(beyond) else f"leaks at least {nats(beyond)}"


def _print_thresholds(prior: Any, order: Any, over: PriorSet | None, run: Run) -> None:
    """The least leakage for every threshold, from the highest down: what it allows is allowed below."""
    from pmlopt.programs.least_leakage.certificate import highest_rank
    from pmlopt.programs.least_leakage.program import worst_case_utility

    if run.output is not None or run.mps is not None or run.plot is not None:
        raise InputError("a table of all thresholds has no one mechanism to write: give --threshold")
    ranks = range(highest_rank(order, over), 0, -1)
    with status("solving", run.as_json):
        outputs = order.shape[1]
        programs = (worst_case_utility(prior, order, threshold, outputs, over) for threshold in ranks)
        rows = list(zip(ranks, solved_in_turn(programs, **run.options), strict=True))[::-1]
    closed = range(len(rows) + 1, highest_rank(order) + 1)
    if run.as_json:
        names = ("value", "bound", "gap")
        echo_json({"curve": [
            {"threshold": threshold, "status": result.status.value, **{n: getattr(result, n) for n in names}}
            for threshold, result in rows
        ]})  # fmt: skip
    else:
        print_table(["threshold", "least leakage", "gap", "status"], [
            (str(threshold), nats(result.value), f"{result.gap:.1e}", result.status.value)
            for threshold, result in rows
        ] + [(str(threshold), "none is finite", "", "") for threshold in closed])  # fmt: skip
    sys.exit(max((code_of(result) for _, result in rows), default=NOT_SOLVED))
