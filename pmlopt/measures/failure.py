"""The probability that an outcome leaks more than epsilon, under one prior or a set."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pmlopt.core.lazy_imports import optimize
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, bound_sum_rounding, check_nonnegative
from pmlopt.data.mechanism import Mechanism, MechanismLike, pair_with_prior
from pmlopt.data.prior import PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import (
    MinMeanSet,
    bound_level_rounding,
    measure_worst_leakage,
    pointwise_leakage,
)


def failure_probability(
    prior: PriorLike, mechanism: MechanismLike, epsilon: float, over: MinMeanSet | None = None
) -> float:
    """Compute P(l(Y) > epsilon), the probability that an outcome leaks more than epsilon.

    A leakage that is epsilon but for rounding is not more: nothing exceeds a mechanism's own level.

    Args:
        prior: N letters; with `over` only its letters count.
        mechanism: (N, M).
        epsilon: in nats.
        over: a set of priors: the supremum over its priors Q of the probability under Q of the outcomes that
            leak more than epsilon under Q, from above. It is above by 1e-9 at most, unless the search ends at
            its limit (2,000 nodes); it is an upper bound in any case.

    Raises:
        MechanismError: sizes or labels disagree.
        PrivacyError: epsilon is negative, or `over` is no set of priors on these letters.

    Source: [grosse2025empirical, Definition 3]; over a set, [grosse2025empirical, eq. (17)] for a matrix.

    Examples:
        >>> failure_probability([0.5, 0.5], [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], np.log(1.5))
        0.5
        >>> from pmlopt import L1Ball
        >>> ball = L1Ball([0.5, 0.5], 0.2)  # under (0.4, 0.6), 0.45 of the outcomes leak log 5/3
        >>> round(failure_probability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.45, over=ball), 6)
        0.478221
    """
    threshold = check_nonnegative(epsilon, "epsilon", PrivacyError)
    p, m = pair_with_prior(prior, mechanism)
    if over is not None:
        if not isinstance(over, MinMeanSet):
            raise PrivacyError(
                f"`over` is {over!r}: give a set of priors such as L1Ball(prior, 0.1)"
            )
        over.check_letters(p.labels, "the prior")
        return _maximize_failure(over, m, threshold)
    law = p.pmf @ m.matrix
    return float(
        law[pointwise_leakage(p, m) > threshold + bound_level_rounding(threshold, p.size)].sum()
    )


def _maximize_failure(priors: MinMeanSet, mechanism: Mechanism, epsilon: float) -> float:
    """Maximise the failure probability over a set of priors by branch and bound."""
    # proportional columns fail together under every prior: fewer outcomes to branch on
    merged = [mechanism.matrix[:, group].sum(axis=1) for group in mechanism.similar_outputs()]
    search = _FailureSearch.build(priors, np.column_stack(merged), epsilon)
    count = search.columns.shape[1]
    if not count:
        return 0.0
    # a number for each node: ties in the heap would compare arrays
    tick = itertools.count()
    heap = [(-1.0, next(tick), np.zeros(count, dtype=int))]
    settled = 0.0
    # Nodes after which the search over a set ends with its current bound.
    for _ in range(2000):
        bound, _, fates = heap[0]
        # How far above the supremum over a set the bound may be.
        if -bound <= max(search.best, settled) + 1e-9:
            break
        heapq.heappop(heap)
        value, branch = search.evaluate_node(fates)
        # a child is a part of its parent, whose bound holds for it too
        value = min(value, -bound)
        if branch is None:
            settled = max(settled, value)
        else:
            for fate in (1, -1):
                child = fates.copy()
                child[branch] = fate
                heapq.heappush(heap, (-value, next(tick), child))
        if not heap:
            break
    return min(1.0, max(settled, search.best, -heap[0][0] if heap else 0.0))


@dataclass(frozen=True, eq=False)
class _Mixtures:
    """The polytope of mixtures of (K, N) priors."""

    laws: FloatArray

    @property
    def parts(self) -> FloatArray:
        """Return the (N, K) priors as columns."""
        return self.laws.T

    @property
    def rows(self) -> FloatArray:
        """Return the equation that the weights sum to one."""
        return np.ones((1, len(self.laws)))

    right: ClassVar[FloatArray] = np.ones(1)
    equal: ClassVar[BoolArray] = np.array([True])


@dataclass(eq=False)
class _FailureSearch:
    """The branch-and-bound search over the outcomes that leak more than epsilon.

    An outcome y fails under Q iff its probability `q = <Q, v>` is below `c = e^-eps max v`. Its part in the
    failure probability is q below c and 0 from there on; over the set, where q is u at most, the least
    concave function above that is `min(q, c (u - q) / (u - c))`.

    Attributes:
        priors: the set.
        columns: (N, M) those outcomes.
        limits: (M,) c.
        max_probabilities: (M,) u.
        best: the largest sum of probabilities q <= c found.
        mixtures: of extreme priors of a set that is no polytope, in its place.
    """

    VIOLATION_PENALTY: ClassVar[float] = 1e3
    """The price of breaking a condition of a node, as a multiplier: a limit on multipliers, which any is."""

    priors: MinMeanSet
    columns: FloatArray
    limits: FloatArray
    max_probabilities: FloatArray
    best: float = 0.0
    mixtures: _Mixtures | None = None

    @classmethod
    def build(cls, priors: MinMeanSet, columns: FloatArray, epsilon: float) -> _FailureSearch:
        """Build the search, with the outcomes that can leak more than epsilon under a prior of the set."""
        peaks = columns.max(axis=0)
        # the least mean decides: outcomes that leak at most epsilon there never fail
        leakages = measure_worst_leakage(priors, columns)
        able = leakages > epsilon + bound_level_rounding(epsilon, len(columns))
        kept = columns[:, able]
        max_probabilities = -priors.min_mean(-kept) if kept.size else np.zeros(0)
        mixtures = None
        if kept.size and priors.polytope() is None:
            ends = [priors.minimizer(sign * column) for column in kept.T for sign in (1.0, -1.0)]
            mixtures = _Mixtures(np.array(ends))
        limits = math.exp(-epsilon) * peaks[able]
        return cls(priors, kept, limits, max_probabilities, mixtures=mixtures)

    def record_prior(self, law: FloatArray) -> None:
        """Evaluate the failure probability of a prior, and keep it if largest."""
        q = law @ self.columns
        self.best = max(self.best, float(q[q <= self.limits * (1 + 1e-12)].sum()))

    def evaluate_node(self, fates: FloatArray) -> tuple[float, int | None]:
        """Return a node's upper bound and branching outcome."""
        law, caps, floors, breach = self._solve_relaxation(fates)
        if breach > 0 and self._is_empty(fates):
            return 0.0, None
        bound, reached = self._compute_bound(fates, caps, floors)
        # Priors that are added for one node at most.
        for _ in range(12):
            if not self._add_prior(reached):
                break
            law, caps, floors, _ = self._solve_relaxation(fates)
            lower, reached = self._compute_bound(fates, caps, floors)
            bound = min(bound, lower)
        for one in (law, reached):
            self.record_prior(one)
        q = law @ self.columns
        part = np.where(
            self._failure_slopes > 0,
            np.minimum(q, self._failure_slopes * (self.max_probabilities - q)),
            q,
        )
        over = part - np.where(q <= self.limits, q, 0.0)
        open_ = np.flatnonzero(fates == 0)
        return bound, int(open_[over[open_].argmax()]) if len(open_) else None

    def _add_prior(self, law: FloatArray) -> bool:
        """Add a prior to the inner approximation; return whether it is new."""
        if self.mixtures is None:
            return False
        laws = self.mixtures.laws
        if np.abs(laws - law).max(axis=1).min() <= 1e-9:
            return False
        self.mixtures = _Mixtures(np.vstack([laws, law]))
        return True

    @property
    def _failure_slopes(self) -> FloatArray:
        """Return the (M,) slopes c / (u - c) of the relaxation; 0 where the outcome always fails."""
        # where u <= c every prior of the set is below the limit
        room = self.max_probabilities - self.limits
        return np.where(
            room > 1e-12 * self.limits, self.limits / np.where(room > 0, room, 1.0), 0.0
        )

    def _is_empty(self, fates: FloatArray) -> bool:
        """Return whether a node is infeasible, proved by multipliers."""
        _, caps, floors, _ = self._solve_relaxation(fates, gain=0.0)
        caps = np.where(fates == 1, caps, 0.0)
        floors = np.where(fates == -1, floors, 0.0)
        # Farkas: a combination of the conditions that no prior of the set can meet
        weights = np.maximum(caps, 0.0) - np.maximum(floors, 0.0)
        column = self.columns @ weights
        room = float(weights @ self.limits)
        size = float(np.abs(weights) @ (self.limits + self.columns.max(axis=0)))
        # a proof only where it exceeds its own rounding: else the node stays open
        excess = float(self.priors.min_mean(column[:, None])[0]) - room
        return excess > bound_sum_rounding(len(column) + len(fates), size) / 16

    def _solve_relaxation(
        self, fates: FloatArray, gain: float = 1.0
    ) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """Solve a node's linear relaxation over the set.

        Args:
            fates: (M,) the node's conditions.
            gain: what the failures count for; 0 requires the smallest breach of the conditions only.

        Returns:
            A prior of the set near the best one, the multipliers of the upper limits on q and of the lower
            ones, and the breach of the conditions.
        """
        found = self.mixtures or self.priors.polytope()
        n = len(fates)
        q = found.parts.T @ self.columns
        z = found.parts.shape[1]
        slopes = self._failure_slopes
        free = fates == 0
        inside = fates == 1
        out = fates == -1
        eye = np.eye(n)
        none = np.zeros((n, n))
        # variables: those of the polytope, parts t of the outcomes, breaches of the node's conditions
        rows = np.block(
            [[-q.T, eye, none], [(slopes * q).T, eye, none], [q.T, none, -eye], [-q.T, none, -eye]]
        )
        right = np.concatenate(
            [np.zeros(n), slopes * self.max_probabilities, self.limits, -self.limits]
        )
        used = np.concatenate([~out, free & (slopes > 0), inside, out])
        own = np.hstack([found.rows, np.zeros((len(found.rows), 2 * n))])
        equal = found.equal
        price = self.VIOLATION_PENALTY if gain else 1.0
        answer = optimize.linprog(
            np.concatenate([np.zeros(z), np.full(n, -gain), np.full(n, price)]),
            A_ub=np.vstack([rows[used], own[~equal]]),
            b_ub=np.append(right[used], found.right[~equal]),
            A_eq=own[equal],
            b_eq=found.right[equal],
            bounds=[(0, None)] * z + [(None, 0.0 if o else None) for o in out] + [(0, None)] * n,
            method="highs",
        )
        # zeros are valid multipliers too, for rows that are left out or a solve that failed
        multipliers = np.zeros(4 * n)
        if answer.x is None:
            law = self.priors.minimizer(np.zeros(len(self.columns)))
            return law, multipliers[:n], multipliers[:n], 0.0
        multipliers[used] = -answer.ineqlin.marginals[: used.sum()]
        caps = np.where(inside, multipliers[2 * n : 3 * n], multipliers[n : 2 * n])
        near = found.parts @ answer.x[:z]
        if self.mixtures is None:
            near = np.asarray(self.priors.project_to_rationals(near), dtype=float)
        law = np.asarray(near)
        return law, caps, multipliers[3 * n :], float(answer.x[z + n :].sum())

    def _compute_bound(
        self, fates: FloatArray, caps: FloatArray, floors: FloatArray
    ) -> tuple[float, FloatArray]:
        """Compute the Lagrangian bound of multipliers, with its maximising prior."""
        slopes = self._failure_slopes
        free = fates == 0
        inside = fates == 1
        out = fates == -1
        # clipped to the dual feasible range: weak duality then holds, however the solver ended
        fraction = np.clip(np.where(free & (slopes > 0), caps, 0.0), 0.0, 1.0)
        price = np.clip(np.where(inside, caps, 0.0), 0.0, self.VIOLATION_PENALTY)
        floor = np.clip(np.where(out, floors, 0.0), 0.0, self.VIOLATION_PENALTY)
        weights = np.where(
            free, 1 - fraction - fraction * slopes, np.where(inside, 1 - price, floor)
        )
        terms = fraction * slopes * self.max_probabilities + (price - floor) * self.limits
        # the maximum of a linear function over the set, as minus a least mean
        column = -self.columns @ weights
        reached = -float(self.priors.min_mean(column[:, None])[0])
        size = float(np.abs(terms).sum() + np.abs(self.columns * weights).max(axis=0).sum())
        bound = (
            float(terms.sum()) + reached + bound_sum_rounding(len(column) + len(fates), size) / 16
        )
        return bound, self.priors.minimizer(column)
