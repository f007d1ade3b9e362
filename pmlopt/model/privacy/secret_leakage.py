"""Leakage about a secret that the data tells of: PML about it, and Pufferfish between its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pmlopt.core.arrays import FloatArray, Label, few, nonnegative, rounding_of
from pmlopt.data.mechanism import MechanismLike, match_labels, paired
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import Ratios, ratios_of
from pmlopt.model.privacy.requirement import Declared, Requirement, below
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.prior_set import LeastMean, PriorSet

if TYPE_CHECKING:
    import cvxpy as cp

NO_MASS = 1e-13
"""Multipliers of at most this are none."""


def largest_gain(over: JointLaws, keep: float, p: FloatArray, gains: FloatArray) -> float:
    """An upper bound on `<p g, v>` over the columns with `<p, v> = 1` within the bound, and over g; sharp.

    For weights w_s >= 0 and any joint laws Q_s of the set,
    `max_x [g(x) + sum_s w_s (Q_s(x) - keep Q_s(x | s)) / p(x)]`: columns within have
    `keep Q_s(. | s) v <= Q_s v`. The dual program finds weights and laws, and the nearest laws that are in
    the set for certain take their place.

    Args:
        over: the joint laws.
        keep: e^-epsilon.
        p: (N,) the prior of the design.
        gains: (N, M) the columns g.
    """
    best = -np.inf
    for column, (weights, outcomes, given) in zip(gains.T, _dual(over, keep, p, gains), strict=True):
        priced = weights @ (outcomes - keep * given) / p
        sizes = np.abs(column) + weights @ (outcomes + keep * given) / p
        rounding = rounding_of(over.law.size * len(p), 1.0) * sizes
        best = max(best, float((column + priced + rounding).max()))
    return best


def _dual(
    over: JointLaws, keep: float, p: FloatArray, gains: FloatArray
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Weights (S,), laws of X (S, N) and laws of X given s (S, N), of one column of gains after the other."""
    from pmlopt.solvers import highs

    program = _Program(over, keep, p)
    n = len(p)
    scale = float(np.abs(gains).max()) or 1.0
    solver = highs.loaded(program.model(), highs.RESTARTED)
    for column in gains.T / scale:
        for x in range(n):
            solver.changeRowBounds(x, float(column[x]), np.inf)
        solver.run()
        z = np.array(solver.getSolution().col_value)
        if len(z) != program.count or not np.isfinite(z).all():
            z = np.zeros(program.count)
        weights, outcomes, given = program.laws(z)
        yield scale * weights, outcomes, given


