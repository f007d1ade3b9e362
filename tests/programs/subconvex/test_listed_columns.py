"""Columns given by their entries, and pricing from a list of them."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import designs as oracles

from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex.columns import Explicit, Kernel
from pmlopt.programs.subconvex.vertex_enumeration import VertexPricer

P = np.array([0.5, 0.3, 0.2])
COLUMNS = Explicit(np.array([[2.0, 1.0, 0.0, 2.0], [0.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 0.0]]))


def test_a_share_raises_what_lies_between_only() -> None:
    between = Explicit(np.array([[1.0], [0.5], [0.0]]) / 0.65)
    raised = between.lifts(P, 1e-6)[:, 0]
    assert raised[2] == 0
    assert raised[1] / raised[0] > 0.5
    assert raised[1] / raised[0] == pytest.approx(0.5, abs=1e-4)
    assert P @ raised == pytest.approx(1, abs=1e-15)
    assert COLUMNS.lifts(P) is COLUMNS.entries


def test_repeated_columns_are_kept_once() -> None:
    assert COLUMNS.distinct(P).entries.tolist() == COLUMNS[:3].entries.tolist()
    assert len(COLUMNS) == 4


@pytest.mark.parametrize("seed", range(8))
def test_the_best_columns_come_first(seed: int) -> None:
    rng = np.random.default_rng([72, seed])
    p = oracles.random_prior(rng, 4)
    entries = rng.exponential(size=(4, 30))
    columns = Explicit(entries / (p @ entries))
    rho = rng.normal(size=4)
    kernel = Kernel(p, MutualInformation().phi)
    values = p @ (columns.entries * np.log(columns.entries)) - (p * rho) @ columns.entries
    for worths in (kernel, kernel.worth):
        priced = VertexPricer(p, [columns], worths).price(rho, 5, 0.0)
        assert priced.best == priced.upper == pytest.approx(values.max(), abs=1e-12)
        best = np.argsort(-values)[:5]
        assert np.array_equal(priced.columns[0].entries, columns.entries[:, best])
        assert VertexPricer(p, [columns], worths).bound(rho, 0.0) == priced.upper
