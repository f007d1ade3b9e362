"""Commands that keep account: of several releases together, in ledgers, and of streams, step by step."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click
import numpy as np

from pmlopt.cli.asked import Asked, ColumnOptions, DataOptions, PriorFile, Seed
from pmlopt.cli.options import CLAIM_FAILS, TARGET, Arg, Json, Opt, check_apart, command, main, note_spent
from pmlopt.cli.printing import echo_json, nats, number, print_table, say
from pmlopt.cli.reading import aligned, read_numbers
from pmlopt.core import files
from pmlopt.core.arrays import Label, few, places_of
from pmlopt.core.display import things
from pmlopt.errors import InputError, MechanismError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.data.prior import Prior
    from pmlopt.releases import Ledger, Stream


@command(main)
def compose(
    mechanism_files: Annotated[tuple[Path, ...], Arg("MECHANISM...")],
    asked: Asked,
    attributes: Annotated[
        bool,
        Opt("One mechanism for each attribute: the prior has a column for each, in this order, then count."),
    ] = False,
    output: Annotated[
        Path | None, Opt("Write the product mechanism, whose labels are tuples.", "-o/--output", TARGET)
    ] = None,
    as_json: Json = False,
) -> None:
    """Bound what several releases leak together.

    They are of one secret, through the given mechanisms. A mechanism that is used twice is given twice.
    Levels under the prior do not add up to a bound.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.model.privacy import PML
    from pmlopt.programs.held import prove
    from pmlopt.releases import compose as product
    from pmlopt.releases import compose_attributes

    if asked.robust or asked.privacy_name != "pml":
        raise InputError("compose is about PML under the given prior: leave out other requirements")
    mechanisms, prior = [Mechanism.load(file) for file in mechanism_files], asked.prior()
    show = _show_attributes if attributes else _show_one_secret
    level = show(list(map(str, mechanism_files)), mechanisms, prior, as_json)
    if output is not None:
        whole = compose_attributes(mechanisms, prior.labels) if attributes else product(mechanisms)
        # Nats by which a level may be off that is claimed of floats: what rounding adds to it.
        prove(aligned(prior, whole), PML(level + 1e-12), whole).save(output)
        say(f"the product mechanism is written to {output}, with a certificate of its level", err=as_json)


