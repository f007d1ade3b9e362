"""Priors and joint laws of designs whose files may be published, with rounded counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from pmlopt.cli.options import OptionNote
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.cli.privacy_options import PrivacyOptions
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret

RoundCounts: TypeAlias = Annotated[bool, OptionNote(
    "Design for the counts of people rounded as in a release, so that the file has no exact count."
)]  # fmt: skip


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
    from pmlopt.publishing.stated_law import build_stated_secret, restate_prior

    if secret is None:
        return restate_prior(prior), None
    stated = build_stated_secret(secret)
    return stated.prior, stated
