"""Information over sets of priors that are no polytopes, by cutting planes on the worst priors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pmlopt import PML, ChiSquareBall, ConvexHull, MutualInformation, Prior, design, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import ProgramError
from pmlopt.model.uncertainty.cut_polytopes import cut_cube


def list_boundary(p: FloatArray, radius: float, count: int) -> FloatArray:
    """Priors at the edge of a chi-square ball on three letters, all round."""
    turns = np.linspace(0, 2 * math.pi, count, endpoint=False)
    base = np.linalg.svd(np.sqrt(p)[None, :])[2][1:]  # orthogonal to the square roots
    steps = np.stack([np.cos(turns), np.sin(turns)]).T @ base
    return np.asarray(p + math.sqrt(radius) * np.sqrt(p) * steps)


def test_on_two_letters_a_ball_is_an_interval() -> None:
    p, radius = np.array([0.6, 0.4]), 0.05
    half = math.sqrt(radius * 0.6 * 0.4)
    ends = ConvexHull([[0.6 - half, 0.4 + half], [0.6 + half, 0.4 - half]])
    expected = solve(design(p, PML(0.5, over=ends), MutualInformation()))
    found = solve(design(p, PML(0.5, over=ChiSquareBall(p, radius)), MutualInformation()))
    assert found.status.value == "optimal"
    assert found.value == pytest.approx(expected.value, abs=1e-8)


def test_on_three_letters_it_is_between_polygons_within_and_around() -> None:
    p, radius, count = np.array([0.5, 0.3, 0.2]), 0.04, 24
    found = solve(design(p, PML(0.6, over=ChiSquareBall(p, radius)), MutualInformation()))
    assert found.status.value == "optimal"
    assert found.gap <= 1e-7
    assert found.certificate.verify()
    assert found.level <= 0.6
    inner = list_boundary(p, radius, count)
    outer = p + (inner - p) / math.cos(math.pi / count)
    within, around = (
        solve(design(p, PML(0.6, over=ConvexHull(points)), MutualInformation()))
        for points in (inner, outer)
    )
    assert around.value - 1e-9 <= found.value <= within.bound + 1e-9
    assert within.value - around.value <= 0.01


def test_the_priors_of_a_proof_are_moved_into_the_set() -> None:
    p = Prior([0.5, 0.3, 0.2])
    found = solve(design(p, PML(0.6, over=ChiSquareBall(p, 0.04)), MutualInformation()))
    certificate = found.certificate
    assert certificate.laws is not None
    outside = replace(certificate, laws=np.eye(3))
    assert not outside.verify()  # the corners of the simplex are not in the ball: a larger bound
    other = replace(certificate, privacy=PML(0.6))
    with pytest.raises(ProgramError, match="over none on these letters"):
        other.verify()


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_cut_cube_has_every_vertex(size: int) -> None:
    """Each vertex solves N of the constraints as equations: all such points by brute force."""
    from itertools import combinations

    rng = np.random.default_rng(size)
    laws = rng.dirichlet(np.ones(size), 5)
    cube = cut_cube(laws, 0.4, 10_000)
    assert cube is not None
    rows = np.vstack([-np.eye(size), np.eye(size), -laws])
    right = np.concatenate([np.zeros(size), np.ones(size), np.full(5, -0.4)])
    assert (cube.vertices @ rows.T <= right + 1e-10).all()
    for tight in combinations(range(len(rows)), size):
        square = rows[list(tight)]
        if np.linalg.cond(square) < 1e8:
            point = np.linalg.solve(square, right[list(tight)])
            if (rows @ point <= right + 1e-9).all():
                assert np.abs(cube.vertices - point).max(axis=1).min() <= 1e-9
    assert cut_cube(laws, 0.4, 2**size - 1) is None
