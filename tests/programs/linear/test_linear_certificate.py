"""Certificates: recomputed from the matrix, refusing what is false, and enough to check again."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import designs as oracles

from pmlopt import LDP, LIP, PML, ExpectedGain, ExpectedLoss, MaximalLeakage, Mechanism, Prior, design
from pmlopt.errors import MechanismError
from pmlopt.model.privacy import Requirement
from pmlopt.programs.linear.certificate import LinearCertificate
from pmlopt.programs.linear.certifying import certify_linear as certify

GAINS = np.array([[5.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.7, 2.0]])

MARGIN = 2.0**-39
"""The constraints on a variable may be stricter than the claim by 2^-40 of numbers of at most 2."""

REQUIREMENTS = [PML(0.4), LDP(0.4), LIP(0.3, 0.4), MaximalLeakage(0.4)]

each = pytest.mark.parametrize("privacy", REQUIREMENTS)


def certified(privacy: Requirement, loss: bool = False) -> LinearCertificate:
    prior = Prior.from_counts({"a": 2, "b": 3, "c": 5})
    best = oracles.optimum(prior.pmf, privacy, -GAINS if loss else GAINS)
    program = design(prior, privacy, (ExpectedLoss if loss else ExpectedGain)(GAINS))
    offsets = GAINS.min(axis=1)  # the program's gains are without them
    return certify(program, best.matrix, best.multipliers + (offsets if loss else -offsets))


@each
@pytest.mark.parametrize("loss", [False, True])
def test_every_number_is_that_of_the_matrix(privacy: Requirement, loss: bool) -> None:
    certificate = certified(privacy, loss)
    prior, matrix = certificate.prior, certificate.mechanism.matrix
    value = float((prior.pmf[:, None] * GAINS * matrix).sum())
    best = oracles.optimum(prior.pmf, privacy, -GAINS if loss else GAINS).value
    assert certificate.value == pytest.approx(value, abs=1e-14)
    assert certificate.bound == pytest.approx(-best if loss else best, abs=1e-8)
    assert (certificate.bound <= value) if loss else (certificate.bound >= value)
    assert certificate.gap == pytest.approx(abs(certificate.bound - certificate.value), abs=1e-14)
    assert certificate.levels == pytest.approx(privacy.levels(prior, certificate.mechanism), abs=1e-14)
    assert certificate.level == max(certificate.levels.values())
    assert all(certificate.levels[name] <= limit for name, limit in privacy.limits.items())
    assert max(certificate.residuals.values()) <= MARGIN
    assert certificate.mechanism.inputs == ("a", "b", "c")


@each
def test_the_exact_check_is_true_of_what_is_certified_and_of_nothing_else(privacy: Requirement) -> None:
    certificate = certified(privacy)
    assert certificate.verify()
    assert oracles.meets(certificate.prior, privacy, certificate.mechanism.matrix)
    stronger = oracles.requirement_at(privacy.name, privacy.limits, 1 - 1e-6)
    assert not dataclasses.replace(certificate, privacy=stronger).verify()
    lighter = certificate.mechanism.matrix.copy()
    row, column = np.argwhere(lighter > 0.1)[0]
    lighter[row, column] -= 2.0**-50
    for matrix in (np.eye(3), lighter):
        assert not dataclasses.replace(certificate, mechanism=Mechanism(matrix)).verify()


def test_multipliers_that_are_no_numbers_are_not_used() -> None:
    best = math.exp(0.4) / 2
    for multipliers in (None, np.array([np.nan, 0.0]), np.array([np.inf, 0.0])):
        gain = certify(design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2))), np.eye(2), multipliers)
        loss = certify(design([0.5, 0.5], PML(0.4), ExpectedLoss(1 - np.eye(2))), np.eye(2), multipliers)
        assert best <= gain.bound < math.inf
        assert 1 - best >= loss.bound > -math.inf
        assert gain.verify()


@settings(max_examples=25, deadline=None)
@given(case=oracles.cases())
def test_any_mechanism_and_multipliers_give_a_true_certificate(case: oracles.Case) -> None:
    privacy = PML(0.2)
    program = design(case.prior, privacy, ExpectedGain(case.gains))
    certificate = certify(program, case.matrix, case.rng.normal(size=case.prior.size))
    best = oracles.optimum(case.prior.pmf, privacy, case.gains).value
    assert certificate.verify()
    assert certificate.value <= best + 1e-9
    assert certificate.bound >= best - 1e-9
    assert oracles.meets(case.prior, privacy, certificate.mechanism.matrix)


def test_what_is_no_mechanism_is_not_certified() -> None:
    with pytest.raises(MechanismError):
        certify(design([0.5, 0.5], PML(0.4), ExpectedGain(np.eye(2))), np.zeros((2, 2)), None)
