"""Groups of columns designed in turn: the joint level by enumeration, and never worse than by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pmlopt import Prior, solve
from pmlopt.errors import PmloptError, PrivacyError, ProgramError
from pmlopt.programs.column_designs import joint_design, read_column_utilities, read_joint_law
from pmlopt.programs.exact.rounding import round_exp_down
from pmlopt.publishing.example import write_example
from pmlopt.publishing.joint_columns import count_stated_rows
from pmlopt.releases.accounts import column_groups
from pmlopt.releases.accounts.column_groups import (
    ColumnGroups,
    bound_group_level,
    choose_groups,
    compute_group_level,
    group_design,
    split_evenly,
)
from pmlopt.releases.accounts.joint import joint_level


def enumerate_factor(
    law: dict[tuple[Any, ...], int], found: ColumnGroups, names: list[str]
) -> Fraction:
    """Compute the largest P(y | x) / P(y) of all groups together, in fractions."""
    people = sum(law.values())
    places = [[names.index(name) for name in group] for group in found.groups]
    rows = []
    for row in law:
        own = []
        for mechanism, place in zip(found.mechanisms, places, strict=True):
            letter = tuple(row[k] for k in place) if len(place) > 1 else row[place[0]]
            own.append(
                [Fraction(v) for v in mechanism.matrix[mechanism.inputs.index(letter)].tolist()]
            )
        rows.append(own)
    worst = Fraction(0)
    for outcome in product(*(range(len(one.outputs)) for one in found.mechanisms)):
        likely = [
            math.prod((own[k][y] for k, y in enumerate(outcome)), start=Fraction(1)) for own in rows
        ]
        mean = sum(
            (Fraction(c, people) * v for c, v in zip(law.values(), likely, strict=True)),
            Fraction(0),
        )
        if mean:
            worst = max(worst, max(likely) / mean)
    return worst


def dependent(seed: int) -> dict[tuple[Any, ...], int]:
    """Draw counts of two or three dependent columns with two or three letters."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, 2 + seed % 2).tolist()
    hidden = rng.integers(0, 3, 60)
    shifts = rng.integers(0, 3, (3, len(sizes)))
    rows = (shifts[hidden] + (rng.random((60, len(sizes))) < 0.3)) % np.array(sizes)
    found: dict[tuple[Any, ...], int] = {}
    for row in map(tuple, rows.tolist()):
        found[row] = found.get(row, 0) + 1
    return found


@pytest.mark.parametrize("seed", range(6))
def test_groups_keep_the_total_exactly_and_lose_no_more_than_by_hand(seed: int) -> None:
    law, total = dependent(seed), 0.3 + 0.2 * (seed % 8)
    names = [f"c{k}" for k in range(len(next(iter(law))))]
    utilities = dict.fromkeys(names, "hamming")
    by_hand = split_evenly(law, total, utilities)
    found = group_design(law, total, utilities, [[name] for name in names])
    for one in (by_hand, found):
        factor = enumerate_factor(law, one, names)
        assert factor <= round_exp_down(total)
        assert one.level == pytest.approx(math.log(factor), abs=1e-12)
    assert found.value <= by_hand.value
    assert found.bound is not None
    assert found.bound <= found.value + 1e-9


def test_the_level_is_that_of_the_worst_outcome_and_the_bound_is_above() -> None:
    rng = np.random.default_rng(3)
    for seed in range(8):
        prior = read_joint_law(dependent(seed), list("abc")[: 2 + seed % 2])
        names = list("abc")[: 2 + seed % 2]
        columns = read_column_utilities(prior, dict.fromkeys(names, "hamming"), None)
        groups = [column_groups._Group(prior, columns, [place]) for place in range(len(names))]
        matrices = [rng.dirichlet(np.ones(3), len(group.letters)) for group in groups]
        matrices[0][0, 0] = 0.0
        matrices[0] /= matrices[0].sum(axis=1, keepdims=True)
        lifted = [one[group.rows] for one, group in zip(matrices, groups, strict=True)]
        exact = joint_level(prior.pmf, lifted)
        assert compute_group_level(prior, groups, matrices) == pytest.approx(exact, abs=1e-12)
        bound = bound_group_level(prior, groups, matrices)
        assert exact <= bound + 1e-12
        # the row itself is one term of each sum
        assert bound <= -math.log(prior.pmf.min()) + 1e-12


