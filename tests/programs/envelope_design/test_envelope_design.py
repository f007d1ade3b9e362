"""Designs within an envelope: formulas, grids of mechanisms, relaxations, and what is claimed."""

from __future__ import annotations

import dataclasses
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from oracles.envelopes import most_mass

from pmlopt import (
    PML,
    ApproximatePML,
    ExpectedGain,
    ExpectedLoss,
    Prior,
    Result,
    certify,
    design,
    envelope,
    envelope_design,
    solve,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.measures import envelope_slack
from pmlopt.model.utility import hamming
from pmlopt.programs import Status
from pmlopt.programs.envelope.masses import bound_leaking_mass
from pmlopt.programs.envelope_design import margin_programs
from pmlopt.programs.envelope_design.certificate import EnvelopeDesignCertificate
from pmlopt.programs.envelope_design.margin_programs import MarginRange, bound_gain

ABOVE = 1 + 1e-9
"""Just above e^epsilon the mass of what leaks so much must be below delta."""


def instance(seed: int) -> tuple[FloatArray, float, float, FloatArray]:
    """A prior, epsilon, delta, gains."""
    rng = np.random.default_rng([1250, seed])
    n, m = (int(size) for size in rng.integers(2, 4, 2))
    p = rng.dirichlet(np.full(n, (1.0, 5.0)[seed % 2])) + 1e-3
    return (
        p / p.sum(),
        float(rng.uniform(0.1, 1.2)),
        float(rng.choice([0.01, 0.1, 0.4])),
        rng.random((n, m)),
    )


@cache
def solved(seed: int) -> Result[EnvelopeDesignCertificate]:
    p, epsilon, delta, gains = instance(seed)
    return solve(envelope_design(p, epsilon, delta, ExpectedGain(gains)))


def keeps(p: FloatArray, matrix: FloatArray, epsilon: float, delta: float) -> bool:
    """Whether no post-processing leaks more than epsilon but with probability delta, by a dense program."""
    return most_mass(p, matrix, math.exp(epsilon) * ABOVE) < delta


@pytest.mark.parametrize("seed", range(4))
def test_what_is_designed_keeps_the_envelope_and_beats_what_implies_it(seed: int) -> None:
    p, epsilon, delta, gains = instance(seed)
    found = solved(seed)
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()
    assert found.value <= found.bound + 1e-12
    assert solve(envelope(p, found.mechanism, delta)).value <= epsilon + 1e-9
    scale = 1e-7 * float(p @ np.ptp(gains, axis=1))
    assert found.value >= solve(design(p, PML(epsilon), ExpectedGain(gains))).value - scale
    slack = envelope_slack(len(p), epsilon, delta)
    other = solve(design(p, ApproximatePML(0.0, slack), ExpectedGain(gains)), tolerance=1e-4)
    assert found.value >= other.value - scale


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_the_rarer_of_two_letters_gives_itself_away(delta: float) -> None:
    # one output of the rarer letter alone, likelihood ratios of c on the other, q @ (1, 0) = 1 - delta there:
    # P[1,0] = c q[0], with c = (1 - delta t) / (1 - delta) and q[0] = p[0] + p[1] P[1,0]
    t = math.exp(0.5)
    c = (1 - delta * t) / (1 - delta)
    loss = 0.8 * 0.2 * c / (1 - 0.2 * c)
    found = solve(envelope_design([0.8, 0.2], 0.5, delta, ExpectedLoss([[0, 1], [1, 0]])))
    assert found.status is Status.OPTIMAL
    assert found.value == pytest.approx(loss, abs=1e-7)
    assert found.bound == pytest.approx(loss, abs=1e-7)


def test_no_random_mechanism_within_the_envelope_exceeds_the_bound() -> None:
    rng = np.random.default_rng(1252)
    compared = 0
    for seed in range(4):
        p, epsilon, delta, gains = instance(seed)
        found = solved(seed)
        for _ in range(20):
            other = rng.dirichlet(np.full(gains.shape[1], 0.5), len(p))
            share = float(rng.choice([0.3, 0.05, 0.01]))
            matrix = (1 - share) * found.mechanism.matrix + share * other
            if keeps(p, matrix, epsilon, delta):
                compared += 1
                assert float(p @ (gains * matrix).sum(axis=1)) <= found.bound + 1e-9
    assert compared >= 10


@pytest.mark.parametrize("seed", range(4))
def test_a_box_holds_the_mechanisms_of_its_margins(seed: int) -> None:
    # a design at margins s is within the caps and slopes of every box around s, and any multipliers bound it
    rng = np.random.default_rng([1253, seed])
    p, epsilon, delta, gains = instance(seed)
    span = MarginRange.from_prior(Prior(p), epsilon, delta)
    s = rng.uniform(0, 1, len(p)) * span.max_margins
    lower, upper = (
        s * rng.uniform(0, 1, len(p)),
        s + (span.max_margins - s) * rng.uniform(0, 1, len(p)),
    )
    program = envelope_design(p, epsilon, delta, ExpectedGain(gains))
    program.margins.value = s[:, None]
    inside = float(program.problem.solve(solver="HIGHS"))
    matrix, bad = program.mechanism.value, program.variables["bad"].value
    assert matrix is not None
    assert bad is not None
    caps, slopes = span.relax_box(lower, upper)
    over = matrix - caps[:, None] * (p @ matrix) - slopes[:, None] * bad
    assert over.max() <= 1e-7
    offset = float(p @ gains.min(axis=1))
    for _ in range(10):
        rows, thresholds = rng.normal(size=(1, len(p))), rng.normal(size=(1, gains.shape[1]))
        bound = float(bound_gain(span, program.centered_gains, caps, slopes, rows, thresholds)[0])
        assert inside - offset <= bound + 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_a_bound_on_a_box_has_the_rounding_of_its_terms_added(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As much as a share of the size of all of them; with no rounding it is the formula, term by term."""
    rng = np.random.default_rng([1255, seed])
    n, m = 4, 3
    large = np.roll([20.0, 1.0, 1.0], seed)  # no part may count against the others
    p, gains = rng.dirichlet(np.full(n, 5.0)), large[0] * rng.normal(size=(n, m))
    span = MarginRange.from_prior(Prior(p), 0.5, 0.2)
    caps, slopes = rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, n) * (10.0 if seed == 0 else 1.0)
    rows, thresholds = large[1] * rng.normal(size=n), large[2] * rng.normal(size=m)
    caps[0] -= 2.0 if seed % 2 else 0.0
    found = []
    for share in (0.0, 0.1):
        monkeypatch.setattr(
            margin_programs, "bound_sum_rounding", lambda terms, size, share=share: share * size
        )
        found.append(float(bound_gain(span, gains, caps, slopes, rows, thresholds)))
    least = max(0.0, *(-caps / slopes))
    left, above = 0.2 - least, caps + slopes * least
    over = [[max(0.0, gains[x, y] - rows[x] - thresholds[y]) for y in range(m)] for x in range(n)]
    bad = max(sum(p[x] * slopes[x] * over[x][y] for x in range(n)) for y in range(m))
    good = [sum(p[x] * above[x] * over[x][y] for x in range(n)) for y in range(m)]
    if left < 0:
        assert found == [-math.inf, -math.inf]
        return
    expected = float(p @ rows) + left * bad + max(thresholds[y] + good[y] for y in range(m))
    assert found[0] == pytest.approx(expected, abs=1e-12)
    terms = float(p @ np.abs(rows)) + left * bad + float(np.abs(thresholds).max()) + max(good)
    assert found[1] - found[0] >= 0.1 * terms


@pytest.mark.parametrize("seed", range(4))
def test_margins_bound_the_mass_that_leaks(seed: int) -> None:
    rng = np.random.default_rng([1254, seed])
    p, epsilon, _, gains = instance(seed)
    matrix = rng.dirichlet(np.ones(gains.shape[1]), len(p))
    margins = rng.uniform(0.01, 2, len(p))
    mass = bound_leaking_mass(Prior(p), matrix, epsilon, margins)
    assert mass is not None
    law = p @ matrix
    dual = (
        np.maximum(0, law + (matrix - math.exp(epsilon) * law) / margins[:, None]).max(axis=0).sum()
    )
    assert float(mass) == pytest.approx(dual, rel=1e-9)
    assert float(mass) >= most_mass(p, matrix, math.exp(epsilon)) - 1e-9


def test_a_letter_without_a_margin_may_not_leak() -> None:
    flip = np.array([[0.75, 0.25], [0.25, 0.75]])
    half = Prior([0.5, 0.5])
    assert bound_leaking_mass(half, flip, math.log(1.5) + 1e-12, np.zeros(2)) == 0
    assert bound_leaking_mass(half, flip, math.log(1.5) - 1e-12, np.zeros(2)) is None
    assert bound_leaking_mass(half, flip, 1.0, np.array([-1.0, 0.0])) is None
    assert bound_leaking_mass(half, flip, 1.0, np.array([math.nan, 0.0])) is None


class TestCertificates:
    """What is altered is refused."""

    @staticmethod
    @cache
    def found() -> EnvelopeDesignCertificate:
        certificate = solve(
            envelope_design([0.8, 0.2], 1.0, 0.1, ExpectedLoss(hamming))
        ).certificate
        assert len(certificate.proof.letters) > 1
        assert certificate.margins.max() > 0
        return certificate

    @pytest.mark.parametrize(
        "change",
        [
            lambda proof: {"letters": proof.letters[:-1], "cuts": proof.cuts[:-1]},
            lambda proof: {
                "letters": np.append(proof.letters, -1),
                "cuts": np.append(proof.cuts, 0.0),
            },
            lambda proof: {"letters": proof.letters[:-1]},
            lambda proof: {"cuts": 100 + proof.cuts},
            lambda proof: {"cuts": np.full(len(proof.cuts), np.nan)},
            lambda proof: {"letters": np.where(proof.letters >= 0, 2, -1)},
            lambda proof: {"rows": proof.rows[:-1]},
            lambda proof: {"thresholds": proof.thresholds[:, :-1]},
            lambda proof: {"rows": np.full(proof.rows.shape, np.nan)},
        ],
    )
    def test_what_is_no_proof_proves_nothing(self, change: Any) -> None:
        certificate = self.found()
        proof = dataclasses.replace(certificate.proof, **change(certificate.proof))
        span = MarginRange.from_prior(certificate.prior, certificate.epsilon, certificate.delta)
        assert proof.compute_bound(span, -certificate.table) == math.inf
        assert not dataclasses.replace(certificate, proof=proof).verify()

    def test_other_multipliers_prove_less(self) -> None:
        certificate = self.found()
        rng = np.random.default_rng(1255)
        noise = rng.normal(0, 0.01, certificate.proof.rows.shape)
        proof = dataclasses.replace(certificate.proof, rows=certificate.proof.rows + noise)
        assert not dataclasses.replace(certificate, proof=proof).verify()
        assert dataclasses.replace(certificate, bound=0.0, proof=proof).verify()


def test_a_matrix_from_elsewhere_is_repaired() -> None:
    program = envelope_design([0.7, 0.2, 0.1], 0.8, 0.1, ExpectedLoss(hamming))
    best = solve(program)
    own = certify(program, best.mechanism)
    assert own.certificate.verify()
    assert own.value == pytest.approx(best.value, abs=1e-6)
    far = certify(program, np.eye(3))
    assert far.certificate.verify()
    assert far.certificate.repair.theta > 0
    assert far.value > best.value


@pytest.mark.parametrize("seed", range(4))
def test_margins_are_there_just_above_the_envelope_and_not_below(seed: int) -> None:
    rng = np.random.default_rng([1257, seed])
    p, _, _, gains = instance(seed)
    matrix, delta = (
        rng.dirichlet(np.full(gains.shape[1], 0.5), len(p)),
        float(rng.uniform(0.02, 0.9)),
    )
    reached = solve(envelope(p, matrix, delta))
    above, below = (
        certify(envelope_design(p, level, delta, ExpectedGain(gains)), matrix).certificate
        for level in (reached.bound + 1e-7, 0.99 * reached.value)
    )
    assert above.verify()
    assert below.verify()
    assert above.repair.theta <= 1e-6
    assert below.repair.theta >= 1e-4


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 3.0, 800.0])
def test_levels_at_the_ends(epsilon: float) -> None:
    found = solve(envelope_design([0.5, 0.3, 0.2], epsilon, 0.05, ExpectedGain(np.eye(3))))
    assert found.status is Status.OPTIMAL
    assert found.certificate.verify()
    assert found.value == pytest.approx(0.5 if epsilon < 1 else 1.0, abs=1e-7)
