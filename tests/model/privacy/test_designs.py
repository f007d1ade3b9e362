"""Designs under requirements at once, about secrets over sets of laws, on guesses, and with parameters."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from oracles import designs as oracles
from oracles.designs import random_prior
from oracles.joint_laws import ball_vertices, laws_of, pairs_over
from oracles.prior_sets import KINDS, random_set, robust_rows
from oracles.ratio_bounds import best_gain
from refusals import refused

from pmlopt import (
    LDP,
    LIP,
    PML,
    ConvexHull,
    ExpectedGain,
    GainLeakage,
    GuessLeakage,
    L1Ball,
    MaximalLeakage,
    MetricPrivacy,
    MutualInformation,
    Prior,
    Secret,
    certify,
    design,
    solve,
    verify_file,
)
from pmlopt.core.numbers.arrays import FloatArray
from pmlopt.errors import PrivacyError
from pmlopt.model.privacy import Requirement, parametric_constraints
from pmlopt.model.uncertainty import AllPriors, Box, JointLaws
from pmlopt.testing import check_requirement


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", [LIP(0.7, 0.4), LDP(0.8)])
def test_the_bound_is_sharp_beside_a_set_of_priors(beside: Requirement, kind: str) -> None:
    rng = np.random.default_rng([KINDS.index(kind), len(beside.limits)])
    case, gains, epsilon = random_set(kind, rng, 3), rng.normal(size=(3, 3)), rng.uniform(0.1, 0.8)
    rows = robust_rows(case.defined.corners(), 3, epsilon)
    expected = oracles.optimum(case.p, beside, gains, rows, np.zeros(len(rows))).value
    result = solve(design(case.p, beside & PML(epsilon, over=case.priors), ExpectedGain(gains), 3))
    assert result.status == "optimal"
    assert result.value == pytest.approx(expected, abs=1e-7)
    assert result.bound == pytest.approx(expected, abs=1e-7)
    assert result.certificate.verify()


def test_weights_of_the_other_pairs_prove_something_whatever_they_are() -> None:
    rng = np.random.default_rng(5)
    p, gains = rng.dirichlet(np.full(4, 2.0)), rng.normal(size=(4, 3))
    both = LIP(0.3, 0.9) & PML(0.4, over=L1Ball(p, 0.2))
    prior = design(p, both, ExpectedGain(gains), 3).prior
    witness = dict(both.dual_certificate(prior, gains))
    support = both.support_function(prior, gains)
    assert both.dual_bound(prior, gains, witness) == pytest.approx(support, abs=1e-9)
    for _ in range(5):
        other = {**witness, "others": rng.normal(size=witness["others"].shape)}
        assert both.dual_bound(prior, gains, other) >= support - 1e-9
    with pytest.raises(PrivacyError, match="shape"):
        both.dual_bound(prior, gains, {**witness, "others": np.ones((2, 3))})
    with pytest.raises(PrivacyError, match="part 2 of 2"):
        both.dual_bound(prior, gains, {**witness, "part": np.array(2.0)})


def test_the_weights_travel_and_past_a_size_a_part_alone_proves_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, gains = np.full(6, 1 / 6), np.random.default_rng(1).random((6, 6))
    program = design(p, LIP(1.0, 1.0) & PML(0.8, over=L1Ball(p, 0.1)), ExpectedGain(gains), 6)
    sharp = solve(program)
    sharp.save(tmp_path / "both.json")
    saved = json.loads((tmp_path / "both.json").read_text())
    assert verify_file(tmp_path / "both.json").holds
    saved["metadata"]["certificate"]["witness"]["others"][0][0] += 1.0
    (tmp_path / "both.json").write_text(json.dumps(saved))
    assert not verify_file(tmp_path / "both.json").holds
    monkeypatch.setattr("pmlopt.model.privacy.conjunction.MAX_JOINT_ENTRIES", 0)
    found = solve(program)
    assert (sharp.status, found.status) == ("optimal", "unproved")
    assert found.certificate.verify()
    assert found.value == pytest.approx(sharp.value, abs=1e-7)
    assert found.bound > sharp.bound + 1e-3


COUNTS = np.array([[30, 5, 12], [20, 25, 13]])
SECRET = Secret.from_counts(COUNTS)
POINTS = [  # around the laws of the data given the secret: (30, 5, 12) / 47 and (20, 25, 13) / 58
    np.array([[0.5, 0.1, 0.4], [0.7, 0.2, 0.1], [0.7, 0.0, 0.3]]),
    np.array([[0.3, 0.4, 0.3], [0.4, 0.4, 0.2], [0.3, 0.6, 0.1]]),
]
SETS = {
    "ball": JointLaws.ball(SECRET, 0.05),
    "sample": JointLaws.confidence(SECRET, 0.1),
    "vertices": JointLaws(
        ConvexHull([[0.4, 0.6], [0.5, 0.5]]), [ConvexHull(points) for points in POINTS]
    ),
    "boxes": JointLaws(Box([0.3, 0.4], [0.6, 0.7]), [Box([0.1] * 3, [0.7] * 3), AllPriors(3)]),
}


def joint_laws(over: JointLaws) -> list[np.ndarray]:
    """The joint laws of all vertices of a set."""
    own, *others = (
        ball_vertices(part.center.probabilities, part.radius) if isinstance(part, L1Ball)
        else np.asarray(getattr(part, "points", None), float)
        for part in (over.law, *over.conditionals)
    )  # fmt: skip
    return laws_of(own, others)


@pytest.mark.parametrize("name", SETS)
def test_conformance(name: str) -> None:
    check_requirement(PML(0.7, about=SECRET, over=SETS[name]), SECRET.prior, instances=2)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["ball", "vertices"])
def test_the_optimum_is_that_of_a_program_over_every_vertex(name: str, seed: int) -> None:
    over, rng = SETS[name], np.random.default_rng(seed)
    epsilon, gains = float(rng.uniform(0.05, 0.8)), rng.normal(size=(3, 3))
    pairs = pairs_over(joint_laws(over), epsilon)
    requirement = PML(epsilon, about=SECRET, over=over)
    result = solve(design(SECRET.prior, requirement, ExpectedGain(gains)))
    best = best_gain(SECRET.prior.pmf, pairs, gains)
    assert result.certificate.verify()
    assert result.value == pytest.approx(best, abs=1e-7)
    assert result.bound >= best - 1e-9
    matrix = result.mechanism.matrix
    assert all((up @ matrix <= down @ matrix * (1 + 1e-9)).all() for up, down in pairs)


@pytest.mark.parametrize("name", ["ball", "vertices"])
def test_beside_pml_of_the_data_the_bound_is_sharp(name: str) -> None:
    over, rng = SETS[name], np.random.default_rng(9)
    gains, p = rng.normal(size=(3, 3)), SECRET.prior.pmf
    both = PML(0.3, about=SECRET, over=over) & PML(0.4)
    result = solve(design(SECRET.prior, both, ExpectedGain(gains)))
    pairs = [(row, np.exp(0.4) * p) for row in np.eye(3)]
    best = best_gain(p, pairs_over(joint_laws(over), 0.3) + pairs, gains)
    assert result.certificate.verify()
    assert result.value == pytest.approx(best, abs=1e-7)
    assert result.bound == pytest.approx(best, abs=1e-7)


def test_what_cannot_be_meant_is_refused() -> None:
    ball = SETS["ball"]
    for meant, said in (
        ({"over": L1Ball(SECRET.prior, 0.1), "about": SECRET}, "JointLaws"), ({"over": ball}, "JointLaws"),
        ({"about": Secret(np.full((3, 3), 1 / 9)), "over": ball}, "3"),
        ({"about": Secret(np.full((2, 4), 1 / 8)), "over": ball}, "4"),
    ):  # fmt: skip
        with pytest.raises(PrivacyError, match=said):
            PML(0.5, **meant)
    refused(PrivacyError, PML, "budgets", ([0.5] * 3, ball, SECRET))
    told = (SECRET.prior, PML(0.5, ball, SECRET), MutualInformation())
    refused(PrivacyError, design, "expected gain or loss", told)


def sets_of(letters: int, guesses: int) -> FloatArray:
    """(N over k, N) the gain of each set of letters."""
    return np.array(
        [[x in chosen for x in range(letters)] for chosen in combinations(range(letters), guesses)],
        float,
    )


@pytest.mark.parametrize(("letters", "guesses"), [(4, 1), (5, 2), (6, 3)])
def test_it_is_the_leakage_of_the_gains_of_all_sets(letters: int, guesses: int) -> None:
    rng = np.random.default_rng([letters, guesses])
    for epsilon in (1e-3, 0.6):
        p, gains = random_prior(rng, letters), rng.random((letters, 5))
        many = GainLeakage(epsilon, sets_of(letters, guesses))
        matrix = rng.dirichlet(np.ones(4), letters)
        few = GuessLeakage(guesses, epsilon)
        assert few.level(p, matrix) == pytest.approx(many.level(p, matrix), abs=1e-12)
        found, wanted = (solve(design(Prior(p), one, ExpectedGain(gains))) for one in (few, many))
        assert found.value == pytest.approx(wanted.value, abs=1e-8)
        assert found.bound - found.value <= 1e-7
        assert found.level <= epsilon
        assert found.certificate.verify()


def test_as_many_guesses_as_letters_tell_nothing() -> None:
    everything = GuessLeakage(3, 0.0)
    assert everything.level([0.5, 0.3, 0.2], np.eye(3)) == 0
    assert GuessLeakage(5, 0.0).holds([0.5, 0.3, 0.2], np.eye(3))
    assert solve(
        design([0.5, 0.3, 0.2], everything, ExpectedGain(np.eye(3)))
    ).value == pytest.approx(1)
    assert (
        solve(design([1e-300, 0.5, 0.5], GuessLeakage(1, 0.3), ExpectedGain(np.eye(3)))).level
        <= 0.3
    )


@pytest.mark.parametrize("guesses", [1, 2])
def test_at_zero_nats_more_than_a_constant_is_released(guesses: int) -> None:
    # letters outside of the best guess may be told apart: the optimum is that of the bounds for all sets
    rng = np.random.default_rng(guesses)
    prior, gains = Prior(rng.dirichlet(np.ones(3))), rng.normal(size=(3, 3))
    still, near = (
        solve(design(prior, GuessLeakage(guesses, e), ExpectedGain(gains))) for e in (0.0, 1e-9)
    )
    other = solve(design(prior, GainLeakage(0.0, sets_of(3, guesses)), ExpectedGain(gains)))
    assert still.value == pytest.approx(other.value, abs=1e-8)
    assert still.gap <= 1e-7
    assert still.level <= 1e-13
    assert still.value >= max(float((prior.pmf @ gains).max()) - 1e-12, near.value - 1e-6)
    assert still.certificate.privacy.limits["guess_leakage"] <= 2.0**-46
    assert still.certificate.verify()


PRIOR = [0.4, 0.3, 0.2, 0.1]
GAINS = np.random.default_rng(4).random((4, 4))


def by_hand(rules: list[cp.Constraint], mechanism: cp.Variable) -> cp.Problem:
    gain = cp.sum(cp.multiply(np.array(PRIOR)[:, None] * GAINS, mechanism))
    return cp.Problem(cp.Maximize(gain), [cp.sum(mechanism, axis=1) == 1, *rules])


REQUIREMENTS = (
    PML(0.5), LDP(0.5), LIP(0.3, 0.4), MaximalLeakage(0.4), MetricPrivacy(0.3, lambda x, y: abs(x - y)),
    PML(0.9) & LDP(1.1),
)  # fmt: skip


@pytest.mark.parametrize("privacy", REQUIREMENTS, ids=str)
def test_a_problem_of_ones_own_has_the_optimum_of_the_design(privacy: Requirement) -> None:
    mechanism = cp.Variable((4, 4), nonneg=True)
    problem = by_hand(privacy.constraints(PRIOR, mechanism), mechanism)
    problem.solve(solver="CLARABEL")
    result = solve(design(PRIOR, privacy, ExpectedGain(GAINS)))
    assert problem.value == pytest.approx(result.value, abs=1e-7)
    own = certify(design(PRIOR, privacy, ExpectedGain(GAINS)), mechanism.value)
    assert own.certificate.verify()
    assert own.value == pytest.approx(result.value, abs=1e-6)


@pytest.mark.parametrize(("kind", "of"), [("pml", PML), ("ldp", LDP)])
def test_one_compiled_problem_serves_many_levels(kind: str, of: type[PML] | type[LDP]) -> None:
    mechanism, level = cp.Variable((4, 4), nonneg=True), cp.Parameter(nonneg=True)
    problem = by_hand(parametric_constraints(PRIOR, mechanism, level, kind), mechanism)  # type: ignore[arg-type]
    assert problem.is_dpp()
    for value in (0.0, 0.4, 1.0, 5.0):
        level.value = value
        problem.solve(solver="HIGHS")
        wanted = solve(design(PRIOR, of(value), ExpectedGain(GAINS))).value
        assert problem.value == pytest.approx(wanted, abs=1e-7)


def test_parameters_that_cannot_be_meant_are_refused() -> None:
    mechanism = cp.Variable((4, 4), nonneg=True)
    own, parametric = PML(0.5).constraints, parametric_constraints
    refused(PrivacyError, own, "a row for each of 3 letters", (Prior.uniform(3), mechanism))
    refused(PrivacyError, own, "affine", (PRIOR, cp.square(mechanism)))
    refused(PrivacyError, PML, "parametric_constraints", (cp.Parameter(nonneg=True),))
    refused(PrivacyError, parametric, "scalar cvxpy Parameter", (PRIOR, mechanism, 0.5))
    refused(PrivacyError, parametric, "'pml' or 'ldp'", (PRIOR, mechanism, cp.Parameter(), "dp"))
    problem = by_hand(parametric_constraints(PRIOR, mechanism, level := cp.Parameter()), mechanism)
    level.value = -1.0
    with pytest.raises(PrivacyError, match=r"value -1\.0"):
        problem.solve(solver="HIGHS")
