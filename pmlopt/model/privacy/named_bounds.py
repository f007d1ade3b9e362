"""Named leakage bounds: PML, also with budgets per letter, LDP, LIP and maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from pmlopt.core.numbers.arrays import abbreviate, check_nonnegative
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.mean_bounds import ComparedMeans, MeanBound, MeanBounds
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import RatioBounds, make_mean_ratios
from pmlopt.model.privacy.requirement import (
    GUESSING_MEANING,
    JOINT_BOUND_HINT,
    FieldChecks,
    Requirement,
    check_exponent,
)
from pmlopt.model.privacy.violations import (
    compute_log_lifts,
    describe_largest_leak,
    describe_largest_ratio,
)
from pmlopt.model.uncertainty.joint_laws import JointLaws
from pmlopt.model.uncertainty.prior_set import (
    NO_CELLS,
    SYMMETRIC_DESIGNS,
    PriorSet,
    check_prior_set,
    require_form,
)

if TYPE_CHECKING:
    from pmlopt.model.privacy.column_cost import ColumnCost
    from pmlopt.model.privacy.secret_leakage import RobustSecretPML, SecretPML
    from pmlopt.model.privacy.side_information import Known, SideInformationPML


class LetterBudgets(RatioRequirement):
    """A bound on the information density of each letter: `P[x,y] <= e^(epsilon_x) q[y]` for each outcome y.

    See `PML([...])`, which is the public name.
    """

    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = "Each letter has a budget, and no outcome makes it likelier by more."
    is_form: ClassVar[bool] = True
    over: ClassVar[None] = None
    about: ClassVar[None] = None

    def __init__(self, epsilon: Sequence[float]) -> None:
        self.epsilon = tuple(check_nonnegative(value, f"the budget of letter {place}", PrivacyError)
                             for place, value in enumerate(epsilon))  # fmt: skip
        if not self.epsilon:
            raise PrivacyError("there is no budget: give one for each letter")

    def __repr__(self) -> str:
        return f"PML({list(self.epsilon)})"

    @property
    def limit(self) -> str:
        """Return the display name of the leakage limit."""
        return "pml_above_budget"

    def on_cells(self, cells: LetterCells) -> RatioRequirement:
        """Return the requirement with one budget per orbit of letters."""
        if len(self.epsilon) == len(cells.orbits):
            return LetterBudgets([self.epsilon[orbit] for orbit in cells.letters.tolist()])
        if cells.classes is None:
            raise PrivacyError(
                f"there are {len(self.epsilon)} budgets: give one for each of the {len(cells.orbits)} orbits "
                "of letters"
            )
        return super().on_cells(cells)

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        if prior.size != len(self.epsilon):
            raise PrivacyError(
                f"there are {len(self.epsilon)} budgets, and the prior has {prior.size} letters "
                f"{abbreviate(prior.labels)}: give one budget for each"
            )

    def ratios(self, weights: Any) -> RatioBounds:
        # no letter reveals more than -log(min p); a little above, so that nothing that binds is lost
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        max_exponent = math.log(sum(weights)) - math.log(min(weights)) + 1e-6
        return make_mean_ratios(weights, np.minimum(np.array(self.epsilon), max_exponent))


@dataclass(frozen=True, init=False)
class PML(MeanBounds):
    """epsilon-PML: `P[x,y] <= e^epsilon q[y]` for all letters x and outcomes y, with q = p P.

    Over a set of priors it holds for each of them: `max_x P[x,y] <= e^epsilon min_Q sum_x Q[x] P[x,y]`.

    Budgets of single outcomes are `constraints.OutcomeLeakage({"yes": 0.2})` next to it: a requirement is on
    columns, and knows no labels of outputs.

    About a secret S correlated with the data it is `P(y | s) <= e^epsilon P(y)` for each value s of S.

    Args:
        epsilon: the bound on the pointwise maximal leakage of every outcome, in nats; past
            -log(min p) it binds nothing under one prior. Or a budget for each letter x, the bound on
            `log P[x,y] / q[y]`; these are compared with 0 after they were taken off.
        over: the priors for which it must hold, or about a secret the `JointLaws`; left out, the law of the
            design only.
        about: the `Secret` that is protected in place of the data.
        known: attributes that an adversary may know already, where letters are tuples of attributes: their
            positions from 0, or "any". The bound holds given each value of each subset of them.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite, `over` is no set of priors, `about` is no secret,
            forms are given together that do not go together, or `over` does not fit `about`.

    Source: [grosse2025empirical, Definition 2]; over a set, [grosse2025empirical, eq. (1)]; given known
    attributes, [lopuhaa2020viewpoint].

    Examples:
        >>> requirement = PML(math.log(1.5))
        >>> requirement.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
        >>> requirement.holds([0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]])
        False
        >>> from pmlopt import L1Ball
        >>> near = PML(math.log(1.5), over=L1Ball([0.5, 0.5], 0.2))
        >>> near.holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        False
        >>> PML([math.log(1.4), math.log(1.2)]).holds([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]])
        False
    """

    epsilon: float
    over: PriorSet | None = None
    name: ClassVar[str] = "pml"
    meaning: ClassVar[str] = GUESSING_MEANING
    about: ClassVar[None] = None

    # The class of the object for pyright, which takes it from here; mypy takes it for PML.
    @overload
    def __new__(
        cls, epsilon: float = ..., over: PriorSet | None = ..., about: None = ..., known: None = ...
    ) -> Self: ...
    @overload
    def __new__(  # type: ignore[misc]
        cls, epsilon: Sequence[float], over: None = ..., about: None = ..., known: None = ...
    ) -> LetterBudgets: ...
    @overload
    def __new__(  # type: ignore[misc]
        cls, epsilon: float, over: None = ..., *, about: Secret, known: None = ...
    ) -> SecretPML: ...
    @overload
    def __new__(  # type: ignore[misc]
        cls, epsilon: float, over: JointLaws, about: Secret, known: None = ...
    ) -> RobustSecretPML: ...
    @overload
    def __new__(  # type: ignore[misc]
        cls,
        epsilon: float,
        over: None = ...,
        about: Secret | None = ...,
        *,
        known: Known | Sequence[int],
    ) -> SideInformationPML: ...

    def __new__(
        cls,
        epsilon: float | Sequence[float] = 0.0,
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
        known: Known | Sequence[int] | None = None,
    ) -> Any:
        """Create the matching subclass: a plain `PML` for one epsilon about the data."""
        if hasattr(epsilon, "is_dcp"):
            raise PrivacyError(
                f"epsilon is {epsilon!r:.60}, of cvxpy: give a number, or take "
                "privacy.parametric_constraints, on a matrix of variables"
            )
        if np.ndim(epsilon) > 0 and (over is not None or about is not None):
            raise PrivacyError(
                "budgets for letters, `over` and `about` are forms of PML: give one of them"
            )
        if known is not None:
            from pmlopt.model.privacy.side_information import build_pml_given_known

            return build_pml_given_known(epsilon, known, over, about)
        if isinstance(over, JointLaws) != (over is not None and about is not None):
            raise PrivacyError(
                "PML about a secret is over a set of joint laws, JointLaws.confidence(secret, delta) or "
                "JointLaws.ball(secret, radius), and without one over a set of priors: give `over` and "
                "`about` that fit"
            )
        if about is not None:
            from pmlopt.model.privacy.secret_leakage import RobustSecretPML, SecretPML

            level = float(np.asarray(epsilon))
            if isinstance(over, JointLaws):
                return RobustSecretPML(level, about, over)
            return SecretPML(level, about)
        return (
            LetterBudgets(list(np.asarray(epsilon))) if np.ndim(epsilon) else super().__new__(cls)
        )

    def __init__(
        self,
        epsilon: float | Sequence[float],
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
        known: Known | Sequence[int] | None = None,
    ) -> None:
        assert about is None  # `__new__` has made another object, as it has with `known`
        assert known is None
        object.__setattr__(self, "epsilon", check_nonnegative(epsilon, "epsilon", PrivacyError))  # type: ignore[arg-type]
        if over is not None:
            check_prior_set(over)
        object.__setattr__(self, "over", over)

    @classmethod
    def from_fields(
        cls,
        epsilon: float | tuple[float, ...],
        over: PriorSet | JointLaws | None = None,
        about: Secret | None = None,
    ) -> Requirement:
        """Build PML, in any of its forms, from a saved file's fields."""
        return cls(epsilon, over, about)

    def on_cells(self, cells: LetterCells) -> PML:
        """Return the requirement on columns that are constant on orbits ("cells") of letters."""
        if self.over is None:
            return self
        found = self.over.on_cells(cells)
        return PML(self.epsilon, require_form(found, self.over, SYMMETRIC_DESIGNS, NO_CELLS))

    def find_plain_pml_level(self) -> float | None:
        """Return the level; None over a set of priors."""
        return self.epsilon if self.over is None else None

    @property
    def keeps_averages(self) -> bool:
        """Return whether averages over letters and outputs that look alike meet it where the entries do."""
        return self.over is None

    @cached_property
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """
        return (
            MeanBound(
                "pml",
                ComparedMeans.LETTERS,
                ComparedMeans.MEAN if self.over is None else self.over,
                self.epsilon,
            ),
        )

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the letter that it reveals."""
        matrix = mechanism.matrix
        leaks = compute_log_lifts(prior, mechanism)
        if self.over is not None:
            # over a set the largest leakage is that of the likeliest letters of an output
            from pmlopt.model.uncertainty.sensitivity import pointwise_capacity

            largest = pointwise_capacity(self.over, mechanism)
            leaks = np.where(matrix == matrix.max(axis=0), largest, -np.inf)
        return describe_largest_leak(mechanism, leaks, prior.labels, self.epsilon)

    def priors(self, prior: Prior) -> PriorSet | None:
        """Return the set of priors of the requirement; None for the given prior only.

        Raises:
            PrivacyError: they are on other letters than the given one.
        """
        least = self.bounds_for(prior)[0].smaller
        return least if isinstance(least, PriorSet) else None


