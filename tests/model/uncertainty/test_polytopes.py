"""Sets of priors by linear inequalities: against linear programs, other descriptions, and their ends."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from oracles.divergence_balls import KINDS, draw_rows, random_center
from oracles.set_comparisons import compare_columns, compare_designs, random_column
from scipy import optimize

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    MutualInformation,
    Polytope,
    Prior,
    design,
    leakage_level,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import leakage_capacity, vertex_hull
from pmlopt.model.uncertainty.row_programs import RowProgram
from pmlopt.testing import check_prior_set


def as_polytope(box: Box) -> Polytope:
    """The rows of a box."""
    eye = np.eye(box.size)
    return Polytope(np.vstack([eye, -eye]), np.concatenate([box.upper, -box.lower]))


def test_columns_have_the_means_of_convex_programs() -> None:
    compare_columns(KINDS["polytope"], 0, 12)


def test_many_columns_have_the_means_of_convex_programs() -> None:
    compare_columns(KINDS["polytope"], 1, 30)


def test_designs_are_those_of_cutting_planes() -> None:
    compare_designs(KINDS["polytope"], 2, 4)


def test_all_forms_agree() -> None:
    for radius in (0.0, 0.05, 0.5):
        rows, right = draw_rows(np.array([0.4, 0.3, 0.2, 0.1]), radius)
        check_prior_set(Polytope(rows, right + 1e-9), instances=2)


def test_the_rows_of_a_box_have_its_least_means_without_rounding() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        n = int(rng.integers(2, 7))
        p = random_center(rng, n)
        box = Box(p / 2, np.minimum(1.0, 1.5 * p))
        rows = as_polytope(box)
        columns = (np.stack([random_column(rng, n) for _ in range(3)]).T * 2**53).astype(object)
        columns = np.vectorize(int, otypes=[object])(columns)
        (one, unit), (other, parts) = box.min_mean_scaled(columns), rows.min_mean_scaled(columns)
        for least, bound in zip(one, other, strict=True):
            assert Fraction(int(least), int(unit)) == Fraction(int(bound), int(parts))
        for name in ("half_spaces", "polytope"):
            assert getattr(rows, name)() is not None
        spaces = box.half_spaces()
        again = Polytope(spaces.rows, spaces.right)
        assert again.min_mean_scaled(columns)[0].tolist() == other.tolist()


def test_designs_are_those_of_the_box_and_of_the_vertices() -> None:
    p = Prior([0.5, 0.3, 0.2])
    box = Box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
    rows = as_polytope(box)
    gains = ExpectedGain(np.random.default_rng(4).normal(size=(3, 3)))
    for utility in (gains, MutualInformation()):
        expected = solve(design(p, PML(0.6, over=box), utility))
        for over in (rows, vertex_hull(rows)):
            found = solve(design(p, PML(0.6, over=over), utility))
            assert found.value == pytest.approx(expected.value, abs=1e-7)
            assert found.certificate.verify()


def test_information_over_more_bases_than_can_be_tried_is_cut_by_priors() -> None:
    """Of 80 rows on 4 letters there are 84 over 81 bases; they are the sides of a box, and of larger ones."""
    p = Prior([0.4, 0.3, 0.2, 0.1])
    box = Box(0.7 * p.pmf, 1.2 * p.pmf)
    one = as_polytope(box)
    many = Polytope(
        np.tile(one.rows, (10, 1)), np.concatenate([one.right + k / 100 for k in range(10)])
    )
    with pytest.raises(PrivacyError, match="bases: give a ConvexHull of its vertices"):
        vertex_hull(many)
    expected = solve(design(p, PML(0.5, over=box), MutualInformation()))
    found = solve(design(p, PML(0.5, over=many), MutualInformation()))
    assert found.certificate.verify()
    assert found.value <= expected.bound + 1e-9
    assert found.bound >= expected.value - 1e-9


def test_rows_that_leave_one_prior_or_all_are_these() -> None:
    p = Prior.from_counts([5, 3, 2])
    eye = np.eye(3)
    point = Polytope(np.vstack([eye, -eye])[[0, 1, 3, 4]], [0.5, 0.3, -0.5, -0.3])
    everything = Polytope([[1.0, 2.0, -1.0], [0.0, 0.0, 0.0]], [2.0, 0.0])
    gains = ExpectedGain(np.random.default_rng(5).normal(size=(3, 3)))
    law = point.simplify()
    assert isinstance(law, np.ndarray)
    assert np.array_equal(law, p.pmf)
    assert everything.simplify() == AllPriors(3)
    for over, other in ((point, PML(0.4)), (everything, LDP(0.4))):
        expected = solve(design(p, other, gains))
        found = solve(design(p, PML(0.4, over=over), gains))
        assert found.value == pytest.approx(expected.value, abs=1e-9)
        assert found.certificate.verify()
    matrix = [[0.5, 0.5], [0.25, 0.75], [0.125, 0.875]]
    assert float(leakage_capacity(point, matrix)) == pytest.approx(leakage_level(p, matrix))
    assert solve(design([0.2, 0.3, 0.5], PML(0.4, over=point), gains)).level <= 0.4


def test_any_multipliers_bound_the_mean_from_below() -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        n = int(rng.integers(2, 6))
        p = random_center(rng, n)
        program = RowProgram(*draw_rows(p, 0.1))
        column = [Fraction(value) for value in random_column(rng, n).tolist()]
        (basis,) = program.find_bases(np.array([[float(value)] for value in column]))
        assert basis is not None
        vertex = program.compute_vertex(basis)
        best = program.compute_multipliers(basis, column)
        assert vertex is not None
        assert best is not None
        mean = sum((q * v for q, v in zip(vertex, column, strict=True)), Fraction(0))
        assert program.bound_mean(column, best) == mean
        for moved in (rng.normal(size=5), rng.uniform(size=5) * 10, np.zeros(5)):
            assert program.bound_mean(column, [Fraction(value) for value in moved]) <= mean


def test_members_near_laws_are_within_the_rows_without_rounding() -> None:
    rng = np.random.default_rng(7)
    for _ in range(10):
        n = int(rng.integers(2, 6))
        p = random_center(rng, n)
        rows = Polytope(*draw_rows(p, 0.01))
        for law in (p, rng.dirichlet(np.ones(n)), np.eye(n)[0]):
            member = rows.project_to_rationals(law)
            assert rows.contains_rationals(member)
            if rows.contains_law(law):
                assert np.abs(member.astype(float) - law).max() <= 1e-11


def test_members_of_many_letters_are_the_nearest_in_l1() -> None:
    rng = np.random.default_rng(3)
    for number in range(12):
        size, count = int(rng.integers(20, 41)), int(rng.integers(1, 5))
        table, center = rng.uniform(-1, 1, size=(count, size)), rng.dirichlet(np.ones(size))
        rows = Polytope(table, table @ center + rng.uniform(0.0, 0.05))
        law = center if number == 0 else rng.dirichlet(np.full(size, 0.3))
        member = rows.project_to_rationals(law)
        assert rows.contains_rationals(member.tolist())
        # the least of sum t with -t <= q - law <= t, by a solver of its own
        eye, none = np.eye(size), np.zeros((count, size))
        best = optimize.linprog(
            np.append(np.zeros(size), np.ones(size)),
            np.block([[rows.rows, none], [eye, -eye], [-eye, -eye]]),
            np.concatenate([rows.right, law, -law]),
            np.append(np.ones(size), np.zeros(size))[None],
            [1.0],
        )
        assert np.abs(member.astype(float) - law).sum() == pytest.approx(best.fun, abs=1e-7)


def test_the_member_near_a_rounded_vertex_is_that_vertex() -> None:
    # all vertices with a least or a largest probability are on the first row, where nothing is inside
    rows = np.array(
        [[0, 0, 0, -1, 3, -1], [1, -1, 0, 3, -2, 1], [-1, 1, 2, -1, 1, 1], [0, 0, 0, 1, -3, 1]]
    )
    narrow = Polytope(rows, [-0.23005458, 0.39175748, 1.43777375, 0.25005458])
    for column in np.vstack([np.eye(6), -np.eye(6)]):
        worst = narrow.minimizer(column)
        member = narrow.project_to_rationals(worst)
        assert narrow.contains_rationals(member.tolist())
        assert np.abs(member.astype(float) - worst).max() <= 1e-15
    # where the excess is the least of all floats, too
    edge = Polytope([[1, -1, 0]], [0])
    member = edge.project_to_rationals(np.array([5e-324, 0.0, 1.0]))
    assert edge.contains_rationals(member.tolist())
    assert member.astype(float) == pytest.approx([0, 0, 1])


def test_members_are_within_rows_that_leave_one_prior() -> None:
    # without an inside every mixture ends at that prior
    ends = Polytope([[1, -1, 0], [-1, 1, 0], [0, 1, -1], [0, -1, 1]], [0, 0, 0, 0])
    for law in (np.array([0.2, 0.3, 0.5]), np.zeros(3), np.array([0.0, 0.0, 1.0])):
        assert ends.project_to_rationals(law).tolist() == [Fraction(1, 3)] * 3


@pytest.mark.parametrize(
    ("rows", "right", "words"),
    [
        ([[1, 1]], [0.5], "the set of priors is empty"),
        ([[1, -1], [-1, 1]], [-0.1, 0.05], "the set of priors is empty"),
        ([[1, 0]], [0], "position 0 has probability 0"),
        ([[1, 0]], [0, 1], "1 rows and 2 right sides"),
        ([[np.nan, 0]], [0], "finite"),
        ([[1, 0]], [np.inf], "finite"),
        ([1, 0], [0], "the matrix of rows"),
    ],
)
def test_what_is_no_polytope_is_refused(rows: object, right: object, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        Polytope(rows, right)  # type: ignore[arg-type]


def test_letters_are_compared() -> None:
    labelled = Polytope([[1, 0]], [0.7], labels=["a", "b"])
    assert labelled.contains(Prior([0.6, 0.4], ["a", "b"]))
    assert not labelled.contains(Prior([0.8, 0.2], ["a", "b"]))
    for wrong in (Prior([0.6, 0.4], ["b", "a"]), Prior([0.2, 0.3, 0.5])):
        with pytest.raises(PrivacyError):
            labelled.contains(wrong)
    hull = ConvexHull([[0.7, 0.3], [0.0, 1.0]])
    assert labelled.min_mean(np.eye(2)) == pytest.approx(hull.min_mean(np.eye(2)))