class _Program:
    """`min t` over weights and joint laws, whose products are measures in the cones over their sets.

    Variables: t; the weights w_s; for each s the law of S times w_s; for each s the law of X given s that is
    worst for other values, times its mass in all of them; for each s the one that is worst for s.
    """

    def __init__(self, over: JointLaws, keep: float, p: FloatArray) -> None:
        from scipy import sparse

        self.over, n, s = over, len(p), over.law.size
        law, given = over.law.polytope, [one.polytope for one in over.conditionals]
        sizes = [1, s, *[law.parts.shape[1]] * s, *[one.parts.shape[1] for one in given] * 2]
        ends = np.cumsum(sizes)
        self.count = int(ends[-1])
        self.places = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]

        def row(count: int) -> FloatArray:
            return np.zeros((count, self.count))

        masses = np.zeros((s, s, self.count))  # of each value t in the law of S for s, times its weight
        for k in range(s):
            masses[k][:, self.places[2 + k]] = law.parts
        goal = row(n)
        goal[:, 0] = 1.0
        blocks: list[Any] = [goal]
        lower, upper = [np.zeros(n)], [np.full(n, np.inf)]

        def cone(place: int, polytope: Any, mass: FloatArray) -> None:
            held = row(len(polytope.rows))
            held[:, self.places[place]] = polytope.rows
            held -= np.outer(polytope.right, mass)
            blocks.append(held)
            lower.append(np.where(polytope.equal, 0.0, -np.inf))
            upper.append(np.zeros(len(held)))

        for k in range(s):
            weight = row(1)[0]
            weight[1 + k] = 1.0
            cone(2 + k, law, weight)
            others = masses[:, k].sum(axis=0) - masses[k, k]
            own = keep * weight - masses[k, k]
            cone(2 + s + k, given[k], others)
            cone(2 + 2 * s + k, given[k], own)
            blocks.append(own[None])
            lower.append(np.zeros(1))
            upper.append(np.full(1, np.inf))
            goal[:, self.places[2 + s + k]] -= given[k].parts / p[:, None]
            goal[:, self.places[2 + 2 * s + k]] += given[k].parts / p[:, None]
        self.system = sparse.csc_array(np.vstack(blocks))
        self.bounds = np.concatenate(lower), np.concatenate(upper)

    def model(self) -> Any:
        """The program as HiGHS has it."""
        from pmlopt.solvers import highs

        costs, least = np.zeros(self.count), np.zeros(self.count)
        costs[0], least[0] = 1.0, -np.inf
        entries = (self.system.indptr, self.system.indices, self.system.data)
        return highs.columnwise(costs, (least, np.inf), self.bounds, entries)

    def laws(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (S,), and for each s the law of X and that given s, (S, N) each: members of the sets."""
        s = self.over.law.size
        law, given = self.over.law, self.over.conditionals
        weights = np.maximum(z[self.places[1]], 0.0)
        weights[weights <= NO_MASS] = 0.0
        low, high = (
            np.array([_member(one, z[self.places[first + k]]) for k, one in enumerate(given)])
            for first in (2 + s, 2 + 2 * s)
        )
        outcomes = np.zeros_like(high)
        for k in np.flatnonzero(weights):
            rows = low.copy()
            rows[k] = high[k]
            outcomes[k] = _member(law, z[self.places[2 + k]]) @ rows
        return weights, outcomes, high


def _member(laws: PriorSet, z: FloatArray) -> FloatArray:
    """A law of the set near the one that a point of the cone over it is a multiple of."""
    measure = laws.polytope.parts @ z
    total = float(measure.sum())
    if total <= NO_MASS:
        return laws.worst_prior(np.arange(laws.size, dtype=float))
    return np.asarray(laws.nearby(measure / total), dtype=float)


SAME_LAW = 1e-9
"""By how much the prior of a design may differ from the law of X in the joint law."""


class SecretRequirement(RatioRequirement):
    """A bound on what outcomes tell of a secret S through X.

    Attributes:
        epsilon: in nats.
        secret: with its joint laws, of which the requirement holds for each.
    """

    def __init__(self, epsilon: float, secret: Secret) -> None:
        self.epsilon = nonnegative(epsilon, "epsilon", PrivacyError)
        if not isinstance(secret, Secret):
            raise PrivacyError(f"the secret is {secret!r:.60}: give a Secret(joint) of S and X")
        self.secret = secret

    def with_room(self, nats: float) -> SecretRequirement:
        if self.epsilon >= nats:
            return self
        other = copy(self)
        other.epsilon = nats
        return other

    def check(self, prior: Prior) -> None:
        """Raise where the letters differ, or the prior is that of none of the joint laws."""
        match_labels(
            self.secret.labels,
            prior.labels,
            "the letters of the joint law",
            "those of the prior",
            PrivacyError,
        )
        laws = self.secret.joint.sum(axis=1)
        if laws.shape[1] != prior.size:
            raise PrivacyError(f"the joint law is on {laws.shape[1]} letters, and the prior on {prior.size}")
        off = np.abs(laws - prior.pmf).max(axis=1)
        if off.min() > SAME_LAW:
            raise PrivacyError(
                f"the law of the data in the joint law differs from the prior by {off.min():.3g}: design for "
                "`secret.prior`"
            )

    def conditionals(self, exact: bool) -> list[list[tuple[Any, Any]]]:
        """For each joint law the rows P(X = . | S = s), and last that of X, each with its scale."""
        laws = self.secret.weights if exact else self.secret.joint
        return [[(row, row.sum()) for row in [*law, law.sum(axis=0)]] for law in laws]


class SecretPML(SecretRequirement):
    """epsilon-PML about a secret S: `P(y | s) <= e^epsilon P(y)` for each value s and outcome y.

    See `PML(epsilon, about=...)`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None

    @property
    def about(self) -> Secret:
        """The secret, as `PML` calls it."""
        return self.secret

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r})"

    @property
    def limit(self) -> str:
        return "_".join(["pml_about", *self.secret.name.removeprefix("the ").split()])

    def ratios(self, weights: Any) -> Ratios:
        above, below = [], []
        for *given, mean in self.conditionals(weights.dtype == object):
            above += given
            below += [mean] * len(given)
        return ratios_of(above, below, [self.epsilon] * len(above))


