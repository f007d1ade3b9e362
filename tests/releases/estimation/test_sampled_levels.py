"""Levels of a black box from samples: exact coverage, and mechanisms that break their claims."""

from __future__ import annotations

import math
from itertools import product
from typing import Literal

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import beta, binom, chi2

from pmlopt import Mechanism, Prior, ldp_level, leakage_level
from pmlopt.errors import InputError, MechanismError, PriorError, PrivacyError
from pmlopt.releases.estimation import level_from_samples, samples_to_refute
from pmlopt.releases.estimation.sampled_levels import (
    Measure,
    _BinomialTails,
    _CellTest,
    _compute_ratios,
)

PRIOR = Prior([0.7, 0.3], ["a", "b"])
BOX = np.array([[0.8, 0.2], [0.3, 0.7]])


def true_level(prior: Prior, matrix: np.ndarray, measure: Measure) -> float:
    mechanism = Mechanism(matrix, prior.labels)
    return leakage_level(prior, mechanism) if measure == "pml" else ldp_level(mechanism)


@pytest.mark.parametrize(("measure", "draws"), [("pml", 3), ("ldp", 2)])
def test_the_interval_holds_the_level_with_its_confidence(measure: Measure, draws: int) -> None:
    level = true_level(PRIOR, BOX, measure)
    covered = 0.0
    for seen in product(range(draws + 1), repeat=2):
        found = level_from_samples(PRIOR, [[k, draws - k] for k in seen], 0.6, measure)
        chances = [
            math.comb(draws, k) * row[0] ** k * row[1] ** (draws - k)
            for k, row in zip(seen, BOX, strict=True)
        ]
        covered += math.prod(chances) * (found.lower <= level <= found.upper)
    assert covered >= 0.6


@pytest.mark.parametrize("measure", ["pml", "ldp"])
def test_both_ends_are_near_the_level_with_many_samples(measure: Measure) -> None:
    matrix = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.4, 0.5]])
    prior = Prior([0.5, 0.3, 0.2])
    found = level_from_samples(prior, np.rint(1e8 * matrix), measure=measure)
    level = true_level(prior, matrix, measure)
    assert found.lower < level < found.upper
    assert found.upper - found.lower < 5e-3
    assert (found.letter, found.output) == ((2, 2) if measure == "pml" else (0, 0))


@pytest.mark.parametrize("end", [1, -1])
def test_the_bound_of_a_cell_is_the_extreme_over_its_set(end: Literal[1, -1]) -> None:
    rng = np.random.default_rng(5)
    for _ in range(3):
        p = rng.dirichlet(np.ones(3))
        seen = rng.integers(1, 200, 3).astype(float)
        test = _CellTest(p, np.stack([seen, 200 - seen], axis=1), "pml")

        def ratio(split: np.ndarray, p: np.ndarray = p, seen: np.ndarray = seen) -> float:
            """The level at entries whose tests share the budget so."""
            tails = np.exp(-chi2.isf(0.05, 6) / 2 * softmax(np.append(split, 0.0)))
            up, down = beta.ppf(tails, seen, 201 - seen), beta.isf(tails, seen + 1, 200 - seen)
            q = np.where((np.arange(3) == 0) == (end == 1), up, down)
            return float(end * (np.log(q[0]) - np.log(p @ q)))

        found = minimize(
            ratio, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}
        )
        assert test.compute_end(0, -1, 0, 0.05, end) == pytest.approx(end * found.fun, abs=1e-7)


@pytest.mark.parametrize("measure", ["pml", "ldp"])
def test_the_ends_are_those_of_all_cells(measure: Measure) -> None:
    rng = np.random.default_rng(6)
    drawn = rng.integers(0, 40, (2, 2)).astype(float) + np.array([[1.0, 0.0]])
    test = _CellTest(rng.dirichlet(np.ones(2)), drawn, measure)
    for end, tail in ((1, 0.01), (-1, 0.05)):
        pairs = product(range(2), range(2) if measure == "ldp" else [-1], range(2))
        one_by_one = max(
            test.compute_end(x, other, y, tail, 1 if end == 1 else -1)
            for x, other, y in pairs
            if x != other
        )
        assert test.find_largest(tail, 1 if end == 1 else -1)[0] == one_by_one


@pytest.mark.parametrize("measure", ["pml", "ldp"])
def test_a_claim_that_is_broken_by_a_fifth_of_a_nat_is_caught(measure: Measure) -> None:
    matrix = np.array([[0.6, 0.4], [0.35, 0.65], [0.5, 0.5]])
    prior = Prior([0.4, 0.4, 0.2])
    claim = true_level(prior, matrix, measure) - 0.2
    needed = samples_to_refute(prior, matrix, claim, 0.95, 0.95, measure)
    rng, caught = np.random.default_rng(11), 0
    for _ in range(8):
        counts = [rng.multinomial(needed, row) for row in matrix]
        caught += level_from_samples(prior, counts, 0.95, measure).refutes(claim)
    assert caught >= 5  # fewer happen with probability 4e-4 at a power of 0.95
    honest = [rng.multinomial(needed, row) for row in matrix]
    assert not level_from_samples(prior, honest, 0.95, measure).refutes(claim + 0.21)


