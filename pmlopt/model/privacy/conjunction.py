"""Conjunctions of privacy requirements: forms, proofs and names from those of the parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain, combinations, count
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.core.records.fields import Record, get_fields, have_equal_content
from pmlopt.data.mechanism import Mechanism, MechanismLike
from pmlopt.data.prior import Prior, PriorLike
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratios import RatioBounds, join_ratio_bounds
from pmlopt.model.privacy.requirement import (
    CvxpyConstraints,
    Requirement,
    Witness,
    check_certificate_array,
)
from pmlopt.model.uncertainty.prior_set import LinearRows

V = TypeVar("V")

MAX_JOINT_ENTRIES = 100_000
"""Rows of all linear programs that look for weights of pairs next to a set of priors: some seconds."""


class RequirementConjunction(Requirement):
    """The conjunction `one & other` of requirements that must all hold.

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
        self._set_parts(one for part in parts for one in part.list_parts())
        for one, other in combinations(self.parts, 2):
            if set(one.limits) & set(other.limits) and differ_in_levels_only(one, other):
                raise PrivacyError(
                    f"{one!r} and {other!r} differ in their levels only, and one follows from the other: "
                    "keep the stricter one"
                )

    def _set_parts(self, parts: Iterable[Requirement]) -> Self:
        """Set the parts, after checking that they can be combined."""
        self.parts = tuple(parts)
        # the gains looked at last, and their weights
        self._searched: tuple[Any, Any] = (None, None)
        self._names = make_distinct_names([list(part.limits) for part in self.parts])
        return self

    def _with_parts(self, parts: Iterable[Requirement]) -> RequirementConjunction:
        """Return the conjunction of replaced parts."""
        return RequirementConjunction.__new__(RequirementConjunction)._set_parts(parts)

    def list_parts(self) -> tuple[Requirement, ...]:
        return self.parts

    def describe_violation(self, prior: Prior, mechanism: Mechanism) -> str:
        violated = [part for part in self.parts if not part.holds(prior, mechanism)]
        parts = violated or self.parts
        return "; ".join(part.describe_violation(prior, mechanism) for part in parts)

    def for_prior(self, prior: Prior) -> RequirementConjunction:
        """Return the conjunction for the letters of a prior."""
        return self._with_parts(part.for_prior(prior) for part in self.parts)

    def on_cells(self, cells: LetterCells) -> RequirementConjunction | None:
        """Return the requirement on columns that are constant on orbits ("cells") of letters."""
        parts = [part.on_cells(cells) for part in self.parts]
        known = [part for part in parts if part is not None]
        return self._with_parts(known) if len(known) == len(parts) else None

    def _combine_by_name(self, values: Iterable[Mapping[str, float]]) -> dict[str, float]:
        """Combine limits or levels of all parts under unique names."""
        pairs = zip(self._names, values, strict=True)
        return {names[name]: value for names, own in pairs for name, value in own.items()}

    @property
    def limits(self) -> dict[str, float]:
        """Return the upper limits of all parts by unique names, in nats."""
        return self._combine_by_name(part.limits for part in self.parts)

    @property
    def meanings(self) -> tuple[str, ...]:
        """Return the meanings of all parts' limits."""
        return tuple(text for part in self.parts for text in part.meanings)

    def is_tight(self, prior: Prior) -> bool:
        return self.list_ratios(prior) is not None

    def list_weighted_ratios(self, prior: Prior) -> RatioBounds | None:
        return self.list_ratios(prior)

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where a part's letters differ from the prior's."""
        for part in self.parts:
            part.check(prior)

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the parts."""
        return "; ".join(part.scope for part in self.parts if part.scope)

    def levels(self, prior: PriorLike, mechanism: MechanismLike) -> dict[str, float]:
        """Compute the levels of all parts by unique names, in nats."""
        return self._combine_by_name(part.levels(prior, mechanism) for part in self.parts)

    def bound_levels(self, prior: Prior, mechanism: Mechanism) -> dict[str, float]:
        """Compute upper bounds on levels of the parts by unique names, as the parts give them."""
        return self._combine_by_name(part.bound_levels(prior, mechanism) for part in self.parts)

    def to_cvxpy(
        self, prior: Prior, mechanism: cp.Expression, law: cp.Variable
    ) -> CvxpyConstraints:
        """Return the cvxpy constraints of all parts."""
        declared = [part.to_cvxpy(prior, mechanism, law) for part in self.parts]
        return CvxpyConstraints(
            _number_names(one.constraints for one in declared),
            _number_names(one.variables for one in declared),
        )

    def auxiliary_values(self, prior: Prior, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values of the auxiliary cvxpy variables of all parts at a mechanism."""
        return _number_names(part.auxiliary_values(prior, matrix) for part in self.parts)

    def is_met_with_margin(self, prior: Prior, matrix: FloatArray) -> bool:
        """Return whether a mechanism is so far within its bounds that rounding cannot hide a violation."""
        return all(part.is_met_with_margin(prior, matrix) for part in self.parts)

    @property
    def compares_means(self) -> bool:
        """Return whether all parts take no more of a column than sums and largest and least entries."""
        return all(part.compares_means for part in self.parts)

    def violation(self, weights: Any, matrix: Any, power: Callable[[float], Any]) -> Any:
        """Compute the constraint violations of all parts."""
        return reduce(np.maximum, (part.violation(weights, matrix, power) for part in self.parts))

    def support_function(self, prior: Prior, gains: FloatArray) -> float:
        if self.list_ratios(prior) is not None:
            return super().support_function(prior, gains)
        return min(value for value, _ in self._list_proofs(prior, gains))

    def _find_other_part(self, prior: Prior) -> tuple[int, LinearRows] | None:
        """Return the index of the only part that is no list of pairs, with its linear rows; else None."""
        others = [k for k, part in enumerate(self.parts) if part.list_ratios(prior) is None]
        rows = self.parts[others[0]].linear_rows(prior) if len(others) == 1 else None
        return None if rows is None else (others[0], rows)

    def _list_proofs(self, prior: Prior, gains: FloatArray) -> Iterator[tuple[float, Witness]]:
        """Yield candidate dual bounds with their certificates: by single parts, and by combined multipliers.

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
        last = self.parts[place]
        ratios = self._other_ratios(place, prior)
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
        others = (part for k, part in enumerate(self.parts) if k != place)
        found = join_ratio_bounds(part.list_ratios(prior) for part in others)
        assert found is not None
        return found

    def dual_certificate(self, prior: Prior, gains: FloatArray) -> Witness:
        """Return pair weights, or the best part with its own dual certificate.

        The weights of the `others`, where they help, come first.
        """
        if self.list_ratios(prior) is not None:
            return super().dual_certificate(prior, gains)
        best = min(self._list_proofs(prior, gains), key=lambda found: found[0])[1]
        place = int(best["part"])
        if "others" in best:
            gains = self._other_ratios(place, prior).remaining_gains(
                prior.pmf, gains, best["others"]
            )
        return {**best, **self.parts[place].dual_certificate(prior, gains)}

    def dual_bound(self, prior: Prior, gains: FloatArray, certificate: Witness) -> float:
        if self.list_ratios(prior) is not None:
            return super().dual_bound(prior, gains, certificate)
        place = float(check_certificate_array(certificate, "part", ()))
        if place not in range(len(self.parts)):
            raise PrivacyError(f"the proof names part {place:g} of {len(self.parts)}")
        if "others" in certificate:
            ratios = self._other_ratios(int(place), prior)
            weights = check_certificate_array(
                certificate, "others", (len(ratios.exponents), gains.shape[1])
            )
            gains = ratios.remaining_gains(prior.pmf, gains, weights)
        return self.parts[int(place)].dual_bound(prior, gains, certificate)

    def ratios(self, weights: Any) -> RatioBounds | None:
        return join_ratio_bounds(part.ratios(weights) for part in self.parts)

    def required_ratios(self, weights: Any) -> RatioBounds | None:
        return join_ratio_bounds(part.required_ratios(weights) for part in self.parts)

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts))