class Pufferfish(SecretRequirement):
    """epsilon-Pufferfish: `P(y | s) <= e^epsilon P(y | s')` for the pairs of values of a secret, and each y.

    Args:
        epsilon: in nats.
        secret: a `Secret` with the joint law of (S, X), or several.
        pairs: pairs (s, s') of values that must not be told apart, each meant both ways; left out, all.

    Raises:
        PrivacyError: epsilon is negative, or a pair is not two of the secret's values.

    Source: [kifer2014pufferfish, Definition 3.4].

    Examples:
        >>> import math
        >>> from pmlopt import Secret
        >>> secret = Secret([[0.25, 0.25], [0.0, 0.5]])
        >>> released = [[0.75, 0.25], [0.25, 0.75]]  # P(y | s) is (1/2, 1/2) and (1/4, 3/4)
        >>> round(math.exp(Pufferfish(1.0, secret).level([0.25, 0.75], released)), 12)
        2.0
    """

    name: ClassVar[str] = "pufferfish"
    epsilon: float
    secret: Secret
    pairs: tuple[tuple[Label, Label], ...]

    def __init__(
        self, epsilon: float, secret: Secret, pairs: Iterable[tuple[Label, Label]] | None = None
    ) -> None:
        super().__init__(epsilon, secret)
        places = {value: place for place, value in enumerate(secret.values)}
        if pairs is None:
            values = secret.values
            self.pairs = tuple((values[s], values[t]) for s in range(len(values)) for t in range(s))
        else:
            self.pairs = tuple((*pair,) for pair in pairs)
        for pair in self.pairs:
            if len(pair) != 2 or any(value not in places for value in pair):
                raise PrivacyError(f"the pair {pair!r} is none of the secret's values {few(secret.values)}")
            if pair[0] == pair[1]:
                raise PrivacyError(
                    f"the pair {pair!r} is one value twice, which protects nothing: give two values that "
                    "must not be told apart"
                )
        self._places = [(places[s], places[t]) for s, t in self.pairs]
        if not self.pairs:
            raise PrivacyError("there is no pair of values to protect: a secret needs two values or more")

    def ratios(self, weights: Any) -> Ratios:
        both = [*self._places, *((t, s) for s, t in self._places)]
        laws = self.conditionals(weights.dtype == object)
        above = [law[s] for law in laws for s, _ in both]
        below = [law[t] for law in laws for _, t in both]
        return ratios_of(above, below, [self.epsilon] * len(above))

    def __repr__(self) -> str:
        return f"Pufferfish(epsilon={self.epsilon}, {self.secret!r})"


