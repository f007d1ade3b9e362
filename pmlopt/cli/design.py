"""The commands `design` and `solve`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import click

from pmlopt.cli.completion import list_problem_names
from pmlopt.cli.data_options import ColumnOptions
from pmlopt.cli.exits import CLAIM_FAILS
from pmlopt.cli.group import main
from pmlopt.cli.options import ArgumentNote, SolveOptions, add_command, exit_code_of, refuse_options
from pmlopt.cli.printing import format_number
from pmlopt.cli.privacy_options import PrivacyOptions
from pmlopt.cli.published_priors import (
    RoundCounts,
    check_declared,
    read_published_law,
    read_remaining,
    restate_on_screen,
)
from pmlopt.cli.reading import (
    Minimise,
    Outputs,
    UtilityName,
    read_constraint,
    read_linear_utility,
    read_outputs,
    read_utility,
)
from pmlopt.core.matrices.formats import check_labels
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.symmetry import SymmetricPrior
    from pmlopt.model.utility import LinearUtility


def _read_symmetric_design(
    asked: PrivacyOptions, name: str, minimise: bool, records: int | None, circle: int | None
) -> tuple[SymmetricPrior, LinearUtility, str]:
    """Build symmetric prior, utility and title from the options for tables and circles."""
    from pmlopt.data.symmetry import CirclePrior, IIDPrior
    from pmlopt.model.utility import (
        LOSSES,
        CoordinateGain,
        CoordinateLoss,
        DisplacementLoss,
        evaluate_on_circle,
    )

    if circle is None:
        assert records is not None
        law = asked.read_prior()
        one, _ = read_linear_utility(name, minimise, law)  # is added over the records
        every = (CoordinateGain if one.maximised else CoordinateLoss)(one.matrix)
        return IIDPrior(law, records), every, f"{records} records of {asked.title}"
    refuse_options(
        (records is not None or asked.input_files,
         "--circle defines the prior: leave out --records, --prior and --counts"),
        (name not in LOSSES,
         f"the utility {name!r} is not known on a circle: use {', '.join(LOSSES)}"),
    )  # fmt: skip
    loss = DisplacementLoss(evaluate_on_circle(LOSSES[name], circle))
    return CirclePrior(circle), loss, f"a circle of {circle} letters"


def _read_replaced(
    prior_file: Path | None, source: ColumnOptions, mechanism_file: Path | None, round_counts: bool
) -> dict[str, Any]:
    """Read the parameters that replace those of a problem file."""
    found: dict[str, Any] = {}
    if prior_file is not None:
        prior = source.read_law(prior_file)
        found["prior"] = restate_on_screen(prior) if round_counts else prior
    elif round_counts or source != ColumnOptions():
        raise InputError("--column and the options on data are about the file of --prior: give it")
    if mechanism_file is not None:
        from pmlopt.data.mechanism import Mechanism

        found["mechanism"] = Mechanism.load(mechanism_file)
    return found


@add_command(main, "solve")
def solve_command(
    problem: Annotated[str, ArgumentNote("PROBLEM", list_problem_names)],
    run: SolveOptions,
    source: ColumnOptions,
    prior_file: Annotated[
        Path | None, "In place of the prior of PROBLEM: letters and counts, or data."
    ] = None,
    mechanism_file: Annotated[Path | None, "In place of the mechanism of PROBLEM."] = None,
    round_counts: RoundCounts = False,
) -> None:
    """Solve a problem file, or one of the library.

    PROBLEM is a file (.toml), or the id of one in the library (`pmlopt problems`). Exits with 1 when the
    optimum contradicts what the file expects of it.
    """
    from pmlopt.library import find

    run.check()
    instance = find(problem, _read_replaced(prior_file, source, mechanism_file, round_counts))
    result = run.solve_and_write(instance.program, instance.solver, instance.solver_options)
    expected = instance.expected
    agrees = None
    if expected is not None:
        agrees = expected.compare(result.value, result.bound, result.status.value == "optimal")
    rows = []
    if expected is not None:
        verdict = {True: "agrees", False: "DISAGREES", None: "not decided: the gap is open"}[agrees]
        rows = [
            (
                "expected",
                f"{expected.relation} {format_number(expected.value)} ({expected.basis}): {verdict}",
            )
        ]
    run.print_answer(
        result, f"{instance.title} [{instance.id}]", rows, {"id": instance.id, "holds": agrees}
    )
    sys.exit(CLAIM_FAILS if agrees is False else exit_code_of(result))


_Records: TypeAlias = Annotated[
    int | None,
    "The prior is the law of one of so many independent records, and the secret the table of them "
    "all: the utility adds over the records. Written by orbits, as .json.",
    click.IntRange(min=1),
]
_Circle: TypeAlias = Annotated[
    int | None,
    "In place of a prior: so many letters in a circle, uniform; the loss goes along the circle.",
    click.IntRange(min=1),
]


@add_command(main)
def design(
    asked: PrivacyOptions,
    utility_name: UtilityName,
    run: SolveOptions,
    epsilon: Annotated[
        float | None, "The privacy bound, in nats; with --within-ledger it may be left out."
    ] = None,
    ledger_file: Annotated[
        Path | None, "With --within-ledger: the ledger, on the letters of the prior."
    ] = None,
    within_ledger: Annotated[
        bool, "Design within what --ledger leaves to each of its people, for one mechanism for all."
    ] = False,
    minimise: Minimise = False,
    outputs: Outputs = None,
    constraints: Annotated[
        tuple[str, ...],
        "An additional constraint on the mechanism: invariant, unbiased, variance=NUMBER, within=NUMBER, "
        "retention=NUMBER (the share of records that keep their value), category-retention=NUMBER or "
        "=FILE.csv (columns: letter, share), zeros=FILE.csv (letter, output), strata=FILE.csv (letter, "
        "stratum) or outcome-leakage=FILE.csv (output, nats).",
        "--constraint",
    ] = (),
    records: _Records = None,
    circle: _Circle = None,
    round_counts: RoundCounts = False,
) -> None:
    """Design the optimal mechanism.

    It is optimal for a prior, a privacy bound and a utility, and comes with a proof of both. The file has the
    prior: counts of people in it are exact unless --round-counts is given.
    """
    from pmlopt.programs.designs import design as build

    run.check()
    if (ledger_file is not None) != within_ledger or (epsilon is None and not within_ledger):
        raise InputError("give --epsilon, or --ledger FILE and --within-ledger, or all of them")
    if records is not None or circle is not None:
        apart = "does not go with --records or --circle"
        refuse_options(
            (within_ledger, f"--within-ledger {apart}: list the letters"),
            (outputs is not None, f"--outputs {apart}: the outputs are letters"),
            (constraints, f"--constraint {apart}: list the letters"),
            (round_counts, f"--round-counts {apart}: list the letters"),
        )
        assert epsilon is not None
        whole, loss, title = _read_symmetric_design(asked, utility_name, minimise, records, circle)
        within = asked.build_orbit_requirement(epsilon, whole)
        run.solve_and_exit(lambda: build(whole, within, loss), f"Mechanism designed for {title}")
    prior, secret = read_published_law(asked, round_counts)
    beside = asked.read_fields(prior, secret)
    privacy = None if epsilon is None else asked.build_requirement(epsilon, prior, beside)
    if ledger_file is not None:
        left = read_remaining(ledger_file, prior, round_counts)
        privacy = left if privacy is None else privacy & left
    assert privacy is not None
    utility, columns = read_utility(utility_name, minimise, prior)
    letters = read_outputs(outputs, prior.labels) if outputs is not None else columns
    if run.output is not None and isinstance(letters, tuple):
        check_labels(run.output, letters)
    labels = (*prior.labels, *(letters if isinstance(letters, Sequence) else ()))
    kept = [read_constraint(text, labels) for text in constraints]
    check_declared(asked, (prior, privacy, utility, kept), round_counts)
    title = f"Mechanism designed for {asked.title}"
    run.solve_and_exit(lambda: build(prior, privacy, utility, letters, kept), title)
