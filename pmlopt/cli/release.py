"""Commands for verifiable releases, and the exploration page."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

import click
import numpy as np

from pmlopt.cli.data_options import (
    DatabaseOptions,
    DataOptions,
    KeepOrder,
    MissingCells,
    Seed,
    warn_of_order,
    warn_of_seed,
)
from pmlopt.cli.exits import CLAIM_FAILS, NOT_SOLVED, VERDICT_CODES, note_released, prints_json
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, OptionNote, add_command, imports, json_option
from pmlopt.cli.printing import format_nats, print_json, print_table, show_status
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import Minimise, OptionalUtility, read_utility
from pmlopt.cli.release_options import SingleReleaseOptions
from pmlopt.cli.sweeps import UNASKED, find_builder, read_grid
from pmlopt.cli.targets import DATA, TARGET, check_targets_not_inputs
from pmlopt.cli.terminal import print_line
from pmlopt.cli.worker_options import WorkerOptions
from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import join_words
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.publishing import ReleaseDraft
    from pmlopt.publishing.exploring import Exploration
    from pmlopt.publishing.folder import ReleaseFile


@add_command(main, "release", extra=(json_option, imports), spends=True)
def release_command(
    data: Annotated[Path, ArgumentNote("DATA", type=DATA)],
    one: SingleReleaseOptions,
    form: DataOptions,
    databases: DatabaseOptions,
    workers: WorkerOptions,
    plan_file: Annotated[
        Path | None,
        "A plan file (TOML) in place of --column: how each column is released. `pmlopt example plan.toml` "
        "writes one to begin with.",
    ] = None,
    output: Annotated[Path | None, "The folder to make."] = None,
    issuer: Annotated[
        str | None, "Who answers for the release, named in the report to sign."
    ] = None,
    exact_counts: Annotated[
        bool,
        "Publish the exact number of people with each value; else counts are rounded to tens or more.",
    ] = False,
    dry_run: Annotated[bool, "Print what the release would reveal, and write nothing."] = False,
    seed: Seed = None,
    missing: MissingCells = "refuse",
    keep_order: KeepOrder = False,
) -> None:
    """Release columns of DATA, with a report to sign.

    DATA is a file (CSV, Parquet, SPSS, Stata, SAS, R, Excel and others), a folder of Parquet files, which
    --workers release side by side, or a database: postgresql://..., sqlite:///FILE or duckdb:///FILE. A
    password is better given as PGPASSWORD, which no list of processes shows.
    Every column is named once: as released, by --keep or by --drop, or --drop-all drops the rest. Before
    anything is drawn it is stated what each outcome reveals, and what all releases leak together. Then the
    folder is made, whole or not at all: the released file, its rows in a random order, the mechanisms with
    their certificates, a report to sign, and release.json, with counts of people rounded unless
    --exact-counts is given. Exits with 1, and writes nothing, when --total would be exceeded.
    """
    from pmlopt.core.records.converters import to_plain
    from pmlopt.publishing import read_plan, release, write_release
    from pmlopt.publishing.fitting import find_largest_epsilon, fits_ledger, fits_total
    from pmlopt.publishing.releasing import DataDigests

    output = _choose_target(data, output, dry_run)
    source = click.get_current_context().with_resource(databases.open_source(data))
    if plan_file is None:
        plan = one.build_plan(source, form)
    elif one != SingleReleaseOptions():
        raise InputError(
            "--plan states all of it: leave out --column, --keep, --drop, --total and similar options"
        )
    else:
        plan = read_plan(plan_file)
    plan = plan.with_options(
        issuer=issuer, exact_counts=exact_counts or None, keep_order=keep_order or None
    )
    csv_format = plan.choose_format(form.csv_format)
    ledger = None if plan.ledger is None else plan.folder / plan.ledger
    if output is not None and _finish_interrupted(ledger, output):
        databases.explain_absent_table(output)
        return
    warn_of_seed(seed)
    warn_of_order(plan.keep_order)
    law = None if plan.law is None else plan.folder / plan.law
    with show_status("designing"), one.name_options():
        digests = DataDigests.compute(source, law)
        mechanisms = plan.make_mechanisms(source, missing, csv_format)
        draft = release(
            source, mechanisms, keep=plan.keep, drop=plan.drop, total=plan.total, title=plan.title,
            law=law, ledger=ledger, person_column=plan.person_column, issuer=plan.issuer,
            household_column=plan.group, exact_counts=plan.exact_counts,
            drop_missing=missing == "drop", keep_order=plan.keep_order, form=csv_format,
        )  # fmt: skip
        if replace(draft.digests, rows="") != digests:
            raise InputError(
                "the data were changed since the mechanisms were designed for them: start again"
            )
    told = draft.planned
    if told.step == 1:
        print_line(
            "warning: the exact number of people with each value is published (exact counts)",
            err=True,
        )
    if not prints_json():
        _print_release(told, draft, is_dry_run=output is None)
    elif output is None or told.exceeds_total:
        print_json("release", to_plain(told))
    _check_total(draft, lambda: find_largest_epsilon(plan, draft, missing, fits_total))
    _check_ledger(draft, lambda: find_largest_epsilon(plan, draft, missing, fits_ledger))
    if output is None:
        return
    databases.reserve_table(source)
    with workers.open_executor() as executor:
        described = write_release(draft, output, seed, executor)
    recorded = "" if ledger is None else f", and recorded in {ledger}"
    note_released(f"{output} is published{recorded}")
    databases.fill_table(source, output / described.data)
    if print_json("release", to_plain(described)):
        return
    print_line(f"{described.rows:,} rows written to {output / described.data}.")
    print_line(
        f"The report is {output / 'report.html'}; recipients of the folder run: pmlopt check {output}"
    )


def _check_total(draft: ReleaseDraft, find: Callable[[], float | None]) -> None:
    """Exit where a release's joint level exceeds its total, and print what would fit.

    Args:
        draft: of the release.
        find: finds the largest epsilon that fits, where one was given.
    """
    from pmlopt.publishing.folder import can_fit_total, explain_exceeded_total

    planned = draft.planned
    if not planned.exceeds_total:
        return
    print_line(
        f"The total would be exceeded: the release {planned.comparison_text}, and {planned.total:.6g} "
        "nats are allowed. Nothing is written.",
        err=True,
    )
    fits = None
    if can_fit_total(planned):
        with show_status("looking for the largest epsilon that fits"):
            fits = find()
    for line in explain_exceeded_total(planned, fits):
        print_line(line, err=True)
    sys.exit(CLAIM_FAILS)


def _finish_interrupted(ledger: Path | None, output: Path) -> bool:
    """Publish interrupted releases of a ledger; return whether this one was among them.

    What dead processes left of the output goes, and an output that is there is refused.
    """
    from pmlopt.cli.ledger import print_finished_publications
    from pmlopt.core.files.drafts import EMPTY_OWNER_KEY
    from pmlopt.releases import Ledger
    from pmlopt.releases.accounts.publications import compute_file_key
    from pmlopt.releases.rows.drafts import check_vacant, resolve_target_folder

    target = resolve_target_folder(output)
    with disk.exclusive_lock(target):
        if ledger is not None:
            with Ledger.open(ledger, target.parent) as book:
                print_finished_publications(book)
            if str(target) in book.finished:
                return True
        check_vacant(target, EMPTY_OWNER_KEY if ledger is None else compute_file_key(ledger))
    return False


def _check_ledger(draft: ReleaseDraft, find: Callable[[], float | None]) -> None:
    """Print the ledger level after the release, and exit where it exceeds the total.

    Args:
        draft: of the release.
        find: finds the largest epsilon that fits, where one was given.
    """
    if (found := draft.check_ledger()) is None:
        return
    book, allowed, level = found
    total = "no total" if book.total is None else f"a total of {format_nats(book.total)}"
    print_line(
        f"By the ledger, with {total}, the leakage on a person may come to {format_nats(level)}.",
        err=prints_json(),
    )
    if not allowed:
        print_line("The total of the ledger might be exceeded. Nothing is written.", err=True)
        with show_status("looking for the largest epsilon that fits"):
            fits = find()
        if fits is not None:
            print_line(
                f"The largest epsilon that fits is {fits:g}: give --epsilon {fits:g}.", err=True
            )
        print_line(
            "Or design within what the ledger leaves to each person: --within-ledger in place of --epsilon. "
            "Levels of local differential privacy add up: releases with --privacy ldp whose levels have at "
            "most the total as their sum always fit.",
            err=True,
        )
        sys.exit(CLAIM_FAILS)


def _choose_target(data: Path | str, output: Path | None, dry_run: bool) -> Path | None:
    """Return the folder to write to, None for a dry run.

    Raises:
        InputError: the data cannot be read, or the folder not be written.
    """
    from pmlopt.core.files.disk import is_standard_stream

    if output is None and not dry_run:
        raise InputError("give -o FOLDER to write to, or --dry-run to write nothing")
    if is_standard_stream(data):
        raise InputError("the data are read more than once: give a file, not standard input")
    if output is not None and isinstance(data, Path):
        check_targets_not_inputs([output], [data])
    if dry_run and output is not None:
        print_line(f"{output} is not written: this is a dry run", err=True)
        return None
    return output


def _print_release(told: ReleaseFile, draft: ReleaseDraft, is_dry_run: bool) -> None:
    """Print the report sections of a release, and what only the releaser learns."""
    from pmlopt.publishing.page import build_sections
    from pmlopt.publishing.releaser_notes import build_releaser_notes

    notes = build_releaser_notes(draft, is_dry_run)
    for one in (*build_sections(told, draft.made), notes):
        if one.title:
            print_line(one.title)
        for line in one.lines:
            print_line(f"  {'warning: ' if one.kind == 'warning' else ''}{line}")
        if one.rows:
            print_table(one.head, one.rows)


@add_command(main, "check", extra=(json_option,))
def check_command(folder: Annotated[Path, ArgumentNote("FOLDER")]) -> None:
    """Check a release from its FOLDER only.

    Decides every claim again: digests, the certificate of each mechanism, the levels, the labels, and whether
    the released file can have come from the mechanisms. Exits with 1 when a claim fails or a file is missing,
    and with 3 where a claim cannot be decided from the folder. What no folder can show is listed and changes
    no exit code. `verify` is for one saved result, and `audit` for a mechanism under a prior.
    """
    from pmlopt.publishing import check
    from pmlopt.publishing.checking import explain_undecided

    verdict = check(folder)
    if not print_json("verdict", verdict.to_dict()):
        print_line(f"{folder}: {verdict.statement}")
        print_table(
            ["claim", "verdict", "found"],
            [(one.name, one.verdict, one.detail) for one in verdict.parts],
        )
        rest = join_words((one.name for one in verdict.parts if one.holds is None), 9)
        partly = f"What can be checked from the folder holds; {rest} cannot be checked from it."
        print_line({True: "All of it holds.", False: "It FAILS.", None: partly}[verdict.holds])
        warnings = (f"Warning: {line}" for line in verdict.warnings)
        notes = ("What this folder cannot show:", *(f"  {line}" for line in verdict.notes))
        for line in (*explain_undecided(verdict), *warnings, *notes):
            print_line(line)
    sys.exit(VERDICT_CODES[verdict.holds])


@add_command(main, "example")
def example_command(target: Annotated[Path, ArgumentNote("FILE")]) -> None:
    """Write made-up people to FILE to try things on.

    45,000 rows of CSV: an id, a level of education from 1 to 16 and a sex each, drawn from published counts
    of the Adult data. A FILE that ends in .toml is a plan to release two of their columns together.
    """
    from pmlopt.publishing.example import write_example, write_example_plan

    if target.exists() or target.suffix.lower() not in (".csv", ".toml"):
        raise InputError(
            f"{target}: is there already, or ends otherwise: name a new file that ends in .csv, or in .toml "
            "for a plan"
        )
    if target.suffix.lower() == ".toml":
        write_example_plan(target)
        print_line(f"{target}: a plan for the people that pmlopt example people.csv writes.")
        return
    write_example(target)
    print_line(
        f"{target}: 45,000 made-up people, drawn from counts of the Adult data (education by sex)."
    )


PRIOR = {
    "prior_file",
    "counts_file",
    "columns",
    "missing",
    "normalise",
    "delimiter",
    "encoding",
    "labels",
    "sheet",
}
"""The options of the prior, which every requirement that is compared shares."""

_Page: TypeAlias = Annotated[Path, "The page to write (.html).", "-o/--output", TARGET]
_Epsilons: TypeAlias = Annotated[
    str | None,
    "The levels in nats: with commas between, or START:STOP:COUNT; left out, 40 up to 3 nats at most.",
    "--epsilon",
]
_Compare: TypeAlias = Annotated[
    str | None,
    "What a design is compared with, with commas between: ldp, response (randomized response), nothing (what "
    "releasing nothing is worth); left out, all of them; none for none.",
]
_Total: TypeAlias = Annotated[
    float | None,
    "With --about: release both columns of it, and split this level over them, in nats.",
]
_Person: TypeAlias = Annotated[str | None, "Whose, where FILE has streams."]
_HalfWidth: TypeAlias = Annotated[
    float | None,
    "Of the intervals of estimated frequencies for which people are counted; else 0.01.",
]


@add_command(main, "explore", extra=(imports,))
def explore_command(
    asked: PrivacyOptions,
    output: _Page,
    saved: Annotated[str | None, ArgumentNote("[FILE]")] = None,
    utility_name: OptionalUtility = None,
    minimise: Minimise = False,
    epsilons: _Epsilons = None,
    compare: _Compare = None,
    total: _Total = None,
    person: _Person = None,
    half_width: _HalfWidth = None,
    time_limit: Annotated[float | None, "Seconds for each point."] = None,
    exact_counts: Annotated[
        bool, "Show the exact counts of people of the prior; else they are rounded to tens or more."
    ] = False,
) -> None:
    """Write a page to explore a trade-off.

    The page shows what each level would be worth and would reveal, for choosing one by sliders. It is one
    file that needs no network. Each number is one of a certified answer. Counts of people are rounded as in a
    release, and designs are for the rounded shares, unless --exact-counts is given. In place of a prior, FILE
    is a ledger (.npz), streams (.json), or a problem file or id. Exits with 3 when a point could not be
    solved. Needs the extra `explore`.
    """
    disk.get_file_format(output, (".html",))
    options: dict[str, Any] = {} if half_width is None else {"half_width": half_width}
    options |= {} if time_limit is None else {"time_limit": time_limit}
    with show_status("exploring"):
        if saved is not None:
            others = (utility_name, compare, total)
            if asked != UNASKED or exact_counts or any(one is not None for one in others):
                raise InputError(f"{saved} sets what is explored: leave out the options of a prior")
            found = _explore_file(saved, person, epsilons, options)
        elif person is not None:
            raise InputError("--person belongs to a FILE of streams")
        elif utility_name is None:
            raise InputError("give the utility by --utility, or a FILE to explore")
        elif total is not None:
            options["exact_counts"] = exact_counts
            found = _explore_columns(asked, (utility_name, minimise), total, epsilons, options)
        else:
            options["exact_counts"] = exact_counts
            found = _explore_prior(asked, (utility_name, minimise), epsilons, compare, options)
        found.save(output)
    for line in found.warnings:
        print_line(f"warning: {line}", err=True)
    for line in found.failures:
        print_line(line, err=True)
    print_line(f"Wrote {output}: {sum(len(curve.points) for curve in found.curves)} points.")
    sys.exit(NOT_SOLVED if found.failures else 0)


def _explore_file(
    saved: str, person: str | None, epsilons: str | None, options: dict[str, Any]
) -> Exploration:
    """Build the exploration of a ledger, a person's stream, or a problem at other levels."""
    from pmlopt.publishing.exploring import explore
    from pmlopt.releases import Ledger, Streams

    kind = Path(saved).suffix.lower()
    if (person is not None) != (kind == ".json"):
        raise InputError("a FILE of streams (.json) and --person belong together: give both")
    if kind in (".json", ".npz") and (epsilons is not None or options):
        raise InputError(
            f"{saved} has its levels, and nothing is solved: leave out the other options"
        )
    if kind == ".npz":
        return explore(Ledger.load(saved), title=Path(saved).stem)
    if kind == ".json":
        return explore(Streams.load(saved).stream(person), title=f"{Path(saved).stem}: {person}")
    if epsilons is None:
        raise InputError("give the levels by --epsilon")
    builder, name = find_builder(saved)
    return explore(
        builder, {"epsilon": read_grid(epsilons)}, across="epsilon [nats]", title=name, **options
    )


