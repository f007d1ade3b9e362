"""Metric privacy: nearby letters must be hard to distinguish."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np

from pmlopt.core.descriptions import describe_value
from pmlopt.core.numbers.argument_checks import check_choice, check_same_letters
from pmlopt.core.numbers.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Label,
    Labels,
    abbreviate,
    check_nonnegative,
    copy_float_array,
)
from pmlopt.core.numbers.differences import subtract_exactly
from pmlopt.core.numbers.distances import check_distances, join_directions
from pmlopt.core.records.fields import INFINITE, Shape
from pmlopt.data.labelled import LabelledArray, Numbers, read_labelled_table
from pmlopt.data.prior import Prior
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy.ratio_bound import RatioRequirement
from pmlopt.model.privacy.ratios import RatioBounds, make_letter_ratios

Distance = (
    str
    | Numbers
    | LabelledArray
    | Callable[[Any, Any], float]
    | Mapping[tuple[Label, Label], float]
)


def absolute_difference(x: Any, y: Any) -> float:
    """Return the distance |x - y| of labels that are numbers.

    Raises:
        PrivacyError: they have no difference.
    """
    try:
        return abs(subtract_exactly(x, y))
    except OverflowError:
        raise PrivacyError(f"the labels {x!r} and {y!r} are further apart than floats go") from None
    except TypeError:
        raise PrivacyError(
            f"the labels {x!r} and {y!r} have no difference: give labels that are numbers, the distance "
            "hamming, or a matrix"
        ) from None


def discrete_distance(x: Any, y: Any) -> float:
    """Return 1 for different labels and 0 for equal ones; metric privacy is then local DP."""
    return float(x != y)


DISTANCES: Mapping[str, Callable[[Any, Any], float]] = {
    "absolute": absolute_difference,
    "hamming": discrete_distance,
}
"""The distances by name."""


class MetricPrivacy(RatioRequirement):
    """epsilon-d-privacy: `P[x,y] <= e^(epsilon d(x, x')) P[x',y]` for all letters x, x' and outcomes y.

    With distances in a plane it is geo-indistinguishability; with all distances one, local DP; with distances
    on some pairs only, Blowfish: the others are protected along the ways between them. Pairs that a way
    over other letters implies are left out of the program, and of nothing else: levels and checks are of
    all pairs with a finite distance, as it was given.

    Args:
        epsilon: in nats for a distance of one.
        distance: an (N, N) matrix, infinite where a pair needs no protection, or a frame or a file with the
            names of its rows and columns; a function of two labels, or its name, "absolute" or "hamming"; or
            the lengths of the edges of a graph, a mapping from pairs of labels.

    Raises:
        PrivacyError: epsilon is negative; a distance is negative, NaN, or not the same both ways up to
            rounding, of which the smaller counts; or it is zero for two letters (merge them); or the name of
            a distance is not known.

    Where the triangle inequality fails, what is required along the shortest way is required of its ends.

    Source: [chatzikokolakis2013broadening, Definition 2]; for graphs, [he2014blowfish].

    Examples:
        >>> import math
        >>> line = MetricPrivacy(math.log(2), lambda x, y: abs(x - y))
        >>> released = [[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]]
        >>> round(math.exp(line.level([0.25, 0.5, 0.25], released)), 12)
        2.0
    """

    name: ClassVar[str] = "metric"
    is_prior_free: ClassVar[bool] = True
    meaning: ClassVar[str] = (
        "Letters at the distance d cannot be distinguished by more than a factor of e^({limit} d)."
    )

    def __init__(self, epsilon: float, distance: Distance) -> None:
        if isinstance(distance, int | float) and not isinstance(epsilon, int | float):
            raise PrivacyError(
                f"epsilon is {describe_value(epsilon)} and the distance {distance:g}: they are swapped, "
                "write MetricPrivacy(epsilon, distance)"
            )
        self.epsilon = check_nonnegative(epsilon, "epsilon", PrivacyError)
        self.distance: Distance = distance
        if isinstance(distance, str):
            others = ", a function of two labels, a matrix, or the lengths of edges"
            check_choice(distance, DISTANCES, "the distance", PrivacyError, others)
            self.distance = DISTANCES[distance]
        elif not callable(distance) and not isinstance(distance, Mapping):
            found = read_labelled_table(distance, "the distances", PrivacyError)
            self.distance = found if any(found.axes) else _check_distances(found.values)

    @classmethod
    def from_fields(
        cls, epsilon: float, distance: Annotated[FloatArray, Shape("letters", "letters"), INFINITE]
    ) -> MetricPrivacy:
        """Build the requirement from a saved file's fields, with the letters' distances."""
        return cls(epsilon, distance)

    def for_prior(self, prior: Prior) -> MetricPrivacy:
        """Return the requirement with the (N, N) distances of the prior's letters.

        Raises:
            PrivacyError: the distances are of other letters.
        """
        n = prior.size
        distance = self.distance
        if isinstance(distance, np.ndarray):
            check_same_letters(len(distance), "the distances are", n, "the prior", PrivacyError)
            return self
        if isinstance(distance, LabelledArray):
            named = distance.reorder_axis(0, prior.labels, PrivacyError).reorder_axis(
                1, prior.labels, PrivacyError
            )
            return MetricPrivacy(self.epsilon, named.values)
        if isinstance(distance, Mapping):
            return MetricPrivacy(self.epsilon, _read_edges(distance, prior.labels))
        assert callable(distance)
        return MetricPrivacy(
            self.epsilon, [[distance(x, y) for y in prior.labels] for x in prior.labels]
        )

    def check(self, prior: Prior) -> None:
        """Raise a PrivacyError where the requirement's letters differ from the prior's."""
        self.for_prior(prior)

    def name_levels(self, log_ratios: FloatArray, ratios: RatioBounds) -> dict[str, float]:
        """Convert the (K, 1) largest log-ratios to levels, by the names of `limits`."""
        if not len(log_ratios):
            return {"metric": 0.0}
        with np.errstate(over="ignore"):  # a level past all floats is infinite
            per_unit = log_ratios.max(axis=1) / self._required_distances
        return {"metric": max(0.0, float(per_unit.max()))}

    def ratios(self, weights: Any) -> RatioBounds:
        """Return the ratio bounds for a prior proportional to (N,) weights (floats or integers).

        Raises:
            PrivacyError: there are more than 3,000 letters.
        """
        # every step before a design and its check has N^3 numbers: an hour of one processor
        if (n := len(self._get_letter_distances)) > 3_000:
            raise PrivacyError(
                f"metric privacy on {n:,} letters, more than 3,000, has no designs: the ways over third "
                f"letters and the exact check of all pairs on all outputs are {float(n) ** 3:.1e} numbers "
                "each, an hour of a processor and more. Take fewer points, such as the corners of a coarser "
                "grid, or noise by formula, pmlopt.noise.Laplace, which needs no program"
            )
        return self._letter_ratios(weights, self._essential_pairs)

    def required_ratios(self, weights: Any) -> RatioBounds:
        """Return all required ratio bounds; `ratios` may omit those implied by others."""
        return self._letter_ratios(weights, self._required_pairs)

    def _letter_ratios(self, weights: Any, pairs: IntArray) -> RatioBounds:
        """Return the ratio bounds of letter pairs, in both directions."""
        with np.errstate(over="ignore"):  # past all floats, and then past LARGEST_RATIO_EXPONENT
            exponents = self.epsilon * self._get_letter_distances[pairs[:, 0], pairs[:, 1]]
        both = np.vstack([pairs, pairs[:, ::-1]])
        return make_letter_ratios(weights, both, np.tile(np.nextafter(exponents, 0.0), 2))

    @property
    def _get_letter_distances(self) -> FloatArray:
        """Return the (N, N) distances as given, checked to be those of letters."""
        if not isinstance(self.distance, np.ndarray):
            raise PrivacyError("the distances are of labels: take `for_prior(prior)` first")
        return self.distance

    @cached_property
    def shortest_paths(self) -> FloatArray:
        """Return the (N, N) shortest-path lengths between letters; infinite without a path."""
        return compute_shortest_paths(self._get_letter_distances)

    @cached_property
    def _required_pairs(self) -> IntArray:
        """Return the (K, 2) letter pairs at finite distance."""
        return np.argwhere(np.tril(np.isfinite(self._get_letter_distances), -1))

    @cached_property
    def _required_distances(self) -> FloatArray:
        """Return the (2 K,) distances of these pairs, for both directions."""
        return np.tile(self._get_letter_distances[tuple(self._required_pairs.T)], 2)

    @cached_property
    def _essential_pairs(self) -> IntArray:
        """Return the (K, 2) letter pairs whose bounds are not implied by others."""
        x, y = self._required_pairs.T
        return np.asarray(
            self._required_pairs[
                _find_essential_pairs(self._get_letter_distances, self.shortest_paths)[x, y]
            ]
        )

    def __repr__(self) -> str:
        return f"MetricPrivacy(epsilon={self.epsilon})"


def _check_distances(distance: Any) -> FloatArray:
    """Validate (N, N) distances."""
    try:
        far = np.isposinf(np.asarray(distance, dtype=float))
    except (TypeError, ValueError, OverflowError):
        far = np.zeros(1, dtype=bool)  # the error is raised below
    finite = copy_float_array(
        np.where(far, 0.0, distance) if far.any() else distance, 2, "the distances", PrivacyError
    )
    n = len(finite)
    if finite.shape != (n, n):
        raise PrivacyError(f"the distances have the shape {finite.shape}: give an (N, N) matrix")
    known = np.where(far, np.inf, finite)
    known = check_distances(known, PrivacyError)
    same = (known == 0) & ~np.eye(n, dtype=bool)
    if same.any():
        x, y = np.argwhere(same)[0]
        raise PrivacyError(f"the letters {x} and {y} have the distance 0: merge them")
    known.setflags(write=False)
    return known


def _read_edges(lengths: Mapping[tuple[Label, Label], float], labels: Labels) -> FloatArray:
    """Read the (N, N) edge lengths of a graph, in the directions given; infinite for missing edges."""
    places = {label: place for place, label in enumerate(labels)}
    distance = np.full((len(labels), len(labels)), np.inf)
    np.fill_diagonal(distance, 0.0)
    for (x, y), length in lengths.items():
        if x not in places or y not in places:
            raise PrivacyError(
                f"the edge ({x!r}, {y!r}) is not between letters of the prior {abbreviate(labels)}"
            )
        distance[places[x], places[y]] = length
        if (y, x) not in lengths:
            distance[places[y], places[x]] = length
    return join_directions(distance, PrivacyError, labels)


def compute_shortest_paths(lengths: FloatArray) -> FloatArray:
    """Compute (N, N) shortest-path lengths of a graph; infinite without a path.

    Args:
        lengths: (N, N) of single steps from one letter to another.
    """
    ways = lengths.copy()
    blocks = (slice(first, first + 50) for first in range(0, len(ways), 50))
    # the distances of points are their shortest ways, which is seen in a fifth of the time
    if all((measure_detours(lengths, own) >= lengths[own]).all() for own in blocks):
        return ways
    with np.errstate(over="ignore"):
        for middle in range(len(ways)):
            np.minimum(ways, ways[:, [middle]] + ways[[middle]], out=ways)
    return ways


def measure_detours(lengths: FloatArray, rows: slice = slice(None)) -> FloatArray:
    """Measure the (R, N) shortest ways of two steps over a third letter; infinite without one.

    Args:
        lengths: (N, N) of single steps from one letter to another; those to itself do not count.
        rows: the letters from which the ways begin.
    """
    size = len(lengths)
    steps = lengths.copy()
    np.fill_diagonal(steps, np.inf)
    found = np.full_like(steps[rows], np.inf)
    count = max(1, 50_000 // size)  # rows at once, which stay in a cache
    with np.errstate(over="ignore"):
        for first in range(0, len(found), count):
            own, part = steps[rows][first : first + count], found[first : first + count]
            sums = np.empty_like(own)
            for middle in range(size):
                np.add(own[:, middle, None], steps[middle], out=sums)
                np.minimum(part, sums, out=part)
    return found


def _find_essential_pairs(distance: FloatArray, ways: FloatArray) -> BoolArray:
    """Return the (N, N) mask of edges that are no longer than every other path.

    That the edges are shorter than the distance itself keeps two pairs from implying one another.
    """
    n = len(distance)
    implied = np.zeros((n, n), dtype=bool)
    with np.errstate(over="ignore"):
        # Fraction of its distance by which the way over other letters may be longer for a pair to be left
        # out of the program: a hundred roundings. What is claimed of a mechanism is checked pair by pair all
        # the same.
        near = np.where(np.isfinite(distance), distance * (1 + (2.0**-44)), 0.0)
        closer = measure_detours(ways) <= near
        back = np.ascontiguousarray(ways.T)
        for x in np.flatnonzero(closer.any(axis=1)):
            ends = np.flatnonzero(closer[x])
            first, last = ways[x], back[ends]
            shorter = np.maximum(first, last) < distance[x, ends, None]
            shorter[:, x] = shorter[np.arange(len(ends)), ends] = False
            implied[x, ends] = (shorter & (first + last <= near[x, ends, None])).any(axis=1)
        kept = np.isfinite(distance) & ~implied
        if not implied.any():
            return kept
        steps = np.where(kept, distance, np.inf)
        # The same over all pairs that were left out, one over another: the margin of constraints on a
        # variable.
        limits = np.where(implied, distance * (1 + (2.0**-40)), np.inf)
        along = measure_detours(steps)
        if not (along <= limits).all():
            along = compute_shortest_paths(steps)
    return kept | (along > limits)
