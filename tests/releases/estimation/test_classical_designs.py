"""Classical designs of randomized response as matrices, beside their published estimators.

Warner (1965), crosswise (Yu, Tian and Tang, 2008), unrelated question with a known (Greenberg et al., 1969)
and an unknown prevalence, Mangat (1994), Kuk (1990), and forced response of several answers (Himmelfarb,
2008): of shares and standard errors, and of the logit that a regression without covariates has.

Regressions are beside the printed examples of the R package RRreg (Heck and Moshagen, Journal of Statistical
Software 85(2), 2018, section 4, and the package's vignette): its survey, `minarets`, is here as counts of the
columns of one of them. The other printed regressions are of data that a seed of R draws, and of ages. The R
package rr (Blair, Imai and Zhou, 2015) prints no table; the survey of its example is not here.
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


def test_the_printed_shares_of_rrreg() -> None:
    # vignette: 633 of 1,000 say yes in Warner's design with p = 1/6; the variance has n - 1
    mechanism = Mechanism(build(5 / 6, 1 / 6), ["no", "yes"], ["no", "yes"])
    found = estimation.model({"it": ["yes"] * 633 + ["no"] * 367}, "it ~ 1", {"it": mechanism})
    share = 1 / (1 + np.exp(-found.coefficients[0]))
    assert share == pytest.approx(0.300500, abs=6e-7)
    error = found.standard_errors[0] * share * (1 - share) * sqrt(1000 / 999)
    assert error == pytest.approx(0.022874, abs=6e-7)


# for or against a ban on minarets, from the left (-5) to the right (5): asked directly, and in two groups
BAN = {
    (0, "no"): [9, 13, 21, 42, 34, 59, 14, 9, 5, 0, 1],
    (0, "yes"): [3, 1, 6, 15, 22, 57, 17, 14, 16, 4, 3],
    (1, "no"): [2, 6, 18, 36, 24, 63, 17, 16, 6, 3, 0],
    (1, "yes"): [3, 11, 39, 57, 47, 124, 41, 29, 15, 3, 4],
    (2, "no"): [5, 11, 37, 73, 39, 81, 31, 9, 7, 0, 1],
    (2, "yes"): [3, 12, 30, 49, 43, 138, 49, 46, 18, 3, 7],
}


def test_the_printed_regression_of_a_stochastic_lie_detector() -> None:
    # people without the trait say yes with 1 - p, those with it yes, or no if they lie; asked directly they
    # do not lie: the letters are (trait, lies), the outputs (group, answer)
    letters = [("no", "no"), ("yes", "no"), ("yes", "yes")]
    sizes = [sum(BAN[group, "no"]) + sum(BAN[group, "yes"]) for group in range(3)]
    saying = np.array([[0, 5 / 6, 1 / 6], [1, 1, 1], [1, 0, 0]]) * sizes / sum(sizes)
    silent = np.array(sizes) / sum(sizes) - saying
    outputs = [f"{group} {answer}" for answer in ("no", "yes") for group in range(3)]
    mechanism = Mechanism(np.hstack([silent, saying]), letters, outputs)
    cells = [
        (g, answer, x - 5)
        for (g, answer), row in BAN.items()
        for x in range(11)
        for _ in range(row[x])
    ]
    side = np.array([x for _, _, x in cells])
    table = {
        "ban+lies": [f"{group} {answer}" for group, answer, _ in cells],
        "randomized": [1 if group else -1 for group, _, _ in cells],
        "right": side - side.mean(),
    }
    found = estimation.model(
        table, "ban ~ randomized * right", {("ban", "lies"): mechanism}, law="~ 1"
    )
    assert found.people == 1621
    assert found.coefficients == pytest.approx([0.76516, 1.05568, 0.47765, 0.09676], abs=6e-6)
    assert found.standard_errors == pytest.approx([0.17804, 0.17804, 0.08001, 0.08001], abs=6e-6)
    # the shares of the groups are no part of RRreg's likelihood
    groups = sum(size * np.log(size / sum(sizes)) for size in sizes)
    assert found.log_likelihood - groups == pytest.approx(-1051.466, abs=6e-4)
