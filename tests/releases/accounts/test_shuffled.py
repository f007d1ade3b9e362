"""The histogram of many people's outputs, against all histograms, and the grid from above."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.releases import histogram_laws
from strategies import pairs

from pmlopt import PML, ExpectedLoss, design, leakage_level, shuffled_level, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.library import find
from pmlopt.releases import calibrate_shuffled, shuffled_failure, shuffled_slack
from pmlopt.releases.accounts import shuffled
from pmlopt.releases.accounts.shuffled import bound_chernoff_excess, compute_mean_near

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])


@settings(max_examples=25, deadline=None)
@given(pairs(2, 3, tiny=False), st.integers(1, 6), st.floats(0, 1.5), st.floats(1e-6, 0.5))
def test_slack_and_level_are_those_of_all_histograms(
    case: tuple[FloatArray, FloatArray], people: int, epsilon: float, delta: float
) -> None:
    prior, matrix = case
    if matrix.shape[1] > 3:  # fewer histograms
        matrix = np.column_stack([matrix[:, :2], matrix[:, 2:].sum(axis=1)])
    laws = histogram_laws(prior, matrix, people)

    def slack(level: float) -> float:
        over = [[max(0.0, g - math.exp(level) * mass) for g in given] for mass, given in laws]
        return max(map(math.fsum, zip(*over, strict=True)))

    assert shuffled_slack(prior, matrix, people, epsilon) == pytest.approx(
        slack(epsilon), abs=1e-12
    )
    level = shuffled_level(prior, matrix, people, delta)
    assert slack(level) <= delta + 1e-12
    assert level == 0 or slack(level * (1 - 1e-6) - 1e-9 if level > 1e-6 else 0.0) >= delta - 1e-12
    surely, perhaps = (
        math.fsum(mass for mass, given in laws if max(given) > math.exp(epsilon) * mass * near)
        for near in (1 + 1e-9, 1 - 1e-9)
    )
    failure = shuffled_failure(prior, matrix, people, epsilon)
    assert surely - 1e-12 <= failure <= len(prior) * perhaps + 1e-9


@pytest.mark.parametrize("people", [7, 400])
def test_the_grid_is_above_the_list_and_close(people: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(people)
    prior, matrix = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2), 3)
    monkeypatch.setattr(shuffled, "GRID_LENGTH", 2**16)
    deltas, epsilons = (0.01, 1e-6, 1e-12), (0.02, 0.2)
    monkeypatch.setattr(shuffled, "MAX_HISTOGRAMS", 10**6)
    levels = [shuffled_level(prior, matrix, people, delta) for delta in deltas]
    slacks = [shuffled_slack(prior, matrix, people, epsilon) for epsilon in epsilons]
    tails = [shuffled_failure(prior, matrix, people, epsilon) for epsilon in epsilons]
    monkeypatch.setattr(shuffled, "MAX_HISTOGRAMS", 0)
    for delta, level in zip(deltas, levels, strict=True):
        found = shuffled_level(prior, matrix, people, delta)
        assert level - 1e-14 <= found <= level + 1e-4
    for epsilon, slack, tail in zip(epsilons, slacks, tails, strict=True):
        assert slack <= shuffled_slack(prior, matrix, people, epsilon) <= slack * 1.001 + 1e-15
        assert tail <= shuffled_failure(prior, matrix, people, epsilon) <= tail * 1.05 + 1e-15


def test_one_person_has_the_level_of_the_mechanism_and_more_have_less() -> None:
    assert shuffled_level([0.5, 0.5], RESPONSE, 1, 1e-9) == pytest.approx(math.log(1.5), abs=1e-8)
    assert shuffled_level([0.25, 0.75], [[1.0], [1.0]], 50, 0.1) == 0
    prior, rare = [1e-6, 1 - 1e-6], [[1.0, 0.0], [1e-7, 1 - 1e-7]]
    alone = shuffled_slack(prior, rare, 1, 0.0)
    for people in (30, 10**6):
        assert shuffled_slack(prior, rare, people, 0.0) <= alone * (1 + 1e-9) <= 1
    wrong: list[tuple[Any, float]] = [(0, 0.1), (1.5, 0.1), (3, 0.0), (3, 1.0)]
    for number, delta in wrong:
        with pytest.raises(PrivacyError):
            shuffled_level([0.5, 0.5], RESPONSE, number, delta)


def test_the_logarithm_of_a_level_is_rounded_up() -> None:
    for digits in range(
        8, 40
    ):  # one person: the lift 1.5 has probability 1/2, so t is 1.5 - 2 delta
        level = shuffled_level([0.5, 0.5], RESPONSE, 1, 2.0**-digits)
        with localcontext(prec=40):
            assert Decimal(level).exp() >= Decimal("1.5") - Decimal(2) ** (1 - digits)


def test_two_outputs_have_a_binomial_histogram(monkeypatch: pytest.MonkeyPatch) -> None:
    people, lifts, law = 32_561, np.array([0.5, 1.5]), np.array([0.5, 0.5])
    counts = np.arange(people + 1)
    falling = np.log((people - counts[:-1]) / counts[1:])  # of neighbouring binomial coefficients
    logs = np.append(0.0, np.cumsum(falling))
    masses = np.exp(logs - logs.max())
    masses /= masses.sum()
    means, t = 0.5 + counts / people, 1.012
    exact, tail = float(masses @ np.maximum(means - t, 0)), float(masses[means > t].sum())
    found = compute_mean_near(lifts, law, people, t)
    assert exact * (1 - 1e-10) <= found.bound_excess(t) <= exact * (1 + 1e-4)
    assert tail * (1 - 1e-10) <= found.bound_tail(t) <= tail * 1.02
    assert exact <= bound_chernoff_excess(lifts, law, people, t) <= 40 * exact
    monkeypatch.setattr(
        shuffled, "WINDOW_DEVIATIONS", 0.0
    )  # 40 counts on each side, half a deviation
    for t in (1.006, 1.012, 1.02):  # what is above the window is counted in
        found = compute_mean_near(lifts, law, people, t)
        last = found.first + (len(found.tails) - 1) * found.step
        assert means[-1] > last
        for point in (t, (t + last) / 2, last - 2 / people, last - 0.5 / people):
            assert found.bound_tail(point) >= masses[means > point].sum() * (1 - 1e-10)
            assert found.bound_excess(point) >= masses @ np.maximum(means - point, 0) * (1 - 1e-10)


@pytest.mark.parametrize(
    ("epsilon", "level", "failing"), [(1.0, 0.02358, 0.035), (2.0, 0.04752, 0.0674)]
)
def test_the_histogram_of_adult(
    epsilon: float, level: float, failing: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffled, "GRID_LENGTH", 2**16)
    prior = find("adult-education-absolute").prior
    assert prior is not None
    loss = ExpectedLoss(np.abs(np.subtract.outer(np.arange(16.0), np.arange(16.0))))
    mechanism = solve(design(prior, PML(epsilon), loss)).mechanism
    assert shuffled_level(prior, mechanism, 32_561, 1e-6) == pytest.approx(level, abs=1e-5)
    assert shuffled_failure(prior, mechanism, 32_561, failing) <= 1e-6


def test_the_local_level_is_calibrated_to_the_histogram() -> None:
    local, mechanism = calibrate_shuffled([0.5, 0.5], response, 500, 0.05, 1e-4)
    assert shuffled_level([0.5, 0.5], mechanism, 500, 1e-4) <= 0.05
    assert shuffled_level([0.5, 0.5], response(local * 1.003), 500, 1e-4) > 0.05
    assert leakage_level([0.5, 0.5], mechanism) == pytest.approx(local)
    assert calibrate_shuffled([0.5, 0.5], response, 500, 1.0, 1e-4)[0] == pytest.approx(math.log(2))
    with pytest.raises(PrivacyError, match="more people"):
        calibrate_shuffled([0.5, 0.5], response, 2, 0.0, 1e-9)
    # the largest level that is tried is below a thousandth of that of the prior, log 2
    local, _ = calibrate_shuffled([0.5, 0.5], response, 1, 2e-4, 1e-6, most=6e-4)
    assert 1.9e-4 <= local <= 2.1e-4
    with pytest.raises(PrivacyError, match="a smaller `most`"):
        calibrate_shuffled([0.5, 0.5], lambda level: response(0.5), 1, 1e-3, 1e-6)


def response(level: float) -> list[list[float]]:
    half = math.exp(level) / 2
    return [[half, 1 - half], [1 - half, half]]


@pytest.mark.parametrize("level", [1e-3, 1e-8])
def test_the_slack_of_a_slight_tilt_is_that_of_the_normal_law(level: float) -> None:
    found = shuffled_slack([0.5, 0.5], response(level), 100_000, 0.0)
    # the mean of lifts 1 +- d has the deviation d / sqrt(n), and E max(0, mean - 1) = d / sqrt(2 pi n)
    normal = (math.exp(level) - 1) / math.sqrt(2 * math.pi * 100_000)
    assert normal * 0.999 <= found <= normal * 1.05
