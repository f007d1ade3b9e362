"""Radii and intervals from samples: the formulas, by other means, and promises kept on simulated samples."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.designs import FloatArray
from refusals import refused
from scipy.stats import binom, norm, poisson
from strategies import MODEST, exact_law, priors

from pmlopt import (
    PML,
    LikelihoodRegion,
    Prior,
    Stream,
    confidence_ball,
    confidence_box,
    confidence_region,
)
from pmlopt.core.numbers.arrays import Label
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.uncertainty import (
    REGIONS,
    confidence_chain,
    deviation_exponent,
    multinomial_radius,
    weissman_kappa,
    weissman_radius,
)

DELTAS = st.sampled_from([1e-12, 1e-5, 0.01, 0.1, 0.5, 0.999])


@given(
    st.sampled_from([1, 10**6, 10**9]),
    st.sampled_from([2, 3, 20, 200]),
    DELTAS,
    st.floats(1e-6, 0.5),
)
@MODEST
def test_the_radius_is_that_of_the_formula_with_its_root_over_the_logarithm(
    samples: int, size: int, delta: float, kappa: float
) -> None:
    """And smaller for a distribution that is known to be uneven."""
    terms = math.log(Fraction(2**size - 2) / Fraction(delta))
    plain, known = (
        weissman_radius(samples, size, delta),
        weissman_radius(samples, size, delta, kappa),
    )
    assert plain == pytest.approx(min(2.0, math.sqrt(2 / samples * terms)), rel=1e-12)
    if abs(kappa - 0.5) > 1e-4:
        slope = math.log((1 - kappa) / kappa) / (1 - 2 * kappa)
        assert known == pytest.approx(min(2.0, 2 * math.sqrt(terms / (samples * slope))), rel=1e-10)
    assert known <= plain + 1e-15


# ---------------------------------------------------------------- phi and kappa


@given(st.floats(1e-5, 0.499))
@MODEST
def test_phi_is_its_formula_and_falls_to_two_at_one_half(kappa: float) -> None:
    assert deviation_exponent(kappa) == pytest.approx(
        math.log((1 - kappa) / kappa) / (1 - 2 * kappa), rel=1e-10
    )
    values = [deviation_exponent(0.5 - 2.0**-k) for k in range(2, 53)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == deviation_exponent(0.5) == 2.0
    # its series at g = 1 - 2 kappa: 2 (1 + g^2 / 3 + ...)
    for gap in (1e-3, 1e-6):
        assert deviation_exponent((1 - gap) / 2) == pytest.approx(2 + 2 * gap**2 / 3, abs=1e-12)


@given(priors(1, 8))
@MODEST
def test_kappa_is_the_most_even_split(p: FloatArray) -> None:
    law = exact_law(p)
    masses = [
        sum(x for x, taken in zip(law, event, strict=True) if taken)
        for event in product([0, 1], repeat=len(p))
    ]
    assert weissman_kappa(p) == pytest.approx(
        float(max(min(mass, 1 - mass) for mass in masses)), abs=1e-15
    )


@pytest.mark.parametrize("size", [19, 20])
def test_up_to_twenty_letters_kappa_is_exact_and_past_them_a_bound(size: int) -> None:
    # nothing but the largest letter is a multiple of 1/3
    p = np.full(size, (1 - 0.4) / (size - 1))
    p[0] = 0.4
    others = np.arange(size) * p[1]
    masses = np.concatenate([others, others + 0.4])
    expected = float(np.minimum(masses, 1 - masses)[masses <= 1].max())
    assert weissman_kappa(p) == pytest.approx(expected, abs=1e-14)
    assert weissman_kappa(np.concatenate([[0.4], np.full(20, 0.6 / 20)])) == 0.5
    assert weissman_kappa(np.concatenate([[0.9], np.full(30, 0.1 / 30)])) == pytest.approx(0.1)


# ---------------------------------------------------------------- the ball and the box of a sample


@given(st.lists(st.integers(1, 400), min_size=2, max_size=6), DELTAS)
@MODEST
def test_the_bounds_of_a_sample_have_the_tails_of_the_binomial(
    counts: list[int], delta: float
) -> None:
    prior, total = Prior.from_counts(counts), sum(counts)
    found = confidence_box(prior, delta)
    tail = delta / 2 if len(counts) == 2 else delta / (2 * len(counts))
    k = np.array(counts)
    assert (binom.sf(k - 1, total, found.lower) <= tail).all()
    assert (binom.cdf(k, total, found.upper) <= tail).all()
    # and no end can be nearer, but for the rounding
    assert (binom.sf(k - 1, total, found.lower * (1 + 2e-9)) >= tail).all()
    assert (binom.cdf(k, total, found.upper * (1 - 2e-9)) >= tail).all()
    assert (found.lower < k / total).all()
    assert (k / total < found.upper).all()
    assert found.contains(prior)
    assert found.delta == delta


def test_one_letter_is_certain_and_a_sample_size_alone_makes_a_ball() -> None:
    found = confidence_box(Prior.from_counts([7]), 0.05)
    assert found.lower.tolist() == found.upper.tolist() == [1.0]
    assert confidence_ball(Prior.from_counts([7]), 0.05).radius == 0.0
    prior = Prior([0.5, 0.5], samples=100)
    assert confidence_ball(prior, 0.1).radius == weissman_radius(100, 2, 0.1)
    refused(PriorError, confidence_box, "no counts", (prior, 0.1))
    for make in (confidence_ball, confidence_box):
        none = [(one, 0.1) for one in (Prior([0.5, 0.5]), [0.5, 0.5])]
        refused(PriorError, make, "no sample size|must be a whole number", *none)


@pytest.mark.parametrize("draws", [10**9, 10**18])
@pytest.mark.parametrize("seen", [1, 2, 1000])
@pytest.mark.parametrize("delta", [2e-12, 0.02])
def test_rare_letters_in_large_samples_have_the_tails_of_poisson(
    draws: int, seen: int, delta: float
) -> None:
    found = confidence_box([seen, draws - seen], delta)
    lower, upper = (
        poisson.sf(seen - 1, draws * found.lower[0]),
        poisson.cdf(seen, draws * found.upper[0]),
    )
    assert max(lower, upper) <= delta / 2 * (1 + 1e-4)
    assert [lower, upper] == pytest.approx([delta / 2] * 2, rel=1e-4)


@pytest.mark.parametrize(
    ("seen", "draws", "delta"),
    [
        (14223335882822, 99061052907407, 1.76e-9), (10**14, 10**15, 2e-6),
        (511888840548315, 559593366202937, 4e-11), (189128771561421, 841763576292978, 2e-6),
        (10**17, 10**19, 1e-3),
    ],
)  # fmt: skip
def test_intervals_of_huge_samples_are_no_narrower_than_the_normal_ones(
    seen: int, draws: int, delta: float
) -> None:
    found, share = confidence_box([seen, draws - seen], delta), seen / draws
    width = norm.isf(delta / 2) * math.sqrt(share * (1 - share) / draws)
    apart = [share - found.lower[0], found.upper[0] - share]
    assert apart == pytest.approx([width] * 2, rel=1e-3, abs=2e-9 * share)
    assert min(apart) >= 0.999 * width


@pytest.mark.parametrize(
    ("counts", "delta"), [([3, 97], 2e-300), ([1, 10**300], 0.2), ([10**300] * 2, 0.2)]
)
def test_intervals_hold_the_frequencies_at_any_size(counts: list[int], delta: float) -> None:
    found = confidence_box(counts, delta)
    shares = np.array([count / sum(counts) for count in counts])
    assert (found.lower <= shares).all()
    assert (shares <= found.upper).all()


def test_a_letter_that_was_not_seen_has_a_share_from_zero_on() -> None:
    found = confidence_box([30, 0, 70], 0.06)
    assert found.lower[1] == 0
    assert (1 - found.upper[1]) ** 100 == pytest.approx(0.01, rel=1e-6)  # P(not seen) is delta / 6
    only = confidence_box([10, 0], 0.1)
    assert (only.lower[1], only.upper[0]) == (0.0, 1.0)


def test_what_is_no_sample_or_too_large_is_refused() -> None:
    refused(PriorError, confidence_box, "all 0", ([0, 0], 0.1), ({"a": 0}, 0.1))
    refused(PriorError, confidence_box, "no counts", ([], 0.1))
    refused(PriorError, confidence_box, "at least 0, not -1", ([3, -1], 0.1))
    refused(PriorError, confidence_box, "'b' must be a whole number", ({"a": 3, "b": 0.5}, 0.1))
    refused(PriorError, confidence_box, "mapping", (None, 0.1))
    for counts in ([10**400, 10**400], [10**308, 10**308]):
        prior = Prior.from_counts(counts)
        refused(PriorError, confidence_box, "too large for floats", (counts, 0.1), (prior, 0.1))
        refused(PrivacyError, confidence_ball, "too large for a float", (prior, 0.1))
    largest = int(1.7e308)  # no sample is so large that nothing is left of the radius
    for size in (2, 5):
        left = math.sqrt((math.log(2**size - 2) - math.log(0.1)) * 2 / 1.7) * 1e-154
        assert weissman_radius(largest, size, 0.1) == pytest.approx(left)
        assert weissman_radius(largest, size, 0.1, kappa=1e-300) > 0
        refused(
            PrivacyError, weissman_radius, "number of samples is too large", (10**5000, size, 0.1)
        )


TRUTH = [0.4, 0.25, 0.2, 0.15]
DELTA = 0.1
RUNS = 200


def samples(seed: int, runs: int) -> list[Prior]:
    """Empirical distributions of 200 draws each."""
    draws = np.random.default_rng(seed).multinomial(200, TRUTH, size=runs)
    return [Prior.from_counts(counts.tolist()) for counts in draws]


@pytest.mark.parametrize("name", REGIONS)
def test_the_truth_is_outside_the_set_no_more_often_than_promised(name: str) -> None:
    """Each of 200 sets misses the true distribution with probability 0.1 at most.

    The misses are allowed up to the 1 - 1e-6 quantile of Binomial(200, 0.1): with a seed at random, a
    correct implementation fails with probability 1e-6 at most.
    """
    misses = sum(not REGIONS[name](prior, DELTA).contains(TRUTH) for prior in samples(20, RUNS))
    assert misses <= binom.ppf(1 - 1e-6, RUNS, DELTA)


# ---------------------------------------------------------------- the ball of raw counts


def test_raw_counts_give_the_ball_of_the_prior_they_make() -> None:
    counts: dict[Label, int] = {"a": 3, "b": 5, "c": 2}
    assert confidence_ball(counts, 0.1) == confidence_ball(Prior.from_counts(counts), 0.1)
    assert confidence_ball([3, 5, 2], 0.1) == confidence_ball(Prior.from_counts([3, 5, 2]), 0.1)
    unseen = confidence_ball({"a": 3, "b": 7, "c": 0}, 0.1)
    assert unseen.radius == weissman_radius(10, 3, 0.1)
    assert unseen.labels == ("a", "b", "c")
    assert unseen.center.pmf.tolist() == [0.3, 0.7, 0.0]
    assert confidence_ball([3, 7], 0.1, kappa=0.3).radius == weissman_radius(10, 2, 0.1, kappa=0.3)


def walked(
    kernel: np.ndarray, people: int, steps: int, rng: np.random.Generator
) -> list[list[int]]:
    paths = rng.integers(len(kernel), size=(people, steps))
    for step in range(1, steps):
        paths[:, step] = [rng.choice(len(kernel), p=kernel[state]) for state in paths[:, step - 1]]
    return [[int(state) for state in path] for path in paths]


def test_the_true_kernel_is_within_the_bounds() -> None:
    # each of 120 chains misses with probability 0.3 at most: more than 60 do with less than 1e-5
    rng = np.random.default_rng(5)
    missed = 0
    for _ in range(120):
        kernel = rng.dirichlet([0.3, 1.0, 1.0], size=3)
        lower, upper = confidence_chain(walked(kernel, 2, 20, rng), 0.3, labels=range(3)).over[:, 0]  # type: ignore[index]
        missed += bool(((kernel < lower) | (kernel > upper)).any())
    assert missed <= 60


def test_bounds_are_wider_than_for_a_number_of_moves_that_was_fixed() -> None:
    chain = confidence_chain([["a", "a", "b"] * 30], 0.1)
    assert chain.over is not None
    lower, upper = chain.over[:, 0, 0]
    box = confidence_box([30, 30], 0.1 / 2)
    assert (lower < box.lower).all()
    assert (upper > box.upper).all()
    assert (lower > 0.1).all()


def test_of_a_state_that_nobody_leaves_nothing_is_known() -> None:
    chain = confidence_chain([["a", "b"], ["a", "b"]], 0.1)
    assert chain.over is not None
    assert chain.over[:, 0, 1].tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_a_stream_is_within_its_level_for_the_kernels_of_the_set() -> None:
    rng = np.random.default_rng(1)
    kernel = np.array([[0.8, 0.2], [0.3, 0.7]])
    chain = confidence_chain(walked(kernel, 40, 30, rng), 0.05)
    stream = Stream(chain, PML(0.6), "hamming")
    for state in (0, 1, 1):
        stream.release(state, seed=rng)
    assert stream.level <= 0.6


def test_delta_is_a_probability() -> None:
    path = [["a", "b", "a"]]
    refused(PrivacyError, confidence_chain, "delta", (path, 0.0), (path, 1.0), (path, -0.1))


@pytest.mark.parametrize(("samples", "size"), [(1, 2), (50, 2), (1000, 16), (10**9, 200)])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.5, 0.999])
def test_the_radius_of_a_region_is_the_root_of_its_bound(
    samples: int, size: int, delta: float
) -> None:
    radius = multinomial_radius(samples, size, delta)
    y = samples * radius / (size - 1)
    assert y > 1
    assert (size - 1) * (1 + math.log(y) - y) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)


def test_the_truth_is_outside_a_region_no_more_often_than_delta() -> None:
    """Of two letters all samples can be listed: the exact probability, for many truths."""
    samples, delta = 40, 0.05
    seen = np.arange(samples + 1)
    regions = [confidence_region([int(k), samples - int(k)], delta) for k in seen]
    for truth in np.linspace(0.01, 0.99, 25):
        outside = [not one.contains_law(np.array([truth, 1 - truth])) for one in regions]
        assert binom.pmf(seen[outside], samples, truth).sum() <= delta
    assert regions[0].center.counts == (0, samples)


def test_counts_show_a_region_of_their_radius_and_no_smaller_one() -> None:
    region = confidence_region([30, 20, 0], 0.01)
    assert region.is_shown_by_sample() is True
    for radius, delta in ((0.999 * region.radius, 0.01), (region.radius, 0.009)):
        assert LikelihoodRegion(region.center, radius, delta).is_shown_by_sample() is None
    assert LikelihoodRegion(Prior([0.5, 0.5]), 2.0, 0.1).is_shown_by_sample() is None


def test_a_region_needs_a_sample_and_one_letter_has_one_distribution() -> None:
    assert multinomial_radius(10, 1, 0.1) == 0
    assert confidence_region({"only": 5}, 0.1).radius == 0
    with pytest.raises(PriorError, match="no sample size"):
        confidence_region(Prior([0.5, 0.5]), 0.1)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(PrivacyError):
            confidence_region([3, 4], delta)
    assert REGIONS["likelihood"]({0: 3, 1: 4}, 0.1) == confidence_region({0: 3, 1: 4}, 0.1)
