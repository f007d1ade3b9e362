"""Binary noise over sets of priors: ends of the set in exact arithmetic, tails by brute force, promises."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from oracles.noise import largest
from oracles.two_letters import BinaryGaussian, BinaryLaplace, BinaryNoise
from scipy.special import ndtr

from pmlopt import AllPriors, Box, ConvexHull, L1Ball, Prior, confidence_ball, confidence_box
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise import Promise

KINDS: list[type[BinaryNoise]] = [BinaryLaplace, BinaryGaussian]


def laplace_tail(share: float, scale: float, epsilon: float) -> float:
    """P(an outcome on the letter's side leaks more than epsilon), in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        p, b, down = Decimal(share), Decimal(scale), (-Decimal(epsilon)).exp()
        if p >= down or (1 - p) >= (down - p) * (2 / b).exp():
            return 0.0
        half = ((1 - p) / (down - p)).ln() / 2
        near, far = 1 - (half - 1 / b).exp() / 2, (-half - 1 / b).exp() / 2
        return float(p * near + (1 - p) * far)


def laplace_failure(second: float, scale: float, epsilon: float) -> float:
    first = float(1 - Decimal(second))
    return laplace_tail(second, scale, epsilon) + laplace_tail(first, scale, epsilon)


def searched(interval: tuple[float, float], scale: float, epsilon: float) -> float:
    """The largest over an interval: a grid, both sides of the jumps, and a local search in the best cells."""
    down, drop = math.exp(-epsilon), math.exp(-2 / scale)
    jump, steps = (down - drop) / (1 - drop), np.geomspace(1e-15, 1e-2, 30)
    near = np.concatenate([np.linspace(*interval, 51), jump - steps, 1 - jump + steps])
    return largest(
        np.vectorize(lambda q: laplace_failure(float(q), scale, epsilon)), near, interval
    )


class TestEnds:
    @settings(max_examples=20, deadline=None)
    @given(st.floats(1e-300, 0.5), st.floats(1e-30, 2.0), st.booleans())
    @example(1e-9, 1.5e-9, True)
    @example(1e-16, 3e-16, True)
    def test_the_ends_of_a_ball_are_exact_and_rounded_outward(
        self, share: float, radius: float, swap: bool
    ) -> None:
        prior = Prior([1 - share, share] if swap else [share, 1 - share])
        ends = BinaryLaplace(prior, 1.0, over=L1Ball(prior, radius)).ends
        total, half = sum(prior.weights), Fraction(radius) / 2
        for weight, (low, high) in zip(prior.weights, ends, strict=True):
            centre = Fraction(weight, total)
            least, most = max(Fraction(0), centre - half), min(Fraction(1), centre + half)
            assert Fraction(low) <= least
            assert Fraction(high) >= most
            assert low == pytest.approx(float(least), rel=4e-16, abs=0)
            assert high == pytest.approx(float(most), rel=4e-16, abs=0)

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_kind_of_set(self, kind: type[BinaryNoise]) -> None:
        sets: list[tuple[PriorSet, tuple[float, float]]] = [
            (Box([0.25, 0.5], [0.5, 0.75]), (0.5, 0.75)),
            (Box([0.125, 0.0], [1.0, 0.75]), (0.0, 0.75)),
            (ConvexHull([[0.5, 0.5], [0.25, 0.75]]), (0.5, 0.75)),
            (AllPriors(2), (0.0, 1.0)),
            (L1Ball([0.5, 0.5], 0.25), (0.375, 0.625)),
        ]
        for priors, interval in sets:
            noise = kind([0.25, 0.75], 1.0, over=priors)
            assert noise.interval == interval
            assert noise.min_mass == min(interval[0], 1 - interval[1])
        one, other = kind([0.3, 0.7], 1.3, 0.2), kind([0.3, 0.7], 1.3, over=L1Ball([0.3, 0.7], 0.2))
        assert one.ends == other.ends
        assert one.failure_probability(0.6) == other.failure_probability(0.6)
        assert isinstance(one.over, L1Ball)
        assert kind([0.3, 0.7], 1.3).over is None

    @pytest.mark.parametrize("kind", KINDS)
    def test_what_is_no_set_on_these_letters(self, kind: type[BinaryNoise]) -> None:
        named = Prior([0.3, 0.7], labels=["no", "yes"])
        other = L1Ball(Prior([0.7, 0.3], labels=["yes", "no"]), 0.1)
        cases: list[tuple[Any, str]] = [
            (0.1, "`over` is 0.1"), ([0.3, 0.7], "`over`"), (AllPriors(3), "3 letters"),
            (other, "another order"),
        ]  # fmt: skip
        for over, words in cases:
            with pytest.raises(PrivacyError, match=words):
                kind(named, 1.0, over=over)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("share", "radius"), [(1e-9, 1.5e-9), (3e-16, 3e-16), (1e-20, 1e-20)])
