"""Priors of a set under which post-processing may leak most: what a value over a set is reached under."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.arrays import FloatArray, Label
from pmlopt.prior import Prior
from pmlopt.uncertainty.prior_set import PriorSet
from pmlopt.uncertainty.vertices import Vertices

MAX_PRIORS = 8
"""How many priors of a set are searched: those that look worst before any linear program."""

INTERIOR_SHARE = 1e-12
"""A prior without some letter is moved so far towards the middle of the set, for a `Prior` has no zeros."""


def candidate_priors(
    over: PriorSet, merged: FloatArray, labels: tuple[Label, ...], leaks: Callable[[Prior], float]
) -> tuple[Prior, ...]:
    """The priors of a set that leak most by a quick measure: `MAX_PRIORS` of its extreme points.

    Extreme points are those at which an output or a letter is least or most likely, and their middle; of
    `Vertices` all.

    Args:
        over: the set.
        merged: (N, M) the mechanism.
        labels: of the letters.
        leaks: the quick measure.
    """
    directions = np.hstack([merged, np.eye(len(merged))])
    ends = [over.worst_prior(sign * column) for column in directions.T for sign in (1.0, -1.0)]
    if isinstance(over, Vertices):
        ends += list(over.laws)
    points = np.unique(np.maximum(ends, 0.0), axis=0)
    middle = points.mean(axis=0)
    points = np.vstack([middle, points])
    missing = (points == 0).any(axis=1, keepdims=True)
    points = np.where(missing, (1 - INTERIOR_SHARE) * points + INTERIOR_SHARE * middle, points)
    priors = [Prior(point / point.sum(), labels) for point in points]
    return tuple(sorted(priors, key=leaks, reverse=True)[:MAX_PRIORS])
