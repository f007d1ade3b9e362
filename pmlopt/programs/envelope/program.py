"""The worst post-processing: how much mass can be given to outcomes that leak a given amount."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cvxpy as cp
import numpy as np
from scipy import sparse

from pmlopt.arrays import FloatArray, Label, probability
from pmlopt.measures import composed_envelope_bound, leakage_level, maximal_leakage
from pmlopt.mechanism import Mechanism, MechanismLike, paired
from pmlopt.prior import Prior, PriorLike
from pmlopt.program import Declaration, Program, problem_of
from pmlopt.programs.envelope.certificate import EnvelopeCertificate


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EnvelopeProgram(Program[EnvelopeCertificate]):
    """The leakage that the worst post-processing of a mechanism exceeds with probability delta.

    `problem` is the linear program for one likelihood ratio t: V(t), the largest probability that an outcome
    of a post-processing Z leaks log t or more. Each bad outcome z leaks through a letter x,
    `P(z|x) >= t P(z)`; outcomes that leak through the same letter can be merged, so that one for each letter
    suffices. With `w[x,y] = P(Z = x | Y = y)`: maximise `sum q[y] w[x,y]` subject to
    `sum_y (P[x,y] - t q[y]) w[x,y] >= 0` for each x and `sum_x w[x,y] <= 1` for each y, `w >= 0`.

    `problem` minimises the negative, at the parameter `ratio`, t. The envelope at delta is the logarithm of
    the largest t with `V(t) >= delta`, and `solve` searches for it.

    Attributes:
        prior: N letters.
        given: the mechanism that is processed.
        delta: the probability.
        merged: (N, M') its matrix, rows over their sums, outputs that leak alike made one.
        groups: for each column of `merged` the outputs that it stands for.
        ratio: t, a parameter of `problem`, 1 at first.

    Source: [saeidian2026envelopes, eq. (8) and Theorem 2]; the linear program is pmlopt's.

    Examples:
        >>> program = envelope([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.5)
        >>> program.ratio.value = 1.5
        >>> round(-float(program.problem.solve(solver="HIGHS")), 9)
        1.0
    """

    prior: Prior
    given: Mechanism
    delta: float
    merged: FloatArray
    groups: tuple[tuple[int, ...], ...]
    ratio: cp.Parameter
    tolerance = 1e-8

    @property
    def sides(self) -> tuple[tuple[Label, ...] | None, tuple[Label, ...] | None]:
        """The outputs of the mechanism, which are the inputs of a post-processing."""
        return self.given.outputs, None

    @property
    def maximised(self) -> bool:
        """The worst post-processing is wanted."""
        return True

    @property
    def attack(self) -> cp.Expression:
        """(M', N) the post-processing of the merged outputs; rows may sum to less than one."""
        return cp.reshape(self.variables["attack"], self.merged.T.shape, order="C")

    @cached_property
    def law(self) -> FloatArray:
        """(M',) the law of the merged outputs."""
        return np.asarray(self.prior.pmf @ self.merged)

    @cached_property
    def largest_ratios(self) -> FloatArray:
        """(N,) `max_y P[x,y] / q[y]`, above which no outcome can leak through the letter x."""
        return np.asarray((self.merged / self.law).max(axis=1))

    @cached_property
    def simple_bound(self) -> float:
        """Upper bound without a linear program, in nats: the level, or maximal leakage plus log(1 / delta).

        Source: [saeidian2026envelopes, Theorem 3].
        """
        composed = composed_envelope_bound([maximal_leakage(self.merged)], self.delta)
        return min(leakage_level(self.prior.pmf, self.merged), composed)


def envelope(prior: PriorLike, mechanism: MechanismLike, delta: float) -> EnvelopeProgram:
    """Declare the PML envelope: the leakage of the worst post-processing, but for a probability.

    `eps_c(delta)` is the least level that no randomised function of the output exceeds with a probability
    above delta. `solve` closes in on it from both sides. The value of the result is reached by the
    post-processing `certificate.attack`: it is the upper delta-quantile of its leakage, that is
    `leakage_quantile(..., upper=True)` of the mechanism after it, counted in rational arithmetic. The bound
    is what no post-processing exceeds with probability delta or more.

    Args:
        prior: N letters.
        mechanism: (N, M).
        delta: in (0, 1).

    Raises:
        PrivacyError: delta is not in (0, 1).
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
    """
    share = probability(delta)
    p, m = paired(prior, mechanism)
    groups = m.similar_outputs()
    rows = m.matrix / m.matrix.sum(axis=1, keepdims=True)
    merged = np.column_stack([rows[:, group].sum(axis=1) for group in groups])
    ratio = cp.Parameter(nonneg=True, value=1.0, name="ratio")
    return EnvelopeProgram(
        declare=lambda: _declaration(p.pmf @ merged, merged, ratio),
        prior=p,
        given=m,
        delta=share,
        merged=merged,
        groups=tuple(map(tuple, groups)),
        ratio=ratio,
    )


def _declaration(law: FloatArray, merged: FloatArray, ratio: cp.Parameter) -> Declaration:
    n, k = merged.shape
    letters, outputs = np.tile(np.arange(n), k), np.repeat(np.arange(k), n)  # columns first
    places = np.arange(n * k)
    gain = sparse.csr_array((merged[letters, outputs], (letters, places)), shape=(n, n * k))
    cost = sparse.csr_array((law[outputs], (letters, places)), shape=(n, n * k))
    whole = sparse.csr_array((np.ones(n * k), (outputs, places)), shape=(k, n * k))
    attack = cp.Variable(n * k, nonneg=True, name="attack")
    mass = cp.Variable(n, nonneg=True, name="mass")
    constraints = {
        "mass": cost @ attack == mass,
        "leaks": gain @ attack >= ratio * mass,
        "outputs": whole @ attack <= 1,
    }
    problem = problem_of(cp.Minimize(-cp.sum(mass)), constraints)
    return Declaration(problem, {"attack": attack, "mass": mass}, constraints)