def test_a_rare_letter_keeps_its_digits_whether_it_is_first_or_second(
    share: float, radius: float, swap: bool
) -> None:
    prior = [1 - share, share] if swap else [share, 1 - share]
    largest = -math.log(share - radius / 2)
    for epsilon in (largest - 1e-3, largest - 0.3):
        noise = BinaryLaplace.calibrate(prior, epsilon=epsilon, radius=radius)
        assert noise.scale > 0
        assert noise.level == pytest.approx(epsilon, rel=1e-12)
    assert BinaryLaplace.calibrate(prior, epsilon=largest + 1e-9, radius=radius).scale == 0


class TestNearTheLargestLeakage:
    def test_the_failure_next_to_it_has_its_digits(self) -> None:
        """`e^-eps - 1/4` is 1.39e-16 here; in doubles `exp(-eps) - 0.25` is not even near it."""
        epsilon, delta = 1.3862943611198901, 0.0002452222919623466
        with localcontext() as context:
            context.prec = 60
            threshold = float(
                (Decimal("0.75") / ((-Decimal(epsilon)).exp() - Decimal("0.25"))).ln()
            )
        noise = BinaryGaussian.calibrate([0.75, 0.25], epsilon=epsilon, delta=delta)
        a = 1 / noise.scale - noise.scale * threshold / 2
        true = 0.25 * ndtr(a) + 0.75 * ndtr(a - 2 / noise.scale)
        assert noise.failure_probability(epsilon) == pytest.approx(true, rel=1e-9)
        assert true <= delta

    def test_a_float_below_log_two_is_below_log_two(self) -> None:
        epsilon = math.log(2)  # 2.3e-17 below the number
        noise = BinaryGaussian([0.5, 0.5], 0.0)
        assert noise.failure_probability(epsilon) == 1.0
        assert noise.failure_probability(math.nextafter(epsilon, 1)) == 0.0
        found = BinaryGaussian.calibrate([0.5, 0.5], epsilon=epsilon, delta=1e-3)
        assert found.scale > 0
        assert found.failure_probability(epsilon) <= 1e-3


class TestLaplaceFailure:
    @settings(max_examples=12, deadline=None)
    @given(st.floats(0.001, 0.999), st.floats(-1.3, 1.3), st.floats(0.001, 0.999), st.booleans())
    def test_of_one_prior(
        self, share: float, exponent: float, part: float, by_letter: bool
    ) -> None:
        scale = 10.0**exponent
        noise = BinaryLaplace([1 - share, share], scale)
        epsilon = part * (noise.level if by_letter else 2 / scale)
        expected = laplace_failure(float(noise.prior.pmf[1]), scale, epsilon)
        assert noise.failure_probability(epsilon) == pytest.approx(expected, rel=1e-9, abs=1e-14)
        assert noise.failure_probability(noise.level) == 0.0
        assert noise.failure_probability(0.999 * noise.level) > 0.0
        assert noise.failure_probability(0.0) == 1.0
        without = BinaryLaplace([1 - share, share], 0.0)
        assert without.failure_probability(without.level) == 0.0

    @settings(max_examples=10, deadline=None)
    @given(
        st.floats(0.001, 0.999), st.floats(0.001, 2.0), st.floats(-1.0, 1.3), st.floats(0.001, 1.2),
        st.booleans(),
    )  # fmt: skip
    @example(0.5, 0.2, 0.0, 0.4, True)
    def test_over_a_ball_it_is_the_supremum(
        self, share: float, radius: float, exponent: float, part: float, by_letter: bool
    ) -> None:
        scale = 10.0**exponent
        noise = BinaryLaplace([1 - share, share], scale, radius)
        epsilon = part * (noise.level if by_letter else 2 / scale)
        assume(epsilon < 15)
        found, best = noise.failure_probability(epsilon), searched(noise.interval, scale, epsilon)
        if epsilon >= noise.level:
            assert found == 0.0
            assert best == pytest.approx(0.0, abs=1e-12) or epsilon < noise.level * (1 + 1e-12)
            return
        assert found >= best * (1 - 1e-12)
        assert found <= best + 1e-6

    def test_just_below_the_level_it_jumps(self) -> None:
        """At p* the tail begins at the letter itself: `E / 2` is the probability there."""
        noise = BinaryLaplace([0.25, 0.75], 1.0)
        assert noise.failure_probability(noise.level * (1 - 1e-12)) == pytest.approx(
            math.exp(-noise.level) / 2, rel=1e-9
        )


