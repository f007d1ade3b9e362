"""The extreme columns of a requirement as one list: the experiments among which a design chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.errors import ProgramError
from pmlopt.prior import Prior
from pmlopt.privacy import LDP, Requirement
from pmlopt.privacy.ratios import Ratios
from pmlopt.privacy.requirement import MARGIN
from pmlopt.programs.estimation.set_search import sets_to_start
from pmlopt.programs.subconvex.column_batch import Batch, Columns
from pmlopt.programs.subconvex.listed_columns import Explicit
from pmlopt.programs.subconvex.vertex_enumeration import vertices
from pmlopt.uncertainty import Cone

MOST_LISTED_COLUMNS = 300_000
"""Extreme columns up to which they are listed: 18 letters under LDP have 262,142."""

MOST_LETTERS_RELAXED = 40
"""Letters up to which a design under LDP is searched without a list, and bounded by a relaxation."""


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """Extreme columns of mean one, with the constant.

    Attributes:
        exact: (N, K) the columns.
        inner: (N, K) the same a little inside of the requirement, so that rounding does not break it.
        complete: whether every extreme column is among them.
    """

    exact: FloatArray
    inner: FloatArray
    complete: bool = True


def design_columns(prior: Prior, privacy: Requirement) -> DesignColumns:
    """List the extreme columns; under LDP, where they are too many, a few to start from.

    Raises:
        PrivacyError: the requirement does not bound each column by itself.
        ProgramError: there are too many; the message says how many can be listed.
    """
    p, allowed = prior.pmf, privacy.columns(prior)
    batches: list[Batch] | None = None
    if prior.size == 1:
        batches = []
    elif isinstance(allowed, Cone | Ratios):
        entries = allowed.extreme(p, MOST_LISTED_COLUMNS)
        if entries is not None and entries.shape[1] <= MOST_LISTED_COLUMNS:
            batches = [Explicit(entries, isinstance(allowed, Cone))]
    else:
        found = vertices(p, allowed, MOST_LISTED_COLUMNS)
        batches = None if found is None else list(found)
    if batches is None and isinstance(privacy, LDP) and prior.size <= MOST_LETTERS_RELAXED:
        return ratio_columns(prior, privacy, sets_to_start(prior.size))
    if batches is None:
        raise ProgramError(
            f"under {privacy} there are more extreme columns on {prior.size} letters than the "
            f"{MOST_LISTED_COLUMNS:,} that a design for estimation lists (without a list up to "
            f"{MOST_LETTERS_RELAXED} letters under LDP): merge letters, or raise epsilon"
        )
    constant = np.ones((prior.size, 1))
    return DesignColumns(
        np.hstack([constant, *(batch.lifts(p) for batch in batches)]),
        np.hstack([constant, *(batch.lifts(p, MARGIN) for batch in batches)]),
    )


def ratio_columns(prior: Prior, privacy: LDP, sets: BoolArray) -> DesignColumns:
    """The constant and the columns of LDP that are larger on some sets: a part of all."""
    (family,) = privacy.columns(prior)
    batch = Columns(family, sets, np.full(len(sets), -1))
    constant = np.ones((prior.size, 1))
    return DesignColumns(
        np.hstack([constant, batch.lifts(prior.pmf)]),
        np.hstack([constant, batch.lifts(prior.pmf, MARGIN)]),
        False,
    )
