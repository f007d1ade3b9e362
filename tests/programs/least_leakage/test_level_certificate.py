"""The proof of a least level: from any multipliers, against bisection and exact arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.designs import FloatArray, exact_prior, random_prior
from oracles.least_leakage import bisected
from programs.least_leakage.test_least_leakage import assert_proved

from pmlopt import PML, ExpectedGain, ExpectedLoss, Prior, least_leakage, solve, worst_case_utility
from pmlopt.errors import MechanismError
from pmlopt.model.closed_forms.worst_case import build_uniform_on
from pmlopt.model.utility.orders import utility_order
from pmlopt.programs.exact.rounding import round_rows_to_grid
from pmlopt.programs.least_leakage.build_certificate import certify_level
from pmlopt.programs.least_leakage.certificate import (
    ExpectedUtilityFloor,
    LevelCertificate,
    LevelMultipliers,
    NormalizedFloor,
    bound_level,
)
from pmlopt.programs.least_leakage.program import LeastLeakage
from pmlopt.programs.linear.columns import DenseColumns

EXAMPLE = [[3, 2, 1], [1, 3, 2], [2, 1, 3]]
"""WCU, eq. (8)."""


@dataclass(frozen=True)
class Instance:
    """A program, and its least level by bisection."""

    program: LeastLeakage
    least: float

    def proved(self, rows: FloatArray, floor: float = 0.0) -> float:
        program = self.program
        return bound_level(
            program.prior, program.allowed, program.floor, LevelMultipliers(rows, floor)
        )


@cache
def instance(seed: int) -> Instance:
    """By turns with ranks, with an expected gain, with an expected loss, with both."""
    rng = np.random.default_rng([33, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    prior = Prior(random_prior(rng, n))
    unit = (1.0, 1e-6, 1e6)[seed % 3]
    table = unit * rng.normal(size=(n, m))
    if seed % 4 == 0:
        order = utility_order(np.round(table / unit), "grouped")
        program = worst_case_utility(
            prior, order, int(rng.integers(1, order.max(axis=1).min() + 1)), m
        )
    else:
        gains = table if seed % 4 == 1 else -table
        worst = float(gains.max(axis=1).min()) - unit * rng.random() if seed % 4 == 3 else -9 * unit
        allowed = gains >= worst
        best = float(prior.pmf @ np.where(allowed, gains, -9 * unit).max(axis=1))
        least = float(prior.pmf @ np.where(allowed, gains, 9 * unit).min(axis=1))
        floor = least + (best - least) * rng.uniform(0.5, 0.95)
        sign = 1 if seed % 4 == 1 else -1
        utility = ExpectedGain(table) if seed % 4 == 1 else ExpectedLoss(table)
        program = least_leakage(
            prior,
            utility,
            expected=sign * floor,
            worst=sign * worst if seed % 4 == 3 else None,
            outputs=m,
        )
    floored = program.floor
    if floored is None:
        return Instance(program, bisected(prior.pmf, program.allowed))
    least = floored.min_gain
    return Instance(program, bisected(prior.pmf, program.allowed, floored.normalized_gains, least))


COUNT = 12
SIZES = st.sampled_from([0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e100])


def exact_share(program: LeastLeakage, multipliers: LevelMultipliers) -> Fraction:
    """The largest share e^-eps at which some column could exist, as a rational: `bound_level`, literally."""
    p = exact_prior(program.prior)
    y, k = [Fraction(value) for value in multipliers.rows.tolist()], Fraction(multipliers.floor)
    target = sum((a * b for a, b in zip(p, y, strict=True)), Fraction(0))
    worth = [[value] * len(program.outputs) for value in y]
    if program.floor is not None:
        sign = 1 if program.floor.expected.maximised else -1
        gains = [
            [sign * Fraction(value) for value in row]
            for row in program.floor.expected.table.tolist()
        ]
        target += k * sign * Fraction(program.floor.expected.value)
        worth = [[value + k * gain for gain in row] for value, row in zip(y, gains, strict=True)]
    return max(
        _root([(p[x], worth[x][j] - target) for x in np.flatnonzero(column)])
        for j, column in enumerate(program.allowed.T)
    )


def _root(terms: list[tuple[Fraction, Fraction]]) -> Fraction:
    """The largest s at which the best p-mass s of the terms sums to at least 0."""
    mass = total = Fraction(0)
    for weight, over in sorted(terms, key=lambda term: -term[1]):
        if total + weight * over < 0:
            return mass + total / -over
        mass, total = mass + weight, total + weight * over
    return mass


def as_declared(program: LeastLeakage, multipliers: LevelMultipliers) -> LevelMultipliers:
    """Multipliers for the gains as they are: `bound_level` takes the best from each row, over a unit."""
    if program.floor is None:
        return multipliers
    floor = program.floor
    gains = floor.expected.table if floor.expected.maximised else -floor.expected.table
    weight = multipliers.floor / floor.unit
    best = np.where(program.allowed, gains, -np.inf).max(axis=1)
    return LevelMultipliers(multipliers.rows - weight * best, weight)


# ---------------------------------------------------------------- any multipliers


@settings(max_examples=30, deadline=None)
@given(st.integers(0, COUNT - 1), st.integers(0, 2**32 - 1), SIZES, SIZES)
def test_any_multipliers_prove_no_more_than_is_true(
    place: int, seed: int, size: float, weight: float
) -> None:
    given_, rng = instance(place), np.random.default_rng(seed)
    rows = size * rng.normal(size=given_.program.prior.size)
    for y in (rows, np.abs(rows), -np.abs(rows), size * np.ones_like(rows)):
        level = given_.proved(y, weight * float(rng.random()))
        assert 0 <= level <= given_.least + 1e-8
        assert given_.proved(y, -5.0) == given_.proved(y)  # no floor has a negative multiplier


@settings(max_examples=40, deadline=None)
@given(st.integers(0, COUNT - 1), st.integers(0, 2**32 - 1), st.sampled_from([1e-6, 1.0, 1e6]))
def test_it_is_at_most_what_rationals_say(place: int, seed: int, size: float) -> None:
    given_, rng = instance(place), np.random.default_rng(seed)
    multipliers = LevelMultipliers(
        size * rng.normal(size=given_.program.prior.size), size * float(rng.random())
    )
    share = exact_share(given_.program, as_declared(given_.program, multipliers))
    level = given_.proved(multipliers.rows, multipliers.floor)
    assert level <= -math.log(min(1.0, float(share))) + 1e-15
    assert level == pytest.approx(-math.log(min(1.0, float(share))), abs=1e-7)


@pytest.mark.parametrize("exact", [True, False])
def test_rounding_never_adds_to_a_level(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In rationals and in floats: e^-level is not below the share, for 40 priors."""
    monkeypatch.setattr(f"{bound_level.__module__}.MAX_EXACT_ENTRIES", 100 if exact else 0)
    for seed in range(40):
        rng = np.random.default_rng([35, seed])
        prior, allowed = Prior(random_prior(rng, 4)), rng.random((4, 3)) < 0.4
        allowed[np.arange(4), rng.integers(0, 3, 4)] = True
        program = replace(instance(0).program, prior=prior, allowed=allowed)
        some = rng.normal(size=4)
        for rows in (
            np.zeros(4),
            some,
            1e8 + some,
        ):  # all letters are filled; some; after digits cancel
            share = exact_share(program, LevelMultipliers(rows))
            level = bound_level(prior, allowed, None, LevelMultipliers(rows))
            with localcontext(prec=40):
                least = Decimal(share.numerator) / Decimal(share.denominator)
                assert math.isinf(level) if share == 0 else (-Decimal(level)).exp() >= least


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_a_floor_allows_for_the_rounding_of_its_gains(offset: float) -> None:
    """A mechanism whose expectation is the floor meets that of the scaled gains, less `rounding`."""
    short = []
    for seed in range(60):
        rng = np.random.default_rng([36, seed])
        prior, table = Prior(random_prior(rng, 4)), offset + rng.normal(size=(4, 3))
        matrix, p = round_rows_to_grid(rng.dirichlet(np.ones(3), 4)), exact_prior(prior)
        rows = list(zip(p, matrix.tolist(), strict=True))
        value = float(mean_of(rows, table))
        asked = ExpectedUtilityFloor(True, table, value)
        floor = NormalizedFloor(DenseColumns(prior, PML(0.0)), np.ones((4, 3), dtype=bool), asked)
        short.append(Fraction(floor.min_gain) - mean_of(rows, floor.normalized_gains))
        assert short[-1] <= Fraction(floor.rounding)
    assert max(short) > 0  # so there is something to allow for


