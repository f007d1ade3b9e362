"""The proof of an envelope: dual bounds by any multipliers, and the check in rational arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.envelopes import HALVES, QUARTERS, quantile, random_mechanism, solved

from pmlopt import Mechanism, Prior, certify, envelope
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.measures import envelope_bounds, leakage_level
from pmlopt.programs import Status
from pmlopt.programs.envelope.build_certificate import prove_level
from pmlopt.programs.envelope.masses import RationalMechanism, compute_reached_mass
from pmlopt.programs.envelope.program import EnvelopeProgram
from pmlopt.programs.exact.rounding import round_exp_down, round_exp_up

# ---------------------------------------------------------------- the proof


def program_of(seed: int, delta: float = 0.5) -> tuple[FloatArray, FloatArray, EnvelopeProgram]:
    rng = np.random.default_rng([1208, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    p = rng.dirichlet(np.ones(n)) + 0.01
    p, matrix = p / p.sum(), rng.dirichlet(np.full(m, 0.5), n)
    return p, matrix, envelope(p, matrix, delta)


SCALES = st.sampled_from([0.0, 1e-6, 0.1, 1.0, 10.0, 1e6, 1e12])


def rationals(p: FloatArray, matrix: FloatArray) -> tuple[list[Fraction], list[list[Fraction]]]:
    """The prior and the rows over their sums."""
    weights = [Fraction(x) for x in p.tolist()]
    rows = [[Fraction(x) for x in row] for row in matrix.tolist()]
    return [w / sum(weights) for w in weights], [[x / sum(row) for x in row] for row in rows]


def mass_by_fractions(
    p: FloatArray, matrix: FloatArray, t: Fraction, multipliers: FloatArray
) -> Fraction:
    """`sum_y max(0, max_x (q[y] + lam[x] (P[x,y] - t q[y])))` by its formula, of every letter and output."""
    prior, rows = rationals(p, matrix)
    lam = [Fraction(max(weight, 0.0)) for weight in multipliers.tolist()]
    mass = Fraction(0)
    for column in zip(*rows, strict=True):
        law = sum(
            (weight * entry for weight, entry in zip(prior, column, strict=True)), Fraction(0)
        )
        mass += max(
            Fraction(0), *(law + u * (v - t * law) for u, v in zip(lam, column, strict=True))
        )
    return mass


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 999),
    scale=st.sampled_from([0.0, 1e-300, 1e-6, 1.0, 1e6, 1e300]),
    ties=st.booleans(),
)
def test_the_mass_in_rational_arithmetic_is_that_of_every_letter(
    seed: int, scale: float, ties: bool
) -> None:
    p, matrix, _ = program_of(seed)
    rng = np.random.default_rng(seed)
    multipliers = scale * rng.exponential(size=len(p)) * rng.choice([1, 1, 1, 0, -1], len(p))
    if ties:  # letters that are alike but for rounding, and entries that floats can hardly hold
        matrix[-1], multipliers[-1] = matrix[0] * (1 + 2.0**-52), multipliers[0]
        matrix[:, 0] *= 1e-310
    exact = RationalMechanism.from_floats(Prior(p), matrix)
    mass = exact.bound_mass(0.25, multipliers.tolist())
    below, above = (mass_by_fractions(p, matrix, t, multipliers) for t in (T_ABOVE, T_BELOW))
    assert below <= mass <= above


T = Fraction(Context(prec=60).exp(Decimal("0.25")))
T_BELOW, T_ABOVE = T * (1 - Fraction(1, 10**50)), T * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("seed", range(6))
def test_letters_that_floats_cannot_tell_apart_are_all_looked_at(seed: int) -> None:
    # at the level 0 the ratio is exactly 1, and what the letters have to spare is rounding alone
    rng = np.random.default_rng([1218, seed])

    def near(values: FloatArray) -> FloatArray:
        return np.asarray(values * (1 + rng.integers(-4, 5, values.shape) * 2.0**-52))

    p, matrix, lam = (
        np.full(6, 1 / 6),
        near(np.tile(rng.dirichlet(np.ones(4)), (6, 1))),
        near(np.full(6, 3.0)),
    )
    mass = RationalMechanism.from_floats(Prior(p), matrix).bound_mass(0.0, lam.tolist())
    assert mass == mass_by_fractions(p, matrix, Fraction(1), lam)


def test_what_lies_between_a_power_and_its_rationals_is_not_claimed() -> None:
    above, below = round_exp_up(0.25), round_exp_down(0.25)
    assert compute_reached_mass(
        [(below, Fraction(1, 2)), (above, Fraction(1, 3))], 0.25
    ) == Fraction(1, 3)
    columns, law = (np.array([[one]], dtype=object) for one in (above.numerator, above.denominator))
    exact = RationalMechanism(np.ones((1, 1)), columns, (law[0],), above.numerator)
    assert not exact.is_bound_proved(1e-9, 0.25, None)  # one output leaks a little more than 0.25
    assert exact.is_bound_proved(1e-9, 0.25000001, None)
    flip = RationalMechanism.from_floats(Prior.uniform(2), np.array([[0.75, 0.25], [0.25, 0.75]]))
    assert flip.bound_mass(0.5, [0.0, 0.0]) == 1
    assert not flip.is_bound_proved(1.0, 0.5, np.zeros(2))  # a mass of delta is too much


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), scale=SCALES, delta=st.floats(0.01, 0.99))
def test_no_multipliers_prove_a_ratio_that_is_reached(
    seed: int, scale: float, delta: float
) -> None:
    p, matrix, program = program_of(seed, delta)
    found, most = solved(p, matrix, delta), leakage_level(p, matrix)
    near = np.random.default_rng(seed).exponential(size=len(p))
    known = (
        np.zeros(len(p)) if found.certificate.multipliers is None else found.certificate.multipliers
    )
    for multipliers in (scale * near, known, known * near, known + 1e-6 * near):
        assert found.value - 1e-12 <= prove_level(program, multipliers, most) <= most
    if found.certificate.multipliers is not None:
        assert prove_level(program, known, most) == pytest.approx(found.bound, abs=1e-9)
    for bad in (math.nan, math.inf, -math.inf):
        assert prove_level(program, np.full(len(p), bad), most) == most


# ---------------------------------------------------------------- rational arithmetic


def exact_mass(p: FloatArray, matrix: FloatArray, attack: FloatArray, ratio: Fraction) -> Fraction:
    """The mass of outcomes whose likelihood ratio is at least `ratio`, by fractions alone."""
    prior, given = rationals(p, matrix)
    _, after = rationals(p, attack)
    mass = Fraction(0)
    for z in range(attack.shape[1]):
        column = [sum(row[y] * after[y][z] for y in range(len(row))) for row in given]
        law = sum(w * x for w, x in zip(prior, column, strict=True))
        if law and max(column) >= ratio * law:
            mass += law
    return mass


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), share=st.floats(0.0, 1.0), delta=st.floats(0.01, 0.99))
def test_what_an_attack_reaches_is_what_fractions_say(
    seed: int, share: float, delta: float
) -> None:
    p, matrix = random_mechanism(seed)
    attack = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), matrix.shape[1])
    level = share * leakage_level(p, matrix @ attack)
    exact = RationalMechanism.from_floats(Prior(p), matrix)
    found = compute_reached_mass(exact.compute_outcomes(attack), level) >= delta
    # e^level lies between these
    low, high = (
        Fraction(math.exp(level)) * (1 - Fraction(1, 2**50)),
        Fraction(math.exp(level)) * (1 + Fraction(1, 2**50)),
    )
    mass = exact_mass(p, matrix, attack, high)
    if mass >= delta:
        assert found
    if level > 0 and exact_mass(p, matrix, attack, low) < delta:
        assert not found


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), delta=st.floats(0.01, 0.99))
def test_theorem_3_is_proved_just_above_it_and_not_below(seed: int, delta: float) -> None:
    p, matrix = random_mechanism(seed)
    exact = RationalMechanism.from_floats(Prior(p), matrix)
    bound = envelope_bounds(p, matrix, delta)[1]
    assert exact.is_bound_proved(delta, bound + 1e-12, None)
    assert bound < 1e-9 or not exact.is_bound_proved(delta, bound - 1e-12, None)
    assert not exact.is_bound_proved(delta, -1e-300, None)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 999),
    delta=st.one_of(st.floats(1e-3, 0.999), st.sampled_from([1e-300, 1e-12, 1 - 1e-12])),
)
def test_every_claim_is_proved_and_none_that_is_better(seed: int, delta: float) -> None:
    p, matrix = random_mechanism(seed)
    claim = solved(p, matrix, delta).certificate
    assert claim.verify()
    assert claim.arithmetic == "rational arithmetic"
    assert not replace(claim, value=claim.value + 1e-7 + claim.gap).verify()
    # what the attack reaches is below the bound: no proof can be below that
    if claim.value > 1e-6:
        assert not replace(claim, bound=claim.value - 1e-7).verify()
    if claim.multipliers is not None:
        assert not replace(claim, bound=claim.bound - 1e-6 - claim.gap).verify()


def test_an_attack_that_is_none_is_not_verified() -> None:
    claim = solved([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 0.9).certificate
    assert claim.verify()
    assert not replace(claim, attack=Mechanism(np.eye(3))).verify()
    assert not replace(claim, attack=Mechanism([[1.0], [1.0]])).verify()
    rare = solved(QUARTERS, HALVES, 0.1).certificate
    assert rare.verify()
    assert not replace(rare, delta=0.11).verify()
    assert not replace(rare, attack=Mechanism(np.eye(4))).verify()


def test_delta_is_the_float_that_was_given() -> None:
    # outputs of mass 1/10 leak log 4; the float 0.1 is above 1/10 by 6e-18: a hair of other mass goes in
    found = solved(QUARTERS, HALVES, 0.1)
    assert found.certificate.verify()
    assert found.value == pytest.approx(math.log(4), abs=1e-14)
    plain = certify(envelope(QUARTERS, HALVES, 0.1), np.eye(4))
    assert plain.value == pytest.approx(math.log(10 / 9), abs=1e-14)
    assert certify(envelope(QUARTERS, HALVES, 0.0999), np.eye(4)).value == pytest.approx(
        math.log(4), abs=1e-14
    )


# ---------------------------------------------------------------- certify


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), delta=st.floats(0.01, 0.99))
def test_the_certificate_of_a_post_processing_from_anywhere(seed: int, delta: float) -> None:
    p, matrix = random_mechanism(seed)
    best, program = solved(p, matrix, delta), envelope(p, matrix, delta)
    any_attack = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), matrix.shape[1])
    found = certify(program, any_attack)
    assert found.certificate.verify()
    assert found.value <= best.bound
    assert found.value <= quantile(p, matrix @ any_attack, delta) + 1e-12
    assert found.value >= quantile(p, matrix @ any_attack, delta * (1 + 1e-11), 0.0) - 1e-12
    assert found.bound == pytest.approx(envelope_bounds(p, matrix, delta)[1], abs=1e-12)
    again = certify(program, best.certificate.attack, best.certificate.multipliers)
    assert (again.value, again.bound) == (best.value, best.bound)
    assert (again.status is Status.OPTIMAL) == (best.status is Status.OPTIMAL)
