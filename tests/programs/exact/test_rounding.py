"""Repair: whatever noise a solver leaves, the matrix that comes out meets the bound exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import designs as oracles
from oracles.ratio_bounds import best_gain, pairs_of
from scipy.optimize import linprog

from pmlopt import (
    LDP,
    LIP,
    PML,
    ExpectedGain,
    MaximalLeakage,
    Mechanism,
    MutualInformation,
    Prior,
    Pufferfish,
    Secret,
    design,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.exact.equality_rounding import (
    _find_integer_basis,
    polish_matrix,
    round_with_equalities,
)
from pmlopt.programs.exact.rounding import (
    RepairedMatrix,
    approximate_repair,
    is_met_exactly,
    min_mixing_weight,
    polish_and_repair,
    repair_matrix,
    round_rows_to_grid,
)

kinds = pytest.mark.parametrize("kind", oracles.KINDS)


def assert_repaired(
    prior: Prior, requirement: Requirement, noisy: oracles.FloatArray
) -> RepairedMatrix:
    fixed = repair_matrix(prior, requirement, noisy)
    assert oracles.is_stochastic(fixed.matrix)
    assert oracles.meets(prior, requirement, fixed.matrix)
    assert requirement.holds(prior, Mechanism(fixed.matrix))
    assert 0 <= fixed.theta <= 1
    assert fixed.shift == pytest.approx(float(np.abs(fixed.matrix - noisy).max()), abs=1e-15)
    return fixed


@kinds
@settings(max_examples=20, deadline=None)
@given(case=oracles.cases(), power=st.integers(-9, -3))
def test_noise_is_repaired_at_the_price_of_noise(kind: str, case: oracles.Case, power: int) -> None:
    requirement = oracles.requirement_at(
        kind, oracles.levels_of(kind, case.prior, case.matrix), 1.0
    )
    noise = 10.0**power
    noisy = case.matrix + noise * case.rng.uniform(-1, 1, case.matrix.shape)
    fixed = assert_repaired(case.prior, requirement, noisy)
    if min(requirement.limits.values()) > 0.05:
        assert fixed.shift <= 1e5 * noise


@kinds
@settings(max_examples=15, deadline=None)
@given(
    case=oracles.cases(),
    epsilon=st.sampled_from([0.0, 1e-300, 1e-17, 1e-16, 1e-12, 1e-9, 1e-3, 0.3]),
)
def test_any_matrix_is_repaired_to_any_bound(kind: str, case: oracles.Case, epsilon: float) -> None:
    names = oracles.levels_of(kind, case.prior, case.matrix)
    requirement = oracles.requirement_at(kind, dict.fromkeys(names, epsilon), 1.0)
    fixed = assert_repaired(case.prior, requirement, case.matrix)
    if epsilon == 0:
        assert (fixed.matrix == fixed.matrix[0]).all()


@pytest.mark.parametrize(
    "requirement", [PML(0.5), LDP(0.5), LIP(0.5, 0.5), MaximalLeakage(0.5), PML(0.0), PML(3.0)]
)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_outputs_of_noise_are_dropped(requirement: Requirement, seed: int) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior([0.05, 0.15, 0.3, 0.5])
    constant = np.tile(rng.dirichlet(np.ones(3)) + 0.05, (4, 1)) / 1.15
    # one letter alone puts out the noise: its leakage is -log 0.05, about 3 nats
    noise = np.zeros((4, 2))
    noise[0, 0], noise[:, 1] = 1e-12, rng.uniform(-1e-12, 1e-12, 4)
    noise[0, 1] = 1e-12
    noisy = np.hstack([constant, noise])
    fixed = assert_repaired(prior, requirement, noisy)
    assert not fixed.matrix[:, 3:].any()
    assert fixed.dropped == (3, 4)
    assert fixed.shift < 1e-11


@kinds
def test_a_rough_repair_meets_the_bound_but_for_the_last_digits_and_is_near(kind: str) -> None:
    rng = np.random.default_rng(6)
    prior, matrix = Prior(rng.dirichlet(np.ones(5))), rng.dirichlet(np.ones(4), 5)
    levels, share = oracles.levels_of(kind, prior, matrix), 1 - 1e-5
    noisy = matrix + 1e-6 * rng.uniform(-1, 1, matrix.shape)
    rough = approximate_repair(prior, oracles.requirement_at(kind, levels, share), noisy)
    assert rough.sum(axis=1) == pytest.approx(1.0, abs=1e-14)
    for name, level in oracles.levels_of(kind, prior, rough).items():
        assert level <= share * levels[name] * (1 + 1e-12)
    assert np.abs(rough - noisy).max() <= 1e-4


def test_a_rare_output_that_meets_the_bound_is_kept() -> None:
    rare = np.tile([1e-6, 1 - 1e-6], (3, 1))
    fixed = assert_repaired(Prior([0.2, 0.3, 0.5]), PML(0.1), rare)
    assert fixed.dropped == ()
    assert fixed.matrix[0, 0] == pytest.approx(1e-6, abs=1e-15)


@kinds
@settings(max_examples=15, deadline=None)
@given(case=oracles.cases())
def test_what_holds_already_is_only_put_on_the_grid(kind: str, case: oracles.Case) -> None:
    levels = oracles.levels_of(kind, case.prior, case.matrix)
    fixed = assert_repaired(case.prior, oracles.requirement_at(kind, levels, 1 + 1e-6), case.matrix)
    if min(levels.values()) > 1e-3:
        assert fixed.theta == 0
        assert fixed.dropped == ()
        assert fixed.shift <= 2.0**-51


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5], [0.0, 0.0]],
        [[0.5, 0.5], [-1.0, -2.0]],
        [[0.5, 0.5], [0.2, 0.2]],
        [[0.5, 0.5], [np.nan, 1.0]],
        [[0.5, 0.5], [np.inf, 0.0]],
    ],
)
def test_what_is_no_mechanism_even_roughly_is_refused(matrix: list[list[float]]) -> None:
    with pytest.raises(MechanismError):
        repair_matrix(Prior([0.5, 0.5]), PML(10.0), np.array(matrix))


def test_rows_are_renormalised() -> None:
    fixed = assert_repaired(Prior([0.5, 0.5]), PML(10.0), np.array([[0.5, 0.5], [0.6, 0.2]]))
    assert fixed.matrix[1] == pytest.approx([0.75, 0.25], abs=1e-15)
    assert np.array_equal(fixed.matrix, round_rows_to_grid(fixed.matrix))


@pytest.mark.parametrize(
    ("least", "told"), [(0.004, 1e-3), (0.04, 1e-3), (0.4, 1e-3), (1e-15, 0.0)]
)
def test_a_share_that_is_searched_is_at_most_twice_the_least(least: float, told: float) -> None:
    theta, mixture = min_mixing_weight(
        0.0, lambda theta: theta, lambda theta: theta >= least, lambda theta: told
    )
    assert least <= theta == mixture <= 2 * least
    assert (
        min_mixing_weight(0.3, lambda theta: theta, lambda theta: theta == 1.0, lambda theta: 0.5)[
            0
        ]
        == 1.0
    )
    assert (
        min_mixing_weight(0.0, lambda theta: theta, lambda theta: theta > 0, lambda theta: 0.0)[0]
        == 2.0**-53
    )


@pytest.mark.parametrize("lower", [35.0, 40.0, 100.0, 700.0])
def test_entries_below_the_grid_cost_a_unit_of_it(lower: float) -> None:
    prior = Prior([0.5, 0.3, 0.2])
    matrix = np.array([[1.0, 0.0], [0.5, 0.5], [0.4, 0.6]])  # no entry is 0 under the lower bound
    privacy = LIP(lower, 0.85)
    fixed = repair_matrix(prior, privacy, matrix)
    assert is_met_exactly(prior, privacy, fixed.matrix)
    assert fixed.shift <= 1e-14


def test_an_unlikely_output_is_repaired_by_a_little_of_the_uniform_law() -> None:
    """With the output law itself theta would be nearly 1: mixed in, it hardly makes the output likelier."""
    prior, matrix, epsilon = Prior([1 - 1e-6, 1e-6]), np.array([[1.0, 0.0], [0.999, 0.001]]), 1.0
    excess = 0.001 - np.exp(epsilon) * 1e-9
    fixed = assert_repaired(prior, PML(epsilon), matrix)
    assert fixed.theta == pytest.approx(excess / (excess + (np.exp(epsilon) - 1) / 2), rel=1e-6)


# ---------------------------------------------------------------- polish


SECRET = Secret(np.random.default_rng(3).dirichlet(np.ones(15)).reshape(3, 5))


@pytest.mark.parametrize("epsilon", [1e-9, 1e-8])
def test_a_broken_matrix_is_mended_by_the_least_change(epsilon: float) -> None:
    privacy = PML(epsilon, about=SECRET)
    given, p = SECRET.conditionals, SECRET.prior.pmf
    within = np.linalg.svd(given - p)[2][-3:].T  # what no value of the secret is told by
    shares = np.random.default_rng(4).uniform(-1, 1, (3, 4))
    matrix = 0.25 + 0.05 * within @ (shares - shares.mean(axis=1, keepdims=True))
    off = matrix + 2 * epsilon * np.random.default_rng(5).normal(size=matrix.shape)
    near = polish_matrix(SECRET.prior, privacy, off)
    assert near is not None
    assert np.abs(near.sum(axis=1) - 1).max() <= 1e-15
    broken, mended = ((given @ one - np.exp(epsilon) * (p @ one)).max() for one in (off, near))
    assert (
        -1.1e-15 < mended < 0 < epsilon / 2 < broken
    )  # within by four last digits of both terms, twice
    assert np.abs(near - off).max() <= 3 * epsilon
    fixed = polish_and_repair(SECRET.prior, privacy, off)
    assert fixed.theta <= 1e-12 < 0.1 < repair_matrix(SECRET.prior, privacy, off).theta
    assert is_met_exactly(SECRET.prior, privacy, fixed.matrix)


def test_zeros_stay_and_other_requirements_are_left() -> None:
    matrix = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [0.0, 1.0]])
    near = polish_matrix(SECRET.prior, PML(2.0, about=SECRET), matrix)
    assert near is not None
    assert np.array_equal(near, matrix)
    assert polish_matrix(SECRET.prior, MaximalLeakage(0.1), matrix) is None


# ---------------------------------------------------------------- perfect privacy


def by_simplex(secret: Secret, gains: Any) -> Any:
    """(N, M) the best mechanism that tells nothing of the secret, up to a solver's tolerance."""
    n, m = gains.shape
    told = secret.conditionals - secret.prior.pmf
    answer = linprog(
        -(secret.prior.pmf[:, None] * gains).ravel(),
        A_eq=np.vstack([np.kron(told, np.eye(m)), np.kron(np.eye(n), np.ones(m))]),
        b_eq=np.append(np.zeros(len(told) * m), np.ones(n)),
    )
    assert answer.status == 0
    return answer.x.reshape(n, m)


