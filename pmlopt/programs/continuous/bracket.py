"""Both ends of the best loss of a continuous secret: what bins reach, and what no mechanism betters.

A mechanism that releases by the bin of the secret has the likelihood ratios of its matrix, so that PML, LDP,
LIP and maximal leakage of the secret are those of the bins. Conversely, the average over each box of any
mechanism, with its outputs told apart by their box alone, meets the same requirement on the boxes, and its
loss is at least that of their nearest points. Boxes of a divided grid serve both ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pmlopt.arrays import BoolArray, FloatArray
from pmlopt.continuous import Continuous
from pmlopt.grids import Grid
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.programs.linear.dual_bound import utility_bound
from pmlopt.utility.distance_loss import DistanceLoss

VALUE_BOXES, BOUND_BOXES = 16_384, 2_048
"""About how many boxes each end is computed on: the value with the outputs, the bound with one another."""


def mean_losses(secret: Continuous, utility: DistanceLoss, grid: Grid) -> tuple[FloatArray, BoolArray]:
    """(N, M) the mean loss of each centre in each bin of positive probability, and (size,) which these are.

    The mean over a bin is that of the farthest points of its parts, so that it errs upwards.
    """
    pieces = _pieces(grid, VALUE_BOXES)
    fine = grid.divided(pieces)
    masses, parents = secret.masses(fine), grid.parents(pieces)
    totals = np.bincount(parents, weights=masses, minlength=grid.size)
    table = np.zeros((grid.size, grid.size))
    for first in range(0, fine.size, BOUND_BOXES):
        part = slice(first, first + BOUND_BOXES)
        np.add.at(table, parents[part], masses[part, None] * utility.of(fine.farthest(grid.centres, part)))
    kept = secret.masses(grid) > 0
    return table[kept] / totals[kept, None], kept


def least_loss(
    secret: Continuous,
    privacy: Requirement,
    utility: DistanceLoss,
    grid: Grid,
    multipliers: FloatArray,
    boxes: int = BOUND_BOXES,
) -> float:
    """What no mechanism on the secret betters, whatever it puts out, from a multiplier for each bin.

    By duality on the boxes of a divided grid: `<p, rho> + min_y (least of E[(loss - rho) lam_y])`, over the
    columns lam_y that the requirement allows, with the multipliers constant on bins or linear between them.
    No loss is below that of the distance 0.
    """
    pieces = _pieces(grid, boxes)
    fine = grid.divided(pieces)
    masses = secret.masses(fine)
    kept = masses > 0
    prior = Prior(masses[kept] / masses[kept].sum())
    gains = -utility.of(fine.nearest()[kept])
    bounds = (
        -utility_bound(prior, privacy, gains, -rho[kept])
        for rho in _extended(grid, fine, pieces, multipliers)
    )
    return max(utility.least, *bounds)


def _extended(grid: Grid, fine: Grid, pieces: int, multipliers: FloatArray) -> Iterator[FloatArray]:
    """Multipliers for the boxes of a divided grid: constant on each bin, and linear between centres."""
    yield multipliers[grid.parents(pieces)]
    if len(grid.edges) == 1:
        at, known = fine.centres[:, 0], grid.centres[:, 0]
        yield np.interp(at, known, multipliers, period=grid.periods[0])


def _pieces(grid: Grid, boxes: int) -> int:
    """Into how many parts each interval is cut, for about so many boxes in all."""
    return max(2, math.ceil(math.pow(boxes / grid.size, 1 / len(grid.edges))))