def _explore_columns(
    asked: PrivacyOptions,
    utility: tuple[str, bool],
    total: float,
    epsilons: str | None,
    options: dict[str, Any],
) -> Exploration:
    """Build the exploration of splitting a total level over two columns."""
    from pmlopt.publishing.exploring import explore

    asked.check()
    secret = asked.secret
    if secret is None or epsilons is not None or utility[1] or "time_limit" in options:
        raise InputError(
            "--total splits the columns of --about, with a utility by name: leave out the rest"
        )
    return explore(secret, utility[0], total=total, title=asked.title, **options)


def _explore_prior(
    asked: PrivacyOptions,
    asked_utility: tuple[str, bool],
    epsilons: str | None,
    compare: str | None,
    options: dict[str, Any],
) -> Exploration:
    """Build the exploration of a prior's or secret's designs."""
    from pmlopt.publishing.exploring import explore
    from pmlopt.publishing.exploring.solved import ROUNDED_COUNTS
    from pmlopt.publishing.exploring.sources import BESIDE
    from pmlopt.publishing.stated_law import build_stated_secret, restate_prior

    exact = options["exact_counts"]
    if asked.confidence_delta is not None and not exact:
        raise InputError(
            "--confidence-delta needs the exact counts of the sample, which the page does not show: leave it "
            "out, or give --exact-counts"
        )
    known, secret = asked.read_prior(), asked.secret
    if secret is not None:
        secret = build_stated_secret(secret, exact)
    prior = restate_prior(known, exact) if secret is None else secret.prior
    given = asked.read_fields(prior, secret)
    utility, outputs = read_utility(*asked_utility, prior)
    plain = asked.privacy_name in ("pml", "ldp") and all(value is None for value in given.values())
    names = (
        BESIDE if compare is None else tuple(name for name in compare.split(",") if name != "none")
    )
    found = explore(
        prior,
        utility if outputs is not None else asked_utility[0],
        asked.requirement_class
        if plain
        else lambda epsilon: asked.build_requirement(epsilon, prior, given),
        None if epsilons is None else read_grid(epsilons),
        beside=names if asked.secret is None or compare is not None else BESIDE[1:],
        outputs=outputs,
        title=f"{asked.title}: {Path(asked_utility[0]).stem}",
        copied=_make_command_line(asked, asked_utility, prior, secret),
        **options,
    )
    if known.samples is None or exact:
        return found
    return replace(found, about=(*found.about, ROUNDED_COUNTS))