def test_what_was_never_drawn_may_tell_everything() -> None:
    found = level_from_samples(
        PRIOR, {"a": {"x": 900, "y": 100}, "b": {"x": 500, "y": 500, "z": 0}}
    )
    assert found.upper == pytest.approx(PRIOR.max_leakage)
    assert (found.letter, found.output, found.samples) == ("b", "y", (1_000, 1_000))
    assert math.isinf(level_from_samples(PRIOR, [[9, 1, 0], [5, 5, 0]], measure="ldp").upper)
    with pytest.raises(PrivacyError, match="keeps its claim"):
        samples_to_refute(PRIOR, BOX, 2.0)
    with pytest.raises(InputError, match="power is 0"):
        samples_to_refute(PRIOR, BOX, 0.1, power=0.0)


@pytest.mark.parametrize(
    ("counts", "options", "error", "message"),
    [
        ([[1, 2]], {}, MechanismError, "1 rows for"),
        ([[1, 2], [0, 0]], {}, MechanismError, "nothing was drawn at the letter 'b'"),
        ([[1, -2], [1, 1]], {}, PriorError, "-2"),
        ({"a": {"x": 1}}, {}, MechanismError, "no entry for 'b'"),
        ({"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}}, {}, MechanismError, "'c' is none of"),
        ([[1, 2], [2, 1]], {"confidence": 1.5}, InputError, "confidence is 1.5"),
        ([[1, 2], [2, 1]], {"measure": "dp"}, InputError, "'pml' or 'ldp'"),
    ],
)
def test_bad_samples_are_refused(
    counts: object, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        level_from_samples(PRIOR, counts, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("upward", [True, False])
def test_tails_are_those_of_the_binomial_and_their_slopes_those_of_differences(
    upward: bool,
) -> None:
    seen = np.array([0.0, 1, 3, 9, 10])
    every, q, step = _BinomialTails(seen, 10 - seen, upward), np.full(5, 0.3), 1e-6
    expected = binom.logsf(seen - 1, 10, q) if upward else binom.logcdf(seen, 10, q)
    assert every.log_tail(q) == pytest.approx(expected, abs=1e-12)
    assert every.log_slope(q)[~every.is_varying].tolist() == [-math.inf]
    tail, q = _BinomialTails(seen[every.is_varying], 10 - seen[every.is_varying], upward), q[1:]
    slopes = np.abs(tail.log_tail(q + step) - tail.log_tail(q - step)) / (2 * step)
    assert np.exp(tail.log_slope(q)) == pytest.approx(slopes, rel=1e-6)
    bends = (tail.log_slope(q + step) - tail.log_slope(q - step)) / (2 * step)
    assert tail.log_slope_and_bend(q)[1] == pytest.approx(bends, rel=1e-5)
    ends = np.full(4, 0.1), np.full(4, 0.9)
    span = *ends, *map(tail.log_slope, ends)
    for start in (*ends, q):
        found, rates = tail.find_by_slope(np.log(slopes), span, start)
        assert found == pytest.approx(q, rel=1e-5)
        assert rates == pytest.approx(1 / bends, rel=1e-5)
    for wanted in (1e3, -1e3):  # steeper, or less steep, than anywhere in the span
        end = ends[0 if (wanted > 0) == upward else 1]
        found, rates = tail.find_by_slope(np.full(4, wanted), span, q)
        assert found == pytest.approx(end, rel=1e-12)
        assert rates.tolist() == [0.0] * 4


def test_levels_of_letters_and_outputs_are_those_of_their_definition() -> None:
    p = np.array([0.5, 0.3, 0.2])
    matrix = np.array([[0.5, 0.3, 0.2, 0], [0.1, 0.6, 0.3, 0], [0.2, 0.2, 0.5, 0.1]])
    for x, y in product(range(3), range(4)):
        own, least = matrix[x, y], min(matrix[k, y] for k in range(3) if k != x)
        told, bound = (
            _compute_ratios(p, matrix, matrix, "pml")[x, y],
            _compute_ratios(p, matrix, matrix, "ldp")[x, y],
        )
        if own == 0:
            assert told == bound == -math.inf
        else:
            assert told == pytest.approx(math.log(own / float(p @ matrix[:, y])), abs=1e-14)
            assert bound == pytest.approx(math.log(own / least) if least else math.inf, abs=1e-14)
