"""The level of several releases, against lists of all sequences of outcomes."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.releases import Letters, level_about, level_of_sequences, sequences
from strategies import mechanisms, priors

from pmlopt import Mechanism, Prior, joint_level, leakage_level
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, PriorError
from pmlopt.measures import slack, summarize_outcomes
from pmlopt.releases import (
    attribute_levels,
    chained_level,
    compose,
    compose_attributes,
    worst_outcome,
)
from pmlopt.releases.accounts.ledger_entries import build_joint_mechanism
from pmlopt.releases.rows.batches import ColumnRelease

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@st.composite
def releases(draw: st.DrawFn) -> tuple[FloatArray, list[FloatArray]]:
    prior = draw(priors(2, 4))
    return prior, draw(st.lists(mechanisms(len(prior), 3), min_size=1, max_size=3))


@settings(max_examples=30, deadline=None)
@given(releases())
def test_the_level_is_that_of_the_worst_sequence(case: tuple[FloatArray, list[FloatArray]]) -> None:
    prior, matrices = case
    level = joint_level(prior, matrices)
    assert level == pytest.approx(level_of_sequences(prior, matrices), abs=1e-12)
    assert level == pytest.approx(leakage_level(prior, compose(matrices)), abs=1e-12)
    assert level <= chained_level(prior, matrices) + 1e-12
    worst = summarize_outcomes(prior, compose(matrices))[0]
    assert worst.leakage == pytest.approx(level, abs=1e-12)
    found = worst_outcome(prior, matrices)
    lifts = dict(sequences(prior, matrices))[tuple(int(str(y)) for y in found.outputs)]
    assert math.log(lifts[int(str(found.witness))]) == pytest.approx(level, abs=1e-12)


def test_many_releases_are_searched_and_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    prior = rng.dirichlet(np.ones(3))
    matrices = [rng.dirichlet(np.ones(3), 3) for _ in range(8)]
    assert joint_level(prior, matrices) == pytest.approx(
        level_of_sequences(prior, matrices), abs=1e-12
    )
    # 3^200 outcomes: all evidence for the rarer letter
    assert joint_level([0.75, 0.25], [RESPONSE] * 200) == pytest.approx(math.log(4), abs=1e-12)
    assert joint_level([0.75, 0.25], [RESPONSE] * 2) == pytest.approx(
        math.log(9 / (9 * 0.25 + 0.75))
    )
    monkeypatch.setattr("pmlopt.releases.accounts.joint.MAX_CANDIDATES", 1)
    with pytest.raises(MechanismError, match="more than 1"):
        joint_level(
            rng.dirichlet(np.ones(5)), [rng.dirichlet(np.full(6, 9.0), 5) for _ in range(6)]
        )


def test_levels_under_the_prior_do_not_add() -> None:
    blur = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]  # each outcome excludes a letter
    even = Prior.uniform(3)
    assert joint_level(even, [blur, blur]) == pytest.approx(math.log(3))
    assert 2 * leakage_level(even, blur) == pytest.approx(math.log(2.25))
    assert chained_level(even, [blur, blur]) >= math.log(3) - 1e-12


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_levels_and_slacks_of_approximate_pml_add(seed: int, first: float, second: float) -> None:
    rng = np.random.default_rng(seed)
    prior, one, two = (
        rng.dirichlet(np.ones(3)),
        *(rng.dirichlet(np.full(3, 0.5), 3) for _ in range(2)),
    )
    law = prior @ one
    after = max(slack(prior * one[:, y] / law[y], two, second) for y in range(3))
    assert (
        slack(prior, compose([one, two]), first + second)
        <= slack(prior, one, first) + after + 1e-12
    )


def test_labels_of_a_product_are_tuples() -> None:
    first = Mechanism(RESPONSE, ["no", "yes"], ["n", "y"])
    both = compose([first, RESPONSE])
    assert both.inputs == ("no", "yes")
    assert both.outputs == (("n", 0), ("n", 1), ("y", 0), ("y", 1))
    pair = compose_attributes([first, RESPONSE])
    assert pair.inputs == (("no", 0), ("no", 1), ("yes", 0), ("yes", 1))
    assert (pair.matrix == np.kron(RESPONSE, RESPONSE)).all()
    # a mechanism without labels takes those of the others
    assert compose([RESPONSE, Mechanism(RESPONSE, ["no", "yes"])]).inputs == ("no", "yes")


def test_columns_of_a_table_are_one_release_of_the_tuples_that_a_ledger_knows() -> None:
    sex, smokes = (
        Mechanism(RESPONSE, ["f", "m"]),
        Mechanism([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"]),
    )
    known = Prior.from_counts({("m", "no"): 1, ("f", "no"): 2, "else": 1, ("m", "yes"): 1})
    columns = ColumnRelease(sex, ("sex",)), ColumnRelease(smokes, ("smokes",))
    joint = build_joint_mechanism(columns, known)
    assert joint.inputs == (("m", "no"), ("f", "no"), ("m", "yes"))
    rows = [np.kron(sex.matrix[x], smokes.matrix[z]) for x, z in ((1, 0), (0, 0), (1, 1))]
    assert joint.matrix == pytest.approx(np.array(rows), abs=1e-15)
    assert build_joint_mechanism(columns[:1], known) == Mechanism(RESPONSE, ["f", "m"])


def test_what_cannot_be_composed_is_refused() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "there are no mechanisms"),
        ([RESPONSE, np.eye(3)], "attributes"),
        (Mechanism(RESPONSE), "list of mechanisms"),
        ([Mechanism(RESPONSE, ["a", "b"]), Mechanism(RESPONSE, ["a", "c"])], "differ"),
        ([np.eye(40)] * 5, "more than"),
    ]
    for matrices, message in cases:
        with pytest.raises(MechanismError, match=message):
            compose(matrices)
    laws: list[tuple[Any, type[Exception], str]] = [
        ([[1, 0], [1, 0]], PriorError, "never occurs"),
        ([[0.5, 0.6], [0.1, 0.1]], PriorError, "sums to"),
        ([[1, -1], [1, 1]], PriorError, "at least 0"),
        ([1, 1], MechanismError, "shape"),
        ({("x", 0): 1}, MechanismError, "'x' is none of"),
    ]
    for joint, error, message in laws:
        with pytest.raises(error, match=message):
            attribute_levels(joint, [RESPONSE, RESPONSE])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_attributes_leak_what_the_channel_of_their_tuple_leaks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (2, 3, 2))
    counts[0, 0, 0] = counts[1, 1, 1] = counts[0, 2, 0] = 1
    matrices = [rng.dirichlet(np.ones(2), size) for size in counts.shape]
    levels = attribute_levels(counts, matrices)
    joint = counts / counts.sum()
    channel: dict[Letters, dict[Letters, float]] = {
        letters: {
            y: math.prod(m[x, j] for m, x, j in zip(matrices, letters, y, strict=True))
            for y in itertools.product(range(2), repeat=3)
        }
        for letters in itertools.product(range(2), range(3), range(2))
        if counts[letters]
    }
    assert levels.together == pytest.approx(level_about(joint, channel, range(3)), abs=1e-12)
    for axis in range(3):
        assert levels.each[axis] == pytest.approx(level_about(joint, channel, [axis]), abs=1e-12)
        others = tuple(other for other in range(3) if other != axis)
        alone = leakage_level(joint.sum(axis=others), matrices[axis])
        assert levels.alone[axis] == pytest.approx(alone, abs=1e-12)


def test_independent_attributes_add_and_tell_nothing_of_each_other() -> None:
    levels = attribute_levels(np.outer([3, 1], [1, 1]), [RESPONSE, RESPONSE])
    assert levels.together == pytest.approx(sum(levels.alone))
    assert levels.each == pytest.approx(levels.alone)
    named = attribute_levels(
        {("a", 0): 3, ("b", 1): 1}, [Mechanism(RESPONSE, ["a", "b"]), RESPONSE]
    )
    assert (named.witness, named.outcome) == (("b", 1), (1, 1))


def test_columns_that_differ_by_more_than_rounding_are_not_merged() -> None:
    off = 2.0**-43
    response = [[0.5, 0.25 + off, 0.25 - off], [0.5, 0.25 - off, 0.25 + off]]
    # the outcome of 200 times the output 1: (1 + 4 off)^200 under one letter, (1 - 4 off)^200 under the other
    exact = math.log(2) - math.log1p(((1 - 4 * off) / (1 + 4 * off)) ** 200)
    assert joint_level([0.5, 0.5], [response] * 200) == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("form", [
    lambda rows, letters: Mechanism(rows, letters, ["u", "v"]),
    lambda rows, letters: pd.DataFrame(rows, index=letters, columns=["u", "v"]),
    lambda rows, letters: pl.DataFrame({"x": letters, "u": rows[:, 0], "v": rows[:, 1]}),
])  # fmt: skip
def test_letters_are_paired_by_their_labels(form: Any) -> None:
    """log(.9^2 / (.2 * .9^2 + .8 * .1^2)), for the rarer letter; by position it would be less."""
    rows, letters = np.array([[0.9, 0.1], [0.1, 0.9]]), ["rare", "often"]
    one, other = form(rows, letters), form(rows[::-1], letters[::-1])
    expected = math.log(0.81 / (0.2 * 0.81 + 0.8 * 0.01))
    for prior in (
        Prior([0.2, 0.8], letters), Prior([0.8, 0.2], letters[::-1]), {"often": 0.8, "rare": 0.2},
        pd.Series([0.8, 0.2], index=letters[::-1]),
    ):  # fmt: skip
        for parts in ([one, other], [other, one]):
            assert joint_level(prior, parts) == pytest.approx(expected, abs=1e-12)
            assert chained_level(prior, parts) >= expected - 1e-12
            worst = worst_outcome(prior, parts)
            assert (worst.outputs, worst.witness) == (("u", "u"), "rare")
    both = compose([other, one])
    assert both.inputs == ("often", "rare")
    assert both.matrix[1] == pytest.approx([0.81, 0.09, 0.09, 0.01])


def test_two_orders_and_a_side_without_labels_are_refused() -> None:
    one, other = (Mechanism(RESPONSE, letters, ["u", "v"]) for letters in (["a", "b"], ["b", "a"]))
    unclear: list[tuple[Any, list[Any]]] = [
        ([0.2, 0.8], [one, other]), ({"a": 0.2, "b": 0.8}, [one, other, RESPONSE]),
    ]  # fmt: skip
    for prior, parts in unclear:
        with pytest.raises(MechanismError, match="without labels may have either: give it labels"):
            joint_level(prior, parts)
    assert joint_level([0.2, 0.8], [one, one]) == joint_level({"a": 0.2, "b": 0.8}, [one, RESPONSE])
    with pytest.raises(MechanismError, match="differ"):
        joint_level([0.2, 0.8], [one, Mechanism(RESPONSE, ["a", "c"])])
