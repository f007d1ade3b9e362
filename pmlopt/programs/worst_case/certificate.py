"""The certificate of a highest rank threshold: a feasible mechanism, and a bound for the next rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Shape
from pmlopt.data.prior import Prior
from pmlopt.model.privacy import PML
from pmlopt.programs.certificate import Certificate
from pmlopt.programs.claims import RATIONAL, Claim, claim_proof
from pmlopt.programs.exact.rounding import is_met_exactly
from pmlopt.programs.least_leakage.certificate import LevelCertificate, find_highest_rank


def is_within_level(certificate: LevelCertificate, epsilon: float) -> bool:
    """Return whether a mechanism is within epsilon, in rational arithmetic up to the last digits."""
    # a logarithm and the grid are rounded by as much: likelihood ratios of at most 2 are within log 2
    claim = PML(epsilon + (2.0**-50), certificate.privacy.over)
    return is_met_exactly(certificate.prior, claim, certificate.mechanism.matrix)


@dataclass(frozen=True, eq=False, kw_only=True)
class ThresholdCertificate(Certificate):
    """The certificate of a highest threshold: `value` is feasible within the level, none above `bound` is.

    Attributes:
        epsilon: the PML level requested, in nats.
        kept: the mechanism that keeps the threshold, with its level.
        beyond: the proof that the threshold after `bound` leaks more; None where there is no such one.
        order: (N, M) the ranks, from 1.
        utilities: (K,) the utility of each rank, where `value` and `bound` are utilities; or None.
    """

    kind: ClassVar[str] = "worst-case"
    arithmetic: ClassVar[str] = RATIONAL
    """Integers, of the level that is kept; the proof against the next threshold is a rounded float."""

    epsilon: float
    kept: LevelCertificate
    beyond: LevelCertificate | None
    order: Annotated[FloatArray, Shape("N", "M")]
    utilities: Annotated[FloatArray, Shape("K")] | None = None

    @property
    def level_certificate(self) -> LevelCertificate:
        """Return the certificate of the mechanism that keeps the threshold, with its level."""
        return self.kept

    @property
    def prior(self) -> Prior:
        """Return the prior of the leakage level."""
        return self.kept.prior

    @property
    def threshold(self) -> int:
        """Return the rank of `value`, below which the mechanism emits nothing; 0 without a rank."""
        return self._find_rank(self.value)

    @property
    def max_possible_rank(self) -> int:
        """Return the rank of `bound`, the highest not excluded; 0 without a rank."""
        return self._find_rank(self.bound)

    def _find_rank(self, value: float) -> int:
        """Look up the rank of a utility value; 0 where none has it."""
        if self.utilities is None:
            return int(value) if value == int(value) else 0
        return int((self.utilities == value).argmax() + 1) if (self.utilities == value).any() else 0

    @property
    def level(self) -> float:
        """Return the PML level of the mechanism, in nats."""
        level = self.kept.level
        if level > self.epsilon and is_within_level(self.kept, self.epsilon):
            return self.epsilon
        return level

    @property
    def next_bound(self) -> float:
        """Return the lower bound on the level of the next threshold, in nats; inf without one."""
        return math.inf if self.beyond is None else self.beyond.bound

    @property
    def statement(self) -> str:
        """Return the threshold and level claims as text."""
        if self.utilities is None:
            return f"no output of a rank below {self.value:.0f}; {self.kept.statement}"
        return f"no utility worse than {self.value:.9g}; {self.kept.statement}"

    @property
    def is_maximised(self) -> bool:
        """Return whether the objective is maximised, so that the bound is an upper bound on the optimum."""
        return self.utilities is None or bool(self.utilities[-1] >= self.utilities[0])

    def checks(self) -> tuple[Claim, ...]:
        """Recheck that the threshold is met within the level, and that the next one is infeasible.

        The mechanism is `kept`'s, has its level, which is at most epsilon (as `is_within_level` decides), and
        emits no rank below `value`; and with no rank of `bound` or less every mechanism leaks more than
        epsilon, or there is no higher rank for all letters. Over a set of priors, all that for the same set.
        """
        matrix = self.mechanism.matrix
        kept = self.kept
        same = self.mechanism == kept.mechanism
        within = same and is_within_level(kept, self.epsilon)
        steps = np.diff(np.zeros(0) if self.utilities is None else self.utilities)
        rising = bool((steps > 0).all() or (steps < 0).all())
        above = rising and bool(1 <= self.threshold <= self.order[matrix > 0].min())
        ceiling = rising and self._is_bound_proved()
        names = ("mechanism", "level", "pairs")
        return (
            *(replace(claim, name=claim.name if claim.name in names else f"{claim.name} of the level")
              for claim in kept.checks()),
            Claim("within", within, RATIONAL,
                  f"the level is {'' if within else 'not '}at most {self.epsilon:.9g}",
                  self.epsilon, kept.value),
            Claim("value", above, RATIONAL, self.statement if above else "outputs below the threshold occur",
                  self.value),
            *self._check_next_threshold(),
            claim_proof("bound", ceiling, RATIONAL,
                        f"nothing above {self.bound:g} within {self.epsilon:g} nats", self.bound),
            Claim("gap", self.threshold <= self.max_possible_rank, RATIONAL, f"{self.gap:.3g}", self.gap),
        )  # fmt: skip

    def _check_next_threshold(self) -> tuple[Claim, ...]:
        """Check that the threshold after the bound is infeasible."""
        if self.beyond is None:
            return ()
        failed = [claim.detail for claim in self.beyond.checks() if claim.holds is False]
        text = "; ".join(failed) or "its mechanism and its level are as claimed"
        return (Claim("next threshold", not failed, RATIONAL, text),)

    def _is_bound_proved(self) -> bool:
        """Return whether every threshold above the bound is proved infeasible within epsilon."""
        if self.beyond is None:
            return self.max_possible_rank >= find_highest_rank(self.order, self.kept.privacy.over)
        return self.max_possible_rank > 0 and self._rules_out(self.beyond)

    def _rules_out(self, proof: LevelCertificate) -> bool:
        """Return whether multipliers prove that the threshold after `bound` is infeasible."""
        above = np.array_equal(proof.allowed, self.order > self.max_possible_rank)
        same = np.array_equal(proof.prior.pmf, self.kept.prior.pmf)
        if proof.normalized_floor is not None or not (
            above and same and proof.privacy.over == self.kept.privacy.over
        ):
            return False
        return proof.recompute_bound() > self.epsilon
