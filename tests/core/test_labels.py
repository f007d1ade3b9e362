"""Labels: those that are given are never taken for positions, and positions go with any labels."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import MODEST

from pmlopt import Box, L1Ball, Mechanism, Prior
from pmlopt.core.numbers.arrays import (
    DefaultLabels,
    check_labels_of_size,
    parse_labels,
    select_labels,
)
from pmlopt.data.mechanism import pair_with_prior
from pmlopt.errors import InputError, MechanismError, PriorError, PrivacyError

SKEWED = [[0.9, 0.1], [0.1, 0.9]]
NAN = float("nan")


def test_letters_go_with_any_by_position_and_text_beside_numbers_is_refused() -> None:
    others: list[Any] = [None, ["a", "b"], [0, 1], [1, 0], ["0", "1"]]
    for labels in others:
        prior, mechanism = pair_with_prior(Prior([0.9, 0.1], labels), Mechanism(SKEWED))
        assert (prior.probabilities[0], mechanism.matrix[0, 0]) == (0.9, 0.9)
        pair_with_prior([0.9, 0.1], Mechanism(SKEWED, labels))
    with pytest.raises(MechanismError, match=r"\('1', '2'\).*\(1, 2\).*look alike"):
        pair_with_prior(Prior([0.5, 0.5], [1, 2]), Mechanism(SKEWED, ["1", "2"]))


@given(st.permutations(range(5)), st.permutations(range(5)))
@MODEST
def test_labels_pair_by_what_they_say_or_not_at_all(left: list[int], right: list[int]) -> None:
    prior = Prior(np.arange(1, 6) / 15, labels=left)
    mechanism = Mechanism(np.eye(5), right)
    if left == right:
        assert pair_with_prior(prior, mechanism) == (prior, mechanism)
    else:
        with pytest.raises(MechanismError, match="reorder"):
            pair_with_prior(prior, mechanism)
    turned = prior.reordered(right)
    pair_with_prior(turned, mechanism)
    mass = dict(zip(left, prior.probabilities.tolist(), strict=True))
    assert turned.probabilities.tolist() == [mass[label] for label in right]


def test_sets_of_priors_keep_their_labels_apart() -> None:
    numbered, turned = Prior([0.9, 0.1], [0, 1]), Prior([0.9, 0.1], [1, 0])
    for one in (L1Ball(numbered, 0.1), Box([0.8, 0.0], [1.0, 0.2], labels=[0, 1])):
        assert one.contains(numbered)
        assert one.contains([0.9, 0.1])
        with pytest.raises(PrivacyError, match="another order"):
            one.contains(turned)
    assert L1Ball([0.9, 0.1], 0.1).contains(turned)
    assert L1Ball([0.9, 0.1], 0.1) != L1Ball(numbered, 0.1)
    assert L1Ball([0.9, 0.1], 0.1) == L1Ball(Prior([0.9, 0.1]), 0.1)


# ---------------------------------------------------------------- positions travel


@given(st.integers(1, 20))
@MODEST
def test_positions_survive_copies_pickles_and_constructors(size: int) -> None:
    positions = DefaultLabels(size)
    made = [copy.copy(positions), copy.deepcopy(positions), pickle.loads(pickle.dumps(positions))]
    made += [
        check_labels_of_size(positions, size, "labels", InputError),
        check_labels_of_size(None, size, "labels", InputError),
    ]
    prior = Prior.uniform(size)
    mechanism = Mechanism(np.eye(size), prior.labels, prior.labels)
    made += [prior.labels, mechanism.inputs, mechanism.outputs, mechanism.reduced().outputs]
    made += [pickle.loads(pickle.dumps(prior)).labels, prior.reordered(range(size)).labels]
    assert all(
        isinstance(labels, DefaultLabels) and labels == tuple(range(size)) for labels in made
    )


def test_positions_that_are_chosen_or_reordered_become_labels() -> None:
    reduced = Mechanism([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]).reduced().outputs
    turned = Prior([0.25, 0.75]).reordered([1, 0]).labels
    for labels in (DefaultLabels(3)[:2], select_labels(DefaultLabels(3), [0, 1]), turned, reduced):
        assert not isinstance(labels, DefaultLabels)
    assert reduced == (0, 1)
    with pytest.raises(PriorError, match="no labels"):
        Prior([0.25, 0.75], labels=[1, 0]).reordered(DefaultLabels(2))


# ---------------------------------------------------------------- labels that equal nothing


@pytest.mark.parametrize(
    "label", [NAN, np.float64("nan"), (1, NAN), (("a", NAN),), complex(NAN, 0)]
)
def test_a_nan_is_no_label_alone_or_twice(label: Any) -> None:
    for labels in ([label, "a"], [label, label]):
        with pytest.raises(PriorError, match="does not equal itself"):
            Prior([0.5, 0.5], labels=labels)
        with pytest.raises(MechanismError, match="does not equal itself"):
            Mechanism(SKEWED, outputs=labels)


class Grumpy:
    """Equal to nothing, loudly."""

    def __eq__(self, other: object) -> bool:
        raise TypeError("not comparable")

    def __hash__(self) -> int:
        return 0


LATER = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        *((one, "cannot be a label")
          for one in ([1], (1, [2]), {"a": 1}, Grumpy(), Decimal("sNaN"), np.array([1, 2]))),
        *((one, "give text or numbers, such as str")  # no file keeps it
          for one in (Decimal("1.5"), LATER, datetime(2026, 1, 2), timedelta(1), b"a", ("x", LATER))),
    ],
)  # fmt: skip
def test_what_cannot_be_a_label_is_refused(label: Any, said: str) -> None:
    with pytest.raises(PriorError, match=said):
        Prior([0.5, 0.5], labels=["a", label])


@pytest.mark.parametrize("labels", [{"a", "b"}, frozenset("ab"), b"ab", "ab", 2])
def test_labels_come_in_an_order(labels: Any) -> None:
    with pytest.raises(PriorError, match="must be a sequence of labels"):
        Prior([0.5, 0.5], labels=labels)


def test_messages_about_many_labels_are_short() -> None:
    many = [f"letter {i}" for i in range(2_000)]
    for other in (many[::-1], [*many[:-1], "other"], list(range(2_000))):
        with pytest.raises(MechanismError) as raised:
            pair_with_prior(Prior.uniform(2_000, many), Mechanism(np.ones((2_000, 1)), other))
        assert len(str(raised.value)) < 1000


def test_a_cell_nan_is_text() -> None:
    assert parse_labels(["nan", "1.5"]) == ("nan", "1.5")
    assert parse_labels(["inf", "1.5"]) == (math.inf, 1.5)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_files_tell_labels_from_positions(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"m{ending}"
    for inputs, outputs in itertools.product((None, [0, 1], ["a", "b"]), repeat=2):
        Mechanism(SKEWED, inputs, outputs).save(path)
        loaded = Mechanism.load(path)
        assert isinstance(loaded.inputs, DefaultLabels) == (inputs is None)
        assert isinstance(loaded.outputs, DefaultLabels) == (outputs is None)


def test_a_column_of_dates_is_counted_as_text() -> None:
    column = pd.Series(pd.to_datetime(["2026-01-02", "2026-01-03", "2026-01-03"]))
    with pytest.raises(PriorError, match="astype"):
        Prior.from_samples(column)
    assert Prior.from_samples(column.astype(str)).labels == ("2026-01-02", "2026-01-03")
