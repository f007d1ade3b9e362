"""Commands for accounting: composed releases, ledgers and streams."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click
import numpy as np

from pmlopt.cli.data_options import ColumnOptions, DataOptions, PriorFile
from pmlopt.cli.exits import CLAIM_FAILS, note_released
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, add_command, json_option
from pmlopt.cli.printing import format_nats, format_number, print_json, print_table
from pmlopt.cli.published_priors import restate_on_screen
from pmlopt.cli.streams import stream_group
from pmlopt.cli.targets import check_targets_not_inputs
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import pluralize
from pmlopt.core.numbers.arrays import Label, abbreviate
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.releases import Ledger


@main.group()
def ledger() -> None:
    """Keep account of what was released on people.

    A file holds what was released on each of them, and what is left of a total.
    """


ledger.add_command(stream_group)

LedgerFile: TypeAlias = Annotated[Path, ArgumentNote("LEDGER")]
MechanismFile: TypeAlias = Annotated[Path, ArgumentNote("MECHANISM")]


@add_command(ledger, "new")
def new_ledger(
    ledger_file: LedgerFile,
    prior_file: PriorFile,
    source: ColumnOptions,
    people: Annotated[int, "How many people.", click.IntRange(min=1)],
    total: Annotated[
        float | None, "The total leakage level in nats that no person may exceed."
    ] = None,
    round_counts: Annotated[
        bool, "Keep the total under the counts of people rounded as a release states them."
    ] = False,
) -> None:
    """Begin the ledger LEDGER (.npz) for so many people."""
    from pmlopt.releases import Ledger

    if ledger_file.exists():
        raise InputError(f"{ledger_file}: is there already: a ledger is not begun again")
    check_targets_not_inputs([ledger_file], [prior_file])
    known = source.read_law(prior_file)
    book = Ledger(restate_on_screen(known) if round_counts else known, people, total)
    book.save(ledger_file)
    print_line(f"{ledger_file}: {pluralize(people, 'person', 'people')}, nothing released")


_Columns: TypeAlias = Annotated[
    tuple[str, ...],
    "The column of DATA with what was released, a row a person. Several where outputs are tuples.",
    "--column",
]


@add_command(ledger, "record", spends=True)
def record_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    data: Annotated[Path, ArgumentNote("DATA")],
    columns: _Columns,
    form: DataOptions,
    person_column: Annotated[
        str | None, "The column of DATA with the numbers of the people, from 0."
    ] = None,
    in_order: Annotated[
        bool, "The rows of DATA are all people in their order, as --keep-order leaves them."
    ] = False,
    allow_duplicate: Annotated[
        bool, "Record a release that equals a recorded one: it was made once more."
    ] = False,
) -> None:
    """Record in LEDGER what MECHANISM released, a column of DATA (CSV, Parquet or Arrow).

    A release that might exceed the total is refused, and so is one that is recorded already; the file is then
    left unchanged. See `ledger check`, and `apply --ledger`, which records what it releases. Whose a row is
    must be stated, by --person-column or --in-order: apply and release write rows in a random order, which
    would be recorded for the wrong people.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.accounts.ledger_entries import parse_person_numbers

    if in_order == (person_column is not None):
        raise InputError(
            f"whose the rows of {data} are has to be stated in one way: name the column with the numbers of "
            "the people by --person-column, or give --in-order where the rows are all people in their order. "
            "What apply and release write without --keep-order has a random order"
        )
    mechanism = Mechanism.load(mechanism_file)
    released = form.read_texts(
        data, [*columns] if person_column is None else [*columns, person_column]
    )
    people = None if person_column is None else parse_person_numbers(released.pop(), person_column)
    outcomes: list[Any] = released[0]
    # as they read in one column
    labels: list[Label] = [str(output) for output in mechanism.outputs]
    if len(columns) > 1:
        outcomes = list(zip(*released, strict=True))
        labels = [
            tuple(map(str, output)) for output in mechanism.outputs if isinstance(output, tuple)
        ]
        if len(labels) < len(mechanism.outputs):
            shown = abbreviate(mechanism.outputs)
            raise InputError(
                f"--column is given several times, and the outputs {shown} are no tuples"
            )
    as_text = Mechanism(mechanism.matrix, mechanism.inputs, labels)
    with Ledger.open(ledger_file) as book:
        print_finished_publications(book)
        book.record(as_text, outcomes, people, allow_duplicate=allow_duplicate)
    note_released(f"{ledger_file} holds the release")
    print_recorded(book, ledger_file, len(outcomes))


