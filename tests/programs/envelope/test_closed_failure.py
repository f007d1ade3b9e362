"""The closed failure probability: linear programs by other means, a formula, jumps, and what is claimed."""

from __future__ import annotations

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest
from oracles.envelopes import HALVES, QUARTERS, bisected, most_mass, random_mechanism, solved

from pmlopt import (
    PML,
    AllPriors,
    ApproximatePML,
    Box,
    ConvexHull,
    ExpectedLoss,
    L1Ball,
    Mechanism,
    Prior,
    certify,
    design,
    envelope,
    ldp_level,
    leakage_level,
    maximal_leakage,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.measures import envelope_slack, failure_probability, slack
from pmlopt.model.uncertainty import PriorSet
from pmlopt.model.utility import hamming
from pmlopt.programs import Status, failure_after_processing
from pmlopt.programs.envelope.build_certificate import RatioPrograms
from pmlopt.solvers.solver_result import NO_DEADLINE


@pytest.mark.parametrize("seed", range(0, 60, 15))
def test_it_is_the_linear_program(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    epsilon = float(np.random.default_rng([1230, seed]).uniform(0, 1.1)) * leakage_level(p, matrix)
    found = solve(failure_after_processing(p, matrix, epsilon))
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()
    assert found.value == pytest.approx(most_mass(p, matrix, math.exp(epsilon)), abs=1e-8)
    assert found.bound - found.value == found.gap
    assert found.level == epsilon
    processed = matrix @ found.certificate.attack.matrix
    if epsilon > 0:
        assert failure_probability(p, processed, epsilon * (1 - 1e-9)) >= found.value - 1e-9
    assert failure_probability(p, matrix, epsilon) <= found.bound + 1e-12
    assert found.bound <= math.exp(maximal_leakage(matrix) - epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(1, 40, 13))
def test_it_is_the_inverse_of_the_envelope(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    for delta in (0.1, 0.6):
        level = solved(p, matrix, delta)
        assert solve(failure_after_processing(p, matrix, level.value)).bound >= delta
        assert solve(failure_after_processing(p, matrix, level.bound + 1e-12)).value <= delta * (
            1 + 1e-12
        )


@pytest.mark.parametrize("seed", [2, 28, 107])
def test_jumps_are_decided_exactly(seed: int) -> None:
    # just at the leakage of an outcome, and one float below and above
    p, matrix = random_mechanism(seed)
    law = p @ matrix
    used = law > 0
    for level in np.log((matrix[:, used] / law[used]).max(axis=0)):
        around = [float(np.nextafter(level, toward)) for toward in (-1, level, 9)]
        found = [solve(failure_after_processing(p, matrix, max(0.0, near))) for near in around]
        assert all(one.certificate.verify() and one.gap <= 1e-8 for one in found)
        values = [one.value for one in found]
        assert values == sorted(values, reverse=True) or max(values) - min(values) <= 1e-8


@pytest.mark.parametrize("seed", range(0, 30, 10))
def test_a_slack_bounds_what_leaks(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    level = leakage_level(p, matrix)
    for low, high in ((0.0, 0.5 * level), (0.2 * level, 0.7 * level), (0.6 * level, level)):
        if not low < high:
            continue
        least = slack(p, matrix, low)
        found = solve(failure_after_processing(p, matrix, high))
        assert found.value <= len(p) * least / (math.exp(high) - math.exp(low)) + 1e-9
        for delta in (0.05, 0.5):  # the promise of a design that meets it
            if least <= envelope_slack(len(p), high, delta, low):
                assert solved(p, matrix, delta).value <= high + 1e-9


def test_a_design_promises_an_envelope() -> None:
    prior = [0.7, 0.1, 0.1, 0.05, 0.05]
    made = solve(
        design(prior, ApproximatePML(0.0, envelope_slack(5, 0.5, 0.5)), ExpectedLoss(hamming))
    )
    assert solved(prior, made.mechanism, 0.5).bound <= 0.5
    assert made.value < solve(design(prior, PML(0.5), ExpectedLoss(hamming))).value - 0.02
    assert envelope_slack(5, 800.0, 0.5) == math.inf
    for bad in ((5, 0.5, 1.0, 0.0), (5, 0.5, 0.5, 0.5), (5, -0.5, 0.5, 0.0), (0, 0.5, 0.5, 0.0)):
        with pytest.raises(PrivacyError):
            envelope_slack(*bad)


def test_the_ends() -> None:
    at_nothing = solve(failure_after_processing(QUARTERS, HALVES, 0.0))
    assert (at_nothing.value, at_nothing.bound) == (1.0, 1.0)
    for high in (math.log(4) + 1e-9, 5.0, 800.0, 1e300):
        found = solve(failure_after_processing(QUARTERS, HALVES, high))
        assert (found.value, found.bound, found.iterations) == (0.0, 0.0, 0)
        assert found.certificate.verify()
    alone = solve(failure_after_processing([1.0], [[0.5, 0.5]], 0.1))
    assert (alone.value, alone.bound) == (0.0, 0.0)


def test_a_post_processing_of_ones_own_is_certified() -> None:
    program = failure_after_processing(QUARTERS, HALVES, math.log(3))
    plain = certify(program, np.eye(4))
    assert plain.value == pytest.approx(0.1, abs=1e-15)  # the two rare outputs
    assert plain.bound == pytest.approx(1.4 / 3, abs=1e-15)  # from the maximal leakage
    assert plain.certificate.verify()
    best = solve(program)
    again = certify(program, best.certificate.attack, best.certificate.multipliers)
    assert (again.value, again.bound, again.status) == (best.value, best.bound, Status.OPTIMAL)
    assert best.value == pytest.approx(14 / 95, abs=1e-12)
    for matrix, multipliers in ((np.eye(3), None), (np.eye(4), [1.0] * 3)):
        with pytest.raises(MechanismError):
            certify(program, matrix, multipliers)


# ---------------------------------------------------------------- over sets of priors


RESPONSE = [[0.75, 0.25], [0.25, 0.75]]


def drawn(seed: int) -> tuple[FloatArray, FloatArray, PriorSet]:
    """A prior, a mechanism, and a set around the prior: a ball, a box or a hull by turns."""
    rng = np.random.default_rng([1240, seed])
    n, m = (int(size) for size in rng.integers(2, 6, 2))
    p, matrix = rng.dirichlet(np.full(n, 5.0)), rng.dirichlet(np.full(m, 0.5), n)
    radius = float(rng.choice([0.02, 0.1, 0.4]))
    sets: tuple[PriorSet, ...] = (
        L1Ball(p, radius),
        Box(p * (1 - radius), np.minimum(1.0, p * (1 + radius))),
        ConvexHull(np.vstack([p, (1 - radius) * p + radius * rng.dirichlet(np.ones(n), 3)])),
    )
    return p, matrix, sets[seed % 3]


def members(
    priors: PriorSet, p: FloatArray, rng: np.random.Generator, count: int
) -> list[FloatArray]:
    """Random priors of a set: mixtures of its middle and of two extreme points."""
    found = []
    for _ in range(count):
        ends = [priors.minimizer(rng.normal(size=len(p))) for _ in range(2)]
        share = rng.dirichlet([0.3, 1.0, 1.0])
        found.append(np.asarray(share @ np.vstack([p, *ends])))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_no_prior_of_the_set_exceeds_the_bound(seed: int) -> None:
    p, matrix, priors = drawn(seed)
    rng = np.random.default_rng([1241, seed])
    delta = float(rng.uniform(0.05, 0.9))
    found = solve(envelope(p, matrix, delta, over=priors))
    level = 0.7 * found.bound
    failure = solve(failure_after_processing(p, matrix, level, over=priors))
    for result in (found, failure):
        assert result.certificate.verify()
        assert result.value <= result.bound
        assert priors.contains(result.certificate.prior)
        assert (result.status is Status.OPTIMAL) == (result.gap <= 1e-8)
    # what is reached is reached under the prior that is named
    worst = found.certificate.prior.pmf
    assert bisected(worst, matrix, delta) == pytest.approx(found.value, abs=1e-6)
    named = failure.certificate.prior.pmf
    assert most_mass(named, matrix, math.exp(level)) == pytest.approx(failure.value, abs=1e-7)
    for q in members(priors, p, rng, 5):
        assert most_mass(q, matrix, math.exp(found.bound + 1e-7)) <= delta + 1e-9
        assert most_mass(q, matrix, math.exp(level)) <= failure.bound + 1e-9
    assert found.value >= solved(p, matrix, delta).value - 1e-8 or not priors.contains(p)


@pytest.mark.parametrize("seed", [0, 6])
def test_a_set_of_one_prior_is_that_prior(seed: int) -> None:
    p, matrix = random_mechanism(seed)
    alone = solved(p, matrix, 0.3)
    for priors in (L1Ball(p, 0.0), ConvexHull([p])):
        found = solve(envelope(p, matrix, 0.3, over=priors))
        assert found.status is Status.OPTIMAL
        assert found.value == pytest.approx(alone.value, abs=1e-8)
        failure = solve(failure_after_processing(p, matrix, 0.8 * alone.value, over=priors))
        same = solve(failure_after_processing(p, matrix, 0.8 * alone.value))
        assert failure.gap <= 1e-8
        assert failure.value == pytest.approx(same.value, abs=1e-8)


def test_a_small_delta_is_the_level_over_the_set() -> None:
    # each output leaks its most with more than delta under the prior that makes it least likely
    ball = L1Ball([0.5, 0.5], 0.2)
    found = solve(envelope([0.5, 0.5], RESPONSE, 0.3, over=ball))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(math.log(5 / 3), abs=1e-12)  # 0.75 over 0.45
    assert "for every prior within l1 distance 0.2" in found.certificate.statement
    program = envelope([0.5, 0.5], RESPONSE, 0.2, over=AllPriors(2))
    assert certify(program, Mechanism(np.eye(2)), [1.0, 1.0, 0.0]).certificate.verify()
    everything = solve(program)
    assert everything.value == pytest.approx(ldp_level(RESPONSE), abs=1e-9)
    assert everything.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("alone", [True, False])
def test_the_linear_program_is_the_one_that_is_declared(alone: bool, seed: int) -> None:
    p, matrix, priors = drawn(seed)
    program = envelope(p, matrix, 0.5, over=None if alone else priors)
    direct = RatioPrograms(program, 0.5)
    for ratio in (1.0 if alone else 1.05, 1.3, 2.0):
        mass, _, point, multipliers = direct.solve_at(
            ratio, np.zeros(len(p), dtype=bool), NO_DEADLINE
        )
        assert not alone or mass == pytest.approx(most_mass(p, matrix, ratio), abs=1e-8)
        program.ratio.value = ratio
        assert mass == pytest.approx(-program.problem.solve(solver=cp.HIGHS), abs=1e-7)
        assert point.shape == program.attack.shape
        proved = float(program.rational_mechanism.bound_mass(math.log(ratio), multipliers.tolist()))
        assert mass <= proved + 1e-10 <= mass + 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_any_multipliers_bound_every_prior(seed: int) -> None:
    p, matrix, priors = drawn(seed)
    rng = np.random.default_rng([1242, seed])
    program = envelope(p, matrix, 0.5, over=priors)
    for _ in range(5):
        lam = rng.exponential(3.0, len(p))
        multipliers, ratio = np.append(lam, rng.normal()), float(rng.uniform(1, 3))
        mass = float(program.rational_mechanism.bound_mass(math.log(ratio), multipliers.tolist()))
        for q in members(priors, p, rng, 3):
            assert most_mass(q, matrix, ratio) <= mass + 1e-9


def test_an_attack_under_a_prior_outside_the_set_shows_nothing() -> None:
    ball, far = L1Ball([0.5, 0.5], 0.1), Prior([0.9, 0.1])
    certificate = solve(failure_after_processing([0.5, 0.5], RESPONSE, 0.3, over=ball)).certificate
    assert certificate.verify()
    moved = dataclasses.replace(certificate, prior=far, value=0.0)
    assert [claim.name for claim in moved.checks() if not claim.holds] == ["prior"]
