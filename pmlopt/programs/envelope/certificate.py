"""The certificate of an envelope: a post-processing that reaches it, and a proof that none exceeds it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pmlopt.core.arrays import FloatArray, IntArray, common_integers
from pmlopt.core.records import Range, Shape
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.certificate import FLOATS, RATIONAL, Certificate, Claim, StoredPrior
from pmlopt.programs.claims import confidence_claim, gap_claim
from pmlopt.programs.exact.arithmetic import integers, power_above, power_below

Integers = NDArray[Any]
"""Python integers in an object array."""

RATIO_BITS = 192
"""Binary digits after the point of a rational below e^bound: as many as `power_below` has."""


SMALLEST_TERM = 1e-300
"""What floats as small as this, and their products, may be off: they have fewer digits."""


@dataclass(frozen=True)
class Outcome:
    """An outcome of a post-processing, in integers over `total`.

    Attributes:
        given: its probability given one letter; any proves that it leaks, and the likeliest proves most.
        mass: its probability.
        total: the denominator of both.
    """

    given: int
    mass: int
    total: int

    @property
    def ratio(self) -> float:
        """The quotient of both, to the nearest float: e to the leakage."""
        return self.given / self.mass


@dataclass(frozen=True, eq=False)
class RationalMechanism:
    """A prior and a mechanism in integers: `P[x,y] = columns[x,y] / sums[x]`, `q[y] = law[y] / total`.

    Attributes:
        matrix: (N, M) the floats.
        columns: (N, M).
        sums: (N,) of the rows.
        laws: the law of the output, (M,) times `total`; over a set of priors the least probabilities of the
            outputs, and the largest.
        total: the denominator, a multiple of all of `sums`.
    """

    matrix: FloatArray
    columns: Integers
    sums: Integers
    laws: tuple[Integers, ...]
    total: int

    @classmethod
    def of(cls, prior: Prior, matrix: FloatArray) -> RationalMechanism:
        """The rational numbers that the floats of a prior and an (N, M) matrix are."""
        columns = integers(matrix)
        sums = columns.sum(axis=1)
        rows = math.lcm(*sums.tolist())
        weights = np.array(prior.weights, dtype=object)
        law = (weights * (rows // sums)) @ columns
        return cls(matrix, columns, sums, (law,), int(weights.sum()) * rows)

    @classmethod
    def over(cls, priors: PriorSet, matrix: FloatArray) -> RationalMechanism:
        """The same for every prior of a set, for what is proved of all of them."""
        columns = integers(matrix)
        sums = columns.sum(axis=1)
        rows = math.lcm(*sums.tolist())
        conditional = columns * (rows // sums)[:, None]
        least, total = priors.least_sum(conditional)
        negative, other = priors.least_sum(-conditional)
        if other != total:
            least, negative, total = least * other, negative * total, total * other
        return cls(matrix, columns, sums, (least, -negative), int(total) * rows)

    @property
    def law(self) -> Integers:
        """(M,) the law of the output, times `total`; over a set the least probabilities."""
        return self.laws[0]

    @property
    def law_of_outputs(self) -> FloatArray:
        """(K,) the laws one after another, to the nearest floats."""
        return np.asarray(np.concatenate(self.laws) / self.total, dtype=float)

    def outcomes(self, attack: FloatArray) -> list[Outcome]:
        """The outcomes of an (M, K) post-processing that occur, each with the letter it tells most of."""
        entries = integers(attack)
        sums = entries.sum(axis=1)
        rows = math.lcm(*sums.tolist())
        after = self.matrix @ attack
        found = []
        for z in np.flatnonzero(after.max(axis=0) > 0).tolist():
            x = int(after[:, z].argmax())
            used = np.flatnonzero(attack[:, z])
            shares = entries[used, z] * (rows // sums[used])
            given = int((self.columns[x, used] * shares).sum()) * (self.total // int(self.sums[x]))
            mass = int((self.law[used] * shares).sum())
            found.append(Outcome(given, mass, self.total * rows))
        return found

    def mass_by_multipliers(self, level: float, multipliers: FloatArray) -> tuple[int, int]:
        """Upper bound on the mass that a post-processing can give to outcomes that leak `level` nats or more.

        `sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))`, with a rational t of at most e^level, as
        numerator and denominator; negative lam count for nothing. Over a set of priors the last multiplier,
        which may have any sign, is that of the sum of the probabilities; see `dual_bound.bad_mass`.
        """
        ratio, n = _floor(power_below(level)), len(self.sums)
        (*lam, rest), unit = common_integers(
            [*np.maximum(multipliers[:n], 0.0), *multipliers[n:], 0.0][: n + 1]
        )
        used = np.flatnonzero(np.array(lam, dtype=object))
        weights = np.array(lam, dtype=object)[used]
        gains = weights * (self.total // self.sums[used]) * ratio.denominator
        costs = weights * ratio.numerator
        whole = unit * ratio.denominator  # every term below is over total * whole
        total = rest * ratio.denominator  # the multiplier of the sum of the probabilities
        ends = []
        for law in self.laws:
            best = 0 * law
            if len(used):
                outputs, rivals = self._rivals(law, float(ratio), used, multipliers[used])
                letters = used[rivals]
                worth = self.columns[letters, outputs] * gains[rivals] - law[outputs] * costs[rivals]
                best = np.maximum.reduceat(worth, np.searchsorted(outputs, np.arange(len(law))))
            least = best if len(used) == n else np.maximum(best, 0)
            ends.append(np.maximum(law * whole + least, 0) - total * law)
        return int(np.max(ends, axis=0).sum()) + total * self.total, self.total * whole

    def _rivals(
        self, law: Integers, ratio: float, letters: IntArray, weights: FloatArray
    ) -> tuple[IntArray, IntArray]:
        """Outputs y in order, each with the places of the letters x that may have its largest term.

        The terms are `lam[x] (P[x,y] - t q[y])`. Floats rule out those that are further below the largest
        than what rounding may hide: on a large matrix integers of thousands of digits are left to one or
        two letters of each output. What floats cannot hold is never ruled out.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            given = self.matrix[letters] / self.matrix[letters].sum(axis=1, keepdims=True)
            asked, lam = ratio * np.asarray(law / self.total, dtype=float), weights[:, None]
            worth, size = lam * (given - asked), lam * (given + asked)
            error = 2 * (len(law) + 16) * float(np.finfo(float).eps) * size + SMALLEST_TERM * (1 + lam)
            below = worth + error < (worth - error).max(axis=0)
        outputs, rivals = np.nonzero(~below.T)
        return outputs, rivals

    def gains(self, level: float) -> FloatArray:
        """(N, K) `P[x,y] - t q[y]` with a rational t just above e^level, each to the nearest float.

        Differences that floats would take for rounding have their sign here. Over a set the outputs are there
        twice, with their least and with their largest probability.
        """
        ratio = power_above(level)
        conditional = self.columns * (self.total // self.sums)[:, None]
        apart = [conditional * ratio.denominator - law * ratio.numerator for law in self.laws]
        return np.asarray(np.hstack(apart) / (self.total * ratio.denominator), dtype=float)

    def below_level(self, bound: float) -> bool:
        """Whether no output, and so no outcome of a post-processing, leaks more than `bound` nats."""
        ratio = power_below(bound)
        conditional = self.columns * (self.total // self.sums)[:, None]
        return bool((conditional * ratio.denominator <= self.law * ratio.numerator).all())

    def below_maximal_leakage(self, delta: float, bound: float) -> bool:
        """Whether `sum_y max_x P[x,y] <= delta e^bound`: no outcomes of mass delta leak more than `bound`.

        Post-processing does not raise the sum, and to it outcomes that leak more than log t give more than t
        times their mass.

        Source: [saeidian2026envelopes, Theorem 3].
        """
        conditional = self.columns * (self.total // self.sums)[:, None]
        most = int(conditional.max(axis=0).sum())
        return most <= Fraction(delta) * power_below(bound) * self.total


def reaches(outcomes: list[Outcome], delta: float, level: float) -> bool:
    """Whether outcomes of mass delta or more leak `level` nats or more, by a rational of at least e^level.

    At level 0 all do: of every outcome, the largest conditional probability is at least the mean.
    """
    return level <= 0 or reached_mass(outcomes, level) >= Fraction(delta)


def reached_mass(outcomes: list[Outcome], level: float) -> Fraction:
    """The mass of the outcomes that leak `level` nats or more, by a rational of at least e^level."""
    ratio = power_above(level)
    bad = [z for z in outcomes if z.given * ratio.denominator >= z.mass * ratio.numerator]
    return Fraction(sum(z.mass for z in bad), bad[0].total) if bad else Fraction(0)


def _floor(number: Fraction) -> Fraction:
    """The number rounded down to a multiple of a power of two."""
    return Fraction((number.numerator << RATIO_BITS) // number.denominator, 1 << RATIO_BITS)


def bounds(exact: RationalMechanism, delta: float, bound: float, multipliers: FloatArray | None) -> bool:
    """Whether no post-processing leaks more than `bound` nats with probability delta or more.

    By multipliers, of which the negative ones count for nothing; without, by the level of the mechanism or by
    its maximal leakage.
    """
    if bound < 0:
        return False
    if multipliers is not None:
        mass, whole = exact.mass_by_multipliers(bound, multipliers)
        above, below = delta.as_integer_ratio()
        return mass * below < above * whole
    return exact.below_level(bound) or exact.below_maximal_leakage(delta, bound)


def leaking_mass(exact: RationalMechanism, attack: FloatArray, epsilon: float) -> Fraction:
    """The probability with which the outcomes of an (M, K) post-processing leak epsilon nats or more.

    At 0 it is 1. Levels above `LARGEST_EXPONENT` count as out of reach.
    """
    if epsilon <= 0:
        return Fraction(1)
    if epsilon > LARGEST_EXPONENT:
        return Fraction(0)
    return reached_mass(exact.outcomes(attack), epsilon)


def failure_bound(exact: RationalMechanism, epsilon: float, multipliers: FloatArray) -> Fraction:
    """The probability that no post-processing exceeds in leaking epsilon nats or more, by multipliers."""
    return Fraction(*exact.mass_by_multipliers(min(epsilon, LARGEST_EXPONENT), multipliers))


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

    prior: StoredPrior
    over: PriorSet | None
    delta: Annotated[float, Range(0, 1)]
    attack: Mechanism
    multipliers: Annotated[FloatArray, Shape("K")] | None

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


@dataclass(frozen=True, eq=False, kw_only=True)
class ProcessedFailureCertificate(Certificate):
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

    prior: StoredPrior
    over: PriorSet | None
    epsilon: Annotated[float, Range(0)]
    attack: Mechanism
    multipliers: Annotated[FloatArray, Shape("K")]

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
