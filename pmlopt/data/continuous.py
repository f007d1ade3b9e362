"""Continuous secrets: numbers, points on a circle or pairs of numbers, with their laws."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.core.grids import Grid
from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    Label,
    check_integer,
    check_real,
    check_unmasked,
    copy_float_array,
)
from pmlopt.data.prior import Prior
from pmlopt.errors import PriorError, SampleSupportWarning

UNRELIABLE_MASS_RTOL = 1e-9
"""The share of a bin's probability that rounding of the cdf may be: its level is off by as many nats."""


@runtime_checkable
class ContinuousLaw(Protocol):
    """The protocol of a continuous law, such as a frozen `scipy.stats` distribution.

    A law with a survival function `sf`, the probability of more than x, keeps the digits of its upper tail.
    """

    def cdf(self, x: Any) -> Any:
        """Return the cumulative distribution function at an array of points."""

    def support(self) -> Any:
        """Return the ends of the support."""


@dataclass(frozen=True, eq=False, init=False)
class Continuous:
    """A continuous secret: independent numbers on intervals or circles.

    Only probabilities of boxes is required of the law: nothing is assumed of a density. A box holds its upper
    edges, and not its lower ones but at the lower end of the support.

    Args:
        law: a frozen continuous distribution of `scipy.stats`, or a list of independent ones, an axis each.
        support: the interval (low, high) of the secret, or one for each axis; the law is conditioned on it.
            Left out, the support of the law, where that is finite.
        period: for a circle, True: the ends of the support are the same point. One for each axis, or one.

    Raises:
        PriorError: there is no `cdf`, it does not go from 0 to 1, the support is empty or infinite, or has no
            probability.

    Examples:
        >>> import scipy.stats
        >>> age = Continuous(scipy.stats.norm(40, 15), support=(0, 100))
        >>> age.prior(age.even(4)).probabilities.round(4).tolist()
        [0.1554, 0.5911, 0.2436, 0.0098]
    """

    intervals: tuple[tuple[float, float], ...]
    circles: tuple[bool, ...]

    def __init__(
        self, law: Any, support: Any = None, period: bool | Sequence[bool] = False
    ) -> None:
        laws = tuple(law) if isinstance(law, list | tuple) else (law,)
        for one in laws:
            if not isinstance(one, ContinuousLaw):
                raise PriorError(
                    f"the law {one!r:.60} has no cdf and support: give one of scipy.stats"
                )
            if hasattr(one, "pmf") or hasattr(getattr(one, "dist", None), "pmf"):
                raise PriorError("the law is discrete: give its numbers as the letters of a Prior")
            _check_cdf_range(one)
        given = [one.support() for one in laws]
        if support is not None:
            given = _check_intervals(support, len(laws))
        self._initialize(given, period)
        vars(self).update(_laws=laws, _samples=None)

    @classmethod
    def from_samples(
        cls, values: ArrayLike, support: Any = None, period: bool | Sequence[bool] = False
    ) -> Continuous:
        """Build the empirical law of a sample, (n,) or (n, axes).

        The claim is then about a draw from this sample; probabilities are whole counts. How far the true law
        may be away is a matter of `confidence_ball(secret.prior(grid), delta)`.

        Args:
            values: the sample.
            support: as for a law, fixed before the sample is seen; left out, from the least to the greatest
                value, with a `SampleSupportWarning`: the letters of a design give both away exactly.
            period: as for a law.

        Examples:
            >>> secret = Continuous.from_samples([1.0, 2.0, 2.5, 4.0], support=(1, 4))
            >>> secret.prior(secret.even(3)).counts
            (2, 1, 1)
        """
        axes = 2 if np.ndim(values) == 2 else 1
        check_unmasked(values, "the sample", PriorError)
        points = copy_float_array(np.asarray(values), axes, "the sample", PriorError)
        points = points.reshape(len(points), -1)
        self = cls.__new__(cls)
        given = (
            _read_support(points) if support is None else _check_intervals(support, points.shape[1])
        )
        self._initialize(given, period)
        low, high = np.array(self.intervals).T
        outside = ~((points >= low) & (points <= high)).all(axis=1)
        if outside.any():
            first = int(np.argmax(outside))
            raise PriorError(
                f"{points[first].tolist()} at position {first} is outside of the support"
            )
        vars(self).update(_laws=None, _samples=points)
        return self

    def _initialize(self, intervals: Sequence[Any], period: bool | Sequence[bool]) -> None:
        """Validate and set the intervals and circular axes."""
        ends = []
        for low, high in intervals:
            if not (np.isfinite(low) and np.isfinite(high) and low < high):
                raise PriorError(
                    f"the support from {low} to {high} is no finite interval: give support=(low, high), and "
                    "state how a secret outside of it is treated"
                )
            ends.append((float(low), float(high)))
        circles = (period,) * len(ends) if isinstance(period, bool) else tuple(period)
        if len(circles) != len(ends) or not all(isinstance(one, bool) for one in circles):
            raise PriorError(f"`period` is {period!r}: give True or False, or {len(ends)} of them")
        vars(self).update(intervals=tuple(ends), circles=circles)

    @property
    def axes(self) -> int:
        """Return the number of coordinates."""
        return len(self.intervals)

    def even(self, bins: int) -> Grid:
        """Build a grid with a number of equal intervals per axis.

        Raises:
            PriorError: it is no positive whole number.
        """
        bins = check_integer(bins, "the number of bins", PriorError)
        edges = tuple(np.linspace(low, high, bins + 1) for low, high in self.intervals)
        periods = tuple(
            high - low if circle else None
            for (low, high), circle in zip(self.intervals, self.circles, strict=True)
        )
        return Grid(edges, periods)

    def masses(self, grid: Grid) -> FloatArray:
        """Compute the (size,) probabilities of grid boxes, or sample counts.

        Raises:
            PriorError: the law gives numbers that are no probabilities, or nothing to the support.
        """
        samples: FloatArray | None = self._samples  # type: ignore[attr-defined]
        if samples is not None:
            return np.bincount(grid.locate(samples), minlength=grid.size).astype(float)
        return self._combine_axes(grid, _compute_masses)

    def _combine_axes(
        self, grid: Grid, of: Callable[[ContinuousLaw, FloatArray], FloatArray]
    ) -> FloatArray:
        """Return the (size,) products of per-axis quantities over the grid."""
        total: FloatArray = np.ones(1)
        for law, edges in zip(self._laws, grid.edges, strict=True):  # type: ignore[attr-defined]
            total = np.outer(total, of(law, edges)).ravel()
        return total

    def prior(self, grid: Grid) -> Prior:
        """Discretize the law on a grid: the prior on boxes of positive probability.

        Raises:
            PriorError: an interval has a probability of which the `cdf` shows no digits, since it is lost
                next to the others within the rounding of floats.

        Examples:
            >>> Continuous.from_samples([1.0, 2.0, 2.5, 4.0], (1, 4)).even(2).centres.ravel().tolist()
            [1.75, 3.25]
        """
        samples = self._samples is not None  # type: ignore[attr-defined]
        masses = (
            self.masses(grid) if samples else self._combine_axes(grid, _compute_accurate_masses)
        )
        kept = masses > 0
        labels = make_box_labels(grid, kept)
        if samples:
            return Prior.from_counts([int(count) for count in masses[kept]], labels)
        return Prior(masses[kept] / masses[kept].sum(), labels)


