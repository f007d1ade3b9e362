"""Priors of designs whose files may be published, with rounded counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from pmlopt.cli.options import OptionNote
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.cli.privacy_options import PrivacyOptions
    from pmlopt.data.prior import Prior

RoundCounts: TypeAlias = Annotated[bool, OptionNote(
    "Design for the counts of people rounded as in a release, so that the file has no exact count."
)]  # fmt: skip


def read_published_prior(asked: PrivacyOptions, round_counts: bool) -> Prior:
    """Read the prior of a design, with rounded counts where these are asked for.

    Raises:
        InputError: the requirement needs the exact counts.
    """
    from pmlopt.publishing.stated_law import restate_prior

    if round_counts and (
        asked.confidence_delta is not None or (asked.secret is not None and asked.secret.counted)
    ):
        raise InputError(
            "--round-counts: a confidence set, or a joint law of counts, needs the exact counts. `pmlopt "
            "release` has --confidence-delta, which allows for the rounding"
        )
    prior = asked.read_prior()
    return restate_prior(prior) if round_counts else prior
