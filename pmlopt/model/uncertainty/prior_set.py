"""The interface of sets of priors: least means as numbers, and as cvxpy constraints."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from pmlopt.core.lazy_imports import cp, optimize, sparse
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.argument_checks import check_same_letters
from pmlopt.core.numbers.arrays import BoolArray, FloatArray, Labels
from pmlopt.core.numbers.roots import find_least_share
from pmlopt.core.records.fields import Record
from pmlopt.data.mechanism import check_labels_match
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.solvers.structured.block_program import ColumnBlock

if TYPE_CHECKING:
    from pmlopt.model.uncertainty.dual_measures import BestMeasures


def check_possible(max_masses: FloatArray) -> None:
    """Raise a PrivacyError for a letter with probability zero under every prior of a set.

    Args:
        max_masses: (N,) the largest probabilities.
    """
    if (max_masses <= 0).any():
        raise PrivacyError(
            f"the letter at position {int((max_masses <= 0).argmax())} has probability 0 under every prior "
            "of the set: leave it out"
        )


def scope_text(members: str, truth: str, delta: float | None) -> str:
    """Return text on the priors of a bound, with the confidence of a confidence set."""
    if delta is None:
        return members
    return f"for the true {truth}, except with probability {delta:g} over the sample ({members})"


MEMBERSHIP_ATOL = 1e-12
"""Membership tolerance: the distance from a set, in l1 or in a bound on a probability, that is put down to
rounding."""


@dataclass(frozen=True)
class MinMeanExpression:
    """The cvxpy form of a column's least mean: an expression with constraints and variables.

    Attributes:
        value: (1, M) affine; under `constraints` its largest value is the least mean.
        constraints: by name.
        variables: what the constraints brought, by name.
    """

    value: cp.Expression
    constraints: Mapping[str, cp.Constraint] = field(default_factory=dict)
    variables: Mapping[str, cp.Variable] = field(default_factory=dict)


@light_dataclass(frozen=True, eq=False)
class PriorPolytope:
    """A polyhedral set of priors: `Q = parts z` over z >= 0 with `rows z <= right`.

    Attributes:
        parts: (N, Z).
        rows: (R, Z).
        right: (R,).
        equal: (R,) the rows that are equations.
    """

    parts: FloatArray
    rows: FloatArray
    right: FloatArray
    equal: BoolArray


@light_dataclass(frozen=True, eq=False)
class HalfSpaces:
    """The priors Q with `rows Q <= right`, of all on N letters.

    Attributes:
        rows: (R, N).
        right: (R,).
    """

    rows: FloatArray
    right: FloatArray


ZERO_MASS_ATOL = 1e-13
"""The mass of a measure up to which it counts as none."""

SYMMETRIC_DESIGNS, NO_CELLS = "designs on a symmetric prior", "no form by orbits"
"""What needs the form of a set on cells, and what a set without it has not."""

Form = TypeVar("Form")


def require_form(
    form: Form | None,
    owner: object,
    purpose: str,
    missing: str,
    *,
    needs: str = "more than the least means of a set",
    advice: str = "give a ConvexHull of some of its priors, or a Box around it",
) -> Form:
    """Return a form of a set of priors or a requirement; raise a PrivacyError where it has none.

    Args:
        form: what the owner gave, None where it has no such form.
        owner: the set, or the requirement.
        purpose: what needs the form, as a subject in the plural.
        missing: what the owner has not, such as "no polytope".
        needs: what is needed; left out, what a set needs.
        advice: what to do; left out, what helps for a set.
    """
    if form is None:
        raise PrivacyError(f"{purpose} need {needs}, and {owner!r} has {missing}: {advice}")
    return form


TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""The least tolerances that HiGHS takes."""


