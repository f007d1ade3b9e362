"""Expected gain and loss: number, expression and loops agree; what cannot be meant is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from refusals import refused

from pmlopt import ExpectedGain, ExpectedLoss, Mechanism, Prior
from pmlopt.errors import UtilityError
from pmlopt.model.utility import LOSSES, LinearUtility, absolute, hamming, squared
from pmlopt.model.utility.linear import FUNCTIONS

both = pytest.mark.parametrize("make", [ExpectedGain, ExpectedLoss])


def by_loops(prior: Prior, table: oracles.FloatArray, matrix: oracles.FloatArray) -> float:
    places = np.ndindex(*table.shape)
    return math.fsum(float(prior.pmf[x] * table[x, y] * matrix[x, y]) for x, y in places)


@both
@settings(max_examples=30, deadline=None)
@given(case=oracles.cases())
def test_value_expression_and_loops_agree(make: type[LinearUtility], case: oracles.Case) -> None:
    utility = make(case.gains)
    expected = by_loops(case.prior, case.gains, case.matrix)
    variable = cp.Variable(case.matrix.shape)
    variable.value = case.matrix
    twin = utility.to_cvxpy(case.prior, case.gains, variable)
    assert twin.is_affine()
    assert utility.value(case.prior, case.matrix) == pytest.approx(expected, abs=1e-13)
    assert float(twin.value) == pytest.approx(expected, abs=1e-13)


@both
def test_a_function_is_called_on_input_then_output_label(make: type[LinearUtility]) -> None:
    utility = make(lambda x, y: 10 * x + y)
    assert np.array_equal(utility.evaluate_table((1, 2), (3, 4, 5)), [[13, 14, 15], [23, 24, 25]])
    assert np.array_equal(
        make(lambda x, y: x == y).evaluate_table(("a", "b"), ("a", "b")), np.eye(2)
    )
    assert utility.fixed_outputs is None
    assert make(np.ones((2, 3))).fixed_outputs == 3


def test_value_calls_the_function_on_the_labels_of_the_mechanism_and_prior() -> None:
    mechanism = Mechanism(np.eye(2), inputs=["a", "b"], outputs=["b", "a"])
    differs = ExpectedLoss(lambda x, y: float(x != y))
    assert differs.value([0.25, 0.75], mechanism) == 1.0
    unnamed = Mechanism(np.eye(2), outputs=["a", "b"])
    assert differs.value(Prior([0.25, 0.75], labels=["a", "b"]), unnamed) == 0.0
    assert differs.value(Prior([0.25, 0.75], labels=["b", "a"]), unnamed) == 1.0


@both
def test_what_is_no_finite_table_is_refused(make: type[LinearUtility]) -> None:
    for shape in ((2, 2), (3, 3), (3, 2), (1, 3)):
        given_to = make(np.ones(shape)).value
        refused(UtilityError, given_to, "shape", ([0.5, 0.5], np.full((2, 3), 1 / 3)))
    bad: list[Any] = [
        [[1.0, np.nan], [0.0, 1.0]], [[1.0, np.inf], [0.0, 1.0]], [[1.0, -np.inf], [0.0, 1.0]], [1.0, 2.0],
        [[[1.0]]], [[1.0, 2.0], [3.0]], [["a", "b"]], [[]], 3.0, None,
    ]  # fmt: skip
    refused(UtilityError, make, ".", *((table,) for table in bad))
    answers: list[Any] = [float("nan"), float("inf"), "far", None, [1.0], 1j]
    for answer in answers:
        told: Any = lambda x, y, answer=answer: answer  # noqa: E731
        refused(UtilityError, make(told).evaluate_table, ".", ((0, 1), (0, 1)))


@both
def test_the_matrix_given_can_change_without_changing_the_utility(
    make: type[LinearUtility],
) -> None:
    given_matrix = np.eye(2)
    utility = make(given_matrix)
    given_matrix[0, 0] = 7.0
    assert utility.value([0.5, 0.5], np.eye(2)) == 1.0
    with pytest.raises(ValueError, match="read-only"):
        utility.evaluate_table((0, 1), (0, 1))[0, 0] = 3.0


# ---------------------------------------------------------------- losses

NUMBERS = st.integers(-1000, 1000) | st.floats(-1e3, 1e3)


@given(x=NUMBERS, y=NUMBERS)
@settings(max_examples=30)
def test_losses_follow_their_formulas(x: float, y: float) -> None:
    assert hamming(x, y) == (0.0 if x == y else 1.0)
    assert absolute(x, y) == float(max(x - y, y - x))
    assert squared(x, y) == float(x - y) * float(x - y)
    for loss in LOSSES.values():
        assert isinstance(loss(x, y), float)
        assert loss(x, y) == loss(y, x)
        assert loss(x, x) == 0.0


def test_hamming_takes_a_missing_value_for_itself() -> None:
    missing, other = float("nan"), np.float64("nan")
    for x, y in (
        (missing, missing),
        (missing, other),
        (other, missing),
        (math.nan, Decimal("nan")),
    ):
        assert hamming(x, y) == 0.0
    for label in (0.0, 1, "nan", None):
        assert hamming(missing, label) == hamming(label, missing) == 1.0


def test_labels_without_a_difference_are_refused() -> None:
    for loss in (absolute, squared):
        refused(UtilityError, loss, "labels", ("a", "b"), ("a", 1), (1, None), ((1,), (2,)))


TEXT = [f"w{place}" for place in range(120)]
WHOLE_NUMBERS = [*range(-60, 60), 2**52 - 1, -(2**52) + 1]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (TEXT, ("hamming", "match")),
        ([*TEXT, *range(5)], ("hamming", "match")),
        ([*TEXT, float("nan")], ("hamming", "match")),
        (WHOLE_NUMBERS, tuple(FUNCTIONS)),
        ([*WHOLE_NUMBERS, 2**53 + 1, -(2**60) - 1], tuple(FUNCTIONS)),
        ([*WHOLE_NUMBERS, 0.5], tuple(FUNCTIONS)),
    ],
)
def test_tables_of_many_labels_have_the_values_of_pairs(
    labels: list[Any], names: tuple[str, ...]
) -> None:
    outputs = labels[::-1][:100]
    for name in names:
        function = FUNCTIONS[name]
        table = ExpectedLoss(function).evaluate_table(labels, outputs)
        assert np.array_equal(table, [[function(x, y) for y in outputs] for x in labels])
