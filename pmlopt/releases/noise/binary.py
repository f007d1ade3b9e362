"""Noise on a binary secret: two letters at -1 and 1, with their prior or a set of priors."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import FloatArray, check_in_interval
from pmlopt.data.mechanism import find_rows
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import Seed
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.additive import AdditiveNoise, Promise, check_scale
from pmlopt.releases.noise.leakage_tails import LetterMasses
from pmlopt.releases.noise.letters import PlacedLetters, check_prior_set

CENTERS = np.array([-1.0, 1.0])
"""Where the two letters are."""


@dataclass(frozen=True, eq=False)
class BinaryNoise(ABC):
    """Y = X + noise, for X = -1 on the prior's first letter and X = 1 on its second.

    What is stated of the noise holds for the prior only, or for every prior of a set.

    Args:
        prior: two letters.
        scale: of the noise, positive; 0 stands for none.
        radius: short for `over=L1Ball(prior, radius)`; in [0, 2], and 0 stands for no set.
        over: a set of priors on the same letters, such as `confidence_ball(...)` or `confidence_box(...)`.

    Raises:
        PriorError: the prior has not two letters.
        PrivacyError: the scale is negative, the radius outside [0, 2], `over` is no set of priors on the
            prior's letters, or both a radius and a set are given.
    """

    kind: ClassVar[type[AdditiveNoise]]

    prior: Prior
    scale: float
    radius: float = 0.0
    over: PriorSet | None = None

    def __init__(
        self, prior: PriorLike, scale: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> None:
        known = as_prior(prior)
        size = check_in_interval(radius, "[0, 2]", "the radius", PrivacyError)
        if known.size != 2:
            raise PriorError(f"the prior has {known.size} letters, and this mechanism is for two")
        check_prior_set(over, known)
        if size and over is not None:
            raise PrivacyError(
                f"the radius {size:g} and a set of priors are given: give one of them"
            )
        given = L1Ball(known, size) if size else over
        vars(self).update(prior=known, scale=check_scale(scale), radius=size, over=given)

    @property
    def law(self) -> AdditiveNoise:
        """Return the noise."""
        return self.kind(self.scale)

    @property
    def letters(self) -> PlacedLetters:
        """Return the letters at -1 and 1."""
        return PlacedLetters(self.prior, self.over, CENTERS[:, None])

    @cached_property
    def masses(self) -> LetterMasses:
        """Return bounds on both letters' probabilities over the set, rounded outward."""
        return LetterMasses.from_prior_set(self.prior, self.over)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the range of P(X = 1) over the set, rounded outward."""
        return self.masses.second

    @property
    def min_mass(self) -> float:
        """Return the minimum letter probability over the set, rounded down."""
        return float(self.prior.pmf.min()) if self.over is None else self.masses.min_mass

    @property
    def scope(self) -> str:
        """Return text on the priors for which the levels hold."""
        return "for the prior given" if self.over is None else self.over.scope

    def failure_probability(self, epsilon: float) -> float:
        """Compute an upper bound on the worst-case P(l(Y) > epsilon) over the set, tight to 1e-11.

        Raises:
            PrivacyError: epsilon is negative.

        Source: [grosse2025empirical, eq. (17)].
        """
        return self.law.failure_probability(self.letters, epsilon)

    def promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Return what holds when the set has the true prior but for delta; see `AdditiveNoise.promise`."""
        return self.law.promise(self.letters, epsilon, self.over, delta)

    def density(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the (2, ...) conditional densities of Y given X = -1 and X = 1."""
        self.log_ratio(outcomes)  # which refuses what has none
        away = np.atleast_1d(outcomes) - CENTERS[:, None]
        return self.law.compute_density(away)

    def log_ratio(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the log-ratio of the densities, `log f(y | 1) - log f(y | -1)`."""
        first, second = self.law.compare_letters(self.letters, outcomes)
        return np.asarray(second - first)

    def leakage(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the pointwise maximal leakage of outcomes under the prior itself, in nats."""
        return self.law.leakage(self.letters, outcomes)

    @property
    def grid_step(self) -> float:
        """Return the step of the grid of the noise: at most the scale over 2^48, and -1 and 1 are on it."""
        return self.law.grid_step

    def sample(self, values: Iterable[object], seed: Seed = None) -> FloatArray:
        """Release each value, one of the prior's labels, as -1 or 1 with noise; see `AdditiveNoise.sample`.

        Raises:
            MechanismError: a value is not one of the two labels.
        """
        return self.law.sample(CENTERS[find_rows(self.prior.labels, values)], seed)