def mean_of(rows: list[tuple[Fraction, list[float]]], table: FloatArray) -> Fraction:
    """The expectation of a table, given each letter's probability and row."""
    return sum(
        (
            mass * Fraction(chance) * Fraction(value)
            for (mass, row), values in zip(rows, table.tolist(), strict=True)
            for chance, value in zip(row, values, strict=True)
        ),
        Fraction(0),
    )


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize("place", range(COUNT))
def test_every_claim_holds_in_exact_arithmetic(place: int) -> None:
    program, least = instance(place).program, instance(place).least
    result = solve(program)
    assert_proved(program, result, 1e-7)
    assert result.value == pytest.approx(least, abs=1e-7)
    certificate, matrix = result.certificate, result.mechanism.matrix
    assert isinstance(certificate, LevelCertificate)
    assert certificate.multipliers is not None
    proof = as_declared(program, LevelMultipliers(certificate.multipliers, certificate.weight))
    assert result.bound <= -math.log(min(1.0, float(exact_share(program, proof)))) + 1e-13
    if program.floor is not None:
        sign = 1 if program.floor.expected.maximised else -1
        p = exact_prior(program.prior)
        mean = mean_of(list(zip(p, matrix.tolist(), strict=True)), program.floor.expected.table)
        assert (
            float(sign * (mean - Fraction(program.floor.expected.value)))
            >= -1e-12 * program.floor.unit
        )


