"""Binary Laplace noise: its level by optimisation on the density, the inverse in 60 digits, and its draws."""

from __future__ import annotations

import itertools
import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.two_letters import BinaryLaplace
from scipy.special import logsumexp
from strategies import MODEST

from pmlopt import Prior
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.uncertainty import weissman_radius
from pmlopt.releases.noise import laplace_level, laplace_scale

SHARES = st.one_of(st.sampled_from([1e-9, 1e-4, 0.25, 0.5]), st.floats(1e-3, 0.5))
SCALES = st.floats(-2.5, 3.0).map(lambda exponent: 10.0**exponent)
DIGITS = Context(prec=60, Emax=10**6, Emin=-(10**6))


def level_in_digits(scale: float, least: float) -> float:
    """`2/b - log(1 - a + a e^{2/b})` as EMP and HIST print it."""
    with localcontext(DIGITS):
        ratio, a = 2 / Decimal(scale), Decimal(least)
        return float(ratio - (1 - a + a * ratio.exp()).ln())


def scale_in_digits(epsilon: float, least: float) -> float:
    """`2 / log(e^eps (1 - a) / (1 - a e^eps))` as the theory notes print it."""
    with localcontext(DIGITS):
        up, a = Decimal(epsilon).exp(), Decimal(least)
        return float(2 / (up * (1 - a) / (1 - a * up)).ln())


def leakages(y: FloatArray, pmf: FloatArray, scale: float) -> FloatArray:
    """The same of many outcomes, as good as floats are."""
    logs = -np.abs(y[:, None] - [-1.0, 1.0]) / scale
    return np.asarray(logs.max(axis=1) - logsumexp(logs, b=pmf, axis=1))


def largest_leakage(pmf: FloatArray, scale: float) -> float:
    """The sup over outcomes, on a grid that closes in on its best point."""
    reach = 1 + 5 * max(scale, 1.0)
    low, high, best = -reach, reach, 0.0
    for _ in range(6):
        grid = np.linspace(low, high, 101)
        values = leakages(grid, pmf, scale)
        at, best = int(values.argmax()), max(best, float(values.max()))
        low, high = float(grid[max(at - 1, 0)]), float(grid[min(at + 1, 100)])
    return best


class TestLevel:
    @settings(max_examples=15, deadline=None)
    @given(SHARES, SCALES, st.booleans())
    def test_it_is_the_largest_leakage_of_an_outcome(
        self, share: float, scale: float, swap: bool
    ) -> None:
        pair = [1 - share, share] if swap else [share, 1 - share]
        noise = BinaryLaplace(pair, scale)
        found = largest_leakage(noise.prior.pmf, scale)
        assert noise.level == pytest.approx(found, abs=1e-9)
        # the closed form, which the level of any letters is rounded up from
        closed = laplace_level(scale, float(noise.prior.pmf.min()))
        assert closed * (1 - 1e-15) <= noise.level <= closed * (1 + 1e-14)

    @settings(max_examples=8, deadline=None)
    @given(SHARES, SCALES, st.floats(0.0, 2.0), st.booleans())
    def test_over_a_ball_it_is_the_largest_over_its_priors(
        self, share: float, scale: float, radius: float, swap: bool
    ) -> None:
        noise = BinaryLaplace([1 - share, share] if swap else [share, 1 - share], scale, radius)
        low, high = noise.interval
        second = float(noise.prior.pmf[1])
        assert low == pytest.approx(max(0.0, second - radius / 2), abs=1e-15)
        assert high == pytest.approx(min(1.0, second + radius / 2), abs=1e-15)
        # by the letter that is rarer at first: its digits are lost in 1 - q
        low, high = noise.ends[swap]
        turn = 1 if swap else -1
        found = max(
            largest_leakage(np.array([1 - q, q])[::turn], scale) for q in np.linspace(low, high, 5)
        )
        # the sup over priors is at an end, where it is approached but a letter may have probability 0
        assert noise.level == pytest.approx(found, abs=1e-9 * max(1.0, noise.level))
        for q in np.random.default_rng(0).uniform(low, high, 8):
            assert largest_leakage(np.array([1 - q, q])[::turn], scale) <= noise.level + 1e-9

    @given(SCALES, st.floats(0.0, 1.0))
    @example(2 / 700.0, 0.0)
    @example(2 / 740.0, 0.0)  # where exponentials are subnormal
    @example(2 / 745.5, 0.0)
    @example(2 / 2000.0, 0.0)
    @MODEST
    def test_the_printed_formula_in_sixty_digits(self, scale: float, least: float) -> None:
        known = level_in_digits(scale, least)
        assert laplace_level(scale, least) == pytest.approx(known, rel=1e-12, abs=1e-15)

    def test_without_noise(self) -> None:
        assert laplace_level(0.0, 0.25) == pytest.approx(math.log(4), abs=1e-15)
        assert laplace_level(0.0, 0.0) == math.inf
        noise = BinaryLaplace([0.75, 0.25], 0.0)
        assert math.log(4) <= noise.level <= math.log(4) * (1 + 1e-14)
        assert noise.ldp_level == math.inf
        assert BinaryLaplace([0.75, 0.25], 0.0, 0.5).level == math.inf
        for ask in (noise.density, noise.leakage):
            with pytest.raises(MechanismError):
                ask([0.0])

    @pytest.mark.parametrize("samples", [200, 10_000, 32_561])
    @pytest.mark.parametrize("delta", [1e-9, 1e-3])
    def test_equation_16(self, samples: int, delta: float) -> None:
        beta = math.sqrt(2 * (math.log(2) - math.log(delta)) / samples)  # eq. (14)
        assert weissman_radius(samples, 2, delta) == pytest.approx(beta, rel=1e-14)
        prior = Prior.from_counts({"<=50K": 24_720, ">50K": 7_841})
        least = 7_841 / 32_561
        for b in (0.3, 1.0, 4.0):
            printed = 2 / b - math.log((least - beta / 2) * (math.exp(2 / b) - 1) + 1)
            assert BinaryLaplace(prior, b, beta).level == pytest.approx(printed, rel=1e-12)

    @given(SCALES)
    @MODEST
    def test_remark_4(self, scale: float) -> None:
        assert BinaryLaplace([0.5, 0.5], scale, 1.0).level == pytest.approx(2 / scale, rel=1e-14)

    @given(SHARES, SCALES)
    @MODEST
    def test_radius_two_is_ldp(self, share: float, scale: float) -> None:
        noise = BinaryLaplace([share, 1 - share], scale, 2.0)
        assert noise.interval == (0.0, 1.0)
        assert noise.level == pytest.approx(noise.ldp_level, rel=1e-14)
        assert BinaryLaplace.calibrate(
            [share, 1 - share], epsilon=0.7, radius=2
        ).scale == pytest.approx(2 / 0.7, rel=1e-14)


