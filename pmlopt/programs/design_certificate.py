"""The certificate of a designed mechanism: its levels, the bound on its utility, and the exact check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.core.records import plain
from pmlopt.exact.rationals import GRID
from pmlopt.exact.repair import Repair
from pmlopt.prior import Prior
from pmlopt.privacy import Requirement
from pmlopt.programs.claims import confidence_claims, level_claim, mechanism_claim
from pmlopt.result import RATIONAL, Certificate, Claim, finite


@dataclass(frozen=True, eq=False, kw_only=True)
class RequirementCertificate(Certificate):
    """What is claimed of a mechanism that was designed under a requirement, listed or by orbits.

    Attributes:
        privacy: the requirement.
    """

    privacy: Requirement

    @property
    @abstractmethod
    def measured(self) -> tuple[Mapping[str, float], float]:
        """The levels in floats, by name, and what share of a probability rounding may take off."""

    @property
    @abstractmethod
    def level_checks(self) -> tuple[Claim, ...]:
        """That the numbers are a mechanism, and that it meets the requirement: in whole numbers."""

    @cached_property
    def levels(self) -> Mapping[str, float]:
        """The levels of the mechanism by name, in nats, rounded up.

        What rounding may have taken off a measured level is added to it; where the requirement is proved to
        hold, no level is above its limit.
        """
        measured, share = self.measured
        up = {name: level + share * max(1.0, abs(level)) for name, level in measured.items()}
        if any(up[name] > limit for name, limit in self.privacy.limits.items()) and self._proved:
            return {name: min(level, self.privacy.limits[name]) for name, level in up.items()}
        return up

    @property
    def _proved(self) -> bool:
        """Whether the mechanism meets the requirement."""
        return all(claim.holds for claim in self.level_checks if claim.exact)

    @property
    def level(self) -> float:
        """The largest of `levels`, in nats, rounded up."""
        return max(self.levels.values())

    @property
    def statement(self) -> str:
        """Each level with its limit."""
        return levels_in_words(self.levels, self.privacy.limits)

    @property
    def arithmetic(self) -> str:
        """Integers, of the level; the bound is a float to which what rounding may hide is added."""
        return RATIONAL


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

    @property
    def measured(self) -> tuple[Mapping[str, float], float]:
        constant = not np.ptp(self.mechanism.matrix, axis=0).any()  # it tells nothing: its levels are exact
        found = self.privacy.levels(self.prior, self.mechanism)
        return found, 0.0 if constant else (self.prior.size + 8) * ULP

    @cached_property
    def level_checks(self) -> tuple[Claim, ...]:
        """That the numbers in the matrix are a mechanism that meets the requirement, as rationals; and what
        a sample shows of the priors that it is for.

        Every float is a dyadic rational, the prior is its counts (or its floats over their sum), and
        e^epsilon is replaced by a rational below it.
        """
        limits = levels_in_words(self.privacy.levels(self.prior, self.mechanism), self.privacy.limits)
        mechanism = self.mechanism
        return (
            mechanism_claim(mechanism),
            level_claim(self.prior, self.privacy, mechanism, limits),
            *confidence_claims(self.privacy, self.prior),
        )

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
            "verified_exactly": self._proved,
        }


ULP = 2.0**-52
"""The relative distance of floats: a sum of n positive terms is off by less than n of it, as a share."""


def levels_in_words(levels: Mapping[str, float], limits: Mapping[str, float]) -> str:
    """Each level with its limit, in one line."""
    shown = (f"{name} {level:.9g} <= {limits[name]:.9g}" for name, level in levels.items())
    return f"{', '.join(shown)} nats"
