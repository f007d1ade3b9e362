"""PML about a secret over sets of joint laws: conformance, and programs over every vertex."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.joint_laws import ball_vertices, laws_of, pairs_over
from oracles.ratio_bounds import best_gain
from refusals import refused

from pmlopt import PML, ConvexHull, ExpectedGain, L1Ball, MutualInformation, Secret, design, solve
from pmlopt.errors import PrivacyError
from pmlopt.model.uncertainty import AllPriors, Box, JointLaws
from pmlopt.testing import check_requirement

COUNTS = np.array([[30, 5, 12], [20, 25, 13]])
SECRET = Secret.from_counts(COUNTS)
POINTS = [  # around the laws of the data given the secret: (30, 5, 12) / 47 and (20, 25, 13) / 58
    np.array([[0.5, 0.1, 0.4], [0.7, 0.2, 0.1], [0.7, 0.0, 0.3]]),
    np.array([[0.3, 0.4, 0.3], [0.4, 0.4, 0.2], [0.3, 0.6, 0.1]]),
]
SETS = {
    "ball": JointLaws.ball(SECRET, 0.05),
    "sample": JointLaws.confidence(SECRET, 0.1),
    "vertices": JointLaws(ConvexHull([[0.4, 0.6], [0.5, 0.5]]), [ConvexHull(points) for points in POINTS]),
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