@dataclass(frozen=True)
class LDP(MeanBounds):
    """epsilon-LDP: `P[x,y] <= e^epsilon P[x',y]` for all x, x', y; it is epsilon-PML for every prior.

    Args:
        epsilon: the bound on the log-ratio, in nats.

    Raises:
        PrivacyError: epsilon is negative, NaN, infinite, or past 700, where e^epsilon is no float.

    Source: [grosse2025empirical, Remark 3] (LDP is PML for the set of all priors).

    Examples:
        >>> import math
        >>> LDP(math.log(3)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "ldp"
    field_checks: ClassVar[FieldChecks] = {"epsilon": check_exponent}
    is_prior_free: ClassVar[bool] = True
    meaning: ClassVar[str] = (
        "No outcome is more than e^{limit} times as likely for one person's data as for another's."
    )

    @property
    def keeps_averages(self) -> bool:
        """Return whether averages over letters and outputs that look alike meet it where the entries do."""
        return True

    @cached_property
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """
        return (MeanBound("ldp", ComparedMeans.LETTERS, ComparedMeans.LETTERS, self.epsilon),)

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the two letters that it tells apart."""
        return describe_largest_ratio(mechanism, prior.labels, self.epsilon)


@dataclass(frozen=True)
class LIP(MeanBounds):
    """Local information privacy: `-lower <= i(x; y) <= upper`, that is `e^-lower q <= P <= e^upper q`.

    Args:
        lower: the bound on what an outcome may exclude, in nats.
        upper: the bound on what an outcome may reveal, in nats; the same bound as PML's.

    Raises:
        PrivacyError: a bound is negative, NaN, infinite, or past 700.

    Source: [jiang2021context]; with two bounds, [zarrabian2022asymmetric].

    Examples:
        >>> import math
        >>> LIP(math.log(2), math.log(1.5)).holds([0.5, 0.5], [[0.7, 0.3], [0.3, 0.7]])
        True
    """

    lower: float
    upper: float
    name: ClassVar[str] = "lip"

    def find_single_level(self) -> float | None:
        """Return the level where both bounds are the same, in nats; else None."""
        return self.lower if self.lower == self.upper else None

    def with_epsilon(self, nats: float) -> LIP:
        """Return LIP with a level as both bounds."""
        return LIP(nats, nats)

    def __post_init__(self) -> None:
        for side, one_sided in (("lower", "PML(upper)"), ("upper", "PMC(lower)")):
            if getattr(self, side) == math.inf:
                raise PrivacyError(f"the {side} bound is infinite: without it this is {one_sided}")
            bound = check_exponent(getattr(self, side), f"the {side} bound", PrivacyError)
            object.__setattr__(self, side, bound)

    @property
    def meanings(self) -> tuple[str, ...]:
        """Return the meaning of each limit as text."""
        sides = (("less", self.lower), ("more", self.upper))
        return tuple(
            f"No outcome makes anything {word} likely by a factor of more than e^{limit:.6g}."
            for word, limit in sides
        )

    @property
    def keeps_averages(self) -> bool:
        """Return whether averages over letters and outputs that look alike meet it where the entries do."""
        return True

    @cached_property
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """
        return (
            MeanBound("lip_lower", ComparedMeans.MEAN, ComparedMeans.LETTERS, self.lower),
            MeanBound("lip_upper", ComparedMeans.LETTERS, ComparedMeans.MEAN, self.upper),
        )

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the letter that it reveals."""
        leaks = compute_log_lifts(prior, mechanism)
        if leaks[:, mechanism.support].max() > self.upper:
            return describe_largest_leak(mechanism, leaks, prior.labels, self.upper)
        return describe_largest_leak(mechanism, -leaks, prior.labels, self.lower)


@dataclass(frozen=True)
class MaximalLeakage(MeanBounds):
    """Maximal leakage of at most epsilon, `sum_y max_x P[x,y] <= e^epsilon`: an average over outcomes.

    Args:
        epsilon: the bound in nats; past log(min(N, M)) it binds nothing.

    Raises:
        PrivacyError: epsilon is negative, NaN or infinite.

    Source: [issa2020operational, Theorem 1].

    Examples:
        >>> import math
        >>> MaximalLeakage(math.log(1.5)).holds([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
        True
    """

    epsilon: float
    name: ClassVar[str] = "maximal-leakage"
    field_checks: ClassVar[FieldChecks] = {"epsilon": check_nonnegative}
    is_prior_free: ClassVar[bool] = True
    unsupported_hint: ClassVar[str] = JOINT_BOUND_HINT
    meaning: ClassVar[str] = (
        "On average over outcomes, a guess becomes at most e^{limit} times as likely."
    )

    @cached_property
    def bounds(self) -> tuple[MeanBound, ...]:
        """Return the inequalities `larger mean <= e^epsilon smaller mean` on each column.

        At most one for each pair of means; several only between entries and the mean.
        """
        return (
            MeanBound("maximal_leakage", ComparedMeans.LETTERS, ComparedMeans.ROW, self.epsilon),
        )

    def column_cost(self, prior: Prior) -> ColumnCost:
        """Return the cost whose sum is bounded: the largest entry of a column."""
        from pmlopt.model.privacy.column_cost import LargestPieceCost

        max_cost = math.exp(min(self.epsilon, math.log(prior.size)))
        return LargestPieceCost(max_cost, False, np.eye(prior.size))

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most; all of them leak together."""
        first = mechanism.output_names[int(mechanism.matrix.max(axis=0).argmax())]
        return (
            f"all outcomes together leak {self.level(prior, mechanism):.6g} nats, most of it {first!r}, and "
            f"the limit is {self.epsilon:g}"
        )