@given(seed=st.integers(0, 10**6), values=st.integers(2, 3), letters=st.integers(3, 7))
@settings(max_examples=25)
def test_the_equations_hold_in_fractions_next_to_a_vertex(
    seed: int, values: int, letters: int
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 60, (values, letters))
    secret = Secret.from_counts(counts)
    near = by_simplex(secret, rng.random((letters, 3)))
    near = np.where(near > 1e-9, near, 0.0)
    exact = round_with_equalities(secret.prior, PML(0.0, about=secret), near)
    assert exact is not None
    assert np.abs(exact - near).max() < 1e-6
    rows = [[Fraction(v) for v in row] for row in exact.tolist()]
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows)
    totals = counts.sum(axis=1).tolist()
    for y in range(3):
        told = {
            sum(Fraction(int(c)) * row[y] for c, row in zip(counts[s], rows, strict=True))
            / totals[s]
            for s in range(values)
        }
        assert len(told) == 1  # each value of the secret gives the outcome the same probability


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["about", "pufferfish", "beside the data"])
def test_designs_of_zero_nats_from_counts_are_optimal(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    secret = Secret.from_counts(rng.integers(1, 100, (2, 5)))
    requirement = {
        "about": PML(0.0, about=secret),
        "pufferfish": Pufferfish(0.0, secret),
        "beside the data": PML(0.0, about=secret) & PML(0.5),
    }[kind]
    gains = rng.normal(size=(5, 4))
    result = solve(design(secret.prior, requirement, ExpectedGain(gains), 4))
    assert result.status.value == "optimal"
    assert result.certificate.verify()
    best = best_gain(secret.prior.pmf, pairs_of(requirement, secret.prior), gains)
    assert result.value == pytest.approx(best, abs=2e-7)
    told = solve(design(secret.prior, requirement, MutualInformation()))
    assert told.status.value == "optimal"
    assert told.certificate.verify()


def test_without_such_equations_or_with_large_coefficients_there_is_none() -> None:
    counted = Secret.from_counts([[1, 2, 3], [3, 1, 1]])
    still = np.full((3, 2), 0.5)
    assert round_with_equalities(counted.prior, PML(0.1, about=counted), still) is None
    assert round_with_equalities(counted.prior, PML(1.0), still) is None
    floats = Secret(np.random.default_rng(1).dirichlet(np.ones(6)).reshape(2, 3))
    assert round_with_equalities(floats.prior, PML(0.0, about=floats), still) is None


def level_in_fractions(secret: Secret, matrix: FloatArray) -> float:
    """The largest `P(y | s) / P(y)`, less one, of the numbers of a joint law in floats."""
    joint = [[Fraction(v) for v in row] for row in secret.joint[0].tolist()]
    columns = [[Fraction(v) for v in column] for column in matrix.T.tolist() if any(column)]
    law = [sum(column) for column in zip(*joint, strict=True)]
    above = Fraction(0)
    for column in columns:
        mean = sum(p * v for p, v in zip(law, column, strict=True)) / sum(law)
        for row in joint:
            given_s = sum(p * v for p, v in zip(row, column, strict=True)) / sum(row)
            above = max(above, given_s / mean - 1)
    return float(above)


@pytest.mark.parametrize(("rank", "epsilon"), [(1, 0.0), (2, 1e-16)])
def test_about_a_joint_law_in_floats_the_level_is_kept_and_the_gap_stays(
    rank: int, epsilon: float
) -> None:
    rng = np.random.default_rng(rank)
    laws = rng.dirichlet(np.ones(4), 2) if rank == 2 else np.tile(rng.dirichlet(np.ones(4)), (2, 1))
    secret = Secret(rng.dirichlet(np.ones(3))[:, None] * (rng.dirichlet(np.ones(2), 3) @ laws))
    gains = ExpectedGain(rng.random((4, 4)))
    near, held = (
        solve(design(secret.prior, PML(level, about=secret), gains)) for level in (1e-9, epsilon)
    )
    assert held.certificate.privacy.limits == PML(epsilon, about=secret).limits
    assert held.value <= near.value + 1e-7
    assert near.value <= held.bound + 1e-7
    assert held.status.value == ("optimal" if held.gap < 1e-7 else "unproved")
    assert level_in_fractions(secret, held.mechanism.matrix) <= held.level <= epsilon
    assert held.certificate.verify()


def test_a_result_that_floats_hold_back_says_what_to_do() -> None:
    rng = np.random.default_rng(2)
    secret, gains = (
        Secret(rng.dirichlet(np.ones(10)).reshape(2, 5)),
        ExpectedGain(rng.normal(size=(5, 3))),
    )
    held = solve(design(secret.prior, PML(0.0, about=secret), gains))
    assert held.status.value == "unproved"
    assert held.level == 0
    assert level_in_fractions(secret, held.mechanism.matrix) == 0
    assert held.certificate.verify()
    assert "Secret.from_counts" in held.reason
    near = solve(design(secret.prior, PML(1e-9, about=secret), gains))
    assert near.status.value == "optimal"
    assert near.value == pytest.approx(held.bound, abs=1e-7)
    assert "Secret.from_counts" not in near.reason


def test_units_are_used_up_to_the_largest_and_no_further() -> None:
    found = _find_integer_basis([[2**33, -1]], (0, 1))
    assert found is not None
    assert (*found[:2], found[2].tolist()) == ([1], [2**33], [[1], [2**33]])
    assert _find_integer_basis([[2**33 + 1, -1]], (0, 1)) is None
