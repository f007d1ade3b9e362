"""What the commands print: tables a person reads, and signs of life on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pmlopt.core import files
from pmlopt.core.arrays import shown

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.measures.outcomes import OutcomeTells
    from pmlopt.programs.design_program import DesignCertificate, RequirementCertificate
    from pmlopt.programs.program import Program
    from pmlopt.programs.record_leakage.certificate import RecordCertificate
    from pmlopt.programs.result import Result
    from pmlopt.programs.tradeoff.certificate import TradeoffCertificate

WIDEST_TABLE = 12
T = TypeVar("T")


def say(text: str, err: bool = False) -> None:
    """Print a text as one line, escaped as `shown` does, and where the terminal has no such letter."""
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    click.echo(shown(text).encode(encoding, "backslashreplace").decode(encoding), err=err)


def terminal(quiet: bool = False) -> Any:
    """The console of the terminal that standard error is; None where it is none, or shall be quiet."""
    if quiet or not sys.stderr.isatty():
        return None
    from rich.console import Console

    return Console(stderr=True)


def status(text: str, quiet: bool) -> Any:
    """Show a spinner beside a text while something runs, on a terminal only."""
    console = terminal(quiet)
    return nullcontext() if console is None else console.status(text)


def progress(items: Iterable[T], total: int, text: str) -> Iterator[T]:
    """Iterate over items behind a progress bar, which is shown on a terminal only."""
    if (console := terminal()) is None:
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=text, total=total, console=console, transient=True)


def solved_in_turn(
    programs: Iterable[Program[Any]], solver: str = "auto", **options: Any
) -> list[Result[Any]]:
    """The results of related programs, each solved from what the one before it has found."""
    from pmlopt.programs.solving import solve

    found: list[Result[Any]] = []
    for program in programs:
        found.append(solve(program, solver, found[-1].restart if found else None, **options))
    return found


def print_result(result: Result[Any], title: str, extra: Sequence[tuple[str, str]]) -> None:
    """Print what a result claims, how it was found, and its matrix where it fits."""
    from pmlopt.measures.outcomes import MOST_TOLD
    from pmlopt.programs.design_program import DesignCertificate, RequirementCertificate

    certificate = result.certificate
    rows = [
        ("status", result.status.value),
        ("value", number(result.value)),
        ("bound", f"{number(result.bound)} (gap {result.gap:.1e})"),
    ]
    if isinstance(certificate, RequirementCertificate):
        rows += [*_worth_rows(result), *_design_rows(certificate), *_estimable_rows(result)]
    elif certificate.kind in _ROWS:
        rows += _ROWS[certificate.kind](certificate)
    else:
        rows.append(("proved", f"{certificate.statement}: {'yes' if certificate.verify() else 'NO'}"))
    rows += extra
    if result.closed_form is not None:
        form = result.closed_form
        rows.append(("closed form", f"{form.name}, {number(form.value)} (difference {form.difference:.1e})"))
    rows += [
        ("solver", f"{result.solver}: {result.reason}"),
        *[("before it", attempt) for attempt in result.attempts],
        ("seconds", f"{result.timings.total:.3f} ({result.timings.compile:.3f} compile, "
                    f"{result.timings.solve:.3f} solve, {result.timings.certify:.3f} certify)"),
    ]  # fmt: skip
    say(title)
    print_table(["", ""], rows)
    if isinstance(certificate, DesignCertificate):
        _print_warnings(certificate, result.tells)
    if certificate.kind == "record-leakage":
        _print_joint(certificate)
    else:
        for one in result.tells[:MOST_TOLD]:
            say(str(one))
        print_matrix(result.mechanism)


def _print_warnings(certificate: DesignCertificate, outcomes: Sequence[OutcomeTells]) -> None:
    """Say what is easily overlooked of a design."""
    from pmlopt.programs.reports.pages import warnings_of

    for line in warnings_of(certificate.prior, certificate.privacy, outcomes):
        say(f"Warning: {line}")
    if certificate.flat:
        say("The utility is the same whatever is released: there is nothing to design.")


def _worth_rows(result: Result[Any]) -> list[tuple[str, str]]:
    """What the value is, and what others reach."""
    found = result.worth
    if found is None:
        return []
    others = ", ".join(f"{name} {number(value)}" for name, value in found.rows if name != "this mechanism")
    return [("it is the", f"{found.what}: {others}")]


def _design_rows(certificate: RequirementCertificate) -> list[tuple[str, str]]:
    rows = []
    for name, level in certificate.levels.items():
        limit = certificate.privacy.limits[name]
        rows.append((name, f"{nats(level)}, at most {number(limit)} claimed"))
    if certificate.privacy.scope:
        stated = ", ".join(
            f"{number(limit)}-{name.replace('_', ' ').replace('pml', 'PML')}"
            for name, limit in certificate.privacy.limits.items()
        )
        rows.append(("promised", f"{stated} {certificate.privacy.scope}"))
    rows.append(("level proved", "yes, in rational arithmetic" if certificate.verify() else "NO"))
    return rows


def _estimable_rows(result: Result[Any]) -> list[tuple[str, str]]:
    """What can be estimated from the output, where the matrix is small enough for its rank."""
    from pmlopt.data.symmetry import OrbitMechanism
    from pmlopt.measures.estimable import LARGEST_RANKED

    by_orbits = isinstance(result.mechanism, OrbitMechanism)
    if by_orbits or max(result.mechanism.matrix.shape) > LARGEST_RANKED:
        return []
    return [("can be estimated", str(result.estimable))]


def _record_rows(certificate: RecordCertificate) -> list[tuple[str, str]]:
    query = certificate.channel.query
    proved = certificate.verify()
    return [
        ("leakage per record", f"at most {nats(certificate.bound)}"),
        ("adversary", f"at least {nats(certificate.entropy)} uncertain, of {number(query.log_size)}"),
        ("worst record", f"{certificate.record} of {query.records}, counted from 0"),
        ("bound proved", f"yes, in {certificate.arithmetic}" if proved else "NO"),
    ]


def _tradeoff_rows(certificate: TradeoffCertificate) -> list[tuple[str, str]]:
    proved = certificate.verify()
    limits = {"leakage": "", "distortion": ""}
    limits["distortion" if certificate.sense == "leakage" else "leakage"] = (
        f", limit {number(certificate.limit)}"
    )
    return [
        ("minimised", certificate.sense),
        ("leakage per record", f"at most {nats(certificate.audit.bound)}{limits['leakage']}"),
        ("distortion", f"{number(certificate.distortion)}{limits['distortion']}"),
        ("adversary", f"at least {nats(certificate.entropy)} uncertain"),
        ("bound proved", f"yes, in {certificate.arithmetic}" if proved else "NO"),
    ]


_ROWS: Mapping[str, Callable[[Any], list[tuple[str, str]]]] = {
    "worst-case": lambda certificate: _design_rows(certificate.kept),
    "record-leakage": _record_rows,
    "trade-off": _tradeoff_rows,
}
"""What is printed of certificates that state no requirement, by kind; of others their statement."""


def _print_joint(certificate: RecordCertificate) -> None:
    joint = certificate.joint
    if max(joint.shape) > WIDEST_TABLE:
        say(f"The worst prior has {joint.shape[0]} by {joint.shape[1]} cells: -o writes it to a file.")
        return
    names = [" or ".join(map(str, name)) for name in certificate.channel.names]
    print_table(
        ["worst prior: record | value", *names],
        [
            (str(letter), *(f"{p:.6f}" if p else "0" for p in row))
            for letter, row in enumerate(joint.tolist())
        ],
    )


def print_results(
    results: Sequence[Result[Any]], columns: Mapping[str, Callable[[Result[Any]], str]], seconds: bool = True
) -> None:
    """Print a row for each result: these columns, its gap, how it ended, and how long it took."""
    rows = [
        [*(cell(one) for cell in columns.values()), f"{one.gap:.1e}", one.status.value,
         *([f"{one.timings.total:.2f}"] if seconds else [])]
        for one in results
    ]  # fmt: skip
    print_table([*columns, "gap", "status", *(["seconds"] if seconds else [])], rows)


def print_matrix(mechanism: Mechanism) -> None:
    """Print the matrix of a mechanism, where it fits a terminal."""
    from pmlopt.data.symmetry import OrbitMechanism

    if isinstance(mechanism, OrbitMechanism) and not mechanism.listable(WIDEST_TABLE):
        say(f"The mechanism has {len(mechanism.masses)} orbits of pairs: -o writes it to a file.")
        return
    rows, columns = mechanism.matrix.shape
    if max(rows, columns) > WIDEST_TABLE:
        say(
            f"The mechanism has {rows} rows and {columns} columns, too many to print: -o writes it to a file."
        )
        return
    print_table(
        ["P(output | secret)", *map(str, mechanism.outputs)],
        [
            (str(label), *(f"{value:.6f}" if value else "0" for value in row))
            for label, row in zip(mechanism.inputs, mechanism.matrix.tolist(), strict=True)
        ],
    )


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns of plain text, as wide as they need to be, each cell as `shown`."""
    lines = [head, *rows] if any(head) else rows
    table = [[shown(cell) for cell in line] for line in lines]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say(("  " + line).rstrip())


def echo_json(content: Any) -> None:
    """Print plain data as JSON."""
    click.echo(files.json_bytes(content).decode(), nl=False)


def number(value: float | None) -> str:
    """Format a number with nine digits, and None as nothing."""
    return "" if value is None else f"{value + 0.0:.9g}"  # a negative zero is none


def nats(level: float) -> str:
    """Format a level in nats, and in bits where it is finite."""
    return (
        f"{number(level)} nats = {number(level / math.log(2))} bits" if math.isfinite(level) else "infinite"
    )
