"""Secrets that are numbers: the probabilities of bins, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from pmlopt import Continuous
from pmlopt.errors import PriorError


def test_bins_have_the_probabilities_of_the_law_within_the_support() -> None:
    secret = Continuous(scipy.stats.expon(), support=(0, 2))
    prior = secret.prior(secret.even(4))
    tail = np.exp(-np.arange(5) / 2)
    assert np.allclose(prior.pmf, (tail[:-1] - tail[1:]) / (1 - tail[-1]), atol=1e-15)
    assert prior.labels == (0.25, 0.75, 1.25, 1.75)


def test_independent_axes_multiply_and_empty_boxes_are_no_letters() -> None:
    both = Continuous([scipy.stats.uniform(0, 1), scipy.stats.uniform(1, 1)], support=[(0, 1), (0, 2)])
    prior = both.prior(both.even(2))
    assert prior.labels == ((0.25, 1.5), (0.75, 1.5))
    assert prior.pmf.tolist() == [0.5, 0.5]


def test_a_sample_gives_whole_counts() -> None:
    points = np.random.default_rng(5).random((100, 2))
    secret = Continuous.from_samples(points, support=[(0, 1), (0, 1)])
    grid = secret.even(3)
    brute = [
        ((points >= low) & (points < high)).all(axis=1).sum()
        for low, high in zip(grid.lower, grid.upper, strict=True)
    ]
    assert secret.prior(grid).counts == tuple(brute)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Continuous(scipy.stats.norm()), "no finite interval"),
        (lambda: Continuous(scipy.stats.norm(), support=(2, 1)), "no finite interval"),
        (lambda: Continuous([0.5, 0.5]), "no cdf and support"),
        (lambda: Continuous(scipy.stats.uniform(), support=(1, 2, 3)), "the support is"),
        (lambda: Continuous(scipy.stats.uniform(), period=(True, False)), "period"),
        (lambda: Continuous(scipy.stats.binom(3, 0.5), support=(0, 3)), "discrete"),
        (lambda: Continuous(scipy.stats.norm(), support=5), "give \\(low, high\\)"),
        (lambda: Continuous(scipy.stats.uniform()).even(0), "number of bins"),
        (lambda: Continuous.from_samples([0.5, 3.0], support=(0, 1)), r"\[3.0\] at position 1"),
        (lambda: Continuous.from_samples([0.5, np.nan]), "nan at position 1"),
    ],
)
def test_bad_input_is_refused(make: Any, says: Any) -> None:
    with pytest.raises(PriorError, match=says):
        make()


def test_a_support_without_probability_is_refused() -> None:
    secret = Continuous(scipy.stats.uniform(), support=(2, 3))
    with pytest.raises(PriorError, match="does not rise over the support"):
        secret.prior(secret.even(2))


def test_both_tails_keep_their_digits() -> None:
    secret = Continuous(scipy.stats.norm(), support=(-10, 10))
    prior = secret.prior(secret.even(32))
    assert prior.size == 32
    assert np.allclose(prior.pmf, prior.pmf[::-1], rtol=1e-9)
