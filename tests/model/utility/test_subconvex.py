"""Sub-convex utilities and f-informations: definitions by loops, and functions that are none refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, pairs, priors

from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.measures import mutual_information
from pmlopt.model.utility import (
    ChiSquare,
    FInformation,
    GuessingProbability,
    Hellinger,
    MutualInformation,
    SubConvex,
    TotalVariation,
    list_informations,
)

Function = Callable[[FloatArray, FloatArray], Any]

SPREAD = SubConvex(lambda column, p: p @ abs(column - p @ column))
PEAK = SubConvex(lambda column, p: column.max())


@given(pairs())
@MODEST
def test_the_value_is_the_sum_of_the_function_over_the_columns(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    prior, matrix = pair
    columns = [matrix[:, y] for y in range(matrix.shape[1]) if matrix[:, y].max() > 0]
    spread = math.fsum(
        math.fsum(
            float(w) * abs(float(v) - float(prior @ column))
            for w, v in zip(prior, column, strict=True)
        )
        for column in columns
    )
    assert SPREAD.value(prior, matrix) == pytest.approx(spread, abs=1e-12)
    assert PEAK.value(prior, matrix) == pytest.approx(
        math.fsum(float(c.max()) for c in columns), rel=1e-12
    )


@st.composite
def columns(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A prior and two columns of positive mean, some entries zero."""
    prior = draw(priors(1, 5, tiny=False))
    entries = st.one_of(st.just(0.0), st.floats(1e-3, 100.0))
    one, other = (
        np.array(draw(st.lists(entries, min_size=len(prior), max_size=len(prior)).filter(any)))
        for _ in "ab"
    )
    return prior, one, other


@pytest.mark.parametrize("name", list_informations())
@given(drawn=columns(), factor=st.floats(1e-3, 1e3), share=st.floats(0.0, 1.0))
@MODEST
def test_the_ready_made_are_homogeneous_and_convex(
    name: str, drawn: tuple[FloatArray, FloatArray, FloatArray], factor: float, share: float
) -> None:
    prior, one, other = drawn
    every = np.stack([one, other, share * one + (1 - share) * other, factor * one], axis=1)
    left, right, between, scaled = list_informations()[name]().column_values(prior, every)
    assert between <= share * left + (1 - share) * right + 1e-9 * (1 + one.max() + other.max())
    assert scaled == pytest.approx(factor * left, rel=1e-9, abs=1e-12 * factor * one.max())


@given(priors(1, 8))
@MODEST
def test_what_is_convex_and_homogeneous_passes_every_probe(prior: FloatArray) -> None:
    for name, make in list_informations().items():
        make().check(prior)
        assert make().name == name
        assert make().maximised
    for utility in (
        SPREAD,
        PEAK,
        SubConvex(lambda column, p: -(p @ column)),
        SubConvex(lambda v, p: 0),
    ):
        utility.check(prior)


def shown_column(message: str) -> FloatArray:
    """The first column that a message shows."""
    found = re.search(r"the column \[([^\]]*)\] \(p = \[0\.5, 0\.3, 0\.2\]\)", message)
    assert found, message
    return np.array([float(number) for number in found[1].split(",")])


def refusal(function: Function) -> str:
    with pytest.raises(UtilityError) as caught:
        SubConvex(function).check([0.5, 0.3, 0.2])
    return str(caught.value)


WRONG: list[tuple[str, Function]] = [
    ("is nan on", lambda v, p: float("nan") if v[1] == 0 else float(v.max())),
    ("is inf", lambda v, p: math.inf), ("is -inf", lambda v, p: -math.inf),
    ("IndexError", lambda v, p: [][3]), ("fails on", lambda v, p: None), ("fails on", lambda v, p: "far"),
    ("fails on", lambda v, p: np.zeros(3)), ("fails on", lambda v, p: 1j),
    ("not homogeneous", lambda v, p: 1.0), ("not convex", lambda v, p: np.sqrt(v).sum() ** 2),
    ("not convex", lambda v, p: v.min()), ("not convex", lambda v, p: -v.max()),
]  # fmt: skip


def test_what_is_no_sub_convex_number_is_refused_with_the_column() -> None:
    for words, function in WRONG:
        message = refusal(function)
        assert words in message
        column = shown_column(message)
        assert len(column) == 3
        assert "nan" not in words or column[1] == 0


def test_what_is_not_homogeneous_or_not_convex_is_shown_with_its_numbers() -> None:
    message = refusal(lambda v, p: (p @ v) ** 2)
    assert "not homogeneous" in message
    assert "p @ column" in message
    column = shown_column(message)
    factor = float(re.findall(r"on ([\d.]+) times that column", message)[0])
    once, scaled = (
        float(number)
        for number in re.findall(r"homogeneous: ([\d.]+) on .* but ([\d.]+) and", message)[0]
    )
    mean = float(np.array([0.5, 0.3, 0.2]) @ column)
    assert once == pytest.approx(mean**2, rel=1e-4)
    assert scaled == pytest.approx((factor * mean) ** 2, rel=1e-4)
    message = refusal(lambda v, p: -p @ abs(v - p @ v))
    assert "not convex" in message
    p, column = np.array([0.5, 0.3, 0.2]), shown_column(message)
    left = float(re.findall(r"where it is (-?[\d.]+), and", message)[0])
    assert left == pytest.approx(-float(p @ abs(column - p @ column)), abs=1e-5)
    assert message.count("the column [") == 2


