"""Vertex enumeration of a unit cube cut by half-spaces, by the double description method."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from pmlopt.core.numbers.arrays import BoolArray, FloatArray, IntArray

TIGHT_ATOL = 1e-11
"""By how much a vertex may miss a constraint that counts as tight: a constraint too many only adds points of
the polytope to its vertices."""


@dataclass(frozen=True, eq=False)
class CutCube:
    """The polytope `0 <= v <= 1`, `<q, v> >= least` by its vertices and their tight constraints.

    Attributes:
        vertices: (K, N) all vertices, and possibly other points of the polytope.
        tight: (K, C) whether each of the C constraints is tight: v >= 0, v <= 1, and the cuts.
    """

    vertices: FloatArray
    tight: BoolArray

    @classmethod
    def from_size(cls, size: int) -> CutCube:
        """Build the uncut cube."""
        corners = np.array([*itertools.product((0.0, 1.0), repeat=size)])
        return cls(corners, np.hstack([corners == 0, corners == 1]))

    def cut_by(self, law: FloatArray, least: float) -> CutCube:
        """Cut the polytope by `<law, v> >= least`.

        Both ends of an edge share N - 1 tight constraints that no third vertex shares, so that every vertex
        of the cut is on the segment of a pair that does.
        """
        slack = self.vertices @ law - least
        kept = slack >= -TIGHT_ATOL
        out = slack < -TIGHT_ATOL
        inside = slack > TIGHT_ATOL
        tight = np.hstack([self.tight, (np.abs(slack) <= TIGHT_ATOL)[:, None]])
        if not out.any():
            return CutCube(self.vertices, tight)
        a = np.flatnonzero(inside)
        b = np.flatnonzero(out)
        shared = self.tight[a].astype(np.float32) @ self.tight[b].T.astype(np.float32)
        left, right = np.nonzero(shared >= self.vertices.shape[1] - 1)
        left, right = self._keep_edges(a[left], b[right])
        fraction = (slack[left] / (slack[left] - slack[right]))[:, None]
        points = (1 - fraction) * self.vertices[left] + fraction * self.vertices[right]
        common = np.hstack([self.tight[left] & self.tight[right], np.ones((len(left), 1), bool)])
        # what was 0 or 1 on both ends is exactly that
        size = self.vertices.shape[1]
        points = np.where(common[:, :size], 0.0, np.where(common[:, size : 2 * size], 1.0, points))
        return CutCube(
            np.vstack([self.vertices[kept], points]), np.vstack([tight[kept], common])
        ).without_repeats()

    def _keep_edges(self, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
        """Return the pairs of points that no third one is between: those of an edge.

        The others add points inside of faces, of which there are ever more where many constraints are tight
        at a vertex. A third point on a segment has the same end in a pair of its own.
        """
        # a point of N tight constraints has N edges: where pairs are few, a few more do no harm
        if len(left) <= self.vertices.shape[1] * len(self.vertices):
            return left, right
        tight = self.tight.astype(np.float32)
        kept = np.ones(len(left), dtype=bool)
        # the constraints of a vertex with N tight ones are independent: N - 1 of them are an edge
        many = self.tight.sum(axis=1) > self.vertices.shape[1]
        doubtful = np.flatnonzero(many[left] | many[right])
        rarest = self._find_rarest_common(left[doubtful], right[doubtful])
        for constraint in np.unique(rarest):
            # a third point between two has all of their constraints, also the one that fewest points have
            near = tight[self.tight[:, constraint]]
            pairs = doubtful[rarest == constraint]
            # parts of some ten million comparisons
            part = max(1, 10**7 // len(near))
            for start in range(0, len(pairs), part):
                chosen = pairs[start : start + part]
                common = tight[left[chosen]] * tight[right[chosen]]
                between = common @ near.T >= common.sum(axis=1)[:, None]
                kept[chosen] = np.count_nonzero(between, axis=1) <= 2
        return left[kept], right[kept]

    def _find_rarest_common(self, left: IntArray, right: IntArray) -> IntArray:
        """Find the tight constraint that pairs of points share and that the fewest points have."""
        order = np.argsort(self.tight.sum(axis=0), kind="stable")
        ordered = self.tight[:, order]
        found = np.empty(len(left), dtype=np.int64)
        for start in range(0, len(left), 100_000):
            part = slice(start, start + 100_000)
            found[part] = order[(ordered[left[part]] & ordered[right[part]]).argmax(axis=1)]
        return found

    def without_repeats(self) -> CutCube:
        """Merge duplicate vertices, with the union of their tight constraints."""
        _, first, place = np.unique(
            self.vertices.round(12), axis=0, return_index=True, return_inverse=True
        )
        tight = self.tight[first]
        # few points are repeats, and a loop over all of them costs more than the cut
        repeats = np.delete(np.arange(len(self.vertices)), first)
        np.logical_or.at(tight, place.ravel()[repeats], self.tight[repeats])
        return CutCube(self.vertices[first], tight)


def cut_cube(laws: FloatArray, least: float, limit: int) -> CutCube | None:
    """Enumerate the vertices of the cube cut by `<q, v> >= least` for (K, N) laws q; None above a limit.

    Examples:
        >>> cut_cube(np.array([[0.5, 0.5]]), 0.75, 100).vertices.tolist()
        [[0.5, 1.0], [1.0, 0.5], [1.0, 1.0]]
    """
    size = laws.shape[1]
    # a cube of 2^N corners
    if 2**size > limit:
        return None
    cube = CutCube.from_size(size)
    for law in laws:
        cube = cube.cut_by(law, least)
        if len(cube.vertices) > limit:
            return None
    return cube
