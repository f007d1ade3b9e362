"""Sets of priors given by a lower probability of each set of letters."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.model.uncertainty.prior_set import (
    MinMeanExpression,
    PriorPolytope,
    PriorSet,
    has_rare_values,
)
from pmlopt.model.uncertainty.support_functions import (
    ThetaPiece,
    bound_gain,
    find_best_thetas,
    max_gain,
    max_gain_ldp,
)
from pmlopt.solvers.structured.block_program import (
    ColumnBlock,
    build_edge_block,
    build_mean_block,
    build_ratio_block,
    build_threshold_block,
)


@dataclass(frozen=True, eq=False)
class LowerProbability:
    """A lower probability nu on sets of letters, in floats or integers.

    `nu(A) = max(0, lower(A) - shift, total - upper(not A))`, and nu(all letters) = total.

    Attributes:
        lower: (N,).
        shift: a number.
        upper: (N,), or None where only nu(all letters) comes from it.
        total: 1, or the integer that represents it.
    """

    lower: Any
    shift: Any
    upper: Any
    total: Any

    def evaluate_prefixes(self, order: Any) -> Any:
        """Compute the (N, M) lower probabilities of the first k letters of each order, for k = 1, ..., N."""
        nu = np.maximum(np.cumsum(self.lower[order], axis=0) - self.shift, 0 * self.total)
        if self.upper is not None:
            # the sum of `upper` over the letters from each place
            # on: the complement of the first k is one later
            after = np.cumsum(self.upper[order][::-1], axis=0)[::-1]
            nu[:-1] = np.maximum(nu[:-1], self.total - after[1:])
        # set, not summed: the masses of the worst prior then sum to the total exactly
        nu[-1] = self.total
        return nu

    def evaluate_sets(self, sets: Any) -> FloatArray:
        """Compute the (K,) lower probabilities of (K, N) sets of letters."""
        # (K,): one product for all sets
        nu = np.maximum(sets @ self.lower - self.shift, 0.0)
        if self.upper is not None:
            nu = np.maximum(nu, self.total - ~sets @ self.upper)
        return np.asarray(np.where(sets.all(axis=1), self.total, nu))


class ChoquetSet(PriorSet):
    """The set of priors `{Q: Q(A) >= nu(A) for all A}` of a 2-monotone lower probability nu.

    With the letters in descending order of v, the worst prior gives the k-th the mass
    `nu(first k) - nu(first k - 1)`, and w(v) is its mean: the adversary has the least possible mass on
    the largest entries.

    Source: [choquet1954capacities]; [huber1973minimax] (l1 balls); [decampos1994intervals] (boxes).
    """

    @cached_property
    @abstractmethod
    def float_probability(self) -> LowerProbability:
        """Return the lower probability in floats, with a total near one."""

    @cached_property
    @abstractmethod
    def integer_probability(self) -> LowerProbability:
        """Return the lower probability times a positive number, in integers without rounding."""

    @property
    def size(self) -> int:
        """Return the number of letters N."""
        return len(self.float_probability.lower)

    @cached_property
    def contains_all_priors(self) -> bool:
        """Return whether the set contains all priors."""
        return bool(
            (self.float_probability.evaluate_sets(~np.eye(self.size, dtype=bool)) <= 0).all()
        )

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column over the set."""
        least, total = self.min_mean_scaled(matrix)
        return np.asarray(least / total)

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means times a positive number, and that number; exact for integers."""
        # integer matrices come from exact verification, where a float would round
        nu = self.integer_probability if matrix.dtype == object else self.float_probability
        # Choquet integral: the worst prior of a column depends only on the order of its entries
        order = np.argsort(-matrix, axis=0, kind="stable")
        masses = np.diff(nu.evaluate_prefixes(order), axis=0, prepend=0 * nu.total)
        return (masses * np.take_along_axis(matrix, order, axis=0)).sum(axis=0), nu.total

    @cached_property
    def has_rare_letters(self) -> bool:
        """Return whether sums of floats lose lower probabilities of letters, or what upper ones leave."""
        nu = self.float_probability
        left = np.zeros(0) if nu.upper is None else nu.total - nu.upper
        return has_rare_values(np.concatenate([nu.lower, left]))

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return a prior of the set that minimises the mean of a column."""
        order = np.argsort(-column, kind="stable")
        worst = np.empty(len(column))
        # an extreme point of the set, by 2-monotonicity: the least mass on each set of first letters
        worst[order] = np.diff(
            self.float_probability.evaluate_prefixes(order[:, None])[:, 0], prepend=0.0
        )
        return np.asarray(worst / self.float_probability.total)

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Project a law to rationals that are in the set with certainty."""
        # Q is in the set iff `sum_x max(lower - Q, 0) <= shift` and Q <= upper: these are nu, set by set
        lower, shift, upper = self.rational_probability
        q = np.array([Fraction(max(mass, 0.0)) for mass in law.tolist()], dtype=object)
        missing = np.maximum(lower - q, 0)
        if missing.sum() > shift:
            q = q + (1 - shift / missing.sum()) * missing
        # capped after it was raised: lower <= upper, so that this does not undo the raise
        q = np.minimum(q, upper)
        for surplus in (np.maximum(q - lower, 0), None):  # what is above `lower` goes first
            if q.sum() > 1:
                surplus = q if surplus is None else surplus
                q = q - min((q.sum() - 1) / (surplus.sum() or 1), 1) * surplus
        if q.sum() < 1:
            q = q + (1 - q.sum()) / (upper - q).sum() * (upper - q)
        return q

    @cached_property
    def rational_probability(self) -> tuple[Any, Fraction, Any]:
        """Return lower bounds, shift and upper bounds of the lower probability as rationals."""
        nu = self.integer_probability
        n = self.size
        total = int(nu.total)
        ends = [nu.lower, np.full(n, total, dtype=object) if nu.upper is None else nu.upper]
        lower, upper = (
            np.array([Fraction(int(v), total) for v in end], dtype=object) for end in ends
        )
        return lower, Fraction(int(nu.shift), total), upper

    def polytope(self) -> PriorPolytope:
        """Return the set as linear inequalities, in floats."""
        return self._polytope

    @cached_property
    def _polytope(self) -> PriorPolytope:
        """Build the linear form `Q = lower - taken + given` of the set.

        The first part of z is one; what is taken and given follows. A letter that has more than `shift` can
        give all that is taken.
        """
        nu = self.float_probability
        n = self.size
        lower = nu.lower / nu.total
        shift = float(nu.shift / nu.total)
        eye = np.eye(n)
        taken = eye[lower > 0] if shift > 0 else eye[:0]
        # other letters cannot be emptied: the bound on the total taken implies theirs
        poor = np.flatnonzero(taken @ lower < shift)
        k = len(taken)
        one = np.zeros((1, 1 + k + n))
        balance = np.ones((1, 1 + k + n))
        one[0, 0] = 1.0
        balance[0, 0] = lower.sum() - 1
        balance[0, 1 : 1 + k] = -1.0
        rows = [one, balance]
        if k:
            rows.append(np.hstack([[-shift], np.ones(k), np.zeros(n)])[None, :])
            rows.append(
                np.hstack([-(taken @ lower)[poor, None], np.eye(k)[poor], np.zeros((len(poor), n))])
            )
        if nu.upper is not None:
            rows.append(
                np.hstack([lower[:, None] - nu.upper[:, None] / nu.total, np.zeros((n, k)), eye])
            )
        system = np.vstack(rows)
        place = np.arange(len(system))
        parts = np.hstack([lower[:, None], -taken.T, eye])
        return PriorPolytope(parts, system, (place == 0).astype(np.float64), place < 2)

    @cached_property
    def _split_mass(self) -> tuple[FloatArray, FloatArray | None, float, float]:
        """Split the total mass into lower bounds, movable mass and its limits."""
        nu = self.float_probability
        lower = nu.lower / nu.total
        shift = float(nu.shift / nu.total)
        # what a letter can take beyond its lower bound; without upper bounds there is no limit
        width = None if nu.upper is None else (nu.upper - nu.lower) / nu.total
        return lower, width, shift, max(0.0, 1 - float(lower.sum()) + shift)

    @cached_property
    def _can_empty_letter(self) -> bool:
        """Return whether moving mass away from the largest entries can empty a letter."""
        lower, _, shift, _ = self._split_mass
        return shift > 0 and shift >= float(lower.min())

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Build the cvxpy expression of the least mean by LP duality.

        The rest goes to the entry at the edge e, and to those below it what they can take; without upper
        bounds e is the least entry. What lies above the threshold t is cut off; where no letter is emptied t
        is the largest entry.
        """
        lower, width, shift, rest = self._split_mass
        ones = np.ones((self.size, 1))
        shape = largest.shape
        constraints: dict[str, cp.Constraint] = {}
        variables: dict[str, cp.Variable] = {}

        def make_variable(name: str, shape: tuple[int, ...]) -> cp.Variable:
            variables[name] = cp.Variable(shape, nonneg=True, name=name)
            return variables[name]

        held: cp.Expression = mechanism
        top: cp.Expression = largest
        # where no letter can be emptied, min(v, t) with t the
        # largest entry is v: no variables are needed
        if self._can_empty_letter:
            top = make_variable("threshold", shape)
            held = make_variable("below_threshold", mechanism.shape)
            constraints |= {
                "below_column": held <= mechanism,
                "below_threshold": held <= ones @ top,
            }
        value: cp.Expression = lower[None, :] @ held
        if shift > 0:
            value = value - shift * top
        if rest > 0:
            edge = make_variable("edge", shape)
            value = value + rest * edge
            # without upper bounds one letter can take all the rest, so that the edge is the least entry
            if width is None:
                constraints["edge"] = ones @ edge <= mechanism
            else:
                below = make_variable("below_edge", mechanism.shape)
                value = value - width[None, :] @ below
                constraints["edge"] = ones @ edge - mechanism <= below
        return MinMeanExpression(value, constraints, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        lower, width, shift, rest = self._split_mass
        # the best threshold and edge are quantiles of the column: the program need not be solved
        found = {}
        if self._can_empty_letter:
            threshold = _weighted_quantile(matrix, lower, shift, -1)
            found = {"threshold": threshold, "below_threshold": np.minimum(matrix, threshold)}
        if rest > 0 and width is None:
            found["edge"] = matrix.min(axis=0, keepdims=True)
        elif rest > 0:
            edge = _weighted_quantile(matrix, width, rest, 1)
            found |= {"edge": edge, "below_edge": np.maximum(edge - matrix, 0.0)}
        return found

    def cone_block(self, exp_neg_epsilon: float) -> ColumnBlock | None:
        """Return the cone of columns with `e^-eps max v <= w(v)`; None without such a form."""
        lower, width, shift, rest = self._split_mass
        if self.contains_all_priors:
            return build_ratio_block(exp_neg_epsilon)
        if width is not None:
            return build_edge_block(lower, width, exp_neg_epsilon) if shift == 0 else None
        if self._can_empty_letter:
            return build_threshold_block(lower, shift, exp_neg_epsilon)
        return build_mean_block(lower, exp_neg_epsilon, rest, shift)

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        """Compute the largest gain `<p g, v>` over allowed columns v and columns g."""
        if self.contains_all_priors:
            return max_gain_ldp(p, gains, exp_neg_epsilon)
        return max_gain(self.dual_pieces, p, gains, exp_neg_epsilon)

    @property
    def theta_rows(self) -> int:
        """Return 1, the number of dual multipliers per column."""
        return 1

    def dual_multipliers(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> FloatArray:
        """Find (T, M) optimal multipliers of `e^-eps max v <= w(v)` for each column."""
        # two values or a constant column are optimal in closed form: no multiplier is used
        if self.contains_all_priors or exp_neg_epsilon >= 1:
            return np.zeros((1, gains.shape[1]))
        return find_best_thetas(self.dual_pieces, p, gains, exp_neg_epsilon)

    def dual_bound(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
    ) -> float:
        """Compute the upper bound on the gain proved by nonnegative (T, M) multipliers."""
        if self.contains_all_priors:
            return max_gain_ldp(p, gains, exp_neg_epsilon)
        return bound_gain(self.dual_pieces, p, gains, exp_neg_epsilon, theta)

    @property
    def dual_pieces(self) -> tuple[ThetaPiece, ...]:
        """Return the linear pieces whose maximum is the least total of `(a + theta Q)^+` over Q."""
        nu = self.float_probability
        n = self.size
        lower = nu.lower / nu.total
        shift = nu.shift / nu.total
        # nu is never negative: where `lower - shift` is, this piece is larger
        nothing = [ThetaPiece(np.zeros(n), 0.0)] if shift > 0 else []
        upper = None if nu.upper is None else nu.upper / nu.total
        return ThetaPiece(lower, float(lower.sum()) - shift), *nothing, ThetaPiece(upper, 1.0)

    def max_partial_entry(self, inner: Any, outer: Any, exp_neg_epsilon: float) -> FloatArray:
        """Compute the (K,) least entry b on `outer` that keeps the least mean at e^-eps or more."""
        nu = self.float_probability
        low = nu.evaluate_sets(inner) / nu.total
        high = nu.evaluate_sets(inner | outer) / nu.total
        with np.errstate(divide="ignore", invalid="ignore"):
            # the share of the mass of `outer` by which the probability reaches e^-eps
            entry = (exp_neg_epsilon - low) / (high - low)
        return np.where(high >= exp_neg_epsilon, entry, np.nan)


def _weighted_quantile(matrix: FloatArray, weights: Any, mass: float, sign: int) -> FloatArray:
    """Compute the (1, M) weighted quantiles of columns, ascending (sign 1) or descending (-1)."""
    order = np.argsort(sign * matrix, axis=0, kind="stable")
    filled = np.cumsum(weights[order], axis=0)
    # rounding may leave the total weight below the mass: the last entry is the edge then
    last = np.minimum((filled < mass).sum(axis=0, keepdims=True), len(matrix) - 1)
    return np.take_along_axis(np.take_along_axis(matrix, order, axis=0), last, axis=0)
