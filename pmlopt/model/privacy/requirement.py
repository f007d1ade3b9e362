"""The interface of privacy requirements: levels, constraints, and dual certificates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from operator import le
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from pmlopt.core.display import format_facts_html
from pmlopt.core.lazy_imports import cp, sparse
from pmlopt.core.numbers.arrays import MAX_EXPONENT, FloatArray, IntArray, check_nonnegative
from pmlopt.core.records.fields import Record
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import InputError, PrivacyError
from pmlopt.model.privacy.ratios import RatioBounds
from pmlopt.model.uncertainty.prior_set import LinearRows, PriorSet, require_form
from pmlopt.solvers.solver_result import tighten_factor
from pmlopt.solvers.structured.block_program import ColumnBlock

if TYPE_CHECKING:
    from pmlopt.model.privacy.column_cost import ColumnCost
    from pmlopt.model.uncertainty.columns import ColumnCone, Family

K = TypeVar("K")
V = TypeVar("V")

ExtremeColumns: TypeAlias = "tuple[Family, ...] | ColumnCone | RatioBounds"
"""Extreme columns of mean one: families of them, or those of a cone."""

Witness: TypeAlias = Mapping[str, FloatArray]
"""Arrays by name, from which a bound follows; see `Requirement.dual_certificate`."""


def check_certificate_array(certificate: Witness, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Validate an array of a dual certificate: finite, and of the right shape.

    Raises:
        PrivacyError: it is missing, or something else.
    """
    found = certificate.get(name)
    # lists in files have lost the other numbers
    if found is not None and np.size(found) == 0 and 0 in shape:
        return np.zeros(shape)
    if found is None or np.shape(found) != shape or not np.isfinite(found).all():
        raise PrivacyError(
            f"the proof of the bound needs the finite numbers {name!r} in the shape {shape}"
        )
    return np.asarray(found, dtype=np.float64)


def read_pair_weights(certificate: Witness, shape: tuple[int, int]) -> Any:
    """Read the (K, M) weights of pairs from a dual certificate: all of them, or those that are listed.

    Listed weights have the places of their pairs under "pairs", and those of their columns under "outputs".

    Returns:
        An array, or a sparse one where the weights are listed.

    Raises:
        PrivacyError: an array is missing or has another shape, or a place is none.
    """
    if "pairs" not in certificate:
        return check_certificate_array(certificate, "weights", shape)
    listed = np.shape(certificate["pairs"])
    names = ("pairs", "outputs", "weights")
    pairs, outputs, weights = (check_certificate_array(certificate, name, listed) for name in names)
    for name, places, count in (("pairs", pairs, shape[0]), ("outputs", outputs, shape[1])):
        if len(listed) != 1 or not ((places >= 0) & (places < count) & (places % 1 == 0)).all():
            raise PrivacyError(
                f"the proof of the bound lists weights, and its {name!r} are not whole numbers from 0 to "
                f"{count - 1}"
            )
    return sparse.csr_array((weights, (pairs.astype(int), outputs.astype(int))), shape=shape)


@dataclass(frozen=True)
class CvxpyConstraints:
    """The cvxpy form of a requirement: constraints and auxiliary variables by name."""

    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable] = field(default_factory=dict)


FieldChecks: TypeAlias = Mapping[str, Callable[[Any, str, type[InputError]], float]]
"""By field what returns a number in range, from a value, its name, and the class of the error."""

check_exponent = partial(check_nonnegative, most=MAX_EXPONENT)
"""Validate a level in nats whose exponential is a float."""


