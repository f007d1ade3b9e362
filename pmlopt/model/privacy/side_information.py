"""Leakage to adversaries who know some attributes of the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from pmlopt.core.numbers.arrays import Label, abbreviate, check_nonnegative, check_real
from pmlopt.data.prior import Prior
from pmlopt.data.secret import Secret, check_secret
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import RatioBounds, make_ratio_bounds
from pmlopt.model.privacy.secret_leakage import check_secret_prior, make_secret_limit_name

Known: TypeAlias = Literal["any"] | tuple[int, ...]
"""The attributes that may be known, by their positions in the letters from 0; or any of them."""


class SideInformationPML(RatioRequirement):
    """epsilon-PML for adversaries who know any subset of some attributes of the data.

    The letters are tuples of attributes. For each subset J of those that may be known, also the empty one,
    and each of its values x_J: `P(y | s, x_J) <= e^epsilon P(y | x_J)` for each value s of the secret that
    may occur with it; without a secret, `P[x,y] <= e^epsilon P(y | x_J)` for each letter x.

    See `PML(epsilon, known=...)`, which is how it is made.

    Source: [lopuhaa2020viewpoint], of which this is the bound from above.
    """

    name: ClassVar[str] = "pml-given-known"
    meaning: ClassVar[str] = (
        "Whichever of these attributes an adversary knows, no outcome makes a correct guess more than "
        "e^{limit} times as likely."
    )
    epsilon: float
    known: Known
    about: Secret | None

    def __init__(
        self,
        epsilon: float,
        known: Known | Iterable[int],
        about: Secret | None = None,
        letters: Sequence[Label] | None = None,
    ) -> None:
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        check_secret(about)
        self.known = _check_positions(known)
        self.about = about
        self._letters = letters if about is None else about.labels
        if self._letters is not None:
            self._cells = _list_known_cells(self._letters, self.known)

    @classmethod
    def from_fields(
        cls, epsilon: float, known: Known, about: Secret | None = None
    ) -> SideInformationPML:
        """Build the requirement from a saved file's fields."""
        return cls(epsilon, known, about)

    def for_prior(self, prior: Prior) -> SideInformationPML:
        """Return the requirement for the letters of a prior, with its attributes.

        Raises:
            PrivacyError: the letters are no tuples of one length, or have no attribute of a position.
        """
        if self._letters is not None:
            return self
        return SideInformationPML(self.epsilon, self.known, None, prior.labels)

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        if self.about is not None:
            check_secret_prior(self.about, prior)
        self.for_prior(prior)

    @property
    def limit(self) -> str:
        """Return the display name of the leakage limit."""
        start = "pml" if self.about is None else make_secret_limit_name(self.about)
        return f"{start}_given_known"

    @property
    def scope(self) -> str:
        """Return text on the priors or slack of the bound; empty for the given prior only."""
        if self.known == "any":
            return "given any subset of the attributes"
        return f"given any subset of the attributes {', '.join(map(str, self.known))}"

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers)."""
        if self._letters is None:
            raise PrivacyError("the attributes are those of letters: take `for_prior(prior)` first")
        laws: list[Any] = [weights[None]]
        if self.about is not None:
            laws = list(self.about.weights if weights.dtype == object else self.about.joint)
        above = []
        below = []
        for law in laws:
            for cell in self._cells:
                inside = np.zeros(law.shape[1], dtype=bool)
                inside[list(cell)] = True
                within = np.where(inside, law, 0 * law)
                mean = within.sum(axis=0)
                for given in self._conditional_rows(within, cell):
                    above.append((given, given.sum()))
                    below.append((mean, mean.sum()))
        return make_ratio_bounds(above, below, [self.epsilon] * len(above))

    def _conditional_rows(self, within: Any, cell: tuple[int, ...]) -> Iterator[Any]:
        """Yield the laws of X given each secret value and the known attribute values."""
        if self.about is not None:
            yield from (row for row in within if row.any())
            return
        for place in cell:
            alone = 0 * within[0]
            alone[place] = within[0][place]
            yield alone

    def __repr__(self) -> str:
        about = "" if self.about is None else f"about={self.about!r}, "
        return f"PML({self.epsilon}, {about}known={self.known!r})"


def build_pml_given_known(
    epsilon: Any, known: Any, over: Any, about: Secret | None
) -> SideInformationPML:
    """Build PML given known attributes, from the arguments of `PML`.

    Raises:
        PrivacyError: budgets or a set of laws are given, with which it has no form.
    """
    if np.ndim(epsilon) > 0 or over is not None:
        raise PrivacyError(
            "`known` is of one level under the given laws: leave out budgets and `over`, or join two "
            "requirements by &"
        )
    return SideInformationPML(float(np.asarray(epsilon)), known, about)


def _check_positions(known: Any) -> Known:
    """Validate attribute positions: "any", or distinct indices in order.

    Raises:
        PrivacyError: they are neither.
    """
    if isinstance(known, str):
        if known != "any":
            raise PrivacyError(
                f'`known` is {known!r}: give "any", or the positions of attributes, from 0'
            )
        return "any"
    if not isinstance(known, Iterable):
        raise PrivacyError(
            f'`known` is {known!r:.60}: give "any", or a list of positions such as [0, 2]'
        )
    places = [_check_position(place) for place in known]
    if not places:
        raise PrivacyError("`known` names no attribute: leave it out where nothing is known")
    if len(set(places)) < len(places):
        raise PrivacyError(f"`known` is {places}, which has a position twice")
    return tuple(sorted(places))


def _check_position(place: Any) -> int:
    """Validate a nonnegative attribute position."""
    number = check_real(place, "the position of a known attribute", PrivacyError)
    if number != int(number) or number < 0:
        raise PrivacyError(
            f"the position of a known attribute is {place!r:.40}: they are counted from 0"
        )
    return int(number)


def _list_known_cells(letters: Sequence[Label], known: Known) -> list[tuple[int, ...]]:
    """List the sets of letters that agree on a subset of the attributes, without duplicates.

    Raises:
        PrivacyError: the letters are no tuples of one length, have no such attribute, or there are too many.
    """
    # The most ratio bounds for all subsets and values: designs with more take hours.
    max_known_pairs = 100_000
    sizes = {len(letter) if isinstance(letter, tuple) else 0 for letter in letters}
    if len(sizes) != 1 or 0 in sizes:
        raise PrivacyError(
            f"`known` is about attributes, and the letters {abbreviate(letters)} are no tuples of one "
            "length: give "
            'letters such as ("young", "north")'
        )
    count = sizes.pop()
    places = tuple(range(count)) if known == "any" else known
    if places[-1] >= count:
        raise PrivacyError(
            f"`known` has the position {places[-1]}, and the letters have {count} attributes"
        )
    if 2 ** len(places) * len(letters) > max_known_pairs:
        raise PrivacyError(
            f"{len(places)} known attributes of {len(letters)} letters have more than {max_known_pairs} "
            "bounds: name fewer attributes that may be known"
        )
    found: dict[tuple[int, ...], None] = {}
    for number in range(len(places) + 1):
        for subset in combinations(places, number):
            groups: dict[tuple[Any, ...], list[int]] = {}
            for place, letter in enumerate(letters):
                groups.setdefault(tuple(letter[k] for k in subset), []).append(place)  # type: ignore[index]
            found |= dict.fromkeys(tuple(group) for group in groups.values() if len(group) > 1)
    return list(found)
