"""Commands for accounting: composed releases, ledgers and streams."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click
import numpy as np

from pmlopt.cli.data_options import ColumnOptions, DataOptions, PriorFile, Seed
from pmlopt.cli.options import (
    CLAIM_FAILS,
    ArgumentNote,
    Json,
    OptionNote,
    add_command,
    main,
    note_released,
)
from pmlopt.cli.printing import format_nats, format_number, print_json, print_line, print_table
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.reading import align_prior, read_numbers
from pmlopt.cli.targets import TARGET, check_targets_not_inputs
from pmlopt.core import files
from pmlopt.core.arrays import Label, abbreviate, indices_of
from pmlopt.core.converters import finite_or_none
from pmlopt.core.display import pluralize
from pmlopt.errors import InputError, MechanismError

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.releases import Ledger, Stream


@add_command(main)
def compose(
    mechanism_files: Annotated[tuple[Path, ...], ArgumentNote("MECHANISM...")],
    asked: PrivacyOptions,
    attributes: Annotated[
        bool,
        OptionNote(
            "One mechanism for each attribute: the prior has a column for each, in this order, then count."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        OptionNote("Write the product mechanism, whose labels are tuples.", "-o/--output", TARGET),
    ] = None,
    as_json: Json = False,
) -> None:
    """Bound what several releases leak together.

    They are of one secret, through the given mechanisms. A mechanism that is used twice is given twice: after
    each one the level of all up to it is printed. Levels under the prior do not add up to a bound.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.model.privacy import PML
    from pmlopt.programs.compliance import prove
    from pmlopt.releases import compose as product
    from pmlopt.releases import compose_attributes

    if asked.is_robust or asked.privacy_name != "pml":
        raise InputError("compose is about PML under the given prior: leave out other requirements")
    mechanisms, prior = [Mechanism.load(file) for file in mechanism_files], asked.read_prior()
    show = _print_attributes if attributes else _print_one_secret
    level = show(list(map(str, mechanism_files)), mechanisms, prior, as_json)
    if output is not None:
        whole = compose_attributes(mechanisms, prior.labels) if attributes else product(mechanisms)
        # Nats by which a level may be off that is claimed of floats: what rounding adds to it.
        prove(align_prior(prior, whole), PML(level + 1e-12), whole).save(output)
        print_line(
            f"the product mechanism is written to {output}, with a certificate of its level",
            err=as_json,
        )


