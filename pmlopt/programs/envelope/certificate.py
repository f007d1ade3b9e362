"""The certificates of the worst post-processing: one that is reached, and a proof that none exceeds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Range, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.certificate import Certificate, StoredPrior
from pmlopt.programs.claims import FLOATS, RATIONAL, Claim, check_confidence, claim_proof
from pmlopt.programs.envelope.masses import Outcomes, RationalMechanism, compute_reached_mass


@dataclass(frozen=True, eq=False, kw_only=True)
class PostProcessingCertificate(Certificate):
    """The base of certificates about a mechanism under every post-processing, in rational arithmetic.

    Every float is a dyadic rational; the prior and the rows of mechanism and attack are over their sums,
    e^value or e^epsilon is replaced by a rational above it for the value and by one below it for the bound.

    Attributes:
        mechanism: the one that was given.
        prior: N letters; over a set of priors one of it, under which the attack reaches the value.
        over: the set of priors for which the bound holds, or None.
        attack: (M, K) the post-processing; from `solve`, of at most N + 1 outcomes.
    """

    arithmetic: ClassVar[str] = RATIONAL
    """Rationals, of the value and of the bound."""
    is_of_design: ClassVar[bool] = False
    prior: StoredPrior
    over: PriorSet | None
    attack: Mechanism

    @property
    def bound_rounding(self) -> float:
        """Return the floating-point allowance by which the value may pass its bound."""
        return 1e-15 * max(1.0, self.bound)  # a probability is at most 1

    @property
    def scope(self) -> str:
        """Return text on the set of priors of the bound, starting with a comma; empty for one prior."""
        return "" if self.over is None else f", {self.over.scope}"

    def compute_outcomes(self) -> Outcomes:
        """Compute likelihood ratio and mass of each outcome of the attack; empty where shapes do not fit."""
        if len(self.attack.matrix) != len(self.mechanism.outputs):
            return []
        return RationalMechanism.from_floats(self.prior, self.mechanism.matrix).compute_outcomes(
            self.attack.matrix
        )

    def to_rational(self) -> RationalMechanism:
        """Return the mechanism and all priors of the bound in rational arithmetic."""
        return RationalMechanism.from_floats(self.prior, self.mechanism.matrix, self.over)

    def check_priors(self) -> tuple[Claim, ...]:
        """Check that the worst-case prior lies in the uncertainty set, and the set's sampling data."""
        over = self.over
        if over is None:
            return ()
        holds = over.contains(self.prior)
        claim = Claim(
            "prior", holds, FLOATS, over.description if holds else f"it is not {over.description}"
        )
        return (claim,) if over.delta is None else (claim, check_confidence(over, self.prior))


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeCertificate(PostProcessingCertificate):
    """The certificate of a leakage envelope: a post-processing as lower bound, multipliers as upper bound.

    `value` is reached by `attack`: outcomes of mass delta or more leak as much or more. `bound` is what no
    post-processing exceeds with probability delta or more: by the multipliers, or, where there are none,
    because the level of the mechanism is no larger, or its maximal leakage plus log(1 / delta).

    Attributes:
        delta: the probability.
        multipliers: (N,) lam of `multipliers.find_ratio_by_newton`, over a set with nu (N + 1,), or None.

    Source: [saeidian2026envelopes, Theorems 2 and 3].
    """

    kind: ClassVar[str] = "envelope"

    delta: Annotated[float, Range(0, 1)]
    multipliers: Annotated[FloatArray, Shape("K")] | None

    @property
    def level(self) -> float:
        """Return the bound, in nats."""
        return self.bound

    @property
    def statement(self) -> str:
        """Return the leakage bound with its exception probability as text."""
        claim = f"no post-processing leaks more than {self.bound:.9g} nats with probability {self.delta:g}"
        return claim + self.scope

    def checks(self) -> tuple[Claim, ...]:
        """Recheck that the post-processing reaches the value and that none can exceed the bound."""
        reached = compute_reached_mass(self.compute_outcomes(), self.value) >= self.delta
        bounded = self.to_rational().is_bound_proved(self.delta, self.bound, self.multipliers)
        more = f"nats or more with probability {self.delta:g}"
        return (
            *self.check_priors(),
            Claim("value", reached, RATIONAL,
                  f"the attack leaks {self.value:.9g} {more}" if reached else "the attack leaks less",
                  self.value),
            claim_proof("bound", bounded, RATIONAL, self.statement, self.bound),
            self._check_gap(),
        )  # fmt: skip


@dataclass(frozen=True, eq=False, kw_only=True)
class ProcessedFailureCertificate(PostProcessingCertificate):
    """The certificate of the largest probability, over post-processings, of leaking epsilon nats or more.

    `value` is the probability with which the outcomes of `attack` do; no post-processing exceeds `bound`, by
    the multipliers.

    Attributes:
        epsilon: in nats.
        multipliers: (N,) lam of `multipliers.find_ratio_by_newton`, over a set with nu (N + 1,); with zeros
            only the bound is 1.

    Source: [saeidian2026envelopes, Theorem 2].
    """

    kind: ClassVar[str] = "closed-failure"

    epsilon: Annotated[float, Range(0)]
    multipliers: Annotated[FloatArray, Shape("K")]

    @property
    def level(self) -> float:
        """Return epsilon, in nats."""
        return self.epsilon

    @property
    def statement(self) -> str:
        """Return the leakage level with the bound on its probability as text."""
        return (
            f"no post-processing leaks {self.epsilon:.9g} nats or more with a probability above "
            f"{self.bound:.9g}{self.scope}"
        )

    def checks(self) -> tuple[Claim, ...]:
        """Recheck that the post-processing reaches the value and that none can exceed the bound."""
        mass = compute_reached_mass(self.compute_outcomes(), self.epsilon)
        mass_bound = self.to_rational().bound_mass(self.epsilon, self.multipliers.tolist())
        text = (
            f"the attack leaks {self.epsilon:.9g} nats or more with probability {float(mass):.9g}"
        )
        return (
            *self.check_priors(),
            Claim("value", self.value <= mass, RATIONAL, text, self.value, float(mass)),
            claim_proof("bound", mass_bound <= self.bound, RATIONAL, self.statement, self.bound,
                        float(mass_bound)),
            self._check_gap(),
        )  # fmt: skip
