"""Cells of conditional output laws q(y | X_i = a): the first one, which holds all, and how a cell is split.

A cell has, for each letter a of the record, the vertices of a polytope in which q(y | X_i = a) lies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.core.arrays import FloatArray
from pmlopt.model.queries.record_leakage_measures import negative_entropies
from pmlopt.programs.record_leakage.proof import Region

Cell = tuple[FloatArray, ...]
"""For each letter a the vertices (K_a, M) of a polytope of output laws."""
SHORTEST_EDGE = 1e-12
"""An edge no longer than this is not split further; nor is a polytope that has no longer one."""
FLATNESS_TOLERANCE = 1e-13
"""Directions in which points differ by less are left out: far below what a cover is checked to."""
EDGE_MARGIN = 0.1
"""A split of an edge keeps this share of it on either side."""
HULL_DIMENSIONS = 6
"""Up to this many dimensions hulls and triangulations are sought; they grow fast."""
RANK_TOLERANCE = 1e-12
"""Singular values of the rows below this share of the largest one count as zero: directions of rounding."""


def first_cell(rows: FloatArray, log_counts: FloatArray) -> Cell:
    """For each letter the corners of the hull of the rows that it can meet."""
    return tuple(corners(rows[used]) for used in np.isfinite(log_counts))


def corners(points: FloatArray) -> FloatArray:
    """The vertices of the hull of some laws, in as many dimensions as they have."""
    from scipy.spatial import ConvexHull, QhullError

    inner = _flattened(points)
    size = inner.shape[1]
    if size == 0:
        return points[:1]
    if size == 1:
        ends = [int(inner.argmin()), int(inner.argmax())]
        return points[ends]
    if len(points) <= size + 1 or size > HULL_DIMENSIONS:
        return points
    try:
        return np.asarray(points[np.sort(ConvexHull(inner).vertices)])
    except QhullError:
        return points


def dimension(vertices: FloatArray) -> int:
    """The dimension of the affine hull of some points."""
    return int(_flattened(vertices).shape[1])


def simplices(vertices: FloatArray) -> list[FloatArray] | None:
    """Simplices of the vertices that cover their hull; None where that is out of reach."""
    from scipy.spatial import Delaunay, QhullError

    inner = _flattened(vertices)
    if inner.shape[1] > HULL_DIMENSIONS:
        return None
    try:
        found = Delaunay(inner).simplices
    except QhullError:
        return None
    thin = [abs(np.linalg.det(inner[corner[1:]] - inner[corner[0]])) for corner in found]
    return [vertices[np.sort(corner)] for corner, size in zip(found, thin, strict=True) if size > 0]


def bend(vertices: FloatArray, weights: FloatArray) -> float:
    """How far phi, which is convex, lies below its interpolation at weighted vertices; `sum w` times that."""
    total = float(weights.sum())
    if total <= 0:
        return 0.0
    middle = weights @ vertices / total
    return float(weights @ negative_entropies(vertices) - total * negative_entropies(middle))


def halves(vertices: FloatArray, weights: FloatArray) -> list[FloatArray]:
    """A polytope split at a point of an edge: two that cover it, each without one of the edge's ends.

    The edge is the one along which phi bends most between the weighted vertices; the point the one that the
    weights of its ends say, kept away from both.
    """
    count = len(vertices)
    if weights.sum() <= 0:
        weights = np.full(count, 1 / count)
    pairs = [
        (i, j)
        for j in range(count)
        for i in range(j)
        if np.abs(vertices[i] - vertices[j]).max() > SHORTEST_EDGE
    ]
    bends = [bend(vertices[[i, j]], weights[[i, j]]) for i, j in pairs]
    if max(bends) <= 0:
        bends = [bend(vertices[[i, j]], np.array([0.5, 0.5])) for i, j in pairs]
    i, j = pairs[int(np.argmax(bends))]
    both = weights[i] + weights[j]
    share = float(np.clip(weights[i] / both if both > 0 else 0.5, EDGE_MARGIN, 1 - EDGE_MARGIN))
    point = share * vertices[i] + (1 - share) * vertices[j]
    parts = []
    for end in (i, j):
        part = vertices.copy()
        part[end] = point
        parts.append(part)
    return parts


def _flattened(points: FloatArray) -> FloatArray:
    """(K, d) the points in coordinates of their affine hull."""
    away = points - points.mean(axis=0)
    _, sizes, basis = np.linalg.svd(away, full_matrices=False)
    return np.asarray(away @ basis[sizes > FLATNESS_TOLERANCE].T)


def row_space(rows: FloatArray) -> FloatArray:
    """(M, R) an orthonormal basis of the space that the rows span.

    Examples:
        >>> row_space(np.array([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])).shape
        (2, 2)
    """
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(basis[sizes > RANK_TOLERANCE * sizes[0]].T)


DISTANCE_TOLERANCE = 1e-12
"""How far a law may be from where a hull, or a split of an edge, has it: roundings of probabilities."""
VOLUME_TOLERANCE = 1e-9
"""By what share the volumes of simplices may miss that of the polytope: determinants of small numbers."""


def covers_rows(cell: Sequence[FloatArray], rows: FloatArray, log_counts: FloatArray) -> bool:
    """Whether the first cell has every row that a letter can meet in the hull of its vertices."""
    from scipy.optimize import nnls

    if len(cell) != len(log_counts):
        return False
    for letter, vertices in enumerate(cell):
        for row in rows[np.isfinite(log_counts[letter])]:
            if (np.abs(vertices - row).max(axis=1) <= DISTANCE_TOLERANCE).any():
                continue
            _, away = nnls(np.vstack([vertices.T, np.ones(len(vertices))]), np.append(row, 1.0))
            if away > DISTANCE_TOLERANCE:
                return False
    return True


def covers(region: Region, parts: Sequence[Region]) -> bool:
    """Whether the parts cover a region: they differ from it in one letter, and there they cover its polytope.

    Two parts that each put the same point of an edge in place of one of its ends cover it; so do simplices
    of its vertices whose volumes add up to its own.
    """
    if any(len(part.cell) != len(region.cell) for part in parts):
        return False
    changed = [
        letter
        for letter, vertices in enumerate(region.cell)
        if any(
            part.cell[letter] is not vertices and not np.array_equal(part.cell[letter], vertices)
            for part in parts
        )
    ]
    if len(changed) != 1:
        return False
    whole = region.cell[changed[0]]
    pieces = [part.cell[changed[0]] for part in parts]
    return _halves_cover(whole, pieces) or _simplices_cover(whole, pieces)


def _halves_cover(whole: FloatArray, pieces: Sequence[FloatArray]) -> bool:
    """Whether two pieces each have the same point of an edge in place of one of its ends."""
    if len(pieces) != 2 or any(piece.shape != whole.shape for piece in pieces):
        return False
    ends = [np.flatnonzero((piece != whole).any(axis=1)) for piece in pieces]
    if any(len(end) != 1 for end in ends) or ends[0][0] == ends[1][0]:
        return False
    first, second = (int(end[0]) for end in ends)
    point, other = pieces[0][first], pieces[1][second]
    edge = whole[second] - whole[first]
    length = float(edge @ edge)
    share = float(np.clip((point - whole[first]) @ edge / length, 0, 1)) if length > 0 else 0.0
    there = whole[first] + share * edge
    return bool((point == other).all() and np.abs(point - there).max() <= DISTANCE_TOLERANCE)


def _simplices_cover(whole: FloatArray, pieces: Sequence[FloatArray]) -> bool:
    """Whether simplices of a polytope's vertices have its volume together, and meet in facets alone."""
    from scipy.spatial import ConvexHull, QhullError

    centre = whole.mean(axis=0)
    _, sizes, basis = np.linalg.svd(whole - centre, full_matrices=False)
    flat = basis[sizes > DISTANCE_TOLERANCE * max(1.0, sizes[0])]
    if len(flat) < 2:
        return False
    volume = 0.0
    facets: dict[frozenset[int], list[int]] = {}
    for piece in pieces:
        if len(piece) != len(flat) + 1:
            return False
        known = np.abs(piece[:, None, :] - whole[None, :, :]).max(axis=2) == 0
        if not known.any(axis=1).all():
            return False
        corners = known.argmax(axis=1).tolist()
        for corner in corners:
            facets.setdefault(frozenset(corners) - {corner}, []).append(corner)
        inner = (piece - centre) @ flat.T
        volume += abs(float(np.linalg.det(inner[1:] - inner[0]))) / float(
            np.prod(np.arange(1, len(flat) + 1))
        )
    points = (whole - centre) @ flat.T
    if not all(_one_each_side(points, sorted(facet), corners) for facet, corners in facets.items()):
        return False
    try:
        hull = float(ConvexHull(points).volume)
    except QhullError:
        return False
    return abs(volume - hull) <= VOLUME_TOLERANCE * hull


def _one_each_side(points: FloatArray, facet: Sequence[int], corners: Sequence[int]) -> bool:
    """Whether a facet has one simplex on each side, or one and the border of the hull on the other."""
    edges = points[facet[1:]] - points[facet[0]]
    _, _, basis = np.linalg.svd(np.atleast_2d(edges), full_matrices=True)
    heights = (points - points[facet[0]]) @ basis[-1]
    if len(corners) == 1:
        return bool((heights * np.sign(heights[corners[0]]) >= -DISTANCE_TOLERANCE).all())
    return len(corners) == 2 and bool(heights[corners[0]] * heights[corners[1]] < 0)
