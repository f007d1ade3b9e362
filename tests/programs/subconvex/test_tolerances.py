"""On which side of a capacity sets are that fill it but for a tolerance, here one that can be seen."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pmlopt.model.uncertainty.columns import StaircaseFamily
from pmlopt.programs.subconvex import vertex_enumeration
from pmlopt.programs.subconvex.vertex_enumeration import _count_family, _list_staircases

P = np.array([0.1, 0.12, 0.18, 0.25, 0.35])


@pytest.mark.parametrize("tolerance", [1e-9, 0.05, 0.2])
def test_staircases_are_on_sets_that_leave_room_beyond_the_tolerance(
    monkeypatch: pytest.MonkeyPatch, tolerance: float
) -> None:
    monkeypatch.setattr(vertex_enumeration, "CAPACITY_RTOL", tolerance)
    family = StaircaseFamily(1.4, 0.5)
    most = family.max_mass * (1 - tolerance)
    sets = [
        bits
        for bits in itertools.product([False, True], repeat=5)
        if 0 < P[list(bits)].sum() < most
    ]
    found = _list_staircases(P, family, 1000)
    assert found is not None
    assert sorted(map(tuple, found.high.tolist())) == sorted(sets)
    assert _count_family(P, family) == len(sets)
