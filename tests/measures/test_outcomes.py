"""What outcomes tell: the posterior by Bayes' rule in fractions, and guesses beside all orders of them."""

import math
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from strategies import MODEST, pairs

from pmlopt import GuessLeakage, Mechanism, Prior, queries, record_leakage, solve
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PriorError, PrivacyError
from pmlopt.measures import (
    audit,
    epsilon_for,
    guessing_probability,
    guesswork,
    ldp_level,
    lip_levels,
    list_outcome_warnings,
    maximal_leakage,
    mutual_information,
    pointwise_leakage,
    posterior,
    summarize_outcomes,
)
from pmlopt.measures.outcomes import select_shown_outcomes, select_table_outcomes


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=2, max_size=4), st.data()
)
@MODEST
def test_the_posterior_is_that_of_bayes(table: list[list[int]], data: st.DataObject) -> None:
    rows = [
        [Fraction(entry + (place == 0), sum(row) + 1) for place, entry in enumerate(row)]
        for row in table
    ]
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    prior = [Fraction(weight, sum(weights)) for weight in weights]
    matrix = np.array(rows, dtype=float)
    found = posterior(np.array(prior, dtype=float), matrix)
    for y in range(3):
        law = sum(p * row[y] for p, row in zip(prior, rows, strict=True))
        if law == 0:
            assert np.isnan(found[:, y]).all()
            continue
        exact = [float(p * row[y] / law) for p, row in zip(prior, rows, strict=True)]
        assert found[:, y] == pytest.approx(exact, abs=1e-14)
    tells: Any = {
        one.output: one for one in summarize_outcomes(np.array(prior, dtype=float), matrix)
    }
    levels = pointwise_leakage(np.array(prior, dtype=float), matrix)
    for y, one in tells.items():
        column = [row[y] for row in rows]
        assert one.leakage == pytest.approx(levels[y], abs=1e-12)
        assert one.identifies_letter == (sum(entry > 0 for entry in column) == 1)
        assert set(one.excluded) == {x for x, entry in enumerate(column) if entry == 0}
        assert column[one.letter] == max(column)


def test_tiny_probabilities_keep_their_digits() -> None:
    prior = [1e-300, 1 - 1e-300]
    assert posterior(prior, [[1.0, 0.0], [1e-300, 1.0]])[0, 0] == pytest.approx(0.5)
    rare = summarize_outcomes(prior, [[1.0, 0.0], [1e-300, 1.0]])[0]
    assert rare.leakage == pytest.approx(math.log(0.5) + 300 * math.log(10))


def test_what_is_said_of_outcomes() -> None:
    tells = summarize_outcomes([0.4, 0.3, 0.3], [[1, 0], [0, 1], [0, 1]])
    assert (
        str(tells[0])
        == "If the output is 0, the true value is 0 with certainty; before it was 0.4."
    )
    assert str(tells[1]).endswith("with probability 0.5; before it was 0.3. It cannot be 0.")
    assert list_outcome_warnings(tells) == (
        # -log 0.4 = 0.91629
        "Anyone who sees the output 0 (probability 0.4) knows with certainty that the true value is 0. PML "
        "with an epsilon below 0.916, which is -log of the probability of 0, rules this out.",
        "Anyone who sees the output 1 can exclude at least one true value, which never leads to it.",
    )
    nearly = summarize_outcomes([0.5, 0.5], [[1.0, 0.0], [1e-5, 1 - 1e-5]])[1]
    assert "with probability more than 0.9999; before it was 0.5." in str(nearly)
    still = summarize_outcomes([0.5, 0.5], [[1, 0], [1, 0]])
    said = "Only the output 0 ever occurs: it reveals nothing. Another utility keeps more."
    assert list_outcome_warnings(still) == (said,)
    near = Mechanism([[0.999, 0.001], [0.003, 0.997]], outputs=["low", "high"])
    warning = (
        "Anyone who sees the output high (probability 0.499) is almost certain that the true value is 1; "
        "from the output low (probability 0.501), that it is 0."
    )
    assert warning in list_outcome_warnings(summarize_outcomes(Prior.uniform(2), near))
    assert list_outcome_warnings([]) == ()
    parity = queries.ModularSum(3, 2)
    found = solve(record_leakage(parity, queries.laplace(parity, 1.0), 1.0))
    assert not found.outcome_summaries
    assert "tells anything" not in found.summary()


def test_the_table_has_the_outcomes_that_a_warning_names() -> None:
    # a letter with 0.93 may be certain from -log 0.93 on, and leaks less than all others
    matrix = [[0.5, 0.1, 0.1, 0.1, 0.2], [0, 0.3, 0.3, 0.3, 0.1], [0, 0.1, 0.3, 0.3, 0.3]]
    tells = summarize_outcomes([0.93, 0.04, 0.03], matrix)
    assert tells[4].output == 0
    assert [one.output for one in select_shown_outcomes(tells)] == [1, 2, 3, 0]
    assert list_outcome_warnings(tells) == (
        "Anyone who sees the output 0 (probability 0.465) knows with certainty that the true value is 0. PML "
        "with an epsilon below 0.0725, which is -log of the probability of 0, rules this out.",
    )
    many = list_outcome_warnings(summarize_outcomes(Prior.uniform(5), np.eye(5)))
    assert "; from the output 1 (probability 0.2), that it is 1" in many[0]
    assert "; 2 other outputs likewise. PML with an epsilon below 1.6," in many[0]


