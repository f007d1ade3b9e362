"""The certificate of a highest threshold: a mechanism that keeps it, and a proof that the next leaks more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pmlopt.programs.least_leakage.certificate import LevelCertificate, Multipliers, least_level
from pmlopt.result import Certificate, finite


@dataclass(frozen=True, eq=False, kw_only=True)
class ThresholdCertificate(Certificate):
    """The certificate of a highest threshold: `value` is kept within the level, none above `bound` can be.

    Attributes:
        epsilon: the PML level asked for, in nats.
        kept: the mechanism that keeps the threshold, with its level.
        beyond: the proof that the threshold after `bound` leaks more; None where there is no such one.
    """

    epsilon: float
    kept: LevelCertificate
    beyond: LevelCertificate | None

    @property
    def level(self) -> float:
        """The PML level of the mechanism that keeps the threshold, in nats."""
        return self.kept.level

    @property
    def next_bound(self) -> float:
        """What the threshold after `bound` leaks at least, in nats; inf where there is none."""
        return math.inf if self.beyond is None else self.beyond.bound

    @property
    def statement(self) -> str:
        """The claim in a few words."""
        return f"no output of a rank below {self.value:.0f}; {self.kept.statement}"

    @property
    def arithmetic(self) -> str:
        """Integers, of the level that is kept; the proof against the next threshold is a rounded float."""
        return "rational arithmetic"

    def verify(self) -> bool:
        """Whether the mechanism keeps its level and ranks, and the next threshold's bound exceeds epsilon."""
        if not self.kept.verify() or self.kept.level > self.epsilon:
            return False
        if self.beyond is None:
            return True
        proof = self.beyond
        if proof.multipliers is None:
            return False
        multipliers = Multipliers(proof.multipliers, proof.weight)
        return least_level(proof.prior, proof.allowed, proof.floor, multipliers) > self.epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        return {
            "threshold": int(self.value),
            "highest_not_ruled_out": int(self.bound),
            "epsilon": self.epsilon,
            "next_bound": finite(self.next_bound),
            "kept": self.kept.to_dict(),
            "beyond": None if self.beyond is None else self.beyond.to_dict(),
        }
