"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.core.records import Shape
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import Requirement
from pmlopt.model.privacy.requirement import Witness
from pmlopt.model.utility.linear import expectation, row_offsets
from pmlopt.programs.certificate import FLOATS, Claim
from pmlopt.programs.claims import SHARE, bound_claim, gap_claim, no_bound, value_claim
from pmlopt.programs.design_program import DesignCertificate


@dataclass(frozen=True, eq=False)
class AffineConstraint:
    """Rows `sum_xy C[r,x,y] P[x,y] + offset[r] <= 0`, or `== 0`, with their multipliers.

    Attributes:
        name: under which it was added.
        equal: whether the rows are equations.
        coefficients: (R, N, M) C.
        offset: (R,).
        multipliers: (R,) at least 0 for inequalities, of which smaller ones count as 0.
    """

    name: str
    equal: bool
    coefficients: Annotated[FloatArray, Shape("R", "N", "M")]
    offset: Annotated[FloatArray, Shape("R")]
    multipliers: Annotated[FloatArray, Shape("R")]

    @property
    def unit(self) -> float:
        """The largest coefficient where it is below one, else one: what a violation is measured in."""
        return float(min(1.0, np.abs(self.coefficients).max(initial=0.0))) or 1.0

    def violation(self, matrix: FloatArray) -> float:
        """By how much a mechanism breaks the rows, at most; 0 where it does not."""
        values = (self.coefficients * matrix).sum(axis=(1, 2)) + self.offset
        return float((np.abs(values) if self.equal else np.maximum(values, 0.0)).max(initial=0.0))

    @property
    def prices(self) -> FloatArray:
        """(R,) the multipliers that count."""
        return self.multipliers if self.equal else np.maximum(self.multipliers, 0.0)


def priced(
    constraints: Sequence[AffineConstraint], gains: FloatArray, p: FloatArray
) -> tuple[FloatArray, float]:
    """Gains and a constant whose sum is at least the expected gain wherever the constraints hold."""
    constant, priced_gains = 0.0, gains
    for one in constraints:
        priced_gains = priced_gains - np.tensordot(one.prices, one.coefficients, axes=1) / p[:, None]
        constant -= float(one.prices @ one.offset)
    return priced_gains, constant


PLENTY = 4
"""How many times the mean the largest entry may be for it to stand for the relaxation in what is rounded."""


