"""The command line: `pmlopt` or `python -m pmlopt`.

Exit codes: 0 done, 1 the claim fails, 2 bad input (a message, no traceback, no file), 3 no solver
could solve it. Modules are imported where they are used, so that help and audits answer at once.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from pmlopt import __version__, files
from pmlopt.errors import InfeasibleError, InputError, MissingExtraError, PmloptError, SolverError

if TYPE_CHECKING:
    from pmlopt.instances import Instance
    from pmlopt.mechanism import Mechanism
    from pmlopt.prior import Prior
    from pmlopt.privacy import Requirement
    from pmlopt.result import Result
    from pmlopt.utility import LinearUtility

CLAIM_FAILS, BAD_INPUT, NOT_SOLVED = 1, 2, 3
WIDEST_TABLE = 12
T = TypeVar("T")
A = ParamSpec("A")


def _exits(command: Callable[A, None]) -> Callable[A, None]:
    """Turn pmlopt's errors into a message and an exit code."""

    @wraps(command)
    def run(*args: A.args, **kwargs: A.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (InputError, MissingExtraError) as error:
            _fail(error, BAD_INPUT)
        except (SolverError, InfeasibleError) as error:
            _fail(error, NOT_SOLVED)
        except PmloptError as error:  # pragma: no cover - the children are named above
            _fail(error, BAD_INPUT)

    return run


def _fail(error: Exception, code: int) -> None:
    click.echo(f"pmlopt: {error}", err=True)
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Design privacy mechanisms by convex optimization, with a proof of the bound."""


_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_out = click.option(
    "-o", "--output", type=click.Path(path_type=Path),
    help="Write the mechanism: .csv, .json (with the certificate) or .npz.",
)  # fmt: skip
_solver = click.option(
    "--solver", default="auto", show_default=True, help="auto, highs, highs-ipm, clarabel, scs, ..."
)
_time = click.option("--time-limit", type=float, help="Seconds for each solver.")
_tolerance = click.option(
    "--tolerance", type=float, default=1e-7, show_default=True,
    help="Largest certified gap, as a share of the utility's range.",
)  # fmt: skip
_mps = click.option("--mps", type=click.Path(path_type=Path), help="Write the LP in the MPS format too.")
_plot = click.option(
    "--plot", type=click.Path(path_type=Path), help="Draw the mechanism: .png, .pdf or .svg."
)
_prior = click.option(
    "--prior", "prior_file", type=click.Path(path_type=Path), required=True,
    help="CSV with a header and two columns: letter, and count or probability.",
)  # fmt: skip


@main.command("solve")
@click.argument("problem")
@_out
@_solver
@_time
@_tolerance
@_mps
@_plot
@_json
@_exits
def solve_command(
    problem: str, output: Path | None, solver: str, time_limit: float | None, tolerance: float,
    mps: Path | None, plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Solve PROBLEM: a problem file (.toml), or the id of one in the library.

    Exits with 1 when the optimum contradicts what the file expects of it.
    """
    from pmlopt.instances import find

    _check_targets(output, plot)
    instance = find(problem)
    result = _run(instance.program, solver, time_limit, tolerance, mps, as_json)
    _write(result, output, plot)
    agrees = instance.expected is None or instance.expected.agrees(result.value)
    if as_json:
        click.echo(
            files.json_bytes({"id": instance.id, "agrees": agrees, **result.to_dict()}).decode(), nl=False
        )
    else:
        _print_result(result, f"{instance.title} [{instance.id}]", _expectation_row(instance, agrees))
    sys.exit(0 if agrees else CLAIM_FAILS)


@main.command()
@_prior
@click.option("--epsilon", type=float, required=True, help="The privacy bound, in nats.")
@click.option(
    "--utility", "utility_name", required=True, help="hamming, absolute, squared, or a CSV matrix of gains."
)
@click.option("--minimise", is_flag=True, help="The CSV matrix holds losses.")
@click.option(
    "--privacy", "privacy_name", default="pml", show_default=True,
    type=click.Choice(["pml", "ldp", "lip", "maximal-leakage"]),
)  # fmt: skip
@click.option("--lower", type=float, help="LIP only: the bound on the other side; epsilon where left out.")
@click.option("--outputs", help="The outputs: their number, or their labels with commas between.")
@_out
@_solver
@_time
@_tolerance
@_mps
@_plot
@_json
@_exits
def design(
    prior_file: Path, epsilon: float, utility_name: str, minimise: bool, privacy_name: str,
    lower: float | None, outputs: str | None, output: Path | None, solver: str,
    time_limit: float | None, tolerance: float, mps: Path | None, plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Design the optimal mechanism for a prior, a privacy bound and a utility."""
    _check_targets(output, plot)
    prior = _read_prior(prior_file)
    privacy = _requirement(privacy_name, epsilon, lower)
    utility, columns = _read_utility(utility_name, minimise, prior)
    letters = _outputs(outputs) if outputs is not None else columns

    def declare() -> Any:
        from pmlopt.builders import design as build

        return build(prior, privacy, utility, letters)

    result = _run(declare, solver, time_limit, tolerance, mps, as_json)
    _write(result, output, plot)
    if as_json:
        click.echo(files.json_bytes(result.to_dict()).decode(), nl=False)
    else:
        _print_result(result, f"Optimal mechanism for {prior_file.name}", [])


@main.command()
@click.argument("mechanism_file", metavar="MECHANISM", type=click.Path(path_type=Path))
@_prior
@click.option("--epsilon", type=float, help="The claimed PML bound in nats; decided in exact arithmetic.")
@_json
@_exits
def audit(mechanism_file: Path, prior_file: Path, epsilon: float | None, as_json: bool) -> None:
    """Recompute every leakage of MECHANISM (.csv, .json, .npz); exit 1 when the claim fails."""
    from pmlopt.certificate.exact import holds_exactly, rows_are_exact
    from pmlopt.mechanism import Mechanism
    from pmlopt.privacy import PML

    mechanism = Mechanism.load(mechanism_file)
    prior = _aligned(_read_prior(prior_file), mechanism)
    levels = _levels(prior, mechanism)
    holds = None
    if epsilon is not None:
        holds = holds_exactly(prior, PML(epsilon), mechanism.matrix)
    if as_json:
        click.echo(files.json_bytes({
            "level": levels["pml"],
            "levels": {name: level if math.isfinite(level) else None for name, level in levels.items()},
            "epsilon": epsilon,
            "holds": holds,
            "rows_sum_to_one_exactly": rows_are_exact(mechanism.matrix),
            "outputs": _outcomes(prior, mechanism),
        }).decode(), nl=False)  # fmt: skip
    else:
        _print_audit(mechanism_file, prior, mechanism, levels, epsilon, holds)
    sys.exit(CLAIM_FAILS if holds is False else 0)


@main.command()
@click.argument("mechanism_file", metavar="MECHANISM", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--column", required=True, help="The column of DATA that holds the secret.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The CSV file to write.")
@click.option("--seed", type=int, help="For a result that can be repeated; leave out for a release.")
@_exits
def apply(mechanism_file: Path, data: Path, column: str, output: Path, seed: int | None) -> None:
    """Replace a column of the CSV file DATA by the outputs of MECHANISM, row by row."""
    from pmlopt.mechanism import Mechanism

    mechanism = Mechanism.load(mechanism_file)
    rows = files.read_rows(data)
    if rows[0].count(column) != 1:
        raise InputError(f"{data}: has {rows[0].count(column)} columns named {column!r}; it has {rows[0]}")
    place = rows[0].index(column)
    as_text = Mechanism(mechanism.matrix, map(str, mechanism.inputs), mechanism.outputs)
    released = as_text.sample((row[place] for row in rows[1:]), seed)
    for row, letter in zip(rows[1:], released, strict=True):
        row[place] = str(letter)
    stream = io.StringIO(newline="")
    csv.writer(stream, lineterminator="\n").writerows(rows)
    files.write_whole(output, stream.getvalue().encode())
    click.echo(f"{len(released)} rows written to {output}")


@main.command()
@_json
@_exits
def problems(as_json: bool) -> None:
    """List the problem library."""
    from pmlopt.instances import load_all

    instances = load_all()
    if as_json:
        click.echo(files.json_bytes([
            {"id": i.id, "title": i.title, "file": str(i.path), "source": i.cite, "where": i.where}
            for i in instances
        ]).decode(), nl=False)  # fmt: skip
        return
    rows = [(i.id, i.title, f"{i.cite}, {i.where}") for i in instances]
    _print_table(["problem", "title", "source"], rows)
    click.echo("Solve one with: pmlopt solve PROBLEM")


@main.command()
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Runs of each; medians are shown.",
)
@_json
@_exits
def bench(repeats: int, as_json: bool) -> None:
    """Solve the library's LPs beside their closed forms; exit 1 when one disagrees."""
    from dataclasses import asdict

    from pmlopt.bench import compare
    from pmlopt.instances import load_all

    instances = [i for i in load_all() if i.expected is not None and i.expected.closed_form is not None]
    rows = list(_progress(compare(instances, repeats), len(instances), "solving"))
    if as_json:
        click.echo(files.json_bytes([asdict(row) for row in rows]).decode(), nl=False)
    else:
        head = [
            "problem",
            "LP",
            "",
            "closed form",
            "value",
            "LP - closed",
            "LP [ms]",
            "closed [ms]",
            "ratio",
            "agrees",
        ]
        _print_table(head, [
            (
                row.id, _number(row.lp_value), row.relation, row.closed_form, _number(row.closed_value),
                "" if row.difference is None else f"{row.difference:.1e}",
                "" if row.lp_seconds is None else f"{1e3 * row.lp_seconds:.2f}",
                f"{1e3 * row.closed_seconds:.2f}",
                "" if row.ratio is None else f"{row.ratio:.0f}",
                "yes" if row.agrees else f"NO {row.problem or ''}",
            )
            for row in rows
        ])  # fmt: skip
    sys.exit(0 if all(row.agrees for row in rows) else CLAIM_FAILS)


def _check_targets(output: Path | None, plot: Path | None) -> None:
    """Complain of a file's ending before any solver runs."""
    if output is not None:
        files.matrix_ending(output)
    if plot is not None:
        from pmlopt.plots import check_ending

        check_ending(plot)


def _read_prior(path: Path) -> Prior:
    from pmlopt.errors import PriorError
    from pmlopt.prior import Prior

    labels, numbers = files.read_letters(path)
    try:
        if all(isinstance(number, int) for number in numbers):
            return Prior.from_counts([int(number) for number in numbers], labels)
        return Prior(numbers, labels)
    except PriorError as error:
        raise PriorError(f"{path}: {error}") from None


def _aligned(prior: Prior, mechanism: Mechanism) -> Prior:
    """The prior in the order of the mechanism's rows, where both have the same letters."""
    if prior.labels != mechanism.inputs and set(prior.labels) == set(mechanism.inputs):
        return prior.reordered(mechanism.inputs)
    return prior


def _requirement(name: str, epsilon: float, lower: float | None) -> Requirement:
    from pmlopt.privacy import LDP, LIP, PML, MaximalLeakage

    if lower is not None and name != "lip":
        raise InputError(f"--lower belongs to --privacy lip, not to {name}")
    if name == "lip":
        return LIP(epsilon if lower is None else lower, epsilon)
    simple: dict[str, Callable[[float], Requirement]] = {
        "pml": PML,
        "ldp": LDP,
        "maximal-leakage": MaximalLeakage,
    }
    return simple[name](epsilon)


def _read_utility(name: str, minimise: bool, prior: Prior) -> tuple[LinearUtility, Sequence[Any] | None]:
    from pmlopt.errors import UtilityError
    from pmlopt.utility import LOSSES, ExpectedGain, ExpectedLoss

    if name in LOSSES:
        return ExpectedLoss(LOSSES[name]), None
    if Path(name).suffix.lower() != ".csv":
        raise UtilityError(f"the utility {name!r} is not known: use {', '.join(LOSSES)}, or a .csv matrix")
    stored = files.read_matrix(name)
    if set(stored.inputs) != set(prior.labels):
        raise UtilityError(
            f"{name}: the rows are for {stored.inputs}, and the prior's letters are {prior.labels}"
        )
    files.check_distinct(name, stored.inputs)
    rows = stored.matrix[[stored.inputs.index(label) for label in prior.labels]]
    return (ExpectedLoss if minimise else ExpectedGain)(rows), stored.outputs


def _outputs(text: str) -> int | Sequence[Any]:
    if text.strip().isdigit():
        return int(text)
    return files.labels_from_text([part.strip() for part in text.split(",")])


def _run(
    declare: Callable[[], Any], solver: str, time_limit: float | None, tolerance: float,
    mps: Path | None, quiet: bool,
) -> Result:  # fmt: skip
    with _status("solving", quiet):
        from pmlopt.solvers import solve, write_mps

        program = declare()
        if mps is not None:
            write_mps(program, mps)
        return solve(program, solver, time_limit=time_limit, tolerance=tolerance)


def _write(result: Result, output: Path | None, plot: Path | None) -> None:
    if output is not None:
        result.save(output)
    if plot is not None:
        from pmlopt.plots import mechanism_figure, save_figure

        save_figure(mechanism_figure(result.certificate.prior, result.mechanism), plot)


def _status(text: str, quiet: bool) -> Any:
    """A spinner on a terminal, nothing elsewhere."""
    from contextlib import nullcontext

    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(text)


def _progress(items: Iterable[T], total: int, text: str) -> Iterator[T]:
    """A progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=text, total=total, console=Console(stderr=True), transient=True)


def _levels(prior: Prior, mechanism: Mechanism) -> dict[str, float]:
    from pmlopt import measures

    lower, upper = measures.lip_levels(prior, mechanism)
    return {
        "pml": upper,
        "ldp": measures.ldp_level(mechanism),
        "lip_lower": lower,
        "lip_upper": upper,
        "maximal_leakage": measures.maximal_leakage(mechanism),
        "mutual_information": measures.mutual_information(prior, mechanism),
    }


def _outcomes(prior: Prior, mechanism: Mechanism) -> list[dict[str, Any]]:
    """Each output with its probability and leakage, the most revealing first."""
    from pmlopt.measures import pointwise_leakage

    law = prior.pmf @ mechanism.matrix
    leakages = pointwise_leakage(prior, mechanism)
    rows = [
        {"output": label, "probability": float(q), "leakage": float(leakage)}
        for label, q, leakage in zip(mechanism.outputs, law, leakages, strict=True)
        if q > 0
    ]
    return sorted(rows, key=lambda row: -row["leakage"])


def _expectation_row(instance: Instance, agrees: bool) -> list[tuple[str, str]]:
    expected = instance.expected
    if expected is None:
        return []
    verdict = "agrees" if agrees else "DISAGREES"
    return [("expected", f"{expected.relation} {_number(expected.value)} ({expected.basis}): {verdict}")]


def _print_result(result: Result, title: str, extra: list[tuple[str, str]]) -> None:
    certificate = result.certificate
    rows = [
        ("status", result.status.value),
        ("value", _number(result.value)),
        ("bound", f"{_number(result.bound)} (gap {result.gap:.1e})"),
    ]
    for name, level in certificate.levels.items():
        limit = certificate.privacy.limits[name]
        rows.append((name, f"{_nats(level)}, at most {_number(limit)} claimed"))
    rows += [
        ("proved exactly", "yes, in rational arithmetic" if certificate.verify_exact() else "NO"),
        *extra,
    ]
    if result.closed_form is not None:
        form = result.closed_form
        rows.append(("closed form", f"{form.name}, {_number(form.value)} (difference {form.difference:.1e})"))
    rows += [
        ("solver", f"{result.solver}: {result.reason}"),
        *[("before it", attempt) for attempt in result.attempts],
        ("seconds", f"{result.timings.total:.3f} ({result.timings.compile:.3f} compile, "
                    f"{result.timings.solve:.3f} solve, {result.timings.certify:.3f} certify)"),
    ]  # fmt: skip
    click.echo(title)
    _print_table(["", ""], rows)
    _print_matrix(result.mechanism)


def _print_audit(
    path: Path, prior: Prior, mechanism: Mechanism, levels: dict[str, float],
    epsilon: float | None, holds: bool | None,
) -> None:  # fmt: skip
    click.echo(f"{path.name}: {len(mechanism.inputs)} letters, {len(mechanism.outputs)} outputs")
    _print_table(["measure", "level"], [(name, _nats(level)) for name, level in levels.items()])
    worst = _outcomes(prior, mechanism)[:WIDEST_TABLE]
    _print_table(
        ["output", "probability", "leakage"],
        [(str(row["output"]), _number(row["probability"]), _nats(row["leakage"])) for row in worst],
    )
    if epsilon is None:
        return
    if holds:
        click.echo(f"The claim holds: PML at most {epsilon} nats, proved in rational arithmetic.")
        return
    over = levels["pml"] - epsilon
    click.echo(f"The claim FAILS: PML is {levels['pml']!r}, not at most {epsilon!r} nats.")
    if over < 1e-9:
        click.echo(
            f"It is missed by {max(over, 0.0):.1e} nats: rounding, in the matrix or in epsilon. "
            "A claim that is rounded up would hold."
        )


def _print_matrix(mechanism: Mechanism) -> None:
    rows, columns = mechanism.matrix.shape
    if max(rows, columns) > WIDEST_TABLE:
        click.echo(f"The mechanism has {rows} rows and {columns} columns: write it with -o.")
        return
    _print_table(
        ["P(output | secret)", *map(str, mechanism.outputs)],
        [
            (str(label), *(f"{value:.6f}" if value else "0" for value in row))
            for label, row in zip(mechanism.inputs, mechanism.matrix.tolist(), strict=True)
        ],
    )


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns of plain text, as wide as they need to be."""
    table = [list(head), *map(list, rows)] if any(head) else [list(row) for row in rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(("  " + line).rstrip())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"


def _nats(level: float) -> str:
    return f"{_number(level)} nats = {_number(level / math.log(2))} bits"
