"""Commands about releases: what is released of a column, and what releases leak together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmlopt import files
from pmlopt.arrays import Label, few
from pmlopt.cli.asked import Asked, asks
from pmlopt.cli.options import PATH, check_apart, exits, json_option, main
from pmlopt.cli.printing import echo_json, nats, print_table, say
from pmlopt.cli.reading import aligned
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.mechanism import Mechanism
    from pmlopt.prior import Prior


@main.command()
@click.argument("mechanism_file", metavar="MECHANISM", type=PATH)
@click.argument("data", type=PATH)
@click.option("--column", required=True, help="The column of DATA that holds the secret.")
@click.option("-o", "--output", type=PATH, required=True, help="The CSV file to write.")
@click.option("--keep", help="The other columns that stay, in clear, with commas between; the rest goes.")
@click.option("--drop", help="The other columns that go, with commas between, or all.")
@click.option(
    "--assess", is_flag=True, help="Print what each column that stays in clear tells of the secret, by DATA."
)
@click.option(
    "--seed", type=click.IntRange(min=0), help="For a result that can be repeated; leave out for a release."
)
@exits
def apply(
    mechanism_file: Path,
    data: Path,
    column: str,
    output: Path,
    keep: str | None,
    drop: str | None,
    assess: bool,
    seed: int | None,
) -> None:
    """Replace a column of the CSV file DATA by the outputs of MECHANISM, row by row.

    Other columns stay in clear, and may tell of the secret what the mechanism does not: say with --keep or
    --drop which, and see with --assess what they add.
    """
    from pmlopt.mechanism import Mechanism

    if files.is_same_file(output, data):
        raise InputError(f"{output}: is the data itself: write the release to another file")
    check_apart([output], [mechanism_file])
    files.check_target(output)
    mechanism = Mechanism.load(mechanism_file)
    rows = files.read_rows(data)
    if rows[0].count(column) != 1:
        raise InputError(f"{data}: has {rows[0].count(column)} columns named {column!r}; it has {rows[0]}")
    place = rows[0].index(column)
    stays = _kept(rows[0], place, keep, drop)
    as_text = Mechanism(mechanism.matrix, map(str, mechanism.inputs), mechanism.outputs)
    released = as_text.sample((row[place] for row in rows[1:]), seed)
    beside = [other for other in stays if other != place]
    table = _assessed(as_text, rows, place, beside) if assess else []
    for row, letter in zip(rows[1:], released, strict=True):
        row[place] = str(letter)
    files.write_whole(output, files.csv_bytes([[row[other] for other in stays] for row in rows]))
    say(f"{len(released)} rows written to {output}")
    if table:
        print_table(["in clear beside it", "values", "by itself", "with the release"], table)
    if beside and keep is None and drop is None and not assess:
        say(
            f"warning: {few([rows[0][other] for other in beside])} stay in clear, and the level of the "
            "mechanism does not count what they tell: choose --keep or --drop, and see --assess",
            err=True,
        )


def _kept(header: Sequence[str], place: int, keep: str | None, drop: str | None) -> list[int]:
    """The places of the columns that are written."""
    if keep is not None and drop is not None:
        raise InputError("--keep and --drop both say which columns stay: give one")
    others = [other for other in range(len(header)) if other != place]
    if drop == "all" and "all" not in header:
        return [place]
    named = (keep if keep is not None else drop or "").split(",")
    names = {name.strip() for name in named} - ({""} if keep is None and drop is None else set())
    for name in names:
        if name not in [header[other] for other in others]:
            raise InputError(f"--keep or --drop: {name!r} is no other column of {list(header)}")
    chosen = {other for other in others if (header[other] in names) == (keep is not None)}
    return sorted({place, *chosen})


def _assessed(
    mechanism: Mechanism, rows: list[list[str]], place: int, beside: list[int]
) -> list[tuple[str, str, str, str]]:
    """The levels about the secret of each column in clear, alone and with the release, by the data."""
    from pmlopt.mechanism import Mechanism
    from pmlopt.releases import level_beside, level_in_clear
    from pmlopt.secret import Secret

    letters = [row[place] for row in rows[1:]]
    seen = list(dict.fromkeys(letters))
    inputs = [mechanism.inputs.index(letter) for letter in seen]
    part = Mechanism(mechanism.matrix[inputs], seen, mechanism.outputs)
    groups = [[other] for other in beside] + ([beside] if len(beside) > 1 else [])
    table = []
    for group in groups:
        values = [tuple(row[other] for other in group) for row in rows[1:]]
        joint = Secret.from_samples(values, letters)
        name = rows[0][group[0]] if len(group) == 1 else "all of them"
        table.append(
            (name, str(len(joint.values)), nats(level_in_clear(joint)), nats(level_beside(joint, part)))
        )
    return table


@main.command()
@click.argument("mechanism_files", metavar="MECHANISM...", type=PATH, nargs=-1, required=True)
@asks
@click.option(
    "--attributes",
    is_flag=True,
    help="One mechanism for each attribute: the prior has a column for each, in this order, then count.",
)
@click.option("-o", "--output", type=PATH, help="Write the product mechanism, whose labels are tuples.")
@json_option
@exits
def compose(
    mechanism_files: Sequence[Path], asked: Asked, attributes: bool, output: Path | None, as_json: bool
) -> None:
    """What several releases of one secret through the given mechanisms leak together, at most.

    A mechanism that is used twice is given twice. Levels under the prior do not add up to a bound.
    """
    from pmlopt.mechanism import Mechanism
    from pmlopt.releases import compose as product
    from pmlopt.releases import compose_attributes

    asked.check()
    if asked.robust or asked.privacy_name != "pml":
        raise InputError("compose is about PML under the given prior: leave out other requirements")
    if output is not None:
        check_apart([output], [*mechanism_files, *asked.files])
        files.check_target(output)
    mechanisms = [Mechanism.load(file) for file in mechanism_files]
    show = _show_attributes if attributes else _show_one_secret
    show(list(map(str, mechanism_files)), mechanisms, asked.prior(), as_json)
    if output is not None:
        (compose_attributes if attributes else product)(mechanisms).save(output)
        say(f"the product mechanism is written to {output}", err=as_json)


def _show_one_secret(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> None:
    """Print the levels of the releases of one secret, and of all together."""
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
        return
    rows = [(name, nats(level)) for name, level in zip(names, levels, strict=True)]
    print_table(["release", "level"], [*rows, ("all together", nats(worst.leakage))])
    say(f"most by the outcome {few(worst.outputs)}, which points at {worst.witness!r}")


def _show_attributes(
    names: Sequence[str], mechanisms: Sequence[Mechanism], prior: Prior, as_json: bool
) -> None:
    """Print the levels of the releases of several attributes: about each of them, and about their tuple."""
    from pmlopt.releases import attribute_levels

    joint = {_letters(label): share for label, share in zip(prior.labels, prior.pmf.tolist(), strict=True)}
    levels = attribute_levels(joint, mechanisms)
    if as_json:
        echo_json({
            "level": levels.together,
            "outcome": list(levels.outcome),
            "letters": list(levels.witness),
            "each": list(levels.each),
            "alone": list(levels.alone),
        })  # fmt: skip
        return
    rows = [
        (name, nats(alone), nats(each))
        for name, alone, each in zip(names, levels.alone, levels.each, strict=True)
    ]
    print_table(["attribute", "by its release", "by all"], rows)
    say(
        f"all attributes together: {nats(levels.together)}, by the outcome {few(levels.outcome)}, which "
        f"points at {levels.witness!r}"
    )


def _letters(label: Label) -> tuple[Label, ...]:
    """The letters of the attributes, of one where there is one."""
    return label if isinstance(label, tuple) else (label,)
