"""Leakage about a secret correlated with the data: PML about it, and Pufferfish privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.argument_checks import check_same_letters
from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    abbreviate,
    bound_sum_rounding,
    check_nonnegative,
)
from pmlopt.data.mechanism import Mechanism, MechanismLike, check_labels_match, pair_with_prior
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.secret import Secret
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import RatioBounds, make_ratio_bounds
from pmlopt.model.privacy.requirement import GUESSING_MEANING, CvxpyConstraints, Requirement
from pmlopt.model.privacy.violations import describe_largest_leak
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.joint_measures import BestJointMeasures
from pmlopt.model.uncertainty.prior_set import (
    ZERO_MASS_ATOL,
    LinearRows,
    PriorPolytope,
    PriorSet,
    require_form,
)
from pmlopt.solvers.solver_result import tighten_factor


def check_secret_prior(secret: Secret, prior: Prior) -> None:
    """Raise an error where a secret's letters or joint laws do not match the prior."""
    check_labels_match(
        secret.labels,
        prior.labels,
        "the letters of the joint law",
        "those of the prior",
        PrivacyError,
    )
    # (L, N): the law of the data under each joint law
    laws = secret.joint.sum(axis=1)
    letters = laws.shape[1]
    check_same_letters(letters, "the joint law is", prior.size, "the prior", PrivacyError)
    off = np.abs(laws - prior.pmf).max(axis=1)
    # By how much the prior of a design may differ from the law of X in the joint law.
    if off.min() > 1e-9:
        raise PrivacyError(
            f"the law of the data in the joint law differs from the prior by {off.min():.3g}: design for "
            "`secret.prior`"
        )


def make_secret_limit_name(secret: Secret) -> str:
    """Return the display name of a PML limit about a secret."""
    return "_".join(["pml_about", *secret.name.removeprefix("the ").split()])


class SecretRequirement(RatioRequirement):
    """The base of leakage limits about a secret S that depends on X.

    Attributes:
        epsilon: in nats.
        secret: with its joint laws, of which the requirement holds for each.
    """

    def __init__(self, epsilon: float, secret: Secret) -> None:
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        if not isinstance(secret, Secret):
            raise PrivacyError(f"the secret is {secret!r:.60}: give a Secret(joint) of S and X")
        self.secret = secret

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        check_secret_prior(self.secret, prior)

    def _describe_leaks(
        self, mechanism: Mechanism, compared: Callable[[FloatArray], FloatArray]
    ) -> str:
        """Describe the value that an outcome reveals most, beside what the rows given values are compared
        with.
        """
        joint = self.secret.joint[0]
        given = joint @ mechanism.matrix / joint.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            leaks = np.log(given / compared(given))
        return describe_largest_leak(mechanism, leaks, self.secret.values, self.epsilon)

    def conditionals(self, exact: bool) -> list[list[tuple[Any, Any]]]:
        """Return each joint law's conditional rows P(X | S = s), and the law of X, with their scales."""
        laws = self.secret.weights if exact else self.secret.joint
        return [[(row, row.sum()) for row in [*law, law.sum(axis=0)]] for law in laws]


class SecretPML(SecretRequirement):
    """The requirement `P(y | s) <= e^epsilon P(y)` for each value s of a secret (PML about it).

    See `PML(epsilon, about=...)`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = GUESSING_MEANING
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None

    @property
    def about(self) -> Secret:
        """Return the secret."""
        return self.secret

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r})"

    @property
    def limit(self) -> str:
        """Return the display name of the leakage limit."""
        return make_secret_limit_name(self.secret)

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the value that it reveals."""
        return self._describe_leaks(mechanism, lambda _: prior.pmf @ mechanism.matrix)

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        above = []
        below = []
        for *given, mean in self.conditionals(weights.dtype == object):
            above += given
            below += [mean] * len(given)
        return make_ratio_bounds(above, below, [self.epsilon] * len(above))


