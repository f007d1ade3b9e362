"""What cutting a box of margins promises, and when boxes are cut at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt.programs.envelope_design import branch_and_bound
from pmlopt.programs.envelope_design.branch_and_bound import _compute_scores, search_margins


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
