"""PML of finite order: the Renyi divergence of the posterior from the prior, outcome by outcome.

Of the data under one prior, for every prior of a set, and about a secret.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.data.mechanism import MechanismLike, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry.prior import Cells
from pmlopt.errors import PrivacyError
from pmlopt.measures.leakage import norms
from pmlopt.model.privacy.of_order import DIGITS, LAST_DIGITS, OfOrder, moment_of
from pmlopt.model.privacy.requirement import LARGEST_EXPONENT, Declared, Requirement, Witness, below, shaped
from pmlopt.model.privacy.secret_leakage import NO_MASS, check_secret_prior, member, name_about
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.columns import Family

if TYPE_CHECKING:
    import cvxpy as cp

LARGEST_WHOLE_ORDER = 64
"""Whole orders of up to this much are checked in integers; others in decimals."""

HALVINGS, DOUBLINGS = 100, 60
"""Of the interval in which a threshold is searched, and of how far it is looked for below the gains."""

GOLDEN = (math.sqrt(5) - 1) / 2
SECTIONS = 70
"""Of the interval in which a threshold is searched: to 1e-15 of it."""

CHORDS, NEAR = 40, 2e-15
"""Of a search for a level, at most, and how near both of its ends must be, as a share."""

LARGEST_POWER = 1e200
"""Powers are cut at this in a search that only asks which is larger."""


@dataclass(frozen=True, init=False)
class RenyiPML(OfOrder):
    """PML of order alpha: `D_alpha(P(X | Y = y) || p) <= epsilon` for every outcome y, alpha in (1, inf).

    With the lift `lam[x] = P[x,y] / q[y]` it is `log(sum_x p[x] lam[x]^alpha) / (alpha - 1)`. It grows with
    alpha, from the divergence of Kullback and Leibler at 1 to the pointwise maximal leakage at infinity: a
    moment of the lift in place of its maximum, so that what is told of a rare letter counts less.

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

    name: ClassVar[str] = "renyi-pml"
    meaning: ClassVar[str] = (
        "In a mean of the order over letters, no outcome makes them more than e^{limit} times as likely."
    )
    infinite: ClassVar[str] = "PML"
    over: ClassVar[None] = None
    about: ClassVar[None] = None

    def __new__(
        cls,
        alpha: float = 2.0,
        epsilon: float = 0.0,
        over: PriorSet | None = None,
        about: Secret | None = None,
    ) -> Any:
        """The requirement of the form that is asked for: a `RenyiPML` about the data under one prior."""
        if over is not None and about is not None:
            raise PrivacyError("`over` and `about` are forms of RenyiPML: give one of them")
        if about is not None:
            return SecretRenyiPML(alpha, epsilon, about)
        return super().__new__(cls) if over is None else RobustRenyiPML(alpha, epsilon, over)

    def __init__(
        self, alpha: float, epsilon: float, over: PriorSet | None = None, about: Secret | None = None
    ) -> None:
        assert (over, about) == (None, None)  # `__new__` has made another object
        super().__init__(alpha, epsilon)

    @classmethod
    def from_fields(
        cls, alpha: float, epsilon: float, over: PriorSet | None = None, about: Secret | None = None
    ) -> Requirement:
        """In any of its forms, as a file has it."""
        return cls(alpha, epsilon, over, about)

    def on_cells(self, cells: Cells) -> RenyiPML:
        return self

    @property
    def limits(self) -> dict[str, float]:
        return {"renyi_pml": self.epsilon}

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        columns = m.matrix[:, m.support]
        logs = np.log(norms(p.pmf, columns, self.alpha)) - np.log(p.pmf @ columns)
        return {"renyi_pml": max(0.0, float(logs.max()) * self.alpha / (self.alpha - 1))}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        factor = below(1 / self.largest_norm(prior))
        roots = prior.pmf ** (1 / self.alpha)
        if self.alpha == 2:
            lengths = cp.norm(cp.multiply(roots[:, None], mechanism), 2, axis=0)
            return Declared({"renyi_pml": factor * lengths <= law[0]})
        return Declared(
            {
                f"renyi_pml {y}": factor
                * cp.pnorm(cp.multiply(roots, mechanism[:, y]), self.alpha, approx=False)
                <= law[0, y]
                for y in range(mechanism.shape[1])
            }
        )

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self._is_free(weights, power):
            return 0 * matrix.max(axis=0)
        if matrix.dtype != object:
            total = weights.sum()
            share = (self.alpha - 1) / self.alpha
            return norms(weights / total, matrix, self.alpha) - power(share * self.epsilon) * (
                weights @ matrix / total
            )
        if self.alpha == int(self.alpha) <= LARGEST_WHOLE_ORDER:
            order = int(self.alpha)
            most = power((order - 1) * self.epsilon)
            return weights @ matrix**order * weights.sum() ** (order - 1) - most * (weights @ matrix) ** order
        return np.array([self._decimal_excess(weights, column) for column in matrix.T], dtype=object)

    def _decimal_excess(self, weights: Any, column: Any) -> Decimal:
        """The divergence less epsilon, in units of alpha - 1, rounded up; 0 of a constant column."""
        if (column == column[0]).all():
            return Decimal(0)
        with localcontext(Context(prec=DIGITS)):
            alpha, total = Decimal(self.alpha), Decimal(int(weights.sum()))
            masses, entries = [Decimal(int(w)) for w in weights], [Decimal(int(v)) for v in column]
            top = max(entries)
            moment = moment_of(masses, entries, alpha)
            mean = sum(map(lambda mass, entry: mass * entry / top, masses, entries), Decimal(0))
            logs = (moment / total).ln() - alpha * (mean / total).ln()
            return logs - (alpha - 1) * Decimal(self.epsilon) + LAST_DIGITS

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return self.proved(prior, gains, self.witness(prior, gains))

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """The thresholds of the columns: (M,), where what `proved` bounds them by is least."""
        p, most, beta = prior.pmf, self.largest_norm(prior), self.alpha / (self.alpha - 1)
        high = gains.max(axis=0)
        low = reach = np.maximum(high - gains.min(axis=0), 1e-300)
        low = high - 2 * reach
        for _ in range(DOUBLINGS):
            rising = _slope(p, gains, low, most, beta) > 0
            if not rising.any():
                break
            reach = np.where(rising, 2 * reach, reach)
            low = high - 2 * reach
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            rising = _slope(p, gains, middle, most, beta) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        # exact where it never moved: below it, large norms multiply what rounding leaves
        return {"thresholds": high}

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """For any threshold t, `<p g, lam> <= t + K (sum p max(g - t, 0)^beta)^(1/beta)`, by Hoelder's
        inequality.

        Here `1 / alpha + 1 / beta = 1`, and K is the largest norm `(sum p lam^alpha)^(1/alpha)` within
        epsilon.
        """
        thresholds = shaped(witness, "thresholds", (gains.shape[1],))
        beta = self.alpha / (self.alpha - 1)
        above = norms(prior.pmf, np.maximum(gains - thresholds, 0.0), beta)
        with np.errstate(over="ignore"):  # an infinite bound is true
            return float((thresholds + self.largest_norm(prior) * above).max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        raise PrivacyError(
            "the columns within PML of finite order are no polytope, and sub-convex utilities need its "
            "corners: use PML, LDP or LIP"
        )


class SecretRenyiPML(Requirement):
    """PML of order alpha about a secret S: `D_alpha(P(S | Y = y) || P_S) <= epsilon` for every outcome y.

    See `RenyiPML(alpha, epsilon, about=...)`, which is the public name: the bound on the letters of the
    secret, of the mechanism `P(y | s) = sum_x P(x | s) P[x,y]`, under each of the secret's joint laws.
    """

    name: ClassVar[str] = RenyiPML.name
    meaning: ClassVar[str] = RenyiPML.meaning
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None

    def __init__(self, alpha: float, epsilon: float, about: Secret) -> None:
        self.plain = RenyiPML(alpha, epsilon)
        if not isinstance(about, Secret):
            raise PrivacyError(f"`about` is {about!r:.60}: it is no secret, give a Secret(joint) of S and X")
        self.alpha, self.epsilon, self.about = self.plain.alpha, self.plain.epsilon, about

    @property
    def limits(self) -> dict[str, float]:
        return {f"renyi_{name_about(self.about)}": self.epsilon}

    @property
    def scope(self) -> str:
        return self.plain.scope

    def check(self, prior: Prior) -> None:
        check_secret_prior(self.about, prior)

    @cached_property
    def _views(self) -> list[tuple[Prior, FloatArray]]:
        """For each joint law the law of S, and (S, N) that of X given S."""
        return [
            (Prior(law.sum(axis=1) / law.sum()), law / law.sum(axis=1, keepdims=True))
            for law in self.about.joint
        ]

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        self.check(p)
        found = (self.plain.level(law, given @ m.matrix) for law, given in self._views)
        constant = not np.ptp(m.matrix, axis=0).any()
        return {next(iter(self.limits)): 0.0 if constant else max(found)}

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        self.check(prior)
        found: dict[str, Any] = {}
        for place, (secret, given) in enumerate(self._views):
            means = (secret.pmf @ given)[None, :] @ mechanism
            own = self.plain.declare(secret, given @ mechanism, means)
            found |= {f"{name} under law {place}": one for name, one in own.constraints.items()}
        return Declared(found)

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {}

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        return np.max(
            [self.plain.excess(law, given @ matrix, power) for law, given in self._weighted(matrix.dtype)],
            axis=0,
        )

    def _weighted(self, kind: Any) -> list[tuple[Any, Any]]:
        """The views in floats; or in whole numbers, with rows of X given S that have one common sum."""
        if kind.kind != "O":
            return [(law.pmf, given) for law, given in self._views]
        found = []
        for law in self.about.weights:
            sums = [int(value) for value in law.sum(axis=1)]
            common = math.lcm(*sums)
            given = law * np.array([common // value for value in sums], dtype=object)[:, None]
            found.append((np.array(sums, dtype=object), given))
        return found

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return self.proved(prior, gains, self.witness(prior, gains))

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """Prices of the values of the secret under each law: (L, S, M), at which `proved` is least."""
        import cvxpy as cp

        unit = float(np.abs(gains).max()) or 1.0
        shape, beta = (len(self.about.values), gains.shape[1]), self.alpha / (self.alpha - 1)
        left, prices, rules = gains / unit, [], []
        for secret, given in self._views:
            price, length = cp.Variable(shape, nonneg=True), cp.Variable((1, shape[1]))
            weighted = cp.multiply((secret.pmf ** (1 / beta))[:, None], price)
            rules += [cp.pnorm(weighted[:, y], beta, approx=False) <= length[0, y] for y in range(shape[1])]
            joint = (secret.pmf[:, None] * given / prior.pmf).T
            most = self.plain.largest_norm(secret)
            left = left - joint @ price + most * joint.sum(axis=1, keepdims=True) @ length
            prices.append(price)
        cp.Problem(cp.Minimize(cp.sum(cp.max(left, axis=0))), rules).solve(solver="CLARABEL")
        found = [np.zeros(shape) if one.value is None else np.maximum(one.value, 0.0) for one in prices]
        return {"prices": unit * np.array(found)}

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """For any prices h >= 0, `sum_s w[s] h[s] P(y | s) <= K |h| P(y)` with the norm of order beta.

        That is Hoelder's inequality, `1 / alpha + 1 / beta = 1`: no column within the bound collects what the
        prices pay of the gains, and a column of mean one collects at most the largest of what is left.
        """
        prices = np.maximum(
            shaped(witness, "prices", (len(self._views), len(self.about.values), gains.shape[1])), 0.0
        )
        left, beta = gains, self.alpha / (self.alpha - 1)
        for (secret, given), price in zip(self._views, prices, strict=True):
            most = self.plain.largest_norm(secret) * norms(secret.pmf, price, beta)
            left = left - (secret.pmf[:, None] * given / prior.pmf).T @ (price - most)
        return float(left.max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        return self.plain.columns(prior)

    def __repr__(self) -> str:
        return f"RenyiPML({self.alpha:g}, {self.epsilon}, about={self.about!r})"


class RobustRenyiPML(OfOrder):
    """PML of order alpha for every prior Q of a set: `|v|_(alpha,Q) <= K <Q, v>` for each column v.

    See `RenyiPML(alpha, epsilon, over=...)`, which is the public name. K is `e^((alpha-1) epsilon / alpha)`;
    the norm is `min_t <Q, v^alpha> t^(1-alpha) / alpha + (1 - 1/alpha) t`, linear in Q and convex in v, t:
    one t serves all priors of the set, and the bound is one on the least mean of a column over them.
    """

    name: ClassVar[str] = RenyiPML.name
    meaning: ClassVar[str] = RenyiPML.meaning
    infinite: ClassVar[str] = RenyiPML.infinite
    is_form: ClassVar[bool] = True
    about: ClassVar[None] = None

    def __init__(self, alpha: float, epsilon: float, over: PriorSet) -> None:
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "over", over)
        if not isinstance(over, PriorSet):
            raise PrivacyError(
                f"`over` is {over!r:.60}: it is no set of priors, give L1Ball(prior, 0.1) or such"
            )
        self.__post_init__()

    over: PriorSet

    @property
    def limits(self) -> dict[str, float]:
        return {"renyi_pml": self.epsilon}

    @property
    def scope(self) -> str:
        return f"{super().scope}; {self.over.scope}"

    def check(self, prior: Prior) -> None:
        self.over.check_letters(prior.labels, "the prior of the design")

    def on_cells(self, cells: Cells) -> RobustRenyiPML:
        return RobustRenyiPML(self.alpha, self.epsilon, self.over.on_cells(cells))

    def _most_told(self, prior: Prior) -> float:
        return LARGEST_EXPONENT

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """The least factor K at which no column misses the bound, in nats, by chords of what it misses.

        That is convex in K, and falls by at least the least mean of the column for each unit.
        """
        p, m = paired(prior, mechanism)
        self.check(p)
        columns = m.matrix[:, m.support & (np.ptp(m.matrix, axis=0) > 0)]
        if not columns.size:
            return {"renyi_pml": 0.0}
        columns = columns / columns.max(axis=0)
        least = self.over.least_mean(columns)
        if (least <= 0).any():
            return {"renyi_pml": math.inf}
        low = np.ones(columns.shape[1])
        over = np.maximum(self._threshold(columns, low)[1], 0.0)
        high = low + over / least
        for _ in range(CHORDS):
            below_zero = np.minimum(self._threshold(columns, high)[1], 0.0)
            nearer = np.maximum(low, high + below_zero / least)
            over = np.where(nearer > low, np.maximum(self._threshold(columns, nearer)[1], 0.0), over)
            low = nearer
            if (high - low <= NEAR * high).all():
                break
            fall = over - below_zero
            high = np.minimum(
                high, low + np.where(fall > 0, over / np.where(fall > 0, fall, 1), 0) * (high - low)
            )
        level = math.log(float(high.max()) * (1 + NEAR)) * self.alpha / (self.alpha - 1)
        return {"renyi_pml": level}

    def _slack(self, columns: FloatArray, most: Any, thresholds: FloatArray) -> FloatArray:
        """(N, M) `K v - v^alpha t^(1-alpha) / alpha`, whose least mean is to be `(1 - 1/alpha) t` or more."""
        with np.errstate(over="ignore"):
            powers = np.minimum((columns / thresholds) ** self.alpha, LARGEST_POWER)
        return np.asarray(most * columns - thresholds * powers / self.alpha)

    def _threshold(self, columns: FloatArray, most: Any) -> tuple[FloatArray, FloatArray]:
        """(M,) the t at which columns with a largest entry of one miss the bound least, and by how much.

        What is missed is convex in t: golden sections in its logarithm.
        """

        def missed(logs: FloatArray) -> FloatArray:
            slack = self._slack(columns, most, np.exp(logs))
            lowest = slack.min(axis=0)
            return np.asarray(
                (1 - 1 / self.alpha) * np.exp(logs) - self.over.least_mean(slack - lowest) - lowest
            )

        least = np.maximum(self.over.least_mean(columns**self.alpha), 1e-300)
        low, high = np.log(least) / self.alpha, np.zeros(columns.shape[1])
        one, two = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_one, at_two = missed(one), missed(two)
        for _ in range(SECTIONS):
            left = at_one < at_two
            low, high = np.where(left, low, one), np.where(left, two, high)
            new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
            at_new = missed(new)
            one, at_one, two, at_two = (
                np.where(left, new, two), np.where(left, at_new, at_two),
                np.where(left, one, new), np.where(left, at_one, at_new),
            )  # fmt: skip
        best = np.where(at_one < at_two, one, two)
        return np.exp(best), np.minimum(at_one, at_two)

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        self.check(prior)
        shape, keep = mechanism.shape, below(1 / self.largest_norm(prior))
        ones, row = np.ones((shape[0], 1)), (1, shape[1])
        moments, slack = (cp.Variable(shape, nonneg=True, name=name) for name in ("moments", "slack"))
        threshold, lowest, top = (
            cp.Variable(row, nonneg=True, name=name) for name in ("norm_threshold", "lowest", "slack_top")
        )
        terms, spread, entries = (cp.vec(part, order="F") for part in (moments, ones @ threshold, mechanism))
        least = self.over.declare(slack, top)
        return Declared(
            {
                "moments": cp.PowCone3D(terms, spread, entries, 1 / self.alpha),
                "slack": slack == mechanism - keep / self.alpha * moments + ones @ lowest,
                "slack_top": slack <= ones @ top,
                "renyi_pml": keep * (1 - 1 / self.alpha) * threshold <= least.value - lowest,
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

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        keep = below(1 / self.largest_norm(prior))
        tops = matrix.max(axis=0)
        columns = matrix / np.where(tops > 0, tops, 1.0) + (tops == 0)
        threshold = self._threshold(columns, 1 / keep)[0]
        slack = keep * self._slack(columns, 1 / keep, threshold)
        lowest = np.maximum(-slack.min(axis=0), 0.0)
        slack = tops * (slack + lowest)
        return {
            "moments": tops * threshold * (columns / threshold) ** self.alpha,
            "slack": slack,
            "norm_threshold": (tops * threshold)[None, :],
            "lowest": (tops * lowest)[None, :],
            "slack_top": slack.max(axis=0, keepdims=True),
            **self.over.auxiliary(slack),
        }

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        if self.epsilon > LARGEST_EXPONENT:
            return 0 * matrix.max(axis=0)
        tops = matrix.max(axis=0)
        columns = np.asarray(matrix / np.where(tops > 0, tops, 1), dtype=np.float64) + (tops == 0)
        most = math.exp((self.alpha - 1) / self.alpha * self.epsilon)
        thresholds, over = self._threshold(columns, most)
        if matrix.dtype != object:
            return np.where(np.ptp(matrix, axis=0) > 0, tops * over, tops * (1 - most))
        return np.array(
            [self._exact_excess(v, t) for v, t in zip(matrix.T, thresholds, strict=True)], dtype=object
        )

    def _exact_excess(self, column: Any, threshold: float) -> Any:
        """By how much the bound is missed at a threshold, in units of the largest entry, rounded up."""
        if (column == column[0]).all():
            return Fraction(0)
        with localcontext(Context(prec=DIGITS)):
            alpha, t, one = Decimal(self.alpha), Decimal(threshold), Decimal(1)
            most = ((alpha - 1) / alpha * Decimal(self.epsilon)).exp() * (1 - LAST_DIGITS)
            top = Decimal(int(column.max()))
            ratios = [Decimal(int(v)) / top for v in column]
            powers = [(alpha * (v / t).ln()).exp() * (1 + LAST_DIGITS) if v else Decimal(0) for v in ratios]
            slack = [most * v - t / alpha * power for v, power in zip(ratios, powers, strict=True)]
            numbers = [math.floor(value / LAST_DIGITS) - 1 for value in slack]
            needed = math.ceil((one - one / alpha) * t / LAST_DIGITS) + 1
        lowest = min(numbers)
        sums, unit = self.over.least_sum(np.array([[value - lowest] for value in numbers], dtype=object))
        return needed - lowest - Fraction(int(sums[0]), int(unit))

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return self.proved(prior, gains, self.witness(prior, gains))

    def witness(self, prior: Prior, gains: FloatArray) -> Witness:
        """A law of the set and prices of the letters, (N, M) each, at which `proved` is least."""
        import cvxpy as cp

        unit, found, m = float(np.abs(gains).max()) or 1.0, self.over.polytope, gains.shape[1]
        parts, bills = (
            cp.Variable((found.parts.shape[1], m), nonneg=True),
            cp.Variable(gains.shape, nonneg=True),
        )
        shares, mass = cp.Variable(gains.shape, nonneg=True), cp.Variable((1, m), nonneg=True)
        laws, most = found.parts @ parts, self.largest_norm(prior)
        sums = found.rows @ parts - found.right[:, None] @ mass
        rules = [
            sums[found.equal] == 0,
            sums[~found.equal] <= 0,
            cp.sum(laws, axis=0, keepdims=True) == mass,
            cp.sum(shares, axis=0, keepdims=True) <= mass,
            cp.PowCone3D(*(cp.vec(one, order="F") for one in (shares, laws, bills)), 1 - 1 / self.alpha),
        ]
        left = gains / unit - cp.multiply(1 / prior.pmf[:, None], bills - most * laws)
        cp.Problem(cp.Minimize(cp.sum(cp.max(left, axis=0))), rules).solve(solver="CLARABEL")
        if laws.value is None or bills.value is None:
            return {"laws": np.repeat(prior.pmf[:, None], m, axis=1), "prices": np.zeros(gains.shape)}
        inside = laws.value > NO_MASS
        prices = np.where(inside, np.maximum(bills.value, 0.0) / np.where(inside, laws.value, 1.0), 0.0)
        return {"laws": np.array([member(self.over, law) for law in laws.value.T]).T,
                "prices": unit * prices * np.maximum(mass.value, 0.0)}  # fmt: skip

    def proved(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """For any law Q of the set and prices h >= 0, `<Q h, v> <= K |h| <Q, v>` with the norm of order beta.

        The laws are moved into the set where they are not in it.
        """
        laws = np.array([member(self.over, law) for law in shaped(witness, "laws", gains.shape).T]).T
        prices, beta = np.maximum(shaped(witness, "prices", gains.shape), 0.0), self.alpha / (self.alpha - 1)
        tops = prices.max(axis=0)
        lengths = tops * ((laws * (prices / np.where(tops > 0, tops, 1.0)) ** beta).sum(axis=0)) ** (1 / beta)
        paid = laws * (prices - self.largest_norm(prior) * lengths)
        return float((gains - paid / prior.pmf[:, None]).max())

    def columns(self, prior: Prior) -> tuple[Family, ...]:
        return RenyiPML(self.alpha, self.epsilon).columns(prior)

    def __repr__(self) -> str:
        return f"RenyiPML({self.alpha:g}, {self.epsilon}, over={self.over!r})"


def _slope(p: FloatArray, gains: FloatArray, thresholds: FloatArray, most: float, beta: float) -> FloatArray:
    """(M,) the slope, in the thresholds, of what `proved` bounds the columns by."""
    over = np.maximum(gains - thresholds, 0.0)
    top = over.max(axis=0)
    shares = over / np.where(top > 0, top, 1.0)
    norms = (p @ shares**beta) ** (1 / beta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # past all floats it falls
        return np.where(top > 0, 1 - most * (p @ shares ** (beta - 1)) / norms ** (beta - 1), 1.0)
