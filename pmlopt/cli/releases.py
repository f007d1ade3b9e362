"""Commands about releases: what is released of a column, and what releases leak together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmlopt import files
from pmlopt.arrays import Label, few
from pmlopt.cli.asked import Asked, asks
from pmlopt.cli.options import PATH, TARGET, check_apart, exits, json_option, main
from pmlopt.cli.printing import echo_json, nats, print_table, say
from pmlopt.cli.reading import aligned
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.mechanism import Mechanism
    from pmlopt.prior import Prior


@main.command()
@click.argument("mechanism_files", metavar="MECHANISM...", type=PATH, nargs=-1, required=True)
@asks
@click.option(
    "--attributes",
    is_flag=True,
    help="One mechanism for each attribute: the prior has a column for each, in this order, then count.",
)
@click.option("-o", "--output", type=TARGET, help="Write the product mechanism, whose labels are tuples.")
@json_option
@exits
def compose(
    mechanism_files: Sequence[Path], asked: Asked, attributes: bool, output: Path | None, as_json: bool
) -> None:
    """Bound what several releases leak together.

    They are of one secret, through the given mechanisms. A mechanism that is used twice is given twice.
    Levels under the prior do not add up to a bound.
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
    say(f"the outcome {few(worst.outputs)} leaks most, about the letter {worst.witness!r}")


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
        f"all attributes together: {nats(levels.together)}, by the outcome {few(levels.outcome)}, about the "
        f"letters {levels.witness!r}"
    )


def _letters(label: Label) -> tuple[Label, ...]:
    """The letters of the attributes, of one where there is one."""
    return label if isinstance(label, tuple) else (label,)
