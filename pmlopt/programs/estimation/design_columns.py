"""The extreme columns of a requirement as one list: the experiments among which a design chooses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import ProgramError
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.privacy.ratios import Ratios
from pmlopt.privacy.requirement import MARGIN
from pmlopt.programs.subconvex.column_batch import Batch
from pmlopt.programs.subconvex.listed_columns import Explicit
from pmlopt.programs.subconvex.vertex_enumeration import vertices
from pmlopt.uncertainty import Cone

MOST_LISTED_COLUMNS = 300_000
"""Extreme columns up to which they are listed: 18 letters under LDP, some 20 under PML."""


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """All extreme columns of mean one, with the constant.

    Attributes:
        exact: (N, K) the columns.
        inner: (N, K) the same a little inside of the requirement, so that rounding does not break it.
    """

    exact: FloatArray
    inner: FloatArray


def design_columns(prior: Prior, privacy: Requirement) -> DesignColumns:
    """List the extreme columns.

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
    if batches is None:
        raise ProgramError(
            f"under {privacy} there are more extreme columns on {prior.size} letters than the "
            f"{MOST_LISTED_COLUMNS:,} that a design for estimation lists: merge letters, or raise epsilon"
        )
    constant = np.ones((prior.size, 1))
    return DesignColumns(
        np.hstack([constant, *(batch.lifts(p) for batch in batches)]),
        np.hstack([constant, *(batch.lifts(p, MARGIN) for batch in batches)]),
    )
