"""Balls of a transport distance and intersections of sets: against convex programs, and their ends."""

from __future__ import annotations

import math
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from oracles.divergence_balls import KINDS, draw_metric, least_mean
from oracles.set_comparisons import compare_columns, compare_designs

from pmlopt import (
    LDP,
    PML,
    AllPriors,
    Box,
    ConvexHull,
    ExpectedGain,
    Intersection,
    KLBall,
    L1Ball,
    MinimumMass,
    Polytope,
    Prior,
    WassersteinBall,
    confidence_ball,
    confidence_region,
    design,
    intersection,
    solve,
)
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import dual_measures
from pmlopt.solvers.approximate_minimum import solve_approximately
from pmlopt.testing import check_prior_set

P = Prior([0.5, 0.3, 0.2])
LINE = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
GAINS = ExpectedGain(np.random.default_rng(0).normal(size=(3, 3)))


@pytest.mark.parametrize("name", ["wasserstein", "intersection", "curved-intersection"])
def test_columns_have_the_means_of_convex_programs(name: str) -> None:
    compare_columns(KINDS[name], 0, 6)


def test_many_columns_have_the_means_of_convex_programs() -> None:
    compare_columns(KINDS["wasserstein"], 1, 30)


@pytest.mark.parametrize("name", ["wasserstein", "intersection"])
def test_designs_are_those_of_cutting_planes(name: str) -> None:
    compare_designs(KINDS[name], 2, 2)


def test_sets_around_one_prior_have_it_in_common() -> None:
    """Clarabel breaks off at the twelve columns together, from which a prior inside is found."""
    p = np.array([0.001, 0.797, 0.001, 0.077, 0.001, 0.123])
    kind, column = KINDS["curved-intersection"], np.arange(6.0)
    worst = kind.make(p, 0.5).minimizer(column)
    assert worst @ column == pytest.approx(least_mean(kind, p, 0.5, column), abs=1e-6)


def test_where_the_solver_fails_at_columns_together_it_gets_them_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    p, ball = P.pmf, intersection(KLBall(P, 0.05), L1Ball(P, 0.2))
    columns = np.array([[0.0, 1.0], [0.3, 0.7], [1.0, 0.1]])
    means, gain = ball.min_mean(columns), ball.support_function(p, columns, 0.6)

    def fail_at_several(problem: Any) -> bool:
        single = all(one.shape[1] == 1 for one in problem.variables())
        return single and solve_approximately(problem)

    monkeypatch.setattr(dual_measures, "solve_approximately", fail_at_several)
    ball = pickle.loads(pickle.dumps(ball))  # which leaves the answers that are kept
    assert ball.min_mean(columns) == pytest.approx(means, abs=1e-9)
    assert ball.support_function(p, columns, 0.6) == pytest.approx(gain, abs=1e-8)
    # without a point, zeros still prove the largest gain
    monkeypatch.setattr(dual_measures, "solve_approximately", lambda problem: False)
    ball = pickle.loads(pickle.dumps(ball))
    assert ball._best_measures.find_measures(p, columns, 0.6)[0].max() == 0
    with pytest.raises(PrivacyError, match="may have none in common"):
        ball.min_mean(columns)


def test_all_forms_agree() -> None:
    p = np.array([0.4, 0.3, 0.2, 0.1])
    for radius in (0.01, 0.2, 0.6):
        check_prior_set(WassersteinBall(p, draw_metric(4), radius), instances=2)
    check_prior_set(WassersteinBall([0.5, 0.5, 0.0, 0.0], draw_metric(4), 0.2), instances=2)
    check_prior_set(intersection(KLBall(p, 0.05), L1Ball(p, 0.2)), instances=1)


def test_with_all_distances_one_it_is_the_l1_ball() -> None:
    """Moving a mass of r changes the l1 norm by 2 r."""
    discrete, columns = 1 - np.eye(3), np.random.default_rng(1).uniform(size=(3, 20))
    for radius in (0.05, 0.3, 0.7):
        transport = WassersteinBall(P, discrete, radius)
        ball = L1Ball(P, 2 * radius)
        assert transport.min_mean(columns) == pytest.approx(ball.min_mean(columns), abs=1e-14)


def test_the_ends_of_a_transport_ball() -> None:
    assert np.array_equal(np.asarray(WassersteinBall(P, LINE, 0.0).simplify()), P.pmf)
    # 1.3 = 0.3 + 2 * 0.5 ways from the letter 0 and 1 to the last one, more than to any other
    assert WassersteinBall(P, LINE, 1.3).simplify() == AllPriors(3)
    near = WassersteinBall(P, LINE, 1.3 - 1e-9)
    assert near.simplify() is near
    for over, other in ((WassersteinBall(P, LINE, 0.0), PML(0.4)), (near, LDP(0.4))):
        found = solve(design(P, PML(0.4, over=over), GAINS))
        assert found.certificate.verify()
        assert found.value == pytest.approx(solve(design(P, other, GAINS)).value, abs=1e-7)


