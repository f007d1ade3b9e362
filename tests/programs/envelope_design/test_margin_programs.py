"""The parts of envelope designs: ranges and boxes in exact numbers, bounds and programs by a dense one."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray, linear_program

from pmlopt import ExpectedGain, ExpectedLoss, Prior, certify, envelope_design
from pmlopt.programs.envelope_design.margin_programs import (
    BoxProof,
    MarginAscent,
    MarginPrograms,
    MarginRange,
    bound_gain,
    build_trivial_proof,
    list_start_margins,
)
from pmlopt.solvers.solver_result import NO_DEADLINE, MethodOptions

P = np.array([0.15, 0.35, 0.5])
EPSILON, DELTA = 0.6, 0.2
GAINS = np.array([[1.0, -0.3], [0.2, 0.7], [-0.4, 0.9]])
SPAN = MarginRange.from_prior(Prior(P), EPSILON, DELTA)
NO_LIMIT = MethodOptions(NO_DEADLINE, 1e-9)


def best_gain(caps: FloatArray, slopes: FloatArray, gains: FloatArray = GAINS) -> float:
    """The largest `E[g]` over `P <= c q + a b`, by a dense program."""
    n, m = gains.shape
    sums = np.zeros((n, n * m + m))
    ratios = np.zeros((n * m, n * m + m))
    for x, y in itertools.product(range(n), range(m)):
        row = x * m + y
        sums[x, row] = 1.0
        ratios[row, row] = 1.0
        ratios[row, n * m + y] = -slopes[x]
        for other in range(n):
            ratios[row, other * m + y] -= caps[x] * P[other]
    total = np.append(np.zeros(n * m), np.ones(m))
    found = linear_program(
        np.append(-(P[:, None] * gains).ravel(), np.zeros(m)),
        A_ub=np.vstack([ratios, total]),
        b_ub=np.append(np.zeros(n * m), DELTA),
        A_eq=sums,
        b_eq=np.ones(n),
    )
    return -float(found.fun)


def exact_bound(caps: FloatArray, slopes: FloatArray, rows: FloatArray, at: FloatArray) -> Fraction:
    """The bound of `bound_gain` for caps of at least 0, in exact numbers."""
    p, c, a, rho, theta = (
        [Fraction(float(number)) for number in numbers] for numbers in (P, caps, slopes, rows, at)
    )
    letters, outputs = range(len(p)), range(len(theta))
    over = [
        [max(Fraction(0), Fraction(float(GAINS[x, y])) - rho[x] - theta[y]) for y in outputs]
        for x in letters
    ]
    bad = max(sum((p[x] * a[x] * over[x][y] for x in letters), Fraction(0)) for y in outputs)
    good = max(
        theta[y] + sum((p[x] * c[x] * over[x][y] for x in letters), Fraction(0)) for y in outputs
    )
    return sum((p[x] * rho[x] for x in letters), Fraction(0)) + Fraction(DELTA) * bad + good


def test_a_range_has_the_rooms_and_margins_of_its_definition_rounded_up() -> None:
    with localcontext() as digits:
        digits.prec = 60
        growth = Fraction(Decimal(EPSILON).exp() - 1)
    most = growth / (1 - Fraction(DELTA))
    assert pytest.approx(math.exp(EPSILON), rel=1e-15) == SPAN.ratio
    for x, p in enumerate(P.tolist()):
        room = 1 / Fraction(p) - Fraction(SPAN.ratio)
        assert room <= Fraction(float(SPAN.excess_ratios[x])) <= room + Fraction(1, 10**12)
        assert most <= Fraction(float(SPAN.max_margins[x])) <= most + Fraction(1, 10**12)
    wide = MarginRange.from_prior(Prior(P), 1.5, DELTA)  # 1 / 0.35 and 1 / 0.5 are below e^1.5
    assert (wide.excess_ratios[1:] == 0).all()
    assert (wide.max_margins[1:] == 0).all()
    assert wide.max_margins[0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_box_allows_what_each_of_its_margins_allows_and_no_more_at_its_ends(seed: int) -> None:
    ends = np.sort(np.random.default_rng(seed).random((2, 3)), axis=0) * SPAN.max_margins
    lower, upper = ends
    caps, slopes = SPAN.relax_box(lower, upper)
    largest = 1 / P
    for margins in np.linspace(lower, upper, 9):
        for ratio in np.linspace(np.zeros(3), largest, 40):
            least = np.maximum(0.0, (ratio - SPAN.ratio + margins) / margins)
            assert (ratio <= caps + slopes * least + 1e-12).all()
    # the line passes through the smallest mass of both ends
    assert caps == pytest.approx(SPAN.ratio - lower, abs=1e-12)
    at_most = 1 + (largest - SPAN.ratio) / upper
    assert caps + slopes * at_most == pytest.approx(largest, abs=1e-12)
    for x in range(3):
        u, room, low = (Fraction(float(v[x])) for v in (upper, SPAN.excess_ratios, lower))
        assert Fraction(float(slopes[x])) >= u * (room + low) / (u + room)
        assert Fraction(float(caps[x])) >= Fraction(SPAN.ratio) - low


@pytest.mark.parametrize("margins", [[0.2, 0.3, 0.1], [0.5, 0.0, 0.4], [1.0, 0.6, 0.8]])
def test_the_program_of_margins_is_solved_and_its_multipliers_prove_it(
    margins: list[float],
) -> None:
    cut = np.array(margins)
    caps = SPAN.ratio - cut
    found = MarginPrograms(SPAN, GAINS, NO_LIMIT).solve_program(caps, cut)
    best = best_gain(caps, cut)
    assert found.gain == pytest.approx(best, abs=1e-9)
    assert float((P[:, None] * GAINS * found.matrix).sum()) == pytest.approx(best, abs=1e-9)
    assert found.matrix.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-9)
    assert found.bad.sum() <= DELTA + 1e-9
    allowed = np.outer(caps, P @ found.matrix) + np.outer(cut, found.bad)
    assert (found.matrix <= allowed + 1e-9).all()
    proved = bound_gain(SPAN, GAINS, caps, cut, found.rows, found.thresholds)
    assert best - 1e-9 <= float(proved) <= best + 1e-9
    over = P[:, None] * (GAINS - found.rows[:, None] - found.thresholds)
    assert (found.prices >= over - 1e-9).all()
    spent = P @ found.rows + DELTA * (cut @ found.prices).max()
    assert spent + (found.thresholds + caps @ found.prices).max() == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_any_multipliers_bound_the_gain_also_where_caps_are_negative(seed: int) -> None:
    random = np.random.default_rng(seed)
    slopes = random.uniform(0.5, 2.5, 3)
    caps = random.uniform(1.0, 2.0, 3)
    if seed % 2:
        caps[seed % 3], slopes[seed % 3] = -0.3, 8.0  # what is needed is 0.3 / 8 of each output
    best = best_gain(caps, slopes)
    rows, thresholds = random.normal(size=(8, 3)), random.normal(size=(8, 2))
    bounds = bound_gain(
        SPAN, GAINS, np.tile(caps, (8, 1)), np.tile(slopes, (8, 1)), rows, thresholds
    )
    assert (bounds >= best - 1e-12).all()
    found = MarginPrograms(SPAN, GAINS, NO_LIMIT).solve_program(caps, slopes)
    assert found.gain == pytest.approx(best, abs=1e-9)
    proved = float(bound_gain(SPAN, GAINS, caps, slopes, found.rows, found.thresholds))
    assert best - 1e-12 <= proved <= best + (0.1 if seed % 2 else 1e-9)


def test_what_negative_caps_need_is_taken_from_the_mass() -> None:
    slopes = np.array([2.0, 1.0, 1.0])
    caps = np.array([-0.3, 1.2, 1.5])
    rows, thresholds = np.array([0.1, -0.2, 0.3]), np.array([0.2, -0.1])
    found = bound_gain(SPAN, GAINS, caps, slopes, rows, thresholds)
    over = np.maximum(GAINS - rows[:, None] - thresholds, 0.0)
    least = 0.15
    expected = (
        P @ rows
        + (DELTA - least) * ((P * slopes) @ over).max()
        + (thresholds + (P * (caps + least * slopes)) @ over).max()
    )
    assert float(found) == pytest.approx(expected, abs=1e-12)
    none = bound_gain(SPAN, GAINS, np.array([-0.5, 1.2, 1.5]), slopes, rows, thresholds)
    assert float(none) == -math.inf


@pytest.mark.parametrize("large", ["rows", "thresholds", "gains", "caps", "slopes", "none"])
def test_rounding_never_lowers_a_bound(large: str) -> None:
    random = np.random.default_rng(7)
    for _ in range(20):
        sizes = {name: 30.0 if name == large else 0.3 for name in ("rows", "thresholds")}
        caps = random.random(3) * (90.0 if large == "caps" else 1.0)
        slopes = random.random(3) * (90.0 if large == "slopes" else 1.0)
        rows = sizes["rows"] * random.normal(size=3)
        at = sizes["thresholds"] * random.normal(size=2)
        if large == "gains":
            rows, at = rows / 100, at / 100
        exact = exact_bound(caps, slopes, rows, at)
        found = Fraction(float(bound_gain(SPAN, GAINS, caps, slopes, rows, at)))
        assert exact < found <= exact + Fraction(1, 10**8)


def test_a_step_of_the_margins_adds_its_worth_to_the_right_side() -> None:
    margins, worth = np.array([0.2, 0.3, 0.1]), np.array([0.4, -0.1])
    caps = SPAN.ratio - margins
    reach = -np.array([0.1, 0.2, 0.05]), np.array([0.3, 0.1, 0.2])
    found = MarginPrograms(SPAN, GAINS, NO_LIMIT).solve_program(caps, margins, worth, reach)
    assert (found.step >= reach[0] - 1e-9).all()
    assert (found.step <= reach[1] + 1e-9).all()
    allowed = np.outer(caps, P @ found.matrix) + np.outer(margins, found.bad)
    assert (found.matrix <= allowed + np.outer(found.step, worth) + 1e-9).all()
    assert found.gain == pytest.approx(float((P[:, None] * GAINS * found.matrix).sum()), abs=1e-9)
    still = MarginPrograms(SPAN, GAINS, NO_LIMIT).solve_program(caps, margins)
    assert found.gain > still.gain + 1e-3
    # the ratios of the first output are those whose step has a positive worth
    assert found.step[0] == pytest.approx(0.3, abs=1e-9)


@pytest.mark.parametrize("worth", [[0.4, -0.1], [-0.2, 0.3], [0.1, 0.1]])
def test_steps_of_all_margins_are_found_as_by_a_dense_program(worth: list[float]) -> None:
    margins = np.array([0.2, 0.3, 0.1])
    gains = GAINS[[1, 2, 0]]  # here each letter's step counts
    caps, (n, m) = SPAN.ratio - margins, gains.shape
    low, high = np.array([-0.1, -0.2, -0.05]), np.array([0.3, 0.1, 0.2])
    programs = MarginPrograms(SPAN, gains, NO_LIMIT)
    found = programs.solve_program(caps, margins, np.array(worth), (low, high))
    sums, ratios = np.zeros((n, n * m + m + n)), np.zeros((n * m + 1, n * m + m + n))
    for x, y in itertools.product(range(n), range(m)):
        row = x * m + y
        sums[x, row] = ratios[row, row] = 1.0
        ratios[row, n * m + y], ratios[row, n * m + m + x] = -margins[x], -worth[y]
        for other in range(n):
            ratios[row, other * m + y] -= caps[x] * P[other]
    ratios[-1, n * m : n * m + m] = 1.0
    best = linear_program(
        np.append(-(P[:, None] * gains).ravel(), np.zeros(m + n)),
        A_ub=ratios,
        b_ub=np.append(np.zeros(n * m), DELTA),
        A_eq=sums,
        b_eq=np.ones(n),
        bounds=[*[(0, None)] * (n * m + m), *zip(low, high, strict=True)],
    )
    assert found.gain == pytest.approx(-float(best.fun), abs=1e-9)


def test_steps_of_an_ascent_stay_within_the_range_and_count_where_they_gain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """First by a quarter of the largest margin; then by more where the new program gains, or by less."""
    programs = MarginPrograms(SPAN, GAINS, NO_LIMIT)
    most = float(SPAN.max_margins[0])
    begin = np.array([0.1 * most, 0.9 * most, 0.5 * most])
    start = programs.solve_at(begin)
    point, asked, tried = start.solution, [], []
    promised = iter([0.3, 0.4, 0.5e-9])

    def solve(caps: FloatArray, slopes: FloatArray, worth: FloatArray, bounds: Any) -> Any:
        asked.append((caps, slopes, worth, bounds))
        step = np.array([0.05, -0.02, 0.01])
        return replace(point, gain=point.gain + next(promised), step=step)

    def solve_at(margins: FloatArray) -> MarginAscent:
        tried.append(margins)
        return MarginAscent(margins, replace(point, gain=point.gain - 1.0))

    monkeypatch.setattr(programs, "solve_program", solve)
    monkeypatch.setattr(programs, "solve_at", solve_at)
    programs.scale = 1.0
    assert programs.ascend_margins(start) is start
    for step, (caps, slopes, worth, (low, high)) in zip((0.25, 1 / 16, 1 / 64), asked, strict=True):
        assert caps == pytest.approx(SPAN.ratio - begin)
        assert slopes.tolist() == begin.tolist()
        assert worth == pytest.approx(point.bad - P @ point.matrix)
        assert low == pytest.approx(-np.minimum(begin, step * most))
        assert high == pytest.approx(np.minimum(SPAN.max_margins - begin, step * most))
    assert len(tried) == 2  # the third step promises less than 1e-9 of the range
    assert tried[0] - begin == pytest.approx([0.05, -0.02, 0.01])


@pytest.mark.parametrize("margins", [[0.0, 0.0, 0.0], [0.5, 0.1, 0.4]])
def test_the_declared_program_has_the_optimum_at_its_margins(margins: list[float]) -> None:
    program = envelope_design(P, EPSILON, DELTA, ExpectedGain(GAINS), outputs=["a", "b"])
    program.margins.value = np.array(margins)[:, None]
    found = float(program.problem.solve(solver="CLARABEL"))
    cut = np.array(margins)
    assert found == pytest.approx(best_gain(SPAN.ratio - cut, cut), abs=1e-6)


def test_a_bound_on_a_loss_is_proved_to_its_rounding() -> None:
    program = envelope_design(P, EPSILON, DELTA, ExpectedLoss(1 - GAINS), outputs=["a", "b"])
    certificate = certify(program, np.full((3, 2), 0.5)).certificate
    bound = certificate.recompute_numbers()[1]
    for claimed, holds in ((bound, True), (bound - 1e-9, True), (bound + 1e-9, False)):
        claims = replace(certificate, bound=claimed).checks()
        assert next(claim.holds for claim in claims if claim.name == "bound") is holds


def test_an_ascent_reaches_the_best_margins_of_a_grid() -> None:
    programs = MarginPrograms(SPAN, GAINS, NO_LIMIT)
    starts = [programs.solve_at(margins) for margins in list_start_margins(SPAN)]
    ends = [programs.ascend_margins(start) for start in starts]
    for start, end in zip(starts, ends, strict=True):
        assert end.solution.gain >= start.solution.gain
        assert (end.margins >= 0).all()
        assert (end.margins <= SPAN.max_margins).all()
        again = best_gain(SPAN.ratio - end.margins, end.margins)
        assert end.solution.gain == pytest.approx(again, abs=1e-9)
    most = float(SPAN.max_margins[0])
    grid = itertools.product(np.linspace(0.0, most, 4), repeat=3)
    best = max(best_gain(SPAN.ratio - np.array(s), np.array(s)) for s in grid)
    assert max(end.solution.gain for end in ends) >= best - 1e-9
    assert ends[1].solution.gain > starts[1].solution.gain + 1e-3


def test_the_boxes_of_a_proof_are_cut_where_it_states() -> None:
    most, cut = SPAN.max_margins, 0.3
    random = np.random.default_rng(3)
    rows, thresholds = random.normal(size=(2, 3)), random.normal(size=(2, 2))
    proof = BoxProof(np.array([1, -1, -1]), np.array([cut, 0.0, 0.0]), rows, thresholds)
    low_end, high_start = most.copy(), np.zeros(3)
    low_end[1] = high_start[1] = cut
    boxes = [(np.zeros(3), low_end), (high_start, most)]
    each = [
        float(bound_gain(SPAN, GAINS, *SPAN.relax_box(*box), rows[k], thresholds[k]))
        for k, box in enumerate(boxes)
    ]
    assert abs(each[0] - each[1]) > 1e-6
    assert proof.compute_bound(SPAN, GAINS) == pytest.approx(max(each), abs=1e-14)
    swapped = BoxProof(proof.letters, proof.cuts, rows[::-1], thresholds[::-1])
    assert swapped.compute_bound(SPAN, GAINS) != pytest.approx(max(each), abs=1e-9)
    for letters, cuts in (
        ([3, -1, -1], [cut, 0, 0]),
        ([1, -1], [cut, 0]),
        ([1, -1, -1], [9.0, 0, 0]),
    ):
        broken = BoxProof(np.array(letters), np.array(cuts), rows, thresholds)
        assert broken.compute_bound(SPAN, GAINS) == math.inf


def test_the_trivial_proof_is_the_largest_gain_of_each_letter() -> None:
    found = build_trivial_proof(GAINS).compute_bound(SPAN, GAINS)
    assert found == pytest.approx(0.15 * 1.0 + 0.35 * 0.7 + 0.5 * 0.9, abs=1e-12)


def test_a_search_begins_at_none_at_equal_and_at_separate_margins() -> None:
    starts = list_start_margins(SPAN)
    most, least = float(SPAN.max_margins[0]), math.expm1(EPSILON)
    assert starts[0].tolist() == [0.0, 0.0, 0.0]
    assert any(start == pytest.approx(np.full(3, least), abs=1e-12) for start in starts)
    for x in range(3):
        assert any((start == most * (np.arange(3) == x)).all() for start in starts)
