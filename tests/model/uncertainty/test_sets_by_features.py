"""Every set of priors under every question that takes one: it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_cases import script

from pmlopt import (
    LDP,
    PML,
    Box,
    ChiSquareBall,
    ConvexHull,
    EntropySet,
    EstimationError,
    ExpectedGain,
    ExpectedLoss,
    KLBall,
    L1Ball,
    LikelihoodRegion,
    MinimumMass,
    MutualInformation,
    Polytope,
    Prior,
    Secret,
    WassersteinBall,
    best_worst_case,
    design,
    envelope,
    intersection,
    leakage_level,
    least_leakage,
    load,
    solve,
    sweep,
    verify_file,
    worst_case_utility,
)
from pmlopt.data.symmetry import InvariantPrior, reflection
from pmlopt.measures import failure_probability
from pmlopt.model.uncertainty import JointLaws, PriorSet, leakage_capacity
from pmlopt.programs import best_guaranteed_utility
from pmlopt.programs.program import Program

P = Prior([0.25, 0.5, 0.25])
LOSS = 1 - np.eye(3)
ORDER = np.array([[3, 2, 1], [1, 3, 2], [2, 1, 3]])
CHANNEL = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
ROW = InvariantPrior(Prior.from_counts([1, 2, 1]), [reflection(3)])
SECRET = Secret(np.outer([0.5, 0.5], P.pmf))

SETS: Mapping[str, PriorSet] = {
    "chi-square": ChiSquareBall(P, 0.05),
    "kl": KLBall(P, 0.03),
    "likelihood": LikelihoodRegion(P, 0.03),
    "entropy": EntropySet(3, 1.0),
    "polytope": Polytope(
        [[1, -1, 0], [0, -1, 1], [0, 1, 0], [-1, 0, 0], [0, 0, -1]], [0.1, 0.1, 0.6, -0.1, -0.1]
    ),
    "wasserstein": WassersteinBall(P, lambda x, y: abs(x - y), 0.1),
    "intersection": intersection(KLBall(P, 0.03), MinimumMass(3, 0.2)),
    "l1": L1Ball(P, 0.1),
    "box": Box([0.2, 0.4, 0.2], [0.3, 0.6, 0.3]),
    "hull": ConvexHull(np.array([[0.25, 0.5, 0.25], [0.3, 0.4, 0.3], [0.2, 0.6, 0.2]])),
}

QUESTIONS: Mapping[str, Callable[[PriorSet], Program[Any]]] = {
    "linear": lambda over: design(P, PML(0.4, over=over), ExpectedLoss(LOSS)),
    "conjunction": lambda over: design(P, PML(0.3, over=over) & LDP(1.5), ExpectedLoss(LOSS)),
    "information": lambda over: design(P, PML(0.4, over=over), MutualInformation()),
    "estimation": lambda over: design(P, PML(0.4, over=over), EstimationError()),
    "least leakage": lambda over: least_leakage(P, ExpectedLoss(LOSS), expected=0.3, over=over),
    "rank": lambda over: worst_case_utility(P, ORDER, 2, over=over),
    "best rank": lambda over: best_worst_case(P, ORDER, 0.9, over=over),
    "guaranteed utility": lambda over: best_guaranteed_utility(
        P, ExpectedGain(ORDER * 1.0), 0.9, over=over
    ),
    "approximate": lambda over: envelope(P, CHANNEL, 0.05, over=over),
    "orbits": lambda over: design(ROW, PML(0.4, over=over), ExpectedLoss(lambda x, y: abs(x - y))),
    "secret": lambda over: design(
        SECRET.prior,
        PML(0.3, JointLaws(L1Ball(SECRET.law, 0.05), [over, over]), SECRET),
        ExpectedLoss(LOSS),
    ),
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_works_over_a_set(question: str, name: str) -> None:
    over = SETS[name]
    assert over.contains(P)
    found = solve(QUESTIONS[question](over), time_limit=60)
    assert found.certificate.verify()
    assert found.gap >= 0
    if question in ("linear", "secret"):
        assert found.gap <= 1e-6


@pytest.mark.parametrize("name", SETS)
def test_a_file_holds_it_and_the_script_decides_or_says_that_it_cannot(
    name: str, tmp_path: Path
) -> None:
    over, path = SETS[name], tmp_path / "saved.json"
    privacy = PML(0.4, over=over)
    solve(design(P, privacy, ExpectedLoss(LOSS))).save(path)
    assert load(path).certificate.privacy == privacy
    assert verify_file(path).holds
    code, words = script(path)
    kind = type(over).kind
    known = {"l1-ball": 0}
    assert code == known.get(kind, 2)
    if code:
        assert f"a set of the kind {kind!r} is not proved by this script" in words


@pytest.mark.parametrize("name", SETS)
def test_measures_and_sweeps_take_it(name: str) -> None:
    over = SETS[name]
    level = leakage_level(P, CHANNEL, over=over)
    worst = leakage_capacity(over, CHANNEL)
    assert level == pytest.approx(float(worst), abs=1e-12)
    # the level under the worst prior itself, which the set may exceed by what its least means are rounded
    # (it may have zeros, and then a letter leaks in the limit)
    leaks = np.log(CHANNEL.max(axis=0) / (worst.prior @ CHANNEL))
    assert leaks.max() == pytest.approx(level, abs=1e-6)
    assert level >= leakage_level(P, CHANNEL)
    failures = [failure_probability(P, CHANNEL, e, over=over) for e in (0.1, level + 1e-6)]
    assert failures[0] > 0
    assert failures[1] == 0
    table = sweep(
        lambda epsilon: design(P, PML(epsilon, over=over), ExpectedLoss(LOSS)),
        {"epsilon": [0.2, 0.4]},
    )
    assert table.column("value")[1] < table.column("value")[0]