class Pufferfish(SecretRequirement):
    """The requirement `P(y | s) <= e^epsilon P(y | s')` for pairs of secret values (Pufferfish).

    Args:
        epsilon: in nats.
        secret: a `Secret` with the joint law of (S, X), or several.
        pairs: pairs (s, s') of values that must not be distinguishable, each meant both ways; left out, all.

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
    meaning: ClassVar[str] = (
        "No outcome distinguishes two values of the secret by more than a factor of e^{limit}."
    )
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
                raise PrivacyError(
                    f"the pair {pair!r} is none of the secret's values {abbreviate(secret.values)}"
                )
            if pair[0] == pair[1]:
                raise PrivacyError(
                    f"the pair {pair!r} is one value twice, which protects nothing: give two values that "
                    "must not be distinguished"
                )
        self._places = [(places[s], places[t]) for s, t in self.pairs]
        if not self.pairs:
            raise PrivacyError(
                "there is no pair of values to protect: a secret needs two values or more"
            )

    def ratios(self, weights: Any) -> RatioBounds:
        # the ratio is bounded both ways, and the file names each pair once
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        both = [*self._places, *((t, s) for s, t in self._places)]
        laws = self.conditionals(weights.dtype == object)
        above = [law[s] for law in laws for s, _ in both]
        below = [law[t] for law in laws for _, t in both]
        return make_ratio_bounds(above, below, [self.epsilon] * len(above))

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the value that it reveals."""
        return self._describe_leaks(mechanism, lambda given: given.min(axis=0))

    def __repr__(self) -> str:
        return f"Pufferfish(epsilon={self.epsilon}, {self.secret!r})"


def _get_rows(laws: PriorSet) -> PriorPolytope:
    """Return a set of laws as linear inequalities; raise an error for a set without them."""
    return require_form(laws.polytope(), laws, "designs about a secret", "no polytope")


