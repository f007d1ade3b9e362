"""Classical designs of randomized response as matrices, beside their published estimators.

Warner (1965), crosswise (Yu, Tian and Tang, 2008), unrelated question with a known (Greenberg et al., 1969)
and an unknown prevalence, Mangat (1994), Kuk (1990), and forced response of several answers (Himmelfarb,
2008): of shares and standard errors, and of the logit that a regression without covariates has.
"""

from __future__ import annotations

from math import comb, sqrt

import numpy as np
import pytest

from pmlopt import Mechanism, estimate, estimation
from pmlopt.core.numbers.arrays import FloatArray

PEOPLE, YES = 1000, 560


def build(no: float, yes: float) -> FloatArray:
    """The matrix of a yes with these probabilities, of people without and with the trait."""
    return np.array([[1 - no, no], [1 - yes, yes]])


def match(matrix: FloatArray, share: float, error: float) -> None:
    """Compare the estimate of a share, and the logit of a model, with the published ones."""
    mechanism = Mechanism(matrix, ["no", "yes"], ["no", "yes"])
    found = estimate(mechanism, [PEOPLE - YES, YES])
    assert found.frequencies[1] == pytest.approx(share, abs=1e-7)
    assert found.standard_errors[1] == pytest.approx(
        error, rel=1e-3
    )  # at a law that a search found
    table = {"it": ["yes"] * YES + ["no"] * (PEOPLE - YES)}
    fitted = estimation.model(table, "it ~ 1", {"it": mechanism})
    assert fitted.coefficients[0] == pytest.approx(np.log(share / (1 - share)), rel=1e-8)
    assert fitted.standard_errors[0] == pytest.approx(error / (share * (1 - share)), rel=1e-8)


def test_warner_and_crosswise() -> None:
    # RRreg's example: p = 0.2; pi = (l + p - 1) / (2 p - 1), se = sqrt(l (1 - l) / n) / |2 p - 1|
    rate, p = YES / PEOPLE, 0.2
    share = (rate + p - 1) / (2 * p - 1)
    match(build(1 - p, p), share, sqrt(rate * (1 - rate) / PEOPLE) / abs(2 * p - 1))


def test_an_unrelated_question_of_known_prevalence() -> None:
    # pi = (l - (1 - p) q) / p, with the prevalence q
    rate, p, q = YES / PEOPLE, 0.7, 0.4
    match(
        build((1 - p) * q, p + (1 - p) * q),
        (rate - (1 - p) * q) / p,
        sqrt(rate * (1 - rate) / PEOPLE) / p,
    )


def test_mangat() -> None:
    # people with the trait say yes; others with the probability 1 - p
    rate, p = YES / PEOPLE, 0.8
    match(build(1 - p, 1.0), (rate - 1 + p) / p, sqrt(rate * (1 - rate) / PEOPLE) / p)


def test_kuk_with_one_card() -> None:
    rate, (p, q) = YES / PEOPLE, (0.8, 0.3)
    match(build(q, p), (rate - q) / (p - q), sqrt(rate * (1 - rate) / PEOPLE) / (p - q))


def test_kuk_with_several_cards_is_at_least_as_good_as_his_mean() -> None:
    cards, p, q, share = 3, 0.8, 0.3, 0.3
    matrix = np.array(
        [[comb(cards, k) * one**k * (1 - one) ** (cards - k) for k in range(4)] for one in (q, p)]
    )
    law = np.array([1 - share, share]) @ matrix
    found = estimate(matrix, np.round(law * 1e6).astype(int))
    # of the mean of red cards: phi (1 - phi) / (cards n (p - q)^2) + (1 - 1 / cards) pi (1 - pi) / n
    phi, people = share * p + (1 - share) * q, float(np.round(law * 1e6).sum())
    variance = phi * (1 - phi) / (cards * (p - q) ** 2) + (1 - 1 / cards) * share * (1 - share)
    assert found.frequencies[1] == pytest.approx(share, abs=1e-5)
    assert found.standard_errors[1] < sqrt(variance / people)
    # the linear estimate of least variance is between the two
    linear = estimate(matrix, np.round(law * 1e6).astype(int), method="linear")
    assert linear.standard_errors[1] <= sqrt(variance / people)


def test_an_unrelated_question_of_unknown_prevalence() -> None:
    # two groups with chances p of the sensitive question: the letters are (trait, other trait), the
    # outputs (group, answer); pi = (l1 (1 - p2) - l2 (1 - p1)) / (p1 - p2)
    p, sizes, yes = (0.75, 0.3), (600, 400), (264, 190)
    letters = [(trait, other) for trait in ("no", "yes") for other in ("no", "yes")]
    rates = [[p[g] * (x == "yes") + (1 - p[g]) * (u == "yes") for x, u in letters] for g in (0, 1)]
    outputs = [(g, answer) for g in (1, 2) for answer in ("no", "yes")]
    matrix = np.column_stack([
        column * sizes[g] / PEOPLE for g in (0, 1) for column in (1 - np.array(rates[g]), np.array(rates[g]))
    ])  # fmt: skip
    counts = [sizes[0] - yes[0], yes[0], sizes[1] - yes[1], yes[1]]
    traits = [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]]
    found = estimate(Mechanism(matrix, letters, outputs), counts, workload=traits, min_p_value=0)
    first, second = (part / size for part, size in zip(yes, sizes, strict=True))
    spread = p[0] - p[1]
    share = (first * (1 - p[1]) - second * (1 - p[0])) / spread
    other = (p[0] * second - p[1] * first) / spread
    assert found.columns["estimate"] == pytest.approx([share, other], abs=1e-6)
    terms = [rate * (1 - rate) / size for rate, size in zip((first, second), sizes, strict=True)]
    error = sqrt(terms[0] * (1 - p[1]) ** 2 + terms[1] * (1 - p[0]) ** 2) / spread
    assert found.standard_errors[0] == pytest.approx(error, rel=1e-3)


def test_forced_response_of_three_answers() -> None:
    # pi_i = (l_i - p_i) / (1 - sum p), se = sqrt(l_i (1 - l_i) / n) / (1 - sum p)
    forced, counts = np.array([0.1, 0.15, 0.05]), np.array([420, 380, 200])
    truth = 1 - forced.sum()
    found = estimate(truth * np.eye(3) + forced, counts)
    rates = counts / PEOPLE
    assert found.frequencies == pytest.approx((rates - forced) / truth, abs=1e-7)
    assert found.standard_errors == pytest.approx(
        np.sqrt(rates * (1 - rates) / PEOPLE) / truth, rel=1e-3
    )
