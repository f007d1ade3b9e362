"""Which numbers of a file that is published follow from stated counts, and which tell more about people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label, make_label_key
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret
from pmlopt.model.uncertainty.center import Center
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.programs.declared_parts import DeclaredPart, count_sample, has_sample, walk_parts
from pmlopt.programs.result import Result
from pmlopt.publishing.rounded_counts import choose_rounding_step, round_counts

Comparison: TypeAlias = Literal["stated", "exact"]


@dataclass(frozen=True)
class StatedCounts:
    """The counts of people that a release states, with what these are rounded from where it is known.

    Attributes:
        stated: the rounded counts by letter, of the letters that occur.
        people: how many there are.
        exact: the counts themselves; None for a reader of the release.
    """

    stated: Mapping[Label, int]
    people: int
    exact: Mapping[Label, int] | None = None

    @property
    def step(self) -> int:
        """Return the step to which the counts of so many people are rounded."""
        return choose_rounding_step(self.people)

    def compare(
        self, labels: Sequence[Label], numbers: Any, slack: float = 0.25
    ) -> set[Comparison]:
        """Compare rows of numbers that are proportional to shares of letters with stated and exact counts.

        A row is `exact` where it tells the counts to a part of a step (`slack`), or, without these, where
        people of such shares would be stated as these are. Letters that nobody has do not count.
        """
        places = {make_label_key(label): place for place, label in enumerate(labels)}
        common = [label for label in self.stated if make_label_key(label) in places]
        own = np.atleast_2d(np.asarray(numbers, dtype=float))
        own = own[:, [places[make_label_key(one)] for one in common]]
        own = own[np.isfinite(own).all(axis=1)]
        if len(common) < 2 or not len(own):
            return set()
        # the uniform law is nobody's
        own = own[(own.min(axis=1) >= 0) & (np.ptp(own, axis=1) > 1e-12 * own.max(axis=1))]
        shares = own / own.sum(axis=1, keepdims=True)
        told = np.array([self.stated[label] for label in common], dtype=float)
        stated = np.abs(shares - told / told.sum()).max(axis=1, initial=0) < 1e-9
        found: set[Comparison] = {"stated"} if stated.any() else set()
        if self._find_exact(shares[~stated], common, slack):
            found.add("exact")
        return found

    def _find_exact(self, shares: FloatArray, letters: list[Label], slack: float) -> bool:
        """Return whether a row of shares of some letters tells the exact counts."""
        if self.exact is not None:
            counts = np.array([self.exact[label] for label in letters], dtype=float)
            off = np.abs(shares * counts.sum() - counts).max(axis=1, initial=0)
            return bool((off <= slack * self.step).any())
        if len(letters) < len(self.stated):
            return False
        told = np.array([self.stated[label] for label in letters])
        near = shares[np.abs(shares * told.sum() - told).max(axis=1, initial=0) <= 2 * self.step]
        possible = np.maximum(np.rint(near * self.people), 1).astype(np.int64)
        return any(
            np.array_equal(round_counts(counts, self.step, letters), told) for counts in possible
        )


@dataclass(frozen=True)
class Finding:
    """A number of a file that does not follow from the stated counts.

    Attributes:
        path: where it stands in the file.
        reason: what it tells.
        certain: whether it tells counts of people, or only may.
    """

    path: str
    reason: str
    certain: bool

    def __str__(self) -> str:
        return f"{self.path} {self.reason}"


def find_unstated_numbers(
    made: Mechanism | Result[Any], laws: Sequence[StatedCounts]
) -> Iterator[Finding]:
    """Yield the numbers of a file that do not follow from the counts that are stated.

    Every prior, joint law, set of priors, requirement, utility and constraint of the certificate is looked
    at, whatever its kind: it is found by its fields.

    Args:
        made: what is saved.
        laws: the counts that are stated; a number may follow from any of them.
    """
    mechanism = made if isinstance(made, Mechanism) else made.mechanism
    bare = isinstance(made, Mechanism) or not made.certificate.is_of_design
    if bare and not is_chosen_by_hand(mechanism.matrix):
        yield Finding("the matrix", _BARE, False)
    if isinstance(made, Mechanism):
        return
    yield from find_unstated_parts(
        (
            *walk_parts("", made.certificate),
            *walk_parts("solver_options", made.solver_options, made),
        ),
        mechanism.inputs,
        laws,
    )


def find_unstated_parts(
    parts: Iterable[DeclaredPart], labels: Sequence[Label], laws: Sequence[StatedCounts]
) -> Iterator[Finding]:
    """Yield the parts of what was declared that do not follow from the counts that are stated.

    Args:
        parts: as of `walk_parts`.
        labels: of the letters.
        laws: the counts that are stated.
    """
    for part in parts:
        found = _check_part(part, labels, laws)
        if found is not None:
            yield Finding(part.path, *found)


_BARE = "comes without the law that it was designed for, and its level may tell the exact shares"
_DIGITS = "does not follow from the stated counts, and has more than four digits behind the point"
_EXACT = "has the exact shares of these people, or nearly"


Verdict: TypeAlias = tuple[str, bool] | None
"""Why a number does not follow from the stated counts, and whether it is certain; None where it may stand."""


def _check_part(
    part: DeclaredPart, labels: Sequence[Label], laws: Sequence[StatedCounts]
) -> Verdict:
    """Decide on a part of what was declared, on letters with labels."""
    if isinstance(part.value, Prior | Center):
        return _check_law(part.value, laws)
    if isinstance(part.value, Secret):
        return _check_secret(part.value, laws)
    if isinstance(part.value, PriorSet):
        sampled = has_sample(part.value)
        return ("holds for a sample of people, whose counts it tells", True) if sampled else None
    return _check_array(part.value, isinstance(part.owner, PriorSet), labels, laws)


def _compare(
    labels: Sequence[Label], numbers: Any, laws: Sequence[StatedCounts], slack: float = 0.25
) -> set[Comparison]:
    """Compare rows of numbers with the counts of several laws."""
    return set().union(*(one.compare(labels, numbers, slack) for one in laws))


def _check_law(law: Prior | Center, laws: Sequence[StatedCounts]) -> Verdict:
    """Decide on a prior, or the center of a set."""
    compared = _compare(law.labels, law.probabilities, laws)
    if "stated" in compared:
        return None
    counts = None if law.counts is None else np.array(law.counts, dtype=object)
    if counts is not None and _are_rounded(counts, laws):
        return None
    if (sample := count_sample(law)) is not None:
        return f"has the exact counts of {sample:,} people", True
    few = has_few_digits(law.probabilities)
    if "exact" in compared:
        # a reader cannot tell a law that is known otherwise from that of the people
        certain = not few or any(one.exact is not None for one in laws)
        return (_EXACT, True) if certain else None
    if few or (counts is not None and _are_multiples(counts)):
        return None
    return _DIGITS, False


def _check_secret(secret: Secret, laws: Sequence[StatedCounts]) -> Verdict:
    """Decide on a joint law of a secret and the letters."""
    if all(_are_rounded(law, laws) for law in secret.weights):
        return None
    if (sample := count_sample(secret)) is not None:
        return f"has the exact counts of {sample:,} people", True
    for law in secret.joint:
        letters = law.sum(axis=0)
        compared = _compare(secret.labels, letters, laws)
        if "exact" in compared and "stated" not in compared:
            return _EXACT, True
        known = has_few_digits(law) or (
            ("stated" in compared or has_few_digits(letters)) and has_few_digits(law / letters)
        )
        if not known:
            return _DIGITS, False
    return None


def _check_array(
    array: Any, is_of_set: bool, labels: Sequence[Label], laws: Sequence[StatedCounts]
) -> Verdict:
    """Decide on numbers of a set of priors, a requirement, a utility or a constraint."""
    if array.dtype.kind not in "iuf" or not array.size:
        return None
    few = has_few_digits(array)
    slack = 1e-6 if has_few_digits(array, 2) else 0.25
    vectors = list(_list_shares(array, len(labels)))
    compared = _compare(labels, np.array(vectors), laws, slack) if vectors else set()
    if "exact" in compared and "stated" not in compared:
        if any(one.exact is not None for one in laws):
            return _EXACT, True
        # a reader cannot tell numbers that are known otherwise from those of the people
        return None if few or not is_of_set else (_EXACT, False)
    is_distance = array.ndim == 2 and len(set(array.shape)) == 1 and not np.diagonal(array).any()
    if few or is_distance or not is_of_set or "stated" in compared:
        return None
    return _DIGITS, False


def _list_shares(array: Any, letters: int) -> Iterator[FloatArray]:
    """Yield the vectors of an array that may be made of the shares of letters, up to a factor."""
    most = 1000  # rows of one array
    for axis, size in enumerate(array.shape):
        if size != letters:
            continue
        rows = np.moveaxis(array, axis, -1).reshape(-1, letters).astype(float)
        distinct = np.unique(rows[np.isfinite(rows).all(axis=1)], axis=0)[:most]
        if not len(distinct):
            continue
        for row in (*distinct, distinct.mean(axis=0)):
            yield from _list_transforms(row)
    if array.shape == (letters, letters):
        yield from _list_transforms(np.diagonal(array).astype(float))


def _list_transforms(numbers: FloatArray) -> Iterator[FloatArray]:
    """Yield the shares that numbers may be made of: themselves, without a common term, and reciprocals."""
    yield numbers
    yield numbers + (1 - numbers.sum()) / len(numbers)
    if numbers.min() > 0:
        yield 1 / numbers


def _are_multiples(counts: Any) -> bool:
    """Return whether counts are rounded as those of so many people are."""
    step = choose_rounding_step(int(counts.sum()))
    return not any(int(count) % step for count in counts.ravel())


def _are_rounded(counts: Any, laws: Sequence[StatedCounts]) -> bool:
    """Return whether counts are rounded ones of about as many people as a release has."""
    return _are_multiples(counts) and any(
        int(counts.sum()) <= 1.5 * one.people + 2 * one.step * counts.size for one in laws
    )


def has_few_digits(numbers: Any, digits: int = 4) -> bool:
    """Return whether numbers are all equal, decimals of few digits, or fractions of a small denominator.

    Examples:
        >>> has_few_digits([0.725, 0.275]), has_few_digits([2 / 3, 1 / 3])
        (True, True)
        >>> has_few_digits([143 / 197, 54 / 197])
        False
    """
    array = np.asarray(numbers, dtype=float)
    values = np.unique(array[np.isfinite(array)])
    constant = len(values) < min(2, array.size)
    units = (10**digits, *range(2, 101))
    # a few values refute most units
    return constant or any(
        all(
            np.abs(part - np.rint(part * unit) / unit).max() < 1e-9
            for part in (values[:99], values)
        )
        for unit in units
    )


def is_chosen_by_hand(matrix: FloatArray) -> bool:
    """Return whether the numbers of a matrix show that no shares of people are in them.

    They do where they have two digits, or are fractions of a small denominator, and in a local randomizer,
    whose columns have two numbers each, in one ratio.

    Examples:
        >>> is_chosen_by_hand(np.array([[0.75, 0.25], [0.25, 0.75]]))
        True
        >>> is_chosen_by_hand(np.array([[0.6001, 0.3999], [0.1234, 0.8766]]))
        False
    """
    if has_few_digits(matrix, 2):
        return True
    columns = matrix[:, np.ptp(matrix, axis=0) > 0]
    low = columns.min(axis=0)
    high = columns.max(axis=0)
    if not columns.size or not low.all():
        return not columns.size
    distances = np.minimum(columns - low, high - columns)
    return bool(distances.max() < 1e-9 and np.ptp(np.log(high / low)) < 1e-9)
