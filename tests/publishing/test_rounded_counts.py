"""Rounded counts and the number of rows leave many exact counts possible, and bounds hold for all."""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmlopt import Mechanism
from pmlopt.publishing import build_stated_prior
from pmlopt.publishing.rounded_counts import bound_share_distance, round_counts, round_total
from pmlopt.publishing.stated_law import round_letter_counts

Counts = tuple[int, ...]


def list_counts(letters: int, people: int) -> Iterator[Counts]:
    """Every table of so many people that each letter has."""
    if letters == 1:
        yield (people,)
        return
    for first in range(1, people - letters + 2):
        for rest in list_counts(letters - 1, people - first):
            yield (first, *rest)


def group_by_statement(letters: int, people: int, step: int) -> dict[Counts, list[Counts]]:
    """Every table of counts, by what is stated of it."""
    found = defaultdict(list)
    for counts in list_counts(letters, people):
        found[tuple(round_counts(np.array(counts), step, range(letters)).tolist())].append(counts)
    return found


SMALL = [
    (2, 10, 32),
    (2, 10, 40),
    (2, 10, 60),
    (2, 7, 50),
    (2, 2, 31),
    (3, 5, 32),
    (3, 3, 40),
    (4, 3, 21),
]
"""Letters, step and people, of which every table is tried."""


@pytest.mark.parametrize(("letters", "step", "people"), SMALL)
class TestEveryTable:
    def test_a_step_of_values_of_each_count_stays_possible(
        self, letters: int, step: int, people: int
    ) -> None:
        least = min(step, people - letters + 1)
        for tables in group_by_statement(letters, people, step).values():
            assert all(len(set(column)) >= least for column in zip(*tables, strict=True))

    def test_the_shares_are_within_the_bound(self, letters: int, step: int, people: int) -> None:
        reached = 0.0
        for stated, tables in group_by_statement(letters, people, step).items():
            shares = np.array(stated) / sum(stated)
            apart = np.abs(np.array(tables) / people - shares).sum(axis=1).max() / 2
            bound = bound_share_distance(np.array(stated), step)
            assert apart <= bound
            reached = max(reached, apart / bound)
        assert reached > 0.7  # so that the bound is no large number

    def test_a_stated_share_is_few_times_the_exact_one(
        self, letters: int, step: int, people: int
    ) -> None:
        # the bounds that docs/theory/releases.md states of the level under the exact shares
        for stated, tables in group_by_statement(letters, people, step).items():
            total = sum(stated)
            usual = Fraction(4, 3) * (1 + Fraction(letters - 2, 2 * (total // step)))
            for counts, (own, exact) in (
                (table, pair) for table in tables for pair in zip(stated, table, strict=True)
            ):
                factor = Fraction(own * people, total * exact)
                scarce = Fraction(people, total) * Fraction(step, min(step, exact))
                assert factor <= max(usual, scarce), (counts, stated)
                assert exact < step or factor < 2


@given(
    st.lists(st.integers(0, 3_000), min_size=1, max_size=20).filter(any),
    st.sampled_from([5, 10, 20, 1000]),
)
def test_steps_are_apportioned_by_the_method_of_webster(counts: list[int], step: int) -> None:
    stated = round_counts(np.array(counts), step, range(len(counts)))
    steps = [Fraction(one, step) for one in stated.tolist()]
    own = [(count, s) for count, s in zip(counts, steps, strict=True) if count]
    assert [s > 0 for s in steps] == [count > 0 for count in counts]
    assert stated.sum() == round_total(sum(counts), len(own), step)
    # no letter has a larger claim to its next step than another one to its last: half a step apart
    highest = max(count / (s + Fraction(1, 2)) for count, s in own)
    assert all(count / (s - Fraction(1, 2)) >= highest for count, s in own if s > 1)


def test_a_common_letter_among_many_rare_ones_stays_common() -> None:
    counts = np.array([500_000, *[250] * 2_000])
    stated = round_counts(counts, 1_000, range(len(counts)))
    assert stated[0] / stated.sum() == pytest.approx(500 / 2_500)
    assert bound_share_distance(stated, 1_000) < 0.9


LABELS: list[list[object]] = [
    ["no", "yes", "perhaps"],
    [0, 1, True],
    ["10", "9", "x"],
    [1.5, "1.5", None],
    [("a", 1), ("a", 2), ("b", 1)],
    [10**18, 10**18 + 1, math.inf],
]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_the_order_of_the_letters_decides_nothing(labels: list[object]) -> None:
    for counts in ((15, 15, 15), (14_815, 30_185, 7), (25, 15, 15), (1, 1, 25)):
        orders = itertools.permutations(zip(labels, counts, strict=True))
        found = [
            {
                repr(label): one
                for (label, _), one in zip(
                    order,
                    round_counts(
                        np.array([own for _, own in order]), 10, [label for label, _ in order]
                    ).tolist(),
                    strict=True,
                )
            }
            for order in orders
        ]
        assert all(one == found[0] for one in found)


def test_a_release_and_a_stated_prior_have_the_same_counts_where_letters_have_the_same_claim() -> (
    None
):
    counts = {"b": 14_810, "a": 30_190}  # 740.5 and 1,509.5 of 2,250 steps
    stated = build_stated_prior(counts)
    assert stated.counts is not None
    assert sum(stated.counts) == 45_000
    for inputs in (["a", "b"], ["b", "a"]):
        response = Mechanism([[0.75, 0.25], [0.25, 0.75]], inputs, ["x", "y"])
        people = np.array([counts[letter] for letter in inputs])
        released = dict(zip(inputs, round_letter_counts(people, [response]).tolist(), strict=True))
        assert released == dict(zip(stated.labels, stated.counts, strict=True))


@pytest.mark.parametrize(("letters", "excluded"), [(2, 0.12), (3, 0.25)])
def test_one_person_more_is_seen_for_certain_once_in_a_step(letters: int, excluded: float) -> None:
    # An adversary knows all of 90 people but one, and what is stated with that person.
    step, certain, narrowed, tables = 10, 0, 0, 0
    draws = random.Random(8)
    for counts in list_counts(letters, 89):
        seen = [
            tuple(round_counts(np.array(counts) + unit, step, range(letters)).tolist())
            for unit in np.eye(letters, dtype=np.int64)
        ]
        shown = seen[draws.randrange(letters)]
        tables += 1
        certain += seen.count(shown) == 1
        narrowed += seen.count(shown) < letters
    assert certain <= 1.05 * tables / step
    assert narrowed <= excluded * tables
