"""Binary Gaussian noise: the probability of a failure by quadrature, over a ball by search; calibration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.noise import largest
from oracles.two_letters import BinaryGaussian
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import norm

from pmlopt.releases.noise import Gaussian, Laplace, plocal_failure, plocal_scale
from pmlopt.releases.noise.additive import AdditiveNoise
from pmlopt.releases.noise.leakage_tails import PairFailure

SHARES = st.one_of(st.sampled_from([1e-6, 0.01, 0.25, 0.5]), st.floats(0.01, 0.5))
SIGMAS = st.one_of(st.sampled_from([0.3, 1.0, 1.5, 2.0]), st.floats(0.1, 20.0))


def leakage_at(y: float, second: float, sigma: float) -> float:
    """`log max_x f(y|x) / f(y)` from logarithms of the density."""
    logs = -((y - np.array([-1.0, 1.0])) ** 2) / (2 * sigma**2)
    return float(logs.max() - logsumexp(logs, b=[1 - second, second]))


def integrated(second: float, sigma: float, epsilon: float) -> float:
    """The integral of the mixture over the outcomes that leak more: a root on each side, and quadrature."""

    def density(y: float) -> float:
        return float((1 - second) * norm.pdf(y, -1, sigma) + second * norm.pdf(y, 1, sigma))

    total = 0.0
    for sign in (-1.0, 1.0):

        def excess(far: float, sign: float = sign) -> float:
            return leakage_at(sign * far, second, sigma) - epsilon

        end = 1 + 40 * sigma
        if excess(end) <= 0:
            continue  # on this side nothing leaks so much, or only where there is no mass
        start = brentq(excess, 0.0, end, xtol=1e-14, rtol=1e-14) if excess(0.0) < 0 else 0.0
        points = sorted(
            {start, end, *(p for k in range(-8, 9, 2) if start < (p := 1 + k * sigma) < end)}
        )
        for low, high in itertools.pairwise(points):
            total += quad(lambda v, s=sign: density(s * v), low, high, epsabs=1e-13, epsrel=1e-12)[
                0
            ]
    return total


def closed(second: FloatArray, sigma: float, epsilon: float) -> FloatArray:
    """The same in closed form, with differences that keep their digits for small epsilon, and near -log p."""
    total = np.zeros_like(second)
    lost = -np.expm1(-np.longdouble(epsilon))
    for share in (second.astype(np.longdouble), 1 - second.astype(np.longdouble)):
        part = lost / np.maximum(1 - share, 1e-300)
        possible = part < 1
        start = -(sigma**2) / 2 * np.log1p(-np.where(possible, part, 0.0)).astype(float)
        tails = share * ndtr((1 - start) / sigma) + (1 - share) * ndtr((-1 - start) / sigma)
        total += np.where(possible, tails, 0.0).astype(float)
    return total


def searched(interval: tuple[float, float], sigma: float, epsilon: float) -> float:
    """The largest over an interval, near the letters as likely as e^-epsilon, where it may jump."""
    steps, edge = np.geomspace(1e-17, 1e-2, 200), math.exp(-epsilon)
    near = np.concatenate([np.linspace(*interval, 20_001), edge - steps, 1 - edge + steps, [0.5]])
    return largest(lambda q: closed(q, sigma, epsilon), near, interval)


class TestFailure:
    @settings(max_examples=8, deadline=None)
    @given(SHARES, SIGMAS, st.floats(0.02, 3.0), st.booleans())
    def test_of_one_prior_it_is_the_integral(
        self, share: float, sigma: float, epsilon: float, swap: bool
    ) -> None:
        assume(all(abs(math.exp(-epsilon) - q) > 1e-6 for q in (share, 1 - share)))
        noise = BinaryGaussian([1 - share, share] if swap else [share, 1 - share], sigma)
        second = float(noise.prior.pmf[1])
        found = noise.failure_probability(epsilon)
        assert found == pytest.approx(integrated(second, sigma, epsilon), abs=1e-10)
        assert found == pytest.approx(
            float(closed(np.array([second]), sigma, epsilon)[0]), abs=1e-12
        )

    @settings(max_examples=8, deadline=None)
    @given(
        SHARES,
        st.floats(1.0, 6.0),
        st.floats(0.3, 3.0),
        st.floats(0.001, 2.0),
        st.integers(0, 2**32 - 1),
    )
    def test_over_a_ball_it_is_the_supremum(
        self, share: float, sigma: float, epsilon: float, radius: float, seed: int
    ) -> None:
        noise = BinaryGaussian([share, 1 - share], sigma, radius)
        found = noise.failure_probability(epsilon)
        inside = np.random.default_rng(seed).uniform(*noise.interval, 200)
        assert found >= closed(np.array([*inside, *noise.interval]), sigma, epsilon).max() - 1e-14
        best = searched(noise.interval, sigma, epsilon)
        assert best - 1e-14 <= found <= best + 2e-11
        for q in inside[:2]:
            assert found >= integrated(float(q), sigma, epsilon) - 1e-10

    @pytest.mark.parametrize(
        ("prior", "sigma", "epsilon"),
        [
            ([0.4, 0.6], 0.05, math.log(2)),  # with little noise it jumps
            ([0.53, 0.47], 0.3, 0.9),
            ([0.5, 0.5], 0.5, 1e-3),  # a flat top
            *(([0.3, 0.7], sigma, 1e-4) for sigma in (0.05, 100.0, 3e4)),
        ],
    )
    def test_where_it_is_steep_or_flat_it_is_still_the_supremum(
        self, prior: list[float], sigma: float, epsilon: float
    ) -> None:
        noise = BinaryGaussian(prior, sigma, 0.1)
        found = noise.failure_probability(epsilon)
        best = searched(noise.interval, sigma, epsilon)
        assert best - 1e-14 <= found <= min(1.0, best + 2e-11)

    def test_nothing_leaks_more_than_the_largest_leakage(self) -> None:
        for sigma, share in itertools.product((0.0, 0.1, 1.5, 30.0), (0.5, 0.3, 0.01)):
            noise = BinaryGaussian([share, 1 - share], sigma)
            for epsilon in (noise.prior.max_leakage + 1e-12, 40.0, 800.0):
                assert noise.failure_probability(epsilon) == 0.0
            near = BinaryGaussian([share, 1 - share], sigma, share)  # no prior rarer than share / 2
            assert near.failure_probability(-math.log(share / 2) + 1e-12) == 0.0

    def test_without_noise_it_is_the_mass_of_the_rare_letters(self) -> None:
        noise = BinaryGaussian([0.3, 0.7], 0.0)
        assert noise.failure_probability(0.2) == pytest.approx(1.0, abs=1e-15)
        assert noise.failure_probability(1.0) == pytest.approx(0.3, abs=1e-15)
        assert noise.failure_probability(1.5) == 0.0
        ball = BinaryGaussian([0.3, 0.7], 0.0, 0.2)  # P(X = -1) in [0.2, 0.4]
        assert ball.failure_probability(1.0) == pytest.approx(math.exp(-1), abs=1e-10)
        assert ball.failure_probability(0.9) == pytest.approx(0.4, abs=1e-10)


class TestPromise:
    @pytest.mark.parametrize(("radius", "epsilon"), [(0.01, 0.3), (0.05, 0.8), (0.3, 0.6)])
    @pytest.mark.parametrize("delta", [1e-6, 0.1])
    def test_the_published_pair_is_looser(
        self, radius: float, epsilon: float, delta: float
    ) -> None:
        noise = BinaryGaussian([0.5, 0.5], 1.5, radius)
        first = noise.failure_probability(epsilon)
        sharp, published = noise.promise(epsilon, delta), noise.published_promise(epsilon, delta)
        assert sharp.epsilon == epsilon
        assert sharp.delta == pytest.approx(1 - (1 - first) * (1 - delta), abs=1e-15)
        assert sharp.delta >= max(first, delta)
        assert published.delta == sharp.delta
        printed = epsilon - math.log(1 - radius / 2 * math.exp(epsilon))
        assert published.epsilon == pytest.approx(printed, rel=1e-13)
        assert published.epsilon > epsilon

    def test_on_a_large_ball_the_published_one_says_nothing(self) -> None:
        noise = BinaryGaussian([0.5, 0.5], 1.5, 1.0)
        assert noise.published_promise(1.0, 0.01).epsilon == math.inf
        assert noise.promise(1.0, 0.01).epsilon == 1.0


LARGER = np.concatenate([[1 + 1e-9, 1.001], np.linspace(1.01, 3, 60), np.geomspace(3, 100, 40)])


class TestCalibrate:
    @pytest.mark.parametrize("share", [0.5, 0.3, 0.05])
    @pytest.mark.parametrize(
        ("epsilon", "delta"), [(0.1, 0.01), (0.5, 1e-6), (1.0, 1e-3), (0.3, 0.04)]
    )
    def test_the_least_noise_for_one_prior(
        self, share: float, epsilon: float, delta: float
    ) -> None:
        prior = [share, 1 - share]
        noise = BinaryGaussian.calibrate(prior, epsilon=epsilon, delta=delta)
        assert noise.failure_probability(epsilon) <= delta
        if noise.scale == 0:
            assert epsilon >= -math.log(share)
            return
        assert BinaryGaussian(prior, noise.scale * (1 - 1e-9)).failure_probability(epsilon) > delta
        for factor in LARGER:
            assert BinaryGaussian(prior, noise.scale * factor).failure_probability(epsilon) <= delta

    @pytest.mark.parametrize(("radius", "epsilon", "delta"), [(0.05, 0.6, 1e-3), (0.3, 1.0, 0.02)])
    def test_the_least_noise_on_a_ball(self, radius: float, epsilon: float, delta: float) -> None:
        noise = BinaryGaussian.calibrate([0.4, 0.6], epsilon=epsilon, delta=delta, radius=radius)
        assert noise.radius == radius
        assert noise.failure_probability(epsilon) <= delta
        assert searched(noise.interval, noise.scale * (1 - 1e-6), epsilon) > delta
        for factor in LARGER[::6]:
            assert searched(noise.interval, noise.scale * factor, epsilon) <= delta
        alone = BinaryGaussian.calibrate([0.4, 0.6], epsilon=epsilon, delta=delta)
        assert noise.scale >= alone.scale

    @pytest.mark.parametrize(
        ("share", "epsilon", "delta"),
        [(0.01, 0.6, 0.02), (0.1, 0.3, 0.2), (0.001, 2.0, 0.02), (0.001, 0.0011, 0.2)],
    )
    def test_from_the_scale_on_it_holds_also_where_a_letter_is_rarer_than_delta(
        self, share: float, epsilon: float, delta: float
    ) -> None:
        # without noise only the rare letter fails, and with some more outcomes do
        noise = BinaryGaussian.calibrate([share, 1 - share], epsilon=epsilon, delta=delta)
        later = noise.scale * np.linspace(1.0, 3.0, 200) + np.linspace(0.0, 12.0, 200)
        worst = max(BinaryGaussian(noise.prior, s).failure_probability(epsilon) for s in later)
        assert worst <= delta * (1 + 1e-9)


class TestLocal:
    @settings(max_examples=20, deadline=None)
    @given(st.floats(1e-3, 20.0), st.floats(1e-12, 0.999))
    def test_scale_and_failure_are_inverses(self, epsilon: float, delta: float) -> None:
        scale = plocal_scale(epsilon, delta)
        assert plocal_failure(epsilon, scale) == pytest.approx(delta, rel=1e-9)
        assert plocal_scale(epsilon, plocal_failure(epsilon, scale)) == pytest.approx(
            scale, rel=1e-9
        )

    @settings(max_examples=10, deadline=None)
    @given(st.floats(0.05, 5.0), st.floats(1e-9, 0.999))
    def test_the_log_ratio_is_larger_with_probability_delta_at_most(
        self, epsilon: float, delta: float
    ) -> None:
        s = plocal_scale(epsilon, delta)
        start = brentq(lambda y: norm.logpdf(y, 1, s) - norm.logpdf(y, -1, s) - epsilon, -1e6, 1e6)
        points = [
            start,
            *(p for k in range(-8, 9, 4) if (p := 1 + k * s) > start),
            max(start, 1) + 40 * s,
        ]
        above = sum(
            quad(lambda y: norm.pdf(y, 1, s), *ends, epsabs=1e-14)[0]
            for ends in itertools.pairwise(points)
        )
        below = float(norm.cdf(-start, 1, s))  # the other letter stands out as much
        # the printed sigma is safe by a factor of two in one direction, so it covers both
        assert above == pytest.approx(delta / 2, abs=1e-10)
        assert above <= above + below <= delta + 1e-10


def test_plocal_failure_past_every_float() -> None:
    assert plocal_failure(1e300, 1e300) == 0
    assert plocal_failure(1e-300, 1e-300) == 1


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
@pytest.mark.parametrize(
    "noise", [Gaussian(0.4), Gaussian(1.5), Gaussian(5.0), Laplace(0.4), Laplace(1.5)]
)
def test_the_tail_term_of_a_letter_has_its_slope_and_turns_convex_once(
    epsilon: float, noise: AdditiveNoise
) -> None:
    failure = PairFailure(noise, epsilon)

    def compute(mass: FloatArray) -> tuple[FloatArray, FloatArray]:
        return failure.compute_tails(mass, 1 - mass, failure.subtract_mass(mass, 1 - mass))

    p, step = np.linspace(0.02, 0.98 * min(1.0, failure.max_mass), 60), 1e-5
    slope = compute(p)[1]
    below, above = compute(p - step)[0], compute(p + step)[0]
    assert slope == pytest.approx((above - below) / (2 * step), abs=2e-5)
    bend = compute(p + step)[1] - compute(p - step)[1]
    turned = np.maximum.accumulate(bend > 1e-13)
    assert (bend[turned] >= -1e-13).all()
    if (noise, epsilon) == (Gaussian(5.0), 0.2):
        assert {True, False} == set(turned.tolist())
    # over cells the sum of both terms is bounded, and to second order where it has no jump
    kinks = [failure.max_mass, 1 - failure.max_mass]
    for size, near in ((1.0, 1.0), (1e-4, 1e-7)):
        left, right = p[:-1], p[:-1] + size * np.diff(p)
        values, bounds = failure.bound_on_cells(left, right)
        inside = np.linspace(left, right, 5)
        found = (compute(inside)[0] + compute(1 - inside)[0]).max(axis=0)
        smooth = ~np.any([(left <= one) & (one <= right) for one in kinks], axis=0)
        assert (values <= found + 1e-13).all()
        assert (found <= bounds + 1e-13)[smooth].all()
        assert (bounds - found <= near)[smooth].all()
