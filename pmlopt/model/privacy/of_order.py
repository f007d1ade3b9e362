"""Bounds on averaged leakage of finite order alpha: Sibson's information and maximal alpha-leakage."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray, check_nonnegative, check_real
from pmlopt.core.numbers.concave import make_power_sum, maximize_over_laws
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.errors import PrivacyError
from pmlopt.measures.orders import find_renyi_centre, sibson_level
from pmlopt.model.privacy.column_cost import NormCost
from pmlopt.model.privacy.dual_prices import (
    MAX_LOG_TOP_DISTANCE,
    MAX_TOP_ENTRY,
    center_prices,
    compute_costs,
    minimize_by_golden_sections,
)
from pmlopt.model.privacy.requirement import (
    JOINT_BOUND_HINT,
    CvxpyConstraints,
    FieldChecks,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.solvers.solver_result import FACTOR_MARGIN_RTOL, tighten_factor

DECIMALS = Context(prec=60)
DECIMAL_ROUNDING = Decimal(10) ** -45
"""Decimals of the check, and what their rounding may hide of a sum of logarithms."""

FAR_LEVEL, FAR_ORDER = 1e-4, 100.0
"""Below this level, and above this order of the dual norm, prices may be far above their differences."""


View: TypeAlias = tuple[Any, Any, Any]
"""Weights p of S letters, the (S, N) mechanism from them to the data, and what the weights are over.

The mechanism is up to one factor; (N,) factors of the rows, or None, represent a diagonal one.
"""


@dataclass(frozen=True)
class FiniteOrderBound(Requirement):
    """The base of leakage bounds of finite order alpha above 1, per outcome or on average.

    Attributes:
        alpha: above 1 and finite.
        epsilon: in nats.
    """

    alpha: float
    epsilon: float
    field_checks: ClassVar[FieldChecks] = {"epsilon": check_nonnegative}
    infinite: ClassVar[str]
    """The requirement of order infinity, by its name."""

    def __post_init__(self) -> None:
        alpha = check_real(self.alpha, "alpha", PrivacyError)
        if not 1 < alpha < math.inf:
            raise PrivacyError(
                f"alpha is {alpha:g}: give an order above 1, or {self.infinite} for order infinity"
            )
        object.__setattr__(self, "alpha", alpha)
        super().__post_init__()

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return {self.name.replace("-", "_"): self.epsilon}

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return f"of order {self.alpha:g}"

    @property
    def beta(self) -> float:
        """Return the dual order beta with `1 / alpha + 1 / beta = 1`."""
        return self.alpha / (self.alpha - 1)

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        return {}

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute max sum_xy p[x] gains[x,y] P[x,y] over matrices P >= 0 that meet the requirement."""
        return self.dual_bound(prior, gains, self.dual_certificate(prior, gains))

    def views(self, weights: Any) -> list[View]:
        """Return the (law, channel) pairs on which the bound must hold: the data, or each law of a secret."""
        return [(weights, None, weights.sum())]

    def max_norm(self, law: FloatArray) -> float:
        """Return the norm limit `e^((alpha - 1) epsilon / alpha)`, epsilon capped at the largest leakage."""
        return math.exp(self.log_max_norm(law))

    def log_max_norm(self, law: FloatArray) -> float:
        """Return the logarithm of `max_norm`, accurate near 0."""
        return min(self.epsilon, self._max_leakage(law)) / self.beta

    @property
    def _may_have_far_prices(self) -> bool:
        """Return whether optimal multipliers may have a large common offset."""
        return self.epsilon < FAR_LEVEL or self.beta > FAR_ORDER

    @property
    def is_near_one(self) -> bool:
        """Return whether alpha is so near 1 that solvers are given the constraint of order 1."""
        # Orders above 1 by less are declared as order 1: solvers do not see such differences of norms. What a
        # matrix misses by is repaired, and levels, checks and bounds are of the order itself.
        return self.alpha - 1 < 1e-3

    def _max_divergence(self, law: FloatArray) -> float:
        """Return the divergence limit: epsilon capped at slightly below the largest leakage."""
        return min(self.epsilon, self._max_leakage(law)) / (1 + FACTOR_MARGIN_RTOL)

    def _max_leakage(self, law: FloatArray) -> float:
        """Return the largest leakage of any mechanism under a law, in nats."""
        return -math.log(law.min())

    def _is_vacuous(self, weights: Any, total: Any, power: Callable[[float], Any]) -> bool:
        """Return whether every mechanism meets the bound, as epsilon is above the largest divergence."""
        return self.epsilon > MAX_EXPONENT or bool(power(self.epsilon) * weights.min() >= total)

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds."""
        return np.max(
            [self._view_violation(view, matrix, power) for view in self.views(weights)], axis=0
        )

    def _view_violation(self, view: View, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute the violations under one (law, channel) pair, in floats or exactly."""
        law, given, total = view
        if self._is_vacuous(law, total, power):
            return 0 * matrix.max(axis=0)
        own = apply_view(given, matrix)
        if matrix.dtype != object:
            return self._float_violation(law / total, own)
        with localcontext(DECIMALS):
            return self._exact_violation((law, total), own, power)

    @abstractmethod
    def _float_violation(self, p: FloatArray, matrix: FloatArray) -> Any:
        """Compute the violations in floats, in units of the matrix."""

    @abstractmethod
    def _exact_violation(
        self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
    ) -> Any:
        """Compute the violations exactly, or in decimal arithmetic."""

    def _level_above(self, log_norm: Decimal) -> Decimal:
        """Compute the level of a norm minus epsilon, in units of alpha - 1, rounded up."""
        alpha = Decimal(self.alpha)
        return alpha * log_norm - (alpha - 1) * Decimal(self.epsilon) + DECIMAL_ROUNDING


