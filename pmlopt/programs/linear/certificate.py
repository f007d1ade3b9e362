"""The certificate of a linear design: expected gain or loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.privacy.requirement import Witness
from pmlopt.programs.claims import SHARE, bound_claim, gap_claim, no_bound, value_claim
from pmlopt.programs.design_certificate import DesignCertificate
from pmlopt.programs.linear.affine_constraints import AffineConstraint, priced
from pmlopt.programs.linear.dual_bound import proved_bound, raw_bound, rounding_in
from pmlopt.result import FLOATS, Claim
from pmlopt.utility.linear import expectation, row_offsets

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
    table: FloatArray
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

    def utility_record(self) -> dict[str, Any]:
        return {"kind": "gain" if self.maximised else "loss", "table": self.table.tolist()}

    def bound_record(self) -> dict[str, Any]:
        """The witness, and the constraints that were added where they are affine."""
        added = None if self.added is None else [constraint.record for constraint in self.added]
        return {"witness": {name: array.tolist() for name, array in self.witness.items()}, "added": added}