def _number_names(several: Iterable[Mapping[str, V]]) -> dict[str, V]:
    """Join tables, with the number of each before its names."""
    return {f"{k}_{name}": item for k, one in enumerate(several) for name, item in one.items()}


def make_distinct_names(each: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Make the limit names of all parts unique, by appending numbers."""
    taken: set[str] = set()
    found: list[dict[str, str]] = []
    for names in each:
        own: dict[str, str] = {}
        for name in names:
            others = (f"{name}_{number}" for number in count(2))
            own[name] = next(new for new in chain([name], others) if new not in taken)
            taken.add(own[name])
        found.append(own)
    return found


LEVEL_FIELDS = ("epsilon", "lower", "upper")
"""The fields of requirements that are levels: with larger ones a requirement is weaker."""


def differ_in_levels_only(one: Record, other: Record) -> bool:
    """Return whether two requirements differ only in levels, one being stricter in each."""
    if type(one) is not type(other):
        return False
    kind: Any = type(one)
    names = [field.name for field in get_fields(kind)]
    rest = [name for name in names if name not in LEVEL_FIELDS]
    if not all(have_equal_content(getattr(one, name), getattr(other, name)) for name in rest):
        return False
    pairs = [
        (np.asarray(getattr(one, name)), np.asarray(getattr(other, name)))
        for name in names
        if name in LEVEL_FIELDS
    ]
    if any(own.shape != their.shape for own, their in pairs):
        return False
    weaker = all((own <= their).all() for own, their in pairs)
    return bool(weaker or all((own >= their).all() for own, their in pairs))