def _check_cdf_range(law: ContinuousLaw) -> None:
    """Raise an error where a cdf does not range from 0 to 1 on its support."""
    low, high = law.support()
    ends = np.asarray(law.cdf(np.array([np.nextafter(low, -np.inf), high])), dtype=float)
    if not np.abs(ends - [0, 1]).max() <= UNRELIABLE_MASS_RTOL:
        raise PriorError(
            f"the cdf of {law!r:.60} goes from {ends[0]:.6g} below {low:.6g} to {ends[1]:.6g} at {high:.6g}, "
            "the ends of its `support()`: give a law whose cdf goes from 0 to 1"
        )


def _compute_masses(law: ContinuousLaw, edges: FloatArray) -> FloatArray:
    """Compute interval probabilities accurately, from upper tails above the median."""
    return _compute_masses_and_errors(law, edges)[0]


def _compute_accurate_masses(law: ContinuousLaw, edges: FloatArray) -> FloatArray:
    """Compute interval probabilities with small relative error, or exactly 0.

    Raises:
        PriorError: one is not.
    """
    masses, rounding = _compute_masses_and_errors(law, edges)
    vague = (masses > 0) & (rounding > UNRELIABLE_MASS_RTOL * masses)
    if vague.any():
        first = int(np.argmax(vague))
        raise PriorError(
            f"the probability of {masses[first]:.3g} from {edges[first]:.6g} to {edges[first + 1]:.6g} is "
            f"known up to {rounding[first]:.1g} only, by rounding in the law {law!r:.60}: take a narrower "
            "support, or a law whose `cdf` and `sf` keep the digits of their tails"
        )
    return masses


