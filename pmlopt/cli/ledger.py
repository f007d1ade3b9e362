"""The ledger from the shell: begin one, record a release in it, and see what is left."""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

from pmlopt.cli.data import ColumnOptions, DataOptions, reads_column, reads_data
from pmlopt.cli.options import PATH, check_apart, exits, json_option, main
from pmlopt.cli.printing import echo_json, nats, number, print_table, say
from pmlopt.errors import InputError
from pmlopt.result import finite


@main.group()
def ledger() -> None:
    """Keep account of what was released on people.

    A file holds what was released on each of them, and what is left of a total.
    """


@ledger.command("new")
@click.argument("ledger_file", metavar="LEDGER", type=PATH)
@click.option("--prior", "prior_file", type=PATH, required=True, help="CSV: letter, count or probability.")
@reads_column
@click.option("--people", type=click.IntRange(min=1), required=True, help="How many people.")
@click.option("--total", type=float, help="The level in nats that nobody may exceed in all.")
@exits
def new_ledger(
    ledger_file: Path, prior_file: Path, source: ColumnOptions, people: int, total: float | None
) -> None:
    """Begin the ledger LEDGER (.npz) for so many people."""
    from pmlopt.releases import Ledger

    if ledger_file.exists():
        raise InputError(f"{ledger_file}: is there already: a ledger is not begun again")
    check_apart([ledger_file], [prior_file])
    Ledger(source.prior(prior_file), people, total).save(ledger_file)
    say(f"{ledger_file}: {people} people, nothing released")


@ledger.command("record")
@click.argument("ledger_file", metavar="LEDGER", type=PATH)
@click.argument("mechanism_file", metavar="MECHANISM", type=PATH)
@click.argument("data", type=PATH)
@click.option("--column", required=True, help="The column of DATA with what was released, a row a person.")
@click.option("--who", help="The column of DATA with the numbers of the people, from 0; else all, in order.")
@reads_data
@exits
def record_release(
    ledger_file: Path, mechanism_file: Path, data: Path, column: str, who: str | None, form: DataOptions
) -> None:
    """Record in LEDGER what MECHANISM released, a column of DATA (CSV, Parquet or Arrow).

    A release that might break the total is refused, and the file stays as it is.
    """
    from pmlopt.mechanism import Mechanism
    from pmlopt.releases import Ledger

    book, mechanism = Ledger.load(ledger_file), Mechanism.load(mechanism_file)
    released, *numbers = form.texts(data, [column] if who is None else [column, who])
    as_text = Mechanism(mechanism.matrix, mechanism.inputs, map(str, mechanism.outputs))
    people = None if who is None else _numbers(numbers[0], who)
    book.record(as_text, released, people)
    book.save(ledger_file)
    say(f"{len(released)} outcomes recorded in {ledger_file}: the largest leakage is {nats(book.level)}")


@ledger.command("show")
@click.argument("ledger_file", metavar="LEDGER", type=PATH)
@click.option("--person", type=click.IntRange(min=0), help="Show the letters of one person.")
@json_option
@exits
def show_ledger(ledger_file: Path, person: int | None, as_json: bool) -> None:
    """Print what LEDGER says: how much has leaked, or of one person the posterior and what is left."""
    from pmlopt.releases import Ledger

    book = Ledger.load(ledger_file)
    left = None if person is None or book.total is None else book.remaining(person=person).tolist()
    posterior = None if person is None else book.initial.pmf * np.exp(book.density(person))
    if as_json:
        echo_json({
            "people": book.people,
            "releases": book.releases,
            "total": book.total,
            "level": book.level,
            "labels": list(book.initial.labels),
            "posterior": None if posterior is None else posterior.tolist(),
            "remaining": None if left is None else [finite(value) for value in left],
        })  # fmt: skip
        return
    total = "no total" if book.total is None else f"a total of {nats(book.total)}"
    say(f"{book.people} people, {book.releases} releases, {len(book.groups())} histories, {total}")
    say(f"the largest leakage is {nats(book.level)}")
    if posterior is not None:
        shown = [number(value) for value in left] if left is not None else [""] * len(posterior)
        print_table(
            ["letter", "posterior", "left"],
            [(str(label), number(share), rest)
             for label, share, rest in zip(book.initial.labels, posterior.tolist(), shown, strict=True)],
        )  # fmt: skip


def _numbers(texts: list[str], who: str) -> list[int]:
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise InputError(f"--who {who}: {text!r} is no number of a person")
    return [int(text) for text in texts]