def test_outcomes_that_are_too_many_to_list_keep_the_total_by_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law, names = dependent(1), ["a", "b", "c"]
    prior = read_joint_law(law, names)
    monkeypatch.setattr(column_groups, "MAX_PRODUCT_ENTRIES", 0)
    found = group_design(law, 0.9, dict.fromkeys(names, "hamming"), [[name] for name in names])
    rows = [
        one.matrix[[one.inputs.index(row[place]) for row in prior.labels]]  # type: ignore[index]
        for place, one in enumerate(found.mechanisms)
    ]
    assert enumerate_factor(law, found, names) <= round_exp_down(0.9)
    assert found.level <= 0.9
    assert joint_level(prior.pmf, rows) <= found.level + 1e-12
    columns = read_column_utilities(prior, dict.fromkeys(names, "hamming"), None)
    assert found.value < sum(one.weight * one.nothing for one in columns) - 1e-3


def test_education_and_sex_lose_what_was_computed_independently(tmp_path: Path) -> None:
    # by scipy's linear programs, education by the absolute error over 15, sex by half the balanced error;
    # between .98 and .988 nats another optimal mechanism of education keeps the total
    write_example(tmp_path / "people.csv")
    utilities = {"education": "absolute", "sex": "balanced-match"}
    weights = {"education": 1 / 15, "sex": 1 / 2}
    law = count_stated_rows(tmp_path / "people.csv", list(utilities), exact_counts=True)
    assert split_evenly(law, 2.0, utilities, weights).value == pytest.approx(0.0952, abs=1e-3)
    result = solve(joint_design(law, 2.0, utilities, weights=weights))
    assert result.value == pytest.approx(0.0477, abs=1e-3)


def test_one_group_of_all_columns_is_the_design_on_tuples() -> None:
    law = dependent(1)
    names = [f"c{k}" for k in range(len(next(iter(law))))]
    found = group_design(law, 0.7, dict.fromkeys(names, "hamming"), [names])
    assert found.bound is not None
    assert found.value == pytest.approx(found.bound, abs=1e-4)
    assert found.groups == (tuple(names),)


def test_the_journal_has_losses_that_fall() -> None:
    law = dependent(2)
    found = group_design(law, 0.7, {"a": "hamming", "b": "hamming"}, [["a"], ["b"]])
    assert len(found.journal) == 10  # five starts, forward and backward
    for _, losses in found.journal:
        assert all(after <= before + 1e-12 for before, after in pairwise(losses))
    assert found.value <= min(losses[-1] for _, losses in found.journal) + 1e-8


def test_columns_that_depend_are_joined() -> None:
    rng = np.random.default_rng(4)
    one, two = rng.integers(0, 3, (2, 400))
    rows = np.column_stack([one, two, (one + (rng.random(400) < 0.1)) % 3])
    values, counts = np.unique(rows, axis=0, return_counts=True)
    prior = Prior.from_counts(counts.tolist(), list(map(tuple, values.tolist())))
    assert choose_groups(prior, 3, max_tuples=10) == [[0, 2], [1]]
    assert choose_groups(prior, 3, max_tuples=3) == [[0], [1], [2]]
    assert choose_groups(prior, 3, max_tuples=100) == [[0, 1, 2]]


def test_a_time_limit_ends_with_mechanisms_within_the_total() -> None:
    found = group_design(
        dependent(0), 0.5, {"a": "hamming", "b": "hamming"}, [["a"], ["b"]], time_limit=1e-6
    )
    assert found.level <= 0.5
    assert found.bound is None


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"total": 0.0}, PrivacyError, "above 0"),
        ({"groups": [["a"]]}, ProgramError, "name each"),
        ({"groups": [["a"], ["a", "b"]]}, ProgramError, "name each"),
        ({"groups": [["a"], ["b"], []]}, ProgramError, "name each"),
        ({"groups": [["a"], ["z"]]}, ProgramError, "none of the columns"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], error: type[PmloptError], says: str) -> None:
    given: dict[str, Any] = {"total": 0.5, "groups": [["a"], ["b"]], **change}
    with pytest.raises(error, match=says):
        group_design(dependent(0), utilities={"a": "hamming", "b": "hamming"}, **given)
