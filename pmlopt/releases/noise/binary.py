"""Noise on a binary secret: two letters at -1 and 1, with their prior or a set of priors; closed forms."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import FloatArray, check_in_interval
from pmlopt.data.mechanism import find_rows
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import Seed
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.closed_forms.local_privacy import level_of_ratio
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.model.uncertainty.sensitivity import level_within_distance
from pmlopt.releases.noise.additive import AdditiveNoise, Promise, check_epsilon
from pmlopt.releases.noise.gaussian import Gaussian
from pmlopt.releases.noise.laplace import Laplace, search_scale
from pmlopt.releases.noise.laws import check_scale
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


class BinaryLaplace(BinaryNoise):
    """Y = X + L, L Laplace with density `exp(-|t|/b) / (2 b)`, X = -1 or 1.

    Args:
        prior: of X, two letters.
        scale: b; 0 for no noise.
        radius: the level is for every prior within this l1 distance.
        over: the level is for every prior of this set, instead of the radius.

    Source: [grosse2025empirical, Section VI-A].

    Examples:
        >>> noise = BinaryLaplace.calibrate([0.5, 0.5], epsilon=math.log(1.5))
        >>> round(2 / noise.scale, 12) == round(math.log(3), 12), round(math.exp(noise.level), 12)
        (True, 1.5)
        >>> round(math.exp(noise.leakage(7.0)[0]), 12)  # every outcome past 1 leaks as much
        1.5
    """

    kind = Laplace

    @classmethod
    def calibrate(
        cls, prior: PriorLike, *, epsilon: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> Self:
        """Calibrate the scale to a PML level: `laplace_scale` at the least probability over the set.

        Raises:
            PrivacyError: epsilon is not positive, or the set is none; see `BinaryNoise`.

        Source: [grosse2025empirical, eq. (16)]; with the radius 2 it is LDP (Remark 4 has this at 1, for
        p = 1/2).
        """
        least = cls(prior, 0.0, radius, over).min_mass
        return cls(prior, laplace_scale(epsilon, least), radius, over)

    @property
    def level(self) -> float:
        """Return the PML level for every prior of the set."""
        return laplace_level(self.scale, self.min_mass)

    def failure_probability(self, epsilon: float) -> float:
        """Compute the largest P(l(Y) > epsilon) over the set, as for all noise; 0 from the level on."""
        return 0.0 if check_epsilon(epsilon) >= self.level else super().failure_probability(epsilon)

    @property
    def ldp_level(self) -> float:
        """Return the local-DP level 2/b, valid for every prior."""
        return 2 / self.scale if self.scale else math.inf


class BinaryGaussian(BinaryNoise):
    """Y = X + G, G Gaussian with standard deviation sigma = `scale`, X = -1 or 1.

    No level holds for every outcome (far out the leakage tends to -log p), so it comes with a probability.

    Args:
        prior: of X, two letters.
        scale: sigma; 0 for no noise.
        radius: probabilities are for every prior within this l1 distance.
        over: probabilities are for every prior of this set, instead of the radius.

    Source: [grosse2025empirical, Section VI-B].

    Examples:
        >>> noise = BinaryGaussian([0.5, 0.5], 1.5)
        >>> 0 < noise.failure_probability(0.5) < noise.failure_probability(0.4) < 1
        True
        >>> noise.failure_probability(0.7)  # nothing can leak more than log 2 = 0.693...
        0.0
    """

    kind = Gaussian

    @classmethod
    def calibrate(
        cls,
        prior: PriorLike,
        *,
        epsilon: float,
        delta: float,
        radius: float = 0.0,
        over: PriorSet | None = None,
    ) -> Self:
        """Calibrate sigma to a failure probability of at most delta, as `noise.Gaussian.calibrate` does."""
        noise = Gaussian.calibrate(cls(prior, 0.0, radius, over).letters, epsilon, delta)
        return cls(prior, noise.scale, radius, over)

    def published_promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Return the guarantee as published, over an l1 ball.

        Theorem 4 bounds how much more a mechanism leaks elsewhere in a ball than at its centre; but d1 is
        taken over the ball already, so `promise` holds without it. inf where the radius is too large.

        Raises:
            PrivacyError: the set is no l1 ball; and as for `promise`.

        Source: [grosse2025empirical, Section VI-B] (epsilon* and delta*).
        """
        sharp = self.promise(epsilon, delta)
        if not isinstance(self.over, L1Ball):
            raise PrivacyError(
                f"the published pair is about an l1 ball, and the set is {self.over!r}"
            )
        return Promise(level_within_distance(epsilon, self.over.radius), sharp.delta)


def laplace_level(scale: float, least: float) -> float:
    """Compute the level of Laplace noise on a binary secret: `eps(b) = 2/b - log(1 - a + a e^{2/b})`, in
    nats.

    Also that of a Laplace histogram whose classes have probability a or more. No more than 2/b, the level
    of local (of a histogram: plain) differential privacy, which it is for a = 0, nor than -log a.

    Args:
        scale: b >= 0; without noise the level is -log a.
        least: a in [0, 1], the least probability.

    Raises:
        PrivacyError: the scale is negative, or a is no probability.

    Source: [grosse2025empirical, Proposition 3]; [saeidian2025histogram, Theorem 4, eq. (3)].

    Examples:
        >>> round(math.exp(laplace_level(2 / math.log(3), 0.5)), 12)
        1.5
    """
    size = check_scale(scale)
    share = check_in_interval(least, "[0, 1]", "the least probability", PrivacyError)
    # 2/b would divide by 0: without noise the outcome reveals the letter, at most -log a
    if size == 0:
        return -math.log(share) if share else math.inf
    return level_of_ratio(share, 2 / size)


def laplace_scale(epsilon: float, least: float) -> float:
    """Compute `b = 2 / log(e^eps (1 - a) / (1 - a e^eps))`, the inverse of `laplace_level`; 0 from -log a on.

    At 0 no noise is needed: nothing can leak more than -log a.

    Args:
        epsilon: the level in nats, above 0.
        least: a in [0, 1], the least probability.

    Raises:
        PrivacyError: epsilon is not positive (no finite noise leaks nothing) or too small for a float to
            be the scale, or a is no probability.

    Source: [grosse2025empirical, Proposition 3], solved for b.

    Examples:
        >>> round(2 / laplace_scale(math.log(1.5), 0.5), 12) == round(math.log(3), 12)
        True
        >>> laplace_scale(math.log(2), 0.5)
        0.0
    """
    share = check_in_interval(least, "[0, 1]", "the least probability", PrivacyError)
    return search_scale(lambda b: laplace_level(b, share), 2.0, epsilon)
