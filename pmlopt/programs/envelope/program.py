"""The worst post-processing: the leakage exceeded with a probability, and the probability of a leakage."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Labels,
    check_nonnegative,
    check_probability,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, pair_with_names
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures import (
    composed_envelope_bound,
    envelope_bounds,
    failure_probability,
    leakage_level,
    maximal_leakage,
)
from pmlopt.model.uncertainty.prior_set import PriorSet, check_prior_set
from pmlopt.programs.certificate import C_co
from pmlopt.programs.envelope.certificate import EnvelopeCertificate, ProcessedFailureCertificate
from pmlopt.programs.envelope.masses import RationalMechanism
from pmlopt.programs.program import CvxpyModel, Program, build_problem

P = TypeVar("P", bound="PostProcessingProgram[Any]")


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class PostProcessingProgram(Program[C_co]):
    """The base of programs for the probability of leaking log t or more after the worst post-processing.

    `problem` is the linear program for one likelihood ratio t: V(t), the largest probability that an outcome
    of a post-processing Z leaks log t or more. Each bad outcome z leaks through a letter x,
    `P(z|x) >= t P(z)`; outcomes that leak through the same letter can be merged, so that one for each letter
    suffices. With `w[x,y] = P(Z = x | Y = y)`: maximise `sum q[y] w[x,y]` subject to
    `sum_y (P[x,y] - t q[y]) w[x,y] >= 0` for each x and `sum_x w[x,y] <= 1` for each y, `w >= 0`.

    `problem` minimises the negative, at the parameter `ratio`, t.

    Over a set of priors each output is there twice, with its least and its largest probability over the set,
    each copy with a weight, its `ends`: those of an output sum to one, and the mean probabilities of all
    outputs do. A copy is processed up to its weight. The optimum is at least V(t) under every prior of the
    set.

    Attributes:
        prior: N letters; over a set only its letters count.
        over: a set of priors, or None.
        given_mechanism: the mechanism that is processed.
        merged: (N, M') its matrix, rows over their sums, outputs that leak alike made one.
        groups: for each column of `merged` the outputs that it represents.
        ratio: t, a parameter of `problem`, 1 at first.
    """

    prior: Prior
    over: PriorSet | None
    given_mechanism: Mechanism
    merged: FloatArray
    groups: tuple[tuple[int, ...], ...]
    ratio: cp.Parameter
    maximised = True
    """The worst post-processing is wanted."""

    @property
    def row_and_column_labels(self) -> tuple[Labels | None, Labels | None]:
        """Return the mechanism's outputs as row labels; the columns are free."""
        return self.given_mechanism.outputs, None

    @property
    def attack(self) -> cp.Variable:
        """Return the (K, N) post-processing matrix as a cvxpy expression; rows may sum to less than one."""
        return self.variables["attack"]

    @cached_property
    def columns(self) -> FloatArray:
        """Return the (N, K) mechanism matrix with merged outputs; over a set of priors repeated twice."""
        return self.merged if self.over is None else np.tile(self.merged, (1, 2))

    @cached_property
    def law(self) -> FloatArray:
        """Return the (K,) output law; over a set of priors the lower, then the upper probabilities."""
        if self.over is None:
            return self.prior.pmf @ self.merged
        least = self.over.min_mean(self.merged)
        negative = self.over.min_mean(-self.merged)
        return np.concatenate([np.maximum(least, 0.0), -negative])

    @cached_property
    def max_ratios(self) -> FloatArray:
        """Return each letter's largest likelihood ratio `max_y P[x,y] / q[y]`."""
        # an output of least probability 0 over the set has no largest ratio
        with np.errstate(divide="ignore"):
            ratios = self.columns / self.law
        return np.asarray(np.where(self.columns > 0, ratios, 0.0).max(axis=1))

    @cached_property
    def rational_mechanism(self) -> RationalMechanism:
        """Return the mechanism and its prior or priors in rational arithmetic."""
        return RationalMechanism.from_floats(self.prior, self.given_mechanism.matrix, self.over)

    @cached_property
    def single_prior_programs(self) -> tuple[Self, ...]:
        """Return the same program for each of the priors that look worst.

        Of its extreme points, those at which an output or a letter is least or most likely, and their middle;
        of `ConvexHull` all.
        """
        # priors have no zeros: one without some letter is moved a little towards the middle
        interior_share = 1e-12
        over = self.over
        if over is None:
            return (self,)
        directions = np.hstack([self.merged, np.eye(len(self.merged))])
        ends = [over.minimizer(sign * column) for column in directions.T for sign in (1.0, -1.0)]
        if (vertices := over.list_vertices()) is not None:
            ends += list(vertices)
        points = np.unique(np.maximum(ends, 0.0), axis=0)
        # the middle has every letter that any point has
        middle = points.mean(axis=0)
        points = np.vstack([middle, points])
        missing = (points == 0).any(axis=1, keepdims=True)
        points = np.where(missing, points + interior_share * middle, points)
        priors = [Prior(point / point.sum(), self.prior.labels) for point in points]
        priors.sort(key=self.estimate_leakage, reverse=True)
        # the eight priors that look worst before any linear program
        return tuple(self.with_prior(prior) for prior in priors[:8])

    @abstractmethod
    def estimate_leakage(self, prior: Prior) -> float:
        """Estimate the leakage under a prior from a few simple post-processings."""

    @abstractmethod
    def with_prior(self, prior: Prior) -> Self:
        """Return the same program for one prior."""

    @property
    def multiplier_count(self) -> int:
        """Return the number of dual multipliers: one per letter, and one more over a set of priors."""
        return self.prior.size + (self.over is not None)

    def pad_multipliers(self, weights: FloatArray) -> FloatArray:
        """Pad letter multipliers with zeros to the length that a bound needs."""
        return np.append(weights, np.zeros(self.multiplier_count - len(weights)))

    def add_copies(self, point: FloatArray) -> FloatArray:
        """Sum the rows of a (K, N) post-processing that belong to the same output, to (M', N)."""
        return np.asarray(point.reshape(-1, *self.merged.T.shape).sum(axis=0))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnvelopeProgram(PostProcessingProgram[EnvelopeCertificate]):
    """The program of the leakage level that the worst post-processing exceeds with probability delta.

    `problem` is the linear program for one likelihood ratio t (see `PostProcessingProgram`): V(t), the
    largest probability that an outcome of a post-processing leaks log t or more. The envelope at delta is the
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
        """Compute an upper bound without optimization: the PML level, or maximal leakage minus log(delta).

        Over a set of priors, the level is the largest over the set.

        Source: [saeidian2026envelopes, Theorem 3].
        """
        composed = composed_envelope_bound([maximal_leakage(self.merged)], self.delta)
        if self.over is None:
            return min(leakage_level(self.prior.pmf, self.merged), composed)
        return min(math.log(max(1.0, self.max_ratios.max())), composed)

    def estimate_leakage(self, prior: Prior) -> float:
        """Return the smaller of two simple upper bounds on the envelope, in nats."""
        return envelope_bounds(prior, self.given_mechanism, self.delta)[0]

    def with_prior(self, prior: Prior) -> EnvelopeProgram:
        """Return the envelope program for one prior."""
        return envelope(prior, self.given_mechanism, self.delta)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ProcessedFailureProgram(PostProcessingProgram[ProcessedFailureCertificate]):
    """The program of the largest probability, over post-processings, of leaking epsilon or more.

    `problem` is the linear program of `PostProcessingProgram`; `solve` sets its `ratio` to e^epsilon.

    Attributes:
        epsilon: in nats.

    Source: [saeidian2026envelopes, Section IV]; the linear program is pmlopt's.
    """

    epsilon: float
    tolerance = 1e-8

    def estimate_leakage(self, prior: Prior) -> float:
        """Return the probability of leaking epsilon or more without post-processing."""
        return failure_probability(prior, self.given_mechanism, self.epsilon)

    def with_prior(self, prior: Prior) -> ProcessedFailureProgram:
        """Return the failure-probability program for one prior."""
        return failure_after_processing(prior, self.given_mechanism, self.epsilon)


def envelope(
    prior: PriorLike, mechanism: MechanismLike, delta: float, over: PriorSet | None = None
) -> EnvelopeProgram:
    """Build the PML envelope problem: leakage after the worst post-processing, but for probability delta.

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
            the bound is valid.

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
    return _make_program(EnvelopeProgram, prior, mechanism, over, delta=check_probability(delta))


def failure_after_processing(
    prior: PriorLike, mechanism: MechanismLike, epsilon: float, over: PriorSet | None = None
) -> ProcessedFailureProgram:
    """Build the problem of the largest probability of leaking epsilon or more under any post-processing.

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
    level = check_nonnegative(epsilon, "epsilon", PrivacyError)
    return _make_program(ProcessedFailureProgram, prior, mechanism, over, epsilon=level)


def _make_program(
    kind: type[P], prior: PriorLike, mechanism: MechanismLike, over: PriorSet | None, **fields: Any
) -> P:
    """Make a program of one kind for a prior, or a set of priors, and a mechanism."""
    p, m = pair_with_names(prior, mechanism)
    if over is not None:
        check_prior_set(over)
        over.check_letters(p.labels, "the prior")
    # outputs with the same posterior leak alike: merging them loses nothing
    groups = m.similar_outputs()
    rows = m.matrix / m.matrix.sum(axis=1, keepdims=True)

    def build_model() -> CvxpyModel:
        return _build_model(program)

    program = kind(
        build_model=build_model,
        prior=p,
        over=over,
        given_mechanism=m,
        merged=np.column_stack([rows[:, group].sum(axis=1) for group in groups]),
        groups=tuple(map(tuple, groups)),
        ratio=cp.Parameter(nonneg=True, value=1.0, name="ratio"),
        **fields,
    )
    return program


def _build_model(program: PostProcessingProgram[Any]) -> CvxpyModel:
    """Build the cvxpy model of the largest probability that an outcome leaks log t or more."""
    (n, k), m, law = program.columns.shape, program.merged.shape[1], program.law
    attack = cp.Variable((k, n), nonneg=True, name="attack")
    mass = cp.Variable(n, nonneg=True, name="mass")
    variables = {"attack": attack, "mass": mass}
    given = cp.sum(cp.multiply(program.columns.T, attack), axis=0)
    constraints: dict[str, cp.Constraint] = {
        "mass": law @ attack == mass,
        "leaks": given >= cp.multiply(program.ratio, mass),
    }
    if program.over is None:
        constraints["outputs"] = cp.sum(attack, axis=1) <= 1
    else:
        ends = variables["ends"] = cp.Variable(k, nonneg=True, name="ends")
        constraints["outputs"] = cp.sum(attack, axis=1) <= ends
        constraints["ends"] = ends[:m] + ends[m:] == 1
        constraints["total"] = law @ ends == 1
    return CvxpyModel(
        build_problem(cp.Minimize(-cp.sum(mass)), constraints), variables, constraints
    )