class TestScale:
    @settings(max_examples=25, deadline=None)
    @given(st.one_of(SHARES, st.floats(0.5, 0.9)), st.floats(1e-9, 0.99))
    def test_it_is_the_inverse(self, least: float, part: float) -> None:
        epsilon = -math.log(least) * part
        self.check_inverse(epsilon, least)
        assert laplace_scale(epsilon, least) == pytest.approx(
            scale_in_digits(epsilon, least), rel=1e-12
        )

    @staticmethod
    def check_inverse(epsilon: float, least: float) -> None:
        scale = laplace_scale(epsilon, least)
        assert scale > 0
        assert laplace_level(scale, least) <= epsilon
        assert laplace_level(scale, least) == pytest.approx(epsilon, rel=1e-12)

    def test_without_knowledge_it_is_two_over_epsilon(self) -> None:
        for epsilon in (1e-12, 1e-3, 1.0, 700.0, 720.0, 740.0, 744.5, 746.0, 800.0, 1e5):
            scale = laplace_scale(epsilon, 0.0)
            assert scale == pytest.approx(2 / epsilon, rel=1e-12)
            assert laplace_level(scale, 0.0) <= epsilon
        for epsilon, least in itertools.product((5e-324, 1e-310, 1e-305), (0.0, 0.3)):
            with pytest.raises(PrivacyError, match="epsilon"):  # too small for any scale
                laplace_scale(epsilon, least)

    @given(st.floats(1e-6, 0.5), st.floats(0.0, 3.0))
    @example(0.5, 0.0)
    @example(1.0, 1e-9)
    @MODEST
    def test_no_noise_is_needed_from_the_largest_leakage_on(
        self, least: float, more: float
    ) -> None:
        assert laplace_scale(-math.log(least) + more, least) == 0.0

    def test_just_below_the_largest_leakage_it_answers(self) -> None:
        # -log a in six digits, rounded down
        six = [(0.395, 0.928869), (0.385, 0.954511944), (0.45, 0.798507696), (0.415, 0.8794767587)]
        ulps = [(0.37, 3), (0.38, 10**8), (0.41000000000000003, 2), (0.45, 2), (0.5, 10**8)]
        near = [(a, -math.log(a) - count * math.ulp(-math.log(a))) for a, count in ulps]
        for least, epsilon in six + near:
            assert epsilon < -math.log(least)
            self.check_inverse(epsilon, least)

    @settings(max_examples=15, deadline=None)
    @given(SHARES, st.floats(0.0, 2.0), st.floats(0.01, 3.0))
    def test_calibrated_on_a_ball(self, share: float, radius: float, epsilon: float) -> None:
        noise = BinaryLaplace.calibrate([share, 1 - share], epsilon=epsilon, radius=radius)
        assert noise.radius == radius
        assert noise.level <= epsilon
        if noise.scale:
            assert BinaryLaplace(noise.prior, noise.scale * (1 - 1e-6), radius).level > epsilon * (
                1 - 1e-15
            )
        else:
            assert epsilon >= -math.log(noise.min_mass)


@pytest.mark.parametrize("least", [1e-12, 1e-20, 1e-300])
@pytest.mark.parametrize("swap", [False, True])
def test_a_rare_letter_leaks_no_more_than_the_level(least: float, swap: bool) -> None:
    noise = BinaryLaplace([1 - least, least] if swap else [least, 1 - least], 1e-3)
    leaked = noise.leakage([-5.0, 0.0, 5.0])  # a warning is an error
    assert leaked.max() <= noise.level * (1 + 1e-12)
    assert leaked.max() == pytest.approx(-math.log(least), rel=1e-12)
