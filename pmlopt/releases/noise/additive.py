"""Noise that is added to numbers or vectors: levels, scales, failure probabilities, exact draws."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import FloatArray, Label, check_probability, copy_float_array
from pmlopt.data.continuous import Continuous
from pmlopt.data.mechanism import Mechanism
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.data.sampling.categorical import Seed
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.laws import UNIT, NoiseLaw, check_epsilon
from pmlopt.releases.noise.leakage_tails import LeakingMass
from pmlopt.releases.noise.letters import PlacedLetters, check_integers, read_points, round_to_grid

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


class AdditiveNoise(NoiseLaw):
    """Y = x + Z for a letter x that is a number, or a vector of numbers with independent noise on each.

    Letters are the labels of a prior. Levels and probabilities are for that prior, or for every prior of a
    set `over=`: any set has a least mean, and they need no more of it.

    Args:
        scale: of the noise; 0 for none.

    Raises:
        PrivacyError: the scale is negative or no number.
    """

    no_matrix: ClassVar[str] = (
        "its outcomes are a continuum: take bin_outcomes(prior, edges), which is a mechanism, or "
        "noise.Geometric(scale).to_mechanism(prior) for whole numbers"
    )
    """Why it cannot be where a mechanism with a matrix is required, and what can."""

    # ------------------------------------------------------------ levels

    def place_letters(self, prior: Letters, over: PriorSet | None = None) -> PlacedLetters:
        """Return letters at the numbers that their labels are, with their prior or the set."""
        if isinstance(prior, PlacedLetters):
            return prior
        known = as_prior(prior)
        return PlacedLetters(known, over, read_points(known.labels, self.is_whole))

    def compute_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter, as sharply as is known."""
        return self.bound_levels(letters)

    def bound_levels(self, letters: PlacedLetters) -> FloatArray:
        """Bound (N,) from above what an outcome leaks of each letter, by a formula."""
        # the outcome at a letter attains it, or one that is far away
        return letters.bound_levels(self.bound_log_ratios(letters.bound_distances(self.grid_step)))

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
        """Bound the level for a continuous law by that of its bins, and their widths over the scale.

        A bin's centre is at most half the width from each number in it, so that distances move by the width.
        """
        self._check_continuous(over, self.power == 1)
        if not self.scale:
            return math.inf
        from scipy.signal import lfilter

        # bins of the support
        bins = 2**16 if law.axes == 1 else int(2 ** (20 / law.axes))
        grid = law.even(bins)
        masses = law.masses(grid).reshape((bins,) * law.axes)
        means = masses / masses.sum()
        moved = 0.0
        widths = [high - low for low, high in law.intervals]
        for axis, width in enumerate(widths):
            # sums of what is below and above, each bin by e^(-width / scale) less than the next one
            recursion = [1.0], [1.0, -math.exp(-width / bins / self.scale)]
            up = lfilter(*recursion, means, axis)
            down = lfilter(*recursion, np.flip(means, axis), axis)
            means = up + np.flip(down, axis) - means
            moved += 2 * self.bound_log_change(grid.edges[axis])
        # what no value occurs in cannot be leaked
        least = float(means[masses > 0].min())
        # a thousand roundings and more: the sums have as many terms as decay lets through
        rounding = law.axes * bins * UNIT
        return min(moved - math.log(least) + rounding, sum(widths) / self.scale)

    def _check_continuous(self, over: PriorSet | None, can_bound: bool) -> None:
        """Raise a PrivacyError where a continuous law has no bound."""
        if over is not None or self.is_whole or not can_bound:
            raise PrivacyError(
                f"{type(self).__name__} noise has no such bound for this continuous law: Laplace noise has a "
                "level, it and Gaussian noise failure probabilities for one number, all without a set of "
                "priors; divide it into letters, law.prior(law.even(64)), and release the letter of a value"
            )

    def leakage(self, prior: Letters, outcomes: ArrayLike) -> FloatArray:
        """Compute the (K,) pointwise maximal leakage of outcomes, (K,) or (K, d), under a prior, in nats.

        Raises:
            MechanismError: there is no noise, and an outcome that is no letter has no leakage.
        """
        if not self.scale:
            raise MechanismError("without noise there is no density: give a positive scale")
        letters = self.place_letters(prior)
        axes = letters.points.shape[1]
        y = copy_float_array(np.atleast_1d(outcomes), 1 + (axes > 1), "the outcomes", PrivacyError)
        if y.size != len(y) * axes:
            raise PrivacyError(f"the outcomes are not vectors of {axes} numbers")
        parts = zip(y.reshape(-1, axes).T, letters.points.T, strict=True)
        logs = np.asarray(sum(self.compute_log_likelihoods(*part) for part in parts))
        return letters.bound_levels(logs.max(axis=0) - logs)

    # ------------------------------------------------------------ failures

    def failure_probability(
        self, prior: Letters | Continuous, epsilon: float, over: PriorSet | None = None
    ) -> float:
        """Bound the probability of an outcome that leaks more than epsilon, from above.

        Under one prior, and for two numbers over a set, it is that probability, or its supremum, up to 1e-11.
        For more letters over a set the outcomes are those that leak more under any prior of the set, and
        their probability is the largest over it: an upper bound. Of vectors in a plane the integral across
        lines is checked to 1e-11. Of a continuous number it is a bound by 16,384 bins: e^s times the failure
        probability of the bins at `epsilon - 2 s`, plus 1e-18, and 1 where `epsilon <= 2 s`. Here s is the
        most by which the logarithm of a density changes within half a bin. Of Gaussian noise that is over
        outcomes up to 9 sigma beyond the numbers; those farther out have a probability below 1e-18.

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
        if over is None:
            raise PrivacyError(
                "there is no set of priors that may hold the truth: give one, such as "
                "over=confidence_ball(prior, delta), or ask for failure_probability under the prior"
            )
        outside = over.delta if delta is None else check_probability(delta)
        if outside is None:
            raise PrivacyError(
                "the set of priors does not say how likely the truth is outside of it: give delta, or a "
                "set made from a sample (over=confidence_ball(prior, delta))"
            )
        if over.delta not in (None, outside):
            raise PrivacyError(
                f"delta is {outside:g}, and the set was made for {over.delta:g}: leave it out"
            )
        failure = self.failure_probability(prior, epsilon, over)
        return Promise(float(epsilon), failure + outside - failure * outside)

    def bound_failure(
        self, letters: PlacedLetters, epsilon: float, enough: float = math.nan
    ) -> float:
        """Bound the failure probability of letters at points; it may end where it is clear of `enough`."""
        level = check_epsilon(epsilon)
        if level == 0:
            return 1.0
        # sharper levels take as long as many failure probabilities
        levels = self.bound_levels(letters)
        if level >= levels.max():
            return 0.0
        if not self.scale and len(levels) > 2:
            return letters.max_mean((levels > level).astype(float))
        return LeakingMass(self, letters, level, enough).bound_mass()

    def _bound_continuous_failure(
        self, law: Continuous, epsilon: float, over: PriorSet | None
    ) -> float:
        """Bound the failure probability of a continuous law by that of its bins, each a letter at its centre.

        Let s bound what the logarithm of the density at an outcome changes by when a value moves to the
        centre of its bin. Then the law leaks at most 2 s more than the letters do, and the density of an
        outcome is at most e^s times theirs.
        """
        self._check_continuous(over, law.axes == 1)
        if not self.scale:
            return 1.0
        grid = law.even(2**14)
        letters = self.place_letters(law.prior(grid))
        change = self.bound_log_change(grid.edges[0])
        level = check_epsilon(epsilon) - 2 * change
        if level <= 0:
            return 1.0
        return min(1.0, math.exp(change) * LeakingMass(self, letters, level).bound_mass() + 1e-18)

    # ------------------------------------------------------------ releases

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
        given = [tuple(v) if isinstance(v, list | np.ndarray) else v for v in values]
        if not given:
            return np.zeros(0)
        try:
            points = read_points(given, self.is_whole)
        except PrivacyError as cause:
            raise MechanismError(str(cause).replace("letter", "value")) from None
        return self.add_noise(points[:, 0] if points.shape[1] == 1 else points, seed)

    def add_noise(self, exact: FloatArray, seed: Seed) -> FloatArray:
        """Return an array of finite numbers, rounded to the grid, with noise on each."""
        check_integers(exact, self.is_whole)
        if not self.scale:
            return exact.copy()
        noise = self.draw_noise(exact.size, seed)
        # floats add exactly and round once: what is rounded is on the grid, and rounding leaks nothing more
        return round_to_grid(exact, self.grid_step) + noise.reshape(exact.shape)

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
        masses = self.compute_cell_masses(full[:-1], full[1:], letters.points[:, 0])
        rows = masses / masses.sum(axis=1, keepdims=True)
        return Mechanism(rows, letters.prior.labels, list(pairwise(full.tolist())))