@light_dataclass(frozen=True, eq=False)
class LinearRows:
    """A linear representation of a cone of columns, with auxiliary variables u per column.

    Attributes:
        on_column: (R, N) sparse.
        on_numbers: (R, U) sparse.
        least: (U,) zeros, or minus infinity.
    """

    on_column: Any
    on_numbers: Any
    least: FloatArray

    def to_cvxpy(
        self, mechanism: cp.Expression
    ) -> tuple[dict[str, cp.Constraint], dict[str, cp.Variable]]:
        """Build cvxpy constraints on the columns of a variable, with (U, M) auxiliary variables."""
        numbers = cp.Variable((len(self.least), mechanism.shape[1]))
        bounded = np.isfinite(self.least)
        rows = {"dual_rows": self.on_column @ mechanism + self.on_numbers @ numbers <= 0}
        return {**rows, "dual_signs": numbers[bounded] >= 0}, {"numbers": numbers}

    def find_numbers(self, matrix: FloatArray) -> FloatArray:
        """Find (U, M) auxiliary values of largest slack at a matrix."""
        system = sparse.hstack(
            [self.on_numbers, sparse.csr_array(-np.ones((self.on_numbers.shape[0], 1)))]
        )
        costs = np.append(np.zeros(len(self.least)), 1.0)
        bounds = [*((low, None) for low in self.least), (-1, 1)]
        found = [
            optimize.linprog(costs, system, -(self.on_column @ v), bounds=bounds, options=TIGHT)
            for v in matrix.T
        ]
        return np.array([one.x for one in found]).T[:-1]

    def find_multipliers(
        self, p: FloatArray, gains: FloatArray, pairs: Any | None = None
    ) -> FloatArray:
        """Find (K + R, M) optimal multipliers of the rows in `max <p g, v>`, `<p, v> = 1`.

        Args:
            p: (N,) the prior.
            gains: (N, M) the columns g.
            pairs: (K, N) sparse, other rows `pairs v <= 0`, which come first.
        """
        from pmlopt.model.uncertainty.row_multipliers import find_row_multipliers

        pairs = sparse.csr_array((0, len(p))) if pairs is None else pairs
        rows = sparse.vstack([pairs, self.on_column], format="csr")
        if len(self.least):
            none = sparse.csr_array((pairs.shape[0], len(self.least)))
            rows = sparse.hstack([rows, sparse.vstack([none, self.on_numbers])], format="csr")
        return find_row_multipliers(p, gains, rows, self.least)


