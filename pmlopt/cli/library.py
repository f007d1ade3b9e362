"""The commands about the problem library, and the planning of samples."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Annotated, TypeAlias

import click

from pmlopt.cli.options import CLAIM_FAILS, Arg, Json, Opt, command, main
from pmlopt.cli.printing import echo_json, nats, number, print_table, progress, say
from pmlopt.errors import InputError
from pmlopt.programs.certificate import finite

if TYPE_CHECKING:
    from pmlopt.library import Instance

WIDTH = 80
"""Columns of a terminal."""
INDENT = "    "


@command(main)
def problems(words: Annotated[tuple[str, ...], Arg("[WORDS]...")] = (), as_json: Json = False) -> None:
    """List the problem library.

    With WORDS, only problems that have each of them in id, title or source.
    """
    from pmlopt.library import load_all

    instances = [
        instance
        for instance in load_all()
        if all(
            word.lower() in f"{instance.id} {instance.title} {_source(instance)}".lower() for word in words
        )
    ]
    if as_json:
        echo_json([
            {"id": i.id, "title": i.title, "file": str(i.path), "source": i.cite, "where": i.where}
            for i in instances
        ])  # fmt: skip
        return
    for instance in instances:
        say(instance.id)
        for text in (instance.title, _source(instance)):
            for line in textwrap.wrap(text, WIDTH - len(INDENT)):
                say(INDENT + line)
    say(f"{len(instances)} problems. Solve one with: pmlopt solve PROBLEM")


def _source(instance: Instance) -> str:
    """Where a problem comes from, in one line."""
    return f"{instance.cite}, {instance.where}"


@command(main)
def bench(
    repeats: Annotated[int, Opt("Runs of each; medians are shown.", type=click.IntRange(min=1))] = 3,
    as_json: Json = False,
) -> None:
    """Solve the library beside its closed forms.

    Exits with 1 when one disagrees.
    """
    from dataclasses import asdict

    from pmlopt.library import load_all
    from pmlopt.library.bench import compare

    instances = [instance for instance in load_all() if instance.names_closed_form]
    rows = list(progress(compare(instances, repeats), len(instances), "solving"))
    if as_json:
        echo_json([asdict(row) for row in rows])
    else:
        head = ["problem", "LP", "", "closed form", "value", "LP - closed", "LP [ms]", "closed [ms]", "ratio"]
        print_table([*head, "agrees"], [
            (
                row.id, number(row.lp_value), row.relation, row.closed_form, number(row.closed_value),
                "" if row.difference is None else f"{row.difference:.1e}",
                "" if row.lp_seconds is None else f"{1e3 * row.lp_seconds:.2f}",
                f"{1e3 * row.closed_seconds:.2f}",
                "" if row.ratio is None else f"{row.ratio:.0f}",
                "yes" if row.agrees else f"NO {row.problem or ''}",
            )
            for row in rows
        ])  # fmt: skip
    sys.exit(0 if all(row.agrees for row in rows) else CLAIM_FAILS)


_Least: TypeAlias = Annotated[float | None, Opt(
    "At most the least probability of the estimate, where it is known: for the first privacy region."
)]  # fmt: skip


@command(main)
def plan(
    letters: Annotated[int, Opt("N, the number of letters.")],
    epsilon: Annotated[float, Opt("The PML level at the estimate, in nats.")],
    target: Annotated[float | None, Opt("The level above it under the true distribution, in nats.")] = None,
    delta: Annotated[float | None, Opt("The probability over the sample that it fails.")] = None,
    samples: Annotated[int | None, Opt("The number of observations.")] = None,
    kappa: Annotated[
        float, Opt("At least the balance of the true distribution, where it is known: shrinks the radius.")
    ] = 0.5,
    least: _Least = None,
    as_json: Json = False,
) -> None:
    """Say what a sample can promise.

    Give two of --samples, --target and --delta for the third. A mechanism of level epsilon under the
    empirical distribution has at most the target level under the true one, except with probability delta over
    the sample.
    """
    from pmlopt.model.uncertainty import failure_bound, samples_needed, true_level_with_confidence

    if None not in (target, delta, samples):
        raise InputError("--samples, --target and --delta are all given: leave out the one to compute")
    if target is not None and delta is not None:
        samples = samples_needed(letters, epsilon, target, delta, kappa, least)
    elif target is not None and samples is not None:
        delta = failure_bound(samples, letters, epsilon, target, kappa, least)
    elif delta is not None and samples is not None:
        target = true_level_with_confidence(samples, letters, epsilon, delta, kappa, least)
    else:
        raise InputError("give two of --samples, --target and --delta: the third is computed")
    found = {"letters": letters, "epsilon": epsilon, "target": target, "delta": delta, "samples": samples}
    if as_json:
        echo_json({**found, "target": finite(target)})
        return
    print_table(["", ""], [
        ("letters", str(letters)),
        ("level at the estimate", nats(epsilon)),
        ("level in truth", nats(target)),
        ("failure probability", f"{delta:.3g}"),
        ("samples", f"{samples:,}"),
    ])  # fmt: skip
