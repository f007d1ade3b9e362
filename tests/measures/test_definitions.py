"""Every measure of a prior and a mechanism against its definition in exact arithmetic, and at the ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.finite_orders import worst_prior
from refusals import refused
from strategies import (
    MODEST,
    epsilons,
    exact,
    exact_columns,
    exact_law,
    log_of,
    mechanisms,
    pairs,
    priors,
)

from pmlopt import (
    PML,
    Mechanism,
    Prior,
    Secret,
    SibsonLeakage,
    maximal_leakage,
    measures,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import (
    channel_capacity,
    failure_probability,
    information_density,
    ldp_level,
    leakage_level,
    leakage_parts,
    lip_levels,
    maximal_alpha_leakage,
    mutual_information,
    pointwise_leakage,
    secret_witness,
)
from pmlopt.measures.leakage import log_entry_ratios, log_product_ratios

Pair = tuple[FloatArray, FloatArray]
CLOSE: dict[str, Any] = {"rel": 1e-12, "abs": 1e-14}
OF_CHANNELS, OF_OUTCOMES = (
    ("maximal_leakage", "ldp_level"),
    ("information_density", "pointwise_leakage"),
)


def output_law(prior: FloatArray, matrix: FloatArray) -> list[Fraction]:
    law = exact_law(prior)
    return [sum((p * v for p, v in zip(law, exact(c), strict=True)), Fraction(0)) for c in matrix.T]


def defined(prior: FloatArray, matrix: FloatArray) -> Mapping[str, Any]:
    """The measures by name, from sums and quotients in fractions."""
    p, law, columns = exact_law(prior), output_law(prior, matrix), exact_columns(matrix)
    rows = [
        [v / q if v > 0 else Fraction(0) for v, q in zip(exact(row), law, strict=True)]
        for row in matrix
    ]
    density = np.array(
        [[log_of(ratio) if ratio > 0 else -math.inf for ratio in row] for row in rows]
    )
    occurring = density[:, matrix.max(axis=0) > 0]
    joint = [float(w * v) for w, row in zip(p, matrix, strict=True) for v in exact(row)]
    return {
        "information_density": density,
        "pointwise_leakage": density.max(axis=0),
        "leakage_level": density.max(),
        "lip_levels": (-occurring.min(), density.max()),
        "mutual_information": math.fsum(
            w * d for w, d in zip(joint, density.ravel().tolist(), strict=True) if w > 0
        ),
        "maximal_leakage": log_of(sum((max(column) for column in columns), Fraction(0))),
        "ldp_level": max(
            log_of(max(column) / min(column)) if min(column) > 0 else math.inf for column in columns
        ),
    }


def measured(name: str, prior: FloatArray, matrix: FloatArray) -> Any:
    measure = getattr(measures, name)
    return measure(matrix) if name in OF_CHANNELS else measure(prior, matrix)


@given(pairs())
@MODEST
def test_every_measure_is_its_definition(pair: Pair) -> None:
    for name, expected in defined(*pair).items():
        close: dict[str, Any] = {"abs": 1e-14} if name == "mutual_information" else CLOSE
        assert measured(name, *pair) == pytest.approx(expected, **close), name
    assert lip_levels(*pair)[1] == leakage_level(*pair)


@given(pairs())
@MODEST
def test_outputs_outside_the_support_count_in_no_maximum(pair: Pair) -> None:
    prior, matrix = pair
    wider = np.insert(matrix, 0, 0.0, axis=1)
    assert pointwise_leakage(prior, wider)[0] == -math.inf
    assert (information_density(prior, wider)[:, 0] == -math.inf).all()
    # a product of other shape may round differently in its last place
    for name in (*OF_OUTCOMES, *OF_CHANNELS, "leakage_level", "lip_levels", "mutual_information"):
        found = measured(name, prior, wider)
        found = found[..., 1:] if name in OF_OUTCOMES else found
        assert found == pytest.approx(measured(name, prior, matrix), rel=1e-14, abs=1e-15), name
    assert failure_probability(prior, wider, 0.0) == pytest.approx(
        failure_probability(prior, matrix, 0.0), abs=1e-15
    )


@given(priors(), mechanisms(1))
@MODEST
def test_a_constant_mechanism_leaks_exactly_nothing(prior: FloatArray, row: FloatArray) -> None:
    matrix = np.tile(row, (len(prior), 1))
    for name in ("leakage_level", "mutual_information", "maximal_leakage", "ldp_level"):
        assert measured(name, prior, matrix) == 0.0, name
    assert lip_levels(prior, matrix) == (0.0, 0.0)
    assert failure_probability(prior, matrix, 0.0) == 0.0
    assert set(information_density(prior, matrix).ravel().tolist()) <= {0.0, -math.inf}


def test_tiny_levels_and_little_information_have_their_digits() -> None:
    for step in (1e-6, 1e-9, 1e-12, 1e-14):
        prior, matrix = np.array([0.3, 0.7]), np.array([[0.6 + step, 0.4 - step], [0.6, 0.4]])
        expected = defined(prior, matrix)
        for name in ("leakage_level", "lip_levels", "maximal_leakage", "ldp_level"):
            assert measured(name, prior, matrix) == pytest.approx(
                expected[name], rel=1e-6, abs=0
            ), name
    for step in (1e-3, 1e-5, 1e-6):
        matrix = np.array([[0.5 + step, 0.5 - step], [0.5 - step, 0.5 + step]])
        # the series of the capacity of a binary symmetric channel: 2 s^2 + 4/3 s^4 + 32/15 s^6 + ...
        series = 2 * step**2 + 4 / 3 * step**4 + 32 / 15 * step**6
        assert mutual_information([0.5, 0.5], matrix) == pytest.approx(series, rel=1e-6, abs=0)


def test_what_is_very_unlikely_leaks_what_it_should() -> None:
    for smallest in (1e-3, 1e-9, 1e-13, 1e-17, 1e-30, 1e-200):
        level = leakage_level([smallest, 1 - smallest], np.eye(2))
        assert level == pytest.approx(-math.log(smallest), rel=1e-12)
        rare = np.array([[smallest, 1 - smallest], [0.5, 0.5]])
        assert ldp_level(rare) == pytest.approx(math.log(0.5) - math.log(smallest), rel=1e-12)
    matrix = np.array([[1.0, 5e-324], [1.0, 0.0]])
    assert pointwise_leakage([0.25, 0.75], matrix)[1] == pytest.approx(math.log(4), rel=1e-12)
    assert mutual_information([0.25, 0.75], matrix) == pytest.approx(0.0, abs=1e-15)


@given(pairs(), epsilons())
@MODEST
def test_failure_probability_is_the_mass_above_epsilon(pair: Pair, epsilon: float) -> None:
    law, leakages = [float(q) for q in output_law(*pair)], defined(*pair)["pointwise_leakage"]
    least, most = (
        math.fsum(q for q, leak in zip(law, leakages, strict=True) if leak > epsilon + slack)
        for slack in (1e-12, -1e-12)
    )
    assert least - 1e-14 <= failure_probability(*pair, epsilon) <= most + 1e-14


def test_failure_probability_by_hand() -> None:
    matrix = [[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]]
    # leakages log 4/3, log 2 and log 2; output law 3/8, 1/4, 3/8
    for epsilon, expected in ((0.0, 1.0), (math.log(1.5), 0.625), (math.log(2) + 1e-12, 0.0)):
        assert failure_probability([0.5, 0.5], matrix, epsilon) == expected
    for bad in (-1e-9, math.nan, math.inf):
        with pytest.raises(PrivacyError, match="epsilon"):
            failure_probability([0.5, 0.5], np.eye(2), bad)


@given(pairs())
@MODEST
def test_lemmas_2_and_3_the_parts_add_up_and_the_second_is_zero_where_letters_look_alike(
    pair: Pair,
) -> None:
    """[song2026worstcase]: and both are those of exact arithmetic."""
    prior, matrix = pair
    excluded, rest = leakage_parts(prior, matrix)
    whole = pointwise_leakage(prior, matrix)
    occurs = whole > -math.inf
    assert excluded[occurs] + rest[occurs] == pytest.approx(whole[occurs], **CLOSE)
    assert (excluded[~occurs] == -math.inf).all()
    assert (rest[~occurs] == 0).all()
    law = exact_law(prior)
    for column, first, second in zip(
        exact_columns(matrix), excluded[occurs], rest[occurs], strict=True
    ):
        mass = sum((p for p, value in zip(law, column, strict=True) if value > 0), Fraction(0))
        mean = sum((p * value for p, value in zip(law, column, strict=True)), Fraction(0))
        assert first == pytest.approx(log_of(1 / mass), rel=1e-9, abs=1e-14)
        assert second == pytest.approx(log_of(max(column) * mass / mean), rel=1e-9, abs=1e-14)
        assert (second == 0) == (len({value for value in column if value > 0}) <= 1)


def test_an_excluded_letter_of_one_in_a_billion_is_seen_and_letters_must_agree() -> None:
    excluded, _ = leakage_parts([1e-9, 1 - 1e-9], [[1.0, 0.0], [0.5, 0.5]])
    assert excluded.tolist() == pytest.approx([0.0, 1e-9], rel=1e-9)
    with pytest.raises(MechanismError, match="2 letters and the mechanism 3"):
        leakage_parts([0.5, 0.5], np.eye(3))
    with pytest.raises(MechanismError, match="differ"):
        leakage_parts(Prior([0.5, 0.5], ["a", "b"]), Mechanism(np.eye(2), ["c", "d"]))


# ---------------------------------------------------------------- ratios without cancellation


@given(pairs(tiny=False), st.integers(0, 2**32 - 1))
@MODEST
def test_ratios_of_products_are_those_of_fractions(pair: Pair, seed: int) -> None:
    # numerators and denominators with other sums than one another, so that the least entry does not cancel
    rng, matrix = np.random.default_rng(seed), pair[1]
    above, below = rng.integers(0, 4, (2, 3, len(matrix))).astype(float)
    found = log_product_ratios(above, below, matrix)
    # a numerator of zeros has the ratio zero, whatever rounds
    many = rng.uniform(0.1, 1, size=(7, 3))
    assert (log_product_ratios(np.zeros((2, 7)), rng.uniform(size=(2, 7)), many) == -math.inf).all()
    for k, y in np.ndindex(found.shape):
        up, down = (
            sum(
                (w * v for w, v in zip(exact(row[k]), exact(matrix[:, y]), strict=True)),
                Fraction(0),
            )
            for row in (above, below)
        )
        if down == 0:
            assert found[k, y] == (math.inf if up > 0 else -math.inf)
        elif up == 0:
            assert found[k, y] == -math.inf
        else:
            assert found[k, y] == pytest.approx(
                math.log(up / down), abs=1e-12 + 1e-14 * float(down / up)
            )


def test_ratios_of_entries_at_the_ends() -> None:
    above, below = np.array([0.0, 0.5, 0.5, 0.25, 0.0]), np.array([0.5, 0.0, 0.25, 0.5, 0.0])
    expected = [-math.inf, math.inf, math.log(2), -math.log(2), -math.inf]
    assert log_entry_ratios(above, below) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_definition_in_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, (3, 4)) + np.eye(3, 4, dtype=int) + (np.arange(4) == 3)
    matrix = rng.integers(0, 6, (4, 5)) / 64
    matrix[:, 0] += 1 - matrix.sum(axis=1)
    secret, total = Secret.from_counts(counts), int(counts.sum())
    expected = {}
    for y, column in enumerate(matrix.T):
        v = [Fraction(entry) for entry in column.tolist()]
        mean = sum(
            (Fraction(int(n), total) * e for n, e in zip(counts.sum(axis=0), v, strict=True)),
            Fraction(0),
        )
        for s, row in enumerate(counts.tolist()):
            given = sum(
                (Fraction(n, sum(row)) * e for n, e in zip(row, v, strict=True)), Fraction(0)
            )
            expected[s, y] = -math.inf if given == 0 else math.log(given / mean)
    of_outcomes = [max(expected[s, y] for s in range(3)) for y in range(5)]
    assert pointwise_leakage(secret, matrix) == pytest.approx(of_outcomes, rel=1e-12, abs=1e-14)
    (s, y), most = max(expected.items(), key=lambda item: item[1])
    witness = secret_witness(secret, matrix)
    assert (witness.value, witness.outcome, witness.law) == (s, y, 0)
    assert witness.level == leakage_level(secret, matrix) == pytest.approx(most, rel=1e-12)
    assert PML(1.0, about=secret).level(secret.prior, matrix) == witness.level


def test_the_worse_of_two_laws_is_named() -> None:
    even, told = [[0.25, 0.25], [0.25, 0.25]], [[0.5, 0.0], [0.0, 0.5]]
    witness = secret_witness(Secret(np.array([even, told])), np.eye(2))
    assert (witness.law, witness.level) == (1, math.log(2))
    assert leakage_level(Secret(even), np.eye(2)) == 0.0


def test_other_letters_are_refused() -> None:
    secret = Secret([[0.25, 0.25], [0.25, 0.25]], labels=["a", "b"])
    with pytest.raises(MechanismError, match="3 inputs"):
        leakage_level(secret, np.eye(3))
    with pytest.raises(MechanismError, match="another order"):
        leakage_level(secret, Mechanism(np.eye(2), ["b", "a"]))


ORDERS = (1.2, 2.0, 5.0, 50.0)


@pytest.mark.parametrize("alpha", ORDERS)
def test_both_ends_are_the_optimum_over_priors(alpha: float) -> None:
    rng = np.random.default_rng(int(alpha))
    for _ in range(4):
        matrix = rng.dirichlet(np.ones(4) * 0.7, size=3)
        lower, upper = maximal_alpha_leakage(matrix, alpha, 1e-10)
        assert upper - lower <= 1e-10
        assert lower == pytest.approx(worst_prior(matrix, alpha)[1], abs=1e-6)
        for law in rng.dirichlet(np.ones(3), size=20):
            assert SibsonLeakage(alpha, 1.0).level(law, matrix) <= upper + 1e-12


@pytest.mark.parametrize("alpha", ORDERS)
def test_of_a_symmetric_channel_it_is_that_of_even_letters(alpha: float) -> None:
    matrix = np.full((5, 5), 0.1) + 0.5 * np.eye(5)
    lower, upper = maximal_alpha_leakage(matrix, alpha)
    even = SibsonLeakage(alpha, 1.0).level(np.full(5, 0.2), matrix)
    assert lower == pytest.approx(even, abs=1e-12)
    assert upper == pytest.approx(even, abs=1e-11)


def test_its_limits_are_the_capacity_and_the_maximal_leakage() -> None:
    matrix = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
    assert maximal_alpha_leakage(matrix, 1 + 1e-6)[0] == pytest.approx(
        channel_capacity(matrix)[0], abs=1e-5
    )
    assert maximal_alpha_leakage(matrix, 1e5)[0] == pytest.approx(maximal_leakage(matrix), abs=1e-4)
    assert maximal_alpha_leakage([[0.5, 0.5], [0.5, 0.5]], 3)[1] == pytest.approx(0, abs=1e-12)


def test_orders_that_are_other_measures_are_refused() -> None:
    orders = (1.0, 0.5, math.inf, math.nan)
    refused(PrivacyError, maximal_alpha_leakage, "above 1", *(([[1.0]], alpha) for alpha in orders))


@pytest.mark.parametrize("iterations", [1, 2])
def test_both_ends_hold_however_soon_it_ends(iterations: int) -> None:
    z_channel = [[1.0, 0.0], [0.5, 0.5]]
    pairs = (
        (math.log(5 / 4), channel_capacity(z_channel, iterations=iterations)),
        (
            maximal_alpha_leakage(z_channel, 2)[0],
            maximal_alpha_leakage(z_channel, 2, iterations=iterations),
        ),
    )
    for known, (lower, upper) in pairs:
        assert lower < known < upper
        assert upper - lower > 1e-6


def test_two_releases_can_reveal_together_what_neither_reveals() -> None:
    """The secret is the exclusive or of two fair bits: a bit is independent of it, and both determine it."""
    bits = Secret.from_counts([[1, 0, 0, 1], [0, 1, 1, 0]])  # the letters 00, 01, 10, 11
    first = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    second = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    both = np.einsum("xy,xz->xyz", first, second).reshape(4, 4)
    assert leakage_level(bits, first) == leakage_level(bits, second) == 0
    assert leakage_level(bits, both) == pytest.approx(math.log(2), abs=1e-15)


def test_what_is_independent_of_the_secret_may_be_published() -> None:
    """The letter is the secret and an independent number, which is published: log 3 about the letter."""
    weights = np.zeros((2, 2, 3), dtype=int)
    weights[0, 0], weights[1, 1] = 2, 5
    pair = Secret.from_counts(weights.reshape(2, 6))
    number = np.vstack([np.eye(3), np.eye(3)])
    assert leakage_level(pair, number) == 0
    assert leakage_level(pair.prior, number) == pytest.approx(math.log(3), abs=1e-15)
