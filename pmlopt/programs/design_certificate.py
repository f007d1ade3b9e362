"""The certificate of a designed mechanism: its levels, the bound on its utility, and the exact check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pmlopt.arrays import FloatArray
from pmlopt.core.records import plain
from pmlopt.exact.rationals import GRID, holds_exactly, rows_are_exact
from pmlopt.exact.repair import Repair
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.result import Certificate, finite


@dataclass(frozen=True, eq=False, kw_only=True)
class RequirementCertificate(Certificate):
    """What is claimed of a mechanism that was designed under a requirement, listed or by orbits.

    Attributes:
        privacy: the requirement.
        levels: the levels of the mechanism, recomputed, by name, in nats.
    """

    privacy: Requirement
    levels: Mapping[str, float]

    @property
    def level(self) -> float:
        """The largest of `levels`, in nats: a float, a few units of rounding above or below the exact level.

        What is proved in integers is that no level is above its limit.
        """
        return max(self.levels.values())

    @property
    def statement(self) -> str:
        """Each level with its limit."""
        return levels_in_words(self.levels, self.privacy.limits)

    @property
    def arithmetic(self) -> str:
        """Integers, of the level; the bound is a float to which what rounding may hide is added."""
        return "rational arithmetic"


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignCertificate(RequirementCertificate):
    """What is claimed of a mechanism that was designed for a prior and a requirement.

    Attributes:
        prior: what the claim is about, with the mechanism and the requirement.
        multipliers: (N,) the rho from which `bound` follows, or None.
        residuals: how far each constraint is violated by the matrix, by name; 0 for those that pmlopt
            declares, up to rounding and a margin of 2^-39. For an added constraint in small units, over
            its largest coefficient.
        repair: what was done to the solver's matrix.
    """

    prior: Prior
    multipliers: FloatArray | None
    residuals: Mapping[str, float]
    repair: Repair

    @property
    @abstractmethod
    def flat(self) -> bool:
        """Whether the utility is the same for every mechanism."""

    @abstractmethod
    def utility_record(self) -> dict[str, Any]:
        """The utility as plain data."""

    @abstractmethod
    def bound_record(self) -> dict[str, Any]:
        """What the bound needs besides the multipliers, as plain data."""

    def verify(self) -> bool:
        """Whether the exported numbers are a mechanism that meets the requirement, as rationals.

        Every float is a dyadic rational, the prior is its counts (or its floats over their sum), and
        e^epsilon is replaced by a rational below it: True is a theorem about the numbers in the
        matrix, with rows that sum to exactly one.
        """
        matrix = self.mechanism.matrix
        return rows_are_exact(matrix) and holds_exactly(self.prior, self.privacy, matrix)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        return {
            "kind": self.kind,
            "utility": self.utility_record(),
            "privacy": plain(self.privacy.for_prior(self.prior), self.prior.context),
            "levels": dict(self.levels),
            "value": self.value,
            "bound": finite(self.bound),
            "gap": finite(self.gap),
            "prior": plain(self.prior),
            "bound_from": {
                "multipliers": None if self.multipliers is None else self.multipliers.tolist(),
                **self.bound_record(),
            },
            "residuals": dict(self.residuals),
            "repair": self.repair.record(self.mechanism.outputs),
            "denominator": GRID,
            "verified_exactly": self.verify(),
        }


def levels_in_words(levels: Mapping[str, float], limits: Mapping[str, float]) -> str:
    """Each level with its limit, in one line."""
    shown = (f"{name} {level:.9g} <= {limits[name]:.9g}" for name, level in levels.items())
    return f"{', '.join(shown)} nats"