def test_what_is_no_function_or_fails_on_the_mechanism_is_refused() -> None:
    refused(
        UtilityError,
        SubConvex,
        "needs a function",
        (3,),
        (None,),
        ("mutual-information",),
        (np.eye(2),),
    )
    fussy = SubConvex(lambda v, p: float("nan") if v[0] == 0 else v.max())
    assert fussy.value([0.5, 0.5], np.full((2, 2), 0.5)) == 1.0
    refused(UtilityError, fussy.value, "is nan on the column", ([0.5, 0.5], np.eye(2)))

    def careless(column: FloatArray, p: FloatArray) -> float:
        column *= 2
        return float(abs(column - p @ column).sum())

    refused(UtilityError, SubConvex(careless).check, "read-only", ([0.5, 0.5],))


# ---------------------------------------------------------------- f-informations

Make = Callable[[], FInformation]

DEFINITIONS: dict[Make, Callable[[float, float, float], float]] = {
    MutualInformation: lambda w, v, q: w * v * math.log(v / q) if v > 0 else 0.0,
    TotalVariation: lambda w, v, q: w * abs(v - q) / 2,
    ChiSquare: lambda w, v, q: w * (v - q) ** 2 / q,
    Hellinger: lambda w, v, q: w * (math.sqrt(v) - math.sqrt(q)) ** 2,
}
"""What a letter of probability w adds to an output of probability q where the entry is v."""

every = pytest.mark.parametrize("make", DEFINITIONS)


def defined(make: Make, prior: FloatArray, matrix: FloatArray) -> float:
    """The sum over all letters and outputs that occur."""
    terms = []
    for y in range(matrix.shape[1]):
        column = [float(v) for v in matrix[:, y]]
        q = math.fsum(float(w) * v for w, v in zip(prior, column, strict=True))
        terms += [
            DEFINITIONS[make](float(w), v, q)
            for w, v in zip(prior, column, strict=True)
            if max(column) > 0
        ]
    return math.fsum(terms)


@every
@given(pair=pairs())
@MODEST
def test_values_are_those_of_the_definitions(
    make: Make, pair: tuple[FloatArray, FloatArray]
) -> None:
    prior, matrix = pair
    assert make().value(*pair) == pytest.approx(defined(make, *pair), rel=1e-12, abs=1e-12)
    occurring = matrix[:, matrix.max(axis=0) > 0]
    assert make().column_values(prior, occurring).sum() == pytest.approx(
        make().value(*pair), rel=1e-9, abs=1e-12
    )
    still = make().value(
        prior, np.tile(matrix[:1], (len(prior), 1))
    )  # a constant mechanism tells nothing
    assert still == 0.0 if make is MutualInformation else still == pytest.approx(0.0, abs=1e-14)


@given(pair=pairs())
@MODEST
def test_the_divergences_keep_their_order_and_generators_may_be_ones_own(
    pair: tuple[FloatArray, FloatArray],
) -> None:
    prior, matrix = pair
    variation, square, hellinger, information = (
        make().value(*pair) for make in (TotalVariation, ChiSquare, Hellinger, MutualInformation)
    )
    assert min(variation, square, hellinger, information) >= 0
    assert variation <= 1
    assert hellinger / 2 <= variation + 1e-14
    assert variation <= math.sqrt(hellinger) + 1e-14
    assert 2 * variation**2 <= information + 1e-14  # Pinsker
    assert hellinger <= information + 1e-13
    assert information <= math.log1p(square) + 1e-9
    same = FInformation(lambda lift: lift**2 - 1)  # differs by a multiple of t - 1, whose mean is 0
    assert same.value(*pair) == pytest.approx(defined(ChiSquare, *pair), rel=1e-9, abs=1e-12)
    plain = FInformation(lambda t: np.where(t > 0, t * np.log(np.where(t > 0, t, 1.0)), 0.0))
    assert plain.value(*pair) == pytest.approx(
        mutual_information(prior, matrix), rel=1e-9, abs=1e-12
    )
    assert FInformation(lambda t: 1 - t).value(*pair) == pytest.approx(0.0, abs=1e-12)
    joint = (
        prior[:, None] * matrix
    ).T.tolist()  # guesses are right as often as the likeliest letter
    assert GuessingProbability().value(*pair) == pytest.approx(
        math.fsum(map(max, joint)), abs=1e-13
    )


def test_what_is_no_generator_is_refused() -> None:
    said: list[tuple[str, Any]] = [
        ("is 1 at 1, and must be 0", lambda t: t**2), ("must be 0", lambda t: t - 0.999),
        ("not convex", lambda t: -((t - 1) ** 2)), ("not convex", lambda t: np.sqrt(t) - 1),
        ("not convex near", lambda t: np.minimum(abs(t - 1), 5.0)), ("shape", lambda t: (t - 1)[:3]),
        ("is nan at 0", lambda t: np.where(t == 0, np.nan, t - 1)), ("ZeroDivisionError", lambda t: 1 / 0),
        ("is inf at", lambda t: np.where(t > 50, np.inf, t - 1)),
        ("fails on an array", lambda t: math.log(t)), ("fails on an array", lambda t: "far"),
        *(("generator of f-information", one) for one in (
            lambda t: np.stack([t - 1, t - 1]), lambda t: None, lambda t: 0.0, 7)),
    ]  # fmt: skip
    for words, generator in said:
        refused(UtilityError, FInformation, words, (generator,))


def test_a_generator_that_fails_past_the_probes_is_refused_on_the_column() -> None:
    utility = FInformation(lambda t: np.where(t > 1000, np.inf, (t - 1) ** 2))
    p = np.array([1 - 1e-4, 1e-4])
    assert utility.value(p, np.full((2, 2), 0.5)) == pytest.approx(0.0, abs=1e-15)
    refused(UtilityError, utility.value, "not finite on a column", (p, np.eye(2)))
    refused(UtilityError, utility.check, "not finite on a column", (p,))
