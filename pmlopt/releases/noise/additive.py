"""Noise that is added to numbers or vectors: levels, scales, failure probabilities, exact draws."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.arrays import (
    FloatArray,
    Label,
    check_nonnegative,
    check_real,
    copy_float_array,
)
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.data.sampling.grid_noise import choose_grid_step
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.leakage_tails import (
    LetterMasses,
    PairFailure,
    bound_leaking_mass,
    choose_coarseness,
    raise_for_grid,
)
from pmlopt.releases.noise.letters import (
    PlacedLetters,
    combine_with_confidence,
    read_points,
    round_to_grid,
)

Letters: TypeAlias = PriorLike | PlacedLetters
"""A prior whose labels are the numbers, or letters with places of their own."""


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


def check_scale(scale: float) -> float:
    """Check that the scale of a noise is not negative."""
    size = check_real(scale, "the scale", PrivacyError)
    if size < 0:
        raise PrivacyError(f"the scale is {size:g}: give a positive one, or 0 for no noise")
    return size


def check_epsilon(epsilon: float) -> float:
    """Check that a level is not negative."""
    return check_nonnegative(epsilon, "epsilon", PrivacyError)


@dataclass(frozen=True)
class AdditiveNoise(ABC):
    """Y = x + Z for a letter x that is a number, or a vector of numbers with independent noise on each.

    Letters are the labels of a prior. Levels and probabilities are for that prior, or for every prior of a
    set `over=`: any set has a least mean, and they need no more of it.

    Args:
        scale: of the noise; 0 for none.

    Raises:
        PrivacyError: the scale is negative or no number.
    """

    scale: float

    no_matrix: ClassVar[str] = (
        "its outcomes are a continuum: take bin_outcomes(prior, edges), which is a mechanism, or "
        "noise.Geometric(scale).to_mechanism(prior) for whole numbers"
    )
    """Why it cannot be where a mechanism with a matrix is required, and what can."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale(self.scale))

    # ------------------------------------------------------------ what each law gives

    @abstractmethod
    def compute_log_likelihoods(self, outcomes: FloatArray, line: FloatArray) -> FloatArray:
        """Compute (N, K) logarithms of the densities at outcomes, up to a number for each outcome."""

    @abstractmethod
    def compute_density(self, noise: FloatArray) -> FloatArray:
        """Compute the density of the noise, whose scale is positive."""

    @abstractmethod
    def compute_tail(self, noise: FloatArray) -> FloatArray:
        """Compute the probability that the noise is above a number; digits of small ones are kept."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Return the variance of the noise on one number."""

    @abstractmethod
    def draw_noise(self, size: int, seed: Seed) -> FloatArray:
        """Draw (size,) independent values of the noise: exact, on the grid of `grid_step`."""

    @abstractmethod
    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter."""

    @property
    @abstractmethod
    def log_ratio_range(self) -> tuple[float, float]:
        """Return, of letters at -1 and 1, how far an outcome is from 0 per nat of its log-ratio up to the
        largest, and the largest log-ratio.
        """

    @abstractmethod
    def bound_log_change(self, moved: float, width: float) -> float:
        """Bound the change of the logarithm of a density when a letter moves, for outcomes that are drawn.

        It may be larger at outcomes of probability 1e-18.

        Args:
            moved: by how much the letter moves at most.
            width: of the interval on which the letters are.
        """

    @abstractmethod
    def make_edges(self, line: FloatArray) -> FloatArray:
        """Return the ends of the cells of outcomes in which those that leak more are looked for.

        Past the first and the last no float is the probability.
        """

    @abstractmethod
    def reduce_points(self, points: FloatArray) -> FloatArray:
        """Return (N, d) places of letters in as few dimensions as the law allows."""

    # ------------------------------------------------------------ levels

    def place_letters(self, prior: Letters, over: PriorSet | None = None) -> PlacedLetters:
        """Return letters at the numbers that their labels are, with their prior or the set."""
        if isinstance(prior, PlacedLetters):
            return prior
        return PlacedLetters.from_labels(prior, over)

    def level(self, prior: Letters | Continuous, over: PriorSet | None = None) -> float:
        """Return the PML level in nats: no outcome leaks more, under the prior or any prior of the set.

        Args:
            prior: letters that are numbers or tuples of numbers; or a continuous law, without a set.
            over: a set of priors on the same letters.

        Raises:
            PrivacyError: letters are no numbers, or the set is on others.
        """
        if isinstance(prior, Continuous):
            return self._bound_continuous_level(prior, over)
        return float(self.compute_levels(self.place_letters(prior, over)).max())

    def letter_levels(self, prior: Letters, over: PriorSet | None = None) -> dict[Label, float]:
        """Return what an outcome leaks at most of each letter, in nats; the largest is `level`."""
        letters = self.place_letters(prior, over)
        return dict(zip(letters.prior.labels, self.compute_levels(letters).tolist(), strict=True))

    def _bound_continuous_level(self, law: Continuous, over: PriorSet | None) -> float:
        """Bound the level for a continuous law; refuse where the law of the noise has no bound."""
        raise PrivacyError(
            f"{type(self).__name__} noise has no bound for a continuous law: divide it into letters, "
            "law.prior(law.even(64)), and release the letter of a value"
        )

    def leakage(self, prior: Letters, outcomes: ArrayLike) -> FloatArray:
        """Compute the (K,) pointwise maximal leakage of outcomes, (K,) or (K, d), under a prior, in nats.

        Raises:
            MechanismError: there is no noise, and an outcome that is no letter has no leakage.
        """
        letters = self.place_letters(prior)
        return compute_leakage(letters.prior.pmf, self.compare_letters(letters, outcomes))

    def compare_letters(self, letters: PlacedLetters, outcomes: ArrayLike) -> FloatArray:
        """Compute (N, K) logarithms of the likelihoods of outcomes, up to a number for each outcome."""
        if not self.scale:
            raise MechanismError("without noise there is no density: give a positive scale")
        axes = letters.points.shape[1]
        y = copy_float_array(np.atleast_1d(outcomes), 1 + (axes > 1), "the outcomes", PrivacyError)
        if y.size != len(y) * axes:
            raise PrivacyError(f"the outcomes are not vectors of {axes} numbers")
        parts = zip(y.reshape(-1, axes).T, letters.points.T, strict=True)
        return np.asarray(sum(self.compute_log_likelihoods(*part) for part in parts))

    # ------------------------------------------------------------ failures

    def failure_probability(
        self, prior: Letters | Continuous, epsilon: float, over: PriorSet | None = None
    ) -> float:
        """Bound the probability of an outcome that leaks more than epsilon, from above.

        Under one prior, and for two numbers over a set, it is that probability, or its supremum, up to 1e-11.
        For more letters over a set the outcomes are those that leak more under any prior of the set, and
        their probability is the largest over it: an upper bound. Of vectors in a plane the integral across
        lines is checked to 1e-11, and of a continuous number it is a bound, by 16,384 bins.

        Raises:
            PrivacyError: epsilon is negative, letters are no numbers, or they take three dimensions.
        """
        if isinstance(prior, Continuous):
            return self._bound_continuous_failure(prior, epsilon, over)
        return self.bound_failure(self.place_letters(prior, over), epsilon)

    def leakage_tail(
        self, prior: Letters | Continuous, epsilons: ArrayLike, over: PriorSet | None = None
    ) -> FloatArray:
        """Return the (K,) failure probabilities at K levels: the upper tail of the leakage."""
        levels = copy_float_array(epsilons, 1, "the levels", PrivacyError)
        return np.array([self.failure_probability(prior, one, over) for one in levels.tolist()])

    def promise(
        self, prior: Letters, epsilon: float, over: PriorSet | None, delta: float | None = None
    ) -> Promise:
        """Return what holds for the true prior, which is in the set but for a probability delta.

        It is (epsilon, d1 + delta - d1 delta) with `d1 = failure_probability(prior, epsilon, over)`.

        Args:
            prior: the letters.
            epsilon: in nats.
            over: a set of priors, such as `confidence_ball(prior, 1e-6)`.
            delta: left out, that of the set, which a confidence set carries.

        Raises:
            PrivacyError: there is no set, or delta is given and is not the set's own, or neither is known.
        """
        failure = self.failure_probability(prior, epsilon, over)
        return Promise(check_epsilon(epsilon), combine_with_confidence(failure, over, delta))

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float | None = None
    ) -> float:
        """Bound the failure probability of letters at points; it may end where it is clear of `enough`."""
        level = check_epsilon(epsilon)
        if level == 0:
            return 1.0
        levels = self.compute_levels(letters)
        if level >= levels.max():
            return 0.0
        places = self.reduce_points(round_to_grid(letters.points, self.grid_step))
        if places.shape[1] > 2:
            raise PrivacyError(
                f"the letters take {places.shape[1]} dimensions, and failure probabilities are integrated "
                "over a line or a plane: take `level` of Laplace noise, or fewer numbers of each letter"
            )
        if not places.size:  # all are rounded to the same point
            return 0.0
        if places.shape == (2, 1):
            masses = LetterMasses.from_prior_set(letters.prior, letters.over)
            # of noise so small no float reveals more than of none
            scale = max(2 * (self.scale / float(np.ptp(places))), 1e-3)
            found = PairFailure(replace(self, scale=scale), level).find_supremum(masses, enough)
        elif self.scale:
            found = bound_leaking_mass(self, letters, places, math.exp(-level), enough)
        else:
            found = letters.max_mean((levels > level).astype(float))
        if not self.scale:
            return found
        largest = float(np.abs(letters.points).max())
        return raise_for_grid(found, choose_coarseness(self.scale, largest))

    def _bound_continuous_failure(
        self, law: Continuous, epsilon: float, over: PriorSet | None
    ) -> float:
        """Bound the failure probability of a continuous law by that of its bins, each a letter at its centre.

        Let s bound what the logarithm of the density at an outcome changes by when a value moves to the
        centre of its bin. Then the law leaks at most 2 s more than the letters do, and the density of an
        outcome is at most e^s times theirs.
        """
        if over is not None or law.axes > 1:
            raise PrivacyError(
                "failure probabilities of a continuous law are for one number, without a set of priors: "
                "divide it into letters, law.prior(law.even(64))"
            )
        grid = law.even(2**14)
        letters = PlacedLetters.from_labels(law.prior(grid), None)
        (edges,) = grid.edges
        half = float(np.diff(edges).max()) / 2 + self.grid_step
        change = (
            self.bound_log_change(half, float(edges[-1] - edges[0])) if self.scale else math.inf
        )
        level = check_epsilon(epsilon) - 2 * change
        if level <= 0:
            return 1.0
        found = math.exp(change) * bound_leaking_mass(
            self, letters, letters.points, math.exp(-level)
        )
        largest = float(np.abs(edges).max())
        return raise_for_grid(min(1.0, found + 1e-18), choose_coarseness(self.scale, largest))

    def compute_cell_masses(
        self, left: FloatArray, right: FloatArray, line: FloatArray
    ) -> FloatArray:
        """Compute the (N, K) probabilities of cells (left, right] of outcomes, given each letter."""
        low, high = left - line[:, None], right - line[:, None]
        # by the tail on the side of the cell: close to 1 a tail has no digits
        up = self.compute_tail(low) - self.compute_tail(high)
        # whole noise has atoms, and -y or more is more than the float before -y
        before = [np.nextafter(-end, -np.inf) for end in (high, low)]
        down = self.compute_tail(before[0]) - self.compute_tail(before[1])
        return np.asarray(np.where(low > 0, up, down))

    # ------------------------------------------------------------ releases

    @property
    def grid_step(self) -> float:
        """Return the step of the grid of the noise: at most the scale over 2^48; whole numbers are on it."""
        return choose_grid_step(self.scale) if self.scale else 1.0

    def read_values(self, values: Iterable[Any]) -> FloatArray:
        """Return n values as (n, d) points; raise a MechanismError where one is no finite number."""
        given = [tuple(v) if isinstance(v, list | np.ndarray) else v for v in values]
        if not given:
            return np.zeros((0, 1))
        try:
            return read_points(given)
        except PrivacyError as cause:
            raise MechanismError(str(cause).replace("letter", "value")) from None

    def sample(self, values: Iterable[Any], seed: Seed = None) -> FloatArray:
        """Release each value, a number or a vector of numbers, with noise: (n,), or (n, d).

        A value is rounded to the grid of the noise, and the noise is drawn exactly from its discrete law
        there: the low digits of an outcome reveal nothing. Levels are those of what is drawn.

        Args:
            values: n numbers, or n vectors of equally many.
            seed: for a result that can be repeated; None draws from the operating system, as a release must.

        Raises:
            MechanismError: a value is no finite number.
        """
        points = self.read_values(values)
        return self.add_noise(points[:, 0] if points.shape[1] == 1 else points, seed)

    def add_noise(self, exact: FloatArray, seed: Seed) -> FloatArray:
        """Return an array of finite numbers, rounded to the grid, with noise on each."""
        if not self.scale:
            return exact.copy()
        noise = self.draw_noise(exact.size, make_random_bits(seed))
        # floats add exactly and round once: what is rounded is on the grid, and rounding leaks nothing more
        return np.asarray(round_to_grid(exact, self.grid_step) + noise.reshape(exact.shape))

    def bin_outcomes(self, prior: Letters, edges: ArrayLike) -> Mechanism:
        """Return the mechanism that releases the interval of an outcome; it leaks no more than the outcome.

        Args:
            prior: letters that are numbers.
            edges: K ascending numbers, which divide the line into K + 1 intervals, (low, high] by their ends.

        Raises:
            PrivacyError: letters are no numbers, edges do not ascend, or there is no noise.
        """
        letters = self.place_letters(prior)
        ends = copy_float_array(edges, 1, "the edges", PrivacyError)
        if letters.points.shape[1] != 1 or not (np.diff(ends) > 0).all() or not self.scale:
            raise PrivacyError(
                "give letters that are numbers, ascending edges, and noise of a positive scale"
            )
        full = np.concatenate([[-np.inf], ends, [np.inf]])
        masses = np.maximum(
            self.compute_cell_masses(full[:-1], full[1:], letters.points[:, 0]), 0.0
        )
        intervals = list(pairwise(full.tolist()))
        return Mechanism(
            masses / masses.sum(axis=1, keepdims=True), letters.prior.labels, intervals
        )


def compute_leakage(pmf: FloatArray, log_likelihoods: FloatArray) -> FloatArray:
    """Compute the (K,) leakages `log max_x f(y | x) / f(y)` from (N, K) logarithms of densities.

    `1 - e^-leakage` is a sum of `p (1 - r)` over the letters: far outcomes and small leakages keep digits.
    """
    logs = log_likelihoods - log_likelihoods.max(axis=0)
    with np.errstate(under="ignore"):
        lost = pmf @ -np.expm1(logs)
        near = -np.log1p(-np.minimum(lost, 0.5))
        terms = np.log(pmf)[:, None] + logs
        top = terms.max(axis=0)
        far = -(top + np.log(np.exp(terms - top).sum(axis=0)))
    return np.asarray(np.where(lost < 0.5, near, far))
