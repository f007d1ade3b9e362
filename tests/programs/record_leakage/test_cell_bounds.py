"""Bounds on cells and the steps of the local method: formulas by hand, differences, and other optimisers."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.optimize import minimize

from pmlopt.measures.leakage import log_sum_exp
from pmlopt.model.queries.record_leakage_measures import (
    compute_dataset_entropy,
    compute_record_information,
)
from pmlopt.programs.exact.decimals import normalize_decimal_rows
from pmlopt.programs.record_leakage import cell_relaxation, local_ascent
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.record_leakage.branch_and_bound import CellSearch
from pmlopt.programs.record_leakage.cell_relaxation import LeakageRelaxation
from pmlopt.programs.record_leakage.local_ascent import (
    compute_informations,
    draw_starts,
    maximize_locally,
)
from pmlopt.programs.record_leakage.proof import CellPart, is_tree_valid
from pmlopt.solvers.solver_result import NO_DEADLINE

ROWS = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.1, 0.6]])
COUNTS = np.array([[3.0, 2.0, 0.0], [1.0, 4.0, 2.0]])
PARTS: tuple[CellPart, ...] = ("posteriors", "laws", "classes")


def small(entropy: float = 2.0) -> BoundedAdversary:
    """Two letters and three classes, one of which the first letter never meets."""
    with np.errstate(divide="ignore"):
        return BoundedAdversary(ROWS, np.log(COUNTS), entropy, math.log(COUNTS.sum()))


def two_outputs(entropy: float = 2.0) -> BoundedAdversary:
    return replace(small(entropy), rows=np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))


def narrow(relaxation: LeakageRelaxation, random: np.random.Generator) -> FloatArray:
    """(2, P, D, D) the cell of all laws, and one with two corners moved."""
    corners = np.repeat(relaxation.build_root()[0], 2, axis=0)
    moved = random.dirichlet(np.ones(corners.shape[-1]), size=corners.shape[1]) @ corners[1]
    corners[1, :, 0] = 0.6 * corners[1, :, 0] + 0.4 * moved[:, 0]
    return corners


def phi(part: FloatArray) -> float:
    used = part[part > 0]
    return float((used * np.log(used / part.sum())).sum())


def heights(relaxation: LeakageRelaxation, points: FloatArray) -> FloatArray:
    """(...) phi at points (..., D), one after the other."""
    inner = points @ ROWS if relaxation.part == "classes" else points
    return np.apply_along_axis(phi, -1, inner)


def parts_of(relaxation: LeakageRelaxation, joint: FloatArray) -> FloatArray:
    """(P, D) the parts of a law J."""
    laws = joint @ relaxation.adversary.rows
    return {"posteriors": laws.T, "laws": laws, "classes": joint}[relaxation.part]


def by_hand(
    relaxation: LeakageRelaxation, majorant: FloatArray, price: float, rho: FloatArray
) -> float:
    """The bound of the class's docstring, term by term."""
    adversary, free = relaxation.adversary, relaxation.free_count > 0
    outer = price if free else price + 1
    sums = []
    for a, t in itertools.product(range(2), range(3)):
        unit = np.zeros((2, 3))
        unit[a, t] = 1.0
        gain = float((majorant * parts_of(relaxation, unit)).sum()) - (
            adversary.rows[t] @ rho if free else 0
        )
        sums.append(COUNTS[a, t] * math.exp(gain / price))
    letters = np.array(sums).reshape(2, 3).sum(axis=1) ** (price / outer)
    value = outer * math.log(letters.sum()) - price * adversary.entropy
    return value + (float(np.exp(rho).sum()) - 1 if free else 0.0)