def _make_command_line(
    asked: PrivacyOptions, utility: tuple[str, bool], prior: Prior, secret: Secret | None
) -> Any:
    """Return the function that formats a point of the exploration as a command line.

    A file of the person's own keeps its name where it has that law, and no count of it is rounded.
    """
    from pmlopt.model.privacy import LDP
    from pmlopt.publishing.exploring import sources

    others = {one.name for one in fields(asked)} - PRIOR - {"about_file", "secret_column"}
    law = format_options(asked, PRIOR)
    rest_of = format_options(asked, {*others, "about_file", "secret_column"})
    before = ""
    if not np.array_equal(prior.pmf, asked.read_prior(announce=False).pmf):
        law, before = ["--prior", "prior.csv"], sources.format_prior_command(prior)
    if secret is not None and asked.secret is not None and secret is not asked.secret:
        law = ["--about", "pairs.csv"]
        rest_of = format_options(asked, others)
        before = sources.format_pairs_command(secret)

    def write_line(privacy: Any, level: float) -> str:
        beside = privacy is LDP and asked.requirement_class is not LDP
        if beside and secret is not None:
            return ""
        words = [*law, *(["--privacy", "ldp"] if beside else rest_of)]
        rest = [
            "--epsilon",
            repr(level),
            "--utility",
            utility[0],
            *(["--minimise"] if utility[1] else []),
        ]
        return shlex.join(["pmlopt", "design", *words, *rest, "-o", "mechanism.json"])

    named: Any = utility[0]
    found = replace(sources.make_copy_format(prior, named), command=write_line, before=before)
    is_file = Path(utility[0]).suffix.lower() == ".csv"
    return replace(found, utility=f"...  # that of {utility[0]}") if is_file else found


def format_options(record: Any, names: set[str] | None = None) -> list[str]:
    """Format given options as on the command line.

    Examples:
        >>> format_options(PrivacyOptions(prior_file=Path("p.csv"), privacy_name="ldp"))
        ['--prior', 'p.csv', '--privacy', 'ldp']
    """
    hints = get_type_hints(type(record), include_extras=True)
    found: list[str] = []
    for one in fields(record):
        value = getattr(record, one.name)
        if value != one.default and (names is None or one.name in names):
            flag = OptionNote.read(one.name, hints[one.name]).flags[0]
            found += [
                text
                for part in (value if isinstance(value, tuple) else (value,))
                for text in (flag, str(part))
            ]
    return found