def _print_one_secret(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> float:
    """Print the levels of several releases of one secret, and jointly; return the joint level."""
    from pmlopt.measures import leakage_level
    from pmlopt.releases import worst_outcome

    prior = align_prior(prior, mechanisms[0])
    counts = range(1, len(mechanisms) + 1)
    found = [worst_outcome(prior, mechanisms[:count]) for count in counts]
    worst = found[-1]
    levels = [leakage_level(align_prior(prior, one), one) for one in mechanisms]
    if as_json:
        print_json("composition", {
            "level": worst.leakage,
            "outcome": list(worst.outputs),
            "letter": worst.witness,
            "levels": dict(zip(names, levels, strict=False)),
            "levels_together": [one.leakage for one in found],
        })  # fmt: skip
        return worst.leakage
    rows = [
        (name, format_nats(level), format_nats(one.leakage))
        for name, level, one in zip(names, levels, found, strict=True)
    ]
    print_table(
        ["release", "level", "with those above"], [*rows, ("all together", "", rows[-1][-1])]
    )
    print_line(
        f"the outcome {abbreviate(worst.outputs)} leaks most, about the letter {worst.witness!r}"
    )
    return worst.leakage


def _print_attributes(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> float:
    """Print the levels of attribute releases, each and jointly; return the joint level."""
    from pmlopt.releases import attribute_levels

    letters = [label if isinstance(label, tuple) else (label,) for label in prior.labels]
    joint = dict(zip(letters, prior.pmf.tolist(), strict=True))
    levels = attribute_levels(joint, mechanisms)
    if as_json:
        print_json("composition", {
            "level": levels.together,
            "outcome": list(levels.outcome),
            "letter": list(levels.witness),
            "levels": dict(zip(names, levels.alone, strict=True)),
            "joint_levels": dict(zip(names, levels.each, strict=True)),
        })  # fmt: skip
        return levels.together
    rows = [
        (name, format_nats(alone), format_nats(each))
        for name, alone, each in zip(names, levels.alone, levels.each, strict=True)
    ]
    print_table(["attribute", "by its release", "by all"], rows)
    print_line(
        f"all attributes together: {format_nats(levels.together)}, by the outcome "
        f"{abbreviate(levels.outcome)}, about the "
        f"letters {levels.witness!r}"
    )
    return levels.together


@main.group()
def ledger() -> None:
    """Keep account of what was released on people.

    A file holds what was released on each of them, and what is left of a total.
    """


LedgerFile: TypeAlias = Annotated[Path, ArgumentNote("LEDGER")]
MechanismFile: TypeAlias = Annotated[Path, ArgumentNote("MECHANISM")]


@add_command(ledger, "new")
def new_ledger(
    ledger_file: LedgerFile,
    prior_file: PriorFile,
    source: ColumnOptions,
    people: Annotated[int, OptionNote("How many people.", type=click.IntRange(min=1))],
    total: Annotated[
        float | None, OptionNote("The total leakage level in nats that no person may exceed.")
    ] = None,
    round_counts: Annotated[
        bool,
        OptionNote("Keep the total under the counts of people rounded as a release states them."),
    ] = False,
) -> None:
    """Begin the ledger LEDGER (.npz) for so many people."""
    from pmlopt.publishing.stated_law import restate_prior
    from pmlopt.releases import Ledger

    if ledger_file.exists():
        raise InputError(f"{ledger_file}: is there already: a ledger is not begun again")
    check_targets_not_inputs([ledger_file], [prior_file])
    known = source.read_law(prior_file)
    book = Ledger(restate_prior(known) if round_counts else known, people, total)
    book.save(ledger_file)
    print_line(f"{ledger_file}: {pluralize(people, 'person', 'people')}, nothing released")


_Columns: TypeAlias = Annotated[tuple[str, ...], OptionNote(
    "The column of DATA with what was released, a row a person. Several where outputs are tuples.", "--column"
)]  # fmt: skip


@add_command(ledger, "record", spends=True)
def record_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    data: Annotated[Path, ArgumentNote("DATA")],
    columns: _Columns,
    form: DataOptions,
    person_column: Annotated[
        str | None,
        OptionNote(
            "The column of DATA with the numbers of the people, from 0; else all, in order."
        ),
    ] = None,
    allow_duplicate: Annotated[
        bool, OptionNote("Record a release that equals a recorded one: it was made once more.")
    ] = False,
) -> None:
    """Record in LEDGER what MECHANISM released, a column of DATA (CSV, Parquet or Arrow).

    A release that might exceed the total is refused, and so is one that is recorded already; the file is then
    left unchanged. See `ledger check`, and `apply --ledger`, which records what it releases. Without
    --person-column the rows of DATA must be the people in order, as `apply --keep-order` writes them: rows in
    a random order would be recorded for the wrong people.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.ledger_entries import parse_person_numbers

    mechanism = Mechanism.load(mechanism_file)
    released = form.read_texts(
        data, [*columns] if person_column is None else [*columns, person_column]
    )
    if person_column is None:
        print_line(
            f"warning: the rows of {data} are taken for the people in order, from 0: what apply and release "
            "write without --keep-order has a random order; name the people by --person-column",
            err=True,
        )
    people = None if person_column is None else parse_person_numbers(released.pop(), person_column)
    outcomes: list[Any] = released[0]
    labels: list[Label] = [
        str(output) for output in mechanism.outputs
    ]  # as they read in one column
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


@add_command(ledger, "check")
def check_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    form: DataOptions,
    data: Annotated[
        Path | None,
        OptionNote("A data file (CSV, Parquet or Arrow) with the people in the release."),
    ] = None,
    person_column: Annotated[
        str | None,
        OptionNote("The column of --data with their numbers, from 0; else all people are in it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether a release through MECHANISM keeps the total of LEDGER, whatever the outcomes; else exit
    1.

    Nothing is released or recorded.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.ledger_entries import parse_person_numbers

    if (data is None) != (person_column is None):
        raise InputError(
            "--data and --person-column name the people in the release together: give both or neither"
        )
    book, mechanism = Ledger.load(ledger_file), Mechanism.load(mechanism_file)
    people = (
        None
        if data is None or person_column is None
        else parse_person_numbers(form.read_texts(data, [person_column])[0], person_column)
    )
    kept, level = book.allows(mechanism, people), book.level_after(mechanism, people)
    if as_json:
        print_json("ledger-check", {"holds": kept, "level": level, "total": book.total})
    else:
        verdict = "is kept" if kept else "MIGHT BE EXCEEDED"
        print_line(
            f"the total of {format_nats(book.total or 0.0)} {verdict}: a leakage may become "
            f"{format_nats(level)}"
        )
    sys.exit(0 if kept else CLAIM_FAILS)


@add_command(ledger, "show")
def show_ledger(
    ledger_file: LedgerFile,
    person: Annotated[
        int | None, OptionNote("Show the letters of one person.", type=click.IntRange(min=0))
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what LEDGER holds: how much has leaked, or of one person the posterior and what is left."""
    from pmlopt.releases import Ledger

    book = Ledger.load(ledger_file)
    left = None if person is None or book.total is None else book.remaining(person=person).tolist()
    posterior = None if person is None else book.initial.pmf * np.exp(book.density(person))
    if as_json:
        print_json("ledger", {
            "people": book.people,
            "releases": book.releases,
            "total": book.total,
            "level": book.level,
            "labels": list(book.initial.labels),
            "posterior": None if posterior is None else posterior.tolist(),
            "remaining": None if left is None else [finite_or_none(value) for value in left],
        })  # fmt: skip
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


@main.group("stream")
def stream_group() -> None:
    """Release a secret that moves, step by step."""


@add_command(stream_group, "new")
def new_stream(
    data: Annotated[Path, ArgumentNote("DATA")],
    form: DataOptions,
    person_column: Annotated[str, OptionNote("The column of DATA with the person of each row.")],
    column: Annotated[str, OptionNote("The column with the states.")],
    epsilon: Annotated[
        float, OptionNote("The leakage level of all releases about each state, in nats.")
    ],
    output: Annotated[
        Path,
        OptionNote(
            "The streams to write (.json); or, for very many people, a stream population (.npz).",
            "-o/--output",
            TARGET,
        ),
    ],
    time_column: Annotated[
        str | None,
        OptionNote("The column with the times; left out, earlier rows stand above later ones."),
    ] = None,
    utility: Annotated[str, OptionNote("hamming, absolute or squared.")] = "hamming",
    smoothing: Annotated[float, OptionNote("What is added to the count of each move.")] = 0.5,
    about: Annotated[str, OptionNote("state, path, or a number of states in a row.")] = "state",
    caps: Annotated[
        str | None, OptionNote("Levels up to which the first releases may go, with commas between.")
    ] = None,
    designs: Annotated[
        int, OptionNote("Of a population (.npz): how many designs there are at each step, at most.")
    ] = 32,
) -> None:
    """Begin streams for a chain that is counted in DATA.

    DATA (CSV, Parquet or Arrow) has a row for each person and time. Nothing of it is released. A population
    (.npz) is of the people in DATA, of whom each has a state at each step.
    """
    from pmlopt.data.chain import Chain
    from pmlopt.model.privacy import PML
    from pmlopt.releases import Stream, StreamPopulation, Streams
    from pmlopt.tables import state_sequences

    ending = files.get_file_format(output, (".json", ".npz"))
    paths = state_sequences(data, person_column, column, time_column, form.csv_format)
    chain = Chain.from_sequences(paths, smoothing)
    what: Any = int(about) if about.isdecimal() else about
    levels = None if caps is None else read_numbers(caps, "--caps")
    named: Any = utility
    first = Stream(chain, PML(epsilon), named, what, levels)
    if ending == ".npz":
        StreamPopulation(
            first, dict.fromkeys(form.read_texts(data, [person_column])[0]), designs
        ).save(output)
    else:
        Streams(first).save(output)
    print_line(f"{output}: streams of {chain.size} states, counted over {len(paths)} people")


@add_command(stream_group, "release", spends=True)
def release_states(
    file: Annotated[Path, ArgumentNote("STREAMS")],
    form: DataOptions,
    person: Annotated[str | None, OptionNote("The person whose state is released.")] = None,
    state: Annotated[str | None, OptionNote("With --person: the present state.")] = None,
    data: Annotated[
        Path | None,
        OptionNote("Instead: a data file with a row for each person and the present state."),
    ] = None,
    person_column: Annotated[
        str | None, OptionNote("With --data: the column with the person of each row.")
    ] = None,
    column: Annotated[str | None, OptionNote("With --data: the column with the states.")] = None,
    output: Annotated[
        Path | None,
        OptionNote(
            "With --data: the file to write (CSV, Parquet or Arrow).", "-o/--output", TARGET
        ),
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Release present states, and keep account in STREAMS.

    What is printed, or written, is what may be published; the account is written first. Of several people the
    rows have a random order.
    """
    from pmlopt.data.sampling.categorical import make_random_bits
    from pmlopt.tables.row_order import shuffle_list
    from pmlopt.tables.writing import choose_sink, write_table

    of_one = (person, state)
    of_many = (data, person_column, column)
    if None not in of_one and all(one is None for one in (*of_many, output)):
        rows = [of_one]
    elif None not in of_many and of_one == (None, None) and (output is not None or as_json):
        assert data is not None
        rows = list(zip(*form.read_texts(data, [str(person_column), str(column)]), strict=True))
    else:
        raise InputError(
            "give --person NAME and --state STATE, or --data FILE with --person-column NAME, --column NAME "
            "and --output FILE (or --json)"
        )
    if output is not None:
        choose_sink(output)
    twice = next(
        (who for who, number in Counter(who for who, _ in rows).items() if number > 1), None
    )
    if twice is not None:
        raise InputError(
            f"{data}: {twice!r} has two rows: give the state of one time for each person"
        )
    with _get_stream_class(file).open(file) as many:
        labels = many.new_stream.chain.labels
        places = indices_of(
            [now for _, now in rows], labels, "the states", MechanismError, text=True
        )
        told = many.release(
            {who: labels[place] for (who, _), place in zip(rows, places, strict=True)}, seed
        )
        level = many.level
    note_released(f"{file} holds the release of {pluralize(len(told), 'person', 'people')}")
    if data is not None:  # of many people, whose order may reveal their states
        told = dict(
            shuffle_list(
                list(told.items()), make_random_bits(seed if seed is None else [seed, 0, 1])
            )
        )
    if output is not None:
        write_table(output, {str(person_column): list(told), str(column): list(told.values())})
    if as_json:
        print_json("stream-release", {
            "released": {str(who): label for who, label in told.items()},
            "level": finite_or_none(level),
        })  # fmt: skip
    elif output is None:
        print_line(f"{told[str(person)]}")
    else:
        print_line(
            f"{output}: {pluralize(len(told), 'output')}; at most {format_nats(level)} revealed of a person"
        )


@add_command(stream_group, "show")
def show_stream(
    file: Annotated[Path, ArgumentNote("STREAMS")],
    person: Annotated[str | None, OptionNote("Of whom; left out, of all.")] = None,
    as_json: Json = False,
) -> None:
    """Show what was released, about whom and at which time."""
    from pmlopt.releases import StreamPopulation

    many = _get_stream_class(file).load(file)
    epsilon = many.new_stream.privacy.epsilon
    levels = many.levels_by_name if isinstance(many, StreamPopulation) else many.levels
    if person is None:
        if as_json:
            print_json("streams", {
                "epsilon": epsilon, "level": finite_or_none(many.level), "people": len(levels),
                "levels": {str(who): finite_or_none(level) for who, level in levels.items()},
            })  # fmt: skip
            return
        print_line(
            f"{pluralize(len(levels), 'person', 'people')}; {format_nats(many.level)} of {epsilon:g} at most"
        )
        print_table(
            ["person", "level"], [[f"{who}", format_nats(level)] for who, level in levels.items()]
        )
        return
    if person not in levels:
        raise InputError(f"nothing was released of {person!r}")
    if not isinstance(many, StreamPopulation):
        _print_stream(many.stream(person), as_json)
        return
    history = many.history(many.names.index(person))
    if as_json:
        print_json("stream", {
            "epsilon": epsilon, "level": finite_or_none(levels[person]),
            "history": [{"time": time, "output": output} for time, output in enumerate(history, 1)],
        })  # fmt: skip
        return
    print_line(
        f"{pluralize(len(history), 'release')}; {format_nats(levels[person])} of {epsilon:g} revealed"
    )
    print_table(
        ["time", "output"], [[f"{time}", f"{output}"] for time, output in enumerate(history, 1)]
    )


def _get_stream_class(file: Path) -> Any:
    """Return the class of a streams file's content."""
    from pmlopt.releases import StreamPopulation, Streams

    return StreamPopulation if file.suffix.lower() == ".npz" else Streams


def _print_stream(stream: Stream, as_json: bool) -> None:
    """Print one person's releases."""
    worst, epsilon = stream.worst_levels, stream.privacy.epsilon
    if as_json:
        print_json("stream", {
            "epsilon": epsilon, "protects": stream.about, "level": finite_or_none(stream.level),
            "history": [
                {"time": time, "output": output, "level": finite_or_none(level)}
                for time, (output, level) in enumerate(zip(stream.history, stream.levels, strict=True), 1)
            ],
            "levels": {str(time): finite_or_none(level) for time, level in worst.items()},
            "next": dict(zip(map(str, stream.law.labels), stream.law.pmf.tolist(), strict=True)),
        })  # fmt: skip
        return
    print_line(
        f"{pluralize(len(stream.history), 'release')}; {format_nats(stream.level)} of {epsilon:g} revealed"
    )
    print_table(
        ["time", "output", "level then", "revealed of it by now"],
        [
            [
                f"{time}",
                f"{output}",
                format_nats(level),
                format_nats(worst[time]) if time in worst else "",
            ]
            for time, (output, level) in enumerate(
                zip(stream.history, stream.levels, strict=True), 1
            )
        ],
    )
