"""Intervals and the test of fit: how often they hold, for shares of people as scipy has them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from pmlopt import LDP, PML, EstimationError, Mechanism, Prior, design, estimate, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import InputError, MechanismError
from pmlopt.releases.estimation import independence
from pmlopt.releases.estimation.frequencies import maximize_likelihood
from pmlopt.releases.estimation.intervals import Intervals, goodness_of_fit

RESPONSE = np.array([[0.75, 0.25], [0.25, 0.75]])
RARE = np.array([0.55, 0.3, 0.148, 0.002])


@cache
def designed(name: str, epsilon: float) -> FloatArray:
    requirement = {"pml": PML(epsilon), "ldp": LDP(epsilon)}[name]
    return solve(design(Prior(RARE), requirement, EstimationError())).mechanism.matrix


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """The probability of so few hits."""
    return sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits + 1)
    )  # fmt: skip


@pytest.mark.parametrize(("name", "epsilon", "people"), [("pml", 1.0, 5_000), ("ldp", 1.0, 50)])
def test_intervals_hold_about_as_often_as_they_say(name: str, epsilon: float, people: int) -> None:
    """250 samples; a coverage from 0.935 to 0.965 fails with 1e-4 a letter: four deviations are allowed."""
    matrix, rng = designed(name, epsilon), np.random.default_rng(11)
    held = np.zeros(4)
    for counts in rng.multinomial(people, RARE @ matrix, 250):
        ends = estimate(matrix, counts, min_p_value=0.0).confidence_interval(0.95)
        held += (ends[:, 0] <= RARE) & (ends[:, 1] >= RARE)
    spread = 4 * math.sqrt(0.05 * 0.95 / 250)
    assert (held / 250 >= 0.935 - spread).all()
    assert (held / 250).mean() <= 0.965 + spread


@pytest.mark.parametrize(
    ("kind", "people"), [("bernstein", 2), ("bernstein", 500), ("exact", 2), ("exact", 20)]
)
def test_guaranteed_intervals_hold_at_any_number_of_people(kind: Intervals, people: int) -> None:
    """60 samples at 0.8: fewer than 34 hold together with a probability of 2e-5, if what is said is true."""
    matrix, rng, held = designed("pml", 1.0), np.random.default_rng(12), 0
    for counts in rng.multinomial(people, RARE @ matrix, 60):
        ends = estimate(matrix, counts, confidence=0.8, intervals=kind, min_p_value=0.0).intervals
        held += bool(((ends[:, 0] <= RARE) & (ends[:, 1] >= RARE)).all())
    assert binomial_tail(33, 60, 0.8) < 2e-5
    assert held >= 34


def test_fewer_combinations_have_narrower_intervals_and_all_are_within_what_frequencies_give() -> (
    None
):
    found = estimate(RESPONSE, [19, 1], intervals="bernstein", min_p_value=0.0)
    assert (
        np.ptp(found.confidence_interval(0.9), axis=1)
        <= np.ptp(found.confidence_interval(0.9, simultaneous=True), axis=1)
    ).all()
    for kind in ("score", "bernstein", "exact", "wald"):
        ends = found.confidence_interval(0.99, kind=kind)
        assert (ends >= 0).all()
        assert (ends <= 1).all()
        assert (ends[:, 0] <= ends[:, 1]).all()
    one = estimate(RESPONSE, [1, 0], intervals="bernstein", min_p_value=0.0)
    assert one.intervals.tolist() == [[0, 1], [0, 1]]  # nothing is known from one person
    with pytest.raises(InputError, match="score, bernstein"):
        found.confidence_interval(kind="best")  # type: ignore[arg-type]


def test_counts_of_another_file_are_refused() -> None:
    with pytest.raises(
        MechanismError, match=r"no frequencies agree with these counts \(p = .*right order"
    ):
        estimate(RESPONSE, [950, 50])
    with pytest.warns(UserWarning, match="hardly any frequencies"):
        estimate(RESPONSE, [800, 200])
    found = estimate(RESPONSE, [950, 50], min_p_value=0.0)
    assert found.fit.p_value < 1e-6
    assert found.fit.degrees == 1
    assert goodness_of_fit(np.eye(2), np.array([50, 50]), np.array([1.0, 0.0])).p_value == 0
    matrix = designed("pml", 1.0)
    permuted = np.rint(1_000 * np.roll(RARE @ matrix, 1)).astype(np.int64)
    assert (
        goodness_of_fit(
            matrix, permuted, maximize_likelihood(matrix, permuted.astype(float))
        ).p_value
        < 1e-6
    )


def test_the_test_of_fit_refuses_honest_counts_as_rarely_as_it_says() -> None:
    """300 samples at 0.05: more than 35 are refused with a probability of 1e-6, if no more than said are."""
    matrix, rng = designed("pml", 1.0), np.random.default_rng(13)
    values = [
        goodness_of_fit(matrix, counts, maximize_likelihood(matrix, counts.astype(float))).p_value
        for people in (60, 2_000)
        for counts in rng.multinomial(people, RARE @ matrix, 150)
    ]
    assert (np.array(values) < 0.05).sum() <= 35


def test_many_outputs_with_few_people_each_are_no_reason_to_refuse() -> None:
    """200 samples at 0.01: more than 11 are refused with a probability of 1e-5, if what is said is true."""
    rng = np.random.default_rng(14)
    matrix = rng.dirichlet(np.full(300, 50.0), 2)
    law = np.array([0.6, 0.4]) @ matrix
    values = [
        goodness_of_fit(matrix, counts, maximize_likelihood(matrix, counts.astype(float))).p_value
        for counts in rng.multinomial(int(5.5 / law.min()), law, 200)
    ]
    assert (np.array(values) < 0.01).sum() <= 11


def test_an_estimate_has_its_likelihood_and_a_frame() -> None:
    released = Mechanism(RESPONSE, ["no", "yes"], ["n", "y"])
    found = estimate(released, {"n": 60, "y": 40})
    assert found.log_likelihood == pytest.approx(60 * math.log(0.6) + 40 * math.log(0.4))
    frame = found.summary()
    assert list(frame.index) == ["no", "yes"]
    assert frame.loc["no", "estimate"] == pytest.approx(0.7)
    assert frame.loc["no", "from"] == found.intervals[0, 0]


@pytest.mark.parametrize("count", [0, 1, 3, 10, 19, 20])
def test_intervals_of_a_share_are_those_of_a_binomial_test(count: int) -> None:
    found, known = estimate(np.eye(2), [count, 20 - count]), stats.binomtest(count, 20)
    score = found.confidence_interval(0.9)[0]
    assert score == pytest.approx(known.proportion_ci(0.9, "wilson"), abs=1e-9)
    both = found.confidence_interval(0.9, kind="exact")[
        0
    ]  # each at 0.95, so that both hold at 0.9 or more
    assert both[0] <= known.proportion_ci(0.9, "exact").low + 1e-9
    assert both[1] >= known.proportion_ci(0.9, "exact").high - 1e-9


def test_the_fit_and_independence_are_likelihood_ratio_tests() -> None:
    matrix, counts = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]), np.array([50, 30, 20])
    found = estimate(matrix, counts)
    known = stats.power_divergence(
        counts, 100 * found.frequencies @ matrix, ddof=1, lambda_="log-likelihood"
    )
    assert found.fit.statistic == pytest.approx(known.statistic, rel=1e-6)
    assert found.fit.p_value == pytest.approx(known.pvalue, rel=0.05)  # Williams's correction
    pairs = [[300, 200], [200, 300]]
    apart = stats.chi2_contingency(pairs, lambda_="log-likelihood", correction=False)
    assert independence(pairs).statistic == pytest.approx(apart[0])
    assert independence(pairs).p_value == pytest.approx(apart[1], rel=0.05)