class RobustSecretPML(Requirement):
    """The requirement `Q(y | s) <= e^epsilon Q(y)` for a secret and every joint law Q of a set.

    See `PML(epsilon, about=..., over=...)`, which is the public name. With the extreme means of each column
    as variables, `M_s <= e^epsilon min_w [w(s) M_s + sum_(t != s) w(t) m_t]` is convex, and linear where the
    sets are polytopes: an M_s that is too large or an m_t that is too small never helps.

    Attributes:
        epsilon: in nats.
        secret: with one joint law, which is that of the design.
        over: the joint laws.
    """

    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = GUESSING_MEANING
    unsupported_hint: ClassVar[str] = (
        "take an expected gain or loss, or give a few joint laws in place of the set"
    )
    is_form: ClassVar[bool] = True

    def __init__(self, epsilon: float, secret: Secret, over: JointLaws) -> None:
        self.nominal = SecretPML(epsilon, secret)
        self.epsilon = self.nominal.epsilon
        self.secret = secret
        self.over = over
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
        """Return the secret."""
        return self.secret

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""
        return self.nominal.limits

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return self.over.scope

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""
        p, m = pair_with_prior(prior, mechanism)
        self.nominal.check(p)
        largest = float(self.over.max_ratios(m.matrix[:, m.support]).max())
        return dict.fromkeys(self.limits, math.log(largest))

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement as cvxpy constraints on an (N, M) variable and its (1, M) output law."""
        self.nominal.check(prior)
        factor = tighten_factor(math.exp(-min(self.epsilon, 700.0)))
        if self._has_polytopes:
            return CvxpyConstraints(*self._build_rows(factor).to_cvxpy(mechanism))
        return self._declare_means(mechanism, factor)

    def _declare_means(self, mechanism: cp.Expression, factor: float) -> CvxpyConstraints:
        """Return the requirement by the concave least means over each set, of which some are no polytopes."""
        s = self.over.law.size
        shape = (1, mechanism.shape[1])
        top = cp.Variable(shape, name="column_maximum")
        low = cp.Variable((s, shape[1]), name="least_means")
        high = cp.Variable((s, shape[1]), name="max_means")
        every = np.ones((mechanism.shape[0], 1)) @ top
        rules: dict[str, cp.Constraint] = {"column_maximum": mechanism <= every}
        variables = {"column_maximum": top, "least_means": low, "max_means": high}

        def get_least_mean(one: PriorSet, column: cp.Expression, place: str) -> cp.Expression:
            # sets may take the largest entry into account: it is that of the column itself
            largest = cp.Variable(shape, name="largest_entry")
            found = one.to_cvxpy(column, largest)
            rules[f"largest_{place}"] = column <= np.ones((column.shape[0], 1)) @ largest
            variables[f"largest_{place}"] = largest
            rules.update({f"{name}_{place}": rule for name, rule in found.constraints.items()})
            variables.update({f"{name}_{place}": own for name, own in found.variables.items()})
            return found.value

        for value, one in enumerate(self.over.conditionals):
            least = get_least_mean(one, mechanism, f"low_{value}")
            below = get_least_mean(one, every - mechanism, f"high_{value}")
            rules[f"least_mean_{value}"] = low[[value]] <= least
            rules[f"max_mean_{value}"] = top - below <= high[[value]]
            means = cp.vstack([(high if t == value else low)[[t]] for t in range(s)])
            outcome = get_least_mean(self.over.law, means, f"outcome_{value}")
            rules[f"outcome_{value}"] = factor * high[[value]] <= outcome
        return CvxpyConstraints(rules, variables)

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""
        rows = self.linear_rows(prior)
        if rows is not None:
            return {"numbers": rows.find_numbers(matrix)}
        top = matrix.max(axis=0, keepdims=True)
        low, high, _ = self.over.compute_extreme_means(matrix)
        found = {"column_maximum": top, "least_means": low, "max_means": high}
        for value, one in enumerate(self.over.conditionals):
            means = low.copy()
            means[value] = high[value]
            for place, own, column in (
                ("low", one, matrix),
                ("high", one, top - matrix),
                ("outcome", self.over.law, means),
            ):
                values = {
                    **own.auxiliary_values(column),
                    "largest": column.max(axis=0, keepdims=True),
                }
                found |= {f"{name}_{place}_{value}": numbers for name, numbers in values.items()}
        return found

    @cached_property
    def _has_polytopes(self) -> bool:
        """Return whether all sets are polytopes."""
        return all(one.polytope() is not None for one in (self.over.law, *self.over.conditionals))

    @cached_property
    def _best_measures(self) -> BestJointMeasures:
        """Return the convex programs of the multipliers over sets that are no polytopes."""
        return BestJointMeasures(self.over)

    @cached_property
    def _member_slack(self) -> float:
        """Return how far laws that stand for those of multipliers may be outside of their sets, in l1."""
        return max(one.member_slack for one in (self.over.law, *self.over.conditionals))

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        # exact for whole numbers: both sides are scaled by one unit, and no quotient is formed
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds."""
        min_means, max_means, _ = self.over.compute_extreme_means(matrix)
        sums, unit = self.over.min_outcome_sums(min_means, max_means)
        return (max_means * unit - power(min(self.epsilon, 700.0)) * sums).max(axis=0)

    def linear_rows(self, prior: Prior) -> LinearRows | None:
        """Return the allowed columns as linear inequalities; None where a set is no polytope."""
        if not self._has_polytopes:
            return None
        return self._build_rows(math.exp(-min(self.epsilon, 700.0)))

    def _build_rows(self, exp_neg_epsilon: float) -> LinearRows:
        """Build the linear inequalities by LP duality over the polytopes of the set.

        The numbers are the least means m, the largest means M, and the multipliers of each extreme mean.
        """
        s = self.over.law.size
        n = self.over.conditionals[0].size
        law = _get_rows(self.over.law)
        given = [_get_rows(one) for one in self.over.conditionals]
        # for the least means, the largest ones, and the outcomes
        sets = [*given, *given, *[law] * s]
        ends = np.cumsum([2 * s, *(len(one.right) for one in sets)])
        column = []
        numbers = []
        for place, one in enumerate(sets):
            block = np.zeros((one.parts.shape[1], int(ends[-1])))
            block[:, ends[place] : ends[place + 1]] = -one.rows.T
            if place >= 2 * s:  # of the means m, but for M of the value itself
                value = place - 2 * s
                block[:, :s] = -one.parts.T
                block[:, [value, s + value]] = block[:, [s + value, value]]
            parts = np.zeros((one.parts.shape[1], n)) if place >= 2 * s else one.parts.T
            column.append(sparse.csr_array(-parts if place < s else parts))
            numbers.append(sparse.csr_array(block))
        # m, M and e^-epsilon M next to the part of the multipliers
        means = np.zeros((3 * s, int(ends[-1])))
        means[:, : 2 * s] = np.vstack([np.eye(2 * s), np.zeros((s, 2 * s))])
        means[s : 2 * s] *= -1
        means[2 * s :, s : 2 * s] = exp_neg_epsilon * np.eye(s)
        for place, one in enumerate(sets):
            means[place, ends[place] : ends[place + 1]] = one.right
        least = np.concatenate(
            [np.zeros(2 * s), *(np.where(one.equal, -np.inf, 0.0) for one in sets)]
        )
        column.append(sparse.csr_array((3 * s, n)))
        return LinearRows(
            sparse.vstack(column), sparse.vstack([*numbers, sparse.csr_array(means)]), least
        )

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute the dual bound from weights w_s >= 0 and joint laws Q_s of the set.

        `max_x [g(x) + sum_s w_s (Q_s(x) - e^-epsilon Q_s(x | s)) / p(x)]`: columns have
        `e^-epsilon Q_s(. | s) v <= Q_s v`. Multipliers of the rows are weights times laws, and the nearest
        laws of the sets take their place.
        """
        p = prior.pmf
        exp_neg_epsilon = math.exp(-min(self.epsilon, 700.0))
        best = -np.inf
        proofs = self._list_multipliers(p, gains, exp_neg_epsilon)
        for column, (weights, measures) in zip(gains.T, proofs, strict=True):
            outcomes, given = self._build_laws(weights, measures)
            priced = weights @ (outcomes - exp_neg_epsilon * given) / p
            sizes = np.abs(column) + weights @ (outcomes + exp_neg_epsilon * given) / p
            rounding = bound_sum_rounding(self.over.law.size * len(p), 1.0) * sizes
            # of a joint law the law of the secret and those given its values, and another given one
            rounding = rounding + 3 * self._member_slack * float(weights.sum()) / p
            best = max(best, float((column + priced + rounding).max()))
        return best

    def _list_multipliers(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> list[tuple[FloatArray, list[FloatArray]]]:
        """List for each of (N, M) gains the (S,) weights, and the measures of the laws given each value, of
        these at their largest means, and of the law of the secret for each value.
        """
        s = self.over.law.size
        if not self._has_polytopes:
            found = self._best_measures.find_measures(p, gains, exp_neg_epsilon)
            if found is None:  # weights of zero prove the largest gain
                return [(np.zeros(s), [np.ones(1)] * (3 * s))] * gains.shape[1]
            weights, measures = found
            weights = np.where(weights > ZERO_MASS_ATOL, weights, 0.0)
            return [(weights[:, y], [one[:, y] for one in measures]) for y in range(gains.shape[1])]
        scale = float(np.abs(gains).max()) or 1.0
        multipliers = scale * self._build_rows(exp_neg_epsilon).find_multipliers(p, gains / scale)
        law = self.over.law
        given = self.over.conditionals
        rows = [_get_rows(one).parts for one in (*given, *given, *[law] * s)]
        ends = np.cumsum([0, *(parts.shape[1] for parts in rows)])
        return [
            (
                np.where(z[-s:] > ZERO_MASS_ATOL, z[-s:], 0.0),
                [own @ z[ends[k] : ends[k + 1]] for k, own in enumerate(rows)],
            )
            for z in multipliers.T
        ]

    def _build_laws(
        self, weights: FloatArray, measures: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Build laws of the sets near measures: the (S, N) laws of the data for each value, and those given
        it; zeros where the weight is 0.
        """
        s = self.over.law.size
        n = self.over.conditionals[0].size
        outcomes = np.zeros((s, n))
        high = np.zeros((s, n))
        if not weights.any():
            return outcomes, high
        sets = (*self.over.conditionals, *self.over.conditionals)
        laws = [
            one.find_members(part[:, None])[:, 0] for one, part in zip(sets, measures, strict=False)
        ]
        low = np.array(laws[:s])
        high = np.array(laws[s:])
        for k in np.flatnonzero(weights):
            rows = low.copy()
            rows[k] = high[k]
            outcomes[k] = self.over.law.find_members(measures[2 * s + k][:, None])[:, 0] @ rows
        return outcomes, high

    def __repr__(self) -> str:
        return f"PML({self.epsilon}, about={self.secret!r}, over={self.over!r})"
