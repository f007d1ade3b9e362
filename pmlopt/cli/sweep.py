"""The command that solves one design for many bounds on the leakage."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from pmlopt.cli.asked import Asked
from pmlopt.cli.options import (
    NOT_SOLVED,
    Arg,
    Json,
    Opt,
    Plot,
    Tolerance,
    check_distinct,
    check_targets,
    command,
    draw_curves,
    main,
)  # fmt: skip
from pmlopt.cli.printing import echo_json, number, print_table, say
from pmlopt.cli.reading import Minimise, read_numbers, read_utility
from pmlopt.cli.workers import Workers
from pmlopt.core import files
from pmlopt.errors import InputError, SweepStoppedError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.programs.program import Program
    from pmlopt.sweeps import Sweep

MOST_POINTS = 100_000
"""Points of one sweep: at ten a second, three hours."""

UNASKED = Asked()
"""What was asked where no option was given."""


@dataclass(frozen=True)
class DesignAt:
    """The design that options ask for, at one epsilon: called by the workers, so it pickles.

    The utility is its name, or one from a file; `given` is what the requirement has beside its level.
    """

    asked: Asked
    prior: Prior
    utility: Any
    outputs: Sequence[Any] | None
    given: Mapping[str, Any]

    def __call__(self, epsilon: float) -> Program[Any]:
        """Declare the program at this epsilon, in nats."""
        from pmlopt.programs.designs import design

        utility = self.utility
        if isinstance(utility, str):
            utility, _ = read_utility(utility, False, self.prior)
        privacy = self.asked.requirement(epsilon, self.prior, self.given)
        program: Program[Any] = design(self.prior, privacy, utility, self.outputs)
        return program


@dataclass(frozen=True)
class ProblemAt:
    """The design of a problem file, at another epsilon; a sweep tells files apart by their content."""

    path: Path
    content: bytes

    def __call__(self, epsilon: float) -> Program[Any]:
        """Declare the program at this epsilon, in nats."""
        from pmlopt.library import load

        instance = load(self.path)
        requirement: Any = instance.arguments.get("privacy")
        if not isinstance(getattr(requirement, "epsilon", None), float):
            raise InputError(f"{self.path}: its requirement has no epsilon to sweep over")
        if hasattr(requirement, "at"):
            return instance.program(privacy=requirement.at(epsilon))
        return instance.program(privacy=replace(requirement, epsilon=epsilon))


@dataclass(frozen=True)
class SweepRun:
    """How to solve the points, and where the table goes."""

    output: Annotated[Path | None, Opt(
        "Write the table: .csv, .json or .parquet. After a kill, the same command goes on.", "-o/--output"
    )]  # fmt: skip
    mechanisms: Annotated[Path | None, Opt("A folder for the mechanisms, with their certificates.")] = None
    solver: Annotated[str, Opt("As of pmlopt design.")] = "auto"
    time_limit: Annotated[float | None, Opt("Seconds for each solver and point.")] = None
    tolerance: Tolerance = None
    plot: Plot = None
    as_json: Json = False

    def check(self) -> None:
        """Complain of what cannot be written before any solver runs."""
        check_distinct([path for path in (self.output, self.plot) if path is not None])
        check_targets(None, self.plot)

    def table(
        self, builder: Callable[..., Program[Any]], epsilons: Sequence[float], workers: Workers
    ) -> Sweep:
        """Solve the design at every epsilon, and return the table."""
        from pmlopt.sweeps import sweep

        with _bar(self.as_json) as progress, workers.executor() as executor:
            return sweep(
                builder,
                {"epsilon": epsilons},
                executor,
                out=self.output,
                mechanisms=self.mechanisms,
                solver=self.solver,
                tolerance=self.tolerance,
                time_limit=self.time_limit,
                progress=progress,
            )


_Epsilons: TypeAlias = Annotated[str, Opt(
    "The bounds, in nats: with commas between, or START:STOP:COUNT, both ends included.", "--epsilon"
)]  # fmt: skip
_UtilityName: TypeAlias = Annotated[str | None, Opt(
    "hamming, absolute, squared (losses); mutual-information and other informations; a CSV matrix.",
    "--utility"
)]  # fmt: skip


@command(main, "sweep")
def sweep_command(
    asked: Asked,
    epsilons: _Epsilons,
    run: SweepRun,
    workers: Workers,
    problem: Annotated[str | None, Arg("[PROBLEM]")] = None,
    utility_name: _UtilityName = None,
    minimise: Minimise = False,
) -> None:
    """Design mechanisms for many privacy bounds.

    Each is optimal for its bound. The prior and the utility are those of the options, or of PROBLEM: a
    problem file (.toml), or the id of one in the library, with its epsilon replaced. Exits with 3 when a
    point could not be solved.
    """
    run.check()
    grid = read_grid(epsilons)
    builder: DesignAt | ProblemAt
    if problem is None:
        builder, utility = _asked(asked, utility_name, minimise, grid)
    elif asked != UNASKED or utility_name is not None or minimise:
        raise InputError(
            f"{problem} says the prior, the requirement and the utility: leave out their options"
        )
    else:
        builder, utility = problem_at(problem)
    builder(grid[0])  # complains of what no point could be solved with
    try:
        table = run.table(builder, grid, workers)
    except SweepStoppedError as error:
        say(f"pmlopt: {error}", err=True)
        sys.exit(NOT_SOLVED)
    except KeyboardInterrupt:
        if run.output is not None:
            say("pmlopt: what is finished is on disk: the same command goes on with it", err=True)
        raise
    if run.plot is not None:
        points = zip(table.column("epsilon").tolist(), table.column("value").tolist(), strict=True)
        draw_curves(run.plot, points, ["optimal"], utility)
    if run.as_json:
        echo_json(table.to_dict())
    else:
        _print(table)
    unsolved = any(row.status in ("failed", "stopped", "violated") for row in table.rows)
    sys.exit(NOT_SOLVED if unsolved else 0)


def read_grid(text: str) -> list[float]:
    """Read the grid of privacy bounds: numbers with commas between, or START:STOP:COUNT.

    Examples:
        >>> read_grid("0.1,0.5"), read_grid("0:1:5")
        ([0.1, 0.5], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    if ":" not in text:
        return read_numbers(text, "--epsilon")
    parts = text.split(":")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        count = 0
    if count > MOST_POINTS:
        raise InputError(
            f"--epsilon {text!r}: has {count} points, and at most {MOST_POINTS} are solved at once: split "
            "the range, or call pmlopt.sweep from Python"
        )
    if count < 1 or len(parts) != 3 or not math.isfinite(start) or not math.isfinite(stop):
        raise InputError(
            f"--epsilon {text!r}: give START:STOP:COUNT, such as 0.1:2:20, or a list with commas"
        )
    return [float(epsilon) for epsilon in np.linspace(start, stop, count)]


def _asked(
    asked: Asked, utility_name: str | None, minimise: bool, grid: Sequence[float]
) -> tuple[DesignAt, str]:
    if utility_name is None:
        raise InputError("give the utility by --utility, or a problem file with everything in it")
    prior = asked.prior()
    given = asked.given(prior)
    for epsilon in grid:  # complains of one that cannot be, and of options that do not belong together
        asked.requirement(epsilon, prior, given)
    utility, outputs = read_utility(utility_name, minimise, prior)
    kept = utility_name if outputs is None else utility  # named ones hold functions that do not pickle
    return DesignAt(asked, prior, kept, outputs, given), Path(utility_name).stem


def problem_at(name: str) -> tuple[ProblemAt, str]:
    """The design of a problem file, or of one of the library, at any level; and its name."""
    from pmlopt.library import find

    path = find(name).path.resolve()
    return ProblemAt(path, files.read_bytes(path)), path.stem


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A function that shows how many points are done, on a terminal; None elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("solving", total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)


def _print(table: Sweep) -> None:
    head = ["epsilon", "status", "value", "gap", "leaks [nats]", "solver", "warm", "seconds"]
    print_table(head, [
        (
            number(row.point["epsilon"]), row.status, number(row.value),
            "" if row.gap is None else f"{row.gap:.1e}", number(row.level), row.solver or "",
            "yes" if row.warm_started else "", "" if row.seconds is None else f"{row.seconds:.3f}",
        )
        for row in table.rows
    ])  # fmt: skip
    for row in table.failed:
        say(f"epsilon = {number(row.point['epsilon'])}: {row.error}")
