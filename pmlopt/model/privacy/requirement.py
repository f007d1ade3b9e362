"""The interface of privacy requirements: levels, also as parameters, constraints, and what a proof needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations
from operator import le
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.core.lazy_imports import cp
from pmlopt.core.records import Record
from pmlopt.data.mechanism import MechanismLike
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.column_cost import ColumnCost
from pmlopt.model.privacy.conjunction_parts import differ_in_levels_only, make_distinct_names
from pmlopt.model.privacy.factors import tightened
from pmlopt.model.privacy.ratios import MIN_SLACK_NATS, RatioBounds, join_ratio_bounds, make_block
from pmlopt.model.uncertainty.columns import ColumnCone, Family
from pmlopt.model.uncertainty.prior_set import LinearRows
from pmlopt.solvers.structured.block_program import ColumnBlock

K = TypeVar("K")
V = TypeVar("V")

Witness: TypeAlias = Mapping[str, FloatArray]
"""Arrays by name, from which a bound follows; see `Requirement.dual_certificate`."""


def check_certificate_array(witness: Witness, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return an array of a dual certificate, checked to be finite and of the shape it must have.

    Raises:
        PrivacyError: it is missing, or something else.
    """
    found = witness.get(name)
    if (
        found is not None and np.size(found) == 0 and 0 in shape
    ):  # lists in files have lost the other numbers
        return np.zeros(shape)
    if found is None or np.shape(found) != shape or not np.isfinite(found).all():
        raise PrivacyError(
            f"the proof of the bound needs the finite numbers {name!r} in the shape {shape}"
        )
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class CvxpyConstraints:
    """A requirement as cvxpy constraints: the constraints by name, and the variables they brought."""

    constraints: Mapping[str, cp.Constraint]
    variables: Mapping[str, cp.Variable] = field(default_factory=dict)


