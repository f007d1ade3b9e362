"""Which side the tolerances of margins are on, here ones that can be seen, and how many boxes there are."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pmlopt import Prior
from pmlopt.programs.envelope_design import branch_and_bound, margin_programs
from pmlopt.programs.envelope_design.branch_and_bound import _divide_box, search_margins
from pmlopt.programs.envelope_design.margin_programs import MarginRange, bound_gain

P = np.array([0.1, 0.3, 0.6])


def test_ranges_and_boxes_are_rounded_outward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margin_programs, "MARGIN_RTOL", 0.1)
    span = MarginRange.from_prior(Prior(P), 0.7, 0.2)
    ratio = math.exp(0.7)
    assert span.ratio == pytest.approx(ratio)
    room = np.where(ratio * P < 1, 1 / P - ratio + 0.1 / P, 0.0)
    assert span.excess_ratios == pytest.approx(room)
    most = (ratio - 1) / 0.8 * 1.1
    assert span.max_margins == pytest.approx(np.where(room > 0, most, 0.0))
    lower, upper = np.array([0.1, 0.2, 0.0]), np.array([0.5, 0.4, 0.0])
    caps, slopes = span.relax_box(lower, upper)
    assert caps == pytest.approx(1.1 * ratio - lower)
    whole = np.where(upper + room > 0, upper + room, 1.0)
    assert slopes == pytest.approx(1.1 * upper * (room + lower) / whole)


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.02])
def test_what_negative_caps_need_is_rounded_down_and_what_it_gives_up(
    monkeypatch: pytest.MonkeyPatch, delta: float
) -> None:
    """By the formula, and with no bound where so much is missing that rounding does not explain it."""
    monkeypatch.setattr(margin_programs, "MARGIN_RTOL", 0.1)
    monkeypatch.setattr(margin_programs, "bound_sum_rounding", lambda terms, size: 0.01)
    random = np.random.default_rng(0)
    gains, rows, thresholds = random.random((3, 4)), random.random(3) / 3, random.random(4) / 3
    caps, slopes = np.array([0.8, -0.3, 0.5]), np.array([0.6, 1.0, 0.9])
    span: Any = SimpleNamespace(pmf=P, delta=delta)
    least = 0.3 * 0.6  # of the second letter, less four tenths
    left, raised = delta - least, caps + slopes * least * 1.1
    over = np.maximum(gains - rows[:, None] - thresholds, 0.0)
    size = np.abs(rows).max() + np.abs(thresholds).max() + gains.max()
    weight = 2 + float(P @ (np.abs(raised) + slopes))
    expected = (
        float(P @ rows) + max(left, 0.0) * ((P * slopes) @ over).max()
        + (thresholds + (P * raised) @ over).max() + 0.01 * weight * size
    )  # fmt: skip
    found = float(bound_gain(span, gains, caps, slopes, rows, thresholds))
    assert found == (pytest.approx(expected) if left >= -0.1 else -math.inf)


def search_of(bound: float) -> tuple[Any, Any, Any]:
    best: Any = SimpleNamespace(solution=SimpleNamespace(gain=1.0))
    programs: Any = SimpleNamespace(
        span=SimpleNamespace(max_margins=np.ones(2)), gains=np.ones((2, 2)), expired=False, scale=1.0
    )  # fmt: skip
    box: Any = SimpleNamespace(bound=bound, lower=np.zeros(2), upper=np.ones(2), parts=())
    return best, programs, box


def test_boxes_are_cut_as_long_as_two_more_are_within_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of at least twenty boxes nineteen: one, and two for each cut."""
    best, programs, box = search_of(2.0)
    cuts = []

    def divide(programs: Any, box: Any, best: Any) -> Any:
        cuts.append(box)
        box.parts = tuple(
            SimpleNamespace(bound=2.0, lower=box.lower, upper=box.upper, parts=()) for _ in range(2)
        )
        return best

    monkeypatch.setattr(branch_and_bound, "MAX_BOX_ENTRIES", 1)
    monkeypatch.setattr(branch_and_bound, "_solve_from_starts", lambda *_: best)
    monkeypatch.setattr(branch_and_bound, "_make_box", lambda *_: box)
    monkeypatch.setattr(branch_and_bound, "_divide_box", divide)
    monkeypatch.setattr(branch_and_bound, "_collect_proof", lambda root: root)
    *_, text = search_margins(programs, 0.2)
    assert len(cuts) == 9
    assert text.startswith("19 boxes")


@pytest.mark.parametrize(
    ("scores", "letter"), [([0.0, 0.0, 0.0], 1), ([0.3, 0.2, 0.1], 0), ([0.3, 0.2, 0.9], 0)]
)
def test_a_box_is_halved_at_the_best_score_or_across_its_widest_side(
    monkeypatch: pytest.MonkeyPatch, scores: list[float], letter: int
) -> None:
    """The third side has no width, so that its score does not count."""
    best, programs, _ = search_of(0.5)
    programs.span.max_margins = np.ones(3)
    box: Any = SimpleNamespace(
        lower=np.array([0.6, 0.0, 0.9]), upper=np.array([0.8, 0.5, 0.9]), scores=np.array(scores)
    )
    made: list[tuple[Any, Any]] = []

    def make(programs: Any, lower: Any, upper: Any, box: Any) -> Any:
        made.append((lower, upper))
        return SimpleNamespace(bound=0.5)

    monkeypatch.setattr(branch_and_bound, "_make_box", make)
    assert _divide_box(programs, box, best) is best
    (low, up), (down, high) = made
    middle = (box.lower[letter] + box.upper[letter]) / 2
    assert (low == box.lower).all()
    assert (high == box.upper).all()
    for side in (up, down):
        assert side[letter] == pytest.approx(middle)