def apply_view(given: Any, matrix: Any) -> Any:
    """Compute the (S, M) channel from the letters of a view to the outputs."""
    if given is None:
        return matrix
    if given.ndim == 1 and isinstance(matrix, np.ndarray):
        return given[:, None] * matrix
    return (given if given.ndim == 2 else np.diag(given)) @ matrix


def compute_norm_excess(level: Any, epsilon: float, beta: float) -> Any:
    """Compute the scaled norm difference `beta (e^(level/beta) - K)` of a level and epsilon."""
    with np.errstate(over="ignore"):
        # a cap: these floats only decide which one is larger
        return np.minimum(
            beta * (np.expm1(np.asarray(level) / beta) - math.expm1(epsilon / beta)), 1e300
        )


def divide_by_maxima(matrix: Any) -> tuple[Any, FloatArray]:
    """Return the (M,) column maxima, and the columns divided by them."""
    tops = matrix.max(axis=0)
    return tops, np.asarray(matrix / np.where(tops > 0, tops, 1), dtype=np.float64) + (tops == 0)


def to_decimals(numbers: Iterable[Any], total: Any = 1) -> list[Decimal]:
    """Convert numbers to decimals divided by an integer total."""
    found = (Fraction(number) / int(total) for number in numbers)
    return [Decimal(one.numerator) / one.denominator for one in found]


def compute_log_norm(
    masses: Iterable[Decimal], entries: Iterable[Decimal], alpha: float
) -> Decimal:
    """Compute the logarithm of `(sum_x mass[x] v[x]^alpha)^(1/alpha)`, of entries that are not all zero."""
    order = Decimal(alpha)
    pairs = [(mass, entry) for mass, entry in zip(masses, entries, strict=True) if entry]
    top = max(entry for _, entry in pairs)
    moment = sum((mass * (order * (entry / top).ln()).exp() for mass, entry in pairs), Decimal(0))
    return top.ln() + moment.ln() / order


def express_norms(p: FloatArray, columns: cp.Expression, order: float) -> cp.Expression:
    """Build the (M,) cvxpy norms `(sum_x p[x] v[x]^order)^(1/order)` of columns."""
    weighted = cp.multiply((p ** (1 / order))[:, None], columns)
    if order == 2:
        return cp.norm(weighted, 2, axis=0)
    return cp.hstack(
        [cp.pnorm(weighted[:, y], order, approx=False) for y in range(columns.shape[1])]
    )


def express_divergences(
    p: FloatArray, columns: cp.Expression, means: cp.Expression
) -> cp.Expression:
    """Build the (M,) cvxpy divergences `sum_x p[x] v[x] log(v[x] / q)` of columns from their means q."""
    spread = cp.reshape(means, (1, columns.shape[1]), order="F")
    return p @ cp.rel_entr(columns, np.ones((len(p), 1)) @ spread)


