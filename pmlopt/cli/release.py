"""Commands from a data file to a release that others can check."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pmlopt.cli.data import DataOptions, MissingCells, Seed, warn_of_seed
from pmlopt.cli.options import CLAIM_FAILS, Arg, Json, Opt, check_apart, command, imports, main
from pmlopt.cli.printing import echo_json, nats, print_table, say, status
from pmlopt.cli.workers import Workers
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.publishing import Plan, ReleaseDraft
    from pmlopt.publishing.folder import ReleaseFile


@dataclass(frozen=True)
class OneRelease:
    """What is asked where there is no plan: one column, or a tuple of several, and all others."""

    columns: Annotated[
        tuple[str, ...], Opt("Without a plan: the column; several are released as one tuple.", "--column")
    ] = ()
    epsilon: Annotated[float | None, Opt("With --column: the PML bound in nats.")] = None
    delta: Annotated[float | None, Opt(
        "With --epsilon: the data are a sample; the bound holds for its population but with this probability."
    )] = None  # fmt: skip
    utility: Annotated[str | None, Opt("With --column: what stays useful: hamming, absolute, ...")] = None
    mechanism_file: Annotated[
        Path | None, Opt("With --column: a mechanism, in place of a design.", "--mechanism")
    ] = None
    keep: Annotated[tuple[str, ...], Opt("A column that stays, in clear. Give it once for each.")] = ()
    drop: Annotated[tuple[str, ...], Opt("A column that is not released. Give it once for each.")] = ()
    total: Annotated[
        float | None,
        Opt("The largest level of all that leaves, in clear too, in nats: above it nothing is written."),
    ] = None

    ledger_file: Annotated[Path | None, Opt(
        "A ledger that must allow the release, and records it when it is published.", "--ledger"
    )] = None  # fmt: skip
    who: Annotated[
        str | None, Opt("With --ledger: the column of DATA with the numbers of the people, from 0.")
    ] = None

    def plan(self) -> Plan:
        """The plan of one release."""
        from pmlopt.publishing import Plan

        if not self.columns:
            raise InputError("give --column NAME for one release, or --plan FILE for several")
        keys = ("epsilon", "delta", "utility")
        table = {name: getattr(self, name) for name in keys if getattr(self, name) is not None}
        if self.mechanism_file is not None:
            table["mechanism"] = str(self.mechanism_file)
        named = {"+".join(self.columns): {**table, "columns": list(self.columns)}}
        ledger = None if self.ledger_file is None else str(self.ledger_file)
        return Plan(named, self.keep, self.drop, self.total, ledger=ledger, who=self.who)


@command(main, "release", extra=(imports,))
def release_command(
    data: Annotated[Path, Arg("DATA")],
    one: OneRelease,
    form: DataOptions,
    workers: Workers,
    plan_file: Annotated[
        Path | None, Opt("A plan file (TOML): how each column is released.", "--plan")
    ] = None,
    output: Annotated[Path | None, Opt("The folder to make.", "-o/--output")] = None,
    dry_run: Annotated[bool, Opt("Say what the release would tell, and write nothing.")] = False,
    seed: Seed = None,
    missing: MissingCells = "refuse",
    as_json: Json = False,
) -> None:
    """Release columns of DATA, with a report to sign.

    DATA is a CSV, Parquet or Arrow file, or a folder of Parquet files, which --workers release side by side.
    Every column is named once: as released, by --keep or by --drop. Before anything is drawn it is said what
    each outcome tells, and what all releases leak together. Then the folder is made, whole or not at all: the
    released file, the mechanisms with their certificates, a report, and release.json. Exits with 1, and
    writes nothing, when --total would be exceeded.
    """
    from pmlopt.core.records import plain
    from pmlopt.publishing import read_plan, release, write_release

    _check_target(data, output, dry_run)
    if plan_file is None:
        plan = one.plan()
    elif one != OneRelease():
        raise InputError("--plan says all of it: leave out --column, --keep, --drop, --total and the like")
    else:
        plan = read_plan(plan_file)
    ledger = None if plan.ledger is None else plan.folder / plan.ledger
    if ledger is not None and output is not None and _was_interrupted(ledger, output):
        return
    warn_of_seed(seed)
    with status("designing", as_json):
        mechanisms = plan.mechanisms(data, missing, form.form)
        draft = release(
            data, mechanisms, keep=plan.keep, drop=plan.drop, total=plan.total, title=plan.title,
            law=None if plan.law is None else plan.folder / plan.law,
            ledger=ledger, who=plan.who,
            drop_missing=missing == "drop", form=form.form,
        )  # fmt: skip
    told = draft.described()
    if not as_json:
        _print(told, draft)
    elif output is None or told.exceeds:
        echo_json(plain(told))
    if told.exceeds:
        say(
            f"The total would be exceeded: the release {told.beyond}, and {draft.total:.6g} nats are "
            "allowed. Nothing is written: lower an epsilon, or release or keep fewer columns.",
            err=True,
        )
        sys.exit(CLAIM_FAILS)
    _check_ledger(draft, as_json)
    if output is None:
        return
    with workers.executor() as executor:
        described = write_release(draft, output, seed, executor)
    if as_json:
        echo_json(plain(described))
        return
    say(f"{described.rows:,} rows written to {output / described.data}.")
    say(f"The report is {output / 'report.html'}; whoever receives the folder runs: pmlopt check {output}")


def _was_interrupted(ledger: Path, output: Path) -> bool:
    """Publish what a ledger holds of releases that were interrupted; whether this very one was."""
    from pmlopt.cli.ledger import say_finished
    from pmlopt.releases import Ledger

    with Ledger.open(ledger) as book:
        say_finished(book)
    return str(output.resolve()) in book.finished


def _check_ledger(draft: ReleaseDraft, as_json: bool) -> None:
    """Say what the release may bring a person to by the ledger, and leave where it does not allow that."""
    if (found := draft.by_ledger()) is None:
        return
    book, allowed, level = found
    total = "no total" if book.total is None else f"a total of {nats(book.total)}"
    say(f"By the ledger, with {total}, the leakage on a person may come to {nats(level)}.", err=as_json)
    if not allowed:
        say("The total of the ledger might be exceeded. Nothing is written: lower an epsilon.", err=True)
        sys.exit(CLAIM_FAILS)


def _check_target(data: Path, output: Path | None, dry_run: bool) -> None:
    """Complain of what cannot be read or written."""
    from pmlopt.core.files import check_target, is_standard

    if (output is None) != dry_run:
        raise InputError("give -o FOLDER to write to, or --dry-run to write nothing: one of them")
    if is_standard(data):
        raise InputError("the data are read more than once: give a file, not standard input")
    if output is not None:
        if output.exists():
            raise InputError(f"{output}: is there already: name a folder that is not")
        check_apart([output], [data])
        check_target(output)


def _print(told: ReleaseFile, draft: ReleaseDraft) -> None:
    from pmlopt.publishing.page import sections

    for one in sections(told, draft.made):
        if one.title:
            say(one.title)
        for line in one.lines:
            say(f"  {'warning: ' if one.kind == 'warning' else ''}{line}")
        if one.rows:
            print_table(one.head, one.rows)


@command(main, "check")
def check_command(folder: Annotated[Path, Arg("FOLDER")], as_json: Json = False) -> None:
    """Check a release from its FOLDER alone.

    Decides every claim again: digests, the certificate of each mechanism, the levels, the labels, and whether
    the released file can have come from the mechanisms. Exits with 1 when a claim fails, and with 0 where a
    part cannot be checked from the folder, which is said.
    """
    from pmlopt.publishing import check

    verdict = check(folder)
    if as_json:
        echo_json(verdict.to_dict())
    else:
        say(f"{folder}: {verdict.statement}")
        print_table(
            ["claim", "verdict", "found"], [(one.name, one.verdict, one.detail) for one in verdict.parts]
        )
        partly = "What can be checked from the folder holds; a part cannot be checked from it."
        say({True: "All of it holds.", False: "It FAILS.", None: partly}[verdict.holds])
    sys.exit(CLAIM_FAILS if verdict.holds is False else 0)


@command(main, "example")
def example_command(target: Annotated[Path, Arg("FILE")]) -> None:
    """Write made-up people to FILE to try things on.

    45,000 rows of CSV: an id, a level of education from 1 to 16 and a sex each, drawn from published counts
    of the Adult data.
    """
    from pmlopt.publishing.example import write_example

    if target.exists() or target.suffix.lower() != ".csv":
        raise InputError(f"{target}: is there already, or ends otherwise: name a new file that ends in .csv")
    write_example(target)
    say(f"{target}: 45,000 made-up people, drawn from counts of the Adult data (education by sex).")
