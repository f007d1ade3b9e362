"""Commands about streams: releases of a secret that moves, step by step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.data import DataOptions, Seed
from pmlopt.cli.options import TARGET, Arg, Json, Opt, command, main
from pmlopt.cli.printing import echo_json, nats, print_table, say
from pmlopt.cli.reading import read_numbers
from pmlopt.core import files
from pmlopt.core.arrays import places_of
from pmlopt.core.display import things
from pmlopt.errors import InputError, MechanismError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.releases import Stream


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


@command(stream_group, "release")
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

    What is printed, or written, is what may be published; the account is written first.
    """
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
    """Show what was told, of whom and of which time."""
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
    """The class of the streams in a file."""
    from pmlopt.releases import Crowd, Streams

    return Crowd if file.suffix.lower() == ".npz" else Streams


def _show(stream: Stream, as_json: bool) -> None:
    """Print what was told of one person."""
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
