"""Commands for queries on many records, and sweeps over privacy bounds."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import numpy as np

from pmlopt.cli.completion import list_problem_names, list_utility_names
from pmlopt.cli.options import (
    CLAIM_FAILS,
    NOT_SOLVED,
    ArgumentNote,
    Json,
    OptionNote,
    Plot,
    SolverChoice,
    add_command,
    draw_curves,
    exit_code_of,
    main,
    read_solver_options,
)
from pmlopt.cli.printing import (
    format_nats,
    format_number,
    open_console,
    print_exact_counts_warning,
    print_json,
    print_line,
    print_matrix,
    print_results,
    print_table,
    show_status,
    solve_from_largest,
    solve_in_turn,
)  # fmt: skip
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.published_priors import RoundCounts, read_published_law
from pmlopt.cli.reading import Minimise, read_numbers, read_utility
from pmlopt.cli.targets import TARGET, check_distinct_targets, check_file_formats
from pmlopt.cli.worker_options import WorkerOptions
from pmlopt.core import files
from pmlopt.errors import InputError, SweepStoppedError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.model.queries import Query
    from pmlopt.programs.program import Program
    from pmlopt.programs.record_leakage.certificate import RecordCertificate
    from pmlopt.programs.result import Result
    from pmlopt.sweeps import Sweep


LEAKAGE = "leakage per record [nats]"


@dataclass(frozen=True)
class QueryOptions:
    """The options of a query."""

    query_name: Annotated[Literal["modular-sum", "weight", "quadratic"], OptionNote(
        "What it answers: a sum modulo m, the weight of binary records, or sum_{i<j} x_i x_j.", "--query"
    )]  # fmt: skip
    records: Annotated[int, OptionNote("n, the number of records.")]
    modulus: Annotated[int | None, OptionNote("m of the modular sum; 2 is the parity.")] = None
    letters: Annotated[int, OptionNote("Letters of a record, 0 to k - 1.")] = 2

    def build_query(self) -> Query:
        """Build the query."""
        from pmlopt.model.queries import ModularSum, Quadratic, Weight

        if (self.modulus is None) == (self.query_name == "modular-sum"):
            raise InputError("--query modular-sum and --modulus belong together: give both")
        if self.modulus is not None:
            return ModularSum(self.records, self.modulus, self.letters)
        if self.letters != 2:
            raise InputError(f"--letters belongs to --query modular-sum, not to {self.query_name}")
        return Weight(self.records) if self.query_name == "weight" else Quadratic(self.records)


@add_command(main, "record-leakage")
def record_leakage_command(
    mechanism_file: Annotated[Path, ArgumentNote("MECHANISM")],
    asked: QueryOptions,
    entropies: Annotated[
        str, OptionNote("b in nats, or several with commas between.", "--entropy")
    ],
    epsilon: Annotated[
        float | None, OptionNote("A claimed bound on the leakage per record, in nats.")
    ] = None,
    solver: Annotated[
        Literal["auto", "branch-and-bound", "alternating"],
        OptionNote("alternating is the paper's: it finds local optima and proves nothing."),
    ] = "auto",
    tolerance: Annotated[float, OptionNote("Largest gap, in nats.")] = 1e-7,
    time_limit: Annotated[float | None, OptionNote("Seconds for each entropy.")] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Bound what MECHANISM reveals of one record.

    The adversary is uncertain of the dataset by an entropy. The rows of MECHANISM are the values of the query
    in rising order, the classes of datasets that leakage-distortion writes, or all datasets in lexicographic
    order. With --epsilon, exits with 1 when a prior leaks more, and with 3 when neither is proved. Without
    it, exits with 3 where the time limit cut a search short, and with 0 otherwise, also where a gap is left.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.programs.record_leakage.program import record_leakage

    check_file_formats(None, plot)
    wanted = read_numbers(entropies, "--entropy")
    query, mechanism = asked.build_query(), Mechanism.load(mechanism_file)
    # a prior of more entropy is allowed at less: from the largest down
    found: list[Result[RecordCertificate]] = solve_from_largest(
        lambda entropy: record_leakage(query, mechanism, entropy),
        wanted, solver=solver, tolerance=tolerance, time_limit=time_limit,
    )  # fmt: skip
    if plot is not None:
        points = [(result.certificate.entropy, result.bound, result.value) for result in found]
        across = "entropy of the dataset, at least [nats]"
        draw_curves(plot, points, ["proved bound", "worst prior found"], LEAKAGE, across)
    if as_json:
        print_json("results", {"results": [
            {"epsilon": epsilon, "holds": _is_within_claim(r, epsilon), **r.to_dict()} for r in found
        ]})  # fmt: skip
    else:
        _print_leakage(found, epsilon)
    if epsilon is None:
        sys.exit(NOT_SOLVED if any(map(exit_code_of, found)) else 0)
    verdicts = [_is_within_claim(result, epsilon) for result in found]
    sys.exit(CLAIM_FAILS if False in verdicts else NOT_SOLVED if None in verdicts else 0)


@add_command(main, "leakage-distortion")
def leakage_distortion_command(
    asked: QueryOptions,
    entropy: Annotated[float, OptionNote("b in nats.")],
    distortions: Annotated[
        str | None,
        OptionNote("D, or several with commas between: minimise the leakage.", "--distortion"),
    ] = None,
    leakages: Annotated[
        str | None, OptionNote("L in nats, or several: minimise the distortion.", "--leakage")
    ] = None,
    solver: Annotated[
        Literal["auto", "cutting-planes", "penalty"],
        OptionNote("penalty is the paper's, and proves nothing."),
    ] = "auto",
    tolerance: Annotated[float, OptionNote("Largest gap.")] = 1e-6,
    time_limit: Annotated[float | None, OptionNote("Seconds for each point.")] = None,
    output: Annotated[
        Path | None,
        OptionNote(
            "Write the mechanism of a single point: .json, .npz, .csv, .tsv, .npy, .mat, .parquet or .xlsx.",
            "-o/--output",
            TARGET,
        ),
    ] = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Design a mechanism that answers a query.

    It leaks least of a record, or distorts least, within a limit on the other. The distortion is the expected
    |y - f(x)| for a uniform dataset. Exits with 3 where a point is not proved; with --solver penalty, which
    proves nothing, where a limit is broken.
    """
    if (distortions is None) == (leakages is None):
        raise InputError("give --distortion or --leakage, one of them")
    limits = read_numbers(
        distortions or leakages or "", "--distortion" if distortions else "--leakage"
    )
    check_file_formats(output, plot)
    if output is not None and len(limits) > 1:
        raise InputError("-o writes one mechanism: give one limit")
    query = asked.build_query()
    with show_status("designing", as_json):
        from pmlopt.programs.tradeoff.builders import distortion_leakage, leakage_distortion

        builder = leakage_distortion if distortions else distortion_leakage
        programs = [builder(query, limit, entropy) for limit in limits]
        found = solve_in_turn(programs, solver, tolerance=tolerance, time_limit=time_limit)
    if output is not None:
        found[0].save(output)
    if plot is not None:
        reached = [(result.certificate.distortion, result.certificate.leakage) for result in found]
        draw_curves(plot, reached, ["mechanism"], LEAKAGE, "expected distortion")
    if as_json:
        print_json("results", {"results": [result.to_dict() for result in found]})
    else:
        print_results(found, {
            "distortion": lambda one: format_number(one.certificate.distortion),
            "leaks at most": lambda one: format_nats(one.certificate.leakage),
            f"least {found[0].certificate.sense}": lambda one: format_number(one.bound),
        })  # fmt: skip
        if len(found) == 1:
            print_matrix(found[0].mechanism)
    unproved = solver != "penalty" and any(result.status.value != "optimal" for result in found)
    sys.exit(NOT_SOLVED if unproved else max(map(exit_code_of, found)))