class PriorSet(Record, ABC):
    """A closed convex set of priors, represented by its least mean `w(v) = min_Q <Q, v>`.

    A mechanism satisfies epsilon-PML for every prior of the set iff `max_x v[x] <= e^epsilon w(v)` for
    each of its columns v: the set enters in no other way. What every set gives is abstract. The bounds on a
    design follow from it, by priors of the set; and there are forms that some sets have, which are None of
    the others: linear rows, a polytope, cells, blocks, extreme columns.

    Attributes:
        delta: where the set was made from a sample, the probability over the sample that the true
            distribution is outside; else None.
        labels: the labels of its letters; None where it knows them by position only.

    Source: [grosse2025empirical, eq. (1) and Definition 5].
    """

    USER_NAMES: ClassVar[tuple[str, ...]] = (
        "contains", "delta", "description", "labels", "list_vertices", "min_mean", "minimizer", "scope",
        "size",
    )  # fmt: skip

    kind: ClassVar[str]
    """The name of this kind of set in files."""

    delta: float | None = None
    labels: Labels | None = None

    @property
    @abstractmethod
    def size(self) -> int:
        """Return the number of letters N."""

    @property
    @abstractmethod
    def description(self) -> str:
        """Return text that describes the priors of the set, to follow "for every prior"."""

    @property
    def scope(self) -> str:
        """Return text on the priors for which a bound over the set holds."""
        return scope_text(f"for every prior {self.description}", "distribution", self.delta)

    def check_letters(self, letters: Labels, owner: str) -> None:
        """Raise a PrivacyError where letters differ from the set's, also in order.

        Args:
            letters: labels.
            owner: what they are of, such as "the mechanism".
        """
        check_same_letters(self.size, f"{self!r} is", len(letters), owner, PrivacyError)
        if self.labels is not None:
            check_labels_match(
                self.labels, letters, "the letters of the set", f"those of {owner}", PrivacyError
            )

    # ------------------------------------------------------------ what every set gives

    @abstractmethod
    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column over the set."""

    @abstractmethod
    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means times a positive number, and that number; exact for integers.

        Where the least mean is no rational, the integers are at most it: proofs rest on them.

        Args:
            matrix: (N, M) floats, or an object array of Python integers.
        """

    @abstractmethod
    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the set that minimises the mean of a column; it may have zeros."""

    def contains(self, prior: PriorLike) -> bool:
        """Return whether a prior is in the set, up to rounding (1e-12).

        Raises:
            PrivacyError: the prior is on other letters than the set.
        """
        p = as_prior(prior)
        self.check_letters(p.labels, "the prior")
        return self.contains_law(p.pmf)

    @abstractmethod
    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding (`MEMBERSHIP_ATOL`)."""

    @abstractmethod
    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Build the concave cvxpy expression of the least mean of each column of a variable.

        Args:
            mechanism: (N, M), non-negative.
            largest: (1, M), at least every entry of its column.
        """

    @abstractmethod
    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of `to_cvxpy` at a mechanism."""

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Build cvxpy constraints that each measure is its mass times a prior of the set.

        By default they are the rows of the `polytope`; a set without one gives its own.

        Args:
            measures: (N, M), affine; a column for each.
            masses: (1, M), affine.
        """
        found = require_form(self.polytope(), self, "cvxpy constraints on a prior", "no polytope")
        z = cp.Variable((found.parts.shape[1], measures.shape[1]), nonneg=True)
        rows = found.rows @ z
        right = found.right[:, None] @ masses
        constraints = [measures == found.parts @ z]
        for chosen, compare in ((found.equal, operator.eq), (~found.equal, operator.le)):
            if chosen.any():
                constraints.append(compare(rows[chosen] - right[chosen], 0))
        return constraints

    # ------------------------------------------------------------ what follows

    def find_members(self, measures: FloatArray) -> FloatArray:
        """Find (N, M) priors of the set near given normalized measures.

        A measure of next to no mass is a multiple of every prior, and gets any of the set. Without a
        projection they are in the set as `contains_law` decides.
        """
        return np.array([self._find_member(measure) for measure in measures.T]).T

    @property
    def member_slack(self) -> float:
        """Return how far `find_members` may be outside of the set, in l1; 0 with an exact projection."""
        some = self.project_to_rationals(np.full(self.size, 1 / self.size))
        return self.size * MEMBERSHIP_ATOL if some is None else 0.0

    def _find_member(self, measure: FloatArray) -> FloatArray:
        """Find a prior of the set near a normalized measure."""
        if not float(measure.sum()) > ZERO_MASS_ATOL:
            return self._any_member
        law = np.maximum(measure, 0.0) / np.maximum(measure, 0.0).sum()
        near = self.project_to_rationals(law)
        if near is not None:
            return np.asarray(near, dtype=float)
        if self.contains_law(law):
            return np.asarray(law)
        # the set is convex: from some share of a member on, mixtures with it are inside
        member = self._any_member
        share = find_least_share(lambda w: self.contains_law((1 - w) * law + w * member))
        return np.asarray((1 - share) * law + share * member)

    @property
    def _any_member(self) -> FloatArray:
        """Return a prior of the set."""
        return self.minimizer(np.arange(self.size, dtype=float))

    def support_function(self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float) -> float:
        """Compute the largest gain `<p g, v>` over allowed columns v and columns g.

        The columns have `<p, v> = 1` and `e^-eps max v <= w(v)`.

        Args:
            p: (N,) the prior of the design.
            gains: (N, M) the columns g.
            exp_neg_epsilon: e^-epsilon, in (0, 1].
        """
        theta = self.dual_multipliers(p, gains, exp_neg_epsilon)
        return self.dual_bound(p, gains, exp_neg_epsilon, theta)

    @property
    def theta_rows(self) -> int:
        """Return the number of dual multipliers per column."""
        return self.size

    def dual_multipliers(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float
    ) -> FloatArray:
        """Find (T, M) optimal multipliers of `e^-eps max v <= w(v)` for each column.

        By default they are measures: a multiplier of at least 0 times a prior of the set, by a program; the
        digits that its solver has not are found by cutting planes.
        """
        from pmlopt.model.uncertainty.support_functions import sharpen_measures

        found, columns = self._best_measures.find_measures(p, gains, exp_neg_epsilon)
        if columns is None:
            return found
        measures = found.sum(axis=0) * self.find_members(found)
        return sharpen_measures(measures, columns, p, gains, exp_neg_epsilon, self.minimizer)

    @cached_property
    def _best_measures(self) -> BestMeasures:
        """Return the convex programs of the multipliers."""
        from pmlopt.model.uncertainty.dual_measures import BestMeasures

        return BestMeasures(self.constrain_measures)

    def dual_bound(
        self, p: FloatArray, gains: FloatArray, exp_neg_epsilon: float, theta: FloatArray
    ) -> float:
        """Compute the upper bound on the gain proved by nonnegative (T, M) multipliers.

        It is the least tau at which `min_Q sum_x (p (g - tau) + theta Q)^+ - theta e^-eps` is at most 0
        for all columns g, with an allowance for rounding. By default theta Q is a measure for each column,
        moved into the set where it is outside.
        """
        from pmlopt.model.uncertainty.support_functions import bound_gain_by_measures

        masses = np.maximum(theta, 0.0).sum(axis=0)
        measures = masses * self.find_members(np.maximum(theta, 0.0))
        reduced = exp_neg_epsilon - self.member_slack
        return bound_gain_by_measures(measures, masses, p, gains, reduced)

    @property
    def mean_atol(self) -> float:
        """Return how far `min_mean` may be below the mean of a minimizer, other than by rounding, for columns
        from 0 to 1.
        """
        return 0.0

    def is_shown_by_sample(self) -> bool | None:
        """Return whether the counts that the set keeps show that it contains the true law except with
        probability delta; None where that does not follow from them.
        """
        return None

    @cached_property
    def has_rare_letters(self) -> bool:
        """Return whether sums of floats lose some probabilities, so that levels take exact ones."""
        return False

    def simplify(self) -> PriorSet | FloatArray:
        """Return the simplest equal set: a single prior, all priors, or itself."""
        return self

    @property
    def contains_all_priors(self) -> bool:
        """Return whether every prior is in the set for certain."""
        return False

    @property
    def float_probability(self) -> Any:
        """Return the lower probability that gives the least means, in floats; None where none does."""
        return None

    def column_families(self, p: FloatArray, exp_neg_epsilon: float) -> tuple[Any, ...] | None:
        """Return parametric families of extreme columns of mean one; None where none are known.

        Args:
            p: (N,) the prior of the design.
            exp_neg_epsilon: e^-epsilon, in (0, 1].
        """
        return None

    def on_cells(self, cells: LetterCells) -> PriorSet | None:
        """Return what the priors of the set are on the cells of an output, which determines least means
        there; None where it has no such form.

        Args:
            cells: of one output of a symmetric prior.

        Raises:
            PrivacyError: the set is on other letters, or not invariant.
        """
        return None

    def contains_rationals(self, law: Sequence[Fraction]) -> bool | None:
        """Return whether N rationals >= 0 that sum to one are in the set for certain; None if undecided."""
        return None

    def check_listed_cells(self, cells: LetterCells) -> None:
        """Raise a PrivacyError where the letters of the cells are not listed, or not those of the set."""
        # a set on single letters has no meaning for cells whose letters are not listed
        if cells.classes is None or self.size != len(cells.classes):
            raise PrivacyError(
                f"{self!r} is on letters one by one, and the prior of the design is {cells.whole!r}: give "
                "InvariantPrior(...) on as many letters, or a set that is around the prior itself"
            )
        if cells.listed is not None:
            self.check_letters(cells.listed.labels, "the prior of the design")

    def values_by_orbit(self, cells: LetterCells, values: Sequence[Any], what: str) -> list[Any]:
        """Return the value of each cell's letters, of values that letters of one orbit must have in common.

        Args:
            cells: of one output of a symmetric prior.
            values: one for each letter.
            what: they are, as a subject with its verb.
        """
        self.check_listed_cells(cells)
        # the worst prior of a column is invariant only if the bounds of an orbit are equal
        found: dict[int, Any] = {}
        for value, orbit in zip(values, cells.letters[cells.classes].tolist(), strict=True):
            if found.setdefault(orbit, value) != value:
                raise PrivacyError(
                    f"{what} not invariant: letters of one orbit have {found[orbit]!s:.20} and {value!s:.20}"
                )
        return [found[orbit] for orbit in cells.letters.tolist()]

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Return (N,) rationals: a prior of the set, for certain, that is near a law where the law is near
        the set; None where no such projection is known.

        Args:
            law: (N,) finite; negative entries count as zero, and it need not sum to one.
        """
        return None

    def list_vertices(self) -> FloatArray | None:
        """List (K, N) priors of which the set is the convex hull, in floats; None where none are listed."""
        return None

    def polytope(self) -> PriorPolytope | None:
        """Return the set as linear inequalities in floats; None where it is no polytope."""
        return None

    def half_spaces(self) -> HalfSpaces | None:
        """Return the inequalities of the set among all priors, as exact floats; None without, or too many."""
        return None

    def linear_rows(self, exp_neg_epsilon: float) -> LinearRows | None:
        """Return the columns with `e^-eps max v <= w(v)` by linear rows; the numbers are max v and dual
        multipliers. None without a polytope.

        By duality over the `polytope`, `w(v) = max -right'y` over y with `parts'v + rows'y >= 0`, the entries
        of y being at least 0 but for those of equations.
        """
        found = self.polytope()
        n = self.size
        if found is None:
            return None
        parts = sparse.csr_array(found.parts)
        rows = sparse.csr_array(found.rows)
        ends = sparse.csr_array(np.append(exp_neg_epsilon, found.right)[None, :])
        top = sparse.csr_array(-np.ones((n, 1)))
        return LinearRows(
            sparse.vstack([sparse.eye_array(n), -parts.T, sparse.csr_array((1, n))], format="csr"),
            sparse.vstack([sparse.block_diag([top, -rows.T]), ends], format="csr"),
            np.append(0.0, np.where(found.equal, -np.inf, 0.0)),
        )

    def cone_block(self, exp_neg_epsilon: float) -> ColumnBlock | None:
        """Return the cone of columns with `e^-eps max v <= w(v)`; None without such a form or interior.

        Args:
            exp_neg_epsilon: e^-epsilon, in (0, 1].
        """
        return None

    def max_partial_entry(
        self, inner: Any, outer: Any, exp_neg_epsilon: float
    ) -> FloatArray | None:
        """Compute the (K,) least entry b on `outer` with a least mean of e^-eps; None without formula.

        The column is 1 on `inner`, b on `outer` and 0 elsewhere.

        Args:
            inner: (K, N) sets of letters, none with w(inner) > e^-eps.
            outer: (K, N) sets, disjoint from the inner ones.
            exp_neg_epsilon: e^-epsilon.

        Returns:
            NaN where even b = 1 does not suffice.
        """
        return None


def check_prior_set(over: object, what: str = "`over`") -> None:
    """Raise a PrivacyError for what is no set of priors."""
    if not isinstance(over, PriorSet):
        example = "a set of priors such as L1Ball(prior, 0.1)"
        raise PrivacyError(f"{what} is {over!r:.80}, which is no set of priors: give {example}")


def has_rare_values(probabilities: FloatArray) -> bool:
    """Return whether sums of floats lose half of the digits of some of the (N,) probabilities; not of 0."""
    return bool(((probabilities > 0) & (probabilities < 1e-9)).any())
