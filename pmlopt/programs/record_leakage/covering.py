"""Whether cells cover what they must: geometry in floats, to a few of their last digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pmlopt.arrays import FloatArray

if TYPE_CHECKING:
    from pmlopt.programs.record_leakage.certificate import Region

_SAME = 1e-12
"""How far a vertex may be from where a split puts it, and volumes from their sum."""


def covers_rows(cell: Sequence[FloatArray], rows: FloatArray, log_counts: FloatArray) -> bool:
    """Whether the first cell has every row that a letter can meet in the hull of its vertices."""
    from scipy.optimize import nnls

    for letter, vertices in enumerate(cell):
        for row in rows[np.isfinite(log_counts[letter])]:
            if (np.abs(vertices - row).max(axis=1) <= _SAME).any():
                continue
            _, away = nnls(np.vstack([vertices.T, np.ones(len(vertices))]), np.append(row, 1.0))
            if away > _SAME:
                return False
    return True


def covers(region: Region, parts: Sequence[Region]) -> bool:
    """Whether the parts cover a region: they differ from it in one letter, and there they cover its polytope.

    Two parts that each put the same point of an edge in place of one of its ends cover it; so do simplices
    of its vertices whose volumes add up to its own.
    """
    changed = [
        letter
        for letter, vertices in enumerate(region.cell)
        if any(part.cell[letter] is not vertices for part in parts)
    ]
    if len(changed) != 1:
        return False
    whole = region.cell[changed[0]]
    pieces = [part.cell[changed[0]] for part in parts]
    if len(pieces) == 2 and all(piece.shape == whole.shape for piece in pieces):
        ends = [np.flatnonzero((piece != whole).any(axis=1)) for piece in pieces]
        if all(len(end) == 1 for end in ends) and ends[0][0] != ends[1][0]:
            first, second = (int(end[0]) for end in ends)
            point, other = pieces[0][first], pieces[1][second]
            edge = whole[second] - whole[first]
            share = float(np.clip((point - whole[first]) @ edge / max(float(edge @ edge), 1e-300), 0, 1))
            there = whole[first] + share * edge
            return bool((point == other).all() and np.abs(point - there).max() <= _SAME)
    return _volumes_agree(whole, pieces)


def _volumes_agree(whole: FloatArray, pieces: Sequence[FloatArray]) -> bool:
    """Whether simplices of a polytope's vertices have its volume together, and meet in facets alone."""
    from scipy.spatial import ConvexHull

    centre = whole.mean(axis=0)
    _, sizes, basis = np.linalg.svd(whole - centre, full_matrices=False)
    flat = basis[sizes > _SAME * max(1.0, sizes[0])]
    total = 0.0
    facets: dict[frozenset[int], list[int]] = {}
    for piece in pieces:
        known = np.abs(piece[:, None, :] - whole[None, :, :]).max(axis=2) == 0
        if not known.any(axis=1).all() or len(piece) != len(flat) + 1:
            return False
        corners = known.argmax(axis=1).tolist()
        for corner in corners:
            facets.setdefault(frozenset(corners) - {corner}, []).append(corner)
        inner = (piece - centre) @ flat.T
        total += abs(float(np.linalg.det(inner[1:] - inner[0]))) / float(np.prod(np.arange(1, len(flat) + 1)))
    points = (whole - centre) @ flat.T
    if not all(_apart(points, sorted(facet), corners) for facet, corners in facets.items()):
        return False
    volume = float(ConvexHull(points).volume)
    return abs(total - volume) <= 1e-9 * volume


def _apart(points: FloatArray, facet: Sequence[int], corners: Sequence[int]) -> bool:
    """Whether a facet has one simplex on each side, or one and the border of the hull on the other."""
    edges = points[facet[1:]] - points[facet[0]]
    _, _, basis = np.linalg.svd(np.atleast_2d(edges), full_matrices=True)
    heights = (points - points[facet[0]]) @ basis[-1]
    if len(corners) == 1:
        return bool((heights * np.sign(heights[corners[0]]) >= -_SAME).all())
    return len(corners) == 2 and bool(heights[corners[0]] * heights[corners[1]] < 0)
