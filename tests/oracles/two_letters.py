"""Noise on a binary secret, a label of each of two letters at -1 and 1: the simplest case of all noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from oracles.designs import FloatArray

from pmlopt import L1Ball, Prior
from pmlopt.data.mechanism import find_rows
from pmlopt.data.prior import as_prior
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.uncertainty.sensitivity import level_within_distance
from pmlopt.programs.exact.rounding import round_down_to_float, round_up_to_float
from pmlopt.releases.noise import Gaussian, Laplace, Promise
from pmlopt.releases.noise.additive import AdditiveNoise
from pmlopt.releases.noise.leakage_tails import find_least_masses
from pmlopt.releases.noise.letters import PlacedLetters

CENTERS = np.array([-1.0, 1.0])


@dataclass(frozen=True)
class BinaryNoise:
    """Noise on the letters of a prior at -1 and 1, for it or for every prior of a set, or within a radius."""

    kind: ClassVar[type[AdditiveNoise]]

    given: Any
    scale: float
    radius: float = 0.0
    over: PriorSet | None = None

    def __post_init__(self) -> None:
        prior = as_prior(self.given)
        over = L1Ball(prior, self.radius) if self.radius != 0.0 else self.over
        letters = PlacedLetters(prior, over, CENTERS[:, None])
        vars(self).update(prior=prior, over=over, letters=letters, law=self.kind(self.scale))

    prior: ClassVar[Prior]
    letters: ClassVar[PlacedLetters]
    law: ClassVar[Any]

    @cached_property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """The least and the largest probability of each letter, rounded outward."""
        one, other = find_least_masses(self.letters)
        return tuple(
            (round_down_to_float(low), round_up_to_float(1 - rest))
            for low, rest in ((one, other), (other, one))
        )

    @property
    def interval(self) -> tuple[float, float]:
        return self.ends[1]

    @property
    def min_mass(self) -> float:
        return float(self.prior.pmf.min()) if self.over is None else min(self.ends)[0]

    @property
    def level(self) -> float:
        return float(self.law.level(self.letters))

    @property
    def ldp_level(self) -> float:
        return 2 / self.scale if self.scale else math.inf

    def failure_probability(self, epsilon: float) -> float:
        return float(self.law.failure_probability(self.letters, epsilon))

    def promise(self, epsilon: float, delta: float | None = None) -> Promise:
        found = self.law.promise(self.letters, epsilon, self.over, delta)
        assert isinstance(found, Promise)
        return found

    def published_promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Theorem 4 on top, of [grosse2025empirical, Section VI-B]."""
        assert isinstance(self.over, L1Ball)
        sharp = self.promise(epsilon, delta)
        return Promise(level_within_distance(epsilon, self.over.radius), sharp.delta)

    def leakage(self, outcomes: ArrayLike) -> FloatArray:
        return np.asarray(self.law.leakage(self.letters, outcomes))

    def density(self, outcomes: ArrayLike) -> FloatArray:
        self.leakage(outcomes)  # which refuses what has none
        return np.asarray(self.law.compute_density(np.atleast_1d(outcomes) - CENTERS[:, None]))

    def log_ratio(self, outcomes: ArrayLike) -> FloatArray:
        first, second = self.law.compute_log_likelihoods(np.asarray(outcomes), CENTERS)
        return np.asarray(second - first)

    def sample(self, values: Iterable[object], seed: Any = None) -> FloatArray:
        drawn = self.law.sample(CENTERS[find_rows(self.prior.labels, values)], seed)
        return np.asarray(drawn)


class BinaryLaplace(BinaryNoise):
    kind = Laplace

    @classmethod
    def calibrate(
        cls, prior: Any, *, epsilon: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> Self:
        noise = Laplace.calibrate(cls(prior, 0.0, radius, over).letters, epsilon)
        return cls(prior, noise.scale, radius, over)


class BinaryGaussian(BinaryNoise):
    kind = Gaussian

    @classmethod
    def calibrate(
        cls,
        prior: Any,
        *,
        epsilon: float,
        delta: float,
        radius: float = 0.0,
        over: PriorSet | None = None,
    ) -> Self:
        noise = Gaussian.calibrate(cls(prior, 0.0, radius, over).letters, epsilon, delta)
        return cls(prior, noise.scale, radius, over)
