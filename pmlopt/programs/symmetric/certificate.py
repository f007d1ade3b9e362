"""The certificate of a mechanism by orbits: its levels, the bound on its utility, and the exact check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pmlopt.arrays import FloatArray
from pmlopt.core.records import plain
from pmlopt.programs.design_certificate import RequirementCertificate
from pmlopt.programs.symmetric.columns import ReducedColumns
from pmlopt.programs.symmetric.repair import OrbitRepair
from pmlopt.result import finite
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
        gains: (C,) the centred gains on orbits of pairs.
        constant: what was added to the bound on these.
        maximised: whether they are gains, and not losses.
        repair: what was done to the solver's numbers.
    """

    kind: ClassVar[str] = "symmetric"

    mechanism: OrbitMechanism
    columns: ReducedColumns
    multipliers: FloatArray | None
    values: FloatArray
    gains: FloatArray
    constant: float
    maximised: bool
    repair: OrbitRepair

    def verify(self) -> bool:
        """Whether the masses of the orbits are a mechanism that meets the requirement, in whole numbers.

        The orbits are checked to partition the pairs (each output meets each letter in exactly one), rows to
        sum to exactly one, and each column to be within the bound, e^epsilon replaced by a rational below it.
        """
        partition = self.columns.orbits.consistent
        return (
            partition and self.mechanism.rows_are_exact and self.columns.hold_exactly(self.mechanism.masses)
        )

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
            "verified_exactly": self.verify(),
        }
