"""Sets of priors: the least mean, exact and in floats, where it is attained, and its twin in cvxpy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray
from oracles.prior_sets import KINDS, Case, ball, exact, random_matrix, random_set
from strategies import MODEST, exact_law, mechanisms, priors

from pmlopt import (
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    InvariantPrior,
    L1Ball,
    MinimumMass,
    MutualInformation,
    Prior,
    confidence_ball,
    design,
    leakage_level,
    solve,
)
from pmlopt.core.records.converters import to_plain
from pmlopt.data.symmetry import reflection
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.uncertainty.center import Center

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def problems(draw: st.DrawFn, max_size: int = 5) -> tuple[Case, FloatArray]:
    """A set of any kind, and a matrix on its letters."""
    rng = np.random.default_rng(draw(SEEDS, label="seed"))
    n = draw(st.integers(1, max_size), label="letters")
    case = random_set(draw(st.sampled_from(KINDS), label="kind"), rng, n)
    return case, draw(mechanisms(n, 3), label="matrix")


# ---------------------------------------------------------------- the least mean


@settings(max_examples=30, deadline=None)
@given(problems())
def test_the_least_mean_is_that_of_the_linear_program(problem: tuple[Case, FloatArray]) -> None:
    case, matrix = problem
    expected = [case.defined.least(column) for column in matrix.T]
    assert case.priors.min_mean(matrix) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(problems(), SEEDS)
def test_rationals_near_any_numbers_are_a_prior_of_the_set(
    problem: tuple[Case, FloatArray], seed: int
) -> None:
    case, matrix = problem
    rng = np.random.default_rng(seed)
    member = case.priors.minimizer(matrix[:, 0])
    assert np.abs(case.priors.project_to_rationals(member).astype(float) - member).max() <= 1e-14
    far = 1e3 * rng.normal(size=len(member))
    for law in (member, rng.dirichlet(np.ones(len(member))), far, -np.abs(far), 0 * member):
        near = case.priors.project_to_rationals(law)
        assert sum(near) == 1
        assert min(near) >= 0
        assert case.defined.outside(near.astype(float)) <= 1e-9  # of a hull by a linear program
        whole = np.array([[int(v * 2**40)] for v in matrix[:, 0]], dtype=object)
        least, total = case.priors.min_mean_scaled(whole)  # no prior of the set is below it
        assert total * (near @ whole[:, 0]) >= least[0]


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(KINDS), st.lists(st.integers(0, 2**54), min_size=3, max_size=3))
def test_sums_of_integers_are_the_rational_least_mean(
    seed: int, kind: str, column: list[int]
) -> None:
    case = random_set(kind, np.random.default_rng(seed), 3)
    least, total = case.priors.min_mean_scaled(
        np.array([[value] for value in column], dtype=object)
    )
    assert isinstance(least[0], int)
    assert Fraction(least[0], total) == case.defined.exact_least(column)


@given(priors(2, 6, tiny=False), st.floats(0, 0.999))
@MODEST
def test_small_balls_have_the_form_of_proposition_2(p: FloatArray, share: float) -> None:
    radius = share * 2 * float(p.min())
    matrix = random_matrix(np.random.default_rng(len(p)), len(p), 4)
    printed = p @ matrix - radius / 2 * (matrix.max(axis=0) - matrix.min(axis=0))
    assert L1Ball(p, radius).min_mean(matrix) == pytest.approx(printed, abs=1e-14)
    # past its range it is needlessly strict
    p, column = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 2.0])
    assert L1Ball(p, 2.0).min_mean(column[:, None]) == pytest.approx([0.0])
    assert p @ column - (column.max() - column.min()) < 0


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.sampled_from(KINDS))
def test_mixtures_of_corners_are_in_the_set_and_laws_outside_are_not(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    case = random_set(kind, rng, n)
    corners = case.defined.corners()
    inside = rng.dirichlet(np.ones(len(corners))) @ corners
    if inside.min() > 1e-12:
        assert case.priors.contains(inside)
    other = rng.dirichlet(np.full(n, 0.5)) + 1e-9
    off = case.defined.outside(other / other.sum())
    if abs(off) > 1e-8:
        assert case.priors.contains(other / other.sum()) == (off < 0)


def test_priors_a_hair_outside_are_not_in_the_set() -> None:
    inside, outside = [0.5 + 1e-14, 0.5 - 1e-14], [0.5 + 1e-6, 0.5 - 1e-6]
    half = [0.5, 0.5]
    sets = [L1Ball(half, 0.0), MinimumMass(2, 0.5), ConvexHull([half]), Box(half, half)]
    assert all(one.contains(inside) and not one.contains(outside) for one in sets)
    assert not any(one.contains([0.5 + 1e-11, 0.5 - 1e-11]) for one in sets)


def test_sets_that_hold_the_same_priors_have_the_same_least_means() -> None:
    p, q, zeros, ones = (
        np.array([0.5, 0.3, 0.15, 0.05]),
        np.array([0.6, 0.4]),
        np.zeros(4),
        np.ones(4),
    )
    every, pairs = AllPriors(4), [[0.75, 0.25], [0.45, 0.55]]
    same: list[tuple[PriorSet, PriorSet]] = [
        (L1Ball(p, 2.0), every), (MinimumMass(4, 0.0), every), (Box(zeros, ones), every),
        (ConvexHull(np.eye(4)), every), (L1Ball(p, 0.0), ConvexHull([p])), (Box(p, p), ConvexHull([p])),
        (MinimumMass(4, 0.25), ConvexHull([ones / 4])), (Box(np.full(4, 0.1), ones), MinimumMass(4, 0.1)),
        (L1Ball(q, 0.3), ConvexHull(pairs)), (L1Ball(q, 1.0), ConvexHull([[1.0, 0.0], [0.1, 0.9]])),
        (L1Ball(q, 0.3), Box([0.45, 0.25], [0.75, 0.55])),
    ]  # fmt: skip
    for one, other in same:
        for seed in range(10):
            matrix = random_matrix(np.random.default_rng(seed), one.size, 4)
            assert one.min_mean(matrix) == pytest.approx(other.min_mean(matrix), abs=1e-14)
    counts, floats = Prior.from_counts({"a": 1, "b": 2}), Prior([1 / 3, 2 / 3], labels=["a", "b"])
    assert L1Ball(counts, 0.1) != L1Ball(floats, 0.1)
    assert to_plain(L1Ball(counts, 0.1))["center"]["counts"] == [1, 2]


@pytest.mark.parametrize("radius", [1e-9, 4e-9, 1e-3, 1.0])
def test_a_letter_of_a_billionth_can_be_emptied(radius: float) -> None:
    p = [1e-9, 0.5, 0.5 - 1e-9]
    for column in ([1, 0, 0], [0, 0, 1], [4, 2, 1]):
        defined = ball(exact_law(Prior(p).pmf), Fraction(radius))
        expected = float(defined.exact_least(column))
        found = L1Ball(p, radius).min_mean(np.array(column, dtype=float)[:, None])
        assert found == pytest.approx([expected], rel=1e-6, abs=1e-16)


@pytest.mark.parametrize("center", [[1.0, 0.0], [0.5, 0.5, 0.0]])
def test_a_centre_on_the_boundary_needs_a_radius(center: list[float]) -> None:
    assert L1Ball(center, 0.1).min_mean(np.eye(len(center)))[-1] == 0.0
    with pytest.raises(PrivacyError, match="probability 0 under every prior"):
        L1Ball(center, 0.0)
    for none in ([1.1, -0.1, 0.0], [0.5, 0.4, 0.0]):
        with pytest.raises(PriorError):
            L1Ball(none, 0.1)


# ---------------------------------------------------------------- letters that were not seen


@MODEST
@given(st.lists(st.integers(0, 6), min_size=2, max_size=5), st.floats(0.01, 2), st.data())
def test_a_centre_with_zeros_has_the_least_means_of_its_definition(
    counts: list[int], radius: float, data: st.DataObject
) -> None:
    assume(any(counts))
    p = np.array(counts) / sum(counts)
    matrix, defined = data.draw(mechanisms(len(p))), ball(exact(p), Fraction(radius))
    expected = [defined.least(column) for column in matrix.T]
    for center in (p, Center.of_counts(tuple(counts), tuple(range(len(p))))):
        one = L1Ball(center, radius)
        assert one.min_mean(matrix) == pytest.approx(expected, abs=1e-9)
        for column, least in zip(matrix.T, expected, strict=True):
            worst = one.minimizer(column)
            assert one.contains_law(worst)
            assert float(worst @ column) == pytest.approx(least, abs=1e-9)


def test_a_centre_with_zeros_is_exact_in_integers() -> None:
    one = L1Ball(Center.of_counts((2, 1, 0), ("a", "b", "c")), 0.5)
    least, total = one.min_mean_scaled(np.array([[1, 0], [0, 1], [0, 0]], dtype=object))
    assert [Fraction(value, total) for value in least] == [Fraction(5, 12), Fraction(1, 12)]
    assert one.labels == ("a", "b", "c")
    fields = one.center.probabilities, one.labels, (2, 1, 0)
    assert to_plain(L1Ball(Center.from_fields(*fields), 0.5)) == to_plain(one)
    for wrong, said in ((fields[0] * 0.9, "sum to 0.9"), (fields[0][::-1], "not its counts")):
        with pytest.raises(PrivacyError, match=said):
            Center.from_fields(wrong, *fields[1:])


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_design_over_a_ball_of_raw_counts_takes_any_prior_on_the_letters(epsilon: float) -> None:
    over = confidence_ball({"a": 60, "b": 40, "c": 0}, 0.01)
    guess = Prior.from_counts({"a": 61, "b": 41, "c": 1})
    for utility in (ExpectedGain(np.eye(3)), MutualInformation()):
        result = solve(design(guess, PML(epsilon, over=over), utility))
        assert result.level <= epsilon
        assert result.certificate.verify()
        for corner in (
            [0.6, 0.4 - over.half_radius, over.half_radius],
            [0.6 - over.half_radius, 0.4, over.half_radius],
        ):
            assert (
                leakage_level(Prior(corner, labels=guess.labels), result.mechanism)
                <= epsilon + 1e-12
            )
    ldp = solve(design(guess, PML(epsilon, over=AllPriors(3)), ExpectedGain(np.eye(3)))).value
    assert (
        solve(design(guess, PML(epsilon, over=over), ExpectedGain(np.eye(3)))).value >= ldp - 1e-9
    )


SIZES = [0, -1, 2.5, math.nan, "three"]
DELTAS = [0, 1, -0.1, 1.5, math.nan, math.inf, "small"]
REFUSED: list[tuple[Callable[[Any], PriorSet], str, list[Any]]] = [
    (lambda delta: L1Ball([0.5, 0.5], 0.1, delta), "delta", DELTAS),
    (lambda delta: Box([0.4, 0.4], [0.6, 0.6], delta), "delta", DELTAS),
    (lambda labels: Box([0.4] * 2, [0.6] * 2, labels=labels), "labels of the bounds",
     [["a"], ["a", "a"], "ab"]),
    (lambda radius: L1Ball([0.5, 0.5], radius), "the radius",
     [-1e-9, -1.0, 2 + 1e-9, math.nan, math.inf, "wide", None, True]),
    (lambda mass: MinimumMass(3, mass), "the minimum mass", [-1e-9, 0.3334, math.nan, math.inf, "some"]),
    (AllPriors, "size of the alphabet", SIZES),
    (lambda size: MinimumMass(size, 0.1), "size of the alphabet", SIZES),
    *((lambda pair: Box(*pair), words, [(lower, upper)]) for lower, upper, words in (
        ([0.6, 0.6], [1, 1], "lower bounds sum to 1.2"), ([0, 0], [0.4, 0.4], "upper bounds sum to 0.8"),
        ([0.5, 0.1], [0.4, 0.9], "cross at position 0"), ([0.1, 0.1], [0.9] * 3, "2 lower and 3 upper"),
        ([-0.1, 0.1], [0.9, 0.9], "lower bound at position 0 is -0.1"),
        ([0.1, 0.1], [0.9, 1.1], "upper bound at position 1 is 1.1"), ([0.1, math.nan], [0.9, 0.9], "finite"),
        ([0.1, 0.0], [1.0, 0.0], "position 1 has probability 0"), ([], [], "at least one"),
        ([0.5, 0.5, 0.0], [1, 1, 1], "position 2 has probability 0"))),
    *((ConvexHull, words, [points]) for points, words in (
        ([[0.5, 0.5], [-0.1, 1.1]], "vertex 1 has a negative entry"),
        ([[0.5, 0.5], [0.5, 0.6]], "vertex 1 sums to 1.1"), ([0.5, 0.5], "2 dimension"),
        ([[0.5, 0.5, 0.0], [0.3, 0.7, 0.0]], "position 2 has probability 0"),
        ([[0.5, 0.5], [1.0]], "regular"), ([[0.5, math.nan]], "finite"), (np.empty((0, 2)), "at least one"))),
]  # fmt: skip


def test_what_is_no_set_is_refused() -> None:
    for make, words, values in REFUSED:
        for value in values:
            with pytest.raises(PrivacyError, match=words):
                make(value)
    half = [0.5, 0.5]
    for one in (
        L1Ball(half, 0.1),
        MinimumMass(2, 0.5),
        ConvexHull([half]),
        Box(half, half),
        AllPriors(2),
    ):
        for other in ([1.0], [0.5, 0.3, 0.2]):
            with pytest.raises(PrivacyError, match="on 2 letters, and the prior on"):
                one.contains(other)


@pytest.mark.parametrize("kind", KINDS)
def test_by_linear_rows_the_largest_entry_is_within_the_least_mean(kind: str) -> None:
    rng = np.random.default_rng(9)
    one, matrix = random_set(kind, rng, 4).priors, rng.uniform(0.2, 1.0, (4, 2))
    for column, least in zip(matrix.T, one.min_mean(matrix), strict=True):
        for share in (1 - 1e-8, 1 + 1e-8):
            rows = one.linear_rows(share * least / column.max())
            assert rows is not None
            numbers = rows.find_numbers(column[:, None])
            assert (numbers[:, 0] >= rows.least - 1e-12).all()
            broken = float((rows.on_column @ column[:, None] + rows.on_numbers @ numbers).max())
            assert (broken <= 1e-12) == (share < 1)


@pytest.mark.parametrize("output", [0, 2])
def test_columns_that_are_constant_on_cells_have_the_least_means_of_their_letters(
    output: int,
) -> None:
    listed = Prior.from_counts([2, 4, 8, 4, 2])
    cells = InvariantPrior(listed, [reflection(5)]).make_pairs().get_cells(output)
    values = np.random.default_rng(8).uniform(size=(cells.size, 3))
    for one in (L1Ball(listed, 0.15), L1Ball([0.2, 0.3, 0.0, 0.3, 0.2], 0.5), MinimumMass(5, 0.05),
                Box([0.05, 0.1, 0.2, 0.1, 0.05], [0.3, 0.3, 0.6, 0.3, 0.3])):  # fmt: skip
        expected = one.min_mean(values[cells.classes])
        assert one.on_cells(cells).min_mean(values) == pytest.approx(expected, abs=1e-14)


def test_theorem_5_holds_past_the_first_region_of_some_priors() -> None:
    """[grosse2025empirical, Theorem 5]: up to -log(p1 - beta/2), where an entry becomes 0."""
    p1, beta = 0.6, 0.2
    ball = ConvexHull([[0.5, 0.5], [0.7, 0.3]])
    for epsilon in (0.3, 0.5, 0.69):  # the first region of (0.7, 0.3) ends at 0.357
        e = math.exp(epsilon)
        printed = np.array([
            [e * (1 - p1 + beta / 2), 1 - e * (1 - p1 - beta / 2)],
            [1 - e * (p1 - beta / 2), e * (p1 + beta / 2)],
        ]) / (1 + beta * e)  # fmt: skip
        levels = [math.log((printed.max(axis=0) / (law @ printed)).max()) for law in ball.laws]
        assert max(levels) == pytest.approx(epsilon)
        found = solve(design([p1, 1 - p1], PML(epsilon, over=ball), MutualInformation()))
        assert MutualInformation().value([p1, 1 - p1], printed) == pytest.approx(
            found.value, abs=1e-8
        )


def test_the_fall_of_an_outputs_probability_is_no_sensitivity() -> None:
    """[grosse2025empirical, Remark 2]: the last equality is an upper bound."""
    p, beta = np.array([0.5, 0.3, 0.2]), 0.2
    matrix = np.array([[3 / 8, 1 / 4, 3 / 8], [1 / 4, 1 / 4, 1 / 2], [1 / 2, 4 / 9, 1 / 18]])
    unit = np.eye(3)
    ends = [p + beta / 2 * (unit[x] - unit[z]) for x in range(3) for z in range(3) if x != z]
    levels = [float(np.log(matrix.max(axis=0) / (law @ matrix)).max()) for law in (p, *ends)]
    falls = [float(np.log((p @ matrix) / (law @ matrix)).max()) for law in ends]
    assert max(levels[1:]) - levels[0] == pytest.approx(0.0697, abs=5e-5)
    assert max(falls) == pytest.approx(0.1364, abs=5e-5)
