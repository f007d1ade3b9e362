"""Terminal output of the commands: tables and progress."""

from __future__ import annotations

import errno
import io
import math
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pmlopt.cli.exits import prints_json
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import align_cells
from pmlopt.core.files import disk
from pmlopt.core.lazy_imports import is_installed
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.programs.result import Result

MAX_TABLE_COLUMNS = 12
T = TypeVar("T")


def check_output() -> None:
    """Raise an error where standard output cannot be written.

    Raises:
        InputError: see there; nothing has been released or recorded.
    """
    try:
        if sys.stdout is None or sys.stdout.closed:
            raise OSError(errno.EBADF, "it is closed")
        sys.stdout.flush()
        with suppress(io.UnsupportedOperation):  # a stream in memory
            _try_output(sys.stdout.fileno())
    except OSError as cause:
        raise InputError(
            f"standard output cannot be written ({disk.describe_os_error(cause)}): nothing is released "
            "or recorded"
        ) from None


def _try_output(handle: int) -> None:
    """Raise an OSError where a stream cannot be written."""
    kind = os.fstat(handle).st_mode
    if stat.S_ISCHR(kind) and not os.isatty(handle):
        # /dev/full is found by writing only; others, such as /dev/null, lose a line
        os.write(handle, b"\n")
    elif stat.S_ISREG(kind) and hasattr(os, "fstatvfs") and os.fstatvfs(handle).f_bavail == 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    elif hasattr(select, "poll") and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        waiting = select.poll()
        waiting.register(handle, select.POLLOUT)
        if any(event & (select.POLLERR | select.POLLNVAL) for _, event in waiting.poll(0)):
            raise OSError(errno.EPIPE, "the reader has closed it")
    if os.name == "posix":
        import fcntl

        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "it is open for reading only")


def open_console() -> Any:
    """Return a console on standard error; None where that is no terminal, or under `--json`.

    There is none either where rich is missing, which only shows progress.
    """
    if prints_json() or not sys.stderr.isatty() or not is_installed("rich"):
        return None
    from rich.console import Console

    return Console(stderr=True)


def show_status(text: str) -> Any:
    """Show a spinner on a terminal while the block runs, but under `--json`."""
    console = open_console()
    return nullcontext() if console is None else console.status(text)


def iterate_with_progress(items: Iterable[T], total: int, text: str) -> Iterator[T]:
    """Iterate over items with a progress bar on a terminal."""
    if (console := open_console()) is None:
        yield from items
        return
    from rich.progress import track

    yield from track(items, description=text, total=total, console=console, transient=True)


def print_result(result: Result[Any], title: str, extra: Sequence[tuple[str, str]]) -> None:
    """Print a result: claim, method, and small matrices."""
    from pmlopt.measures.estimable import rank_warnings
    from pmlopt.measures.outcomes import select_shown_outcomes
    from pmlopt.programs.certificate import DesignCertificate
    from pmlopt.programs.reports.pages import list_warnings

    certificate, form = result.certificate, result.closed_form
    rows = [
        ("status", result.status.value),
        ("value", format_number(result.value)),
        ("bound", f"{format_number(result.bound)} (gap {result.gap:.1e})"),
        *_list_proved_rows(result),
        *extra,
        *([] if form is None else [
            ("closed form", f"{form.name}, {format_number(form.value)} (difference {form.difference:.1e})")
        ]),
        ("solver", f"{result.solver}: {result.reason}"),
        *[("before it", attempt) for attempt in result.attempts],
        ("seconds", f"{result.timings.total:.3f} ({result.timings.compile:.3f} compile, "
                    f"{result.timings.solve:.3f} solve, {result.timings.certify:.3f} certify)"),
    ]  # fmt: skip
    print_line(title)
    print_table(["", ""], rows)
    if isinstance(certificate, DesignCertificate):
        for line in list_warnings(certificate.prior, certificate.privacy, result.outcome_summaries):
            print_line(f"Warning: {line}")
        for line in () if is_by_orbits(result.mechanism) else rank_warnings(result.mechanism):
            print_line(f"Warning: {line}.")
        if certificate.has_constant_utility:
            print_line("The utility is the same whatever is released: there is nothing to design.")
    if certificate.kind == "record-leakage":
        names, joint = certificate.channel.names, certificate.joint
        columns = [" or ".join(map(str, name)) for name in names]
        corner = f"worst prior: record {certificate.record} | value"
        _print_cells("worst prior", corner, range(len(joint)), columns, joint)
    else:
        for one in select_shown_outcomes(result.outcome_summaries):
            print_line(str(one))
        print_matrix(result.mechanism)


def warn_of_exact_counts(
    path: object,
    made: Any,
    remedy: str = "design with --round-counts; or, if they are shares, name their column probability",
) -> None:
    """Warn where a file tells the exact counts of the people that a result was designed for.

    A file of the matrix alone tells them, too: its level is the one that was asked for under these counts.

    Args:
        path: the file.
        made: the result.
        remedy: what to do for a file that may be published.
    """
    certificate = getattr(made, "certificate", None)
    if certificate is None:
        return
    from pmlopt.programs.declared_parts import count_sampled_people, walk_parts

    if (people := count_sampled_people(certificate)) is None:
        return
    parts = walk_parts("", certificate)
    if any(getattr(part.value, "delta", None) is not None for part in parts):
        remedy = "release through pmlopt release --confidence-delta, which rounds them"
    print_exact_counts_warning(path, people, remedy)


