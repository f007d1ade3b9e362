"""What cutting a box of margins promises, and when boxes are cut at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import Prior
from pmlopt.programs.envelope_design import branch_and_bound
from pmlopt.programs.envelope_design.branch_and_bound import (
    _compute_scores,
    _make_box,
    search_margins,
)
from pmlopt.programs.envelope_design.margin_programs import MarginRange


def test_a_score_is_the_least_cost_of_violations_at_both_ends_and_the_middle() -> None:
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(4))
    matrix, bad, prices = (
        random.dirichlet(np.ones(3), 4),
        random.random(3) / 9,
        random.random((4, 3)),
    )
    programs: Any = SimpleNamespace(scale=2.0, span=SimpleNamespace(pmf=p, ratio=0.9))
    point: Any = SimpleNamespace(matrix=matrix, bad=bad, prices=prices)
    lower = np.array([0.0, 0.1, 0.3, 0.05])
    upper = np.array([0.4, 0.5, 0.35, 0.9])
    scores, likely = _compute_scores(programs, point, (lower, upper))
    law = p @ matrix
    for x in range(4):
        costs = {
            s: sum(
                (prices[x, y] + 0.1 * 2.0 * p[x])
                * max(0.0, matrix[x, y] - ((0.9 - s) * law[y] + s * bad[y]))
                for y in range(3)
            )
            for s in (lower[x], upper[x], (lower[x] + upper[x]) / 2)
        }
        assert scores[x] == pytest.approx(min(costs.values()))
        assert costs[likely[x]] == pytest.approx(scores[x])


def test_a_box_that_is_narrow_is_not_cut_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    best: Any = SimpleNamespace(solution=SimpleNamespace(gain=1.0))
    programs: Any = SimpleNamespace(
        span=SimpleNamespace(max_margins=np.ones(2)), gains=np.ones((2, 2)), expired=False
    )
    box: Any = SimpleNamespace(bound=2.0, lower=np.full(2, 0.5), upper=np.full(2, 0.5 + 1e-13))
    monkeypatch.setattr(branch_and_bound, "_solve_from_starts", lambda *_: best)
    monkeypatch.setattr(branch_and_bound, "_make_box", lambda *_: box)
    monkeypatch.setattr(branch_and_bound, "_collect_proof", lambda root: root)
    *_, text = search_margins(programs, 0.2)
    assert text == "1 box of margins, margins are as narrow as it takes"


def test_a_box_without_a_program_is_judged_by_its_sides_and_its_middle() -> None:
    """The multipliers of the box around it bound it all the same."""
    span = MarginRange.from_prior(Prior([0.15, 0.35, 0.5]), 0.6, 0.2)

    def fail(*_: Any) -> Any:
        raise ArithmeticError("no optimum")

    gains = np.eye(3)
    programs: Any = SimpleNamespace(span=span, gains=gains, expired=False, solve_program=fail)
    around: Any = SimpleNamespace(rows=gains.max(axis=1), thresholds=np.zeros(3))
    lower, upper = np.array([0.1, 0.2, 0.0]), np.array([0.3, 0.6, 0.4])
    box = _make_box(programs, lower, upper, around)
    assert box.scores == pytest.approx([0.2, 0.4, 0.4])
    assert box.likely_margins == pytest.approx([0.2, 0.4, 0.2])
    assert box.bound == pytest.approx(1.0)


@pytest.mark.parametrize(("bound", "divided"), [(1.15, 0), (1.25, 1)])
def test_boxes_are_cut_where_their_bound_is_above_the_best_by_more_than_is_allowed(
    monkeypatch: pytest.MonkeyPatch, bound: float, divided: int
) -> None:
    best: Any = SimpleNamespace(solution=SimpleNamespace(gain=1.0))
    programs: Any = SimpleNamespace(
        span=SimpleNamespace(max_margins=np.ones(2)), gains=np.ones((2, 2)), expired=False
    )
    box: Any = SimpleNamespace(bound=bound, lower=np.zeros(2), upper=np.ones(2), parts=())
    cut = []

    def divide(programs: Any, box: Any, best: Any) -> Any:
        cut.append(box)
        box.bound = 1.0
        return best

    monkeypatch.setattr(branch_and_bound, "_solve_from_starts", lambda *_: best)
    monkeypatch.setattr(branch_and_bound, "_make_box", lambda *_: box)
    monkeypatch.setattr(branch_and_bound, "_divide_box", divide)
    monkeypatch.setattr(branch_and_bound, "_collect_proof", lambda root: root)
    assert search_margins(programs, 0.2)[0] is best
    assert len(cut) == divided