def _compute_masses_and_errors(
    law: ContinuousLaw, edges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute interval probabilities with rounding error bounds.

    Raises:
        PriorError: the law has an atom at the first edge, or its cdf does not rise.
    """
    below = np.asarray(law.cdf(edges), dtype=float)
    if below[0] > np.asarray(law.cdf(np.nextafter(edges[0], -np.inf)), dtype=float) + 1e-12:
        raise PriorError(
            f"the law {law!r:.60} has an atom at {edges[0]}: take letters in place of numbers"
        )
    masses = np.diff(below)
    rounding = _bound_tail_rounding(below)[1:]
    if hasattr(law, "sf"):
        beyond = np.asarray(law.sf(edges), dtype=float)
        upper = below[:-1] > 0.5
        masses[upper] = -np.diff(beyond)[upper]
        rounding[upper] = _bound_tail_rounding(beyond)[:-1][upper]
    if not (np.isfinite(masses).all() and (masses >= 0).all() and masses.sum() > 0):
        raise PriorError(f"the cdf of {law!r:.60} does not rise over the support {edges[[0, -1]]}")
    return masses, rounding


def _bound_tail_rounding(tails: FloatArray) -> FloatArray:
    """Bound the rounding error of tail probabilities.

    Small ones that all are multiples of 2^-53 were subtracted from 1, as those that `scipy.stats` has no
    formula for, and keep no finer digits than the 1.
    """
    # The spacing of floats below 1: no difference of a cdf close to 1 has a finer one.
    unit = 2.0**-53
    small = tails[(tails > 0) & (tails < 1 / 8)]
    subtracted = bool((small % unit == 0).all())
    return 4 * unit * (np.ones_like(tails) if subtracted else tails)


def make_box_labels(grid: Grid, kept: BoolArray) -> list[Label]:
    """Return the centres of kept boxes as labels."""
    centres = grid.centres[kept].tolist()
    return [centre[0] if len(centre) == 1 else tuple(centre) for centre in centres]


def _read_support(points: FloatArray) -> list[tuple[float, float]]:
    """Take the least and the largest value of each axis, with a warning: two people's values become known."""
    warnings.warn(
        "the support ends at the least and the largest value of the sample, so that the letters of a design "
        "give away both: give support=(low, high), fixed before the sample is seen",
        SampleSupportWarning,
        stacklevel=3,
    )
    return list(zip(points.min(axis=0), points.max(axis=0), strict=True))


def _check_intervals(support: Any, axes: int) -> list[tuple[float, float]]:
    """Validate the (low, high) support of each axis."""
    if np.ndim(support) == 0:
        raise PriorError(f"the support is {support!r:.60}: give (low, high)")
    pairs = [support] if axes == 1 and np.ndim(support) == 1 else list(support)
    if len(pairs) != axes or any(np.shape(pair) != (2,) for pair in pairs):
        raise PriorError(
            f"the support is {support!r:.60}: give (low, high), one for each of {axes} axes"
        )
    return [
        (check_real(low, "the support", PriorError), check_real(high, "the support", PriorError))
        for low, high in pairs
    ]