def print_exact_counts_warning(path: object, people: int, remedy: str) -> None:
    """Print to standard error that files have the exact counts of people, and what to do."""
    print_line(
        f"warning: {path} has the exact counts of {people:,} people: do not publish it, or {remedy}",
        err=True,
    )


def print_usefulness(made: Any) -> None:
    """Print the utility of a result compared with baselines.

    Args:
        made: a result, or a mechanism, of which only the rank is known.
    """
    from pmlopt.measures.estimable import rank_warnings

    if (baselines := getattr(made, "baselines", None)) is not None:
        print_line(f"Its {baselines}.")
    mechanism = getattr(made, "mechanism", made)
    for line in () if is_by_orbits(mechanism) else rank_warnings(mechanism):
        print_line(f"Warning: {line}.", err=True)


def is_by_orbits(mechanism: Any) -> bool:
    """Return whether a mechanism is stored by orbits."""
    from pmlopt.data.symmetry import OrbitMechanism

    return isinstance(mechanism, OrbitMechanism)


def _list_proved_rows(result: Result[Any]) -> list[tuple[str, str]]:
    """List the certificate's claims as table rows, with baselines and estimable statistics."""
    from pmlopt.measures.estimable import MAX_RANKED_SIZE
    from pmlopt.programs.certificate import RequirementCertificate

    certificate, rows = result.certificate, list[tuple[str, str]]()
    proved = f"yes, in {certificate.level_arithmetic}" if certificate.verify() else "NO"
    if not isinstance(certificate, RequirementCertificate):
        return [("proved", f"{certificate.statement}: {proved}")]
    if (found := result.baselines) is not None:
        others = (
            f"{name} {format_number(value)}"
            for name, value in found.table_rows
            if name != "this mechanism"
        )
        rows.append(("it is the", f"{found.utility_name}: {', '.join(others)}"))
    elif certificate.value_name != "value":
        rows.append(("it is the", certificate.value_name))
    limits = certificate.privacy.limits
    for name, level in certificate.levels.items():
        rows.append((name, f"{format_nats(level)}, at most {format_number(limits[name])} claimed"))
    if certificate.privacy.scope:
        words = {name: name.replace("_", " ").replace("pml", "PML") for name in limits}
        stated = ", ".join(
            f"{format_number(limit)}-{words[name]}" for name, limit in limits.items()
        )
        rows.append(("promised", f"{stated} {certificate.privacy.scope}"))
    rows.append(("level proved", proved))
    if (
        not is_by_orbits(result.mechanism) and max(result.mechanism.matrix.shape) <= MAX_RANKED_SIZE
    ):  # small enough for its rank
        rows.append(("can be estimated", str(result.estimable)))
    return rows


def print_matrix(mechanism: Mechanism) -> None:
    """Print a mechanism's matrix where it fits the terminal."""
    from pmlopt.data.symmetry import OrbitMechanism

    if isinstance(mechanism, OrbitMechanism) and not mechanism.is_listable(MAX_TABLE_COLUMNS):
        print_line(
            f"The mechanism has {len(mechanism.masses)} orbits of pairs: -o writes it to a file."
        )
        return
    _print_cells(
        "mechanism",
        "P(output | true value)",
        mechanism.inputs,
        mechanism.output_names,
        mechanism.matrix,
    )


def _print_cells(
    what: str, corner: str, inputs: Sequence[Any], outputs: Sequence[Any], matrix: FloatArray
) -> None:
    """Print a labelled probability table where it fits the terminal."""
    rows, columns = matrix.shape
    if max(rows, columns) > MAX_TABLE_COLUMNS:
        print_line(
            f"The {what} has {rows} rows and {columns} columns, too many to print: a file of -o has them."
        )
        return
    cells = [[f"{value:.6f}" if value else "0" for value in row] for row in matrix.tolist()]
    lines = [[str(label), *row] for label, row in zip(inputs, cells, strict=True)]
    print_table([corner, *map(str, outputs)], lines)


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned text table."""
    for line in align_cells([head, *rows] if any(head) else rows):
        print_line(f"  {line}")


def print_json(kind: str, content: Mapping[str, Any], always: bool = False) -> bool:
    """Print plain data as JSON where `--json` asks for it, and return whether it does.

    Args:
        kind: what the `format` of the object names.
        content: with the keys of its schema.
        always: whether it is printed in any case.
    """
    if always or prints_json():
        record = _blank_infinities({"format": f"pmlopt {kind}", **content})
        click.echo(disk.encode_json_bytes(record).decode(), nl=False)
    return always or prints_json()


def _blank_infinities(content: Any) -> Any:
    """Return plain data with None for numbers that are not finite, for which JSON has no form."""
    if isinstance(content, Mapping):
        return {name: _blank_infinities(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_blank_infinities(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def format_number(value: float | None) -> str:
    """Format a number with nine digits; None as empty text."""
    return "" if value is None else f"{value + 0.0:.9g}"  # a negative zero is none


def format_nats(level: float) -> str:
    """Format a level in nats, and in bits where it is finite."""
    if math.isfinite(level):
        return f"{format_number(level)} nats = {format_number(level / math.log(2))} bits"
    return "infinite"
