"""The extreme columns of a requirement: the experiments among which a design for estimation chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.errors import ProgramError
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.privacy.ratios import Ratios
from pmlopt.privacy.requirement import MARGIN
from pmlopt.programs.estimation.column_cones import ColumnCone, column_cones
from pmlopt.programs.estimation.column_search import (
    BoxSearch,
    ColumnSearch,
    ProgramSearch,
    Searches,
    SetSearch,
)
from pmlopt.programs.subconvex.column_batch import Batch
from pmlopt.programs.subconvex.listed_columns import Explicit
from pmlopt.programs.subconvex.vertex_enumeration import vertices
from pmlopt.uncertainty import Cone
from pmlopt.uncertainty.column_families import Box, Family

MOST_LISTED_COLUMNS = 300_000
"""Extreme columns up to which they are listed: 18 letters under LDP have 262,142."""

MOST_LETTERS_RELAXED = 40
"""Letters up to which a design is searched without a list, and bounded by a relaxation."""


@dataclass(frozen=True, eq=False)
class DesignColumns:
    """Extreme columns of mean one, with the constant.

    Attributes:
        exact: (N, K) the columns.
        inner: (N, K) the same a little inside of the requirement, so that rounding does not break it.
        search: what finds others, where not every extreme column is among them.
        cones: of all columns, where not every extreme one is among them.
    """

    exact: FloatArray
    inner: FloatArray
    search: ColumnSearch | None = None
    cones: tuple[ColumnCone, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every extreme column is among them."""
        return self.search is None


def design_columns(prior: Prior, privacy: Requirement) -> DesignColumns:
    """List the extreme columns; where they are too many, a few to start from.

    Raises:
        PrivacyError: the requirement does not bound each column by itself.
        ProgramError: there are too many; the message says how many can be listed.
    """
    p, allowed = prior.pmf, privacy.columns(prior)
    batches: Sequence[Batch] | None = None
    if prior.size == 1:
        batches = []
    elif isinstance(allowed, Cone | Ratios):
        entries = allowed.extreme(p, MOST_LISTED_COLUMNS)
        if entries is not None and entries.shape[1] <= MOST_LISTED_COLUMNS:
            batches = [Explicit(entries, isinstance(allowed, Cone))]
    else:
        batches = vertices(p, allowed, MOST_LISTED_COLUMNS)
    if batches is not None:
        return DesignColumns(*with_constant(p, batches))
    cones = column_cones(p, allowed) if prior.size <= MOST_LETTERS_RELAXED else None
    if cones is None:
        raise ProgramError(
            f"under {privacy} there are more extreme columns on {prior.size} letters than the "
            f"{MOST_LISTED_COLUMNS:,} that a design for estimation lists (without a list it takes up to "
            f"{MOST_LETTERS_RELAXED} letters, and of sets of priors those with few vertices and l1 balls "
            "inside the simplex): merge letters, or raise epsilon"
        )
    search = _search(p, allowed, cones)
    return DesignColumns(*with_constant(p, [search.start()]), search, cones)


def with_constant(p: FloatArray, batches: Sequence[Batch]) -> tuple[FloatArray, FloatArray]:
    """The constant and columns of mean one, as they are and a little inside of the requirement."""
    constant = np.ones((len(p), 1))
    return (
        np.hstack([constant, *(batch.lifts(p) for batch in batches)]),
        np.hstack([constant, *(batch.lifts(p, MARGIN) for batch in batches)]),
    )


def _search(
    p: FloatArray, allowed: tuple[Family, ...] | Cone | Ratios, cones: tuple[ColumnCone, ...]
) -> ColumnSearch:
    """The search for columns that fits their kind."""
    if isinstance(allowed, Cone | Ratios):
        return ProgramSearch(cones[0], isinstance(allowed, Cone))
    return Searches([BoxSearch(p, one) if isinstance(one, Box) else SetSearch(p, one) for one in allowed])