def _is_within_claim(result: Result[RecordCertificate], epsilon: float | None) -> bool | None:
    """Return whether the certified leakage is within a claim; None if undecided."""
    if epsilon is None:
        return None
    if result.bound <= epsilon:
        return True
    return False if result.value > epsilon else None


def _print_leakage(found: Sequence[Result[RecordCertificate]], epsilon: float | None) -> None:
    """Print the leakage bounds at each entropy, and the verdict on a claim."""
    print_results(found, {
        "entropy [nats]": lambda one: format_number(one.certificate.entropy),
        "leaks": lambda one: format_number(one.value),
        "at most": lambda one: format_nats(one.bound),
        "record": lambda one: str(one.certificate.record),
    })  # fmt: skip
    for result in found if epsilon is not None else ():
        verdict = {True: "holds", False: "FAILS", None: "is not decided"}[
            _is_within_claim(result, epsilon)
        ]
        print_line(
            f"The claim {verdict}: no record leaks more than {epsilon!r} nats at an entropy of "
            f"{format_number(result.certificate.entropy)} nats or more."
        )


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


def problem_at(path: Path, content: bytes, epsilon: float) -> Program[Any]:  # noqa: ARG001
    """Build a problem file's design at another epsilon."""
    from pmlopt.library import load

    instance = load(path)
    requirement: Any = instance.arguments.get("privacy")
    if not isinstance(getattr(requirement, "epsilon", None), float):
        raise InputError(f"{path}: its requirement has no epsilon to sweep over")
    if hasattr(requirement, "at"):
        return instance.program(privacy=requirement.at(epsilon))
    return instance.program(privacy=replace(requirement, epsilon=epsilon))


@dataclass(frozen=True, kw_only=True)
class SweepOptions(SolverChoice):
    """The options of a sweep: solver and output table."""

    output: Annotated[Path | None, OptionNote(
        "Write the table: .csv, .json or .parquet. After a kill, the same command goes on.", "-o/--output"
    )] = None  # fmt: skip
    mechanisms: Annotated[
        Path | None, OptionNote("A folder for the mechanisms, with their certificates.")
    ] = None


