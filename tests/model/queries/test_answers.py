"""Mechanisms that answer a query: laws from the formulas, and levels over neighbouring datasets."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles.queries import Case, cases, explicit, modular_sum, quadratic, weight
from refusals import refused
from strategies import MODEST

from pmlopt import Mechanism
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, MechanismError, PrivacyError
from pmlopt.model.queries import (
    Explicit,
    ModularSum,
    Quadratic,
    Query,
    Weight,
    exponential,
    laplace,
    symmetric_channel,
)

NAN, INF = math.nan, math.inf
DIGITS = Context(prec=320, Emax=10**6, Emin=-(10**6))
EPSILONS = st.one_of(st.sampled_from([1e-9, 1e-3, math.log(2), 1.0]), st.floats(0.01, 8.0))
Maker = Callable[[Query, float], Mechanism]


def by_match(query: Query, epsilon: float) -> Mechanism:
    return exponential(query, epsilon)


def by_distance(query: Query, epsilon: float) -> Mechanism:
    return exponential(query, epsilon, "distance")


NUMERIC: list[Maker] = [laplace, by_match, by_distance]


def exact(number: float) -> Decimal:
    ratio = Fraction(number)
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def laplace_in_digits(values: list[float], scale: Decimal) -> list[list[float]]:
    """The law of the value nearest to a value plus noise, from the distribution function."""

    def below(edge: Decimal, centre: Decimal) -> Decimal:
        step = (edge - centre) / scale
        return step.exp() / 2 if step < 0 else 1 - (-step).exp() / 2

    numbers = [exact(value) for value in values]
    edges = [(low + high) / 2 for low, high in pairwise(numbers)]
    rows = []
    for centre in numbers:
        ends = [Decimal(0), *(below(edge, centre) for edge in edges), Decimal(1)]
        rows.append([float(high - low) for low, high in pairwise(ends)])
    return rows


def exponential_in_digits(scores: list[list[Decimal]]) -> list[list[float]]:
    rows = []
    for row in scores:
        weights = [score.exp() for score in row]
        rows.append([float(each / sum(weights)) for each in weights])
    return rows


def level(case: Case, matrix: FloatArray) -> float:
    """The largest log ratio of an answer's probabilities over datasets that differ in one record."""
    logs = np.log(matrix)
    place = {value: at for at, value in enumerate(case.values)}
    pairs = {(place[case.function(x)], place[case.function(other)]) for x, other in case.neighbours}
    return max(
        (float(np.abs(logs[first] - logs[second]).max()) for first, second in pairs), default=0.0
    )


class TestSymmetricChannel:
    @given(cases(), st.floats(0.0, 1.0))
    @MODEST
    def test_equation_33(self, case: Case, error: float) -> None:
        m = len(case.values)
        if m == 1:
            error = 0.0
        answer = symmetric_channel(case.query, error)
        assert answer.inputs == answer.outputs == case.values
        for at in range(m):
            for other in range(m):
                expected = 1 - error if at == other else error / (m - 1)
                assert answer.matrix[at, other] == expected


class TestLaws:
    @given(cases(numeric=True), EPSILONS)
    @example(weight(None, 6), 1e-9)
    @example(quadratic(6), 1e-9)
    @example(weight(None, 6), 50.0)
    @MODEST
    def test_laplace_and_exponential_by_distance_in_many_digits(
        self, case: Case, epsilon: float
    ) -> None:
        noisy, scored = laplace(case.query, epsilon), by_distance(case.query, epsilon)
        for answer in (noisy, scored):
            assert answer.inputs == answer.outputs == case.values
            if case.sensitivity == 0:
                assert answer.matrix.tolist() == np.eye(len(case.values)).tolist()
        if case.sensitivity == 0:
            return
        with localcontext(DIGITS):
            scale = exact(case.sensitivity) / exact(epsilon)
            numbers = [exact(value) for value in case.values]
            of_noise = laplace_in_digits(list(case.values), scale)
            of_scores = exponential_in_digits(
                [[-abs(y - t) / (2 * scale) for y in numbers] for t in numbers]
            )
        assert noisy.matrix == pytest.approx(np.array(of_noise), rel=1e-12, abs=0)
        assert scored.matrix == pytest.approx(np.array(of_scores), rel=1e-12, abs=0)

    @given(cases(), EPSILONS)
    @MODEST
    def test_exponential_by_match(self, case: Case, epsilon: float) -> None:
        answer = exponential(case.query, epsilon)
        m = len(case.values)
        total = math.exp(epsilon / 2) + m - 1
        expected = [
            [(math.exp(epsilon / 2) if y == t else 1) / total for y in range(m)] for t in range(m)
        ]
        assert answer.inputs == answer.outputs == case.values
        assert answer.matrix == pytest.approx(np.array(expected), rel=1e-13, abs=0)

    @pytest.mark.parametrize("epsilon", [1e-9, 0.5, 2.0, 20.0])
    def test_parity_flips_as_in_the_paper(self, epsilon: float) -> None:
        parity = ModularSum(10, 2)
        for answer, flip in (
            (laplace(parity, epsilon), math.exp(-epsilon / 2) / 2),
            (exponential(parity, epsilon), 1 / (math.exp(epsilon / 2) + 1)),
            (exponential(parity, epsilon, "distance"), 1 / (math.exp(epsilon / 2) + 1)),
        ):
            expected = np.array([[1 - flip, flip], [flip, 1 - flip]])
            assert answer.matrix == pytest.approx(expected, rel=1e-14, abs=0)