class RobustSecretPML(Requirement):
    """epsilon-PML about a secret S for every joint law of a set: `Q(y | s) <= e^epsilon Q(y)` for all Q.

    See `PML(epsilon, about=..., over=...)`, which is the public name. With the extreme means of each column
    as variables, `M_s <= e^epsilon min_w [w(s) M_s + sum_(t != s) w(t) m_t]` is linear where the sets are
    polytopes: an M_s that is too large or an m_t that is too small never helps.

    Attributes:
        epsilon: in nats.
        secret: with one joint law, which is that of the design.
        over: the joint laws.
    """

    name: ClassVar[str] = "pml"
    is_form: ClassVar[bool] = True

    def __init__(self, epsilon: float, secret: Secret, over: JointLaws) -> None:
        self.nominal = SecretPML(epsilon, secret)
        self.epsilon, self.secret, self.over = self.nominal.epsilon, secret, over
        if over.law.size != len(secret.values):
            raise PrivacyError(
                f"`over` is of a secret of {over.law.size} values, and this one has {len(secret.values)}"
            )
        over.law.check_letters(tuple(secret.values), "the law of the secret")
        for laws in over.conditionals:
            laws.check_letters(tuple(secret.labels), "the joint law")
        over.check_secret(secret)

    @property
    def about(self) -> Secret:
        """The secret, as `PML` calls it."""
        return self.secret

    @property
    def limits(self) -> dict[str, float]:
        return self.nominal.limits

    @property
    def scope(self) -> str:
        return self.over.scope

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        p, m = paired(prior, mechanism)
        self.nominal.check(p)
        largest = float(self.over.ratios(m.matrix[:, m.support]).max())
        return dict.fromkeys(self.limits, math.log(largest))

    def declare(self, prior: Prior, mechanism: cp.Expression, law: cp.Variable) -> Declared:
        import cvxpy as cp

        self.nominal.check(prior)
        n, shape = prior.size, (len(self.over.conditionals), mechanism.shape[1])
        top = cp.Variable((1, shape[1]), nonneg=True, name="column_maximum")
        least, most, peak = (
            cp.Variable(shape, nonneg=True, name=name)
            for name in ("least_means", "largest_means", "peak_means")
        )
        depth = cp.Variable((1, shape[1]), nonneg=True, name="column_depth")
        flipped: Any = np.ones((n, 1)) @ top - mechanism  # the least mean of it is top less the largest
        found = {
            "column_maximum": mechanism <= np.ones((n, 1)) @ top,
            "column_depth": flipped <= np.ones((n, 1)) @ depth,
        }
        brought = {
            "column_maximum": top, "column_depth": depth,
            "least_means": least, "largest_means": most, "peak_means": peak,
        }  # fmt: skip
        keep = below(math.exp(-min(self.epsilon, 700.0)))
        for s, laws in enumerate(self.over.conditionals):
            low, high = laws.declare(mechanism, top), laws.declare(flipped, depth)
            rows = [least[[t]] if t != s else most[[s]] for t in range(shape[0])]
            means: Any = cp.vstack(rows)
            outcome = self.over.law.declare(means, peak[[s]])
            found |= {
                f"least_mean_{s}": least[[s]] <= low.value,
                f"largest_mean_{s}": most[[s]] >= top - high.value,
                f"peak_mean_{s}": means <= np.ones((shape[0], 1)) @ peak[[s]],
                f"pml_about_{s}": keep * most[[s]] <= outcome.value,
            }
            for name, one in ((f"low_{s}", low), (f"high_{s}", high), (f"outcome_{s}", outcome)):
                more, variables = _named(one, name)
                found |= more
                brought |= variables
        return Declared(found, brought)

    def auxiliary(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        top = matrix.max(axis=0, keepdims=True)
        least, most, unit = self.over.means(matrix)
        found = {
            "column_maximum": top, "column_depth": (top - matrix).max(axis=0, keepdims=True),
            "least_means": least / unit, "largest_means": most / unit,
        }  # fmt: skip
        peaks = []
        for s, laws in enumerate(self.over.conditionals):
            means = least / unit
            means[s] = most[s] / unit
            peaks.append(means.max(axis=0))
            for name, values in ((f"low_{s}", laws.auxiliary(matrix)),
                                 (f"high_{s}", laws.auxiliary(top - matrix)),
                                 (f"outcome_{s}", self.over.law.auxiliary(means))):  # fmt: skip
                found |= {f"{name}_{key}": value for key, value in values.items()}
        return {**found, "peak_means": np.array(peaks)}

    def excess(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        least, most, _ = self.over.means(matrix)
        sums, unit = self.over.outcome_sums(least, most)
        return (most * unit - power(min(self.epsilon, 700.0)) * sums).max(axis=0)

    def relaxation(self, prior: Prior, gains: FloatArray) -> float:
        return largest_gain(self.over, math.exp(-min(self.epsilon, 700.0)), prior.pmf, gains)

    def columns(self, prior: Prior) -> Ratios:
        raise PrivacyError(
            "the columns within PML about a secret for every joint law of a set have no list of extreme "
            "ones: take an expected gain or loss, or give the Secret a few joint laws in place of the set"
        )

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r}, over={self.over!r})"


def _named(one: LeastMean, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The constraints and variables of a least mean, under names that are their own."""
    return (
        {f"{name}_{key}": constraint for key, constraint in one.constraints.items()},
        {f"{name}_{key}": variable for key, variable in one.variables.items()},
    )
