"""Meeting in the middle finds every column of a box above a threshold, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.brute_force_columns import Problem, assert_allowed, extreme, problems, rounded

from pmlopt.model.uncertainty.columns import Box
from pmlopt.model.utility import MutualInformation
from pmlopt.programs.subconvex import search_pricing as knapsack_meeting
from pmlopt.programs.subconvex.columns import Kernel
from pmlopt.programs.subconvex.search_pricing import columns_above

boxes = problems(["pml", "tied", "lip"])


@settings(max_examples=40, deadline=None)
@given(boxes, st.sampled_from([1e-6, 1e-3, 0.1, 1.0, math.inf]))
def test_it_finds_every_column_above_the_threshold_and_no_other(problem: Problem, depth: float) -> None:
    box = problem.families[0]
    assert isinstance(box, Box)
    every = extreme(problem.exact, box)
    value = {column: problem.value([float(v) for v in column]) for column in every}
    threshold = max(value.values()) - (depth if depth < math.inf else 1e3 * problem.size)
    meeting = columns_above(problem.kernel, box, problem.rho, threshold, 10_000)
    assert meeting is not None
    assert meeting.best == pytest.approx(max(value.values()), abs=1e-9 * problem.size)
    found = rounded(meeting.columns.lifts(problem.p))
    near = 1e-9 * problem.size
    sure = {column for column in every if value[column] > threshold + near}
    assert set(rounded(sure)) <= set(found)
    assert set(found) <= set(rounded({column for column in every if value[column] > threshold - near}))
    assert_allowed(problem.p, meeting.columns.lifts(problem.p), box)


@settings(max_examples=25, deadline=None)
@given(boxes)
def test_past_the_best_there_is_nothing(problem: Problem) -> None:
    box = problem.families[0]
    assert isinstance(box, Box)
    meeting = columns_above(problem.kernel, box, problem.rho, problem.best() + 1e-6 * problem.size, 5)
    assert meeting is not None
    assert (meeting.best, len(meeting.columns)) == (-math.inf, 0)


def test_where_there_are_too_many_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(np.full(12, 1 / 12), MutualInformation().phi)
    assert columns_above(kernel, Box(0.0, 2.1), np.zeros(12), -10.0, 5) is not None
    for limit in ("MOST_HALF_SUBSETS", "MOST_MEETINGS"):
        with monkeypatch.context() as patch:
            patch.setattr(knapsack_meeting, limit, 10)
            assert columns_above(kernel, Box(0.0, 2.1), np.zeros(12), -10.0, 5) is None
