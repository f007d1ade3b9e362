"""What a search for a trade-off keeps: its gap, what an audit may leave, and the cells that are left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import distortion_leakage, leakage_distortion
from pmlopt.model.queries import ModularSum
from pmlopt.programs.tradeoff import cutting_planes
from pmlopt.programs.tradeoff.cutting_planes import (
    COARSE_GAP_CLOSED,
    GAP_CLOSED,
    AuditedMechanism,
    CuttingPlanePhase,
    TradeoffSearch,
)
from pmlopt.programs.tradeoff.grouped_rows import GroupedRows, plan_groupings
from pmlopt.solvers.solver_result import NO_DEADLINE

LEAKAGE = leakage_distortion(ModularSum(2, 3), 0.2, 0.7)
DISTORTION = distortion_leakage(ModularSum(2, 3), 0.2, 0.7)


def test_an_audit_leaves_nine_tenths_of_the_gap_and_counts_its_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[float, int, float]] = []

    def audit(*args: Any, **options: Any) -> SimpleNamespace:
        asked.append((options["sufficient_bound"], options["nodes"], args[2]))
        return SimpleNamespace(bound=0.4, proofs=[SimpleNamespace(cells=range(45))])

    monkeypatch.setattr(cutting_planes, "audit_leakage", audit)
    search = TradeoffSearch(LEAKAGE, 0.02, 0, NO_DEADLINE, lower_bound=0.05, remaining_cells=50)
    search.audit_mechanism(LEAKAGE.constant_matrix)
    search.audit_mechanism(LEAKAGE.constant_matrix, 7, lower=0.1)
    assert asked[0] == pytest.approx((0.05 + 0.018, 50, 0.005))
    assert asked[1] == pytest.approx((0.1 + 0.018, 5, 0.005))
    assert search.remaining_cells == 50 - 2 * 45
    assert search.audits == 2
    assert search.best is not None
    assert search.best.value == 0.4


def test_a_gap_is_the_best_value_less_the_bound() -> None:
    search = TradeoffSearch(LEAKAGE, 0.02, 0, NO_DEADLINE, lower_bound=0.3)
    assert not search.is_gap_closed
    audit = search.audit_mechanism(LEAKAGE.constant_matrix)
    for value, closed in ((0.31, True), (0.33, False)):
        search.best = AuditedMechanism(LEAKAGE.constant_matrix, value, audit)
        assert search.is_gap_closed is closed
    phase = CuttingPlanePhase(search, plan_groupings(LEAKAGE)[0], NO_DEADLINE, True, 0.0)
    assert phase.end_reason is None
    phase.last_matrix, phase.objective_value = np.ones((1, 1)), 0.32
    coarse = None if phase.rows.is_finest else COARSE_GAP_CLOSED
    assert phase.end_reason == coarse
    phase.objective_value = 0.0
    assert phase.end_reason is None
    search.lower_bound = 0.32
    assert phase.end_reason == GAP_CLOSED


def test_equal_rows_are_at_their_best_where_the_program_of_these_rows_has_the_value() -> None:
    search = TradeoffSearch(LEAKAGE, 0.02, 0, NO_DEADLINE)
    audit = search.audit_mechanism(LEAKAGE.constant_matrix)
    search.best = AuditedMechanism(LEAKAGE.constant_matrix, 0.33, audit)
    one_group = GroupedRows(LEAKAGE, np.zeros(len(LEAKAGE.losses), dtype=np.int64))
    phase = CuttingPlanePhase(search, one_group, NO_DEADLINE, True, 0.0)
    phase.last_matrix = np.ones((1, 1))
    for objective, ending in ((0.32, COARSE_GAP_CLOSED), (0.3, None)):
        phase.objective_value = objective
        assert phase.end_reason == ending


def test_the_slack_of_a_leakage_costs_a_quarter_of_the_tolerance() -> None:
    search = TradeoffSearch(DISTORTION, 0.02, 0, NO_DEADLINE)
    phase = CuttingPlanePhase(search, plan_groupings(DISTORTION)[0], NO_DEADLINE, True, 0.0)
    assert phase.leakage_slack == pytest.approx(DISTORTION.limit / 4)
    phase.total_weight = 2.0
    assert phase.leakage_slack == pytest.approx(0.02 / 4 / 2)
    assert phase._min_improvement == pytest.approx(0.02 / 4 / 2 / 2)
