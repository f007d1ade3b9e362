"""PML of finite order: limits on the Renyi divergence of each posterior from the prior.

Of the data under one prior, and about a secret; for every prior of a set it is in `robust_renyi_pml`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.argument_checks import check_one_for_each
from pmlopt.core.numbers.arrays import FloatArray, copy_float_array
from pmlopt.core.records.fields import ADDED_LATER, Record, Shape
from pmlopt.data.mechanism import MechanismLike, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret, check_secret
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.measures.orders import order_levels
from pmlopt.model.privacy.column_cost import NormCost
from pmlopt.model.privacy.dual_prices import (
    center_prices,
    center_with_best_offsets,
    compute_costs,
    compute_net_prices,
    find_best_offsets,
    unpack_prices,
)
from pmlopt.model.privacy.of_order import (
    DECIMAL_ROUNDING,
    DECIMALS,
    FiniteOrderBound,
    View,
    apply_view,
    compute_log_norm,
    compute_norm_excess,
    express_divergences,
    express_norms,
    to_decimals,
)
from pmlopt.model.privacy.requirement import (
    CvxpyConstraints,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.model.privacy.robust_renyi_pml import RobustRenyiPML
from pmlopt.model.privacy.secret_leakage import check_secret_prior, make_secret_limit_name
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.dual_measures import CompiledPrograms
from pmlopt.solvers.approximate_minimum import solve_approximately
from pmlopt.solvers.solver_result import tighten_factor

PriceSource: TypeAlias = tuple[list[View], FloatArray, float]
"""The joint laws as views, the prior of the data, and the dual order beta."""


class BestPrices(CompiledPrograms[PriceSource, "_PriceProgram"]):
    """The multipliers of norms that prove little about the gain of columns.

    Args:
        source: the joint laws, the prior and the dual order.
    """

    def _build_program(self, shape: tuple[int, ...]) -> _PriceProgram:
        outputs, far = shape
        return _PriceProgram.build(self._source, outputs, bool(far))

    def find_prices(self, gains: FloatArray, rooms: Sequence[float], far: bool) -> list[FloatArray]:
        """Find (S, M) multipliers for each joint law; zeros where the program fails.

        With `far` prices are far above their differences, where what they cost is a deviation: exactly for
        order 2, else up to the share of epsilon. Only the differences matter then.

        Args:
            gains: (N, M) of columns, up to a size of 1.
            rooms: the logarithm of the largest norm under each joint law.
            far: whether prices are far above their differences.
        """
        program = self.get_program((gains.shape[1], far))
        beta = self._source[2]
        program.gains.value = gains
        for cost, room in zip(program.costs, rooms, strict=True):
            if not far:
                cost.value = math.exp(room)
            else:
                cost.value = math.sqrt(math.expm1(2 * room) if beta == 2 else 2 * room * (beta - 1))
        solve_approximately(program.problem)
        return [
            np.zeros(price.shape) if price.value is None else np.asarray(price.value)
            for price in program.prices
        ]


@dataclass(frozen=True)
class _PriceProgram:
    """The program of the best multipliers, with its parameters and its variables."""

    problem: cp.Problem
    gains: cp.Parameter
    costs: list[cp.Parameter]
    prices: list[cp.Variable]

    @classmethod
    def build(cls, source: PriceSource, outputs: int, far: bool) -> _PriceProgram:
        """Build the program for columns of a number of outputs."""
        views, pmf, beta = source
        gains = cp.Parameter((len(pmf), outputs))
        costs = [cp.Parameter(nonneg=True) for _ in views]
        left = gains
        prices = []
        rules = []
        for (weights, given, total), cost in zip(views, costs, strict=True):
            secret = weights / total
            joint = (secret[:, None] * given / pmf).T
            length = cp.Variable((1, outputs))
            price = cp.Variable((len(secret), outputs), nonneg=not far)
            if far:
                centring = np.eye(len(secret)) - secret[None, :]
                deviations = np.sqrt(secret)[:, None] * centring
                rules.append(cp.norm(deviations @ price, 2, axis=0) <= length[0])
                left = left - joint @ centring @ price
            else:
                rules.append(express_norms(secret, price, beta) <= length[0])
                left = left - joint @ price
            left = left + joint.sum(axis=1, keepdims=True) @ (cost * length)
            prices.append(price)
        problem = cp.Problem(cp.Minimize(cp.sum(cp.max(left, axis=0))), rules)
        return cls(problem, gains, costs, prices)


class EachOutcomeBound(FiniteOrderBound):
    """The bound `|v|_(alpha,p) <= K <p, v>` of finite order on each column of each view."""

    infinite: ClassVar[str] = RobustRenyiPML.infinite

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        self.check(p)
        columns = m.matrix[:, m.support & self._may_violate(m.matrix)]
        found = [
            self._compute_levels(law / total, apply_view(given, columns))
            for law, given, total in self.views(p.pmf)
        ]
        return {next(iter(self.limits)): float(np.max(found, initial=0.0))}

    def _compute_levels(self, law: FloatArray, columns: FloatArray) -> FloatArray:
        """Compute the (M,) levels of nonzero columns under a law."""
        return order_levels(law, columns, self.alpha)

    def _may_violate(self, matrix: Any) -> Any:
        """Return the (M,) mask of columns that may violate the bound: non-constant ones."""
        return (matrix != matrix[0]).any(axis=0)

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        self.check(prior)
        found = {}
        for place, (weights, given, total) in enumerate(self.views(prior.pmf)):
            p = weights / total
            own = apply_view(given, mechanism)
            means = law[0] if given is None or given.ndim == 1 else (p @ given) @ mechanism
            if self.is_near_one:
                mass = float(p.sum())
                divergence = express_divergences(p, own, means / mass)
                max_divergence = self._max_divergence(p) + math.log(mass)
                found[f"renyi_pml {place}"] = divergence <= max_divergence * means
                continue
            factor = tighten_factor(1 / self.max_norm(p))
            order = self.alpha
            room = -2 * math.log(factor)
            # for order 2 it is a limit on deviations, which solvers see better at small levels
            if order == 2 and 0 < room < 0.5 and (given is None or given.ndim == 2):
                own = own - np.ones((len(p), 1)) @ cp.reshape(means, (1, own.shape[1]), order="F")
                limit = math.sqrt(math.expm1(room))
                found[f"renyi_pml {place}"] = express_norms(p, own, order) <= limit * means
                continue
            found[f"renyi_pml {place}"] = factor * express_norms(p, own, order) <= means
        return CvxpyConstraints(found)

    def _float_violation(self, p: FloatArray, matrix: FloatArray) -> Any:
        """Compute the violations in floats, in units of the matrix."""
        means = p @ matrix
        found = np.zeros(matrix.shape[1])
        some = means > 0
        over = compute_norm_excess(
            self._compute_levels(p, matrix[:, some]), self.epsilon, self.beta
        )
        found[some] = means[some] * over
        return found

    def _exact_violation(
        self, law: tuple[Any, Any], matrix: Any, power: Callable[[float], Any]
    ) -> Any:
        """Compute the violations exactly, or in decimal arithmetic."""
        weights, total = law
        # Whole orders of up to this much are checked in integers; others in decimals.
        if self.alpha == int(self.alpha) <= 64:
            order = int(self.alpha)
            max_ratio = power(self.epsilon) ** (order - 1)
            return (
                weights @ matrix**order * total ** (order - 1)
                - max_ratio * (weights @ matrix) ** order
            )
        masses = to_decimals(weights, total)
        found = [Decimal(0)] * matrix.shape[1]
        for y in np.flatnonzero(self._may_violate(matrix) & matrix.any(axis=0)).tolist():
            entries = to_decimals(matrix[:, y])
            mean = sum((mass * v for mass, v in zip(masses, entries, strict=True)), Decimal(0))
            found[y] = self._level_above(compute_log_norm(masses, entries, self.alpha) - mean.ln())
        return np.array(found, dtype=object)

    def column_cost(self, prior: Prior) -> NormCost | None:
        """Return the cost of each column that is bounded, its norm; None about a secret."""
        views = self.views(prior.pmf)
        if len(views) > 1 or views[0][1] is not None:
            return None
        return NormCost(self.max_norm(prior.pmf), True, prior.pmf, self.alpha)

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return the (M,) thresholds t that minimise the convex `dual_bound`."""
        law, room = self._norm_law(prior)
        own, mean = center_prices(law, gains)
        return {"thresholds": mean - find_best_offsets(law, own, self.beta, room)[0]}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the dual bound `t + K (sum p max(g - t, 0)^beta)^(1/beta)` from thresholds t.

        Here `1 / alpha + 1 / beta = 1`, and K is the largest norm `(sum p lam^alpha)^(1/alpha)` within
        epsilon.
        """
        return float(
            self._threshold_bounds(
                prior, gains, check_certificate_array(certificate, "thresholds", (gains.shape[1],))
            ).max()
        )

    def _threshold_bounds(
        self, prior: Prior, gains: FloatArray, thresholds: FloatArray
    ) -> FloatArray:
        """Compute each column's dual bound at its threshold."""
        law, room = self._norm_law(prior)
        own, mean = center_prices(law, gains)
        return mean + compute_costs(law, own, mean - thresholds, self.beta, room)

    def _norm_law(self, prior: Prior) -> tuple[FloatArray, float]:
        """Return the (N, 1) normalized law of the norm, and the logarithm of the norm's limit."""
        law, _, total = self.views(prior.pmf)[0]
        room = self.log_max_norm(law / total) + self._log_mass(prior) / self.beta
        return (law / law.sum())[:, None], room

    def _log_mass(self, prior: Prior) -> float:
        """Return the logarithm of the law's total mass, rounded up."""
        return 0.0


