"""Requirements as inequalities between extreme means of a column, with all derived forms.

One mean of a column is at most e^exponent times another. Each may be extreme over a set of laws on the
letters: over all of them it is the largest entry, or the least. PML, LDP, LIP and maximal leakage are such.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray
from pmlopt.data.mechanism import Mechanism, MechanismLike, pair_with_prior
from pmlopt.data.prior import (
    Prior,
    PriorLike,
    conditional_value_at_risk,
    max_conditional_value_at_risk,
)
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.measures import ldp_level, leakage_level, lip_levels, maximal_leakage
from pmlopt.measures.leakage import bound_worst_leakage
from pmlopt.model.privacy.ratios import (
    RatioBounds,
    join_ratio_bounds,
    make_letter_ratios,
    make_mean_ratios,
)
from pmlopt.model.privacy.requirement import (
    CvxpyConstraints,
    ExtremeColumns,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.model.uncertainty.prior_set import LinearRows, PriorSet
from pmlopt.solvers.solver_result import tighten_factor
from pmlopt.solvers.structured.block_program import (
    ColumnBlock,
    build_mean_block,
    build_peak_block,
    build_ratio_block,
)


class ComparedMeans(Enum):
    """The two means that a bound compares, as the first part of a `BoundKind`."""

    LETTERS = "the largest entry of the column, or the least"
    MEAN = "its mean under the prior"
    ROW = "the sum of a row, which is one: the bound is then on the sum of the largest entries of all columns"


class BoundKind(Enum):
    """The kind of a mean bound: the two means it compares; None is the least mean over a set of priors."""

    MAX_OVER_MEAN = (ComparedMeans.LETTERS, ComparedMeans.MEAN)
    MEAN_OVER_MIN = (ComparedMeans.MEAN, ComparedMeans.LETTERS)
    MAX_OVER_MIN = (ComparedMeans.LETTERS, ComparedMeans.LETTERS)
    SUM_OF_MAX = (ComparedMeans.LETTERS, ComparedMeans.ROW)
    MAX_OVER_ROBUST_MEAN = (ComparedMeans.LETTERS, None)

    @classmethod
    def _missing_(cls, value: object) -> BoundKind:
        known = ", ".join(one.name for one in cls)
        raise PrivacyError(
            f"no bound compares the means {value!r}; the kinds of bounds are {known}"
        )


@light_dataclass(frozen=True)
class MeanBound:
    """The inequality `larger(v) <= e^exponent smaller(v)` between two means of each column v.

    Attributes:
        name: of the limit.
        larger: `LETTERS`, or `MEAN` with the least entry.
        smaller: `MEAN`, `LETTERS`, `ROW`, or a set of priors.
        exponent: in nats.
        factors: `exp_neg_exponent` and `ceiling` as cvxpy parameters, where the level is one; else None.
    """

    name: str
    larger: ComparedMeans
    smaller: ComparedMeans | PriorSet
    exponent: float
    factors: tuple[Any, Any] | None = None
    kind: BoundKind = field(init=False, repr=False, compare=False)
    """Which means it compares; None for the least one over a set of priors."""
    over: PriorSet | None = field(init=False, repr=False, compare=False)
    """The set of priors, where the smaller mean is the least over one."""

    def __post_init__(self) -> None:
        is_plain = isinstance(self.smaller, ComparedMeans)
        kind = BoundKind((self.larger, self.smaller if is_plain else None))
        vars(self).update(kind=kind, over=None if is_plain else self.smaller)

    @cached_property
    def exp_neg_exponent(self) -> Any:
        """Return e^-exponent, the factor of the larger mean in constraints."""
        return tighten_factor(math.exp(-self.exponent)) if self.factors is None else self.factors[0]

    @property
    def ceiling(self) -> Any:
        """Return the upper limit on the sum of all columns' largest entries."""
        return 1 / self.exp_neg_exponent if self.factors is None else self.factors[1]


RATIO_KINDS = frozenset((BoundKind.MAX_OVER_MEAN, BoundKind.MEAN_OVER_MIN, BoundKind.MAX_OVER_MIN))
"""The kinds of bounds that are lists of ratio bounds on each column."""


