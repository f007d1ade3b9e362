"""The worst post-processing, both ways: what leaks but for a probability, and how likely a level leaks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from pmlopt.core.arrays import nonnegative, probability
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures import (
    composed_envelope_bound,
    envelope_bounds,
    failure_probability,
    leakage_level,
    maximal_leakage,
)
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.post_processing import PostProcessings, candidate_priors, parts_of


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnvelopeProgram(PostProcessings[EnvelopeCertificate]):
    """The leakage that the worst post-processing of a mechanism exceeds with probability delta.

    `problem` is the linear program for one likelihood ratio t (see `PostProcessings`): V(t), the largest
    probability that an outcome of a post-processing leaks log t or more. The envelope at delta is the
    logarithm of the largest t with `V(t) >= delta`, and `solve` searches for it.

    Attributes:
        delta: the probability.

    Source: [saeidian2026envelopes, eq. (8) and Theorem 2]; the linear program is pmlopt's.

    Examples:
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> program.ratio.value = 1.5
        >>> round(-float(program.problem.solve(solver="HIGHS")), 9)
        1.0
    """

    delta: float
    tolerance = 1e-8

    @cached_property
    def simple_bound(self) -> float:
        """Upper bound without a linear program, in nats: the level, or maximal leakage plus log(1 / delta).

        Over a set of priors, the level is the largest over the set.

        Source: [saeidian2026envelopes, Theorem 3].
        """
        composed = composed_envelope_bound([maximal_leakage(self.merged)], self.delta)
        if self.over is None:
            return min(leakage_level(self.prior.pmf, self.merged), composed)
        return min(math.log(max(1.0, self.largest_ratios.max())), composed)

    @cached_property
    def singles(self) -> tuple[EnvelopeProgram, ...]:
        """The program under one prior: itself, or those of the set that look worst."""
        if self.over is None:
            return (self,)
        priors = candidate_priors(
            self.over,
            self.merged,
            self.prior.labels,
            lambda prior: envelope_bounds(prior, self.given, self.delta)[0],
        )
        return tuple(envelope(prior, self.given, self.delta) for prior in priors)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProcessedFailureProgram(PostProcessings[ProcessedFailureCertificate]):
    """How likely the worst post-processing of a mechanism leaks epsilon or more: V(e^epsilon).

    `problem` is the linear program of `PostProcessings`; `solve` sets its `ratio` to e^epsilon.

    Attributes:
        epsilon: in nats.

    Source: [saeidian2026envelopes, Section IV]; the linear program is pmlopt's.
    """

    epsilon: float
    tolerance = 1e-8

    @cached_property
    def singles(self) -> tuple[ProcessedFailureProgram, ...]:
        """The program under one prior: itself, or those of the set that look worst."""
        if self.over is None:
            return (self,)
        priors = candidate_priors(
            self.over,
            self.merged,
            self.prior.labels,
            lambda prior: failure_probability(prior, self.given, self.epsilon),
        )
        return tuple(failure_after_processing(prior, self.given, self.epsilon) for prior in priors)


def envelope(
    prior: PriorLike, mechanism: MechanismLike, delta: float, over: PriorSet | None = None
) -> EnvelopeProgram:
    """Declare the PML envelope: the leakage of the worst post-processing, but for a probability.

    `eps_c(delta)` is the least level that no randomised function of the output exceeds with a probability
    above delta. `solve` closes in on it from both sides. The value of the result is reached by the
    post-processing `certificate.attack`: it is the upper delta-quantile of its leakage, that is
    `leakage_quantile(..., upper=True)` of the mechanism after it, counted in rational arithmetic. The bound
    is what no post-processing exceeds with probability delta or more.

    Args:
        prior: N letters; with `over` only its letters count.
        mechanism: (N, M).
        delta: in (0, 1).
        over: a set of priors: the largest envelope under a prior of the set. The value is that of one prior
            of it, `certificate.prior`; the bound, which holds under all of them, knows of the set only how
            probable each output may be. Often they meet; where they do not, the result is `unproved`, and
            the bound stands.

    Raises:
        PrivacyError: delta is not in (0, 1), or `over` is no set of priors on these letters.
        MechanismError: sizes or labels of prior and mechanism disagree.

    Source: [saeidian2026envelopes, Section IV and Theorem 2].

    Examples:
        >>> import math
        >>> from pmlopt import solve
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> result = solve(envelope([0.25] * 4, halves, 0.1))
        >>> round(math.exp(result.value), 9), round(math.exp(result.bound), 9), result.certificate.verify()
        (4.0, 4.0, True)
        >>> round(solve(envelope([0.25] * 4, halves, 0.5)).value, 6)
        0.412845
        >>> from pmlopt import L1Ball
        >>> ball = solve(envelope([0.25] * 4, halves, 0.5, over=L1Ball([0.25] * 4, 0.1)))
        >>> round(ball.value, 6), round(ball.bound, 6), ball.certificate.verify()
        (0.419289, 0.419289, True)
    """
    return EnvelopeProgram(delta=probability(delta), **parts_of(prior, mechanism, over))


def failure_after_processing(
    prior: PriorLike, mechanism: MechanismLike, epsilon: float, over: PriorSet | None = None
) -> ProcessedFailureProgram:
    """Declare the closed failure probability: how likely the worst post-processing leaks epsilon or more.

    `V(e^epsilon) = max_Z P(l(Z) >= epsilon)` over all randomised functions Z of the output, the inverse of
    `envelope`: V is at least delta iff the envelope at delta is at least epsilon. It is `failure_probability`
    made safe against post-processing; that counts leakages above epsilon, and this one those at epsilon too:
    it jumps down just above a level that outcomes reach exactly. What exceeds epsilon,
    `delta_c(epsilon) = sup_Z P(l(Z) > epsilon)`, is at most the bound, and its limit from above.

    The value of the result is reached by the post-processing `certificate.attack`; the bound, by multipliers,
    is exceeded by none. Both are probabilities, checked in rational arithmetic.

    Args:
        prior: N letters; with `over` only its letters count.
        mechanism: (N, M).
        epsilon: in nats, at least 0.
        over: a set of priors, as in `envelope`.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite, or `over` is no set of priors on these letters.
        MechanismError: sizes or labels of prior and mechanism disagree.

    Source: [saeidian2026envelopes, Section IV and Theorem 2].

    Examples:
        >>> import math
        >>> from pmlopt import solve
        >>> from pmlopt.measures import failure_probability
        >>> halves = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
        >>> result = solve(failure_after_processing([0.25] * 4, halves, math.log(3)))
        >>> round(result.value, 9), round(result.bound, 9), result.certificate.verify()
        (0.147368421, 0.147368421, True)
        >>> round(failure_probability([0.25] * 4, halves, math.log(3)), 9)
        0.1
    """
    level = nonnegative(epsilon, "epsilon", PrivacyError)
    return ProcessedFailureProgram(epsilon=level, **parts_of(prior, mechanism, over))