def utility_bound(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """An upper bound on the expected gain of every mechanism that meets the requirement.

    For every rho in R^N: E[g] = <p, rho> + sum_xy p[x] (g[x,y] - rho[x]) P[x,y], and the last sum
    is at most the requirement's `relaxation` of g - rho. Under PML that is max_y CVaR_{e^-eps}(g[:,y] - rho).
    No solver is trusted: rho may be anything, and what rounding may have taken off is added.

    Args:
        prior: N letters.
        privacy: the requirement.
        gains: (N, M).
        multipliers: (N,) rho; the multipliers of the row sums divided by p reach the optimum.

    Examples:
        >>> from pmlopt import PML
        >>> round(utility_bound(Prior.uniform(4), PML(np.log(2)), np.eye(4), np.zeros(4)), 12)
        0.5
    """
    return raw_bound(prior, privacy, gains, multipliers) + rounding_in(prior, privacy, gains, multipliers)


def raw_bound(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """The bound as it is computed: to steer and to compare by, not to claim."""
    return float(prior.pmf @ multipliers) + privacy.relaxation(prior, gains - multipliers[:, None])


def proved_bound(
    prior: Prior,
    privacy: Requirement,
    gains: FloatArray,
    multipliers: FloatArray,
    witness: Witness,
    share: float = 1.0,
) -> float:
    """`utility_bound` from a witness, without a search, for what rounding may have taken off as well.

    Args:
        prior: N letters.
        privacy: the requirement.
        gains: (N, M).
        multipliers: (N,) rho.
        witness: as `Requirement.witness` gives it; any numbers prove a bound.
        share: of the allowance for rounding that is added.
    """
    found = float(prior.pmf @ multipliers) + privacy.proved(prior, gains - multipliers[:, None], witness)
    return found + share * rounding_in(prior, privacy, gains, multipliers)


def rounding_in(prior: Prior, privacy: Requirement, gains: FloatArray, multipliers: FloatArray) -> float:
    """What rounding may have taken off the bound."""
    # sums of N terms err by about N units in the last place of the sum of their sizes, and the
    # relaxation is sublinear: what rounding takes off g - rho counts as its relaxation. Weights of pairs
    # allow for their own rounding: what is left off g - rho is that of a mechanism, whose rows sum to one
    sizes = np.abs(gains) + np.abs(multipliers)[:, None]
    most = float(sizes.max())  # of any column: what the relaxation is at most, without a linear program
    rows = float(prior.pmf @ sizes.max(axis=1))
    if most > PLENTY * rows:
        most = rows if privacy.by_pairs else privacy.relaxation(prior, sizes)
    return rounding_of(prior.size, float(prior.pmf @ np.abs(multipliers)) + most)


RESIDUAL = 1e-6
"""By how much of its unit an added constraint may be violated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearCertificate(DesignCertificate):
    """The certificate of an expected gain or loss.

    The bound is `constant + utility_bound(prior, privacy, gains, multipliers)`, negated for a loss: the gains
    are the table less the least entry of each row, changed by the multipliers of added constraints where
    there are any, and the constant is what both leave out.

    Attributes:
        maximised: whether the table holds gains.
        table: (N, M) the gain or loss.
        witness: from which the requirement's part in the bound follows; see `Requirement.witness`.
        added: the constraints that were added; None where one is not affine in the mechanism alone.
    """

    kind: ClassVar[str] = "linear"

    maximised: bool
    table: Annotated[FloatArray, Shape("N", "M")]
    witness: Witness
    added: tuple[AffineConstraint, ...] | None = ()

    @property
    def flat(self) -> bool:
        return bool((np.ptp(self.table, axis=1) == 0).all())

    def checks(self) -> tuple[Claim, ...]:
        """Level, value, added constraints and bound of an expected gain or loss."""
        matrix, maximised = self.mechanism.matrix, self.maximised
        rounding = rounding_of(sum(matrix.shape), float(np.abs(self.table).max()))
        value = value_claim(self.value, expectation(self.prior, self.table, matrix), rounding)
        room = rounding + (sum(self._room(one) for one in self.added or ()) if self.added else 0.0)
        found = (*self.level_checks, value, *self._added_checks(), gap_claim(self, room, maximised))
        if self.multipliers is None:
            return (*found, no_bound(self, maximised))
        if self.added is None and math.isfinite(self.bound):
            text = "it rests on constraints that are not in the file"
            return (*found, Claim("bound", None, FLOATS, text, self.bound))
        return (*found, bound_claim(self.bound, self._proved_bound(self.multipliers), maximised))

    def _proved_bound(self, rho: FloatArray) -> float:
        """What the multipliers and the witness prove, in the units of the table."""
        prior, privacy, offsets = self.prior, self.privacy, row_offsets(self.table)
        sign = 1.0 if self.maximised else -1.0
        gains, extra = priced(self.added or (), sign * (self.table - offsets[:, None]), prior.pmf)
        if self.witness:
            most = proved_bound(prior, privacy, gains, rho, self.witness, SHARE)
        else:
            most = raw_bound(prior, privacy, gains, rho) + SHARE * rounding_in(prior, privacy, gains, rho)
        return sign * (extra + sign * float(prior.pmf @ offsets) + most)

    def _added_checks(self) -> list[Claim]:
        """That the mechanism keeps the constraints that were added, as far as the file says."""
        found = []
        for one in self.added or ():
            allowed = self._allowed(one)
            size = float(np.abs(one.coefficients).sum(axis=(1, 2)).max() + np.abs(one.offset).max())
            broken = one.violation(self.mechanism.matrix)
            holds = broken <= allowed + rounding_of(one.coefficients[0].size, size)
            text = f"is kept, up to {allowed:.1g}" if holds else f"is broken by {broken:.1g}"
            found.append(Claim("constraint", holds, FLOATS, f"{one.name!r} {text}", allowed, broken))
        return found

    def _allowed(self, one: AffineConstraint) -> float:
        """By how much an added constraint may be broken: the residual told, and no more than is usual."""
        return min(float(self.residuals.get(one.name, 0.0)), RESIDUAL) * one.unit

    def _room(self, one: AffineConstraint) -> float:
        """What breaking an added constraint by so much may gain beyond the bound."""
        return self._allowed(one) * float(np.abs(one.multipliers).sum())
