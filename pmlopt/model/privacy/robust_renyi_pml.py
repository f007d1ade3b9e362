"""PML of finite order for every prior of a set, as a bound on the least mean of a column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.measures.orders import order_surplus
from pmlopt.model.privacy.dual_prices import (
    center_prices,
    center_with_best_offsets,
    compute_net_prices,
    find_best_prices,
    minimize_by_golden_sections,
    minimize_on_grids,
    unpack_prices,
)
from pmlopt.model.privacy.of_order import (
    DECIMAL_ROUNDING,
    FiniteOrderBound,
    divide_by_maxima,
    to_decimals,
)
from pmlopt.model.privacy.requirement import CvxpyConstraints, Witness, check_certificate_array
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.prior_set import (
    NO_CELLS,
    SYMMETRIC_DESIGNS,
    ZERO_MASS_ATOL,
    check_prior_set,
    require_form,
)
from pmlopt.solvers.approximate_minimum import minimize_approximately
from pmlopt.solvers.solver_result import tighten_factor

MAX_CHORD_STEPS, LEVEL_RTOL = 40, 2e-15
"""Of a search for a level, at most, and how near both of its ends must be, as a share."""


@dataclass(frozen=True, init=False, repr=False)
class RobustRenyiPML(FiniteOrderBound):
    """The requirement `|v|_(alpha,Q) <= K <Q, v>` for each column v and every prior Q of a set.

    See `RenyiPML(alpha, epsilon, over=...)`, which is the public name. K is `e^((alpha-1) epsilon / alpha)`;
    the norm is `min_t <Q, v^alpha> t^(1-alpha) / alpha + (1 - 1/alpha) t`, linear in Q and convex in v, t:
    one t serves all priors of the set, and the bound is one on the least mean of a column over them.
    """

    name: ClassVar[str] = "renyi-pml"
    meaning: ClassVar[str] = (
        "In a mean of the order over letters, no outcome makes them more than e^{limit} times as likely."
    )
    infinite: ClassVar[str] = "PML"
    is_form: ClassVar[bool] = True
    about: ClassVar[None] = None
    over: PriorSet

    def __init__(self, alpha: float, epsilon: float, over: PriorSet) -> None:
        super().__init__(alpha, epsilon)
        object.__setattr__(self, "over", over)
        check_prior_set(over)

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return f"{super().scope}; {self.over.scope}"

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        self.over.check_letters(prior.labels, "the prior of the design")

    def on_cells(self, cells: LetterCells) -> RobustRenyiPML:
        """Return the requirement on columns that are constant on orbits ("cells") of letters."""
        found = self.over.on_cells(cells)
        known = require_form(found, self.over, SYMMETRIC_DESIGNS, NO_CELLS)
        return RobustRenyiPML(self.alpha, self.epsilon, known)

    def _max_leakage(self, law: FloatArray) -> float:
        """Return the largest leakage of any mechanism, in nats."""
        return MAX_EXPONENT

    def _is_vacuous(self, weights: Any, total: Any, power: Callable[[float], Any]) -> bool:
        """Return whether every mechanism meets the bound, as epsilon is above the largest divergence."""
        return self.epsilon > MAX_EXPONENT

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute the smallest feasible factor K by secant steps, as levels in nats.

        That is convex in K, and falls by at least the least mean of the column for each unit.
        """
        p, m = pair_with_prior(prior, mechanism)
        self.check(p)
        columns = m.matrix[:, m.support & (np.ptp(m.matrix, axis=0) > 0)]
        columns = columns / columns.max(axis=0)
        least = self.over.min_mean(columns)
        if not columns.size or (least <= 0).any():
            return {"renyi_pml": math.inf if columns.size else 0.0}
        low = np.zeros(columns.shape[1])
        over = np.maximum(self._find_threshold(columns, low)[1], 0.0)
        high = over / least
        for _ in range(MAX_CHORD_STEPS):
            below_zero = np.minimum(self._find_threshold(columns, high)[1], 0.0)
            low = np.maximum(low, high + below_zero / least)
            if (high - low <= LEVEL_RTOL * high).all():
                break
            over = np.maximum(self._find_threshold(columns, low)[1], 0.0)
            fall = np.maximum(over - below_zero, 1e-300)
            high = np.minimum(high, low + over / fall * (high - low))
        return {
            "renyi_pml": math.log1p(float(high.max()) * (1 + LEVEL_RTOL) / self.beta) * self.beta
        }

    def _compute_slack(
        self, columns: FloatArray, coefficient: Any, thresholds: FloatArray
    ) -> FloatArray:
        """Compute the (N, M) slack `c v - t f(v / t - 1)`, whose least mean must be nonnegative.

        That is beta times `K v - v^alpha t^(1-alpha) / alpha - (1 - 1/alpha) t`, with `K = 1 + c / beta`, and
        keeps its digits for orders near 1 and levels near 0.
        """
        with np.errstate(over="ignore"):
            # Powers are cut at this in a search that only requires which is larger.
            surpluses = np.minimum(order_surplus(columns / thresholds - 1, self.alpha), 1e200)
        return np.asarray(coefficient * columns - thresholds * surpluses)

    def _find_threshold(
        self, columns: FloatArray, coefficient: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Find the (M,) thresholds t of least violation, and the violation.

        What is missed, times beta, is convex in t.
        """
        # on few letters a call of a set costs more than its numbers
        points = 33 if columns.size <= 64 else 1
        copies = np.repeat(columns, points, axis=1)
        coefficients = np.repeat(np.broadcast_to(coefficient, columns.shape[1]), points)

        def compute_violation(logs: FloatArray) -> FloatArray:
            slack = self._compute_slack(copies, coefficients, np.exp(logs))
            lowest = slack.min(axis=0)
            return np.asarray(-self.over.min_mean(slack - lowest) - lowest)

        least = np.maximum(self.over.min_mean(columns**self.alpha), 1e-300)
        low = np.log(least) / self.alpha
        high = np.zeros(columns.shape[1])
        logs, at_logs = (
            minimize_on_grids(compute_violation, low, high, points)
            if points > 1
            else minimize_by_golden_sections(compute_violation, low, high)
        )
        return np.exp(logs), at_logs

    @property
    def _slack_coefficient(self) -> float:
        """Return the coefficient `beta (K - 1)` at epsilon."""
        return self.beta * math.expm1(min(self.epsilon, MAX_EXPONENT) / self.beta)

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        self.check(prior)
        shape = mechanism.shape
        inverse_norm = tighten_factor(1 / self.max_norm(prior.pmf))
        ones = np.ones((shape[0], 1))
        row = (1, shape[1])
        moments = cp.Variable(shape, nonneg=True, name="moments")
        slack = cp.Variable(shape, nonneg=True, name="slack")
        threshold = cp.Variable(row, nonneg=True, name="norm_threshold")
        lowest = cp.Variable(row, nonneg=True, name="lowest")
        top = cp.Variable(row, nonneg=True, name="slack_top")
        terms = cp.vec(moments, order="F")
        spread = cp.vec(ones @ threshold, order="F")
        entries = cp.vec(mechanism, order="F")
        least = self.over.to_cvxpy(slack, top)
        return CvxpyConstraints(
            {
                "moments": cp.PowCone3D(terms, spread, entries, 1 / self.alpha),
                "slack": slack == mechanism - inverse_norm / self.alpha * moments + ones @ lowest,
                "slack_top": slack <= ones @ top,
                "renyi_pml": inverse_norm * (1 - 1 / self.alpha) * threshold
                <= least.value - lowest,
                **least.constraints,
            },
            {
                "moments": moments,
                "slack": slack,
                "norm_threshold": threshold,
                "lowest": lowest,
                "slack_top": top,
                **least.variables,
            },
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        inverse_norm = tighten_factor(1 / self.max_norm(prior.pmf))
        tops, columns = divide_by_maxima(matrix)
        threshold = self._find_threshold(columns, self._slack_coefficient)[0]
        slack = (
            columns - inverse_norm / self.alpha * threshold * (columns / threshold) ** self.alpha
        )
        lowest = np.maximum(-slack.min(axis=0), 0.0)
        slack = tops * (slack + lowest)
        return {
            "moments": tops * threshold * (columns / threshold) ** self.alpha,
            "slack": slack,
            "norm_threshold": (tops * threshold)[None, :],
            "lowest": (tops * lowest)[None, :],
            "slack_top": slack.max(axis=0, keepdims=True),
            **self.over.auxiliary_values(slack),
        }

    def _float_violation(self, p: FloatArray, matrix: FloatArray) -> Any:
        """Compute the violations in floats, in units of the matrix."""
        tops, columns = divide_by_maxima(matrix)
        over = self._find_threshold(columns, self._slack_coefficient)[1]
        return np.where(np.ptp(matrix, axis=0) > 0, tops * over, -tops * self._slack_coefficient)

    def _exact_violation(
        self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
    ) -> Any:
        """Compute an upper bound on the violation at a rational threshold."""
        alpha = Decimal(self.alpha)
        beta = Decimal(self.alpha) / (Decimal(self.alpha) - 1)
        coefficient = (Decimal(self.epsilon) / beta).exp() * (1 - DECIMAL_ROUNDING)
        tops, columns = divide_by_maxima(matrix)
        found = [Fraction(0)] * matrix.shape[1]
        for y, threshold in enumerate(
            self._find_threshold(columns, self._slack_coefficient)[0].tolist()
        ):
            if (matrix[:, y] == matrix[0, y]).all():
                continue
            t = Decimal(threshold)
            ratios = [v / int(tops[y]) for v in to_decimals(matrix[:, y])]
            powers = [
                (alpha * (v / t).ln()).exp() * (1 + DECIMAL_ROUNDING) if v else Decimal(0)
                for v in ratios
            ]
            slack = [
                coefficient * v - t / alpha * power for v, power in zip(ratios, powers, strict=True)
            ]
            numbers = [math.floor(value / DECIMAL_ROUNDING) - 1 for value in slack]
            lowest = min(numbers)
            sums, unit = self.over.min_mean_scaled(
                np.array([[value - lowest] for value in numbers], dtype=object)
            )
            needed = math.ceil(t / beta / DECIMAL_ROUNDING) + 1
            found[y] = needed - lowest - Fraction(int(sums[0]), int(unit))
        return np.array(found, dtype=object)

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return for each output an optimal law of the set and multipliers, (N, M) each.

        The laws are those that a program finds, or the one of the set next to the prior; the prices at each
        are searched without rounding in their size.
        """
        if not gains.any():
            return {"laws": np.repeat(prior.pmf[:, None], gains.shape[1], axis=1), "prices": gains}
        room = self.log_max_norm(prior.pmf)
        searched = self._search_certificate(prior, gains)
        laws, prices = searched
        found = [
            (laws, prices, np.zeros(gains.shape[1])),
            (laws, *center_with_best_offsets(laws, prices, self.beta, room)),
        ]
        if self._may_have_far_prices:
            nearest = np.repeat(self.over.find_members(prior.pmf[:, None]), gains.shape[1], axis=1)
            both = np.hstack([laws, nearest])
            twice = np.hstack([gains, gains])
            own, tops = find_best_prices(prior.pmf, twice, both, self.beta, room)
            found += zip(
                np.split(both, 2, axis=1), np.split(own, 2, axis=1), np.split(tops, 2), strict=True
            )
        witnesses = [dict(zip(("laws", "prices", "tops"), one, strict=True)) for one in found]
        return min(witnesses, key=lambda one: self.dual_bound(prior, gains, one))

    def _search_certificate(self, prior: Prior, gains: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Find laws and multipliers by a convex program; the prior and none where it fails."""
        unit = float(np.abs(gains).max())
        m = gains.shape[1]
        max_norm = self.max_norm(prior.pmf)
        laws, bills, shares = (cp.Variable(gains.shape, nonneg=True) for _ in range(3))
        mass = cp.Variable((1, m), nonneg=True)
        rules = [
            *self.over.constrain_measures(laws, mass),
            cp.sum(laws, axis=0, keepdims=True) == mass,
            cp.sum(shares, axis=0, keepdims=True) <= mass,
            cp.PowCone3D(
                *(cp.vec(one, order="F") for one in (shares, laws, bills)), 1 - 1 / self.alpha
            ),
        ]
        left = gains / unit - cp.multiply(1 / prior.pmf[:, None], bills - max_norm * laws)
        minimize_approximately(cp.sum(cp.max(left, axis=0)), rules)
        if laws.value is None or bills.value is None:
            nearest = np.repeat(self.over.find_members(prior.pmf[:, None]), m, axis=1)
            return nearest, np.zeros(gains.shape)
        inside = laws.value > ZERO_MASS_ATOL
        prices = np.where(
            inside, np.maximum(bills.value, 0.0) / np.where(inside, laws.value, 1.0), 0.0
        )
        inner = self.over.find_members(laws.value)
        return inner, unit * prices * np.maximum(mass.value, 0.0)

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the dual bound from laws Q of the set and multipliers h >= 0: `<Q h, v> <= K |h| <Q, v>`.

        The laws are moved into the set where they are not in it.
        """
        laws = self.over.find_members(check_certificate_array(certificate, "laws", gains.shape))
        grouped = {name: each[None] for name, each in certificate.items() if name != "laws"}
        ((prices, tops),) = unpack_prices(grouped, (1, *gains.shape))
        own, mean = center_prices(laws, prices)
        net = compute_net_prices(laws, own, tops + mean, self.beta, self.log_max_norm(prior.pmf))
        paid = laws * net
        return float((gains - paid / prior.pmf[:, None]).max())

    def __repr__(self) -> str:
        return f"RenyiPML({self.alpha:g}, {self.epsilon}, over={self.over!r})"
