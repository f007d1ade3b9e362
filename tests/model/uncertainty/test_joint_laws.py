"""Sets of joint laws of a secret and the data: the worst case, confidence, and the ball that they hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.divergence_balls import KINDS as BALLS_AND_OTHERS
from oracles.joint_laws import (
    ball_vertices,
    best_gain_about,
    find_worst_joint_law,
    laws_of,
    most_told,
)
from refusals import refused

from pmlopt import (
    PML,
    ChiSquareBall,
    ConvexHull,
    ExpectedGain,
    KLBall,
    L1Ball,
    Secret,
    design,
    leakage_level,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
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


def find_worst_laws(
    laws: JointLaws, column: FloatArray, value: int
) -> tuple[FloatArray, FloatArray]:
    """The conditional and marginal law at which a column reveals a value most."""
    rows = np.array([one.minimizer(column) for one in laws.conditionals])
    rows[value] = laws.conditionals[value].minimizer(column.max() - column)
    return rows[value], laws.law.minimizer(rows @ column) @ rows


@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.01, 0.1, 0.3]))
@settings(max_examples=25)
def test_the_worst_case_is_at_the_vertices_of_the_parts(seed: int, radius: float) -> None:
    laws, rng = JointLaws.ball(SECRET, radius), np.random.default_rng(seed)
    matrix = round_rows_to_grid(rng.dirichlet(np.full(3, 0.5), 3)) + 1e-3
    worst = most_told(by_vertices(laws), matrix)
    assert laws.max_ratios(matrix) == pytest.approx(worst, rel=1e-9)
    for s in range(2):
        for y in range(3):
            told, mean = find_worst_laws(laws, matrix[:, y], s)
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


@pytest.mark.parametrize("seed", range(3))
def test_designs_over_curved_joint_laws_are_those_of_cutting_planes(seed: int) -> None:
    rng = np.random.default_rng([595, seed])
    joint = rng.dirichlet(np.full(6, 4.0)).reshape(2, 3)
    secret, names = Secret(joint), ("kl", "chi-square", "likelihood", "wasserstein", "polytope")
    # one of the sets at least is no polytope
    chosen = [names[int(rng.integers(3))], *rng.choice(names, 2)]
    sets = [
        (BALLS_AND_OTHERS[str(name)], law, float(rng.choice([0.01, 0.05, 0.2])))
        for name, law in zip(chosen, (secret.law, *secret.conditionals), strict=True)
    ]
    own, *given = (kind.make(law, radius) for kind, law, radius in sets)
    epsilon, gains = float(rng.uniform(0.1, 0.8)), rng.normal(size=(3, 3))
    privacy = PML(epsilon, JointLaws(own, given), secret)
    result = solve(design(secret.prior, privacy, ExpectedGain(gains)))
    low, high = best_gain_about(secret.joint[0], sets[0], sets[1:], gains, epsilon)
    assert high - low <= 1e-6
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    assert low - 1e-6 <= result.value <= high + 1e-6
    for column in result.mechanism.matrix.T:
        for value in range(2) if column.any() else ():
            ratio, _ = find_worst_joint_law(sets[0], sets[1:], column / column.max(), value)
            assert np.log(ratio) <= epsilon + 1e-6


def test_curved_joint_laws_contain_no_law_that_tells_more() -> None:
    """Members of the sets, mixed at random, are below the worst ratio; the worst laws reach it."""
    rng, secret = np.random.default_rng(8), Secret.from_counts(COUNTS + 5)
    sets = [KLBall(secret.law, 0.05), *(ChiSquareBall(law, 0.2) for law in secret.conditionals)]
    laws, matrix = JointLaws(sets[0], sets[1:]), rng.dirichlet(np.full(3, 0.7), 3)
    worst = laws.max_ratios(matrix)
    for _ in range(200):
        own, *rows = (
            one.find_members(rng.dirichlet(np.ones(one.size))[:, None])[:, 0] for one in sets
        )
        assert (most_told([own[:, None] * np.array(rows)], matrix) <= worst * (1 + 1e-12)).all()
    for value in range(2):
        told, mean = find_worst_laws(laws, matrix[:, 0], value)
        assert told @ matrix[:, 0] / (mean @ matrix[:, 0]) == pytest.approx(
            worst[value, 0], rel=1e-9
        )


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
