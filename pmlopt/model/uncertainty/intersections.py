"""Sets of priors that are in each of several sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pmlopt.core.lazy_imports import cp
from pmlopt.core.numbers.arrays import FloatArray, Labels, check_probability
from pmlopt.core.numbers.roots import find_near_share
from pmlopt.data.symmetry.prior import LetterCells
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.dual_measures import CommonPriors
from pmlopt.model.uncertainty.polytope import Polytope
from pmlopt.model.uncertainty.prior_set import MinMeanExpression, PriorSet, require_form


class Intersection(PriorSet):
    """The priors that are in each of K sets.

    The least mean of a column v is the largest `sum_k w_k(v_k)` over columns with `sum_k v_k = v`, w_k being
    the least means over the sets: any such columns prove a bound. The function `intersection` makes a
    `Polytope` of sets by rows.

    Args:
        sets: K of them, on the same letters; all but one decide about rationals (`contains_rationals`).
        delta: the probability that the true distribution is outside; None where a set has none.

    Raises:
        PrivacyError: the sets are on different letters, have no prior in common, or only some that rounding
            could leave out.
    """

    kind: ClassVar[str] = "intersection"
    sets: tuple[PriorSet, ...]

    def __init__(self, sets: Sequence[PriorSet], delta: float | None = None) -> None:
        self.sets = tuple(sets)
        self.delta = None if delta is None else check_probability(delta)
        if not self.sets or not all(isinstance(one, PriorSet) for one in self.sets):
            raise PrivacyError("an intersection is of one or more sets of priors: give PriorSets")
        self.labels = find_common_labels(self.sets)
        self._inner_law  # noqa: B018  # raises where there is none

    @property
    def mean_atol(self) -> float:
        """Return 1e-7, by which a least mean may be below the true one, per spread of a column."""
        return 1e-7

    @property
    def size(self) -> int:
        """Return N, the number of letters."""
        return self.sets[0].size

    @property
    def description(self) -> str:
        """Return which priors these are, in words that follow "for every prior"."""
        return " and ".join(one.description for one in self.sets)

    def simplify(self) -> PriorSet | FloatArray:
        """Return the only prior of a set that has one, or the only set that leaves a prior out, else the
        intersection.
        """
        simple = [one.simplify() for one in self.sets]
        for one in simple:
            if isinstance(one, np.ndarray):
                return one
        limiting = [one for one in simple if isinstance(one, PriorSet) and one.kind != "all-priors"]
        if len(limiting) > 1:
            return self
        return limiting[0] if limiting else self.sets[0].simplify()

    # ------------------------------------------------------------ least means

    def _find_measures(self, matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Find (N, M) priors of least mean for the columns of a matrix, and (K, N, M) parts of the columns
        that prove it, both as near as a solver comes.
        """
        found = self._common_priors.find_laws(matrix)
        if found is None:
            raise PrivacyError(f"no prior of {self!r} was found: the sets may have none in common")
        return found

    @cached_property
    def _common_priors(self) -> CommonPriors:
        """Return the convex programs of least means."""
        return CommonPriors([one.constrain_measures for one in self.sets])

    def _split(self, matrix: FloatArray) -> FloatArray:
        """Find (K, N, M) columns of large least means whose sums are the columns of a matrix, from 0 to 1."""
        parts = self._find_measures(matrix)[1]
        # what a solver leaves goes to all alike
        missing = matrix - parts.sum(axis=0)
        return np.asarray(parts + missing / len(self.sets))

    def min_mean(self, matrix: FloatArray) -> FloatArray:
        """Compute the (M,) least mean of each column of an (N, M) matrix over the set."""
        lowest = matrix.min(axis=0)
        spread = np.ptp(matrix, axis=0)
        parts = self._split((matrix - lowest) / np.where(spread > 0, spread, 1.0))
        least = sum(one.min_mean(part) for one, part in zip(self.sets, parts, strict=True))
        return np.asarray(lowest + spread * np.clip(least, 0.0, 1.0))

    @cached_property
    def has_rare_letters(self) -> bool:
        """Return whether sums of floats lose probabilities of one of the sets."""
        return any(one.has_rare_letters for one in self.sets)

    def min_mean_scaled(self, matrix: Any) -> tuple[Any, Any]:
        """Compute the least means in floats and one; or lower bounds on them for integers, times a number.

        Args:
            matrix: (N, M) floats, or an object array of Python integers.
        """
        if matrix.dtype != object:
            return self.min_mean(matrix), 1.0
        lowest = matrix.min(axis=0)
        spread = matrix.max(axis=0) - matrix.min(axis=0)
        units = np.where(spread > 0, spread, 1)
        floats = np.array((matrix - lowest) / units, dtype=float)
        bits = 64
        # whole parts of 2^-64 of the spread, of which the last set has what is left
        given = [
            np.array([int(value) for value in part.ravel().tolist()], dtype=object).reshape(
                matrix.shape
            )
            for part in np.rint(self._split(floats)[:-1] * 2.0**bits)
        ]
        parts = [one * units for one in given]
        rest = ((matrix - lowest) << bits) - sum(parts, 0 * matrix)
        found = [
            one.min_mean_scaled(part) for one, part in zip(self.sets, [*parts, rest], strict=True)
        ]
        unit = math.lcm(*(int(parts) for _, parts in found))
        total = sum(least * (unit // int(parts)) for least, parts in found)
        least = np.maximum(total, 0) + (lowest << bits) * unit
        return np.array(least, dtype=object), unit << bits

    def minimizer(self, column: FloatArray) -> FloatArray:
        """Return an (N,) prior of the set at which the mean of the (N,) column is least, as near as a solver
        comes.
        """
        spread = float(np.ptp(column)) or 1.0
        scaled = (column - column.min()) / spread
        laws, _ = self._find_measures(scaled[:, None])
        return self._find_member(np.maximum(laws[:, 0], 0.0))

    # ------------------------------------------------------------ members

    @cached_property
    def _possible_bases(self) -> Sequence[int]:
        """Return the positions of the sets by whose projection priors of all may be found: that of the only
        one that does not decide about rationals, or all.

        Raises:
            PrivacyError: several do not.
        """
        n = self.size
        law = [Fraction(1, n)] * n
        found = [
            k
            for k, one in enumerate(self.sets)
            if type(one).contains_rationals is PriorSet.contains_rationals
        ]
        if len(found) > 1:
            require_form(
                self.sets[found[1]].contains_rationals(law),
                self.sets[found[1]],
                "intersections of several such sets",
                "no exact membership",
            )
        return found or range(len(self.sets))

    @cached_property
    def _inner_law(self) -> tuple[int, Any]:
        """Return the position of a set, and (N,) rationals: a prior of each of the sets for certain, found by
        the projection of that one.

        Raises:
            PrivacyError: there is none, or only some that rounding could leave out.
        """
        every = np.hstack([np.eye(self.size), 1 - np.eye(self.size)])
        law = np.maximum(self._find_measures(every)[0], 0.0).mean(axis=1)
        # equations that the priors of one set fulfil, such as the mass of a letter that cannot move, are
        # kept by its own projection
        for base in self._possible_bases:
            near = require_form(
                self.sets[base].project_to_rationals(law / law.sum()),
                self.sets[base],
                "intersections",
                "no prior in rationals near given numbers",
            )
            if self._others_contain(near, base):
                return base, near
        raise PrivacyError(
            f"the sets {', '.join(map(repr, self.sets))} have no prior in common, or only some at "
            "their boundaries: make one of them larger"
        )

    def _others_contain(self, law: Any, base: int) -> bool:
        """Return whether rationals that are in the set at a position are in all others for certain."""
        return all(
            one.contains_rationals(law.tolist()) is True
            for k, one in enumerate(self.sets)
            if k != base
        )

    def project_to_rationals(self, law: FloatArray) -> Any:
        """Return (N,) rationals: a prior of all sets, for certain, that is near a law where the law is near
        the set.
        """
        base, inner = self._inner_law
        near = self.sets[base].project_to_rationals(law)
        step = inner - near
        share = Fraction(0)
        for one in (one for k, one in enumerate(self.sets) if k != base):

            def is_inside(share: Fraction, one: PriorSet = one) -> bool:
                return one.contains_rationals((near + share * step).tolist()) is True

            # the sets are convex: what is inside at a share is so at larger ones
            if not is_inside(share):
                share = find_near_share(is_inside, share)
        return near + share * step

    @property
    def member_slack(self) -> float:
        """Return 0: `find_members` gives priors of the set for certain."""
        return 0.0

    def contains_law(self, p: FloatArray) -> bool:
        """Return whether the (N,) probabilities are in the set, up to rounding (`MEMBERSHIP_ATOL`)."""
        return all(one.contains_law(p) for one in self.sets)

    def contains_rationals(self, law: Sequence[Fraction]) -> bool | None:
        """Return whether N rationals of at least 0 that sum to one are in all sets for certain; None where a
        set cannot decide.
        """
        found = [one.contains_rationals(law) for one in self.sets]
        return False if False in found else None if None in found else True

    # ------------------------------------------------------------ forms

    def on_cells(self, cells: LetterCells) -> PriorSet | None:
        """Return the intersection of the sets on the cells; None where one has no such form.

        Priors of two invariant sets that have the same masses of cells have the same average over the group,
        which is in both: what all sets have on the cells, their intersection has.
        """
        parts = [part for one in self.sets if (part := one.on_cells(cells)) is not None]
        return Intersection(parts, self.delta) if len(parts) == len(self.sets) else None

    def constrain_measures(
        self, measures: cp.Expression, masses: cp.Expression
    ) -> list[cp.Constraint]:
        """Return constraints by which each measure is a prior of all sets times its mass."""
        return [rule for one in self.sets for rule in one.constrain_measures(measures, masses)]

    def to_cvxpy(self, mechanism: cp.Variable, largest: cp.Variable) -> MinMeanExpression:
        """Return `sum_k w_k(u_k) + c` with columns u_k of at least 0 and `sum_k u_k + c <= v`."""
        level = cp.Variable(largest.shape, name="level")
        constraints: dict[str, cp.Constraint] = {}
        variables = {"level": level}
        total: cp.Expression = np.ones((self.size, 1)) @ level
        value: cp.Expression = level
        for k, one in enumerate(self.sets):
            part = variables[f"part_{k}"] = cp.Variable(mechanism.shape, nonneg=True)
            top = variables[f"top_{k}"] = cp.Variable(largest.shape, nonneg=True)
            constraints[f"top_{k}"] = part <= np.ones((self.size, 1)) @ top
            inner = one.to_cvxpy(part, top)
            constraints |= {f"{name}_{k}": rule for name, rule in inner.constraints.items()}
            variables |= {f"{name}_{k}": variable for name, variable in inner.variables.items()}
            total = total + part
            value = value + inner.value
        return MinMeanExpression(value, {"parts": total <= mechanism, **constraints}, variables)

    def auxiliary_values(self, matrix: FloatArray) -> dict[str, FloatArray]:
        """Return the values that the variables brought by `to_cvxpy` take at a given matrix."""
        lowest = matrix.min(axis=0)
        spread = np.ptp(matrix, axis=0)
        parts = self._split((matrix - lowest) / np.where(spread > 0, spread, 1.0)) * spread
        lows = parts.min(axis=1)
        # the sums may be above the matrix by rounding of the last digits only
        level = lowest + lows.sum(axis=0)
        found = {"level": level[None, :]}
        for k, (one, part, low) in enumerate(zip(self.sets, parts, lows, strict=True)):
            own = part - low
            found |= {f"part_{k}": own, f"top_{k}": own.max(axis=0, keepdims=True)}
            found |= {f"{name}_{k}": value for name, value in one.auxiliary_values(own).items()}
        return found

    def __repr__(self) -> str:
        return f"Intersection({', '.join(map(repr, self.sets))})"


def find_common_labels(sets: Sequence[PriorSet]) -> Labels | None:
    """Return the labels of the letters that some sets have in common; None where they know none.

    Raises:
        PrivacyError: they are on different letters.
    """
    known = [one for one in sets if one.labels is not None]
    for one in sets:
        if known:
            one.check_letters(known[0].labels or (), f"{known[0]!r}")
        elif one.size != sets[0].size:
            raise PrivacyError(
                f"the sets are on {sets[0].size} and on {one.size} letters: give sets on the same ones"
            )
    return known[0].labels if known else None


def intersection(*sets: PriorSet) -> PriorSet:
    """Build the set of the priors that are in each of some sets.

    Sets by linear inequalities (`half_spaces`: boxes, least masses, polytopes) are one `Polytope`; with
    others it is an `Intersection`, and with a set of a single prior that set. Where sets were made from
    samples, so that each may miss the true law with its delta, the result may with the sum of these.

    Args:
        sets: one or more, on the same letters.

    Raises:
        PrivacyError: they have no prior in common, or are on different letters.

    Examples:
        >>> from pmlopt import Box, KLBall, MinimumMass
        >>> both = intersection(MinimumMass(2, 0.1), Box([0.0, 0.0], [0.4, 1.0]))
        >>> both.min_mean(np.eye(2)).round(12)
        array([0.1, 0.6])
        >>> intersection(KLBall([0.5, 0.5], 0.02), MinimumMass(2, 0.45)).min_mean(np.eye(2)).round(6)
        array([0.45, 0.45])
    """
    if len(sets) == 1 and isinstance(sets[0], PriorSet):
        return sets[0]
    checked = [one for one in sets if isinstance(one, PriorSet)]
    if len(checked) < len(sets) or not sets:
        raise PrivacyError(f"{sets!r:.80} are no sets of priors: give some, such as a Box")
    deltas = [one.delta for one in checked if one.delta is not None]
    # any one of the samples may be misleading
    delta = math.fsum(deltas) if deltas else None
    if delta is not None and delta >= 1:
        raise PrivacyError(
            f"the sets miss the true law with probabilities that sum to {delta:g}: nothing is left"
        )
    labels = find_common_labels(checked)
    single = next((one for one in checked if isinstance(one.simplify(), np.ndarray)), None)
    if single is not None:
        law = np.asarray(single.simplify())
        if all(one.contains_law(law) for one in checked):
            return single
        raise PrivacyError(f"the only prior of {single!r} is not in all sets: none is in common")
    by_rows = [(one, spaces) for one in checked if (spaces := one.half_spaces()) is not None]
    others = [one for one in checked if one.half_spaces() is None]
    if len(by_rows) < 2:
        return Intersection(checked, delta)
    rows = np.vstack([spaces.rows for _, spaces in by_rows])
    right = np.concatenate([spaces.right for _, spaces in by_rows])
    merged = Polytope(rows, right, labels, None if others else delta)
    return Intersection([*others, merged], delta) if others else merged
