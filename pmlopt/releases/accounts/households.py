"""Households and other groups of rows: what all rows of a household together reveal about one member.

The members of a household depend on each other, and each row is released independently by one mechanism. With
the law J of the rows of a household of one size, and outputs y of all its rows, the level about one member is

    max over x_1 and y of log(P(y | x_1) / P(y)),   P(y | x_1) = E[prod_m P(y_m | X_m) | X_1 = x_1].
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from pmlopt.core.numbers.arrays import FloatArray, Label
from pmlopt.data.mechanism import Mechanism, MechanismLike, as_mechanism
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.errors import InputError, MechanismError
from pmlopt.measures import ldp_level
from pmlopt.releases.accounts.joint import MAX_PRODUCT_ENTRIES

Household = tuple[int, ...]
"""The places of the letters of the members, in ascending order."""


@dataclass(frozen=True)
class HouseholdLaw:
    """The households of a file, by size.

    Attributes:
        counts: by size (from two on), how many households have each combination of letters.
        pooled: the largest size of those that are too few for a law of their own; 0 without any.
    """

    counts: Mapping[int, Mapping[Household, int]]
    pooled: int = 0


def group_members(rows: Iterable[tuple[Label, int, int]], max_size: int = 100) -> HouseholdLaw:
    """Group rows by household.

    Args:
        rows: the household, the place of the letters, and how many members have them.
        max_size: of a household; a larger one is a sign of another column.

    Raises:
        InputError: a household is larger.

    Examples:
        >>> group_members([("h1", 0, 1), ("h1", 2, 1), ("h2", 1, 2), ("h3", 1, 1)]).counts
        {2: {(0, 2): 1, (1, 1): 1}}
    """
    members: dict[Label, list[int]] = defaultdict(list)
    for household, letter, number in rows:
        if len(members[household]) + number > max_size:
            raise InputError(
                f"a household has more than {max_size} rows: give the column that names the household of "
                "each row, or leave the households out that are so large"
            )
        members[household] += [letter] * number
    counts: dict[int, Counter[Household]] = defaultdict(Counter)
    for own in members.values():
        if len(own) > 1:
            counts[len(own)][tuple(sorted(own))] += 1
    return HouseholdLaw({size: dict(counts[size]) for size in sorted(counts)})


def compute_household_level(counts: Mapping[Household, int], mechanism: MechanismLike) -> float:
    """Compute what the rows of a household of one size reveal about one member, in nats.

    Args:
        counts: how many households have each combination of letters, by their places; all of one size.
        mechanism: (N, M), of each row.

    Raises:
        InputError: the households are of several sizes, or there are none.
        MechanismError: there are too many outcomes to list.

    Examples:
        >>> response = [[0.75, 0.25], [0.25, 0.75]]
        >>> alike = {(0, 0): 1, (1, 1): 1}  # twice the same letter: 9/16 against (9/16 + 1/16) / 2
        >>> round(math.exp(compute_household_level(alike, response)), 12)
        1.8
    """
    m = as_mechanism(mechanism)
    matrix = m.matrix[:, m.support]
    sizes = {len(own) for own in counts}
    if len(sizes) != 1:
        raise InputError(f"the households have the sizes {sorted(sizes)}: give those of one size")
    size = sizes.pop()
    outcomes = matrix.shape[1] ** size
    if outcomes * len(matrix) > MAX_PRODUCT_ENTRIES:
        raise MechanismError(
            f"households of {size} members have {outcomes:,} outcomes, too many to list"
        )
    joint = np.zeros((len(matrix), outcomes))
    masses = np.zeros(len(matrix))
    for own, number in counts.items():
        # each member may be the one that is looked at; the order of the others changes no maximum over y
        for place, letter in enumerate(own):
            rest = own[:place] + own[place + 1 :]
            product = _average_orders(matrix, rest)
            joint[letter] += number * np.multiply.outer(matrix[letter], product).ravel()
            masses[letter] += number
    occurs = masses > 0
    law = joint.sum(axis=0) / masses.sum()
    seen = law > 0
    lifts = (joint[occurs][:, seen] / masses[occurs, None]) / law[seen]
    return max(0.0, float(np.log(lifts.max())))


def _average_orders(matrix: FloatArray, letters: Household) -> FloatArray:
    """Average the product law of the outputs of letters over the places that these may have."""
    if len(letters) >= 7:
        raise MechanismError(
            f"households of {len(letters) + 1} members have too many orders to list"
        )
    orders = set(permutations(letters))
    total = np.zeros(matrix.shape[1] ** len(letters))
    for order in orders:
        product = np.ones(1)
        for letter in order:
            product = np.multiply.outer(product, matrix[letter]).ravel()
        total += product
    return total / len(orders)


def bound_household_level(
    mechanism: MechanismLike, size: int, prior: PriorLike | None = None
) -> float:
    """Bound what the rows of a household reveal about one member, whatever the members' dependence.

    `P(y | x_1)` and `P(y)` are means of `prod_m P(y_m | x_m)`, whose largest ratio is that of local
    differential privacy to the power of the size; and `P(y) >= p(x_1) P(y | x_1)`. The bound is the smaller
    of `size` times the LDP level and `-log min p`. (Members who are all alike need not be the worst.)

    Args:
        mechanism: (N, M).
        size: of the household.
        prior: of a member of such a household, where it is known.

    Examples:
        >>> response = [[0.6, 0.4], [0.4, 0.6]]
        >>> round(math.exp(bound_household_level(response, 2)), 12)
        2.25
        >>> round(math.exp(bound_household_level(response, 2, [0.5, 0.5])), 12)
        2.0
    """
    by_ratios = size * ldp_level(mechanism)
    if prior is None:
        return by_ratios
    return float(min(by_ratios, -math.log(as_prior(prior).pmf.min())))


def compute_law_level(law: HouseholdLaw, mechanism: MechanismLike) -> float:
    """Compute the level about a member over all sizes of households; 0 without any.

    Of sizes whose outcomes are too many, and of those that are pooled, it is the bound for every dependence.
    """
    m = as_mechanism(mechanism)
    found = [0.0]
    for size, counts in law.counts.items():
        try:
            found.append(compute_household_level(counts, m))
        except MechanismError:
            masses = np.zeros(len(m.matrix))
            for own, number in counts.items():
                np.add.at(masses, list(own), number)
            occurs = masses > 0
            members = Mechanism(m.matrix[occurs])
            found.append(bound_household_level(members, size, masses[occurs] / masses.sum()))
    if law.pooled:
        found.append(bound_household_level(m, law.pooled))
    return max(found)
