"""Mechanisms with a row for each value of the query by formula, which no result may be worse than."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.programs.tradeoff.grouped_rows import GroupedRows
from pmlopt.programs.tradeoff.program import convex_combination

Family = Callable[[float], FloatArray]
"""Mechanisms (K, M) by a number from 0, the least distortion, to 1, the uniform answer."""

STEEPEST = 60.0
"""The largest exponent of an exponential mechanism, over the range of the losses: e^-60 is nothing."""

BISECTIONS = 50
"""Steps by which a member of a family is found that has a distortion."""


def families(rows: GroupedRows) -> list[Family]:
    """The symmetric channel and the exponential mechanism with the distortion as its score.

    Args:
        rows: with one for each value of the query.

    Source: [wu2026entropy, (33) and (47)], [mcsherry2007mechanism].
    """
    program = rows.program
    cheapest = program.cheapest[rows.first]
    uniform = np.full(cheapest.shape, 1 / cheapest.shape[1])
    masses = np.bincount(rows.groups, program.orbits.masses)[:, None]
    losses = np.where(masses > 0, rows.tradeoff.losses / np.where(masses > 0, masses, 1.0), 0.0)
    losses -= losses.min(axis=1, keepdims=True)
    spread = float(losses.max()) or 1.0

    def symmetric(place: float) -> FloatArray:
        return rows.repeated(convex_combination(cheapest, uniform, place))

    def exponential(place: float) -> FloatArray:
        if place <= 0:
            return rows.repeated(cheapest)
        weights = np.exp(losses * (-STEEPEST * (1 - place) ** 3 / spread))
        return rows.repeated(weights / weights.sum(axis=1, keepdims=True))

    return [symmetric, exponential]


def within_distortion(rows: GroupedRows, family: Family) -> FloatArray:
    """The member of a family that has the largest distortion within the limit, or all answers alike."""
    program = rows.program

    def within(place: float) -> bool:
        return program.tradeoff.distortion(family(place)) <= program.limit

    if within(1.0):
        return family(1.0)
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return program.repaired(family(low))
