"""Cones of extreme columns: the inequalities and sizes that proofs of error bounds rest on."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from oracles.designs import FloatArray

from pmlopt.model.uncertainty import ConvexHull
from pmlopt.model.uncertainty.columns import ColumnCone, StaircaseFamily
from pmlopt.programs.estimation import columns
from pmlopt.programs.estimation.columns import _build_staircase_cone, _build_vertex_cone

P = np.array([0.1, 0.2, 0.3, 0.4])


def staircases(family: StaircaseFamily) -> list[FloatArray]:
    """The columns of `m` and `base + slope m` of mean one, with m behind."""
    found = []
    for bits in itertools.product([False, True], repeat=4):
        high = np.array(bits)
        mass = float(P[high].sum())
        low = (1 - family.base * mass) / (1 - mass + family.slope * mass)
        if low > 0:
            found.append(np.append(np.where(high, family.base + family.slope * low, low), low))
    return found


@pytest.mark.parametrize(
    ("base", "slope"), [(0.0, 2.0), (0.6, 1.2), (1.5, 1.6), (1.2, 0.3), (0.02, 0.99)]
)
def test_staircases_are_in_their_cone_and_within_its_size(base: float, slope: float) -> None:
    family = StaircaseFamily(base, slope)
    cone = _build_staircase_cone(P, family)
    every = staircases(family)
    for v in every:
        assert (cone.rows @ v >= -1e-12).all()
        assert cone.mean @ v == pytest.approx(1.0)
        assert v @ v <= cone.size
    # each row but that of m itself is met with equality somewhere, up to the margin
    tight = np.abs(np.array(every) @ cone.rows[:8].T) < 1e-6
    assert tight.any(axis=0).all()


@pytest.mark.parametrize("margin", [columns.CONE_RTOL, 0.05])
def test_columns_over_a_hull_are_in_their_cone_where_they_keep_the_mean_under_each_law(
    monkeypatch: pytest.MonkeyPatch, margin: float
) -> None:
    """With M behind: `<Q, lam> >= keep M` for each law Q, up to a margin, and entries between 0 and M."""
    monkeypatch.setattr(columns, "CONE_RTOL", margin)
    laws = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25]])
    cone = _build_vertex_cone(P, ColumnCone(ConvexHull(laws), 0.6))
    assert cone is not None
    random = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        lift = random.dirichlet(np.ones(4)) / P
        lift = lift / (P @ lift)
        v = np.append(lift, lift.max())
        lacks = float((laws @ lift).min() * (1 + margin) - 0.6 * lift.max())
        assert bool((cone.rows @ v).min() >= 0) is (lacks >= 0)
        seen.add(lacks >= 0)
        if lacks >= 0:
            assert v @ v <= cone.size
    assert seen == {True, False}