class TestLevel:
    @given(cases(numeric=True), EPSILONS, st.sampled_from(NUMERIC))
    @example(weight(None, 6), 1e-9, laplace)
    @example(quadratic(6), 1e-6, laplace)
    @example(modular_sum((3, 2, 4), 5), 2.0, laplace)
    @example(modular_sum((2, 2, 2, 2), 3), 2.0, by_distance)
    @MODEST
    def test_neighbouring_datasets(self, case: Case, epsilon: float, maker: Maker) -> None:
        matrix = maker(case.query, epsilon).matrix
        if case.sensitivity == 0:
            return  # no two rows are compared, and the rows have zeros
        assert level(case, matrix) <= epsilon + min(1e-11, 1e-5 * epsilon)

    @pytest.mark.parametrize("epsilon", [0.5, 4.0])
    @pytest.mark.parametrize(("n", "modulus"), [(3, 3), (4, 3), (4, 4), (5, 5)])
    def test_a_sum_modulo_three_or_more_has_no_sensitivity_of_one(
        self, n: int, modulus: int, epsilon: float
    ) -> None:
        case = modular_sum((2,) * n, modulus)
        assert case.sensitivity == case.query.sensitivity == modulus - 1
        with localcontext(DIGITS):
            narrow = np.array(laplace_in_digits(list(range(modulus)), 1 / exact(epsilon)))
        assert level(case, narrow) > epsilon + 0.1
        assert level(case, laplace(case.query, epsilon).matrix) <= epsilon + 1e-12
        distances = np.abs(np.subtract.outer(np.arange(modulus), np.arange(modulus)))
        weights = np.exp(-epsilon / 2 * distances)
        # sums 0 and m - 1 are neighbours, and their weights add up to the same
        narrow = weights / weights.sum(axis=1, keepdims=True)
        assert level(case, narrow) == pytest.approx((modulus - 1) * epsilon / 2, rel=1e-14)
        assert level(case, by_distance(case.query, epsilon).matrix) <= epsilon + 1e-12


HARD: list[Query] = [
    ModularSum(4, 2), ModularSum(7, 5, 3), Weight(40), Quadratic(30), Explicit([[0, 1e6], [1e-6, 3]]),
    Explicit([-1e300, 0.0, 1e300]), Explicit([0.1, 0.1 + 2**-56]), Weight(3, lambda w: Fraction(w, 7)),
    Explicit([True, False]),
]  # fmt: skip


@pytest.mark.parametrize("query", HARD)
def test_rows_are_laws(query: Query) -> None:
    for maker, epsilon in product(NUMERIC, (1e-300, 1.0, 700.0, 1e308)):
        matrix = maker(query, epsilon).matrix
        assert np.isfinite(matrix).all()
        assert (matrix >= 0).all()
        assert matrix.sum(axis=1) == pytest.approx(np.ones(len(matrix)), abs=1e-14)


def test_what_cannot_be_meant_is_refused() -> None:
    parity, number = ModularSum(4, 2), "error probability"
    errors = [-0.1, 1.1, -1e-12, NAN, INF, "a", None, [0.5], True]
    refused(
        MechanismError, symmetric_channel, number, *((ModularSum(4, 3), error) for error in errors)
    )
    refused(MechanismError, symmetric_channel, r"0\.1 for 1 values", (ModularSum(4, 1), 0.1))
    none: list[Any] = [0, -1e-300, NAN, INF, -INF, "a", None, [1.0, 2.0], 10**400]
    for maker in NUMERIC:
        refused(PrivacyError, maker, "epsilon", *((parity, epsilon) for epsilon in none))
    scores = ("", "Match", "nearest", None, 1)
    refused(
        PrivacyError,
        exponential,
        "write match or distance",
        *((parity, 1.0, score) for score in scores),
    )
    # the difference of these is 0 as floats; no noise for a sensitivity of 0 would tell the record
    case = explicit((2,), [2**53, 2**53 + 1])
    assert case.sensitivity == 1
    refused(InputError, laplace, ".", (case.query, 1.0))
    assert level(case, exponential(case.query, 1.0).matrix) <= 1
