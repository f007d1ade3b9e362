"""The certificate of a mechanism by orbits: its levels, the bound on its utility, and the exact check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pmlopt.arrays import FloatArray, rounding_of
from pmlopt.core.records import plain
from pmlopt.programs.claims import SHARE, bound_claim, confidence_claims, gap_claim, no_bound, value_claim
from pmlopt.programs.design_certificate import ULP, RequirementCertificate, levels_in_words
from pmlopt.programs.symmetric.columns import ReducedColumns
from pmlopt.programs.symmetric.declaration import centred_gains, orbit_offsets
from pmlopt.programs.symmetric.repair import OrbitRepair
from pmlopt.result import RATIONAL, Claim, finite
from pmlopt.symmetry.orbit_mechanism import OrbitMechanism


@dataclass(frozen=True, eq=False, kw_only=True)
class SymmetricCertificate(RequirementCertificate):
    """What is claimed of a mechanism by orbits that was designed for a symmetric prior and a requirement.

    The bound is `constant + raw_bound(gains, multipliers)` and what rounding may hide, negated for a loss. It
    is one on all mechanisms, since none does better than the average over its images under the group.

    Attributes:
        mechanism: in whole numbers.
        columns: what it asks of one output of each orbit.
        multipliers: (L,) the rho from which `bound` follows, one for each orbit of letters.
        values: (C,) the gain or loss on orbits of pairs, in the person's units.
        maximised: whether they are gains, and not losses.
        repair: what was done to the solver's numbers.
    """

    kind: ClassVar[str] = "symmetric"

    mechanism: OrbitMechanism
    columns: ReducedColumns
    multipliers: FloatArray | None
    values: FloatArray
    maximised: bool
    repair: OrbitRepair

    @property
    def measured(self) -> tuple[Mapping[str, float], float]:
        terms = max(cells.size for cells in self.columns.cells)
        return self.columns.levels(self.mechanism.lifts), (terms + 8) * ULP

    @cached_property
    def level_checks(self) -> tuple[Claim, ...]:
        """That the masses of the orbits are a mechanism that meets the requirement, in whole numbers.

        The orbits are checked to partition the pairs (each output meets each letter in exactly one), rows to
        sum to exactly one, and each column to be within the bound, e^epsilon replaced by a rational below it.
        """
        rows = self.columns.orbits.consistent and self.mechanism.rows_are_exact
        holds = self.columns.hold_exactly(self.mechanism.masses)
        scope = f", {self.privacy.scope}" if self.privacy.scope else ""
        text = levels_in_words(self.measured[0], self.privacy.limits)
        return (
            Claim("mechanism", rows, RATIONAL, "orbits tile the pairs, and rows sum to exactly one"
                  if rows else "the orbits are no mechanism"),
            Claim("level", holds, RATIONAL, f"{text}{scope}" if holds else f"a limit is broken: {text}"),
            *confidence_claims(self.privacy, self.mechanism.space.prior),
        )  # fmt: skip

    @property
    def gains(self) -> FloatArray:
        """(C,) the gains on orbits of pairs less the least of each orbit of letters."""
        return centred_gains(self.columns.orbits, self.values, self.maximised)

    def checks(self) -> tuple[Claim, ...]:
        """Level, value and bound of an expected gain or loss on orbits of pairs."""
        rounding = rounding_of(0, float(np.abs(self.values).max()))
        value = value_claim(self.value, float(self.expected_value), rounding)
        found = (*self.level_checks, value, gap_claim(self, rounding, self.maximised))
        rho, columns, gains = self.multipliers, self.columns, self.gains
        if rho is None or rho.shape != (len(columns.orbits.letters),):
            return (*found, no_bound(self, self.maximised))
        sign = 1.0 if self.maximised else -1.0
        constant = float(columns.orbits.masses @ orbit_offsets(columns.orbits, self.values))
        proved = columns.raw_bound(gains, rho) + SHARE * columns.rounding_in(gains, rho)
        return (*found, bound_claim(self.bound, constant + sign * proved, self.maximised))

    @property
    def expected_value(self) -> Fraction:
        """The expectation of the values by orbits, exact: they are rationals, as are prior and mechanism."""
        orbits, mechanism = self.columns.orbits, self.mechanism
        found = Fraction(0)
        for orbit in range(len(orbits.letters)):
            own = np.flatnonzero(orbits.letter == orbit).tolist()
            total = sum(mechanism.masses[k] * Fraction(float(self.values[k])) for k in own)
            found += orbits.letters[orbit] * orbits.weights[orbit] * total
        return found / (mechanism.total * orbits.total)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        prior = self.mechanism.space.prior
        return {
            "kind": self.kind,
            "utility": {"kind": "gain" if self.maximised else "loss", "orbits": self.values.tolist()},
            "privacy": plain(self.privacy.for_prior(prior), prior.context),
            "levels": dict(self.levels),
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "bound_from": {"multipliers": None if self.multipliers is None else self.multipliers.tolist()},
            "repair": self.repair.record,
            "denominator": str(self.mechanism.total),
            "verified_exactly": self._proved,
        }