@pytest.mark.parametrize(
    ("metric", "radius", "words"),
    [
        (LINE, -0.1, "the radius"),
        (LINE, math.inf, "the radius"),
        (LINE[:2], 0.1, "shape"),
        (-LINE, 0.1, "at least 0"),
        (np.full((3, 3), math.nan), 0.1, "at least 0"),
        (LINE + 1, 0.1, "give a diagonal of zeros"),
        (np.triu(LINE), 0.1, "give the same both ways"),
        ([["a"] * 3] * 3, 0.1, "no number"),
    ],
)
def test_what_is_no_transport_ball_is_refused(metric: object, radius: float, words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        WassersteinBall(P, metric, radius)  # type: ignore[arg-type]


def test_the_smaller_of_two_directions_that_differ_by_rounding_counts() -> None:
    metric = np.array([[0.0, 0.1 + 0.2, 1.0], [0.3, 0.0, 0.7], [1.0, 0.7, 0.0]])
    assert metric[0, 1] > metric[1, 0]
    ball = WassersteinBall([0.5, 0.3, 0.2], metric, 0.1)
    assert ball.metric[0, 1] == ball.metric[1, 0] == 0.3


def test_a_letter_that_no_mass_can_reach_is_refused() -> None:
    apart = np.array([[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]])
    with pytest.raises(PrivacyError, match="position 2 has probability 0"):
        WassersteinBall([0.5, 0.5, 0.0], apart, 0.3)
    assert WassersteinBall([0.5, 0.5, 0.0], LINE, 0.3).min_mean(np.eye(3))[2] == 0


def test_sets_by_rows_are_one_polytope() -> None:
    both = intersection(MinimumMass(3, 0.1), Box([0, 0, 0], [0.6, 0.4, 1.0]))
    assert isinstance(both, Polytope)
    box = Box([0.1, 0.1, 0.1], [0.6, 0.4, 1.0])
    columns = np.random.default_rng(2).uniform(size=(3, 10))
    assert both.min_mean(columns) == pytest.approx(box.min_mean(columns), abs=1e-14)


def test_an_intersection_with_one_that_is_contained_is_the_smaller_one() -> None:
    small, large = KLBall(P, 0.01), L1Ball(P, 1.0)
    both = intersection(large, small)
    assert isinstance(both, Intersection)
    columns = np.random.default_rng(3).uniform(size=(3, 5))
    assert both.min_mean(columns) == pytest.approx(small.min_mean(columns), abs=1e-7)
    found = solve(design(P, PML(0.4, over=both), GAINS))
    expected = solve(design(P, PML(0.4, over=small), GAINS))
    assert found.certificate.verify()
    assert found.value == pytest.approx(expected.value, abs=1e-6)
    assert np.array_equal(np.asarray(intersection(large, L1Ball(P, 0.0)).simplify()), P.pmf)
    assert intersection(small, AllPriors(3)).simplify() == small


def test_sets_that_fix_the_mass_of_a_letter_have_an_intersection() -> None:
    """No mass reaches or leaves the last letter, so that one equation holds for all priors in common."""
    apart = np.array([[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]])
    both = intersection(KLBall(P, 0.05), WassersteinBall(P, apart, 0.1), L1Ball(P, 0.3))
    columns = np.eye(3)
    # a tenth moves between the other letters: the divergences are 0.026 and 0.028, less than 0.05
    assert both.min_mean(columns) == pytest.approx([0.4, 0.2, 0.2], abs=1e-6)
    (member,) = both.find_members(np.array([[0.2], [0.5], [0.3]])).T
    assert member[2] == pytest.approx(P.pmf[2], abs=1e-15)
    assert all(one.contains_law(member) for one in both.sets)  # type: ignore[attr-defined]


def test_copies_of_a_set_that_has_solved_programs_are_equal() -> None:
    both, gains = intersection(KLBall(P, 0.05), L1Ball(P, 0.2)), np.eye(3)
    least = both.min_mean(np.eye(3))
    bound = both.support_function(P.pmf, gains, 0.7)
    for copy in (pickle.loads(pickle.dumps(both)), deepcopy(both)):
        assert copy == both
        assert copy.min_mean(np.eye(3)) == pytest.approx(least, abs=1e-9)
        assert copy.support_function(P.pmf, gains, 0.7) == pytest.approx(bound, abs=1e-9)


def test_deltas_of_confidence_sets_add_up() -> None:
    counts = Prior.from_counts({"a": 50, "b": 30, "c": 20})
    both = intersection(confidence_ball(counts, 0.01), confidence_region(counts, 0.02))
    assert both.delta == pytest.approx(0.03)
    assert both.labels == ("a", "b", "c")
    with pytest.raises(PrivacyError, match="nothing is left"):
        intersection(confidence_ball(counts, 0.6), confidence_region(counts, 0.6))


def test_what_has_no_intersection_is_refused() -> None:
    far = KLBall([0.1, 0.1, 0.8], 0.01)
    with pytest.raises(PrivacyError, match="in common"):
        intersection(KLBall(P, 0.01), far)
    with pytest.raises(PrivacyError, match="the set of priors is empty"):
        intersection(MinimumMass(3, 0.2), Box([0, 0, 0], [0.1, 1, 1]))
    with pytest.raises(PrivacyError, match="letters"):
        intersection(KLBall(P, 0.01), KLBall([0.5, 0.5], 0.01))
    for wrong in ((), (KLBall(P, 0.01), 3)):
        with pytest.raises(PrivacyError, match="no sets of priors"):
            intersection(*wrong)
    with pytest.raises(PrivacyError, match="none is in common"):
        intersection(KLBall(P, 0.01), L1Ball([0.1, 0.1, 0.8], 0.0))
    hulls = [
        ConvexHull([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]]),
        ConvexHull([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2]]),
    ]
    with pytest.raises(PrivacyError, match="no exact membership"):
        intersection(*hulls)