@add_command(ledger, "check", extra=(json_option,))
def check_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    form: DataOptions,
    data: Annotated[
        Path | None, "A data file (CSV, Parquet or Arrow) with the people in the release."
    ] = None,
    person_column: Annotated[
        str | None, "The column of --data with their numbers, from 0; else all people are in it."
    ] = None,
) -> None:
    """Check whether a release through MECHANISM keeps the total of LEDGER, whatever the outcomes; else exit
    1.

    Nothing is released or recorded.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.accounts.ledger_entries import parse_person_numbers

    if (data is None) != (person_column is None):
        raise InputError(
            "--data and --person-column name the people in the release together: give both or neither"
        )
    book, mechanism = Ledger.load(ledger_file), Mechanism.load(mechanism_file)
    people = None
    if data is not None and person_column is not None:
        people = parse_person_numbers(form.read_texts(data, [person_column])[0], person_column)
    kept, level = book.allows(mechanism, people), book.level_after(mechanism, people)
    if not print_json("ledger-check", {"holds": kept, "level": level, "total": book.total}):
        verdict = "is kept" if kept else "MIGHT BE EXCEEDED"
        print_line(
            f"the total of {format_nats(book.total or 0.0)} {verdict}: a leakage may become "
            f"{format_nats(level)}"
        )
    sys.exit(0 if kept else CLAIM_FAILS)


@add_command(ledger, "show", extra=(json_option,))
def show_ledger(
    ledger_file: LedgerFile,
    person: Annotated[int | None, "Show the letters of one person.", click.IntRange(min=0)] = None,
) -> None:
    """Print what LEDGER holds: how much has leaked, or of one person the posterior and what is left."""
    from pmlopt.releases import Ledger

    book = Ledger.load(ledger_file)
    left = None if person is None or book.total is None else book.remaining(person=person).tolist()
    posterior = None if person is None else book.initial.pmf * np.exp(book.density(person))
    if print_json("ledger", {
        "people": book.people,
        "releases": book.releases,
        "total": book.total,
        "level": book.level,
        "labels": list(book.initial.labels),
        "posterior": None if posterior is None else posterior.tolist(),
        "remaining": left,
    }):  # fmt: skip
        return
    total = "no total" if book.total is None else f"a total of {format_nats(book.total)}"
    groups = pluralize(len(book.groups()), "history", "histories")
    people = pluralize(book.people, "person", "people")
    print_line(f"{people}, {pluralize(book.releases, 'release')}, {groups}, {total}")
    print_line(f"the largest leakage is {format_nats(book.level)}")
    if posterior is not None:
        shown = (
            [format_number(value) for value in left] if left is not None else [""] * len(posterior)
        )
        print_table(
            ["letter", "posterior", "left"],
            [(str(label), format_number(share), rest)
             for label, share, rest in zip(book.initial.labels, posterior.tolist(), shown, strict=True)],
        )  # fmt: skip


def print_finished_publications(book: Ledger) -> None:
    """Print releases whose publication was completed after an interruption."""
    for target in book.finished:
        print_line(
            f"{target}: is published now, its release was recorded and then interrupted", err=True
        )
    for name in book.unfinished:
        print_line(
            f"warning: the release {name} is recorded, and was interrupted before it was published in "
            "another folder: repeat its command",
            err=True,
        )


def print_recorded(book: Ledger, path: Path, outcomes: int) -> None:
    """Print a ledger's state after a release."""
    count = pluralize(outcomes, "outcome")
    print_line(
        f"{path}: {count} recorded, the largest leakage on a person is {format_nats(book.level)}"
    )
