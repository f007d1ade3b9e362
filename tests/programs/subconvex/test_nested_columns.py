"""Columns on nested sets, and relaxed columns that are made allowed, by the requirement itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.model.uncertainty import L1Ball, MinimumMass
from pmlopt.model.uncertainty.columns import ColumnCone
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.columns import ColumnUtility, DenseBatch
from pmlopt.programs.subconvex.prior_cuts import _CutRounds
from pmlopt.programs.subconvex.relaxations import ChordBound
from pmlopt.programs.subconvex.split_pricing import NestedPricer, SplitPricer

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])
KERNEL = ColumnUtility(P, MutualInformation().phi)


def test_a_reduced_value_is_the_utility_less_what_the_letters_cost() -> None:
    random = np.random.default_rng(0)
    columns, rho = random.dirichlet(np.ones(5), 3).T / P[:, None], random.normal(size=5)
    pricer = NestedPricer(KERNEL, ColumnCone(MinimumMass(5, 0.08), 0.55))
    found = pricer._reduced_values(DenseBatch(columns), rho)
    expected = [
        sum(P[x] * (v[x] * np.log(v[x]) - rho[x] * v[x]) for x in range(5)) for v in columns.T
    ]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("keep", [0.55, 0.9])
def test_relaxed_columns_are_mixed_with_the_constant_as_far_as_they_need(keep: float) -> None:
    cone = ColumnCone(MinimumMass(5, 0.08), keep)
    pricer = SplitPricer(KERNEL, cone, ())
    random = np.random.default_rng(1)
    lifts = np.column_stack([*(random.dirichlet(np.ones(5), 6) / P), 1 + 0.01 * random.random(5)])
    mixed = pricer._make_allowed(lifts).entries
    for before, after in zip(lifts.T, mixed.T, strict=True):

        def lacks(v: Any) -> float:
            return float(keep * v.max() - (0.08 * v.sum() + (1 - 5 * 0.08) * v.min()))

        if lacks(before) < 0:
            assert after == pytest.approx(before)
        else:  # nothing is left over: the requirement is met with equality
            assert lacks(after) == pytest.approx(0.0, abs=1e-9)
            weight = (after - before) / (1 - before)
            assert weight == pytest.approx(np.full(5, weight[0]))


@pytest.mark.parametrize("cone", [
    ColumnCone(MinimumMass(5, 0.08), 0.55), ColumnCone(L1Ball(P, 0.3), 0.55),
    ColumnCone(MinimumMass(5, 0.08), 1.0),
])  # fmt: skip
def test_chords_bound_every_column(cone: ColumnCone) -> None:
    """Whatever the multipliers; a letter whose entries are next to fixed counts at its largest worth."""
    chords = ChordBound(KERNEL, cone)
    extreme = cone.extreme_columns(P, 10**4)
    assert extreme is not None
    lifts = np.column_stack([extreme, np.ones(5)])
    assert (lifts.max(axis=1) <= chords.caps + 1e-9).all()
    assert np.isfinite(chords.slopes).all()
    assert (np.abs(chords.slopes) < 10).all()
    random = np.random.default_rng(0)
    for rho in (np.zeros(5), random.normal(size=5)):
        most = (KERNEL.column_values(lifts) - (P * rho) @ lifts).max()
        assert chords.compute_bound(rho) >= most - 1e-9


def test_the_columns_in_use_and_those_nearest_to_it_are_kept() -> None:
    """Four hundred for each letter, by the worth less the costs."""
    random = np.random.default_rng(0)
    work: Any = object.__new__(_CutRounds)
    pool, worths, costs = random.random((2, 900)), random.random(900), np.array([0.7, 0.4])
    work.program = SimpleNamespace(space=SimpleNamespace(column_values=lambda lifts: worths))
    work.pool = pool
    used = np.zeros(900, dtype=bool)
    used[[5, 17, 800]] = True
    work._prune_pool(used, costs)
    near = worths - costs @ pool
    order = sorted(np.flatnonzero(~used).tolist(), key=lambda k: -float(near[k]))
    assert work.pool == pytest.approx(pool[:, [5, 17, 800, *order[:797]]])
