"""f-informations against their definitions by loops; generators that are none are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from strategies import MODEST, mechanisms, pairs, priors

from pmlopt.core.arrays import FloatArray
from pmlopt.errors import UtilityError
from pmlopt.measures import mutual_information
from pmlopt.model.utility import ChiSquare, FInformation, Hellinger, MutualInformation, TotalVariation

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
            DEFINITIONS[make](float(w), v, q) for w, v in zip(prior, column, strict=True) if max(column) > 0
        ]
    return math.fsum(terms)


@every
@given(pair=pairs())
@MODEST
def test_values_are_those_of_the_definitions(make: Make, pair: tuple[FloatArray, FloatArray]) -> None:
    assert make().value(*pair) == pytest.approx(defined(make, *pair), rel=1e-12, abs=1e-12)


@every
@given(pair=pairs())
@MODEST
def test_the_columns_add_up_to_the_value(make: Make, pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    occurring = matrix[:, matrix.max(axis=0) > 0]
    assert make().worths(prior, occurring).sum() == pytest.approx(make().value(*pair), rel=1e-9, abs=1e-12)


@every
@given(prior=priors(), row=mechanisms(1))
@MODEST
def test_a_constant_mechanism_tells_nothing(make: Make, prior: FloatArray, row: FloatArray) -> None:
    value = make().value(prior, np.tile(row, (len(prior), 1)))
    assert value == 0.0 if make is MutualInformation else value == pytest.approx(0.0, abs=1e-14)


@given(pair=pairs())
@MODEST
def test_the_divergences_keep_their_order(pair: tuple[FloatArray, FloatArray]) -> None:
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


@given(pair=pairs())
@MODEST
def test_a_generator_of_ones_own(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    square = FInformation(lambda lift: lift**2 - 1)  # differs by a multiple of t - 1, whose mean is 0
    assert square.value(*pair) == pytest.approx(defined(ChiSquare, *pair), rel=1e-9, abs=1e-12)
    plain = FInformation(lambda t: np.where(t > 0, t * np.log(np.where(t > 0, t, 1.0)), 0.0))
    assert plain.value(*pair) == pytest.approx(mutual_information(prior, matrix), rel=1e-9, abs=1e-12)
    assert FInformation(lambda t: 1 - t).value(*pair) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("generator", "words"),
    [
        (lambda t: t**2, "is 1 at 1, and must be 0"),
        (lambda t: t - 0.999, "must be 0"),
        (lambda t: -((t - 1) ** 2), "not convex"),
        (lambda t: np.sqrt(t) - 1, "not convex"),
        (lambda t: np.minimum(abs(t - 1), 5.0), "not convex near"),
        (lambda t: np.where(t == 0, np.nan, t - 1), "is nan at 0"),
        (lambda t: np.where(t > 50, np.inf, t - 1), "is inf at"),
        (lambda t: (t - 1)[:3], "shape"),
        (lambda t: np.stack([t - 1, t - 1]), "generator of f-information"),
        (lambda t: 1 / 0, "ZeroDivisionError"),
        (lambda t: math.log(t), "fails on an array"),
        (lambda t: None, "generator of f-information"),
        (lambda t: 0.0, "generator of f-information"),
        (lambda t: "far", "fails on an array"),
        (7, "generator of f-information"),
    ],
)
def test_what_is_no_generator_is_refused(generator: Any, words: str) -> None:
    with pytest.raises(UtilityError, match=words):
        FInformation(generator)


def test_a_generator_that_fails_past_the_probes_is_refused_on_the_column() -> None:
    utility = FInformation(lambda t: np.where(t > 1000, np.inf, (t - 1) ** 2))
    p = np.array([1 - 1e-4, 1e-4])
    assert utility.value(p, np.full((2, 2), 0.5)) == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(UtilityError, match="not finite on a column"):
        utility.value(p, np.eye(2))
    with pytest.raises(UtilityError, match="not finite on a column"):
        utility.check(p)