@pytest.mark.parametrize("part", PARTS)
def test_the_bound_of_a_cell_and_its_derivatives_are_those_of_the_formula(part: CellPart) -> None:
    random = np.random.default_rng(1)
    relaxation = LeakageRelaxation(small(), part)
    corners = narrow(relaxation, random)
    start = np.repeat(relaxation.build_root()[1], 2, axis=0)
    state = cell_relaxation._CellIterates(
        relaxation, corners, start + random.uniform(0, 0.3, start.shape)
    )
    everything = np.ones(2, dtype=bool)
    found, majorant, bound, _ = state.expand_results(everything)
    for at in range(2):
        rho = found[at, found.shape[1] - relaxation.free_count :]
        value = by_hand(relaxation, majorant[at], found[at, 0], rho)
        assert state.value[at] == pytest.approx(value, rel=1e-12)
        assert 0 < bound[at] - value < 1e-12
        values = (corners[at] @ majorant[at][..., None])[..., 0]
        assert (values >= heights(relaxation, corners[at]) - 1e-15).all()
    gradient, hessian = state.compute_derivatives()
    for place in range(state.point.shape[1]):
        unit = np.zeros(state.point.shape[1])
        unit[place] = 1e-5
        slopes = []
        for sign in (1, -1):
            moved = cell_relaxation._CellIterates(relaxation, corners, start)
            moved.point = state.point + sign * unit
            moved.evaluate()
            slopes.append((moved.value, moved.compute_derivatives()[0]))
        (up, upper), (down, lower) = slopes
        assert gradient[:, place] == pytest.approx((up - down) / 2e-5, abs=1e-8)
        assert hessian[:, :, place] == pytest.approx((upper - lower) / 2e-5, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("part", PARTS)
def test_a_few_newton_steps_end_at_the_optimum_of_a_cell(
    part: CellPart, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_relaxation, "MIN_GAIN_SHARE", 0.0)
    counts = np.maximum(COUNTS, 1.0)
    relaxation = LeakageRelaxation(
        BoundedAdversary(ROWS, np.log(counts), 2.54, math.log(counts.sum())), part
    )
    near = parts_of(relaxation, relaxation.adversary.uniform_law)
    corners = (np.eye(near.shape[1]) + (near / near.sum(axis=1, keepdims=True))[:, None]) / 2
    found = relaxation.minimize_bounds(corners[None], relaxation.build_root()[1], 0.0)
    assert found.steps <= 15
    state = cell_relaxation._CellIterates(relaxation, corners[None], found.multipliers)
    slope, signed = state.compute_derivatives()[0], state.signed
    assert state.value == pytest.approx(found.bound, abs=1e-12)
    # the conditions of an optimum, sufficient since the bound is convex
    assert slope[:, :signed].min() >= -1e-9
    assert np.abs(slope[:, :signed] * state.point[:, :signed]).max() <= 1e-9
    assert np.abs(slope[:, signed:]).max(initial=0.0) <= 1e-9


@pytest.mark.parametrize("part", PARTS)
def test_no_law_of_a_cell_leaks_more_than_its_bound(part: CellPart) -> None:
    random = np.random.default_rng(3)
    adversary = small(1.8)
    relaxation = LeakageRelaxation(adversary, part)
    corners, start = relaxation.build_root()
    found = relaxation.minimize_bounds(corners, start, 0.0)
    for weights in random.dirichlet(np.full(6, 0.5), size=40):
        joint = np.where(COUNTS > 0, weights.reshape(2, 3), 0.0)
        joint /= joint.sum()
        if compute_dataset_entropy(joint, adversary.log_counts) >= adversary.entropy:
            assert compute_record_information(joint, ROWS) <= found.bound[0]
    assert relaxation.compute_parts(found.joint)[0] == pytest.approx(
        parts_of(relaxation, found.joint[0])
    )


def test_a_step_ends_at_a_share_of_the_way_to_the_boundary() -> None:
    point, move = np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[-4.0, -4.0], [1.0, -0.5]])
    assert cell_relaxation._max_step_lengths(point, move) == pytest.approx([0.95 / 4, 1.0])


@pytest.mark.parametrize("part", PARTS)
def test_splits_are_where_the_chord_is_farthest_above_phi(part: CellPart) -> None:
    """The simplex, the edge and the point, by loops over all of them."""
    random = np.random.default_rng(4)
    search = CellSearch(small())
    relaxation = LeakageRelaxation(small(), part)
    search.__dict__["relaxation"] = relaxation
    corners = narrow(relaxation, random)
    joint = np.where(COUNTS > 0, random.dirichlet(np.ones(6), size=2).reshape(2, 2, 3), 0.0)
    simplex, ends, share = search._choose_splits(corners, joint)
    for at in range(2):
        gaps, edges = [], []
        for points, piece in zip(corners[at], parts_of(relaxation, joint[at]), strict=True):
            weights = np.maximum(np.linalg.solve(points.T, piece), 0.0)
            values = heights(relaxation, points)
            whole = weights.sum()
            middle = weights @ points / whole
            gaps.append(float(weights @ values) - whole * float(heights(relaxation, middle)))
            bends = {}
            for one, two in itertools.combinations(range(len(points)), 2):
                both = weights[one] + weights[two]
                first = weights[one] / both if both > 0 else 0.5
                between = first * points[one] + (1 - first) * points[two]
                bend = weights[one] * values[one] + weights[two] * values[two]
                bends[one, two] = bend - both * float(heights(relaxation, between)), first
            edges.append(max((bend, edge, first) for edge, (bend, first) in bends.items()))
        assert simplex[at] == int(np.argmax(gaps))
        _, edge, first = edges[simplex[at]]
        assert tuple(ends[at]) == edge
        assert share[at] == pytest.approx((first + 0.5) / 2, abs=1 / 2048)


