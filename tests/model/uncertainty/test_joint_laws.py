"""Sets of joint laws of a secret and the data: the worst case, confidence, and the ball that they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.joint_laws import ball_vertices, laws_of, most_told
from refusals import refused

from pmlopt import ConvexHull, L1Ball, Secret, leakage_level
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import JointLaws, weissman_radius
from pmlopt.programs.exact.rounding import round_rows_to_grid, scale_to_integers

COUNTS = np.array([[30, 0, 12], [20, 25, 13]])
SECRET = Secret.from_counts(COUNTS)


def by_vertices(laws: JointLaws) -> list[np.ndarray]:
    """The joint laws of the vertices of its l1 balls."""
    own, *others = (
        ball_vertices(ball.center.probabilities, ball.radius)
        for ball in (laws.law, *laws.conditionals)
        if isinstance(ball, L1Ball)
    )
    return laws_of(own, others)


@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.01, 0.1, 0.3]))
@settings(max_examples=25)
def test_the_worst_case_is_at_the_vertices_of_the_parts(seed: int, radius: float) -> None:
    laws, rng = JointLaws.ball(SECRET, radius), np.random.default_rng(seed)
    matrix = round_rows_to_grid(rng.dirichlet(np.full(3, 0.5), 3)) + 1e-3
    worst = most_told(by_vertices(laws), matrix)
    assert laws.max_ratios(matrix) == pytest.approx(worst, rel=1e-9)
    for s in range(2):
        for y in range(3):
            told, mean = laws.find_worst_laws(matrix[:, y], s)
            assert told @ matrix[:, y] / (mean @ matrix[:, y]) == pytest.approx(
                worst[s, y], rel=1e-9
            )


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_integers_say_the_same_as_floats(seed: int) -> None:
    laws = JointLaws.confidence(SECRET, 0.05)
    matrix = round_rows_to_grid(np.random.default_rng(seed).dirichlet(np.full(3, 0.5), 3))
    least, most, _ = laws.compute_extreme_means(scale_to_integers(matrix))
    sums, unit = laws.min_outcome_sums(least, most)
    exact = [[float(a) * float(unit) / float(b) for a, b in zip(*rows, strict=True)]
             for rows in zip(most, sums, strict=True)]  # fmt: skip
    assert laws.max_ratios(matrix) == pytest.approx(np.array(exact), rel=1e-12)


@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.02, 0.1, 0.5, 1.5]))
@settings(max_examples=30)
def test_it_holds_the_ball_of_joint_laws(seed: int, radius: float) -> None:
    """Laws at the boundary of the ball, between its vertices too, tell no more than the set says."""
    rng = np.random.default_rng(seed)
    center = SECRET.joint[0]
    law = center.copy()
    left = radius / 2
    for place in rng.permutation(6)[: int(rng.integers(1, 6))]:
        taken = min(law.flat[place], left * rng.choice([1.0, rng.random()]))
        law.flat[place] -= taken
        left -= taken
    law += (1 - law.sum()) * rng.dirichlet(np.full(6, 0.2)).reshape(2, 3)
    assert np.abs(law - center).sum() <= radius + 1e-12
    matrix = rng.dirichlet(np.full(3, 0.3), 3) + 1e-4
    if law.sum(axis=1).min() > 1e-9:
        told = most_told([law], matrix)
        assert (told <= JointLaws.ball(SECRET, radius).max_ratios(matrix) * (1 + 1e-9)).all()


def test_without_room_it_is_the_joint_law_itself() -> None:
    secret = Secret.from_counts(COUNTS + 1)
    joint = secret.joint[0]
    rows = joint / joint.sum(axis=1, keepdims=True)
    laws = JointLaws(ConvexHull(joint.sum(axis=1)[None]), [ConvexHull(row[None]) for row in rows])
    matrix = np.random.default_rng(0).dirichlet(np.ones(3), 3)
    assert np.log(laws.max_ratios(matrix).max()) == pytest.approx(
        leakage_level(secret, matrix), abs=1e-12
    )


def test_confidence_splits_delta_over_the_laws() -> None:
    laws = JointLaws.confidence(SECRET, 0.03)
    assert isinstance(laws.law, L1Ball)
    assert laws.law.radius == weissman_radius(100, 2, 0.01)
    assert [ball.radius for ball in laws.conditionals if isinstance(ball, L1Ball)] == [
        weissman_radius(42, 3, 0.01), weissman_radius(58, 3, 0.01),
    ]  # fmt: skip
    assert laws.delta == 0.03
    assert "0.03" in laws.scope


def test_the_true_joint_law_is_outside_as_seldom_as_promised() -> None:
    """Of 200 samples at most 5 percent and their error: 24 or more has probability below 1e-4."""
    rng, truth = np.random.default_rng(3), np.array([[0.1, 0.2, 0.05], [0.3, 0.15, 0.2]])
    outside = 0
    for _ in range(200):
        counts = rng.multinomial(200, truth.ravel()).reshape(2, 3)
        if not (counts.sum(axis=0).all() and counts.sum(axis=1).all()):
            continue
        laws = JointLaws.confidence(Secret.from_counts(counts), 0.05)
        parts = [truth.sum(axis=1), *(truth / truth.sum(axis=1, keepdims=True))]
        outside += not all(
            one.contains_law(part)
            for one, part in zip((laws.law, *laws.conditionals), parts, strict=True)
        )
    assert outside <= 23


def test_what_cannot_be_meant_is_refused() -> None:
    half = ConvexHull([[0.5, 0.5]])
    refused(PrivacyError, JointLaws.ball, "leave `over` out", (SECRET, 0.0))
    refused(PrivacyError, JointLaws.ball, "radius", (SECRET, 2.5))
    refused(
        PrivacyError, JointLaws.ball, "2 joint laws", (Secret([[[0.5, 0.5]], [[0.4, 0.6]]]), 0.1)
    )
    refused(
        PrivacyError, JointLaws.confidence, "not made from counts", (Secret(SECRET.joint[0]), 0.1)
    )
    refused(PrivacyError, JointLaws.confidence, "delta", (SECRET, 1.5))
    refused(PrivacyError, JointLaws, "2 values", (half, [half]))
    refused(PrivacyError, JointLaws, "letters", (half, [ConvexHull([[1.0]]), half]))
