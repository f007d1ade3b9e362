"""Commands about streams: releases of a secret that moves, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pmlopt.cli.data import DataOptions, Seed
from pmlopt.cli.options import TARGET, Arg, Json, Opt, command, main
from pmlopt.cli.printing import echo_json, nats, print_table, say
from pmlopt.cli.reading import read_numbers
from pmlopt.core import files
from pmlopt.core.arrays import Label
from pmlopt.errors import MechanismError
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
    column: Annotated[str, Opt("The column with the states, each person's in the order of the rows.")],
    epsilon: Annotated[float, Opt("What all releases may tell of each state, in nats.")],
    output: Annotated[Path, Opt("The stream to write (.json).", "-o/--output", TARGET)],
    utility: Annotated[str, Opt("hamming, absolute or squared.")] = "hamming",
    smoothing: Annotated[float, Opt("What is added to the count of each move.")] = 0.5,
    about: Annotated[str, Opt("state, path, or a number of states in a row.")] = "state",
    caps: Annotated[
        str | None, Opt("Levels up to which the first releases may go, with commas between.")
    ] = None,
) -> None:
    """Begin a stream for a chain that is counted in DATA.

    DATA has the states of many people, earlier ones above later ones. The file that is written is for one
    person, and is copied for others.
    """
    from pmlopt.core.arrays import labels_from_text
    from pmlopt.data.chain import Chain
    from pmlopt.model.privacy import PML
    from pmlopt.releases import Stream

    files.check_target(output)
    paths: dict[str, list[str]] = {}
    for who, state in zip(*form.texts(data, [person, column]), strict=True):
        paths.setdefault(who, []).append(state)
    texts = sorted({state for states in paths.values() for state in states})
    known = dict(zip(texts, labels_from_text(texts), strict=True))
    chain = Chain.from_sequences([[known[state] for state in states] for states in paths.values()], smoothing)
    what: Any = about if about in ("state", "path") else int(read_numbers(about, "--about")[0])
    levels = None if caps is None else read_numbers(caps, "--caps")
    stream = Stream(chain, PML(epsilon), utility, what, levels)
    stream.save(output)
    say(f"{output}: a stream of {chain.size} states, counted over {len(paths)} people")


@command(stream_group, "release")
def release_state(
    file: Annotated[Path, Arg("STREAM")],
    state: Annotated[str, Opt("The state now.")],
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Release the present state, and keep account of it in STREAM.

    What is printed is what may be published; the account is written first.
    """
    from pmlopt.releases import Stream

    with Stream.open(file) as stream:
        output = stream.release(_label(state, stream), seed)
        level, time = stream.level, stream.time - 1
    if as_json:
        echo_json({"time": time, "output": output, "level": finite(level)})
    else:
        say(f"{output}")


@command(stream_group, "show")
def show_stream(file: Annotated[Path, Arg("STREAM")], as_json: Json = False) -> None:
    """Show what a stream has told, and of which time."""
    from pmlopt.releases import Stream

    stream = Stream.load(file)
    if as_json:
        echo_json({
            "epsilon": stream.privacy.epsilon, "about": stream.about, "level": finite(stream.level),
            "levels": list(map(finite, stream.levels)), "history": list(stream.history),
            "worst": {str(time): finite(level) for time, level in stream.worst.items()},
            "next": dict(zip(map(str, stream.law.labels), stream.law.pmf.tolist(), strict=True)),
        })  # fmt: skip
        return
    say(f"{len(stream.history)} releases; {nats(stream.level)} of {stream.privacy.epsilon:g} are told")
    worst = stream.worst
    print_table(
        ["time", "output", "level then", "told of it by now"],
        [
            [f"{time}", f"{output}", nats(level), nats(worst[time]) if time in worst else ""]
            for time, (output, level) in enumerate(zip(stream.history, stream.levels, strict=True), 1)
        ],
    )


def _label(text: str, stream: Stream) -> Label:
    """The state that reads so."""
    known = {str(label): label for label in stream.chain.labels}
    if text not in known:
        raise MechanismError(f"--state {text!r} is none of {', '.join(known)}")
    return known[text]