@pytest.mark.parametrize("part", PARTS)
def test_a_search_splits_cells_until_the_gap_is_closed(part: CellPart) -> None:
    adversary = two_outputs(1.9) if part == "laws" else small(1.9)
    search = CellSearch(adversary)
    search.__dict__["relaxation"] = LeakageRelaxation(adversary, part)
    search.improve_by_ascent(search.best[None], 100, NO_DEADLINE)
    search.run(0.0, 0.02, 60, NO_DEADLINE)
    assert search.value <= search.upper_bound <= search.value + 0.02
    proof = search.build_proof(0)
    assert proof.cells is not None
    rows, log_counts = normalize_decimal_rows(adversary.rows), adversary.log_counts
    assert is_tree_valid(proof.cells, log_counts, 1.9, search.upper_bound + 1e-12, rows)
    assert not is_tree_valid(proof.cells, log_counts, 1.9, search.value - 1e-9, rows)


# the local method


def test_a_climb_ends_where_no_law_near_it_leaks_more() -> None:
    adversary = small(2.2)
    first = draw_starts(adversary, 3, 0)
    for joint in first:
        assert joint.sum() == pytest.approx(1.0)
        assert (joint[COUNTS == 0] == 0).all()
        assert compute_dataset_entropy(joint, adversary.log_counts) >= 2.2
    laws, values = maximize_locally(adversary, first)
    assert values == pytest.approx(
        [compute_record_information(joint, ROWS) for joint in laws], abs=1e-14
    )
    assert (values >= compute_informations(first, ROWS)).all()
    best = laws[int(values.argmax())]
    assert compute_dataset_entropy(best, adversary.log_counts) == pytest.approx(2.2, abs=1e-9)
    used = COUNTS > 0

    def joint_of(point: FloatArray) -> FloatArray:
        joint = np.zeros(COUNTS.shape)
        joint[used] = np.exp(point) / np.exp(point).sum()
        return joint

    found = minimize(
        lambda point: -compute_record_information(joint_of(point), ROWS),
        np.log(np.maximum(best[used], 1e-4)),
        constraints={
            "type": "ineq",
            "fun": lambda point: (
                compute_dataset_entropy(joint_of(point), adversary.log_counts) - 2.2
            ),
        },
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert values.max() == pytest.approx(-found.fun, abs=1e-7)


def test_the_price_of_the_entropy_is_found_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    adversary = small(1.9)
    log_counts, entropy = adversary.shifted_counts
    exponents = np.random.default_rng(5).normal(size=(4, 2, 3))
    calls: list[int] = []

    def counted(values: FloatArray, axis: int | None = None) -> FloatArray:
        calls.append(values.size)
        return log_sum_exp(values, axis)

    monkeypatch.setattr(local_ascent, "log_sum_exp", counted)
    guess, moved = local_ascent._solve_entropy_prices(
        log_counts, exponents, entropy, np.zeros(4), np.full(4, np.inf)
    )
    assert len(calls) <= 2 * 20
    for joint, gains, price in zip(moved, exponents, np.exp(guess), strict=True):
        assert joint.sum() == pytest.approx(1.0)
        assert compute_dataset_entropy(joint, adversary.log_counts) == pytest.approx(1.9, abs=1e-12)
        inner = np.array([
            price * math.log(sum(c * math.exp(g / price) for c, g in zip(counts, gain, strict=True)))
            for counts, gain in zip(COUNTS, gains, strict=True)
        ])  # fmt: skip
        letters = np.exp(inner / (1 + price))
        assert joint.sum(axis=1) == pytest.approx(letters / letters.sum())
        given = COUNTS * np.exp(gains / price)
        assert joint / joint.sum(axis=1, keepdims=True) == pytest.approx(
            given / given.sum(axis=1, keepdims=True)
        )


@pytest.mark.parametrize("adversary", [small(), two_outputs()], ids=["three", "two"])
@pytest.mark.parametrize("part", PARTS)
def test_classes_that_a_letter_never_meets_loosen_no_bound(
    part: CellPart, adversary: BoundedAdversary
) -> None:
    """Next to a narrower cell, that of all laws has multipliers that no sum has, which grow without end."""
    relaxation = LeakageRelaxation(adversary, part)
    corners = narrow(relaxation, np.random.default_rng(1))
    start = np.repeat(relaxation.build_root()[1], 2, axis=0)
    state = cell_relaxation._CellIterates(relaxation, corners, start)
    for _ in range(25):
        state.advance()
    _, majorant, bound, law = state.expand_results(np.ones(2, dtype=bool))
    assert abs(bound[0] - state.best[0]) < 1e-11
    reached = (corners[0] @ majorant[0][..., None])[..., 0]
    assert (reached >= relaxation.evaluate_phi(corners[0]) - 1e-13).all()
    assert bound[0] >= compute_record_information(law[0], adversary.rows)
