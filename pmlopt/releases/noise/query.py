"""Noise on answers about many people, histograms first: what all answers together leak of one record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.numbers.arrays import (
    FloatArray,
    Label,
    check_in_interval,
    check_integer,
    check_positive,
    copy_float_array,
)
from pmlopt.data.prior import PriorLike, as_prior
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.errors import PrivacyError
from pmlopt.model.closed_forms.local_privacy import level_of_ratio
from pmlopt.model.uncertainty.prior_set import PriorSet
from pmlopt.releases.noise.kinds import Laplace, search_scale_for_level
from pmlopt.releases.noise.letters import PlacedLetters, read_numbers


@dataclass(frozen=True, eq=False)
class QueryNoise:
    """Noise on one or several answers about independent records, and what they leak of one record together.

    With `Delta_ab` the most by which an answer changes, in the l1 norm, when a record's letter changes from a
    to b, a record with the law p leaks at most `max_a -log sum_b p_b e^(-Delta_ab / b)` nats; over a set of
    laws the least mean takes the place of the sum. The other records may have any law, independent of that
    record. Of several answers the `Delta_ab / b` add up.

    Args:
        differences: for each answer, (N, N), of letters a and b.
        scales: of the noise on each answer; 0 for none on all.
        kind: `Laplace`, or `Geometric` for answers that are whole numbers.

    Raises:
        PrivacyError: there are no answers, their letters differ, a difference is negative, or the scales
            do not fit.

    Examples:
        >>> from pmlopt import Prior
        >>> from pmlopt.noise import derive_differences
        >>> ages = Prior([0.5, 0.3, 0.2], [20, 40, 60])
        >>> answers = [derive_differences(np.eye(3)), derive_differences(ages.labels)]
        >>> noise = QueryNoise.calibrate(answers, ages, 0.5)
        >>> round(noise.level(ages), 9), round(noise.composed_level(ages), 3)
        (0.5, 0.522)
        >>> counts, total = noise.release([[812, 377, 251], 46360], seed=1)
    """

    differences: Sequence[ArrayLike]
    scales: Sequence[float]
    kind: type[Laplace] = Laplace
    tables: tuple[FloatArray, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.differences
        tables = tuple(copy_float_array(d, 2, "the differences", PrivacyError) for d in given)
        sizes = tuple(self.kind(scale).scale for scale in self.scales)
        if not tables or any(table.shape != (len(tables[0]),) * 2 for table in tables):
            raise PrivacyError("give differences (N, N) for each answer, on the same N letters")
        if any((table < 0).any() for table in tables):
            raise PrivacyError("a difference is negative: give distances between answers")
        if len(sizes) != len(tables) or (0 in sizes and any(sizes)):
            raise PrivacyError(
                f"there are {len(tables)} answers and the scales {sizes}: give one for each, none 0 or all"
            )
        vars(self).update(tables=tables, scales=sizes)

    @classmethod
    def calibrate(
        cls,
        differences: Sequence[ArrayLike],
        prior: PriorLike,
        epsilon: float,
        over: PriorSet | None = None,
        kind: type[Laplace] = Laplace,
    ) -> QueryNoise:
        """Calibrate the scales to a level of one record; each is proportional to its largest difference.

        Args:
            differences: for each answer, (N, N).
            prior: of one record, N letters.
            epsilon: in nats, above 0.
            over: the laws that a record may have.
            kind: the noise.

        Raises:
            PrivacyError: epsilon is not positive, or no float is a scale.
        """
        silent = cls(differences, [0.0] * len(differences), kind)
        widest = np.array([table.max() or 1.0 for table in silent.tables])

        def scale_noise(factor: float) -> QueryNoise:
            return replace(silent, scales=(factor * widest).tolist())

        level = lambda factor: scale_noise(factor).level(prior, over)  # noqa: E731
        return scale_noise(search_scale_for_level(level, epsilon))

    def level(self, prior: PriorLike, over: PriorSet | None = None) -> float:
        """Return what all answers together leak of one record at most, in nats.

        Args:
            prior: the law of the record.
            over: every law that it may have.
        """
        return max(self.letter_levels(prior, over).values())

    def letter_levels(self, prior: PriorLike, over: PriorSet | None = None) -> dict[Label, float]:
        """Return what all answers together leak of one record at most, for each letter that it may have."""
        law = as_prior(prior)
        size = len(self.tables[0])
        if law.size != size:
            raise PrivacyError(f"the prior has {law.size} letters, and the differences {size}")
        exponents = np.zeros((size, size))
        for scale, table in zip(self.scales, self.tables, strict=True):
            noise = self.kind(scale)
            # both answers are rounded to the grid of the noise; whole numbers are on that of whole noise
            step = 0.0 if noise.is_whole else noise.grid_step
            moved = np.where(table > 0, table + step, 0.0)
            exponents += noise.bound_log_ratios(moved)
        levels = PlacedLetters(law, over, np.zeros((size, 1))).bound_levels(exponents)
        return dict(zip(law.labels, levels.tolist(), strict=True))

    def composed_level(self, prior: PriorLike, over: PriorSet | None = None) -> float:
        """Return the sum of the levels of the answers: the bound by composition, which `level` undercuts."""
        parts = zip(self.differences, self.scales, strict=True)
        levels = [QueryNoise([table], [b], self.kind).level(prior, over) for table, b in parts]
        return math.fsum(levels)

    def release(self, answers: Sequence[ArrayLike], seed: Seed = None) -> list[FloatArray]:
        """Release the answers with noise, each of its shape; draws are exact, on a grid.

        Answers are exact: counts, or sums of numbers on a grid (`round_contributions`). What is computed from
        what is released, such as a mean from a sum, leaks nothing more.

        Args:
            answers: a number or an array for each.
            seed: for a result that can be repeated; None draws from the operating system, as a release must.

        Raises:
            PrivacyError: there is not one for each, or one is no array of finite numbers.
        """
        if len(answers) != len(self.scales):
            raise PrivacyError(f"give {len(self.scales)} answers, one for each of the differences")
        numbers = [read_numbers(answer, "the answers") for answer in answers]
        bits = make_random_bits(seed)
        parts = zip(self.scales, numbers, strict=True)
        return [self.kind(scale).add_noise(one, bits) for scale, one in parts]


@dataclass(frozen=True)
class LaplaceHistogram:
    """The mechanism of k counts with Laplace noise of scale b; n and the classes are public.

    Records are independent, and each is in every class with probability `min_mass` or more. The level is
    what all k noisy counts together leak about any one record.

    The classes have to be public: a release has a row for each, so classes taken from the records reveal
    which of them occur. Name them beforehand, with those that no one is in.

    Args:
        scale: b; 0 for no noise.
        min_mass: alpha, at most one over the number of classes; 0 where nothing is known, as in
            differential privacy.
        sensitivity: by how much the counts change, all together, when one record does: 2 for a histogram, for
            the record leaves one class and enters another; 1 for the count of one class only; 2 c where each
            record counts c times. alpha is then the least probability of a record's contribution.

    Raises:
        PrivacyError: an argument is outside its range.

    Source: [saeidian2025histogram, Section III]; other sensitivities by the same proof.

    Examples:
        >>> noise = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1)
        >>> round(noise.level, 12), round(noise.scale / (2 / 0.5), 3)  # less noise than DP takes
        (0.5, 0.87)
        >>> LaplaceHistogram.calibrate(epsilon=2.4, min_mass=0.1).release([120, 80])  # no noise is needed
        array([120.,  80.])
        >>> one_count = LaplaceHistogram.calibrate(epsilon=0.5, min_mass=0.1, sensitivity=1)
        >>> round(noise.scale / one_count.scale, 12)
        2.0
    """

    scale: float
    min_mass: float = 0.0
    sensitivity: float = 2.0

    def __post_init__(self) -> None:
        share = check_in_interval(self.min_mass, "[0, 1]", "the minimum mass", PrivacyError)
        change = check_positive(self.sensitivity, "the sensitivity", PrivacyError)
        vars(self).update(scale=Laplace(self.scale).scale, min_mass=share, sensitivity=change)

    @classmethod
    def calibrate(
        cls, *, epsilon: float, min_mass: float = 0.0, sensitivity: float = 2.0
    ) -> LaplaceHistogram:
        """Compute the least noise scale that achieves a PML level of one record.

        Args:
            epsilon: in nats, above 0; from -log(min_mass) on the scale is 0: no noise is needed.
            min_mass: alpha; where the classes' probabilities are estimated by p, `min p - radius / 2` with
                the radius of a confidence ball.
            sensitivity: by how much the counts change when one record does; 1 for one count only.

        Raises:
            PrivacyError: an argument is outside its range.

        Source: [saeidian2025histogram, eq. (5)], solved for b.
        """
        level = lambda scale: cls(scale, min_mass, sensitivity).level  # noqa: E731
        return cls(search_scale_for_level(level, epsilon), min_mass, sensitivity)

    @property
    def level(self) -> float:
        """Return the PML level of one record in nats, `s/b - log(1 - alpha + alpha e^{s/b})`, s the
        sensitivity.

        Attained where a class has probability alpha.

        Source: [saeidian2025histogram, Theorem 4, eq. (3)].
        """
        return level_of_ratio(self.min_mass, self.dp_level)

    @property
    def loose_level(self) -> float:
        """Return a looser bound on the level, `s (1 - alpha) / b + s^2 alpha^2 / (2 b^2)`; inf past the
        floats.

        Source: [saeidian2025histogram, eq. (4)].
        """
        if not self.scale:
            return math.inf
        ratio = self.sensitivity / self.scale
        share = self.min_mass * ratio
        return (1 - self.min_mass) * ratio + share * share / 2

    @property
    def dp_level(self) -> float:
        """Return the level s/b of differential privacy, by the sensitivity."""
        return self.sensitivity / self.scale if self.scale else math.inf

    def composed_level(self, classes: int, *, released: int | None = None) -> float:
        """Bound the level by composing the counts as separate counting queries.

        `m ((1 - alpha)/b + alpha^2 / (2 b^2))` for m released counts, each of which one record changes by 1.
        It is a bound on what they leak together, and looser than `level`: a counting query leaks at most
        `L(1/b)` with `L(r) = r - log(1 - alpha + alpha e^r)`, and all counts leak L(2/b), or one only
        L(1/b); L is concave with L(0) = 0, so `L(2/b) <= 2 L(1/b)`.

        Args:
            classes: k.
            released: m, all k counts where it is left out, as `release` does; k - 1 as published, where the
                last count is not released, since it follows from n and the others.

        Raises:
            PrivacyError: a number is not whole, more counts are released than there are classes, or the
                sensitivity is not that of a histogram.

        Source: [saeidian2025histogram, Section IV].
        """
        k = check_integer(classes, "the number of classes", PrivacyError)
        m = k if released is None else released
        if m not in range(k + 1):
            raise PrivacyError(
                f"{released!r} counts are released of {k} classes: give a whole number up to {k}"
            )
        if self.sensitivity != 2:
            raise PrivacyError(
                f"the sensitivity is {self.sensitivity:g}: composition is about a histogram's, which is 2"
            )
        return m * replace(self, sensitivity=1.0).loose_level if m else 0.0

    def release(
        self,
        counts: ArrayLike,
        seed: Seed = None,
        *,
        clip: bool = True,
        round_to_whole: bool = True,
    ) -> FloatArray:
        """Release noisy counts, with clipping and rounding as post-processing.

        The noise y has the probability `(1 - q) / (1 + q) q^(|y| / g)`, `q = e^(-g / b)`, on the multiples of
        a fine step g, drawn exactly. Counts are on the grid, so that ratios of probabilities at its outcomes
        are those of the densities, and the level is `level`: the digits of floating point reveal nothing.

        Args:
            counts: (k,) or (..., k) whole numbers, of at least 0.
            seed: for a result that can be repeated; None draws from the operating system, as a release must.
            clip: negative counts to 0.
            round_to_whole: to the nearest whole numbers.

        Raises:
            PrivacyError: the counts are not whole numbers of at least 0, there are more classes than
                `min_mass` allows, or several counts with the sensitivity of one.
        """
        table = read_numbers(counts, "the counts")
        if (table < 0).any() or (table != np.rint(table)).any():
            raise PrivacyError("the counts must be whole numbers of at least 0")
        classes = np.atleast_1d(table).shape[-1]
        if classes * self.min_mass > 1 + 1e-12:
            raise PrivacyError(
                f"{classes} classes cannot each have probability {self.min_mass:g}: at most {1 / classes:g}"
            )
        if classes > 1 and self.sensitivity < 2:
            raise PrivacyError(
                f"the sensitivity is {self.sensitivity:g}, and one record changes {classes} counts by 2 "
                "in all: release one count, or give the sensitivity 2"
            )
        noisy = Laplace(self.scale).add_noise(table, seed)
        noisy = np.rint(noisy) if round_to_whole else noisy
        return np.asarray(np.maximum(noisy, 0.0) if clip else noisy) + 0.0


def laplace_level(scale: float, least: float) -> float:
    """Compute the level of Laplace noise on a binary secret: `eps(b) = 2/b - log(1 - a + a e^{2/b})`, in
    nats.

    The secret is -1 or 1. Also that of a Laplace histogram whose classes have probability a or more. No more
    than 2/b, the level of local (of a histogram: plain) differential privacy, which it is for a = 0, nor than
    -log a.

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
    return LaplaceHistogram(scale, least).level


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
    return LaplaceHistogram.calibrate(epsilon=epsilon, min_mass=least).scale
