"""What is refused of noise, whatever its law, and how binary noise samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.noise import check_law
from oracles.two_letters import BinaryGaussian, BinaryLaplace
from scipy.stats import laplace, norm

from pmlopt import Prior
from pmlopt.errors import MechanismError
from pmlopt.errors import PrivacyError as Refused
from pmlopt.releases.noise import (
    LaplaceHistogram,
    laplace_level,
    laplace_scale,
    plocal_failure,
    plocal_scale,
)

EVEN = [0.5, 0.5]
NONE = (-1.0, math.nan, math.inf, "1", None)
"""What no number that is asked for may be."""

BALL = BinaryGaussian(EVEN, 1.0, 0.1)

NOISE: Any = (BinaryLaplace, BinaryGaussian)

ASKED: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "the scale of a level": (lambda e: laplace_scale(e, 0.3), (*NONE, 0, -0.0, True, 5e-324, 1e-305)),
    "a level of Laplace noise": (lambda e: BinaryLaplace.calibrate(EVEN, epsilon=e), (*NONE, 0.0)),
    "a level of a histogram": (lambda e: LaplaceHistogram.calibrate(epsilon=e), (*NONE, 0.0)),
    "a level of Gaussian noise": (
        lambda e: BinaryGaussian.calibrate(EVEN, epsilon=e, delta=0.1), (*NONE, 0.0, 1e-200)),
    "a delta": (lambda d: BinaryGaussian.calibrate(EVEN, epsilon=0.5, delta=d), (*NONE, 0.0, 1.0, 1.5)),
    "the level of a failure": (BinaryGaussian(EVEN, 1.0).failure_probability, NONE),
    "the level of a promise": (lambda e: BALL.promise(e, 0.1), NONE),
    "the level as published": (lambda e: BALL.published_promise(e, 0.1), NONE),
    "the delta of a promise": (lambda d: BALL.promise(0.5, d), (-0.1, 0.0, 1.0, 1.5, math.nan, "0.1")),
    "the delta as published": (lambda d: BALL.published_promise(0.5, d), (-0.1, 0.0, 1.0, 1.5, "0.1")),
    "a least probability": (lambda a: laplace_scale(1.0, a), (*NONE, 1.1)),
    "the least of a level": (lambda a: laplace_level(1.0, a), (*NONE, 1.1)),
    "a minimum mass": (lambda a: LaplaceHistogram(1.0, a), (*NONE, 1.1)),
    "a calibrated mass": (lambda a: LaplaceHistogram.calibrate(epsilon=1.0, min_mass=a), (*NONE, 1.1)),
    "a scale": (lambda b: laplace_level(b, 0.3), NONE),
    "the scale of a histogram": (LaplaceHistogram, NONE),
    "classes": (LaplaceHistogram(1.0).composed_level, (0, -1, 1.5, math.nan, "3")),
    "an epsilon of sigma": (lambda e: plocal_scale(e, 0.1), (*NONE, 0.0)),
    "a delta of sigma": (lambda d: plocal_scale(1.0, d), (*NONE, 0.0)),
    "an epsilon of local privacy": (lambda e: plocal_failure(e, 1.0), (*NONE, 0.0)),
    "a sigma": (lambda s: plocal_failure(1.0, s), (*NONE, 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("what", list(ASKED))
def test_what_cannot_be_meant_is_refused(what: str) -> None:
    ask, bad = ASKED[what]
    for value in bad:
        with pytest.raises(Refused):
            ask(value)


@pytest.mark.parametrize("kind", NOISE)
def test_of_binary_noise(kind: Any) -> None:
    for scale in NONE:
        with pytest.raises(Refused):
            kind(EVEN, scale)
    for outcomes in ([math.nan], [math.inf], [], [[1.0]], ["a"]):
        for ask in (kind(EVEN, 1.0).leakage, kind(EVEN, 1.0).density):
            with pytest.raises(Refused):
                ask(outcomes)


@pytest.mark.parametrize(
    "noise", [BinaryLaplace(EVEN, 1.0), BinaryGaussian(EVEN, 1.0), LaplaceHistogram(1.0)]
)
def test_noise_cannot_be_changed(noise: Any) -> None:
    with pytest.raises(FrozenInstanceError):
        noise.scale = 0.1


@pytest.mark.parametrize("kind", NOISE)
def test_samples_are_of_their_labels_and_seeds(kind: Any) -> None:
    noise = kind(Prior([0.25, 0.75], labels=["no", "yes"]), 1.5)
    values = ["no", "yes", "yes"] * 5
    first = noise.sample(values, seed=7)
    assert np.array_equal(first, noise.sample(values, seed=7))
    assert (first != noise.sample(values, seed=8)).all()
    assert (noise.sample(values) != noise.sample(values)).all()
    assert len(set(first.tolist())) == 15
    assert noise.sample([]).shape == (0,)
    low = noise.sample(["no"] * 4, seed=3) + 1
    assert noise.sample(["yes"] * 4, seed=3) - 1 == pytest.approx(low, abs=1e-14)
    assert kind(noise.prior, 0.0).sample(["no", "yes", "no"]).tolist() == [-1.0, 1.0, -1.0]
    assert kind(EVEN, 0.0).sample(np.array([1, 0])).tolist() == [1.0, -1.0]
    for bad in (["maybe"], ["yes", None], [1], "no", [["no"]]):
        with pytest.raises(MechanismError):
            noise.sample(bad, seed=1)
    law = {BinaryLaplace: laplace, BinaryGaussian: norm}[kind]
    for label, centre in (("no", -1.0), ("yes", 1.0)):
        check_law(noise.sample([label] * 50_000, seed=20), law(centre, 1.5).cdf)


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(NOISE),
    st.floats(1e-3, 0.5),
    st.floats(0.05, 50.0),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_leakage_is_the_ratio_of_densities(
    kind: Any, share: float, scale: float, seed: int, swap: bool
) -> None:
    scale = max(scale, 0.3) if kind is BinaryGaussian else scale  # or densities underflow
    noise = kind(np.array([1 - share, share] if swap else [share, 1 - share]), scale)
    y = np.concatenate([np.random.default_rng(seed).uniform(-4, 4, 20), [-1.0, 0.0, 1.0]])
    law = {BinaryLaplace: laplace, BinaryGaussian: norm}[kind]
    f = noise.density(y)
    assert f == pytest.approx(np.stack([law.pdf(y, -1, scale), law.pdf(y, 1, scale)]), rel=1e-12)
    assert noise.leakage(y) == pytest.approx(
        np.log(f.max(axis=0) / (noise.prior.pmf @ f)), abs=1e-9
    )
    assert noise.log_ratio(y) == pytest.approx(np.log(f[1] / f[0]), abs=1e-9)
    assert float(noise.leakage(0.0)[0]) == 0.0


def leakage_in_digits(y: float, second: float, scale: float, power: int) -> float:
    """`log max_x f(y|x) / f(y)` from the density, which is `exp(-(|y - x| / scale)^power / power)`."""
    with localcontext(Context(prec=80, Emax=10**6, Emin=-(10**6))):
        logs = [-((abs(Decimal(y) - x) / Decimal(scale)) ** power) / power for x in (-1, 1)]
        low, high = ((log - max(logs)).exp() for log in logs)
        return float(-((1 - Decimal(second)) * low + Decimal(second) * high).ln())


@pytest.mark.parametrize(("kind", "power"), [(BinaryLaplace, 1), (BinaryGaussian, 2)])
@pytest.mark.parametrize("prior", [[0.5, 0.5], [0.01, 0.99], [1 - 1e-6, 1e-6]])
def test_far_outcomes_leak_what_digits_say_and_no_more(
    kind: Any, power: int, prior: list[float]
) -> None:
    y = np.array([-1e8, -1e6, -1e3, -1.0, -0.5, 0.0, 0.5, 1.0, 1e3, 1e6, 1e8])
    for scale in (1e-3, 1.0, 1e3):
        noise = kind(prior, scale)
        leaked = noise.leakage(y)  # a warning is an error
        second = float(noise.prior.pmf[1])
        expected = [leakage_in_digits(v, second, scale, power) for v in y.tolist()]
        assert leaked == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert np.isfinite(noise.density(y)).all()
        if kind is BinaryLaplace:
            assert leaked.max() == pytest.approx(noise.level, abs=1e-9)
        else:
            assert leaked[[0, -1]] == pytest.approx(-np.log(noise.prior.pmf), abs=1e-12)


@pytest.mark.parametrize("seed", [-1, "x", 0.5])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(MechanismError):
        BinaryLaplace(EVEN, 1.0).sample([0], seed=seed)
    with pytest.raises(MechanismError):
        LaplaceHistogram(1.0).release([1, 2], seed)
