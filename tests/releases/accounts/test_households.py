"""What the rows of a household reveal about one member: by enumeration, and bounds for every dependence."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest

from pmlopt import ldp_level, leakage_level
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.accounts.households import (
    HouseholdLaw,
    bound_household_level,
    compute_household_level,
    compute_law_level,
    group_members,
)

Counts = dict[tuple[int, ...], int]


def random_households(rng: np.random.Generator, letters: int, size: int) -> Counts:
    """Draw counts of households whose members depend on each other."""
    found: Counts = {}
    for _ in range(8):
        first = int(rng.integers(letters))
        others = [
            first if rng.random() < 0.6 else int(rng.integers(letters)) for _ in range(size - 1)
        ]
        key = tuple(sorted([first, *others]))
        found[key] = found.get(key, 0) + int(rng.integers(1, 5))
    return found


def enumerate_level(counts: Counts, matrix: np.ndarray) -> float:
    """Compute the level from the symmetric law of the members, outcome by outcome."""
    law: dict[tuple[int, ...], float] = {}
    for own, number in counts.items():
        orders = list(permutations(own))
        for order in orders:
            law[order] = law.get(order, 0.0) + number / len(orders) / sum(counts.values())
    size = len(next(iter(counts)))
    worst = 1.0
    for y in product(range(matrix.shape[1]), repeat=size):
        likely = {x: math.prod(matrix[a, b] for a, b in zip(x, y, strict=True)) for x in law}
        mean = sum(mass * likely[x] for x, mass in law.items())
        for letter in range(len(matrix)):
            starting = [x for x in law if x[0] == letter]
            if starting and mean > 0:
                given = sum(law[x] * likely[x] for x in starting) / sum(law[x] for x in starting)
                worst = max(worst, given / mean)
    return math.log(worst)


@pytest.mark.parametrize("size", [2, 3])
def test_the_level_is_that_of_an_enumeration(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(50):
        letters, outputs = rng.integers(2, 5, 2).tolist()
        matrix = rng.dirichlet(np.ones(outputs), letters)
        matrix[rng.random(matrix.shape) < 0.2] = 0.0
        matrix[:, 0] += 0.05
        matrix /= matrix.sum(axis=1, keepdims=True)
        counts = random_households(rng, letters, size)
        found = compute_household_level(counts, matrix)
        assert found == pytest.approx(enumerate_level(counts, matrix), abs=1e-12)
        masses = np.bincount([x for own, n in counts.items() for x in own * n], minlength=letters)
        bound = bound_household_level(matrix[masses > 0], size, masses[masses > 0] / masses.sum())
        assert found <= bound + 1e-12


def test_independent_members_reveal_of_one_what_its_row_does() -> None:
    matrix = np.array([[0.7, 0.3], [0.2, 0.8]])
    counts: Counts = {(0, 0): 1, (0, 1): 2, (1, 1): 1}  # the law of two independent fair letters
    assert compute_household_level(counts, matrix) == pytest.approx(
        leakage_level([0.5, 0.5], matrix), abs=1e-12
    )


def test_members_who_are_alike_reveal_what_several_releases_do() -> None:
    matrix = np.array([[0.7, 0.3], [0.2, 0.8]])
    alike = compute_household_level({(0, 0, 0): 1, (1, 1, 1): 1}, matrix)
    assert math.exp(alike) == pytest.approx(
        max(0.7**3 / (0.7**3 + 0.2**3), 0.8**3 / (0.8**3 + 0.3**3)) * 2
    )


def test_the_bound_is_the_smaller_of_two() -> None:
    matrix = np.array([[0.6, 0.4], [0.4, 0.6]])
    assert bound_household_level(matrix, 2) == pytest.approx(2 * ldp_level(matrix))
    assert bound_household_level(matrix, 2, [0.5, 0.5]) == pytest.approx(math.log(2))


def test_sizes_that_are_pooled_have_the_bound() -> None:
    matrix = np.array([[0.55, 0.45], [0.45, 0.55]])
    law = HouseholdLaw({2: {(0, 1): 1}}, pooled=4)
    assert compute_law_level(law, matrix) == pytest.approx(4 * math.log(0.55 / 0.45))
    assert compute_law_level(HouseholdLaw({}), matrix) == 0.0


def test_many_outcomes_leave_the_bound_for_the_law_of_a_member() -> None:
    # 12 members with 4,096 outcomes have too many orders: the bound is that of the two letters that occur
    matrix = np.array([[0.55, 0.45], [0.45, 0.55], [1.0, 0.0]])
    law = HouseholdLaw({12: {(0,) * 6 + (1,) * 6: 1}})
    assert compute_law_level(law, matrix) == pytest.approx(math.log(2))


def test_rows_are_grouped_by_household() -> None:
    rows = [("a", 1, 1), ("b", 0, 2), ("a", 0, 1), ("c", 1, 1), ("d", 0, 1), ("d", 1, 1)]
    assert group_members(rows).counts == {2: {(0, 1): 2, (0, 0): 1}}


def test_bad_households_are_refused() -> None:
    with pytest.raises(InputError, match="more than 100 rows"):
        group_members([("all", 0, 10_000)])
    with pytest.raises(InputError, match="one size"):
        compute_household_level({(0,): 1, (0, 1): 1}, np.eye(2))
    with pytest.raises(MechanismError, match="too many"):
        compute_household_level({(0,) * 9: 1}, np.full((9, 9), 1 / 9))
