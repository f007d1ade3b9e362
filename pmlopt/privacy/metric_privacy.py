"""Metric privacy: letters that are near to one another must be hard to tell apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from pmlopt.arrays import FloatArray, IntArray, Label, few, float_array, nonnegative
from pmlopt.core.records import INFINITE, Shape
from pmlopt.errors import PrivacyError
from pmlopt.prior import Prior
from pmlopt.privacy.ratio_bound import RatioRequirement
from pmlopt.privacy.ratios import Ratios, letter_ratios

Distance = ArrayLike | Callable[[Any, Any], float] | Mapping[tuple[Label, Label], float]


def absolute_difference(x: Any, y: Any) -> float:
    """The distance |x - y| of labels that are numbers.

    Raises:
        PrivacyError: they have no difference.
    """
    try:
        return float(abs(x - y))
    except TypeError:
        raise PrivacyError(
            f"the labels {x!r} and {y!r} have no difference: give labels that are numbers, the distance "
            "hamming, or a matrix"
        ) from None


def discrete_distance(x: Any, y: Any) -> float:
    """One for different labels, with which metric privacy is local DP."""
    return float(x != y)


DISTANCES: Mapping[str, Callable[[Any, Any], float]] = {
    "absolute": absolute_difference,
    "hamming": discrete_distance,
}
"""The distances by name."""

_NO_WAY = 1e300
"""The distance of letters between which there is no way, and nothing is required."""

_LARGEST_WHOLE = 2.0**39
"""Whole distances below this have exact sums, and none is a little longer than another."""

_IMPLIED = 1e-12
"""A pair whose distance is that of a way over a third letter, up to this share, is implied by its parts."""


class MetricPrivacy(RatioRequirement):
    """epsilon-d-privacy: `P[x,y] <= e^(epsilon d(x, x')) P[x',y]` for all letters x, x' and outcomes y.

    With distances in a plane it is geo-indistinguishability; with all distances one, local DP; with distances
    on some pairs alone, Blowfish: the others are protected along the ways between them. Only the pairs that
    no way over a third letter implies enter the program.

    Args:
        epsilon: in nats for a distance of one.
        distance: an (N, N) matrix, infinite where a pair needs no protection; a function of two labels; or
            the lengths of the edges of a graph, a mapping from pairs of labels.

    Raises:
        PrivacyError: epsilon is negative; a distance is negative, NaN or not symmetric, or zero for two
            letters (merge them).

    Where the triangle inequality fails, the length of the shortest way is the distance that holds: what is
    required along the way is required of its ends.

    Source: [chatzikokolakis2013broadening, Definition 2]; for graphs, [he2014blowfish].

    Examples:
        >>> import math
        >>> line = MetricPrivacy(math.log(2), lambda x, y: abs(x - y))
        >>> released = [[0.5, 0.3, 0.2], [0.25, 0.5, 0.25], [0.2, 0.3, 0.5]]
        >>> round(math.exp(line.level([0.25, 0.5, 0.25], released)), 12)
        2.0
    """

    name: ClassVar[str] = "metric"

    def __init__(self, epsilon: float, distance: Distance) -> None:
        self.epsilon = nonnegative(epsilon, "epsilon", PrivacyError)
        self.distance: Distance = distance
        if not callable(distance) and not isinstance(distance, Mapping):
            self.distance = _checked(float_array(_finite(distance), 2, "the distances", PrivacyError))

    @classmethod
    def from_fields(
        cls, epsilon: float, distance: Annotated[FloatArray, Shape("letters", "letters"), INFINITE]
    ) -> MetricPrivacy:
        """As a file has it: by the distances of the letters."""
        return cls(epsilon, distance)

    @property
    def limits(self) -> dict[str, float]:
        return {"metric": self.epsilon}

    def for_prior(self, prior: Prior) -> MetricPrivacy:
        """The same with the (N, N) distances of the prior's letters.

        Raises:
            PrivacyError: the distances are of other letters.
        """
        n, distance = prior.size, self.distance
        if isinstance(distance, np.ndarray):
            if len(distance) != n:
                raise PrivacyError(f"the distances are on {len(distance)} letters, and the prior on {n}")
            return self
        if isinstance(distance, Mapping):
            return MetricPrivacy(self.epsilon, _of_graph(distance, prior.labels))
        assert callable(distance)
        return MetricPrivacy(self.epsilon, [[distance(x, y) for y in prior.labels] for x in prior.labels])

    def check(self, prior: Prior) -> None:
        self.for_prior(prior)

    def measured(self, log_ratios: FloatArray, ratios: Ratios) -> dict[str, float]:
        if not len(log_ratios):
            return {"metric": 0.0}
        lengths = np.tile(self._edges[1], 2)
        return {"metric": max(0.0, float((log_ratios / lengths[:, None]).max()))}

    def ratios(self, weights: Any) -> Ratios:
        edges, lengths = self._edges
        exponents = np.nextafter(self.epsilon * np.tile(lengths, 2), 0.0)
        return letter_ratios(weights, np.vstack([edges, edges[:, ::-1]]), exponents)

    @cached_property
    def _edges(self) -> tuple[IntArray, FloatArray]:
        """(K, 2) the pairs that enter the program, and (K,) their lengths."""
        if not isinstance(self.distance, np.ndarray):
            raise PrivacyError("the distances are of labels: take `for_prior(prior)` first")
        edges = _edges(self.distance)
        return edges, _lengths(self.distance, edges)

    def __repr__(self) -> str:
        return f"MetricPrivacy(epsilon={self.epsilon})"


def _finite(distance: Any) -> Any:
    """The distances with a large number for those that are infinite."""
    return np.where(np.isposinf(np.asarray(distance, dtype=float)), _NO_WAY, distance)


def _checked(distance: FloatArray) -> FloatArray:
    """The lengths of the shortest ways, for distances that can be meant."""
    from scipy.sparse.csgraph import shortest_path

    n = len(distance)
    if distance.shape != (n, n):
        raise PrivacyError(f"the distances have the shape {distance.shape}: give an (N, N) matrix")
    if (distance < 0).any():
        raise PrivacyError(f"a distance is negative, {distance.min():g}")
    if (distance != distance.T).any():
        x, y = np.argwhere(distance != distance.T)[0]
        raise PrivacyError(
            f"the distance from letter {x} to letter {y} is {distance[x, y]:g}, and back {distance[y, x]:g}: "
            "give the same both ways"
        )
    if np.diag(distance).any():
        raise PrivacyError(f"a letter has the distance {np.diag(distance).max():g} from itself: give 0")
    if n > 1 and (distance[~np.eye(n, dtype=bool)] == 0).any():
        x, y = np.argwhere((distance == 0) & ~np.eye(n, dtype=bool))[0]
        raise PrivacyError(f"the letters {x} and {y} have the distance 0: merge them")
    # 0 is no edge; scipy loses its exception on arrays that are laid out by columns, and its answer with it
    known = np.ascontiguousarray(np.where(distance < _NO_WAY, distance, 0.0))
    ways = np.array(shortest_path(known, directed=False))
    return np.asarray(np.where(np.isfinite(ways), ways, _NO_WAY))


def _of_graph(lengths: Mapping[tuple[Label, Label], float], labels: tuple[Label, ...]) -> FloatArray:
    """(N, N) the lengths of the edges, infinite elsewhere."""
    places = {label: place for place, label in enumerate(labels)}
    distance = np.full((len(labels), len(labels)), np.inf)
    np.fill_diagonal(distance, 0.0)
    for (x, y), length in lengths.items():
        if x not in places or y not in places:
            raise PrivacyError(f"the edge ({x!r}, {y!r}) is not between letters of the prior {few(labels)}")
        distance[places[x], places[y]] = distance[places[y], places[x]] = length
    return distance


def _edges(distance: FloatArray) -> IntArray:
    """(K, 2) the pairs of letters x > x' at a distance that no way over a third letter has."""
    n = len(distance)
    implied = np.zeros((n, n), dtype=bool)
    for middle in range(n):
        over = distance[:, [middle]] + distance[[middle], :]
        over[middle, :] = over[:, middle] = np.inf
        implied |= over <= distance * (1 + _IMPLIED)
    return np.argwhere(np.tril((distance < _NO_WAY) & ~implied, -1))


def _lengths(distance: FloatArray, edges: IntArray) -> FloatArray:
    """(K,) lengths of the edges, along which no way is longer than the distance of its ends.

    They are the distances, all shorter by the same share where ways that are a little longer than the
    distance of their ends were taken to imply it, or where sums of distances may be rounded.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    n, lengths = len(distance), distance[edges[:, 0], edges[:, 1]]
    asked = (distance < _NO_WAY) & (distance > 0)
    whole = np.array_equal(distance[asked], np.rint(distance[asked]))
    if not len(edges) or (whole and distance[asked].max() < _LARGEST_WHOLE):
        return np.asarray(lengths)
    ways = shortest_path(csr_array((lengths, (edges[:, 0], edges[:, 1])), (n, n)), directed=False)
    share = min(1.0, float((distance[asked] / ways[asked]).min()))
    return np.asarray(lengths * (share * (1 - (n + 2) * float(np.finfo(float).eps))))
