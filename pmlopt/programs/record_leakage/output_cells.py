"""Cells of conditional output laws q(y | X_i = a): the first one, which holds all, and how a cell is split.

A cell has, for each letter a of the record, the vertices of a polytope in which q(y | X_i = a) lies.
"""

from __future__ import annotations

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.measures.record_information import negative_entropies

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