@pytest.mark.parametrize("noise", [1e-16, 1e-9])
def test_noise_on_forbidden_and_dropped_pairs_is_removed(noise: float) -> None:
    prior = Prior([0.6, 0.2, 0.2])
    program = worst_case_utility(prior, EXAMPLE, 2)
    printed = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    certificate = certify_level(
        program, printed + noise, [LevelMultipliers(np.array([-1.0, 2.0, 2.0]))]
    )
    assert certificate.value == pytest.approx(math.log(2), abs=1e-8)
    assert certificate.verify()
    assert certificate.mechanism.matrix[:, 2].tolist() == [0, 0, 0]
    assert certificate.repair.dropped == (2,)
    assert certificate.residuals["forbidden"] == 0


@pytest.mark.parametrize(
    "matrix",
    [np.zeros((3, 3)), np.full((3, 3), np.nan), -np.eye(3), np.ones((3, 3))],
    ids=["zero", "nan", "negative", "long"],
)
def test_what_is_no_mechanism_is_refused(matrix: FloatArray) -> None:
    program = worst_case_utility([0.6, 0.2, 0.2], EXAMPLE, 2)
    with pytest.raises(MechanismError, match="not even roughly"):
        certify_level(program, matrix, [LevelMultipliers(np.ones(3))])


def test_a_matrix_below_the_floor_is_lifted_or_refused() -> None:
    program = least_leakage([0.25] * 4, ExpectedGain(np.eye(4)), expected=0.5)
    proof = [LevelMultipliers(np.zeros(4), 1.0)]
    lifted = certify_level(program, build_uniform_on(program.allowed).matrix, proof)
    gain = float((0.25 * np.diag(lifted.mechanism.matrix)).sum())
    assert gain >= 0.5 - 1e-14
    assert lifted.residuals["expected"] == 0
    assert lifted.value >= math.log(2) - 1e-12
    # beside a lower floor the claim says by how much it is above, in units of what there is above a constant
    lower = replace(lifted, expected=ExpectedUtilityFloor(True, np.eye(4), 0.4))
    (demand,) = (claim for claim in lower.checks() if claim.name == "demand")
    assert demand.holds
    assert demand.recomputed is not None
    assert demand.claimed is not None
    assert demand.recomputed - demand.claimed == pytest.approx((gain - 0.4) / 0.75, abs=1e-12)
