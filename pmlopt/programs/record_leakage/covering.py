"""Whether cells cover what they must: geometry in floats, to a few of their last digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pmlopt.arrays import FloatArray
from pmlopt.programs.record_leakage.proof import Region

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
