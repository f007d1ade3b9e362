"""Additive-noise mechanisms on a binary secret: shared parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import (
    FloatArray,
    check_in_interval,
    check_nonnegative,
    check_probability,
    check_real,
    copy_float_array,
)
from pmlopt.data.mechanism import find_rows
from pmlopt.data.prior import Prior, PriorLike, as_prior
from pmlopt.data.sampling.categorical import RandomBits, Seed, make_random_bits
from pmlopt.data.sampling.grid_noise import choose_grid_step
from pmlopt.errors import MechanismError, PriorError, PrivacyError
from pmlopt.model.uncertainty.l1_ball import L1Ball
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.leakage_tails import FailureFunction, LetterMasses


@dataclass(frozen=True)
class Promise:
    """A bound on the leakage that holds with probability 1 - delta: (epsilon, delta)-PML of
    [grosse2025empirical, Definition 3].

    A probability over sample and outcome, not the slack of `ApproximatePML`.

    Attributes:
        epsilon: in nats.
        delta: the probability that an outcome leaks more under the true distribution.
    """

    epsilon: float
    delta: float


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

    prior: Prior
    scale: float
    radius: float = 0.0
    over: PriorSet | None = None

    def __init__(
        self, prior: PriorLike, scale: float, radius: float = 0.0, over: PriorSet | None = None
    ) -> None:
        known, size = (
            as_prior(prior),
            check_in_interval(radius, "[0, 2]", "the radius", PrivacyError),
        )
        if known.size != 2:
            raise PriorError(f"the prior has {known.size} letters, and this mechanism is for two")
        if not isinstance(over, PriorSet | None):
            raise PrivacyError(
                f"`over` is {over!r}: give a set of priors such as confidence_ball(prior, 0.01)"
            )
        if over is not None:
            if size:
                raise PrivacyError(
                    f"the radius {size:g} and a set of priors are given: give one of them"
                )
            over.check_letters(known.labels, "the prior")
        given = L1Ball(known, size) if size else over
        vars(self).update(prior=known, scale=check_scale(scale), radius=size, over=given)

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

    @abstractmethod
    def make_failure(self, epsilon: float) -> FailureFunction:
        """Build the failure probability P(l(Y) > epsilon) as a function of the prior."""

    def failure_probability(self, epsilon: float) -> float:
        """Compute an upper bound on the worst-case P(l(Y) > epsilon) over the set, tight to 1e-11.

        The supremum is over p in an interval, by branch and bound. Next to a jump, at an epsilon that is -log
        of an end of the set but for rounding, it is over the ends rounded outward.

        Raises:
            PrivacyError: epsilon is negative.

        Source: [grosse2025empirical, eq. (17)].
        """
        return self.make_failure(check_nonnegative(epsilon, "epsilon", PrivacyError)).max_failure(
            self.masses
        )

    def promise(self, epsilon: float, delta: float | None = None) -> Promise:
        """Return the (epsilon, delta)-PML guarantee, combining failure and confidence probabilities.

        Whenever the truth is in the set, an outcome leaks more than epsilon under it with probability
        `d1 = failure_probability(epsilon)` at most, because d1 is a supremum over the set; and it is
        outside with probability delta at most. No bound on how leakage grows within the set is needed.

        Args:
            epsilon: in nats.
            delta: with which probability the truth may be outside, such as that of `weissman_radius`; left
                out, that of the set, which a confidence set carries.

        Raises:
            PrivacyError: an argument is outside its range, there is no set, delta is given and is not the
                set's own, or neither of them is known.
        """
        outside = self._outside_probability(delta)
        failure = self.failure_probability(epsilon)
        return Promise(
            check_nonnegative(epsilon, "epsilon", PrivacyError),
            failure + outside - failure * outside,
        )

    def _outside_probability(self, delta: float | None) -> float:
        """Return the probability that the true prior is outside of the set."""
        if self.over is None:
            raise PrivacyError(
                "the noise is for one prior, and no set of priors that may hold the truth: give a radius or "
                "a set (over=confidence_ball(prior, delta)), or ask for failure_probability under the prior"
            )
        own = self.over.delta
        if delta is None:
            if own is None:
                raise PrivacyError(
                    "the set of priors does not say how likely the truth is outside of it: give delta, or a "
                    "set made from a sample (over=confidence_ball(prior, delta))"
                )
            return own
        given = check_probability(delta)
        if own is not None and given != own:
            raise PrivacyError(
                f"delta is {given:g}, and the set was made for {own:g}: leave it out"
            )
        return given

    @abstractmethod
    def noise_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise."""

    @abstractmethod
    def compute_log_ratio(self, outcomes: FloatArray) -> FloatArray:
        """Compute the log-ratio of the two conditional densities; inf beyond the float range."""

    def density(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the (2, ...) conditional densities of Y given X = -1 and X = 1."""
        y = self._check_outcomes(outcomes)
        return np.stack([self.noise_density(y - x) for x in (-1.0, 1.0)])

    def log_ratio(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the log-ratio `log f(y | 1) - log f(y | -1)` of the conditional densities."""
        with np.errstate(over="ignore"):
            return self.compute_log_ratio(self._check_outcomes(outcomes))

    def _check_outcomes(self, outcomes: ArrayLike) -> FloatArray:
        """Validate finite outcomes as an array."""
        if self.scale == 0:
            raise MechanismError("without noise there is no density")
        return copy_float_array(np.atleast_1d(outcomes), 1, "the outcomes", PrivacyError)

    @property
    def grid_step(self) -> float:
        """Return the step of the noise grid, at most 2^-48 of the scale."""
        return choose_grid_step(self.scale) if self.scale else 1.0

    @abstractmethod
    def draw_noise(self, bits: RandomBits, size: int) -> FloatArray:
        """Draw (size,) independent noise values exactly, on a grid."""

    def leakage(self, outcomes: ArrayLike) -> FloatArray:
        """Compute the pointwise maximal leakage of outcomes under the given prior, in nats.

        `log max_x f(y | x) / f(y)`, computed from the ratio of the densities: far tails keep their digits.
        It is `-log(p + (1 - p) e^-r)` with p the mass of the likelier letter and `r >= 0` the log-ratio.
        """
        ratio, (first, second) = self.log_ratio(outcomes), self.prior.pmf
        same, other = np.where(ratio > 0, [[second], [first]], [[first], [second]])
        apart = np.abs(ratio)
        lost = -other * np.expm1(
            -apart
        )  # 1 - e^-leakage, which has no digits of a rare letter left
        near = -np.log1p(-np.minimum(lost, 0.5))
        far = -np.logaddexp(np.log(same), np.log(other) - apart)
        return np.asarray(np.where(lost < 0.5, near, far))

    def sample(self, values: Iterable[object], seed: Seed = None) -> FloatArray:
        """Release values of the prior's two labels as -1 or 1 plus noise.

        The noise is drawn from the discrete law on the multiples of `grid_step`, exactly: its low digits
        reveal nothing. The leakage of an outcome on the grid, and with it the level, is that of the density
        there, and failure probabilities have in them what they can be more on the grid.

        Args:
            values: labels.
            seed: for a result that can be repeated; None draws from the operating system, as a release must.

        Raises:
            MechanismError: a value is not one of the two labels.
        """
        places = find_rows(self.prior.labels, values)
        centres = 2.0 * places - 1.0
        if not self.scale:
            return np.asarray(centres)
        # floats add exactly and round once: what is rounded is on the grid, and rounding leaks nothing more
        return np.asarray(centres + self.draw_noise(make_random_bits(seed), len(places)))


def check_scale(scale: float) -> float:
    """Validate a nonnegative noise scale."""
    size = check_real(scale, "the scale", PrivacyError)
    if size < 0:
        raise PrivacyError(f"the scale is {size:g}: give a positive one, or 0 for no noise")
    return size
