"""What is refused of noise, whatever its law, and how binary noise samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from pmlopt import Prior
from pmlopt.errors import MechanismError, PriorError
from pmlopt.errors import PrivacyError as Refused
from pmlopt.releases.noise import (
    BinaryGaussian,
    BinaryLaplace,
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
    for radius in (*NONE, 2.1):
        with pytest.raises(Refused):
            kind(EVEN, 1.0, radius)
    for prior in ([1.0], [0.2, 0.3, 0.5]):
        with pytest.raises(PriorError):
            kind(prior, 1.0)
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
    assert first.shape == (15,)
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


@pytest.mark.parametrize("seed", [-1, "x", 0.5])
def test_what_is_no_seed(seed: Any) -> None:
    with pytest.raises(MechanismError):
        BinaryLaplace(EVEN, 1.0).sample([0], seed=seed)
    with pytest.raises(MechanismError):
        LaplaceHistogram(1.0).release([1, 2], seed)