class MeanBounds(Requirement):
    """The base of requirements that are a few inequalities between extreme means of a column."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return dict(map(attrgetter("name", "exponent"), self.bounds))

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return "; ".join(one.over.scope for one in self.bounds if one.over is not None)

    def on_cells(self, cells: LetterCells) -> Requirement | None:
        """Return the bound on a column that is constant on the cells of its output, as one on their
        values.
        """
        return self if self.kinds <= RATIO_KINDS else super().on_cells(cells)

    def bounds_for(self, prior: Prior) -> tuple[MeanBound, ...]:
        """Return the bounds under a prior, with exponents that floats hold: past its largest leakage nothing
        binds. Those of the last prior are kept.

        Raises:
            PrivacyError: a set of priors is on other letters than the given one.
        """
        return self._get_cached("bounds", prior, self._fit_bounds)

    def _fit_bounds(self, prior: Prior) -> tuple[MeanBound, ...]:
        """Compute the inequalities for a prior; see `bounds_for`."""
        found = []
        for one in self.bounds:
            least = one.smaller
            if not isinstance(least, ComparedMeans):
                least.check_letters(prior.labels, "the prior of the design")
                simple = least.simplify()
                if isinstance(simple, PriorSet):
                    least = simple
                elif np.array_equal(simple, prior.pmf):
                    least = ComparedMeans.MEAN
            same_set = least is one.smaller
            # a set that is the prior only leaves its mean, any other stays a bound over a set
            kind = BoundKind.MAX_OVER_MEAN if least is ComparedMeans.MEAN else one.kind
            max_exponent = prior.max_leakage if kind == BoundKind.MAX_OVER_MEAN else MAX_EXPONENT
            if kind == BoundKind.SUM_OF_MAX:
                max_exponent = math.log(prior.size)
            # the common case is kept as it is: its factor is computed once
            unchanged = same_set and one.exponent <= max_exponent
            found.append(
                one
                if unchanged
                else replace(one, smaller=least, exponent=min(one.exponent, max_exponent))
            )
        return tuple(found)

    @cached_property
    def kinds(self) -> frozenset[BoundKind]:
        """Return the kinds of the mean inequalities."""
        return frozenset(map(attrgetter("kind"), self.bounds))

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        found = {}
        for one in self.bounds_for(p):
            found[one.name] = _compute_level(p, m, one)
        return found

    def bound_levels(self, prior: Prior, mechanism: Mechanism) -> dict[str, float]:
        """Compute the levels over sets of priors in integers, rounded up."""
        found = {}
        for one in self.bounds_for(prior):
            if one.over is not None:
                columns = mechanism.matrix[:, mechanism.support]
                found[one.name] = float(bound_worst_leakage(one.over, columns).max())
        return found

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        return declare_bounds(self.bounds_for(prior), mechanism, law)

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        found: dict[str, FloatArray] = {}
        for one in self.bounds_for(prior):
            if one.kind == BoundKind.MAX_OVER_MIN:
                found["column_minimum"] = matrix.min(axis=0, keepdims=True)
            elif one.kind in (BoundKind.SUM_OF_MAX, BoundKind.MAX_OVER_ROBUST_MEAN):
                found["column_maximum"] = matrix.max(axis=0, keepdims=True)
            if one.over is not None:
                found |= one.over.auxiliary_values(matrix)
        return found

    def cone_block(self, prior: Prior) -> ColumnBlock | None:
        """Return the conic constraint on one column as a `ColumnBlock`; None without such a form."""
        bounds = self.bounds_for(prior)
        if len(bounds) > 1:
            keeps = {one.kind: one.exp_neg_exponent for one in bounds}
            if keeps.keys() != {BoundKind.MAX_OVER_MEAN, BoundKind.MEAN_OVER_MIN}:
                return super().cone_block(prior)
            low = keeps[BoundKind.MEAN_OVER_MIN]
            high = 1 / keeps[BoundKind.MAX_OVER_MEAN]
            ends = (np.array([low]), np.array([high]))
            mean = np.ones((1, 1))
            return (
                ColumnBlock(*ends, np.ones(1), prior.pmf[None, :], mean) if low < 1 < high else None
            )
        kind = bounds[0].kind
        exp_neg_epsilon = bounds[0].exp_neg_exponent
        if bounds[0].over is not None:
            return bounds[0].over.cone_block(exp_neg_epsilon)
        if kind == BoundKind.MAX_OVER_MEAN:
            return build_mean_block(prior.pmf, exp_neg_epsilon)
        if kind == BoundKind.MAX_OVER_MIN:
            return build_ratio_block(exp_neg_epsilon)
        return build_peak_block(1 / exp_neg_epsilon) if kind == BoundKind.SUM_OF_MAX else None

    @property
    def compares_means(self) -> bool:
        """Return whether no bound is over a set of priors, which takes whole columns."""
        is_own = type(self).violation is MeanBounds.violation
        return is_own and all(one.over is None for one in self.bounds)

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds.

        Where `power` gives rationals, each is times a whole number.
        """
        found, law = None, None
        for one in self.bounds:
            if _is_vacuous(one, weights, power):
                continue
            if law is None and ComparedMeans.MEAN in one.kind.value:
                law = weights @ matrix
            over = _bound_violation(one, (weights.sum(), law), matrix, power)
            found = over if found is None else np.maximum(found, over)
        return 0 * matrix.max(axis=0) if found is None else found

    def is_met_with_margin(self, prior: Prior, matrix: FloatArray) -> bool:
        """Return whether a mechanism is so far within its bounds that rounding cannot hide a violation."""
        # below 1e-250 products with entries may lose digits
        if not (self.kinds <= RATIO_KINDS and prior.pmf.min() > 1e-250):
            return False
        nats = max(self.limits.values())
        # both sides have a sum of N products, and a level a logarithm of such a ratio: their roundings are at
        # most N + 12 + 2 nats units in the last place, and this is more
        share = 2 * (prior.size + 16 + nats) * sys.float_info.epsilon
        over = self.violation(prior.pmf, matrix, lambda exponent: math.exp(exponent) * (1 - share))
        return bool((over <= 0).all())

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute max sum_xy p[x] gains[x,y] P[x,y] over matrices P >= 0 that meet the requirement."""
        p = prior.pmf
        bounds = self.bounds_for(prior)
        if len(bounds) > 1:
            nats = {one.kind: one.exponent for one in bounds}
            if nats.keys() != {BoundKind.MAX_OVER_MEAN, BoundKind.MEAN_OVER_MIN}:
                return super().support_function(prior, gains)
            # a normalised column lies between a and b with mean 1: a everywhere, the rest on the best
            rest = -math.expm1(-nats[BoundKind.MEAN_OVER_MIN])
            above = math.expm1(nats[BoundKind.MAX_OVER_MEAN])
            mass = rest / (rest + above) if rest > 0 else 0.0
            spread = conditional_value_at_risk(p, gains, mass) if mass > 0 else 0.0
            return float(
                (math.exp(-nats[BoundKind.MEAN_OVER_MIN]) * (p @ gains) + rest * spread).max()
            )
        one = bounds[0]
        if one.kind == BoundKind.MEAN_OVER_MIN:
            return super().support_function(prior, gains)
        if one.over is not None:
            return one.over.support_function(p, gains, math.exp(-one.exponent))
        if one.kind == BoundKind.MAX_OVER_MEAN:
            if gains.shape[1] > 64:
                return max_conditional_value_at_risk(p, gains, math.exp(-one.exponent))
            return float(conditional_value_at_risk(p, gains, math.exp(-one.exponent)).max())
        if one.kind == BoundKind.MAX_OVER_MIN:
            from pmlopt.model.uncertainty.support_functions import max_gain_ldp

            return max_gain_ldp(p, gains, math.exp(-one.exponent))
        # P[x,y] <= u[y] with sum_y u[y] <= e^eps: all of it on the best output
        return math.exp(one.exponent) * float((p @ np.maximum(gains, 0.0)).max())

    def list_some_columns(self, prior: Prior) -> FloatArray:
        """Return, over a curved set of priors, constants with one entry raised or lowered to its limit.

        A column that is 1 on some letters and c on the others, with the least mean m of those letters, meets
        `1 <= e^eps (c + (1 - c) m)` up to c = (e^-eps - m) / (1 - m).
        """
        bound = self.bounds_for(prior)[0]
        none = np.zeros((prior.size, 0))
        # beyond that many letters the means take as long as the search that they spare
        if len(self.bounds) > 1 or bound.over is None or prior.size > 100:
            return none
        if bound.over.polytope() is not None:  # a bound is a formula, or few linear programs
            return none
        peaks = np.hstack([np.eye(prior.size), 1 - np.eye(prior.size)])
        means = np.minimum(bound.over.min_mean(peaks), 1 - 1e-9)
        rest = np.clip((math.exp(-bound.exponent) - means) / (1 - means), 0.0, 1.0)
        columns = rest + (1 - rest) * peaks
        laws = prior.pmf @ columns
        return np.asarray(columns[:, laws > 0] / laws[laws > 0])

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return optimal multipliers over a set of priors, or of letter pairs; else empty."""
        for one in self.bounds_for(prior):
            if one.over is not None:
                theta = one.over.dual_multipliers(prior.pmf, gains, math.exp(-one.exponent))
                return {"theta": theta}
        return super().dual_certificate(prior, gains)

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the upper bound on the gain of feasible matrices that dual variables prove."""
        for one in self.bounds_for(prior):
            if one.over is not None:
                shape = one.over.theta_rows, gains.shape[1]
                theta = check_certificate_array(certificate, "theta", shape)
                return one.over.dual_bound(prior.pmf, gains, math.exp(-one.exponent), theta)
        return super().dual_bound(prior, gains, certificate)

    def list_weighted_ratios(self, prior: Prior) -> RatioBounds | None:
        """List the ratio bounds of whose pairs weights are the dual certificate; None where formulas prove
        the bound.
        """
        known = self.kinds == {BoundKind.MAX_OVER_MEAN, BoundKind.MEAN_OVER_MIN}
        several = len(self.kinds) > 1 or BoundKind.MEAN_OVER_MIN in self.kinds
        return self.list_ratios(prior) if several and not known else None

    def ratios(self, weights: Any) -> RatioBounds | None:
        """Return the bound as a list of ratio bounds on each column; None where it is none."""
        if not self.kinds <= RATIO_KINDS:
            return None
        found = []
        for one in self.bounds:
            if one.kind == BoundKind.MAX_OVER_MIN:
                pairs = np.argwhere(~np.eye(len(weights), dtype=bool))
                found.append(make_letter_ratios(weights, pairs, np.array(one.exponent)))
            else:
                found.append(
                    make_mean_ratios(
                        weights, np.array(one.exponent), reverse=one.kind == BoundKind.MEAN_OVER_MIN
                    )
                )
        return found[0] if len(found) == 1 else join_ratio_bounds(found)

    def linear_rows(self, prior: Prior) -> LinearRows | None:
        """Return the allowed columns as linear inequalities; None where no such form is known."""
        least = self.bounds[0].over
        if len(self.bounds) > 1 or least is None:
            return super().linear_rows(prior)
        return least.linear_rows(math.exp(-min(self.bounds[0].exponent, MAX_EXPONENT)))

    def extreme_columns(self, prior: Prior) -> ExtremeColumns | None:
        """Return the extreme columns of mean one that the bound allows, as families or as those of a cone;
        None where the bound is not on each column separately, or they are not listed.
        """
        from pmlopt.model.uncertainty.columns import (
            MAX_RELEVANT_LEVEL,
            BoxFamily,
            ColumnCone,
            StaircaseFamily,
        )
        from pmlopt.model.uncertainty.l1_ball import L1Ball
        from pmlopt.model.uncertainty.vertices import find_vertex_hull

        bounds = self.bounds_for(prior)
        nats = {one.kind: one.exponent for one in bounds}
        if nats.keys() in (
            {BoundKind.MAX_OVER_MEAN},
            {BoundKind.MAX_OVER_MEAN, BoundKind.MEAN_OVER_MIN},
        ):
            return (
                BoxFamily(
                    math.exp(-nats[BoundKind.MEAN_OVER_MIN])
                    if BoundKind.MEAN_OVER_MIN in nats
                    else 0.0,
                    math.exp(nats[BoundKind.MAX_OVER_MEAN]),
                ),
            )
        if len(bounds) > 1 or BoundKind.MEAN_OVER_MIN in nats or BoundKind.SUM_OF_MAX in nats:
            return super().extreme_columns(prior)
        exp_neg_epsilon = math.exp(-min(bounds[0].exponent, MAX_RELEVANT_LEVEL))
        least = bounds[0].over
        if least is None or least.contains_all_priors:
            return (StaircaseFamily(0.0, 1 / exp_neg_epsilon),)
        families = least.column_families(prior.pmf, exp_neg_epsilon)
        if families is not None and isinstance(least, L1Ball) and not least.can_empty_letter:
            return families
        # of other sets the extreme columns are known by the vertices only, or by some priors
        listed = least.float_probability is not None or least.list_vertices() is not None
        known = least if listed else find_vertex_hull(least)
        if known is None:
            return ColumnCone.from_members(least, exp_neg_epsilon)
        return ColumnCone(known, exp_neg_epsilon)


def declare_bounds(
    bounds: Sequence[MeanBound], mechanism: cp.Expression, law: cp.Variable
) -> CvxpyConstraints:
    """Build the cvxpy constraints of mean inequalities on an (N, M) variable and its output law."""
    ones = np.ones((mechanism.shape[0], 1))
    shape = (1, mechanism.shape[1])
    constraints: dict[str, cp.Constraint] = {}
    variables: dict[str, cp.Variable] = {}
    for one in bounds:
        # with the law as a variable 3 N M nonzeros, not N^2 M
        if one.kind == BoundKind.MAX_OVER_MEAN:
            constraints[one.name] = one.exp_neg_exponent * mechanism <= ones @ law
        elif one.kind == BoundKind.MEAN_OVER_MIN:
            constraints[one.name] = one.exp_neg_exponent * (ones @ law) <= mechanism
        elif one.kind == BoundKind.MAX_OVER_MIN:  # 2 N M rows in place of N (N - 1) M
            floor = variables["column_minimum"] = cp.Variable(
                shape, nonneg=True, name="column_minimum"
            )
            constraints[f"{one.name}_floor"] = ones @ floor <= mechanism
            constraints[f"{one.name}_ceiling"] = one.exp_neg_exponent * mechanism <= ones @ floor
        else:
            top = variables["column_maximum"] = cp.Variable(
                shape, nonneg=True, name="column_maximum"
            )
            constraints["column_maximum"] = mechanism <= ones @ top
            if one.over is not None:
                least = one.over.to_cvxpy(mechanism, top)
                constraints |= {
                    **least.constraints,
                    one.name: one.exp_neg_exponent * top <= least.value,
                }
                variables |= least.variables
            else:
                constraints[one.name] = cp.sum(top) <= one.ceiling
    return CvxpyConstraints(constraints, variables)


def _compute_level(p: Prior, m: Mechanism, one: MeanBound) -> float:
    """Compute the least exponent of a mean inequality that a mechanism meets, in nats."""
    if one.over is not None:
        from pmlopt.model.uncertainty.sensitivity import pointwise_capacity

        return float(pointwise_capacity(one.over, m).max())
    if one.kind == BoundKind.SUM_OF_MAX:
        return maximal_leakage(m)
    if one.kind == BoundKind.MAX_OVER_MIN:
        return ldp_level(m)
    return leakage_level(p, m) if one.kind == BoundKind.MAX_OVER_MEAN else lip_levels(p, m)[0]


def _is_vacuous(one: MeanBound, weights: Any, power: Callable[[float], Any]) -> bool:
    """Return whether every mechanism meets the inequality.

    700 nats are past that of every prior, for no letter has less than 1e-300.
    """
    if one.kind == BoundKind.SUM_OF_MAX:
        return one.exponent > math.log(len(weights))
    if one.kind != BoundKind.MAX_OVER_MEAN:
        return False
    if one.exponent > MAX_EXPONENT:
        return True
    return bool(_subtract_multiple(weights.sum(), power(one.exponent), weights.min()) <= 0)


def _subtract_multiple(larger: Any, factor: Any, smaller: Any) -> Any:
    """Return `larger - factor smaller`; of a rational factor times its denominator, as whole numbers."""
    if type(factor) is Fraction:
        return larger * factor.denominator - smaller * factor.numerator
    return larger - factor * smaller


def _bound_violation(
    one: MeanBound, mean: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
) -> Any:
    """Compute the violation of one mean inequality by each column."""
    factor = power(min(one.exponent, MAX_EXPONENT))
    if one.over is not None:
        least, total = one.over.min_mean_scaled(matrix)
        return _subtract_multiple(matrix.max(axis=0) * total, factor, least)
    if one.kind == BoundKind.MAX_OVER_MIN:
        return _subtract_multiple(matrix.max(axis=0), factor, matrix.min(axis=0))
    # the least sum of a row represents one: sums of floats may differ
    if one.kind == BoundKind.SUM_OF_MAX:
        return matrix.max(axis=0).sum() - factor * matrix.sum(axis=1).min()
    total, law = mean
    if one.kind == BoundKind.MAX_OVER_MEAN:
        return _subtract_multiple(matrix.max(axis=0) * total, factor, law)
    if isinstance(factor, Fraction):
        return _subtract_multiple(law, factor, matrix.min(axis=0) * total)
    # in the units of the other side: the repair mixes in what the larger one requires
    return law / factor - matrix.min(axis=0) * total