class TestPromise:
    COUNTS = Prior.from_counts({"no": 60, "yes": 40})

    @pytest.mark.parametrize("make", [confidence_ball, confidence_box])
    @pytest.mark.parametrize("kind", KINDS)
    def test_a_confidence_set_brings_its_delta(
        self, kind: type[BinaryNoise], make: Callable[[Prior, float], PriorSet]
    ) -> None:
        noise = kind(self.COUNTS, 1.5, over=make(self.COUNTS, 0.05))
        first = noise.failure_probability(0.6)
        assert noise.promise(0.6) == Promise(0.6, first + 0.05 - first * 0.05)
        assert noise.promise(0.6, 0.05) == noise.promise(0.6)
        with pytest.raises(PrivacyError, match=r"made for 0\.05"):
            noise.promise(0.6, 0.01)

    def test_the_table_of_the_documentation(self) -> None:
        printed = {(60, 40): [2.76, 2.55, 1.88], (600, 400): [2.16, 2.10, 1.88]}
        for counts, row in printed.items():
            sample = Prior.from_counts(counts)
            sets = [confidence_ball(sample, 0.01), confidence_box(sample, 0.01), None]
            found = [BinaryLaplace.calibrate(sample, epsilon=0.5, over=one).scale for one in sets]
            assert found == pytest.approx(row, abs=0.0051)

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_promise_needs_a_set_and_a_delta(self, kind: type[BinaryNoise]) -> None:
        for delta in (None, 0.01):
            with pytest.raises(PrivacyError, match="no set of priors"):
                kind(self.COUNTS, 1.0).promise(0.5, delta)
        noise = kind(self.COUNTS, 1.0, 0.1)
        with pytest.raises(PrivacyError, match="give delta"):
            noise.promise(0.5)
        assert noise.promise(0.5, 0.01).delta > 0.01

    def test_the_published_pair_is_about_a_ball(self) -> None:
        ball = confidence_ball(self.COUNTS, 0.05)
        assert BinaryGaussian(self.COUNTS, 1.5, over=ball).published_promise(0.5).epsilon > 0.5


def threshold_in_digits(p: Fraction, epsilon: float) -> Decimal | None:
    """The threshold `log((1 - p) / (e^-eps - p))` of a letter, in 80 digits; None where there is none."""
    with localcontext() as context:
        context.prec = 80
        mass, down = Decimal(p.numerator) / Decimal(p.denominator), (-Decimal(epsilon)).exp()
        return ((1 - mass) / (down - mass)).ln() if mass < down else None


def gaussian_failure(first: Fraction, sigma: float, epsilon: float) -> float:
    """F under one prior, from thresholds in 80 digits."""
    total = 0.0
    for p in (first, 1 - first):
        threshold = threshold_in_digits(p, epsilon)
        if threshold is None:
            continue
        with localcontext() as context:
            context.prec = 80
            start = Decimal(sigma) * threshold / 2
            near, far = float(1 / Decimal(sigma) - start), float(-1 / Decimal(sigma) - start)
        total += float(p * Fraction(float(ndtr(near))) + (1 - p) * Fraction(float(ndtr(far))))
    return total


class TestAnyPrior:
    """Rare letters, and levels a few floats off -log p: never below what 80 digits say, and next to it."""

    @settings(max_examples=30, deadline=None)
    @given(
        st.floats(-18.0, -0.31), st.floats(-1.5, 1.3), st.floats(0.0, 2.2), st.integers(-6, 6),
        st.floats(0.01, 1.05), st.booleans(), st.booleans(),
    )  # fmt: skip
    def test_gaussian_failures_are_never_reported_too_low(
        self,
        exponent: float,
        power: float,
        spread: float,
        ulps: int,
        part: float,
        close: bool,
        swap: bool,
    ) -> None:
        share, sigma = 10.0**exponent, 10.0**power
        prior = Prior([1 - share, share] if swap else [share, 1 - share])
        first = Fraction(prior.weights[0], sum(prior.weights))
        radius = spread * share
        low, high = (
            max(Fraction(0), first - Fraction(radius) / 2),
            min(Fraction(1), first + Fraction(radius) / 2),
        )
        largest = -math.log(float(min(low, 1 - high)) or share)
        epsilon = abs(largest + ulps * math.ulp(largest) if close else part * largest)
        found = BinaryGaussian(prior, sigma, radius).failure_probability(epsilon)
        mixed = [low + (high - low) * Fraction(step, 7) for step in range(8)]
        inside = [q for q in mixed if 0 < q < 1]
        best = max(gaussian_failure(q, sigma, epsilon) for q in inside)
        assert found >= best * (1 - 1e-12)
        if radius == 0:
            assert found == pytest.approx(best, rel=1e-11, abs=1e-300)

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-60, 1e-100])
    def test_a_tiny_epsilon_has_its_digits_too(self, epsilon: float) -> None:
        """1 - e^-eps is eps: the threshold is eps / (1 - p), and sigma^2 of its inverse makes it one."""
        sigma = 1 / epsilon
        expected = 0.0
        for p in (0.25, 0.75):
            a = -sigma * epsilon / (1 - p) / 2
            expected += float(
                ndtr(a)
            )  # 1 / sigma and p (N(a) - N(a - 2 / sigma)) are below its rounding
        for radius in (0.0, 1e-15):
            noise = BinaryGaussian([0.25, 0.75], sigma, radius)
            assert noise.failure_probability(epsilon) == pytest.approx(expected, rel=1e-9)