_Epsilons: TypeAlias = Annotated[str, OptionNote(
    "The bounds, in nats: with commas between, or START:STOP:COUNT, both ends included.", "--epsilon"
)]  # fmt: skip
_UtilityName: TypeAlias = Annotated[str | None, OptionNote(
    "hamming, absolute, squared (losses); mutual-information and other informations; a CSV matrix.",
    "--utility", complete=list_utility_names
)]  # fmt: skip


@add_command(main, "sweep")
def sweep_command(
    asked: PrivacyOptions,
    epsilons: _Epsilons,
    run: SweepOptions,
    workers: WorkerOptions,
    problem: Annotated[str | None, ArgumentNote("[PROBLEM]", list_problem_names)] = None,
    utility_name: _UtilityName = None,
    minimise: Minimise = False,
    round_counts: RoundCounts = False,
) -> None:
    """Design mechanisms for many privacy bounds.

    Each is optimal for its bound. The prior and the utility are those of the options, or of PROBLEM: a
    problem file (.toml), or the id of one in the library, with its epsilon replaced. Exits with 3 when a
    point could not be solved.
    """
    from pmlopt.sweeps import sweep

    check_distinct_targets([path for path in (run.output, run.plot) if path is not None])
    check_file_formats(None, run.plot)
    grid = read_grid(epsilons)
    if problem is None:
        if utility_name is None:
            raise InputError(
                "give the utility by --utility, or a problem file with everything in it"
            )
        law = read_published_law(asked, round_counts)
        builder = _resolve_sweep_builder(asked, law, (utility_name, minimise), grid)
        utility, people = Path(utility_name).stem, law[0].samples
        if run.mechanisms is not None and people is not None:
            print_exact_counts_warning(run.mechanisms, people, "sweep with --round-counts")
    elif asked != UNASKED or utility_name is not None or minimise or round_counts:
        raise InputError(
            f"{problem} states the prior, the requirement and the utility: leave out their options"
        )
    else:
        builder, utility = find_builder(problem)
    builder(epsilon=grid[0])  # complains of what no point could be solved with
    try:
        with _show_progress(run.as_json) as progress, workers.open_executor() as executor:
            table = sweep(
                builder, {"epsilon": grid}, executor, out=run.output, mechanisms=run.mechanisms,
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
        points = zip(table.column("epsilon").tolist(), table.column("value").tolist(), strict=True)
        draw_curves(run.plot, points, ["optimal"], utility)
    if run.as_json:
        print_json("sweep", table.to_dict())
    else:
        _print_sweep(table)
    unsolved = any(row.status in ("failed", "limit_reached", "violated") for row in table.rows)
    sys.exit(NOT_SOLVED if unsolved else 0)


def read_grid(text: str) -> list[float]:
    """Parse a grid of privacy bounds: comma-separated numbers, or START:STOP:COUNT.

    Examples:
        >>> read_grid("0.1,0.5"), read_grid("0:1:5")
        ([0.1, 0.5], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    # Points of one sweep: at ten a second, three hours.
    most_points = 100_000
    if ":" not in text:
        return read_numbers(text, "--epsilon")
    parts = text.split(":")
    try:
        start, stop, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        count = 0
    if count > most_points:
        raise InputError(
            f"--epsilon {text!r}: has {count} points, and at most {most_points} are solved at once: split "
            "the range, or call pmlopt.sweep from Python"
        )
    if count < 1 or len(parts) != 3 or not math.isfinite(start) or not math.isfinite(stop):
        raise InputError(
            f"--epsilon {text!r}: give START:STOP:COUNT, such as 0.1:2:20, or a list with commas"
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
    """Return the builder of a problem (file or library id) as a function of epsilon, with its name."""
    from pmlopt.library import find

    path = find(name).path.resolve()
    return partial(problem_at, path, files.read_bytes(path)), path.stem


@contextmanager
def _show_progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show the number of finished points on a terminal, and yield the function that advances it."""
    if (console := open_console(quiet)) is None:
        yield None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        line = bar.add_task("solving", total=None)
        yield lambda done, total: bar.update(line, completed=done, total=total)


def _print_sweep(table: Sweep) -> None:
    """Print one table row per sweep point, with the errors of failed ones."""
    head = ["epsilon", "status", "value", "gap", "leaks [nats]", "solver", "warm", "seconds"]
    print_table(head, [
        (
            format_number(row.point["epsilon"]), row.status, format_number(row.value),
            "" if row.gap is None else f"{row.gap:.1e}", format_number(row.level), row.solver or "",
            "yes" if row.warm_started else "", "" if row.seconds is None else f"{row.seconds:.3f}",
        )
        for row in table.rows
    ])  # fmt: skip
    for row in table.failed:
        print_line(f"epsilon = {format_number(row.point['epsilon'])}: {row.error}")
