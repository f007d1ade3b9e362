"""The certificate of a design for a continuous secret: a mechanism on bins, and a bound on all mechanisms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.grids import Grid
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray, bound_sum_rounding
from pmlopt.core.records.fields import Shape
from pmlopt.data.continuous import Continuous
from pmlopt.data.prior import Prior
from pmlopt.errors import PriorError
from pmlopt.model.privacy import Requirement
from pmlopt.model.utility.symmetric import DistanceLoss
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.claims import FLOATS, PLAIN_FLOATS, RATIONAL, Claim, check_bound
from pmlopt.programs.linear.certificate import LinearCertificate, compute_utility_bound

VALUE_BOXES, BOUND_BOXES = 16_384, 2_048
"""About how many boxes each end is computed on: the value with the outputs, the bound with one another."""


def compute_mean_losses(
    secret: Continuous, utility: DistanceLoss, grid: Grid
) -> tuple[FloatArray, BoolArray]:
    """Compute the (N, M) mean loss of each output in each bin, and the mask of nonempty bins.

    The mean over a bin is that of the farthest points of its parts, so that it errs upwards.
    """
    pieces = _count_pieces(grid, VALUE_BOXES)
    fine = grid.divide(pieces)
    masses = secret.masses(fine)
    parents = grid.find_parents(pieces)
    totals = np.bincount(parents, weights=masses, minlength=grid.size)
    table = np.zeros((grid.size, grid.size))
    # in slices: the full table of distances would take fine.size times grid.size entries
    for first in range(0, fine.size, BOUND_BOXES):
        part = slice(first, first + BOUND_BOXES)
        np.add.at(
            table,
            parents[part],
            masses[part, None]
            * utility.evaluate_distances(fine.compute_max_distances(grid.centres, part)),
        )
    kept = secret.masses(grid) > 0
    return table[kept] / totals[kept, None], kept


def bound_loss(
    secret: Continuous,
    privacy: Requirement,
    utility: DistanceLoss,
    grid: Grid,
    multipliers: FloatArray,
    boxes: int = BOUND_BOXES,
) -> float:
    """Compute a lower bound on the loss of every mechanism for the continuous secret, from dual multipliers.

    By duality on the boxes of a divided grid: `<p, rho> + min_y (least of E[(loss - rho) lam_y])`, over the
    columns lam_y that the requirement allows, with the multipliers constant on bins or linear between them.
    No loss is below that of the distance 0.
    """
    pieces = _count_pieces(grid, boxes)
    fine = grid.divide(pieces)
    masses = secret.masses(fine)
    kept = masses > 0
    prior = Prior(masses[kept] / masses[kept].sum())
    # nearest points of two boxes: the loss errs downwards, as a lower bound must
    gains = -utility.evaluate_distances(fine.compute_min_distances()[kept])
    # any multipliers prove a bound: the better of both extensions counts
    tried = _extend_multipliers(grid, fine, pieces, multipliers)
    return max(
        utility.min_loss,
        *(-compute_utility_bound(prior, privacy, gains, -rho[kept]) for rho in tried),
    )


def _extend_multipliers(
    grid: Grid, fine: Grid, pieces: int, multipliers: FloatArray
) -> Iterator[FloatArray]:
    """Yield the multipliers on a refined grid: constant on bins, and interpolated between centres."""
    yield multipliers[grid.find_parents(pieces)]
    if len(grid.edges) == 1:
        at = fine.centres[:, 0]
        known = grid.centres[:, 0]
        yield np.interp(at, known, multipliers, period=grid.periods[0])


def _count_pieces(grid: Grid, boxes: int) -> int:
    """Return the number of parts into which each interval is divided to get about `boxes` boxes."""
    return max(2, math.ceil(math.pow(boxes / grid.size, 1 / len(grid.edges))))


@dataclass(frozen=True, eq=False, kw_only=True)
class BinsCertificate(Certificate):
    """The claims about a mechanism on the discretized (binned) values of a continuous secret.

    Attributes:
        grid: the bins.
        multipliers: (size,) one for each bin, from which the bound follows.
        boxes: about how many boxes the bound was computed on.
        bins: the certificate of the same mechanism for the bins; its level is that of the secret.
    """

    kind: ClassVar[str] = "continuous"
    arithmetic: ClassVar[str] = RATIONAL
    """Integers, of the level on bins of the probabilities that are stored; the losses are floats."""
    maximised: ClassVar[bool] = False

    grid: Grid
    multipliers: Annotated[FloatArray, Shape("size")]
    boxes: int
    bins: LinearCertificate

    @property
    def prior(self) -> Prior:
        """Return the probabilities of the bins."""
        return self.bins.prior

    @property
    def level(self) -> float:
        """Return the level of the mechanism, in nats."""
        return self.bins.level

    @property
    def statement(self) -> str:
        """Return the leakage level and the number of bins as text."""
        return f"{self.bins.statement}, on {self.mechanism.matrix.shape[0]} bins"

    @property
    def has_matching_shapes(self) -> bool:
        """Return whether grid, outputs, multipliers and mechanism have consistent shapes."""
        rows, outputs = self.mechanism.matrix.shape
        rising = all(
            len(edges) > 1 and bool((np.diff(edges) > 0).all()) for edges in self.grid.edges
        )
        return rising and rows <= outputs == self.grid.size == len(self.multipliers)

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        return bound_sum_rounding(2, abs(self.value))

    def checks(self) -> tuple[Claim, ...]:
        """Recheck the claims about the bins, and those that follow from the secret's density."""
        fits = self.has_matching_shapes and self.mechanism == self.bins.mechanism
        fit = "there are rows, outputs and multipliers for each bin of the grid"
        return (
            *self.bins.checks(),
            Claim(
                "bins", fits, FLOATS, fit if fits else "the grid has other bins than the mechanism"
            ),
            *(self._check_law() if fits else ()),
            self._check_gap(),
        )

    def _check_law(self) -> tuple[Claim, ...]:
        """Recheck the bins' losses and the bound against the continuous law of the secret."""
        same = self.value == self.bins.value
        text = "it is the loss on the bins" if same else "it is not the loss on the bins"
        return (
            Claim("value of the secret", same, FLOATS, text, self.value, self.bins.value),
            Claim("law", None, FLOATS, "the law is not in the file: nothing proves that the bins have these "
                  f"probabilities and losses, and that no mechanism loses less than {self.bound:.9g}"),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class ContinuousCertificate(BinsCertificate):
    """The certificate that a mechanism's loss is at most `value` and no mechanism's is below `bound`.

    Attributes:
        secret: the secret, with its law.
        utility: the loss.
    """

    is_form: ClassVar[bool] = True  # a file has the claims on the bins only

    secret: Continuous
    utility: DistanceLoss

    def rows(self, points: ArrayLike) -> IntArray:
        """Look up the (n, M) mechanism rows for secrets given as (n, axes) points.

        Raises:
            PriorError: a secret is outside of the support, or in a bin that has no probability under the law.
        """
        # bins without probability have no row: the running count skips them
        rows = np.cumsum(self.secret.masses(self.grid) > 0) - 1
        boxes = self.grid.locate(points)
        empty = self.secret.masses(self.grid)[boxes] <= 0
        if empty.any():
            first = int(np.argmax(empty))
            raise PriorError(
                f"{np.asarray(points)[first].tolist()} at position {first} is in a bin without probability: "
                "the law excludes it"
            )
        return rows[boxes]

    def _check_law(self) -> tuple[Claim, ...]:
        """Recompute bin probabilities, mean losses and the bound from the continuous law."""
        prior = self.secret.prior(self.grid)
        same = np.array_equal(prior.pmf, self.bins.prior.pmf)
        text = f"the bins have {'the' if same else 'other'} probabilities of the law"
        law = Claim("law", same, PLAIN_FLOATS, text)
        table, _ = compute_mean_losses(self.secret, self.utility, self.grid)
        if table.shape != self.mechanism.matrix.shape:
            return (
                replace(law, holds=False, detail="the bins are other ones than those of the law"),
            )
        lost = float(prior.pmf @ (table * self.mechanism.matrix).sum(axis=1))
        privacy = self.bins.privacy
        grid = self.grid
        least = bound_loss(self.secret, privacy, self.utility, grid, self.multipliers, self.boxes)
        # a loss may be negative
        size = float(prior.pmf @ np.abs(table * self.mechanism.matrix).sum(axis=1))
        enough = abs(self.value - lost) <= bound_sum_rounding(table.size, size)
        text = f"the mechanism loses {lost:.12g}"
        bound = check_bound(self.bound, least, False, PLAIN_FLOATS)
        value = Claim("value of the secret", enough, PLAIN_FLOATS, text, self.value, lost)
        return law, value, replace(bound, name="bound of the secret")
