"""Envelopes and closed failure probabilities over sets of priors: exact cases, random priors, and claims."""

from __future__ import annotations

import dataclasses
import math

import cvxpy as cp
import numpy as np
import pytest
from oracles.envelopes import bisected, most_mass, random_mechanism, solved

from pmlopt import AllPriors, Box, ConvexHull, L1Ball, Mechanism, Prior, certify, envelope, ldp_level, solve
from pmlopt.core.arrays import FloatArray
from pmlopt.errors import MechanismError, PrivacyError
from pmlopt.model.uncertainty import PriorSet
from pmlopt.programs import Status, failure_after_processing
from pmlopt.programs.envelope.multipliers import RatioPrograms
from pmlopt.solvers.outcome import FOREVER

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


def members(priors: PriorSet, p: FloatArray, rng: np.random.Generator, count: int) -> list[FloatArray]:
    """Random priors of a set: mixtures of its middle and of two extreme points."""
    found = []
    for _ in range(count):
        ends = [priors.worst_prior(rng.normal(size=len(p))) for _ in range(2)]
        share = rng.dirichlet([0.3, 1.0, 1.0])
        found.append(np.asarray(share @ np.vstack([p, *ends])))
    return found


@pytest.mark.parametrize("seed", range(9))
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


@pytest.mark.parametrize("seed", range(0, 12, 3))
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
    everything = solve(envelope([0.5, 0.5], RESPONSE, 0.2, over=AllPriors(2)))
    assert everything.value == pytest.approx(ldp_level(RESPONSE), abs=1e-9)
    assert everything.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_linear_program_is_the_one_that_is_declared(seed: int) -> None:
    p, matrix, priors = drawn(seed)
    program = envelope(p, matrix, 0.5, over=priors)
    direct = RatioPrograms(program, 0.5)
    for ratio in (1.05, 1.3, 2.0):
        mass, _, point, multipliers = direct.solve(ratio, np.zeros(len(p), dtype=bool), FOREVER)
        program.ratio.value = ratio
        assert mass == pytest.approx(-program.problem.solve(solver=cp.HIGHS), abs=1e-7)
        assert point.shape == program.attack.shape
        proved = float(program.exact.mass(math.log(ratio), multipliers.tolist()))
        assert mass <= proved + 1e-10 <= mass + 1e-8


@pytest.mark.parametrize("seed", range(6))
def test_any_multipliers_bound_every_prior(seed: int) -> None:
    p, matrix, priors = drawn(seed)
    rng = np.random.default_rng([1242, seed])
    program = envelope(p, matrix, 0.5, over=priors)
    for _ in range(5):
        lam = rng.exponential(3.0, len(p))
        multipliers, ratio = np.append(lam, rng.normal()), float(rng.uniform(1, 3))
        mass = float(program.exact.mass(math.log(ratio), multipliers.tolist()))
        for q in members(priors, p, rng, 3):
            assert most_mass(q, matrix, ratio) <= mass + 1e-9


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(PrivacyError, match="give a set of priors"):
        envelope([0.5, 0.5], RESPONSE, 0.3, over=0.1)  # type: ignore[arg-type]
    with pytest.raises(PrivacyError, match="3 letters"):
        failure_after_processing([0.5, 0.5], RESPONSE, 0.3, over=AllPriors(3))
    program = envelope([0.5, 0.5], RESPONSE, 0.3, over=AllPriors(2))
    with pytest.raises(MechanismError, match="sum of the probabilities"):
        certify(program, np.eye(2), [1.0, 1.0])
    own = certify(program, Mechanism(np.eye(2)), [1.0, 1.0, 0.0])
    assert own.certificate.verify()


def test_an_attack_under_a_prior_outside_the_set_shows_nothing() -> None:
    ball, far = L1Ball([0.5, 0.5], 0.1), Prior([0.9, 0.1])
    certificate = solve(failure_after_processing([0.5, 0.5], RESPONSE, 0.3, over=ball)).certificate
    assert certificate.verify()
    moved = dataclasses.replace(certificate, prior=far, value=0.0)
    assert [claim.name for claim in moved.checks() if not claim.holds] == ["prior"]
