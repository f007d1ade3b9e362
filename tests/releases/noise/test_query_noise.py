"""Noise on answers about several records: what one record leaks, by enumeration of the others."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import additive as oracle
from oracles.designs import FloatArray
from oracles.noise import check_law
from scipy.stats import laplace

from pmlopt import AllPriors, Box, ConvexHull, Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import KLBall
from pmlopt.releases.noise import (
    Geometric,
    Laplace,
    LaplaceHistogram,
    QueryNoise,
    derive_differences,
    round_contributions,
)

SEEDS = st.integers(0, 2**32 - 1)
AGES = Prior([0.5, 0.3, 0.2], [20, 40, 60])


def draw_contributions(rng: np.random.Generator, size: int) -> FloatArray:
    """A histogram, a sum, or two linear queries."""
    kind = rng.integers(3)
    if kind == 0:
        return np.eye(size)
    return np.round(rng.normal(scale=3, size=(size, int(kind))), 2)


def draw_others(
    rng: np.random.Generator, contributions: FloatArray, people: int
) -> tuple[FloatArray, FloatArray]:
    """Answers of the other records, under a joint law of any dependence, by enumeration."""
    letters = list(itertools.product(range(len(contributions)), repeat=people))
    answers = np.array([contributions[list(one)].sum(axis=0) for one in letters]).reshape(
        len(letters), -1
    )
    return answers, rng.dirichlet(np.full(len(letters), 0.3))


@settings(max_examples=12, deadline=None)
@given(SEEDS)
def test_no_outcome_leaks_more_about_a_record_whatever_the_others_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, people, scale = (
        int(rng.integers(2, 4)),
        int(rng.integers(0, 4)),
        10.0 ** rng.uniform(-0.5, 1),
    )
    contributions = draw_contributions(rng, size)
    prior = Prior(rng.dirichlet(np.ones(size)) * 0.95 + 0.05 / size)
    noise = QueryNoise([derive_differences(contributions)], [scale])
    others, level = draw_others(rng, contributions, people), noise.level(prior)
    outcomes = rng.normal(scale=3 * scale + 5, size=(20, contributions.shape[1]))
    for y in [*outcomes, *(others[0][:4] + contributions[0])]:
        leaked = oracle.record_leakage(contributions, prior.pmf, others, scale, y)
        assert leaked <= level + 1e-11
    # attained where the others are known
    known = others[0][:1], np.ones(1)
    attained = max(
        oracle.record_leakage(contributions, prior.pmf, known, scale, own + known[0][0])
        for own in contributions
    )
    assert attained == pytest.approx(level, abs=1e-9)


def test_several_answers_leak_together_what_their_differences_add_up_to() -> None:
    tables = [derive_differences(np.eye(3)), derive_differences(AGES.labels)]
    noise = QueryNoise(tables, [4.0, 30.0])
    together = np.hstack([np.eye(3) / 4, np.array(AGES.labels)[:, None] / 30])
    expected = oracle.record_leakage(
        together, AGES.pmf, (np.zeros((1, 4)), np.ones(1)), 1.0, together[2]
    )
    assert noise.level(AGES) == pytest.approx(expected, abs=1e-12)
    parts = [QueryNoise([one], [b]).level(AGES) for one, b in zip(tables, [4.0, 30.0], strict=True)]
    assert noise.composed_level(AGES) == pytest.approx(sum(parts), abs=1e-14)
    assert noise.level(AGES) < noise.composed_level(AGES)
    levels = noise.letter_levels(AGES)
    assert list(levels) == [20, 40, 60]
    assert max(levels.values()) == noise.level(AGES)


@pytest.mark.parametrize(
    "over", [None, AllPriors(3), Box([0.1] * 3, [1.0] * 3), KLBall(AGES, 0.02)]
)
def test_calibrated(over: Any) -> None:
    tables = [derive_differences(np.eye(3)), derive_differences(AGES.labels)]
    noise = QueryNoise.calibrate(tables, AGES, 0.5, over)
    assert 0.5 - 1e-9 <= noise.level(AGES, over) <= 0.5
    assert noise.scales[1] / noise.scales[0] == pytest.approx(20, rel=1e-12)  # 40 and 2
    assert QueryNoise.calibrate(tables, AGES, 1.7).scales == (0.0, 0.0)


def test_a_histogram_is_the_published_case() -> None:
    box = Box([0.1] * 4, [1.0] * 4)
    prior = Prior.uniform(4)
    histogram = [derive_differences(np.eye(4))]
    published = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1)
    found = QueryNoise.calibrate(histogram, prior, 0.5, box)
    assert found.scales[0] == pytest.approx(published.scale, rel=1e-9)
    assert QueryNoise(histogram, [2.0]).level(prior, box) == pytest.approx(
        LaplaceHistogram(2.0, 0.1).level, abs=1e-13
    )
    whole = QueryNoise(histogram, [2.0], Geometric)
    assert whole.level(prior, box) == pytest.approx(LaplaceHistogram(2.0, 0.1).level, abs=1e-13)


def test_a_least_probability_for_each_class_counts_by_class() -> None:
    """With q_a >= l_a the worst law has the class a at l_a: `-log(l_a + (1 - l_a) e^(-2/b))`."""
    lows, b = np.array([0.4, 0.2, 0.05]), 3.0
    noise = QueryNoise([derive_differences(np.eye(3))], [b])
    levels = noise.letter_levels(Prior.uniform(3), Box(lows, [1.0] * 3))
    expected = [-math.log(low + (1 - low) * math.exp(-2 / b)) for low in lows]
    assert list(levels.values()) == pytest.approx(expected, abs=1e-13)


def test_a_class_with_bounded_numbers_in_it_may_move_within_itself() -> None:
    """Differences on the diagonal: what a record of one letter can still change."""
    table = np.array([[3.0, 5.0], [5.0, 3.0]])
    noise, prior = QueryNoise([table], [2.0]), Prior([0.25, 0.75])
    expected = -math.log(0.25 * math.exp(-1.5) + 0.75 * math.exp(-2.5))
    assert noise.level(prior) == pytest.approx(expected, abs=1e-13)


def test_sums_on_a_grid_are_exact() -> None:
    rng = np.random.default_rng(0)
    values = round_contributions(rng.normal(scale=1e3, size=1000), 1000)
    forward, backward = sum(values.tolist()), sum(values[::-1].tolist())
    assert forward == backward == math.fsum(values)
    assert round_contributions([0.0, 0.0], 5).tolist() == [0.0, 0.0]
    assert np.abs(round_contributions([1 / 3], 10**6) - 1 / 3).max() < 1e-9


def test_release() -> None:
    noise = QueryNoise([derive_differences(np.eye(3))] * 2, [2.0, 5.0])
    one, two = noise.release([np.zeros(20_000), np.full((2, 2), 7.0)], seed=1)
    check_law(one, laplace(0, 2.0).cdf)
    assert two.shape == (2, 2)
    assert np.array_equal(one, noise.release([np.zeros(20_000), np.full((2, 2), 7.0)], seed=1)[0])
    whole = QueryNoise([derive_differences(np.eye(3))], [2.0], Geometric)
    assert (whole.release([[3, 4, 5]], seed=1)[0] % 1 == 0).all()
    with pytest.raises(PrivacyError, match="whole"):
        whole.release([[0.5, 1, 2]])
    with pytest.raises(PrivacyError, match="give 2 answers"):
        noise.release([1.0])
    exact = QueryNoise([derive_differences(np.eye(3))], [0.0]).release([[3, 4, 5]])
    assert exact[0].tolist() == [3, 4, 5]


TABLE = derive_differences(np.eye(2))


@pytest.mark.parametrize(
    ("differences", "scales", "words"),
    [([], [], "for each answer"), ([TABLE, np.eye(3)], [1, 1], "same N letters"),
     ([-TABLE], [1], "negative"), ([TABLE], [1, 2], "one for each"), ([TABLE] * 2, [0, 1], "none 0"),
     ([TABLE], [-1], "scale"), ([[[math.nan]]], [1], "differences")],
)  # fmt: skip
def test_what_are_no_differences(differences: Any, scales: Any, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        QueryNoise(differences, scales)


def test_laws_on_other_letters() -> None:
    noise = QueryNoise([TABLE], [1.0], Laplace)
    with pytest.raises(PrivacyError, match="3 letters"):
        noise.level(AGES)
    with pytest.raises(PrivacyError, match="letters"):
        noise.level([0.5, 0.5], AllPriors(3))
    with pytest.raises(PrivacyError, match="`over`"):
        noise.level([0.5, 0.5], 0.1)  # type: ignore[arg-type]
    assert noise.level([0.5, 0.5], ConvexHull([[0.5, 0.5]])) == pytest.approx(
        noise.level([0.5, 0.5]), rel=1e-14
    )