@dataclass(frozen=True)
class SibsonLeakage(FiniteOrderBound):
    """The requirement that Sibson's mutual information of order alpha is at most epsilon.

    `alpha / (alpha - 1) log sum_y (sum_x p[x] P[x,y]^alpha)^(1/alpha) <= epsilon`: a mean over the outcomes
    of what PML of order alpha bounds for each of them, and at most that. It grows with alpha, from the mutual
    information at 1 to the maximal leakage at infinity. Its supremum over priors is the maximal
    alpha-leakage.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite.

    Source: [sibson1969information]; [ding2024leakage] for the mean over outcomes; [liao2019tunable] for the
    supremum over priors.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(SibsonLeakage(2, 1.0).level(even, response)), 12)  # (2 sqrt(0.3125))^2
        1.25
        >>> SibsonLeakage(2, 0.3).holds(even, response), SibsonLeakage(50, 0.3).holds(even, response)
        (True, False)
    """

    name: ClassVar[str] = "sibson-leakage"
    unsupported_hint: ClassVar[str] = JOINT_BOUND_HINT
    meaning: ClassVar[str] = (
        "On average over outcomes, in a mean of the order, lifts are at most e^{limit}."
    )
    infinite: ClassVar[str] = "MaximalLeakage"

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        if not np.ptp(m.matrix, axis=0).any():
            return {"sibson_leakage": 0.0}
        return {"sibson_leakage": max(0.0, sibson_level(p.pmf, m.matrix[:, m.support], self.alpha))}

    def column_cost(self, prior: Prior) -> NormCost:
        """Return the cost whose sum is bounded: the norm of a column."""
        return NormCost(self.max_norm(prior.pmf), False, prior.pmf, self.alpha)

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        if self.is_near_one:
            total = cp.sum(express_divergences(prior.pmf, mechanism, law[0]))
            return CvxpyConstraints({"sibson_leakage": total <= self._max_divergence(prior.pmf)})
        lengths = express_norms(prior.pmf, mechanism, self.alpha)
        return CvxpyConstraints(
            {"sibson_leakage": tighten_factor(1 / self.max_norm(prior.pmf)) * cp.sum(lengths) <= 1}
        )

    def _float_violation(self, p: FloatArray, matrix: FloatArray) -> Any:
        """Compute the violations in floats, in units of the matrix."""
        level = sibson_level(p, matrix[:, matrix.any(axis=0)], self.alpha)
        return matrix[0].sum() * compute_norm_excess(level, self.epsilon, self.beta)

    def _exact_violation(
        self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
    ) -> Any:
        """Compute the violations exactly, or in decimal arithmetic."""
        if (matrix == matrix[0]).all():
            return Decimal(0)
        masses = to_decimals(*law)
        columns = [to_decimals(column) for column in matrix.T if column.any()]
        total = sum(
            (compute_log_norm(masses, column, self.alpha).exp() for column in columns), Decimal(0)
        )
        return self._level_above((total / int(matrix[0].sum())).ln())

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute the support function by Hoelder's inequality, minimised over a threshold t.

        Here `1 / alpha + 1 / beta = 1`, and K is what the norms of the columns may add up to.
        """
        law = prior.pmf[:, None]
        room = self.log_max_norm(prior.pmf)
        own, means = center_prices(law, gains)
        gain_range = max(float(np.ptp(gains)), 1e-300)

        def evaluate_bounds(thresholds: FloatArray) -> FloatArray:
            each = [means + compute_costs(law, own, means - t, self.beta, room) for t in thresholds]
            return np.asarray(np.max(each, axis=1))

        def evaluate_lower(logs: FloatArray) -> FloatArray:
            return np.asarray(gains.max() - np.minimum(gain_range * np.exp(logs), MAX_TOP_ENTRY))

        near = np.array([-MAX_LOG_TOP_DISTANCE])
        far = np.array([MAX_LOG_TOP_DISTANCE + math.log(self.beta)])
        _, least = minimize_by_golden_sections(
            lambda logs: evaluate_bounds(evaluate_lower(logs)), near, far
        )
        return float(min(least[0], evaluate_bounds(np.array([0.0]))[0]))


@dataclass(frozen=True)
class MaximalAlphaLeakage(FiniteOrderBound):
    """The requirement that maximal alpha-leakage is at most epsilon: Sibson's information for every prior.

    It is at most epsilon iff there is a law t of the output with `D_alpha(P[x] || t) <= epsilon` for every
    letter x, that is `sum_y P[x,y]^alpha t[y]^(1-alpha) <= e^((alpha-1) epsilon)`: convex in P and t. It
    grows with alpha, from the channel capacity at 1 to the maximal leakage at infinity.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite.

    Source: [liao2019tunable, Theorem 2]; [csiszar1995generalized] for the law of the output.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(MaximalAlphaLeakage(2, 1.0).level(even, response)), 9)  # (2 sqrt(0.3125))^2
        1.25
        >>> [MaximalAlphaLeakage(alpha, 0.3).holds(even, response) for alpha in (2, 50)]
        [True, False]
    """

    name: ClassVar[str] = "maximal-alpha-leakage"
    is_prior_free: ClassVar[bool] = True
    unsupported_hint: ClassVar[str] = JOINT_BOUND_HINT
    meaning: ClassVar[str] = (
        "Whatever the prior, on average over outcomes, in a mean of the order, lifts are at most e^{limit}."
    )
    infinite: ClassVar[str] = "MaximalLeakage"

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return f"of order {self.alpha:g}, for every prior"

    def _max_leakage(self, law: FloatArray) -> float:
        """Return the largest leakage of any mechanism on N letters, in nats."""
        return math.log(len(law))

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        _, m = pair_with_prior(prior, mechanism)
        if not np.ptp(m.matrix, axis=0).any():
            return {"maximal_alpha_leakage": 0.0}
        return {"maximal_alpha_leakage": find_renyi_centre(m.matrix, self.alpha)[2]}

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        shape = mechanism.shape
        centre = cp.Variable((1, shape[1]), nonneg=True, name="centre")
        moments = cp.Variable(shape, nonneg=True, name="moments")
        entries = cp.vec(mechanism, order="F")
        spread = cp.vec(np.ones((shape[0], 1)) @ centre, order="F")
        terms = cp.vec(moments, order="F")
        if self.alpha == 2:  # v^2 <= moment centre
            cones = cp.SOC(terms + spread, cp.vstack([terms - spread, 2 * entries]))
        else:
            cones = cp.PowCone3D(terms, spread, entries, 1 / self.alpha)
        return CvxpyConstraints(
            {
                "moments": cones,
                "centre": cp.sum(centre) <= self._law_mass(prior),
                "maximal_alpha_leakage": cp.sum(moments, axis=1) <= 1,
            },
            {"centre": centre, "moments": moments},
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        centre = self._law_mass(prior) * find_renyi_centre(matrix, self.alpha)[0]
        ratios = matrix / np.where(centre > 0, centre, 1.0)
        return {"centre": centre[None, :], "moments": ratios**self.alpha * centre}

    def _law_mass(self, prior: Prior) -> float:
        """Return e^epsilon, the total mass of the auxiliary law t in the constraints."""
        return 1 / tighten_factor(math.exp(-min(self.epsilon, self._max_leakage(prior.pmf))))

    def _is_vacuous(self, weights: Any, total: Any, power: Callable[[float], Any]) -> bool:
        """Return whether every mechanism meets the bound, as epsilon is above the largest divergence."""
        return self.epsilon > MAX_EXPONENT or bool(power(self.epsilon) >= len(weights))

    def _float_violation(self, p: FloatArray, matrix: FloatArray) -> Any:
        """Compute the violations in floats, in units of the matrix."""
        total = matrix[0].sum()
        level = find_renyi_centre(matrix / total, self.alpha)[2]
        return total * compute_norm_excess(level, self.epsilon, self.beta)

    def _exact_violation(
        self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
    ) -> Any:
        """Compute the violations exactly, or in decimal arithmetic."""
        if (matrix == matrix[0]).all():
            return Decimal(0)
        total = int(matrix[0].sum())
        centre = find_renyi_centre(np.asarray(matrix / total, dtype=np.float64), self.alpha)[0]
        occurs = centre > 0
        masses = to_decimals(centre[occurs].tolist())
        masses = [mass / sum(masses) for mass in masses]
        rows = (
            [v / (total * t) for v, t in zip(to_decimals(row), masses, strict=True)]
            for row in matrix[:, occurs]
        )
        return self._level_above(max(compute_log_norm(masses, row, self.alpha) for row in rows))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return the (M,) output law at which the dual bound is least."""
        support = self._collect_around(prior, gains)
        if support is None:
            return {"centre": np.full(gains.shape[1], 1 / gains.shape[1])}
        # How near both ends of a support function must be, as a share of its gains.
        return {"centre": maximize_over_laws(support, gains.shape[1], 1e-14)[0]}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the dual bound around an output law t, by Hoelder's inequality for each row.

        Here `1 / alpha + 1 / beta = 1`, and K is the largest norm of a row within epsilon. The mean over x is
        concave in t, so that its value and slopes at any t bound it everywhere.
        """
        centre = np.maximum(
            check_certificate_array(certificate, "centre", (gains.shape[1],)), 1e-300
        )
        support = self._collect_around(prior, gains)
        law = centre / centre.sum()
        if support is None:
            return 0.0
        value, slopes, _ = support(law)
        scale = self.max_norm(prior.pmf) * float(prior.pmf @ np.maximum(gains, 0.0).max(axis=1))
        return float(scale * (value + slopes.max() - law @ slopes))

    def _collect_around(self, prior: Prior, gains: FloatArray) -> Any:
        """Compute the relative dual bound of each row around an output law."""
        top = np.maximum(gains, 0.0).max(axis=1)
        some = top > 0
        if not some.any():
            return None
        weights = (prior.pmf * top)[some]
        powers = (np.maximum(gains[some], 0.0) / top[some][:, None]) ** self.beta
        return make_power_sum(weights / weights.sum(), powers.T, self.beta)
