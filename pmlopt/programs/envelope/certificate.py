"""The certificate of an envelope: a post-processing that reaches it, and a proof that none exceeds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pmlopt.arrays import FloatArray
from pmlopt.core.records import plain
from pmlopt.mechanism import Mechanism
from pmlopt.prior import Prior
from pmlopt.programs.claims import confidence_claim, gap_claim
from pmlopt.programs.envelope.rational_mechanism import (
    RationalMechanism,
    bounds,
    failure_bound,
    leaking_mass,
    reaches,
)
from pmlopt.result import FLOATS, RATIONAL, Certificate, Claim
from pmlopt.uncertainty.prior_set import PriorSet


@dataclass(frozen=True, eq=False, kw_only=True)
class EnvelopeCertificate(Certificate):
    """What is claimed of a mechanism and all its post-processings, in nats.

    `value` is reached by `attack`: outcomes of mass delta or more leak as much or more. `bound` is what no
    post-processing exceeds with probability delta or more: by the multipliers, or, where there are none,
    because the level of the mechanism is no larger, or its maximal leakage plus log(1 / delta).

    Attributes:
        mechanism: the one that was given.
        prior: N letters; over a set of priors one of it, under which the attack reaches the value.
        over: the set of priors for which the bound holds, or None.
        delta: the probability.
        attack: (M, K) the post-processing; from `solve`, of at most N + 1 outcomes.
        multipliers: (N,) lam of `dual_bound.bad_mass`, over a set with nu (N + 1,), or None.
    """

    kind: ClassVar[str] = "envelope"

    prior: Prior
    over: PriorSet | None
    delta: float
    attack: Mechanism
    multipliers: FloatArray | None

    @property
    def level(self) -> float:
        """The bound, in nats."""
        return self.bound

    @property
    def statement(self) -> str:
        """The bound with its probability."""
        claim = f"no post-processing leaks more than {self.bound:.9g} nats with probability {self.delta:g}"
        return claim + _scope(self.over)

    @property
    def arithmetic(self) -> str:
        """Rationals, of the value and of the bound."""
        return RATIONAL

    def checks(self) -> tuple[Claim, ...]:
        """That the attack reaches the value and no post-processing exceeds the bound, as rationals.

        Every float is a dyadic rational; the prior and the rows of mechanism and attack are taken over their
        sums, e^value is replaced by a rational above it and e^bound by one below it.

        Source: [saeidian2026envelopes, Theorems 2 and 3].
        """
        exact = RationalMechanism.of(self.prior, self.mechanism.matrix)
        fits = len(self.attack.matrix) == len(self.mechanism.outputs)
        reached = fits and reaches(exact.outcomes(self.attack.matrix), self.delta, self.value)
        bounded = bounds(_all_priors(exact, self.over), self.delta, self.bound, self.multipliers)
        more = f"nats or more with probability {self.delta:g}"
        return (
            *_within(self.over, self.prior),
            Claim("value", reached, RATIONAL,
                  f"the attack leaks {self.value:.9g} {more}" if reached else "the attack leaks less",
                  self.value),
            Claim("bound", bounded, RATIONAL,
                  self.statement if bounded else f"this is not proved: {self.statement}", self.bound),
            gap_claim(self, 1e-15 * max(1.0, self.bound), True),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        return {
            "kind": self.kind,
            "delta": self.delta,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            **_given(self.prior, self.over, self.attack),
            "bound_from": {"multipliers": None if self.multipliers is None else self.multipliers.tolist()},
            "verified_exactly": self.verify(),
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class ClosedFailureCertificate(Certificate):
    """How likely the worst post-processing of a mechanism leaks epsilon nats or more, from both sides.

    `value` is the probability with which the outcomes of `attack` do; no post-processing exceeds `bound`, by
    the multipliers.

    Attributes:
        mechanism: the one that was given.
        prior: N letters; over a set of priors one of it, under which the attack reaches the value.
        over: the set of priors for which the bound holds, or None.
        epsilon: in nats.
        attack: (M, K) the post-processing; from `solve`, of at most N + 1 outcomes.
        multipliers: (N,) lam of `dual_bound.bad_mass`, over a set with nu (N + 1,); with zeros alone
            the bound is 1.
    """

    kind: ClassVar[str] = "closed-failure"

    prior: Prior
    over: PriorSet | None
    epsilon: float
    attack: Mechanism
    multipliers: FloatArray

    @property
    def level(self) -> float:
        """Epsilon, in nats."""
        return self.epsilon

    @property
    def statement(self) -> str:
        """The level with the probability that nothing exceeds."""
        return (
            f"no post-processing leaks {self.epsilon:.9g} nats or more with a probability above "
            f"{self.bound:.9g}{_scope(self.over)}"
        )

    @property
    def arithmetic(self) -> str:
        """Rationals, of the value and of the bound."""
        return RATIONAL

    def checks(self) -> tuple[Claim, ...]:
        """That the attack reaches the value and no post-processing exceeds the bound, as rationals.

        Every float is a dyadic rational; the prior and the rows of mechanism and attack are taken over their
        sums, and e^epsilon is replaced by a rational above it for the value, below it for the bound.

        Source: [saeidian2026envelopes, Theorem 2].
        """
        exact = RationalMechanism.of(self.prior, self.mechanism.matrix)
        fits = len(self.attack.matrix) == len(self.mechanism.outputs)
        mass = leaking_mass(exact, self.attack.matrix, self.epsilon) if fits else 0
        most = failure_bound(_all_priors(exact, self.over), self.epsilon, self.multipliers)
        reached, bounded = self.value <= mass, most <= self.bound
        text = f"the attack leaks {self.epsilon:.9g} nats or more with probability {float(mass):.9g}"
        return (
            *_within(self.over, self.prior),
            Claim("value", reached, RATIONAL, text, self.value, float(mass)),
            Claim("bound", bounded, RATIONAL, self.statement if bounded else f"not proved: {self.statement}",
                  self.bound, float(most)),
            gap_claim(self, 1e-15, True),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file: enough to check every claim again."""
        return {
            "kind": self.kind,
            "epsilon": self.epsilon,
            "value": self.value,
            "bound": self.bound,
            "gap": self.gap,
            **_given(self.prior, self.over, self.attack),
            "bound_from": {"multipliers": self.multipliers.tolist()},
            "verified_exactly": self.verify(),
        }


def _scope(over: PriorSet | None) -> str:
    return "" if over is None else f", {over.scope}"


def _within(over: PriorSet | None, prior: Prior) -> tuple[Claim, ...]:
    """That the prior of the attack is of the set, up to rounding, and that a sample shows the set."""
    if over is None:
        return ()
    holds = over.contains(prior)
    claim = Claim("prior", holds, FLOATS, over.words if holds else f"it is not {over.words}")
    return (claim,) if over.delta is None else (claim, confidence_claim(over, prior))


def _all_priors(exact: RationalMechanism, over: PriorSet | None) -> RationalMechanism:
    """The mechanism with all priors that the bound is for."""
    return exact if over is None else RationalMechanism.over(over, exact.matrix)


def _given(prior: Prior, over: PriorSet | None, attack: Mechanism) -> dict[str, Any]:
    """The priors and the attack as plain data."""
    return {
        "prior": plain(prior),
        "over": plain(over, prior.context),
        "attack": {"outputs": list(attack.outputs), "matrix": attack.matrix.tolist()},
    }