def _show_one_secret(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> float:
    """Print the levels of the releases of one secret, and of all together; return that."""
    from pmlopt.measures import leakage_level
    from pmlopt.releases import worst_outcome

    prior = aligned(prior, mechanisms[0])
    worst = worst_outcome(prior, mechanisms)
    levels = [leakage_level(prior, mechanism) for mechanism in mechanisms]
    if as_json:
        echo_json({
            "level": worst.leakage,
            "outcome": list(worst.outputs),
            "letter": worst.witness,
            "levels": dict(zip(names, levels, strict=False)),
        })  # fmt: skip
        return worst.leakage
    rows = [(name, nats(level)) for name, level in zip(names, levels, strict=True)]
    print_table(["release", "level"], [*rows, ("all together", nats(worst.leakage))])
    say(f"the outcome {few(worst.outputs)} leaks most, about the letter {worst.witness!r}")
    return worst.leakage


def _show_attributes(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> float:
    """Print the levels of releases of several attributes: about each, and about their tuple; return that."""
    from pmlopt.releases import attribute_levels

    letters = [label if isinstance(label, tuple) else (label,) for label in prior.labels]
    joint = dict(zip(letters, prior.pmf.tolist(), strict=True))
    levels = attribute_levels(joint, mechanisms)
    if as_json:
        echo_json({
            "level": levels.together,
            "outcome": list(levels.outcome),
            "letters": list(levels.witness),
            "each": list(levels.each),
            "alone": list(levels.alone),
        })  # fmt: skip
        return levels.together
    rows = [
        (name, nats(alone), nats(each))
        for name, alone, each in zip(names, levels.alone, levels.each, strict=True)
    ]
    print_table(["attribute", "by its release", "by all"], rows)
    say(
        f"all attributes together: {nats(levels.together)}, by the outcome {few(levels.outcome)}, about the "
        f"letters {levels.witness!r}"
    )
    return levels.together


@main.group()
def ledger() -> None:
    """Keep account of what was released on people.

    A file holds what was released on each of them, and what is left of a total.
    """


LedgerFile: TypeAlias = Annotated[Path, Arg("LEDGER")]
MechanismFile: TypeAlias = Annotated[Path, Arg("MECHANISM")]


@command(ledger, "new")
def new_ledger(
    ledger_file: LedgerFile,
    prior_file: PriorFile,
    source: ColumnOptions,
    people: Annotated[int, Opt("How many people.", type=click.IntRange(min=1))],
    total: Annotated[float | None, Opt("The level in nats that nobody may exceed in all.")] = None,
) -> None:
    """Begin the ledger LEDGER (.npz) for so many people."""
    from pmlopt.releases import Ledger

    if ledger_file.exists():
        raise InputError(f"{ledger_file}: is there already: a ledger is not begun again")
    check_apart([ledger_file], [prior_file])
    book = Ledger(source.law_in(prior_file), people, total)
    book.save(ledger_file)
    say(f"{ledger_file}: {things(people, 'person', 'people')}, nothing released")


_Columns: TypeAlias = Annotated[tuple[str, ...], Opt(
    "The column of DATA with what was released, a row a person. Several where outputs are tuples.", "--column"
)]  # fmt: skip


@command(ledger, "record", spends=True)
def record_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    data: Annotated[Path, Arg("DATA")],
    columns: _Columns,
    form: DataOptions,
    who: Annotated[
        str | None, Opt("The column of DATA with the numbers of the people, from 0; else all, in order.")
    ] = None,
    again: Annotated[bool, Opt("A release like one that is recorded was made once more.")] = False,
) -> None:
    """Record in LEDGER what MECHANISM released, a column of DATA (CSV, Parquet or Arrow).

    A release that might break the total is refused, and so is one that is recorded already: the file stays
    as it is. See `ledger check`, and `apply --ledger`, which records what it releases. Without --who the
    rows of DATA are the people in order, as `apply --keep-order` writes them: in a random order they would
    be others.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.recorded import numbers_of_people

    mechanism = Mechanism.load(mechanism_file)
    released = form.texts(data, [*columns] if who is None else [*columns, who])
    if who is None:
        say(
            f"warning: the rows of {data} are taken for the people in order, from 0: what apply and release "
            "write without --keep-order has a random order; name the people by --who",
            err=True,
        )
    people = None if who is None else numbers_of_people(released.pop(), who)
    outcomes: list[Any] = released[0]
    labels: list[Label] = [str(output) for output in mechanism.outputs]  # as they read in one column
    if len(columns) > 1:
        outcomes = list(zip(*released, strict=True))
        labels = [tuple(map(str, output)) for output in mechanism.outputs if isinstance(output, tuple)]
        if len(labels) < len(mechanism.outputs):
            shown = few(mechanism.outputs)
            raise InputError(f"--column is given several times, and the outputs {shown} are no tuples")
    as_text = Mechanism(mechanism.matrix, mechanism.inputs, labels)
    with Ledger.open(ledger_file) as book:
        say_finished(book)
        book.record(as_text, outcomes, people, again=again)
    note_spent(f"{ledger_file} holds the release")
    say_recorded(book, ledger_file, len(outcomes))


@command(ledger, "check")
def check_release(
    ledger_file: LedgerFile,
    mechanism_file: MechanismFile,
    form: DataOptions,
    data: Annotated[
        Path | None, Opt("A data file (CSV, Parquet or Arrow) with the people in the release.")
    ] = None,
    who: Annotated[
        str | None, Opt("The column of --data with their numbers, from 0; else all people are in it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check whether a release through MECHANISM keeps the total of LEDGER, whatever the outcomes; else exit
    1.

    Nothing is released or recorded.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.releases import Ledger
    from pmlopt.releases.recorded import numbers_of_people

    if (data is None) != (who is None):
        raise InputError("--data and --who name the people in the release together: give both or neither")
    book, mechanism = Ledger.load(ledger_file), Mechanism.load(mechanism_file)
    people = None if data is None or who is None else numbers_of_people(form.texts(data, [who])[0], who)
    kept, level = book.allows(mechanism, people), book.level_after(mechanism, people)
    if as_json:
        echo_json({"holds": kept, "level": level, "total": book.total})
    else:
        verdict = "is kept" if kept else "MIGHT BE EXCEEDED"
        say(f"the total of {nats(book.total or 0.0)} {verdict}: a leakage may become {nats(level)}")
    sys.exit(0 if kept else CLAIM_FAILS)


@command(ledger, "show")
def show_ledger(
    ledger_file: LedgerFile,
    person: Annotated[int | None, Opt("Show the letters of one person.", type=click.IntRange(min=0))] = None,
    as_json: Json = False,
) -> None:
    """Print what LEDGER holds: how much has leaked, or of one person the posterior and what is left."""
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
    groups = things(len(book.groups()), "history", "histories")
    people = things(book.people, "person", "people")
    say(f"{people}, {things(book.releases, 'release')}, {groups}, {total}")
    say(f"the largest leakage is {nats(book.level)}")
    if posterior is not None:
        shown = [number(value) for value in left] if left is not None else [""] * len(posterior)
        print_table(
            ["letter", "posterior", "left"],
            [(str(label), number(share), rest)
             for label, share, rest in zip(book.initial.labels, posterior.tolist(), shown, strict=True)],
        )  # fmt: skip


def say_finished(book: Ledger) -> None:
    """Print what was published of a release that had been interrupted."""
    for target in book.finished:
        say(f"{target}: is published now, its release was recorded and then interrupted", err=True)
    for name in book.unfinished:
        say(
            f"warning: the release {name} is recorded, and was interrupted before it was published in "
            "another folder: repeat its command",
            err=True,
        )


def say_recorded(book: Ledger, path: Path, outcomes: int) -> None:
    """Print what a ledger holds after a release."""
    count = things(outcomes, "outcome")
    say(f"{path}: {count} recorded, the largest leakage on a person is {nats(book.level)}")


@main.group("stream")
def stream_group() -> None:
    """Release a secret that moves, step by step."""


@command(stream_group, "new")
def new_stream(
    data: Annotated[Path, Arg("DATA")],
    form: DataOptions,
    person: Annotated[str, Opt("The column of DATA that says whose row it is.")],
    column: Annotated[str, Opt("The column with the states.")],
    epsilon: Annotated[float, Opt("What all releases may tell of each state, in nats.")],
    output: Annotated[
        Path,
        Opt("The streams to write (.json); or, for very many people, a crowd (.npz).", "-o/--output", TARGET),
    ],
    time: Annotated[
        str | None, Opt("The column with the times; left out, earlier rows stand above later ones.")
    ] = None,
    utility: Annotated[str, Opt("hamming, absolute or squared.")] = "hamming",
    smoothing: Annotated[float, Opt("What is added to the count of each move.")] = 0.5,
    about: Annotated[str, Opt("state, path, or a number of states in a row.")] = "state",
    caps: Annotated[
        str | None, Opt("Levels up to which the first releases may go, with commas between.")
    ] = None,
    designs: Annotated[int, Opt("Of a crowd: how many designs there are at each step, at most.")] = 32,
) -> None:
    """Begin streams for a chain that is counted in DATA.

    DATA (CSV, Parquet or Arrow) has a row for each person and time. Nothing of it is released. A crowd
    is of the people in DATA, of whom each has a state at each step.
    """
    from pmlopt.data.chain import Chain
    from pmlopt.data.tables import state_sequences
    from pmlopt.model.privacy import PML
    from pmlopt.releases import Crowd, Stream, Streams

    ending = files.ending_of(output, (".json", ".npz"))
    paths = state_sequences(data, person, column, time, form.form)
    chain = Chain.from_sequences(paths, smoothing)
    what: Any = int(about) if about.isdecimal() else about
    levels = None if caps is None else read_numbers(caps, "--caps")
    first = Stream(chain, PML(epsilon), utility, what, levels)
    if ending == ".npz":
        Crowd(first, dict.fromkeys(form.texts(data, [person])[0]), designs).save(output)
    else:
        Streams(first).save(output)
    say(f"{output}: streams of {chain.size} states, counted over {len(paths)} people")


@command(stream_group, "release", spends=True)
def release_states(
    file: Annotated[Path, Arg("STREAMS")],
    form: DataOptions,
    person: Annotated[str, Opt("Whose state it is; with --data the column that says so.")],
    state: Annotated[str | None, Opt("The state now.")] = None,
    data: Annotated[Path | None, Opt("Instead: a row for each person, with the state now.")] = None,
    column: Annotated[str | None, Opt("With --data: the column with the states.")] = None,
    output: Annotated[
        Path | None, Opt("With --data: the file to write (CSV, Parquet or Arrow).", "-o/--output", TARGET)
    ] = None,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Release present states, and keep account in STREAMS.

    What is printed, or written, is what may be published; the account is written first. Of several people the
    rows have a random order.
    """
    from pmlopt.data.sampling.categorical import random_bits
    from pmlopt.data.tables.row_order import shuffle_list
    from pmlopt.data.tables.writing import sink_of, write_table

    if (state is None) == (data is None) or (data is None) != (column is None and output is None):
        raise InputError("give --state, or --data FILE with --column NAME and --output FILE")
    if output is not None:
        sink_of(output)
    rows = (
        [(person, state)]
        if data is None
        else list(zip(*form.texts(data, [person, column or ""]), strict=True))
    )
    twice = next((who for who, number in Counter(who for who, _ in rows).items() if number > 1), None)
    if twice is not None:
        raise InputError(f"{data}: {twice!r} has two rows: give the state of one time for each person")
    with _kind_of(file).open(file) as many:
        labels = many.fresh.chain.labels
        places = places_of([now for _, now in rows], labels, "the states", MechanismError, text=True)
        told = many.release({who: labels[place] for (who, _), place in zip(rows, places, strict=True)}, seed)
        level = many.level
    note_spent(f"{file} holds the release of {things(len(told), 'person', 'people')}")
    if data is not None:  # of many people, whose order may reveal their states
        told = dict(shuffle_list(list(told.items()), random_bits(seed if seed is None else [seed, 0, 1])))
    if output is not None:
        write_table(output, {person: list(told), str(column): list(told.values())})
    if as_json:
        echo_json({"outputs": {str(who): label for who, label in told.items()}, "level": finite(level)})
    elif output is None:
        say(f"{told[person]}")
    else:
        say(f"{output}: {things(len(told), 'output')}; at most {nats(level)} are told of a person")


@command(stream_group, "show")
def show_stream(
    file: Annotated[Path, Arg("STREAMS")],
    person: Annotated[str | None, Opt("Of whom; left out, of all.")] = None,
    as_json: Json = False,
) -> None:
    """Show what was released, about whom and at which time."""
    from pmlopt.releases import Crowd

    many = _kind_of(file).load(file)
    epsilon = many.fresh.privacy.epsilon
    levels = many.levels_by_name if isinstance(many, Crowd) else many.levels
    if person is None:
        if as_json:
            people = {str(who): finite(level) for who, level in levels.items()}
            echo_json({"epsilon": epsilon, "level": finite(many.level), "people": people})
            return
        say(f"{things(len(levels), 'person', 'people')}; {nats(many.level)} of {epsilon:g} at most")
        print_table(["person", "level"], [[f"{who}", nats(level)] for who, level in levels.items()])
        return
    if person not in levels:
        raise InputError(f"nothing was released of {person!r}")
    if not isinstance(many, Crowd):
        _show(many.stream(person), as_json)
        return
    history = many.history(many.names.index(person))
    if as_json:
        echo_json({"epsilon": epsilon, "level": finite(levels[person]), "history": list(history)})
        return
    say(f"{things(len(history), 'release')}; {nats(levels[person])} of {epsilon:g} are told")
    print_table(["time", "output"], [[f"{time}", f"{output}"] for time, output in enumerate(history, 1)])


def _kind_of(file: Path) -> Any:
    """Return the class of the streams in a file."""
    from pmlopt.releases import Crowd, Streams

    return Crowd if file.suffix.lower() == ".npz" else Streams


def _show(stream: Stream, as_json: bool) -> None:
    """Print what was released about one person."""
    worst, epsilon = stream.worst, stream.privacy.epsilon
    if as_json:
        echo_json({
            "epsilon": epsilon, "about": stream.about, "level": finite(stream.level),
            "levels": list(map(finite, stream.levels)), "history": list(stream.history),
            "worst": {str(time): finite(level) for time, level in worst.items()},
            "next": dict(zip(map(str, stream.law.labels), stream.law.pmf.tolist(), strict=True)),
        })  # fmt: skip
        return
    say(f"{things(len(stream.history), 'release')}; {nats(stream.level)} of {epsilon:g} are told")
    print_table(
        ["time", "output", "level then", "told of it by now"],
        [
            [f"{time}", f"{output}", nats(level), nats(worst[time]) if time in worst else ""]
            for time, (output, level) in enumerate(zip(stream.history, stream.levels, strict=True), 1)
        ],
    )