class Requirement(Record, ABC):
    """A convex bound on the leakage of a mechanism, satisfied by every constant mechanism.

    The number and the constraint are twins: `holds` is true iff the matrix satisfies `to_cvxpy`.
    In addition there are the two things a proof needs: `violation`, the bound in arithmetic of any kind,
    and `support_function`, the support function that turns multipliers into a bound on the utility.
    """

    name: ClassVar[str]
    unsupported_hint: ClassVar[str] = "use PML, LDP or LIP"
    """What to do where its extreme columns are not listed."""
    meaning: ClassVar[str] = "The limit {limit} nats holds for the ratio that is named."
    """What the limit states, in a sentence for those who do not know the field."""

    @property
    def meanings(self) -> tuple[str, ...]:
        """Return what each of the `limits` means."""
        return tuple(
            self.meaning.replace("{limit}", f"{limit:.6g}") for limit in self.limits.values()
        )

    def for_prior(self, prior: Prior) -> Requirement:
        """Return the requirement on the letters of a prior, where it is on labels; else itself."""
        return self

    @property
    @abstractmethod
    def limits(self) -> dict[str, float]:
        """Return the claimed bounds by name, in nats."""

    @property
    def is_tight(self) -> bool:
        """Return whether `support_function` is exact, so that the gap of a design can close."""
        return True

    @property
    def scope(self) -> str:
        """Return the priors or the slack of the bound in words; empty where it is for the given prior."""
        return ""

    @abstractmethod
    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute the levels of a mechanism in nats, under the same names as `limits`."""

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the requirement on an (N, M) variable and its (1, M) output law, in sparse form."""
        return CvxpyConstraints(*self._cached_ratios(prior).to_cvxpy(mechanism, tightened))

    def constraints(self, prior: PriorLike, mechanism: cp.Expression) -> list[cp.Constraint]:
        """Return the requirement on a matrix of cvxpy variables in another problem.

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
        ratios = self._cached_ratios(prior)
        return {"products": ratios.compute_products(matrix)} if len(ratios.rows) else {}

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement is on other letters than the prior."""

    def with_epsilon(self, nats: float) -> Self:
        """Return the same requirement at another level, where its level is one number, `epsilon`."""
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

    def has_empty_interior(self, prior: Prior) -> bool:
        """Return whether a constant meets a bound with little slack, such as one of 0 nats about a secret."""
        ratios = self.ratios(prior.pmf)
        return ratios is not None and ratios.slack < MIN_SLACK_NATS

    def on_cells(self, cells: LetterCells) -> Requirement | None:
        """Return the bound on a column that is constant on the cells of its output, as one on their values.

        None where it is no bound on each column that is the same under a group.

        Args:
            cells: of one output of a symmetric prior.

        Raises:
            PrivacyError: it is on other letters or orbits, or not the same for all letters of an orbit.
        """
        return None

    @property
    def by_pairs(self) -> bool:
        """Return whether weights of the pairs of `ratios` are its dual certificate."""
        return False

    @property
    def has_ratios(self) -> bool:
        """Return whether the bound is a list of ratio bounds, so that `ratios` gives it."""
        return False

    def ratios(self, weights: Any) -> RatioBounds | None:
        """Return the bound as a list of ratio bounds on each column; None where it is none.

        All other forms follow from the list where a requirement does not write them itself.

        Args:
            weights: (N,) proportional to the prior: floats, or whole numbers as objects.
        """
        return None

    def required_ratios(self, weights: Any) -> RatioBounds | None:
        """Return all ratio bounds that are required, of which `ratios` may omit those that follow from
        others.

        Levels and checks are of these.
        """
        return self.ratios(weights)

    def linear_rows(self, prior: Prior) -> LinearRows | None:
        """Return the columns that it allows by linear rows; None where they are not known by rows."""
        return None

    def _cached_ratios(self, prior: Prior) -> RatioBounds:
        """Return the list of ratio bounds under a prior on the right letters; that of the last prior is
        kept.
        """
        return self._get_cached("ratios", prior, self._list_ratios)

    def _list_ratios(self, prior: Prior) -> RatioBounds:
        """List the ratio bounds under a prior; see `_cached_ratios`."""
        self.check(prior)
        found = self.ratios(prior.pmf)
        if found is None:
            raise PrivacyError(
                f"{self!r} is no list of ratio bounds, from which all else would follow"
            )
        return found

    def _get_cached(self, name: str, key: K, make: Callable[[K], V]) -> V:
        """Return what was made for this very key the last time, or make it now."""
        known: dict[str, tuple[object, Any]] = self.__dict__.setdefault("_known", {})
        kept = known.get(name)  # read once: another thread may put its own in place
        if kept is None or kept[0] is not key:
            kept = known[name] = (key, make(key))
        found: V = kept[1]
        return found

    def __and__(self, other: Requirement) -> Requirement:
        """Both requirements at once; see `RequirementConjunction`."""
        return (
            RequirementConjunction(self, other)
            if isinstance(other, Requirement)
            else NotImplemented
        )

    def cone_block(self, prior: Prior) -> ColumnBlock | None:
        """Return what it requires of one column as a `ColumnBlock`; None where it has no such form, or no
        interior.
        """
        return (
            make_block(self._cached_ratios(prior), prior.pmf, tightened)
            if self.has_ratios
            else None
        )

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute violations of the bound: numbers that are all at most 0 iff the requirement holds.

        Homogeneous in `weights` (the prior up to a factor) and in `matrix` (rows up to one common
        sum), and written in operations that numpy floats, Python integers and Fractions share, so
        that one formula serves floating-point and exact arithmetic.

        Args:
            weights: (N,) proportional to the prior.
            matrix: (N, M) with equal row sums.
            power: x >= 0 -> e^x, or a lower bound of it that differs by less than floats resolve.
        """
        ratios = self._get_cached("required", weights, self.required_ratios)
        assert ratios is not None
        return ratios.violation(matrix, power)

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        """Compute the support function of the bound: max sum_xy p[x] gains[x,y] P[x,y] over P >= 0 within it.

        The rows need not sum to one, only the law q does (under maximal leakage, not even that). A
        rounding-level error is allowed for by the caller.
        """
        return self._cached_ratios(prior).support_function(prior.pmf, gains)

    def list_some_columns(self, prior: Prior) -> FloatArray:
        """Return some (N, K) columns of mean one that the bound allows: a cheap lower bound on
        `support_function`.
        """
        return np.ones((prior.size, 1))

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return numbers that prove `support_function` without a search, by name; none where a formula
        does.
        """
        return (
            {"weights": self._cached_ratios(prior).find_weights(prior.pmf, gains)}
            if self.by_pairs
            else {}
        )

    def dual_bound(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        """Compute what a dual certificate proves that no matrix within the bound collects; any numbers prove
        a bound.

        Args:
            prior: of the design.
            gains: (N, M) as in `support_function`.
            witness: as `witness` gives it.

        Raises:
            PrivacyError: its arrays are missing or have other shapes.
        """
        if not self.by_pairs:
            return self.support_function(prior, gains)
        ratios = self._cached_ratios(prior)
        weights = check_certificate_array(
            witness, "weights", (len(ratios.exponents), gains.shape[1])
        )
        return ratios.bound_gains(prior.pmf, gains, weights)

    def extreme_columns(self, prior: Prior) -> tuple[Family, ...] | ColumnCone | RatioBounds:
        """Return the extreme columns of mean one that the bound allows, as families or as those of a cone.

        Designs with a sub-convex utility are made of them.

        Raises:
            PrivacyError: the bound is not on each column separately, or its extreme columns are not listed.
        """
        if not self.has_ratios:
            raise PrivacyError(
                f"designs with a sub-convex utility are made of extreme columns, and those within {self!r} "
                f"are not listed: {self.unsupported_hint}"
            )
        return self._cached_ratios(prior)

    def column_cost(self, prior: Prior) -> ColumnCost | None:
        """Return the cost that the bound limits, of all columns together or of each; None where it is none.

        Designs with a sub-convex utility are made of columns and their costs where the extreme columns
        are not listed.
        """
        return None

    def level(self, prior: PriorLike, mechanism: MechanismLike) -> float:
        """Compute the largest of `levels`, in nats."""
        return max(self.levels(prior, mechanism).values())

    def holds(self, prior: PriorLike, mechanism: MechanismLike) -> bool:
        """Return whether each level is within its limit, in floating-point arithmetic without tolerance."""
        levels, limits = self.levels(prior, mechanism), self.limits
        return all(map(le, map(levels.__getitem__, limits), limits.values()))


class RequirementConjunction(Requirement):
    """Requirements that must all hold: `one & other`.

    Where each is a list of ratio bounds they are one list, with a sharp bound on the utility and designs for
    sub-convex utilities. With PML over a set of priors or joint laws the bound is sharp too, up to about a
    hundred letters. Others are declared jointly; the bound is then the least of theirs, which may
    leave a gap.

    Parts of one kind stack: each keeps its limit and its level, the second and later ones under the name with
    a number, such as `renyi_pml_2`.

    Args:
        parts: requirements, of which none follows from another by its level only.

    Raises:
        PrivacyError: two parts differ in their levels only, so that one follows from the other.

    Examples:
        >>> import math
        >>> from pmlopt import LDP, PML, RenyiPML
        >>> both = PML(math.log(1.25)) & LDP(math.log(2))
        >>> both.limits["pml"] == math.log(1.25), both.holds([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]])
        (True, True)
        >>> (RenyiPML(2, 0.1) & RenyiPML(8, 0.3)).limits
        {'renyi_pml': 0.1, 'renyi_pml_2': 0.3}
    """

    name: ClassVar[str] = "all-of"
    unsupported_hint: ClassVar[str] = (
        "each part must be a ratio bound, such as PML, LIP or metric privacy"
    )
    parts: tuple[Requirement, ...]

    def __init__(self, *parts: Requirement) -> None:
        flat = [
            part.parts if isinstance(part, RequirementConjunction) else (part,) for part in parts
        ]
        self._set(part for several in flat for part in several)
        for one, other in combinations(self.parts, 2):
            if set(one.limits) & set(other.limits) and differ_in_levels_only(one, other):
                raise PrivacyError(
                    f"{one!r} and {other!r} differ in their levels only, and one follows from the other: "
                    "keep the stricter one"
                )

    def _set(self, parts: Iterable[Requirement]) -> Self:
        self.parts = tuple(parts)
        self._searched: tuple[Any, Any] = (
            None,
            None,
        )  # the gains looked at last, and their weights
        self._names = make_distinct_names([list(part.limits) for part in self.parts])
        return self

    def _with_parts(self, parts: Iterable[Requirement]) -> RequirementConjunction:
        """Return the conjunction of other forms of the same parts."""
        return RequirementConjunction.__new__(RequirementConjunction)._set(parts)

    def for_prior(self, prior: Prior) -> RequirementConjunction:
        return self._with_parts(part.for_prior(prior) for part in self.parts)

    def on_cells(self, cells: LetterCells) -> RequirementConjunction | None:
        parts = [part.on_cells(cells) for part in self.parts]
        known = [part for part in parts if part is not None]
        return self._with_parts(known) if len(known) == len(parts) else None

    def _renamed(self, values: Iterable[Mapping[str, float]]) -> dict[str, float]:
        """Return the limits or the levels of all parts under names that differ."""
        pairs = zip(self._names, values, strict=True)
        return {names[name]: value for names, own in pairs for name, value in own.items()}

    @property
    def limits(self) -> dict[str, float]:
        return self._renamed(part.limits for part in self.parts)

    @property
    def meanings(self) -> tuple[str, ...]:
        return tuple(text for part in self.parts for text in part.meanings)

    @property
    def is_tight(self) -> bool:
        return self.has_ratios

    @property
    def has_ratios(self) -> bool:
        return all(part.has_ratios for part in self.parts)

    @property
    def by_pairs(self) -> bool:
        return self.has_ratios

    def check(self, prior: Prior) -> None:
        for part in self.parts:
            part.check(prior)

    @property
    def scope(self) -> str:
        return "; ".join(part.scope for part in self.parts if part.scope)

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        return self._renamed(part.levels(prior, mechanism) for part in self.parts)

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        declared = [part.to_cvxpy(prior, mechanism, law) for part in self.parts]
        return CvxpyConstraints(
            {
                f"{k}_{name}": item
                for k, one in enumerate(declared)
                for name, item in one.constraints.items()
            },
            {
                f"{k}_{name}": item
                for k, one in enumerate(declared)
                for name, item in one.variables.items()
            },
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        return {
            f"{k}_{name}": value
            for k, part in enumerate(self.parts)
            for name, value in part.auxiliary_values(prior, matrix).items()
        }

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        return reduce(np.maximum, (part.violation(weights, matrix, power) for part in self.parts))

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        if self.has_ratios:
            return super().support_function(prior, gains)
        return min(value for value, _ in self._list_proofs(prior, gains))

    def _find_other_part(self, prior: Prior) -> tuple[int, LinearRows] | None:
        """Return the index of the only part that is no list of pairs, with its linear rows; else None."""
        others = [place for place, part in enumerate(self.parts) if not part.has_ratios]
        rows = self.parts[others[0]].linear_rows(prior) if len(others) == 1 else None
        return None if rows is None else (others[0], rows)

    def _list_proofs(self, prior: Prior, gains: FloatArray) -> Iterator[tuple[float, Witness]]:
        """Yield bounds by single parts, and by the part that is no list, after weights of the others' pairs.

        For any weights, what pairs take off the gains is not collected by any column within them, and what
        they leave is a gain under the other part, with its own support function. One linear program for each
        column of gains has the weights for which that is the support function of all parts.
        """
        for place, part in enumerate(self.parts):
            yield part.support_function(prior, gains), {"part": np.array(float(place))}
        other = self._find_other_part(prior)
        if other is None:
            return
        place, rows = other
        last, ratios = self.parts[place], self._other_ratios(place, prior)
        key = prior, gains.tobytes()
        if (len(ratios.exponents) + 3 * prior.size) * gains.shape[1] <= MAX_JOINT_ENTRIES:
            found = self._searched
            if found[0] != key:
                found = self._searched = (key, ratios.find_weights(prior.pmf, gains, rows))
            weights = found[1]
            left = ratios.remaining_gains(prior.pmf, gains, weights)
            yield (
                last.support_function(prior, left),
                {"part": np.array(float(place)), "others": weights},
            )

    def _other_ratios(self, place: int, prior: Prior) -> RatioBounds:
        """Return the pairs of all parts but one."""
        return join_ratio_bounds(
            [part.ratios(prior.pmf) for k, part in enumerate(self.parts) if k != place]
        )

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return weights of the pairs; where not all parts are pairs, the best part and its dual certificate.

        The weights of the `others`, where they help, come first.
        """
        if self.has_ratios:
            return super().dual_certificate(prior, gains)
        best = min(self._list_proofs(prior, gains), key=lambda found: found[0])[1]
        place = int(best["part"])
        if "others" in best:
            gains = self._other_ratios(place, prior).remaining_gains(
                prior.pmf, gains, best["others"]
            )
        return {**best, **self.parts[place].dual_certificate(prior, gains)}

    def dual_bound(self, prior: Prior, gains: FloatArray, witness: Witness) -> float:
        if self.has_ratios:
            return super().dual_bound(prior, gains, witness)
        place = float(check_certificate_array(witness, "part", ()))
        if place not in range(len(self.parts)):
            raise PrivacyError(f"the proof names part {place:g} of {len(self.parts)}")
        if "others" in witness:
            ratios = self._other_ratios(int(place), prior)
            weights = check_certificate_array(
                witness, "others", (len(ratios.exponents), gains.shape[1])
            )
            gains = ratios.remaining_gains(prior.pmf, gains, weights)
        return self.parts[int(place)].dual_bound(prior, gains, witness)

    def ratios(self, weights: Any) -> RatioBounds | None:
        return (
            join_ratio_bounds([part.ratios(weights) for part in self.parts])
            if self.has_ratios
            else None
        )

    def required_ratios(self, weights: Any) -> RatioBounds | None:
        return (
            join_ratio_bounds([part.required_ratios(weights) for part in self.parts])
            if self.has_ratios
            else None
        )

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts))


MAX_JOINT_ENTRIES = 100_000
"""Rows of all linear programs that look for weights of pairs next to a set of priors: some seconds."""

JOINT_BOUND_HINT = "it bounds all columns of a mechanism together; use PML, LDP or LIP"
"""What to do where a bound is on no single column."""