def test_of_outcomes_that_leak_the_same_the_likeliest_come_first_and_are_in_the_table() -> None:
    # log 2 by each of the first four outcomes, up to rounding; the last reveals nothing
    rare, usual = [0.02, 0.0], [0.0, 0.1]
    columns = [rare, [0.0, 0.02], usual, [0.1, 0.0], [0.88, 0.88]]
    tells = summarize_outcomes([0.5, 0.5], np.array(columns).T)
    assert [one.output for one in tells][4] == 4
    assert [one.probability for one in tells] == pytest.approx([0.05, 0.05, 0.01, 0.01, 0.88])
    shown = select_table_outcomes(tells)
    assert [one.probability for one in shown] == pytest.approx([0.05, 0.05, 0.01, 0.88])
    assert shown == [one for one in tells if one in shown]


def test_a_warning_that_every_output_excludes_a_value_lists_none() -> None:
    matrix = 0.5 * (1 - np.eye(3))  # each output rules out one value of three
    assert list_outcome_warnings(summarize_outcomes(Prior.uniform(3), matrix)) == (
        "Anyone who sees an output, whichever of the 3, can exclude at least one true value, which never "
        "leads to it.",
    )


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.floats(0, 1))
@MODEST
def test_the_epsilon_for_a_posterior_keeps_it_and_no_larger_one_does(
    weights: list[int], share: float
) -> None:
    prior = Prior(np.array(weights) / sum(weights)).pmf
    largest = prior.max() + share * (1 - prior.max())
    epsilon = epsilon_for(prior, largest)
    assert prior.max() * math.exp(epsilon) <= largest * (1 + 1e-14)
    assert prior.max() * math.exp(epsilon + 1e-12) >= largest * (1 - 1e-13)
    for bad in (prior.max() * 0.99, 1.01, math.nan):
        with pytest.raises(PriorError):
            epsilon_for(prior, bad)


@given(pairs(min_size=2))
@MODEST
def test_an_audit_has_every_level(pair: tuple[FloatArray, FloatArray]) -> None:
    prior, matrix = pair
    found = audit(prior, matrix)
    lower, upper = lip_levels(prior, matrix)
    assert dict(found.levels) == {
        "pml": upper,
        "ldp": ldp_level(matrix),
        "lip_lower": lower,
        "lip_upper": upper,
        "maximal_leakage": maximal_leakage(matrix),
        "mutual_information": mutual_information(prior, matrix),
    }


# ---------------------------------------------------------------- guesses


@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 10**6))
@settings(max_examples=30)
def test_no_list_and_no_order_of_guesses_is_better(letters: int, outputs: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, matrix = rng.dirichlet(np.ones(letters)), rng.dirichlet(np.ones(outputs), letters)
    joint = p[:, None] * matrix
    for k in range(1, letters + 1):
        best = sum(
            max(joint[list(some), y].sum() for some in combinations(range(letters), k))
            for y in range(outputs)
        )
        assert guessing_probability(p, matrix, k) == pytest.approx(best, abs=1e-12)
    for order in (0.5, 1.0, 2.0):
        numbers = np.arange(1, letters + 1) ** order
        least = sum(
            min(float(numbers @ joint[list(own), y]) for own in permutations(range(letters)))
            for y in range(outputs)
        )
        assert guesswork(p, matrix, order) == pytest.approx(least, abs=1e-12)


def test_the_mean_success_grows_by_no_more_than_the_worst_outcome_tells() -> None:
    rng = np.random.default_rng(3)
    p, matrix = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(3), 5)
    still = np.ones((5, 1))
    for k in (1, 2, 4):
        grown = guessing_probability(p, matrix, k) / guessing_probability(p, still, k)
        assert 1 - 1e-12 <= grown <= math.exp(GuessLeakage(k, 1.0).level(p, matrix)) + 1e-12
    assert guesswork(p, np.eye(5)) == pytest.approx(1)
    assert guesswork(p, matrix) <= guesswork(p, still) + 1e-12


def test_impossible_numbers_are_refused() -> None:
    half = ([0.5, 0.5], np.eye(2))
    refused(PrivacyError, guessing_probability, "guesses", (*half, 0))
    refused(
        PrivacyError,
        guesswork,
        "order",
        *((*half, order) for order in (0, -1.0, math.inf, math.nan)),
    )


def test_a_value_that_is_as_good_as_excluded_is_a_warning() -> None:
    mechanism = [[0.5, 0.5], [1e-10, 1 - 1e-10]]
    tells = summarize_outcomes([0.75, 0.25], mechanism)
    assert [one.excluded for one in tells] == [(), ()]
    assert list_outcome_warnings(tells)[-1] == (
        "Anyone who sees the output 0 can exclude at least one true value, which never leads to it, or a "
        "million times less often than another."
    )
    assert not list_outcome_warnings(summarize_outcomes([0.5, 0.5], [[0.5, 0.5], [1e-5, 0.99999]]))[
        1:
    ]
