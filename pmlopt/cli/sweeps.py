"""The command `sweep`: a problem at many values of one of its numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from pmlopt.cli.completion import list_problem_names
from pmlopt.cli.exits import NOT_SOLVED
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, SolverChoice, add_command, read_solver_options
from pmlopt.cli.printing import (
    format_number,
    open_console,
    print_exact_counts_warning,
    print_json,
    print_table,
)
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.published_priors import RoundCounts, read_published_law
from pmlopt.cli.reading import Minimise, OptionalUtility, read_numbers, read_utility
from pmlopt.cli.targets import check_distinct_targets, check_file_formats
from pmlopt.cli.terminal import print_line
from pmlopt.cli.worker_options import WorkerOptions
from pmlopt.core.files import disk
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.errors import InputError, SweepStoppedError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.programs.program import Program
    from pmlopt.sweeps import Sweep


UNASKED = PrivacyOptions()
"""What was required where no option was given."""


def design_at(
    asked: PrivacyOptions,
    prior: Prior,
    utility: Any,
    outputs: Any,
    given: Mapping[str, Any],
    epsilon: float,
) -> Program[Any]:
    """Build the design of the options at one epsilon, callable in workers.

    The utility is its name, or one from a file; `given` is what the requirement has besides its level.
    """
    from pmlopt.programs.designs import design

    program: Program[Any] = design(
        prior, asked.build_requirement(epsilon, prior, given), utility, outputs
    )
    return program


def problem_at(path: Path, content: bytes, **point: float) -> Program[Any]:  # noqa: ARG001
    """Build the program of a problem file with another number in it.

    Args:
        path: of the file.
        content: of the file, by which a sweep is known again.
        point: the number, by its key; `epsilon` is that of the requirement, where there is one.
    """
    from pmlopt.library import load
    from pmlopt.library.shorthand import FIELDS

    instance = load(path)
    ((name, value),) = point.items()
    requirement: Any = instance.arguments.get("privacy")
    if name == "epsilon" and isinstance(getattr(requirement, "epsilon", None), float):
        if hasattr(requirement, "at"):
            return instance.program(privacy=requirement.at(value))
        return instance.program(privacy=replace(requirement, epsilon=value))
    numbers = [one for one in instance.arguments if FIELDS.get(one) in (int, float)]
    if name not in numbers:
        known = f"its numbers are {', '.join(numbers)}" if numbers else "it has no number to vary"
        raise InputError(f"{path}: has no {name} to sweep over: {known}")
    whole = FIELDS[name] is int and value.is_integer()
    return instance.program(**{name: int(value) if whole else value})


@light_dataclass(frozen=True, kw_only=True)
class SweepOptions(SolverChoice):
    """The options of a sweep: solver and output table."""

    output: Annotated[
        Path | None,
        "Write the table: .csv, .json or .parquet. After a kill, the same command goes on.",
    ] = None
    mechanisms: Annotated[Path | None, "A folder for the mechanisms, with their certificates."] = (
        None
    )


_Epsilons: TypeAlias = Annotated[
    str | None,
    "The bounds, in nats: with commas between, or START:STOP:COUNT, both ends included.",
    "--epsilon",
]
_Values: TypeAlias = Annotated[
    str | None,
    "In place of --epsilon: a key of PROBLEM and its values, such as entropy=0,1,2 or threshold=1:5:5.",
    "--over",
]


@add_command(main, "sweep")
def sweep_command(
    asked: PrivacyOptions,
    run: SweepOptions,
    workers: WorkerOptions,
    epsilons: _Epsilons = None,
    values: _Values = None,
    problem: Annotated[str | None, ArgumentNote("[PROBLEM]", list_problem_names)] = None,
    utility_name: OptionalUtility = None,
    minimise: Minimise = False,
    round_counts: RoundCounts = False,
) -> None:
    """Solve a problem for many values of one of its numbers.

    Without PROBLEM, mechanisms are designed for the bounds of --epsilon. PROBLEM is a problem file (.toml),
    or the id of one in the library, in which --epsilon or --over replaces a number. Exits with 3 when a point
    could not be solved.
    """
    from pmlopt.sweeps import sweep

    check_distinct_targets([path for path in (run.output, run.plot) if path is not None])
    check_file_formats(None, run.plot)
    name, grid = _read_points(epsilons, values, problem)
    if problem is None:
        if utility_name is None:
            raise InputError(
                "give the utility by --utility, or a problem file with everything in it"
            )
        law = read_published_law(asked, round_counts)
        builder = _resolve_sweep_builder(asked, law, (utility_name, minimise), grid)
        people = law[0].samples
        if run.mechanisms is not None and people is not None:
            print_exact_counts_warning(run.mechanisms, people, "sweep with --round-counts")
    elif asked != UNASKED or utility_name is not None or minimise or round_counts:
        raise InputError(
            f"{problem} states the prior, the requirement and the utility: leave out their options"
        )
    else:
        builder, _ = find_builder(problem)
    builder(**{name: grid[0]})  # complains of what no point could be solved with
    try:
        with _show_progress() as progress, workers.open_executor() as executor:
            table = sweep(
                builder, {name: grid}, executor, out=run.output, mechanisms=run.mechanisms,
                solver=run.solver, tolerance=run.tolerance, time_limit=run.time_limit,
                solver_options=read_solver_options(run.solver_option) or None, progress=progress,
            )  # fmt: skip
    except SweepStoppedError as error:
        print_line(f"pmlopt: {error}", err=True)
        sys.exit(NOT_SOLVED)
    except KeyboardInterrupt:
        if run.output is not None:
            print_line(
                "pmlopt: what is finished is on disk: the same command goes on with it", err=True
            )
        raise
    if run.plot is not None:
        table.plot(run.plot)
    if not print_json("sweep", table.to_dict()):
        _print_sweep(table, name)
    unsolved = any(row.status in ("failed", "limit_reached", "violated") for row in table.rows)
    sys.exit(NOT_SOLVED if unsolved else 0)


def _read_points(
    epsilons: str | None, values: str | None, problem: str | None
) -> tuple[str, list[float]]:
    """Read the name of the number that a sweep varies, and its values."""
    if epsilons is not None and values is None:
        return "epsilon", read_grid(epsilons)
    name, equals, listed = (values or "").partition("=")
    if epsilons is not None or not equals or problem is None:
        raise InputError("give --epsilon VALUES, or with a PROBLEM --over NAME=VALUES")
    return name, read_grid(listed, f"--over {name}")


def read_grid(text: str, option: str = "--epsilon") -> list[float]:
    """Parse the values of a sweep: comma-separated numbers, or START:STOP:COUNT.

    Examples:
        >>> read_grid("0.1,0.5"), read_grid("0:1:5")
        ([0.1, 0.5], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    # Points of one sweep: at ten a second, three hours.
    most_points = 100_000
    if ":" not in text:
        return read_numbers(text, option)
    parts = text.split(":")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        count = 0
    if count > most_points:
        raise InputError(
            f"{option} {text!r}: has {count} points, and at most {most_points} are solved at once: split "
            "the range, or call pmlopt.sweep from Python"
        )
    if count < 1 or len(parts) != 3 or not math.isfinite(start) or not math.isfinite(stop):
        raise InputError(
            f"{option} {text!r}: give START:STOP:COUNT, such as 0.1:2:20, or a list with commas"
        )
    return [float(epsilon) for epsilon in np.linspace(start, stop, count)]


def _resolve_sweep_builder(
    asked: PrivacyOptions,
    law: tuple[Prior, Secret | None],
    asked_utility: tuple[str, bool],
    grid: Sequence[float],
) -> partial[Program[Any]]:
    """Validate a sweep's options, and return the builder of its programs."""
    prior, secret = law
    given = asked.read_fields(prior, secret)
    for (
        epsilon
    ) in grid:  # complains of one that cannot be, and of options that do not belong together
        asked.build_requirement(epsilon, prior, given)
    utility, outputs = read_utility(*asked_utility, prior)
    # named ones hold functions that do not pickle
    kept = asked_utility[0] if outputs is None else utility
    return partial(design_at, asked, prior, kept, outputs, given)


def find_builder(name: str) -> tuple[partial[Program[Any]], str]:
    """Return the builder of a problem (file or library id) as a function of a number, with its name."""
    from pmlopt.library import find

    path = find(name).path.resolve()
    return partial(problem_at, path, disk.read_bytes(path)), path.stem


@contextmanager
def _show_progress() -> Iterator[Callable[[int, int], None] | None]:
    """Show the number of finished points on a terminal, and yield the function that advances it."""
    if (console := open_console()) is None:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        line = bar.add_task("solving", total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)


def _print_sweep(table: Sweep, name: str) -> None:
    """Print one table row per sweep point, with the errors of failed ones."""
    head = [name, "status", "value", "gap", "leaks [nats]", "solver", "warm", "seconds"]
    print_table(head, [
        (
            format_number(row.point[name]), row.status, format_number(row.value),
            "" if row.gap is None else f"{row.gap:.1e}", format_number(row.level), row.solver or "",
            "yes" if row.warm_started else "", "" if row.seconds is None else f"{row.seconds:.3f}",
        )
        for row in table.rows
    ])  # fmt: skip
    for row in table.failed:
        print_line(f"{name} = {format_number(row.point[name])}: {row.error}")