class Requirement(Record, ABC):
    """A convex limit on the leakage of a mechanism, met by every constant mechanism.

    The number and the constraint are twins: `holds` is true iff the matrix satisfies `to_cvxpy`.
    In addition there are the two things a proof needs: `violation`, the bound in arithmetic of any kind,
    and `support_function`, the support function that turns multipliers into a bound on the utility.
    """

    USER_NAMES: ClassVar[tuple[str, ...]] = (
        "constraints", "describe_violation", "holds", "level", "levels", "limits", "list_parts", "meanings",
        "name", "scope", "with_epsilon",
    )  # fmt: skip

    name: ClassVar[str]
    unsupported_hint: ClassVar[str] = "use PML, LDP or LIP"
    """What to do where its extreme columns are not listed."""
    meaning: ClassVar[str] = "The limit {limit} nats holds for the ratio that is named."
    """What the limit states, in a sentence for those who do not know the field."""
    is_prior_free: ClassVar[bool] = False
    """Whether its levels are those of the matrix, the same for every prior."""
    field_checks: ClassVar[FieldChecks] = {}
    """The check of each field that is a number of some range, such as `check_nonnegative`."""

    def __post_init__(self) -> None:
        for name, check in self.field_checks.items():
            object.__setattr__(self, name, check(getattr(self, name), name, PrivacyError))

    @property
    def meanings(self) -> tuple[str, ...]:
        """Return the meaning of each limit as text."""
        return tuple(
            self.meaning.replace("{limit}", f"{limit:.6g}") for limit in self.limits.values()
        )

    def for_prior(self, prior: Prior) -> Requirement:
        """Return the requirement for the letters of a prior, where it refers to labels."""
        return self

    @property
    @abstractmethod
    def limits(self) -> dict[str, float]:
        """Return the upper limits on the leakage levels by name, in nats."""

    def is_tight(self, prior: Prior) -> bool:
        """Return whether `support_function` is exact, so that the gap of a design can close."""
        return True

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        return ""

    @abstractmethod
    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute a mechanism's leakage levels in nats, by the names of `limits`."""

    def bound_levels(self, prior: Prior, mechanism: Mechanism) -> dict[str, float]:
        """Compute upper bounds on those levels, by name, whose error in floats has no known bound."""
        return {}

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement on an (N, M) variable and its (1, M) output law, in sparse form."""
        return CvxpyConstraints(*self._require_ratios(prior).to_cvxpy(mechanism, tighten_factor))

    def constraints(self, prior: PriorLike, mechanism: cp.Expression) -> list[cp.Constraint]:
        """Return the requirement as constraints on cvxpy variables of another problem.

        The caller states that entries are at least 0 and rows sum to one. The law of the output is a variable
        that comes with them, so that the constraints stay sparse; `certify` repairs what a solver returns.

        Args:
            prior: N letters.
            mechanism: (N, M), affine in your variables.

        Raises:
            PrivacyError: the matrix has another number of rows, or is not affine.

        Examples:
            >>> import cvxpy as cp
            >>> from pmlopt import PML
            >>> P = cp.Variable((2, 2), nonneg=True)
            >>> rules = [cp.sum(P, axis=1) == 1, *PML(0.2).constraints([0.5, 0.5], P)]
            >>> round(float(cp.Problem(cp.Maximize(cp.trace(P) / 2), rules).solve(solver="HIGHS")), 6)
            0.610701
        """
        known = as_prior(prior)
        if mechanism.ndim != 2 or mechanism.shape[0] != known.size or not mechanism.is_affine():
            raise PrivacyError(
                f"the mechanism is {mechanism!r:.80} of shape {mechanism.shape}: give an affine expression "
                f"with a row for each of {known.size} letters"
            )
        law = cp.Variable((1, mechanism.shape[1]), nonneg=True, name="output_law")
        declared = self.for_prior(known).to_cvxpy(known, mechanism, law)
        return [known.pmf[None, :] @ mechanism == law, *declared.constraints.values()]

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        ratios = self._require_ratios(prior)
        return {"products": ratios.compute_products(matrix)} if len(ratios.rows) else {}

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""

    def check_invariant(self, prior: Prior, moves: Sequence[IntArray]) -> None:
        """Raise a PrivacyError where a permutation of letters takes what is required to something else.

        Args:
            prior: N letters, which the permutations leave as they are.
            moves: permutations, each the (N,) positions to which letters go.
        """

    def list_parts(self) -> tuple[Requirement, ...]:
        """List the requirements that must all hold: itself, or those of a conjunction."""
        return (self,)

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        """Name the outcome that violates the requirement most, and the letter or value that it reveals.

        Examples:
            >>> from pmlopt import PML, Mechanism, Prior
            >>> flip = Mechanism([[0.9, 0.1], [0.1, 0.9]], ["ill", "well"], ["yes", "no"])
            >>> PML(0.5).describe_violation(Prior([0.5, 0.5], ["ill", "well"]), flip)
            "the output 'yes' reveals 0.587787 nats about 'ill', and the limit is 0.5"
        """
        return describe_worst_pair(self, prior, mechanism)

    def with_epsilon(self, nats: float) -> Self:
        """Return the requirement at another level, where it has a single `epsilon`."""
        other = copy(self)
        # frozen dataclasses: the copy is changed before anything sees it
        object.__setattr__(other, "epsilon", nats)
        kept = [
            name
            for name in vars(other)
            if isinstance(getattr(type(self), name, None), cached_property)
        ]
        for name in ("_known", *kept):  # they are of the level before
            vars(other).pop(name, None)
        return other

    @property
    def keeps_averages(self) -> bool:
        """Return whether averages over letters and outputs that look alike meet it where the entries do."""
        return False

    def find_plain_pml_level(self) -> float | None:
        """Return the level where it is PML under the prior of a design and nothing else; None where not."""
        return None

    def find_single_level(self) -> float | None:
        """Return the level in nats, where it is one number; None where there are none or several."""
        level = getattr(self, "epsilon", None)
        return float(level) if isinstance(level, int | float) else None

    def priors(self, prior: Prior) -> PriorSet | None:
        """Return the set of priors over which columns are bounded; None for the given prior only."""
        return None

    def has_empty_interior(self, prior: Prior) -> bool:
        """Return whether a constant meets a bound with little slack, such as one of 0 nats about a secret."""
        from pmlopt.model.privacy.ratio_blocks import MIN_SLACK_NATS

        ratios = self.list_ratios(prior)
        return ratios is not None and ratios.slack < MIN_SLACK_NATS

    def on_cells(self, cells: LetterCells) -> Requirement | None:
        """Return the requirement on columns that are constant on orbits ("cells") of letters.

        None where it is no bound on each column that is the same under a group.

        Args:
            cells: of one output of a symmetric prior.

        Raises:
            PrivacyError: it is on other letters or orbits, or not the same for all letters of an orbit.
        """
        return None

    def ratios(self, weights: Any) -> RatioBounds | None:
        """Return the requirement as ratio bounds on each column; None where it is not of that form.

        All other forms follow from the list where a requirement does not write them itself.

        Args:
            weights: (N,) proportional to the prior: floats, or whole numbers as objects.
        """
        return None

    def required_ratios(self, weights: Any) -> RatioBounds | None:
        """Return all required ratio bounds; `ratios` may omit those implied by others.

        Levels and checks are of these.
        """
        return self.ratios(weights)

    def linear_rows(self, prior: Prior) -> LinearRows | None:
        """Return the allowed columns as linear inequalities; None where no such form is known."""
        return None

    def list_ratios(self, prior: Prior) -> RatioBounds | None:
        """List the `ratios` under a prior on the right letters, those of the last prior once; None where
        there are none.
        """
        return self._get_cached("ratios", prior, self._build_ratios)

    def _build_ratios(self, prior: Prior) -> RatioBounds | None:
        """Build the list of ratio bounds under a prior; see `list_ratios`."""
        self.check(prior)
        return self.for_prior(prior).ratios(prior.pmf)

    def list_weighted_ratios(self, prior: Prior) -> RatioBounds | None:
        """List the ratio bounds of whose pairs weights are the dual certificate; None where there is
        another one.
        """
        return None

    def _require_ratios(self, prior: Prior) -> RatioBounds:
        """Return the list of ratio bounds under a prior, from which other forms follow."""
        return require_form(
            self.list_ratios(prior),
            self,
            "forms that a requirement does not write itself",
            "no ratio bounds",
            needs="a list of ratio bounds",
            advice="define `ratios`, or each form of its own",
        )

    def _get_cached(self, name: str, key: K, make: Callable[[K], V]) -> V:
        """Return the cached value of a key, or compute and cache it."""
        known: dict[str, tuple[object, Any]] = self.__dict__.setdefault("_known", {})
        kept = known.get(name)  # read once: another thread may put its own in place
        if kept is None or kept[0] is not key:
            kept = known[name] = (key, make(key))
        found: V = kept[1]
        return found

    def __and__(self, other: Requirement) -> Requirement:
        """Both requirements at once; see `RequirementConjunction`."""
        if not isinstance(other, Requirement):
            return NotImplemented
        requirements: Any = import_module("pmlopt.model.privacy")  # one of them is the conjunction
        both: Requirement = requirements.RequirementConjunction(self, other)
        return both

    def _repr_html_(self) -> str:
        """Return the limits and what they mean, as a notebook shows them."""
        limits = {f"limit of {name}": f"{limit:.6g} nats" for name, limit in self.limits.items()}
        texts = {"meaning": " ".join(self.meanings), "holds": self.scope}
        facts = {**limits, **{name: text for name, text in texts.items() if text}}
        return format_facts_html(repr(self), facts)

    def cone_block(self, prior: Prior) -> ColumnBlock | None:
        """Return what it requires of one column as a `ColumnBlock`; None where it has no such form, or no
        interior.
        """
        from pmlopt.model.privacy.ratio_blocks import make_block

        ratios = self.list_ratios(prior)
        return None if ratios is None else make_block(ratios, prior.pmf, tighten_factor)

    @property
    def compares_means(self) -> bool:
        """Return whether `violation` only takes weighted sums and largest and least entries of columns.

        Its matrix may then be any object that has these.
        """
        return False

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute constraint violations of a mechanism: all at most 0 iff the requirement holds.

        Homogeneous in `weights` (the prior up to a factor) and in `matrix` (rows up to one common
        sum), and written in operations that numpy floats, Python integers and Fractions share, so
        that one formula serves floating-point and exact arithmetic.

        Args:
            weights: (N,) proportional to the prior.
            matrix: (N, M) with equal row sums.
            power: x >= 0 -> e^x, or a lower bound of it that differs by less than floats resolve.
        """
        ratios = self.list_required_ratios(weights)
        assert ratios is not None
        return ratios.violation(matrix, power)

    def is_met_with_margin(self, prior: Prior, matrix: FloatArray) -> bool:
        """Return whether a mechanism is so far within its bounds that rounding cannot hide a violation.

        If so, the requirement holds in exact arithmetic, and `holds` is true; else nothing is known.

        Args:
            prior: N letters.
            matrix: (N, M) entries of 0 or at least 1e-30.
        """
        return False

    def list_required_ratios(self, weights: Any) -> RatioBounds | None:
        """Return the `required_ratios`, those of the last floats and of the last whole numbers once."""
        return self._get_cached(f"required {weights.dtype.char}", weights, self.required_ratios)

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute max sum_xy p[x] gains[x,y] P[x,y] over matrices P >= 0 that meet the requirement.

        The rows need not sum to one, only the law q does (under maximal leakage, not even that). A
        rounding-level error is allowed for by the caller.
        """
        return self._require_ratios(prior).support_function(prior.pmf, gains)

    def list_some_columns(self, prior: Prior) -> FloatArray:
        """Return some feasible (N, K) columns of mean one, for a cheap lower bound on `support_function`.

        A constant, which is the best constant mechanism at every price, is of no use here. None are known
        where `support_function` is a formula, which takes no longer.
        """
        return np.zeros((prior.size, 0))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return numbers that prove `support_function` without a search, by name; none where a formula
        does.
        """
        ratios = self.list_weighted_ratios(prior)
        return {} if ratios is None else {"weights": ratios.find_weights(prior.pmf, gains)}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        """Compute the upper bound on the gain of feasible matrices that dual variables prove.

        Args:
            prior: of the design.
            gains: (N, M) as in `support_function`.
            certificate: as `certificate` gives it.

        Raises:
            PrivacyError: its arrays are missing or have other shapes.
        """
        ratios = self.list_weighted_ratios(prior)
        if ratios is None:
            return self.support_function(prior, gains)
        weights = read_pair_weights(certificate, (len(ratios.exponents), gains.shape[1]))
        return ratios.bound_gains(prior.pmf, gains, weights)

    def extreme_columns(self, prior: Prior) -> ExtremeColumns | None:
        """Return the extreme columns of mean one that the bound allows, as families or as those of a cone;
        None where the bound is not on each column separately, or they are not listed.
        """
        return self.list_ratios(prior)

    def require_extreme_columns(self, prior: Prior, purpose: str) -> ExtremeColumns:
        """Return the extreme columns that the bound allows, which the purpose, in the plural, needs.

        Raises:
            PrivacyError: the bound is not on each column separately, or its extreme columns are not listed.
        """
        found = self.extreme_columns(prior)
        require_form(
            found,
            self,
            purpose,
            "none that are listed",
            needs="the extreme columns of a requirement",
            advice=self.unsupported_hint,
        )
        assert found is not None
        return found

    def column_cost(self, prior: Prior) -> ColumnCost | None:
        """Return the cost that the bound limits, of all columns together or of each; None where it is none.

        Designs with a sub-convex utility are made of columns and their costs where the extreme columns
        are not listed.
        """
        return None

    def level(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the mechanism's largest leakage level, in nats."""
        return max(self.levels(prior, mechanism).values())

    def holds(self, prior: PriorLike, mechanism: MechanismLike) -> bool:
        """Return whether each level is within its limit, in floats without tolerance.

        Rounding may decide where a level is next to its limit: `compliance.prove` decides exactly.
        """
        levels = self.levels(prior, mechanism)
        limits = self.limits
        return all(map(le, map(levels.__getitem__, limits), limits.values()))


def describe_worst_pair(privacy: Requirement, prior: Prior, mechanism: Mechanism) -> str:
    """Describe the pair by which a list of ratio bounds is violated most; else the level above its limit.

    Args:
        privacy: the requirement.
        prior: N letters.
        mechanism: that violates it.
    """
    ratios = privacy.for_prior(prior).required_ratios(prior.pmf)
    if ratios is None or not len(ratios.exponents):
        levels = privacy.levels(prior, mechanism)
        name = max(privacy.limits, key=lambda limit: levels[limit] - privacy.limits[limit])
        return f"the level {name} is {levels[name]:.6g} nats, and the limit is {privacy.limits[name]:g}"
    used = np.flatnonzero(mechanism.support)
    over = ratios.log_ratios(mechanism.matrix[:, used]) - ratios.exponents[:, None]
    pair, y = np.unravel_index(int(np.nanargmax(over)), over.shape)
    above = int(ratios.above[pair])
    below = int(ratios.below[pair])
    if above >= prior.size:
        what = f"the pair {pair}"
    elif below >= prior.size:
        what = f"{prior.labels[above]!r} alone"
    else:
        what = f"{prior.labels[above]!r} against {prior.labels[below]!r}"
    output = mechanism.output_names[used[y]]
    return f"the output {output!r} is {over[pair, y]:.6g} nats above the limit for {what}"


JOINT_BOUND_HINT = "it bounds all columns of a mechanism together; use PML, LDP or LIP"
"""What to do where a bound is on no single column."""

GUESSING_MEANING = (
    "No outcome makes a correct guess, about any question, more than e^{limit} times as likely."
)
"""What PML means, of the data or of a secret."""
