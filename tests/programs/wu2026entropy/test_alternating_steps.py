"""Single steps of the alternating and of the local method: fixed points, entropies and where they end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from oracles.designs import FloatArray
from scipy.special import softmax

from pmlopt.measures.leakage import mutual_information
from pmlopt.programs.record_leakage import local_ascent
from pmlopt.programs.record_leakage.adversary import BoundedAdversary
from pmlopt.programs.wu2026entropy import alternating
from pmlopt.programs.wu2026entropy.alternating import (
    AlternatingRun,
    LocalOptimum,
    compute_conditional_gradient,
    compute_entropies,
    compute_information,
    compute_output_laws,
    optimize_conditionals,
    optimize_marginal,
    project_to_entropy,
)

LAWS = np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
INNER = np.array([0.9, 0.2, 0.4])


@pytest.mark.parametrize("share", [0.9, 0.995])
def test_the_best_marginal_has_one_price_of_the_entropy(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Where it is optimal `D_a + s (inner_a - log p_a)` is the same for all letters, for a price s >= 0."""
    rounds: list[float] = []

    def counted(letters: FloatArray, laws: FloatArray) -> float:
        rounds.append(compute_information(letters, laws))
        return rounds[-1]

    monkeypatch.setattr(alternating, "compute_information", counted)
    start = softmax(INNER)  # of the largest entropy
    most = float(compute_entropies(start) + start @ INNER)
    least = share * most
    law = optimize_marginal(start, LAWS, INNER, least, rate=5.0, tolerance=1e-11)
    have = float(compute_entropies(law) + law @ INNER)
    assert have >= least - 1e-12
    mean = law @ LAWS
    divergences = (LAWS * np.log(LAWS / mean)).sum(axis=1)
    surprises = INNER - np.log(law)
    apart, by = divergences - divergences[0], surprises - surprises[0]
    price = -float(apart @ by) / float(by @ by)
    assert apart == pytest.approx(-price * by, abs=1e-5)
    assert (have == pytest.approx(least, abs=1e-8)) is (share > 0.99)
    assert price == pytest.approx(0.0, abs=1e-4) or price > 0.1
    assert len(rounds) < 300  # of 5,000 that it makes at most


def test_at_a_large_price_the_largest_entropy_is_a_step_away() -> None:
    law = softmax(INNER)
    least = float(compute_entropies(law) + law @ INNER) - 1e-3
    found = optimize_marginal(
        np.array([0.98, 0.01, 0.01]), LAWS, INNER, least, rate=1e9, iterations=2
    )
    assert found == pytest.approx(law, abs=1e-6)


def test_a_letter_without_mass_is_found_again() -> None:
    law = optimize_marginal(np.array([1.0, 0.0]), np.eye(2), np.zeros(2), 0.0)
    assert law == pytest.approx([0.5, 0.5])


def test_the_law_of_an_entropy_is_the_one_it_was_taken_from() -> None:
    vector = np.array([0.3, -1.2, 2.0, 0.4])
    for scale in (0.5, 1.0, 3.0):
        law = softmax(scale * vector)
        entropy = float(-(law * np.log(law)).sum())
        assert project_to_entropy(vector, entropy) == pytest.approx(law, abs=1e-8)


def make_case() -> tuple[FloatArray, FloatArray, FloatArray]:
    random = np.random.default_rng(1)
    return (
        np.array([0.5, 0.3, 0.2]),
        random.dirichlet(np.ones(4), size=3),
        random.dirichlet(np.ones(3), size=(3, 4)),
    )


@pytest.mark.parametrize("spare", [0.0, 0.05])
def test_a_row_keeps_the_entropy_that_the_whole_cannot_spare(
    monkeypatch: pytest.MonkeyPatch, spare: float
) -> None:
    """Its own, less what may be spared over the mass of its letter; and the step to it is uphill."""
    letters, rows, channel = make_case()
    own = compute_entropies(rows)
    entropy = float(compute_entropies(letters) + letters @ own) - spare
    taken: list[tuple[FloatArray, float]] = []

    def recorded(vector: FloatArray, wanted: float) -> FloatArray:
        taken.append((vector, wanted))
        return project_to_entropy(vector, wanted)

    monkeypatch.setattr(alternating, "project_to_entropy", recorded)
    found = optimize_conditionals(letters, rows, channel, entropy, iterations=1)
    near, wanted = taken[0]
    assert wanted == pytest.approx(own[0] - spare / letters[0])
    gradient = compute_conditional_gradient(letters, compute_output_laws(rows, channel), channel)
    assert near @ gradient[0] > rows[0] @ gradient[0]
    assert float(compute_entropies(letters) + letters @ compute_entropies(found)) >= entropy - 1e-9


def test_rows_that_cannot_gain_end_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the entropy is that of uniform rows, no other row has it."""
    letters, _, channel = make_case()
    entropy = float(compute_entropies(letters)) + math.log(4)
    rounds: list[int] = []

    def counted(*parts: FloatArray) -> FloatArray:
        rounds.append(1)
        return compute_conditional_gradient(*parts)

    monkeypatch.setattr(alternating, "compute_conditional_gradient", counted)
    found = optimize_conditionals(letters, np.full((3, 4), 0.25), channel, entropy)
    assert found == pytest.approx(np.full((3, 4), 0.25))
    assert len(rounds) == len(letters)


def test_a_run_ends_with_the_round_that_gains_less_than_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prior, values = np.full((2, 2), 0.25), iter([0.1, 0.1, 0.3, 0.3, 0.3001, 0.3, 9.0, 9.0])
    monkeypatch.setattr(
        AlternatingRun,
        "_optimize_record",
        lambda self, prior, record: LocalOptimum(next(values), prior, record),
    )
    table = np.array([[0, 1], [1, 0]])
    run = AlternatingRun(table, LAWS[table], 1.0, 1e-3, first=prior)
    assert run.run(np.random.default_rng(0)).value == 0.3001


# the local method


def make_adversary(entropy: float = 1.5) -> BoundedAdversary:
    counts = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
    return BoundedAdversary(LAWS, np.log(counts), entropy, math.log(12))


def test_the_price_is_sought_four_times_as_far_as_it_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the rounds end with one in which no law leaks more."""
    adversary = make_adversary()
    reaches: list[float] = []
    guesses = iter([1.0, 1.01, 1.01, 1.01])
    better = adversary.make_allowed(np.array([[0.5, 0.0, 0.0], [0.0, 0.0, 0.5]]))
    laws = iter([0.5 * (better + adversary.uniform_law), better, better, better])

    def solve(*parts: Any) -> tuple[FloatArray, FloatArray]:
        reaches.append(float(parts[-1][0]))
        return np.array([next(guesses)]), next(laws)[None]

    monkeypatch.setattr(local_ascent, "_solve_entropy_prices", solve)
    found, values = local_ascent.maximize_locally(adversary, adversary.uniform_law[None])
    assert reaches == pytest.approx([math.inf, 0.1, 0.04])
    assert found[0] == pytest.approx(better)
    outputs = better @ LAWS
    given = outputs / outputs.sum(axis=1, keepdims=True)
    assert values[0] == pytest.approx(mutual_information(outputs.sum(axis=1), given))


def test_every_class_that_a_letter_meets_is_in_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_ascent, "MIN_MASS", 0.01)
    starts = local_ascent.draw_starts(make_adversary(0.0), 4, 0)
    assert starts.min() > 0
