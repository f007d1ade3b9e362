"""The certificate of a least epsilon: a mechanism that reaches the target, and a bound short of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

from pmlopt.core.records.fields import have_equal_content
from pmlopt.data.prior import Prior
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.claims import FLOATS, RATIONAL, Claim
from pmlopt.programs.estimation.certificate import EstimationCertificate
from pmlopt.programs.least_leakage.families import get_level, is_same_family
from pmlopt.programs.linear.certificate import LinearCertificate, SymmetricCertificate
from pmlopt.programs.subconvex.certificate import ColumnCertificate, ColumnCostCertificate

DesignProof: TypeAlias = (
    LinearCertificate
    | SymmetricCertificate
    | ColumnCertificate
    | ColumnCostCertificate
    | EstimationCertificate
)
"""Certificates of designs, from which the two ends of a least epsilon follow."""

UTILITY_FIELDS: Mapping[type, tuple[str, ...]] = {
    LinearCertificate: ("table", "maximised", "added"),
    SymmetricCertificate: ("table", "maximised"),
    ColumnCertificate: ("utility",),
    ColumnCostCertificate: ("utility",),
    EstimationCertificate: ("criterion", "workload"),
}
"""The fields of certificates in which their utility is."""


def bound_utility_rounding(certificate: DesignProof) -> float:
    """Bound the rounding error of a certificate's utility."""
    if isinstance(certificate, EstimationCertificate):
        # The share of an error of estimation by which it may be above its target: rounding of its
        # decomposition.
        return 1e-11 * abs(certificate.value)
    return certificate.bound_rounding


def reaches_target(certificate: DesignProof, target: float) -> bool:
    """Return whether a certificate's utility reaches a target, up to rounding."""
    sign = 1.0 if certificate.is_maximised else -1.0
    return sign * (certificate.value - target) >= -bound_utility_rounding(certificate)


def is_target_unreachable(certificate: DesignProof, target: float) -> bool:
    """Return whether a certificate's bound proves a target unreachable."""
    sign = 1.0 if certificate.is_maximised else -1.0
    return sign * certificate.bound < sign * target


def drop_bound(certificate: DesignProof) -> DesignProof:
    """Return a copy of a certificate that claims no bound."""
    bound = math.inf if certificate.is_maximised else -math.inf
    found: DesignProof = replace(certificate, bound=bound, multipliers=None)
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastEpsilonCertificate(Certificate):
    """The certificate of a least epsilon: a mechanism reaches the target at `value`, and none at `bound`.

    Attributes:
        reach: the target: what a utility that is maximised is at least, and another one at most.
        witness: the certificate of the mechanism at the level `value`, without a bound.
        proof: a certificate at the level `bound`, whose bound lies short of the target, under the same
            requirement, prior and utility; only its bound counts. None where `bound` is 0, which nothing is
            below.
    """

    kind: ClassVar[str] = "least-epsilon"
    arithmetic: ClassVar[str] = RATIONAL
    """Integers, of the level; the utility and the bound on it are floats, rounding allowed for."""
    maximised: ClassVar[bool] = False

    reach: float
    witness: DesignProof
    proof: DesignProof | None

    @property
    def listed_prior(self) -> Prior | None:
        """Return the prior of the claim as a list of probabilities; None for a claim without one."""
        return self.witness.listed_prior

    @property
    def level(self) -> float:
        """Return the mechanism's leakage level, in nats."""
        return self.witness.level

    @property
    def utility(self) -> float:
        """Return the utility of the mechanism, in its own unit."""
        return self.witness.value

    @property
    def statement(self) -> str:
        """Return level and limit, utility and target as text."""
        relation = ">=" if self.witness.is_maximised else "<="
        return f"{self.witness.statement}; utility {self.utility:.9g} {relation} {self.reach:.9g}"

    def checks(self) -> tuple[Claim, ...]:
        """Recheck the mechanism, its level, its utility against the target, and the lower bound."""
        own = [
            replace(one, name="utility") if one.name == "value" else one
            for one in self.witness.checks()
            if one.name not in ("bound", "gap")
        ]
        return (
            *own,
            self._check_target_reached(),
            self._check_stated_level(),
            *self._check_lower_bound(),
            self._check_gap(),
        )

    def _check_target_reached(self) -> Claim:
        """Check the claim that the mechanism reaches the target."""
        holds = reaches_target(self.witness, self.reach)
        text = f"the target {self.reach:.12g} is {'reached' if holds else 'missed'}"
        return Claim("reach", holds, FLOATS, text, self.reach, self.witness.value)

    def _check_stated_level(self) -> Claim:
        """Check the claim that the mechanism has the stated level."""
        limit = get_level(self.witness.privacy)
        text = f"the requirement of the mechanism is at {'no single level' if limit is None else limit}"
        return Claim("value", limit == self.value, RATIONAL, text, self.value, limit)

    def _check_lower_bound(self) -> tuple[Claim, ...]:
        """Check by dual multipliers that no mechanism of level `bound` reaches the target."""
        if self.bound == 0.0:
            return (Claim("bound", True, RATIONAL, "no level is below 0", 0.0, 0.0),)
        if self.proof is None:
            return (Claim("bound", False, FLOATS, "nothing proves it", self.bound),)
        if not self._is_same_design(self.proof):
            text = "the proof is of another requirement, level or utility"
            return (Claim("bound", False, FLOATS, text, self.bound),)
        if not is_target_unreachable(self.proof, self.reach):
            text = (
                f"at {self.bound:.12g} the best is {self.proof.bound:.12g}, not short of the target"
            )
            return (Claim("bound", False, FLOATS, text, self.bound),)
        best = f"at {self.bound:.12g} the best is {self.proof.bound:.12g}"
        text = f"{best}, short of the target {self.reach:.12g}"
        return (
            *(
                _prefix_name(one, "proof ")
                for one in self.proof.checks()
                if one.name in ("bound", "workload")
            ),
            Claim("bound", True, FLOATS, text, self.bound, self.bound),
        )

    def _is_same_design(self, proof: DesignProof) -> bool:
        """Return whether a proof concerns the same design as the certificate, at the level `bound`."""
        witness = self.witness
        names = UTILITY_FIELDS[type(witness)]
        return (
            type(proof) is type(witness)
            and get_level(proof.privacy) == self.bound
            and is_same_family(proof.privacy, witness.privacy)
            and all(
                have_equal_content(getattr(proof, name), getattr(witness, name)) for name in names
            )
        )


def _prefix_name(claim: Claim, prefix: str) -> Claim:
    """Prefix the name of a claim, to distinguish proof and mechanism claims."""
    return replace(claim, name=f"{prefix}{claim.name}")
