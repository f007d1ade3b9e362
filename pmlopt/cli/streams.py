"""The commands of a stream: releases of a secret that moves, and their account."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from pmlopt.cli.data_options import DataOptions, Seed
from pmlopt.cli.exits import note_released, prints_json
from pmlopt.cli.group import CommandGroup
from pmlopt.cli.options import ArgumentNote, add_command, json_option
from pmlopt.cli.printing import format_nats, print_json, print_table
from pmlopt.cli.reading import read_numbers
from pmlopt.cli.targets import TARGET
from pmlopt.cli.terminal import print_line
from pmlopt.core.display import pluralize
from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import indices_of
from pmlopt.errors import InputError, MechanismError

if TYPE_CHECKING:
    from pmlopt.releases import Stream


@click.group("stream", cls=CommandGroup)
def stream_group() -> None:
    """Release a secret that moves, step by step."""


@add_command(stream_group, "new")
def new_stream(
    data: Annotated[Path, ArgumentNote("DATA")],
    form: DataOptions,
    person_column: Annotated[str, "The column of DATA with the person of each row."],
    column: Annotated[str, "The column with the states."],
    epsilon: Annotated[float, "The leakage level of all releases about each state, in nats."],
    output: Annotated[
        Path,
        "The streams to write (.json); or, for very many people, a stream population (.npz).",
        TARGET,
    ],
    time_column: Annotated[
        str | None, "The column with the times; left out, earlier rows stand above later ones."
    ] = None,
    utility: Annotated[str, "hamming, absolute or squared."] = "hamming",
    smoothing: Annotated[float, "What is added to the count of each move."] = 0.5,
    about: Annotated[str, "state, path, or a number of states in a row."] = "state",
    caps: Annotated[
        str | None, "Levels up to which the first releases may go, with commas between."
    ] = None,
    designs: Annotated[
        int, "Of a population (.npz): how many designs there are at each step, at most."
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

    ending = disk.get_file_format(output, (".json", ".npz"))
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


@add_command(stream_group, "release", extra=(json_option,), spends=True)
def release_states(
    file: Annotated[Path, ArgumentNote("STREAMS")],
    form: DataOptions,
    person: Annotated[str | None, "The person whose state is released."] = None,
    state: Annotated[str | None, "With --person: the present state."] = None,
    data: Annotated[
        Path | None, "Instead: a data file with a row for each person and the present state."
    ] = None,
    person_column: Annotated[
        str | None, "With --data: the column with the person of each row."
    ] = None,
    column: Annotated[str | None, "With --data: the column with the states."] = None,
    output: Annotated[
        Path | None, "With --data: the file to write (CSV, Parquet or Arrow).", TARGET
    ] = None,
    seed: Seed = None,
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
    elif None not in of_many and of_one == (None, None) and (output is not None or prints_json()):
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
    released = {str(who): label for who, label in told.items()}
    if print_json("stream-release", {"released": released, "level": level}):
        return
    if output is None:
        print_line(f"{told[str(person)]}")
    else:
        print_line(
            f"{output}: {pluralize(len(told), 'output')}; at most {format_nats(level)} revealed of a person"
        )


@add_command(stream_group, "show", extra=(json_option,))
def show_stream(
    file: Annotated[Path, ArgumentNote("STREAMS")],
    person: Annotated[str | None, "Of whom; left out, of all."] = None,
) -> None:
    """Show what was released, about whom and at which time."""
    from pmlopt.releases import StreamPopulation

    many = _get_stream_class(file).load(file)
    epsilon = many.new_stream.privacy.epsilon
    levels = many.levels_by_name if isinstance(many, StreamPopulation) else many.levels
    if person is None:
        if print_json("streams", {
            "epsilon": epsilon, "level": many.level, "people": len(levels),
            "levels": {str(who): level for who, level in levels.items()},
        }):  # fmt: skip
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
        _print_stream(many.stream(person))
        return
    history = many.history(many.names.index(person))
    if print_json("stream", {
        "epsilon": epsilon, "level": levels[person],
        "history": [{"time": time, "output": output} for time, output in enumerate(history, 1)],
    }):  # fmt: skip
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


def _print_stream(stream: Stream) -> None:
    """Print one person's releases."""
    worst, epsilon = stream.worst_levels, stream.privacy.epsilon
    if print_json("stream", {
        "epsilon": epsilon, "protects": stream.about, "level": stream.level,
        "history": [
            {"time": time, "output": output, "level": level}
            for time, (output, level) in enumerate(zip(stream.history, stream.levels, strict=True), 1)
        ],
        "levels": {str(time): level for time, level in worst.items()},
        "next": dict(zip(map(str, stream.law.labels), stream.law.pmf.tolist(), strict=True)),
    }):  # fmt: skip
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
