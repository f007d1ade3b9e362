"""Priors and joint laws of designs whose files may be published, with rounded counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pmlopt.cli.data_options import describe_shares
from pmlopt.cli.exits import prints_json
from pmlopt.cli.terminal import print_line
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from pmlopt.cli.privacy_options import PrivacyOptions
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.model.privacy import Requirement

RoundCounts: TypeAlias = Annotated[
    bool,
    "Design for the counts of people rounded as in a release, so that the file has no exact count.",
]


def read_remaining(ledger_file: Path, prior: Prior, round_counts: bool) -> Requirement:
    """Read what a ledger leaves to a design, under its own law or that of rounded counts."""
    from pmlopt.publishing.stated_law import restate_ledger_law
    from pmlopt.releases.accounts.ledger_entries import build_remaining_requirement

    restate = restate_ledger_law if round_counts else None
    return build_remaining_requirement(ledger_file, prior, restate=restate)


def check_declared(asked: PrivacyOptions, declared: Sequence[Any], round_counts: bool) -> None:
    """Raise an error where a design for rounded counts is declared of other numbers of people.

    Args:
        asked: the options, with the counts that are known.
        declared: the prior, and whatever else the program is made of.
        round_counts: whether counts are to be rounded.

    Raises:
        InputError: something does not follow from the rounded counts.
    """
    if not round_counts:
        return
    from pmlopt.publishing.stated_law import check_parts_follow

    secret = asked.secret
    known = asked.read_prior(announce=False) if secret is None else secret.prior
    check_parts_follow(declared, known)


def restate_on_screen(prior: Prior) -> Prior:
    """Replace a prior by that of rounded counts, which is printed to standard error where it is another."""
    from pmlopt.publishing.stated_law import restate_prior

    stated = restate_prior(prior)
    if not prints_json() and stated.pmf.tolist() != prior.pmf.tolist():
        print_line(describe_shares("that of rounded counts, by --round-counts", stated), err=True)
    return stated


def read_published_law(asked: PrivacyOptions, round_counts: bool) -> tuple[Prior, Secret | None]:
    """Read the prior of a design, and the joint law if given, with rounded counts where asked for.

    Raises:
        InputError: the requirement needs the exact counts.
    """
    if round_counts and asked.confidence_delta is not None:
        raise InputError(
            "--round-counts: a confidence set needs the exact counts. `pmlopt release` has "
            "--confidence-delta, which allows for the rounding"
        )
    prior, secret = asked.read_prior(), asked.secret
    if not round_counts:
        return prior, secret
    from pmlopt.publishing.stated_law import build_stated_secret

    if secret is None:
        return restate_on_screen(prior), None
    stated = build_stated_secret(secret)
    return stated.prior, stated
