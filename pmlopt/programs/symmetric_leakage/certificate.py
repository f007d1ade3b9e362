"""The certificate of a least leakage by orbits: a level that a mechanism has, and one below which none is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, rounding_of
from pmlopt.core.records import Shape
from pmlopt.data.symmetry.prior import Cells, PairOrbits
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import FLOATS, RATIONAL, Claim
from pmlopt.programs.claims import bound_claim, gap_claim
from pmlopt.programs.exact.repair import Change
from pmlopt.programs.least_leakage.certificate import filled_masses
from pmlopt.programs.symmetric.certificate import (
    StoredOrbits,
    SymmetricCertificate,
    columns_of,
    orbit_offsets,
)
from pmlopt.programs.symmetric.columns import ReducedColumns


@dataclass(frozen=True, eq=False, kw_only=True)
class SymmetricLevelCertificate(SymmetricCertificate):
    """The certificate of a least leakage: `value` is the level, `bound` what none can be below, in nats.

    The bound is `least_level_by_orbits(columns, gains, least, multipliers)`, of the gains less the best of
    each orbit of letters.

    Attributes:
        floor: what the expected gain or loss reaches, in the person's units, up to the rounding of the sum.
    """

    kind: ClassVar[str] = "symmetric-least-leakage"

    privacy: PML
    floor: float

    @classmethod
    def from_fields(  # type: ignore[override]
        cls,
        mechanism: StoredOrbits,
        privacy: PML,
        value: float,
        bound: float,
        multipliers: Annotated[FloatArray, Shape("L")] | None,
        table: Annotated[FloatArray, Shape("C")],
        maximised: bool,
        repair: Change,
        floor: float,
    ) -> SymmetricLevelCertificate:
        """The certificate from what its file says, with the columns of its requirement."""
        return cls(
            mechanism=mechanism, value=value, bound=bound, privacy=privacy,
            columns=columns_of(mechanism, privacy, table), multipliers=multipliers, table=table,
            maximised=maximised, repair=repair, floor=floor,
        )  # fmt: skip

    @property
    def arithmetic(self) -> str:
        """Integers, of the level; the floor and the bound are floats, rounding allowed for."""
        return RATIONAL

    def checks(self) -> tuple[Claim, ...]:
        """Level, floor and bound of a least leakage by orbits."""
        value, limit, columns, rho = (
            self.value,
            self.privacy.limits.get("pml"),
            self.columns,
            self.multipliers,
        )
        gains, least = gains_and_least(columns.orbits, self.table, self.maximised, self.floor)
        slack = float((columns.weights * self.mechanism.lifts) @ gains) - least
        reached = slack >= -floor_rounding(columns.cells, gains, least)
        sharp = value == limit and self.measured[0]["pml"] <= value + 1e-12 * max(1.0, value)
        text = f"the expected utility {self.floor:.9g} is {'reached' if reached else 'missed'}"
        proved = 0.0
        if rho is not None and rho.shape == (len(columns.orbits.letters),):
            proved = least_level_by_orbits(columns, gains, least, rho)
        return (
            *self.level_checks,
            Claim("demand", reached, FLOATS, text, least, least + slack),
            Claim("value", sharp, FLOATS, f"{value:.12g} is {'' if sharp else 'not '}the level that is kept",
                  value, limit),
            bound_claim(self.bound, proved, False),
            gap_claim(self, 1e-15 * max(1.0, value), False),
        )  # fmt: skip


def gains_and_least(
    orbits: PairOrbits, values: FloatArray, maximised: bool, expected: float
) -> tuple[FloatArray, float]:
    """(C,) the gains less the best of each letter, at most 0; and what their expectation must reach."""
    sign = 1.0 if maximised else -1.0
    signed = sign * values
    best = -orbit_offsets(orbits, -signed)
    return signed - best[orbits.letter], sign * expected - float(orbits.masses @ best)


def floor_rounding(cells: Sequence[Cells], gains: FloatArray, least: float) -> float:
    """What rounding may have taken off a floor and off an expectation."""
    return rounding_of(max(own.size for own in cells), float(np.abs(gains).max()) + abs(least))


def least_level_by_orbits(
    columns: ReducedColumns, gains: FloatArray, least: float, multipliers: FloatArray
) -> float:
    """A PML level that no mechanism whose expected gain reaches `least` can be below, in nats.

    For any rho in R^L: `E[g] = <pi, rho> + sum_y q[y] <w_y (g - rho), lam_y>` over columns lam_y of mean
    one, so one of them has `<w (g - rho), lam> >= C` with `C = least - <pi, rho>`. A column of level epsilon
    is at most 1/s with `s = e^-epsilon`: one has iff the sum of `w (g - rho - C)` over the cells in
    descending order, up to the mass s, is at least 0. The least level is -log of the largest s, over all
    outputs; what rounding may have taken off the sums is allowed for.

    Args:
        columns: one for each orbit of outputs.
        gains: (C,) on orbits of pairs.
        least: what their expectation must reach.
        multipliers: (L,) rho; those that are not finite prove nothing.
    """
    if not np.isfinite(multipliers).all():
        return 0.0
    orbits = columns.orbits
    mean = float(orbits.masses @ multipliers)
    size = abs(least) + float(orbits.masses @ np.abs(multipliers))
    share = rounding_of(max(own.size for own in columns.cells), 1.0)
    rho = multipliers[orbits.letter]
    above = gains - rho - (least - mean) + share * (np.abs(gains) + np.abs(rho) + size)
    largest = 0.0
    for place in range(len(columns.cells)):
        over = columns.column(above, place)
        order = np.argsort(-over, axis=0, kind="stable")
        masses = columns.column(columns.weights, place)[order[:, 0]]
        largest = max(largest, float(filled_masses(masses, np.take_along_axis(over, order, axis=0))[0]))
    return max(0.0, -math.log(min(1.0, largest * (1 + share)))) if largest > 0 else math.inf