@dataclass(frozen=True, init=False, repr=False)
class RenyiPML(EachOutcomeBound):
    """The requirement `D_alpha(P(X | Y = y) || p) <= epsilon` for every outcome y (PML of order alpha).

    With the lift `lam[x] = P[x,y] / q[y]` it is `log(sum_x p[x] lam[x]^alpha) / (alpha - 1)`. It grows with
    alpha, from the divergence of Kullback and Leibler at 1 to the pointwise maximal leakage at infinity: a
    moment of the lift in place of its maximum, so that what is revealed of a rare letter counts less.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats.
        over: the priors for each of which it must hold; left out, that of the design.
        about: the `Secret` that is protected in place of the data, under each of its joint laws.

    Raises:
        PrivacyError: alpha is not above 1, or epsilon is negative; or one of them is not finite; `over` is no
            set of priors, `about` no secret, or both are given.

    Source: [saeidian2023pointwise] for order infinity; [krokhmal2007higher] for the bound on a utility, the
    dual form of a higher-moment risk measure.

    Examples:
        >>> even = [0.5, 0.5]
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> round(math.exp(RenyiPML(2, 1.0).level(even, response)), 12)  # (1.5^2 + 0.5^2) / 2
        1.25
        >>> RenyiPML(2, 0.3).holds(even, response), RenyiPML(50, 0.3).holds(even, response)
        (True, False)
        >>> from pmlopt import L1Ball
        >>> near = RenyiPML(2, 1.0, over=L1Ball(even, 0.2))
        >>> round(math.exp(near.level(even, response)), 6)  # 0.2625 / 0.45^2, at (0.4, 0.6)
        1.296296
    """

    name: ClassVar[str] = RobustRenyiPML.name
    meaning: ClassVar[str] = RobustRenyiPML.meaning
    over: Annotated[PriorSet | None, ADDED_LATER] = None
    about: Annotated[Secret | None, ADDED_LATER] = None

    # The class of the object for pyright, which takes it from here; mypy takes it for RenyiPML.
    @overload
    def __new__(
        cls, alpha: float = ..., epsilon: float = ..., over: None = ..., about: Secret | None = ...
    ) -> Self: ...
    @overload
    def __new__(cls, alpha: float, epsilon: float, over: PriorSet) -> RobustRenyiPML: ...  # type: ignore[misc]

    def __new__(
        cls,
        alpha: float = 2.0,
        epsilon: float = 0.0,
        over: PriorSet | None = None,
        about: Secret | None = None,
    ) -> Any:
        """Create the matching subclass: a plain `RenyiPML` under one prior."""
        if over is not None and about is not None:
            raise PrivacyError("`over` and `about` are forms of RenyiPML: give one of them")
        return super().__new__(cls) if over is None else RobustRenyiPML(alpha, epsilon, over)

    def __init__(
        self,
        alpha: float,
        epsilon: float,
        over: PriorSet | None = None,
        about: Secret | None = None,
    ) -> None:
        assert over is None  # `__new__` has made another object
        super().__init__(alpha, epsilon)
        check_secret(about)
        object.__setattr__(self, "about", about)
        # made here, so that the copies for other levels share it
        object.__setattr__(self, "_price_programs", {})

    def on_cells(self, cells: LetterCells) -> Requirement | None:
        """Return the requirement on columns that are constant on orbits ("cells") of letters."""
        return self if self.about is None else super().on_cells(cells)

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        if self.about is not None:
            check_secret_prior(self.about, prior)

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return {
            "renyi_pml"
            if self.about is None
            else f"renyi_{make_secret_limit_name(self.about)}": self.epsilon
        }

    def views(self, weights: Any) -> list[View]:
        """Return for each joint law the law of S and the channel from S to X; about the data the identity.

        In floats, or in whole numbers with rows of X given S that have one common sum.
        """
        if self.about is None:
            return super().views(weights)
        if weights.dtype != object:
            sums = [law.sum(axis=1) for law in self.about.joint]
            return [
                (m, law / m[:, None], m.sum())
                for m, law in zip(sums, self.about.joint, strict=True)
            ]
        found = []
        for law in self.about.weights:
            mass = law.sum(axis=1)
            found.append((mass, law * (math.lcm(*map(int, mass)) // mass)[:, None], mass.sum()))
        return found

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return optimal thresholds, or about a secret optimal (L, S, M) multipliers of its values."""
        if self.about is None:
            return super().dual_certificate(prior, gains)

        unit = float(np.abs(gains).max())
        views = self.views(prior.pmf)
        shape = (len(self.about.values), gains.shape[1])
        if not unit:
            return {
                "prices": np.zeros((len(views), *shape)),
                "tops": np.zeros((len(views), shape[1])),
            }
        programs = self._get_price_programs(prior, views)
        laws = [weights[:, None] / total for weights, _, total in views]
        rooms = [self.log_max_norm(law[:, 0]) for law in laws]
        candidates = []
        # for order 2 the cost of deviations is exact
        for far in {True} if self.beta == 2 else {False, self._may_have_far_prices}:
            parts = [
                center_with_best_offsets(law, unit * prices, self.beta, room)
                for law, prices, room in zip(
                    laws, programs.find_prices(gains / unit, rooms, far), rooms, strict=True
                )
            ]
            prices, tops = map(np.array, zip(*parts, strict=True))
            candidates.append({"prices": prices, "tops": tops})
        return min(candidates, key=lambda one: self.dual_bound(prior, gains, one))

    def _get_price_programs(self, prior: Prior, views: list[View]) -> BestPrices:
        """Return the programs of multipliers, which requirements of other levels share."""
        key = prior.pmf.tobytes()
        known: dict[bytes, BestPrices] = self.__dict__.setdefault("_price_programs", {})
        programs = known.get(key)
        if programs is None:
            # of one prior only: a requirement may be used with thousands
            known.clear()
            programs = known[key] = BestPrices((views, prior.pmf, self.beta))
        return programs

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the dual bound from multipliers h >= 0, by Hoelder's inequality of order beta.

        That is Hoelder's inequality again: no column within the bound collects what the prices pay of the
        gains, and a column of mean one collects at most the largest remainder. The prices of each law
        and output are `max(prices + tops, 0)`, so that they may be far above their differences.
        """
        if self.about is None:
            return super().dual_bound(prior, gains, certificate)
        views = self.views(prior.pmf)
        left = gains
        shape = (len(views), len(self.about.values), gains.shape[1])
        for (weights, given, total), (price, top) in zip(
            views, unpack_prices(certificate, shape), strict=True
        ):
            secret = weights / total
            law = secret[:, None]
            own = center_prices(secret[:, None], price)
            net = compute_net_prices(
                law, own[0], top + own[1], self.beta, self.log_max_norm(secret)
            )
            left = left - (secret[:, None] * given / prior.pmf).T @ net
        return float(left.max())

    def __repr__(self) -> str:
        about = "" if self.about is None else f", about={self.about!r}"
        return f"RenyiPML({self.alpha:g}, {self.epsilon}{about})"


@dataclass(frozen=True, init=False, repr=False)
class RemainingRenyiPML(EachOutcomeBound):
    """The remaining budget as PML of order alpha: the next release under a posterior.

    With `lift[x] = post[x] / p[x]` after what was released, `|lift v|_(alpha,p) <= K <post, v>` for each
    column v of the next mechanism, exactly where all together is within epsilon, whatever comes out. A
    mechanism that releases nothing meets it where what was released does. See `Ledger.requirement_of_order`.

    Args:
        alpha: above 1 and finite.
        epsilon: in nats, of all releases.
        lifts: (N,) positive, of the remaining letters; the prior of the design is the posterior.

    Raises:
        PrivacyError: a lift is not positive and finite, or as in `RenyiPML`.
    """

    name: ClassVar[str] = "remaining-renyi-pml"
    meaning: ClassVar[str] = (
        "In a mean of the order over letters, all outcomes make them at most e^{limit} times as likely."
    )
    lifts: Annotated[FloatArray, Shape("letters")]

    def __init__(self, alpha: float, epsilon: float, lifts: ArrayLike) -> None:
        super().__init__(alpha, epsilon)
        object.__setattr__(self, "lifts", copy_float_array(lifts, 1, "the lifts", PrivacyError))
        if not (self.lifts > 0).all():
            raise PrivacyError("a lift is not positive: leave out letters that are excluded")

    __eq__ = Record.__eq__
    __hash__ = Record.__hash__

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        check_one_for_each(
            "there are", len(self.lifts), "lifts", prior.size, "letters", PrivacyError
        )

    def views(self, weights: Any) -> list[View]:
        """Return the (law, channel) pairs on which the bound must hold: the data, or each law of a secret."""
        lifts = self.lifts
        if weights.dtype == object:
            lifts = np.array(list(map(Fraction, lifts.tolist())), dtype=object)
        return [(weights / lifts, lifts, weights.sum())]

    def _may_violate(self, matrix: Any) -> Any:
        """Return the (M,) mask of columns that may violate the bound: non-constant ones."""
        return np.ones(matrix.shape[1], dtype=bool)

    def _compute_levels(self, law: FloatArray, columns: FloatArray) -> FloatArray:
        """Compute the (M,) levels of nonzero columns under a law."""
        mass = float(law.sum())
        return order_levels(law / mass, columns, self.alpha) - math.log(mass)

    def _log_mass(self, prior: Prior) -> float:
        """Return the logarithm of the law's total mass, rounded up."""
        with localcontext(DECIMALS):
            mass = sum(
                (
                    Decimal(w) / Decimal(lift)
                    for w, lift in zip(prior.weights, self.lifts.tolist(), strict=True)
                ),
                Decimal(0),
            )
            return math.nextafter(
                float((mass / sum(prior.weights)).ln() + DECIMAL_ROUNDING), math.inf
            )

    def __repr__(self) -> str:
        return f"RemainingRenyiPML({self.alpha:g}, {self.epsilon}, <{len(self.lifts)} lifts>)"
