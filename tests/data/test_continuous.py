"""Secrets that are numbers: the probabilities of bins, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

from pmlopt import Continuous, Prior
from pmlopt.errors import PriorError, SampleSupportWarning


def binned(law: Any, support: Any, bins: int) -> Prior:
    secret = Continuous(law, support=support)
    return secret.prior(secret.even(bins))


def test_bins_have_the_probabilities_of_the_law_within_the_support() -> None:
    prior = binned(scipy.stats.expon(), (0, 2), 4)
    tail = np.exp(-np.arange(5) / 2)
    assert np.allclose(prior.pmf, (tail[:-1] - tail[1:]) / (1 - tail[-1]), atol=1e-15)
    assert prior.labels == (0.25, 0.75, 1.25, 1.75)
    # independent axes multiply, and empty boxes are no letters
    both = binned([scipy.stats.uniform(0, 1), scipy.stats.uniform(1, 1)], [(0, 1), (0, 2)], 2)
    assert both.labels == ((0.25, 1.5), (0.75, 1.5))
    assert both.pmf.tolist() == [0.5, 0.5]


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
        (lambda: Continuous(WithAtom(0.5, 0.25, whole=0.5)), r"goes from 0 below 0 to 0\.5 at 1"),
        (lambda: binned(scipy.stats.uniform(), (2, 3), 2), "does not rise over the support"),
        # bins whose probability has no digits: a cdf alone, and an sf by subtraction
        (lambda: binned(CdfAlone(), (8, 9), 8), "is known up to"),
        (lambda: binned(scipy.stats.rice(1), (9.025, 10.025), 8), "is known up to"),
    ],
)
def test_bad_input_is_refused(make: Any, says: Any) -> None:
    with pytest.raises(PriorError, match=says):
        make()


def test_a_support_of_the_sample_itself_gives_two_values_away() -> None:
    values = [18.37, 40.2, 97.61]
    with pytest.warns(SampleSupportWarning, match="least and the largest value") as told:
        secret = Continuous.from_samples(values)
    assert told[0].filename == __file__
    assert secret.even(2).edges[0][[0, -1]].tolist() == [18.37, 97.61]
    stated = Continuous.from_samples(
        values, support=(0, 100)
    )  # no warning, which would be an error
    assert not {18.37, 97.61} & set(stated.even(2).edges[0])


def test_both_tails_keep_their_digits_and_the_middle_needs_no_survival_function() -> None:
    prior = binned(scipy.stats.norm(), (-10, 10), 32)
    assert prior.size == 32
    assert np.allclose(prior.pmf, prior.pmf[::-1], rtol=1e-9)
    alone, both = (binned(law, (-3, 3), 32) for law in (CdfAlone(), scipy.stats.norm()))
    assert np.allclose(alone.pmf, both.pmf, rtol=1e-9)


class WithAtom:
    """A uniform law on [0, 1], and an atom inside of it."""

    def __init__(self, at: float, share: float, whole: float = 1.0) -> None:
        self.at, self.share, self.whole = at, share, whole

    def support(self) -> tuple[float, float]:
        return 0.0, 1.0

    def cdf(self, x: Any) -> Any:
        even = (1 - self.share) * np.clip(np.asarray(x, dtype=float), 0.0, 1.0)
        return self.whole * (even + self.share * (np.asarray(x) >= self.at))


class CdfAlone:
    """The cdf of a normal law, without its survival function."""

    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def cdf(self, x: Any) -> Any:
        return scipy.stats.norm().cdf(x)


def test_an_atom_at_an_edge_is_counted_in_the_bin_that_it_is_placed_in() -> None:
    secret = Continuous(WithAtom(0.5, 0.25))
    grid = secret.even(4)
    holds = int(grid.locate([[0.5]])[0])
    expected = np.full(4, 0.1875)
    expected[holds] += 0.25
    assert secret.masses(grid).tolist() == expected.tolist()
    sample = Continuous.from_samples([0.5], support=(0, 1))
    assert sample.masses(grid).argmax() == holds
